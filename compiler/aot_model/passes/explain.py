"""Why a pass did not fire: passes say it here, `--explain PASS` shows it.

with reasons() as said:       the pass manager
    fuse_affine(graph)        in the pass: refuse(node, "its result is read twice") and go on
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from aot_model.ir.graph import Node

_said: ContextVar[dict[str, None] | None] = ContextVar("said", default=None)


@contextmanager
def reasons() -> Iterator[dict[str, None]]:
    """Collects what refuse() is told inside, each line once, in order."""
    said: dict[str, None] = {}
    token = _said.set(said)
    try:
        yield said
    finally:
        _said.reset(token)


def refuse(node: Node, why: str) -> bool:
    """Note that a pass leaves a node alone. Always False, for `return refuse(...)`."""
    said = _said.get()
    if said is not None:
        said[f"{node.kind} '{node.name}': {why}"] = None
    return False
