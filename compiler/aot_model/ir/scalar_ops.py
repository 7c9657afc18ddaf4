"""The table of scalar operations: what each means in numpy and how it is written in C.

One row per operation. In the C texts {0}, {1}, {2} are the operands (parenthesised where needed), {t} is the
C type of the result, {f} the suffix of libm's names for its width ("f" for float). A row may have a text for
floating point and one for integers. Integer texts must not overflow: `wrap` marks the operations that are
computed in the unsigned type unless the ranges of the operands show that they cannot overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aot_model.arithmetic import fixed_point, rational
from aot_model.ir.admissible import SHIFTS

Array = Any

APART = "_apart"
"""Behind the name of a function whose steps round products and sums one by one: near to it, and faster on
some cores."""


@dataclass(frozen=True)
class ScalarOp:
    """numpy meaning; C text for floats and integers; precedence of the text (see c/expr.py); header it
    needs.
    """

    numpy: Callable[..., Array]
    c_float: str | None = None
    c_int: str | None = None
    infix: str | None = None
    wrap: bool = False
    header: str | None = None
    """Where the functions of aot-model that the text calls are, if not in aot_model/scalar.h."""
    domain: tuple[tuple[int, tuple[int, int]], ...] = ()
    """Of operands for which the C text is not defined everywhere: (which, (least, greatest))."""
    c_small: str | None = None
    """Cheaper C text for a first operand that is small (c/expr.py)."""


def _c_div(a: Array, b: Array) -> Array:
    """Division as C does it: integers truncate towards zero; division by zero gives 0."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "iu":
        return a / b
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    with np.errstate(over="ignore"):  # the least one by -1 is itself
        quotient, rest = a // safe, a % safe
    towards_zero = quotient + ((rest != 0) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, 0, towards_zero).astype(a.dtype)


def _erf(x: Array) -> Array:
    from math import erf

    return np.vectorize(erf, otypes=[np.asarray(x).dtype])(x)


def _fmod(a: Array, b: Array) -> Array:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "iu":
        return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b)))
    return np.fmod(a, b)


def _mod(a: Array, b: Array) -> Array:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "iu":
        return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))
    return np.mod(a, b)


def _add_high(bits: int) -> Callable[..., Array]:
    """a + (b * c >> bits) of int32, without overflow."""

    def added(a: Array, b: Array, c: Array) -> Array:
        high = np.asarray(b, np.int64) * np.asarray(c, np.int64) >> bits
        return (np.asarray(a, np.int64) + high).astype(np.int32)

    return added


def _shift_left(a: Array, b: Array) -> Array:
    bits = np.asarray(a).dtype.itemsize * 8
    inside = (b >= 0) & (b < bits)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0).astype(np.asarray(a).dtype)), 0).astype(
        np.asarray(a).dtype
    )


def _shift_right(a: Array, b: Array) -> Array:
    """Arithmetic for signed types; all bits go by a negative number or by the width or more."""
    a = np.asarray(a)
    bits = a.dtype.itemsize * 8
    inside = (b >= 0) & (b < bits)
    gone = np.where(a < 0, -1, 0) if a.dtype.kind == "i" else np.zeros_like(a)
    return np.where(inside, np.right_shift(a, np.where(inside, b, 0).astype(a.dtype)), gone).astype(a.dtype)


def _round_away(x: Array) -> Array:
    """Nearest integer, ties away from zero."""
    x = np.asarray(x)
    whole = np.trunc(x)
    return whole + (np.abs(x - whole) >= 0.5) * np.sign(x)


def _quantised(nearest: Callable[[Array], Array]) -> Callable[..., Array]:
    """Of float32: the nearest whole number plus a zero point, within limits; NaN is as 0."""

    def function(x: Array, zero: Array, low: Array, high: Array) -> Array:
        number = np.where(np.isnan(x), 0.0, np.asarray(x, np.float64))
        inside = np.clip(number, np.asarray(low) - zero, np.asarray(high) - zero)
        return (nearest(inside) + zero).astype(np.int32)

    return function


def _by_doubles(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of float32 and narrower by way of float64: numpy's own differ in their last place with the
    vectors of the processor, which rounding takes away.
    """

    def rounded(*args: Array) -> Array:
        arrays = [np.asarray(a) for a in args]
        dtype = np.result_type(*arrays)
        if dtype.kind != "f" or dtype.itemsize > 4:
            return function(*args)
        with np.errstate(all="ignore"):
            return function(*(a.astype(np.float64) for a in arrays)).astype(dtype)

    return rounded


def _power(a: Array, b: Array) -> Array:
    """Of integers to negative powers what C computes: 0, but of 1 and -1."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
        return _by_doubles(np.power)(a, b)
    inverse = (
        np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)) if a.dtype.kind == "i" else a
    )
    return np.where(b < 0, inverse, np.power(a, np.where(b < 0, 0, b).astype(b.dtype))).astype(a.dtype)


def _libm(name: str, numpy: Any) -> ScalarOp:
    return ScalarOp(_by_doubles(numpy), c_float=f"{name}{{f}}({{0}})")


def requantise(acc: Array, multiplier: Array, shift: Array) -> Array:
    """Rounding of TensorFlow Lite Micro: doubling high multiply (ties up), then rounding shift (ties away
    from zero).

    Source: the operator kernels' MultiplyByQuantizedMultiplier, "double rounding" form. `shift` > 0 is to the
    left.
    """
    acc, multiplier, shift = (np.asarray(v, dtype=np.int64) for v in (acc, multiplier, shift))
    high = ((acc << np.maximum(shift, 0)) * multiplier + (1 << 30)) >> 31
    right = np.maximum(-shift, 0)
    mask = (np.int64(1) << right) - 1
    threshold = (mask >> 1) + (high < 0)
    return ((high >> right) + ((high & mask) > threshold)).astype(np.int32)


def requantise_single(acc: Array, multiplier: Array, shift: Array) -> Array:
    """Single rounding, ties up: (acc * multiplier + 2^(30 - shift)) >> (31 - shift). int16 activations use
    it.
    """
    acc, multiplier, shift = (np.asarray(v, dtype=np.int64) for v in (acc, multiplier, shift))
    total = 31 - shift
    return ((acc * multiplier + (np.int64(1) << (total - 1))) >> total).astype(np.int32)


def requantise_even(acc: Array, multiplier: Array, shift: Array) -> Array:
    """Single rounding, ties to even, as floats are rounded."""
    acc, multiplier, shift = (np.asarray(v, dtype=np.int64) for v in (acc, multiplier, shift))
    total = 31 - shift
    wide = acc * multiplier + (np.int64(1) << (total - 1))
    result = wide >> total
    return (result - ((wide & ((np.int64(1) << total) - 1)) == 0) * (result & 1)).astype(np.int32)


def requantise_wide(acc: Array, multiplier: Array, shift: Array) -> Array:
    """A 64-bit accumulator by a multiplier of 16 bits or more, ties up:
    (acc * multiplier + 2^(14 - shift)) >> (15 - shift).
    """
    acc, multiplier, shift = (np.asarray(v, dtype=np.int64) for v in (acc, multiplier, shift))
    total = 15 - shift
    return ((acc * multiplier + (np.int64(1) << (total - 1))) >> total).astype(np.int32)


def _exact(f: Callable[..., int]) -> Callable[..., Array]:
    """A function of exact Python integers, element by element."""
    return lambda *args: np.vectorize(lambda *v: f(*(int(e) for e in v)), otypes=[np.int32])(*args)


SCALAR_OPS: dict[str, ScalarOp] = {
    # arithmetic
    "add": ScalarOp(lambda a, b: a + b, infix="+", wrap=True),
    "sub": ScalarOp(lambda a, b: a - b, infix="-", wrap=True),
    "mul": ScalarOp(lambda a, b: a * b, infix="*", wrap=True),
    "div": ScalarOp(_c_div, c_float="{0} / {1}", c_int="aot_model_div_{d}({0}, {1})"),
    "mod": ScalarOp(_mod, c_float="aot_model_mod_{d}({0}, {1})", c_int="aot_model_mod_{d}({0}, {1})"),
    "fmod": ScalarOp(_fmod, c_float="fmod{f}({0}, {1})", c_int="aot_model_rem_{d}({0}, {1})"),
    "neg": ScalarOp(lambda a: -a, c_float="-{0}", c_int="({t})(0u - ({u}){0})"),
    "abs": ScalarOp(np.abs, c_float="fabs{f}({0})", c_int="aot_model_abs_{d}({0})"),
    "sign": ScalarOp(np.sign, c_float="aot_model_sign_{d}({0})", c_int="({t})(({0} > 0) - ({0} < 0))"),
    "min": ScalarOp(np.minimum, c_float="aot_model_min_{d}({0}, {1})", c_int="aot_model_min_{d}({0}, {1})"),
    "max": ScalarOp(np.maximum, c_float="aot_model_max_{d}({0}, {1})", c_int="aot_model_max_{d}({0}, {1})"),
    "pow": ScalarOp(_power, c_float="pow{f}({0}, {1})", c_int="aot_model_ipow_{d}({0}, {1})"),
    # libm
    **{
        name: _libm(name, fn)
        for name, fn in [
            ("tan", np.tan),
            ("asin", np.arcsin),
            ("acos", np.arccos),
            ("atan", np.arctan),
            ("sinh", np.sinh),
            ("cosh", np.cosh),
            ("asinh", np.arcsinh),
            ("acosh", np.arccosh),
            ("atanh", np.arctanh),
            ("ceil", np.ceil),
            ("trunc", np.trunc),
        ]
    },
    # by a core's instructions, where it has them
    **{
        name: ScalarOp(_by_doubles(fn), c_float=f"aot_model_{name}_{{d}}({{0}})", header="aot_model/roots.h")
        for name, fn in (("sqrt", np.sqrt), ("floor", np.floor))
    },
    # in single precision on a Cortex-M, libm elsewhere
    **{
        name: ScalarOp(_by_doubles(fn), c_float=f"aot_model_{name}_{{d}}({{0}})")
        for name, fn in (("exp", np.exp), ("expm1", np.expm1), ("log", np.log), ("log1p", np.log1p))
    },
    "softplus_rest": ScalarOp(
        _by_doubles(lambda x: np.log1p(np.exp(-np.abs(x)))), c_float="aot_model_softplus_rest_{d}({0})"
    ),
    **{
        name: ScalarOp(
            _by_doubles(fn), c_float=f"aot_model_{name}_{{d}}({{0}})", header="aot_model/circular.h"
        )
        for name, fn in (("sin", np.sin), ("cos", np.cos))
    },
    "tanh": ScalarOp(_by_doubles(np.tanh), c_float="aot_model_libm_tanh_{d}({0})"),
    "erf": ScalarOp(_erf, c_float="aot_model_erf_{d}({0})"),
    "rint": ScalarOp(np.rint, c_float="rint{f}({0})"),
    "round": ScalarOp(_round_away, c_float="round{f}({0})"),
    "sigmoid": ScalarOp(
        _by_doubles(lambda x: (1 / (1 + np.exp(-np.abs(x)))) * np.where(x < 0, np.exp(-np.abs(x)), 1)),
        c_float="aot_model_sigmoid_{d}({0})",
    ),
    **{
        f"rational_{name}{suffix}": ScalarOp(
            fn, c_float=f"aot_model_{name}{suffix}_float32({{0}})", header="aot_model/rational.h"
        )
        for name, fn in (("tanh", rational.tanh), ("logistic", rational.logistic))
        for suffix in ("", APART)
    },
    "isnan": ScalarOp(np.isnan, c_float="isnan({0})", c_int="false"),
    "isinf": ScalarOp(np.isinf, c_float="isinf({0})", c_int="false"),
    # comparison and logic
    "lt": ScalarOp(lambda a, b: a < b, infix="<"),
    "le": ScalarOp(lambda a, b: a <= b, infix="<="),
    "eq": ScalarOp(lambda a, b: a == b, infix="=="),
    "same_text": ScalarOp(lambda a, b: a == b),
    "and": ScalarOp(np.logical_and, infix="&&"),
    "or": ScalarOp(np.logical_or, infix="||"),
    "xor": ScalarOp(np.logical_xor, infix="!="),
    "not": ScalarOp(np.logical_not, c_float="!{0}", c_int="!{0}"),
    "select": ScalarOp(lambda c, a, b: np.where(c, a, b)),
    "cast": ScalarOp(lambda a: a),
    "bitcast": ScalarOp(lambda a: a),
    "cast_unbounded": ScalarOp(lambda a: a),
    "cast_up": ScalarOp(lambda a: a),
    # bits
    "bitand": ScalarOp(np.bitwise_and, infix="&"),
    "bitor": ScalarOp(np.bitwise_or, infix="|"),
    "bitxor": ScalarOp(np.bitwise_xor, infix="^"),
    "bitnot": ScalarOp(np.bitwise_not, c_int="({t})~{0}"),
    "shl": ScalarOp(_shift_left, c_int="aot_model_shl_{d}({0}, {1})"),
    "shr": ScalarOp(_shift_right, c_int="aot_model_shr_{d}({0}, {1})"),
    "sar": ScalarOp(np.right_shift, infix=">>", domain=((1, (0, 63)),)),
    # quantised arithmetic
    "requantise": ScalarOp(
        requantise,
        c_int="aot_model_requantise({0}, {1}, {2})",
        domain=((2, SHIFTS),),
        c_small="aot_model_requantise_small({0}, {1}, {2})",
    ),
    "requantise_single": ScalarOp(
        requantise_single, c_int="aot_model_requantise_single({0}, {1}, {2})", domain=((2, SHIFTS),)
    ),
    "requantise_even": ScalarOp(
        requantise_even, c_int="aot_model_requantise_even({0}, {1}, {2})", domain=((2, SHIFTS),)
    ),
    "requantise_wide": ScalarOp(
        requantise_wide, c_int="aot_model_requantise_wide({0}, {1}, {2})", domain=((2, (-31, 14)),)
    ),
    "add_scaled": ScalarOp(
        _add_high(16), c_int="aot_model_add_scaled({0}, {1}, {2})", domain=((2, (-32768, 32767)),)
    ),
    "add_high": ScalarOp(_add_high(32), c_int="aot_model_add_high({0}, {1}, {2})"),
    "high_multiply": ScalarOp(_exact(fixed_point.high_multiply), c_int="aot_model_high_multiply({0}, {1})"),
    "rounding_shift": ScalarOp(
        _exact(fixed_point.rounding_shift),
        c_int="aot_model_rounding_shift({0}, {1})",
        c_small="aot_model_rounding_shift_small({0}, {1})",
        domain=((1, (0, 31)),),
    ),
    "softmax_ratio": ScalarOp(
        _exact(fixed_point.softmax_ratio),
        c_int="aot_model_softmax_ratio({0}, {1}, {2}, {3})",
        domain=((3, (22, 35)),),
    ),
    "leading_zeros": ScalarOp(_exact(fixed_point.leading_zeros), c_int="aot_model_leading_zeros({0})"),
    "fixed_log": ScalarOp(_exact(fixed_point.natural_log), c_int="aot_model_fixed_log({0})"),
    "inverse_sqrt_multiplier": ScalarOp(
        _exact(fixed_point.inverse_sqrt_multiplier), c_int="aot_model_inverse_sqrt_multiplier({0})"
    ),
    "inverse_sqrt_shift": ScalarOp(
        _exact(fixed_point.inverse_sqrt_shift), c_int="aot_model_inverse_sqrt_shift({0})"
    ),
    "reciprocal": ScalarOp(
        _exact(fixed_point.reciprocal), c_int="aot_model_reciprocal({0})", domain=((0, (1, 2**31 - 1)),)
    ),
    "quantise_rint": ScalarOp(_quantised(np.rint), c_float="aot_model_quantise_rint({0}, {1}, {2}, {3})"),
    "quantise_round": ScalarOp(
        _quantised(_round_away), c_float="aot_model_quantise_round({0}, {1}, {2}, {3})"
    ),
    # index arithmetic (operands checked by the constructors in ir/expr.py)
    "idiv": ScalarOp(lambda a, n: a // n),
    "imod": ScalarOp(lambda a, n: a % n),
}
