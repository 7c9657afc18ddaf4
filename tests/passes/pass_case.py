"""A pass over a small graph: what it makes of it is recorded, and computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from graphs import Maker

Pass = Callable[[Graph], bool]


@dataclass(frozen=True)
class PassCase:
    """tolerance: how far floats may be off, relative to the largest; units: how far integers may be.
    special: inputs
    with NaN and infinities."""

    run: Pass
    make: Callable[[], Graph]
    tolerance: float = 0.0
    units: int = 0
    special: bool = False


def tensor(name: str, *shape: int, dtype: DType = DType.FLOAT32) -> Value:
    return Value(name, TensorType(dtype, shape))


def numbers(data: Any, dtype: Any = "float32", name: str = "c") -> Value:
    return constant(name, np.asarray(data).astype(dtype))


def drawn(seed: int, *shape: int, low: float = -1.0, high: float = 1.0, dtype: str = "float32") -> Value:
    """A constant of random numbers, for integer types both ends included."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return numbers(rng.integers(int(low), int(high), shape, endpoint=True), dtype)
    return numbers(rng.uniform(low, high, shape), dtype)


def made(build: Callable[..., Value | Sequence[Value]], *inputs: Value) -> Callable[[], Graph]:
    """What makes the graph of build(maker, *inputs), a new one every time."""

    def make() -> Graph:
        maker = Maker()
        fresh = [Value(v.name, v.type) for v in inputs]
        result = build(maker, *fresh)
        graph = Graph("g", fresh, [result] if isinstance(result, Value) else list(result), maker.nodes)
        graph.verify()
        return graph

    return make
