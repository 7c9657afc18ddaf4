"""Room for kernels that are faster with more scratch memory: how much each may take, from a plan without.

A program is lowered and planned with the kernels that need least. Those that would take more have wished
so; each is given what its step leaves of the limit, and the program is lowered and planned again. Where
that is too much after all (the result cannot lie as far over the input, blocks do not fit beside each
other), the call with the most live bytes gets less, until the plan is within the limit. Where no such plan is
found, everything stays where it is in the plan without, and each call gets the largest gap that its step
leaves there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from aot_model.errors import CompileError
from aot_model.ir.graph import Graph, Node
from aot_model.ir.program import Access, Buffer, Call, Program, Role
from aot_model.kernels.target import Target
from aot_model.lowering.lower import lower
from aot_model.lowering.memory_plan import Addresses, live_bytes, step_numbers

ATTEMPTS = 12
SPEED = 1.45
"""`optimize=speed` takes up to so many times the memory of the smallest program, within the budget ..."""
MORE = 5 * 1024
"""... or up to so many bytes more, where that is more: the weights of a layer of 64 channels by 64."""

Place = tuple[str, int]


class Planner(Protocol):
    """Plans a program; buffers that are `kept` stay at their addresses where they may."""

    def __call__(self, program: Program, /, kept: Mapping[Buffer, Place] | None = None) -> Addresses: ...


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
    most = max(int(SPEED * size), size + MORE) if target.wish == "speed" else size
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
        calls = {node: wish.call for node, wish in program.wishes.items() if node in rooms}
        try:
            found = Lowered(program, plan(program))
        except CompileError:  # pools of fixed sizes are full: the largest wish is not met
            del rooms[max(rooms, key=lambda node: (_scratch(calls[node]) if node in calls else 0, node.name))]
            continue
        if found.size <= most:
            return found
        if rooms.keys() > calls.keys():  # what one of them takes is not known: without its wish, then
            rooms = {node: rooms[node] for node in calls}
            continue
        _take(rooms, calls, found, most)
    return _in_gaps(graph, target, least, plan, most)


def _in_gaps(graph: Graph, target: Target, least: Lowered, plan: Planner, most: int) -> Lowered:
    """The program with the wishes that gaps of the plan meet as it is."""
    if len(least.addresses.plan.pools) > 1:
        return least
    wishes = least.program.wishes
    steps = step_numbers(least.program)
    # what the call has anyway may find another place, or be part of the same piece
    choices = {
        node: [gap, gap + _scratch(wish.call)]
        for node, wish in wishes.items()
        for gap in [_gap(least, wish.call, steps[wish.call], most)]
    }
    for _ in range(ATTEMPTS):
        rooms = {
            node: several[-1]
            for node, several in choices.items()
            if several and several[-1] >= wishes[node].least
        }
        if not rooms:
            break
        program = lower(graph, target, rooms)
        kept = _kept(least, program)
        try:
            found = Lowered(program, plan(program, kept))
        except CompileError:  # what is kept does not fit as the steps are now
            break
        if found.size <= most:
            return found
        for node in rooms:
            wish = program.wishes.get(node)
            if wish is None or any(_moved(found, kept, buffer, most) for buffer in wish.call.arguments):
                choices[node].pop()
    return least


def _gap(lowered: Lowered, call: Call, step: int, most: int) -> int:
    """The largest piece of the memory below `most` that nothing but the call's own scratch memory takes."""
    of, live = lowered.addresses.of, lowered.addresses.live
    own = set(call.buffers(Access.SCRATCH))
    taken = sorted(
        (of[b][1], b.nbytes) for b, (first, last) in live.items() if first <= step <= last and b not in own
    )
    largest = end = 0
    for offset, nbytes in taken:
        largest = max(largest, offset - end)
        end = max(end, offset + nbytes)
    return max(largest, most - end)


def _kept(least: Lowered, program: Program) -> dict[Buffer, Place]:
    """Addresses that the buffers of a program have in the plan of the one without wishes: inputs, outputs
    and what its calls read and write; and the scratch memory of those that are the same.
    """
    pairs = [
        *zip(least.program.inputs, program.inputs, strict=True),
        *zip(least.program.outputs, program.outputs, strict=True),
    ]
    for before, now in zip(step_numbers(least.program), step_numbers(program), strict=False):
        pairs += zip(_lasting(before), _lasting(now), strict=False)
        if _scratch(before) == _scratch(now):
            pairs += zip(before.buffers(Access.SCRATCH), now.buffers(Access.SCRATCH), strict=False)
    of = least.addresses.of
    return {now: of[before] for before, now in pairs if before in of and before.nbytes == now.nbytes}


def _lasting(call: Call) -> list[Buffer]:
    """What a call reads and writes that is neither a constant nor its own."""
    return [b for b in call.buffers(Access.READ, Access.WRITE) if b.root()[0].role is not Role.CONSTANT]


def _moved(found: Lowered, kept: Mapping[Buffer, Place], buffer: Buffer, most: int) -> bool:
    """Whether a buffer is not where it was, or lies beyond the limit."""
    place = found.addresses.of.get(buffer)
    return place is not None and (place[1] + buffer.nbytes > most or kept.get(buffer, place) != place)


def _live(lowered: Lowered) -> Mapping[Call, int]:
    """Bytes that hold data while each call runs."""
    by_step = dict(live_bytes(lowered.program, lowered.addresses))
    return {call: by_step[step] for call, step in step_numbers(lowered.program).items()}


def _scratch(call: Call) -> int:
    return sum(b.nbytes for b in call.buffers(Access.SCRATCH))


def _take(rooms: dict[Node, int], calls: Mapping[Node, Call], found: Lowered, most: int) -> None:
    """Take from the call with the most live bytes what the plan has too much."""
    live = _live(found)
    worst = max(rooms, key=lambda node: (live[calls[node]], _scratch(calls[node]), node.name))
    over = max(live[calls[worst]] - most, 0) or found.size - most
    rooms[worst] = _scratch(calls[worst]) - max(over, 1)
