"""Tensors that depend on shapes and constants only: shape, size, fills and ranges.

Source: ONNX operator specification.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.registry import Build, alike, ints, numeric, operator, required, static


@operator("Shape", shape_only=True, strings=True)
class Shape(Operator):
    """The shape of the input, a constant."""

    start: int = 0
    end: int | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT64, (len(required(inputs).shape[self.start : self.end]),))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build.constant(np.asarray(required(inputs).shape[self.start : self.end], dtype=np.int64))]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.zeros((2, 3, 4, 5), np.float32)
        cases: list[dict[str, Any]] = [
            {},
            {"start": 1},
            {"start": -2},
            {"end": 3},
            {"end": -1},
            {"start": 1, "end": 3},
            {"start": 3, "end": 1},
            {"start": -9, "end": 9},
        ]
        return [Sample((x,), c) for c in cases]


@operator("Size", shape_only=True, strings=True)
class Size(Operator):
    """The number of elements, a constant."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT64, ())]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build.constant(np.asarray(required(inputs).type.elements, dtype=np.int64))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((np.zeros(s, np.float32),)) for s in ((2, 3, 4), (), (3, 0))]


@operator("ConstantOfShape", movement=True)
class ConstantOfShape(Operator):
    """A tensor of one repeated value."""

    value: np.ndarray | None = None

    def _fill(self) -> np.ndarray:
        return np.zeros(1, np.float32) if self.value is None else np.asarray(self.value)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        shape = static(inputs, 0, "the shape")
        return [TensorType(DType.of(self._fill().dtype), () if shape is None else ints(shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        fill = self._fill()
        return const(fill.item(), DType.of(fill.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        shapes, fixed = [np.asarray(s, np.int64) for s in ((2, 3), (4,), (1, 2, 1))], frozenset({0})
        values = [None, np.asarray([7], np.int32), np.asarray([-2.5], np.float32), np.asarray([True])]
        return [
            Sample((s,), {} if v is None else {"value": v}, fixed)
            for s, v in zip((*shapes, shapes[0]), values, strict=True)
        ]


@operator("Range")
class Range(Operator):
    """start, start + delta, …; the number of elements is known at compile time (RangeUpTo: at run time)."""

    def _count(self, inputs: Inputs) -> int:
        names = ("start", "limit", "delta")
        if unknown := [
            name for name, v in zip(names, inputs, strict=False) if v is not None and v.data is None
        ]:
            hint = "give its result room: --bound OUTPUT=N; or make them constants: --constant INPUT=VALUES"
            raise OperatorError(f"{', '.join(unknown)} known at run time only", "E203", hint)
        start, limit, delta = (static(inputs, i, w) for i, w in enumerate(names))
        if any(v is None or v.size != 1 for v in (start, limit, delta)):
            raise OperatorError("start, limit or delta is missing, or not one number")
        first, last, step = (float(np.asarray(v).reshape(-1)[0]) for v in (start, limit, delta))
        if not np.isfinite([first, last, step]).all():
            raise OperatorError("start, limit or delta is not finite", "E302")
        if step == 0:
            raise OperatorError("delta is 0")
        return max(math.ceil((last - first) / step), 0)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        alike(*inputs)
        return [TensorType(numeric(inputs).dtype, (self._count(inputs),))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        start, delta = (at(v, (const(0),) * v.type.rank) for v in (required(inputs, 0), required(inputs, 2)))
        return call("add", start, call("mul", cast(index[0], start.dtype), delta))

    @classmethod
    def samples(cls) -> list[Sample]:
        cases = [(0, 5, 1), (10, 3, -2), (1, 8, 3), (4, 4, 1), (-3, 9, 5)]
        whole = [
            Sample(tuple(np.asarray(v, np.int64) for v in c), constants=frozenset({0, 1, 2})) for c in cases
        ]
        return [
            *whole,
            Sample(tuple(np.asarray(v, np.float32) for v in (1.5, 4.0, 0.5)), constants=frozenset({0, 1, 2})),
        ]
