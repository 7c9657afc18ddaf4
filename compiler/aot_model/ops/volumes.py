"""Convolutions of integers over three axes as such of two, which have kernels: an axis without taps joins
another one, else the taps of the first axis become channels.

    y[n, d, h, w, o] = sum over k, r, s, i of x[n, d * stride + k * dilation - begin, …, i] * w[o, k, r, s, i]

reads, for each d, images whose channels are those of all k.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.channels_first import channels_first
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.movement import Concat, Pad, Slice, Transpose
from aot_model.ops.registry import Build
from aot_model.ops.views import ReshapeTo
from aot_model.ops.windows import window

MOST = 32
"""Taps whose planes are copied beside each other: the copies are as many times the input."""


def convolved(build: Build, op: Convolution | ConvolutionTranspose, x: Value, w: Value) -> Value:
    """Accumulators (N * D, H, W, O) or (N, D, H * W, O) of integers (N, D, H, W, I) and weights (O, K, R, S,
    I / group); those of other ranks, and of more than `MOST` taps along the first axis, as they are.
    """
    if isinstance(op, ConvolutionTranspose) or x.type.rank != 5 or x.dtype.is_float:
        return build(op, x, w)
    if (*w.shape[2:4], *op.strides[1:]) == (1, 1, 1, 1) and not any(op.pads[k] for k in (1, 2, 4, 5)):
        n, d, h, width, c = x.shape
        inner = _inner(op, (0,), pads=(op.pads[0], 0, op.pads[3], 0))
        return build(inner, build(ReshapeTo((n, d, h * width, c)), x), _reshaped(build, w, w.shape[1], 1))
    if w.shape[1] > MOST:
        return build(op, x, w)
    inner = _inner(op, (1, 2), pads=(op.pads[1], op.pads[2], op.pads[4], op.pads[5]))
    turned = build(Transpose((0, 2, 3, 1, 4)), w)
    return build(inner, _images(build, op, x, w.shape[1]), _reshaped(build, turned, *w.shape[2:4]))


def unfolded_first(build: Build, y: Value, shape: tuple[int, ...]) -> Value:
    """What became of accumulators, as the results (N, O, …) of the convolution."""
    n, o, *spatial = shape
    whole = (n, *spatial, o)
    return channels_first(build, y if y.shape == whole else build(ReshapeTo(whole), y))


def _inner(op: Convolution, axes: tuple[int, ...], pads: tuple[int, ...]) -> Convolution:
    """The convolution over some of the axes, and as many with one tap as there are fewer than two."""
    ones = (1,) * (2 - len(axes))
    strides, dilations = ((*(values[k] for k in axes), *ones) for values in (op.strides, op.dilations))
    return replace(op, strides=strides, dilations=dilations, pads=pads)


def _reshaped(build: Build, w: Value, rows: int, columns: int) -> Value:
    """Weights with the taps of two axes, and what is left as their channels."""
    taps = math.prod(w.shape[1:-1]) // (rows * columns)
    return build(ReshapeTo((w.shape[0], rows, columns, taps * w.shape[-1])), w)


def _images(build: Build, op: Convolution, x: Value, taps: int) -> Value:
    """(N * D, H, W, group * taps * I / group): for every position along the first axis what its taps read."""
    n, d, h, width, c = x.shape
    stride, dilation, begin, end = op.strides[0], op.dilations[0], op.pads[0], op.pads[3]
    out = window(d, taps, stride, dilation, begin, end)
    if begin or end:
        zero = build.constant(np.asarray(op.x_zero_point, x.dtype.numpy), x.dtype)
        ends = build.constant([0, begin, 0, 0, 0, 0, end, 0, 0, 0], DType.INT64)
        x = build(Pad(), x, ends, zero)
    if (taps, stride) != (1, 1):
        first = [k * dilation for k in range(taps)]
        x = _joined(build, [_every(build, x, begin, out, stride) for begin in first], op.group)
    return build(ReshapeTo((n * out, h, width, c * taps)), x)


def _every(build: Build, x: Value, begin: int, count: int, stride: int) -> Value:
    """Planes from `begin` on."""
    ends = (begin, begin + (count - 1) * stride + 1, 1, stride)
    return build(Slice(), x, *(build.constant([v], DType.INT64) for v in ends))


def _joined(build: Build, pieces: list[Value], group: int) -> Value:
    """The channels of all, those of a group beside each other."""
    if len(pieces) == 1:
        return pieces[0]
    if group == 1:
        return build(Concat(-1), *pieces)
    *images, c = pieces[0].shape
    apart = [build(ReshapeTo((*images, group, 1, c // group)), p) for p in pieces]
    return build(Concat(-2), *apart)
