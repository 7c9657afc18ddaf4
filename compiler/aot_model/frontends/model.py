"""What a frontend returns, and the choice of the frontend by the file's content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aot_model.ir.graph import Graph
from aot_model.ir.strings import DEFAULT_WIDTH
from aot_model.ir.values import ModelTensor, Value


@dataclass(frozen=True)
class Bindings:
    """What the user says about sizes that the file leaves open."""

    dims: Mapping[str, int] = field(default_factory=dict)
    """Extents of symbolic dimensions."""
    constants: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Inputs that are constants, and their elements."""
    bounds: Mapping[str, int] = field(default_factory=dict)
    """Values of which the first extent depends on data, and its upper bound."""
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
    """Inputs of the file that are constants because the user says so, by name (TFLite: number) of the tensor.
    """


def name_tensors(found: Iterable[tuple[str | int, str, Value]]) -> None:
    """Note which value each tensor of the file has become: (key, name, value)."""
    for key, name, value in found:
        if not value.is_const and not value.state:
            value.stands_for += (ModelTensor(key, name),)
