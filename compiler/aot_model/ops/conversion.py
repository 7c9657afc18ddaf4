"""Element types: conversion, and the same bits as another type.

Source: ONNX operator specification.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.elementwise import clamp
from aot_model.ops.registry import operator, required


def narrow(x: Expr, to: DType, saturate: bool) -> Expr:
    """A conversion; floats of 8 bits that do not saturate become infinite or NaN."""
    if not saturate and to.is_float and to.bits == 8 and x.dtype is not to:
        return call("cast_unbounded", cast(x, DType.FLOAT32), dtype=to)
    return cast(x, to)


def quantised(rounding: str, real: Expr, zero: int | Expr, low: int, high: int, to: DType) -> Expr:
    """clamp(rounding(real) + zero, low, high) as `to`; rounding: "rint" (ties to even) or "round" (away from
    zero). zero: a number, or of `to`.
    """
    room = max(abs(low - zero), abs(high - zero)) if isinstance(zero, int) else high - low
    if real.dtype is DType.FLOAT32 and room < 1 << 22:
        point = const(zero) if isinstance(zero, int) else cast(zero, DType.INT32)
        limits = (point, const(low), const(high))
        return cast(call(f"quantise_{rounding}", real, *limits, dtype=DType.INT32), to)
    # Clamped as a float, where the sum is exact: floats beyond int32 would not survive the conversion.
    whole = call(rounding, real)
    point = const(zero, whole.dtype) if isinstance(zero, int) else cast(zero, whole.dtype)
    shifted = whole if zero == 0 else call("add", whole, point)
    return cast(clamp(shifted, const(low, whole.dtype), const(high, whole.dtype)), to)


@operator("Cast", elementwise=True, strings=True)
class Cast(Operator):
    """Conversion to another element type. Floats of 8 bits saturate, or with saturate = 0 become infinite or
    NaN.
    """

    to: DType = DType.FLOAT32
    saturate: int = 1
    round_mode: str = "up"
    """Of float8_e8m0: up, down or nearest."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype.is_string != self.to.is_string:
            why = f"conversion of {x.dtype.label} to {self.to.label} is not supported"
            raise OperatorError(why, "E202", "numbers as text need a formatter that firmware does not have")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = at(required(inputs), index)
        if self.to is DType.FLOAT8E8M0 and x.dtype is not self.to:
            if self.round_mode != "up":
                raise OperatorError(f"round_mode '{self.round_mode}' is not supported", "E202")
            return call("cast_up", cast(x, DType.FLOAT32), dtype=self.to)
        return narrow(x, self.to, bool(self.saturate))

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([-3.7, -0.5, 0, 0.3, 1, 2.5, 100, 300, 1e6, -1e6], np.float32)
        safe = (DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16, DType.BOOL)
        ints = [Sample((x[:6] * 2,), {"to": d}) for d in (DType.INT8, DType.INT16, DType.INT32, DType.INT64)]
        wrap = [
            Sample((np.asarray([-5, 0, 7, 300, 70000], np.int32),), {"to": d})
            for d in (DType.UINT8, DType.INT16, DType.FLOAT32, DType.BOOL)
        ]
        small = [Sample((x,), {"to": DType.FLOAT8E5M2, "saturate": s}) for s in (0, 1)]
        return [
            *(Sample((x,), {"to": d}) for d in safe),
            *ints,
            *wrap,
            *small,
            Sample((x[3:],), {"to": DType.FLOAT8E8M0}),
        ]


@operator("BitCast", elementwise=True)
class BitCast(Operator):
    """The same bits as another type of the same width."""

    to: DType = DType.FLOAT32

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype.bits != self.to.bits:
            raise OperatorError(f"{x.dtype.label} and {self.to.label} have different widths")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = at(required(inputs), index)
        return x if x.dtype is self.to else call("bitcast", x, dtype=self.to)

    def only_moves(self) -> bool:
        return True

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[0.0, -0.0, 1.5], [-np.inf, 3e-45, 1e30]], np.float32)
        return [
            Sample((x,), {"to": DType.INT32}),
            Sample((x.view(np.uint32),), {"to": DType.FLOAT32}),
            Sample((np.arange(-3, 3, dtype=np.int16),), {"to": DType.UINT16}),
            Sample((x.astype(np.float64),), {"to": DType.INT64}),
            Sample((x,), {"to": DType.FLOAT32}),
        ]
