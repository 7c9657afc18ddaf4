"""Reading a model: the choice of the frontend by the file's content."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from aot_model.c.names import printable
from aot_model.errors import fail
from aot_model.frontends.model import Bindings, Model


def model_format(path: Path) -> str:
    """ "tflite" or "onnx", from the file's content. CompileError E101."""
    return "tflite" if _is_tflite(path) else "onnx"


def read_model(path: Path, bindings: Bindings | None = None, arithmetic: str = "tflm") -> Model:
    """Read an ONNX or TFLite file. CompileError E1xx to E3xx with everything that is wrong with it.

    arithmetic: whose rounding integer TFLite models have, "tflm" or "litert-ref".
    """
    if _is_tflite(path):
        from aot_model.frontends.tflite import read_tflite

        return read_tflite(path, bindings, arithmetic)
    if bindings is not None and bindings.signature is not None:
        raise fail(
            "E203",
            f"--signature {printable(bindings.signature)}: an ONNX model has no signatures",
            where=str(path),
            hint="leave it out",
        )
    from aot_model.frontends.onnx import read_onnx

    return read_onnx(path, bindings)


def model_files(path: Path) -> tuple[Path, ...]:
    """The model and the files that it refers to (ONNX external data), which need not exist. CompileError
    E101, E102.
    """
    if _is_tflite(path):
        return (path,)
    from aot_model.frontends.onnx_file import external_locations, read_proto

    return (path, *(path.parent / location for location in external_locations(read_proto(path)[1])))


def model_operators(path: Path) -> Counter[tuple[str, str]]:
    """How often each operator (domain, name) is in a file, those of inner graphs and called functions too.
    CompileError E101, E102.
    """
    if _is_tflite(path):
        from aot_model.frontends.tflite_file import parse

        return Counter(
            ("tflite", o.kind)
            for graph in parse(path.read_bytes(), str(path)).subgraphs
            for o in graph.operators
        )
    from aot_model.frontends.onnx_file import operators, read_proto

    return operators(read_proto(path)[1])


def _is_tflite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(8)[4:8] == b"TFL3"
    except OSError as error:
        raise fail(
            "E101",
            f"cannot read the model: {error.strerror or error}",
            where=str(path),
            hint="check the path",
        ) from None
