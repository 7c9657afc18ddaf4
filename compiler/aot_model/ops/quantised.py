"""Quantised arithmetic, integer only: requantisation, sums and products of quantised tensors, tables,
softmax.

A quantised value q stands for scale * (q - zero_point). Every rescaling is by a fixed-point multiplier, see
arithmetic/fixed_point.py; "double" rounding is that of TensorFlow Lite Micro.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, cast, const, load, select
from aot_model.ir.index import add
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.elementwise import clamp
from aot_model.ops.registry import broadcast, broadcast_index, operator, required

ROUNDINGS = {
    "double": "requantise", "single": "requantise_single", "even": "requantise_even",
    "wide": "requantise_wide"
}
"""Name of a rounding -> scalar operation. "wide": 64-bit accumulator, multiplier of 16 bits."""


@dataclass(frozen=True)
class Rescale:
    """A zero point and a fixed-point factor."""

    zero_point: int
    multiplier: int
    shift: int


@dataclass(frozen=True)
class Table:
    """The values of a function of one integer, the argument `low` first."""

    values: tuple[int, ...]
    dtype: DType
    low: int

    @property
    def value(self) -> Value:
        """The constant in flash; equal tables are one."""
        return _table_value(self)

    def __repr__(self) -> str:
        return f"{self.dtype.label}[{len(self.values)}]"

    def at(self, x: Expr) -> Expr:
        """The entry for an argument, which must be in range."""
        return load(self.value, (add(cast(x, DType.INT32), -self.low),))


@cache
def _table_value(table: Table) -> Value:
    return constant("table", np.asarray(table.values, dtype=table.dtype.numpy))


def saturated(x: Expr, zero_point: int, low: int, high: int, to: DType) -> Expr:
    """x + zero_point, clamped to [low, high], as `to`."""
    if zero_point:
        x = call("add", x, const(zero_point, x.dtype))
    limits = to.limits
    if to.bits >= x.dtype.bits:
        return cast(
            clamp(x,
                  const(low, x.dtype) if low > limits[0] else None,
                  const(high, x.dtype) if high < limits[1] else None), to)
    return cast(clamp(x, const(low, x.dtype), const(high, x.dtype)), to)


def widened(x: Expr, zero_point: int) -> Expr:
    """x - zero_point as int32 (int64 stays)."""
    wide = x if x.dtype is DType.INT64 else cast(x, DType.INT32)
    return call("sub", wide, const(zero_point, wide.dtype)) if zero_point else wide


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

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        x, m, s = (required(inputs, k) for k in range(3))
        acc = widened(at(x, index), self.x_zero_point)
        acc = cast(acc, DType.INT64 if self.rounding == "wide" else DType.INT32)
        factor, shift = (at(v, broadcast_index(v.shape, index)) for v in (m, s))
        y = call(ROUNDINGS[self.rounding], acc, factor, shift, dtype=DType.INT32)
        return saturated(y, self.zero_point, self.low, self.high, self.to)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, m: int, s: int) -> int:
            return exact.clamped(
                exact.rescale(x - self.x_zero_point, m, s, self.rounding) + self.zero_point, self.low,
                self.high)

        return exact.by_element(one, self.to.numpy, *arrays)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(11)
        acc = np.asarray(rng.integers(-(2**20), 2**20, (3, 4)), dtype=np.int32)
        m = np.asarray([2**30, 2**31 - 1, 1518500250, 2**30 + 1], dtype=np.int32)
        s = np.asarray([-13, -12, 0, -31], dtype=np.int32)
        return [
            Sample((acc, m, s), {"zero_point": 3}, frozenset({1, 2})),
            Sample((acc, m[:1], s[:1]), {"zero_point": -128, "low": 0, "rounding": "single"},
                   frozenset({1, 2})),
            Sample((acc.astype(np.int64) << 12, m >> 16, s),
                   {"to": DType.INT16, "low": -32768, "high": 32767, "rounding": "wide"}, frozenset({1, 2})),
            Sample((acc >> 12, m[:1] - 2**29, s[:1] + 10),
                   {"to": DType.UINT8, "low": 0, "high": 255, "rounding": "even", "x_zero_point": -9},
                   frozenset({1, 2})),
            Sample((np.arange(-640, 641, 64, dtype=np.int32), m[:1], s[:1] + 7), {"low": -1000, "high": 99},
                   frozenset({1, 2})),
        ]


@operator("RequantiseFloat", domain="aot", elementwise=True)
class RequantiseFloat(Operator):
    """clamp(round(x * factor) + zero_point, low, high) in the floating-point type of the factor.

    factor: a constant that broadcasts. rounding: "round" (ties away from zero) or "rint" (ties to even).
    """

    zero_point: int = 0
    low: int = -128
    high: int = 127
    to: DType = DType.INT8
    rounding: str = "round"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, factor = required(inputs, 0), required(inputs, 1)
        if not x.dtype.is_integer or not factor.dtype.is_float or broadcast(x.shape, factor.shape) != x.shape:
            raise OperatorError(f"cannot requantise {x.type} by {factor.type}")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        x, factor = required(inputs, 0), required(inputs, 1)
        f = at(factor, broadcast_index(factor.shape, index))
        whole = call(self.rounding, call("mul", cast(at(x, index), f.dtype), f))
        # Clamped as a float: what is beyond int32 does not survive the conversion.
        inside = clamp(whole, const(self.low - self.zero_point, f.dtype),
                       const(self.high - self.zero_point, f.dtype))
        return saturated(cast(inside, DType.INT32), self.zero_point, self.low, self.high, self.to)

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


@operator("QuantisedSum", domain="aot", elementwise=True)
class QuantisedSum(Operator):
    """a + b, a - b or (a - b)^2 of quantised tensors: both brought to a common finer scale, then rescaled to
    the result's.
    """

    function: str = "add"
    a: Rescale = Rescale(0, 0, 0)
    b: Rescale = Rescale(0, 0, 0)
    result: Rescale = Rescale(0, 0, 0)
    left_shift: int = 20
    low: int = -128
    high: int = 127
    rounding: str = "double"
    """Of the result; the terms have many bits more."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        if a.dtype is not b.dtype or not a.dtype.is_integer:
            raise OperatorError(f"cannot combine {a.type} and {b.type}")
        return [TensorType(a.dtype, broadcast(a.shape, b.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        terms = []
        for value, by in zip((required(inputs, 0), required(inputs, 1)), (self.a, self.b), strict=True):
            x = widened(at(value, broadcast_index(value.shape, index)), by.zero_point)
            terms.append(rescaled(call("mul", x, const(1 << self.left_shift)), by))
        total = call("add" if self.function == "add" else "sub", *terms)
        if self.function == "squared difference":
            total = call("mul", total, total)
        return saturated(rescaled(total, self.result, self.rounding), self.result.zero_point, self.low,
                         self.high,
                         required(inputs).dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(14)
        a, b, wide = (np.asarray(rng.integers(-128, 128, s), np.int8) for s in ((3, 5), (3, 5), (1, 5)))
        fine, coarse = Rescale(-3, 2**30, 0), Rescale(7, 1717986918, -1)
        kinds: list[tuple[str, Rescale,
                          dict[str, Any]]] = [("add", Rescale(-9, 1288490189, -18), {}),
                                              ("sub", Rescale(4, 1288490189, -18), {"low": -50, "high": 60}),
                                              ("squared difference", Rescale(-100, 1932735283,
                                                                             -17), {"left_shift": 7}),
                                              ("add", Rescale(2, 2**30, -17), {"rounding": "single"})]
        samples = [
            Sample((a, y), {"function": f, "a": fine, "b": coarse, "result": r, **more})
            for f, r, more in kinds
            for y in (b, wide)
        ]
        words = np.asarray(rng.integers(-32768, 32768, (2, 40)), np.int16)
        return [
            *samples,
            Sample(
                (words[0], words[1]), {
                    "a": Rescale(0, 2**30, 0), "b": Rescale(0, 2**30, 1), "result": Rescale(0, 2**30, -14),
                    "left_shift": 14, "low": -32768, "high": 32767
                })
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, y: int) -> int:
            p, q = (exact.rescale(v - by.zero_point << self.left_shift, by.multiplier, by.shift)
                    for v, by in ((x, self.a), (y, self.b)))
            total = p + q if self.function == "add" else p - q if self.function == "sub" else (p - q) ** 2
            rescaled = exact.rescale(total, self.result.multiplier, self.result.shift, self.rounding)
            return exact.clamped(rescaled + self.result.zero_point, self.low, self.high)

        return exact.by_element(one, np.asarray(arrays[0]).dtype, *arrays)


@operator("QuantisedMul", domain="aot", elementwise=True)
class QuantisedMul(Operator):
    """a * b of quantised tensors: the exact product of the centred integers, rescaled."""

    a_zero_point: int = 0
    b_zero_point: int = 0
    result: Rescale = Rescale(0, 0, 0)
    low: int = -128
    high: int = 127
    to: DType = DType.INT8
    rounding: str = "double"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        if not a.dtype.is_integer or not b.dtype.is_integer:
            raise OperatorError(f"cannot multiply {a.type} and {b.type}")
        return [TensorType(self.to, broadcast(a.shape, b.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        a, b = required(inputs, 0), required(inputs, 1)
        left = widened(at(a, broadcast_index(a.shape, index)), self.a_zero_point)
        right = widened(at(b, broadcast_index(b.shape, index)), self.b_zero_point)
        return saturated(rescaled(call("mul", left, right), self.result, self.rounding),
                         self.result.zero_point, self.low, self.high, self.to)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(15)
        a, b = np.asarray(rng.integers(-128, 128, (4, 6)),
                          np.int8), np.asarray(rng.integers(-128, 128, (4, 1)), np.int8)
        words = np.asarray(rng.integers(-32768, 32768, (2, 12)), np.int16)
        given: dict[str,
                    Any] = {"a_zero_point": -5, "b_zero_point": 17, "result": Rescale(-20, 1503238553, -7)}
        return [
            Sample((a, b), given),
            Sample((a, b), {**given, "rounding": "single", "low": -30, "high": 40}),
            Sample((a, b), {**given, "to": DType.INT16, "low": -32768, "high": 32767}),
            Sample((a.astype(np.uint8), b.astype(np.uint8)),
                   {**given, "to": DType.UINT8, "low": 0, "high": 255}),
            Sample((words[0], words[1]),
                   {"result": Rescale(0, 2**30, -15), "to": DType.INT16, "low": -32768, "high": 32767})
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, y: int) -> int:
            scaled = exact.rescale((x - self.a_zero_point) * (y - self.b_zero_point), self.result.multiplier,
                                   self.result.shift, self.rounding)
            return exact.clamped(scaled + self.result.zero_point, self.low, self.high)

        return exact.by_element(one, self.to.numpy, *arrays)


@operator("Lookup", domain="aot", elementwise=True, movement=True)
class Lookup(Operator):
    """table[x] for 8-bit x: any function of one quantised value."""

    table: Table = Table((), DType.INT8, 0)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype.bits != 8 or len(self.table.values) != 256 or x.dtype.limits[0] != self.table.low:
            raise OperatorError(
                f"a table of {len(self.table.values)} from {self.table.low} does not fit {x.type}")
        return [TensorType(self.table.dtype, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        return self.table.at(at(required(inputs), index))

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return exact.by_element(lambda x: self.table.values[x - self.table.low], self.table.dtype.numpy,
                                arrays[0])

    @classmethod
    def samples(cls) -> list[Sample]:
        table = Table(tuple((k * k) % 251 - 125 for k in range(256)), DType.INT8, -128)
        return [Sample((np.asarray([[-128, 127, 0], [5, -1, 77]], dtype=np.int8),), {"table": table})]


def lookup(dtype: DType, function: Sequence[int], to: DType | None = None) -> Lookup:
    """The operator for the values of a function at all values of an 8-bit type, smallest argument first."""
    return Lookup(Table(tuple(function), to or dtype, dtype.limits[0]))


# --- activations --------------------------------------------------------------------------------------------


@operator("QuantisedPRelu", domain="aot", elementwise=True)
class QuantisedPRelu(Operator):
    """x >= 0 ? x : alpha * x of quantised tensors, each side with its own factor."""

    x_zero_point: int = 0
    alpha_zero_point: int = 0
    positive: Rescale = Rescale(0, 0, 0)
    negative: Rescale = Rescale(0, 0, 0)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, alpha = required(inputs, 0), required(inputs, 1)
        return [TensorType(x.dtype, broadcast(x.shape, alpha.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        x, slope = required(inputs, 0), required(inputs, 1)
        real = widened(at(x, broadcast_index(x.shape, index)), self.x_zero_point)
        alpha = widened(at(slope, broadcast_index(slope.shape, index)), self.alpha_zero_point)
        below = call("lt", real, const(0), dtype=DType.BOOL)
        y = select(below, rescaled(call("mul", real, alpha), self.negative), rescaled(real, self.positive))
        low, high = x.dtype.limits
        return saturated(y, self.positive.zero_point, low, high, x.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        x, alpha = np.arange(-128, 128, dtype=np.int8).reshape(4, 64), np.asarray([[-90], [3], [60], [127]],
                                                                                  np.int8)
        given = {
            "x_zero_point": -10, "alpha_zero_point": 3, "positive": Rescale(-8, 1610612736, 0),
            "negative": Rescale(-8, 1288490189, -6)
        }
        return [Sample((x, alpha), given), Sample((x, alpha), given, frozenset({1}))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, alpha: int) -> int:
            real = x - self.x_zero_point
            by, factor = (self.positive, 1) if real >= 0 else (self.negative, alpha - self.alpha_zero_point)
            return exact.within(
                exact.rescale(real * factor, by.multiplier, by.shift) + self.positive.zero_point, 8)

        return exact.by_element(one, np.asarray(arrays[0]).dtype, *arrays)


def sigmoid_table() -> list[int]:
    """Logistic function at k / 24 in Q0.16, raised by half the error of linear interpolation between the
    entries.
    """
    result = []
    for k in range(255):
        y = 1 / (1 + math.exp(-k / 24))
        curvature = y * (1 - y) * (2 * y - 1)
        result.append(round(2**16 * (y + curvature / 24**2 / 16)))
    return [*result, 65535]


@operator("SigmoidInt16", domain="aot", elementwise=True)
class SigmoidInt16(Operator):
    """Logistic function or hyperbolic tangent of int16 by linear interpolation in one table of 256 entries.

    The argument is |x| * multiplier / 2^shift in steps of 1 / (24 * 512); tanh(x) = 2 * logistic(2 * x) - 1.
    """

    hyperbolic: bool = False
    multiplier: int = 3
    shift: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        if required(inputs).dtype is not DType.INT16:
            raise OperatorError(f"{required(inputs).type} is not int16")
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        def sar(v: Expr, bits: int) -> Expr:
            return call("sar", v, const(bits)) if bits else v

        def plus(v: Expr, k: int) -> Expr:
            return call("add", v, const(k))

        bits = 8 if self.hyperbolic else 9
        scaled = call("mul", cast(at(required(inputs), index), DType.INT32), const(self.multiplier))
        x = sar(plus(scaled, 1 << (self.shift - 1)), self.shift) if self.shift else scaled
        size = call("abs", x)
        place, part = sar(size, bits), call("bitand", size, const((1 << bits) - 1))
        table = Table(tuple(sigmoid_table()), DType.UINT16, 0)
        k = call("min", place, const(254))
        left, right = (cast(table.at(v), DType.INT32) for v in (k, plus(k, 1)))
        between = call("add", call("mul", left, const(1 << bits)), call("mul", part, call("sub", right,
                                                                                          left)))
        negative = call("lt", x, const(0), dtype=DType.BOOL)
        beyond = call("lt", const(254), place, dtype=DType.BOOL)
        if self.hyperbolic:
            y = call("sub", select(beyond, const(0xFFFF << 8), between), const(1 << 23))
            y = sar(select(negative, plus(call("neg", y), (1 << 7) - 1), plus(y, 1 << 7)), 8)
        else:
            y = select(beyond, const(0x7FFF << 10), between)
            y = sar(select(negative, call("sub", const((1 << 25) + (1 << 9) - 1), y), plus(y, 1 << 9)), 10)
        return cast(y, DType.INT16)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.concatenate([np.arange(-32768, 32768, 257), [-1, 0, 1, 32767]]).astype(np.int16)
        return [
            Sample((x,), {"hyperbolic": h, "multiplier": m, "shift": s}, tolerance=8)
            for h in (False, True)
            for m, s in ((3, 0), (20000, 14))
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        real = np.asarray(arrays[0], np.float64) * self.multiplier / 2.0**self.shift / (24 * 512)
        return [
            np.minimum(np.rint(np.tanh(real) * 2**15 if self.hyperbolic else 2**15 / (1 + np.exp(-real))),
                       32767).astype(np.int16)
        ]
