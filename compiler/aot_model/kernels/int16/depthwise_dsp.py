"""Depthwise convolution of int16 by int8 weights for cores with the DSP extension: one channel's plane at a
time, two taps per SMLAD, by the micro-kernels of int8's.

What ends a layer with one product and a saturation is done by them, too; else the sums of a channel are
stored, and it is done by the tail, or for each of them in C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from aot_model.ir.admissible import Range, Ranges
from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.int8.depthwise_dsp import by_planes
from aot_model.kernels.int8.depthwise_steps_dsp import micro_kernel
from aot_model.kernels.int8.dsp import SATURATIONS
from aot_model.kernels.int8.finish import Rule, stored
from aot_model.kernels.int8.plane import PLANE_BYTES, PlaneLoops, plane_of
from aot_model.kernels.int8.requantise import RequantisePlan
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.int16.dots import INT32
from aot_model.kernels.int16.finish import Finish

_LARGEST_OFFSET = 1 << 30
LEAST_OUTPUTS, LEAST_TAPS = 16, 6
"""Of a channel, that are worth a call; of a channel whose sums are stored first."""


@dataclass(frozen=True)
class _Ending(Rule):
    """What becomes of sums that were stored. own: C type of those that go to the tail as they are."""

    finish: Finish | None = None
    own: str = "int32_t"

    def lines(self, accumulator: str, channel: str) -> list[str]:
        if self.finish is None:
            return [f"const {self.own} v = {accumulator};"]
        return [*self.finish.row("row", channel), *self.finish.lines(accumulator, "row")]


@dataclass(frozen=True)
class _ByPixel:
    """A tail that is given the number of a pixel in the place of image, row and column."""

    tail: Tail
    shape: ConvShape

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        n, row, column, channel = index
        s = self.shape
        pixel = f"({n} * {s.out_h} + {row}) * {s.out_w} + {column}"
        return self.tail.store(acc, ("0", "0", pixel, channel), lanes)


def applicable(shape: ConvShape, weights: npt.NDArray[np.integer], most: int, finish: Finish | None) -> bool:
    """Whether this kernel takes a layer, and pays. weights: [kernel_h, kernel_w, channels * multiplier].
    most: no product is larger.
    """
    taps = shape.kernel_h * shape.kernel_w
    return (
        shape.groups == shape.in_c
        and weights.dtype == np.int8
        and taps * most <= INT32
        and shape.out_h * shape.out_w >= LEAST_OUTPUTS
        and (_whole(finish) or taps >= LEAST_TAPS)
    )


def _whole(finish: Finish | None) -> bool:
    """Whether the micro-kernel ends the layer."""
    return finish is not None and finish.rule == "up" and (finish.low, finish.high) in SATURATIONS


def depthwise(
    shape: ConvShape,
    weights: npt.NDArray[np.integer],
    finish: Finish | None,
    tail: Tail | None,
    sum_type: str,
    result: tuple[str, int],
    overlaps: bool = True,
    plane_bytes: int = PLANE_BYTES,
) -> KernelCode:
    """`applicable()`; x is int16 without a zero point.

    tail: of the number of a pixel and the channel. sum_type: of its accumulator. result: type and bytes of
    y's elements. overlaps: as of int8's kernels.
    """
    oc = shape.out_c
    zeros = np.zeros(oc, np.int64)
    rq = RequantisePlan("raw", zeros, zeros, zeros, zeros, None, None)
    whole = _whole(finish)
    start = zeros
    if whole:
        assert finish is not None
        start, multiplier, offset, shift = (np.asarray(column) for column in finish.rows.T)
        least, greatest = finish.to.limits
        rq = RequantisePlan("up", multiplier, offset, shift, zeros,
                            finish.low if finish.low > least else None,
                            finish.high if finish.high < greatest else None, lift=finish.left)  # fmt: skip
    plane = plane_of(shape, plane_bytes, once=tail is not None)
    out = finish.to.label if finish is not None else result[0].removesuffix("_t")
    quant = QuantSpec(0, np.zeros(1, np.int32), np.zeros(1, np.int32), 0, 0, 0, "int16", out, None)
    ending = _Ending() if whole else _Ending(finish=finish, own=sum_type)
    if finish is not None and not whole:
        ending = replace(ending, constants=finish.table())
    results = tail is not None or not whole
    own = _ByPixel(tail, shape) if tail is not None else None
    loops = PlaneLoops(shape, quant, plane, own, results, stored(rq, out), ending, dsp=True)
    kernel = micro_kernel(plane, rq, out, *loops.steps, overlaps)

    def admissible(words: int) -> Ranges:
        if finish is None or not whole:
            return ()
        sums = Range(-finish.room, finish.room, 0, words)
        offsets = Range(-_LARGEST_OFFSET, _LARGEST_OFFSET, words - finish.width + 2, words)
        return (sums, offsets, *(() if rq.uniform_shift else (Range(1, 30, words - 1, words),)))

    return replace(
        by_planes(loops, kernel, plane.grid(weights), start, rq, 0, admissible),
        slack=2 * loops.slack if loops.slack is not None and result[1] == 2 else None,
        slack_step=2 * shape.in_c,
        sizes=(2, result[1]),
    )
