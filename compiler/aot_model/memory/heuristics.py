"""Fast placement: bodies in some order, each into a gap; then the order is improved.

Orders and gap choice follow the literature on dynamic storage allocation; "breadth" is greedy by breadth of
Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from .bodies import Problem
from .layout import Fit, Layout, lowest, outermost, tightest

# Limits of the searches, in neighbours looked at (Layout.work).
_CONSTRUCTION = 1_000_000
_IMPROVEMENT = 400_000
_IMPROVEMENT_PER_BODY = 3_000
# After so many moves without gain the search goes back to the best order and shakes it.
_PATIENCE = 60
_SHAKES = 4

Order = Callable[[Problem], list[tuple[int, ...]]]


def greedy(problem: Problem) -> Layout:
    """The largest first, each as low as it goes."""
    layout = Layout(problem)
    layout.place_all(_ranked(ORDERS["size"](problem)), lowest)
    return layout


def best_fit(problem: Problem) -> Layout:
    """The best of every order of ORDERS with every way to choose a gap."""
    layout = Layout(problem)
    best, placed = None, None
    for order in _orders(problem):
        for fit in FITS:
            layout.place_all(order, fit)
            cost = layout.cost()
            if best is None or cost < best:
                best, placed = cost, (layout.pool[:], layout.offset[:])
            if best <= layout.ideal() or layout.work > _CONSTRUCTION:
                return _restored(layout, placed)
    return _restored(layout, placed)


def local_search(problem: Problem) -> Layout:
    """best_fit, then bodies that reach above the bound are moved forward in the order while that does not
    harm.
    """
    layout = best_fit(problem)
    best, ideal, placed = layout.cost(), layout.ideal(), (layout.pool[:], layout.offset[:])
    if best <= ideal:
        return layout
    # Placing first fit by rising offset gives the same layout again, or a lower one.
    best_order = sorted(range(len(problem.bodies)), key=lambda index: (layout.offset[index], index))
    order, current, idle = best_order[:], best, _PATIENCE + 1
    shakes = 0
    limit = layout.work + min(_IMPROVEMENT, _IMPROVEMENT_PER_BODY * len(problem.bodies))
    random = _Random()
    while best > ideal and layout.work < limit:
        if idle > _PATIENCE:
            order, idle = best_order[:], 0
            layout.place_all(order, lowest)
            layout.set_ranks(order, 0, len(order))
            for _ in range(shakes):
                source = random.below(len(order))
                _move(layout, order, source, random.below(source + 1))
            shakes = _SHAKES
            current = layout.cost()
        else:
            source, target = _choose(layout, order, random)
            before = _move(layout, order, source, target)
            cost = layout.cost()
            if cost > current:
                _undo(layout, order, source, target, before)
            idle = 0 if cost < current else idle + 1
            current = min(cost, current)
        if current < best:
            best, best_order, placed = current, order[:], (layout.pool[:], layout.offset[:])
    return _restored(layout, placed)


def _choose(layout: Layout, order: Sequence[int], random: _Random) -> tuple[int, int]:
    """A rank, of a body that makes the cost, and an earlier one to move it to."""
    worst, bad = layout.misplaced()
    # Mostly those at the very top; sometimes any above the bound, or any at all.
    dice = random.below(8)
    pick = worst if dice < 5 else bad if dice < 7 else order
    source = layout.rank[pick[random.below(len(pick))]] if pick else random.below(len(order))
    # Half of the time right before one that conflicts with it: only such a move changes where it lies.
    if random.below(2):
        near = layout.problem.forbidden[order[source]].other.tolist()
        before = sorted({layout.rank[other] for other in near if layout.rank[other] < source})
        if before:
            return source, before[random.below(len(before))]
    return source, random.below(source + 1)


def _move(layout: Layout, order: list[int], source: int, target: int) -> list[tuple[int, int, int]]:
    """Moves a body from rank `source` forward to rank `target` and places anew, first fit, all that this
    touches.

    Returns (body, pool, offset) as they were, of those that lie elsewhere now.
    """
    moved = order.pop(source)
    order.insert(target, moved)
    layout.set_ranks(order, target, source + 1)
    layout.work += (source - target) // 4 + len(order) // 8 + 32
    near = layout.problem.forbidden
    # The moved body is new to those that it overtook; then whatever changes its place concerns those after
    # it.
    waiting = [
        target,
        *{
            rank
            for rank in map(layout.rank.__getitem__, near[moved].other.tolist())
            if target < rank <= source
        },
    ]
    queued = set(waiting)
    heapify(waiting)
    before = []
    while waiting:
        rank = heappop(waiting)
        index = order[rank]
        old = layout.pool[index], layout.offset[index]
        layout.place(index, lowest, rank)
        if old == (layout.pool[index], layout.offset[index]):
            continue
        before.append((index, *old))
        for other in near[index].other.tolist():
            later = layout.rank[other]
            if later > rank and later not in queued:
                queued.add(later)
                heappush(waiting, later)
    return before


def _undo(
    layout: Layout, order: list[int], source: int, target: int, before: list[tuple[int, int, int]]
) -> None:
    order.insert(source, order.pop(target))
    layout.set_ranks(order, target, source + 1)
    for index, pool, offset in before:
        layout.put(index, pool, offset)


class _Random:
    """Park and Miller's minimal standard generator: the same sequence everywhere, on every run."""

    def __init__(self) -> None:
        self.state = 1

    def below(self, limit: int) -> int:
        self.state = self.state * 48271 % 2147483647
        return self.state % limit


def _restored(layout: Layout, placed: tuple[list[int], list[int]] | None) -> Layout:
    if placed is not None:
        for index, (pool, offset) in enumerate(zip(*placed, strict=True)):
            layout.put(index, pool, offset)
    return layout


def _ranked(keys: Sequence[tuple[int, ...]]) -> list[int]:
    # Bodies are numbered by name, so the number breaks ties by name.
    return sorted(range(len(keys)), key=lambda index: (keys[index], index))


def _orders(problem: Problem) -> list[list[int]]:
    """Every order as it is, and where overlaps need a distance also with each late block moved before its
    early one.
    """
    result: list[list[int]] = []
    for name in ORDERS:
        order = _ranked(ORDERS[name](problem))
        for variant in (order, _late_first(problem, order)):
            if variant not in result:
                result.append(variant)
    return result


def _late_first(problem: Problem, order: Sequence[int]) -> list[int]:
    """First fit leaves no room below; a late block that must begin below its early one has to go first."""
    follows: dict[int, list[int]] = {}
    for permit in problem.permits:
        if permit.slack < 0:
            follows.setdefault(problem.pieces[permit.early].body, []).append(problem.pieces[permit.late].body)
    result: list[int] = []
    done: set[int] = set()
    for start in order:
        stack = [start]
        while stack:
            index = stack[-1]
            waiting = [late for late in follows.get(index, ()) if late not in done and late not in stack]
            if waiting:
                stack.append(waiting[0])
                continue
            stack.pop()
            if index not in done:
                done.add(index)
                result.append(index)
    return result


def _by_size(problem: Problem) -> list[tuple[int, ...]]:
    return [(-body.size, body.first) for body in problem.bodies]


def _by_area(problem: Problem) -> list[tuple[int, ...]]:
    return [(-body.size * (body.last - body.first + 1), -body.size) for body in problem.bodies]


def _by_lifetime(problem: Problem) -> list[tuple[int, ...]]:
    return [(body.first - body.last, -body.size) for body in problem.bodies]


def _by_conflicts(problem: Problem) -> list[tuple[int, ...]]:
    """The sum of the sizes of those that a body conflicts with, the largest first."""
    sizes = [body.size for body in problem.bodies]
    return [
        (-sum(sizes[other] for other in set(near.other.tolist())), -size)
        for near, size in zip(problem.forbidden, sizes, strict=True)
    ]


def _by_birth(problem: Problem) -> list[tuple[int, ...]]:
    return [(body.first, -body.last, -body.size) for body in problem.bodies]


def _by_death(problem: Problem) -> list[tuple[int, ...]]:
    return [(-body.last, body.first, -body.size) for body in problem.bodies]


def _by_breadth(problem: Problem) -> list[tuple[int, ...]]:
    """The busiest step that a body lives through, the busiest first; within a step the largest first."""
    steps = sorted({step for body in problem.bodies for step in (body.first, body.last)})
    position = {step: number for number, step in enumerate(steps)}
    load = [0] * (len(steps) + 1)
    for body in problem.bodies:
        load[position[body.first]] += body.size
        load[position[body.last] + 1] -= body.size
    for number in range(1, len(load)):
        load[number] += load[number - 1]
    return [
        (-max(load[position[body.first] : position[body.last] + 1]), -body.size, body.first)
        for body in problem.bodies
    ]


ORDERS: Mapping[str, Order] = {
    "size": _by_size,
    "breadth": _by_breadth,
    "area": _by_area,
    "birth": _by_birth,
    "death": _by_death,
    "conflicts": _by_conflicts,
    "lifetime": _by_lifetime,
}
FITS: tuple[Fit, ...] = (lowest, tightest, outermost)
