"""What the planner is compared with: a byte-by-byte simulation, an exhaustive search, and random
instances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from aot_model.memory import Block, Overlap, Placement, Pool, View
from aot_model.memory.bodies import Problem

IN_PLACE = 1 << 20
"""A step of an overlap that no other distance than 0 is a multiple of."""


@dataclass(frozen=True)
class Instance:
    blocks: tuple[Block, ...]
    overlaps: tuple[Overlap, ...] = ()
    views: tuple[View, ...] = ()
    pools: tuple[Pool, ...] = (Pool("workspace"),)


def faults(instance: Instance, placements: Mapping[str, Placement]) -> list[str]:
    """Runs the program on a memory of bytes: every byte of a block must survive from its birth to its death.

    Two bytes may share an address at one step only if the one dies there, the other is born there, and an
    overlap says that the kernel has read the one before it writes the other.
    """
    table = {block.id: block for block in instance.blocks}
    parent = {view.child: view for view in instance.views}

    def root(name: str) -> tuple[str, int]:
        start = 0
        while name in parent:
            start += parent[name].offset
            name = parent[name].parent
        return name, start

    def span(name: str) -> tuple[int, int]:
        first, last = table[name].first, table[name].last
        while name in parent:
            name = parent[name].parent
            first, last = min(first, table[name].first), max(last, table[name].last)
        return first, last

    covering: dict[tuple[str, int], list[str]] = {}
    for block in instance.blocks:
        family, start = root(block.id)
        for byte in range(start, start + block.size):
            covering.setdefault((family, byte), []).append(block.id)

    def held(byte: tuple[str, int], step: int) -> bool:
        return any(span(name)[0] <= step <= span(name)[1] for name in covering[byte])

    found = []
    for step in sorted({step for block in instance.blocks for step in span(block.id)}):
        at: dict[tuple[str, int], list[tuple[str, int]]] = {}
        for byte in covering:
            if held(byte, step):
                place = placements[byte[0]]
                at.setdefault((place.pool, place.offset + byte[1]), []).append(byte)
        for address, bytes_here in at.items():
            for one in bytes_here:
                for two in bytes_here:
                    if one < two and not any(
                        not held(early, step + 1)
                        and not held(late, step - 1)
                        and overlap.early in covering[early]
                        and overlap.late in covering[late]
                        and span(overlap.early)[1] == step == span(overlap.late)[0]
                        and placements[overlap.late].offset - placements[overlap.early].offset
                        <= overlap.slack
                        for early, late in ((one, two), (two, one))
                        for overlap in instance.overlaps
                    ):
                        found.append(f"step {step}: {one} and {two} at {address}")
    return found


def smallest(problem: Problem) -> int:
    """The least size of a single pool, by trying every offset."""
    bodies = [index for index, body in enumerate(problem.bodies) if body.size]
    rules = {
        (index, other): [
            (int(low), int(high))
            for number, low, high in zip(
                problem.forbidden[index].other,
                problem.forbidden[index].low,
                problem.forbidden[index].high,
                strict=True,
            )
            if number == other
        ]
        for index in bodies
        for other in bodies
    }

    def fits(size: int, offsets: dict[int, int]) -> bool:
        if len(offsets) == len(bodies):
            return True
        index = bodies[len(offsets)]
        body = problem.bodies[index]
        for offset in range(body.residue, size - body.size + 1, body.align):
            if any(
                low < offset - offsets[other] < high for other in offsets for low, high in rules[index, other]
            ):
                continue
            if fits(size, {**offsets, index: offset}):
                return True
        return False

    size = max((problem.bodies[index].size for index in bodies), default=0)
    while not fits(size, {}):
        size += 1
    return size


def blocks_strategy(
    most: int, largest: int, steps: int, aligns: Sequence[int]
) -> st.SearchStrategy[tuple[Block, ...]]:
    def build(rows: list[tuple[int, int, int, int]]) -> tuple[Block, ...]:
        return tuple(
            Block(f"b{number}", size, align, min(one, two), max(one, two))
            for number, (size, align, one, two) in enumerate(rows)
        )

    step = st.integers(0, steps)
    row = st.tuples(st.integers(0, largest), st.sampled_from(list(aligns)), step, step)
    return st.lists(row, min_size=1, max_size=most).map(build)


@st.composite
def instances(
    draw: st.DrawFn,
    most: int = 12,
    largest: int = 24,
    steps: int = 8,
    aligns: Sequence[int] = (1, 2, 4, 8),
    slack: int = 12,
    with_views: bool = True,
) -> Instance:
    """Random blocks; overlaps with slack of both signs where one ends as another begins; nested views."""
    blocks = draw(blocks_strategy(most, largest, steps, aligns))
    views: list[View] = []
    if with_views:
        for number in range(1, len(blocks)):
            if draw(st.integers(0, 2)) == 0:
                parent = blocks[draw(st.integers(0, number - 1))]
                child = blocks[number]
                room = parent.size - child.size
                if room >= 0:
                    views.append(View(child.id, parent.id, draw(st.integers(0, room))))
        # Views at any byte: one block of a family keeps its alignment.
        family = {b.id: b.id for b in blocks}
        for view in views:
            family[view.child] = family[view.parent]
        members: dict[str, list[str]] = {}
        for name, root in family.items():
            members.setdefault(root, []).append(name)
        aligned = {draw(st.sampled_from(names)) for names in members.values()}
        blocks = tuple(b if b.id in aligned else Block(b.id, b.size, 1, b.first, b.last) for b in blocks)
    overlaps = tuple(
        Overlap(early.id, late.id, draw(st.integers(-slack, slack)))
        for early in blocks
        for late in blocks
        if early is not late and draw(st.booleans())
    )
    return Instance(blocks, overlaps, tuple(views))
