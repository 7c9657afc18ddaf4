"""Which plans are worth a build: all are simulated by ONNX Runtime, whose integers differ by ties at most.

First the ways to find ranges, with and without equalisation; of the best of both rounding is learnt, and the
better is refined step by step (16 bits where that costs little, ranges by what they do to the answers), each
step with rounding learnt. What comes of it is compiled, run and chosen by its integers; see session.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from aot_model.errors import CompileError
from aot_model.quantise.candidates import Calibration, Candidate
from aot_model.quantise.data import Samples
from aot_model.quantise.network import Network
from aot_model.quantise.refine import by_answers, learned, widened
from aot_model.quantise.runtime import FloatModel
from aot_model.quantise.score import Metric, Score, score, snr
from aot_model.quantise.sensitivity import Sensitivity, unsquashed

MOST_BUILT = 3
MOST_SIMULATED = 500
"""Samples: the rest of what is held back is for the integers."""


@dataclass(frozen=True)
class Row:
    """A candidate, and how it answers on samples that were held back."""

    candidate: Candidate
    score: Score


class Simulation:
    """Answers of quantised models by ONNX Runtime, on some of the held-back samples.

    Closeness is that of what a Softmax at the end reads: answers that are nearly sure say nothing behind it.
    """

    def __init__(self, network: Network, held: Samples, metric: Metric, where: str) -> None:
        count = min(held.count, MOST_SIMULATED)
        self.samples, self.metric = held.take(np.arange(count) * held.count // count), metric
        self.outputs = network.outputs
        self.ends = [unsquashed(network, name) for name in network.outputs]
        self.reference = FloatModel(network.model, [*self.outputs, *self.ends], where).stacked(self.samples)

    def row(self, candidate: Candidate, where: str) -> Row | None:
        """None where ONNX Runtime cannot run the model."""
        try:
            model = FloatModel(candidate.model(where), [*self.outputs, *self.ends], where)
            found = model.stacked(self.samples)
        except CompileError:
            return None
        count = len(self.outputs)
        whole = score(found[:count], self.reference[:count], self.samples.labels, self.metric)
        return Row(candidate, replace(whole, snr=snr(found[count:], self.reference[count:])))


class Automatic:
    """The search for plans."""

    def __init__(
        self,
        calibration: Calibration,
        simulation: Simulation,
        ram_of: Callable[[Candidate], int],
        say: Callable[[str], None],
    ) -> None:
        self.calibration, self.simulation, self.ram_of, self.say = calibration, simulation, ram_of, say
        self.rows: list[Row] = []
        self._learnt: dict[str, Row] = {}
        """By the method of what was learnt from."""
        self.unknown: list[Candidate] = []
        """Those that could not be simulated."""

    def run(self, method: str, wide: float) -> list[Candidate]:
        """The best plans, the best first. wide: what tensors of 16 bits may cost; 0: there are none."""
        for candidate in self.calibration.all(method):
            self._row(candidate)
        if not self.rows:
            return self.unknown[:MOST_BUILT]
        best = self._best_learnt(best_by_source(self.rows))
        sensitivity = Sensitivity(best.source, self.calibration.samples, self.calibration.where)
        if wide > 0 and sensitivity.enough:
            found = widened(best, sensitivity, self.ram_of, wide)
            if found is not None:
                best = self._best_learnt([best, found])
        if method == "auto" and sensitivity.enough:
            self._best_learnt([by_answers(best, sensitivity)])
        return best_of(self.rows, MOST_BUILT)

    def _best_learnt(self, several: list[Candidate]) -> Candidate:
        """Of plans with the nearest integers the one that is the best with learned rounding."""
        for candidate in several:
            method = candidate.plan.method
            row = None if method in self._learnt else self._row(learned(self.calibration, candidate))
            if row is not None:
                self._learnt[method] = row
        known = [c for c in several if c.plan.method in self._learnt]
        rows = [self._learnt[c.plan.method] for c in known]
        return known[chosen(rows)] if known else several[0]

    def _row(self, candidate: Candidate) -> Row | None:
        row = self.simulation.row(candidate, self.calibration.where)
        if row is None:
            self.unknown.append(candidate)
            return None
        if all(candidate is not known.candidate for known in self.rows):  # it may be what it was learnt from
            self.rows.append(row)
        self.say(f"{candidate.plan.method}: {row.score.value:.4f}, {row.score.snr:.1f} dB simulated")
        return row


def best_by_source(rows: list[Row]) -> list[Candidate]:
    """The best plan of each float model: as it was, and equalised."""
    by_source: dict[int, list[Row]] = {}
    for row in rows:
        by_source.setdefault(id(row.candidate.source), []).append(row)
    return [several[chosen(several)].candidate for several in by_source.values()]


def best_of(rows: list[Row], count: int) -> list[Candidate]:
    """The best so many, the best first."""
    rest = list(rows)
    return [rest.pop(chosen(rest)).candidate for _ in range(min(count, len(rest)))]


def chosen(rows: list[Row]) -> int:
    """The best by the metric; among those that differ from it by chance only, the closest to the float
    model."""
    best = max(row.score.value for row in rows)
    several = [k for k, row in enumerate(rows) if row.score.value >= best - noise(row.score, best)]
    return max(several, key=lambda k: (rows[k].score.snr, -k))


def first(rows: list[Row]) -> int:
    """Of rows in an order of preference, the first that is the best by the metric, but for chance."""
    best = max(row.score.value for row in rows)
    return next(k for k, row in enumerate(rows) if row.score.value >= best - noise(row.score, best))


def noise(one: Score, best: float) -> float:
    """Half a standard error of a share, or two answers of 200 and more: as much is chance. Other metrics have
    none that is known."""
    if not 0 <= best <= 1 or one.samples < 2:
        return 0.0
    half = 0.5 * float(np.sqrt(best * (1 - best) / one.samples))
    return max(half, min(2, one.samples // 100) / one.samples * (1 + 1e-9))
