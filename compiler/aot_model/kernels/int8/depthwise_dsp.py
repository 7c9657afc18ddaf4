"""Depthwise convolution for cores with the DSP extension: one channel's plane at a time, two taps per SMLAD.

The input of one channel is gathered into a plane of int16 with a border (plane.py); neighbours in a line of
it are a pair of taps for SMLAD. Then the outputs of the channel are written. Nothing of that channel is read
any more, so `y` may lie on `x` itself. The micro-kernel is in depthwise_steps_dsp.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from aot_model.ir.admissible import Ranges
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8 import depthwise_channels_dsp, pooling
from aot_model.kernels.int8.depthwise_pairs_dsp import MicroKernel
from aot_model.kernels.int8.depthwise_steps_dsp import micro_kernel
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import Rule, admissible_shifts, numbers_of, stored, wrapped
from aot_model.kernels.int8.plane import PLANE_BYTES, PlaneLoops, plane_of
from aot_model.kernels.int8.requantise import RequantisePlan, bounds, fold_zero_point, lifted_plan
from aot_model.kernels.int8.spec import Bias, Int64, QuantSpec, Weights

STRIP_BYTES = 1024
"""A plane of one channel that is taken whatever room there is."""
PAIRED = 3_000
"""Outputs of a layer that are worth the code of two lines at a time: three to six cycles less each."""


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    return shape.groups == shape.in_c and -128 <= quant.weight_zero_point <= 127


def takes_one_channel(s: ConvShape) -> bool:
    """Whether a convolution of one channel takes fewer cycles as a depthwise one of several outputs than by
    patches of four pixels: cycles of an output, as measured over a dozen of sizes.
    """
    if s.in_c != 1 or max(s.stride_h, s.stride_w) > 2:
        return False
    taps = s.kernel_h * s.kernel_w
    patches = 10 + taps + (90 + 2 * taps) / s.out_c
    return max(1.7 * taps, 1.3 * taps + 6) < patches


def one_channel(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    quant: QuantSpec,
    tail: Tail | None = None,
    room: int = 0,
    **how: Any,
) -> KernelCode:
    """A convolution of one channel (`takes_one_channel`) as a depthwise one, in strips as large as there is
    room for; how: of `depthwise`.
    """
    plain = (shape, weights, bias, quant, tail)
    whole = depthwise(*plain, **how)
    size = sum(piece.nbytes for piece in whole.scratch)
    if size <= max(room, STRIP_BYTES):
        return whole
    return replace(depthwise(*plain, plane_bytes=STRIP_BYTES, **how), wish=size)


def depthwise(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    quant: QuantSpec,
    tail: Tail | None = None,
    plane_bytes: int = PLANE_BYTES,
    overlaps: bool = True,
    paired_from: int | None = PAIRED,
) -> KernelCode:
    """Depthwise convolution; weights [kernel_h, kernel_w, channels * multiplier], `applicable()`. overlaps: a
    load of the core begins while the one before it is under way. paired_from: outputs of a layer of 3x3
    kernels that is done two lines at a time; None: none is.
    """
    if pooling.are_sums(shape, weights, quant):
        return pooling.sums(shape, weights, bias, quant, tail, compact=paired_from is None)
    if depthwise_channels_dsp.applicable(shape, quant):
        return depthwise_channels_dsp.depthwise(shape, weights, bias, quant, tail)
    oc = shape.out_c
    w, b = fold_zero_point(weights.reshape(-1, oc).T, bias, quant)
    rq = lifted_plan(quant, *bounds(w, b, quant))
    plane = plane_of(shape, plane_bytes, once=tail is not None)
    zero, size_out = quant.weight_zero_point, plane.u.size_out * plane.v.size_out
    results, rule = tail is not None or rq.form == "raw", Rule.of(rq, quant, oc)
    loops = PlaneLoops(shape, quant, plane, tail, results, stored(rq, quant.out_dtype), rule, dsp=True)
    paired = paired_from is not None and shape.batch * oc * size_out >= paired_from
    kernel = micro_kernel(plane, rq, quant.out_dtype, *loops.steps, overlaps, paired, zero,
                          paired_from is None)  # fmt: skip
    code = by_planes(loops, kernel, plane.grid(weights.reshape(shape.kernel_h, shape.kernel_w, oc)),
                     b + rq.bias_shift, rq, zero, partial(admissible_shifts, rq))  # fmt: skip
    return replace(code, note=f"{code.note}; requantisation: {rq.form}")


def by_planes(
    loops: PlaneLoops,
    kernel: MicroKernel,
    grid: Weights,
    start: Int64,
    rq: RequantisePlan,
    zero: int,
    admissible: Callable[[int], Ranges],
) -> KernelCode:
    """The kernel around a micro-kernel. grid: weights [channel, line, tap] with their zero point. start: of
    the sums. admissible: ranges of the stream, given the words of a channel.
    """
    plane, pairs = loops.plane, kernel.pairs
    taps = [pairs.packed(one.astype(np.int64), zero, plane.v.dilation) for one in grid]
    first, numbers = wrapped(start << int(kernel.twice)), wrapped(numbers_of(rq))
    stream = np.column_stack([first, np.stack(taps), numbers]).astype(np.int32)
    words = stream.shape[1]
    packed = Packed(
        "weights",
        stream.reshape(-1),
        admissible=admissible(words),
        layout="for each channel: start value of the sums, taps, numbers of the requantisation",
    )
    scratch = loops.scratch(pairs.beyond)
    scratch += [Scratch("taps", 4 * kernel.scratch, 4, "int32_t")] if kernel.scratch else []
    more = ", taps" if kernel.scratch else ""
    compute = [f"{kernel.name}(plane, {loops.target}, weights + {words} * {loops.channel}{more});"]
    return KernelCode(
        body=loops.text(compute),
        constants=(packed, *loops.rule.constants),
        scratch=tuple(scratch),
        includes=frozenset({HEADER}),
        helpers=(kernel.text, *loops.rule.helpers),
        slack=loops.slack,
        slack_step=loops.shape.in_c,
        note=f"one channel at a time in a plane of {plane.lines} x {plane.length} int16, {kernel.how}",
    )
