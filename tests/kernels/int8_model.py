"""Exact numpy model (int64) of the integer operators, written from their definitions, not from the
kernels.
"""

from __future__ import annotations

import numpy as np

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8.spec import QuantSpec


def requantise(acc: np.ndarray, spec: QuantSpec) -> np.ndarray:
    """acc: int64 [..., channels].

    double: rounding doubling high multiply, rounding shift with ties away from 0; the left shift is int32 and
    wraps. single, even: the product in whole numbers, rounded once. Accumulators are int32 and wrap.
    """
    m, s = np.asarray(spec.multiplier, np.int64), np.asarray(spec.shift, np.int64)
    acc = acc.astype(np.int32).astype(np.int64)
    if spec.rounding == "double":
        shifted = (acc << np.maximum(s, 0)).astype(np.int32).astype(np.int64)
        h = (shifted * m + (1 << 30)) >> 31
        right = np.maximum(-s, 0)
        mask = (np.int64(1) << right) - 1
        v = (h >> right) + ((h & mask) > (mask >> 1) + (h < 0))
    else:
        product, halves = acc.astype(object) * m, np.left_shift(1, (30 - s).astype(object))
        v = (product + halves) // (2 * halves)
        if spec.rounding == "even":
            v = v - ((product + halves) % (2 * halves) == 0) * (v % 2)
        v = v.astype(np.int64)
    return np.clip(v + spec.out_zero_point, spec.act_min, spec.act_max).astype(spec.out_dtype)


def _taps(shape: ConvShape, x: np.ndarray, fill: int) -> tuple[np.ndarray, np.ndarray]:
    """(values [n, oy, ox, ky, kx, c], inside [oy, ox, ky, kx]) of the windows of x [n, h, w, c]."""
    s = shape
    y = np.arange(s.out_h)[:, None] * s.stride_h - s.pad_top + np.arange(s.kernel_h)[None] * s.dilation_h
    c = np.arange(s.out_w)[:, None] * s.stride_w - s.pad_left + np.arange(s.kernel_w)[None] * s.dilation_w
    ok = ((y >= 0) & (y < s.in_h))[:, None, :, None] & ((c >= 0) & (c < s.in_w))[None, :, None, :]
    yy = np.clip(y, 0, s.in_h - 1)[:, None, :, None]
    cc = np.clip(c, 0, s.in_w - 1)[None, :, None, :]
    values = x.astype(np.int64)[:, yy, cc, :]
    return np.where(ok[None, ..., None], values, fill), ok


def _weights(w: np.ndarray, spec: QuantSpec) -> np.ndarray:
    return w.astype(np.int64) - spec.weight_zero_point


def conv(
    shape: ConvShape, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, spec: QuantSpec
) -> np.ndarray:
    """x [n, h, w, ic], w [oc, kh, kw, ic / groups]."""
    taps = _taps(shape, x, spec.x_zero_point)[0] - spec.x_zero_point
    parts = zip(np.split(taps, shape.groups, -1), np.split(_weights(w, spec), shape.groups), strict=True)
    acc = np.concatenate([np.einsum("nyxijc,oijc->nyxo", t, own) for t, own in parts], -1)
    return requantise(acc + (0 if bias is None else bias.astype(np.int64)), spec)


def depthwise(
    shape: ConvShape, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, spec: QuantSpec
) -> np.ndarray:
    """x [n, h, w, c], w [kh, kw, c * multiplier]."""
    taps, _ = _taps(shape, x, spec.x_zero_point)
    taps = np.repeat(taps - spec.x_zero_point, shape.out_c // shape.in_c, axis=-1)
    acc = np.einsum("nyxijc,ijc->nyxc", taps, _weights(w, spec))
    return requantise(acc + (0 if bias is None else bias.astype(np.int64)), spec)


def average_pool(shape: ConvShape, x: np.ndarray, act_min: int, act_max: int) -> np.ndarray:
    """Mean over the elements inside of the image, ties away from zero."""
    taps, ok = _taps(shape, x, 0)
    total, count = taps.sum(axis=(3, 4)), ok.sum(axis=(2, 3))[None, ..., None]
    mean = np.where(total > 0, (total + count // 2) // count, -((-total + count // 2) // count))
    return np.clip(mean, act_min, act_max).astype(x.dtype)


def max_pool(shape: ConvShape, x: np.ndarray, act_min: int, act_max: int) -> np.ndarray:
    """Largest element inside of the image."""
    taps, _ = _taps(shape, x, -128)
    return np.clip(taps.max(axis=(3, 4)), act_min, act_max).astype(x.dtype)
