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


def power(base: Expr, exponent: float) -> Expr:
    """base ^ exponent; by products and roots where the exponent is a few quarters: each is right to half a
    unit in the last place, and all take a fraction of the function's time. x ^ rest is 1 + rest log(x), to
    4e-9, where an exponent is hardly more or less.
    """

    def one(value: float) -> Expr:
        return const(value, base.dtype)

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
