"""Cases of fuse_qdq that lack what a rule asks for: constants, one scale, integers of so many bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pass_case import PassCase, drawn, made, numbers, tensor
from qdq_cases import INT64, ODD, Net

from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.passes.fuse_qdq import fuse_qdq
from graphs import Maker

BYTE = DType.INT8
ROWS = tensor("q", 2, 9, dtype=BYTE)
IMAGE = tensor("q", 1, 3, 4, 4, dtype=BYTE)
WIDE = tensor("q", 1, 2, 4, 4, dtype=DType.INT32)


def _case(function: Callable[..., Value], *inputs: Value) -> PassCase:
    """function(net, the first input dequantised, others as they are) quantised."""

    def build(m: Maker, q: Value, *others: Value) -> Value:
        n = Net(m, ODD)
        zero = [] if q.dtype is DType.INT32 else [numbers(3, q.dtype.numpy)]
        return n.quantised(function(n, m.DequantizeLinear(q, numbers(0.0173), *zero), *others))

    return PassCase(fuse_qdq, made(build, *inputs), tolerance=1e-6, units=1)


def _by_channel(function: Callable[[Net, Value], Value], image: Value = IMAGE) -> PassCase:
    """Of a tensor with a scale for each channel."""

    def build(m: Maker, q: Value) -> Value:
        n, channels = Net(m, ODD), q.shape[1]
        scales, zeros = numbers(0.01 * (1 + np.arange(channels))), numbers(np.arange(channels), "int8")
        return n.quantised(function(n, m.DequantizeLinear(q, scales, zeros, axis=1)))

    return PassCase(fuse_qdq, made(build, image), tolerance=1e-6, units=1)


def _columns(n: Net, q: Value) -> Value:
    """The second operand of a product, with a scale for each column."""
    return n.m.DequantizeLinear(q, numbers([0.01, 0.02]), numbers([0, 0], "int8"), axis=1)  # type: ignore[no-any-return]


def _result(*others: Any, **attributes: Any) -> PassCase:
    def build(m: Maker, q: Value, *given: Value) -> Value:
        return m.QuantizeLinear(m.Relu(Net(m, ODD).x(q)), *(others or given), **attributes)  # type: ignore[no-any-return]

    inputs = () if others else (tensor("s"), tensor("z", dtype=BYTE))
    return PassCase(fuse_qdq, made(build, ROWS, *inputs), units=1)


def _nibbles(*shape: int) -> Callable[[Net], Value]:
    return lambda n: n.m.DequantizeLinear(
        numbers(np.arange(np.prod(shape)).reshape(shape) % 3 - 1, DType.INT4.numpy), numbers(0.36)
    )


REFUSED = {
    "weights from outside": _case(
        lambda n, x, w: n.m.Conv(x, n.y(w)), IMAGE, tensor("w", 2, 3, 1, 1, dtype=BYTE)
    ),
    "columns from outside": _case(
        lambda n, x, w: n.m.MatMul(x, _columns(n, w)), ROWS, tensor("w", 9, 2, dtype=BYTE)
    ),
    "bias of a convolution from outside": _case(
        lambda n, x, b: n.m.Conv(x, n.weights(2, 3, 1, 1), b), IMAGE, tensor("b", 2)
    ),
    "bias with a scale below 0": _case(
        lambda n, x: n.m.Gemm(
            x, n.weights(9, 2), n.m.DequantizeLinear(numbers([90, -70], "int32"), numbers(-0.01))
        ),
        ROWS,
    ),
    "bias between units of weights of 4 bits": _case(
        lambda n, x: n.m.Gemm(x, _nibbles(9, 2)(n), numbers([0.011, -0.017])), ROWS
    ),
    "scale of the result from outside": _result(),
    "several zero points of the result": _result(numbers([0.1]), numbers(np.arange(9), "int8"), axis=1),
    "mean of channels with scales of their own": _by_channel(lambda n, x: n.m.GlobalAveragePool(x)),
    "softmax of channels with scales of their own": _by_channel(lambda n, x: n.m.Softmax(x, axis=1)),
    "channels with scales of their own, padded": _by_channel(
        lambda n, x: n.m.Pad(x, numbers([0, 0, 1, 1, 0, 0, 0, 0], INT64))
    ),
    "mean of a scalar": _case(lambda n, x: n.m.ReduceMean(x), tensor("q", dtype=BYTE)),
    "mean over axes, and over none without any": _case(
        lambda n, x: n.m.ReduceMean(x, numbers([-1], INT64), noop_with_empty_axes=1), ROWS
    ),
    "32 bits padded": _case(lambda n, x: n.m.Pad(x, numbers([0, 0, 1, 1, 0, 0, 0, 0], INT64)), WIDE),
    "32 bits doubled": _case(lambda n, x: n.m.Add(x, x), WIDE),
    "32 bits joined": _case(lambda n, x: n.m.Concat(x, x, axis=0), WIDE),
    "a constant of 4 bits added": _case(lambda n, x: n.m.Add(_nibbles(2, 9)(n), x), ROWS),
    "a constant of 4 bits is the first operand": _case(lambda n, x: n.m.MatMul(_nibbles(3, 2)(n), x), ROWS),
    "largest, and their places": PassCase(
        fuse_qdq,
        made(
            lambda m, q: [
                Net(m, ODD).quantised((both := m.MaxPool(Net(m, ODD).x(q), kernel_shape=(2, 2)))[0]),
                both[1],
            ],
            IMAGE,
        ),
    ),
    "a constant without a zero point": PassCase(
        fuse_qdq,
        made(
            lambda m, x: m.Add(x, m.DequantizeLinear(numbers([4, -3], "int8"), numbers(0.5))), tensor("x", 2)
        ),
    ),
    "function of several elements": _case(lambda n, x: n.m.Relu(n.m.Mul(x, drawn(3, 2, 9))), ROWS),
}
CASES = {f"fuse_qdq: {name}": case for name, case in REFUSED.items()}
