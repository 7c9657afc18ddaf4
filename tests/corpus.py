"""The corpus of real models: where it is, its index, its vectors. Tests of it skip where the folder is
missing.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_FOLDER = Path(os.environ.get("AOT_MODEL_MODELS", Path(__file__).resolve().parents[2] / "shared" / "models"))
MODELS: Path | None = _FOLDER if (_FOLDER / "index.json").exists() else None
REASON = "no model corpus: set AOT_MODEL_MODELS to its folder"

Arrays = list[list[np.ndarray]]


@cache
def index() -> dict[str, dict[str, Any]]:
    """What the corpus says of each file; empty without a corpus."""
    return (
        {}
        if MODELS is None
        else {row["file"]: row for row in json.loads((MODELS / "index.json").read_text())}
    )


def vectors(model: Path, inputs: int, outputs: int, limit: int | None = None) -> tuple[Arrays, Arrays]:
    """(inputs, expected outputs) of each vector beside a model; vectors are stacked on the leading axis."""
    with np.load(model.with_name(model.name + ".npz")) as data:
        count = len(data["in_0"] if inputs else data["out_0"])
        count = count if limit is None else min(count, limit)
        ins = [[data[f"in_{k}"][i] for k in range(inputs)] for i in range(count)]
        outs = [[data[f"out_{k}"][i] for k in range(outputs)] for i in range(count)]
    return ins, outs
