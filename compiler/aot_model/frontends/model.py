"""What a frontend returns, and the choice of the frontend by the file's content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aot_model.errors import fail
from aot_model.ir.graph import Graph, ModelTensor, Value
from aot_model.ir.strings import DEFAULT_WIDTH


@dataclass(frozen=True)
class Bindings:
    """What the user says about sizes that the file leaves open."""

    dims: Mapping[str, int] = field(default_factory=dict)
    """Extents of symbolic dimensions."""
    constants: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Inputs that are constants, and their elements."""
    bounds: Mapping[str, int] = field(default_factory=dict)
    """Values of which the first extent hangs on data, and its upper bound."""
    string_bytes: int = DEFAULT_WIDTH
    """Room for one string."""


@dataclass
class Model:
    """A model as read: the graph, files that it came from, and notes for the user."""

    graph: Graph
    sources: tuple[Path, ...]
    sha256: str
    notes: list[str] = field(default_factory=list)
    format: str = "onnx"
    constants: Mapping[str | int, np.ndarray] = field(default_factory=dict)
    """Inputs of the file that are constants because the user says so, by name (TFLite: number) of the tensor."""


def name_tensors(found: Iterable[tuple[str | int, str, Value]]) -> None:
    """Note which value each tensor of the file has become: (key, name, value)."""
    for key, name, value in found:
        if not value.is_const and not value.state:
            value.stands_for += (ModelTensor(key, name),)


def model_format(path: Path) -> str:
    """"tflite" or "onnx", from the file's content. CompileError E101."""
    return "tflite" if _is_tflite(path) else "onnx"


def read_model(path: Path, bindings: Bindings | None = None, arithmetic: str = "tflm") -> Model:
    """Read an ONNX or TFLite file. CompileError E1xx to E3xx with everything that is wrong with it.

    arithmetic: whose rounding integer TFLite models have, "tflm" or "litert-ref".
    """
    if _is_tflite(path):
        from aot_model.frontends.tflite import read_tflite

        return read_tflite(path, bindings, arithmetic)
    from aot_model.frontends.onnx import read_onnx

    return read_onnx(path, bindings)


def model_files(path: Path) -> tuple[Path, ...]:
    """The model and the files that it refers to (ONNX external data), which need not exist. CompileError E101, E102."""
    if _is_tflite(path):
        return (path,)
    from aot_model.frontends.onnx_file import external_locations, read_proto

    return (path, *(path.parent / location for location in external_locations(read_proto(path)[1])))


def _is_tflite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(8)[4:8] == b"TFL3"
    except OSError as error:
        raise fail("E101", f"cannot read the model: {error.strerror or error}", where=str(path), hint="check the path") from None
