"""Floats that are rounded to whole numbers, and how they are divided before."""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.arithmetic.division import two_products
from aot_model.ir.bounds import bounds
from aot_model.ir.expr import Call, Const, Expr
from aot_model.ir.types import DType

TIES_TO_EVEN, TIES_AWAY = "quantise_rint", "quantise_round"
"""Operators that round a float to an integer, by what they do halfway between two."""
ROUNDED = frozenset({TIES_TO_EVEN, TIES_AWAY})


@dataclass(frozen=True)
class Rounding:
    """A float that is rounded to a whole number, which goes to the zero point `zero` and is clamped."""

    op: str
    """One of ROUNDED."""
    real: Expr
    """The float; where there are parts, what is divided."""
    divisor: float
    parts: tuple[float, float] | None
    """As of `two_products` for the divisor, which is not 1: real times these is the quotient that is rounded.
    """
    zero: int
    low: int
    high: int

    @property
    def in_parts(self) -> bool:
        """Whether parts of 1/65536 in 32 bits hold what is not beyond the limits: as divisor.h asks."""
        return _in_parts(self.zero, self.zero, self.low, self.high)

    @staticmethod
    def of(x: Expr) -> Rounding | None:
        """None where x is nothing of the kind, or has limits that are computed."""
        if not isinstance(x, Call) or x.op not in ROUNDED:
            return None
        real, *limits = x.args
        numbers = [int(n.value) for n in limits if isinstance(n, Const)]
        if len(numbers) < len(limits):
            return None
        zero, low, high = numbers
        by = real.args[1] if isinstance(real, Call) and real.op == "div" else None
        if isinstance(real, Call) and isinstance(by, Const) and real.dtype is DType.FLOAT32:
            parts = two_products(float(by.value), low - zero, high - zero)
            if parts is not None:
                return Rounding(x.op, real.args[0], float(by.value), parts, zero, low, high)
        return Rounding(x.op, real, 1.0, None, zero, low, high)


def _in_parts(least: int, most: int, low: int, high: int) -> bool:
    return -255 <= least <= most <= 255 and -256 <= low <= high <= 255


def divided_by(x: Expr) -> Expr | None:
    """By what a float is divided before it is rounded to 8 bits, where that is no number that is known; None
    where x is nothing of the kind.
    """
    if not isinstance(x, Call) or x.op not in ROUNDED:
        return None
    real, zero, low, high = x.args
    if not isinstance(real, Call) or real.op != "div" or real.dtype is not DType.FLOAT32:
        return None
    least, most = bounds(zero)
    if not isinstance(low, Const) or not isinstance(high, Const) or least is None or most is None:
        return None
    computed = not isinstance(real.args[1], Const)
    return real.args[1] if computed and _in_parts(least, most, int(low.value), int(high.value)) else None
