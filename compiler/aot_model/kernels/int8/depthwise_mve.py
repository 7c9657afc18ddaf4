"""Depthwise convolution, int8, Helium: the 3x3 kernel where it applies, else the one for any taps."""

from __future__ import annotations

import numpy as np

from ..base import ConvShape, KernelCode, Tail
from . import depthwise3x3_mve, depthwise_taps_mve
from .requantise_mve import supports
from .spec import QuantSpec


def applicable(shape: ConvShape, spec: QuantSpec) -> bool:
    """Whether `depthwise` takes a layer."""
    if shape.groups != shape.in_c or not supports(spec):
        return False
    return depthwise3x3_mve.applicable(shape) or depthwise_taps_mve.applicable(shape)


def depthwise(
    shape: ConvShape,
    weights: np.ndarray,
    bias: np.ndarray | None,
    spec: QuantSpec,
    tail: Tail | None = None,
) -> KernelCode:
    """One or more output channels of each input channel.

    weights: int8 [kernel_h, kernel_w, in_c * multiplier]. bias: int32 [out_c]. tail: gets the requantised,
    clamped outputs instead of the store to y, one at a time.

    Raises:
        ValueError: a layer that is not `applicable`.
    """
    kernel = depthwise3x3_mve.depthwise3x3 if depthwise3x3_mve.applicable(
        shape) else depthwise_taps_mve.depthwise_taps
    return kernel(shape, weights, bias, spec, tail)
