"""Requantisation: every rescaling of quantised values is by a fixed-point multiplier.

A quantised value q stands for scale * (q - zero_point). See arithmetic/fixed_point.py for the roundings;
"double" is that of TensorFlow Lite Micro.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.conversion import quantised
from aot_model.ops.elementwise import clamp
from aot_model.ops.registry import broadcast, broadcast_index, operator, required

ROUNDINGS = {
    "double": "requantise",
    "single": "requantise_single",
    "even": "requantise_even",
    "wide": "requantise_wide",
}
"""Name of a rounding -> scalar operation. "wide": 64-bit accumulator, multiplier of 16 bits, or more where
products stay below 2^63."""


@dataclass(frozen=True)
class Rescale:
    """A zero point and a fixed-point factor."""

    zero_point: int
    multiplier: int
    shift: int


def saturated(x: Expr, zero_point: int, low: int, high: int, to: DType) -> Expr:
    """x + zero_point, clamped to [low, high], as `to`."""
    if zero_point:
        x = call("add", x, const(zero_point, x.dtype))
    return cast(clamp(x, const(low, x.dtype), const(high, x.dtype)), to)


def widened(x: Expr, zero_point: int) -> Expr:
    """x - zero_point as int32 (int64 stays)."""
    wide = x if x.dtype is DType.INT64 else cast(x, DType.INT32)
    return call("sub", wide, const(zero_point, wide.dtype)) if zero_point else wide


def two_widened(at: At, inputs: Inputs, index: Index) -> tuple[Expr, Expr]:
    """The elements of two inputs that broadcast to each other, as int32."""
    a, b = (
        cast(at(v, broadcast_index(v.shape, index)), DType.INT32)
        for v in (required(inputs, 0), required(inputs, 1))
    )
    return a, b


def rescaled(x: Expr, by: Rescale, rounding: str = "double") -> Expr:
    """x times the factor."""
    return call(ROUNDINGS[rounding], x, const(by.multiplier), const(by.shift))


@operator("Requantise", domain="aot", elementwise=True)
class Requantise(Operator):
    """clamp(round((x - x_zero_point) * multiplier * 2^(shift - 31)) + zero_point, low, high).

    x int32 (int64 for "wide"); multiplier, shift int32 constants that broadcast: one, or one per channel.
    """

    zero_point: int = 0
    low: int = -128
    high: int = 127
    to: DType = DType.INT8
    rounding: str = "double"
    x_zero_point: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, m, s = (required(inputs, k) for k in range(3))
        if not x.dtype.is_integer or m.dtype is not DType.INT32 or s.dtype is not DType.INT32:
            raise OperatorError(f"cannot requantise {x.type} by {m.type} and {s.type}")
        if broadcast(x.shape, m.shape, s.shape) != x.shape:
            raise OperatorError(f"multipliers {m.type} do not fit {x.type}")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, m, s = (required(inputs, k) for k in range(3))
        acc = widened(at(x, index), self.x_zero_point)
        acc = cast(acc, DType.INT64 if self.rounding == "wide" else DType.INT32)
        factor, shift = (at(v, broadcast_index(v.shape, index)) for v in (m, s))
        y = call(ROUNDINGS[self.rounding], acc, factor, shift, dtype=DType.INT32)
        return saturated(y, self.zero_point, self.low, self.high, self.to)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, m: int, s: int) -> int:
            return exact.clamped(
                exact.rescale(x - self.x_zero_point, m, s, self.rounding) + self.zero_point,
                self.low,
                self.high,
            )

        return exact.by_element(one, self.to.numpy, *arrays)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(11)
        acc = np.asarray(rng.integers(-(2**20), 2**20, (3, 4)), dtype=np.int32)
        m = np.asarray([2**30, 2**31 - 1, 1518500250, 2**30 + 1], dtype=np.int32)
        s = np.asarray([-13, -12, 0, -31], dtype=np.int32)
        return [
            Sample((acc, m, s), {"zero_point": 3}, frozenset({1, 2})),
            Sample(
                (acc, m[:1], s[:1]), {"zero_point": -128, "low": 0, "rounding": "single"}, frozenset({1, 2})
            ),
            Sample(
                (acc.astype(np.int64) << 12, m >> 16, s),
                {"to": DType.INT16, "low": -32768, "high": 32767, "rounding": "wide"},
                frozenset({1, 2}),
            ),
            Sample(
                (acc >> 12, m[:1] - 2**29, s[:1] + 10),
                {"to": DType.UINT8, "low": 0, "high": 255, "rounding": "even", "x_zero_point": -9},
                frozenset({1, 2}),
            ),
            Sample(
                (np.arange(-640, 641, 64, dtype=np.int32), m[:1], s[:1] + 7),
                {"low": -1000, "high": 99},
                frozenset({1, 2}),
            ),
        ]


@operator("RequantiseFloat", domain="aot", elementwise=True)
class RequantiseFloat(Operator):
    """clamp(round(x * factor) + zero_point, low, high) in the floating-point type of the factor.

    factor: a constant that broadcasts. rounding: "round" (ties away from zero) or "rint" (ties to even).
    """

    zero_point: int
    low: int = -128
    high: int = 127
    to: DType = DType.INT8
    rounding: str = "round"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, factor = required(inputs, 0), required(inputs, 1)
        if not x.dtype.is_integer or not factor.dtype.is_float or broadcast(x.shape, factor.shape) != x.shape:
            raise OperatorError(f"cannot requantise {x.type} by {factor.type}")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, factor = required(inputs, 0), required(inputs, 1)
        f = at(factor, broadcast_index(factor.shape, index))
        real = call("mul", cast(at(x, index), f.dtype), f)
        return quantised(self.rounding, real, self.zero_point, self.low, self.high, self.to)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, factor = (np.asarray(a) for a in arrays)
        real = x.astype(factor.dtype) * factor
        whole = np.rint(real) if self.rounding == "rint" else np.copysign(np.floor(np.abs(real) + 0.5), real)
        return [
            np.clip(whole.astype(np.float64) + self.zero_point, self.low, self.high).astype(self.to.numpy)
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        acc = np.asarray([[-70000, -5, 5], [0, 15, 2**30]], dtype=np.int32)
        factors = (np.asarray([0.5], np.float32), np.asarray([0.1, 0.3, 1e-3], np.float64))
        return [
            Sample((acc, f), {"zero_point": 3, "rounding": r}, frozenset({1}))
            for f in factors
            for r in ("round", "rint")
        ]
