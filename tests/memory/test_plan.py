"""Plans of which the right answer is known: chains, residuals, alignment, a network."""

from __future__ import annotations

import random

import pytest

from aot_model.memory import Block, Overlap, Placement, Pool, plan, verify

_ALGORITHMS = ("greedy", "best-fit", "local-search", "auto", "optimal")


def _chain(count: int, seed: int, align: int = 16) -> list[Block]:
    sizes = random.Random(seed)
    return [Block(f"layer{n:04}", sizes.randrange(1, 10_000), align, n, n + 1) for n in range(count)]


def _mobilenet(pixels: int) -> tuple[list[Block], list[Overlap]]:
    """Pointwise up, depthwise, pointwise down and a residual in place, in blocks whose images become
    smaller.
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
    """x feeds two branches that are added: at the widest step x, one branch and the other's input are
    live.
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


def test_mobilenet_is_close_to_the_bound() -> None:
    blocks, overlaps = _mobilenet(96)
    result = plan(blocks, overlaps)
    verify(result.offsets, blocks, overlaps)
    assert result.distance() <= 0.05
