"""A layout under construction, the ways to choose a gap in it, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .blocks import Placement
from .bodies import Body, Ints, Problem
from .bound import lower_bound

# Beyond this many neighbours numpy gathers them faster than a loop does.
_MANY = 48

Interval = tuple[int, int]

# (forbidden intervals sorted by lower end, body, ceiling) -> offset; the ceiling is the size that the pool is
# to have
Fit = Callable[[list[Interval], Body, int], int]


def lowest(forbidden: list[Interval], body: Body, ceiling: int = 0) -> int:
    """First fit: the lowest offset that no interval forbids."""
    offset = body.residue
    for low, high in forbidden:
        if offset <= low:
            break
        if offset < high:
            offset = high + (body.residue - high) % body.align
    return offset


def tightest(forbidden: list[Interval], body: Body, ceiling: int = 0) -> int:
    """Best fit: the offset in the gap that it fills best; above everything where no gap is large enough."""
    offset, best, best_rest = body.residue, -1, -1
    for low, high in forbidden:
        if offset <= low and (best < 0 or low - offset < best_rest):
            best, best_rest = offset, low - offset
        if offset < high:
            offset = high + (body.residue - high) % body.align
    return offset if best < 0 else best


def outermost(forbidden: list[Interval], body: Body, ceiling: int = 0) -> int:
    """First fit from both ends: at offset 0, else right below the ceiling, else as low as it goes.

    What lives long at both ends leaves one gap in the middle: a chain of layers takes the two ends in turn.
    """
    bottom = lowest(forbidden, body)
    top = ceiling - body.size
    top -= (top - body.residue) % body.align
    if bottom == body.residue or top < bottom or any(low < top < high for low, high in forbidden):
        return bottom
    return top


@dataclass(frozen=True, order=True)
class Cost:
    """What a layout is judged by, the weightiest first; all in bytes.

    unplaced: blocks that fit nowhere; spilled: blocks outside their preferred pool, times how far down
    their list they went; size: the sum of the pools' sizes; excess: how much lies above the bound, and
    how far, which tells layouts of one size apart.
    """

    unplaced: int
    spilled: int
    size: int
    excess: int


class Layout:
    """Bodies at offsets in pools. `work` counts the neighbours looked at: the unit of all search limits.

    A limit in work, not in seconds, gives the same layout on every machine.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.work = 0
        self.proved = False  # by a search that left nothing out
        self.bounds = preferred_bounds(problem)
        count = len(problem.bodies)
        self.offset = [0] * count
        self.pool = [-1] * count
        self.rank = [0] * count  # only for place(before=...)
        self._offset = np.zeros(count, np.int64)
        self._pool = np.full(count, -1, np.int64)
        self._rank = np.zeros(count, np.int64)
        self._size = np.array([body.size for body in problem.bodies], np.int64)
        # By body and pool: how far down the body's list the pool is; the last column is for unplaced bodies.
        self._step_down = np.zeros((count, len(problem.pools) + 1), np.int64)
        for index, body in enumerate(problem.bodies):
            self._step_down[index, list(body.pools)] = range(len(body.pools))
        self._few = [
            list(zip(near.other.tolist(), near.low.tolist(), near.high.tolist(), strict=True))
            if len(near.other) <= _MANY
            else None
            for near in problem.forbidden
        ]

    def put(self, index: int, pool: int, offset: int) -> None:
        self.pool[index] = pool
        self.offset[index] = offset
        self._pool[index] = pool
        self._offset[index] = offset

    def take(self, index: int) -> None:
        self.pool[index] = -1
        self._pool[index] = -1

    def forbidden(self, index: int, pool: int, before: int | None = None) -> list[Interval]:
        """Open intervals in which the body's offset must not be, sorted by lower end, given what is placed.

        With `before`, given only what is placed and has a lower rank than that.
        """
        few = self._few[index]
        if few is not None:
            self.work += len(few) + 8
            pools, offsets, ranks = self.pool, self.offset, self.rank
            if before is None:
                return sorted(
                    [(offsets[n] + low, offsets[n] + high) for n, low, high in few if pools[n] == pool]
                )
            return sorted(
                [
                    (offsets[n] + low, offsets[n] + high)
                    for n, low, high in few
                    if pools[n] == pool and ranks[n] < before
                ]
            )
        near = self.problem.forbidden[index]
        self.work += len(near.other) // 8 + 64
        here = self._pool[near.other] == pool
        if before is not None:
            here &= self._rank[near.other] < before
        base = self._offset[near.other[here]]
        low, high = base + near.low[here], base + near.high[here]
        if not len(low):
            return []
        order = np.argsort(low, kind="stable")
        low, high = low[order], np.maximum.accumulate(high[order])
        # An interval that begins where all before it have ended opens a run; the others are part of theirs.
        opens = np.flatnonzero(low[1:] >= high[:-1]) + 1
        lows = [int(low[0]), *low[opens].tolist()]
        return list(zip(lows, [*high[opens - 1].tolist(), int(high[-1])], strict=True))

    def place(self, index: int, fit: Fit, before: int | None = None) -> None:
        """Puts the body into the first of its pools that has room, or leaves it unplaced."""
        body = self.problem.bodies[index]
        for pool in body.pools:
            intervals = self.forbidden(index, pool, before)
            limit = self.problem.pools[pool].size
            offset = fit(intervals, body, self.bounds[pool])
            if limit is not None and offset + body.size > limit:
                offset = lowest(intervals, body)  # the best gap may be the one above the limit
            if limit is None or offset + body.size <= limit:
                self.put(index, pool, offset)
                return
        self.take(index)

    def keep(self, index: int, place: Placement) -> bool:
        """Puts the body at a place, where what is placed lets it; whether it did."""
        body = self.problem.bodies[index]
        pool = next((number for number in body.pools if self.problem.pools[number].name == place.pool), None)
        if pool is None or (place.offset - body.residue) % body.align or place.offset < 0:
            return False
        limit = self.problem.pools[pool].size
        beyond = limit is not None and place.offset + body.size > limit
        if beyond or any(low < place.offset < high for low, high in self.forbidden(index, pool)):
            return False
        self.put(index, pool, place.offset)
        return True

    def place_all(self, order: Sequence[int], fit: Fit) -> None:
        """Places all bodies anew, one by one."""
        for index in order:
            self.take(index)
        for index in order:
            self.place(index, fit)

    def set_ranks(self, order: Sequence[int], start: int, stop: int) -> None:
        """Makes `rank` agree with the part [start, stop) of the order."""
        for rank in range(start, stop):
            self.rank[order[rank]] = rank
        self._rank[order[start:stop]] = range(start, stop)

    def pool_sizes(self) -> list[int]:
        end = np.where(self._size > 0, self._offset + self._size, 0)
        return [int(end[self._pool == pool].max(initial=0)) for pool in range(len(self.problem.pools))]

    def cost(self) -> Cost:
        excess = self._excess()
        down = self._step_down[np.arange(len(self._pool)), self._pool]
        return Cost(
            int(self._size[self._pool < 0].sum()),
            int((self._size * down).sum()),
            sum(self.pool_sizes()),
            int(excess.sum()),
        )

    def _excess(self) -> Ints:
        """By body: how far its end is above the bound of its pool; 0 where it is not placed."""
        bounds = np.array([*self.bounds, 0], np.int64)[self._pool]
        return np.where(self._pool >= 0, np.maximum(self._offset + self._size - bounds, 0), 0)

    def misplaced(self) -> tuple[list[int], list[int]]:
        """(worst, all) bodies that make the cost: unplaced, spilled, or above the bound; the worst reach the
        top.
        """
        excess = self._excess()
        elsewhere = (self._pool < 0) | (self._step_down[np.arange(len(self._pool)), self._pool] > 0)
        tops = np.array([*self.pool_sizes(), 0], np.int64)[self._pool]
        worst = elsewhere | ((excess > 0) & (self._offset + self._size == tops))
        return np.flatnonzero(worst).tolist(), np.flatnonzero(elsewhere | (excess > 0)).tolist()

    def ideal(self) -> Cost:
        """The cost that no layout beats: everything in its preferred pool, every pool at its bound."""
        return Cost(0, 0, sum(self.bounds), 0)

    def free(self, index: int, pool: int) -> int:
        """The largest gap in the pool over the body's whole life, in bytes; without a size limit, the body's
        size.
        """
        limit = self.problem.pools[pool].size
        body = self.problem.bodies[index]
        if limit is None:
            return body.size
        # An offset x is forbidden by a neighbour above as soon as x + size reaches into it.
        largest, offset = 0, 0
        for low, high in [*self.forbidden(index, pool), (limit - body.size, limit)]:
            largest = max(largest, low + body.size - offset)
            offset = max(offset, high)
        return min(largest, limit)


def preferred_bounds(problem: Problem) -> list[int]:
    """By pool: the lower bound of the bodies that prefer it."""
    return [
        lower_bound(
            problem, [number for number, body in enumerate(problem.bodies) if body.pools[0] == pool]
        ).bytes
        for pool in range(len(problem.pools))
    ]
