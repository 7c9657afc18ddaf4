"""Depthwise convolution for cores with the DSP extension: one channel's plane at a time, two taps per SMLAD.

The input of one channel is gathered into a plane of int16 with a border (plane.py); neighbours in a line of
it are a pair of taps for SMLAD. Then the outputs of the channel are written. Nothing of that channel is read
any more, so `y` may lie on `x` itself. Kernels of up to 3x3 are in depthwise3x3_dsp.py, all others in
depthwise_lines_dsp.py.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aot_model.ir.admissible import ANYTHING, Range
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.depthwise3x3_dsp import applicable as in_registers
from aot_model.kernels.int8.depthwise3x3_dsp import three_by_three
from aot_model.kernels.int8.depthwise_lines_dsp import Lines, packed_lines
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import Rule, requantise_words, stored, wrapped
from aot_model.kernels.int8.plane import PLANE_BYTES, PlaneLoops, plane_of
from aot_model.kernels.int8.requantise import bounds, fold_zero_point, lifted_plan
from aot_model.kernels.int8.spec import Int64, QuantSpec

PAIRED = 3_000
"""Outputs of a layer that are worth the code of two lines at a time: three to six cycles less each."""


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    return shape.groups == shape.in_c and -128 <= quant.weight_zero_point <= 127


def depthwise(shape: ConvShape, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int32] | None,
              quant: QuantSpec, tail: Tail | None = None, plane_bytes: int = PLANE_BYTES,
              overlaps: bool = True, paired_from: int | None = PAIRED) -> KernelCode:  # fmt: skip
    """Depthwise convolution; weights [kernel_h, kernel_w, channels * multiplier], `applicable()`. overlaps: a
    load of the core begins while the one before it is under way. paired_from: outputs of a layer of 3x3
    kernels that is done two lines at a time; None: none is.
    """
    oc = shape.out_c
    w, b = fold_zero_point(weights.reshape(-1, oc).T, bias, quant)
    rq = lifted_plan(quant, *bounds(w, b, quant))
    plane = plane_of(shape, plane_bytes, once=tail is not None)
    u, v = plane.u, plane.v
    grid, zero = weights.reshape(-1, oc).T.astype(np.int64), quant.weight_zero_point
    grid = grid.reshape(oc, shape.kernel_h, shape.kernel_w)
    if plane.transposed:
        grid = grid.transpose(0, 2, 1)
    register = in_registers(plane)
    rule, results = Rule.of(rq, quant, oc), tail is not None or rq.form == "raw"
    loops = PlaneLoops(shape, quant, plane, tail, results, stored(rq, quant.out_dtype), rule,
                       dsp=True)
    start = b + rq.bias_shift
    rows = []
    for c in range(oc):
        taps = _in_registers(grid[c], zero) if register else packed_lines(grid[c], v.dilation, zero)
        rows += [wrapped(start[c:c + 1]), taps, wrapped(np.array(requantise_words(rq, c), np.int64))]
    stream = np.concatenate(rows)
    words = stream.size // oc
    shifts = ANYTHING if rq.form == "raw" or rq.uniform_shift else (Range(0, 31, words - 1, words),)
    packed = Packed("weights", stream, admissible=shifts,
                    layout="for each channel: start value of the sums, taps, numbers of the requantisation")
    scratch = loops.scratch()
    helpers: list[str] = []
    if register:
        y_u, y_v = loops.steps
        paired = paired_from is not None and shape.batch * oc * u.size_out * v.size_out >= paired_from
        kernel, text = three_by_three(plane, rq, quant.out_dtype, y_u, y_v, overlaps, paired, zero)
        helpers.append(text)
        compute = [f"{kernel}(plane, {loops.target}, weights + {words} * {loops.channel});"]
    else:
        lines = Lines(loops, rq, words)
        scratch.append(Scratch("taps", 4 * lines.tap_words, 4, "int32_t"))
        compute = lines.text()
    how = "two outputs per step, weights in registers" if register else "four outputs share their loads"
    return KernelCode(
        body=loops.text(compute),
        constants=(packed, *rule.constants),
        scratch=tuple(scratch),
        includes=frozenset({HEADER}),
        helpers=(*helpers, *rule.helpers),
        slack=loops.slack,
        slack_step=shape.in_c,
        note=f"one channel at a time in a plane of {plane.lines} x {plane.length} int16, {how}; "
        f"requantisation: {rq.form}",
    )


def _in_registers(grid: Int64, zero: int) -> npt.NDArray[np.int32]:
    """One channel's weights [lines, taps]: bytes w0 w1 w2 0 per line; of two taps w2 is the zero point."""
    four = np.zeros((grid.shape[0], 4), np.int64)
    four[:, 2] = zero
    four[:, :grid.shape[1]] = grid
    return four.astype(np.int8).reshape(-1).view("<i4").astype(np.int32)
