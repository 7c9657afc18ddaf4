"""Cases of fuse_qdq at the edges of its rules, and what no rule takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from pass_case import PassCase, drawn, made, numbers, tensor
from qdq_cases import INT64, ODD, POWERS, RULES, WEIGHTS_WITH_ZERO, Net, Rule, Scales, case_of

from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.passes.fuse_qdq import fuse_qdq
from graphs import Maker


def _wide(terms: int) -> Rule:
    """int16 by int8: 32 bits hold 257 terms of 32768 * 255 … and no more."""
    return (lambda n, x: n.m.MatMul(x, n.weights(terms, 2)), [(1, terms)])


def _alone(function: Callable[..., Value], *shapes: tuple[int, ...], scales: Scales = ODD) -> PassCase:
    return case_of((function, shapes), scales)


def graph_case(build: Callable[..., Any], *inputs: Value) -> PassCase:
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


def _table_with_a_quantised_number(kind: str) -> Callable[[Maker, Value], Value]:
    """What a quantiser makes of the constants of a network."""

    def build(m: Maker, q: Value) -> Value:
        n = Net(m, ODD)
        real = m.Abs(n.x(q))
        number = m.DequantizeLinear(numbers(201, "uint8"), numbers(0.0157), numbers(11, "uint8"))
        return n.quantised(m.Pow(real, number) if kind == "Pow" else m.Max(number, real))

    return build


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


def _vanished_channel(kind: str) -> Callable[[Maker, Value], Value]:
    """Weights whose scale is next to nothing beside the bias."""

    def build(m: Maker, q: Value) -> Value:
        n = Net(m, ODD)
        scale, zero, bias = numbers([0.01, 1e-9, 1e-12]), numbers(np.zeros(3), "int8"), numbers([1, -2, 3])
        shape = (3, 9, 1, 1) if kind == "Conv" else (3, 9)
        w = m.DequantizeLinear(drawn(1, *shape, low=-127, high=127, dtype="int8"), scale, zero, axis=0)
        if kind == "Conv":
            return n.quantised(m.Conv(m.Reshape(n.x(q), numbers([2, 9, 1, 1], INT64)), w, bias))
        return n.quantised(m.Gemm(n.x(q), w, bias, transB=1))

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


def _apart(first: tuple[Value | None, ...], *second: Value | None) -> Callable[[Maker, Value], Value]:
    """Two ranges, one after the other, that do not meet: the second's end is all that is left."""

    def build(m: Maker, q: Value) -> Value:
        n = Net(m, ODD)
        return n.quantised(m.Clip(m.Clip(m.MatMul(n.x(q), n.weights(9, 2)), *first), *second))

    return build


def _nibbles(kind: str) -> Callable[[Maker, Value], Value]:
    def build(m: Maker, q: Value) -> Value:
        n = Net(m, ODD)
        data = numbers(np.arange(18).reshape(9, 2) % 8, getattr(DType, kind.upper()).numpy)
        return n.quantised(
            m.MatMul(n.x(q), m.DequantizeLinear(data, numbers(0.1), numbers(3, data.dtype.numpy)))
        )

    return build


def _by_another(m: Maker, q: Value, y: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.MatMul(n.x(q), m.DequantizeLinear(y, numbers(0.001))))


def _to_nibbles(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return m.QuantizeLinear(m.Relu(n.x(q)), numbers(0.3), numbers(-3, DType.INT4.numpy))  # type: ignore[no-any-return]


def _of_nibbles(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.MatMul(m.DequantizeLinear(q, numbers(0.3)), n.weights(9, 2)))


def _negative_scale(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.MatMul(m.DequantizeLinear(q, numbers(-0.02), numbers(4, "int8")), n.weights(9, 2)))


FLOATS = tensor("x", 2, 9)
OTHERS: dict[str, PassCase] = {
    "16 bits, as many terms as 32 bits hold": case_of(
        _wide(256), replace(POWERS, dtype=DType.INT16, x=(2**-15, 0), to=(2**-9, 0))
    ),
    "16 bits, more terms": case_of(
        _wide(258), replace(POWERS, dtype=DType.INT16, x=(2**-15, 0), to=(2**-9, 0))
    ),
    "no tie is near": case_of(RULES["product"], replace(POWERS, to=(3 / 16, 0))),
    "ties beyond what is summed": case_of(
        _wide(1), replace(POWERS, x=(2**-20, 0), w=(2**-20, 0), to=(1.0, 0))
    ),
    "a factor beyond what a multiplier holds": case_of(RULES["product"], replace(POWERS, to=(2.0**-50, 0))),
    "zero point of weights": case_of(RULES["gemm"], WEIGHTS_WITH_ZERO),
    "product, zero point of weights": case_of(RULES["product"], WEIGHTS_WITH_ZERO),
    "the same scale": case_of(RULES["rescaled"], replace(ODD, to=ODD.x)),
    "the same scale, another zero point": case_of(RULES["rescaled"], replace(ODD, to=(ODD.x[0], 6))),
    "the same scale, clipped": case_of(RULES["rescaled and clipped"], replace(ODD, to=ODD.x)),
    "from 8 to 16 bits": case_of(RULES["rescaled"], replace(ODD, result=DType.INT16)),
    "from 16 to 8 bits": case_of(
        RULES["rescaled"], replace(ODD, dtype=DType.INT16, x=(0.0003, 0), result=DType.INT8)
    ),
    "a product to 16 bits": case_of(RULES["product"], replace(ODD, result=DType.INT16, to=(0.0004, 0))),
    "grouped transposed": _alone(
        lambda n, x: n.m.ConvTranspose(x, n.weights(4, 1, 2, 2), group=2), (1, 4, 3, 3)
    ),
    "alpha": _alone(lambda n, x: n.m.Gemm(x, n.weights(9, 2), alpha=2.0), (2, 9)),
    "beta without a bias": _alone(lambda n, x: n.m.Gemm(x, n.weights(9, 2), beta=2.0), (2, 9)),
    "beta": _alone(lambda n, x: n.m.Gemm(x, n.weights(9, 2), n.bias(2), beta=2.0), (2, 9)),
    "transposed first": _alone(lambda n, x: n.m.Gemm(x, n.weights(2, 3), transA=1), (2, 9)),
    "vector": _alone(lambda n, x: n.m.MatMul(x, n.weights(9, 2)), (9,)),
    "by a vector": _alone(lambda n, x: n.m.MatMul(x, n.weights(9)), (2, 9)),
    "two columns with scales of their own": _alone(
        lambda n, x: n.m.MatMul(x, n.weights(9, 2, axis=1)), (2, 9)
    ),
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
    "one window": _alone(lambda n, x: n.m.AveragePool(x, kernel_shape=(5, 4)), (2, 3, 5, 4)),
    "one window of 16 bits": _alone(
        lambda n, x: n.m.AveragePool(x, kernel_shape=(5, 4), ceil_mode=1, strides=(3, 3)),
        (1, 3, 5, 4),
        scales=replace(ODD, dtype=DType.INT16, y=(0.02, 0), x=(0.03, 0), to=(0.02, 0)),
    ),
    "one window with padding": _alone(
        lambda n, x: n.m.AveragePool(x, kernel_shape=(5, 4), pads=(0, 1, 0, 0), count_include_pad=1),
        (1, 3, 5, 4),
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
    "a piece is no integer": graph_case(
        lambda m, q, x: Net(m, ODD).quantised(m.Concat(Net(m, ODD).x(q), x, axis=0)), Q, FLOATS
    ),
    "padded with ones": _alone(lambda n, x: n.m.Pad(x, numbers([1, 0, 0, 2], INT64), numbers([1.0])), (6, 9)),
    "padded with an input": graph_case(
        lambda m, q, f: Net(m, ODD).quantised(m.Pad(Net(m, ODD).x(q), numbers([1, 0, 0, 2], INT64), f)),
        Q,
        tensor("f", 1),
    ),
    "no integers at all": graph_case(lambda m, x: Net(m, ODD).quantised(m.Relu(x)), FLOATS),
    "an input": graph_case(lambda m, x: Net(m, ODD).quantised(x), FLOATS),
    "read twice": graph_case(_read_twice, Q),
    "result": graph_case(_result, Q),
    "biased elsewhere": graph_case(_biased_elsewhere, Q),
    "input by channels": graph_case(_per_channel_input, Q),
    "result by channels": graph_case(_per_channel_result, Q),
    "scale from outside": graph_case(_scale_from_outside, Q, tensor("s")),
    "zero point from outside": graph_case(_zero_from_outside, Q, tensor("z", dtype=DType.INT8)),
    "without a zero point": graph_case(_without_zero, Q),
    "by blocks": graph_case(_by_blocks, Q),
    "table of one tensor twice": graph_case(_table_of_two, Q),
    "table with a row": graph_case(_table_with_a_row, Q),
    "table with more axes": graph_case(_table_of_a_smaller, Q),
    **{
        f"table of {k} and a quantised number": graph_case(_table_with_a_quantised_number(k), Q)
        for k in ("Pow", "Max")
    },
    "table with an input": graph_case(_table_with_an_input, Q, FLOATS),
    "table through integers": graph_case(_table_of_integers, Q),
    "table of 62 operators": graph_case(_table_of_many(62), Q),
    "table of 63 operators": graph_case(_table_of_many(63), Q),
    "table of 64 operators": graph_case(_table_of_many(64), Q),
    "two types": graph_case(_two_types, Q, tensor("r", 2, 9, dtype=DType.UINT8)),
    "several zero points": graph_case(_several_zeros, Q),
    "weights of 16 bits": graph_case(_wide_weights, Q),
    "bias from outside": graph_case(_bias_from_outside, Q, tensor("b", 2)),
    "bias of integers": graph_case(_integer_bias(None), Q),
    "bias of integers by channels": graph_case(_integer_bias(0), Q),
    "bias beside a vanished channel": graph_case(_vanished_channel("Gemm"), Q),
    "bias of a convolution beside a vanished channel": graph_case(_vanished_channel("Conv"), Q),
    "bias by rows": graph_case(_bias_by_row, Q),
    "bias by rows added": graph_case(_added(drawn(2, 5, 1), 5), tensor("q", 5, 9, dtype=DType.INT8)),
    "bias by elements": graph_case(_added(drawn(2, 2, 5), 5), Q),
    "bias as a row": graph_case(_added(drawn(2, 1, 5), 5), Q),
    "bias with more axes": graph_case(_added(drawn(2, 1, 1, 5), 5), Q),
    "one bias with more axes": graph_case(_added(drawn(2, 1, 1, 1), 5), Q),
    "one bias": graph_case(_added(drawn(2, 1, 1), 5), Q),
    "bias of one column": graph_case(_added(drawn(2, 2, 1), 1), Q),
    "bias that spreads": graph_case(_added(drawn(2, 4), 1), Q),
    "bound from outside": graph_case(_bound_from_outside, Q, tensor("b")),
    "relu and clip": graph_case(_relu_and_clip, Q),
    "a clip above one below": graph_case(_apart((None, numbers(-0.4)), numbers(0.3)), Q),
    "a clip below one above": graph_case(_apart((numbers(0.3), numbers(0.9)), None, numbers(-0.2)), Q),
    "ends the wrong way round": graph_case(_apart((numbers(0.7), numbers(-0.3)), None, numbers(2)), Q),
    "pieces in the result's scale, clipped": case_of(
        (lambda n, x, y: n.m.Relu(n.m.Concat(x, y, axis=0)), [(3, 40), (2, 40)]), replace(ODD, to=ODD.x)
    ),
    "a convolution of floats": graph_case(
        lambda m, x: Net(m, ODD).quantised(m.Conv(x, Net(m, ODD).weights(2, 3, 1, 1))),
        tensor("x", 1, 3, 2, 2),
    ),
    "a vector by matrices": _alone(lambda n, x: n.m.MatMul(x, n.weights(2, 9, 3)), (9,)),
    "rows by a vector": _alone(lambda n, x, y: n.m.MatMul(x, y), (2, 3, 9), (9,)),
    "8 bits by 16": graph_case(_by_another, Q, tensor("y", 9, 2, dtype=DType.INT16)),
    "8 bits by 32": graph_case(_by_another, Q, tensor("y", 9, 2, dtype=DType.INT32)),
    "16 bits without a sign": _alone(
        lambda n, x, y: n.m.Mul(x, y),
        *((2, 9), (2, 9)),
        scales=replace(ODD, dtype=DType.UINT16, x=(0.0003, 0), y=(0.0004, 0), to=(0.0009, 0)),
    ),
    "a product and a tensor": _alone(
        lambda n, x, y: n.m.Add(n.m.MatMul(x, n.weights(9, 5)), y), (2, 9), (2, 5)
    ),
    "attention and a bias": _alone(lambda n, x, y: n.m.Add(n.m.MatMul(x, y), n.bias(4)), (2, 5), (5, 4)),
    "a mean over nothing": _alone(lambda n, x: n.m.ReduceMean(x, numbers([1], INT64)), (2, 0)),
    "softmax to steps beyond 1": _alone(
        lambda n, x: n.m.Softmax(x), (2, 9), scales=replace(ODD, to=(1.5, 0))
    ),
    "softmax of the finest steps": _alone(
        lambda n, x: n.m.Softmax(x), (2, 9), scales=replace(ODD, x=(2.0**-25, 0))
    ),
    "times a row": _alone(lambda n, x: n.m.Mul(x, drawn(3, 9)), (2, 9)),
    "times a number of more axes": _alone(lambda n, x: n.m.Mul(numbers([[[2.5]]]), x), (2, 9)),
    "times a number below 0": _alone(
        lambda n, x: n.m.Mul(x, numbers(-0.37)),
        *((2, 9),),
        scales=replace(ODD, dtype=DType.INT16, x=(0.0003, 0), to=(0.0002, 0)),
    ),
    "times too large a number": _alone(
        lambda n, x: n.m.Mul(x, numbers(3e38)),
        *((2, 9),),
        scales=replace(ODD, dtype=DType.INT16, x=(10.0, 0), to=(0.0002, 0)),
    ),
    "to 4 bits": graph_case(_to_nibbles, Q),
    "an input of 4 bits": graph_case(_of_nibbles, tensor("q", 2, 9, dtype=DType.INT4)),
    "a scale below 0": graph_case(_negative_scale, Q),
    "weights by channels, transposed": _alone(
        lambda n, x: n.m.MatMul(x, n.m.Transpose(n.weights(2, 9, axis=0), perm=(1, 0))), (2, 9)
    ),
    "weights of 4 bits": graph_case(_nibbles("int4"), Q),
    "weights of 4 bits, unsigned": graph_case(_nibbles("uint4"), Q),
    "nothing is quantised": graph_case(lambda m, x: m.Relu(x), FLOATS),
    "a constant": graph_case(
        lambda m, x: m.Add(x, m.DequantizeLinear(numbers([4, -3], "int8"), numbers(0.5), numbers(1, "int8"))),
        tensor("x", 2),
    ),
}
CASES = {f"fuse_qdq: {name}": case for name, case in OTHERS.items()}
