"""The lower bound: no placement needs fewer bytes than are live at the busiest step."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
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

    An overlap counts the smallest union of its pair at their common step. With `shared_base` the bodies lie in
    one pool, and what alignment loses between them counts too: every block begins at a multiple of the
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
    rounding = max((problem.bodies[index].align for index in chosen), default=1) - 1 if shared_base else 0
    best = Bound(0, 0, ())
    live: dict[Piece, None] = {}
    total = 0
    # Between these steps nothing changes but the savings of overlaps, which end where the set shrinks.
    for step in sorted(deaths.keys() | births.keys()):
        for piece in deaths.get(step, ()):
            del live[piece]
            total -= piece.size
        for piece in births.get(step, ()):
            live[piece] = None
            total += piece.size
        if total + rounding * len(live) <= best.bytes:
            continue
        grain = math.gcd(*(_grain(problem, piece) for piece in live)) if shared_base else 1
        granules = _union(live, grain) - _savings(problem, permits.get(step, ()), grain)
        need = granules * grain - max(-piece.size % grain for piece in live)
        if need > best.bytes:
            largest = sorted(live, key=lambda piece: (-piece.size, piece.owner))
            best = Bound(need, step, tuple(largest))
    return best


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
