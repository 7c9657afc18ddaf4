"""What a frontend returns, and the choice of the frontend by the file's content."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np

from aot_model.ir.graph import Graph
from aot_model.ir.strings import DEFAULT_WIDTH
from aot_model.ir.types import DType, TensorType
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
    signature: str | None = None
    """Which of a TFLite file's signatures is the model."""


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


def given_elements(given: Sequence[float], wanted: TensorType) -> np.ndarray:
    """The elements that --constant gives an input: a number for each, or one for all. ValueError where they
    are not as many, or one is not a number of the type: it would become another.
    """
    dtype = wanted.dtype
    if len(given) not in (1, wanted.elements):
        raise ValueError(f"these are {len(given)} values")
    if dtype.is_string:
        raise ValueError("these are numbers, not strings")
    array = _floats(given, dtype) if dtype.is_float else _integers(given, dtype)
    return np.full(wanted.shape, array[0]) if len(given) == 1 else array.reshape(wanted.shape)


def _integers(given: Sequence[float], dtype: DType) -> np.ndarray:
    low, high = dtype.limits
    for value in given:
        if not (low <= value <= high and value == int(value)):  # nan is not in between
            raise ValueError(f"{value} is none of {low} to {high}")
    wide = np.int64 if dtype.kind == "int" else np.uint64
    return np.asarray([int(v) for v in given], wide).astype(dtype.numpy)


def _floats(given: Sequence[float], dtype: DType) -> np.ndarray:
    """Rounded to the nearest of the type."""
    largest = float(ml_dtypes.finfo(dtype.numpy).max)
    for value in given:
        if abs(value) > largest and abs(value) != math.inf:
            raise ValueError(f"{value} is more than {largest:g}")
    wide = np.asarray(given, np.float64)
    array = wide.astype(dtype.numpy)
    back = array.astype(np.float64)
    # some types have no infinity, no nan, or no sign
    lost = (np.isnan(wide) != np.isnan(back)) | (np.isinf(wide) != np.isinf(back))
    if np.any(lost):
        raise ValueError(f"there is no {wide[lost][0]:g}")
    return array
