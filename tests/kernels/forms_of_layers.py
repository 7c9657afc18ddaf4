"""Every kind of integer layer with every form of what follows the sums: roundings, one factor for all
channels or each its own, factors that shift to the left beyond 32 bits, clamps, a table, a sum with a tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from draw import Draw
from layer import Layer, Step

from aot_model.ir.types import DType
from aot_model.ops.conversion import Cast
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.pool import Pool
from aot_model.ops.quantised import QuantisedSum
from aot_model.ops.quantised_tables import Lookup, Table
from aot_model.ops.requantise import Requantise, Rescale

Window = dict[str, Any]
KINDS: tuple[tuple[tuple[int, ...], tuple[int, ...], Window], ...] = (
    ((1, 3, 5, 16), (6, 1, 1, 16), {}),
    ((1, 5, 6, 5), (7, 3, 3, 5), {"pads": (1, 1, 1, 1)}),
    ((2, 4, 7, 8), (4, 2, 2, 8), {"strides": (2, 1)}),
    ((1, 6, 8, 1), (9, 3, 3, 1), {"pads": (1, 0, 1, 0)}),
    ((1, 5, 6, 8), (8, 3, 3, 4), {"group": 2}),
    ((1, 1, 1, 40), (10, 1, 1, 40), {}),
    ((1, 6, 9, 12), (12, 3, 3, 1), {"group": 12, "pads": (1, 1, 1, 1)}),
    ((1, 7, 9, 20), (20, 3, 3, 1), {"group": 20, "strides": (2, 2)}),
    ((1, 8, 8, 6), (6, 5, 5, 1), {"group": 6, "pads": (2, 2, 2, 2)}),
    ((1, 5, 7, 3), (12, 3, 2, 1), {"group": 3}),
    ((2, 1, 7, 9), (9, 1, 5, 1), {"group": 9}),
    ((1, 4, 5, 24), (24, 4, 5, 1), {"group": 24}),
    ((1, 1, 30, 4), (4, 1, 3, 1), {"group": 4, "dilations": (1, 2)}),
)
"""Input, weights, window."""
CHANNELS: tuple[tuple[tuple[int, ...], tuple[int, ...], Window], ...] = (
    ((1, 7, 9, 8), (8, 3, 3, 1), {"pads": (1, 1, 1, 1)}),
    ((2, 6, 8, 5), (5, 3, 3, 1), {"strides": (2, 1)}),
    ((1, 9, 9, 16), (16, 5, 5, 1), {"pads": (2, 2, 2, 2)}),
    ((1, 5, 13, 4), (4, 1, 3, 1), {}),
    ((1, 10, 10, 6), (6, 2, 2, 1), {"strides": (2, 2)}),
    ((1, 6, 3, 7), (7, 3, 3, 1), {}),
    ((1, 6, 6, 7), (7, 3, 3, 1), {"dilations": (2, 1)}),
    ((2, 1, 30, 12), (12, 1, 9, 1), {"strides": (1, 2), "pads": (0, 4, 0, 4)}),
    ((1, 6, 7, 4), (8, 3, 3, 1), {}),
)
"""The same of depthwise layers."""


def layers_of_all_forms() -> list[Layer]:
    draw, layers = Draw(51), []
    table = Table(
        tuple(int(v) for v in np.clip(100 - np.arange(-128, 128) ** 2 // 90, -128, 127)), DType.INT8, -128
    )
    both = QuantisedSum(
        "add", Rescale(5, 2**30, 0), Rescale(-7, 1932735283, -1), Rescale(2, 1503238553, -18), 20
    )
    for k, (shape, weights, window) in enumerate(KINDS):
        kind, outs, depth = (np.int8, np.uint8)[k % 3 == 1], weights[0], int(np.prod(weights[1:]))
        limits, node = np.iinfo(kind), Convolution(**window, x_zero_point=3 if kind is np.int8 else 130)
        to = DType.of(np.dtype(kind))
        fit = -round(np.log2(60.0 * np.sqrt(depth))) + 1
        own, each = draw.rng.integers(1 << 30, 1 << 31, outs), draw.rng.integers(-1, 2, outs) + fit
        even = np.full(outs, 1 << 30)
        forms: dict[str, tuple[str, Any, Any, int, int]] = {
            "each": ("double", own, each, limits.min, limits.max),
            "one, clamped": ("double", own[:1], each[:1], limits.min + 70, limits.max - 50),
            "single": ("single", own, each, limits.min, limits.max),
            "even": ("even", even if k % 2 else own, each, limits.min, limits.max),
            "beyond": ("double", own, 9 + np.arange(outs) % 12, limits.min, limits.max),
        }
        x, w = draw.tensor(kind, *shape), draw.tensor(np.int8, *weights)
        sums = Step(node, (w,))
        for name, (rounding, m, s, low, high) in forms.items():
            zero = int(draw.rng.integers(low, high))
            step = Step(
                Requantise(zero, low, high, to, rounding), (np.asarray(m, np.int32), np.asarray(s, np.int32))
            )
            layer = Layer(f"form {k} {name}", x, (sums, step))
            layers.append(layer)
            if kind is np.int8 and name in ("each", "beyond"):
                fed = Step(both, (draw.tensor(np.int8, *layer.expected().shape),), fed=True)
                more, last = (
                    ("sum", fed) if (name == "each") == (k % 2 == 0) else ("table", Step(Lookup(table)))
                )
                layers.append(Layer(f"form {k} {name}, {more}", x, (sums, step, last)))
        low = limits.min + 30 * (k % 3)  # the same power of two for all channels: no multiplication
        halved = Requantise(limits.min + 90 + k, low, limits.max, to, "even")
        factor = np.asarray([1 << 30], np.int32), np.asarray([fit - 1], np.int32)
        layers.append(Layer(f"form {k} one, even", x, (sums, Step(halved, factor))))
    return layers


def window_sums() -> list[Layer]:
    """Depthwise layers with ones, as averages of QDQ networks are: every rounding, windows that are written
    out, loops of rows, wide ones and as many elements as 16 bits hold; sums that reach the ends.
    """
    draw, layers = Draw(67), []
    windows: tuple[tuple[tuple[int, ...], tuple[int, int], Window], ...] = (
        ((1, 6, 8, 8), (2, 2), {"strides": (2, 2)}),
        ((2, 7, 7, 12), (3, 3), {"strides": (2, 1)}),
        ((1, 9, 6, 4), (5, 4), {}),
        ((1, 15, 17, 4), (15, 17), {}),
        ((1, 1, 21, 8), (1, 11), {"strides": (1, 5)}),
        ((1, 5, 5, 8), (2, 2), {"pads": (1, 1, 0, 0)}),
        ((1, 4, 4, 6), (2, 2), {}),
    )
    more = Step(op("Add"), (np.asarray([1 << 12, -40, 0, 7], np.int32),))
    for k, (shape, taps, window) in enumerate(windows):
        for turn, rounding in enumerate(("even", "even", "single", "double")):
            kind = (np.int8, np.uint8)[(k + turn) % 2]
            limits, outs, size = np.iinfo(kind), shape[-1], taps[0] * taps[1]
            x = draw.tensor(kind, *shape)
            x[..., 0], x[..., 1] = limits.min, limits.max
            node = Convolution(**window, x_zero_point=3 if kind is np.int8 else 130, group=outs)
            count = 1 if turn < 2 else outs
            m = np.full(1, 1 << 30) if turn == 0 else draw.rng.integers(1 << 30, 1 << 31, count)
            s = np.full(count, -round(np.log2(size)) + 1)
            zero, low = limits.min + 90 + turn % 2, limits.min + 20 * (k % 2)
            rule = Requantise(zero, low, limits.max, DType.of(np.dtype(kind)), rounding)
            last = Step(rule, (m.astype(np.int32), s.astype(np.int32)))
            bias = (more,) if outs == 4 and turn % 2 else ()
            steps = (Step(node, (np.ones((outs, *taps, 1), np.int8),)), *bias, last)
            layers.append(Layer(f"window {k} {rounding} {turn}", x, steps))
        x = draw.tensor(np.int8, *shape)
        node = Convolution(**window, x_zero_point=-5, group=shape[-1])
        ones = Step(node, (np.ones((shape[-1], *taps, 1), np.int8),))
        layers.append(Layer(f"window {k}, no rounding", x, (ones, Step(Cast(DType.FLOAT32)))))
    return layers


def layers_before_floats() -> list[Layer]:
    """Convolutions of floats with a sum behind: with a tensor that is the same along some axes."""
    draw, layers = Draw(53), []
    for k, shape in enumerate(((2, 1, 1, 1), (1, 4, 6, 1), (1, 1, 1, 16), (1, 4, 1, 16), (2, 1, 6, 1))):
        fed = Step(op("Add"), (draw.tensor(np.float32, *shape),), fed=True)
        for group in (1, 16):
            x, w = draw.tensor(np.float32, 2, 4, 6, 16), draw.tensor(np.float32, 16, 1, 1, 16 // group)
            layers.append(
                Layer(f"sum {k} {list(shape)} {group}", x, (Step(Convolution(group=group), (w,)), fed))
            )
    return layers


def wide_windows(depthwise: bool) -> list[Layer]:
    """Windows of floats too wide to be unrolled, which are gathered tap by tap: one vector of channels and
    several, padding at each side, dilation, more outputs than inputs.
    """
    draw, layers = Draw(61), []
    windows = (
        ((2, 66), (1, 4, 70, 5), {}),
        ((1, 67), (2, 2, 140, 21), {"pads": (0, 3, 0, 5), "strides": (1, 2)}),
        ((3, 65), (1, 5, 132, 3), {"pads": (1, 2, 0, 1), "dilations": (1, 2)}),
        ((70, 2), (1, 70, 3, 20), {"pads": (2, 0, 1, 0), "dilations": (1, 2)}),
    )
    for k, (kernel, shape, window) in enumerate(windows):
        x = draw.tensor(np.float32, *shape)
        if depthwise:
            channels = shape[-1]
            for times in (1, 2):
                w = draw.tensor(np.float32, times * channels, *kernel, 1)
                bias = draw.tensor(np.float32, times * channels)
                steps = (Step(Convolution(group=channels, **window), (w,)), Step(op("Add"), (bias,)))
                layers.append(Layer(f"wide {k} {list(shape)} * {list(w.shape)} {window}", x, steps))
            continue
        for mode, options in (("max", {}), ("average", {}), ("average", {"count_include_pad": 1})):
            steps = (Step(Pool(mode, kernel, **window, **options)),)
            layers.append(Layer(f"wide {k} {mode} {list(shape)} {kernel} {window} {options}", x, steps))
    return layers


def sums_of_channels(kind: type[Any]) -> list[Layer]:
    """Depthwise layers whose sums stay as they are, as where factors are known when it runs: a bias, floats
    that are multiplied by numbers of channels and by one of the input.
    """
    draw, layers = Draw(59), []
    wide = kind is np.int16
    sums = np.int64 if wide else np.int32
    for k, (shape, weights, window) in enumerate(CHANNELS):
        zero = 0 if wide else int(draw.rng.integers(-20, 20)) + (128 if kind is np.uint8 else 0)
        outs, x, w = weights[0], draw.tensor(kind, *shape), draw.tensor(np.int8, *weights)
        places = {"x_zero_point": zero, "w_zero_point": 0 if wide or k % 3 else 9}
        node = Convolution(**window, **places, group=shape[-1])
        bias = Step(op("Add"), (draw.rng.integers(-3000, 3000, outs).astype(sums),))
        factors = np.asarray(2.0 ** -draw.rng.integers(8, 16, outs), np.float32)
        tails = (
            (bias,),
            (Step(Cast(DType.FLOAT32)), Step(op("Mul"), (factors,))),
            (Step(Cast(DType.FLOAT32)), Step(op("Mul"), (np.float32([0.5]),), fed=True)),
        )
        layers.append(
            Layer(f"sums {k} {x.dtype}{list(shape)} * {weights}", x, (Step(node, (w,)), *tails[k % 3]))
        )
    return layers
