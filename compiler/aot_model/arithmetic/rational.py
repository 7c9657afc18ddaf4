"""tanh and the logistic function of float32 as ONNX Runtime computes them: a quotient of two polynomials.

The functions are minimax approximations by an odd polynomial over an even one. The coefficients are constants
that Eigen (Core/MathFunctionsImpl.h) and ONNX Runtime (core/mlas/lib/tanh.cpp, logistic.cpp) publish; each
step of Horner's scheme is a multiplication and an addition that are rounded once. Results are equal bit for
bit to those of ONNX Runtime 1.31 on x86-64 with FMA. runtime/include/aot_model/rational.h is the same in C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any

TANH_RANGE, LOGISTIC_RANGE = 9.0, 18.0
"""Beyond, the functions are constant to the last bit or nearly so; arguments are clamped to it."""
TANH_ODD = (
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
TANH_EVEN = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
LOGISTIC_ODD = (
    4.37031012579801e-11,
    1.15627324459942e-07,
    6.08574864600143e-05,
    8.51377133304701e-03,
    2.48287947061529e-01,
)
LOGISTIC_EVEN = (
    6.10247389755681e-13,
    5.76102136993427e-09,
    6.29106785017040e-06,
    1.70198817374094e-03,
    1.16817656904453e-01,
    9.93151921023180e-01,
)
"""From the highest power down; of the odd polynomials a factor x is taken out."""


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of float32, rounded once."""
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)  # exact: 48 bits
    c = np.asarray(c, np.float64)
    total = product + c
    # Rounded to odd, so that the second rounding, to float32, is that of the exact sum.
    back = total - product
    lost = (product - (total - back)) + (c - back)
    inexact = (
        np.isfinite(lost)
        & (lost != 0)
        & (np.atleast_1d(total).view(np.int64).reshape(np.shape(total)) % 2 == 0)
    )
    return np.where(inexact, np.nextafter(total, np.where(lost > 0, np.inf, -np.inf)), total).astype(
        np.float32
    )


def _quotient(x: Array, odd: Sequence[float], even: Sequence[float], limit: float) -> Array:
    x = np.asarray(x, np.float32)
    x = np.where(x < -limit, np.float32(-limit), np.where(x > limit, np.float32(limit), x)).astype(np.float32)

    def horner(coefficients: Sequence[float]) -> Array:
        total: Array = np.float32(coefficients[0])
        for c in coefficients[1:]:
            total = multiply_add(total, square, np.float32(c))
        return total

    with np.errstate(invalid="ignore"):  # NaN that signal
        square = x * x
        return (horner(odd) * x) / horner(even)


def tanh(x: Array) -> Array:
    return _quotient(x, TANH_ODD, TANH_EVEN, TANH_RANGE)


def logistic(x: Array) -> Array:
    y = _quotient(x, LOGISTIC_ODD, LOGISTIC_EVEN, LOGISTIC_RANGE) + np.float32(0.5)
    return np.where(y < 0, np.float32(0), y)
