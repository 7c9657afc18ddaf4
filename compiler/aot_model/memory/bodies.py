"""Blocks, views and overlaps brought to one form: rigid bodies and the distances that they must not have.

A block with all its views moves as one *body*. A body consists of *pieces*: byte ranges, each with the steps
during which it is live. For two bodies a and b every constraint (disjoint while both live, or lying over each
other with some slack) says the same kind of thing: offset(b) - offset(a) must not be inside an open interval
(low, high). Algorithms see nothing but bodies, pools and these intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .blocks import Block, Overlap, Pool, View

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Piece:
    """Bytes [start, start + size) of a body, live over steps [first, last] on account of block `owner`."""

    owner: str
    body: int
    start: int
    size: int
    first: int
    last: int

    @property
    def end(self) -> int:
        return self.start + self.size


@dataclass(frozen=True)
class Body:
    """A block with its views. Its offset must be `residue` modulo `align`; `pools` index Problem.pools.

    `members` are (block id, offset within the body).
    """

    id: str
    size: int
    align: int
    residue: int
    pools: tuple[int, ...]
    pieces: tuple[Piece, ...]
    members: tuple[tuple[str, int], ...]

    @property
    def first(self) -> int:
        return min((piece.first for piece in self.pieces), default=0)

    @property
    def last(self) -> int:
        return max((piece.last for piece in self.pieces), default=0)


@dataclass(frozen=True)
class Forbidden:
    """For one body b: offset(b) - offset(other[i]) must not lie strictly between low[i] and high[i]."""

    other: Ints
    low: Ints
    high: Ints


@dataclass(frozen=True)
class Permit:
    """An overlap that holds: piece `early` dies where piece `late` (indices of Problem.pieces) is born."""

    early: int
    late: int
    slack: int


@dataclass(frozen=True)
class Problem:
    """What a planning algorithm is given. `forbidden[b]` belongs to `bodies[b]`."""

    pools: tuple[Pool, ...]
    bodies: tuple[Body, ...]
    pieces: tuple[Piece, ...]
    permits: tuple[Permit, ...]
    forbidden: tuple[Forbidden, ...]


@dataclass(frozen=True)
class _Place:
    """Where a block is within its family of views, and over which steps its bytes hold data."""

    root: str
    start: int
    first: int
    last: int


def problem(
    blocks: Iterable[Block], overlaps: Iterable[Overlap], views: Iterable[View], pools: Sequence[Pool]
) -> Problem:
    """Checks the input and normalises it. The result does not depend on the order of blocks, overlaps or
    views.

    Raises ValueError for a duplicate or unknown name, an empty range, a view that leaves its parent, has two
    parents or is its own ancestor, and for alignments or pools that cannot hold within one family of views.
    """
    table = _by_id(blocks)
    pool_index = {pool.name: number for number, pool in enumerate(pools)}
    if len(pool_index) != len(pools) or not pools:
        raise ValueError("pools must be given, each with a name of its own")
    for pool in pools:
        if pool.align <= 0 or pool.align & (pool.align - 1):
            raise ValueError(f"pool '{pool.name}': alignment {pool.align} is not a power of two")
    parent = _parents(table, views)
    places = _places(table, parent)
    families: dict[str, list[str]] = {}
    for name in sorted(table):
        families.setdefault(places[name].root, []).append(name)
    bodies: list[Body] = []
    pieces: list[Piece] = []
    for root, family in families.items():
        own = [piece for name in family for piece in _pieces(table[name], len(bodies), places, parent)]
        align, residue = _alignment([(table[name], places[name].start) for name in family])
        candidates = _candidates([table[root], *(table[name] for name in family if name != root)], pool_index)
        members = tuple((name, places[name].start) for name in family)
        bodies.append(Body(root, table[root].size, align, residue, candidates, tuple(own), members))
        pieces.extend(own)
    permits = _permits(table, overlaps, pieces, bodies, places)
    return Problem(tuple(pools), tuple(bodies), tuple(pieces), permits, _forbidden(bodies, pieces, permits))


def _by_id(blocks: Iterable[Block]) -> dict[str, Block]:
    table: dict[str, Block] = {}
    for block in blocks:
        if block.id in table:
            raise ValueError(f"block '{block.id}' is given twice")
        if block.size < 0 or block.first > block.last:
            raise ValueError(f"block '{block.id}': size {block.size}, steps {block.first}..{block.last}")
        if block.align <= 0 or block.align & (block.align - 1):
            raise ValueError(f"block '{block.id}': alignment {block.align} is not a power of two")
        table[block.id] = block
    return table


def _parents(table: Mapping[str, Block], views: Iterable[View]) -> dict[str, View]:
    parent: dict[str, View] = {}
    for view in views:
        for name in (view.child, view.parent):
            if name not in table:
                raise ValueError(f"view of unknown block '{name}'")
        if parent.setdefault(view.child, view) != view:
            raise ValueError(
                f"block '{view.child}' is a view of both '{parent[view.child].parent}' and '{view.parent}'"
            )
        if view.offset < 0 or view.offset + table[view.child].size > table[view.parent].size:
            raise ValueError(f"view '{view.child}' leaves its parent '{view.parent}'")
    return parent


def _places(table: Mapping[str, Block], parent: Mapping[str, View]) -> dict[str, _Place]:
    """Walks from every block up to its root, and down again with offsets summed and ranges widened."""
    places: dict[str, _Place] = {}
    for name in table:
        path: dict[str, None] = {}
        while name not in places:
            if name in path:
                raise ValueError(f"block '{name}' is a view of itself")
            path[name] = None
            if name not in parent:
                break
            name = parent[name].parent
        for step in reversed(path):
            block = table[step]
            if step not in parent:
                places[step] = _Place(step, 0, block.first, block.last)
                continue
            above = places[parent[step].parent]
            first, last = min(block.first, above.first), max(block.last, above.last)
            places[step] = _Place(above.root, above.start + parent[step].offset, first, last)
    return places


def _pieces(block: Block, body: int, places: Mapping[str, _Place], parent: Mapping[str, View]) -> list[Piece]:
    """The block's bytes at the steps that its parent does not cover already: before it, after it, or both."""
    place = places[block.id]
    spans = [(place.first, place.last)]
    if block.id in parent:
        above = places[parent[block.id].parent]
        spans = [(place.first, above.first - 1), (above.last + 1, place.last)]
    return [
        Piece(block.id, body, place.start, block.size, first, last)
        for first, last in spans
        if block.size > 0 and first <= last
    ]


def _alignment(family: Sequence[tuple[Block, int]]) -> tuple[int, int]:
    """(modulus, residue) of the body's offset that align every member. Empty members need no alignment."""
    solid = [(block, start) for block, start in family if block.size > 0]
    if not solid:
        return 1, 0
    strictest, start = max(solid, key=lambda member: member[0].align)
    residue = -start % strictest.align
    for block, start in solid:
        if (residue + start) % block.align:
            raise ValueError(
                f"blocks '{strictest.id}' (alignment {strictest.align}) and '{block.id}' (alignment "
                f"{block.align}) "
                "are views at offsets that cannot both be aligned"
            )
    return strictest.align, residue


def _candidates(family: Sequence[Block], pool_index: Mapping[str, int]) -> tuple[int, ...]:
    """Pools that every member accepts, in the preference of the first member that has one (the root's before
    all).
    """
    for block in family:
        for name in block.pools:
            if name not in pool_index:
                raise ValueError(f"block '{block.id}' asks for unknown pool '{name}'")
    stated = [block.pools for block in family if block.pools]
    if not stated:
        return tuple(pool_index.values())
    common = [name for name in dict.fromkeys(stated[0]) if all(name in names for names in stated)]
    if not common:
        raise ValueError(f"block '{family[0].id}' and its views have no pool in common")
    return tuple(pool_index[name] for name in common)


def _permits(
    table: Mapping[str, Block],
    overlaps: Iterable[Overlap],
    pieces: Sequence[Piece],
    bodies: Sequence[Body],
    places: Mapping[str, _Place],
) -> tuple[Permit, ...]:
    """The overlaps that hold: the bytes really die, and really are born, at the common step.

    An overlap is void where a view keeps bytes of `early` alive beyond the step, or holds bytes of `late`
    before it.
    """
    dying: dict[str, int] = {}
    born: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        if piece.last == places[piece.owner].last:
            dying[piece.owner] = number
        if piece.first == places[piece.owner].first:
            born[piece.owner] = number
    slacks: dict[tuple[int, int], int] = {}
    for overlap in overlaps:
        for name in (overlap.early, overlap.late):
            if name not in table:
                raise ValueError(f"overlap of unknown block '{name}'")
        if overlap.early not in dying or overlap.late not in born:
            continue
        pair = dying[overlap.early], born[overlap.late]
        early, late = pieces[pair[0]], pieces[pair[1]]
        if early.last != late.first or early.body == late.body:
            continue
        step = late.first
        if any(other.last > step and _touch(other, early) for other in bodies[early.body].pieces):
            continue
        if any(other.first < step and _touch(other, late) for other in bodies[late.body].pieces):
            continue
        slacks[pair] = max(overlap.slack, slacks.get(pair, overlap.slack))
    return tuple(Permit(early, late, slack) for (early, late), slack in sorted(slacks.items()))


def _touch(a: Piece, b: Piece) -> bool:
    return a.start < b.end and b.start < a.end


def _forbidden(
    bodies: Sequence[Body], pieces: Sequence[Piece], permits: Sequence[Permit]
) -> tuple[Forbidden, ...]:
    def column(values: Iterable[int]) -> Ints:
        return np.fromiter(values, np.int64, len(pieces))

    body, start, size = (
        column(getattr(piece, name) for piece in pieces) for name in ("body", "start", "size")
    )
    together = _together(pieces)
    permitted: dict[int, list[Permit]] = {}
    for permit in permits:
        permitted.setdefault(permit.early, []).append(permit)
        permitted.setdefault(permit.late, []).append(permit)
    result: list[Forbidden] = []
    number = 0
    for index, own in enumerate(bodies):
        others, lows, highs = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for piece in own.pieces:
            near = together[number]
            near = near[body[near] != index]
            # Distances between pieces first; then between their bodies.
            low, high = np.full(len(near), -piece.size, np.int64), size[near]
            for permit in permitted.get(number, ()):
                # early forbids late to begin more than slack after it, while they are not disjoint
                if permit.late == number:
                    at = int(np.searchsorted(near, permit.early))
                    low[at] = max(low[at], permit.slack)
                else:
                    at = int(np.searchsorted(near, permit.late))
                    high[at] = min(high[at], -permit.slack)
            shift = start[near] - piece.start
            keep = high - low > 1
            others.append(body[near][keep])
            lows.append((low + shift)[keep])
            highs.append((high + shift)[keep])
            number += 1
        result.append(Forbidden(np.concatenate(others), np.concatenate(lows), np.concatenate(highs)))
    return tuple(result)


def _together(pieces: Sequence[Piece]) -> list[Ints]:
    """By piece: the numbers, rising, of those that hold data at a common step with it."""
    found: list[list[int]] = [[] for _ in pieces]
    live: list[int] = []
    for number in sorted(range(len(pieces)), key=lambda number: pieces[number].first):
        live = [other for other in live if pieces[other].last >= pieces[number].first]
        for other in live:
            found[other].append(number)
        found[number] += live
        live.append(number)
    return [np.asarray(sorted(numbers), np.int64) for numbers in found]
