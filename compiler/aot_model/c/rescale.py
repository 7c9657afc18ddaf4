"""Cheaper C for fixed-point arithmetic whose operand has known limits.

A requantisation is a function of one integer. Where that has limits and the multiplier is known, a single
product with a single shift is compared with the rule on every integer between them:

    y + zero_point = (x * multiplier + offset) >> shift

Each integer bounds the offset from one side, so an offset is found or shown not to exist. Where there is
none because ties go to even, the factor is a short one, and 32 bits may do (`halves`). A clamp to all values
of a type is one instruction of many cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from aot_model.ir.bounds import bounds, only_asking
from aot_model.ir.expr import Call, Const, Expr, call, const
from aot_model.ir.scalar_ops import SCALAR_OPS
from aot_model.ir.types import DType

RULES = ("requantise", "requantise_even", "requantise_single")

MOST = 1 << 18
"""Integers on which a form is compared with its rule."""

SATURATED = {t.limits: t.label for t in (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)}


@dataclass(frozen=True)
class Product:
    """(x * multiplier + offset) >> shift."""

    x: Expr
    multiplier: int
    offset: int
    shift: int


def product(x: Call) -> Product | None:
    """The form of a requantisation by constants, also with a constant that is added, if there is one."""
    added = 0
    if x.dtype is not DType.INT32:
        return None
    if x.op == "add":
        inner, zero_point = x.args
        if not isinstance(inner, Call) or not isinstance(zero_point, Const):
            return None
        x, added = inner, int(zero_point.value)
    if x.op not in RULES or x.args[0].dtype is not DType.INT32:
        return None
    acc, multiplier, shift = x.args
    if not isinstance(multiplier, Const) or not isinstance(shift, Const):
        return None
    with only_asking():
        low, high = bounds(acc)
    if low is None or high is None or high - low >= MOST or max(abs(low), abs(high)) > MOST:
        return None
    m, total = int(multiplier.value), 31 - int(shift.value)
    lift = max(32 - total, 0)  # the high word of a product is cheaper than what is across two
    if lift and x.op == "requantise":
        return None  # what has two roundings has a form of its own there
    if max(abs(low), abs(high)) << lift >= 1 << 31 or m % (1 << max(total, 0)) == 0:
        return None  # beyond a word; or whole numbers, nothing to round
    offset = _offset(x.op, m, total, low, high, added)
    if offset is None:
        return None
    bounds(acc)  # the code relies on it
    return Product(call("mul", acc, const(1 << lift)) if lift else acc, m, offset, total + lift)


@dataclass(frozen=True)
class Halves:
    """x / 2^bits, ties to even, all of it within 32 bits; bits 0: x."""

    x: Expr
    bits: int


def halves(x: Call) -> Halves | None:
    """The form of a requantisation with ties to even by a factor of few bits, whose product with the operand
    fits int32: only then are there ties at all. Where the factor is a whole number, of one with ties up, too.
    """
    if x.op not in ("requantise_even", "requantise_single") or x.args[0].dtype is not DType.INT32:
        return None
    acc, multiplier, shift = x.args
    if not isinstance(multiplier, Const) or not isinstance(shift, Const) or int(multiplier.value) <= 0:
        return None
    m = int(multiplier.value)
    zeros = (m & -m).bit_length() - 1
    bits = 31 - int(shift.value) - zeros
    factor = m >> zeros << max(-bits, 0)
    with only_asking():
        low, high = bounds(acc)
    if low is None or high is None or bits > (30 if x.op == "requantise_even" else 0):
        return None
    if max(abs(low), abs(high)) * factor + (1 << max(bits, 0) >> 1) >= 1 << 31:
        return None
    bounds(acc)  # the code relies on it
    return Halves(call("mul", acc, const(factor)) if factor > 1 else acc, max(bits, 0))


def halves_and_zero(x: Expr, zero: Expr) -> tuple[str, Expr, int] | None:
    """(where ties go, what is shifted by so many bits) of x + zero, where x is the form of ties to even: the
    zero point is added before, so that shifting and saturating are one instruction. An odd one takes even
    numbers to odd ones.
    """
    if not isinstance(x, Call) or not isinstance(zero, Const):
        return None
    form = halves(x)
    if form is None or form.bits == 0:
        return None
    more = int(zero.value) << form.bits
    low, high = bounds(form.x)
    if low is None or high is None or max(abs(low), abs(high)) + abs(more) + (1 << form.bits) >= 1 << 31:
        return None
    before: Expr = form.x
    if isinstance(before, Call) and before.op == "sub" and isinstance(less := before.args[1], Const):
        before, more = before.args[0], more - int(less.value)
    before = call("add" if more > 0 else "sub", before, const(abs(more))) if more else before
    return "odd" if int(zero.value) % 2 else "even", before, form.bits


@lru_cache(maxsize=4096)
def _offset(rule: str, multiplier: int, shift: int, low: int, high: int, added: int) -> int | None:
    """The offset with which the product, shifted by a word or more, gives the rule's results for low .. high,
    or None. Numbers of 64 bits hold no larger shifts.
    """
    if not 20 <= shift <= 48 or multiplier <= 0 or abs(added) > MOST:
        return None
    x = np.arange(low, high + 1, dtype=np.int64)
    y = np.asarray(SCALAR_OPS[rule].numpy(x, multiplier, 31 - shift), np.int64)
    multiplier, shift = multiplier << max(32 - shift, 0), max(shift, 32)
    if int(np.abs(y).max()) + abs(added) > 1 << 61 - shift:
        return None
    y = (y + added) << shift
    least = int((y - x * multiplier).max())
    most = int((y + (1 << shift) - 1 - x * multiplier).min())
    if least > most:
        return None
    even = -(-least >> 32) << 32  # constants of which a word is zero are the cheapest
    return even if even <= most else (least + most) // 2


def saturated(x: Call) -> tuple[str, Expr] | None:
    """(type, operand) where the expression is a clamp of int32 to all values of a type."""
    inner = x.args[0]
    if x.op != "min" or x.dtype is not DType.INT32 or not isinstance(inner, Call) or inner.op != "max":
        return None
    low, high = inner.args[1], x.args[1]
    if not isinstance(low, Const) or not isinstance(high, Const):
        return None
    name = SATURATED.get((int(low.value), int(high.value)))
    return (name, inner.args[0]) if name else None


def rounded_quotient(x: Call) -> tuple[Expr, int] | None:
    """(total, bits) of a quotient by 2^bits to the nearest integer, ties away from zero: half of the divisor
    is added to what is positive, taken from the rest, and neither sum leaves int32.
    """
    choice, by = x.args[0], x.args[-1]
    if x.op != "div" or not isinstance(by, Const) or not isinstance(choice, Call):
        return None
    half, bits = int(by.value) // 2, int(by.value).bit_length() - 1
    if choice.op != "select" or half < 1 or int(by.value) != 1 << bits:
        return None
    condition, up, down = choice.args
    if not all(isinstance(n, Call) and len(n.args) == 2 for n in (condition, up, down)):
        return None
    assert isinstance(condition, Call) and isinstance(up, Call) and isinstance(down, Call)
    total, same = up.args[0], const(half, x.dtype)
    found = (condition.op, up.op, down.op) == ("lt", "add", "sub") and down.args == up.args
    if not found or up.args[1] != same or condition.args != (const(0, x.dtype), total):
        return None
    with only_asking():
        low, high = bounds(total)
    least, most = DType.INT32.limits
    if low is None or high is None or not (least <= low - half and high + half <= most):
        return None
    bounds(total)  # the code relies on it
    return total, bits
