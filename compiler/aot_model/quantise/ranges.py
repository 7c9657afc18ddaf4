"""Ranges of tensors from histograms of what calibration saw: MinMax, percentiles, least squares, entropy."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from aot_model.quantise.data import Samples
from aot_model.quantise.functions import Function
from aot_model.quantise.runtime import FloatModel

BINS = 4096
AGAIN = np.linspace(1.3, 0.5, 33)
Range = tuple[float, float]


@dataclass
class Seen:
    """What calibration saw of one tensor."""

    low: float = np.inf
    high: float = -np.inf
    counts: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))
    channels: np.ndarray | None = None
    """The largest magnitude of each channel."""
    behind: Function | None = None
    """Where only elementwise functions read it: what they make of it."""

    @property
    def centres(self) -> np.ndarray:
        step = (self.high - self.low) / BINS
        return np.asarray(self.low + step * (np.arange(BINS) + 0.5))


def observe(model: FloatModel, samples: Samples, last: Collection[str] = ()) -> dict[str, Seen]:
    """Two runs over the data: extremes, then histograms between them. last: tensors whose channels are
    the last axis."""
    seen = {name: Seen() for name in model.wanted}
    for tensors in model.each(samples):
        for name, array in zip(model.wanted, tensors, strict=True):
            if not array.size:
                continue
            found = seen[name]
            found.low, found.high = min(found.low, float(array.min())), max(found.high, float(array.max()))
            if array.ndim > 1:
                channels = array.ndim - 1 if name in last else 1
                most = np.abs(array).max(axis=tuple(k for k in range(array.ndim) if k != channels))
                found.channels = most if found.channels is None else np.maximum(found.channels, most)
    for tensors in model.each(samples):
        for name, array in zip(model.wanted, tensors, strict=True):
            found = seen[name]
            if found.low < found.high:
                # As float64: between two floats of 32 bits there may be no room for so many bins.
                found.counts += np.histogram(array.astype(np.float64), BINS, (found.low, found.high))[0]
    return {name: s for name, s in seen.items() if s.low <= s.high}


def united(several: list[Seen]) -> Seen:
    """Of tensors that have one scale: a histogram over the widest range."""
    if len(several) == 1:
        return several[0]
    result = Seen(min(s.low for s in several), max(s.high for s in several))
    if result.low < result.high:
        for s in several:
            result.counts += np.histogram(s.centres, BINS, (result.low, result.high), weights=s.counts)[
                0
            ].astype(np.int64)
    return result


def minmax(seen: Seen, steps: int) -> Range:
    return seen.low, seen.high


def percentile(share: float) -> Callable[[Seen, int], Range]:
    """Without the outermost 1 - share of the elements, half of them on each side that has a tail."""

    def cut(seen: Seen, steps: int) -> Range:
        total = seen.counts.sum()
        if not total or seen.low >= seen.high:
            return seen.low, seen.high
        sums = np.cumsum(seen.counts) / total
        step = (seen.high - seen.low) / BINS
        both = seen.low < 0 < seen.high
        outside = (1 - share) / 2 if both else 1 - share
        low = (
            seen.low + step * int(np.searchsorted(sums, outside, side="right")) if seen.low < 0 else seen.low
        )
        high = seen.low + step * (int(np.searchsorted(sums, 1 - outside)) + 1) if seen.high > 0 else seen.high
        return min(low, high), max(low, high)

    return cut


def _shrunk(seen: Seen) -> list[Range]:
    """Candidates: the range, with either end drawn in."""
    low, high = min(seen.low, 0.0), max(seen.high, 0.0)
    shares = np.concatenate([np.linspace(1, 0.5, 26), np.geomspace(0.48, 0.02, 14)])
    lows = [low * f for f in shares] if low < 0 else [0.0]
    highs = [high * f for f in shares] if high > 0 else [0.0]
    if len(lows) > 1 and len(highs) > 1:  # one end at a time, then together
        return [(a, high) for a in lows] + [(low, b) for b in highs] + list(zip(lows, highs, strict=True))
    return [(a, b) for a in lows for b in highs]


def _errors(seen: Seen, steps: int) -> Callable[[float, float], float]:
    """The sum of squares that rounding and cutting to a range cost, behind the functions that read it."""
    made = seen.behind(seen.centres) if seen.behind is not None else []
    if not made:
        return lambda low, high: _error(seen, low, high, steps)
    x, counts = seen.centres, seen.counts

    def error(low: float, high: float) -> float:
        step = (high - low) / steps
        if step <= 0:
            return float(sum((counts * (np.interp(0.0, x, y) - y) ** 2).sum() for y in made))
        zero = np.rint(low / step)
        rounded = (np.clip(np.rint(x / step), zero, zero + steps)) * step
        return float(sum((counts * (np.interp(rounded, x, y) - y) ** 2).sum() for y in made))

    return error


def _error(seen: Seen, low: float, high: float, steps: int) -> float:
    """The sum of squares that rounding and cutting cost."""
    x, step = seen.centres, (high - low) / steps
    if step <= 0:
        return float((seen.counts * x**2).sum())
    inside = (x >= low) & (x <= high)
    over = np.where(x < low, low - x, np.where(x > high, x - high, 0.0))
    return float((seen.counts * np.where(inside, step**2 / 12, over**2)).sum())


def least_squares(seen: Seen, steps: int) -> Range:
    """The range whose rounding and cutting cost the least squared error."""
    if seen.low >= seen.high:
        return seen.low, seen.high
    error = _errors(seen, steps)
    low, high = min(_shrunk(seen), key=lambda r: error(*r))
    for _ in range(2):  # each end again, given the other
        low = min((low * f for f in AGAIN), key=lambda v: error(max(v, min(seen.low, 0)), high))
        low = max(low, min(seen.low, 0.0))
        high = min((high * f for f in AGAIN), key=lambda v: error(low, min(v, max(seen.high, 0))))
        high = min(high, max(seen.high, 0.0))
    return low, high


def entropy(seen: Seen, steps: int) -> Range:
    """The range that keeps the most of the distribution's information (Kullback-Leibler divergence, as in
    TensorRT)."""
    if seen.low >= seen.high or steps > 255:
        return seen.low, seen.high
    best, found = np.inf, (seen.low, seen.high)
    x, counts = seen.centres, seen.counts.astype(np.float64)
    for low, high in _shrunk(seen):
        inside = (x >= low) & (x <= high)
        if inside.sum() <= steps // 2:
            continue
        p = np.where(inside, counts, 0)
        first, last = np.flatnonzero(inside)[[0, -1]]
        p[first] += counts[x < low].sum()
        p[last] += counts[x > high].sum()
        bins = np.clip(((x - low) / (high - low) * steps).astype(int), 0, steps - 1)
        nonzero = inside & (counts > 0)
        mass = np.bincount(bins[inside], np.where(inside, counts, 0)[inside], steps)
        room = np.bincount(bins[nonzero], minlength=steps)
        q = np.where(nonzero, mass[bins] / np.maximum(room[bins], 1), 0)
        p, q = p / max(p.sum(), 1), q / max(q.sum(), 1)
        both = (p > 0) & (q > 0)
        distance = float((p[both] * np.log(p[both] / q[both])).sum() + p[(p > 0) & (q == 0)].sum() * 20)
        if distance < best:
            best, found = distance, (low, high)
    return found


METHODS: dict[str, Callable[[Seen, int], Range]] = {
    "minmax": minmax,
    "percentile": percentile(0.9999),
    "mse": least_squares,
    "entropy": entropy,
}
