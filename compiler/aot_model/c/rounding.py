"""Floats that are rounded to whole numbers, and how they are divided before."""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.arithmetic.division import two_products
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
