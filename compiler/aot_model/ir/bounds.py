"""The range of an integer expression, from the ranges of what it is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import numpy as np

from aot_model.ir.admissible import Range, want
from aot_model.ir.expr import Call, Cell, Const, Expr, Leaf, Load, Reduce, Var
from aot_model.ir.scalar_ops import requantise
from aot_model.ir.values import Value


def bounds(x: Expr) -> tuple[int | None, int | None]:
    """Smallest and largest value of an integer expression, None where unknown."""
    if isinstance(x, Const):
        return (int(x.value), int(x.value)) if not isinstance(x.value, (float, bytes)) else (None, None)
    if isinstance(x, Var):
        return 0, x.extent - 1
    if isinstance(x, Leaf):
        return x.low, x.high
    if x.dtype.is_float:
        return None, None
    if isinstance(x, (Load, Cell)) and x.value.data is not None and x.value.data.size and x.dtype.is_integer:
        return _table_bounds(x.value)
    widest = x.dtype.limits if x.dtype.bits <= 16 else (None, None)
    if isinstance(x, Reduce) and x.op == "add":
        low, high = bounds(x.body)
        turns = math.prod(v.extent for v in x.over)
        if low is None or high is None or low * turns < x.dtype.limits[0] or high * turns > x.dtype.limits[1]:
            return widest
        return min(low * turns, 0), max(high * turns, 0)
    if isinstance(x, Call) and x.op in _BOUNDS:
        low, high = _BOUNDS[x.op](x.args)
        least, most = x.dtype.limits
        wraps = (low is not None and low < least) or (high is not None and high > most)
        if x.op in _CHOOSES:
            return widest[0] if low is None else low, widest[1] if high is None else high
        return widest if wraps or low is None or high is None else (low, high)
    return widest


_table_limits: WeakKeyDictionary[Value, tuple[int, int]] = WeakKeyDictionary()
_asking = 0


@contextmanager
def only_asking() -> Iterator[None]:
    """Here bounds are asked for without a decision that relies on those of constants."""
    global _asking
    _asking += 1
    try:
        yield
    finally:
        _asking -= 1


def _table_bounds(value: Value) -> tuple[int, int]:
    """Smallest and largest element of a constant. Parameters that come later must be between them as well."""
    if value.dtype.bits < 8:
        return int(value.dtype.limits[0]), int(value.dtype.limits[1])  # any bits are between these
    found = _table_limits.get(value)
    if found is None:
        assert value.data is not None
        found = _table_limits[value] = int(value.data.min()), int(value.data.max())
    if not _asking:
        want(value, Range(*found))
    return found


def _sum_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    base = args[-1]
    assert isinstance(base, Const)
    low: int | None = int(base.value)
    high = low
    for atom, factor in zip(args[:-1:2], args[1::2], strict=False):
        assert isinstance(factor, Const)
        c = int(factor.value)
        a, b = bounds(atom)
        if c < 0:
            a, b = b, a
        low = None if low is None or a is None else low + c * a
        high = None if high is None or b is None else high + c * b
    return low, high


def _div_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    n = args[1]
    assert isinstance(n, Const)
    low, high = bounds(args[0])
    return None if low is None else low // int(n.value), None if high is None else high // int(n.value)


def _mod_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    n = args[1]
    assert isinstance(n, Const)
    return 0, int(n.value) - 1


def _corner_bounds(
    f: Callable[[int, int], int],
) -> Callable[[tuple[Expr, ...]], tuple[int | None, int | None]]:
    def rule(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
        (a, b), (c, d) = bounds(args[0]), bounds(args[1])
        if a is None or b is None or c is None or d is None:
            return None, None
        corners = [f(x, y) for x in (a, b) for y in (c, d)]
        return min(corners), max(corners)

    return rule


def _min_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    (a, b), (c, d) = bounds(args[0]), bounds(args[1])
    highs = [h for h in (b, d) if h is not None]
    return None if a is None or c is None else min(a, c), min(highs) if highs else None


def _max_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    (a, b), (c, d) = bounds(args[0]), bounds(args[1])
    lows = [v for v in (a, c) if v is not None]
    return max(lows) if lows else None, None if b is None or d is None else max(b, d)


_CHOOSES = frozenset({"min", "max", "select"})
"""What gives one of its operands: it cannot wrap, so that one bound is as good without the other."""


def _union_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    (a, b), (c, d) = bounds(args[1]), bounds(args[2])
    return None if a is None or c is None else min(a, c), None if b is None or d is None else max(b, d)


def _limits_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    """Of a quantisation, where NaN is 0; its limits may be arguments of a function that layers share."""
    low, high = bounds(args[2])[0], bounds(args[3])[1]
    return None if low is None else min(low, 0), None if high is None else max(high, 0)


def _requantise_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    """Of a multiplication by constants, which keeps the order."""
    (low, high), multiplier, shift = bounds(args[0]), args[1], args[2]
    if low is None or high is None or not isinstance(multiplier, Const) or not isinstance(shift, Const):
        return None, None
    m, left = int(multiplier.value), max(int(shift.value), 0)
    if m < 0 or max(abs(low), abs(high)) << left >= 1 << 31:
        return None, None
    ends = [requantise(np.asarray(v), np.asarray(m), np.asarray(int(shift.value))) for v in (low, high)]
    return int(ends[0]), int(ends[1])


def _abs_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    low, high = bounds(args[0])
    if low is None or high is None:
        return None, None
    return max(low, -high, 0), max(-low, high)


def _neg_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    low, high = bounds(args[0])
    return None if high is None else -high, None if low is None else -low


def _sar_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    """Of a shift to the right by a constant, which keeps the order."""
    (low, high), by = bounds(args[0]), args[1]
    if not isinstance(by, Const):
        return None, None
    return None if low is None else low >> int(by.value), None if high is None else high >> int(by.value)


def _bitand_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    """No larger than an operand without a sign bit."""
    highs = [high for low, high in map(bounds, args) if low is not None and low >= 0 and high is not None]
    return (0, min(highs)) if highs else (None, None)


def _cast_bounds(args: tuple[Expr, ...]) -> tuple[int | None, int | None]:
    return bounds(args[0]) if not args[0].dtype.is_float else (None, None)


_BOUNDS: dict[str, Callable[[tuple[Expr, ...]], tuple[int | None, int | None]]] = {
    "isum": _sum_bounds,
    "idiv": _div_bounds,
    "imod": _mod_bounds,
    "add": _corner_bounds(lambda x, y: x + y),
    "sub": _corner_bounds(lambda x, y: x - y),
    "mul": _corner_bounds(lambda x, y: x * y),
    "min": _min_bounds,
    "max": _max_bounds,
    "select": _union_bounds,
    "abs": _abs_bounds,
    "neg": _neg_bounds,
    "sar": _sar_bounds,
    "bitand": _bitand_bounds,
    "cast": _cast_bounds,
    "requantise": _requantise_bounds,
    "quantise_rint": _limits_bounds,
    "quantise_round": _limits_bounds,
}
