"""Mixed precision: layers of 4-bit weights or in float, tensors of 16 bits, by what each gains and costs.

From the int8 plan there are two walks: up, the tensors with the most noise for what 16 bits cost there first;
down, the weights that save the most flash for their loss. Every plan on the way is compiled and scored, and
what it costs on the target is known. What is chosen is made anew of the other int8 plans, whose ranges may
be better beside tensors of 16 bits, and those that are best in ONNX Runtime are compiled and scored, too. All
that was scored is the frontier; the cheapest plan that keeps the budgets is chosen. Nothing is random.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aot_model.errors import CompileError, Problem
from aot_model.quantise.automatic import MOST_BUILT, Row, best_by_source, best_of, chosen, noise
from aot_model.quantise.candidates import Calibration, Candidate, Prepared, tensor_plans
from aot_model.quantise.cost import Budget, Cost
from aot_model.quantise.plan import FLOAT, Plan, TensorPlan, WeightPlan
from aot_model.quantise.prepare import has_wide_types
from aot_model.quantise.refine import by_answers, learned, worth_16_bits
from aot_model.quantise.score import Score
from aot_model.quantise.sensitivity import Sensitivity
from aot_model.quantise.weights import error_of, roomy, weight_plan, weight_plans, with_short_multipliers

SCHEMA = 1
MOST_SINGLE = 24
"""Layers whose weights are scored alone: those that promise the most."""
MOST_STEPS = 12
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
Simulate = Callable[[Candidate], "Row | None"]


class Search:
    """The plans around one of int8, and the best that a budget allows.

    bases: other plans of int8; simulate: how near a plan is in ONNX Runtime; ram_of: a workspace, which
    is known sooner than its cost.
    """

    def __init__(
        self,
        calibration: Calibration,
        base: Candidate,
        evaluate: Evaluate,
        say: Callable[[str], None],
        bases: Sequence[Candidate] = (),
        simulate: Simulate | None = None,
        ram_of: Callable[[Candidate], int] | None = None,
    ) -> None:
        self.calibration, self.base, self.evaluate, self.say = calibration, base, evaluate, say
        self.bases, self.simulate, self.ram_of = bases, simulate, ram_of
        self.points: list[Point] = []
        self._seen: set[frozenset[Change]] = set()

    @property
    def source(self) -> Prepared:
        return self.base.source

    def run(self, budget: Budget, float_value: float, max_drop: float | None) -> Point:
        """The chosen point; all are in `points`. CompileError E402 when none keeps the budgets."""
        start = self._point(())
        assert start is not None
        kept = budget if budget.allows(start.cost, start.cost) else Budget()
        self._walk(self._with_room(kept, start), lambda p: kept.allows(p.cost, start.cost))
        if budget.times is None or max_drop is not None:  # the best within factors has no narrower weights
            downs = [p for c in self._narrower() if (p := self._point((c,))) is not None]
            narrow = sorted(worth_narrowing(start, downs), key=lambda p: self._loss(start, p))
            self._walk([c for p in narrow[:MOST_STEPS] for c in p.changes], lambda p: True)
        best = self._choose(budget, float_value, max_drop)
        if best is start:
            return best
        for candidate in self._made_anew(best):
            self._scored(best.changes, candidate)
        return self._choose(budget, float_value, max_drop)

    def _made_anew(self, best: Point) -> list[Candidate]:
        """A point's changes to the other plans of int8, ranges by what they do to the answers, rounding
        learnt: beside tensors of 16 bits, what rounding the weights loses is most of what is left."""
        raw = self._simulated([mixed(self.calibration, base, best.changes) for base in self.bases])
        several = best_by_source(raw) or [best.candidate]
        learnt = [learned(self.calibration, c) for c in several if not c.learnt]
        rows = self._simulated(learnt)
        if len(rows) == len(several) and all(c.kind == "tensors" for c in best.changes):
            first = several[chosen(rows)]
            sensitivity = Sensitivity(first.source, self.calibration.samples, self.calibration.where)
            if sensitivity.enough:
                ranged = by_answers(first, sensitivity)
                rows += self._simulated([learned(self.calibration, ranged)])
        return best_of(rows, MOST_BUILT) if rows else learnt

    def _simulated(self, candidates: Sequence[Candidate]) -> list[Row]:
        simulate = self.simulate
        return [row for c in candidates if (row := simulate(c)) is not None] if simulate is not None else []

    def _loss(self, start: Point, p: Point) -> float:
        """Of a layer for the constants that it saves: the code of its kernel is that of others, too."""
        saved = max(start.cost.constants - p.cost.constants, 0) / max(start.cost.constants, 1)
        return max(start.score.snr - p.score.snr, 0.0) / max(saved, 1e-6)

    def _walk(self, order: list[Change], fits: Callable[[Point], bool]) -> None:
        """The changes one after the other, more and more at a time; of those that do not fit together the
        first half, of one that does not none."""
        taken: tuple[Change, ...] = ()
        rest, most = list(order), 1
        for step in range(MOST_STEPS):
            size = min(most, len(rest))
            point = self._point((*taken, *rest[:size])) if size else None
            if point is not None and fits(point):
                taken, rest, most = point.changes, rest[size:], 1 + step // 2
            elif size > 1:
                most = size // 2
            else:
                rest = rest[1:]

    def _point(self, changes: tuple[Change, ...]) -> Point | None:
        key = frozenset(changes)
        if key in self._seen:
            return next((p for p in self.points if frozenset(p.changes) == key), None)
        self._seen.add(key)
        return self._scored(changes, mixed(self.calibration, self.base, changes))

    def _scored(self, changes: tuple[Change, ...], candidate: Candidate) -> Point | None:
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

    def _with_room(self, budget: Budget, start: Point) -> list[Change]:
        """The groups of tensors that may be wider; those that need too much RAM by themselves would only be
        steps of the walk."""
        found, least = self._wider(), replace(start.cost, constants=0, code=0, cycles=0)
        ram_of = self.ram_of
        if ram_of is None:
            return found

        def fits(change: Change) -> bool:
            try:
                ram = ram_of(mixed(self.calibration, self.base, (change,)))
            except CompileError:
                return False
            return budget.allows(replace(least, ram=ram), start.cost)

        return [change for change in found if fits(change)]

    def _wider(self) -> list[Change]:
        """Groups of int8 tensors, those that make the most noise for what 16 bits cost there first."""
        source = self.source
        if not has_wide_types(source.network.model):
            return []
        sensitivity = Sensitivity(source, self.calibration.samples, self.calibration.where)
        return [Change("tensors", kind, "int16") for kind, _ in worth_16_bits(self.base, sensitivity)]

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
        fitting = [p for p in self.points if budget.allows(p.cost, self.points[0].cost)]
        if max_drop is not None:
            good = [p for p in fitting if float_value - p.score.value <= max_drop + 1e-12]
            if good:
                return min(good, key=lambda p: (_weight(p.cost), -p.score.snr))
        elif self.points[0] in fitting and budget.times is None:  # nothing asks for more
            return self.points[0]
        elif fitting:
            most = max(p.score.value for p in fitting)
            near = [p for p in fitting if p.score.value >= most - noise(p.score, most)]
            return max(near, key=lambda p: (p.score.snr, -_weight(p.cost)))
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


def worth_narrowing(start: Point, alone: Sequence[Point]) -> list[Point]:
    """Of layers with narrower weights, each alone, those whose constants save more than the code costs that
    is theirs: what the one with the least needs is a kernel that all have."""
    shared = min((p.cost.code or 0 for p in alone), default=0)
    return [p for p in alone if start.cost.constants - p.cost.constants > (p.cost.code or 0) - shared]


def _weight(cost: Cost) -> float:
    """One number for a cost: cycles where they are known, else bytes."""
    return float(cost.cycles) if cost.cycles is not None else float(cost.ram + cost.flash)


def mixed(calibration: Calibration, base: Candidate, changes: tuple[Change, ...]) -> Candidate:
    """The plan of a base with changes: ranges by the same method, rounding learnt again where it was."""
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
            roomier = roomy(network, layer, weights[layer.weight], tensors, powers)
            weights[layer.weight] = with_short_multipliers(network, layer, roomier, tensors)
    plan = Plan(tensors, weights, source.equalisation, method=f"{base.plan.method}; {words(changes)}")
    made = replace(base, plan=plan)
    if base.learnt:
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
            "method": p.candidate.plan.method,
            "changes": [{"kind": c.kind, "name": c.name, "type": c.type} for c in p.changes],
            "value": p.score.value, "changed": p.score.changed, "snr": p.score.snr, "ram": p.cost.ram,
            "flash": p.cost.flash, "cycles": p.cost.cycles, "pareto": on, "chosen": p is chosen,
        }
        for p, on in zip(points, best, strict=True)
    ]  # fmt: skip
    timed = all(p.cost.cycles is not None for p in points)
    key, label = ("cycles", "cycles") if timed else ("flash", "bytes of flash")
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
            needs = f"RAM {p.cost.ram:,}, flash {p.cost.flash:,}"
            cycles = "" if p.cost.cycles is None else f", {p.cost.cycles:,} cycles"
            lines.append(
                f"{p.score.value:.4f}, {p.score.snr:.1f} dB, {needs}{cycles}: {words(p.changes)[:200]}"
            )
    return "\n".join(lines)
