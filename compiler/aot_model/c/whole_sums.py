"""Sums of small integers times floats that are rounded to bytes, in integers where both surely round alike.

    round(((a - za) * sa + (b - zb) * sb + ...) / s) + zero  =  (a * ma + b * mb + ... + offset) >> shift

unless what is left of the shift is near 0: then the sum is so near to half-way between two integers that the
roundings of floats, or of the factors, may decide, and it is computed in floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from aot_model.c.rounding import Rounding
from aot_model.ir.bounds import bounds, only_asking
from aot_model.ir.expr import Call, Const, Expr, call, const
from aot_model.ir.types import DType

WORD = 32
LEAST_SHIFT = 16
"""Of what is left of fewer bits too much would be near 0."""
EXACT = 1 << 24
"""Integers that are floats."""


@dataclass(frozen=True)
class WholeSum:
    """total >> shift; near a half where total << (32 - shift) is less than `beside`, without a sign."""

    total: Expr
    shift: int
    beside: int


def whole_sum(rounding: Rounding) -> WholeSum | None:
    """The form of a sum of two or more such terms."""
    terms = _terms(rounding.real, Fraction(1))
    if terms is None or len(terms) < 2:
        return None
    divisor = Fraction(float(np.float32(rounding.divisor)))
    real = [(x, zero, factor / divisor) for x, zero, factor in terms]
    with only_asking():
        limits = [bounds(x) for x, _, _ in real]
    sizes = [max(abs(low), abs(high)) for low, high in limits if low is not None and high is not None]
    if len(sizes) < len(real) or any(
        size + abs(zero) > EXACT for size, (_, zero, _) in zip(sizes, real, strict=True)
    ):
        return None
    reach = sum((size + abs(zero)) * abs(by) for size, (_, zero, by) in zip(sizes, real, strict=True))
    start = rounding.zero + Fraction(1, 2) - sum(zero * by for _, zero, by in real)
    for shift in range(30, LEAST_SHIFT - 1, -1):
        unit = 1 << shift
        # roundings of the products, the sums and the quotient; of the factors; of the offset, and one more
        off = (len(real) + 2) * reach * unit / EXACT + Fraction(sum(sizes), 2) + 2
        beside = int(off) + 1
        factors = [round(by * unit) for _, _, by in real]
        offset = round(start * unit) + beside
        if sum(size * abs(m) for size, m in zip(sizes, factors, strict=True)) + abs(offset) >= 1 << 31:
            continue
        if 16 * beside > unit:
            return None
        total: Expr = const(offset)
        for (x, _, _), m in zip(real, factors, strict=True):
            bounds(x)  # the code relies on it
            total = call("add", call("mul", x, const(m)), total)
        return WholeSum(total, shift, 2 * beside << (WORD - shift))
    return None


def _terms(x: Expr, sign: Fraction) -> list[tuple[Expr, int, Fraction]] | None:
    """(integer, zero point, factor) of each term of a sum of floats, or None."""
    if not isinstance(x, Call) or x.dtype is not DType.FLOAT32:
        return None
    if x.op in ("add", "sub"):
        first, second = _terms(x.args[0], sign), _terms(x.args[1], sign if x.op == "add" else -sign)
        return None if first is None or second is None else first + second
    cast, by = x.args[0], x.args[-1]
    if x.op != "mul" or not isinstance(by, Const) or not isinstance(cast, Call) or cast.op != "cast":
        return None
    whole, number = cast.args[0], float(np.float32(by.value))
    if whole.dtype is not DType.INT32 or not np.isfinite(number):
        return None
    if isinstance(whole, Call) and whole.op in ("add", "sub") and isinstance(less := whole.args[1], Const):
        zero = int(less.value) if whole.op == "sub" else -int(less.value)
        return [(whole.args[0], zero, sign * Fraction(number))]
    return [(whole, 0, sign * Fraction(number))]
