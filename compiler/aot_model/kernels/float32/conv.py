"""Convolution and transposed convolution in float32, channels last."""

from __future__ import annotations

import numpy as np

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.float32.axis import Axis, conv_axis, transposed_axis
from aot_model.kernels.float32.block import Block
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.direct import DirectConvolution
from aot_model.kernels.float32.tiles import TiledConvolution


def conv(
    shape: ConvShape,
    weights: np.ndarray,
    tail: Tail,
    dialect: VectorDialect,
    *,
    bias: np.ndarray | None = None,
    vector_tail: bool = True,
    block: Block | None = None,
    given: bool = False,
) -> KernelCode:
    """Convolution of `x` [N, H, W, C].

    weights: [out_c, (planes,) kernel_h, kernel_w, in_c / groups]. bias: [out_c], where the accumulators
    start; None: zero. vector_tail: the tail takes vectors of `dialect.lanes` channels. block: instead of the
    one that would be chosen. given: the weights are read from the parameter repack.GIVEN, as they lie there.
    """
    s = shape
    rows = conv_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top)
    cols = conv_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left)
    return _direct(s, rows, cols, weights, bias, tail, dialect, vector_tail, given).emit(block)


def conv_transpose(
    shape: ConvShape,
    weights: np.ndarray,
    tail: Tail,
    dialect: VectorDialect,
    *,
    bias: np.ndarray | None = None,
    vector_tail: bool = True,
    block: Block | None = None,
    given: bool = False,
) -> KernelCode:
    """Transposed convolution of `x` [N, H, W, C], gathered: every output is finished at once.

    shape: stride, dilation and padding are those of the convolution that this one transposes (`pad_top` rows
    of the full result are cut off). weights: [out_c, kernel_h, kernel_w, in_c / groups]; the others as in
    `conv`.
    """
    s = shape
    rows = transposed_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top)
    cols = transposed_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left)
    return _direct(s, rows, cols, weights, bias, tail, dialect, vector_tail, given).emit(block)


def _direct(s: ConvShape, rows: Axis, cols: Axis, weights: np.ndarray, bias: np.ndarray | None, tail: Tail,
            dialect: VectorDialect, vector_tail: bool, given: bool) -> DirectConvolution:
    """Blocks as calls where the dialect has functions for them and the shape fits, else written out."""
    tiled = TiledConvolution(s, rows, cols, weights, bias, tail, dialect, vector_tail, given)
    if dialect.sums_fpv4 and tiled.fits():
        return tiled
    return DirectConvolution(s, rows, cols, weights, bias, tail, dialect, vector_tail, given)


def pixels_in_a_row(shape: ConvShape) -> ConvShape | None:
    """A pointwise convolution over all its pixels as one row (N = H = 1), or None where the input is not that
    regular.

    Cheaper to index; for tails that address pixel (n, y, x) of a dense result as (0, 0, (n * H + y) * W + x).
    """
    s = shape
    n, h, w, c = s.strides
    taps = (s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.pad_top, s.pad_left)
    if s.depth is not None or taps != (1, 1, 1, 1, 0, 0) or (s.out_h, s.out_w) != (s.in_h, s.in_w):
        return None
    if (s.in_h > 1 and h != s.in_w * w) or (s.batch > 1 and n != s.in_h * s.in_w * w):
        return None
    pixels = s.batch * s.in_h * s.in_w
    return ConvShape(1,
                     1,
                     pixels,
                     s.in_c,
                     1,
                     pixels,
                     s.out_c,
                     groups=s.groups,
                     x_strides=(pixels * w, pixels * w, w, c))
