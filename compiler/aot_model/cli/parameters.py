"""`aot-model params`: the parameters of a model that was trained again, for a library that is built already."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from aot_model.errors import fail


def params(arguments: argparse.Namespace) -> int:
    """CompileError E303 with the reason when the library's code does not fit the model."""
    from aot_model.emit.files import write_bytes
    from aot_model.emit.parameters import difference, parameters_file, structure
    from aot_model.emit.view import Options
    from aot_model.pipeline import Request, compile_model

    library = _library(arguments.library)
    asked = library["options"]
    target = {k: str(v) for k, v in asked.items() if k not in ("workspace", "io", "metadata", "params", "interfaces", "profile", "string_bytes")}
    options = Options(asked["workspace"], asked["io"], params="external", string_bytes=asked["string_bytes"])
    view = compile_model(Request(arguments.model, library["c_name"], library["target"], target, dict(arguments.dim), options, plugins=tuple(arguments.target_plugin))).view
    reason = difference(structure(view), library["parameters"]["structure"])
    if reason is not None:
        raise fail("E303", f"the model has another structure than the library '{library['name']}': {reason}", where=str(arguments.model),
                   hint="compile the model to a library of its own")  # fmt: skip
    write_bytes({arguments.output: parameters_file(view)})
    return 0


def _library(path: Path) -> dict[str, Any]:
    """The .json of a library with external parameters. CompileError E101 or E102."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(line, str) for line in facts["parameters"]["structure"]):
            raise TypeError("structure")
        return {"options": dict(facts["options"]), **{k: facts[k] for k in ("name", "c_name", "target", "parameters")}}
    except OSError as error:
        raise fail("E101", f"cannot be read: {error.strerror}", where=str(path)) from None
    except (ValueError, KeyError, TypeError):
        hint = "give the .json that 'aot-model compile --params external' wrote"
        raise fail("E102", "is not the metadata of a library with external parameters", where=str(path), hint=hint) from None
