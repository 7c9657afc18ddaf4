"""The drawing of a graph: ranks, order and places that hold for any graph without circles."""

from __future__ import annotations

import itertools
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from aot_model.page.layered import BEND, GAP, WIDTH, draw


@st.composite
def graphs(pick: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = pick(st.integers(1, 14))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    return count, pick(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


def chains(count: int, segments: tuple[tuple[int, int], ...], start: int) -> set[int]:
    """Vertices that the segments lead to from a vertex."""
    after = defaultdict(list)
    for a, b in segments:
        after[a].append(b)
    reached, ends, todo = set[int](), set[int](), [start]
    while todo:
        for end in after[todo.pop()]:
            assert end not in reached, "a bend is reached once"
            reached.add(end)
            if end < count:
                ends.add(end)
            else:
                todo.append(end)
    return ends


@given(graphs())
@settings(max_examples=150, deadline=None)
def test_any_graph(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = graph
    drawn = draw(count, edges)
    assert draw(count, list(reversed(edges))).rank == drawn.rank
    for a, b in edges:
        assert drawn.rank[a] < drawn.rank[b]
    for vertex in range(count):
        assert chains(count, drawn.segments[vertex], vertex) == {b for a, b in edges if a == vertex}
    assert all(drawn.rank[b] == drawn.rank[a] + 1 for own in drawn.segments for a, b in own)
    rows = defaultdict(list)
    for k, (x, rank) in enumerate(zip(drawn.x, drawn.rank, strict=True)):
        rows[rank].append((x, WIDTH if k < count else BEND))
    for row in rows.values():
        row.sort()
        for (x, width), (other, another) in itertools.pairwise(row):
            assert other - x >= (width + another) / 2 + GAP - 1, "members of a rank do not touch"


def test_a_chain_is_straight() -> None:
    drawn = draw(9, [(k, k + 1) for k in range(8)])
    assert len(set(drawn.x)) == 1 and drawn.rank == tuple(range(9))


def test_a_diamond_is_symmetric_and_has_no_crossing() -> None:
    drawn = draw(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert drawn.x[0] == drawn.x[3] and abs(drawn.x[1] + drawn.x[2] - 2 * drawn.x[0]) <= 1


def test_crossings_go_away() -> None:
    drawn = draw(6, [(0, 5), (1, 4), (2, 3)])
    order = sorted(range(3), key=lambda k: drawn.x[k])
    assert [5 - k for k in order] == sorted(range(3, 6), key=lambda k: drawn.x[k])


def test_many_long_edges_are_drawn_in_bounded_room() -> None:
    count = 600
    edges = sorted({(k, k + 1) for k in range(count - 1)} | {(k, count - 1) for k in range(count - 1)})
    drawn = draw(count, edges)
    assert len(drawn.x) <= count + 6000
