"""Which plans are worth a build: all are simulated by ONNX Runtime, whose integers differ by ties at most.

First the ways to find ranges, with and without equalisation; the best of them is refined step by step (16
bits where that costs little, ranges by what they do to the answers, learned rounding). What comes of it is
compiled, run and chosen by its integers; see session.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aot_model.errors import CompileError
from aot_model.quantise.candidates import Calibration, Candidate
from aot_model.quantise.data import Samples
from aot_model.quantise.refine import by_answers, learned, widened
from aot_model.quantise.runtime import FloatModel
from aot_model.quantise.score import Array, Metric, Score, score
from aot_model.quantise.sensitivity import Sensitivity

MOST_BUILT = 3
MOST_SIMULATED = 500
"""Samples: the rest of what is held back is for the integers."""


@dataclass(frozen=True)
class Row:
    """A candidate, and how it answers on samples that were held back."""

    candidate: Candidate
    score: Score


class Simulation:
    """Answers of quantised models by ONNX Runtime, on some of the held-back samples."""

    def __init__(self, held: Samples, reference: list[Array], outputs: list[str], metric: Metric) -> None:
        count = min(held.count, MOST_SIMULATED)
        rows = np.arange(count) * held.count // count
        self.samples, self.outputs, self.metric = held.take(rows), outputs, metric
        self.reference = [array[rows] for array in reference]

    def row(self, candidate: Candidate, where: str) -> Row | None:
        """None where ONNX Runtime cannot run the model."""
        try:
            model = FloatModel(candidate.model(where), self.outputs, where)
            found = model.stacked(self.samples)
        except CompileError:
            return None
        return Row(candidate, score(found, self.reference, self.samples.labels, self.metric))


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
        self.unknown: list[Candidate] = []
        """Those that could not be simulated."""

    def run(self, method: str, wide: float) -> list[Candidate]:
        """The best plans, the best first. wide: what tensors of 16 bits may cost; 0: there are none."""
        for candidate in self.calibration.all(method):
            self._row(candidate)
        if not self.rows:
            return self.unknown[:MOST_BUILT]
        first = self._best().candidate
        where, samples = self.calibration.where, self.calibration.samples
        sensitivity = Sensitivity(first.source, samples, where)
        if wide > 0 and sensitivity.enough:
            found = widened(self.calibration, first, sensitivity, self.ram_of, wide)
            if found is not None:
                self._row(found)
        base = self._best().candidate
        several = [first, base]
        if method == "auto" and sensitivity.enough:
            several.append(by_answers(self.calibration, base, sensitivity))
            self._row(several[-1])
        for candidate in {c.plan.method: c for c in several}.values():
            self._row(learned(self.calibration, candidate))
        rest = list(self.rows)
        result: list[Candidate] = []
        while rest and len(result) < MOST_BUILT:
            result.append(rest.pop(chosen(rest)).candidate)
        return result

    def _row(self, candidate: Candidate) -> None:
        row = self.simulation.row(candidate, self.calibration.where)
        if row is None:
            self.unknown.append(candidate)
            return
        self.rows.append(row)
        self.say(f"{candidate.plan.method}: {row.score.value:.4f}, {row.score.snr:.1f} dB simulated")

    def _best(self) -> Row:
        return self.rows[chosen(self.rows)]


def chosen(rows: list[Row]) -> int:
    """The best by the metric; among those that differ from it by chance only, the closest to the float
    model."""
    best = max(row.score.value for row in rows)
    several = [k for k, row in enumerate(rows) if row.score.value >= best - noise(row.score, best)]
    return max(several, key=lambda k: (rows[k].score.snr, -k))


def noise(one: Score, best: float) -> float:
    """Half a standard error of a share; other metrics have none that is known."""
    if not 0 <= best <= 1 or one.samples < 2:
        return 0.0
    return 0.5 * float(np.sqrt(max(best * (1 - best), 1 / one.samples) / one.samples))
