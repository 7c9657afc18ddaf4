"""Functions of one 16-bit value as polynomials of second degree on pieces of equal width, in integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aot_model.ir.admissible import observed, want
from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.quantised_tables import Table
from aot_model.ops.registry import operator, required
from aot_model.ops.requantise import saturated

MOST = 128
"""Pieces; one takes 8 bytes of flash."""
CLOSE, CLOSE_BYTES = 0.25, 1 / 64
"""Units from the real number, before rounding: more pieces are taken only where fewer are further off. A
unit of a result of 8 bits is much: nothing further off is taken for it.
"""


@operator("Piecewise", domain="aot", elementwise=True)
class Piecewise(Operator):
    """value + (slope + (curve * d >> curved)) * d >> point, saturated: the upper bits of x choose one of
    2^k pieces, d is what is left of x, counted from the middle of the piece.

    values are in 2^-point units of the result and hold the half that rounds; slopes in as many for each
    unit of d, curves in 2^-curved of these for each unit of d squared.
    """

    values: Table
    slopes: Table
    curves: Table
    point: int
    curved: int
    to: DType

    @property
    def bits(self) -> int:
        """Of x within a piece."""
        return 17 - len(self.values.values).bit_length()

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, pieces = required(inputs), len(self.values.values)
        if x.dtype not in (DType.INT16, DType.UINT16) or not 2 <= pieces <= MOST or pieces & (pieces - 1):
            raise OperatorError(f"{pieces} pieces do not fit {x.type}")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, half = cast(at(required(inputs), index), DType.INT32), 1 << (self.bits - 1)
        for table in (self.values, self.slopes, self.curves):  # whose extremes do not overflow, see _integers
            assert table.value.data is not None
            want(table.value, *observed(table.value.data))
        piece = call("sar", x, const(self.bits))
        d = call("sub", call("bitand", x, const(2 * half - 1)), const(half))
        slope = cast(self.slopes.at(piece), DType.INT32)
        if any(self.curves.values):
            bend = call("mul", cast(self.curves.at(piece), DType.INT32), d)
            slope = call("add", slope, call("sar", bend, const(self.curved)) if self.curved else bend)
        y = call("add", self.values.at(piece), call("mul", slope, d))
        low, high = (int(v) for v in self.to.limits)
        return saturated(call("sar", y, const(self.point)), 0, low, high, self.to)

    @classmethod
    def samples(cls) -> list[Sample]:
        every = np.arange(65536)
        curve = (every - 20000.0) ** 2 / 40000 - 9000
        cases: list[tuple[np.ndarray, DType, DType]] = [
            (curve, DType.INT16, DType.INT16),
            (curve + 20000, DType.UINT16, DType.UINT16),
            (every / 300, DType.UINT16, DType.INT8),
            (40000.0 - every, DType.INT16, DType.INT16),
        ]
        result = []
        for real, of, to in cases:
            low, high = (int(v) for v in to.limits)
            made = fit(real, np.clip(np.rint(real), low, high).astype(np.int64), of, to)
            assert made is not None
            x = (every[::3171] + of.limits[0]).astype(of.numpy).reshape(3, -1)
            result.append(Sample((x,), made.attributes))
        return result

    @property
    def attributes(self) -> dict[str, Any]:
        return {n: getattr(self, n) for n in ("values", "slopes", "curves", "point", "curved", "to")}

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0], np.int64)
        piece, place = np.divmod(x, 1 << self.bits)
        value, slope, curve = (
            np.asarray(t.values, np.int64)[piece - t.low] for t in (self.values, self.slopes, self.curves)
        )
        d = place - (1 << (self.bits - 1))
        y = (value + (slope + curve * d // 2**self.curved) * d) // 2**self.point
        low, high = (int(v) for v in self.to.limits)
        return [np.clip(y, low, high).astype(self.to.numpy)]


def fit(real: np.ndarray, wanted: np.ndarray, of: DType, to: DType, most: int = MOST) -> Piecewise | None:
    """The operator with the fewest pieces for a function at all 65,536 arguments, the smallest first.

    real: results in units of the result, before they are rounded and saturated. wanted: integers, of which
    every result is within one unit, of 8 bits only where `real` is next to a tie; None where that takes more
    than `most` pieces.
    """
    low, high = (int(v) for v in to.limits)
    within = np.isfinite(real) & (real >= low) & (real <= high)
    every = np.arange(int(of.limits[0]), int(of.limits[1]) + 1).astype(of.numpy)
    # what saturates may go on as it likes, but not for ever
    bounded = np.clip(np.nan_to_num(real.astype(np.float64)), low - 32768.0, high + 32768.0)
    pieces, best = 16, None
    close = CLOSE if to.bits > 8 else CLOSE_BYTES
    while pieces <= most:
        found = _integers(bounded.reshape(pieces, -1), int(of.limits[0]), to)
        got = found.reference([every])[0].astype(np.int64)
        if np.abs(got - wanted).max() <= 1:
            if not within.any() or np.abs(got - real)[within].max() <= 0.5 + close:
                return found
            best = found if to.bits > 8 else None
        pieces *= 2
    return best


def _integers(real: np.ndarray, lowest: int, to: DType) -> Piecewise:
    """Polynomials through three points of each row of `real`, as Chebyshev has them, to the precision that
    32 bits leave. real: within 2^17 of each other, in rows of 512 or more.
    """
    half = real.shape[1] // 2
    aside = round(half * math.sqrt(3) / 2)
    left, value, right = (real[:, half + k] for k in (-aside, 0, aside))
    slope, curve = (right - left) / (2 * aside), (right + left - 2 * value) / (2 * aside * aside)

    def bits(v: np.ndarray) -> int:
        """Before the point."""
        return math.frexp(float(np.abs(v).max()))[1]

    # Slopes are below 2^9, values and what is added to them below 2^19: six bits at least are behind the
    # point. half^2 is at least 2^16, so that what `most` leaves for the point leaves the curve one bit more.
    most = np.abs(value).max() + half * (np.abs(slope).max() + half * np.abs(curve).max())
    point = min(22, 30 - bits(most), 15 - bits(slope))
    curved = min(15, 15 - point - bits(curve))

    def table(v: np.ndarray, dtype: DType) -> Table:
        low, high = (int(x) for x in dtype.limits)  # 2^15 - 1/2 rounds to what int16 does not hold
        return Table(tuple(min(max(round(float(x)), low), high) for x in v), dtype, lowest // (2 * half))

    return Piecewise(
        table(value * 2.0**point + 2 ** (point - 1), DType.INT32),
        table(slope * 2.0**point, DType.INT16),
        table(curve * 2.0 ** (point + curved), DType.INT16),
        point,
        curved,
        to,
    )
