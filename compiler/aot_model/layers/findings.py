"""Why a signal is off, in words: its range, its steps, a shift, a gain, one channel; and which layer is the
first that loses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.layers.losses import Losses, Pair
from aot_model.layers.statistics import Sums

SATURATED = 1e-3
"""Share of the elements from which it is said that a layer saturates."""
SYSTEMATIC = 0.5
"""Share of the power of an error from which one cause has it."""
SHIFT = 0.75
"""Steps of a shift that roundings do not make: of those the mean is near 0."""
GAIN = 0.03
MARGIN = 10.0
"""Decibels above the least up to which an error with one cause is a loss."""


@dataclass(frozen=True)
class Finding:
    """kind: saturated, parameters, shifted, scaled, channel, coarse, infinite, noisy."""

    kind: str
    words: str


def findings(pair: Pair) -> tuple[Finding, ...]:
    """What is noticed of a signal, the most telling first."""
    sums, found = pair.judged, list[Finding]()
    name = pair.name
    if sums.infinite:
        found.append(
            Finding(
                "infinite",
                f"{name}'s output is infinite or no number in {sums.infinite:,} elements that are numbers "
                f"in the other",
            )
        )
    if pair.made_with is not None and pair.steps is not None:
        was, now = pair.made_with, pair.steps
        found.append(
            Finding(
                "parameters",
                f"{name}'s output is quantised with scale {was.size:.6g} and zero point "
                f"{_zero(was.zero_point)}, but read with scale {now.size:.6g} and zero point "
                f"{_zero(now.zero_point)}",
            )
        )
    limits, reach = pair.limits, sums.want_range
    if limits is not None and sums.share_saturated >= SATURATED:
        found.append(
            Finding(
                "saturated",
                f"{name}'s output saturates in {_percent(sums.share_saturated)} of its elements: its range "
                f"was calibrated to {interval(*limits)}, data reach {interval(*reach)}",
            )
        )
    if (systematic := _systematic(pair, sums)) is not None:
        found.append(systematic)
    if limits is not None and pair.dtype is not None and reach[1] >= reach[0]:
        steps = (max(reach[1], 0.0) - min(reach[0], 0.0)) / max(
            pair.steps.size if pair.steps else 1.0, 1e-300
        )
        whole = 2 ** (8 * pair.dtype.itemsize)
        if 0 < steps < whole / 8 and pair.dtype.itemsize == 1:
            found.append(
                Finding(
                    "coarse",
                    f"{name}'s output uses {max(1, round(steps))} of its {whole} steps: its range was "
                    f"calibrated to {interval(*limits)}, data reach {interval(*reach)}",
                )
            )
    return tuple(found)


def _systematic(pair: Pair, sums: Sums) -> Finding | None:
    """A shift, a gain, or one channel that has most of the error."""
    mean, share = sums.shift
    gain = sums.gain
    step = pair.steps.size if pair.steps is not None else 0.0
    enough = sums.snr < 40 and (not step or sums.rms > step)
    channel = sums.worst_channel
    if channel is not None and enough and sums.share_saturated < SATURATED:
        k, part, own_gain = channel
        if part >= SYSTEMATIC and part > 4 / len(sums.count):
            said = ""
            if abs(own_gain - 1) > GAIN:
                said = f", where its gain is {own_gain:.3g}: a scale of the weights is off"
            return Finding(
                "channel", f"{pair.name}'s output has {_percent(part)} of its error in channel {k}{said}"
            )
    if enough and abs(gain[0] - 1) > GAIN and gain[1] >= max(SYSTEMATIC, share):
        words = f"{pair.name}'s output is {gain[0]:.3g} times what it should be"
        return Finding("scaled", f"{words}: a scale, of weights or of the output, is off")
    if share >= SYSTEMATIC and (abs(mean) >= SHIFT * step if step else sums.snr < 60):
        amount = f"{mean:+.3g}" + (f" = {mean / step:+.1f} steps" if step else "")
        words = f"{pair.name}'s output is shifted by {amount}, {_percent(share)} of its error's power"
        return Finding("shifted", f"{words}: a zero point or a bias is off")
    return None


def loses(losses: Losses, pair: Pair, least: float) -> bool:
    """Whether the layer itself loses: its own signal-to-noise is below the least, or its error has one
    cause that no rounding is.

    Where nothing says what it should make of its inputs, it loses if its inputs do not.
    """
    return _bad(pair, pair.judged, least) and (
        pair.own is not None or not any(_inherits(losses.pairs[k], least) for k in pair.reads)
    )


def _inherits(pair: Pair, least: float) -> bool:
    return pair.whole is None or _bad(pair, pair.whole, least)


def _bad(pair: Pair, sums: Sums, least: float) -> bool:
    cause = _systematic(pair, sums)
    return bool(sums.infinite or sums.snr < least
                or (pair.made_with is not None and sums.snr < least + MARGIN) or
                (cause is not None and (cause.kind == "shifted" or sums.snr < least + MARGIN)))  # fmt: skip


def first_loss(losses: Losses, least: float) -> Pair | None:
    return next((p for p in losses.pairs if loses(losses, p, least)), None)


def explained(pair: Pair) -> str:
    """The layer in one sentence."""
    if found := findings(pair):
        return found[0].words
    sums = pair.judged
    said = f"{pair.name}'s output is {_noise(sums.snr)}"
    if pair.steps is None:
        return said
    few = sums.rms < 2 * pair.steps.size
    return f"{said}, and nothing saturates, is shifted or scaled: " + (
        "its steps are too large for it"
        if few
        else "its weights are too coarse, or it computes something else"
    )


def _noise(snr: float) -> str:
    return f"only {snr:.1f} dB above its error" if snr > 0 else "smaller than its error"


def interval(low: float, high: float) -> str:
    """±3.1, or -1.2 to 5."""
    if low < 0 < high and abs(low + high) <= 0.02 * (high - low):
        return f"±{max(-low, high):.3g}"
    return f"{low:.3g} to {high:.3g}"


def decibels(snr: float) -> str:
    return (
        "the same" if snr == float("inf") else "no signal at all" if snr == -float("inf") else f"{snr:.1f} dB"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def _zero(points: object) -> str:
    flat = np.asarray(points).reshape(-1)
    return str(int(flat[0])) + (" …" if flat.size > 1 else "")
