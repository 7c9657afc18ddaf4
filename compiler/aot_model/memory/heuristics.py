"""Fast placement: bodies in some order, each into a gap; then the order is improved.

Orders and gap choice follow the literature on dynamic storage allocation; "breadth" is greedy by breadth of
Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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
    """best_fit, then bodies that reach above the bound are moved forward in the order while that does not harm."""
    layout = best_fit(problem)
    best = layout.cost()
    ideal = layout.ideal()
    if best <= ideal:
        return layout
    limit = layout.work + min(_IMPROVEMENT, _IMPROVEMENT_PER_BODY * len(problem.bodies))
    random = _Random()
    placed = layout.pool[:], layout.offset[:]
    # Placing first fit by rising offset gives the same layout again, or a lower one.
    best_order = order = sorted(range(len(problem.bodies)), key=lambda index: (layout.offset[index], index))
    current, idle = None, 0
    while best > ideal and layout.work < limit:
        if current is None:
            layout.place_all(order, lowest)
            current = layout.cost()
        else:
            moved, rank = _advance(layout, order, random)
            before = layout.pool[:], layout.offset[:]
            layout.place_all(moved, lowest, rank)
            cost = layout.cost()
            if cost <= current:
                idle = idle + 1 if cost == current else 0
                order, current = moved, cost
            else:
                idle += 1
                _restored(layout, before)
        if current < best:
            best, best_order, placed = current, order, (layout.pool[:], layout.offset[:])
        if idle > _PATIENCE:
            order, current, idle = best_order, None, 0
            for _ in range(_SHAKES):
                order = _swapped(order, random)
    return _restored(layout, placed)


class _Random:
    """Park and Miller's minimal standard generator: the same sequence everywhere, on every run."""

    def __init__(self) -> None:
        self.state = 1

    def below(self, limit: int) -> int:
        self.state = self.state * 48271 % 2147483647
        return self.state % limit


def _advance(layout: Layout, order: Sequence[int], random: _Random) -> tuple[list[int], int]:
    """Moves a body that is unplaced, spilled or reaches above the bound to an earlier rank.

    Returns the new order and the first rank that changed.
    """
    bodies = layout.problem.bodies
    sizes = layout.pool_sizes()
    culprits = [
        rank
        for rank, index in enumerate(order)
        if layout.pool[index] < 0
        or layout.pool[index] != bodies[index].pools[0]
        or (
            sizes[layout.pool[index]] > layout.bounds[layout.pool[index]]
            and layout.offset[index] + bodies[index].size == sizes[layout.pool[index]]
        )
    ]
    high = [
        rank
        for rank, index in enumerate(order)
        if layout.offset[index] + bodies[index].size > layout.bounds[layout.pool[index]]
    ]
    # Mostly those at the very top; sometimes any above the bound, or any at all.
    dice = random.below(8)
    pick = culprits if dice < 5 else high if dice < 7 else list(range(len(order)))
    rank = pick[random.below(len(pick))] if pick else random.below(len(order))
    # Half of the time before one that conflicts with it: only such a move changes where it lies.
    target = random.below(rank + 1)
    if random.below(2):
        near = set(layout.problem.forbidden[order[rank]].other.tolist())
        before = [number for number in range(rank) if order[number] in near]
        if before:
            target = before[random.below(len(before))]
    moved = list(order)
    moved.insert(target, moved.pop(rank))
    return moved, target


def _swapped(order: Sequence[int], random: _Random) -> list[int]:
    result = list(order)
    a, b = random.below(len(result)), random.below(len(result))
    result[a], result[b] = result[b], result[a]
    return result


def _restored(layout: Layout, placed: tuple[list[int], list[int]] | None) -> Layout:
    if placed is not None:
        for index, (pool, offset) in enumerate(zip(*placed, strict=True)):
            layout.put(index, pool, offset)
    return layout


def _ranked(keys: Sequence[tuple[int, ...]]) -> list[int]:
    # Bodies are numbered by name, so the number breaks ties by name.
    return sorted(range(len(keys)), key=lambda index: (keys[index], index))


def _orders(problem: Problem) -> list[list[int]]:
    """Every order as it is, and where overlaps need a distance also with each late block moved before its early one."""
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
        (-max(load[position[body.first] : position[body.last] + 1]), -body.size, body.first) for body in problem.bodies
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
