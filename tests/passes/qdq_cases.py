"""Cases of fuse_qdq: every rule with scales and zero points of many kinds, at the edges of types, and what
no rule takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pass_case import PassCase, drawn, made, numbers, tensor

from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.passes.fuse_qdq import fuse_qdq
from graphs import Maker

INT64 = "int64"
BYTES = (DType.INT8, DType.UINT8)
SHORTS = (DType.INT16, DType.UINT16)


@dataclass(frozen=True)
class Scales:
    """Scale and zero point of the first input, the second, the weights and the result; where a zero point
    is beyond
    the type's range it is the end of it."""

    x: tuple[float, int]
    y: tuple[float, int]
    w: tuple[float, int]
    to: tuple[float, int]
    dtype: DType = DType.INT8
    result: DType | None = None


ODD = Scales((0.0173, 5), (0.0311, -9), (0.0091, 0), (0.0391, -7))
POWERS = Scales((1 / 64, 0), (1 / 32, 3), (1 / 128, 0), (1 / 16, 0))
"""Many products are half-way between two integers."""
ENDS = Scales((0.05, -999), (0.02, 999), (0.01, 0), (0.07, 999))
SATURATED = Scales((0.9, 3), (0.8, -2), (0.7, 0), (0.002, 1))
COARSE = Scales((1e-4, 1), (2e-4, 0), (1e-3, 0), (0.7, 2))
WEIGHTS_WITH_ZERO = replace(ODD, w=(0.02, 3))


class Net:
    """Tensors of integers as floats, and back."""

    def __init__(self, maker: Maker, scales: Scales) -> None:
        self.m, self.scales = maker, scales

    def _real(self, q: Value, pair: tuple[float, int]) -> Value:
        scale, zero = pair
        z = numbers(np.clip(zero, *q.dtype.limits), q.dtype.numpy)
        return self.m.DequantizeLinear(q, numbers(scale), z)  # type: ignore[no-any-return]

    def x(self, q: Value) -> Value:
        return self._real(q, self.scales.x)

    def y(self, q: Value) -> Value:
        return self._real(q, self.scales.y)

    def weights(self, *shape: int, axis: int | None = None, seed: int = 1, dtype: str = "int8") -> Value:
        """int8; with an axis each index of it has a scale of its own."""
        q = drawn(seed, *shape, low=-128, high=127, dtype=dtype)
        if axis is None:
            return self._real(q, self.scales.w)
        scale = self.scales.w[0] * (1 + np.arange(shape[axis]) / 7)
        return self.m.DequantizeLinear(q, numbers(scale), numbers(np.zeros(shape[axis]), dtype), axis=axis)  # type: ignore[no-any-return]

    def bias(self, channels: int) -> Value:
        return drawn(9, channels, low=-20 * self.scales.to[0], high=20 * self.scales.to[0])

    def quantised(self, real: Value) -> Value:
        scale, zero = self.scales.to
        dtype = self.scales.result or self.scales.dtype
        return self.m.QuantizeLinear(real, numbers(scale), numbers(np.clip(zero, *dtype.limits), dtype.numpy))  # type: ignore[no-any-return]


Rule = tuple[Callable[..., Value], Sequence[tuple[int, ...]]]
"""What makes the float result of float inputs, and their shapes; the first has the scale of x, the second
that of y."""
IMAGE = (1, 3, 5, 4)

RULES: dict[str, Rule] = {
    "conv": (
        lambda n, x: n.m.Conv(x, n.weights(4, 3, 3, 2, axis=0), n.bias(4), pads=(1, 0, 1, 1), strides=(2, 1)),
        [IMAGE],
    ),
    "conv, relu": (lambda n, x: n.m.Relu(n.m.Conv(x, n.weights(2, 3, 1, 1))), [IMAGE]),
    "depthwise, clip": (
        lambda n, x: n.m.Clip(
            n.m.Conv(x, n.weights(3, 1, 3, 3), group=3),
            numbers(-3 * n.scales.to[0]),
            numbers(5.5 * n.scales.to[0]),
        ),
        [IMAGE],
    ),
    "transposed": (lambda n, x: n.m.ConvTranspose(x, n.weights(3, 2, 2, 2, axis=1), strides=(2, 2)), [IMAGE]),
    "gemm": (lambda n, x: n.m.Gemm(x, n.weights(5, 9, axis=0), n.bias(5), transB=1), [(2, 9)]),
    "gemm as it is": (lambda n, x: n.m.Gemm(x, n.weights(9, 5, axis=1), n.bias(1)), [(2, 9)]),
    "product": (lambda n, x: n.m.MatMul(x, n.weights(9, 5)), [(2, 9)]),
    "product and bias": (lambda n, x: n.m.Add(n.bias(5), n.m.MatMul(x, n.weights(9, 5, axis=1))), [(2, 9)]),
    "attention": (lambda n, x, y: n.m.MatMul(x, y), [(2, 3, 5), (2, 5, 4)]),
    "sum": (lambda n, x, y: n.m.Relu(n.m.Add(x, y)), [(2, 40), (40,)]),
    "difference": (lambda n, x, y: n.m.Sub(x, y), [(2, 40), (2, 40)]),
    "multiplication": (lambda n, x, y: n.m.Mul(x, y), [(2, 40), (2, 1)]),
    "concatenation": (lambda n, x, y: n.m.Concat(x, y, axis=1), [(2, 30), (2, 40)]),
    "concatenation, clip": (
        lambda n, x, y: n.m.Clip(n.m.Concat(x, y, axis=0), None, numbers(9 * n.scales.to[0])),
        [(3, 40), (2, 40)],
    ),
    "pooling": (lambda n, x: n.m.AveragePool(x, kernel_shape=(2, 3), strides=(2, 1)), [(1, 2, 6, 6)]),
    "pooling with padding": (
        lambda n, x: n.m.AveragePool(x, kernel_shape=(2, 3), pads=(1, 0, 0, 1), count_include_pad=1),
        [(1, 2, 6, 6)],
    ),
    "mean of all pixels": (lambda n, x: n.m.GlobalAveragePool(x), [IMAGE]),
    "mean": (lambda n, x: n.m.ReduceMean(x, numbers([1], INT64), keepdims=0), [(2, 6, 5)]),
    "mean of everything": (lambda n, x: n.m.ReduceMean(x), [(3, 7)]),
    "mean of the last": (lambda n, x: n.m.ReduceMean(x, numbers([-1, -1], INT64)), [(3, 7)]),
    "largest": (lambda n, x: n.m.MaxPool(x, kernel_shape=(2, 2), strides=(2, 2))[0], [(1, 2, 6, 6)]),
    "moved": (
        lambda n, x: n.m.Reshape(n.m.Transpose(x, perm=(0, 2, 1)), numbers([4, -1], INT64)),
        [(2, 6, 4)],
    ),
    "gathered": (lambda n, x: n.m.Gather(n.m.Identity(x), numbers([2, 0, 2], INT64), axis=0), [(3, 30)]),
    "sliced": (
        lambda n, x: n.m.Unsqueeze(
            n.m.Slice(x, numbers([1], INT64), numbers([9], INT64)), numbers([0], INT64)
        ),
        [(11, 9)],
    ),
    "rescaled": (lambda n, x: x, [(5, 60)]),
    "rescaled and clipped": (lambda n, x: n.m.Relu(n.m.Identity(x)), [(5, 60)]),
}
BYTE_RULES: dict[str, Rule] = {
    "table": (lambda n, x: n.m.Mul(x, n.m.Sigmoid(n.m.Add(x, numbers(0.25)))), [(5, 60)]),
    "table of one": (lambda n, x: n.m.Relu(n.m.Neg(x)), [(300,)]),
    "softmax": (lambda n, x: n.m.Softmax(x, axis=0), [(7, 9)]),
}


def _case(rule: Rule, scales: Scales, units: int = 1) -> PassCase:
    function, shapes = rule
    inputs = [tensor(f"q{k}", *shape, dtype=scales.dtype) for k, shape in enumerate(shapes)]

    def build(m: Maker, *values: Value) -> Value:
        net = Net(m, scales)
        reals = [(net.x, net.y)[k](v) for k, v in enumerate(values)]
        return net.quantised(function(net, *reals))

    return PassCase(fuse_qdq, made(build, *inputs), units=units)


def _regimes() -> Iterator[tuple[str, str, Rule, Scales]]:
    """Odd scales for every rule and type; the others for types in turn."""
    others = {"powers of two": POWERS, "ends": ENDS, "saturated": SATURATED, "coarse": COARSE}
    for number, (name, rule) in enumerate({**RULES, **BYTE_RULES}.items()):
        types = BYTES if name in BYTE_RULES else (*BYTES, *SHORTS)
        for dtype in types:
            fine = 1.0 if dtype.bits == 8 else 1 / 250
            zero = 0 if dtype is DType.INT16 else 1
            yield f"{name}, {dtype.label}", "odd", rule, _fitted(ODD, dtype, fine, zero)
        for k, (words, scales) in enumerate(others.items()):
            yield f"{name}, {words}", words, rule, _fitted(scales, BYTES[(number + k) % 2], 1.0, 1)


def _fitted(scales: Scales, dtype: DType, fine: float, zero: int) -> Scales:
    """The scales for another type: zero points move with the middle of unsigned ones."""
    middle = 0 if dtype.limits[0] < 0 else (dtype.limits[1] + 1) // 2

    def pair(old: tuple[float, int]) -> tuple[float, int]:
        return old[0] * fine, old[1] * zero + middle * zero

    return replace(scales, x=pair(scales.x), y=pair(scales.y), to=pair(scales.to), dtype=dtype)


def _wide(terms: int) -> Rule:
    """int16 by int8: 32 bits hold 257 terms of 32768 * 255 … and no more."""
    return (lambda n, x: n.m.MatMul(x, n.weights(terms, 2)), [(1, terms)])


def _alone(function: Callable[..., Value], *shapes: tuple[int, ...], scales: Scales = ODD) -> PassCase:
    return _case((function, shapes), scales)


def _graph(build: Callable[..., Any], *inputs: Value) -> PassCase:
    return PassCase(fuse_qdq, made(build, *inputs), tolerance=1e-6, units=1)


Q = tensor("q", 2, 9, dtype=DType.INT8)


def _read_twice(m: Maker, q: Value) -> list[Value]:
    """The Relu before the quantisation, and what it clamps, are read elsewhere."""
    n = Net(m, ODD)
    product = m.MatMul(n.x(q), n.weights(9, 5))
    clamped = m.Relu(product)
    return [n.quantised(clamped), m.Neg(product)]


def _result(m: Maker, q: Value) -> list[Value]:
    n = Net(m, ODD)
    product = m.MatMul(n.x(q), n.weights(9, 5))
    return [n.quantised(m.Relu(product)), product]


def _biased_elsewhere(m: Maker, q: Value) -> list[Value]:
    n = Net(m, ODD)
    product = m.MatMul(n.x(q), n.weights(9, 5))
    return [n.quantised(m.Add(product, n.bias(5))), product]


def _per_channel_input(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    scales = numbers(0.01 * (1 + np.arange(9)))
    return n.quantised(m.Relu(m.DequantizeLinear(q, scales, numbers(np.zeros(9), "int8"), axis=1)))


def _per_channel_result(m: Maker, q: Value) -> Value:
    scales = numbers(0.01 * (1 + np.arange(9)))
    return m.QuantizeLinear(m.Relu(Net(m, ODD).x(q)), scales, numbers(np.zeros(9), "int8"), axis=1)  # type: ignore[no-any-return]


def _scale_from_outside(m: Maker, q: Value, scale: Value) -> Value:
    return Net(m, ODD).quantised(m.Relu(m.DequantizeLinear(q, scale, numbers(0, "int8"))))


def _zero_from_outside(m: Maker, q: Value, zero: Value) -> Value:
    return Net(m, ODD).quantised(m.Relu(m.DequantizeLinear(q, numbers(0.1), zero)))


def _without_zero(m: Maker, q: Value) -> Value:
    return m.QuantizeLinear(m.Neg(m.DequantizeLinear(q, numbers(0.1))), numbers(0.3), numbers(0, "int8"))  # type: ignore[no-any-return]


def _by_blocks(m: Maker, q: Value) -> Value:
    real = m.DequantizeLinear(
        q, drawn(1, 2, 3, low=0.01, high=0.1), numbers(np.zeros((2, 3)), "int8"), axis=1, block_size=3
    )
    return Net(m, ODD).quantised(m.Relu(real))


def _table_of_two(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Max(n.x(q), m.Neg(n.x(q))))


def _table_with_a_row(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Max(n.x(q), drawn(3, 9)))


def _table_of_a_smaller(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Max(n.x(q), numbers([[[0.1]]])))


def _table_with_an_input(m: Maker, q: Value, x: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Max(n.x(q), x))


def _table_of_integers(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Cast(m.Cast(m.Mul(n.x(q), numbers(9)), to=DType.INT32), to=DType.FLOAT32))


def _table_of_many(nodes: int) -> Callable[[Maker, Value], Value]:
    def build(m: Maker, q: Value) -> Value:
        n = Net(m, ODD)
        real = n.x(q)
        for _ in range(nodes):
            real = m.Neg(real)
        return n.quantised(real)

    return build


def _two_types(m: Maker, q: Value, other: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Add(n.x(q), n.y(other)))


def _several_zeros(m: Maker, q: Value) -> Value:
    w = m.DequantizeLinear(
        drawn(1, 9, 2, low=-128, high=127, dtype="int8"), numbers([0.1, 0.2]), numbers([0, 1], "int8"), axis=1
    )
    n = Net(m, ODD)
    return n.quantised(m.MatMul(n.x(q), w))


def _wide_weights(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.MatMul(n.x(q), n.weights(9, 2, dtype="int16")))


def _bias_from_outside(m: Maker, q: Value, bias: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Gemm(n.x(q), n.weights(9, 2), bias))


def _integer_bias(axis: int | None) -> Callable[[Maker, Value], Value]:
    def build(m: Maker, q: Value) -> Value:
        n = Net(m, ODD)
        data = numbers([900, -300, 5], "int32")
        scale = numbers(0.0002) if axis is None else numbers([0.0002, 0.0003, 0.01])
        return n.quantised(
            m.Gemm(
                n.x(q),
                n.weights(9, 3),
                m.DequantizeLinear(data, scale, **({} if axis is None else {"axis": axis})),
            )
        )

    return build


def _bias_by_row(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Gemm(n.x(q), n.weights(9, 2), drawn(2, 2, 1)))


def _added(bias: Value, columns: int) -> Callable[[Maker, Value], Value]:
    def build(m: Maker, q: Value) -> Value:
        n = Net(m, ODD)
        return n.quantised(m.Add(m.MatMul(n.x(q), n.weights(9, columns)), bias))

    return build


def _bound_from_outside(m: Maker, q: Value, bound: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Clip(m.MatMul(n.x(q), n.weights(9, 2)), bound))


def _relu_and_clip(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(
        m.Clip(m.Relu(m.MatMul(n.x(q), n.weights(9, 2))), numbers([0.07]), numbers(float("inf")))
    )


def _nibbles(kind: str) -> Callable[[Maker, Value], Value]:
    def build(m: Maker, q: Value) -> Value:
        n = Net(m, ODD)
        data = numbers(np.arange(18).reshape(9, 2) % 8, getattr(DType, kind.upper()).numpy)
        return n.quantised(
            m.MatMul(n.x(q), m.DequantizeLinear(data, numbers(0.1), numbers(3, data.dtype.numpy)))
        )

    return build


FLOATS = tensor("x", 2, 9)
OTHERS: dict[str, PassCase] = {
    "16 bits, as many terms as 32 bits hold": _case(
        _wide(256), replace(POWERS, dtype=DType.INT16, x=(2**-15, 0), to=(2**-9, 0))
    ),
    "16 bits, more terms": _case(
        _wide(258), replace(POWERS, dtype=DType.INT16, x=(2**-15, 0), to=(2**-9, 0))
    ),
    "no tie is near": _case(RULES["product"], replace(POWERS, to=(3 / 16, 0))),
    "ties beyond what is summed": _case(_wide(1), replace(POWERS, x=(2**-20, 0), w=(2**-20, 0), to=(1.0, 0))),
    "zero point of weights": _case(RULES["gemm"], WEIGHTS_WITH_ZERO),
    "product, zero point of weights": _case(RULES["product"], WEIGHTS_WITH_ZERO),
    "the same scale": _case(RULES["rescaled"], replace(ODD, to=ODD.x)),
    "the same scale, another zero point": _case(RULES["rescaled"], replace(ODD, to=(ODD.x[0], 6))),
    "the same scale, clipped": _case(RULES["rescaled and clipped"], replace(ODD, to=ODD.x)),
    "from 8 to 16 bits": _case(RULES["rescaled"], replace(ODD, result=DType.INT16)),
    "from 16 to 8 bits": _case(
        RULES["rescaled"], replace(ODD, dtype=DType.INT16, x=(0.0003, 0), result=DType.INT8)
    ),
    "a product to 16 bits": _case(RULES["product"], replace(ODD, result=DType.INT16, to=(0.0004, 0))),
    "grouped transposed": _alone(
        lambda n, x: n.m.ConvTranspose(x, n.weights(4, 1, 2, 2), group=2), (1, 4, 3, 3)
    ),
    "alpha": _alone(lambda n, x: n.m.Gemm(x, n.weights(9, 2), alpha=2.0), (2, 9)),
    "beta without a bias": _alone(lambda n, x: n.m.Gemm(x, n.weights(9, 2), beta=2.0), (2, 9)),
    "beta": _alone(lambda n, x: n.m.Gemm(x, n.weights(9, 2), n.bias(2), beta=2.0), (2, 9)),
    "transposed first": _alone(lambda n, x: n.m.Gemm(x, n.weights(2, 3), transA=1), (2, 9)),
    "vector": _alone(lambda n, x: n.m.MatMul(x, n.weights(9, 2)), (9,)),
    "by a vector": _alone(lambda n, x: n.m.MatMul(x, n.weights(9)), (2, 9)),
    "scales along the sum": _alone(lambda n, x: n.m.MatMul(x, n.weights(9, 2, axis=0)), (2, 9)),
    "batch of constant matrices": _alone(lambda n, x: n.m.MatMul(x, n.weights(2, 9, 2)), (2, 9)),
    "16-bit operand with a zero point": _alone(
        lambda n, x, y: n.m.Mul(x, y), (2, 9), (2, 9), scales=replace(ODD, dtype=DType.INT16)
    ),
    "16-bit softmax": _alone(lambda n, x: n.m.Softmax(x), (2, 9), scales=replace(ODD, dtype=DType.INT16)),
    "windows without their padding": _alone(
        lambda n, x: n.m.AveragePool(x, kernel_shape=(2, 2), pads=(1, 1, 0, 0)), (1, 2, 4, 4)
    ),
    "windows beyond the end": _alone(
        lambda n, x: n.m.AveragePool(x, kernel_shape=(2, 2), strides=(2, 2), ceil_mode=1), (1, 2, 5, 5)
    ),
    "counted windows beyond the end": _alone(
        lambda n, x: n.m.AveragePool(
            x, kernel_shape=(2, 2), strides=(2, 2), ceil_mode=1, count_include_pad=1
        ),
        (1, 2, 5, 5),
    ),
    "mean of no axes": _alone(
        lambda n, x: n.m.ReduceMean(x, numbers([], INT64), noop_with_empty_axes=1), (2, 9)
    ),
    "as many elements as 32 bits hold": _alone(lambda n, x: n.m.ReduceMean(x), (32767,)),
    "a mean of too many": _alone(lambda n, x: n.m.ReduceMean(x), (32768,)),
    "a piece is no integer": _graph(
        lambda m, q, x: Net(m, ODD).quantised(m.Concat(Net(m, ODD).x(q), x, axis=0)), Q, FLOATS
    ),
    "no integers at all": _graph(lambda m, x: Net(m, ODD).quantised(m.Relu(x)), FLOATS),
    "an input": _graph(lambda m, x: Net(m, ODD).quantised(x), FLOATS),
    "read twice": _graph(_read_twice, Q),
    "result": _graph(_result, Q),
    "biased elsewhere": _graph(_biased_elsewhere, Q),
    "input by channels": _graph(_per_channel_input, Q),
    "result by channels": _graph(_per_channel_result, Q),
    "scale from outside": _graph(_scale_from_outside, Q, tensor("s")),
    "zero point from outside": _graph(_zero_from_outside, Q, tensor("z", dtype=DType.INT8)),
    "without a zero point": _graph(_without_zero, Q),
    "by blocks": _graph(_by_blocks, Q),
    "table of one tensor twice": _graph(_table_of_two, Q),
    "table with a row": _graph(_table_with_a_row, Q),
    "table with more axes": _graph(_table_of_a_smaller, Q),
    "table with an input": _graph(_table_with_an_input, Q, FLOATS),
    "table through integers": _graph(_table_of_integers, Q),
    "table of 62 operators": _graph(_table_of_many(62), Q),
    "table of 63 operators": _graph(_table_of_many(63), Q),
    "table of 64 operators": _graph(_table_of_many(64), Q),
    "two types": _graph(_two_types, Q, tensor("r", 2, 9, dtype=DType.UINT8)),
    "several zero points": _graph(_several_zeros, Q),
    "weights of 16 bits": _graph(_wide_weights, Q),
    "bias from outside": _graph(_bias_from_outside, Q, tensor("b", 2)),
    "bias of integers": _graph(_integer_bias(None), Q),
    "bias of integers by channels": _graph(_integer_bias(0), Q),
    "bias by rows": _graph(_bias_by_row, Q),
    "bias by rows added": _graph(_added(drawn(2, 5, 1), 5), tensor("q", 5, 9, dtype=DType.INT8)),
    "bias by elements": _graph(_added(drawn(2, 2, 5), 5), Q),
    "bias with more axes": _graph(_added(drawn(2, 1, 1, 5), 5), Q),
    "one bias with more axes": _graph(_added(drawn(2, 1, 1, 1), 5), Q),
    "one bias": _graph(_added(drawn(2, 1, 1), 5), Q),
    "bias of one column": _graph(_added(drawn(2, 2, 1), 1), Q),
    "bias that spreads": _graph(_added(drawn(2, 4), 1), Q),
    "bound from outside": _graph(_bound_from_outside, Q, tensor("b")),
    "relu and clip": _graph(_relu_and_clip, Q),
    "weights of 4 bits": _graph(_nibbles("int4"), Q),
    "weights of 4 bits, unsigned": _graph(_nibbles("uint4"), Q),
    "nothing is quantised": _graph(lambda m, x: m.Relu(x), FLOATS),
    "a constant": _graph(
        lambda m, x: m.Add(x, m.DequantizeLinear(numbers([4, -3], "int8"), numbers(0.5), numbers(1, "int8"))),
        tensor("x", 2),
    ),
}
CASES = {
    **{f"fuse_qdq: {name}": _case(rule, scales) for name, _, rule, scales in _regimes()},
    **{f"fuse_qdq: {name}": case for name, case in OTHERS.items()},
}
