"""What the outputs of a program must be, and how far they may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """|got - want| <= atol + rtol * |want|, for at least `share` of the elements; integers too when
    `integers`.
    """

    rtol: float = 0.0
    atol: float = 0.0
    share: float = 1.0
    integers: bool = False

    def difference(self, got: np.ndarray, want: np.ndarray) -> str:
        """What is different; empty when nothing is."""
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{got.dtype}{list(got.shape)} and not {want.dtype}{list(want.shape)}"
        if want.dtype.kind == "O":
            return "" if np.array_equal(got,
                                        want) else f"{got.tolist()!r:.100} and not {want.tolist()!r:.100}"
        if want.dtype.kind in "iub" and not self.integers:
            off = got != want
        else:
            a, b = (np.asarray(v, np.complex128 if v.dtype.kind == "c" else np.float64) for v in (got, want))
            with np.errstate(invalid="ignore", over="ignore"):
                near = np.isfinite(b) & (np.abs(a - b) <= self.atol + self.rtol * np.abs(b))
            off = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
        if off.sum() <= (1.0 - self.share) * off.size:
            return ""
        first = np.unravel_index(int(np.argmax(off)), off.shape)
        return (f"{int(off.sum()):,} of {off.size:,} elements, first at {[int(i) for i in first]}: "
                f"{got[first]} and not {want[first]}")


@dataclass(frozen=True)
class Expectation:
    """Of one case: the outputs of each oracle, any of which is right, and the tolerance of each output."""

    name: str
    oracles: tuple[tuple[np.ndarray, ...], ...]
    tolerances: tuple[Tolerance, ...]

    def difference(self, outputs: Sequence[np.ndarray]) -> str:
        """What is different from the nearest oracle; empty when nothing is."""
        found = "no oracle"
        for oracle in self.oracles:
            if len(oracle) != len(outputs):
                found = f"{len(outputs)} outputs and not {len(oracle)}"
                continue
            rows = zip(outputs, oracle, self.tolerances, strict=True)
            found = next((f"output {k}: {text}" for k, (got, want, t) in enumerate(rows)
                          if (text := t.difference(got, want))), "")
            if not found:
                return ""
        return found
