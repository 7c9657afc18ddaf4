"""The choice of a reference implementation."""

from __future__ import annotations

from pathlib import Path

from aot_model.errors import CompileError, fail
from aot_model.layers.reference import Reference, Tensors

NAMES = ("onnxruntime", "onnx", "litert")


def open_reference(
    path: Path, format_: str, name: str | None, constants: Tensors, signature: str | None = None
) -> Reference:
    """A reference implementation for a model file, or a signature of it; `name` of NAMES, or the best that is
    installed.

    CompileError E902 when it is not installed, E501 when it is for another format.
    """
    if (name == "litert") != (format_ == "tflite") and name is not None:
        raise fail(
            "E501",
            f"--reference {name} does not read {'TFLite' if format_ == 'tflite' else 'ONNX'} files",
            where=str(path),
        )
    if format_ == "tflite":
        from aot_model.layers.litert import LiteRT

        return LiteRT(path, constants, signature)
    from aot_model.layers.onnx_reference import OnnxEvaluator, OnnxRuntime

    if name != "onnx":
        try:
            return OnnxRuntime(path, constants)
        except CompileError:
            if name is not None:
                raise
    return OnnxEvaluator(path, constants)
