"""Depthwise convolution, int8, Helium: the 3x3 kernel where it applies, else the one for any taps."""

from __future__ import annotations

import numpy as np

from ..base import ConvShape, KernelCode, Tail
from .depthwise3x3_mve import depthwise3x3
from .depthwise_taps_mve import depthwise_taps
from .spec import QuantSpec


def depthwise(
    shape: ConvShape,
    weights: np.ndarray,
    bias: np.ndarray | None,
    spec: QuantSpec,
    tail: Tail | None = None,
    vector_tail: bool = False,
) -> KernelCode:
    """One or more output channels of each input channel.

    weights: int8 [kernel_h, kernel_w, in_c * multiplier]. bias: int32 [out_c]. tail: gets the requantised, clamped
    outputs instead of the store to y: int32x4_t for lanes = 4 (vector_tail), int32_t for lanes = 1.

    Raises:
        ValueError: what `depthwise_taps` does not have either.
    """
    try:
        return depthwise3x3(shape, weights, bias, spec, tail, vector_tail)
    except ValueError:
        return depthwise_taps(shape, weights, bias, spec, tail, vector_tail)
