"""Kernels that wish for room get what the plan leaves: never more memory than without, unless speed is asked
for, and then within the limit and the budget; and the faster kernels are there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aot_model.emit.budgets import Budgets
from aot_model.emit.view import Options
from aot_model.frontends.model import Model
from aot_model.ir.graph import Graph, Node
from aot_model.ir.program import Access, Buffer, Program, Role
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.base import KernelCode, Scratch
from aot_model.kernels.int8 import depthwise_mve
from aot_model.kernels.target import Target
from aot_model.lowering import room
from aot_model.memory import Pool
from aot_model.ops.convolution import Convolution
from aot_model.ops.pool import Pool as Pooling
from aot_model.ops.registry import Build, load_all
from aot_model.ops.requantise import Requantise
from aot_model.pipeline import Compiled, Request, compile_graph
from aot_model.targets.registry import parse_target

Network = Callable[[], Graph]


def network(sizes: tuple[int, ...] = (16, 16, 32, 32), edge: int = 16) -> Graph:
    """3x3 convolutions, one after the other."""
    load_all()
    rng = np.random.default_rng(5)
    x = Value("x", TensorType(DType.INT8, (1, edge, edge, sizes[0])))
    graph = Graph("net", [x])
    build = Build(graph.nodes, "net")
    y = x
    for ins, outs in itertools.pairwise(sizes):
        w = build.constant(rng.integers(-127, 128, (outs, 3, 3, ins)).astype(np.int8))
        sums = build(Convolution(pads=(1, 1, 1, 1), x_zero_point=3), y, w)
        m, s = build.constant(np.full(outs, 2**30, np.int32)), build.constant(np.full(outs, -10, np.int32))
        y = build(Requantise(3, -128, 127, DType.INT8, "double"), sums, m, s)
    y.name = "y"
    graph.outputs = [y]
    return graph


def compiled(
    optimize: str,
    budget: int | None = None,
    pool: int | None = None,
    make: Network = network,
    memory: str | None = None,
    io: str = "workspace",
) -> Compiled:
    options = {"optimize": optimize} | ({} if memory is None else {"memory": memory})
    request = Request(Path("net.onnx"), "net", "cortex-m4", options, library=Options(io=io),
                      budgets=Budgets(ram=budget), pools=(Pool("workspace", size=pool),))  # fmt: skip
    return compile_graph(request, Model(make(), (), ""), parse_target("cortex-m4", options))


def winograds(made: Compiled) -> int:
    return made.texts["net.c"].count("F(4x4, 3x3) in whole numbers")


@pytest.fixture(scope="module")
def plain() -> int:
    """Bytes of the workspace without wishes."""
    made = compiled("size")
    assert winograds(made) == 0
    return made.view.workspace_size


def test_the_default_needs_no_more_memory(plain: int) -> None:
    assert compiled("balanced").view.workspace_size <= plain


def test_speed_takes_what_it_is_allowed(plain: int) -> None:
    made = compiled("speed")
    assert winograds(made) >= 1
    assert plain < made.view.workspace_size <= room.SPEED * plain


def test_within_a_budget(plain: int) -> None:
    fast = compiled("speed").view.workspace_size
    for budget in (plain, (plain + fast) // 2, fast):
        assert compiled("speed", budget).view.workspace_size <= budget
    assert winograds(compiled("speed", plain)) <= winograds(compiled("speed", fast))


def test_pools_of_fixed_sizes_are_respected(plain: int) -> None:
    assert compiled("speed", pool=plain).view.workspace_size <= plain


def test_where_an_early_layer_holds_the_peak_later_ones_get_the_room(plain: int) -> None:
    make = partial(network, (16, 64, 16, 16), 16)
    made = compiled("balanced", make=make)
    assert winograds(made) >= 1
    assert made.view.workspace_size <= compiled("size", make=make).view.workspace_size


def pointwise(edge: int = 16, wide: int = 64) -> Graph:
    """1x1 convolutions, each of more channels than the next."""
    load_all()
    rng = np.random.default_rng(6)
    x = Value("x", TensorType(DType.INT8, (1, edge, edge, wide)))
    graph = Graph("net", [x])
    build = Build(graph.nodes, "net")
    y = x
    for ins, outs in ((wide, wide), (wide, wide // 2), (wide // 2, wide // 2)):
        w = build.constant(rng.integers(-127, 128, (outs, 1, 1, ins)).astype(np.int8))
        sums = build(Convolution(x_zero_point=3), y, w)
        m, s = build.constant(np.full(outs, 2**30, np.int32)), build.constant(np.full(outs, -10, np.int32))
        y = build(Requantise(3, -128, 127, DType.INT8, "double"), sums, m, s)
    y.name = "y"
    graph.outputs = [y]
    return graph


def copies(made: Compiled) -> list[int]:
    """Bytes of weights that layers copy to RAM."""
    return [
        b.nbytes
        for call in made.view.program.calls()
        for p, b in zip(call.function.params, call.arguments, strict=True)
        if p.name == "staged"
    ]


def test_weights_are_copied_where_flash_is_slow_and_there_is_room() -> None:
    plain = compiled("balanced", make=pointwise)
    for memory in (None, "0ws", "tcm"):
        assert not copies(compiled("balanced", make=pointwise, memory=memory))
    slow = compiled("balanced", make=pointwise, memory="l4-art")
    # the first layer needs all the memory that there is; where results are smaller there is room
    assert copies(slow) and slow.view.workspace_size <= plain.view.workspace_size
    fast = compiled("speed", make=pointwise, memory="l4-art")
    assert sum(copies(fast)) > sum(copies(slow))
    assert plain.view.workspace_size < fast.view.workspace_size <= room.SPEED * plain.view.workspace_size
    middle = (plain.view.workspace_size + fast.view.workspace_size) // 2
    budget = compiled("speed", middle, make=pointwise, memory="l4-art")
    assert budget.view.workspace_size <= middle and sum(copies(slow)) < sum(copies(budget))


def separable(layers: int = 4, wide: int = 64) -> Graph:
    """A convolution of one channel, then depthwise and pointwise ones of which each needs the same memory."""
    load_all()
    rng = np.random.default_rng(7)
    x = Value("x", TensorType(DType.FLOAT32, (1, 49, 10, 1)))
    graph = Graph("net", [x])
    build = Build(graph.nodes, "net")

    def weights(*sizes: int) -> Value:
        return build.constant(rng.standard_normal((wide, *sizes)).astype(np.float32))

    y = build(Convolution(strides=(2, 2), pads=(4, 1, 5, 1)), x, weights(10, 4, 1))
    for _ in range(layers):
        y = build(Convolution(pads=(1, 1, 1, 1), group=wide), y, weights(3, 3, 1))
        y = build(Convolution(), y, weights(1, 1, wide))
    y = build(Pooling("average", (25, 5), (1, 1), (0, 0, 0, 0), (1, 1)), y)
    y.name = "y"
    graph.outputs = [y]
    return graph


def test_gaps_of_the_plan_hold_copies_where_no_other_plan_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A depthwise layer writes a row before what it reads, so that what is free lies at both ends. Here no
    call is given room by the search for another plan.
    """

    def of_floats() -> tuple[Compiled, dict[str, tuple[str, int]], int]:
        """What was made, where its tensors lie, bytes of weights that are copied."""
        made = compiled("balanced", make=separable, memory="l4-art", io="caller")
        places = {
            b.name: made.view.addresses.of[b]
            for call in made.view.program.calls()
            for b in call.buffers(Access.READ, Access.WRITE)
            if b in made.view.addresses.of
        }
        return (
            made,
            places,
            sum(
                b.nbytes
                for call in made.view.program.calls()
                for b in call.buffers(Access.SCRATCH)
                if b.name.endswith("_copied")
            ),
        )

    monkeypatch.setattr(room, "_live", lambda lowered: dict.fromkeys(lowered.program.calls(), 10**6))
    found, places, bytes_copied = of_floats()
    monkeypatch.setattr(room, "_in_gaps", lambda graph, target, least, *rest: least)
    plain, places_of_plain, none = of_floats()
    assert bytes_copied > 0 == none
    assert places == places_of_plain and found.view.workspace_size == plain.view.workspace_size


@pytest.mark.parametrize("optimize", ["balanced", "speed"])
def test_a_wish_that_is_gone_with_room(optimize: str, plain: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that says no more what its call is, once it has what it wished for, goes without."""
    lower = room.lower
    monkeypatch.setattr(room, "_live", lambda lowered: dict.fromkeys(lowered.program.calls(), 0))
    attempts = []

    def silent(graph: Graph, target: Target, rooms: dict[Node, int]) -> Program:
        program = lower(graph, target, rooms)
        attempts.append(len(rooms))
        program.wishes.clear()
        return program

    monkeypatch.setattr(room, "lower", silent)
    assert compiled(optimize).view.workspace_size <= room.SPEED * plain and attempts[0] > 0


@pytest.mark.parametrize("given", [None, 0, 150, 5010, 5200])
def test_a_choice_among_three_has_a_wish_with_room_and_without(given: int | None) -> None:
    small, large, larger = (
        KernelCode("", scratch=(Scratch("s", size),), note=str(size)) for size in (100, 5000, 5010)
    )
    first = depthwise_mve.with_room(large, small, given)
    second = depthwise_mve.with_room(larger, first, given)
    assert (first.wish, second.wish) == (5000, 5010)
    assert second.note == ("100" if (given or 0) < 5000 else "5010")


def test_the_same_program_every_time() -> None:
    assert compiled("speed").texts == compiled("speed").texts


@pytest.mark.parametrize(
    ("kept", "most", "moved"),
    [
        (None, 16, False),
        (None, 15, True),
        (("arena", 12), 16, False),
        (("arena", 8), 16, True),
        (("b", 12), 16, True),
    ],
)
def test_buffers_that_end_at_the_limit_are_where_they_were(
    kept: room.Place | None, most: int, moved: bool
) -> None:
    """Four bytes from the twelfth on."""
    buffer = Buffer("b", TensorType(DType.INT8, (4,)), Role.WORKSPACE)
    found: Any = SimpleNamespace(addresses=SimpleNamespace(of={buffer: ("arena", 12)}))
    assert room._moved(found, {} if kept is None else {buffer: kept}, buffer, most) is moved
    other = Buffer("c", TensorType(DType.INT8, (4,)), Role.CONSTANT)
    assert not room._moved(found, {}, other, 0), "it has no place"
