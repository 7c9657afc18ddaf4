"""Quantised arithmetic by its definition, in fractions and Python integers: for the operators' `reference`.

Nothing here is shared with what is compiled (arithmetic/fixed_point.py, the scalar operations), so that a
slip there shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Array = np.ndarray
HALF = Fraction(1, 2)


def up(x: Fraction) -> int:
    """The nearest integer, ties up."""
    return math.floor(x + HALF)


def away(x: Fraction) -> int:
    """The nearest integer, ties away from zero."""
    return up(x) if x >= 0 else -up(-x)


def within(x: int, bits: int) -> int:
    """The nearest signed integer of so many bits."""
    half: int = 2 ** (bits - 1)
    return clamped(x, -half, half - 1)


def modulo(x: int, bits: int = 32) -> int:
    """What is left of x in a signed word."""
    return int.from_bytes((x % 2**bits).to_bytes(bits // 8, "little"), "little", signed=True)


def product(a: int, b: int) -> int:
    """a * b of numbers in Q0.31, ties up."""
    return within(up(Fraction(a * b, 2**31)), 32)


def rescale(x: int, multiplier: int, shift: int, rounding: str = "double") -> int:
    """x * multiplier * 2^(shift - 31), rounded as the name says; "wide": the multiplier has 16 bits less."""
    if rounding == "double":
        high = product(modulo(x * 2 ** max(shift, 0)), multiplier)
        return away(Fraction(high, 2 ** max(-shift, 0)))
    exact = Fraction(x * multiplier) * Fraction(2) ** (shift - (15 if rounding == "wide" else 31))
    return round(exact) if rounding == "even" else up(exact)


def clamped(x: int, low: int, high: int) -> int:
    return low if x < low else high if x > high else x


def by_element(function: Callable[..., int], dtype: np.dtype[Any], *arrays: Any) -> list[Array]:
    """One output: a function of Python integers for each element of arrays that broadcast."""
    grids = np.broadcast_arrays(*arrays)
    flat = [
        function(*(int(v) for v in row)) for row in zip(*(g.reshape(-1).tolist() for g in grids), strict=True)
    ]
    return [np.asarray(flat, dtype=object).astype(dtype).reshape(grids[0].shape)]


def multiplier(real: float) -> tuple[int, int]:
    """A real factor as (multiplier of 31 bits, shift)."""
    fraction, shift = math.frexp(real)
    whole = away(Fraction(fraction) * 2**31)
    return (2**30, shift + 1) if whole == 2**31 else (whole, shift)


# --- functions of fixed-point numbers, as TensorFlow Lite Micro defines them --------------------------------


def exponential(a: int) -> int:
    """exp(a) in Q0.31 for a <= 0 in Q5.26: by powers of two down to [-1/4, 0), there a polynomial around
    -1/8.
    """
    if a == 0:
        return 2**31 - 1
    small = a % 2**24 - 2**24
    x = small * 32 + 2**28
    square = product(x, x)
    cubic = product(
        away(Fraction(product(square, square), 4)) + product(square, x), round(Fraction(2**31, 3))
    )
    centre = round(math.exp(-1 / 8) * 2**31)
    result = within(centre + product(centre, x + away(Fraction(cubic + square, 2))), 32)
    for k in range(7):
        if (small - a) // 2 ** (24 + k) % 2:
            result = product(result, round(math.exp(-(2.0 ** (k - 2))) * 2**31))
    return result


def _newton(a: int) -> int:
    """2 / (1 + a) in Q2.29 of a in Q0.31: Newton's method from 48/17 - 32/17 x, three steps."""
    half = away(Fraction(a + 2**31 - 1, 2))
    x = round(Fraction(48 * 2**29, 17)) + product(half, -round(Fraction(32 * 2**29, 17)))
    for _ in range(3):
        x += within(4 * product(x, 2**29 - product(half, x)), 32)
    return x


def inverse_of_one_plus(a: int) -> int:
    """1 / (1 + a) in Q0.31."""
    return within(2 * _newton(a), 32)


def ratio_of_one_minus_to_one_plus(a: int) -> int:
    """(1 - a) / (1 + a) in Q0.31."""
    return within(4 * (_newton(a) - 2**29), 32)


def exponential_of_difference(difference: int, factor: float) -> int:
    """exp(difference * factor) in Q0.31 for a difference <= 0; 0 beyond what Q5.26 holds."""
    m, s = multiplier(min(factor * 2**26, 2.0**31 - 1))
    return exponential(rescale(difference, m, s)) if -difference <= math.floor(31 * 2**26 / 2.0**s) else 0


def normalised_inverse(total: int) -> tuple[int, int]:
    """(1 / total normalised to [1, 2) in Q0.31, leading zeros of total)."""
    zeros = 32 - total.bit_length()
    return inverse_of_one_plus(total * 2**zeros - 2**31), zeros


def softmax(row: list[int], factor: float, bits: int) -> list[int]:
    """Shares of exp(x * factor), scaled to 2^bits and moved to the signed range."""
    powers = [exponential_of_difference(x - max(row), factor) for x in row]
    inverse, zeros = normalised_inverse(sum(away(Fraction(p, 2**12)) for p in powers))
    return [
        within(away(Fraction(product(inverse, p), 2 ** (43 - bits - zeros))) - 2 ** (bits - 1), bits)
        for p in powers
    ]
