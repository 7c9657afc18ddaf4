"""Depthwise convolution, int8, Helium: which of the kernels takes a layer.

Channels in the lanes where a window is small or outputs of a row are few (depthwise_lanes_mve.py); dot
products of one channel otherwise, over turned rows where the image passes through a ring anyway or where
there is room for one, or over gathered taps. That with fewest cycles is taken.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.choice import fastest_first
from aot_model.kernels.int8 import depthwise_columns_mve, depthwise_lanes_mve, depthwise_taps_mve
from aot_model.kernels.int8.channel_lanes_mve import takes
from aot_model.kernels.int8.requantise_mve import supports, supports_sums
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights, Writer

ALLOWANCE = 15
"""Bytes more than a ring of rows that lie as they are: what the last vector reads beyond it."""


def applicable(shape: ConvShape, spec: QuantSpec) -> bool:
    """Whether `depthwise` takes a layer, with a requantisation or, where there is none, for its sums."""
    if shape.groups != shape.in_c:
        return False
    sums = supports_sums(spec) and depthwise_taps_mve.applicable(shape)
    return sums or (supports(spec) and bool(writers(shape, spec, False)))


def depthwise(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    spec: QuantSpec,
    tail: Tail | None = None,
    room: int | None = None,
    compact: bool = False,
) -> KernelCode:
    """One or more output channels of each input channel.

    weights: int8 [kernel_h, kernel_w, in_c * multiplier]. bias: int32 [out_c]. tail: gets the requantised,
    clamped outputs, or the sums, instead of the store to y, one at a time. room: bytes of scratch memory that
    there are; None: as few as there may be. compact: whether code counts more than time.

    Raises:
        ValueError: a layer that is not `applicable`.
    """
    if spec.rounding is None and applicable(shape, spec):
        return depthwise_taps_mve.depthwise_taps(shape, weights, bias, spec, tail)
    found = writers(shape, spec, compact)
    if not found:
        raise ValueError(f"not for the depthwise kernels: {shape}, {spec}")
    best, other = [write(shape, weights, bias, spec, tail) for _, write in (*found, *found)[:2]]
    return with_room(best, other, room)


def with_room(best: KernelCode, other: KernelCode, room: int | None) -> KernelCode:
    """The faster kernel where it needs hardly more scratch memory than the other one, or where there is room
    for it. A choice among three has a wish whatever became of the first two: it does not depend on the room
    whether a layer has one.
    """
    needed, least = (sum(s.nbytes for s in code.scratch) for code in (best, other))
    hardly = needed <= least + ALLOWANCE
    if hardly and other.wish is None:
        return best
    return replace(best if hardly or needed <= (room or 0) else other, wish=needed)


def writers(shape: ConvShape, spec: QuantSpec, compact: bool) -> list[tuple[float, Writer]]:
    """Those that take a layer, with their cycles, the fastest first."""
    columns = not spec.weight_zero_point and depthwise_columns_mve.applicable(shape)
    return fastest_first(
        (takes(shape), partial(depthwise_lanes_mve.cycles, shape, spec), depthwise_lanes_mve.depthwise_lanes),
        (
            columns,
            partial(depthwise_columns_mve.cycles, shape),
            partial(depthwise_columns_mve.depthwise_columns, compact=compact),
        ),
        (
            depthwise_taps_mve.applicable(shape),
            partial(depthwise_taps_mve.cycles, shape),
            depthwise_taps_mve.depthwise_taps,
        ),
    )
