"""Layers of the kernels' table whose axes have a single window: strides that nothing takes, windows that lie
beside the image, in part or wholly, and so see padding alone.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from draw import Draw
from layer import Layer, Step

from aot_model.ops.convolution import Convolution

WINDOWS: tuple[tuple[tuple[int, int], tuple[int, int], dict[str, Any]], ...] = (
    ((5, 1), (1, 1), {"strides": (1, 3), "pads": (0, 2, 0, 0)}),
    ((1, 6), (1, 1), {"strides": (4, 1), "pads": (3, 0, 0, 0)}),
    ((1, 1), (1, 1), {"strides": (9, 9), "pads": (1, 0, 2, 3)}),
    ((1, 1), (1, 1), {"strides": (2, 1 << 30), "pads": (0, 0, 0, 1)}),
    ((4, 3), (1, 1), {"strides": (2, 5), "pads": (0, 0, 0, 1)}),
    ((7, 2), (3, 3), {"strides": (2, 7), "pads": (1, 4, 1, 1)}),
    ((2, 5), (3, 3), {"strides": (6, 1), "pads": (1, 1, 0, 1)}),
    ((3, 3), (3, 3), {"strides": (4, 4)}),
    ((1, 9), (1, 5), {"strides": (3, 2), "pads": (1, 2, 0, 2)}),
    ((2, 3), (2, 2), {"strides": (7, 1), "pads": (4, 0, 0, 0)}),
)
"""Image, kernel, attributes."""
CHANNELS = ((4, 4, 4), (16, 16, 16), (5, 7, 1), (16, 8, 1), (32, 12, 1), (8, 6, 2), (1, 8, 1), (3, 6, 3))
"""Inputs, outputs, groups."""


def single_windows(*kinds: type[Any]) -> list[Layer]:
    """kinds: of the input; the weights of integers are int8."""
    draw, layers = Draw(83), []
    for k, ((size, kernel, window), (ins, outs, group)) in enumerate(product(WINDOWS, CHANNELS)):
        for kind in kinds:
            floats = kind is np.float32
            zero = 0 if floats or kind is np.int16 else 13 + 128 * (kind is np.uint8)
            w = draw.tensor(kind if floats else np.int8, outs, *kernel, ins // group)
            node = Convolution(**window, group=group, x_zero_point=zero)
            x = draw.tensor(kind, 1 + k % 2, *size, ins)
            steps = () if floats or kind is np.int16 else draw.requantised(w[0].size, outs, kind, k)
            name = f"single {k} {x.dtype}{list(x.shape)} * {list(w.shape)} {window}"
            layers.append(Layer(name, x, (Step(node, (w,)), *steps)))
    return layers
