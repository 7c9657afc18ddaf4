"""Who reads what whom wrote: the calls of a program, its inputs, outputs and states as a graph without
circles.

What a loop or a branch leaves is what any of its arms may have left, so an edge says "may read". Edges go
forward in the order of the run: what a turn of a loop hands to the next one is not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aot_model.ir.program import Access, Branch, Buffer, Call, Loop, Once, Program, Role, Step

Writers = dict[Buffer, list[tuple[int, int, int]]]
"""By owner of memory: (first byte, end, vertex that wrote them last)."""


@dataclass(frozen=True)
class Vertex:
    """A call, or a buffer that is there before the run (a source) or after it."""

    call: Call | None = None
    buffer: Buffer | None = None
    source: bool = False


@dataclass(frozen=True)
class Dataflow:
    """Vertices in an order in which all edges (from, to) go forward."""

    vertices: tuple[Vertex, ...]
    edges: tuple[tuple[int, int], ...]

    @staticmethod
    def of(program: Program) -> Dataflow:
        made = _Maker()
        writers: Writers = {}
        for buffer in (*program.inputs, *program.states):
            _wrote(writers, buffer, made.vertex(Vertex(buffer=buffer, source=True)))
        first = len(made.vertices)
        writers = made.walk(program.body, writers)
        for buffer in (*program.outputs, *program.states):
            found = [v for v in _read(writers, buffer) if buffer.role is not Role.STATE or v >= first]
            if found or buffer.role is not Role.STATE:
                made.connect(found, made.vertex(Vertex(buffer=buffer)))
        return Dataflow(tuple(made.vertices), tuple(made.edges))


class _Maker:
    def __init__(self) -> None:
        self.vertices: list[Vertex] = []
        self.edges: dict[tuple[int, int], None] = {}

    def vertex(self, vertex: Vertex) -> int:
        self.vertices.append(vertex)
        return len(self.vertices) - 1

    def connect(self, sources: Iterable[int], target: int) -> None:
        self.edges.update(dict.fromkeys((source, target) for source in sources if source != target))

    def walk(self, steps: list[Step], writers: Writers) -> Writers:
        """Follow the steps; who wrote what behind them."""
        for step in steps:
            if isinstance(step, Branch):
                writers = _either(
                    self.walk(step.then, _copy(writers)), self.walk(step.otherwise, _copy(writers))
                )
            elif isinstance(step, Loop):
                writers = _either(writers, self.walk(step.body, _copy(writers)))  # it may not turn at all
            else:
                self._call(step.call if isinstance(step, Once) else step, writers)
        return writers

    def _call(self, call: Call, writers: Writers) -> None:
        at = self.vertex(Vertex(call=call))
        for buffer in call.buffers(Access.READ):
            self.connect(_read(writers, buffer), at)
        for buffer in call.buffers(Access.WRITE):
            _wrote(writers, buffer, at)


def _span(buffer: Buffer) -> tuple[Buffer, int, int]:
    owner, begin = buffer.root()
    return owner, begin, begin + buffer.nbytes


def _read(writers: Writers, buffer: Buffer) -> list[int]:
    owner, begin, end = _span(buffer)
    return list(dict.fromkeys(at for low, high, at in writers.get(owner, ()) if low < end and begin < high))


def _wrote(writers: Writers, buffer: Buffer, at: int) -> None:
    """What the new bytes cover is gone."""
    owner, begin, end = _span(buffer)
    rest = []
    for low, high, other in writers.get(owner, ()):
        rest += [(a, b, other) for a, b in ((low, min(high, begin)), (max(low, end), high)) if a < b]
    writers[owner] = [*rest, (begin, end, at)]


def _copy(writers: Writers) -> Writers:
    return {owner: list(spans) for owner, spans in writers.items()}


def _either(one: Writers, other: Writers) -> Writers:
    return {
        owner: list(dict.fromkeys((*one.get(owner, ()), *other.get(owner, ()))))
        for owner in (*one, *(o for o in other if o not in one))
    }
