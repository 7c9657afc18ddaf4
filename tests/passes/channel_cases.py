"""Cases of dead_channels: filters of zeros, clamps that nothing leaves, channels that no weight reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pass_case import PassCase, drawn, made, numbers, tensor

from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.passes.dead_channels import dead_channels
from graphs import Maker

X = tensor("x", 1, 3, 4, 3, dtype=DType.INT8)
ROWS = tensor("x", 2, 3, dtype=DType.INT8)


def _filters(
    seed: int, shape: tuple[int, ...], zero: tuple[int, ...] = (), unread: tuple[int, ...] = ()
) -> Value:
    """Weights; the filters `zero` are zeros, and so is what reads the channels `unread`."""
    data = np.asarray(drawn(seed, *shape, low=-9, high=9, dtype="int8").data).copy()
    data[list(zero)] = 0
    data[..., list(unread)] = 0
    return numbers(data, "int8")


def _finished(
    m: Maker, acc: Value, bias: Any = None, zero: int = 0, low: int = -128, high: int = 127
) -> Value:
    """Bias and requantisation."""
    channels = acc.shape[-1]
    given = np.arange(channels) * 7 - 20 if bias is None else bias
    total = m.Add(acc, numbers(given, "int32"))
    factor = numbers(np.full(channels, 2**30), "int32")
    return m.Requantise(
        total, factor, numbers(np.full(channels, -1), "int32"), zero_point=zero, low=low, high=high
    )  # type: ignore[no-any-return]


def _first(m: Maker, x: Value, outs: int = 8, zero: tuple[int, ...] = (1, 2, 5, 7), **finish: Any) -> Value:
    return _finished(m, m.Convolution(x, _filters(1, (outs, 1, 1, 3), zero), x_zero_point=3), **finish)


def _last(m: Maker, y: Value, unread: tuple[int, ...] = (), **window: Any) -> Value:
    size = window.pop("kernel", (1, 1))
    w = _filters(2, (3, *size, y.shape[-1]), (), unread)
    return _finished(m, m.Convolution(y, w, x_zero_point=window.pop("x_zero_point", 0), **window))


def _between(middle: Callable[[Maker, Value], Value], **finish: Any) -> Any:
    """Half of eight filters are zeros; something; a sum over the channels."""
    return made(lambda m, x: _last(m, middle(m, _first(m, x, **finish))), X)


def _depthwise(m: Maker, y: Value, group: int = 8, **window: Any) -> Value:
    w = _filters(3, (8, 2, 2, 8 // group))
    return _finished(m, m.Convolution(y, w, group=group, **window), bias=np.zeros(8))


def _sums_of_64_bits(finished: bool) -> Callable[[Maker, Value], Value]:
    """What sums over the channels of 16 bits has accumulators of 64."""

    def build(m: Maker, x: Value) -> Value:
        y = m.Requantise(
            m.Add(m.Convolution(x, _filters(1, (8, 1, 1, 3), (1, 2, 5, 7))), numbers(70000, "int32")),
            *(numbers([v], "int32") for v in (2**30, -1)),
            to=DType.INT16,
            low=-32768,
            high=32767,
        )
        acc = m.Convolution(y, _filters(2, (3, 1, 1, 8)), x_zero_point=-3)
        return m.Add(acc, numbers([2**40, -1, 5], "int64")) if finished else acc  # type: ignore[no-any-return]

    return build


def _product(m: Maker, x: Value, **parameters: int) -> Value:
    """Two matrix products."""
    w = np.asarray(drawn(4, 3, 8, low=-9, high=9, dtype="int8").data).copy()
    w[:, [0, 3, 4, 6]] = parameters.get("w_zero_point", 0)
    y = _finished(m, m.MatMul(x, numbers(w, "int8"), x_zero_point=2, **parameters))
    return _finished(
        m, m.MatMul(y, drawn(5, 8, 2, low=-9, high=9, dtype="int8"), x_zero_point=-1, w_zero_point=1)
    )


def _read(how: Callable[[Maker, Value], list[Value]]) -> Any:
    """The sum that reads the channels, without a bias: who reads it."""

    def build(m: Maker, x: Value) -> list[Value]:
        y = _first(m, x)
        return how(m, m.Convolution(y, _filters(2, (3, 1, 1, 8)), x_zero_point=0))

    return made(build, X)


def _two_sums(m: Maker, x: Value) -> list[Value]:
    y = _first(m, x)
    return [_last(m, y), m.Convolution(y, _filters(6, (2, 1, 1, 8)), x_zero_point=1)]


def _one_keeps(m: Maker, x: Value) -> list[Value]:
    y = _first(m, x)
    return [_last(m, y), m.Neg(y)]


def _as_weights(m: Maker, x: Value, y: Value) -> Value:
    """The second operand of a product is no input of a sum."""
    w = m.ReshapeTo(_first(m, x), to=(12, 8))
    return m.MatMul(y, w)  # type: ignore[no-any-return]


def _other_bias(m: Maker, acc: Value, bias: Any) -> list[Value]:
    return [m.Add(acc, numbers(bias, "int32"))]


def _twice(m: Maker, y: Value) -> Value:
    """Element by element with itself: no constant."""
    total = m.Add(m.Cast(y, to=DType.INT32), m.Cast(y, to=DType.INT32))
    return m.Cast(total, to=DType.INT8)  # type: ignore[no-any-return]


CASES_OF = {
    "half of the filters": _between(lambda m, y: y),
    "five of eight are needed": made(lambda m, x: _last(m, _first(m, x, zero=(1, 2, 5))), X),
    "four of nine are needed": made(lambda m, x: _last(m, _first(m, x, 9, (1, 2, 5, 7, 8))), X),
    "five of nine are needed": made(lambda m, x: _last(m, _first(m, x, 9, (1, 2, 5, 7))), X),
    "none of six": made(lambda m, x: _last(m, _first(m, x, 6, tuple(range(6)))), X),
    "three filters of zeros": made(lambda m, x: _last(m, _first(m, x, 3, (0, 1, 2))), X),
    "no filter of zeros": made(lambda m, x: _last(m, _first(m, x, zero=())), X),
    "unread": made(lambda m, x: _last(m, _first(m, x, zero=()), unread=(0, 2, 3, 6)), X),
    "unread by one of two": made(
        lambda m, x: [
            _last(m, y := _first(m, x, zero=()), unread=(0, 2, 3, 6)),
            _last(m, y, unread=(0, 2, 3, 5)),
        ],
        X,
    ),
    "never above the clamp": made(
        lambda m, x: _last(m, _first(m, x, zero=(), bias=[-(2**20)] * 4 + [0] * 4, low=-5)), X
    ),
    "never below the clamp": made(
        lambda m, x: _last(m, _first(m, x, zero=(), bias=[2**20] * 4 + [0] * 4, high=9)), X
    ),
    "just at the clamp": made(
        lambda m, x: _last(m, _first(m, x, zero=(), bias=[-9000] * 4 + [-400] * 4, low=-40)), X
    ),
    "padding of another number": made(
        lambda m, x: _last(m, _first(m, x), kernel=(2, 2), pads=(1, 0, 0, 0)), X
    ),
    "padding of the same number": made(
        lambda m, x: _last(m, _first(m, x, bias=np.zeros(8)), kernel=(2, 2), pads=(1, 0, 0, 0)), X
    ),
    "zero point": made(lambda m, x: _last(m, _first(m, x), x_zero_point=-3), X),
    "depthwise": _between(_depthwise),
    "depthwise with padding": _between(lambda m, y: _depthwise(m, y, pads=(0, 0, 1, 1))),
    "groups of two": _between(lambda m, y: _depthwise(m, y, 4)),
    "largest of windows": _between(lambda m, y: m.Pool(y, mode="max", kernel=(2, 2), strides=(1, 1))),
    "average of windows": _between(lambda m, y: m.Pool(y, mode="average", kernel=(3, 4), strides=(1, 1))),
    "view": made(lambda m, x: _product_of(m, m.ReshapeTo(_first(m, x), to=(12, 8))), X),
    "view of other channels": made(lambda m, x: _product_of(m, m.ReshapeTo(_first(m, x), to=(24, 4))), X),
    "all pixels in a row": made(lambda m, x: _product_of(m, m.ReshapeTo(_first(m, x), to=(1, 96))), X),
    "added constant": _between(lambda m, y: m.Add(y, numbers([3], "int8"))),
    "added to itself": _between(_twice),
    "in the result": made(lambda m, x: _first(m, x), X),
    "in another result": made(lambda m, x: [_last(m, y := _first(m, x)), y], X),
    "two sums": made(_two_sums, X),
    "one keeps all": made(_one_keeps, X),
    "as weights": made(_as_weights, X, tensor("y", 2, 12, dtype=DType.INT8)),
    "without a bias": _read(lambda m, acc: [acc]),
    "read twice": _read(lambda m, acc: [m.Add(acc, numbers([1, 2, 3], "int32")), m.Neg(acc)]),
    "result and read": _read(lambda m, acc: [m.Add(acc, numbers([1, 2, 3], "int32")), acc]),
    "bias first": _read(lambda m, acc: [m.Add(numbers([1, 2, 3], "int32"), acc)]),
    "one bias": _read(lambda m, acc: _other_bias(m, acc, [4])),
    "scalar bias": _read(lambda m, acc: _other_bias(m, acc, 4)),
    "bias by columns": _read(lambda m, acc: _other_bias(m, acc, [[[4], [5], [6], [7]]])),
    "bias of all": _read(lambda m, acc: _other_bias(m, acc, np.arange(36).reshape(1, 3, 4, 3))),
    "bias of an input": made(
        lambda m, x, b: m.Add(m.Convolution(_first(m, x), _filters(2, (3, 1, 1, 8))), b),
        X,
        tensor("b", 3, dtype=DType.INT32),
    ),
    "bias of two sums": _read(lambda m, acc: [m.Add(acc, acc)]),
    "products": made(_product, ROWS),
    "products, zero point of weights": made(lambda m, x: _product(m, x, w_zero_point=2), ROWS),
    "floats": made(
        lambda m, x: m.MatMul(m.MatMul(x, numbers(np.zeros((3, 8)))), drawn(1, 8, 2)), tensor("x", 2, 3)
    ),
    "convolutions of floats": made(
        lambda m, x: m.Convolution(m.Convolution(x, numbers(np.zeros((8, 1, 1, 3)))), drawn(1, 2, 1, 1, 8)),
        tensor("x", 1, 3, 4, 3),
    ),
    "a batch of matrices": made(
        lambda m, x: m.MatMul(
            m.MatMul(x, numbers(np.zeros((2, 3, 8)), "int8")), drawn(1, 8, 2, low=-9, high=9, dtype="int32")
        ),
        tensor("x", 2, 3, dtype=DType.INT8),
    ),
    "products of 64 bits": made(
        lambda m, x: m.MatMul(
            m.MatMul(x, numbers(np.arange(24).reshape(3, 8) % 5 * [0, 1, 1, 0, 1, 0, 0, 1], "int64")),
            numbers((np.arange(16).reshape(8, 2) - 7) * [[1], [0], [0], [1], [1], [0], [0], [1]], "int64"),
        ),
        tensor("x", 2, 3, dtype=DType.INT64),
    ),
    "one factor for all channels": made(
        lambda m, x: _last(
            m,
            m.Requantise(
                m.Add(m.Convolution(x, _filters(1, (8, 1, 1, 3), (1, 2, 5, 7))), numbers(11, "int32")),
                *(numbers([v], "int32") for v in (2**30, -1)),
            ),
        ),
        X,
    ),
    "sums of 64 bits": made(_sums_of_64_bits(False), X),
    "bias of 64 bits": made(_sums_of_64_bits(True), X),
    "largest of windows that may miss": _between(
        lambda m, y: m.Pool(y, mode="max", kernel=(1, 2), strides=(1, 1), dilations=(1, 5), pads=(0, 1, 0, 1))
    ),
    "no bias before the factor": _read(
        lambda m, acc: [m.Requantise(acc, *(numbers([v], "int32") for v in (2**30, -3)))]
    ),
    "depthwise, weights from outside": made(
        lambda m, x, w: _last(m, _finished(m, m.Convolution(_first(m, x), w, group=8))),
        X,
        tensor("w", 8, 1, 1, 1, dtype=DType.INT8),
    ),
    "one channel, then none": made(
        lambda m, x: m.Neg(m.ReshapeTo(m.MatMul(x, numbers([[0], [0]], "int8")), to=())),
        tensor("x", 1, 2, dtype=DType.INT8),
    ),
    "weights from outside": made(
        lambda m, x, w: _last(m, _finished(m, m.Convolution(x, w))),
        X,
        tensor("w", 8, 1, 1, 3, dtype=DType.INT8),
    ),
    "a chain": made(
        lambda m, x: _last(
            m, _first(m, _finished(m, m.Convolution(x, _filters(7, (3, 1, 1, 3), (0, 1, 2)))))
        ),
        X,
    ),
}


def _product_of(m: Maker, y: Value) -> Value:
    return _finished(m, m.MatMul(y, drawn(5, y.shape[-1], 2, low=-9, high=9, dtype="int8")))


CASES = {f"dead_channels: {name}": PassCase(dead_channels, make) for name, make in CASES_OF.items()}
