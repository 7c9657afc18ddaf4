"""Depthwise convolution and pooling in float32: the operators over windows that keep channels apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.kernels.base import ConvShape, Depth, KernelCode, Tail
from aot_model.kernels.float32.axis import Axis, conv_axis, transposed_axis
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.planes import conv_planes, transposed_planes
from aot_model.kernels.float32.repack import Weights
from aot_model.kernels.float32.window import Window
from aot_model.kernels.float32.window_plan import MAC, MAXIMUM, MEAN, UNROLLED

_SIDE_BY_SIDE = 3
"""Fewest neighbouring outputs at once that are worth reading one channel's input again for every output
channel.
"""


@dataclass(frozen=True)
class _Turned:
    """The tail of an operator whose rows and columns were exchanged."""

    tail: Tail

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        n, y, x, c = index
        return self.tail.store(acc, (n, x, y, c), lanes)


def _along_row(s: ConvShape, tail: Tail) -> tuple[ConvShape, Tail]:
    """An operator on one column becomes one on a row: windows slide along rows."""
    if s.depth is not None or s.in_w != 1 or s.out_w != 1 or s.kernel_w != 1 or s.pad_left:
        return s, tail
    n, h, w, c = s.strides
    row = replace(
        s,
        in_h=1,
        in_w=s.in_h,
        out_h=1,
        out_w=s.out_h,
        kernel_h=1,
        kernel_w=s.kernel_h,
        stride_h=1,
        stride_w=s.stride_h,
        dilation_h=1,
        dilation_w=s.dilation_h,
        pad_top=0,
        pad_left=s.pad_top,
        x_strides=(n, w, h, c),
    )
    return row, _Turned(tail)


def _axes(s: ConvShape, padded_end: tuple[int, ...] = ()) -> tuple[Axis | None, Axis, Axis]:
    """(planes, rows, columns); padded_end: padding at the ends that counts, of as many axes as there are."""
    front, bottom, right = (None,) * (3 - len(padded_end)) + padded_end
    return (
        conv_planes(s, front),
        conv_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, bottom),
        conv_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, right),
    )


def _transposed_axes(s: ConvShape) -> tuple[Axis | None, Axis, Axis]:
    return (
        transposed_planes(s),
        transposed_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top),
        transposed_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left),
    )


def depthwise(
    shape: ConvShape,
    weights: Weights,
    tail: Tail,
    dialect: VectorDialect,
    *,
    vector_tail: bool = True,
    transposed: bool = False,
) -> KernelCode:
    """Depthwise convolution of `x` [N, (D,) H, W, C], or a transposed one, whose geometry is that of the
    convolution that it transposes: groups == in_c, out_c a multiple of it.

    Output channel o belongs to input channel o / (out_c / in_c).
    """
    if shape.groups != shape.in_c or shape.out_c % shape.in_c:
        raise ValueError(f"not depthwise: {shape}")
    return _window(shape, weights, tail, dialect, vector_tail, transposed).emit()


def output_by_output(s: ConvShape, lanes: int) -> bool:
    """Whether a depthwise convolution of several outputs for each input, which fill a vector, has windows so
    wide that no neighbouring outputs are computed together: each element would be loaded for every output
    then, where conv.py shares it.
    """
    taps = s.kernel_h if s.in_w == s.kernel_w == 1 else s.kernel_w
    return s.group_out >= max(2, lanes) and taps > UNROLLED // 2


def sliding(
    shape: ConvShape, weights: Weights, tail: Tail, dialect: VectorDialect, *, vector_tail: bool = True
) -> KernelCode | None:
    """Convolution as a depthwise one of several outputs: an output channel's taps are held while its
    neighbouring windows slide over the input, channel by channel. None where conv.py is faster, on vectors
    of channels, and where few windows lie side by side, or share little: less the more channels there are.
    """
    several = shape.in_c > 1
    shared = dialect.slides(shape.in_c)
    if shape.groups > 1 or not shared or (several and (shape.depth or weights.given)):
        return None
    if several:  # they are the planes of one
        n, h, w, c = shape.strides
        planes = Depth(shape.in_c, out=1, kernel=shape.in_c, stride=1, dilation=1, pad=0, x_stride=c)
        shape = replace(shape, in_c=1, x_strides=(n, h, w, 1), depth=planes)
        weights = replace(weights, values=np.moveaxis(weights.values, -1, 1)[..., None])
    window = _window(shape, weights, tail, dialect, vector_tail)
    widest = max(window.column_blocks() or [], key=lambda b: b.pixels, default=None)
    if widest is None or widest.pixels < _SIDE_BY_SIDE:
        return None
    return window.emit() if not several or window.loads_for_each(widest) <= shared else None


def _window(
    shape: ConvShape,
    weights: Weights,
    tail: Tail,
    dialect: VectorDialect,
    vector_tail: bool,
    transposed: bool = False,
) -> Window:
    turned, tail = _along_row(shape, tail)
    if turned is not shape:
        weights = replace(weights, values=weights.values.swapaxes(1, 2))
    axes = _transposed_axes(turned) if transposed else _axes(turned)
    return Window(turned, *axes, MAC, tail, dialect, vector_tail, weights)


def max_pool(shape: ConvShape, tail: Tail, dialect: VectorDialect, *, vector_tail: bool = True) -> KernelCode:
    """Maximum over windows of `x` [N, (D,) H, W, C]; minus infinity where a window has no element."""
    shape, tail = _along_row(shape, tail)
    return Window(shape, *_axes(shape), MAXIMUM, tail, dialect, vector_tail).emit()


def average_pool(
    shape: ConvShape,
    tail: Tail,
    dialect: VectorDialect,
    *,
    count_include_pad: tuple[int, ...] = (),
    vector_tail: bool = True,
) -> KernelCode:
    """Mean over windows of `x` [N, (D,) H, W, C]; a window of the whole input is global pooling.

    count_include_pad: padding at the end of each axis where padding counts as zeros, as far as it reaches;
    none: only the elements inside the input count. A window without any gives zero.
    """
    turned, tail = _along_row(shape, tail)
    if turned is not shape and count_include_pad:
        # the column had one input and one tap: padding to its right is met by no window
        count_include_pad = (0, count_include_pad[0])
    return Window(turned, *_axes(turned, count_include_pad), MEAN, tail, dialect, vector_tail).emit()
