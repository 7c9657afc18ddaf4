"""Between which numbers a function of one argument is, whatever C library and compiler computes it.

    expm1(0.01 * x)  in  [lowest, highest]        for each x of a list

Sums, products and quotients of float32 are rounded as IEEE 754 says, or, a product that is added, not at all
where a compiler contracts the two. Functions of the C library are off by at most LIBRARY units in the last
place. Where both ends of a quantised result are one integer, every processor gets that integer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aot_model.ir.expr import Call, Const, Expr, walk
from aot_model.ir.scalar_ops import SCALAR_OPS
from aot_model.ir.types import DType

LIBRARY = 8
"""Units in the last place: those of C libraries are below 2, ours (exponential.h, exponential_lanes.h,
circular.h) below 4."""

Ends = tuple[np.ndarray, np.ndarray]
"""Lowest and highest value for each argument, as float64; of a condition whether it surely and whether it
possibly holds.
"""

_RISING = "exp expm1 tanh erf sigmoid log log1p atan sinh asinh".split()
_ANY = "sin cos tan asin acos acosh atanh cosh pow".split()
"""Taken of arguments that are known to the last bit."""
_EXACT = "floor ceil trunc rint round".split()
_ROUNDED: dict[str, Callable[..., np.ndarray]] = {"add": np.add, "mul": np.multiply, "div": np.divide}
_COMPARED: dict[str, Callable[..., np.ndarray]] = {"lt": np.less, "le": np.less_equal}


class Unknown(Exception):
    """Something that has no enclosure here."""


def enclosure(x: Expr, argument: Expr, values: np.ndarray) -> Ends | None:
    """The ends of x where `argument` has each of the values; None where they are not known."""
    known: dict[Expr, Ends] = {argument: (values.astype(np.float64), values.astype(np.float64))}
    try:
        with np.errstate(all="ignore"):
            for node in walk(x):
                if node not in known:
                    known[node] = _ends(node, known)
    except Unknown:
        return None
    return known[x]


def _ends(x: Expr, known: dict[Expr, Ends]) -> Ends:
    if isinstance(x, Const) and not isinstance(x.value, bytes):
        number = np.asarray(x.value, x.dtype.numpy).astype(np.float64)
        return number, number
    if not isinstance(x, Call):
        raise Unknown
    if x.dtype is DType.BOOL:
        return _condition(x.op, [known[a] for a in x.args])
    low, high = _number(x, [_contracted(x, a, known[a]) for a in x.args])
    if np.isnan(low).any() or np.isnan(high).any():
        raise Unknown
    return low, high


def _number(x: Call, args: list[Ends]) -> Ends:
    low, high = args[0]
    if x.op == "select":
        return _chosen(*args)
    if x.op in ("quantise_rint", "quantise_round"):
        numbers = [end[0].astype(np.int64) for end in args[1:]]
        quantised = SCALAR_OPS[x.op].numpy
        return quantised(low, *numbers).astype(np.float64), quantised(high, *numbers).astype(np.float64)
    if x.op == "cast" and x.args[0].dtype.is_integer and x.args[0].dtype.bits <= 32:
        return _fitting(low, high, x.dtype) if x.dtype.is_integer else _single(low, high, x.dtype)
    if x.op in ("min", "max") and x.dtype in (DType.FLOAT32, DType.INT32):
        limit: Callable[..., np.ndarray] = np.minimum if x.op == "min" else np.maximum
        return limit(low, args[1][0]), limit(high, args[1][1])
    if x.op in ("add", "sub") and x.dtype is DType.INT32:
        return _whole(low, high, *args[1], x.op)
    if x.dtype is DType.FLOAT32:
        return _real(x, args)
    raise Unknown


def _real(x: Call, args: list[Ends]) -> Ends:
    """Of a float32 made of floats."""
    low, high = args[0]
    if x.op == "neg":
        return -high, -low
    if x.op in ("abs", "softplus_rest"):
        across = (low < 0) & (high > 0)
        sizes = np.abs(low), np.abs(high)
        least, most = np.where(across, 0.0, np.minimum(*sizes)), np.maximum(*sizes)
        falling = SCALAR_OPS[x.op].numpy
        return (least, most) if x.op == "abs" else _library(falling(most), falling(least))
    if x.op == "sub":
        return _single(low - args[1][1], high - args[1][0], x.dtype)
    if x.op in _ROUNDED:
        if x.op == "div" and ((args[1][0] <= 0) & (args[1][1] >= 0)).any():
            raise Unknown
        corners = [_ROUNDED[x.op](a, b) for a in args[0] for b in args[1]]
        return _single(np.minimum.reduce(corners), np.maximum.reduce(corners), x.dtype)
    if x.op == "sqrt":
        return _single(np.sqrt(low), np.sqrt(high), x.dtype)
    if x.op in _EXACT:
        function = SCALAR_OPS[x.op].numpy
        return function(low), function(high)
    if x.op in _RISING or (x.op in _ANY and all((a == b).all() for a, b in args)):
        function = SCALAR_OPS[x.op].numpy
        return _library(*(function(*(end[k] for end in args)) for k in (0, 1)))
    raise Unknown


def _whole(low: np.ndarray, high: np.ndarray, least: np.ndarray, most: np.ndarray, op: str) -> Ends:
    """The sum or difference of integers of 32 bits."""
    return _fitting(*((low + least, high + most) if op == "add" else (low - most, high - least)), DType.INT32)


def _fitting(low: np.ndarray, high: np.ndarray, dtype: DType) -> Ends:
    if low.min() < dtype.limits[0] or high.max() > dtype.limits[1]:
        raise Unknown
    return low, high


def _contracted(x: Call, operand: Expr, ends: Ends) -> Ends:
    """An operand of a sum that is a product may have been left as it is, not rounded."""
    if x.op not in ("add", "sub") or not x.dtype.is_float or not _is_product(operand):
        return ends
    return _next(ends[0], -np.inf), _next(ends[1], np.inf)


def _is_product(x: Expr) -> bool:
    """Also one of two, whose branches a compiler may move to what reads it."""
    passing = ("select", "neg", "abs", "min", "max")
    return isinstance(x, Call) and (x.op == "mul" or (x.op in passing and any(map(_is_product, x.args))))


def _next(x: np.ndarray, towards: float) -> np.ndarray:
    moved: np.ndarray = np.nextafter(x.astype(np.float32), np.float32(towards)).astype(np.float64)
    return moved


def _single(low: np.ndarray, high: np.ndarray, dtype: DType) -> Ends:
    """Rounded to the nearest float32. What was rounded to float64 before is not another one for it."""
    if dtype is not DType.FLOAT32:
        raise Unknown
    return low.astype(np.float32).astype(np.float64), high.astype(np.float32).astype(np.float64)


def _library(low: np.ndarray, high: np.ndarray) -> Ends:
    error = LIBRARY * 2.0**-23
    return (
        _next(low - error * np.abs(np.where(np.isinf(low), 0, low)), -np.inf),
        _next(high + error * np.abs(np.where(np.isinf(high), 0, high)), np.inf),
    )


def _condition(op: str, args: list[Ends]) -> Ends:
    if op in _COMPARED:
        compared, ((a, b), (c, d)) = _COMPARED[op], args
        return compared(b, c), compared(a, d)
    if op == "not":
        surely, possibly = args[0]
        return ~possibly, ~surely
    if op in ("and", "or"):
        both = np.logical_and if op == "and" else np.logical_or
        return both(args[0][0], args[1][0]), both(args[0][1], args[1][1])
    raise Unknown


def _chosen(condition: Ends, yes: Ends, no: Ends) -> Ends:
    surely, possibly = condition
    ends = [np.where(surely, a, np.where(possibly, pick(a, b), b))
            for pick, a, b in zip((np.minimum, np.maximum), yes, no, strict=True)]  # fmt: skip
    return ends[0], ends[1]
