"""Weights with a zero point for each output channel, where kernels know one for all of them:

    sum (x - zx) (w - z[c])  =  sum (x - zx) (w - m)  -  (z[c] - m) sum (x - zx)

m is the middle of the weights' type, which makes signed bytes of them. The sums of x are those of a
channel of ones; they come before the product, so that what is left is done to its results at once.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.elementwise import op
from aot_model.ops.reduction import WideSum
from aot_model.ops.registry import Build


def middle(weights: DType) -> int:
    """The zero point of signed and of unsigned weights that are symmetric."""
    low, high = weights.limits
    return int(low + high + 1) // 2


def row_sums(build: Build, x: Value, zero: Value | None) -> Value:
    """Sums over the last axis of integers less a zero point (int32, one), as int32 (..., 1)."""
    sums = build(WideSum((x.type.rank - 1,), True), x)
    if zero is None:
        return sums
    return build(op("Sub"), sums, build(op("Mul"), zero, build.constant(x.shape[-1], DType.INT32)))


def ones(build: Build, w: Value) -> Value:
    """Weights (1, I, …) that sum what a window reads, for weights (O, I, …)."""
    return build.constant(np.ones((1, *w.shape[1:])), DType.INT8)
