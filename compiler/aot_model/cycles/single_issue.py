"""Cortex-M0, M0+, M3 and M4: one instruction after the other; what an instruction costs depends on the one
before it.
"""

from __future__ import annotations

from aot_model.cycles.instruction import NONE, Instruction
from aot_model.cycles.pipeline import ARITHMETIC, BRANCHES, ISSUE, LOADS, STORES, WAITS, Cost, Pipeline

_MAKES_ADDRESSES = ("alu", "shift", "simd", "multiply", "multiply_long", "mac", "mac_long", "divide")


class SingleIssue(Pipeline):
    """State: the instruction before, and the length of the run of 32-bit instructions that are not
    aligned.
    """

    def reset(self) -> None:
        self.before: Instruction | None = None
        self.run = 0

    def issue(self, one: Instruction) -> Cost:
        rules, before = self.rules, self.before
        free = (
            one.kind == "it"
            and rules["it_folds"]
            and before is not None
            and before.size == 2
            and before.kind != "it"
        )
        cost: Cost = [(ISSUE, 0 if free else 1), *self._own(one)]
        if before is not None:
            if (
                (one.is_load or one.is_store)
                and before.kind in _MAKES_ADDRESSES
                and before.writes & one.early
            ):
                cost.append((WAITS, rules["address"]))
            addend = one.late if one.kind == "fp_mac" else NONE
            if before.kind in ("fp", "fp_mac", "fp_divide") and before.writes & one.reads - addend:
                cost.append((WAITS, rules["float_use"]))
        if one.size == 4 and one.address & 2 and not (one.is_load or one.is_store):
            self.run += 1
            cost.append((BRANCHES, rules["wide_run"] if self.run == 3 else 0))
        else:
            self.run = 0
        self.before = one
        return cost

    def branch(self, one: Instruction, target: Instruction) -> Cost:
        self.run = 0
        return self._refill(one, target)

    def _own(self, one: Instruction) -> Cost:
        """Beyond the first cycle."""
        rules, kind = self.rules, one.kind
        if kind == "load" or (kind == "vload" and one.words == 1):
            return [(LOADS, 0 if self._overlaps(one) else rules["load"])]
        if kind == "store" or (kind == "vstore" and one.words == 1):
            offset = rules["store_offset"] if one.register_offset or kind == "vstore" else 0
            return [(STORES, rules["store"] + (0 if self._overlaps(one) else offset))]
        if one.is_load:
            return [(LOADS, 2 * rules["word"] if kind == "table" else one.words * rules["word"])]
        if one.is_store:
            return [(STORES, one.words * rules["word"])]
        rule = {
            "mac": "multiply_add",
            "multiply_long": "multiply_long",
            "mac_long": "multiply_add_long",
            "divide": "divide",
            "fp_mac": "float_mac",
            "fp_divide": "float_divide",
            "system": "system"
        }.get(kind)  # fmt: skip
        if kind == "fp_move" and one.words == 2:
            return [(ARITHMETIC, 1)]
        return [(ARITHMETIC, rules[rule])] if rule else []

    def _overlaps(self, one: Instruction) -> bool:
        """Whether a single load or store begins while the load before it is under way."""
        before, rules = self.before, self.rules
        if before is None or before.kind not in ("load", "vload") or before.words != 1 or before.branches:
            return False
        floats = "v" in (before.kind[0], one.kind[0])
        moved = before.writeback or one.writeback
        allowed = (
            rules["load_overlaps"]
            and (rules["vldr_overlaps"] or not floats)
            and (rules["writeback_overlaps"] or not moved)
        )
        return bool(allowed) and not before.writes & one.early
