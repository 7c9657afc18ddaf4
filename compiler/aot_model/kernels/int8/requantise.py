"""From an int32 accumulator to an int8/uint8 value: the exact rule, and cheaper forms proven equal to it.

The rule (gemmlowp's fixed-point multiplication, as TensorFlow Lite Micro and CMSIS-NN compute it, `variant` 1):

    h = (acc * 2^left * m + 2^30) >> 31        left = max(shift, 0)
    q = h / 2^right, ties away from zero       right = max(-shift, 0)
    y = clamp(q + zero_point, act_min, act_max)

All of it but `acc` is known at compile time, and so are bounds of `acc` (from the weights). y is then a step function
of acc, given by at most 255 thresholds. `plan()` picks the cheapest of three forms:

affine    y = sat((mulhi_round(acc + b, m') + c) >> s): three instructions where a core has SMMLAR and SSAT. It holds
          for a channel when every reachable threshold is the same as the rule's, which is checked one by one. That is
          so for activations of ReLU kind (no negative q survives the clamp, so there is no kink at zero), once b moves
          the product by the missing fraction of 2^32.
ties      the rule with the rounding constant and the zero point folded into one; right >= 1 and |acc| < 2^30.
raw       the rule as it stands, in C.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from aot_model.kernels.int8.spec import Int64, QuantSpec

Form = Literal["affine", "ties", "raw"]

_SEARCH = (0, 1 << 8, 1 << 12, 1 << 17)
"""How far the bias may be moved in search of the affine form, and where the search pauses."""


def rescale(acc: Int64, multiplier: Int64, shift: Int64, variant: int = 1) -> Int64:
    """The exact rule, before the zero point. acc is int32; the left shift wraps as int32 does."""
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    if variant == 3:
        once: Int64 = (acc * multiplier + (np.int64(1) << (30 - shift))) >> (31 - shift)
        return once
    if variant == 4:
        wide = acc * multiplier + (np.int64(1) << (30 - shift))
        nearest = wide >> (31 - shift)
        even: Int64 = nearest - ((wide & ((np.int64(1) << (31 - shift)) - 1)) == 0) * (nearest & 1)
        return even
    value = (acc << left).astype(np.int32).astype(np.int64)
    high = (value * multiplier + (1 << 30)) >> 31
    if variant == 2:
        up: Int64 = (high + ((np.int64(1) << right) >> 1)) >> right
        return up
    mask = (np.int64(1) << right) - 1
    away: Int64 = (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))
    return away


def fold_zero_point(
    weights: npt.NDArray[np.integer], bias: npt.NDArray[np.int32] | None, quant: QuantSpec
) -> tuple[Int64, Int64]:
    """(weights [channels, taps] less their zero point, bias less the input zero point's share)."""
    w = weights.astype(np.int64) - quant.weight_zero_point
    b = np.zeros(w.shape[0], np.int64) if bias is None else bias.astype(np.int64)
    return w, b - quant.x_zero_point * w.sum(axis=1)


def bounds(weights: Int64, bias: Int64, quant: QuantSpec) -> tuple[Int64, Int64]:
    """Smallest and largest accumulator of each channel. weights [channels, taps] and bias as folded."""
    lo, hi = quant.x_range
    a, b = weights * lo, weights * hi
    return bias + np.minimum(a, b).sum(axis=1), bias + np.maximum(a, b).sum(axis=1)


def room_for_bias(kind: np.dtype, taps: int, quant: QuantSpec) -> int:
    """How large a bias may be, as folded, so that every partial sum fits int32 in any order of the taps and whatever the weights are."""
    limits = np.iinfo(kind)
    weight = max(abs(int(limits.min) - quant.weight_zero_point), abs(int(limits.max) - quant.weight_zero_point))
    return (1 << 31) - 1 - taps * weight * max(abs(v) for v in quant.x_range)


@dataclass(frozen=True)
class Requantise:
    """How a layer requantises. Arrays: one per channel."""

    form: Form
    multiplier: Int64
    offset: Int64
    """affine: c; ties: rounding constant + zero point, both shifted left by `shift`; raw: zero."""
    shift: Int64
    """Right shift after the multiplication, of a high word (affine), of the rule's h (ties); raw: TFLite's."""
    bias_shift: Int64
    """What to add to the bias."""
    clamp_low: int | None
    clamp_high: int | None
    """Clamps that act beyond the saturation to the output type."""

    @property
    def uniform_shift(self) -> bool:
        return bool((self.shift == self.shift[0]).all())


def thresholds(quant: QuantSpec, m: Int64, s: Int64, lo: Int64, hi: Int64) -> tuple[Int64, Int64]:
    """(levels q [n], smallest acc in [lo, hi + 1] with rule(acc) + zero point >= q [channels, n])."""
    levels = np.arange(quant.act_min + 1, quant.act_max + 1, dtype=np.int64)
    left = np.broadcast_to(lo[:, None], (lo.size, levels.size)).copy()
    right = np.broadcast_to(hi[:, None] + 1, left.shape).copy()
    while bool((left < right).any()):
        middle = (left + right) >> 1
        reached = rescale(middle, m[:, None], s[:, None], quant.variant) + quant.out_zero_point >= levels
        right = np.where(reached & (left < right), middle, right)
        left = np.where(~reached & (left < right), middle + 1, left)
    return levels, left


def _affine(
    levels: Int64, threshold: Int64, lo: int, hi: int, m: int, s: int, align: int
) -> tuple[int, int] | None:
    """(bias shift, offset) that give one channel's thresholds with multiplier m, shift s of (acc << align)."""
    low, high = -(1 << 62), 1 << 62
    one = 1 << align
    # acc >= t must reach q, acc <= t - 1 must not; a threshold outside of the range binds on one side only
    inside = threshold > lo
    reach = threshold <= hi
    if s > 20 or (max(abs(lo), abs(hi)) + 1) * one >= 1 << 31:
        return None
    unit = levels * (1 << (32 + s))
    if reach.any():
        low = int((unit[reach] - threshold[reach] * (one * m)).max())
    if inside.any():
        high = int((unit[inside] - (threshold[inside] - 1) * (one * m)).min())
    if low >= high:
        return None
    if not reach.any():
        low = min(high, 0) - (1 << 33)
    for begin, end in pairwise(_SEARCH):
        distance = np.arange(begin, end, dtype=np.int64)
        candidates = np.stack([distance, -distance], axis=1).reshape(-1)
        moved = candidates * (one * m) + (1 << 31)
        offset = -((moved - low) >> 32)  # ceil((low - moved) / 2^32)
        fits = moved + (offset << 32) < high
        fits &= (lo + candidates) * one >= -(1 << 31)
        fits &= (hi + candidates) * one < (1 << 31)
        # the offset and its sum with the product's high word stay well inside of int32
        for value in (lo, hi):
            fits &= np.abs(((value + candidates) * one * m >> 32) + offset) < (1 << 30)
        found = np.flatnonzero(fits & (np.abs(offset) < 1 << 30))
        if found.size:
            return int(candidates[found[0]]), int(offset[found[0]])
    return None


def plan(quant: QuantSpec, lo: Int64, hi: Int64, align: Int64 | None = None) -> Requantise:
    """Cheapest form for accumulators in [lo, hi] (per channel); align: the accumulator comes shifted left by so much."""
    count = lo.size
    m, s = quant.channels(count)
    aligned = np.zeros(count, np.int64) if align is None else align
    fixed = lo == hi  # filters of zeros: the accumulator may as well be zero
    extreme = np.where(fixed, 0, np.maximum(np.abs(lo), np.abs(hi))) << np.maximum(s, 0)
    zero = np.zeros(count, np.int64)
    to_zero = np.where(fixed, -lo, 0)
    out_lo, out_hi = quant.out_range
    clamp_low = None if quant.act_min <= out_lo else quant.act_min
    clamp_high = None if quant.act_max >= out_hi else quant.act_max
    if int(extreme.max()) >= 1 << 31 or bool((m < 0).any()):  # the rule may wrap: it is no step function
        return Requantise("raw", m, zero, s, zero, clamp_low, clamp_high)

    least = rescale(lo, m, s, quant.variant) + quant.out_zero_point
    most = rescale(hi, m, s, quant.variant) + quant.out_zero_point
    # strictly within: the affine form is only sure of the side of each threshold, not of how far beyond the last one
    clamp_low = None if quant.act_min <= out_lo or quant.act_min < int(least.min()) else quant.act_min
    clamp_high = None if quant.act_max >= out_hi or quant.act_max > int(most.max()) else quant.act_max
    raw = Requantise("raw", m, zero, s, zero, clamp_low, clamp_high)
    value = np.clip(least, quant.act_min, quant.act_max)
    constant = value == np.clip(most, quant.act_min, quant.act_max)  # e.g. filters of zeros
    live = ~constant
    if bool((live & ((extreme >= 1 << 30) | (s >= 0) | (s < -24))).any()):
        return raw
    right = np.where(live, -s - 1, int((-s - 1)[live].min(initial=24)) % 24)
    levels, threshold = thresholds(quant, m, s, lo, hi)
    for uniform in (True, False):
        target = np.full(count, right.min()) if uniform else right
        multiplier, offset, moved = zero.copy(), np.where(constant, value << (target + aligned), 0), to_zero.copy()
        for channel in np.flatnonzero(live):
            drop = int(right[channel] - target[channel])
            exact, a = int(m[channel]), int(aligned[channel])
            ends = int(lo[channel]), int(hi[channel])
            for candidate in sorted({exact >> drop, (exact + (1 << drop) - 1) >> drop}):
                found = _affine(levels, threshold[channel], *ends, candidate, int(target[channel]) + a, a)
                if found is not None:
                    multiplier[channel], (moved[channel], offset[channel]) = candidate, found
                    break
            else:
                break
        else:
            if int(np.abs(offset).max()) < 1 << 31:
                return Requantise("affine", multiplier, offset, target, moved, clamp_low, clamp_high)
    if quant.variant != 1:
        return raw
    r = right + 1
    offset = (np.int64(1) << (r - 1)) + (np.where(constant, value, quant.out_zero_point) << r)
    if int(np.abs(offset).max()) >= 1 << 30:
        return raw
    return Requantise("ties", np.where(constant, 0, m), offset, r, to_zero, clamp_low, clamp_high)
