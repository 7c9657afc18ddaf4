"""Weights and biases of quantised products: what can be one of integers, and in which units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot_model.ir.nibbles import NIBBLES
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.zero_points import middle
from aot_model.passes.qdq_site import LEAST_FACTOR, QdqSite, Scaled


def constant_weights(n: QdqSite, value: Value | None, axis: int) -> Scaled | str:
    """Constant weights of 8 or 4 bits with one scale and zero point, or one per output channel."""
    w = n.scaled(value)
    if w is None or w.value.data is None or w.value.dtype not in (DType.INT8, DType.UINT8, *NIBBLES):
        return "the weights are not constant integers of 8 or 4 bits"
    if w.axis not in (None, axis):
        return f"the weights have scales along axis {w.axis}"
    return w


def apart(n: QdqSite, w: Scaled) -> tuple[Scaled, Value | None]:
    """Weights with one zero point, and, as int32, how far each channel's own is from it if there are
    several (ops/zero_points.py).
    """
    if len(set(w.zero.tolist())) == 1:
        return w, None
    m = middle(w.value.dtype)
    return replace(w, zero=np.asarray([m])), n.constant("zeros", (w.zero - m).astype(np.int32))


def constant_bias(n: QdqSite, value: Value | None, channels: int, rank: int) -> np.ndarray | str | None:
    """Real numbers, one per channel: of the last axis of a sum with so many axes."""
    if value is None:
        return None
    real = n.real(value)
    by_channel = real is not None and real.shape == (*[1] * (real.ndim - 1), channels)
    if real is None or real.ndim > rank or not (by_channel or real.size == 1):
        return "the bias is not a constant for each channel"
    if not np.isfinite(real).all():
        return "the bias is not finite"
    return np.broadcast_to(real.reshape(-1), (channels,))


def living(n: QdqSite, w: Scaled, bias: np.ndarray | None, x: Scaled) -> Scaled:
    """Weights without those of channels whose whole sum is nothing beside a step of the result: with their
    scales, of 1e-40 perhaps, the bias would be beyond any integer.
    """
    data = w.value.data
    if bias is None or data is None or w.axis is None:
        return w
    zero = np.broadcast_to(w.zero, w.scale.shape)
    along = [-1 if k == w.axis else 1 for k in range(data.ndim)]
    steps = np.abs(data.astype(np.int64) - zero.reshape(along))
    sums = steps.sum(axis=tuple(k for k in range(data.ndim) if k != w.axis)) * float(x.largest)
    units = x.s * w.scale
    with np.errstate(over="ignore", divide="ignore"):
        dead = (sums * units < n.to.s * NOTHING) & (np.abs(bias) / units >= 2.0**31)
    if not dead.any():
        return w
    value = n.constant("weights", np.where(dead.reshape(along), zero.reshape(along), data).astype(data.dtype))
    return replace(w, value=value, scale=np.where(dead, n.to.s * NOTHING / x.s, w.scale))


NOTHING = 2.0**-14
"""Of a step of the result; a bias of 16 bits in these units fits 32."""


def _between(bias: np.ndarray, units: np.ndarray) -> np.ndarray:
    """How far a bias is from whole units; 0 where its scale, of float32, accounts for it."""
    whole = np.rint(bias / units)
    away = np.abs(bias / units - whole)
    return np.asarray(np.where(away > np.abs(whole) * 2.0**-22, away, 0))


def finer(n: QdqSite, w: Scaled, bias: np.ndarray | None, x: Scaled) -> Scaled:
    """Weights times a power of two that their type has room for, where the bias (a float, as a rule) is not
    of whole units of the sums, which become finer by it: half a unit of weights of two bits can be as much as
    a step of the result, for all of a channel. Weights of 4 bits have no room: they are held in bytes, twice
    the flash, where the bias would be off by more than half of a step of 256. Of fewer steps each is larger,
    and so many are another one: a step of 16 may be off by 1/512, as much noise for the next layer.
    """
    data = w.value.data
    if bias is None or data is None:
        return w
    units = x.s * w.scale
    away = _between(bias, units)
    if away.max(initial=0) <= 1e-3:
        return w
    if w.value.dtype in NIBBLES:
        levels = min(n.to.high - n.to.low + 1, 256)
        if (away * units).max(initial=0) <= n.to.s / 2 * (levels / 256) ** 2:
            return w
        whole = w.value.dtype.compute.numpy
        w = replace(w, value=n.constant("weights", data.astype(whole)))
        data = data.astype(whole)
    low, high = w.value.dtype.limits
    steps = data.astype(np.int64) - w.z
    least, most = int(steps.min(initial=0)), int(steps.max(initial=0))
    times = max(1 << k for k in range(8) if low <= w.z + (least << k) and w.z + (most << k) <= high)
    return (
        w
        if times == 1
        else replace(
            w, value=n.constant("weights", (steps * times + w.z).astype(data.dtype)), scale=w.scale / times
        )
    )


def unfit(n: QdqSite, bias: np.ndarray | None, units: np.ndarray, x: Scaled, terms: float) -> str:
    """Why sums with this bias would not be those of the real numbers; empty when they are. terms: no sum
    without its bias is larger.
    """
    most = np.asarray(terms)
    if bias is not None:
        if (_between(bias, units) * units).max(initial=0) > n.to.s / 2:
            return "the bias is not of whole units of the sums, by more than half a step of the result"
        most = most + np.abs(bias / units)
    # sums of 16-bit activations have 64 bits, of which a factor of 16 takes its share
    bits = 32 if x.value.dtype.bits == 8 else 48
    if most.max(initial=0) >= 2.0 ** (bits - 1):
        return f"its sums may be beyond {bits} bits"
    reals = units / n.to.s
    vanishing = (reals < LEAST_FACTOR) & (most * reals >= 0.5)
    return "factors from sums to results are too small" if vanishing.any() else ""


def largest_sum(x: Scaled, w: Scaled, axis: int, terms: int, beyond: Value | None) -> float:
    """A bound of the size of accumulators of so many terms. axis: that of the weights' output channels.
    beyond: as apart() has it.
    """
    most = float(terms * x.largest * w.largest)
    if beyond is not None:
        return 2 * most
    if most < 2**31 or x.value.dtype.bits > 8 or w.value.data is None:
        return most
    steps = np.abs(w.value.data.astype(np.int64) - w.z)
    others = tuple(k for k in range(steps.ndim) if k != axis)
    return float(steps.sum(axis=others).max(initial=0) * x.largest)
