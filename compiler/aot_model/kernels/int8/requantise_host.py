"""Requantisation for vectors of eight int32: the cheapest of three forms that is proven equal to the rule of a layer.

x86 has no rounding multiplication of 32-bit lanes, only 32 x 32 -> 64 bits of every other lane (and AArch64 is close to
it). What counts is how few operations follow the two products:

affine    y = (high word of (acc + b) * m  + c) >> s. The rounding constants of the rule are gone: b moves the product by
          the missing fraction of 2^32, c is a whole number. It holds for a channel when each reachable threshold of the
          rule (where y steps from one value to the next) stays where it is. So it is for activations of ReLU kind and for
          the variants whose second rounding has no kink at zero. Mostly s is 0; then c is added in int16, after packing.
ties      the rule of variant 1 as it stands, for |acc| < 2^29 and right shifts of at least one.
raw       accumulators are stored and requantised one by one in C: anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from aot_model.kernels.int8.requantise import rescale, thresholds
from aot_model.kernels.int8.spec import Int64, QuantSpec

WORD = 1 << 32
_NARROW_OFFSET = 8192
"""Largest |c| that is added in saturating int16: what was cut to int16 stays beyond the output's range."""


@dataclass(frozen=True)
class HostRequantise:
    """How a layer requantises. Arrays: one per channel, int64."""

    form: Literal["affine", "ties", "raw"]
    bias: Int64
    """Start of the accumulator: bias, zero point's share and b."""
    multiplier: Int64
    offset: Int64
    """affine: c. ties: rounding constant and zero point, shifted left by `shift`."""
    shift: Int64
    """affine: s, the same for all channels. ties: the rule's right shift. raw: TFLite's shift."""
    low: int | None
    high: int | None
    """Clamps that act beyond the saturation to the output type."""

    @property
    def note(self) -> str:
        """The form, for the comment above a kernel."""
        return f"affine >> {int(self.shift[0])}" if self.form == "affine" else self.form

    @property
    def narrow(self) -> bool:
        """affine with s = 0: c is added to int16 lanes."""
        return self.form == "affine" and not self.shift.any()


def first_multiple(a: int, modulus: int, low: int, high: int) -> int | None:
    """Smallest k >= 0 with low <= a * k mod modulus <= high, for 0 <= low <= high < modulus; None if there is none.

    Euclid's algorithm on (a, modulus): each step asks the same for a smaller modulus, in O(log modulus).
    """
    if low == 0:
        return 0
    a %= modulus
    if a == 0:
        return None
    k = -(-low // a)
    if a * k <= high:
        return k
    if 2 * a > modulus:
        return first_multiple(modulus - a, modulus, modulus - high, modulus - low)
    # a * k = modulus * j + r with r in [low, high]: then -modulus * j mod a lies in [low, high] mod a
    j = first_multiple(-modulus % a, a, low % a, high % a)
    return None if j is None else -(-(low + modulus * j) // a)


def _affine(levels: Int64, at: Int64, lo: int, hi: int, m: int, s: int) -> tuple[int, int] | None:
    """(b, c) that keep one channel's thresholds, or None."""
    unit = levels << (32 + s)
    reach, inside = at <= hi, at > lo
    low = int((unit[reach] - at[reach] * m).max()) if reach.any() else None
    high = int((unit[inside] - (at[inside] - 1) * m).min()) if inside.any() else None
    if low is None or high is None:  # constant: settled before
        return None
    if low >= high:
        return None
    width = min(high - low, WORD)
    first = low % WORD
    # b * m + c * 2^32 in [low, high): b * m mod 2^32 in [first, first + width - 1], which may wrap
    b = 0 if first + width > WORD or first == 0 else first_multiple(m, WORD, first, first + width - 1)
    if b is None or hi + b >= 1 << 31:
        return None
    c = -((b * m - low) // WORD)
    return (b, c) if abs(c) < 1 << 28 else None


def plan(quant: QuantSpec, bias: Int64, lo: Int64, hi: Int64) -> HostRequantise:
    """The form for accumulators that lie in [lo, hi], the bias included (all per channel)."""
    count = bias.size
    m, s = quant.channels(count)
    out_lo, out_hi = quant.out_range
    low = None if quant.act_min <= out_lo else quant.act_min
    high = None if quant.act_max >= out_hi else quant.act_max
    raw = HostRequantise("raw", bias, m, np.zeros(count, np.int64), s, low, high)
    extreme = np.maximum(np.abs(lo), np.abs(hi))
    if int((extreme << np.maximum(s, 0)).max()) >= 1 << 31 or bool((m < 0).any()):
        return raw
    least, most = (np.clip(rescale(v, m, s, quant.variant) + quant.out_zero_point, quant.act_min, quant.act_max) for v in (lo, hi))
    live = least != most
    if bool((live & (s >= 0)).any()):
        return raw
    levels, at = thresholds(quant, m, s, lo, hi)
    largest = int((-s - 1)[live].min(initial=15))
    for shift in sorted({0, min(largest, 8), min(largest, 15)}):
        found = _all_affine(levels, at, lo, hi, m, s, shift, live)
        if found is None:
            continue
        multiplier, moved, offset = found
        offset = np.where(live, offset, least << shift)
        if shift == 0 and int(np.abs(offset).max()) >= _NARROW_OFFSET:
            continue
        if int(((np.maximum(np.abs(lo + moved), np.abs(hi + moved)) * multiplier >> 32) + np.abs(offset)).max()) >= 1 << 30:
            continue
        return HostRequantise("affine", bias + moved, multiplier, offset, np.full(count, shift), low, high)
    right = np.where(live, -s, 1)
    if quant.variant == 1 and int(extreme.max()) < 1 << 29 and int(right.max()) <= 22:
        zero = np.where(live, quant.out_zero_point, least)
        offset = (np.int64(1) << (right - 1)) + (zero << right)
        return HostRequantise("ties", bias, np.where(live, m, 0), offset, right, low, high)
    return raw


def _all_affine(
    levels: Int64, at: Int64, lo: Int64, hi: Int64, m: Int64, s: Int64, shift: int, live: np.ndarray
) -> tuple[Int64, Int64, Int64] | None:
    """(multiplier, b, c) of every channel for one s; None where a channel has none."""
    multiplier, moved, offset = (np.zeros(lo.size, np.int64) for _ in range(3))
    for channel in np.flatnonzero(live):
        exact, places = int(m[channel]), int(s[channel]) + 1 + shift
        whole = exact << places if places >= 0 else exact >> -places
        candidates = [whole] if places >= 0 or exact == whole << -places else [whole, whole + 1]
        for candidate in candidates:
            if not 0 < candidate < 1 << 31:
                continue
            found = _affine(levels, at[channel], int(lo[channel]), int(hi[channel]), candidate, shift)
            if found is not None:
                multiplier[channel], (moved[channel], offset[channel]) = candidate, found
                break
        else:
            return None
    return multiplier, moved, offset
