"""The integer operators in numpy, exact in int64: what every generated kernel must equal byte for byte."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8.spec import QuantSpec


def requantise(acc: np.ndarray, quant: QuantSpec) -> np.ndarray:
    """int32 accumulators [..., channels] to output values, one Python integer at a time (no shared code)."""
    channels = acc.shape[-1]
    multiplier = [int(v) for v in np.broadcast_to(quant.multiplier, (channels,))]
    shift = [int(v) for v in np.broadcast_to(quant.shift, (channels,))]
    out = np.empty(acc.shape, np.int64)
    flat, result = acc.reshape(-1, channels), out.reshape(-1, channels)
    for row in range(flat.shape[0]):
        for c in range(channels):
            wrapped = (int(flat[row, c]) + 2**31) % 2**32 - 2**31
            q = rescale(wrapped, multiplier[c], shift[c], quant.rounding)
            result[row, c] = min(max(q + quant.out_zero_point, quant.act_min), quant.act_max)
    return out


def rescale(acc: int, m: int, s: int, rounding: str | None) -> int:
    if rounding == "single":
        return (acc * m + (1 << (30 - s))) >> (31 - s)
    if rounding == "even":
        return round(Fraction(acc * m, 1 << (31 - s)))
    value = ((acc << max(s, 0)) + (1 << 31)) % (1 << 32) - (1 << 31)
    high = (value * m + (1 << 30)) >> 31
    right = max(-s, 0)
    if right == 0:
        return high
    half, whole = 1 << (right - 1), 1 << right
    return (high + half) // whole if high >= 0 else -((-high + half) // whole)


def conv(
    x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, shape: ConvShape, quant: QuantSpec
) -> np.ndarray:
    """x [n, h, w, c]; weights [oc, kh, kw, ic / groups]."""
    s = shape
    acc = np.zeros((s.batch, s.out_h, s.out_w, s.out_c), np.int64)
    per_in, per_out = s.in_c // s.groups, s.out_c // s.groups
    value = x.astype(np.int64) - quant.x_zero_point
    w = weights.astype(np.int64) - quant.weight_zero_point
    for y in range(s.out_h):
        for z in range(s.out_w):
            for ky in range(s.kernel_h):
                for kx in range(s.kernel_w):
                    iy = y * s.stride_h - s.pad_top + ky * s.dilation_h
                    ix = z * s.stride_w - s.pad_left + kx * s.dilation_w
                    if not (0 <= iy < s.in_h and 0 <= ix < s.in_w):
                        continue
                    for g in range(s.groups):
                        part = value[:, iy, ix, g * per_in : (g + 1) * per_in]
                        rows = slice(g * per_out, (g + 1) * per_out)
                        acc[:, y, z, rows] += part @ w[rows, ky, kx].T
    if bias is not None:
        acc += bias.astype(np.int64)
    return requantise(acc, quant).astype(quant.out_dtype)


def depthwise(
    x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, shape: ConvShape, quant: QuantSpec
) -> np.ndarray:
    """weights [kh, kw, in_c * multiplier]."""
    return conv(x, weights.transpose(2, 0, 1)[..., None], bias, shape, quant)


def average_pool(x: np.ndarray, shape: ConvShape, act_min: int, act_max: int) -> np.ndarray:
    s = shape
    out = np.zeros((s.batch, s.out_h, s.out_w, s.out_c), np.int64)
    for y in range(s.out_h):
        for z in range(s.out_w):
            top, left = y * s.stride_h - s.pad_top, z * s.stride_w - s.pad_left
            part = x[
                :, max(top, 0) : max(top + s.kernel_h, 0), max(left, 0) : max(left + s.kernel_w, 0)
            ].astype(np.int64)
            n = part.shape[1] * part.shape[2]
            total = part.sum(axis=(1, 2))
            out[:, y, z] = np.where(total > 0, (total + n // 2) // n, -((-total + n // 2) // n))
    return np.clip(out, act_min, act_max).astype(x.dtype)


def max_pool(x: np.ndarray, shape: ConvShape, act_min: int, act_max: int) -> np.ndarray:
    s = shape
    out = np.zeros((s.batch, s.out_h, s.out_w, s.out_c), np.int64)
    for y in range(s.out_h):
        for z in range(s.out_w):
            top, left = y * s.stride_h - s.pad_top, z * s.stride_w - s.pad_left
            part = x[
                :, max(top, 0) : max(top + s.kernel_h, 0), max(left, 0) : max(left + s.kernel_w, 0)
            ].astype(np.int64)
            out[:, y, z] = part.max(axis=(1, 2))
    return np.clip(out, act_min, act_max).astype(x.dtype)
