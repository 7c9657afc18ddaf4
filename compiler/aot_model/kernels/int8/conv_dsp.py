"""Convolution for cores with the DSP extension: expand four pixels' patches to int16, then all channels of
the four.

Four output pixels at a time (in memory order, across rows): their patches are gathered as int16 pairs into
`columns`, sign extension included, and the micro-kernel of gemm_dsp multiplies them with all channels. So the
input of these four pixels is consumed before one of their outputs is written, and `y` may follow over `x`
closely (see `slack`).

A patch is kernel_h runs of kernel_w * channels adjacent bytes. Runs inside of the image are read where they
lie; one that leaves it is first assembled in `border` with the input's zero point for what is outside, so
that folding the zero point into the bias holds for every pixel and the inner loop knows of no padding.
Where four pixels are always neighbours in a row, the runs of all four are assembled as one line.
A zero point of the weights is taps more (row_sums_dsp.py). Groups of channels are done one after the other
for each four pixels; their patches are slices of pixels (slices_dsp.py), and so are those of kernels whose
taps in a row are not adjacent.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.int8 import row_sums_dsp, slices_dsp
from aot_model.kernels.int8.conv_loops_dsp import Loops
from aot_model.kernels.int8.fully_connected_dsp import fully_connected
from aot_model.kernels.int8.gemm_dsp import channel_pairs, pack_pairs
from aot_model.kernels.int8.patch_dsp import PIXELS, patch_layout
from aot_model.kernels.int8.products_dsp import by_groups, products, worth_single
from aot_model.kernels.int8.requantise import fold_zero_point
from aot_model.kernels.int8.slices_dsp import Slices
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.reading import UNKNOWN, Reading


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    known = row_sums_dsp.fits(quant.weight_zero_point)
    pixels = shape.out_h * shape.out_w  # one pixel would be computed four times
    return known and (pixels > 0 if shape.groups == 1 else pixels > 1 and slices_dsp.fits(shape))


def conv(shape: ConvShape, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int32] | None,
         quant: QuantSpec, tail: Tail | None = None, reading: Reading = UNKNOWN) -> KernelCode:  # fmt: skip
    """Convolution; weights [out_c, kernel_h, kernel_w, in_c / groups], `applicable()`. With a tail it gets
    the int8 value. reading: how constants are read.
    """
    if shape.one_row:
        apart = reading.overlaps and reading.memory is not None
        return fully_connected(shape, weights, bias, quant, tail, apart=apart, common=reading.common)
    oc, groups, zero = shape.out_c, shape.groups, quant.weight_zero_point
    w, b = fold_zero_point(weights.reshape(oc, -1), bias, quant)
    patch = patch_layout(shape.kernel_h, shape.kernel_w * shape.in_c // groups)
    apart = groups > 1 or not shape.adjacent_taps
    by_slices = slices_dsp.fits(shape) and not shape.in_place and apart
    slices = Slices(shape, quant.x_dtype, quant.x_zero_point) if by_slices else None
    patch = replace(patch, order=slices.order, rest=0) if slices else patch
    sums = row_sums_dsp.words(patch.length, zero)

    taps = patch.ordered(weights.reshape(oc, -1), zero if slices else 0)  # a tap twice is in the sums, too
    taps = row_sums_dsp.with_sums(taps, zero, sums)
    separate = tail is not None or oc == groups
    stream = pack_pairs(w, b, quant, taps, channel_pairs(oc // groups, separate, groups))
    if stream.requantise.form == "raw" and not separate:
        separate = True
        stream = pack_pairs(w, b, quant, taps, channel_pairs(oc // groups, separate, groups))
    sum_lines, sum_helpers = row_sums_dsp.column_sums(patch.length, sums)
    loops = Loops(shape, quant, patch, separate, stream.requantise, tail, sum_lines, slices)
    single = not reading.compact and worth_single(loops.batch, loops.pixels, stream)
    if groups > 1:
        made = by_groups(stream, groups, oc, quant.out_dtype, reading, single)
    else:
        taken = sum(piece.nbytes for piece in loops.scratch())
        times = shape.batch * -(-shape.out_h * shape.out_w // PIXELS)
        made = products(stream, oc, quant.out_dtype, times, reading, taken, single)
    words = f"{'one' if stream.joined else 'two'} SXTB16 per 4 weights, {5 / 16:.2f} words loaded per MAC"
    note = f"four pixels x channel pairs, {patch.length} taps; {words}"
    return loops.code(made, sum_helpers, note)
