"""The kernels' table: for every kernel that a target registers, the layers that it is run on, and where.

A layer is an input and a chain of operators (a convolution, its bias, its requantisation, what is fused
behind); what it gives is what the operators' references give, one after the other.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from aot_model.ir.graph import Graph, Value
from aot_model.ir.types import DType, TensorType
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.pool import Pool
from aot_model.ops.quantised import QuantisedMul, QuantisedSum
from aot_model.ops.quantised_tables import Lookup, Table
from aot_model.ops.registry import OPERATORS, Build, Operator, load_all
from aot_model.ops.requantise import Requantise, Rescale
from batch import Case

load_all()


@dataclass(frozen=True)
class Step:
    """An operator over what the step before gave, and others: constants, or inputs of the model when
    `fed`.
    """

    operator: Operator
    others: tuple[np.ndarray, ...] = ()
    fed: bool = False


@dataclass(frozen=True)
class Layer:
    """x, and the operators."""

    name: str
    x: np.ndarray
    steps: tuple[Step, ...]

    def expected(self) -> np.ndarray:
        y = self.x
        for step in self.steps:
            y = (
                PLAIN[step.operator.name](y, *step.others)
                if step.operator.name in PLAIN
                else step.operator.reference([y, *step.others])[0]
            )
        return y

    def graph(self) -> Graph:
        x = _input("x", self.x)
        graph = Graph("layer", [x])
        build, y = Build(graph.nodes, "layer"), x
        for k, step in enumerate(self.steps):
            others = [
                _input(f"x{k}_{n}", a) if step.fed else build.constant(a) for n, a in enumerate(step.others)
            ]
            graph.inputs += others if step.fed else []
            y = build(step.operator, y, *others)
        y.name = "y"
        graph.outputs = [y]
        return graph

    def case(self, group: str, options: dict[str, str]) -> Case:
        fed = tuple(a for s in self.steps if s.fed for a in s.others)
        return Case(self.name, partial(_graph, group, self.name), (self.x, *fed), options=options)


PLAIN: dict[str, Callable[..., np.ndarray]] = {
    "Add": lambda a, b: np.asarray(a + b, a.dtype),
    "Relu": lambda a: np.maximum(a, 0),
    "Mul": lambda a, b: np.asarray(a * b, a.dtype),
    "Cast": lambda a: a.astype(np.float32),
    "MatMul": lambda a, b: np.asarray(
        _product(a) @ _product(b), a.dtype if a.dtype.kind == "f" else np.int32
    ),
}
"""Operators of ONNX, which have no reference of their own."""


def _product(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float64 if a.dtype.kind == "f" else np.int64)


def _input(name: str, array: np.ndarray) -> Value:
    return Value(name, TensorType(DType.of(array.dtype), array.shape))


def _graph(group: str, name: str) -> Graph:
    return next(layer for layer in GROUPS[group]() if layer.name == name).graph()


# --- layers -------------------------------------------------------------------------------------------------

WINDOWS: tuple[dict[str, Any], ...] = (
    {},
    {"strides": (2, 1)},
    {"pads": (1, 1, 1, 1)},
    {"strides": (2, 2), "pads": (0, 1, 1, 0)},
    {"dilations": (2, 1), "pads": (2, 0, 1, 0)},
    {"strides": (1, 3), "pads": (1, 2, 0, 1)},
)
SHAPES = (
    ((1, 1), 8, 8),
    ((3, 3), 3, 8),
    ((1, 1), 33, 5),
    ((3, 3), 16, 4),
    ((2, 5), 4, 7),
    ((3, 1), 13, 3),
    ((1, 1), 64, 12),
    ((3, 2), 1, 6),
)
"""Kernel, input and output channels."""


class Draw:
    """Random layers that are the same every time."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def tensor(self, dtype: type[Any], *shape: int) -> np.ndarray:
        if np.dtype(dtype).kind == "f":
            return np.asarray(self.rng.uniform(-1, 1, shape), dtype)
        limits = np.iinfo(dtype)
        return np.asarray(self.rng.integers(limits.min, limits.max + 1, shape), dtype)

    def requantised(self, depth: int, channels: int, to: type[Any], turn: int) -> tuple[Step, ...]:
        """A bias and a requantisation that spread the sums over the type; turn after turn another kind of
        them.
        """
        count = 1 if turn % 4 == 3 else channels
        fit = -int(np.log2(60.0 * 60.0 * np.sqrt(depth) / 64.0))
        m = self.rng.integers(1 << 30, 1 << 31, count).astype(np.int32)
        s = (fit + self.rng.integers(-1, 2, count)).astype(np.int32)
        limits = np.iinfo(to)
        low, high = ((limits.min, limits.max), (limits.min + 100, limits.max), (limits.min, limits.max - 60))[
            turn % 3
        ]
        zero = int(self.rng.integers(limits.min, limits.max + 1)) if turn % 2 else low
        bias = Step(op("Add"), (self.rng.integers(-3000, 3000, channels).astype(np.int32),))
        node = Requantise(zero, low, high, DType.of(np.dtype(to)), "single" if turn % 5 == 4 else "double")
        return (*(() if turn % 7 == 6 else (bias,)), Step(node, (m, s)))

    def even(self, channels: int, to: type[Any], turn: int) -> tuple[Step, ...]:
        """A bias and a requantisation whose halves go to even numbers: by powers of two, one for all channels
        or several, and by other factors of few bits.
        """
        count = channels if turn % 2 else 1
        m = (np.full(count, 1 << 30) if turn % 3 else self.rng.integers(4, 8, count) << 28).astype(np.int32)
        s = -self.rng.integers(7, 10, count).astype(np.int32)
        limits = np.iinfo(to)
        bias = Step(op("Add"), (self.rng.integers(-150, 150, channels).astype(np.int32) * 32,))
        low = limits.min + 90 * (turn % 4 == 2)
        node = Requantise(low + 60 * (turn % 3), low, limits.max, DType.of(np.dtype(to)), "even")
        return bias, Step(node, (m, s))

    def sums(self, channels: int, shape: tuple[int, ...], turn: int) -> tuple[Step, ...]:
        """What takes accumulators without a requantisation: nothing, a bias, a tensor that is added."""
        bias = Step(op("Add"), (self.rng.integers(-3000, 3000, channels).astype(np.int32),))
        fed = Step(op("Add"), (self.rng.integers(-9999, 9999, shape).astype(np.int32),), fed=True)
        return ((bias,), (), (bias, fed), (fed,))[turn % 4]


def int8_transposed() -> list[Layer]:
    draw, layers = Draw(36), []
    windows: tuple[tuple[tuple[int, int], int, int, int, dict[str, Any]], ...] = (
        ((3, 3), 8, 5, 1, {"strides": (2, 2), "pads": (0, 0, 1, 1)}),
        ((2, 2), 6, 4, 1, {"strides": (2, 2)}),
        ((4, 4), 5, 8, 1, {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
        ((2, 2), 4, 3, 1, {"strides": (2, 2), "pads": (1, 1, 0, 0)}),
        ((2, 1), 4, 6, 1, {"strides": (3, 2), "output_padding": (1, 1)}),
        ((5, 3), 3, 4, 1, {"strides": (3, 1), "pads": (2, 1, 0, 2)}),
        ((3, 3), 6, 4, 2, {"strides": (2, 1), "dilations": (1, 2), "pads": (1, 3, 1, 0)}),
        ((3, 2), 4, 4, 1, {"strides": (4, 2), "dilations": (2, 3), "pads": (1, 0, 0, 1)}),
        ((3, 3), 6, 6, 6, {"strides": (2, 2), "pads": (1, 0, 0, 1)}),
        ((2, 2), 4, 4, 4, {"strides": (1, 2), "pads": (1, 1, 0, 0), "dilations": (2, 1)}),
    )
    for turn, (kernel, ins, outs, group, window) in enumerate(windows):
        kind = np.uint8 if turn % 4 == 3 else np.int8
        w = draw.tensor(np.int8, outs, *kernel, ins // group)
        node = ConvolutionTranspose(
            **window,
            group=group,
            x_zero_point=7 * turn - 20 + 128 * (turn % 4 == 3),
            w_zero_point=3 if turn == 5 else 0,
        )
        x = draw.tensor(kind, 1 + turn % 2, 4 + turn % 3, 5, ins)
        steps = (Step(node, (w,)), *draw.requantised(int(np.prod(w.shape[1:])), outs, kind, turn))
        if turn == 1:
            steps = (Step(node, (w,)), *draw.sums(outs, (), 0))
        if turn == 2:
            values = tuple(int(v) for v in np.clip(np.arange(-128, 128) // 3, -128, 127))
            steps = (*steps, Step(Lookup(Table(values, DType.INT8, -128))))
        layers.append(Layer(f"{turn} {list(x.shape)} * {list(w.shape)} {window}", x, steps))
    w = draw.tensor(np.int8, 6, 4, 3)
    line = ConvolutionTranspose((2,), (1, 0), (1,), (0,), x_zero_point=4)
    layers.append(
        Layer("line", draw.tensor(np.int8, 2, 7, 3), (Step(line, (w,)), *draw.requantised(12, 6, np.int8, 1)))
    )
    node = ConvolutionTranspose(strides=(2, 2), pads=(1, 1, 1, 1), x_zero_point=-3)
    both = QuantisedSum("add", Rescale(-3, 2**30, 0), Rescale(9, 1717986918, -1), Rescale(4, 1288490189, -18))
    w, other = draw.tensor(np.int8, 8, 4, 4, 5), draw.tensor(np.int8, 1, 12, 10, 8)
    steps = (Step(node, (w,)), *draw.requantised(80, 8, np.int8, 1), Step(both, (other,), fed=True))
    layers.append(Layer("with a tensor that is added", draw.tensor(np.int8, 1, 6, 5, 5), steps))
    return layers


def int8_convolutions() -> list[Layer]:
    draw, layers = Draw(31), []

    def add(
        kind: type[Any],
        shape: tuple[int, ...],
        w: np.ndarray,
        more: tuple[Step, ...] = (),
        w_zero: int = 0,
        **window: Any,
    ) -> None:
        turn = len(layers)
        node = Convolution(
            **window,
            x_zero_point=int(draw.rng.integers(-20, 20)) + (128 if kind is np.uint8 else 0),
            w_zero_point=w_zero,
        )
        x = draw.tensor(kind, *shape)
        steps = (
            Step(node, (w,)),
            *draw.requantised(int(np.prod(w.shape[1:])), w.shape[0], kind, turn),
            *more,
        )
        layers.append(Layer(f"{turn} {x.dtype}{list(shape)} * {list(w.shape)} {window}", x, steps))

    for k, (kernel, ins, outs) in enumerate(SHAPES):
        for window in (WINDOWS[k % 6], WINDOWS[(k + 2) % 6]):
            add(np.int8, (1 + k % 2, 7, 9, ins), draw.tensor(np.int8, outs, *kernel, ins), **window)
    for kernel, channels, window in (
        ((3, 3), 8, WINDOWS[2]),
        ((3, 3), 21, WINDOWS[3]),
        ((3, 3), 4, WINDOWS[0]),
        ((5, 5), 6, WINDOWS[2]),
        ((1, 7), 12, WINDOWS[0]),
        ((3, 3), 16, WINDOWS[5]),
        ((4, 1), 40, WINDOWS[4]),
    ):
        add(
            np.int8,
            (1, 8, 10, channels),
            draw.tensor(np.int8, channels, *kernel, 1),
            **window,
            group=channels,
        )
    add(np.int8, (1, 6, 6, 4), draw.tensor(np.int8, 8, 3, 3, 1), group=4)
    add(np.int8, (1, 6, 6, 8), draw.tensor(np.int8, 6, 3, 3, 4), group=2, pads=(1, 1, 1, 1))
    add(np.int8, (2, 15, 4), draw.tensor(np.int8, 6, 3, 4), strides=(2,), pads=(1, 1), dilations=(1,))
    for window in WINDOWS[:3]:
        add(np.uint8, (1, 6, 7, 4), draw.tensor(np.int8, 8, 3, 3, 4), **window)
    add(np.uint8, (1, 5, 5, 6), draw.tensor(np.uint8, 5, 1, 1, 6), w_zero=120)
    table = Table(
        tuple(int(v) for v in np.clip(np.arange(-128, 128) ** 2 // 100 - 90, -128, 127)), DType.INT8, -128
    )
    both = QuantisedSum("add", Rescale(-3, 2**30, 0), Rescale(9, 1717986918, -1), Rescale(4, 1288490189, -18))
    for kernel, ins, outs, group in (((1, 1), 16, 8, 1), ((3, 3), 8, 8, 8), ((3, 3), 4, 5, 1)):
        w = draw.tensor(np.int8, outs, *kernel, ins // group)
        out = (1, 8 - kernel[0] + 1, 9 - kernel[1] + 1, outs)
        add(np.int8, (1, 8, 9, ins), w, (Step(Lookup(table)),), group=group)
        add(np.int8, (1, 8, 9, ins), w, (Step(both, (draw.tensor(np.int8, *out),), fed=True),), group=group)
    # one tap with padding, dilation along the rows alone, one pixel of groups and of weights with a zero
    # point
    add(np.int8, (1, 5, 6, 8), draw.tensor(np.int8, 6, 1, 1, 8), strides=(2, 2), pads=(1, 1, 0, 0))
    add(np.int8, (1, 5, 9, 4), draw.tensor(np.int8, 5, 1, 3, 4), dilations=(1, 2))
    add(np.int8, (1, 1, 1, 8), draw.tensor(np.int8, 6, 1, 1, 4), group=2)
    add(np.uint8, (1, 1, 1, 8), draw.tensor(np.uint8, 6, 1, 1, 8), w_zero=120)
    by = QuantisedMul(0, 0, Rescale(0, 1 << 30, -6))
    for repeated in ((2, 1, 1, 4), (1, 4, 1, 1), (1, 1, 5, 1)):  # a tensor that is the same along axes
        more = (Step(by, (draw.tensor(np.int8, *repeated),), fed=True),)
        add(np.int8, (2, 6, 7, 3), draw.tensor(np.int8, 4, 3, 3, 3), more)
    for turn, (kernel, ins, outs, group, w_zero) in enumerate(
        (
            ((1, 1), 16, 8, 1, 0),
            ((3, 3), 5, 7, 1, 0),
            ((3, 3), 8, 8, 8, 0),
            ((5, 5), 3, 6, 3, 0),
            ((2, 3), 8, 6, 2, 0),
            ((3, 1), 5, 5, 5, 4),
            ((1, 1), 9, 3, 1, -6),
        )
    ):
        shape, w = (2, 8, 9, ins), draw.tensor(np.int8, outs, *kernel, ins // group)
        node = Convolution(x_zero_point=-5, w_zero_point=w_zero, group=group)
        steps = (Step(node, (w,)), *draw.sums(outs, (2, 9 - kernel[0], 10 - kernel[1], outs), turn))
        layers.append(
            Layer(f"{len(layers)} sums {list(w.shape)} {group}", draw.tensor(np.int8, *shape), steps)
        )
    # weights of uint8 beyond int8, whose zero point is 0; a zero point that the input cannot have
    add(np.int8, (1, 6, 7, 4), draw.tensor(np.uint8, 8, 3, 3, 4), pads=(1, 1, 1, 1))
    add(np.int8, (1, 6, 7, 8), draw.tensor(np.uint8, 8, 3, 3, 1), group=8)
    add(np.int8, (1, 1, 1, 32), draw.tensor(np.uint8, 12, 1, 1, 32))
    w = draw.tensor(np.int8, 5, 3, 3, 4)
    below = Convolution(x_zero_point=-7, pads=(1, 1, 1, 1))
    steps = (Step(below, (w,)), *draw.requantised(36, 5, np.uint8, 0))
    layers.append(Layer("zero point below the type", draw.tensor(np.uint8, 1, 5, 6, 4), steps))
    # groups: an odd count of channels in and out, one channel out, dilation, uint8 weights, a tail by rows
    out = (2, 6, 7, 9)
    for ins, outs, group, window in ((15, 9, 3, WINDOWS[2]), (8, 4, 4, WINDOWS[1]), (12, 6, 2, WINDOWS[4])):
        add(np.int8, (2, 6, 7, ins), draw.tensor(np.int8, outs, 3, 3, ins // group), group=group, **window)
    more = (Step(both, (draw.tensor(np.int8, *out),), fed=True),)
    add(np.int8, (2, 6, 7, 12), draw.tensor(np.int8, 9, 1, 1, 4), more, group=3)
    add(np.uint8, (1, 6, 7, 6), draw.tensor(np.uint8, 4, 3, 3, 3), w_zero=120, group=2, **WINDOWS[2])
    # few channels: rows of four pixels, windows wider than the image, dilation
    for ins, columns in ((2, 8), (3, 8), (5, 8), (4, 4)):
        add(np.int8, (2, 6, columns, ins), draw.tensor(np.int8, 6, 3, 3, ins), **WINDOWS[2])
    add(np.uint8, (1, 6, 8, 3), draw.tensor(np.uint8, 5, 5, 5, 3), w_zero=120, pads=(2, 2, 2, 2))
    for ins in (2, 5):
        add(np.int8, (1, 7, 9, ins), draw.tensor(np.int8, 6, 3, 3, ins), dilations=(2, 2), pads=(2, 2, 2, 2))
    # one channel out, rows of even and odd length, alone and with what may follow; in the last the sums do
    ones: tuple[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
        ((2, 6, 8, 4), (3, 3), WINDOWS[2]), ((1, 6, 9, 16), (3, 3), WINDOWS[2]), ((1, 6, 8, 1), (3, 3), {}),
        ((1, 7, 10, 5), (3, 2), {"pads": (1, 1, 1, 0)}), ((2, 9, 14, 8), (5, 4), {"strides": (2, 2)}),
        ((1, 5, 4, 6), (2, 3), WINDOWS[5]), ((2, 24, 3), (5,), {"pads": (2, 2), "strides": (1,),
                                                               "dilations": (1,)}))  # fmt: skip
    for shape, taps, window in ones:
        add(np.int8, shape, draw.tensor(np.int8, 1, *taps, shape[-1]), **window)
    residual = Step(both, (draw.tensor(np.int8, 2, 6, 8, 1),), fed=True)
    for more in ((Step(Lookup(table)),), (residual,)):
        add(np.int8, (2, 6, 8, 4), draw.tensor(np.int8, 1, 3, 3, 4), more, **WINDOWS[2])
    add(np.uint8, (2, 6, 8, 3), draw.tensor(np.uint8, 1, 3, 3, 3), w_zero=120, **WINDOWS[2])
    steps = (
        Step(Convolution(x_zero_point=-5, w_zero_point=4), (draw.tensor(np.int8, 1, 3, 3, 8),)),
        *draw.sums(1, (2, 6, 8, 1), 2),
    )
    layers.append(Layer("sums to one channel", draw.tensor(np.int8, 2, 8, 10, 8), steps))
    # every second pixel of two rows: they do not follow one another in memory
    add(np.int8, (1, 3, 3, 16), draw.tensor(np.int8, 12, 1, 1, 16), strides=(2, 2))
    # images of results as large as those of the input: they may lie in the same place
    add(np.int8, (2, 5, 6, 4), draw.tensor(np.int8, 4, 3, 3, 1), pads=(1, 1, 1, 1), group=4)
    # more outputs of each channel than channels
    add(np.int8, (1, 6, 7, 2), draw.tensor(np.int8, 10, 3, 3, 1), pads=(1, 1, 1, 1), group=2)
    # ties to even: inputs and weights are multiples of 4 and 8, so that many sums are halves
    for turn, (kernel, ins, outs, group) in enumerate(
        (
            ((1, 1), 16, 8, 1),
            ((3, 3), 5, 7, 1),
            ((3, 3), 9, 9, 9),
            ((5, 5), 6, 6, 6),
            ((1, 3), 8, 8, 8),
            ((2, 3), 8, 6, 2),
            ((3, 3), 8, 8, 1),
            ((3, 3), 3, 6, 3),
            ((1, 1), 33, 5, 1),
        )
    ):
        kind = np.uint8 if turn % 5 == 4 else np.int8
        x = 4 * (draw.tensor(kind, 2, 8, 9, ins) // 8)
        w = 8 * (draw.tensor(np.int8, outs, *kernel, ins // group) // 16)
        node = Convolution(x_zero_point=-4 + 128 * (kind is np.uint8), group=group)
        more = (Step(Lookup(table)),) if turn in (0, 2, 8) else ()
        layers.append(
            Layer(
                f"{len(layers)} ties {x.dtype} {list(w.shape)} {group}",
                x,
                (Step(node, (w,)), *draw.even(outs, kind, turn), *more),
            )
        )
    as_bytes = Table(tuple(range(255, -1, -1)), DType.UINT8, 0)
    # windows that lie one behind the other in memory: the whole image, rows of it, parts of a row
    for shape, outs, taps, window in (
        ((1, 6, 1, 40), 9, (5, 1), {"strides": (3, 1)}),
        ((2, 3, 4, 5), 6, (3, 4), {}),
        ((1, 7, 4, 3), 8, (2, 4), {"strides": (2, 1)}),
        ((2, 3, 8, 5), 7, (1, 4), {"strides": (1, 4)}),
    ):
        add(np.int8, shape, draw.tensor(np.int8, outs, *taps, shape[-1]), **window)
    add(np.uint8, (1, 4, 4, 3), draw.tensor(np.uint8, 6, 4, 4, 3), (Step(Lookup(as_bytes)),), w_zero=120)
    # few outputs of a channel: odd and even taps, channels left over, several rows, what follows
    for kind, shape, taps, window in (
        (np.int8, (2, 1, 9, 30), (1, 9), {}),
        (np.int8, (1, 9, 1, 7), (8, 1), {}),
        (np.uint8, (2, 3, 3, 5), (3, 3), {}),
        (np.int8, (1, 1, 11, 16), (1, 3), {"strides": (1, 4)}),
        (np.uint8, (1, 1, 9, 8), (1, 4), {"dilations": (1, 2)}),
    ):
        channels = shape[-1]
        add(kind, shape, draw.tensor(np.int8, channels, *taps, 1), group=channels, **window)
    for shape, taps, out in (((2, 6, 1, 9), (5, 1), (2, 2, 1, 9)), ((1, 1, 7, 12), (1, 5), (1, 1, 3, 12))):
        more = (Step(both, (draw.tensor(np.int8, *out),), fed=True),)
        add(np.int8, shape, draw.tensor(np.int8, shape[-1], *taps, 1), more, group=shape[-1])
    node, w = Convolution(x_zero_point=-5, group=6), draw.tensor(np.int8, 6, 2, 3, 1)
    steps = (Step(node, (w,)), *draw.sums(6, (2, 1, 1, 6), 2))
    layers.append(Layer("sums of one window", draw.tensor(np.int8, 2, 2, 3, 6), steps))
    # depthwise ones of few taps, or of few outputs in a row; with zero points of weights
    for kind, shape, kernel, w_zero, window in (
        (np.int8, (1, 1, 21, 60), (1, 21), 0, {}),
        (np.uint8, (1, 9, 1, 8), (9, 1), 0, {}),
        (np.uint8, (2, 6, 7, 10), (3, 3), 120, WINDOWS[3]),
        (np.int8, (1, 6, 9, 34), (1, 3), 0, WINDOWS[0]),
    ):
        weights = draw.tensor(np.uint8 if w_zero else np.int8, shape[-1], *kernel, 1)
        add(kind, shape, weights, w_zero=w_zero, group=shape[-1], **window)
    return layers


def int8_products() -> list[Layer]:
    draw, layers = Draw(32), []
    sizes = [
        (1, 64, 12),
        (1, 27, 13),
        (1, 8, 24),
        (1, 1, 1),
        (1, 300, 5),
        (1, 640, 9),
        (4, 16, 16),
        (5, 23, 9),
        (3, 100, 2),
        (2, 7, 33),
    ]
    for turn, (rows, depth, columns) in enumerate(sizes):
        for kind in (np.int8, np.uint8)[: 1 + (turn % 3 == 0)]:
            x, w = draw.tensor(kind, rows, depth), draw.tensor(np.int8, depth, columns)
            # the reference: a product is a 1x1 convolution
            zero = Step(Convolution((1,), (0, 0), (1,), x_zero_point=11), (w.T.reshape(columns, 1, depth),))
            steps = draw.requantised(depth, columns, kind, turn)
            layers.append(
                ProductLayer(
                    f"{turn} {x.dtype} {rows} x {depth} x {columns}",
                    x,
                    (Step(MatMul(11, 0), (w,)), *steps),
                    zero,
                )
            )
    for turn, (rows, depth, columns) in enumerate(sizes[3:7]):
        x, w = draw.tensor(np.int8, rows, depth), draw.tensor(np.int8, depth, columns)
        zero = Step(Convolution((1,), (0, 0), (1,), x_zero_point=11), (w.T.reshape(columns, 1, depth),))
        steps = draw.sums(columns, (rows, columns), turn)
        layers.append(
            ProductLayer(f"sums {rows} x {depth} x {columns}", x, (Step(MatMul(11, 0), (w,)), *steps), zero)
        )
    for turn, (rows, depth, columns) in enumerate(((1, 64, 33), (9, 23, 9), (1, 30, 37), (7, 16, 16))):
        x, w = 4 * (draw.tensor(np.int8, rows, depth) // 8), 8 * (draw.tensor(np.int8, depth, columns) // 16)
        zero = Step(Convolution((1,), (0, 0), (1,), x_zero_point=12), (w.T.reshape(columns, 1, depth),))
        layers.append(
            ProductLayer(
                f"ties {rows} x {depth} x {columns}",
                x,
                (Step(MatMul(12, 0), (w,)), *draw.even(columns, np.int8, turn)),
                zero,
            )
        )
    for rows, depth, columns in ((1, 40, 12), (4, 24, 8)):  # weights of uint8 beyond int8
        x, w = draw.tensor(np.int8, rows, depth), draw.tensor(np.uint8, depth, columns)
        zero = Step(Convolution((1,), (0, 0), (1,), x_zero_point=11), (w.T.reshape(columns, 1, depth),))
        layers.append(
            ProductLayer(
                f"uint8 weights {rows} x {depth} x {columns}",
                x,
                (Step(MatMul(11, 0), (w,)), *draw.requantised(depth, columns, np.int8, 0)),
                zero,
            )
        )
    return layers


@dataclass(frozen=True)
class ProductLayer(Layer):
    """A matrix product with zero points, whose reference is that of a convolution of one tap."""

    as_convolution: Step

    def expected(self) -> np.ndarray:
        y = self.as_convolution.operator.reference([self.x[None], *self.as_convolution.others])[0][0]
        return Layer(self.name, y, self.steps[1:]).expected()


def pools(*kinds: tuple[str, type[Any]]) -> list[Layer]:
    draw, layers = Draw(33), []
    kernels: tuple[tuple[tuple[int, int], dict[str, Any]], ...] = (
        ((2, 2), {"strides": (2, 2)}),
        ((3, 3), {"pads": (1, 1, 1, 1), "strides": (2, 1)}),
        ((7, 8), {}),
        ((1, 1), {"strides": (2, 2)}),
        ((3, 2), {"pads": (1, 0, 2, 1)}),
        ((3, 3), {"pads": (1, 1, 1, 1), "strides": (1, 2)}),
    )
    for mode, kind in kinds:
        for channels, (kernel, window) in zip((16, 5, 13, 1, 33, 8), kernels, strict=True):
            layers.append(
                Layer(
                    f"{len(layers)} {mode} {kind.__name__} {kernel} {window}",
                    draw.tensor(kind, 2, 7, 8, channels),
                    (Step(Pool(mode, kernel, **window)),),
                )
            )
        if mode == "average":  # sums around 0: halves, which are rounded away from it
            near = np.asarray(draw.rng.integers(0, 3, (1, 6, 8, 5)) - (np.dtype(kind).kind == "i"), kind)
            layers.append(
                Layer(f"{len(layers)} {mode} {kind.__name__} around 0", near, (Step(Pool(mode, (1, 2))),))
            )
    deep = {"strides": (2, 1, 2), "pads": (1, 0, 1, 0, 2, 1), "dilations": (1, 2, 1)}
    for mode, kind in kinds:
        for counted in (0, 1) if kind is np.float32 else ():
            pool = Pool(mode, (3, 3, 2), **deep, count_include_pad=counted)
            layers.append(
                Layer(
                    f"{len(layers)} {mode} {kind.__name__} volume {counted}",
                    draw.tensor(kind, 2, 5, 7, 6, 5),
                    (Step(pool),),
                )
            )
    layers += [
        Layer(
            f"{len(layers)} {mode} {kind.__name__} line",
            draw.tensor(kind, 2, 9, 6),
            (Step(Pool(mode, (3,), (2,), (1, 1), (1,))),),
        )
        for mode, kind in kinds
    ]
    return layers


def integer_pools() -> list[Layer]:
    layers = pools(("max", np.int8), ("average", np.int8), ("average", np.uint8), ("max", np.uint8),
                   ("average", np.int16), ("max", np.int16))  # fmt: skip
    draw = Draw(37)
    for rows, columns in ((18, 20), (21, 18), (40, 30)):  # means of many: all the largest, around halves
        x = np.full((1, rows, columns, 6), -32768, np.int16)
        x[..., 1] = 32767
        x[..., 2:] = draw.rng.integers(-1, 2, (1, rows, columns, 4)) + draw.tensor(np.int16, 4)
        x[..., : columns // 2, 3] += 1
        layers.append(Layer(f"mean of {rows} x {columns}", x, (Step(Pool("average", (rows, columns))),)))
    for mode in ("average", "max"):
        fed = Step(op("Add"), (draw.tensor(np.int16, 1, 4, 3, 9),), fed=True)
        layers.append(
            Layer(
                f"{mode} int16 with a sum behind",
                draw.tensor(np.int16, 1, 5, 7, 9),
                (Step(Pool(mode, (2, 3), (1, 2))), fed),
            )
        )
    return layers


def windows_by_channel() -> list[tuple[tuple[int, ...], tuple[int, ...], bool, dict[str, Any]]]:
    """(weights, x, whether the weights are an input, attributes): of 1-D, 2-D and 3-D, grouped and depthwise,
    for convolutions and transposed ones.
    """
    window = {
        1: {"strides": (3,), "pads": (1, 0), "dilations": (2,)},
        2: {"strides": (2, 1), "pads": (0, 1, 1, 1), "dilations": (1, 2)},
        3: {"strides": (2, 1, 2), "pads": (1, 0, 1, 0, 1, 1), "dilations": (1, 2, 1)},
    }
    sizes = {1: ((17,), (5,)), 2: ((9, 8), (3, 4)), 3: ((5, 6, 7), (2, 3, 3))}
    found = []
    for k, (d, outs, ins, group) in enumerate(
        [
            (3, 6, 4, 1),
            (3, 8, 8, 2),
            (3, 10, 10, 10),
            (3, 6, 3, 3),
            (2, 16, 16, 16),
            (2, 21, 7, 7),
            (1, 8, 8, 8),
            (1, 12, 12, 3),
            (2, 9, 9, 3),
            (2, 5, 3, 1),
        ]
    ):
        (size, kernel), batch = sizes[d], 1 + k % 2
        for fed in (False, True):
            found.append(
                ((outs, *kernel, ins // group), (batch, *size, ins), fed, {"group": group, **window[d]})
            )
    return found


def float_convolutions(transposed: bool) -> list[Layer]:
    draw, layers = Draw(34), []
    operator = ConvolutionTranspose if transposed else Convolution

    def add(shape: tuple[int, ...], w: np.ndarray, **window: Any) -> None:
        turn = len(layers)
        bias, relu = Step(op("Add"), (draw.tensor(np.float32, w.shape[0]),)), Step(OPERATORS["", "Relu"]())
        tail = ((bias, relu), (bias,), (), (relu,))[turn % 4]
        layers.append(
            Layer(
                f"{turn} {list(shape)} * {list(w.shape)} {window}",
                draw.tensor(np.float32, *shape),
                (Step(operator(**window), (w,)), *tail),
            )
        )

    for k, (kernel, ins, outs) in enumerate((*SHAPES, ((3, 3), 8, 17), ((1, 1), 16, 32))):
        for window in (WINDOWS[k % 6], WINDOWS[(k + 2) % 6]):
            add((1 + k % 2, 7, 9, ins), draw.tensor(np.float32, outs, *kernel, ins), **window)
    add((1, 6, 6, 8), draw.tensor(np.float32, 6, 3, 3, 4), group=2, pads=(1, 1, 1, 1))
    add(
        (2, 15, 4),
        draw.tensor(np.float32, 6, 3, 4),
        strides=(2,),
        pads=(1, 1),
        dilations=(1,),
        **({"output_padding": (0,)} if transposed else {}),
    )
    for w, x, fed, window in windows_by_channel():
        values = draw.tensor(np.float32, *w)
        if transposed:
            window = {**window, "output_padding": (*[0] * (len(x) - 3), window["strides"][-1] - 1)}
        layers.append(
            Layer(
                f"{len(layers)} {list(x)} * {list(w)} {'given ' if fed else ''}{window}",
                draw.tensor(np.float32, *x),
                (Step(operator(**window), (values,), fed),),
            )
        )
    for channels, window in () if transposed else ((8, WINDOWS[2]), (21, WINDOWS[3]), (4, WINDOWS[5])):
        add((1, 8, 10, channels), draw.tensor(np.float32, channels, 3, 3, 1), **window, group=channels)
    return layers


def float_products() -> list[Layer]:
    draw, layers = Draw(35), []
    relu = Step(OPERATORS["", "Relu"]())
    sizes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((1, 64), (64, 12)),
        ((7, 33), (33, 17)),
        ((4, 16), (16, 16)),
        ((2, 3, 8), (8, 5)),
        ((2, 5, 9), (2, 9, 4)),
        ((3, 1, 4, 6), (1, 2, 6, 8)),
        ((6,), (6, 5)),
        ((3, 7), (7,)),
        ((1, 3, 2, 4, 6), (3, 1, 6, 5)),
        ((2, 1, 2, 1, 5), (2, 2, 5, 3)),
    ]
    for a, b in sizes:
        for fed in (False, True):
            layers.append(
                Layer(
                    f"{len(layers)} {a} x {b} {'input' if fed else 'constant'}",
                    draw.tensor(np.float32, *a),
                    (Step(MatMul(), (draw.tensor(np.float32, *b),), fed), *((relu,) if fed else ())),
                )
            )
    return layers


def samples_of(name: str) -> list[Layer]:
    """The samples of one of our own operators whose other inputs are constants."""
    kind = OPERATORS["aot", name]
    layers = []
    for k, sample in enumerate(kind.samples()):
        x, *others = (np.asarray(v) for v in sample.inputs if v is not None)
        layers.append(
            Layer(
                f"{k} {x.dtype}{list(x.shape)} {sample.attributes}",
                x,
                (Step(kind(**sample.attributes), tuple(others)),),
            )
        )
    return layers


def pairs_of_int16(name: str) -> list[Layer]:
    """Those of int16_layers.py, which is written over this module."""
    import int16_layers

    found: list[Layer] = getattr(int16_layers, name)()
    return found


def _written_over_this(module: str, name: str, *arguments: Any) -> list[Layer]:
    """Layers of a module that is written over this one."""
    found: list[Layer] = getattr(importlib.import_module(module), name)(*arguments)
    return found


images_of_int8 = partial(_written_over_this, "images_of_table", "images_of_int8")
large_int8 = partial(_written_over_this, "large_layers", "large_int8")
layers_of_all_forms = partial(_written_over_this, "forms_of_layers", "layers_of_all_forms")
layers_before_floats = partial(_written_over_this, "forms_of_layers", "layers_before_floats")
sums_of_channels = partial(_written_over_this, "forms_of_layers", "sums_of_channels")
wide_windows = partial(_written_over_this, "forms_of_layers", "wide_windows")
window_sums = partial(_written_over_this, "forms_of_layers", "window_sums")
strided_products = partial(_written_over_this, "strided_products", "strided_products")
large_pools = partial(_written_over_this, "large_layers", "large_pools")
columns_of_floats = partial(_written_over_this, "large_layers", "columns_of_floats")


_MADE: dict[str, Callable[[], list[Layer]]] = {
    "integer convolution": lambda: pairs_of_int16("integer_convolutions") + sums_of_channels(np.int16),
    "integer transposed convolution": partial(pairs_of_int16, "integer_transposed"),
    "integer matrix product": lambda: pairs_of_int16("integer_products") + strided_products(),
    "int8 convolution": lambda: (
        int8_convolutions()
        + images_of_int8()
        + large_int8()
        + layers_of_all_forms()
        + window_sums()
        + sums_of_channels(np.int8)
        + sums_of_channels(np.uint8)
    ),
    "int8 transposed convolution": int8_transposed,
    "int8 matrix product": int8_products,
    "int8 pooling": lambda: integer_pools() + large_pools(),
    "float32 convolution": lambda: float_convolutions(False) + layers_before_floats() + wide_windows(True),
    "float32 transposed convolution": partial(float_convolutions, True),
    "float32 pooling": lambda: (
        pools(("max", np.float32), ("average", np.float32)) + columns_of_floats() + wide_windows(False)
    ),
    "float32 matrix product": float_products,
    "float32 times blocks of 4 or 8 bits": partial(samples_of, "BlockMatMul"),
}
GROUPS = {group: cache(made) for group, made in _MADE.items()}
"""What the kernels of a name fit (without the family in parentheses); drawn once: it takes half a second."""


@dataclass(frozen=True)
class Place:
    """A target with options, and where its code runs: this machine, a board of qemu.BOARDS, or one of
    MACHINES.
    """

    target: str
    options: tuple[tuple[str, str], ...] = ()
    board: str | None = None


M4 = Place("cortex-m4", board="m4")
M4_MEMORIES = (M4, *(replace(M4, options=(("memory", name),)) for name in ("l4-art", "0ws")))
"""What code and constants are in decides which products are taken together, and what is copied to RAM."""

FLOATS = (Place("c"), Place("host", (("vector", "v4"),)), Place("host", (("vector", "v8"),)),
          *M4_MEMORIES, Place("cortex-m55", board="m55"))  # fmt: skip

PLACES: dict[str, tuple[Place, ...]] = {
    "plain C": (Place("c"),),
    "plain C, eight registers": (Place("cortex-m0", board="m0"),),
    "AVX2": (Place("host", (("vector", "v8"),)),),
    "AVX-512 VNNI": (Place("host", (("vector", "v8"), ("dot", "vnni")), "vnni"),),
    "SDOT": (Place("host", (("vector", "neon"), ("dot", "sdot")), "sdot"),),
    "DSP extension": M4_MEMORIES,
    "Helium": (Place("cortex-m55", board="m55"),),
    "float32": FLOATS,
    "float32 times blocks of 4 or 8 bits": (*FLOATS, Place("cortex-m7", board="m7")),
}
"""Where the kernels of a family run, or one kernel; those without a family are written for the vectors of the
target."""


def group_of(kernel: str) -> str:
    return kernel.split(" (")[0]


def places_of(kernel: str) -> tuple[Place, ...]:
    family = kernel.partition(" (")[2].removesuffix(")") or kernel.split()[0]
    return PLACES.get(kernel, PLACES.get(family, ()))
