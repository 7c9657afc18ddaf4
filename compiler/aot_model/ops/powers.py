"""Powers of floats by products and roots."""

from __future__ import annotations

from functools import reduce

import numpy as np

from aot_model.ir.expr import Expr, call, const
from aot_model.ir.types import DType

HARDLY = 1e-6
"""What an exponent may be beside a few quarters: exporters write a distance as the sum's power of
1 / (2 + 1e-6).
"""


MOST_FACTORS = 8
"""Of a power by products: the result is right to four units in the last place."""


def power(base: Expr, exponent: float) -> Expr:
    """base ^ exponent; by products and roots where the exponent is a few quarters or a small whole number:
    each is right to half a unit in the last place, and all take a fraction of the function's time. x ^ rest
    is 1 + rest log(x), to 4e-9, where an exponent is hardly more or less.
    """

    def one(value: float) -> Expr:
        return const(value, base.dtype)

    if exponent.is_integer() and 0 < abs(exponent) <= MOST_FACTORS:
        return _product(base if exponent > 0 else call("div", one(1), base), int(abs(exponent)))
    if -1 < exponent < 0 and (exponent * 4).is_integer():
        # of -0, of which a root is -0, the result is infinity
        return call("abs", call("div", one(1), power(base, -exponent)))
    quarters = round(exponent * 4) if 0 < exponent < 4 else 0
    rest = exponent - quarters / 4
    if not 0 < quarters <= 12 or (rest and (abs(rest) > HARDLY or base.dtype is not DType.FLOAT32)):
        return call("pow", base, one(exponent))
    root = call("sqrt", base)
    factors = [base] * (quarters // 4) + [root] * (quarters // 2 % 2) + [call("sqrt", root)] * (quarters % 2)
    product = reduce(lambda a, b: call("mul", a, b), factors)
    if not rest:
        return product
    ends = np.finfo(np.float32)
    log = call("log", call("min", call("max", base, one(float(ends.tiny))), one(float(ends.max))))
    return call("mul", product, call("add", one(1), call("mul", one(rest), log)))


def _product(x: Expr, times: int) -> Expr:
    """x ^ times, by squares."""
    if times == 1:
        return x
    half = _product(x, times // 2)
    square = call("mul", half, half)
    return call("mul", square, x) if times % 2 else square
