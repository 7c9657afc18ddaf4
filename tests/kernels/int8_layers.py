"""Layers of the kernels' table for bytes: convolutions, transposed ones, matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
from draw import SHAPES, WINDOWS, Draw
from layer import Layer, ProductLayer, Step

from aot_model.ir.types import DType
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.matmul import MatMul
from aot_model.ops.quantised import QuantisedMul, QuantisedSum
from aot_model.ops.quantised_tables import Lookup, Table
from aot_model.ops.requantise import Requantise, Rescale


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
    both = QuantisedSum(
        "add", Rescale(-3, 2**30, 0), Rescale(9, 1717986918, -1), Rescale(4, 1288490189, -18), 20
    )
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
    both = QuantisedSum(
        "add", Rescale(-3, 2**30, 0), Rescale(9, 1717986918, -1), Rescale(4, 1288490189, -18), 20
    )
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
    # more pairs of taps than a sum of 16 bits holds, and a rest
    add(np.uint8, (1, 5, 5, 40), draw.tensor(np.uint8, 3, 3, 3, 40), w_zero=120)
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
    # windows that see the border alone
    for shape, outs, window in (
        ((1, 1, 1, 4), 8, {"strides": (2, 2), "pads": (1, 1, 0, 0)}),
        ((1, 1, 5, 4), 4, {"strides": (2, 1), "pads": (1, 0, 0, 0)}),
        ((2, 5, 1, 4), 4, {"strides": (1, 3), "pads": (0, 2, 0, 0)}),
    ):
        add(np.int8, shape, draw.tensor(np.int8, outs, 1, 1, 1), group=4, **window)
    small = Draw(72)
    few = [np.clip(small.tensor(np.int8, *n), -k, k) for n, k in (((1, 5, 6, 4), 3), ((8, 1, 1, 4), 7))]
    factors = small.rng.integers(1 << 30, 1 << 31, 8).astype(np.int32), -np.arange(8, dtype=np.int32) // 3
    by_shift = Step(Requantise(40, -128, 127, DType.INT8, "double"), factors)
    layers.append(Layer("shifts of none and some", few[0], (Step(Convolution(), (few[1],)), by_shift)))
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
