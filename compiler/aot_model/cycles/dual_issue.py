"""Cortex-M7: up to two instructions in a cycle, in order; each waits for the registers that it reads."""

from __future__ import annotations

from aot_model.cycles.instruction import Instruction
from aot_model.cycles.pipeline import ARITHMETIC, BRANCHES, ISSUE, LOADS, STORES, WAITS, Cost, Pipeline

_ALONE = (
    "load_pair",
    "load_many",
    "store_pair",
    "store_many",
    "vload_many",
    "vstore_many",
    "system",
    "table",
    "divide",
    "unknown",
)
_SATURATES = {"ssat", "usat", "qadd", "qsub", "qdadd", "qdsub", "usad8", "usada8"}
_SHIFTS_FIRST = {
    "ssat", "usat", "sbfx", "ubfx", "pkhbt", "pkhtb", "rev", "rev16", "revsh", "rbit", "sxtab", "uxtab",
    "sxtab16", "uxtab16"
}  # fmt: skip
_UNITS = {
    "load": ("load", ),
    "vload": ("load", ),
    "store": ("store", ),
    "vstore": ("store", ),
    "multiply": ("mac", ),
    "multiply_long": ("mac", ),
    "mac": ("mac", ),
    "mac_long": ("mac", ),
    "simd": ("simd", "alu"),
    "shift": ("shift", "alu"),
    "alu": ("alu", ),
    "compare": ("alu", ),
    "branch": ("branch", ),
    "branch_if": ("branch", ),
    "call": ("branch", ),
    "jump": ("branch", ),
    "fp": ("fp", ),
    "fp_mac": ("fp", ),
    "fp_compare": ("fp", ),
    "fp_divide": ("fp", ),
}  # fmt: skip


class DualIssue(Pipeline):
    """State: the cycle, from when each register can be read, and what was issued in the cycle that is
    open.
    """

    history = 2

    def reset(self) -> None:
        self.now = 0.0
        """The first cycle in which nothing was issued; those of `group` were in the one before."""
        self.ready: dict[int, float] = {}
        self.group: list[Instruction] = []
        self.closed = False

    def issue(self, one: Instruction) -> Cost:
        rules = self.rules
        if one.kind == "it":
            return [(ISSUE, 0)]
        alone = one.kind in _ALONE or (one.words == 2 and one.kind in ("vload", "vstore", "fp_move"))
        open_cycle = self.now - 1 if self.group else self.now
        ready = max(self._ready(one), open_cycle)
        if self.group and not self.closed and not alone and ready <= open_cycle and self._room(one):
            at, cost = open_cycle, [(ISSUE, 0.0)]
            self.group.append(one)
        else:
            at = max(ready, self.now)
            cost = [(ISSUE, 1.0), (WAITS, at - self.now)]
            self.group = [one]
            more, reason = self._more(one)
            cost.append((reason, more))
            self.now = at + 1 + more
            at += more
        self.closed = alone
        latency = self._latency(one)
        moved = one.early if one.writeback else frozenset()
        for register in one.writes:
            self.ready[register] = at + (0 if register in moved else latency)
        if one.branches and one.kind != "branch_if":
            self.closed = self.closed or len(self.group) >= rules["width"]
        return cost

    def branch(self, one: Instruction, target: Instruction) -> Cost:
        self.group = []
        cycles: float = (
            self.rules["branch_load"] if one.kind in ("table", "load") or one.kind in ("alu", "shift") else 0
        )
        cycles = cycles or (0 if one.is_load else self._refill(one, target)[0][1])
        self.now += cycles
        return [(BRANCHES, cycles)]

    def _ready(self, one: Instruction) -> float:
        """The cycle from which all operands are there."""
        rules = self.rules
        shifts = one.kind in ("alu", "shift", "compare") or (one.kind == "simd" and one.name in _SHIFTS_FIRST)
        early = one.reads - one.late if one.kind == "simd" and shifts else one.early
        sooner = rules["early_address"] if shifts or one.is_load or one.is_store else 0
        later = rules["late_float_addend"] if one.kind in ("fp_mac", "vstore") else 0
        if one.kind in ("mac", "mac_long"):
            later = rules["late_addend"]
        elif one.kind in ("store", "store_pair"):
            later = rules["late_store"]
        ready = self.ready
        times = [ready.get(r, 0) + sooner for r in early if r in ready]
        times += [ready[r] - later for r in one.late if r in ready]
        times += [ready[r] for r in one.reads - early - one.late if r in ready]
        return max(times, default=0)

    def _room(self, one: Instruction) -> bool:
        """Whether the open cycle has the units that it needs. SIMD is the first of a pair only."""
        if len(self.group) >= self.rules["width"] or one.kind == "simd":
            return False
        used = [unit for other in self.group for unit in self._units(other)]
        limit = {"load": self.rules["loads"], "alu": 2}
        return all(used.count(unit) < limit.get(unit, 1) for unit in self._units(one))

    @staticmethod
    def _units(one: Instruction) -> tuple[str, ...]:
        return ("shift", "alu") if one.kind in ("alu", "compare") and one.early else _UNITS.get(one.kind, ())

    def _more(self, one: Instruction) -> tuple[int, str]:
        """Cycles for which nothing else is issued, and what they are for."""
        if one.kind in ("load_many", "vload_many"):
            return (one.words + 1) // 2 - 1, LOADS
        if one.kind in ("store_many", "vstore_many"):
            return (one.words + 1) // 2 - 1, STORES
        if one.kind == "table":
            return 1, LOADS
        return (self.rules["divide"], ARITHMETIC) if one.kind == "divide" else (0, ARITHMETIC)

    def _latency(self, one: Instruction) -> int:
        """Cycles until what it writes can be read."""
        rules, kind = self.rules, one.kind
        if one.is_load:
            narrow = one.name in ("ldrb", "ldrh", "ldrsb", "ldrsh")
            return rules["narrow_use" if narrow else "load_use"] + (kind == "vload" and one.words == 2)
        if kind == "simd":
            return rules["saturate_use"] if one.name in _SATURATES else 1
        rule = {
            "multiply": "multiply_use",
            "multiply_long": "multiply_use",
            "mac": "multiply_use",
            "mac_long": "multiply_use",
            "fp": "float_add_use",
            "fp_mac": "float_mac_use",
            "fp_divide": "float_divide"
        }.get(kind)  # fmt: skip
        return rules[rule] if rule else 1
