"""Cortex-M33 and M55: one instruction in a cycle or a pair of short ones, in order; vectors of the M55 on
pipes of their own.
"""

from __future__ import annotations

from aot_model.cycles.instruction import LR, Instruction
from aot_model.cycles.pipeline import ARITHMETIC, BRANCHES, ISSUE, LOADS, STORES, WAITS, Cost, Pipeline

_NOT_FIRST = ("load_many", "store_many", "branch", "branch_if", "jump", "call", "system", "it")
_OF_VECTORS = (
    "vector",
    "vector_load",
    "vector_store",
    "fp",
    "fp_mac",
    "fp_compare",
    "fp_divide",
    "vload",
    "vstore",
)


class InOrder(Pipeline):
    """State: the cycle, from when each register can be read, until when each pipe is held, and the open
    cycle's instructions.
    """

    history = 2

    def __init__(self, core: str, **rules: int) -> None:
        self.vectors = core == "m55"
        super().__init__(core, **rules)

    def reset(self) -> None:
        self.now = 0.0
        self.ready: dict[int, float] = {}
        self.unforwarded: set[int] = set()
        """Results that a store cannot take from the pipe: of narrowing shifts and moves."""
        self.held: dict[str, float] = {}
        self.group: list[Instruction] = []

    def issue(self, one: Instruction) -> Cost:
        rules = self.rules
        if one.kind == "loop_end":
            self.group = []
            return [(ISSUE, 0)]
        if one.kind == "loop":
            self.group = []
            self.now += 1 + rules["loop_start"]
            self.ready[LR] = self.now
            return [(ISSUE, 1), (BRANCHES, rules["loop_start"])]
        if self.vectors and one.kind in _OF_VECTORS:
            return self._vector(one)
        ready = self._ready(one)
        if len(self.group) == 1 and ready <= self.now - 1 and self._pairs(one):
            self.group.append(one)
            self._write(one, self.now - 1)
            return [(ISSUE, 0)]
        at = max(ready, self.now)
        more, reason = self._more(one)
        cost: Cost = [(ISSUE, 1), (WAITS, at - self.now), (reason, more)]
        self.group = [] if more else [one]
        self.now = at + 1 + more
        self._write(one, at + more)
        return cost

    def branch(self, one: Instruction, target: Instruction) -> Cost:
        self.group = []
        if one.kind == "loop_end":
            return []
        cost = self._refill(one, target)
        self.now += cost[0][1]
        return cost

    def earliest(self, one: Instruction) -> float:
        """The cycle in which an instruction would begin if it were the next one."""
        vectors = self.vectors and one.kind in _OF_VECTORS
        return max(self._ready(one), self.held.get(_pipe(one), 0) if vectors else 0, self.now)

    def _ready(self, one: Instruction) -> float:
        later = self.rules["late_store"] if one.is_store else 0
        times = [self.ready[r] for r in one.reads - one.late if r in self.ready]
        times += [
            self.ready[r] - (0 if r in self.unforwarded else later) for r in one.late if r in self.ready
        ]
        return max(times, default=0)

    def _write(self, one: Instruction, at: float) -> None:
        """What an instruction that was issued at `at` writes is there after its latency; a base at once."""
        moved, latency = one.early if one.writeback else frozenset(), self._latency(one)
        for register in one.writes:
            self.ready[register] = at + (1 if register in moved else latency)
            self.unforwarded.discard(register)
        if one.kind == "vector" and one.latency == 3:
            self.unforwarded |= one.writes

    def _vector(self, one: Instruction) -> Cost:
        """An instruction of the vector unit or the FPU: it waits for its pipe too."""
        rules = self.rules
        pipe, at = _pipe(one), self.earliest(one)
        wide = one.kind.startswith("vector") and pipe != "control"
        self.held[pipe] = at + (max(rules["beats"], one.elements * rules["gather"]) if wide else 1)
        cost: Cost = [
            (ISSUE, 1),
            (LOADS if pipe == "load" and self._ready(one) < at else WAITS, at - self.now),
        ]
        self.now = at + 1
        self.group = []
        self._write(one, at)
        return cost

    def _pairs(self, one: Instruction) -> bool:
        """Whether a short instruction goes with the one before it."""
        first = self.group[0]
        short = one.size == 2 and first.size == 2 and first.kind not in _NOT_FIRST
        return bool(self.rules["pairs"]) and short and (_simple(one) or _simple(first))

    def _more(self, one: Instruction) -> tuple[float, str]:
        rules, words = self.rules, one.words
        if one.kind == "divide":
            return rules["divide"], ARITHMETIC
        if one.kind == "table":
            return 1, LOADS
        if words > 1 and (one.is_load or one.is_store):
            return -(-words // rules["port"]) - 1, LOADS if one.is_load else STORES
        return 0, ARITHMETIC

    def _latency(self, one: Instruction) -> int:
        rules, kind = self.rules, one.kind
        if kind == "vector":
            return one.latency
        if kind in ("vector_load", "vector_store"):
            return max(1, one.elements * rules["gather"], rules["beats"] if one.elements else 0)
        if one.is_load:
            return rules["load_use"]
        if self.vectors and kind == "fp_mac" and one.name.startswith("vf"):
            return rules["vector_float_use"]
        if self.vectors and (kind == "simd" or (kind == "shift" and one.size == 4)):
            return 1 if _simple(one) else rules["saturate_use"]
        rule = {
            "multiply": "multiply_use",
            "multiply_long": "multiply_use",
            "mac": "multiply_use",
            "mac_long": "multiply_use",
            "fp": "float_add_use",
            "fp_compare": "float_add_use",
            "fp_mac": "float_mac_use",
            "fp_divide": "float_divide"
        }.get(kind)  # fmt: skip
        return rules[rule] if rule else rules["shift_use"] if kind in ("alu", "compare") and one.early else 1


def _pipe(one: Instruction) -> str:
    """The pipe of an instruction of the vector unit or the FPU."""
    return one.pipe or ("load" if one.kind in ("vload", "vstore") else "float")


def _simple(one: Instruction) -> bool:
    """What goes beside any other short instruction."""
    if one.kind in ("branch", "branch_if", "it") or one.name in (
        "nop",
        "uxtb",
        "uxth",
        "sxtb",
        "sxth",
        "mov",
    ):
        return True
    return one.name in ("add", "sub") and one.immediate
