"""Cases of fuse_qdq: every rule with scales and zero points of many kinds, at the edges of types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

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
BEYOND = Scales((0.9, 3), (0.8, -2), (0.7, 0), (1e-5, 1))
"""What gives anything but the limits is 0, or nearly: sums have no room for such factors."""
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


def largest(n: Net, x: Value, **window: object) -> Value:
    """Of windows, without their places, which nobody asks for."""
    n.m.MaxPool(x, **window)
    pool = n.m.nodes[-1]
    pool.outputs = pool.outputs[:1]
    return pool.outputs[0]


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
    "times a number": (lambda n, x: n.m.Mul(numbers(0.37), x), [(2, 40)]),
    "divided by a number": (lambda n, x: n.m.Div(x, numbers(2.5)), [(2, 40)]),
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
    "largest": (lambda n, x: largest(n, x, kernel_shape=(2, 2), strides=(2, 2)), [(1, 2, 6, 6)]),
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
    "split, the second piece": (lambda n, x: n.m.Split(x, numbers([3, 5, 1], INT64), axis=-1)[1], [(7, 9)]),
    "split evenly, the last piece": (lambda n, x: n.m.Split(x, axis=0, num_outputs=3)[2], [(8, 9)]),
    "split and moved": (
        lambda n, x: n.m.Transpose(n.m.Split(x, axis=1, num_outputs=2)[1], perm=(1, 0)),
        [(5, 7)],
    ),
    "padded": (lambda n, x: n.m.Pad(x, numbers([1, 0, 0, 2], INT64)), [(6, 9)]),
    "padded with zeros along an axis": (
        lambda n, x: n.m.Pad(x, numbers([2, -1], INT64), numbers([0.0]), numbers([1], INT64)),
        [(6, 9)],
    ),
    "padded with what is there": (
        lambda n, x: n.m.Pad(x, numbers([1, 0, 1, 2], INT64), mode="reflect"),
        [(6, 9)],
    ),
    "rescaled": (lambda n, x: x, [(5, 60)]),
    "rescaled and clipped": (lambda n, x: n.m.Relu(n.m.Identity(x)), [(5, 60)]),
}
WITHOUT_SUMS = ("multiplication", "times a number", "concatenation", "moved", "rescaled")
"""Whose floats have no rounding errors that a very fine scale shows."""
BYTE_RULES: dict[str, Rule] = {
    "table": (lambda n, x: n.m.Mul(x, n.m.Sigmoid(n.m.Add(x, numbers(0.25)))), [(5, 60)]),
    "table of one": (lambda n, x: n.m.Relu(n.m.Neg(x)), [(300,)]),
    "softmax": (lambda n, x: n.m.Softmax(x, axis=0), [(7, 9)]),
}


def case_of(rule: Rule, scales: Scales, units: int = 1) -> PassCase:
    function, shapes = rule
    inputs = [tensor(f"q{k}", *shape, dtype=scales.dtype) for k, shape in enumerate(shapes)]

    def build(m: Maker, *values: Value) -> Value:
        net = Net(m, scales)
        reals = [(net.x, net.y)[k](v) for k, v in enumerate(values)]
        return net.quantised(function(net, *reals))

    return PassCase(fuse_qdq, made(build, *inputs), units=units)


def _regimes() -> Iterator[tuple[str, str, Rule, Scales]]:
    """Odd scales for every rule and type; the others for types in turn."""
    others = {
        "powers of two": POWERS,
        "ends": ENDS,
        "saturated": SATURATED,
        "coarse": COARSE,
        "far beyond": BEYOND,
    }
    for number, (name, rule) in enumerate({**RULES, **BYTE_RULES}.items()):
        types = BYTES if name in BYTE_RULES else (*BYTES, *SHORTS)
        for dtype in types:
            fine = 1.0 if dtype.bits == 8 else 1 / 250
            zero = 0 if dtype is DType.INT16 else 1
            yield f"{name}, {dtype.label}", "odd", rule, _fitted(ODD, dtype, fine, zero)
            if dtype.bits == 16 and name in WITHOUT_SUMS:
                far = _fitted(BEYOND, dtype, fine, zero)
                yield f"{name}, {dtype.label}, far beyond", "far beyond", rule, far
        for k, (words, scales) in enumerate(others.items()):
            yield f"{name}, {words}", words, rule, _fitted(scales, BYTES[(number + k) % 2], 1.0, 1)


def _fitted(scales: Scales, dtype: DType, fine: float, zero: int) -> Scales:
    """The scales for another type: zero points move with the middle of unsigned ones."""
    middle = 0 if dtype.limits[0] < 0 else (dtype.limits[1] + 1) // 2

    def pair(old: tuple[float, int]) -> tuple[float, int]:
        return old[0] * fine, old[1] * zero + middle * zero

    return replace(scales, x=pair(scales.x), y=pair(scales.y), to=pair(scales.to), dtype=dtype)


CASES = {f"fuse_qdq: {name}": case_of(rule, scales) for name, _, rule, scales in _regimes()}
