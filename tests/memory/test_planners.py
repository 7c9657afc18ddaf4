"""Planners themselves: many blocks, any hash seed, those of other packages, what is said of a plan."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from aot_model.memory import Block, Overlap, Placement, Pool, View, algorithm_names, plan, planner, verify
from aot_model.memory.bodies import Problem
from aot_model.memory.layout import Layout, lowest


@pytest.mark.parametrize(
    ("blocks", "overlaps", "views", "pools", "message"),
    [
        ([Block("a", 1, 1, 0, 0)] * 2, [], [], None, "'a' is given twice"),
        ([Block("a", -1, 1, 0, 0)], [], [], None, "size -1"),
        ([Block("a", 1, 3, 0, 0)], [], [], None, "alignment 3 is not a power of two"),
        ([Block("a", 1, 1, 2, 1)], [], [], None, r"steps 2\.\.1"),
        ([Block("a", 1, 1, 0, 1)], [Overlap("a", "b")], [], None, "overlap of unknown block 'b'"),
        ([Block("a", 1, 1, 0, 1)], [], [View("b", "a")], None, "view of unknown block 'b'"),
        ([Block("a", 1, 1, 0, 1)], [], [View("a", "a")], None, "view of itself"),
        ([Block(n, 1, 1, 0, 1) for n in "ab"], [], [View("a", "b"), View("b", "a")], None, "view of itself"),
        ([Block(n, 1, 1, 0, 1) for n in "abc"], [], [View("a", "b"), View("a", "c")], None, "view of both"),
        ([Block(n, 4, 1, 0, 1) for n in "ab"], [], [View("a", "b", 1)], None, "leaves its parent"),
        (
            [Block("a", 40, 16, 0, 1), Block("b", 4, 4, 0, 1)],
            [],
            [View("b", "a", 2)],
            None,
            "cannot both be aligned",
        ),
        ([Block("a", 1, 1, 0, 1, ("dtcm",))], [], [], None, "unknown pool 'dtcm'"),
        (
            [Block("a", 1, 1, 0, 1, ("p",)), Block("b", 1, 1, 0, 1, ("q",))],
            [],
            [View("a", "b")],
            [Pool("p"), Pool("q")],
            "no pool in common",
        ),
        ([], [], [], [], "pools must be given"),
        ([], [], [], [Pool("p"), Pool("p")], "name of its own"),
        ([], [], [], [Pool("p", None, 0)], "alignment 0 is not a power of two"),
    ],
)
def test_input_that_contradicts_itself(
    blocks: list[Block], overlaps: list[Overlap], views: list[View], pools: list[Pool] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plan(blocks, overlaps, views, [Pool("workspace")] if pools is None else pools)


def test_verify_names_what_is_wrong() -> None:
    blocks = [Block("a", 8, 4, 0, 1, ("p",)), Block("b", 4, 2, 1, 2)]
    views = [View("b", "a", 4)]
    pools = [Pool("p", 16), Pool("q", 16)]

    def check(a: Placement, b: Placement, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            verify({"a": a, "b": b}, blocks, (), views, pools)

    verify({"a": Placement("p", 8), "b": Placement("p", 12)}, blocks, (), views, pools)
    check(Placement("q", 0), Placement("q", 4), "'a' may not be in pool 'q'")
    check(Placement("p", 12), Placement("p", 16), "'a' at 12 leaves pool 'p'")
    check(Placement("p", -4), Placement("p", 0), "leaves pool")
    check(Placement("p", 2), Placement("p", 6), "'a' at 2 is not aligned to 4")
    check(Placement("p", 0), Placement("p", 6), "view 'b' is not at 4 in 'a'")
    with pytest.raises(ValueError, match="'b' has no place"):
        verify({"a": Placement("p", 0)}, blocks, (), views, pools)


def test_report() -> None:
    text = plan([Block("a", 10, 16, 0, 1), Block("b", 24, 16, 1, 2)]).report()
    assert text == (
        "pool workspace: 40 bytes, aligned to 16 (live at its peak: 40)\n"
        "lower bound: 40 bytes; distance 0.0 %; no plan is smaller\n"
        "live at the peak, step 1:\n"
        "          24 b\n"
        "          10 a\n"
        "          34 together, and 6 between them for alignment\n"
    )


@pytest.mark.parametrize(("count", "life"), [(300, 20), (3000, 20)])
def test_many_blocks(count: int, life: int) -> None:
    source = random.Random(count)
    starts = [source.randrange(count) for _ in range(count)]
    blocks = [
        Block(f"b{n}", source.randrange(1, 4000), 16, first, first + source.randrange(life))
        for n, first in enumerate(starts)
    ]
    assert plan(blocks).distance() < 0.1


def test_the_hash_seed_does_not_matter(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import random\n"
        "from aot_model.memory import *\n"
        "source = random.Random(3)\n"
        "starts = [source.randrange(40) for _ in range(60)]\n"
        "blocks = [Block(f'b{n}', source.randrange(1, 900), 8, s, s + source.randrange(9)) for n, s in "
        "enumerate(starts)]\n"
        "overlaps = [Overlap(a.id, b.id, -8) for a in blocks for b in blocks if a.last == b.first and a is "
        "not b]\n"
        "for name in algorithm_names():\n"
        "    result = plan(blocks, overlaps, algorithm=name)\n"
        "    print(result.report(), sorted(result.offsets.items()))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


def stacked(problem: Problem) -> Layout:
    """A planner as another package might give it: first fit in the order of names."""
    layout = Layout(problem)
    layout.place_all(range(len(problem.bodies)), lowest)
    return layout


def broken(problem: Problem) -> Layout:
    layout = Layout(problem)
    for index in range(len(problem.bodies)):
        layout.put(index, 0, 0)
    return layout


def test_planners_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, f"{__name__}:{name}", planner.ENTRY_POINTS) for name in ("stacked", "broken")]

    def installed(group: str, name: str | None = None) -> list[EntryPoint]:
        return [point for point in points if point.group == group and name in (None, point.name)]

    monkeypatch.setattr(planner, "entry_points", installed)
    blocks = [Block("a", 4, 4, 0, 1), Block("b", 4, 4, 1, 2)]
    assert {"stacked", "auto"} <= set(algorithm_names())
    assert plan(blocks, algorithm="stacked").offsets["b"].offset == 4
    with pytest.raises(ValueError, match="share bytes"):
        plan(blocks, algorithm="broken")
    with pytest.raises(ValueError, match="unknown memory planner 'none'"):
        plan(blocks, algorithm="none")


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        ((0, 4), "share bytes"),
        ((0, 14), "not aligned"),
        ((0, -12), "leaves pool"),
        ((0, 96), "leaves pool"),
        ((0, 12), ""),
    ],
)
def test_no_planner_is_wrong_in_silence(
    offsets: tuple[int, int], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(problem: Problem) -> Layout:
        layout = Layout(problem)
        for index, offset in enumerate(offsets):
            layout.put(index, 0, offset)
        return layout

    monkeypatch.setitem(planner.ALGORITHMS, "greedy", found)  # type: ignore[arg-type]
    blocks, pools = [Block("a", 12, 4, 0, 1), Block("b", 8, 4, 1, 2)], [Pool("workspace", 100)]
    if not says:
        assert plan(blocks, pools=pools, algorithm="greedy").offsets["b"].offset == 12
        return
    with pytest.raises(ValueError, match=says):
        plan(blocks, pools=pools, algorithm="greedy")
