"""Geometry of nodes as kernels take it: windows of one, two and three axes, and places in results."""

from __future__ import annotations

import math

from aot_model.ir.expr import Expr, Leaf, const, leaf
from aot_model.ir.index import unflatten
from aot_model.ir.strided import Strided
from aot_model.ir.types import strides_of
from aot_model.ir.values import Value
from aot_model.kernels.base import ConvShape, Depth
from aot_model.kernels.site import Coordinates
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.pool import Pool


def planar(values: tuple[int, ...], fill: int) -> tuple[int, int]:
    """One or two spatial values as two: a 1-D operator has one row."""
    return (fill, values[0]) if len(values) == 1 else (values[0], values[1])


def coordinates_of(out: Value) -> object:
    """(n, y, x, c) to the index of a 1-D or 2-D result."""
    if out.type.rank == 3:
        return lambda at: (at[0], at[2], at[3])
    if out.type.rank == 5:  # the planes of all images are counted
        return lambda at: (*leading_indices(at[0], out.shape[:2]), at[1], at[2], at[3])
    return lambda at: at


def leading_indices(position: Expr, shape: tuple[int, ...]) -> tuple[Expr, ...]:
    """The indices of a position in several axes."""
    if isinstance(position, Leaf):
        position = leaf(position.name, position.dtype, 0, math.prod(shape) - 1)
    return unflatten_leaf(position, shape)


def conv_shape(
    x: Value,
    out: Value,
    kernel: tuple[int, ...],
    op: Convolution | ConvolutionTranspose | Pool,
    groups: int,
    window: Strided | None = None,
) -> ConvShape:
    """The geometry of a node, 1-D as 2-D with one row; strides where the input is read through a window."""
    d = x.type.rank - 2
    # a step that is never taken may be larger than the image
    steps = op.strides if isinstance(op, ConvolutionTranspose) else _taken(op.strides, out.shape[1:-1])
    dilations = _taken(op.dilations, kernel)
    if d == 3:
        return _deep(x, out, kernel, (steps, dilations, op.pads), groups, window)
    in_h, in_w = planar(x.shape[1:-1], 1)
    out_h, out_w = planar(out.shape[1:-1], 1)
    (kernel_h, kernel_w), (stride_h, stride_w) = planar(kernel, 1), planar(steps, 1)
    (dilation_h, dilation_w), (pad_top, pad_left) = planar(dilations, 1), planar(op.pads[:d], 0)
    strides = None
    if window is not None and window.source is not x:
        s = window.strides
        strides = (s[0], *planar(s[1:-1], 0), s[-1])
    return ConvShape(
        x.shape[0],
        in_h,
        in_w,
        x.shape[-1],
        out_h,
        out_w,
        out.shape[-1],
        kernel_h,
        kernel_w,
        stride_h,
        stride_w,
        dilation_h,
        dilation_w,
        pad_top,
        pad_left,
        groups,
        strides,
    )


def _taken(steps: tuple[int, ...], counts: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of so many windows, or dilations of so many taps, for each axis: 1 where there is only one."""
    return tuple(step if count > 1 else 1 for step, count in zip(steps, counts, strict=True))


def _deep(
    x: Value,
    out: Value,
    kernel: tuple[int, ...],
    windows: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    groups: int,
    window: Strided | None,
) -> ConvShape:
    """The geometry of a 3-D convolution. windows: strides, dilations, pads."""
    strides, dilations, pads = windows
    s = window.strides if window is not None else strides_of(x.shape)
    depth = Depth(x.shape[1], out.shape[1], kernel[0], strides[0], dilations[0], pads[0], s[1])
    (in_h, in_w, in_c), (out_h, out_w, out_c) = x.shape[2:], out.shape[2:]
    return ConvShape(
        x.shape[0],
        in_h,
        in_w,
        in_c,
        out_h,
        out_w,
        out_c,
        kernel[1],
        kernel[2],
        strides[1],
        strides[2],
        dilations[1],
        dilations[2],
        pads[1],
        pads[2],
        groups,
        (s[0], s[2], s[3], s[4]),
        depth,
    )


def pixel_coordinates(out: Value) -> object:
    """(0, 0, pixel, c) to the index of a result whose leading axes are one row of pixels."""
    leading = out.shape[:-1]

    def at(index: Coordinates) -> tuple[Expr, ...]:
        return (*leading_indices(index[2], leading), index[3])

    return at


def unflatten_leaf(position: Expr, shape: tuple[int, ...]) -> tuple[Expr, ...]:
    long = [d for d in shape if d != 1]
    if len(long) <= 1:
        return tuple(const(0) if d == 1 else position for d in shape)
    return unflatten(position, shape)
