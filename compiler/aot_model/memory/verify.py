"""Checks a finished plan against the blocks, overlaps and views that it was made for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .blocks import Block, Overlap, Placement, Pool, View
from .bodies import Piece, Problem, problem


def verify(
    placements: Mapping[str, Placement],
    blocks: Iterable[Block],
    overlaps: Iterable[Overlap] = (),
    views: Iterable[View] = (),
    pools: Sequence[Pool] = (Pool("workspace"),),
) -> None:
    """Raises ValueError naming the first fault: a missing or misaligned block, a pool overrun or not allowed,
    a view not at its place in its parent, or two blocks in each other's bytes while both hold data.

    Looks at every pair of blocks that live at a common step, by their final offsets.
    """
    blocks, views = list(blocks), list(views)
    table = {block.id: block for block in blocks}
    limits = {pool.name: pool.size for pool in pools}
    for block in sorted(blocks, key=lambda block: block.id):
        if block.id not in placements:
            raise ValueError(f"block '{block.id}' has no place")
        place = placements[block.id]
        if place.pool not in limits or (block.pools and place.pool not in block.pools):
            raise ValueError(f"block '{block.id}' may not be in pool '{place.pool}'")
        limit = limits[place.pool]
        if place.offset < 0 or (limit is not None and block.size and place.offset + block.size > limit):
            raise ValueError(f"block '{block.id}' at {place.offset} leaves pool '{place.pool}'")
        if block.size and place.offset % block.align:
            raise ValueError(f"block '{block.id}' at {place.offset} is not aligned to {block.align}")
    for view in views:
        child, parent = placements[view.child], placements[view.parent]
        if table[view.child].size and child != Placement(parent.pool, parent.offset + view.offset):
            raise ValueError(f"view '{view.child}' is not at {view.offset} in '{view.parent}'")
    _verify_pairs(problem(blocks, overlaps, views, pools), placements)


def _verify_pairs(planned: Problem, placements: Mapping[str, Placement]) -> None:
    slacks: dict[tuple[Piece, Piece], int] = {}
    for permit in planned.permits:
        slacks[planned.pieces[permit.early], planned.pieces[permit.late]] = permit.slack
    live: list[Piece] = []
    for piece in sorted(planned.pieces, key=lambda piece: (piece.first, piece.owner)):
        place = placements[piece.owner]
        live = [other for other in live if other.last >= piece.first]
        for other in live:
            there = placements[other.owner]
            if other.body == piece.body or there.pool != place.pool:
                continue
            if there.offset >= place.offset + piece.size or place.offset >= there.offset + other.size:
                continue
            below = place.offset - there.offset
            if (other, piece) in slacks and below <= slacks[other, piece]:
                continue
            if (piece, other) in slacks and -below <= slacks[piece, other]:
                continue
            raise ValueError(
                f"blocks '{other.owner}' at {there.offset} and '{piece.owner}' at {place.offset} of pool "
                f"'{place.pool}' are both live at step {piece.first} and share bytes"
            )
        live.append(piece)
