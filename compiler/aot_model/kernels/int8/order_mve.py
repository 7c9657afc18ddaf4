"""The order of straight lines of Helium: each next one is what a Cortex-M55 can begin first.

The core issues in order, on pipes of which each is held for two cycles, so neighbours ought to be a load, a
product, a sum. Registers are given; the order changes nothing of what the lines compute.
"""

from __future__ import annotations

from collections.abc import Sequence

from aot_model.cycles.decode import decode
from aot_model.cycles.in_order import InOrder
from aot_model.cycles.instruction import Instruction


def ordered(lines: Sequence[str]) -> list[str]:
    """The same lines, which have no branches, labels or predicated blocks among them. Memory that is stored
    to is not loaded from again, and stores keep their order.
    """
    code = [decode(0, 4, line) for line in lines]
    before = [_needed(code, k) for k in range(len(code))]
    rank = _ranks(code, before)
    core, left, done = InOrder("m55"), list(range(len(code))), []
    issued: set[int] = set()
    while left:
        free = [k for k in left if before[k] <= issued]
        best = min(free, key=lambda k: (core.earliest(code[k]), -rank[k], k))
        core.issue(code[best])
        issued.add(best)
        left.remove(best)
        done.append(lines[best])
    return done


def _needed(code: Sequence[Instruction], k: int) -> set[int]:
    """The instructions that must come before instruction k."""
    one, found = code[k], set()
    for i, other in enumerate(code[:k]):
        shared = other.writes & (one.reads | one.writes) or other.reads & one.writes
        if shared or (one.is_store and (other.is_load or other.is_store)):
            found.add(i)
    return found


def _ranks(code: Sequence[Instruction], before: Sequence[set[int]]) -> list[int]:
    """Cycles from the begin of each instruction to the end of all that wait for it."""
    ranks = [one.latency for one in code]
    for k in reversed(range(len(code))):
        for i in before[k]:
            ranks[i] = max(ranks[i], code[i].latency + ranks[k])
    return ranks
