"""Sections of a loop nest: where an element is one thing in one part of a tensor and another in the rest, as
in tensors that are joined or have borders, each part is a nest by itself, without the question in its loops.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from aot_model.ir.expr import Call, Expr, Var, var, walk
from aot_model.ir.index import add, substitute, turning_point

FEWEST = 64
"""Elements of a tensor that is worth a nest for each of its parts."""
MOST = 12
"""Sections of a nest."""
GROWTH = 2.0
"""How much larger all sections together may be than the nest, in nodes of their expressions."""


class Section(NamedTuple):
    """Loops that store `element` at `position`."""

    loops: list[Var]
    position: Expr
    element: Expr


def sections(whole: Section) -> list[Section]:
    """The nest in parts in which no choice depends on one loop alone; itself where that does not pay.

    The parts hold all elements, each once, but not in the order of the nest.
    """
    if math.prod(v.extent for v in whole.loops) < FEWEST:
        return [whole]
    parts = _parts(whole, MOST)
    if len(parts) > MOST:
        return [whole]
    return parts if sum(_size(p.element) for p in parts) <= GROWTH * _size(whole.element) else [whole]


def _parts(whole: Section, most: int) -> list[Section]:
    for k, loop in enumerate(whole.loops):
        ends = sorted(set(_ends(loop, whole.element)))
        if not ends or len(ends) >= most:
            continue
        found: list[Section] = []
        for begin, end in pairwise([0, *ends, loop.extent]):
            own = var(loop.name, end - begin)
            mapping: dict[Expr, Expr] = {loop: add(own, begin)}
            loops = [*whole.loops[:k], *([own] if isinstance(own, Var) else []), *whole.loops[k + 1 :]]
            part = Section(loops, substitute(whole.position, mapping), substitute(whole.element, mapping))
            found += _parts(part, most)
        return found
    return [whole]


def _ends(loop: Var, element: Expr) -> Iterator[int]:
    """The turns of a loop, between its first and its last, at which an answer that depends on it alone
    changes.
    """
    for node in walk(element):
        if isinstance(node, Call) and node.op in ("lt", "le"):
            x, y = node.args if node.op == "lt" else reversed(node.args)
            end = turning_point(x, y, loop)
            if end is not None and 0 < end < loop.extent:
                yield end


def _size(element: Expr) -> int:
    return len(tuple(walk(element)))
