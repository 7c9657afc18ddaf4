"""Layers beyond what fields of instructions and of tables hold: offsets of 7, 12 and 16 bits, sums of many
taps, many channels, long rows. A kernel must refuse them, or do without the field.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from draw import Draw
from layer import Layer, Step

from aot_model.ops.convolution import Convolution
from aot_model.ops.pool import Pool

DEPTHWISE: tuple[tuple[tuple[int, ...], tuple[int, int], dict[str, Any]], ...] = (
    ((1, 4, 40, 250), (3, 3), {}),  # seven rows, and three, are more than 64 KB
    ((1, 6, 7, 1900), (5, 2), {}),
    ((1, 4, 17, 600), (3, 2), {"strides": (1, 2)}),
    ((1, 5, 4, 1028), (3, 3), {"pads": (1, 1, 1, 1)}),  # channels times four are more than 12 bits
    ((1, 5, 6, 1028), (2, 3), {"strides": (1, 2)}),
    ((1, 6, 1400, 3), (3, 1), {}),  # a row, and one of words
    ((1, 5, 3300, 2), (3, 3), {}),
    ((1, 5, 3300, 2), (3, 3), {"strides": (1, 2)}),
    ((1, 6, 350, 3), (3, 1), {"strides": (2, 1)}),
    ((1, 5, 4200, 1), (3, 3), {}),
    ((1, 9, 130, 1), (2, 3), {"dilations": (3, 1)}),
    ((1, 2, 4200, 2), (1, 3), {"strides": (1, 2)}),
    ((1, 14, 13, 5), (11, 12), {}),  # taps
    ((1, 3, 70, 16), (1, 40), {}),
    ((1, 40, 1, 200), (31, 1), {"dilations": (1, 1)}),
)
"""Input, kernel, window."""
DEEP = ((20_000, 3, 1), (140_000, 1, 1), (70_000, 2, 2))
"""Channels, those of the output, groups: sums of so many products."""
WINDOWS = ((72, 70), (64, 63), (255, 1), (1, 300), (17, 15), (1, 5001))
"""Of pooling: more elements than sums of 16 bits, or a reciprocal of 16, can take."""


def large_int8() -> list[Layer]:
    draw, layers = Draw(47), []

    def add(node: Convolution, x: np.ndarray, w: np.ndarray, raw: bool = False) -> None:
        depth = int(np.prod(w.shape[1:]))
        outs = w.shape[0]
        turn = len(layers)
        after = draw.sums(outs, (), 4) if raw else draw.requantised(depth, outs, x.dtype.type, turn)
        name = f"large {turn} {x.dtype}{list(x.shape)} * {list(w.shape)} {node.group}"
        layers.append(Layer(name, x, (Step(node, (w,)), *after)))

    for turn, (shape, kernel, window) in enumerate(DEPTHWISE):
        kind, channels = (np.int8, np.uint8)[turn % 3 == 2], shape[-1]
        zero = int(draw.rng.integers(-20, 20)) + (128 if kind is np.uint8 else 0)
        node = Convolution(**window, x_zero_point=zero, group=channels)
        outs = 4 * channels if channels < 3 and turn % 2 else channels  # of which several read the same
        x, w = draw.tensor(kind, *shape), draw.tensor(np.int8, outs, *kernel, 1)
        add(node, x, w, raw=turn % 5 == 4)
    for ins, outs, group in DEEP:
        x = draw.tensor(np.int8, 1, 1, 2 if ins < 50_000 else 1, ins)
        add(Convolution(x_zero_point=-7, group=group), x, draw.tensor(np.int8, outs, 1, 1, ins // group))
    tiles: tuple[tuple[int, int, dict[str, Any]], ...] = (
        (13, 40, {"pads": (1, 1, 1, 1)}),
        (13, 40, {"strides": (2, 1)}),
        (27, 20, {"strides": (4, 1)}),
    )
    for rows, width, window in tiles:  # the last one of fewer rows
        x, w = draw.tensor(np.int8, 1, rows, width, 48), draw.tensor(np.int8, 4, 3, 3, 48)
        add(Convolution(x_zero_point=-9, **window), x, w)
    for width in (6, 19):  # lines of channels whose sums stay as they are
        x, w = draw.tensor(np.int8, 2, 1, width, 9), draw.tensor(np.int8, 9, 1, 5, 1)
        add(Convolution(x_zero_point=3, group=9), x, w, raw=True)
    for size, kernel, strides, pads in (  # windows that meet nothing but padding, along one axis and both
        ((5, 1), (1, 2), (1, 7), (0, 6, 0, 0)),
        ((1, 5), (2, 1), (7, 1), (6, 0, 0, 0)),
        ((1, 1), (2, 2), (7, 7), (6, 6, 0, 0)),
    ):
        x, w = draw.tensor(np.int8, 1, *size, 3), draw.tensor(np.int8, 3, *kernel, 1)
        add(Convolution(strides=strides, pads=pads, x_zero_point=-128, group=3), x, w)
    for shape, kernel, window in (  # more taps than offsets reach; four outputs within a subtraction, and not
        ((1, 24, 26, 3), (23, 23), {}),
        ((1, 2, 308, 2), (2, 300), {}),
        ((1, 1, 32, 341), (1, 20), {"strides": (1, 3)}),
        ((1, 1, 36, 341), (1, 20), {"strides": (1, 4)}),
    ):
        x, w = draw.tensor(np.int8, *shape), draw.tensor(np.int8, shape[-1], *kernel, 1)
        add(Convolution(**window, x_zero_point=-9, group=shape[-1]), x, w)
    return layers


def large_pools() -> list[Layer]:
    draw, layers = Draw(48), []
    for kind in (np.int8, np.uint8, np.int16):
        for mode in ("average", "max"):
            for channels, window in zip((3, 17, 40, 8, 16, 2), WINDOWS, strict=True):
                x = draw.tensor(kind, 1, window[0] + 1, window[1] + 1, channels)
                x[..., 0], x[..., 1] = np.iinfo(kind).min, np.iinfo(kind).max
                layers.append(Layer(f"large {mode} {kind.__name__} {window}", x, (Step(Pool(mode, window)),)))
    return layers


def columns_of_floats() -> list[Layer]:
    """Averages along columns one pixel wide, with the padding in the divisor and without."""
    draw = Draw(49)
    return [
        Layer(
            f"column {kernel} {counted}",
            draw.tensor(np.float32, 2, 9, 1, channels),
            (Step(Pool("average", (kernel, 1), (2, 1), (1, 0, 2, 0), count_include_pad=counted)),),
        )
        for kernel, channels in ((3, 5), (4, 16))
        for counted in (0, 1)
    ]
