"""ai.onnx.preview.training.Gradient: derivatives of a value of the graph, by reverse accumulation.

    dL/dx = sum over the nodes that read x of (dL/dy) * (dy/dx)

from the node that computes L back to the inputs. The rules are a table: operator -> what each of its inputs
gets, given what its output got. Source: ONNX operator specification; Griewank, Walther, Evaluating
Derivatives, 2008, chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aot_model.frontends.onnx_structure import Place
from aot_model.ir.graph import Node, read_values
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.elementwise import Where, op
from aot_model.ops.movement import Expand, Transpose
from aot_model.ops.normalisation import reduction
from aot_model.ops.reduction import Reduction
from aot_model.ops.registry import OPERATORS, Build, required
from aot_model.ops.views import ReshapeTo, Reshaping


@dataclass(frozen=True)
class Step:
    """A node on the way back: its inputs, its output, and the derivative by that."""

    build: Build
    node: Node
    by: Value

    @property
    def y(self) -> Value:
        return self.node.outputs[0]

    def x(self, index: int = 0) -> Value:
        return required(self.node.inputs, index)

    def __call__(self, name: str, *inputs: Value) -> Value:
        return self.build(op(name), *inputs)

    def number(self, value: float) -> Value:
        return self.build.constant(value, self.y.dtype)


Rule = Callable[[Step], Sequence[Value]]


def _transposed(s: Step, x: Value) -> Value:
    return s.build(Transpose((*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2)), x)


def _matmul(s: Step) -> Sequence[Value]:
    a, b = s.x(0), s.x(1)
    if a.type.rank < 2 or b.type.rank < 2:
        raise OperatorError(
            "the derivative of a product with a vector is not supported",
            "E202",
            "reshape the vector to a matrix",
        )
    matmul = OPERATORS["", "MatMul"]()
    return s.build(matmul, s.by, _transposed(s, b)), s.build(matmul, _transposed(s, a), s.by)


def _transpose(s: Step) -> Sequence[Value]:
    assert isinstance(s.node.op, Transpose)
    return (
        s.build(Transpose(tuple(int(k) for k in np.argsort(s.node.op.permutation(s.x().type.rank)))), s.by),
    )


def _summed(s: Step) -> Sequence[Value]:
    assert isinstance(s.node.op, Reduction)
    x, axes = s.x(), s.node.op.axes(s.node.inputs)
    kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return (s.build(Expand(), s.build(ReshapeTo(kept), s.by), s.build.constant(x.shape, DType.INT64)),)


def _averaged(s: Step) -> Sequence[Value]:
    count = s.x().type.elements // max(s.y.type.elements, 1)
    return (s("Div", _summed(s)[0], s.number(count)),)


def _relu(s: Step) -> Sequence[Value]:
    return (s.build(Where(), s("Less", s.number(0), s.x()), s.by, s.number(0)),)


_RULES: dict[str, Rule] = {
    "Identity": lambda s: (s.by,),
    "Neg": lambda s: (s("Neg", s.by),),
    "Add": lambda s: (s.by, s.by),
    "Sub": lambda s: (s.by, s("Neg", s.by)),
    "Mul": lambda s: (s("Mul", s.by, s.x(1)), s("Mul", s.by, s.x(0))),
    "Div": lambda s: (s("Div", s.by, s.x(1)), s("Neg", s("Div", s("Mul", s.by, s.y), s.x(1)))),
    "Exp": lambda s: (s("Mul", s.by, s.y),),
    "Log": lambda s: (s("Div", s.by, s.x()),),
    "Sqrt": lambda s: (s("Div", s.by, s("Add", s.y, s.y)),),
    "Sin": lambda s: (s("Mul", s.by, s("Cos", s.x())),),
    "Cos": lambda s: (s("Neg", s("Mul", s.by, s("Sin", s.x()))),),
    "Tanh": lambda s: (s("Mul", s.by, s("Sub", s.number(1), s("Mul", s.y, s.y))),),
    "Sigmoid": lambda s: (s("Mul", s.by, s("Mul", s.y, s("Sub", s.number(1), s.y))),),
    "Relu": _relu,
    "MatMul": _matmul,
    "Transpose": _transpose,
    "ReduceSum": _summed,
    "ReduceMean": _averaged,
}


def _fitted(build: Build, x: Value, shape: tuple[int, ...]) -> Value:
    """The sum of a derivative over the axes along which the input was broadcast."""
    lead = x.type.rank - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + d for d, n in enumerate(shape) if n == 1 and x.shape[lead + d] != 1
    )
    return build(ReshapeTo(shape), reduction("ReduceSum", build, x, axes)) if axes else x


def gradient(place: Place) -> bool:
    """Import a Gradient: one result for each of `xs`. OperatorError E202 for operators that have no rule."""
    names = [n.decode() for n in place.attribute("xs") or ()]
    target = place.scope.get((place.attribute("y") or b"").decode())
    points: list[Value] = place.inputs[: len(names)]
    if target is None or not names or len(place.inputs) < len(names):
        raise OperatorError("what to derive, or by what, is missing")
    if any(place.scope.get(n) is not v for n, v in zip(names, points, strict=True)):
        raise OperatorError("derivatives at another point than that of the graph are not supported", "E202")
    build, nodes = place.build, list(place.graph.nodes)
    read = {node: set(read_values(node)) for node in nodes}
    here = set(place.graph.inputs).union(*(node.outputs for node in nodes))
    if any(v not in here and not v.is_const for v in {target, *points}.union(*read.values())):
        raise OperatorError("derivatives in a body that reads the graph around it are not supported", "E202")
    moving = set(points)
    for node in nodes:
        if read[node] & moving:
            moving.update(node.outputs)
    found: dict[Value, Value] = {
        target: build(Expand(), build.constant(1, target.dtype), build.constant(target.shape, DType.INT64))
    }
    for node in reversed(nodes):
        reached = [out for out in node.outputs if out in found and out in moving]
        if not reached:
            continue
        step = Step(build, node, found[reached[0]])
        if isinstance(node.op, Reshaping):
            parts: Sequence[Value] = (build(ReshapeTo(step.x().shape), step.by),)
        elif node.kind in _RULES:
            parts = _RULES[node.kind](step)
        else:
            raise OperatorError(
                f"the derivative of {node.kind} is not supported",
                "E202",
                f"there are: {', '.join(sorted(_RULES))}",
            )
        for value, part in zip(node.inputs, parts, strict=False):
            if value is not None and value in moving:
                part = _fitted(build, part, value.shape)
                found[value] = build(op("Add"), found[value], part) if value in found else part
    for value, name in zip(points, place.proto.output, strict=False):
        if value not in found:
            found[value] = build(
                Expand(), build.constant(0, value.dtype), build.constant(value.shape, DType.INT64)
            )
        place.scope[name] = build(op("Identity"), found[value], output=name)
    return True
