"""What all models of a core have in common: instructions are issued one after the other, and each says
what it cost, and why.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from aot_model.cycles.instruction import Instruction
from aot_model.cycles.rules import values_of

ISSUE, LOADS, STORES, ARITHMETIC, WAITS, BRANCHES, UNALIGNED, FLASH_CODE, FLASH_DATA = REASONS = (
    "issue", "loads", "stores", "arithmetic", "waits", "branches", "unaligned", "flash code", "flash data",
)  # fmt: skip
"""What cycles go to: an instruction's own; more for loads, stores, and for long arithmetic; results that
are not there yet;
branches; accesses that are not aligned; flash."""

Cost = list[tuple[str, float]]


class Pipeline(ABC):
    """A core. The state is what the next instruction's time depends on; `history` blocks make it right."""

    history = 1

    def __init__(self, core: str, **rules: int) -> None:
        self.rules = values_of(core)
        assert set(rules) <= set(self.rules), f"there are no rules {sorted(set(rules) - set(self.rules))}"
        self.rules.update(rules)
        self.reset()

    @abstractmethod
    def reset(self) -> None:
        """Nothing is under way."""

    @abstractmethod
    def issue(self, one: Instruction) -> Cost:
        """The cycles that an instruction adds."""

    @abstractmethod
    def branch(self, one: Instruction, target: Instruction) -> Cost:
        """The cycles that going on elsewhere adds."""

    def _refill(self, one: Instruction, target: Instruction) -> Cost:
        """By the kind of the branch, and where it goes."""
        kind, rules = one.kind, self.rules
        if one.is_load:
            cycles = rules["branch_load"]
        elif kind == "call":
            cycles = rules["call"]
        elif kind in ("branch", "branch_if"):
            cycles = rules["branch"]
        else:
            cycles = rules["branch_register"]
        unaligned = rules["wide_target"] if target.size == 4 and target.address & 2 else 0
        return [(BRANCHES, cycles + unaligned)]


def total(cost: Cost) -> float:
    """All cycles of a cost."""
    return sum(cycles for _, cycles in cost)
