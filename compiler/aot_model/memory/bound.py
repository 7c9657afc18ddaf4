"""The lower bound: no placement needs fewer bytes than are live at the busiest step."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from .bodies import Permit, Piece, Problem

Item = TypeVar("Item")


@dataclass(frozen=True)
class Bound:
    """`bytes` that must exist at `step`, where `live` (pieces of Problem.pieces, largest first) hold data."""

    bytes: int
    step: int
    live: tuple[Piece, ...]


def lower_bound(problem: Problem, bodies: Collection[int] | None = None, shared_base: bool = True) -> Bound:
    """The peak over all steps of the bytes live at that step, for all bodies or for some of them.

    An overlap counts the smallest union of its pair at their common step. With `shared_base` the bodies lie
    in one pool, and what alignment loses between them counts too: every block begins at a multiple of the
    smallest alignment g of those live, so all but the topmost fill whole granules of g bytes.
    """
    chosen = range(len(problem.bodies)) if bodies is None else sorted(bodies)
    pieces = [piece for index in chosen for piece in problem.bodies[index].pieces]
    births = _grouped(pieces, lambda piece: piece.first)
    deaths = _grouped(pieces, lambda piece: piece.last + 1)
    members = set(chosen)
    permits = _grouped(
        (
            permit
            for permit in problem.permits
            if {problem.pieces[n].body for n in (permit.early, permit.late)} <= members
        ),
        lambda permit: problem.pieces[permit.late].first,
    )
    grains = {piece: _grain(problem, piece) if shared_base else 1 for piece in pieces}
    rounding = max(grains.values(), default=1) - 1
    # Between these steps nothing changes but the savings of overlaps, which end where the set shrinks.
    steps = sorted(deaths.keys() | births.keys())
    totals = dict(
        zip(steps, accumulate(_sum(births, step) - _sum(deaths, step) for step in steps), strict=True)
    )
    best = Bound(0, 0, ())

    def consider(step: int, live: Collection[Piece]) -> None:
        nonlocal best
        if totals[step] + rounding * len(live) <= best.bytes:
            return
        grain = math.gcd(*(grains[piece] for piece in live))
        granules = _union(live, grain) - _savings(problem, permits.get(step, ()), grain)
        need = granules * grain - max(-piece.size % grain for piece in live)
        if need > best.bytes:
            best = Bound(need, step, tuple(sorted(live, key=lambda piece: (-piece.size, piece.owner))))

    if steps:  # the likeliest step first: it leaves little to look at closely
        peak = max(steps, key=lambda step: totals[step])
        consider(peak, [piece for piece in pieces if piece.first <= peak <= piece.last])
    live: dict[Piece, None] = {}
    for step in steps:
        for piece in deaths.get(step, ()):
            del live[piece]
        live.update(dict.fromkeys(births.get(step, ())))
        consider(step, live)
    return best


def _sum(groups: Mapping[int, list[Piece]], step: int) -> int:
    return sum(piece.size for piece in groups.get(step, ()))


def _grouped(items: Iterable[Item], step: Callable[[Item], int]) -> dict[int, list[Item]]:
    groups: dict[int, list[Item]] = {}
    for item in items:
        groups.setdefault(step(item), []).append(item)
    return groups


def _grain(problem: Problem, piece: Piece) -> int:
    """The largest power of two that divides every address at which the piece can begin."""
    body = problem.bodies[piece.body]
    return math.gcd(body.align, body.residue + piece.start)


def _union(live: Iterable[Piece], grain: int) -> int:
    """Granules covered, where pieces of one body may cover each other and those of two bodies do not."""
    total, body, end = 0, -1, 0
    for piece in sorted(live, key=lambda piece: (piece.body, piece.start)):
        if piece.body != body:
            body, end = piece.body, piece.start
        stop = piece.start + -(-piece.size // grain) * grain
        total += max(0, stop - max(end, piece.start)) // grain
        end = max(end, stop)
    return total


def _savings(problem: Problem, permits: Sequence[Permit], grain: int) -> int:
    """At most so many granules are shared at the step: no block shares more of itself than it has."""
    by_early: dict[int, int] = {}
    by_late: dict[int, int] = {}
    for permit in permits:
        early, late = problem.pieces[permit.early], problem.pieces[permit.late]
        lead = -(-max(0, -permit.slack) // grain) * grain  # late begins this many bytes before early, or more
        shared = min(-(-early.size // grain), -(-max(0, late.size - lead) // grain))
        by_early[permit.early] = by_early.get(permit.early, 0) + shared
        by_late[permit.late] = by_late.get(permit.late, 0) + shared
    pieces = problem.pieces
    return min(
        sum(min(shared, -(-pieces[index].size // grain)) for index, shared in by_early.items()),
        sum(min(shared, -(-pieces[index].size // grain)) for index, shared in by_late.items()),
    )
