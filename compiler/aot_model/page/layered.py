"""A layered drawing of a graph without circles: ranks by longest path, order by barycentres, places by least
squares.

    ranks      every vertex below all that it depends on; sources right above what reads them first
    bends      an edge over several ranks has a bend in each; edges of one vertex share their bends
    order      sweeps down and up sort each rank by the mean place of its neighbours; the order with the
               fewest crossings is kept
    places     each rank moves towards its neighbours, as near as the room between its members allows

Whole numbers come out, the same on every machine.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH, GAP, BEND = 208, 28, 14
MAX_BENDS = 6000
SWEEPS = 8


@dataclass(frozen=True)
class Drawing:
    """x: centre of each vertex, then of each bend; rank: theirs; segments by vertex: pieces of the edges that
    leave it, each a pair of vertices or bends.
    """

    x: tuple[int, ...]
    rank: tuple[int, ...]
    segments: tuple[tuple[tuple[int, int], ...], ...]


def draw(count: int, edges: Sequence[tuple[int, int]]) -> Drawing:
    """A drawing of vertices 0 … count - 1; every edge goes from a lower number to a higher one."""
    rank = _ranks(count, edges)
    segments = _bends(rank, count, edges)
    pieces = [piece for own in segments for piece in own]
    rows = _order(rank, pieces)
    return Drawing(tuple(_places(rows, pieces, count)), tuple(rank), tuple(tuple(own) for own in segments))


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    rank = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    for a, b in sorted(edges, key=lambda e: e[1]):
        rank[b] = max(rank[b], rank[a] + 1)
        readers[a].append(b)
    sources = set(range(count)) - {b for _, b in edges}
    for vertex in sources:
        if readers[vertex]:
            rank[vertex] = min(rank[b] for b in readers[vertex]) - 1
    return rank


def _bends(rank: list[int], count: int, edges: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Segments by source; ranks of the bends are appended. Where there would be too many bends, the longest
    edges are straight.
    """
    reach = [0] * count
    for a, b in edges:
        reach[a] = max(reach[a], rank[b] - rank[a] - 1)
    limit = max(reach, default=0)
    while sum(min(r, limit) for r in reach) > MAX_BENDS:
        limit //= 2
    chains: list[list[int]] = [[v] for v in range(count)]
    segments: list[dict[tuple[int, int], None]] = [{} for _ in range(count)]
    for a, b in sorted(edges):
        chain, span = chains[a], rank[b] - rank[a] - 1
        if span <= limit:
            while len(chain) <= span:
                rank.append(rank[a] + len(chain))
                chain.append(len(rank) - 1)
            segments[a].update(dict.fromkeys(pairwise(chain[: span + 1])))
        segments[a][(chain[span] if span <= limit else a, b)] = None
    return [list(own) for own in segments]


def _neighbours(count: int, pieces: Sequence[tuple[int, int]]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for a, b in pieces:
        above[b].append(a)
        below[a].append(b)
    return above, below


def _order(rank: list[int], pieces: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The members of each rank, left to right."""
    rows: list[list[int]] = [[] for _ in range(max(rank, default=-1) + 1)]
    for vertex, at in enumerate(rank):
        rows[at].append(vertex)
    above, below = _neighbours(len(rank), pieces)
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        near = above if sweep % 2 == 0 else below
        place = {v: k for row in rows for k, v in enumerate(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            mean = {
                v: sum(place[n] for n in near[v]) / len(near[v]) if near[v] else float(place[v]) for v in row
            }
            row.sort(key=lambda v, mean=mean, place=place: (mean[v], place[v]))  # type: ignore[misc]
            place.update({v: k for k, v in enumerate(row)})
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _crossings(rows: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> int:
    place = {v: k for row in rows for k, v in enumerate(row)}
    total = 0
    for row in rows:
        seen: list[int] = []
        for vertex in row:
            ends = sorted(place[n] for n in below[vertex])
            total += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _places(rows: Sequence[Sequence[int]], pieces: Sequence[tuple[int, int]], count: int) -> list[int]:
    total = sum(map(len, rows))
    above, below = _neighbours(total, pieces)
    half = [WIDTH / 2 if v < count else BEND / 2 for v in range(total)]
    x = [0.0] * total
    for row in rows:
        _settle(row, [0.0] * len(row), half, x)
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _settle(
                row, [sum(x[n] for n in near[v]) / len(near[v]) if near[v] else x[v] for v in row], half, x
            )
    left = min((x[v] - half[v] for v in range(total)), default=0.0)
    return [round(at - left) for at in x]


def _settle(row: Sequence[int], wanted: Sequence[float], half: Sequence[float], x: list[float]) -> None:
    """Put the members of a rank where they are nearest to what is wanted, in the sense of least squares, side
    by side in their order.
    """
    blocks: list[tuple[float, int]] = []  # (mean of wanted place minus distance from the first, members)
    distance, offsets = 0.0, []
    for k, vertex in enumerate(row):
        distance += half[row[k - 1]] + half[vertex] + GAP if k else 0.0
        offsets.append(distance)
        mean, size = wanted[k] - distance, 1
        while blocks and blocks[-1][0] > mean:
            other, members = blocks.pop()
            mean, size = (mean * size + other * members) / (size + members), size + members
        blocks.append((mean, size))
    starts = [mean for mean, size in blocks for _ in range(size)]
    for vertex, start, offset in zip(row, starts, offsets, strict=True):
        x[vertex] = start + offset
