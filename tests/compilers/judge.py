"""What the outputs of a program must be, and how far they may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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

    def by_a_step(self, want: np.ndarray, rounds: bool) -> Tolerance:
        """The same where quantised numbers, of a byte or two, may be one off; floats behind such numbers
        (rounds) by a hundredth of their range.
        """
        if rounds and want.dtype.kind == "f":
            finite = want[np.isfinite(want)]
            return replace(self, atol=max(self.atol, 0.01 * float(np.ptp(finite)) if finite.size else 0.0))
        if want.dtype.kind not in "iu" or want.dtype.itemsize > 2:
            return self
        return replace(self, integers=True, atol=max(self.atol, 1.0))

    def difference(self, got: np.ndarray, want: np.ndarray) -> str:
        """What is different; empty when nothing is."""
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{got.dtype}{list(got.shape)} and not {want.dtype}{list(want.shape)}"
        if want.dtype.kind == "O":
            return (
                "" if np.array_equal(got, want) else f"{got.tolist()!r:.100} and not {want.tolist()!r:.100}"
            )
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
        return (
            f"{int(off.sum()):,} of {off.size:,} elements, first at {[int(i) for i in first]}: "
            f"{got[first]} and not {want[first]}"
        )


@dataclass(frozen=True)
class Expectation:
    """Of one case: the outputs of each oracle, any of which is right, and the tolerance of each output."""

    name: str
    oracles: tuple[tuple[np.ndarray, ...], ...]
    tolerances: tuple[Tolerance, ...]
    rounds: bool = False
    """Whether floats become integers on the way."""

    def difference(self, outputs: Sequence[np.ndarray], wide_floats: bool = False) -> str:
        """What is different from the nearest oracle; empty when nothing is.

        wide_floats: quantised numbers may be a step off, outputs and those inside of the network.
        """
        found = "no oracle"
        for oracle in self.oracles:
            if len(oracle) != len(outputs):
                found = f"{len(outputs)} outputs and not {len(oracle)}"
                continue
            allowed = [
                t.by_a_step(want, self.rounds) if wide_floats else t
                for t, want in zip(self.tolerances, oracle, strict=True)
            ]
            rows = zip(outputs, oracle, allowed, strict=True)
            found = next(
                (
                    f"output {k}: {text}"
                    for k, (got, want, t) in enumerate(rows)
                    if (text := t.difference(got, want))
                ),
                "",
            )
            if not found:
                return ""
        return found
