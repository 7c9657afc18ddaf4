"""What a reader sees first of the generated C: the layers in the order of the run, and the memory that they
work in.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aot_model.c.function import CFunction
from aot_model.c.names import comment_text
from aot_model.ir.program import Access, Branch, Buffer, Call, Loop, Once, Role, Step

if TYPE_CHECKING:
    from aot_model.emit.view import ModelView

WIDTH = 104
MAX_NAME = 400


def overview(view: ModelView) -> list[str]:
    """Lines of the comment on top of the C file."""
    column = min(max((len(_short(view, c)) for c in view.program.calls()), default=8), 40)
    lines = [
        "Layers, in the order of the run; all numbers of steps in this file are those of this table:",
        "",
        f"{'step':>6}  {'function':<{column}}  {'MACs':>13}  layer",
    ]
    lines += _steps(view, view.program.body, 0, column)
    rows = _memory(view)
    if rows:
        pools = "; ".join(f"{p.field}: {p.size:,} bytes at a multiple of {p.align}" for p in view.pools)
        lines += ["", f"Memory ({pools}), and the steps in which it holds what:", ""]
        lines += rows
    return lines


def _short(view: ModelView, call: Call) -> str:
    return view.calls[call].name.removeprefix(f"{view.name}_")


def wrapped(first: str, text: str, rest: str | None = None) -> list[str]:
    """A text behind a prefix, in lines that fit."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def _steps(view: ModelView, steps: list[Step], depth: int, column: int) -> Iterator[str]:
    pad = "  " * depth
    for step in steps:
        if isinstance(step, Call):
            macs = f"{step.macs:,}" if step.macs else ""
            head = f"{view.steps[step]:>6}  {pad + _short(view, step):<{column}}  {macs:>13}  "
            yield from (
                wrapped(head, comment_text(step.layer, MAX_NAME))
                if len(head) < 90
                else [head, *wrapped(" " * 10, comment_text(step.layer, MAX_NAME))]
            )
        elif isinstance(step, Once):
            yield f"{'':>6}  {pad}once:"
            yield from _steps(view, [step.call], depth + 1, column)
        elif isinstance(step, Loop):
            yield (
                f"{'':>6}  {pad}again and "
                f"again{f', at most {step.limit} times' if step.limit < 2**62 else ''}:"
            )
            yield from _steps(view, step.body, depth + 1, column)
        else:
            yield from _branch(view, step, depth, column)


def _branch(view: ModelView, step: Branch, depth: int, column: int) -> Iterator[str]:
    for word, body in (("if", step.then), ("else", step.otherwise)):
        if body:
            yield f"{'':>6}  {'  ' * depth}{word}:"
            yield from _steps(view, body, depth + 1, column)


def _memory(view: ModelView) -> list[str]:
    """A row for each buffer, by the first step that it is alive in."""
    known = sorted(
        view.addresses.of.items(), key=lambda item: (view.addresses.live[item[0]], item[1], item[0].name)
    )
    column, made = max((len(_place(view, b)) for b, _ in known), default=0), _origins(view)
    lines = [f"{'first byte':>{column + 2}}  {'bytes':>11}  {'steps':>14}  holds", ""] if known else []
    for buffer, _ in known:
        first, last = view.addresses.live[buffer]
        span = f"{first}" if first == last else f"{first} to {last}"
        head = f"{_place(view, buffer):>{column + 2}}  {buffer.nbytes:>11,}  {span:>14}  "
        role = {Role.STATE: "state ", Role.INPUT: "input ", Role.OUTPUT: "output "}.get(buffer.role, "")
        lines += wrapped(
            head, role + comment_text(buffer.name, MAX_NAME) if role or buffer not in made else made[buffer]
        )
    return lines


def _origins(view: ModelView) -> dict[Buffer, str]:
    """By buffer: which step makes it, and what of it."""
    found: dict[Buffer, str] = {}
    for call in view.program.calls():
        results = sum(p.access is Access.WRITE for p in call.function.params)
        for param, buffer in zip(call.function.params, call.arguments, strict=True):
            if param.access is Access.SCRATCH:
                found.setdefault(buffer, f"scratch of step {view.steps[call]}: {param.name}")
            elif param.access is Access.WRITE:
                found.setdefault(
                    buffer, f"result of step {view.steps[call]}" + (f": {param.name}" if results > 1 else "")
                )
    return found


def _place(view: ModelView, buffer: Buffer) -> str:
    pool, offset = view.addresses.of[buffer]
    return f"{next(p.field for p in view.pools if p.name == pool)} + {offset}"


def layer_comment(view: ModelView, f: CFunction) -> list[str]:
    """Lines above a function: what it is, for which layers, their shapes, MACs and memory."""
    lines = wrapped("", f.function.note) if f.function.note else []
    for call in f.layers[:6]:
        macs = f", {call.macs:,} MACs" if call.macs else ""
        what = f"{comment_text(call.layer, MAX_NAME)} ({comment_text(call.op)}): {call.shapes}{macs}"
        lines += [*wrapped(f"step {view.steps[call]}: ", what, "  "), *_traffic(view, f, call)]
    if len(f.layers) > 6:
        lines.append(f"and {len(f.layers) - 6} more layers of the same shape")
    return lines


def _traffic(view: ModelView, f: CFunction, call: Call) -> list[str]:
    """What a call reads, works in and writes: where each lies, and what shares memory."""
    found: dict[Access, list[str]] = {access: [] for access in Access}
    by_place = {o: f"in place of {f.function.params[i].name}" for i, o in f.aliasing.same}
    for k, (param, buffer) in enumerate(zip(f.function.params, call.arguments, strict=True)):
        if buffer.root()[0].role is Role.CONSTANT:
            continue
        shares = by_place.get(k) or ("overlaps" if k in f.aliasing.shared else "")
        text = f"{param.name} {_where(view, buffer)}" + (f" ({shares})" if shares else "")
        found[param.access].append(text)
    words = {Access.READ: "reads", Access.SCRATCH: "works in", Access.WRITE: "writes"}
    parts = [f"{word} {', '.join(found[access])}" for access, word in words.items() if found[access]]
    return wrapped("  ", "; ".join(parts)) if parts else []


def _where(view: ModelView, buffer: Buffer) -> str:
    if buffer in view.addresses.of:
        return f"at {_place(view, buffer)}"
    owner, offset = buffer.root()
    ports = view.inputs if owner.role is Role.INPUT else view.outputs
    name = next((p.c_name for p in ports if p.buffer is owner), "")
    return f"at {'inputs' if owner.role is Role.INPUT else 'outputs'}->{name}" + (
        f" + {offset}" if offset else ""
    )
