"""Mixed precision: layers of 4-bit weights or in float, tensors of 16 bits, by what each measurably gains
and costs.

Each single change of the int8 plan is compiled and scored, and what it costs on the target is known. From
there two walks: up,
the change with the largest gain of accuracy for its cost first; down, the one that saves the most flash for
its loss. All that was
scored is the frontier; the cheapest plan that keeps the budgets is chosen. Nothing is random.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from aot_model.errors import CompileError, Problem
from aot_model.quantise.candidates import Calibration, Candidate, Prepared, tensor_plans
from aot_model.quantise.correct import corrections
from aot_model.quantise.cost import Budget, Cost
from aot_model.quantise.plan import FLOAT, Plan, TensorPlan, WeightPlan
from aot_model.quantise.prepare import has_wide_types
from aot_model.quantise.refine import learned
from aot_model.quantise.score import Score
from aot_model.quantise.weights import error_of, roomy, weight_plan, weight_plans

SCHEMA = 1
MOST_SINGLE = 24
"""Single changes of each kind that are scored: those that promise the most."""
MOST_STEPS = 8
"""Of a walk."""
MIN_INT4 = 64
"""A smaller constant is not worth it: the compiler would keep it as bytes."""


@dataclass(frozen=True)
class Change:
    """What differs from int8: a group of tensors with 16 bits, or a layer's weights in 4 bits or float."""

    kind: str
    """"tensors" or "weights"."""
    name: str
    """Representative of the group, or the constant."""
    type: str


@dataclass(frozen=True)
class Point:
    """A plan that was scored."""

    changes: tuple[Change, ...]
    candidate: Candidate
    score: Score
    cost: Cost


Evaluate = Callable[[Candidate], tuple[Score, Cost]]


class Search:
    """The plans around one of int8, and the best that a budget allows."""

    def __init__(
        self, calibration: Calibration, base: Candidate, evaluate: Evaluate, say: Callable[[str], None]
    ) -> None:
        self.calibration, self.base, self.evaluate, self.say = calibration, base, evaluate, say
        self.points: list[Point] = []
        self._seen: set[frozenset[Change]] = set()

    @property
    def source(self) -> Prepared:
        return self.base.source

    def run(self, budget: Budget, float_value: float, max_drop: float | None) -> Point:
        """The chosen point; all are in `points`. CompileError E402 when none keeps the budgets."""
        start = self._point(())
        ups = [p for c in self._wider() if (p := self._point((c,))) is not None]
        downs = [p for c in self._narrower() if (p := self._point((c,))) is not None]
        assert start is not None
        self._walk(start, sorted(ups, key=lambda p: -self._gain(start, p)))
        self._walk(start, sorted(downs, key=lambda p: self._loss(start, p)))
        return self._choose(budget, float_value, max_drop)

    def _gain(self, start: Point, p: Point) -> float:
        """Decibels for each per cent of cycles and bytes more."""
        more = max(_weight(p.cost) / _weight(start.cost) - 1, 0.0)
        return (p.score.snr - start.score.snr) / (0.01 + more)

    def _loss(self, start: Point, p: Point) -> float:
        saved = max(start.cost.flash - p.cost.flash, 0) / max(start.cost.flash, 1)
        return max(start.score.snr - p.score.snr, 0.0) / max(saved, 1e-6)

    def _walk(self, start: Point, order: list[Point]) -> None:
        """The changes one after the other, each kept when the walk's direction goes on."""
        changes = start.changes
        for p in order[:MOST_STEPS]:
            changes = (*changes, *(c for c in p.changes if c not in changes))
            self._point(changes)

    def _point(self, changes: tuple[Change, ...]) -> Point | None:
        key = frozenset(changes)
        if key in self._seen:
            return next((p for p in self.points if frozenset(p.changes) == key), None)
        self._seen.add(key)
        candidate = mixed(self.calibration, self.base, changes)
        try:
            found, cost = self.evaluate(candidate)
        except CompileError as error:
            if not changes:
                raise
            self.say(f"{words(changes)}: {error.problems[0].message[:200]}")
            return None
        self.points.append(Point(changes, candidate, found, cost))
        self.say(f"{words(changes)}: {found.value:.4f}, {found.snr:.1f} dB, {cost}")
        return self.points[-1]

    def _wider(self) -> list[Change]:
        """Groups of int8 tensors, those with the most rounding for their signal first."""
        if not has_wide_types(self.source.network.model):
            return []
        noise: dict[str, float] = {}
        for name, plan in self.base.plan.tensors.items():
            if plan.type == "int8" and name in self.source.seen:
                seen = self.source.seen[name]
                power = float((seen.counts * seen.centres**2).sum() / max(seen.counts.sum(), 1))
                group = self.source.choice.kinds[name]
                noise[group] = max(noise.get(group, 0.0), plan.scale**2 / 12 / max(power, 1e-30))
        order = sorted(noise, key=lambda g: -noise[g])[:MOST_SINGLE]
        return [Change("tensors", group, "int16") for group in order]

    def _narrower(self) -> list[Change]:
        """Weights of layers, those that lose the least in 4 bits for their size first."""
        if not has_wide_types(self.source.network.model):
            return []
        found = []
        for name in dict.fromkeys(layer.weight for layer in self.source.choice.layers):
            data = self.source.network.constants[name]
            if data.size >= MIN_INT4:
                error = error_of(data, weight_plan(data, self.source.choice.weights[name], "int4"))
                found.append((error / data.size, name))
        return [Change("weights", name, "int4") for _, name in sorted(found)[:MOST_SINGLE]]

    def _choose(self, budget: Budget, float_value: float, max_drop: float | None) -> Point:
        whole = budget.beside(self.points[0].cost)
        fitting = [p for p in self.points if whole.allows(p.cost)]
        if max_drop is not None:
            good = [p for p in fitting if float_value - p.score.value <= max_drop + 1e-12]
            if good:
                return min(good, key=lambda p: (_weight(p.cost), -p.score.snr))
        elif self.points[0] in fitting and budget.times is None:  # nothing asks for more
            return self.points[0]
        elif fitting:
            return max(fitting, key=lambda p: (p.score.value, p.score.snr, -_weight(p.cost)))
        raise CompileError(
            [
                Problem(
                    "E402",
                    f"no plan keeps the budgets\n{table(self.points, float_value)}",
                    self.calibration.where,
                    "allow more, or calibrate with more samples",
                )
            ]
        )


def _weight(cost: Cost) -> float:
    """One number for a cost: cycles where they are known, else bytes."""
    return float(cost.cycles) if cost.cycles is not None else float(cost.ram + cost.flash)


def mixed(calibration: Calibration, base: Candidate, changes: tuple[Change, ...]) -> Candidate:
    """The plan of a base with changes: ranges by the same method, biases corrected again where they were."""
    if not changes:
        return base
    source, choice = base.source, base.source.choice
    network, powers = source.network, choice.powers
    kinds = {c.name: c.type for c in changes if c.kind == "tensors"}
    wider = tensor_plans(source, base.method, kinds)
    tensors: dict[str, TensorPlan] = {
        name: wider[name] if source.choice.kinds[name] in kinds else plan
        for name, plan in base.plan.tensors.items()
    }
    weights: dict[str, WeightPlan] = weight_plans(source.network, source.choice, tensors)
    for c in changes:
        if c.kind == "weights":
            weights[c.name] = (
                WeightPlan(FLOAT)
                if c.type == FLOAT
                else weight_plan(network.constants[c.name], choice.weights[c.name], c.type, powers)
            )
    for layer in source.choice.layers:
        if weights[layer.weight].type != FLOAT:
            weights[layer.weight] = roomy(network, layer, weights[layer.weight], tensors, powers)
    bias = dict(base.plan.bias)
    if bias or any(c.type == "int4" for c in changes):
        bias = corrections(source.network, source.choice, weights, calibration.samples, calibration.where)
    plan = Plan(tensors, weights, source.equalisation, bias, f"{base.plan.method}; {words(changes)}")
    made = replace(base, plan=plan)
    if any(w.rounding for w in base.plan.weights.values()):
        made = learned(calibration, made)
        made = replace(made, plan=replace(made.plan, method=plan.method))
    return made


def words(changes: tuple[Change, ...]) -> str:
    return ", ".join(f"{c.name} {c.type}" for c in changes) or "int8"


def pareto(points: list[Point]) -> list[bool]:
    """Which points no other is better than in all: accuracy, closeness, RAM, flash, cycles."""
    rows = np.asarray(
        [[-p.score.value, -p.score.snr, p.cost.ram, p.cost.flash, p.cost.cycles or 0] for p in points]
    )
    return [not any((other <= row).all() and (other < row).any() for other in rows) for row in rows]


def frontier(points: list[Point], chosen: Point, facts: dict[str, object]) -> str:
    """The points as JSON, for `compare` and the page; docs/quantise.md has the schema."""
    best = pareto(points)
    rows = [
        {
            "name": words(p.changes),
            "changes": [{"kind": c.kind, "name": c.name, "type": c.type} for c in p.changes],
            "value": p.score.value, "changed": p.score.changed, "snr": p.score.snr, "ram": p.cost.ram,
            "flash": p.cost.flash, "cycles": p.cost.cycles, "pareto": on, "chosen": p is chosen,
        }
        for p, on in zip(points, best, strict=True)
    ]  # fmt: skip
    timed = all(p.cost.cycles is not None for p in points)
    key, label = ("cycles", "cycles") if timed else ("flash", "bytes of constants")
    head = {
        "schema": SCHEMA,
        "kind": "aot-model quantisation frontier",
        "title": "Quantisation",
        "x": {"key": key, "label": label, "better": "less"},
        "y": {"key": "snr", "label": "dB to the float model", "better": "more"},
        **facts,
    }
    return json.dumps({**head, "points": rows}, indent=1) + "\n"


def table(points: list[Point], float_value: float) -> str:
    """The points that no other is better than, as lines."""
    lines = [f"the float model: {float_value:.4f}"]
    for p, on in zip(points, pareto(points), strict=True):
        if on:
            needs = f"RAM {p.cost.ram:,}, constants {p.cost.flash:,}"
            cycles = "" if p.cost.cycles is None else f", {p.cost.cycles:,} cycles"
            lines.append(
                f"{p.score.value:.4f}, {p.score.snr:.1f} dB, {needs}{cycles}: {words(p.changes)[:200]}"
            )
    return "\n".join(lines)
