"""Layers of the kernels' table for products of pairs: 16-bit activations, any result, two activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from draw import RULES, Draw, requantised
from int16_schedules import (
    blocks_of_rows,
    channels_in_lanes,
    factors_and_ends,
    fours_of_channels,
    fours_of_parts,
    groups,
    groups_of_types,
    long_rows,
    ties,
)
from layer import Layer, Step

from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.matmul import MatMul


def integer_convolutions() -> list[Layer]:
    draw, layers = Draw(41), []
    windows: tuple[dict[str, Any], ...] = (
        {},
        {
            "strides": (2, 1)
        },
        {
            "pads": (1, 1, 1, 1)
        },
        {
            "dilations": (2, 1),
            "pads": (2, 0, 1, 0)
        },
        {
            "strides": (1, 3),
            "pads": (1, 2, 0, 1)
        },
    )  # fmt: skip
    kinds = ((np.int16, np.int8, np.int16), (np.uint16, np.int8, np.uint16), (np.int8, np.int8, np.int16),
             (np.int16, np.int8, np.int8), (np.uint8, np.uint8, np.uint16), (np.int16, np.int16,
                                                                             np.int16))  # fmt: skip
    kernels = (
        ((1, 1), 8, 8),
        ((3, 3), 3, 5),
        ((1, 1), 13, 1),
        ((2, 3), 4, 7),
        ((3, 3), 16, 4),
        ((3, 1), 7, 2),
    )
    for turn in range(18):
        x_kind, w_kind, to = kinds[turn % 6]
        kernel, ins, outs = kernels[(turn * 5 + turn // 6) % 6]
        window, rule = windows[turn % 5], RULES[turn % 4]
        wide = np.dtype(x_kind).itemsize == 2
        rule = "wide" if w_kind is np.int16 else "single" if rule == "wide" and not wide else rule
        middle = {np.uint16: 32768, np.uint8: 128}.get(x_kind, 0)
        zero = int(draw.rng.integers(-9, 9)) + middle if x_kind is not np.int16 else 0
        zero = 32768 if turn % 12 == 1 else zero
        w = draw.tensor(w_kind, outs, *kernel, ins)
        node = Convolution(**window, x_zero_point=zero, w_zero_point=130 if w_kind is np.uint8 else 0)
        most = int(np.iinfo(x_kind).max) * int(np.iinfo(w_kind).max) // 2
        x = draw.tensor(x_kind, 1 + turn % 2, 6, 7, ins)
        depth = int(np.prod(w.shape[1:]))
        steps = requantised(draw, depth, most, outs, to, turn, rule) if turn % 7 != 6 else ()
        layers.append(
            Layer(
                f"{turn} {x.dtype}{list(x.shape)} * {w.dtype}{list(w.shape)} {window} {rule} {to.__name__}",
                x,
                (Step(node, (w,)), *steps),
            )
        )
    by_channel = ((3, 3), 8), ((1, 5), 7), ((5, 2), 4), ((3, 3), 3), ((1, 9), 6)
    for turn, (kernel, channels) in enumerate(by_channel):
        w, x = draw.tensor(np.int8, channels, *kernel, 1), draw.tensor(np.int16, 1 + turn % 2, 7, 9, channels)
        steps = requantised(draw, kernel[0] * kernel[1], 1 << 21, channels, np.int16, turn, "wide")
        node = Convolution(**windows[(turn + 2) % 5], group=channels)
        after = steps if turn % 3 < 2 else ()
        layers.append(Layer(f"depthwise {turn} {list(w.shape)}", x, (Step(node, (w,)), *after)))
    long = draw.tensor(np.int8, 3, 3, 3, 61)  # more products than 32 bits hold
    x = draw.tensor(np.int16, 1, 4, 5, 61)
    layers.append(
        Layer(
            "long sums",
            x,
            (Step(Convolution(), (long,)), *requantised(draw, 549, 1 << 21, 3, np.int16, 0, "wide")),
        )
    )
    extreme = np.full((1, 3, 3, 61), -32768, np.int16), np.full((2, 3, 3, 61), -128, np.int8)
    layers.append(Layer("largest sums", extreme[0], (Step(Convolution(), (extreme[1],)),)))
    for kind, zero in ((np.uint16, 0), (np.int16, -32768)):  # a sum of 32 bits, and so many that it adds
        x, node = np.full((1, 1, 3, 400), np.iinfo(kind).max, kind), Convolution(x_zero_point=zero)
        layers.append(
            Layer(
                f"from the least {kind.__name__} on",
                x,
                (Step(node, (np.full((3, 1, 1, 400), 127, np.int8),)),),
            )
        )
    layers += blocks_of_rows(draw) + fours_of_channels(draw) + groups(draw) + groups_of_types(draw)
    layers += [*fours_of_parts(), long_rows(Draw(51)), *ties(Draw(52))]
    return layers + channels_in_lanes(Draw(61)) + factors_and_ends(Draw(71))


def integer_transposed() -> list[Layer]:
    """Strides and dilations with phases of unlike taps, none at all among them."""
    draw, layers = Draw(43), []
    windows: tuple[dict[str, Any], ...] = (
        {"strides": (2, 2)},
        {"strides": (2, 1), "pads": (1, 0, 1, 2), "output_padding": (1, 0)},
        {"strides": (3, 2), "pads": (0, 1, 0, 0)},
        {"strides": (1, 1), "pads": (1, 1, 1, 1)},
        {"strides": (2, 2), "dilations": (2, 3)},
    )  # fmt: skip
    kinds = (
        (np.int16, np.int8, np.int16),
        (np.uint16, np.int8, np.uint16),
        (np.int8, np.int8, np.int16),
        (np.uint8, np.uint8, np.uint16),
        (np.int16, np.int8, np.int8),
    )
    kernels = (((2, 2), 5, 3), ((3, 3), 4, 4), ((2, 3), 7, 1), ((3, 4), 3, 2))
    for turn in range(10):
        x_kind, w_kind, to = kinds[turn % 5]
        kernel, ins, outs = kernels[turn % 4]
        window, wide = windows[(turn + turn // 5) % 5], np.dtype(x_kind).itemsize == 2
        middle = {np.uint16: 32768, np.uint8: 128}.get(x_kind, 0)
        zero = int(draw.rng.integers(-9, 9)) + middle if x_kind is not np.int16 else 0
        w_zero = 130 if w_kind is np.uint8 else 0
        node = ConvolutionTranspose(**window, x_zero_point=zero, w_zero_point=w_zero)
        most = int(np.iinfo(x_kind).max) * int(np.iinfo(w_kind).max) // 2
        x, w = draw.tensor(x_kind, 1 + turn % 2, 4, 5, ins), draw.tensor(w_kind, outs, *kernel, ins)
        rule = RULES[turn % 4] if wide else "single"
        steps = requantised(draw, w[0].size, most, outs, to, turn, rule) if turn % 5 != 2 else ()
        layers.append(
            Layer(
                f"{turn} {x.dtype}{list(x.shape)} * {w.dtype}{list(w.shape)} {window} {rule}",
                x,
                (Step(node, (w,)), *steps),
            )
        )
    # What the zero point adds has more than 32 bits in each phase, though nothing in all taps together.
    w = np.full((2, 1, 2, 520), 127, np.int8) * np.asarray([1, -1], np.int8)[:, None]
    node = ConvolutionTranspose(strides=(1, 2))
    x = np.full((1, 1, 3, 520), 65535, np.uint16)
    return [*layers, Layer("opposite phases", x, (Step(node, (w,)),))]


@dataclass(frozen=True)
class IntegerProduct(Layer):
    """A matrix product with zero points."""

    def expected(self) -> np.ndarray:
        first = self.steps[0]
        assert isinstance(first.operator, MatMul)
        (w,) = first.others
        wide = np.int64 if self.x.dtype.itemsize == 2 else np.int32
        y = np.matmul(
            self.x.astype(np.int64) - first.operator.x_zero_point,
            w.astype(np.int64) - first.operator.w_zero_point,
        )
        return Layer(self.name, y.astype(wide), self.steps[1:]).expected()


def integer_products() -> list[Layer]:
    draw, layers = Draw(42), []
    sizes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((1, 64), (64, 12)),
        ((5, 7), (7, 33)),
        ((4, 16), (16, 16)),
        ((2, 5, 9), (2, 9, 4)),
        ((3, 1, 4, 6), (1, 2, 6, 5)),
        ((7, 3), (3, 1)),
        ((2, 3, 8), (8, 5)),
        ((1, 1), (1, 1)),
    )  # fmt: skip
    batches = (((1, 3, 2, 4, 6), (3, 1, 6, 5)), ((2, 1, 2, 1, 5), (2, 2, 5, 3)))
    kinds = (
        (np.int8, np.int8, np.int8),
        (np.uint8, np.int8, np.uint8),
        (np.int16, np.int16, np.int16),
        (np.int16, np.int8, np.int16),
        (np.int8, np.int8, np.int16),
    )
    for turn, (a, b) in enumerate((*sizes, *sizes, *batches)):
        x_kind, w_kind, to = kinds[turn % 5]
        fed = turn % 3 > 0
        wide = np.dtype(x_kind).itemsize == 2
        if not fed and len(b) == 2 and not wide and to is not np.int16:
            fed = True  # else a layer of the int8 kernels
        x, w = draw.tensor(x_kind, *a), draw.tensor(w_kind, *b)
        node = MatMul(
            0 if wide else int(draw.rng.integers(-9, 9)),
            0 if np.dtype(w_kind).itemsize == 2 or not fed else int(draw.rng.integers(-9, 9)),
        )
        most = int(np.iinfo(x_kind).max) * int(np.iinfo(w_kind).max) // 2
        rule = "wide" if wide and w_kind is np.int16 else RULES[turn % 4] if wide else RULES[1 + turn % 3]
        scale = requantised(draw, a[-1], most, b[-1], to, 2 + 3 * turn, rule)[-1:]
        kind = "input" if fed else "constant"
        name = f"{turn} {x.dtype}{list(a)} x {w.dtype}{list(b)} {kind} {rule} {to.__name__}"
        layers.append(IntegerProduct(name, x, (Step(node, (w,), fed), *(scale if turn % 8 != 7 else ()))))
    return layers
