"""Arrays from a file of numpy's, an .npz or an .npy, which is untrusted like a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aot_model.errors import fail

Array = NDArray[Any]


def read_arrays(
    path: Path, what: str, wanted: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, Array], list[str]]:
    """The arrays of an .npz with the wanted names, or that of an .npy, called "" (which no array of an .npz
    is); the names of all.

    what: the file's part in the command, in the plural, for messages. Raises CompileError E104 when the file
    cannot be read, or holds Python objects.
    """
    try:
        with path.open("rb") as file:
            if not file.read(6).startswith((b"\x93NUMPY", b"PK")):
                raise ValueError("it is neither .npy nor .npz")
            file.seek(0)
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                return {"": np.asarray(found)}, [""]
            arrays = {name: found[name] for name in found.files if name and wanted(name)}
            if plain := sorted(name for name, array in arrays.items() if not isinstance(array, np.ndarray)):
                raise ValueError(f"{plain[0]!r} is a file of another kind")
            return arrays, sorted(found.files)
    except Exception as error:  # numpy parses headers as Python and lets out whatever comes of it
        objects = "llow_pickle" in str(error)
        reason = (
            "it holds Python objects, not numbers or texts"
            if objects
            else getattr(error, "strerror", None) or str(error) or type(error).__name__
        )
        hint = "save arrays of numbers, or texts as numpy's str" if objects else ""
        raise fail("E104", f"the {what} cannot be read: {reason}", where=str(path), hint=hint) from None
