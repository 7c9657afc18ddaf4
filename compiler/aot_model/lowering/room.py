"""Room for kernels that are faster with more scratch memory: how much each may take, from a plan without.

A program is lowered and planned with the kernels that need least. Those that would take more have wished
so; each is given what its step leaves of the limit, and the program is lowered and planned again. Where
that is too much after all (the result cannot lie as far over the input, blocks do not fit beside each
other), the call with the most live bytes gets less, until the plan is within the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aot_model.errors import CompileError
from aot_model.ir.graph import Graph, Node
from aot_model.ir.program import Access, Call, Program
from aot_model.kernels.target import Target
from aot_model.lowering.lower import lower
from aot_model.lowering.memory_plan import Addresses, live_bytes, step_numbers

ATTEMPTS = 12
SPEED = 1.45
"""`optimize=speed` takes up to so many times the memory of the smallest program, within the budget ..."""
MORE = 5 * 1024
"""... or up to so many bytes more, where that is more: the weights of a layer of 64 channels by 64."""

Planner = Callable[[Program], Addresses]


@dataclass(frozen=True)
class Lowered:
    """A program with its plan."""

    program: Program
    addresses: Addresses

    @property
    def size(self) -> int:
        """Bytes of all pools."""
        return sum(self.addresses.plan.pool_sizes.values())


def limit(target: Target, size: int, budget: int | None) -> int:
    """Bytes that a program that needs `size` without wishes may need: no more, unless speed is asked for."""
    speed = target.has_option("optimize") and target.option("optimize") == "speed"
    most = max(int(SPEED * size), size + MORE) if speed else size
    return most if budget is None else max(size, min(most, budget))


def with_room(graph: Graph, target: Target, least: Lowered, plan: Planner, most: int) -> Lowered:
    """The program with the wishes that can be met within `most` bytes."""
    wishes = least.program.wishes
    if not wishes:
        return least
    live = _live(least)
    rooms = {node: most - live[wish.call] + _scratch(wish.call) for node, wish in wishes.items()}
    for _ in range(ATTEMPTS):
        rooms = {node: room for node, room in rooms.items() if room >= wishes[node].least}
        if not rooms:
            break
        program = lower(graph, target, rooms)
        try:
            found = Lowered(program, plan(program))
        except CompileError:  # pools of fixed sizes are full: the largest wish is not met
            del rooms[max(rooms, key=lambda node: (_scratch(program.wishes[node].call), node.name))]
            continue
        if found.size <= most:
            return found
        _take(rooms, found, most)
    return least


def _live(lowered: Lowered) -> Mapping[Call, int]:
    """Bytes that hold data while each call runs."""
    by_step = dict(live_bytes(lowered.program, lowered.addresses))
    return {call: by_step[step] for call, step in step_numbers(lowered.program).items()}


def _scratch(call: Call) -> int:
    return sum(b.nbytes for b in call.buffers(Access.SCRATCH))


def _take(rooms: dict[Node, int], found: Lowered, most: int) -> None:
    """Take from the call with the most live bytes what the plan has too much."""
    live, calls = _live(found), {node: wish.call for node, wish in found.program.wishes.items()}
    worst = max(rooms, key=lambda node: (live[calls[node]], _scratch(calls[node]), node.name))
    over = max(live[calls[worst]] - most, 0) or found.size - most
    rooms[worst] = _scratch(calls[worst]) - max(over, 1)


