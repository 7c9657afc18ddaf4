"""The logistic curve for 8-bit results, by interpolation in one table for all functions of a network.

A table of 256 entries belongs to one scale and one zero point of its argument. The networks of loops that
were unrolled have one for each gate of each step, all of the same curve:

    int8 of 256 levels: logistic(x) = 1 / (1 + exp(-x)),    tanh(x) = 2 * logistic(2 * x) - 1

Here the argument goes through `multiplier * x + offset` instead. Whether a table is met exactly, by all of
its entries, `fit` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.quantised_tables import Table
from aot_model.ops.registry import operator, required

SEGMENTS = 512
LOW, HIGH = -6.25, 5.25
"""Where the curve begins and ends: beyond, 256 * logistic(x) is rounded to 0 or limited to 255."""
BITS = 28
"""Of the scaled argument: 2^BITS is HIGH, of which SEGMENTS take the first 9 and interpolation 12 more."""
_SEGMENT, _PART = BITS - 9, 12
_FRACTION = 16
"""Bits behind the point of the entries."""


@cache
def curve() -> Table:
    """256 * logistic + 1/2 at the ends of the segments, raised by half the error of linear interpolation."""
    step = (HIGH - LOW) / SEGMENTS
    values = []
    for k in range(SEGMENTS + 1):
        y = 1 / (1 + math.exp(-LOW - k * step))
        curvature = y * (1 - y) * (1 - 2 * y)
        values.append(math.floor(2**_FRACTION * (256 * (y - curvature * step**2 / 16) + 0.5)))
    return Table(tuple(values), DType.INT32, 0)


def level(scaled: int) -> int:
    """The result, 0 to 255, of a scaled argument from 0 to 2^BITS - 1."""
    k, part = scaled >> _SEGMENT, scaled >> _SEGMENT - _PART & (1 << _PART) - 1
    left, right = curve().values[k : k + 2]
    return left + (part * (right - left) >> _PART) >> _FRACTION


@cache
def _thresholds() -> tuple[int, ...]:
    """By level from 1 to 255: the smallest scaled argument that reaches it."""
    found = []
    for wanted in range(1, 256):
        low, high = 0, 2**BITS - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if level(middle) >= wanted else (middle + 1, high)
        found.append(low)
    return tuple(found)


def fit(levels: Sequence[int], low: int) -> tuple[int, int] | None:
    """(multiplier, offset) of the curve that has these 256 levels, 0 to 255, for the arguments from `low` on,
    each exactly; None when there is none in 32 bits.

    A level is met where its argument lies between two thresholds: low_k - m * k <= c <= high_k - m * k. The
    room between the largest left and the smallest right side is a concave function of m.
    """
    limit = 2**31 - 1
    thresholds = np.array([-limit, *_thresholds(), limit + 1], np.int64)
    wanted, x = np.asarray(levels, np.int64), np.arange(low, low + 256, dtype=np.int64)
    least, most = thresholds[wanted], thresholds[wanted + 1] - 1

    def room(m: int) -> int:
        return int((most - m * x).min() - (least - m * x).max())

    begin, end = -limit // 128, limit // 128
    while end - begin > 2:
        middle = (begin + end) // 2
        begin, end = (middle, end) if room(middle + 1) > room(middle) else (begin, middle + 1)
    m = max(range(begin, end + 1), key=room)
    if room(m) < 0:
        return None
    return m, (int((least - m * x).max()) + int((most - m * x).min())) // 2


@operator("Curve", domain="aot", elementwise=True)
class Curve(Operator):
    """The logistic curve in 256 levels of an 8-bit argument, multiplier * x + offset within 32 bits."""

    multiplier: int
    offset: int
    to: DType = DType.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        ends = [self.multiplier * int(v) + self.offset for v in x.dtype.limits] if x.dtype.bits == 8 else []
        if not ends or self.to.bits != 8 or max(map(abs, ends)) >= 2**31:
            raise OperatorError(f"{x.type} * {self.multiplier} + {self.offset} is no curve of {self.to}")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        def sar(v: Expr, bits: int) -> Expr:
            return call("sar", v, const(bits))

        argument = cast(at(required(inputs), index), DType.INT32)
        scaled = call("add", call("mul", argument, const(self.multiplier)), const(self.offset))
        scaled = call("max", call("min", scaled, const((1 << BITS) - 1)), const(0))
        place = sar(scaled, _SEGMENT)
        part = call("bitand", sar(scaled, _SEGMENT - _PART), const((1 << _PART) - 1))
        left, right = (curve().at(v) for v in (place, call("add", place, const(1))))
        between = call("add", left, sar(call("mul", part, call("sub", right, left)), _PART))
        found = call("bitand", sar(between, _FRACTION), const(255))
        return cast(call("add", found, const(int(self.to.limits[0]))), self.to)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        scaled = np.asarray(arrays[0], np.float64) * self.multiplier + self.offset
        x = LOW + (HIGH - LOW) * scaled / 2**BITS
        levels = np.clip(np.rint(256 / (1 + np.exp(-x))), 0, 255)
        return [(levels + int(self.to.limits[0])).astype(self.to.numpy)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[-128, 127, 0], [5, -1, 77]], dtype=np.int8)
        return [
            Sample((x,), {"multiplier": 3 << 19, "offset": 145 << 20}, tolerance=1),
            Sample(
                (x.view(np.uint8),),
                {"multiplier": -3 << 19, "offset": 345 << 20, "to": DType.UINT8},
                tolerance=1,
            ),
        ]
