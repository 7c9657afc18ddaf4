"""From an int32 accumulator to an int8/uint8 value: the exact rule, and cheaper forms proven equal to it.

The rule (gemmlowp's fixed-point multiplication, as TensorFlow Lite Micro and CMSIS-NN compute it, the
rounding `double`):

    h = (acc * 2^left * m + 2^30) >> 31        left = max(shift, 0)
    q = h / 2^right, ties away from zero       right = max(-shift, 0)
    y = clamp(q + zero_point, act_min, act_max)

All of it but `acc` is known at compile time, and so are bounds of `acc` (from the weights). y is then a step
function of acc, given by at most 255 thresholds. `plan()` picks the cheapest of three forms:

affine    y = sat((mulhi(acc + b, m') + c) >> s): three instructions where a core has SMMLAR and SSAT, and s
          is mostly 0
          for vectors. The rounding constants of the rule are gone: b moves the product by the missing
          fraction of 2^32, c is a whole number. It holds for a channel when every reachable threshold is the
          same as the rule's, which is checked one by one. That is so for activations of ReLU kind (no
          negative q survives the clamp, so there is no kink at zero), and for rules whose second rounding has
          none.
ties      the rule with the rounding constant and the zero point folded into one; right >= 1 and |acc| < 2^30.
up        one product, its high word as it is; the offset rounds (16-bit activations).
short     the same with a multiplier of 16 bits, so that it and the offset share a word (weights of 4 bits).
halved    ties to even by one power of two, 2^-s, without a multiplication or constants: with half - 1 and
          the zero point moved into the bias, y = sat((acc + (bit s of acc)) >> s). What is odd is rounded up
          from a half on, what is even from beyond it; behind a carry into bit s, which has rounded up, one
          more changes nothing. An odd zero point would turn the bit: one more is moved, and taken off before
          the shift.
raw       the rule as it stands, in C; where there is none (rounding None), the accumulator itself.

What a set multiplies with decides which is cheapest: rounded high words (SMMLAR) or cut ones (vectors of x86
and AArch64); Helium has the rule's own multiplication (requantise_mve.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from aot_model.ir.scalar_ops import SCALAR_OPS
from aot_model.kernels.int8.spec import Bias, Int64, QuantSpec, Rounding, Weights

Form = Literal["affine", "up", "short", "halved", "ties", "raw"]

WORD = 1 << 32
_MANY_CHANNELS = 1 << 17
"""Beyond so many no other form is looked for: it takes 8 KB of memory for each of them."""
_NARROW_OFFSET = 8192
"""Largest |offset| that is added in saturating int16: what was cut to int16 stays beyond the output's range.
"""


def rescale(acc: Int64, multiplier: Int64, shift: Int64, rounding: Rounding | None) -> Int64:
    """The exact rule, before the zero point. acc is int32; the left shift wraps as int32 does."""
    if rounding == "double":
        acc, shift = (acc << np.maximum(shift, 0)).astype(np.int32), np.minimum(shift, 0)
    rule = SCALAR_OPS["requantise" if rounding == "double" else f"requantise_{rounding}"].numpy
    return np.asarray(rule(acc, multiplier, shift), np.int64)


def fold_zero_point(weights: Weights, bias: Bias, quant: QuantSpec) -> tuple[Int64, Int64]:
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
    """How large a bias may be, as folded, so that every partial sum fits int32 in any order of the taps and
    whatever the weights are.
    """
    limits = np.iinfo(kind)
    weight = max(
        abs(int(limits.min) - quant.weight_zero_point), abs(int(limits.max) - quant.weight_zero_point)
    )
    return (1 << 31) - 1 - taps * weight * max(abs(v) for v in quant.x_range)


@dataclass(frozen=True)
class RequantisePlan:
    """How a layer requantises. Arrays: one per channel."""

    form: Form
    multiplier: Int64
    offset: Int64
    """affine, up, short: c; halved: what is taken off; ties: rounding constant + zero point, both shifted
    left by `shift`; raw: zero."""
    shift: Int64
    """Right shift behind the multiplication, of a high word (affine, up, short), of the rule's h (ties), of
    the accumulator (halved); raw: the rule's own.
    """
    bias_shift: Int64
    """What to add to the bias."""
    clamp_low: int | None
    clamp_high: int | None
    """Clamps that act beyond the saturation to the output type."""
    accumulators: bool = False
    """No requantisation: the accumulators themselves are the results."""
    lift: int = 0
    """affine, up: how far the accumulator is shifted left before the multiplication."""

    @property
    def note(self) -> str:
        """The form, for the comment above a kernel."""
        return f"affine >> {int(self.shift[0])}" if self.form == "affine" else self.form

    @property
    def bare(self) -> bool:
        """Whether channels have no constants of their own."""
        return self.form in ("raw", "halved")

    @property
    def narrow(self) -> bool:
        """affine without a shift: vectors add the offset to int16 lanes."""
        return self.form == "affine" and not self.shift.any()

    @property
    def uniform_shift(self) -> bool:
        return bool((self.shift == self.shift[0]).all())


SHORT = 1 << 15
"""Offsets below it take two bytes."""
SHORT_BITS = 16
"""Of a multiplier of the form "short", the high half of a word. Nothing is shifted right behind it, so that
layers share their kernel: a factor is a whole number of 2^-16."""
SHARED_SHIFT = 3
"""How far all layers shift behind a rounded product, or not at all, where what is left of their multipliers
is exact: their kernels are one then."""


def thresholds(quant: QuantSpec, m: Int64, s: Int64, lo: Int64, hi: Int64) -> tuple[Int64, Int64]:
    """(levels q [n], smallest acc in [lo, hi + 1] with rule(acc) + zero point >= q [channels, n])."""
    levels = np.arange(quant.act_min + 1, quant.act_max + 1, dtype=np.int64)
    left = np.broadcast_to(lo[:, None], (lo.size, levels.size)).copy()
    right = np.broadcast_to(hi[:, None] + 1, left.shape).copy()
    while bool((left < right).any()):
        middle = (left + right) >> 1
        reached = rescale(middle, m[:, None], s[:, None], quant.rounding) + quant.out_zero_point >= levels
        right = np.where(reached & (left < right), middle, right)
        left = np.where(~reached & (left < right), middle + 1, left)
    return levels, left


def first_multiple(a: int, modulus: int, low: int, high: int) -> int | None:
    """Smallest k >= 0 with low <= a * k mod modulus <= high, for 0 <= low <= high < modulus; None if there is
    none.

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


def _affine(
    levels: Int64, threshold: Int64, lo: int, hi: int, m: int, s: int, align: int, rounding: int
) -> tuple[int, int] | None:
    """(bias shift b, offset c) that keep one channel's thresholds with multiplier m, shift s of (acc <<
    align).

    acc >= t must reach q, acc <= t - 1 must not; a threshold outside of the range binds on one side only. So
    b * m + rounding + c * 2^32 lies between two bounds; the smallest b either way is found by Euclid's
    algorithm.
    """
    inside, reach = threshold > lo, threshold <= hi
    step = m << align
    if s > 20 or (max(abs(lo), abs(hi)) + 1) << align >= 1 << 31:
        return None
    unit = levels * (1 << (32 + s))
    low = int((unit[reach] - threshold[reach] * step).max())
    high = int((unit[inside] - (threshold[inside] - 1) * step).min())
    if low >= high:
        return None
    first, width = (low - rounding) % WORD, min(high - low, WORD)
    if first == 0 or first + width > WORD:
        moves = [0]
    else:
        found = (
            (sign, first_multiple(sign * step % WORD, WORD, first, first + width - 1)) for sign in (1, -1)
        )
        moves = sorted((sign * b for sign, b in found if b is not None), key=abs)
    for b in moves:
        c = -((b * step + rounding - low) // WORD)
        fits = (lo + b) << align >= -(1 << 31) and (hi + b) << align < 1 << 31 and abs(c) < 1 << 30
        # the sum with the product's high word stays well inside of int32
        if fits and all(abs(((value + b) * step >> 32) + c) < 1 << 30 for value in (lo, hi)):
            return b, c
    return None


def _rescaled(
    levels: Int64, threshold: Int64, ends: tuple[int, int], s: int, align: int, rounding: int, multiplier: int
) -> tuple[int, int, int] | None:
    """(multiplier, bias shift, offset), if that multiplier keeps the channel's thresholds."""
    if not 0 < multiplier < 1 << 31:
        return None
    found = _affine(levels, threshold, *ends, multiplier, s, align, rounding)
    return None if found is None else (multiplier, *found)


def _all_affine(
    steps: tuple[Int64, Int64],
    lo: Int64,
    hi: Int64,
    m: Int64,
    live: npt.NDArray[np.bool_],
    right: Int64,
    target: Int64,
    align: Int64,
    rounding: int,
    short: bool,
) -> tuple[Int64, Int64, Int64] | None:
    """(multiplier, bias shift, offset) of every live channel for these shifts; None where a channel has none.
    steps: `thresholds`. short: of multipliers whose low 16 bits are zeros.
    """
    levels, threshold = steps
    found = np.zeros((3, lo.size), np.int64)
    for channel in np.flatnonzero(live):
        exact, places, a = int(m[channel]), int(right[channel] - target[channel]), int(align[channel])
        if places < 0:  # its multiplier would have more than 31 bits
            return None
        if short:
            half = exact >> SHORT_BITS + places
            candidates = [half << SHORT_BITS, half + 1 << SHORT_BITS]
        else:
            candidates = sorted({exact >> places, (exact + (1 << places) - 1) >> places})
        ends = int(lo[channel]), int(hi[channel])
        of = partial(_rescaled, levels, threshold[channel], ends, int(target[channel]) + a, a, rounding)
        best = next((f for c in candidates if (f := of(c)) is not None), None)
        if best is None or (short and not -SHORT <= best[2] < SHORT):
            return None
        found[:, channel] = best
    return found[0], found[1], found[2]


def _halved(raw: RequantisePlan, quant: QuantSpec, most: Int64, align: Int64) -> RequantisePlan | None:
    """The form of that name for accumulators up to `most` that come shifted left by `align`, where all
    channels have the same power of two: the rule on every integer, whatever the thresholds are.
    """
    m, s = raw.multiplier, raw.shift
    power = int(m[0]).bit_length() - 1
    places = 31 - int(s[0]) - power
    if power < 0 or bool((m != 1 << power).any() or (s != s[0]).any()) or not 1 <= places <= 24:
        return None
    zero = quant.out_zero_point + quant.out_zero_point % 2
    moved = (1 << places >> 1) - 1 + (zero << places)
    if int(((most + abs(moved) + (1 << places)) << align).max()) >= 1 << 31:
        return None
    every = np.ones_like(m)
    offset = every * (quant.out_zero_point % 2 << places)
    return replace(raw, form="halved", offset=offset, shift=every * places, bias_shift=every * moved)


def lifted_plan(quant: QuantSpec, lo: Int64, hi: Int64) -> RequantisePlan:
    """`plan`; where a multiplier of 1/2 or more would leave the rule as it stands, with a shift before it,
    which is one instruction more.
    """
    found = plan(quant, lo, hi)
    lift = int(quant.shift.max()) + 1
    if found.form != "raw" or quant.rounding is None or not 0 < lift <= 8:
        return found
    return plan(quant, lo, hi, lift=lift)


def plan(
    quant: QuantSpec,
    lo: Int64,
    hi: Int64,
    align: Int64 | None = None,
    rounded: bool = True,
    lift: int = 0,
    short: bool = False,
) -> RequantisePlan:
    """Cheapest form for accumulators in [lo, hi] (per channel); align: the accumulator comes shifted left by
    so much. lift: the kernel shifts it left itself, so that channels whose multiplier is up to 2^lift have
    the affine form, too.

    rounded: the set's multiplication gives rounded high words, and shifts of channels may differ (SMMLAR,
    ASR); else it cuts them off, and one shift is for all, best none, when the offset is added to int16
    (vectors). short: the form of that name, or "raw" where some channel has none.
    """
    count = lo.size
    m, s = quant.channels(count)
    if quant.rounding is None:
        return RequantisePlan("raw", m, np.zeros_like(m), s, np.zeros_like(m), None, None, True)
    aligned = np.full(count, lift, np.int64) + (0 if align is None else align)
    fixed = lo == hi  # filters of zeros: the accumulator may as well be zero
    extreme = np.where(fixed, 0, np.maximum(np.abs(lo), np.abs(hi))) << np.maximum(s, 0)
    zero = np.zeros(count, np.int64)
    to_zero = np.where(fixed, -lo, 0)
    out_lo, out_hi = quant.out_range
    clamp_low = None if quant.act_min <= out_lo else quant.act_min
    clamp_high = None if quant.act_max >= out_hi else quant.act_max
    raw = RequantisePlan("raw", m, zero, s, zero, clamp_low, clamp_high)
    if int(extreme.max()) >= 1 << 31 or bool((m < 0).any()):  # the rule may wrap: it is no step function
        return raw

    least, most = (rescale(v, m, s, quant.rounding) + quant.out_zero_point for v in (lo, hi))
    # strictly within: the affine form is only sure of the side of each threshold, not of how far beyond the
    # last one
    clamp_low = None if quant.act_min < int(least.min()) else clamp_low
    clamp_high = None if quant.act_max > int(most.max()) else clamp_high
    raw = replace(raw, clamp_low=clamp_low, clamp_high=clamp_high)
    value = np.clip(least, quant.act_min, quant.act_max)
    constant = value == np.clip(most, quant.act_min, quant.act_max)  # e.g. filters of zeros
    live = ~constant
    if quant.rounding == "even" and rounded and not short:
        halved = _halved(raw, quant, np.maximum(np.abs(lo), np.abs(hi)), aligned)
        if halved is not None:
            return halved
    if bool((live & ((extreme >= 1 << 30) | (s >= lift) | (s < -24))).any()):
        return raw
    right = np.where(live, -s - 1, int((-s - 1)[live].min(initial=24)) % 24)
    largest = int(right[live].max(initial=15))
    if rounded:
        own = int(right.min())
        shared = SHARED_SHIFT if own >= SHARED_SHIFT else min(own, 0)
        shifts = [*(np.full(count, k) for k in sorted({shared, own})), right]
    else:
        shifts = [np.full(count, k) for k in sorted({0, min(largest, 8), min(largest, 15)})]
    shifts = [np.zeros(count, np.int64)] if short else shifts
    if count > _MANY_CHANNELS:
        return raw
    steps = thresholds(quant, m, s, lo, hi)
    for target in shifts:
        found = _all_affine(
            steps, lo, hi, m, live, right, target, aligned, 1 << 31 if rounded and not short else 0, short
        )
        if found is None:
            continue
        multiplier, moved, offset = found
        offset = np.where(live, offset, value << (target + aligned))
        limit = _NARROW_OFFSET if not rounded and not target.any() else 1 << 31
        fits = (offset >= -SHORT) & (offset < SHORT) if short else np.abs(offset) < limit
        if bool(fits.all()):
            form: Form = "short" if short else "affine"
            return replace(raw, form=form, multiplier=multiplier, offset=offset, shift=target + lift,
                           bias_shift=np.where(live, moved, to_zero), lift=lift)  # fmt: skip
    if quant.rounding != "double" or lift or short:
        return raw
    r = right + 1
    offset = (np.int64(1) << (r - 1)) + (np.where(constant, value, quant.out_zero_point) << r)
    if int(np.abs(offset).max()) >= 1 << 30:
        return raw
    m = np.where(constant, 0, m)
    return replace(raw, form="ties", multiplier=m, offset=offset, shift=r, bias_shift=to_zero)
