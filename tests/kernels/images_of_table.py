"""Layers of the kernels' table with several images, images of one pixel among them, and windows at the edge
of what fits: strides larger than the window, padding larger than the kernel, dilation, columns
that no window sees.

Kernels count pixels of an image or of all images; only a batch tells the one from the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from draw import Draw
from layer import Layer, Step

from aot_model.ops.convolution import Convolution
from aot_model.ops.quantised import QuantisedSum
from aot_model.ops.requantise import Rescale

SUM = QuantisedSum("add", Rescale(-3, 2**30, 0), Rescale(9, 1717986918, -1), Rescale(4, 1288490189, -18), 20)
ONE_TAP = (
    ((2, 1, 1, 8), 6),
    ((3, 1, 1, 5), 7),
    ((2, 1, 1, 1), 3),
    ((3, 1, 1, 16), 8),
    ((3, 3, 5, 7), 11),
    ((2, 2, 2, 11), 5),
    ((2, 4, 3, 16), 12),
    ((3, 1, 4, 3), 1),
)
"""Images and output channels of convolutions of one tap."""
EDGES: tuple[tuple[tuple[int, ...], tuple[int, int], int, int, dict[str, Any]], ...] = (
    ((2, 7, 8, 5), (2, 1), 7, 1, {"strides": (3, 2)}),
    ((3, 2, 3, 4), (3, 3), 6, 1, {"pads": (4, 3, 3, 4)}),
    ((2, 5, 5, 11), (1, 3), 3, 1, {"pads": (0, 4, 0, 2), "dilations": (1, 2)}),
    ((3, 1, 1, 4), (3, 3), 5, 1, {"pads": (1, 1, 1, 1)}),
    ((3, 1, 1, 7), (3, 3), 7, 7, {"pads": (1, 1, 1, 1)}),
    ((2, 3, 4, 11), (5, 3), 11, 11, {"pads": (2, 4, 2, 4)}),
    ((3, 8, 7, 8), (2, 2), 8, 8, {"strides": (3, 4)}),
    ((2, 6, 9, 3), (3, 3), 3, 3, {"dilations": (2, 3), "pads": (3, 2, 1, 4)}),
    ((2, 3, 3, 6), (3, 3), 4, 2, {"pads": (4, 0, 1, 3)}),
    ((2, 11, 21, 3), (3, 3), 3, 3, {"strides": (2, 2), "pads": (1, 1, 0, 0)}),
    ((1, 11, 25, 3), (3, 3), 3, 3, {"strides": (2, 2), "pads": (1, 1, 0, 0)}),
    ((1, 11, 33, 3), (3, 3), 3, 3, {"strides": (2, 2), "pads": (1, 1, 0, 0)}),
    ((1, 3, 184, 3), (3, 3), 3, 3, {"strides": (1, 60)}),
    ((1, 3, 187, 3), (3, 3), 3, 3, {"strides": (1, 61)}),
    ((1, 1, 187, 5), (1, 4), 5, 5, {"strides": (1, 61)}),
    ((1, 2, 517, 2), (1, 3), 2, 2, {"dilations": (1, 256)}),
    ((1, 2, 519, 2), (1, 3), 2, 2, {"dilations": (1, 257)}),
    ((1, 41, 29, 2), (40, 26), 2, 2, {}),
)
"""Image, kernel, output channels, groups, window."""


def images_of_int8() -> list[Layer]:
    """With a tensor added behind, which lies beside the results, and some without."""
    draw, layers = Draw(41), []

    def add(shape: tuple[int, ...], w: np.ndarray, fed: bool, **window: Any) -> None:
        node = Convolution(**window, x_zero_point=int(draw.rng.integers(-20, 20)))
        x = draw.tensor(np.int8, *shape)
        steps = (
            Step(node, (w,)),
            *draw.requantised(int(np.prod(w.shape[1:])), w.shape[0], np.int8, len(layers)),
        )
        if fed:
            result = Layer("", x, steps).expected()
            steps = (*steps, Step(SUM, (draw.tensor(np.int8, *result.shape),), fed=True))
        name = f"images {len(layers)} {list(shape)} * {list(w.shape)} {window}{' sum' if fed else ''}"
        layers.append(Layer(name, x, steps))

    for turn, (shape, outs) in enumerate(ONE_TAP):
        w = draw.tensor(np.int8, outs, 1, 1, shape[3])
        for fed in (False, True) if turn % 3 == 0 else (True,):
            add(shape, w, fed)
    for turn, (shape, kernel, outs, group, window) in enumerate(EDGES):
        w = draw.tensor(np.int8, outs, *kernel, shape[3] // group)
        add(shape, w, turn % 2 == 1, group=group, **window)
    return layers
