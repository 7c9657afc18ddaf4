"""What the tables say of each call: cost, kernel, where it runs, what it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.emit.metadata import metadata_of
from aot_model.emit.view import ModelView
from aot_model.ir.program import Access, Buffer, Call, Role
from aot_model.page.memory import Held, Lane


@dataclass(frozen=True)
class Argument:
    """A parameter of a call and what is passed: `place` says where it is, in words; `held` links it to the
    memory's table.
    """

    name: str
    use: str
    what: str
    type: str
    size: int
    place: str
    held: int | None


@dataclass(frozen=True)
class Row:
    """A layer, as the metadata has it, and what leads from it to the rest of the page."""

    step: int
    layer: str
    op: str
    function: str
    kernel: str
    note: str
    target: str
    shapes: str
    macs: int
    ram: int
    scratch: int
    constants: int
    output: int
    tensors: tuple[str, ...]
    """Of the model's file, that are complete behind this call."""
    arguments: tuple[Argument, ...]


def rows(view: ModelView, lanes: tuple[Lane, ...]) -> tuple[Row, ...]:
    """By call, in the order of the run."""
    held = {h.buffer: (lane, h) for lane in lanes for h in lane.held}
    tensors: dict[Call, list[str]] = {}
    for traced in view.traced:
        tensors.setdefault(traced.calls[-1], []).extend(t.name for t in traced.tensors)
    made = []
    for call, layer in zip(view.program.calls(), metadata_of(view).layers, strict=True):
        function = call.function
        made.append(
            Row(
                view.steps[call],
                layer.name,
                layer.op,
                layer.function,
                layer.function.removeprefix(f"{view.name}_"),
                function.note,
                call.target or view.target.name,
                call.shapes,
                layer.macs,
                layer.workspace_bytes,
                layer.scratch_bytes,
                layer.constant_bytes,
                sum(b.nbytes for b in call.buffers(Access.WRITE)),
                tuple(tensors.get(call, ())),
                tuple(
                    _argument(p.name, p.access.value, b, held)
                    for p, b in zip(function.params, call.arguments, strict=True)
                ),
            )
        )
    return tuple(made)


def _argument(name: str, use: str, buffer: Buffer, held: dict[Buffer, tuple[Lane, Held]]) -> Argument:
    owner, offset = buffer.root()
    found = held.get(buffer) or held.get(owner)
    if found is None:
        place = "in flash" if owner.role is Role.CONSTANT else ""
    else:
        lane, one = found
        at = one.offset + (0 if one.buffer is buffer else offset)
        place = f"{lane.name} + {at}" if lane.pool else f"of the caller{f' + {offset}' if offset else ''}"
    return Argument(
        name, use, buffer.name, str(buffer.type), buffer.nbytes, place, found[1].number if found else None
    )
