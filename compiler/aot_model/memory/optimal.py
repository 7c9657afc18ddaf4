"""Exact placement by branch and bound over the orders in which bodies are stacked.

The canonical solutions follow Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated
Machine Learning" (ASPLOS 2023); overlaps and rigid bodies are additions.

Take an optimal layout in which the sum of offsets is smallest, and sort it by offset: then every body lies as
low as those before it let it. So it is enough to try orders in which each next body goes to its lowest
offset, and that offset is not below the one before ("rising"). This needs that lowering a body never
bothers one above it, which holds unless some pair may be interlocked: an overlap with a positive slack, or
two concatenations with gaps. Then every offset at which a body touches another is tried, in any order.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

import numpy as np

from .bodies import Ints, Problem
from .bound import lower_bound
from .heuristics import local_search
from .layout import Layout, lowest

# Work (Layout.work) that the search of one pool may take.
_SHORT = 120_000
_LONG = 4_000_000


def auto(problem: Problem) -> Layout:
    """local_search, then as much of the exact search as takes a fraction of a second."""
    return _exact(problem, _SHORT)


def optimal(problem: Problem) -> Layout:
    """The smallest layout, starting from that of local_search; `proved` where the search came to its end.

    The choice between pools stays with local_search: each pool is then made as small as its bodies allow.
    """
    return _exact(problem, _LONG)


def _exact(problem: Problem, work: int) -> Layout:
    layout = local_search(problem)
    if -1 in layout.pool:
        return _without_limits(problem, layout, work)
    if layout.cost() <= layout.ideal():
        return layout
    finished = [_shrink(layout, pool, work) for pool in range(len(problem.pools))]
    layout.proved = all(finished) and len(problem.pools) == 1
    return layout


def _without_limits(problem: Problem, failed: Layout, work: int) -> Layout:
    """Where no body has a choice of pools, the smallest layout decides whether there is room."""
    if any(len(body.pools) > 1 for body in problem.bodies):
        return failed
    pools = tuple(replace(pool, size=None) for pool in problem.pools)
    layout = _exact(replace(problem, pools=pools), work)
    fits = all(
        pool.size is None or size <= pool.size
        for pool, size in zip(problem.pools, layout.pool_sizes(), strict=True)
    )
    if not fits:
        return failed
    result = Layout(problem)
    for index, (pool, offset) in enumerate(zip(layout.pool, layout.offset, strict=True)):
        result.put(index, pool, offset)
    result.proved = layout.proved
    return result


def _shrink(layout: Layout, pool: int, work: int) -> bool:
    """Makes one pool as small as possible. Returns whether nothing smaller remains."""
    problem = layout.problem
    members = [
        index for index, where in enumerate(layout.pool) if where == pool and problem.bodies[index].size
    ]
    bound = layout.bounds[pool] if len(problem.pools) == 1 else lower_bound(problem, members).bytes
    size = layout.pool_sizes()[pool]
    if size <= bound:
        return True
    if sum(len(problem.forbidden[index].other) for index in members) > work:
        return False
    core, easy = _split(problem, members, bound)
    best = {index: layout.offset[index] for index in members}
    for index in members:
        layout.take(index)
    search = _Search(layout, pool, core)
    limit = layout.work + work
    while search.stack and size > bound and layout.work < limit:
        if search.advance(size) and len(search.placed) == len(core):
            for index in easy:
                layout.put(index, pool, lowest(layout.forbidden(index, pool), problem.bodies[index]))
            best = {index: layout.offset[index] for index in members}
            size = max(best[index] + problem.bodies[index].size for index in members)
            for index in easy:
                layout.take(index)
    for index, offset in best.items():
        layout.put(index, pool, offset)
    return size <= bound or (search.exact and not search.stack)


def _split(problem: Problem, members: list[int], size: int) -> tuple[list[int], list[int]]:
    """(core, easy): the easy ones have room in a pool of this size wherever the core ends up, placed in that
    order.

    k others leave k + 1 gaps; one of them is large enough if the gaps together are k + 1 times that large.
    """
    core = set(members)
    near = {index: core.intersection(problem.forbidden[index].other.tolist()) for index in members}
    easy: list[int] = []
    waiting = sorted(members, reverse=True)
    while waiting:
        index = waiting.pop()
        if index not in core:
            continue
        body = problem.bodies[index]
        around = near[index] & core
        taken = sum(problem.bodies[other].size for other in around)
        if size - taken >= (len(around) + 1) * (body.size + body.align - 1):
            core.remove(index)
            easy.append(index)
            waiting.extend(sorted(around, reverse=True))
    return sorted(core), easy[::-1]


@dataclass
class _Node:
    """A state of the search: the body whose placing led here, and what may come next."""

    placed: int
    top: int  # the end of the highest body
    choices: list[tuple[int, int]]  # (offset, body), the next to try at the end
    low: dict[int, int]  # by body not yet placed: its lowest offset
    skyline: Ints  # by step: up to where the steps' bytes are taken
    remaining: Ints  # by step: bytes live then that are not yet placed


class _Search:
    """Depth first over the placings of `members` in one pool; the caller says which size is to be beaten."""

    def __init__(self, layout: Layout, pool: int, members: list[int]) -> None:
        self.layout, self.pool, self.bodies = layout, pool, layout.problem.bodies
        self.rank = _ranks(layout.problem, members)
        self.placed: list[int] = []
        self.seen: set[tuple[tuple[int, int], ...]] = set()
        # Interlocked bodies may have to move down together, by a step that suits them all.
        self.exact = self.rank is not None or len({self.bodies[index].align for index in members}) <= 1
        steps = sorted(
            {
                step
                for index in members
                for piece in self.bodies[index].pieces
                for step in (piece.first, piece.last)
            }
        )
        self.spans = {index: self._span(index, steps) for index in members}
        remaining = np.zeros(len(steps), np.int64)
        for index, span in self.spans.items():
            remaining[span] += self.bodies[index].size
        for permit in layout.problem.permits:
            early, late = layout.problem.pieces[permit.early], layout.problem.pieces[permit.late]
            if early.body in self.spans and late.body in self.spans:
                remaining[bisect_left(steps, late.first)] -= min(early.size, late.size)
        low = {index: self.bodies[index].residue for index in members}
        self.stack = [_Node(-1, 0, [], low, np.zeros(len(steps), np.int64), remaining)]
        self.stack[0].choices = self._choices(self.stack[0], 0, -1)

    def _span(self, index: int, steps: list[int]) -> slice:
        """The steps at which the body's first byte to its last are live: those of its root."""
        for piece in self.bodies[index].pieces:
            if piece.owner == self.bodies[index].id:
                return slice(bisect_left(steps, piece.first), bisect_left(steps, piece.last) + 1)
        return slice(0, 0)

    def advance(self, size: int) -> bool:
        """Places one more body, or goes back one. Returns whether a body was placed so that `size` may be
        beaten.
        """
        node = self.stack[-1]
        if not node.choices or node.top >= size:
            self.stack.pop()
            if node.placed >= 0:
                self.layout.take(node.placed)
                self.placed.pop()
            return False
        offset, index = node.choices.pop()
        body, span = self.bodies[index], self.spans[index]
        top = max(node.top, offset + body.size)
        skyline, remaining = node.skyline.copy(), node.remaining.copy()
        skyline[span] = np.maximum(skyline[span], offset + body.size)
        remaining[span] -= body.size
        self.layout.work += 2 * len(node.low) + len(self.layout.problem.forbidden[index].other) + 32
        floor = offset if self.rank is not None else 0
        if top >= size or (
            self.rank is not None and bool((np.maximum(skyline, floor) + remaining >= size).any())
        ):
            return False
        self.layout.put(index, self.pool, offset)
        low = dict(node.low)
        del low[index]
        for other in set(self.layout.problem.forbidden[index].other.tolist()) & low.keys():
            low[other] = lowest(self.layout.forbidden(other, self.pool), self.bodies[other])
        child = _Node(index, top, [], low, skyline, remaining)
        if (
            any(max(at, floor) + self.bodies[other].size >= size for other, at in low.items())
            and self.rank is not None
        ):
            self.layout.take(index)
            return False
        child.choices = self._choices(child, floor, index)
        self.placed.append(index)
        self.stack.append(child)
        return True

    def _choices(self, node: _Node, floor: int, previous: int) -> list[tuple[int, int]]:
        """Where which body may go next; the lowest, then the longest lived, at the end."""
        if self.rank is None:
            found = self._touching(node)
        else:
            after = floor, self.rank[previous] if previous >= 0 else -1
            # A body that could lie wholly below the next one would have come before it.
            ceiling = min((at + self.bodies[other].size for other, at in node.low.items()), default=0)
            found = [
                (at, index)
                for index, at in node.low.items()
                if at < ceiling and (at, self.rank[index]) > after
            ]
        return sorted(found, key=self._preference, reverse=True)

    def _preference(self, choice: tuple[int, int]) -> tuple[int, int, int, int]:
        offset, index = choice
        body = self.bodies[index]
        return offset, body.first - body.last, -body.size, index

    def _touching(self, node: _Node) -> list[tuple[int, int]]:
        """Every offset at which a body lies on the ground or touches the upper end of a forbidden
        interval.
        """
        state = tuple(
            sorted((index, self.layout.offset[index]) for index in [*self.placed, node.placed] if index >= 0)
        )
        if state in self.seen:
            return []
        self.seen.add(state)
        found = []
        for index in node.low:
            body = self.bodies[index]
            intervals = self.layout.forbidden(index, self.pool)
            edges = {
                body.residue,
                *(high + (body.residue - high) % body.align for _, high in intervals if high > 0),
            }
            found += [
                (edge, index) for edge in edges if not any(low < edge < high for low, high in intervals)
            ]
        return found


def _ranks(problem: Problem, members: list[int]) -> dict[int, int] | None:
    """The order of bodies at equal offsets; None where bodies may be interlocked, so that order says too
    little.

    Every pair must be free to part: a single forbidden interval, around distance 0. Where the interval ends
    at 0, so that both may begin at one offset, the one that may go lower comes first.
    """
    inside = set(members)
    after: dict[int, set[int]] = {index: set() for index in members}
    for index in members:
        near = problem.forbidden[index]
        spans: dict[int, list[tuple[int, int]]] = {}
        for other, low, high in zip(near.other.tolist(), near.low.tolist(), near.high.tolist(), strict=True):
            if other in inside:
                spans.setdefault(other, []).append((low, high))
        for other, pairs in spans.items():
            if any(low > 0 or high < 0 or (len(pairs) > 1 and low * high == 0) for low, high in pairs):
                return None
            if pairs[0][0] == 0:
                after[other].add(index)
    try:
        graph = {index: sorted(first) for index, first in after.items()}
        return {index: rank for rank, index in enumerate(TopologicalSorter(graph).static_order())}
    except CycleError:
        return None
