"""Convolution and transposed convolution in float32, channels last."""

from __future__ import annotations

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.float32.axis import Axis, conv_axis, transposed_axis
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.direct import DirectConvolution
from aot_model.kernels.float32.planes import conv_planes, transposed_planes
from aot_model.kernels.float32.repack import Weights
from aot_model.kernels.float32.tiles import TiledConvolution
from aot_model.kernels.reading import UNKNOWN, Reading


def conv(
    shape: ConvShape,
    weights: Weights,
    tail: Tail,
    dialect: VectorDialect,
    *,
    vector_tail: bool = True,
    reading: Reading = UNKNOWN,
) -> KernelCode:
    """Convolution of `x` [N, (D,) H, W, C].

    vector_tail: the tail takes vectors of `dialect.lanes` channels. reading: how the weights are read.
    """
    s = shape
    rows = conv_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top)
    cols = conv_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left)
    return _direct(s, (conv_planes(s), rows, cols), weights, tail, dialect, vector_tail, reading).emit()


def conv_transpose(
    shape: ConvShape,
    weights: Weights,
    tail: Tail,
    dialect: VectorDialect,
    *,
    vector_tail: bool = True,
    reading: Reading = UNKNOWN,
) -> KernelCode:
    """Transposed convolution of `x` [N, (D,) H, W, C], gathered: every output is finished at once.

    shape: stride, dilation and padding are those of the convolution that this one transposes (`pad_top` rows
    of the full result are cut off). The others are as in `conv`.
    """
    s = shape
    rows = transposed_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top)
    cols = transposed_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left)
    return _direct(s, (transposed_planes(s), rows, cols), weights, tail, dialect, vector_tail, reading).emit()


def _direct(
    s: ConvShape,
    axes: tuple[Axis | None, Axis, Axis],
    weights: Weights,
    tail: Tail,
    dialect: VectorDialect,
    vector_tail: bool,
    reading: Reading,
) -> DirectConvolution:
    """Blocks as calls where the dialect has functions for them and the shape fits, else written out."""
    tiled = TiledConvolution(s, *axes, weights, tail, dialect, vector_tail, reading)
    if dialect.sums_fpv4 and tiled.fits():
        return tiled
    return DirectConvolution(s, *axes, weights, tail, dialect, vector_tail)


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
    return ConvShape(
        1, 1, pixels, s.in_c, 1, pixels, s.out_c, groups=s.groups, x_strides=(pixels * w, pixels * w, w, c)
    )
