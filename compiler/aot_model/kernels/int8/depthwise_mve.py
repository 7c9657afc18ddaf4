"""Depthwise convolution, int8, Helium: the 3x3 kernel where it applies, else one of those for any taps; that
of gathers, which has 16 bits for a weight, where weights have a zero point.

Turned rows where the image passes through a ring anyway, or where there is room for one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base import ConvShape, KernelCode, Tail
from . import depthwise3x3_mve, depthwise_columns_mve, depthwise_taps_mve
from .requantise_mve import supports
from .spec import QuantSpec

ALLOWANCE = 15
"""Bytes more than a ring of rows that lie as they are: what the last vector reads beyond it."""


def applicable(shape: ConvShape, spec: QuantSpec) -> bool:
    """Whether `depthwise` takes a layer."""
    if shape.groups != shape.in_c or not supports(spec):
        return False
    if spec.weight_zero_point:
        return depthwise_taps_mve.applicable(shape)
    return any(k.applicable(shape) for k in (depthwise3x3_mve, depthwise_columns_mve, depthwise_taps_mve))


def depthwise(
    shape: ConvShape,
    weights: np.ndarray,
    bias: np.ndarray | None,
    spec: QuantSpec,
    tail: Tail | None = None,
    room: int | None = None,
    compact: bool = False,
) -> KernelCode:
    """One or more output channels of each input channel.

    weights: int8 [kernel_h, kernel_w, in_c * multiplier]. bias: int32 [out_c]. tail: gets the requantised,
    clamped outputs instead of the store to y, one at a time. room: bytes of scratch memory that there are;
    None: as few as there may be. compact: whether code counts more than time.

    Raises:
        ValueError: a layer that is not `applicable`.
    """
    if spec.weight_zero_point:
        return depthwise_taps_mve.depthwise_taps(shape, weights, bias, spec, tail, compact)
    if depthwise3x3_mve.applicable(shape):
        return depthwise3x3_mve.depthwise3x3(shape, weights, bias, spec, tail)
    if not depthwise_columns_mve.applicable(shape):
        return depthwise_taps_mve.depthwise_taps(shape, weights, bias, spec, tail, compact)
    turned = depthwise_columns_mve.depthwise_columns(shape, weights, bias, spec, tail, compact)
    if not depthwise_taps_mve.applicable(shape):
        return turned
    direct = depthwise_taps_mve.depthwise_taps(shape, weights, bias, spec, tail, compact)
    if depthwise_taps_mve.cost(shape) <= depthwise_columns_mve.cost(shape):
        return direct
    needed, least = (sum(s.nbytes for s in code.scratch) for code in (turned, direct))
    if needed <= max(least + ALLOWANCE, room or 0):
        return turned
    return replace(direct, wish=needed)
