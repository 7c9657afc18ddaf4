"""Plans in which blocks share bytes: overlaps with slack, concatenations in place, views."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from aot_model.memory import Block, Overlap, Placement, View, plan, verify


def _chain(count: int, seed: int, align: int = 16) -> list[Block]:
    sizes = random.Random(seed)
    return [Block(f"layer{n:04}", sizes.randrange(1, 10_000), align, n, n + 1) for n in range(count)]


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
    """Inception: the branches write their slices; a branch's wide temporary lies in the slice of a later
    one.
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
