"""Plans over several pools: spilling, candidates, sizes that do not suffice."""

from __future__ import annotations

import random

import pytest

from aot_model.memory import Block, Overlap, PlanError, Pool, plan, verify


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
    assert {name: place.pool for name, place in result.offsets.items()} == {
        "a": "sram",
        "b": "dtcm",
        "c": "sdram",
    }


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
        failure.value
    )
    assert [row.size for row in failure.value.rows] == sorted(
        (row.size for row in failure.value.rows), reverse=True
    )


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
