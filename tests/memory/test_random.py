"""Random instances against a byte-by-byte simulation and an exhaustive search."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_oracle import Instance, faults, instances, smallest

from aot_model.memory import Block, Placement, PlanError, Pool, around, plan, verify
from aot_model.memory.bodies import Body, problem
from aot_model.memory.layout import Fit, lowest, outermost, tightest
from aot_model.memory.planner import ALGORITHMS

_RUNS = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@_RUNS
@given(instance=instances())
def test_every_plan_is_safe_and_not_below_the_bound(algorithm: str, instance: Instance) -> None:
    result = plan(instance.blocks, instance.overlaps, instance.views, algorithm=algorithm)
    verify(result.offsets, instance.blocks, instance.overlaps, instance.views)
    assert faults(instance, result.offsets) == []
    assert result.pool_sizes["workspace"] >= result.lower_bound
    assert result.distance() >= 0


@_RUNS
@given(instance=instances(), size=st.integers(1, 24), step=st.integers(0, 8))
def test_blocks_stay_where_they_are_and_others_go_into_gaps(instance: Instance, size: int, step: int) -> None:
    before = plan(instance.blocks, instance.overlaps, instance.views)
    more = replace(instance, blocks=(*instance.blocks, Block("more", size, 4, step, step)))
    after = plan(more.blocks, more.overlaps, more.views, algorithm=around(before.offsets))
    assert faults(more, after.offsets) == []
    real = [block.id for block in instance.blocks if block.size]
    assert [after.offsets[name] for name in real] == [before.offsets[name] for name in real]


@_RUNS
@given(instance=instances(), seed=st.integers(0, 1000))
def test_blocks_that_may_not_stay_are_moved(instance: Instance, seed: int) -> None:
    choice = random.Random(seed)
    anywhere = {block.id: Placement("workspace", choice.randrange(0, 24)) for block in instance.blocks}
    result = plan(instance.blocks, instance.overlaps, instance.views, algorithm=around(anywhere))
    assert faults(instance, result.offsets) == []


@_RUNS
@given(instance=instances(most=6, largest=6, steps=4, aligns=(1, 2, 4), slack=4, with_views=False))
def test_optimal_equals_exhaustive_search(instance: Instance) -> None:
    result = plan(instance.blocks, instance.overlaps, algorithm="optimal")
    least = smallest(problem(instance.blocks, instance.overlaps, (), instance.pools))
    assert least >= result.lower_bound
    if result.proved:
        assert result.pool_sizes["workspace"] == least
    else:
        assert any(overlap.slack > 0 for overlap in instance.overlaps)


@_RUNS
@given(instance=instances(most=6, largest=6, steps=4, aligns=(1,), slack=4))
def test_optimal_equals_exhaustive_search_with_views(instance: Instance) -> None:
    result = plan(instance.blocks, instance.overlaps, instance.views, algorithm="optimal")
    least = smallest(problem(instance.blocks, instance.overlaps, instance.views, instance.pools))
    assert result.proved
    assert result.pool_sizes["workspace"] == least


@_RUNS
@given(instance=instances(with_views=False), seed=st.integers(0, 1000))
def test_verify_rejects_what_the_simulation_rejects(instance: Instance, seed: int) -> None:
    """Without views the two say the same of any placement, right or wrong."""
    choice = random.Random(seed)
    placements = {
        block.id: Placement("workspace", choice.randrange(0, 8) * block.align) for block in instance.blocks
    }
    try:
        verify(placements, instance.blocks, instance.overlaps)
    except ValueError:
        assert faults(instance, placements)
    else:
        assert not faults(instance, placements)


@_RUNS
@given(instance=instances(), seed=st.integers(0, 1000))
def test_verify_with_views_never_accepts_what_the_simulation_rejects(instance: Instance, seed: int) -> None:
    choice = random.Random(seed)
    placements: dict[str, Placement] = {}
    parent = {view.child: view for view in instance.views}
    for block in instance.blocks:  # parents come first
        if block.id in parent:
            above = placements[parent[block.id].parent]
            placements[block.id] = Placement(above.pool, above.offset + parent[block.id].offset)
        else:
            placements[block.id] = Placement("workspace", choice.randrange(0, 8) * block.align)
    try:
        verify(placements, instance.blocks, instance.overlaps, instance.views)
    except ValueError:
        return
    assert not faults(instance, placements)


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@_RUNS
@given(instance=instances(), sizes=st.tuples(*[st.integers(0, 60)] * 2), data=st.data())
def test_limited_pools_are_kept(
    algorithm: str, instance: Instance, sizes: tuple[int, int], data: st.DataObject
) -> None:
    """Whatever the limits and candidates are: a plan that holds, or an error that names blocks without
    room.
    """
    pools = [
        Pool("fast", sizes[0]),
        Pool("middle", sizes[1]),
        Pool("slow", data.draw(st.sampled_from([None, 40]))),
    ]
    viewed = {name for view in instance.views for name in (view.child, view.parent)}
    orders: list[tuple[str, ...]] = [(), ("fast", "slow"), ("middle", "fast"), ("slow",)]
    blocks = [
        block if block.id in viewed else replace(block, pools=data.draw(st.sampled_from(orders)))
        for block in instance.blocks
    ]
    try:
        result = plan(blocks, instance.overlaps, instance.views, pools, algorithm)
    except PlanError as error:
        assert error.rows
        for row in error.rows:
            assert row.size > 0
            assert all(0 <= free <= (row.size if limit is None else limit) for _, limit, free in row.tried)
        return
    verify(result.offsets, blocks, instance.overlaps, instance.views, pools)
    assert faults(instance, result.offsets) == []
    assert all(pool.size >= pool.bound for pool in result.pools.values())
    assert sum(result.pool_sizes.values()) >= result.lower_bound


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
@_RUNS
@given(instance=instances(most=7), seed=st.integers(0, 1000))
def test_the_order_of_the_input_does_not_matter(algorithm: str, instance: Instance, seed: int) -> None:
    expected = plan(instance.blocks, instance.overlaps, instance.views, algorithm=algorithm)
    blocks, overlaps, views = list(instance.blocks), list(instance.overlaps), list(instance.views)
    choice = random.Random(seed)
    for items in (blocks, overlaps, views):
        choice.shuffle(items)  # type: ignore[arg-type]
    again = plan(blocks, overlaps, views, algorithm=algorithm)
    assert again == expected
    assert again.report() == expected.report()


@pytest.mark.parametrize("fit", [lowest, tightest, outermost])
def test_every_gap_is_one(fit: Fit) -> None:
    """Aligned as the body is, and inside of no interval; the lowest one where that is what is asked for."""
    choice = random.Random(5)
    for _ in range(3000):
        align = choice.choice((1, 2, 4, 8, 16))
        body = Body("b", choice.randint(1, 24), align, choice.randrange(align), (0,), (), ())
        spans = sorted((low, low + choice.randint(2, 20)) for low in choice.choices(range(-8, 60), k=4))
        offset = fit(spans, body, choice.randint(0, 80))
        free = [
            at for at in range(body.residue, 200, align) if not any(low < at < high for low, high in spans)
        ]
        assert offset in free
        assert fit is not lowest or offset == free[0]
