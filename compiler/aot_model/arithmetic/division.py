"""Division of floats by a number that is known, as two products: x * low, rounded, then x * high added,
rounded once.

`high` + `low` is the reciprocal to 48 bits, so what the second rounding sees is off by 2^-47 of it: nearly
always it is what the quotient rounds to (Brisebarre, Muller and Raina, 2004). Where the quotient is rounded
to whole numbers, only quotients beside a half decide, and those few are compared one by one.
"""

from __future__ import annotations

from functools import cache

import numpy as np

_BESIDE = 4
"""Floats on each side of a half times the divisor: beyond them both quotients are on the same side."""


@cache
def two_products(divisor: float, low: int, high: int) -> tuple[float, float] | None:
    """(high, low) of a float32, where x / divisor and what the products give are the same on both sides of
    every half between whole numbers `low` and `high`; None where they are not, or for divisors whose products
    leave the range of normal floats. The second is 0 for powers of two, whose reciprocal is exact: one
    product will do.

    Neither part is negative for a positive divisor: of infinity they give infinity. The products are those of
    arithmetic that takes subnormal numbers for 0.
    """
    by = np.float64(np.float32(divisor))
    if not 2.0**-60 <= by <= 2.0**60:
        return None
    first = np.float32(1 / by)
    if np.float64(first) > 1 / by or np.float64(first) * by > 1:  # the product is exact: 48 bits
        first = np.nextafter(first, np.float32(0))
    second = np.float32((1 - np.float64(first) * by) / by)
    if second == 0:  # a power of two
        return float(first), 0.0
    halves = (np.arange(low, high, dtype=np.float64) + 0.5) * by
    nearest = halves.astype(np.float32).view(np.int32)
    beside = nearest[:, None] + np.arange(-_BESIDE, _BESIDE + 1, dtype=np.int32)
    x = beside.view(np.float32)
    summand = (x * second).astype(np.float64)
    product = x.astype(np.float64) * np.float64(first)
    total = product + summand
    rest = (product - (total - summand)) + (summand - (total - (total - summand)))
    rounded = total.astype(np.float32)
    unsure = rest != 0
    for towards in (-np.inf, np.inf):
        unsure_now = np.nextafter(total, towards).astype(np.float32) != rounded
        if np.any(unsure & unsure_now):
            return None
    if np.any(rounded != x / np.float32(divisor)):
        return None
    return float(first), float(second)
