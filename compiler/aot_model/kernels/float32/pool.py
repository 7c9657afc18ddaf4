"""Depthwise convolution and pooling in float32: the operators over windows that keep channels apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.float32.axis import Axis, conv_axis
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.window import Window
from aot_model.kernels.float32.window_plan import MAC, MAXIMUM, MEAN


@dataclass(frozen=True)
class _Turned:
    """The tail of an operator whose rows and columns were exchanged."""

    tail: Tail

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        n, y, x, c = index
        return self.tail.store(acc, (n, x, y, c), lanes)


def _along_row(s: ConvShape, tail: Tail) -> tuple[ConvShape, Tail]:
    """An operator on one column becomes one on a row: windows slide along rows."""
    if s.in_w != 1 or s.out_w != 1 or s.kernel_w != 1 or s.pad_left:
        return s, tail
    n, h, w, c = s.strides
    row = replace(s,
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


def _axes(s: ConvShape, padded_end: tuple[int, int] | None = None) -> tuple[Axis, Axis]:
    bottom, right = padded_end or (None, None)
    return (
        conv_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, bottom),
        conv_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, right),
    )


def depthwise(
    shape: ConvShape,
    weights: np.ndarray,
    tail: Tail,
    dialect: VectorDialect,
    *,
    bias: np.ndarray | None = None,
    vector_tail: bool = True,
) -> KernelCode:
    """Depthwise convolution of `x` [N, H, W, C]: groups == in_c, out_c a multiple of it.

    weights: [out_c, kernel_h, kernel_w]; output channel o belongs to input channel o / (out_c / in_c).
    bias: [out_c], where the accumulators start; None: zero.
    """
    if shape.groups != shape.in_c or shape.out_c % shape.in_c:
        raise ValueError(f"not depthwise: {shape}")
    shape, tail = _along_row(shape, tail)
    return Window(shape, *_axes(shape), MAC, tail, dialect, vector_tail, weights, bias).emit()


def max_pool(shape: ConvShape, tail: Tail, dialect: VectorDialect, *, vector_tail: bool = True) -> KernelCode:
    """Maximum over windows of `x` [N, H, W, C]; minus infinity where a window has no element."""
    shape, tail = _along_row(shape, tail)
    return Window(shape, *_axes(shape), MAXIMUM, tail, dialect, vector_tail).emit()


def average_pool(
    shape: ConvShape,
    tail: Tail,
    dialect: VectorDialect,
    *,
    count_include_pad: tuple[int, int] | None = None,
    vector_tail: bool = True,
) -> KernelCode:
    """Mean over windows of `x` [N, H, W, C]; a window of the whole input is global pooling.

    count_include_pad: (pad_bottom, pad_right) where padding counts as zeros, as far as it reaches; None: only
    the elements inside the input count. A window without any gives zero.
    """
    turned, tail = _along_row(shape, tail)
    if turned is not shape and count_include_pad is not None:
        # the column had one input and one tap: padding to its right is met by no window
        count_include_pad = (0, count_include_pad[0])
    return Window(turned, *_axes(turned, count_include_pad), MEAN, tail, dialect, vector_tail).emit()
