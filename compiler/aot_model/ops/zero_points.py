"""Zero points that kernels do not have. Of weights, one for each output channel, where kernels know one for
all of them:

    sum (x - zx) (w - z[c])  =  sum (x - zx) (w - m)  -  (z[c] - m) sum (x - zx)

m is the middle of the weights' type, which makes signed bytes of them. The sums of x are those of a
channel of ones; they come before the product, so that what is left is done to its results at once.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.reduction import WideSum
from aot_model.ops.registry import Build


def middle(weights: DType) -> int:
    """The zero point of signed and of unsigned weights that are symmetric."""
    low, high = weights.limits
    return int(low + high + 1) // 2


def row_sums(build: Build, x: Value, zero: Value | None, axis: int = -1) -> Value:
    """Sums over an axis of integers less a zero point (int32, one), as int32 with 1 in its place."""
    sums = build(WideSum((axis % x.type.rank,), True), x)
    if zero is None:
        return sums
    return build(op("Sub"), sums, build(op("Mul"), zero, build.constant(x.shape[axis], DType.INT32)))


def product_of_pairs(build: Build, a: Value, b: Value, a_zero: int, b_zero: int) -> Value:
    """Sums of products of 16-bit tensors less their zero points, where kernels take int16 as it is and uint16
    less 32768 (fa, fb):

        sum (a - za) (b - zb)  =  sum (a - fa) (b - fb)  -  (zb - fb) sum (a - za)  -  (za - fa) sum (b - fb)
    """
    less = []
    for x, zero, axis, by in (
        (a, a_zero, -1, b_zero - _of_kernels(b)),
        (b, _of_kernels(b), -2, a_zero - _of_kernels(a)),
    ):
        if by:
            sums = build(Cast(DType.INT64), row_sums(build, x, build.constant(zero, DType.INT32), axis))
            less.append(build(op("Mul"), sums, build.constant(by, DType.INT64)))
    acc = build(MatMul(_of_kernels(a), _of_kernels(b)), a, b)
    for sums in less:
        acc = build(op("Sub"), acc, sums)
    return acc


def _of_kernels(x: Value) -> int:
    return 32768 if x.dtype is DType.UINT16 else 0


def ones(build: Build, w: Value) -> Value:
    """Weights (1, I, …) that sum what a window reads, for weights (O, I, …)."""
    return build.constant(np.ones((1, *w.shape[1:])), DType.INT8)
