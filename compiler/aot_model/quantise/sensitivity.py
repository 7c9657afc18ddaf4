"""What each tensor by itself does to the answers: the float model with this one in integers beside itself.

Ranges can be chosen by that, and which tensors are worth 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot_model.quantise.candidates import Prepared
from aot_model.quantise.data import Samples
from aot_model.quantise.insert import inserted
from aot_model.quantise.network import Network
from aot_model.quantise.plan import LIMITS, Plan, TensorPlan, fitted
from aot_model.quantise.ranges import METHODS
from aot_model.quantise.runtime import FloatModel
from aot_model.quantise.score import snr
from aot_model.quantise.work import work_of

MOST_WORK = 1e11
"""Cycles (see work.py) of all runs together: of large models fewer samples are run."""
MOST, FEWEST = 64, 8
SQUASHED = ("Softmax", "LogSoftmax", "Sigmoid")
DRAWN_IN = ((1.0, 0.9), (0.9, 1.0), (0.8, 0.8))
"""Shares of the lowest and of the highest number seen, beside the ranges of METHODS."""
LOUD = 0.03
"""Ranges are tried of tensors that make at least this share of the noise."""


def unsquashed(network: Network, name: str) -> str:
    """What a Softmax at the end reads; another output is itself."""
    made = network.producer.get(name)
    return str(made.input[0]) if made is not None and made.op_type in SQUASHED else name


class Sensitivity:
    """Of a float model, by some of the samples."""

    def __init__(self, source: Prepared, samples: Samples, where: str) -> None:
        self.source, self.where = source, where
        self.groups: dict[str, list[str]] = {}
        for name in source.choice.tensors:
            if name in source.seen:
                self.groups.setdefault(source.choice.groups[name], []).append(name)
        runs = 2 * len(self.groups)
        count = int(min(MOST, samples.count, MOST_WORK // max(runs * work_of(source), 1)))
        self.enough = count >= min(FEWEST, samples.count)
        count = max(count, min(FEWEST, samples.count))
        self.samples = samples.take(np.arange(count) * samples.count // count)
        self.ends = [unsquashed(source.network, name) for name in source.network.outputs]
        self._reference: list[np.ndarray] | None = None
        self._known: dict[tuple[tuple[str, TensorPlan], ...], float] = {}

    def noise(self, plans: dict[str, TensorPlan]) -> float:
        """That of the outputs, for a signal of 1, with these tensors in integers and all else in float."""
        key = tuple(plans.items())
        if key not in self._known:
            self._known[key] = 10 ** (-self._alone(plans) / 10)
        return self._known[key]

    def _alone(self, plans: dict[str, TensorPlan]) -> float:
        network = self.source.network
        if self._reference is None:
            self._reference = FloatModel(network.model, self.ends, self.where).stacked(self.samples)
        model = inserted(network, self.source.choice, Plan(plans, {}), self.where)
        return snr(FloatModel(model, self.ends, self.where).stacked(self.samples), self._reference)

    def noises(self, plan: Plan) -> dict[str, float]:
        """What each tensor of 8 bits by itself makes, by the representative of its scale."""
        found = {}
        for group, names in self.groups.items():
            if all(n in plan.tensors and plan.tensors[n].type == "int8" for n in names):
                found[group] = self.noise({n: plan.tensors[n] for n in names})
        return found

    def ranges(self, plan: Plan) -> dict[str, TensorPlan]:
        """The tensors of a plan, those of 8 bits with the range that costs the outputs the least."""
        result, noises = dict(plan.tensors), self.noises(plan)
        for group, noise in noises.items():
            if noise < LOUD * sum(noises.values()):
                continue
            names = self.groups[group]
            best, least = plan.tensors[names[0]], noise
            for other in dict.fromkeys(self._candidates(names)):
                if other != best and (found := self.noise(dict.fromkeys(names, other))) < least:
                    best, least = other, found
            result.update(dict.fromkeys(names, best))
        return result

    def _candidates(self, names: Sequence[str]) -> list[TensorPlan]:
        seen = self.source.together(names)
        low, high = LIMITS["int8"]
        ranges = [method(seen, high - low) for method in METHODS.values()]
        ranges += [(seen.low * a, seen.high * b) for a, b in DRAWN_IN]
        powers = self.source.choice.powers
        if powers:  # half of one that is just not enough cuts the least
            ranges += [(a / 2, b / 2) for a, b in ranges]
        return [fitted("int8", a, b, powers) for a, b in ranges]
