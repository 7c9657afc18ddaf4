"""Shorthand for operators that are compositions of others: arithmetic on values, each step a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from aot_model.ir.operator import Inputs, Operator
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Concat, Gather, Slice, Transpose
from aot_model.ops.normalisation import Softmax, scalar
from aot_model.ops.registry import OPERATORS, Build, axis_of
from aot_model.ops.views import ReshapeTo

Expand = Callable[[Any, Build, Inputs], list[Value]]


class Composition(Operator):
    """An operator whose meaning is an expansion; the types of its results follow from it."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [v.type for v in self.expand(Build([], "shape"), inputs)]


def in_single_precision(expand: Expand) -> Expand:
    """An expansion that computes floats of 16 bits in float32, as ONNX Runtime does where it has kernels of
    float32 alone; results are rounded.
    """

    @wraps(expand)
    def widened(self: Any, build: Build, inputs: Inputs) -> list[Value]:
        half = next((v.dtype for v in inputs if v is not None and v.dtype in HALVES), None)
        if half is None:
            return expand(self, build, inputs)
        wide = [build(Cast(DType.FLOAT32), v) if v is not None and v.dtype in HALVES else v for v in inputs]
        return [build(Cast(half), v) if v.dtype is DType.FLOAT32 else v for v in expand(self, build, wide)]

    return widened


HALVES = (DType.FLOAT16, DType.BFLOAT16)


def present(inputs: Inputs, k: int) -> Value | None:
    """Input number k, None when it is absent."""
    return inputs[k] if k < len(inputs) else None


class Algebra:
    """Arithmetic on values with the nodes that it takes; numbers are constants of the other operand's
    type.
    """

    def __init__(self, build: Build) -> None:
        self.build = build

    def __call__(self, operation: Operator, *inputs: Value | None) -> Value:
        return self.build(operation, *inputs)

    def of(self, name: str, *inputs: Value) -> Value:
        """An element-wise operator of the table."""
        return self.build(op(name), *inputs)

    def _pair(self, name: str, a: Value | float, b: Value | float) -> Value:
        left = a if isinstance(a, Value) else scalar(self.build, a, b.dtype) if isinstance(b, Value) else None
        assert left is not None
        return self.build(op(name), left, b if isinstance(b, Value) else scalar(self.build, b, left.dtype))

    def add(self, a: Value, b: Value | float | None) -> Value:
        """a + b; a where b is absent."""
        return a if b is None else self._pair("Add", a, b)

    def sub(self, a: Value | float, b: Value | float) -> Value:
        return self._pair("Sub", a, b)

    def mul(self, a: Value, b: Value | float) -> Value:
        return a if not isinstance(b, Value) and b == 1 else self._pair("Mul", a, b)

    def div(self, a: Value, b: Value | float) -> Value:
        return self._pair("Div", a, b)

    def matmul(self, a: Value, b: Value) -> Value:
        return self.build(MatMul(), a, b)

    def transpose(self, x: Value, *perm: int) -> Value:
        return self.build(Transpose(perm), x)

    def reshape(self, x: Value, *shape: int) -> Value:
        return x if x.shape == shape else self.build(ReshapeTo(shape), x)

    def cut(self, x: Value, axis: int, begin: int, end: int) -> Value:
        """Elements [begin, end) along an axis."""
        if (begin, end) == (0, x.shape[axis_of(x, axis)]):
            return x
        return self.build(Slice(), x, *(self.ints([v]) for v in (begin, end, axis)))

    def concat(self, axis: int, *parts: Value) -> Value:
        return parts[0] if len(parts) == 1 else self.build(Concat(axis), *parts)

    def gather(self, x: Value, indices: Value, axis: int = 0) -> Value:
        return self.build(Gather(axis), x, indices)

    def cast(self, x: Value, to: DType) -> Value:
        return x if x.dtype is to else self.build(Cast(to), x)

    def reduced(self, name: str, x: Value, *axes: int) -> Value:
        """A reduction that keeps its axes."""
        return self.build(OPERATORS["", name](), x, self.ints(axes))

    def softmax(self, x: Value) -> Value:
        return self.build(Softmax(-1), x)

    def ints(self, values: Sequence[int]) -> Value:
        return self.build.constant(np.asarray(values, dtype=np.int64))
