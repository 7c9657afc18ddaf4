"""Memory over time: each buffer as a rectangle, and what is alive where most of a pool is in use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aot_model.emit.view import ModelView
from aot_model.ir.program import Access, Buffer, Role


@dataclass(frozen=True)
class Held:
    """A buffer: where it lies, in which steps, what it is (input, output, state, result, scratch), and the
    steps that write it.
    """

    number: int
    buffer: Buffer
    what: str
    pool: str
    offset: int
    first: int
    last: int
    writers: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.buffer.nbytes

    @property
    def window(self) -> bool:
        return self.buffer.view_of is not None


@dataclass(frozen=True)
class Lane:
    """A pool, or what the caller holds: its size, its buffers, the bytes in use by step, and the buffers
    alive at the step that needs most.
    """

    name: str
    size: int
    held: tuple[Held, ...]
    used: tuple[int, ...]
    pool: bool = True

    @property
    def peak(self) -> int:
        """The first step at which most bytes are in use."""
        return self.used.index(max(self.used)) if self.used else 0

    @property
    def peak_bytes(self) -> int:
        return max(self.used, default=0)

    @property
    def at_peak(self) -> list[Held]:
        """Largest first; windows of other buffers left out, for they need no memory of their own."""
        alive = [h for h in self.held if h.first <= self.peak <= h.last and h.size]
        owners = {h.buffer for h in alive}
        return sorted(
            (h for h in alive if not (h.window and h.buffer.root()[0] in owners)),
            key=lambda h: (-h.size, h.offset, h.number),
        )


def lanes(view: ModelView) -> tuple[Lane, ...]:
    """Every pool that something lies in, then the caller's inputs and outputs."""
    touched = _touched(view)
    end = max((last for _, last in view.addresses.live.values()), default=0)
    end = max(end, *(last for _, last, _ in touched.values()), 1) if touched else max(end, 1)
    kinds = _kinds(view)
    planned = sorted(view.addresses.of, key=lambda b: (view.addresses.live[b], view.addresses.of[b], b.name))
    held = [
        Held(
            k,
            b,
            kinds.get(b, "result"),
            *view.addresses.of[b],
            *view.addresses.live[b],
            touched[b][2] if b in touched else (),
        )
        for k, b in enumerate(planned)
    ]
    made = [
        Lane(p.name, p.size, own, _used(own, end))
        for p in view.pools
        if (own := tuple(h for h in held if h.pool == p.name))
    ]
    theirs, offset = list[Held](), 0
    for buffer in (*view.program.inputs, *view.program.outputs):
        if buffer in view.addresses.of or buffer in {h.buffer for h in theirs}:
            continue
        first, last, writers = touched.get(buffer, (0, end, ()))
        span = (0, last) if buffer.role is Role.INPUT else (first, end)
        theirs.append(Held(len(planned) + len(theirs), buffer, buffer.role.value, "", offset, *span, writers))
        offset += buffer.nbytes
    return (*made, Lane("", offset, tuple(theirs), _used(theirs, end), False)) if theirs else tuple(made)


def _touched(view: ModelView) -> dict[Buffer, tuple[int, int, tuple[int, ...]]]:
    """By buffer, and by the owner of its memory: first and last step that touch it, and the steps that write
    it.
    """
    found: dict[Buffer, tuple[int, int, tuple[int, ...]]] = {}
    for call in view.program.calls():
        step = view.steps[call]
        for param, argument in zip(call.function.params, call.arguments, strict=True):
            for buffer in dict.fromkeys((argument, argument.root()[0])):
                first, _, writers = found.get(buffer, (step, step, ()))
                if param.access is Access.WRITE and step not in writers:
                    writers = (*writers, step)
                found[buffer] = (first, step, writers)
    return found


def _kinds(view: ModelView) -> dict[Buffer, str]:
    found = {b: "scratch" for call in view.program.calls() for b in call.buffers(Access.SCRATCH)}
    found.update({b: "result" for call in view.program.calls() for b in call.buffers(Access.WRITE)})
    ports = {Role.INPUT: "input", Role.OUTPUT: "output", Role.STATE: "state"}
    return {
        b: ports.get(b.root()[0].role, what)
        for b, what in {**dict.fromkeys(view.addresses.of, "result"), **found}.items()
    }


def _used(held: Iterable[Held], end: int) -> tuple[int, ...]:
    """Bytes in use at the steps 0 … end; bytes that buffers share count once."""
    pending = sorted(((h.first, h.last, h.offset, h.offset + h.size) for h in held), reverse=True)
    live: list[tuple[int, int, int]] = []
    result = []
    for step in range(end + 1):
        while pending and pending[-1][0] <= step:
            _, last, low, high = pending.pop()
            live.append((low, high, last))
        live = sorted(one for one in live if one[2] >= step)
        total = top = 0
        for low, high, _ in live:
            total += max(0, high - max(low, top))
            top = max(top, high)
        result.append(total)
    return tuple(result)
