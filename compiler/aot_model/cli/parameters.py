"""`aot-model params`: the parameters of a model that was trained again, for a library that is built
already.
"""

from __future__ import annotations

import argparse

from aot_model.errors import fail
from aot_model.library.metadata import Metadata

NOT_OF_THE_TARGET = (
    "workspace",
    "io",
    "metadata",
    "params",
    "interfaces",
    "profile",
    "string_bytes",
    "fetch",
)


def params(arguments: argparse.Namespace) -> int:
    """CompileError E303 with the reason when the library's code does not fit the model."""
    from aot_model.emit.files import write_bytes
    from aot_model.emit.parameters import data_offset
    from aot_model.emit.parameters_file import difference, outside, parameters_file, structure
    from aot_model.emit.view import Options
    from aot_model.pipeline import Request, compile_model

    library = Metadata.read(arguments.library)
    if library.parameters is None or not library.parameters.structure:
        hint = "give the .json that 'aot-model compile --params external' wrote"
        raise fail(
            "E102",
            "is not the metadata of a library with external parameters",
            where=str(arguments.library),
            hint=hint,
        )
    asked = library.options
    target = {k: str(v) for k, v in asked.items() if k not in NOT_OF_THE_TARGET}
    options = Options(
        asked["workspace"],
        asked["io"],
        params="external",
        string_bytes=asked["string_bytes"],
        fetch=asked.get("fetch", 0),
    )
    made = Request(
        arguments.model,
        library.name,
        library.target,
        target,
        dict(arguments.dim),
        options,
        plugins=tuple(arguments.target_plugin),
        constants=dict(arguments.constant),
        bounds=dict(arguments.bound),
        signature=arguments.signature,
    )
    view = compile_model(made).view
    reason = difference(structure(view), library.parameters.structure)
    if reason is not None:
        raise fail(
            "E303",
            f"the model has another structure than the library '{library.name}': {reason}",
            where=str(arguments.model),
            hint="compile the model to a library of its own",
        )
    made_file = parameters_file(view)
    found = outside(library.parameters.checks, made_file[data_offset(view.parameters) :])
    if found is not None:
        array = next(b for k, b in enumerate(view.parameters) if k == found.array)
        raise fail(
            "E303",
            f"the library '{library.name}' was made for elements of '{array.name}' from {found.low} to "
            f"{found.high}, the model has others",
            where=str(arguments.model),
            hint="compile the model to a library of its own",
        )
    write_bytes({arguments.output: made_file})
    return 0
