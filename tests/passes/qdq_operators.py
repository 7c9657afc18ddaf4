"""Operators of quantised tensors that fuse_qdq has rules for, one network each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from qdq_network import Net


def conv(n: Net) -> str:
    bias = n.constant(n.rng.uniform(-1, 1, 4))
    return n.op(
        "Relu",
        n.op(
            "Conv",
            n.input(1, 3, 7, 6),
            n.weights(4, 3, 3, 3, axis=0),
            bias,
            pads=[1, 1, 0, 1],
            strides=[2, 1],
        ),
    )


def depthwise(n: Net) -> str:
    y = n.op("Conv", n.input(1, 4, 6, 6), n.weights(4, 1, 3, 3), group=4)
    return n.op("Clip", y, n.constant(-0.5), n.constant(1.0))


def transposed(n: Net) -> str:
    return n.op("ConvTranspose", n.input(1, 3, 4, 4), n.weights(3, 2, 2, 2), strides=[2, 2])


def gemm(n: Net) -> str:
    return n.op("Gemm", n.input(2, 9), n.weights(5, 9, axis=0), n.constant(n.rng.uniform(-1, 1, 5)), transB=1)


def dense(n: Net) -> str:
    return n.op(
        "Add", n.op("MatMul", n.input(2, 9), n.weights(9, 5, axis=1)), n.constant(n.rng.uniform(-1, 1, 5))
    )


def attention(n: Net) -> str:
    return n.op("MatMul", n.input(2, 3, 5), n.input(2, 5, 4))


def add(n: Net) -> str:
    return n.op("Relu", n.op("Add", n.input(2, 5), n.input(5)))


def sub(n: Net) -> str:
    return n.op("Sub", n.input(2, 5), n.input(2, 5))


def mul(n: Net) -> str:
    return n.op("Mul", n.input(2, 5), n.input(2, 1))


def concat(n: Net) -> str:
    return n.op("Concat", n.input(2, 3), n.input(2, 4), axis=1)


def global_pool(n: Net) -> str:
    return n.op("GlobalAveragePool", n.input(1, 3, 5, 4))


def mean(n: Net) -> str:
    return n.op("ReduceMean", n.input(2, 6, 5), n.constant([1], "int64"), keepdims=0)


def moved(n: Net) -> str:
    x = n.op("MaxPool", n.input(1, 2, 6, 6), kernel_shape=[2, 2], strides=[2, 2])
    return n.op("Reshape", n.op("Transpose", x, perm=[0, 2, 3, 1]), n.constant([1, -1], "int64"))


def pool(n: Net) -> str:
    return n.op("AveragePool", n.input(1, 2, 6, 6), kernel_shape=[2, 3], strides=[2, 1])


def table(n: Net) -> str:
    x = n.input(2, 40)
    return n.op("Mul", x, n.op("Sigmoid", n.op("Add", x, n.constant(0.25))))


def softmax(n: Net) -> str:
    return n.op("Softmax", n.input(3, 7), axis=-1)


def softmax_of_channels(n: Net) -> str:
    return n.op("Softmax", n.input(2, 7, 3, 4), axis=1)


def resized(n: Net, mode: str, scales: list[float], **attributes: object) -> str:
    return n.op("Resize", n.input(1, 2, 4, 5), "", n.constant([1, 1, *scales]), mode=mode, **attributes)


def nearest(n: Net) -> str:
    return resized(n, "nearest", [2, 1.5])


def twice_as_large(n: Net) -> str:
    return n.op("Clip", resized(n, "linear", [2, 2]), n.constant(-0.5), n.constant(1.0))


def between_corners(n: Net) -> str:
    return resized(n, "linear", [2, 1], coordinate_transformation_mode="align_corners")


def cubic(n: Net) -> str:
    return resized(n, "cubic", [1, 2])


def larger(n: Net) -> str:
    return n.op("Max", n.input(2, 5), n.input(5), n.constant(n.rng.uniform(-1, 1, 5)))


def largest(n: Net) -> str:
    return n.op("ReduceMax", n.input(2, 6, 5), n.constant([1], "int64"))


def smallest(n: Net) -> str:
    return n.op("Relu", n.op("ReduceMin", n.input(2, 6, 5), n.constant([2], "int64"), keepdims=0))


def total(n: Net) -> str:
    return n.op("ReduceSum", n.input(2, 6, 5), n.constant([0, 2], "int64"))


def one_of_two(n: Net) -> str:
    condition = n.op("Greater", n.constant(n.rng.uniform(-1, 1, (2, 5))), n.constant(0.0))
    return n.op("Relu", n.op("Where", condition, n.input(2, 5), n.input(5)))


def one_or_a_number(n: Net) -> str:
    condition = n.op("Greater", n.constant(n.rng.uniform(-1, 1, (2, 5))), n.constant(0.0))
    return n.op("Where", condition, n.constant(-0.5), n.input(2, 5))


def from_one(n: Net) -> str:
    return n.op("Sub", n.weights(1), n.input(2, 40))


def bent(n: Net) -> str:
    slopes = n.rng.uniform(-0.5, 1, (3, 1)) if n.kind != "int16" else np.asarray([[0.37]])
    return n.op("PRelu", n.input(2, 3, 9), n.constant(slopes))


def leaky(n: Net) -> str:
    return n.op("LeakyRelu", n.input(2, 40), alpha=0.17)


def global_largest(n: Net) -> str:
    return n.op("GlobalMaxPool", n.input(1, 3, 5, 4))


def positive(n: Net) -> str:
    """Another reader of the same dequantised tensor is beside it."""
    x = n.input(2, 40)
    return n.op("Add", n.op("DequantizeLinear", *n.quantised_with(n.op("Relu", x))), x)


BYTE_ONLY: tuple[Callable[[Net], str], ...] = (pool,)
CASES = (
    conv,
    depthwise,
    transposed,
    gemm,
    dense,
    attention,
    add,
    sub,
    mul,
    concat,
    global_pool,
    mean,
    moved,
    softmax,
    pool,
    table,
    nearest,
    twice_as_large,
    between_corners,
    cubic,
    larger,
    largest,
    smallest,
    global_largest,
    total,
    one_of_two,
    one_or_a_number,
    from_one,
    bent,
    leaky,
    positive,
    softmax_of_channels,
)
