"""An instruction of Thumb code as the rules of a core see it: its kind, and the registers that it reads
and writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PC, SP, LR = 15, 13, 14
FLAGS, VPR, FPSCR = 16, 64, 65
"""Beside r0-r15 (0-15) and s0-s31 (32-63), of which d and q registers are made."""

_NAMES = {
    **{f"r{k}": k for k in range(16)},
    **{"sb": 9, "sl": 10, "fp": 11, "ip": 12, "sp": SP, "lr": LR, "pc": PC},
}
_VECTOR = re.compile(r"([sdq])(\d+)(\[\d+\])?")

NONE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Instruction:
    """One instruction. `kind` is what the rules go by:

    alu shift simd compare | multiply multiply_long mac mac_long divide | load store and with _pair, _many |
    branch branch_if call jump table return | it loop loop_end system |
    fp fp_mac fp_divide fp_move fp_compare, vload vstore and with _many | vector vector_load vector_store |
    unknown
    """

    address: int
    size: int
    text: str
    name: str
    """The mnemonic without condition, width, type and `s`."""
    kind: str
    writes: frozenset[int] = NONE
    reads: frozenset[int] = NONE
    """All of them; `early` and `late` are parts of it."""
    early: frozenset[int] = NONE
    """Of the address; of an operand that is shifted first."""
    late: frozenset[int] = NONE
    """The addend of a multiply-accumulate; what a store writes."""
    words: int = 1
    """Of 32 bits, that are loaded, stored or moved."""
    register_offset: bool = False
    writeback: bool = False
    immediate: bool = False
    conditional: bool = False
    """A branch that may not be taken, or in an IT block."""
    pipe: str = ""
    """Of a vector instruction: load, integer, float, control."""
    latency: int = 1
    """Of a vector instruction: cycles until its result is there."""
    elements: int = 0
    """That a gather or scatter accesses one by one."""

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size

    @property
    def is_load(self) -> bool:
        """Whether it reads memory."""
        return self.kind in ("load", "load_pair", "load_many", "vload", "vload_many", "vector_load", "table")

    @property
    def is_store(self) -> bool:
        """Whether it writes memory."""
        return self.kind in ("store", "store_pair", "store_many", "vstore", "vstore_many", "vector_store")

    @property
    def branches(self) -> bool:
        """Whether it may go on elsewhere."""
        return self.kind in ("branch", "branch_if", "call", "jump", "table", "loop_end") or PC in self.writes


def registers(text: str) -> list[int]:
    """The registers of an operand, which may be a list in braces with ranges."""
    found: list[int] = []
    for part in text.strip(" {}!").split(","):
        first, _, final = (word.strip(" {}!") for word in part.partition("-"))
        a, b = _register(first), _register(final) if final else []
        found += range(a[0], b[-1] + 1) if a and b else a
    return found


def _register(name: str) -> list[int]:
    if name in _NAMES:
        return [_NAMES[name]]
    if match := _VECTOR.fullmatch(name):
        width = {"s": 1, "d": 2, "q": 4}[match[1]]
        first = 32 + width * int(match[2])
        return list(range(first, first + width))
    return [VPR] if name in ("vpr", "p0") else []


def operands(text: str) -> list[str]:
    """The operands of an instruction: brackets and braces keep together."""
    return [part.strip() for part in re.findall(r"(?:\[[^\]]*\]!?|\{[^}]*\}|[^,\[{])+", text) if part.strip()]


def among(texts: Iterable[str]) -> frozenset[int]:
    """All registers of some operands."""
    return frozenset(r for text in texts for r in registers(text))
