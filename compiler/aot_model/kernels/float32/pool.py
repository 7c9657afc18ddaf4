"""Depthwise convolution and pooling in float32: the operators over windows that keep channels apart."""

from __future__ import annotations

import numpy as np

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.float32.axis import Axis, conv_axis
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.window import MAC, MAXIMUM, MEAN, Window


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
    return Window(shape, *_axes(shape), MAC, tail, dialect, vector_tail, weights, bias).emit()


def max_pool(shape: ConvShape, tail: Tail, dialect: VectorDialect, *, vector_tail: bool = True) -> KernelCode:
    """Maximum over windows of `x` [N, H, W, C]; minus infinity where a window has no element."""
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

    count_include_pad: (pad_bottom, pad_right) where padding counts as zeros, as far as it reaches; None: only the
    elements inside the input count. A window without any gives zero.
    """
    return Window(shape, *_axes(shape, count_include_pad), MEAN, tail, dialect, vector_tail).emit()
