"""Graphs for tests of patterns and partitions, written as Python expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.registry import OPERATORS, Build, load_all
from aot_model.partition.lower import RegionCall
from aot_model.partition.region import Region

load_all()


class Maker:
    """Adds nodes: `m.Add(a, b)`, `m.Convolution(x, w, group=1)`; each is named after its operator and
    number.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        def add(*inputs: Value | None, **attributes: Any) -> Any:
            cls = OPERATORS.get(("", kind)) or OPERATORS["aot", kind]
            results = Build(self.nodes, f"{kind.lower()}{len(self.nodes)}").many(cls(**attributes), *inputs)
            return results[0] if len(results) == 1 else tuple(results)

        return add


def value(name: str, *shape: int, dtype: DType = DType.FLOAT32) -> Value:
    return Value(name, TensorType(dtype, shape))


def weights(name: str, *shape: int) -> Value:
    """A constant of small numbers."""
    data = np.asarray(np.arange(np.prod(shape)).reshape(shape), np.float32)
    return Value(name, TensorType(DType.FLOAT32, shape), data)


def graph(make: Callable[..., Value | Sequence[Value]], *inputs: Value) -> Graph:
    """The graph of make(maker, *inputs)."""
    m = Maker()
    made = make(m, *inputs)
    result = Graph("g", list(inputs), [made] if isinstance(made, Value) else list(made), m.nodes)
    result.verify()
    return result


def regions(g: Graph) -> list[Region]:
    """Regions in the order of the graph."""
    return [n.op.region for n in g.nodes if isinstance(n.op, RegionCall)]


def kinds(nodes: Sequence[Node]) -> list[str]:
    return [n.kind for n in nodes]
