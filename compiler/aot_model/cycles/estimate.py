"""Cycles of a run: each block that ran after another is fed to the model of the core once, and counts as
often as it ran.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aot_model.cycles.dual_issue import DualIssue
from aot_model.cycles.in_order import InOrder
from aot_model.cycles.instruction import Instruction
from aot_model.cycles.pipeline import BRANCHES, FLASH_CODE, FLASH_DATA, REASONS, UNALIGNED, Cost, Pipeline
from aot_model.cycles.rules import Memory
from aot_model.cycles.single_issue import SingleIssue
from aot_model.cycles.trace import Trace


@dataclass
class Cycles:
    """Of a layer, in one run: instructions, and cycles by what they go to (REASONS)."""

    instructions: float = 0
    by_reason: dict[str, float] = field(default_factory=lambda: dict.fromkeys(REASONS, 0.0))

    @property
    def total(self) -> float:
        """All of them."""
        return sum(self.by_reason.values())

    @property
    def binding(self) -> str:
        """The greatest shares, in words."""
        shares = sorted(
            ((n / max(self.total, 1e-9), reason) for reason, n in self.by_reason.items()), reverse=True
        )
        return ", ".join(f"{reason} {100 * share:.0f} %" for share, reason in shares[:4] if share >= 0.01)

    def add(self, cost: Cost, times: float) -> None:
        """A cost that occurred so often."""
        for reason, cycles in cost:
            self.by_reason[reason] += cycles * times


@dataclass(frozen=True)
class Estimate:
    """Cycles of one run by layer (-1: between them), and the mnemonics that no rule knows, which count one
    each.
    """

    layers: Mapping[int, Cycles]
    unknown: tuple[str, ...]


def pipeline_of(core: str, **rules: int) -> Pipeline:
    """The model of a core of rules.CORES. rules: in place of those of the table."""
    if core == "m7":
        return DualIssue(core, **rules)
    return InOrder(core, **rules) if core in ("m33", "m55") else SingleIssue(core, **rules)


def estimate(
    trace: Trace, code: Mapping[int, Instruction], core: str, memory: Memory, **rules: int
) -> Estimate:
    """The cycles of a trace on a core before a memory; the trace is of a memory with the same caches, or
    without need of them.
    """
    model = pipeline_of(core, **rules)
    layers: dict[int, Cycles] = defaultdict(Cycles)
    bodies = {block: _body(code, *place) for block, place in trace.blocks.items()}
    before = _usual_predecessors(trace)
    costs: dict[tuple[int | None, int], Cost] = {}
    unknown: set[str] = set()
    for edge in trace.edges:
        pair = (edge.source, edge.block)
        if pair not in costs:
            costs[pair] = _summed(_cost(model, pair, bodies, before))
            unknown |= {one.name for one in bodies[edge.block] if one.kind == "unknown"}
        layer = layers[edge.layer]
        layer.instructions += edge.count * len(bodies[edge.block]) / trace.runs
        layer.add(costs[pair], edge.count / trace.runs)
        layer.add([(BRANCHES, model.rules["mispredict"])], edge.mispredicted / trace.runs)
        layer.add([(FLASH_CODE, memory.code_miss)], edge.misses / trace.runs)
    for access in trace.accesses:
        layer = layers[access.layer]
        layer.add([(UNALIGNED, model.rules["unaligned"])], access.extra / trace.runs)
        layer.add([(FLASH_DATA, memory.load_miss)], access.loads / trace.runs)
        layer.add([(FLASH_DATA, memory.store_miss)], access.stores / trace.runs)
    return Estimate(dict(layers), tuple(sorted(unknown)))


def sequence(model: Pipeline, body: Iterable[Instruction]) -> float:
    """The cycles that instructions take which come again and again, once through: for tests, and to try
    things out.
    """
    found = list(body)
    rounds = []
    for _ in range(8):
        spent = 0.0
        for one in found:
            spent += sum(cycles for _, cycles in model.issue(one))
        if found[-1].branches:
            spent += sum(cycles for _, cycles in model.branch(found[-1], found[0]))
        rounds.append(spent)
    return sum(rounds[4:]) / 4


def _body(code: Mapping[int, Instruction], start: int, count: int) -> list[Instruction]:
    found: list[Instruction] = []
    while len(found) < count and start in code:
        found.append(code[start])
        start = found[-1].end
    return found


def _usual_predecessors(trace: Trace) -> dict[int, int]:
    """By block: the one that most often ran before it."""
    into: dict[int, Counter[int]] = defaultdict(Counter)
    for edge in trace.edges:
        if edge.source is not None:
            into[edge.block][edge.source] += edge.count
    return {block: counts.most_common(1)[0][0] for block, counts in into.items()}


def _cost(
    model: Pipeline,
    pair: tuple[int | None, int],
    bodies: Mapping[int, list[Instruction]],
    before: Mapping[int, int],
) -> Cost:
    """What a block costs behind another, with the way to it; the model has seen the blocks before that
    one.
    """
    source, block = pair
    way = [] if source is None else [source]
    while way and len(way) <= model.history and way[0] in before:
        way.insert(0, before[way[0]])
    model.reset()
    cost: Cost = []
    previous: list[Instruction] = []
    for part in [*way, block]:
        body = bodies.get(part, [])
        cost = []
        if previous and body and previous[-1].end != body[0].address:
            cost += model.branch(previous[-1], body[0])
        for one in body:
            cost += model.issue(one)
        previous = body
    return cost


def _summed(cost: Cost) -> Cost:
    sums: Counter[str] = Counter()
    for reason, cycles in cost:
        sums[reason] += cycles  # type: ignore[assignment]
    return [(reason, float(cycles)) for reason, cycles in sums.items() if cycles]
