"""Plans of which the right answer is known: chains, residuals, concatenations, overlaps, pools."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from importlib.metadata import EntryPoint
from itertools import pairwise
from pathlib import Path

import pytest

from aot_model.memory import (
    Block,
    Overlap,
    Placement,
    PlanError,
    Pool,
    View,
    algorithm_names,
    plan,
    planner,
    verify,
)
from aot_model.memory.bodies import Problem
from aot_model.memory.layout import Layout, lowest

_ALGORITHMS = ("greedy", "best-fit", "local-search", "auto", "optimal")


def _chain(count: int, seed: int, align: int = 16) -> list[Block]:
    sizes = random.Random(seed)
    return [Block(f"layer{n:04}", sizes.randrange(1, 10_000), align, n, n + 1) for n in range(count)]


def _mobilenet(pixels: int) -> tuple[list[Block], list[Overlap]]:
    """Pointwise up, depthwise, pointwise down and a residual in place, in blocks whose images become smaller.
    """
    blocks, overlaps, step = [Block("input", pixels * pixels * 3, 16, 0, 1)], [], 1
    skip, channels = "", 8

    def produce(name: str, size: int, last: int) -> str:
        blocks.append(Block(name, size, 16, step, last))
        return name

    for number in range(12):
        area = (pixels >> (1 + number // 3)) ** 2
        wide = produce(f"expand{number}", area * channels * 6, step + 1)
        step += 1
        deep = produce(f"depthwise{number}", area * channels * 6, step + 1)
        overlaps.append(Overlap(wide, deep, -(area // 8) * channels // 16 * 16))
        step += 1
        residual = number % 3 != 2
        flat = produce(f"project{number}", area * channels, step + 1)
        overlaps.append(Overlap(deep, flat, 0))
        step += 1
        if residual:
            skip = produce(f"add{number}", area * channels, step + 4)
            overlaps.append(Overlap(flat, skip, 0))
            step += 1
        channels += 4
    return blocks, overlaps


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 300])
@pytest.mark.parametrize("seed", range(4))
def test_chains_hit_the_lower_bound(count: int, seed: int) -> None:
    result = plan(_chain(count, seed))
    assert result.pool_sizes["workspace"] == result.lower_bound
    assert result.distance() == 0.0
    assert result.proved


@pytest.mark.parametrize("algorithm", _ALGORITHMS)
def test_nothing_and_almost_nothing(algorithm: str) -> None:
    assert plan([], algorithm=algorithm).pool_sizes == {"workspace": 0}
    empty = plan([Block("empty", 0, 64, 3, 3)], algorithm=algorithm)
    assert empty.offsets == {"empty": Placement("workspace", 0)}
    assert empty.lower_bound == 0
    assert empty.distance() == 0.0
    one = plan([Block("one", 7, 4, 5, 5), Block("none", 0, 4, 5, 5)], algorithm=algorithm)
    assert one.pool_sizes == {"workspace": 7}
    assert (one.peak_step, one.peak_live) == (5, (("one", 7),))


def test_blocks_of_different_steps_share_everything() -> None:
    result = plan([Block(f"b{step}", 100 + step, 8, step, step) for step in range(20)])
    assert {place.offset for place in result.offsets.values()} == {0}
    assert result.pool_sizes["workspace"] == 119


def test_alignment_counts_in_the_bound() -> None:
    """Two blocks of 10 bytes at multiples of 16 need 26 bytes, not 20."""
    result = plan([Block("a", 10, 16, 0, 1), Block("b", 10, 16, 1, 2)])
    assert result.pool_sizes["workspace"] == result.lower_bound == 26
    mixed = plan([Block("a", 10, 16, 0, 1), Block("b", 6, 2, 1, 2)])
    assert mixed.pool_sizes["workspace"] == mixed.lower_bound == 16


def test_pool_alignment_is_the_strictest_of_its_blocks() -> None:
    result = plan([Block("a", 10, 64, 0, 1)], pools=[Pool("fast", None, 8), Pool("slow", None, 8)])
    assert result.pools["fast"].align == 64
    assert result.pools["slow"].align == 8


def test_residual_diamond() -> None:
    """x feeds two branches that are added: at the widest step x, one branch and the other's input are live.
    """
    blocks = [
        Block("x", 400, 16, 0, 3),
        Block("left", 400, 16, 1, 2),
        Block("left2", 400, 16, 2, 4),
        Block("right", 400, 16, 3, 4),
        Block("sum", 400, 16, 4, 5),
    ]
    assert plan(blocks).pool_sizes["workspace"] == 1200
    in_place = plan(blocks, [Overlap("right", "sum"), Overlap("left", "left2"), Overlap("x", "right")])
    assert in_place.pool_sizes["workspace"] == in_place.lower_bound == 800


def test_element_wise_chain_is_one_buffer() -> None:
    blocks = _chain(50, 1)
    blocks = [Block(block.id, 1000, 16, block.first, block.last) for block in blocks]
    result = plan(blocks, [Overlap(a.id, b.id) for a, b in pairwise(blocks)])
    assert result.pool_sizes["workspace"] == 1000


@pytest.mark.parametrize(
    ("slack", "early", "late", "size"),
    [
        (0, 100, 100, 100),
        (0, 100, 300, 300),  # grows beyond its input
        (-16, 100, 100, 116),  # must begin 16 bytes before
        (-10, 100, 100, 116),  # ... rounded to what alignment allows
        (-300, 100, 100, 212),  # too far: side by side
        (16, 100, 40, 100),
        (0, 40, 100, 100),
    ],
)
def test_overlap_slack(slack: int, early: int, late: int, size: int) -> None:
    blocks = [Block("early", early, 16, 0, 1), Block("late", late, 16, 1, 2)]
    result = plan(blocks, [Overlap("early", "late", slack)])
    assert result.pool_sizes["workspace"] == result.lower_bound == size
    verify(result.offsets, blocks, [Overlap("early", "late", slack)])


def test_positive_slack_lets_the_late_block_begin_inside_the_early_one() -> None:
    """`held` keeps the first 16 bytes from the step after; the late block avoids them by beginning 16 bytes
    later.
    """
    blocks = [Block("early", 64, 16, 0, 1), Block("late", 48, 16, 1, 3), Block("held", 16, 16, 2, 3)]
    assert plan(blocks, [Overlap("early", "late", 16)]).pool_sizes["workspace"] == 64
    tight = [Placement("workspace", offset) for offset in (0, 16, 0)]
    places = dict(zip(("early", "late", "held"), tight, strict=True))
    verify(places, blocks, [Overlap("early", "late", 16)])
    with pytest.raises(ValueError, match="'early' at 0 and 'late' at 16"):
        verify(places, blocks, [Overlap("early", "late", 15)])


def test_ladder_of_negative_slacks_is_proved_minimal() -> None:
    """Each of three blocks must begin 16 bytes before the last: 132 bytes, though no step needs more than
    116.
    """
    blocks = [Block(name, 100, 4, step, step + 1) for step, name in enumerate("abc")]
    result = plan(blocks, [Overlap("a", "b", -16), Overlap("b", "c", -16)])
    assert (result.pool_sizes["workspace"], result.lower_bound, result.proved) == (132, 116, True)
    assert result.distance() == pytest.approx(16 / 116)


def test_an_overlap_needs_death_and_birth_at_one_step() -> None:
    longer = [Block("early", 100, 4, 0, 2), Block("late", 100, 4, 1, 3)]
    assert plan(longer, [Overlap("early", "late")]).pool_sizes["workspace"] == 200
    kept_by_view = [Block("early", 100, 4, 0, 1), Block("part", 50, 2, 1, 4), Block("late", 100, 4, 1, 1)]
    views = [View("part", "early", 50)]
    kept = plan(kept_by_view, [Overlap("early", "late")], views)
    assert kept.pool_sizes["workspace"] == 200
    verify(kept.offsets, kept_by_view, [Overlap("early", "late")], views)


def test_two_blocks_born_at_a_step_do_not_share() -> None:
    blocks = [Block("early", 100, 4, 0, 1), Block("one", 100, 4, 1, 2), Block("two", 100, 4, 1, 2)]
    result = plan(blocks, [Overlap("early", "one"), Overlap("early", "two")])
    assert result.pool_sizes["workspace"] == result.lower_bound == 200


def test_concatenation_in_place_lets_others_use_what_is_not_written_yet() -> None:
    """Inception: the branches write their slices; a branch's wide temporary lies in the slice of a later one.
    """
    blocks = [
        Block("x", 100, 4, 0, 5),
        Block("one", 200, 4, 1, 1),
        Block("reduced", 150, 4, 2, 3),
        Block("two", 200, 4, 3, 3),
        Block("wide", 300, 4, 4, 5),
        Block("three", 300, 4, 5, 5),
        Block("joined", 700, 4, 6, 7),
    ]
    views = [View("one", "joined", 0), View("two", "joined", 200), View("three", "joined", 400)]
    result = plan(blocks, [Overlap("wide", "three")], views)
    base = result.offsets["joined"].offset
    assert [result.offsets[name].offset - base for name in ("one", "two", "three")] == [0, 200, 400]
    assert result.pool_sizes["workspace"] == result.lower_bound == 800


def test_views_chain() -> None:
    blocks = [
        Block("base", 64, 16, 0, 1),
        Block("slice", 32, 16, 2, 2),
        Block("reshape", 32, 16, 3, 3),
        Block("last", 16, 8, 4, 6),
        Block("other", 48, 16, 3, 6),
    ]
    views = [View("slice", "base", 16), View("reshape", "slice"), View("last", "reshape", 8)]
    result = plan(blocks, views=views)
    base = result.offsets["base"].offset
    assert [result.offsets[name].offset - base for name in ("slice", "reshape", "last")] == [16, 16, 24]
    assert result.proved
    assert result.pool_sizes["workspace"] == 96  # `other` begins in the base's last 16 bytes, which are dead
    verify(result.offsets, blocks, views=views)


def test_a_body_is_aligned_so_that_its_views_are() -> None:
    blocks = [Block("parent", 40, 4, 0, 2), Block("child", 32, 16, 1, 2)]
    result = plan(blocks, views=[View("child", "parent", 4)])
    assert result.offsets["parent"].offset % 16 == 12
    assert result.offsets["child"].offset % 16 == 0


def test_overlap_with_a_view() -> None:
    """Activation in place on a reshape, and a result written into its slice of a concatenation over its
    input.
    """
    blocks = [
        Block("x", 100, 4, 0, 0),
        Block("flat", 100, 4, 1, 2),
        Block("y", 100, 4, 2, 2),
        Block("held", 100, 4, 1, 2),
        Block("joined", 200, 4, 3, 4),
    ]
    views = [View("flat", "x"), View("y", "joined", 100)]
    result = plan(blocks, [Overlap("flat", "y")], views)
    assert result.offsets["y"] == result.offsets["flat"] == result.offsets["x"]
    assert result.pool_sizes["workspace"] == 200


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


def test_spilling_follows_the_preference() -> None:
    """What does not fit in the first pool goes to the next; as few bytes as possible do."""
    blocks = [Block("big", 600, 16, 0, 2), Block("middle", 400, 16, 1, 3), Block("small", 64, 16, 1, 3)]
    pools = [Pool("dtcm", 1000), Pool("sram")]
    result = plan(blocks, pools=pools)
    assert {name: place.pool for name, place in result.offsets.items()} == {
        "big": "dtcm",
        "middle": "dtcm",
        "small": "sram",
    }
    # middle below big: the other way alignment takes 8 more
    assert result.pool_sizes == {"dtcm": 1000, "sram": 64}
    verify(result.offsets, blocks, pools=pools)


def test_candidates_are_tried_in_the_order_of_the_block() -> None:
    pools = [Pool("dtcm", 100), Pool("sram", 100), Pool("sdram")]
    blocks = [
        Block("a", 80, 4, 0, 1, ("sram", "dtcm")),
        Block("b", 60, 4, 0, 1, ("sram", "dtcm")),
        Block("c", 90, 4, 0, 1, ("dtcm", "sdram")),
    ]
    result = plan(blocks, pools=pools)
    verify(result.offsets, blocks, pools=pools)
    assert {name: place.pool
            for name, place in result.offsets.items()} == {"a": "sram", "b": "dtcm", "c": "sdram"}


def test_overlaps_count_in_a_common_pool_only() -> None:
    blocks = [Block("early", 100, 4, 0, 1, ("p",)), Block("late", 100, 4, 1, 2, ("q",))]
    result = plan(blocks, [Overlap("early", "late", -40)], pools=[Pool("p"), Pool("q")])
    assert result.pool_sizes == {"p": 100, "q": 100}
    assert result.lower_bound <= 200


def test_plan_error_has_a_table() -> None:
    blocks = [Block("a", 100, 4, 0, 3), Block("b", 80, 4, 2, 5, ("sram", "dtcm")), Block("c", 500, 4, 1, 1)]
    with pytest.raises(PlanError) as failure:
        plan(blocks, pools=[Pool("dtcm", 120), Pool("sram", 60)])
    rows = {row.block: row for row in failure.value.rows}
    assert rows["c"].size == 500
    assert (rows["c"].first, rows["c"].last) == (1, 1)
    assert [pool for pool, _, _ in rows["c"].tried] == ["dtcm", "sram"]
    assert "c: 500 bytes, live over steps 1..1; dtcm has 20 of 120 bytes free, sram has 60 of 60" in str(
        failure.value)
    assert [row.size for row in failure.value.rows] == sorted((row.size for row in failure.value.rows),
                                                              reverse=True)


def test_a_limit_that_is_just_enough_is_enough() -> None:
    """Where the blocks have one pool, only the exact search's word decides that there is no room."""
    for seed in range(12):
        source = random.Random(seed)
        starts = [source.randrange(12) for _ in range(14)]
        blocks = [
            Block(f"b{n:02}", source.randrange(1, 60), 1, start, start + source.randrange(6))
            for n, start in enumerate(starts)
        ]
        least = plan(blocks, algorithm="optimal")
        size = least.pool_sizes["workspace"]
        limited = plan(blocks, pools=[Pool("workspace", size)])
        assert limited.pool_sizes["workspace"] == size
        if least.proved and size:
            with pytest.raises(PlanError):
                plan(blocks, pools=[Pool("workspace", size - 1)])


def test_mobilenet_is_close_to_the_bound() -> None:
    blocks, overlaps = _mobilenet(96)
    result = plan(blocks, overlaps)
    verify(result.offsets, blocks, overlaps)
    assert result.distance() <= 0.05


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
        "    print(result.report(), sorted(result.offsets.items()))\n")
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
