"""From programs to addresses: how long buffers live, and which may lie over each other. Sizes by hand: bytes
that must be there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from memory_oracle import IN_PLACE

from aot_model.errors import CompileError
from aot_model.ir.program import (
    Access,
    Branch,
    Buffer,
    Call,
    Function,
    Loop,
    Once,
    Overlap,
    Param,
    Program,
    Role,
    Step,
)
from aot_model.ir.types import DType, TensorType
from aot_model.lowering.memory_plan import Addresses, live_bytes, plan_memory, step_numbers
from aot_model.memory import Pool


def bytes_(name: str, size: int, role: Role = Role.WORKSPACE, align: int = 1) -> Buffer:
    return Buffer(name, TensorType(DType.INT8, (size,)), role, align=align)


def window(of: Buffer, begin: int, size: int) -> Buffer:
    return Buffer(
        f"{of.name}+{begin}", TensorType(DType.INT8, (size,)), Role.WORKSPACE, align=1, view_of=(of, begin)
    )


def call(
    reads: Sequence[Buffer] = (),
    writes: Sequence[Buffer] = (),
    *overlaps: tuple[int, int, int],
    scratch: Sequence[Buffer] = (),
    target: str = "",
) -> Call:
    """overlaps: (number of an input, slack, step) of the first output."""
    every = [(b, Access.READ) for b in reads]
    every += [(b, Access.WRITE) for b in writes] + [(b, Access.SCRATCH) for b in scratch]
    params = tuple(Param(f"p{k}", DType.INT8, access) for k, (_, access) in enumerate(every))
    over = tuple(Overlap(k, len(reads), slack, step) for k, slack, step in overlaps)
    return Call(Function("f", params, ""), tuple(b for b, _ in every), over, target=target)


def program(*body: Step, inputs: Sequence[Buffer] = (), outputs: Sequence[Buffer] = ()) -> Program:
    return Program("p", list(inputs), list(outputs), list(body))


def total(*body: Step, pools: tuple[Pool, ...] = (Pool("workspace"),), **ends: Sequence[Buffer]) -> int:
    """Bytes, with inputs and outputs."""
    found = plan_memory(program(*body, **ends), pools, io_in_workspace=True)
    return sum(found.plan.pool_sizes.values())


X, Y = bytes_("x", 10, Role.INPUT), bytes_("y", 7, Role.OUTPUT)
A, B, C, D = (bytes_(name, size) for name, size in (("a", 100), ("b", 200), ("c", 400), ("d", 800)))
TWIN, OTHER = bytes_("twin", 100), bytes_("other", 100)
WORDS = bytes_("words", 100, align=4)
FLAG = bytes_("flag", 1)
START, HALF = window(B, 0, 100), window(B, 100, 100)

SIZES: dict[str, tuple[list[Step], int]] = {
    "what is read later is there": ([call([], [A]), call([], [B]), call([A, B], [C])], 700),
    "what is not read again is gone": ([call([], [A]), call([A], [B]), call([B], [C])], 600),
    "scratch is there beside what a call reads and writes": (
        [call([], [A]), call([A], [B], scratch=[C]), call([B], [FLAG])],
        700,
    ),
    "a call that permits it writes over what it reads": (
        [call([], [A]), call([A], [TWIN], (0, 0, 1)), call([TWIN], [FLAG])],
        101,
    ),
    "as far before it as it must": (
        [call([], [A]), call([A], [TWIN], (0, -16, 1)), call([TWIN], [FLAG])],
        116,
    ),
    "in its very place": (
        [call([], [A]), call([A], [TWIN], (0, 0, IN_PLACE)), call([TWIN], [FLAG])],
        101,
    ),
    "a distance that is no place": (
        [call([], [A]), call([A], [TWIN], (0, -16, IN_PLACE)), call([TWIN], [FLAG])],
        200,
    ),
    "what is read again is not written over": (
        [call([], [A]), call([A], [TWIN], (0, 0, 1)), call([A, TWIN], [FLAG])],
        201,
    ),
    "nor by what takes its place": (
        [call([], [A]), call([A], [TWIN], (0, 0, IN_PLACE)), call([A, TWIN], [FLAG])],
        201,
    ),
    "what has begun takes no place": (
        [call([], [A]), call([], [TWIN]), call([A], [TWIN], (0, 0, IN_PLACE)), call([TWIN], [FLAG])],
        200,
    ),
    "a smaller one takes a place": (
        [call([], [B]), call([B], [A], (0, 0, IN_PLACE)), call([A], [C])],
        500,
    ),
    "a larger one does not": ([call([], [A]), call([A], [B], (0, 0, IN_PLACE)), call([B], [FLAG])], 300),
    "one that needs words takes no place of bytes": (
        [call([], [A]), call([A], [WORDS], (0, 0, IN_PLACE)), call([WORDS], [FLAG])],
        200,
    ),
    "bytes take the place of words": (
        [call([], [WORDS]), call([WORDS], [A], (0, 0, IN_PLACE)), call([A], [FLAG])],
        101,
    ),
    "of two that die one gives its place": (
        [call([], [A]), call([], [OTHER]),
         call([A, OTHER], [TWIN], (0, 0, IN_PLACE), (1, 0, IN_PLACE)), call([TWIN], [FLAG])],
        200,
    ),
    "the second of two, where the first is read again": (
        [call([], [A]), call([], [OTHER]),
         call([A, OTHER], [TWIN], (0, 0, IN_PLACE), (1, 0, IN_PLACE)), call([TWIN, A], [FLAG])],
        201,
    ),
    "an input that is read through two parameters stays": (
        [call([], [A]), call([A, A], [TWIN], (0, 0, 1)), call([TWIN], [FLAG])],
        200,
    ),
    "nor is its place taken": (
        [call([], [A]), call([A, A], [TWIN], (0, 0, IN_PLACE)), call([TWIN], [FLAG])],
        200,
    ),
    "unless both permit it": (
        [call([], [A]), call([A, A], [TWIN], (0, 0, 1), (1, 0, 1)), call([TWIN], [FLAG])],
        101,
    ),
    "by the smaller of both distances": (
        [call([], [A]), call([A, A], [TWIN], (0, -32, 1), (1, -16, 1)), call([TWIN], [FLAG])],
        132,
    ),
    "not if one permits its very place and the other a distance": (
        [call([], [A]), call([A, A], [TWIN], (0, 0, IN_PLACE), (1, 0, 1)), call([TWIN], [FLAG])],
        200,
    ),
    "nor if the other parameter is a window of it": (
        [call([], [B]), call([B, HALF], [A], (0, 0, 1), (1, 0, 1)), call([A], [FLAG])],
        300,
    ),
    "a window gives its place when the rest is not read again": (
        [call([], [B]), call([HALF], [A], (0, 0, IN_PLACE)), call([A], [TWIN]), call([TWIN], [FLAG])],
        200,
    ),
    "and not when another window is": (
        [call([], [B]), call([HALF], [A], (0, 0, IN_PLACE)), call([A, START], [FLAG])],
        300,
    ),
    "pieces and windows without anybody who reads the whole": (
        [call([], [START], scratch=[A]), call([], [HALF]), call([window(B, 50, 100)], [FLAG])],
        201,
    ),
    "a piece takes no place, since it has one": (
        [call([], [HALF]), call([], [A]), call([A], [START], (0, 0, IN_PLACE)), call([B], [FLAG])],
        300,
    ),
    "a window takes the place of one of which the rest is gone": (
        [call([], [START]), call([], [HALF]), call([START], [FLAG]),
         call([HALF], [A], (0, 0, IN_PLACE), scratch=[bytes_("more", 150)])],
        250,
    ),
    "what is asked in every turn": ([Loop([Branch(FLAG, [call([], [A])], []), call([], [B])], 3)], 201),
    "a loop in a loop has a counter, and results, of a turn": (
        [Loop([Loop([call([], [B])], 9, counter=A, kept=(B,)), call([], [D])], 3)],
        800,
    ),
    "both ways of a branch": (
        [call([], [FLAG]), call([], [A]),
         Branch(FLAG, [call([], [B]), call([A, B], [OTHER])], [call([], [C]), call([A, C], [OTHER])]),
         call([OTHER], [TWIN])],
        600,
    ),
    "a condition until it is asked": (
        [call([], [FLAG]), call([], [A], scratch=[D]), Branch(FLAG, [call([A], [B])], [call([A], [B])])],
        901,
    ),
    "and no longer": (
        [call([], [D]), Branch(D, [call([], [C])], [call([], [C])]), call([C], [A])],
        800,
    ),
    "what a loop reads is there in every turn": (
        [call([], [A]), Loop([call([A], [B]), call([B], [FLAG]), call([FLAG], [C])], 3)],
        501,
    ),
    "what a turn writes before it reads is gone with it": (
        [Loop([call([], [A]), call([A], [B]), call([B], [C])], 3)],
        600,
    ),
    "what it reads of the turn before is there": (
        [Loop([call([A], [B]), call([B], [A]), call([], [C])], 3)],
        500,
    ),
    "a window of a turn is there as long as the loop": (
        [Loop([call([], [window(A, 0, 100)]), call([window(A, 0, 50)], [FLAG]), call([], [B])], 3)],
        300,
    ),
    "what is read behind a loop was there all the time": (
        [Loop([call([], [A]), call([], [B])], 3), call([A], [FLAG])],
        300,
    ),
    "a number of turns until the loop begins": (
        [call([], [FLAG]), call([], [A]), Loop([call([A], [B])], 9, limit_from=FLAG)],
        300,
    ),
    "a number of turns in each turn around": (
        [Loop([Loop([call([], [A])], 9, limit_from=FLAG), call([], [B])], 3)],
        201,
    ),
    "a counter, a condition and results as long as the loop": (
        [Loop([call([], [C]), call([], [B])], 9, condition=FLAG, counter=A, kept=(B,))],
        701,
    ),
    "a counter and results are begun by the loop": (
        [call([], [D]), Loop([call([], [C]), call([], [B])], 9, condition=FLAG, counter=A, kept=(B,))],
        800,
    ),
    "a call that is made once": ([call([], [A]), Once(call([A], [B])), call([B], [C])], 600),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_bytes_that_are_there_at_once(name: str) -> None:
    body, size = SIZES[name]
    assert total(*body) == size


def test_inputs_are_there_from_the_beginning_and_outputs_until_the_end() -> None:
    body = [call([], [A]), call([A], [FLAG]), call([X, FLAG], [Y]), call([], [B])]
    assert total(*body, inputs=[X], outputs=[Y]) == 207
    assert total(*body[:3], inputs=[X], outputs=[Y]) == 111
    callers = plan_memory(program(*body, inputs=[X], outputs=[Y]))
    assert callers.plan.pool_sizes == {"workspace": 200} and not {X, Y} & callers.of.keys()
    assert callers.live == {A: (1, 2), FLAG: (2, 3), B: (4, 4)}


def test_an_input_that_nothing_reads_is_no_loss() -> None:
    assert total(call([], [A]), inputs=[X]) == 100


def test_what_the_caller_holds_gives_and_takes_no_place() -> None:
    given, result = bytes_("given", 100, Role.INPUT), bytes_("result", 100, Role.OUTPUT)
    for step in (1, IN_PLACE):
        body = [call([given], [A], (0, 0, step)), call([A], [result], (0, 0, step))]
        found = plan_memory(program(*body, inputs=[given], outputs=[result]))
        assert found.plan.pool_sizes == {"workspace": 100} and found.of.keys() == {A}


@pytest.mark.parametrize("step", [1, IN_PLACE])
def test_a_place_is_not_taken_where_that_is_smaller(step: int) -> None:
    """The first is longer than its result, which would begin where it does: too far from the end for the
    last two, side by side, where the third lies behind it. In two pools what takes a place keeps it.
    """
    a, b, c, d, e = (bytes_(name, size) for name, size in zip("abcde", (50, 20, 70, 50, 60), strict=True))
    over = (0, 0, step)
    body = [call([], [a]), call([a], [b], over), call([b], [c]), call([c], [d], over), call([d], [e])]
    found = plan_memory(program(*body)).plan
    assert found.pool_sizes == {"workspace": 110} and found.proved and found.lower_bound == 110
    two = 120 if step > 1 else 110
    assert total(*body, pools=(Pool("one"), Pool("two"))) == two


def test_states_are_there_all_the_time() -> None:
    state = bytes_("state", 5, Role.STATE)
    made = program(call([], [A]), call([A, state], [FLAG]), call([], [B]))
    made.states.append(state)
    assert plan_memory(made).plan.pool_sizes == {"workspace": 205}


def test_a_result_does_not_take_the_place_of_an_input_of_the_network() -> None:
    """Outputs are where they are named; they may lie over an input as far as a call permits it."""
    given, result = bytes_("given", 100, Role.INPUT), bytes_("result", 100, Role.OUTPUT)
    for step, size in ((1, 100), (IN_PLACE, 200)):
        assert total(call([given], [result], (0, 0, step)), inputs=[given], outputs=[result]) == size


def test_steps_and_bytes_of_each_call() -> None:
    first, second, third = call([], [A]), call([A], [B], scratch=[TWIN]), call([B], [C])
    made = program(first, Loop([second], 3), third)
    addresses = plan_memory(made)
    assert step_numbers(made) == {first: 1, second: 3, third: 5}
    assert live_bytes(made, addresses) == [(1, 100), (3, 400), (5, 600)]
    ways = program(Branch(FLAG, [first], [second]), third)
    assert step_numbers(ways) == {first: 2, second: 3, third: 4}
    assert addresses.live == {A: (1, 4), B: (3, 5), TWIN: (3, 3), C: (5, 5)}


def test_shared_bytes_count_once_in_each_pool() -> None:
    place = {A: ("fast", 0), TWIN: ("fast", 70), B: ("slow", 0), OTHER: ("slow", 130)}
    made = program(call([A, TWIN, B, OTHER]))
    addresses = plan_memory(made)
    found = Addresses(place, addresses.plan, addresses.pools, dict.fromkeys(place, (1, 1)))
    assert live_bytes(made, found) == [(1, 170 + 230)]


POOLS = (Pool("slow", targets=("cpu", "npu"), speed=1), Pool("fast", targets=("cpu",), speed=2))


def test_pools_are_open_to_all_that_touch_a_buffer() -> None:
    """The faster one is for what the processor alone touches; windows count for the whole."""
    body = [call([], [A]), call([A], [START]), call([A], [HALF], target="npu"), call([B], [TWIN])]
    found = plan_memory(program(*body), POOLS, processor="cpu")
    assert {b.name: found.of[b][0] for b in (A, B, TWIN)} == {"a": "slow", "b": "slow", "twin": "fast"}
    with pytest.raises(CompileError, match=r"'a' \(gpu, npu\)"):
        plan_memory(program(call([], [A], target="gpu"), call([A], [B], target="npu")), POOLS)


def test_a_place_in_another_pool_is_not_taken() -> None:
    body = [call([], [A], target="npu"), call([A], [TWIN], (0, 0, IN_PLACE)), call([TWIN], [OTHER])]
    found = plan_memory(program(*body), POOLS, processor="cpu")
    assert found.of[A][0] == "slow" and found.of[TWIN][0] == "fast"


def test_places_that_are_kept_are_not_given_away() -> None:
    """A result lies where it is kept, in the place of its input or not."""
    body = [call([], [A]), call([A], [TWIN], (0, 0, IN_PLACE)), call([TWIN], [OTHER])]
    where: Callable[[int, int], dict[Buffer, tuple[str, int]]] = lambda a, twin: {  # noqa: E731
        A: ("workspace", a),
        TWIN: ("workspace", twin),
        D: ("workspace", 0),
    }
    for places in ((0, 0), (300, 300), (0, 100), (100, 0)):
        found = plan_memory(program(*body), kept=where(*places))
        assert (found.of[A][1], found.of[TWIN][1]) == places
