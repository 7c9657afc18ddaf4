"""Functions of one quantised value that are lines, or lines with a bend, each with numbers of its own along
other axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.registry import broadcast, broadcast_index, operator, required
from aot_model.ops.requantise import saturated, widened


@operator("QuantisedLine", domain="aot", elementwise=True)
class QuantisedLine(Operator):
    """clamp((x * slope + offset) >> shift, low, high) of bytes; slope, offset int32 constants that broadcast
    and with which nothing leaves int32.
    """

    shift: int
    low: int = -128
    high: int = 127
    to: DType = DType.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, slope, offset = (required(inputs, k) for k in range(3))
        if x.dtype.bits != 8 or {slope.dtype, offset.dtype} != {DType.INT32}:
            raise OperatorError(f"no line through {x.type} by {slope.type} and {offset.type}")
        if broadcast(x.shape, slope.shape, offset.shape) != x.shape:
            raise OperatorError(f"slopes {slope.type} and offsets {offset.type} do not fit {x.type}")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, slope, offset = (required(inputs, k) for k in range(3))
        by, more = (at(v, broadcast_index(v.shape, index)) for v in (slope, offset))
        total = call("add", call("mul", cast(at(x, index), DType.INT32), by), more)
        return saturated(call("sar", total, const(self.shift)), 0, self.low, self.high, self.to)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, slope: int, offset: int) -> int:
            return exact.clamped((x * slope + offset) >> self.shift, self.low, self.high)

        return exact.by_element(one, self.to.numpy, *arrays)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.arange(-128, 128, dtype=np.int8).reshape(16, 4, 4)
        slopes = np.asarray([2**22, -(2**20), 3, 0], np.int32)
        offsets = np.asarray([5, -(2**29), 2**22, 7 << 22], np.int32)
        pairs = (slopes, offsets), (slopes[:1], offsets), (slopes[:, None], offsets[:, None])
        return [
            *(Sample((x, *pair), {"shift": 22}, frozenset({1, 2})) for pair in pairs),
            Sample((x, slopes, offsets), {"shift": 22, "low": -3, "high": 90}, frozenset({1, 2})),
            Sample(
                ((x.view(np.uint8)), slopes[:3].repeat([1, 1, 2]), offsets),
                {"shift": 20, "low": 0, "high": 255, "to": DType.UINT8},
                frozenset({1, 2}),
            ),
        ]


@operator("QuantisedBend", domain="aot", elementwise=True)
class QuantisedBend(Operator):
    """(t * slope + min(t, 0) * less + offset) >> shift of bytes, t = x - zero_point, within their type; less:
    int32 constants that broadcast and with which nothing leaves int32.
    """

    zero_point: int
    slope: int
    offset: int
    shift: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, less = required(inputs), required(inputs, 1)
        if x.dtype.bits != 8 or less.dtype is not DType.INT32 or broadcast(x.shape, less.shape) != x.shape:
            raise OperatorError(f"no line through {x.type} is bent by {less.type}")
        return [x.type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, less = required(inputs), required(inputs, 1)
        t, by = widened(at(x, index), self.zero_point), at(less, broadcast_index(less.shape, index))
        bent = call("add", call("mul", call("min", t, const(0)), by), const(self.offset))
        total = call("add", call("mul", t, const(self.slope)), bent)
        return saturated(call("sar", total, const(self.shift)), 0, *x.dtype.limits, x.dtype)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        dtype = np.asarray(arrays[0]).dtype
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)

        def one(x: int, less: int) -> int:
            t = x - self.zero_point
            return exact.clamped((t * self.slope + min(t, 0) * less + self.offset) >> self.shift, low, high)

        return exact.by_element(one, dtype, *arrays)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.arange(-128, 128, dtype=np.int8).reshape(16, 4, 4)
        less = np.asarray([-(2**22), 2**20, -(2**21) - 77, 0], np.int32)
        given = {"slope": 2**22, "offset": 3 * 2**21, "shift": 22}
        return [
            *(Sample((x, by), {**given, "zero_point": -9}, frozenset({1})) for by in (less, less[:, None])),
            Sample((x, less), {**given, "slope": 5000011, "zero_point": 127}, frozenset({1})),
            Sample((x.view(np.uint8), less), {**given, "zero_point": 200}, frozenset({1})),
        ]


@dataclass(frozen=True)
class Lines:
    """Slopes and offsets, one of each for every function; one slope where all have the same."""

    slopes: np.ndarray
    offsets: np.ndarray
    shift: int
    low: int
    high: int


FINEST, COARSEST = 24, 8
"""Shifts that are tried: a slope of one has so many bits."""
BEYOND = 1 << 45
"""What limits nothing."""


def lines(functions: np.ndarray, arguments: range, limits: tuple[int, int]) -> Lines | str:
    """The lines that are equal to functions (int64 [function, argument]) at all arguments, or why there are
    none. limits: of the type; results at them may lie beyond.
    """
    x = np.arange(arguments.start, arguments.stop, dtype=np.int64)
    why = "it is no line"
    for low, high in dict.fromkeys((limits, (int(functions.min()), int(functions.max())))):
        for shift in range(FINEST, COARSEST - 1, -1):
            found = _lines(functions, x, shift, low, high)
            if found is None:  # coarser lines are among the finer ones
                break
            products = found[0][:, None] * x
            sums = products + found[1][:, None]
            if max(int(np.abs(products).max()), int(np.abs(sums).max())) < 1 << 31:
                slopes, offsets = (v.astype(np.int32) for v in found)
                return Lines(slopes, offsets, shift, low, high)
            why = "no line has room in int32"
    return why


def _lines(
    functions: np.ndarray, x: np.ndarray, shift: int, low: int, high: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Slopes and offsets in units of 2^-shift."""
    least, most = _limited(functions, shift, (low, high))
    slopes = _slopes(least, most, x, together=True)
    if slopes is None:
        slopes = _slopes(least, most, x, together=False)
    if slopes is None:
        return None
    products = slopes[:, None] * x
    above, below = (least - products).max(axis=1), (most - products).min(axis=1)
    # what is far from a limit alone comes as near to it as it may
    return slopes, np.where(below - above > 1 << 40, np.clip(0, above, below), (above + below) // 2)


def _slopes(least: np.ndarray, most: np.ndarray, x: np.ndarray, together: bool) -> np.ndarray | None:
    """Slopes with which there are offsets, one for all if together. With a slope that is too small what is
    furthest below its limit is to the right of what is furthest above: each try halves what is left.
    """
    low = np.full(len(least), -1 << 31, np.int64)
    high = -low
    while (low <= high).all():
        slopes = (low + high) // 2
        products = slopes[:, None] * x
        under, over = least - products, most - products
        right = np.sign(under.argmax(axis=1) - over.argmin(axis=1))
        right[under.max(axis=1) <= over.min(axis=1)] = 0
        if not right.any():
            return slopes
        if together:
            if (right > 0).any() and (right < 0).any():
                return None
            right[:] = right[right != 0][0]
        low, high = np.where(right > 0, slopes + 1, low), np.where(right < 0, slopes - 1, high)
    return None


ROOM = 1 << 23
"""Steeper lines leave int32 before all bytes are passed; what no byte is the limit of is none."""
PARTS = 16
"""Of a step: where between two integers a line with a bend may have it."""


@dataclass(frozen=True)
class Bends:
    """Lines that are one from where they are bent, with the numbers of QuantisedBend; less: of each."""

    slope: int
    less: np.ndarray
    offset: int
    shift: int


def bends(functions: np.ndarray, arguments: range, limits: tuple[int, int], zero: int) -> Bends | None:
    """The lines, bent at the argument `zero`, that are equal to functions (int64 [function, argument]) at all
    arguments.
    """
    t = np.arange(arguments.start, arguments.stop, dtype=np.int64) - zero
    right = functions[:1, t >= 0]
    if not (t == 0).any() or (functions[:, t >= 0] != right).any():
        return None
    for shift in range(FINEST, COARSEST - 1, -1):
        for part in sorted(range(1, PARTS), key=lambda k: abs(2 * k - PARTS)):
            offset = (int(right[0, 0]) << shift) + part * ((1 << shift) - 1) // PARTS
            slope = _slopes_from(right, t[t >= 0], offset, shift, limits)
            slopes = _slopes_from(functions[:, t <= 0], t[t <= 0], offset, shift, limits)
            if slope is None or slopes is None:
                continue
            less = slopes - slope
            bent = np.outer(less, np.minimum(t, 0))
            steps = (less, bent, bent + offset, t * slope, t * slope + bent + offset)
            if all(int(np.abs(v).max()) < 1 << 31 for v in steps):
                return Bends(int(slope[0]), less.astype(np.int32), offset, shift)
    return None


def _slopes_from(
    functions: np.ndarray, t: np.ndarray, offset: int, shift: int, limits: tuple[int, int]
) -> np.ndarray | None:
    """A slope for each function, with which it is a line from `offset` at t = 0, or None; t to one side."""
    ends = [v - offset for v in _limited(functions, shift, limits)]
    least, most = ends if t.max() > 0 else (-v for v in ends[::-1])
    by = np.abs(t)[t != 0]
    least, most = (v[:, t != 0] for v in (least, most))
    low, high = (-(-least // by)).max(axis=1, initial=-BEYOND), (most // by).min(axis=1, initial=BEYOND)
    if (low > high).any():
        return None
    low, high = np.maximum(low, np.minimum(high, -ROOM)), np.minimum(high, np.maximum(low, ROOM))
    zeros = next(k for k in range(32, -1, -1) if (high >> k << k >= low).all())
    slopes: np.ndarray = high >> zeros << zeros  # of few bits are shifts
    return slopes


def _limited(functions: np.ndarray, shift: int, limits: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """What functions are at least and at most before they are shifted."""
    least = np.where(functions > limits[0], functions << shift, -BEYOND)
    return least, np.where(functions < limits[1], ((functions + 1) << shift) - 1, BEYOND)
