"""Drawn programs on a memory of bytes: what a call reads is what was written, in whatever turn or branch.

The simulation knows calls, loops, branches and windows, and nothing of live ranges or the planner: every
buffer has bytes of its own beside those at its address, and both must tell the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count

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
    Overlap,
    Param,
    Program,
    Role,
    Step,
)
from aot_model.ir.types import DType, TensorType
from aot_model.lowering.memory_plan import Addresses, plan_memory
from aot_model.memory import Pool

LARGEST = 12
RUNS = 3


def _span(buffer: Buffer) -> tuple[Buffer, range]:
    """The buffer that owns the memory, and the bytes in it."""
    owner, start = buffer.root()
    return owner, range(start, start + buffer.nbytes)


def _apart(buffers: Sequence[Buffer]) -> bool:
    """Whether no two of them have a byte in common: a program could not tell them apart."""
    bytes_ = [(id(owner), k) for owner, span in map(_span, buffers) for k in span]
    return len(set(bytes_)) == len(bytes_)


class _Drawn:
    """A program; each buffer is read only where it has been written on all ways that lead there."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.numbers = count()
        self.inputs = [self.buffer(Role.INPUT) for _ in range(self.rng.randint(1, 2))]
        self.states = [self.buffer(Role.STATE) for _ in range(self.rng.randint(0, 2))]
        self.outputs = [self.buffer(Role.OUTPUT) for _ in range(self.rng.randint(1, 2))]
        self.written = {*self.inputs, *self.states}
        body = self.steps(self.rng.randint(3, 9), 2)
        missing = [b for b in self.outputs if b not in self.written]
        body += [self.call(writes=[b]) for b in missing]
        self.program = Program("p", self.inputs, self.outputs, body, self.states)

    def buffer(self, role: Role = Role.WORKSPACE, size: int = 0) -> Buffer:
        kind = TensorType(DType.INT8, (size or self.rng.randint(1, LARGEST),))
        return Buffer(f"b{next(self.numbers)}", kind, role, align=self.rng.choice((1, 1, 2, 4, 8)))

    def window(self, of: Buffer) -> Buffer:
        begin = self.rng.randrange(of.nbytes)
        kind = TensorType(DType.INT8, (self.rng.randint(1, of.nbytes - begin),))
        return Buffer(f"b{next(self.numbers)}", kind, Role.WORKSPACE, align=1, view_of=(of, begin))

    def readable(self) -> list[Buffer]:
        return sorted(self.written, key=lambda b: int(b.name[1:]))

    def readers(self, most: int) -> list[Buffer]:
        """What a call reads, some of it through windows."""
        chosen = self.rng.choices(self.readable(), k=self.rng.randint(0, most))
        return [self.window(b) if self.rng.random() < 0.2 else b for b in chosen]

    def target(self) -> list[Buffer]:
        """A new result, an older one anew, or all pieces of a result, of which each is a result."""
        way = self.rng.random()
        old = [b for b in self.readable() if b.role is not Role.INPUT]
        if way < 0.2 and old:
            return [self.rng.choice(old)]
        if way < 0.3:
            return [self.rng.choice(self.outputs)]
        made = self.buffer()
        if way < 0.5 and made.nbytes > 1:
            made.align = 1
            cut = self.rng.randint(1, made.nbytes - 1)
            parts = [(0, cut), (cut, made.nbytes - cut)]
            pieces = [
                Buffer(
                    f"b{next(self.numbers)}", TensorType(DType.INT8, (n,)), Role.WORKSPACE, None, 1, (made, k)
                )
                for k, n in parts
            ]
            return [*pieces, made]
        return [made]

    def call(self, writes: Sequence[Buffer]) -> Call:
        reads = self.readers(3)
        while not _apart([*writes, *{id(b): b for b in reads}.values()][: len(writes)]) or any(
            not _apart([w, r]) for w in writes for r in reads
        ):
            reads = self.readers(3)
        scratch = [self.buffer()] if self.rng.random() < 0.3 else []
        every = [(b, Access.READ) for b in reads]
        every += [(b, Access.WRITE) for b in writes] + [(b, Access.SCRATCH) for b in scratch]
        params = tuple(Param(f"p{k}", DType.INT8, access) for k, (_, access) in enumerate(every))
        overlaps = tuple(
            Overlap(
                k, len(reads) + o, self.rng.choice((0, 0, 0, -1, -3, 2, 5)), self.rng.choice((1, 1, IN_PLACE))
            )
            for k in range(len(reads))
            for o in range(len(writes))
            if self.rng.random() < 0.7
        )
        self.written.update(writes)
        return Call(Function("f", params, ""), tuple(b for b, _ in every), overlaps)

    def steps(self, number: int, depth: int) -> list[Step]:
        result: list[Step] = []
        for _ in range(number):
            way = self.rng.random() if depth else 1.0
            if way < 0.15:
                result.append(self.loop(depth - 1))
            elif way < 0.3:
                result.append(self.branch(depth - 1))
            else:
                *pieces, whole = self.target()
                result += [self.call([piece]) for piece in pieces]
                self.written.add(whole)
                if not pieces:
                    second = [self.buffer()] if self.rng.random() < 0.3 else []
                    result.append(self.call([whole, *second]))
        return result

    def loop(self, depth: int) -> Loop:
        counter = self.buffer() if self.rng.random() < 0.4 else None
        limit_from, condition = (
            self.rng.choice(self.readable()) if self.rng.random() < 0.4 else None for _ in range(2)
        )
        before = set(self.written)
        self.written |= {counter} - {None}  # type: ignore[arg-type]
        body = self.steps(self.rng.randint(1, 5), depth)
        if condition is not None or limit_from is not None:
            self.written = before  # there may be no turn
        return Loop(body, 3, limit_from, condition, counter)

    def branch(self, depth: int) -> Branch:
        condition, before = self.rng.choice(self.readable()), set(self.written)
        then = self.steps(self.rng.randint(0, 3), depth)
        after, self.written = self.written, before
        otherwise = self.steps(self.rng.randint(0, 3), depth)
        self.written = after & self.written
        return Branch(condition, then, otherwise)


class _Memory:
    """Bytes at addresses, and those that each buffer should have."""

    def __init__(self, drawn: _Drawn, of: dict[Buffer, tuple[str, int]]) -> None:
        self.rng, self.of = drawn.rng, of
        self.tags = count()
        self.at: dict[tuple[object, int], int] = {}
        self.own: dict[tuple[Buffer, int], int] = {}

    def addresses(self, buffer: Buffer) -> list[tuple[object, int]]:
        owner, span = _span(buffer)
        if buffer not in self.of and owner not in self.of:
            return [(owner, k) for k in span]  # the caller's
        pool, begin = self.of[buffer] if buffer in self.of else self.of[owner]
        begin += 0 if buffer in self.of else span.start
        return [(pool, begin + k) for k in range(buffer.nbytes)]

    def write(self, buffer: Buffer) -> None:
        owner, span = _span(buffer)
        for place, k in zip(self.addresses(buffer), span, strict=True):
            self.at[place] = self.own[owner, k] = next(self.tags)

    def check(self, buffer: Buffer, why: str) -> None:
        owner, span = _span(buffer)
        for place, k in zip(self.addresses(buffer), span, strict=True):
            assert (owner, k) not in self.own or self.at[place] == self.own[owner, k], f"{why} {buffer.name}"

    def call(self, step: Call) -> None:
        reads, writes, scratch = (list(step.buffers(a)) for a in (Access.READ, Access.WRITE, Access.SCRATCH))
        for buffer in reads:
            self.check(buffer, "before it is read:")
        touched = [place for b in (*writes, *scratch) for place in self.addresses(b)]
        assert len(touched) == len(set(touched)), "results and scratch lie over each other"
        for k, buffer in enumerate(reads):
            inside = {place: j for j, place in enumerate(self.addresses(buffer))}
            for o, result in enumerate(writes, len(reads)):
                for i, place in enumerate(self.addresses(result)):
                    if place in inside:
                        permitted = (v for v in step.overlaps if (v.input, v.output) == (k, o))
                        j = inside[place]
                        assert any(j - i <= v.slack and (j - i) % v.step == 0 for v in permitted), (
                            f"byte {i} of {result.name} is written over byte {j} of {buffer.name}"
                        )
            assert not any(p in inside for b in scratch for p in self.addresses(b)), "scratch over an input"
        for buffer in (*scratch, *writes):
            self.write(buffer)

    def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Call):
                self.call(step)
            elif isinstance(step, Branch):
                self.check(step.condition, "a condition:")
                self.run(step.then if self.rng.random() < 0.5 else step.otherwise)
            elif isinstance(step, Loop):
                self.loop(step)

    def loop(self, step: Loop) -> None:
        turns = step.limit
        if step.limit_from is not None:
            self.check(step.limit_from, "a number of turns:")
            turns = self.rng.randint(0, turns)
        for turn in range(turns):
            if step.condition is not None:
                self.check(step.condition, "a condition of turns:")
                if self.rng.random() < 0.3:
                    break
            if step.counter is not None:
                if turn:
                    self.check(step.counter, "a counter:")
                self.write(step.counter)
            self.run(step.body)


POOLS = ((Pool("one"),), (Pool("small", 24), Pool("one")), (Pool("one", 60),))
PLANNERS = (None, "greedy", "best-fit", "local-search")
RARE = (450, 502, 515, 578, 1382, 1447, 1766, 1768)
"""Two results that may both take the place of an input, and a result whose pieces were written before."""


def _planned(drawn: _Drawn, inside: bool, again: bool) -> Addresses:
    """again: with addresses that buffers have already, some of them where they cannot be."""
    pools, planner = drawn.rng.choice(POOLS), drawn.rng.choice(PLANNERS)
    found = plan_memory(drawn.program, pools, io_in_workspace=inside, algorithm=planner)
    if not again:
        return found
    moved = (0, 0, 0, 4, -4, 8)
    kept = {
        b: (pool, max(0, offset + drawn.rng.choice(moved)))
        for b, (pool, offset) in found.of.items()
        if drawn.rng.random() < 0.7
    }
    return plan_memory(drawn.program, pools, io_in_workspace=inside, kept=kept)


@pytest.mark.parametrize("seeds", [range(0, 90), range(90, 180), RARE], ids=["some", "more", "rare"])
def test_what_is_read_is_what_was_written(seeds: Sequence[int]) -> None:
    shared = 0
    for seed in seeds:
        drawn = _Drawn(seed)
        for inside in (False, True):
            try:
                found = _planned(drawn, inside, seed % 3 == 0)
            except CompileError as error:
                assert "E401" in str(error)
                continue
            memory = _Memory(drawn, dict(found.of))
            for buffer in drawn.states:
                memory.write(buffer)
            for _ in range(RUNS):
                for buffer in drawn.inputs:
                    memory.write(buffer)
                memory.run(drawn.program.body)
                for buffer in (*drawn.outputs, *drawn.states):
                    memory.check(buffer, f"seed {seed}, after a run:")
            bytes_ = sum(b.nbytes for b in found.of if b.view_of is None)
            shared += bytes_ > 2 * sum(found.plan.pool_sizes.values())
    assert shared, "programs in which nothing shares its place say little"
