"""A layer of the kernels' table: an input and a chain of operators (a convolution, its bias, its
requantisation, what is fused behind); what it gives is what the operators' references give, one after the
other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aot_model.ir.graph import Graph, Value
from aot_model.ir.types import DType, TensorType
from aot_model.ops.registry import Build, Operator, load_all
from batch import Case

load_all()


@dataclass(frozen=True)
class Step:
    """An operator over what the step before gave, and others: constants, or inputs of the model when
    `fed`.
    """

    operator: Operator
    others: tuple[np.ndarray, ...] = ()
    fed: bool = False


@dataclass(frozen=True)
class Layer:
    """x, and the operators."""

    name: str
    x: np.ndarray
    steps: tuple[Step, ...]

    def expected(self) -> np.ndarray:
        return self._result

    @cached_property
    def _result(self) -> np.ndarray:
        y = self.x
        for step in self.steps:
            y = (
                PLAIN[step.operator.name](y, *step.others)
                if step.operator.name in PLAIN
                else step.operator.reference([y, *step.others])[0]
            )
        return y

    def graph(self) -> Graph:
        x = _input("x", self.x)
        graph = Graph("layer", [x])
        build, y = Build(graph.nodes, "layer"), x
        for k, step in enumerate(self.steps):
            others = [
                _input(f"x{k}_{n}", a) if step.fed else build.constant(a) for n, a in enumerate(step.others)
            ]
            graph.inputs += others if step.fed else []
            y = build(step.operator, y, *others)
        y.name = "y"
        graph.outputs = [y]
        return graph

    def case(self, graph: Callable[[], Graph], options: dict[str, str]) -> Case:
        """graph: makes the graph in the process that compiles it."""
        fed = tuple(a for s in self.steps if s.fed for a in s.others)
        return Case(self.name, graph, (self.x, *fed), options=options)


PLAIN: dict[str, Callable[..., np.ndarray]] = {
    "Add": lambda a, b: np.asarray(a + b, a.dtype),
    "Relu": lambda a: np.maximum(a, 0),
    "Mul": lambda a, b: np.asarray(a * b, a.dtype),
    "Cast": lambda a: a.astype(np.float32),
    "MatMul": lambda a, b: np.asarray(
        _product(a) @ _product(b), a.dtype if a.dtype.kind == "f" else np.int32
    ),
}
"""Operators of ONNX, which have no reference of their own."""


def _product(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float64 if a.dtype.kind == "f" else np.int64)


def _input(name: str, array: np.ndarray) -> Value:
    return Value(name, TensorType(DType.of(array.dtype), array.shape))


@dataclass(frozen=True)
class ProductLayer(Layer):
    """A matrix product with zero points, whose reference is that of a convolution of one tap."""

    as_convolution: Step

    @cached_property
    def _result(self) -> np.ndarray:
        y = self.as_convolution.operator.reference([self.x[None], *self.as_convolution.others])[0][0]
        return Layer(self.name, y, self.steps[1:]).expected()
