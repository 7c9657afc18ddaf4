"""The C statements of a run with Options.trace: which tensor is told behind which step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aot_model.c.names import string_literal
from aot_model.ir.program import Buffer, Step

if TYPE_CHECKING:
    from aot_model.emit.view import ModelView


_INDENT = "    "


def statements(view: ModelView, step: Step) -> list[str]:
    """C statements behind a step of the run."""
    return [
        f"{_INDENT}{view.name}_tell({k}u, {string_literal(t.name)}, {_address(view, t.buffer)}, "
        f"{t.buffer.nbytes}u);"
        for k, t in enumerate(view.traced)
        if t.step is step
    ]


def _address(view: ModelView, buffer: Buffer) -> str:
    """A buffer that no call has as an argument has no address of its own: the memory that it is a window of
    has.
    """
    owner, offset = buffer.root()
    if owner not in view.addresses.of:
        return view.argument(buffer, "uint8_t")
    return view.address(owner, "uint8_t") + (f" + {offset}" if offset else "")
