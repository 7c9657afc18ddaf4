"""From a Program to addresses: live ranges of its buffers, what they may share, and the planner's answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from aot_model.errors import fail
from aot_model.ir.program import Access, Branch, Buffer, Call, Loop, Once, Program, Role, Step
from aot_model.ir.program import Overlap as CallOverlap
from aot_model.ir.types import MAX_BYTES
from aot_model.memory import (
    Algorithm,
    Block,
    MemoryPlan,
    Overlap,
    Placement,
    PlanError,
    Pool,
    View,
    algorithm_names,
    around,
    plan,
)

TRIES = 3
"""Plans with one output more that does not take the place of its input."""
PLANNED = (Role.WORKSPACE, Role.STATE)


@dataclass(frozen=True)
class Addresses:
    """Where every planned buffer is: (pool, byte offset), and the plan with its sizes and lower bound."""

    of: Mapping[Buffer, tuple[str, int]]
    plan: MemoryPlan
    pools: tuple[Pool, ...]
    live: Mapping[Buffer, tuple[int, int]]
    """First and last step at which each planned buffer holds data."""


@dataclass
class _Range:
    first: int
    last: int
    written_first: bool = False
    """What is not is there when a turn of a loop begins."""


def plan_memory(
    program: Program,
    pools: tuple[Pool, ...] = (Pool("workspace"),),
    *,
    io_in_workspace: bool = False,
    algorithm: str | None = None,
    processor: str = "",
    kept: Mapping[Buffer, tuple[str, int]] | None = None,
) -> Addresses:
    """Offsets of all buffers. CompileError E401 with a table when they do not fit in the pools, or when all
    pools together are larger than a program may have.

    processor: name of the target that computes what no other has taken over.
    kept: addresses that buffers have and keep; the others go into the gaps.
    """
    planned = set(PLANNED) | ({Role.INPUT, Role.OUTPUT} if io_in_workspace else set())
    ranges: dict[Buffer, _Range] = {}
    order: list[tuple[int, Call]] = []
    end = _visit(program.body, 1, ranges, order)
    for buffer in (*program.inputs, *program.states):
        _touch(ranges, buffer, 0)
    for buffer in (*program.outputs, *program.states):
        _touch(ranges, buffer, end)
    chosen = [b for b in ranges if b.root()[0].role in planned]
    parents = {b.root()[0] for b in chosen} - set(chosen)
    for parent in parents:
        # Its windows live as long as they are used; the parent itself is needed when the last of them is
        # written.
        born = max(ranges[b].first for b in chosen if b.root()[0] is parent)
        ranges[parent] = _Range(born, born)
    every = [*chosen, *sorted(parents, key=lambda b: (ranges[b].first, b.name))]
    ids = {
        b: f"{k:05d} {b.name}"
        for k, b in enumerate(sorted(every, key=lambda b: (ranges[b].first, ranges[b].last, -b.nbytes)))
    }
    allowed = _allowed(order, every, pools, processor)
    blocks = [Block(ids[b], b.nbytes, b.align, ranges[b].first, ranges[b].last, allowed[b]) for b in every]
    views = [View(ids[b], ids[b.root()[0]], b.root()[1]) for b in every if b.view_of is not None]
    same = _same_address(order, ranges, allowed)
    _check(algorithm)
    how: list[str | Algorithm] = [algorithm] if algorithm else []
    if kept is not None:
        same = {late: early for late, early in same.items() if kept.get(late) == kept.get(early)}
        how = [around({ids[b]: Placement(*place) for b, place in kept.items() if b in ids})]

    overlaps = _overlaps(order, ids, same)

    def answered(in_place: dict[Buffer, Buffer]) -> MemoryPlan:
        own = [View(ids[late], ids[early], 0) for late, early in in_place.items()]
        return plan(blocks, overlaps, [*views, *own], pools, *how)

    try:
        answer = answered(same)
        if len(pools) == 1 and kept is None:
            answer = _apart(answer, same, answered)
    except PlanError as error:
        raise fail(
            "E401", str(error), hint="give the pool more bytes, or another pool to spill into"
        ) from None
    total = sum(answer.pool_sizes.values())
    if total > MAX_BYTES:
        raise fail(
            "E401",
            f"{total:,} bytes of memory, {MAX_BYTES:,} are the most that a program may have\n"
            f"{answer.report().rstrip()}",
            hint="make the input smaller",
        )
    of = {b: (answer.offsets[ids[b]].pool, answer.offsets[ids[b]].offset) for b in every}
    return Addresses(of, answer, pools, {b: (ranges[b].first, ranges[b].last) for b in every})


def _apart(
    answer: MemoryPlan, same: dict[Buffer, Buffer], answered: Callable[[dict[Buffer, Buffer]], MemoryPlan]
) -> MemoryPlan:
    """A smaller plan, where there is one, in which some outputs do not take the place of their inputs: what
    comes before and after may want the two at ends of the memory.

    The bound remains that of all in place: no other choice has fewer bytes live at any step.
    """
    best, kept = answer, dict(same)

    def bytes_of(plan: MemoryPlan) -> int:
        return sum(plan.pool_sizes.values())

    for late in sorted(same, key=lambda b: -b.nbytes)[:TRIES]:
        if bytes_of(best) == answer.lower_bound:
            break
        if late.nbytes + same[late].nbytes >= bytes_of(best):
            continue
        fewer = {other: early for other, early in kept.items() if other is not late}
        try:
            found = answered(fewer)
        except PlanError:  # the pool has a size
            continue
        if bytes_of(found) < bytes_of(best):
            best, kept = found, fewer
    if best is answer:
        return answer
    pools = {name: replace(pool, bound=answer.pools[name].bound) for name, pool in best.pools.items()}
    return replace(answer, offsets=best.offsets, pools=pools, proved=bytes_of(best) == answer.lower_bound)


def _allowed(
    order: list[tuple[int, Call]], buffers: list[Buffer], pools: tuple[Pool, ...], processor: str
) -> dict[Buffer, tuple[str, ...]]:
    """Pools for each buffer, the most preferred first: open to every target that touches it or a window of
    its memory.
    """
    touched: dict[Buffer, dict[str, None]] = {}
    for _, call in order:
        for argument in call.arguments:
            touched.setdefault(argument.root()[0], {})[call.target or processor] = None
    ranked = sorted(pools, key=lambda p: -p.speed)
    result = {}
    for buffer in buffers:
        by = touched.get(buffer.root()[0], {})
        result[buffer] = tuple(p.name for p in ranked if not p.targets or all(t in p.targets for t in by))
        if not result[buffer]:
            table = "\n".join(f"  {p.name}: open to {', '.join(p.targets)}" for p in ranked)
            raise fail(
                "E401",
                f"no pool is open to all targets that touch '{buffer.name}' ({', '.join(by)})\n{table}",
                hint="open a pool to them with --pool-targets",
            )
    return result


def _check(algorithm: str | None) -> None:
    """CompileError E501 for unknown planners."""
    if algorithm is not None and algorithm not in algorithm_names():
        raise fail(
            "E501", f"unknown memory planner '{algorithm}'", hint=f"there are {', '.join(algorithm_names())}"
        )


def step_numbers(program: Program) -> dict[Call, int]:
    """The step of each call, in which Addresses.live counts."""
    order: list[tuple[int, Call]] = []
    _visit(program.body, 1, {}, order)
    return {call: at for at, call in order}


def live_bytes(program: Program, addresses: Addresses) -> list[tuple[int, int]]:
    """(step, bytes of all pools that hold data) for each call in program order; shared bytes count once."""
    order: list[tuple[int, Call]] = []
    _visit(program.body, 1, {}, order)
    pending = sorted(
        ((first, last, (*addresses.of[b], b.nbytes)) for b, (first, last) in addresses.live.items()),
        reverse=True,
    )
    live: list[tuple[int, tuple[str, int, int]]] = []
    """Of the step at hand: (last step, place and size)."""
    result = []
    for at, _ in order:  # steps rise
        while pending and pending[-1][0] <= at:
            live.append(pending.pop()[1:])
        live = [one for one in live if one[0] >= at]
        result.append((at, _occupied(span for _, span in live)))
    return result


def _occupied(places: Iterable[tuple[str, int, int]]) -> int:
    """Length of the union of (pool, offset, size)."""
    spans = sorted(places)
    total, ends = 0, dict[str, int]()
    for pool, offset, size in spans:
        begin = max(offset, ends.get(pool, 0))
        ends[pool] = max(begin, offset + size)
        total += ends[pool] - begin
    return total


def _touch(ranges: dict[Buffer, _Range], buffer: Buffer, step: int, write: bool = False) -> None:
    found = ranges.get(buffer)
    if found is None:
        ranges[buffer] = _Range(step, step, write)
    else:
        found.first, found.last = min(found.first, step), max(found.last, step)


def _visit(steps: list[Step], at: int, ranges: dict[Buffer, _Range], order: list[tuple[int, Call]]) -> int:
    """Number the steps and note who is touched where; the number after the last step."""
    for step in steps:
        if isinstance(step, Call):
            for param, buffer in zip(step.function.params, step.arguments, strict=True):
                _touch(ranges, buffer, at, param.access is not Access.READ)
            order.append((at, step))
            at += 1
        elif isinstance(step, Once):
            at = _visit([step.call], at, ranges, order)
        elif isinstance(step, Branch):
            _touch(ranges, step.condition, at)
            at = _visit(step.then, at + 1, ranges, order)
            at = _visit(step.otherwise, at, ranges, order)
        else:
            at = _loop(step, at, ranges, order)
    return at


def _loop(step: Loop, at: int, ranges: dict[Buffer, _Range], order: list[tuple[int, Call]]) -> int:
    """What is touched inside and outside of a loop, or read before it is written inside, lives as long as the
    loop.
    """
    begin = at
    if step.limit_from is not None:
        _touch(ranges, step.limit_from, begin)
    for buffer in (step.condition, step.counter, *step.kept):
        if buffer is not None:
            _touch(ranges, buffer, begin, True)
    inner: dict[Buffer, _Range] = {}
    at = _visit(step.body, at + 1, inner, order)
    for buffer in (step.condition, step.counter):
        if buffer is not None:
            _touch(ranges, buffer, at)
    for buffer, span in inner.items():
        whole = buffer in ranges or not span.written_first or buffer.view_of is not None
        _touch(ranges, buffer, begin if whole else span.first, span.written_first)
        _touch(ranges, buffer, at if whole else span.last)
    return at + 1


def _same_address(
    order: list[tuple[int, Call]], ranges: dict[Buffer, _Range], planned: Mapping[Buffer, tuple[str, ...]]
) -> dict[Buffer, Buffer]:
    """Outputs that take the very place of an input that dies: overlaps with a step, which hold at distance
    0.
    """
    result: dict[Buffer, Buffer] = {}
    taken: set[Buffer] = set()
    """By one result each: a call may permit it to several."""
    for at, call in order:
        for overlap in call.overlaps:
            early, late = call.arguments[overlap.input], call.arguments[overlap.output]
            if (
                overlap.step == 1
                or overlap.slack < 0
                or not _alone(call, overlap)
                or early not in planned
                or late not in planned
                or late in result
                or early in taken
                or planned[early] != planned[late]
            ):
                continue
            dies = (
                ranges[early].last == at == ranges[late].first
                and late.nbytes <= early.nbytes
                and late.align <= early.align
            )
            alone = all(
                b is early or b.root()[0] is not early.root()[0] or ranges[b].last < at for b in planned
            )
            whole = all(b.root()[0] is not late or ranges[b].first >= at for b in planned)
            if dies and alone and whole and late.view_of is None and late.role is Role.WORKSPACE:
                result[late] = early
                taken.add(early)
    return result


def _overlaps(
    order: list[tuple[int, Call]], ids: dict[Buffer, str], same: Mapping[Buffer, Buffer]
) -> list[Overlap]:
    """Permissions of the calls. Those of pairs of which one does not die where the other is born are void.

    same: results that take the place of an input, over which no other result may lie then.
    """
    found = []
    taken = {early: late for late, early in same.items()}
    for _, call in order:
        for overlap in call.overlaps:
            early, late = call.arguments[overlap.input], call.arguments[overlap.output]
            free = taken.get(early, late) is late
            if overlap.step == 1 and free and early in ids and late in ids and _alone(call, overlap):
                found.append(Overlap(ids[early], ids[late], overlap.slack))
    return found


def _alone(call: Call, overlap: CallOverlap) -> bool:
    """Whether the overlapped input is read through one parameter only: a convolution whose residual is its
    own input may not write over it, although the residual alone could be overwritten."""
    owner = call.arguments[overlap.input].root()[0]
    others = (k for k in range(len(call.arguments)) if k not in (overlap.input, overlap.output))
    return all(call.arguments[k].root()[0] is not owner or _same_place(call, overlap, k) for k in others)


def _same_place(call: Call, overlap: CallOverlap, other: int) -> bool:
    """Whether the other parameter is the same buffer with a permission of at least the same reach."""
    permitted = (
        o for o in call.overlaps if o.input == other and o.output == overlap.output and o.step == overlap.step
    )
    return call.arguments[other] is call.arguments[overlap.input] and any(
        o.slack >= overlap.slack for o in permitted
    )
