"""How far one signal is from another, added up vector by vector: nothing of the size of a tensor is kept.

Sums are by channel, so that one channel that is off is found in a tensor that is right.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
BINS = 64


@dataclass
class Sums:
    """Of pairs (want, got) of finite numbers."""

    count: Array
    want: Array
    got: Array
    want2: Array
    got2: Array
    product: Array
    error2: Array
    worst: float = 0.0
    infinite: int = 0
    """Elements that are not finite on one side and not the same on the other."""
    want_range: tuple[float, float] = (np.inf, -np.inf)
    got_range: tuple[float, float] = (np.inf, -np.inf)
    saturated: int = 0
    """Elements at the end of what `got` can say, where `want` is beyond it."""
    inner: Array = field(default_factory=lambda: np.zeros(6))
    """Count, sums of want, got, want², want * got and error² of the elements that are at no end: what a
    shift is seen in."""

    @staticmethod
    def of(channels: int) -> Sums:
        a, b, c, d, e, f, g = (np.zeros(channels) for _ in range(7))
        return Sums(a, b, c, d, e, f, g)

    def add(
        self, want: Array, got: Array, axis: int, limits: tuple[float, float] | None, step: float
    ) -> None:
        """One vector's. axis: of the channels; limits: of `got`; step: the size of its steps."""
        w, g = (
            np.moveaxis(a.astype(np.float64), axis, 0).reshape(a.shape[axis], -1)
            if a.ndim
            else a.astype(np.float64).reshape(1, 1)
            for a in (want, got)
        )
        finite = np.isfinite(w) & np.isfinite(g)
        if not finite.all():
            self.infinite += int((~finite & ~((w == g) | (np.isnan(w) & np.isnan(g)))).sum())
            w, g = np.where(finite, w, 0.0), np.where(finite, g, 0.0)
        e = g - w
        for total, term in (
            (self.count, finite),
            (self.want, w),
            (self.got, g),
            (self.want2, w * w),
            (self.got2, g * g),
            (self.product, w * g),
            (self.error2, e * e),
        ):
            total += term.sum(axis=1)
        if finite.any():
            self.worst = max(self.worst, float(np.abs(e).max()))
            self.want_range = (
                min(self.want_range[0], float(w[finite].min())),
                max(self.want_range[1], float(w[finite].max())),
            )
            self.got_range = (
                min(self.got_range[0], float(g[finite].min())),
                max(self.got_range[1], float(g[finite].max())),
            )
        inside = finite
        if limits is not None:
            low, high = limits
            at_low, at_high = g <= low + step / 4, g >= high - step / 4
            self.saturated += int(((at_low & (w < low - step / 2)) | (at_high & (w > high + step / 2))).sum())
            inside = finite & ~at_low & ~at_high
        w, g = w[inside], g[inside]
        self.inner += (w.size, w.sum(), g.sum(), (w * w).sum(), (w * g).sum(), ((g - w) ** 2).sum())

    @property
    def elements(self) -> int:
        return int(self.count.sum())

    @property
    def snr(self) -> float:
        """Signal to noise in dB; infinite where nothing differs."""
        if self.infinite:
            return -np.inf
        noise, signal = float(self.error2.sum()), float(self.want2.sum())
        return (
            float("inf") if noise == 0 else -np.inf if signal == 0 else 10 * float(np.log10(signal / noise))
        )

    @property
    def cosine(self) -> float | None:
        size = float(np.sqrt(self.want2.sum() * self.got2.sum()))
        return float(self.product.sum()) / size if size else None

    @property
    def rms(self) -> float:
        """Of the error."""
        return float(np.sqrt(self.error2.sum() / max(self.elements, 1)))

    @property
    def share_saturated(self) -> float:
        return self.saturated / max(self.elements, 1)

    @property
    def gain(self) -> tuple[float, float]:
        """(k of got ≈ k * want + shift, share of the error's power that k * want takes away), of the
        elements at no end."""
        n, w, g, w2, wg, e2 = self.inner
        spread = w2 - w * w / max(n, 1)
        if n < 8 or spread <= 1e-12 * w2 or e2 == 0:
            return 1.0, 0.0
        return float((wg - w * g / n) / spread), float((wg / w2 - 1) ** 2 * w2 / e2)

    @property
    def shift(self) -> tuple[float, float]:
        """(mean error of the elements at no end, share of their error's power that it is)."""
        n, w, g, _, _, e2 = self.inner
        mean = (g - w) / n if n else 0.0
        return float(mean), float(n * mean * mean / e2) if e2 else 0.0

    @property
    def worst_channel(self) -> tuple[int, float, float] | None:
        """(channel, its share of the error's power, its gain), of several."""
        total = float(self.error2.sum())
        if self.error2.size < 3 or total == 0:
            return None
        k = int(self.error2.argmax())
        n = self.count[k]
        spread = self.want2[k] - self.want[k] ** 2 / max(n, 1)
        gain = (self.product[k] - self.want[k] * self.got[k] / max(n, 1)) / spread if spread > 0 else 1.0
        return k, float(self.error2[k] / total), float(gain)


@dataclass
class Histogram:
    """Counts of two signals over the same bins, which become twice as wide whenever a number is beyond
    them."""

    reach: float = 0.0
    """The bins are from -reach to reach."""
    want: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))
    got: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, want: Array, got: Array) -> None:
        sides = [a[np.isfinite(a)].astype(np.float64) for a in (want, got)]
        most = max((float(np.abs(a).max(initial=0.0)) for a in sides), default=0.0)
        if self.reach == 0.0:
            self.reach = float(2.0 ** np.ceil(np.log2(most))) if most > 0 else 0.0
        while most > self.reach > 0:
            self.want, self.got = _merged(self.want), _merged(self.got)
            self.reach *= 2
        if self.reach == 0.0:
            self.want[BINS // 2] += sides[0].size
            self.got[BINS // 2] += sides[1].size
            return
        for total, side in zip((self.want, self.got), sides, strict=True):
            total += np.histogram(side, bins=BINS, range=(-self.reach, self.reach))[0]


def _merged(counts: Array) -> Array:
    """Pairs of bins as one, in the middle of as many bins."""
    pairs = counts.reshape(-1, 2).sum(axis=1)
    empty = np.zeros(BINS // 4, counts.dtype)
    return np.concatenate([empty, pairs, empty])
