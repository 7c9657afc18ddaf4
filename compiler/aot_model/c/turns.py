"""Loops over elements whose bodies are so short that their branches cost as much as they do: which they are.

Several turns of such a loop are written one behind the other, in the order in which they would run, where the
target asks for it (`Target.unrolls`). On a core that does one thing after the other a turn of a sum takes two
instructions, and three more cycles to come round.
"""

from __future__ import annotations

import math

from aot_model.c.reading_order import step_of
from aot_model.c.rescale import halves, product, saturated
from aot_model.c.rounding import ROUNDED
from aot_model.ir.expr import Call, Cell, Const, Expr, Reduce, Var, walk
from aot_model.ir.scalar_ops import SCALAR_OPS

TURNS = 4
"""Turns at once."""
LONGEST = 12
"""Loads and operations of a turn that is short; what a load or a saturation does besides is none."""
_PLAIN = frozenset({*"min max abs neg cast select isum add_scaled add_high".split(), *ROUNDED})
"""What takes a few instructions, beside the operators of C."""
_CHOICE = 4
"""A choice of floats is so many."""


def is_short(body: Expr, turns: int = 1, over: Var | None = None) -> bool:
    """Whether a turn that computes this is short: no loop in it, no function to speak of. turns: a sum of so
    many terms is no loop. over: elements that do not change along it are read before the loop.
    """
    seen: set[Expr] = set()
    waiting, length = [(body, 1)], 0
    while waiting:
        node, times = waiting.pop()
        if node in seen or isinstance(node, Const):
            continue
        seen.add(node)
        if over is not None and isinstance(node, Cell) and over not in walk(node.position):
            continue
        if isinstance(node, Reduce):
            terms = math.prod(v.extent for v in node.over)
            if terms > turns or len(node.over) > 1:
                return False
            waiting.append((node.body, times * terms))
        clamped = saturated(node) if isinstance(node, Call) else None
        if clamped is not None:  # one instruction, with a shift before it
            inner = clamped[1]
            length += times
            node = inner.args[0] if isinstance(inner, Call) and inner.op == "sar" else inner
            waiting.append((node, times))
            continue
        if isinstance(node, Call) and node.op == "cast" and isinstance(node.args[0], Cell):  # one load
            node = node.args[0]
        choice = isinstance(node, Call) and node.op in ("min", "max") and node.dtype.is_float
        length += times * (_CHOICE if choice else 1)
        if length > LONGEST:
            return False
        if isinstance(node, Call):
            divides = node.op == "div" and node.dtype.is_float
            if not (is_plain(node) or divides):
                return False
            waiting += [(child, times) for child in node.children]
    return True


def is_plain(x: Call) -> bool:
    """Whether an operation takes a few instructions and no function of its own."""
    by_constants = x.op == "requantise" and all(isinstance(n, Const) for n in x.args[1:])
    fixed_point = by_constants or product(x) is not None or halves(x) is not None
    return x.op in _PLAIN or fixed_point or SCALAR_OPS[x.op].infix is not None


def is_better_whole(over: Var, element: Expr, position: Expr) -> bool:
    """Whether compilers do more with a loop as it is: of neighbours that are moved to neighbours, or filled,
    they make a call, of bytes that are looked up words.
    """
    if step_of(position, over) != 1 or not isinstance(element, (Cell, Const)):
        return False
    step = 1 if isinstance(element, Const) else step_of(element.position, over)
    return step == 1 or (step is None and element.dtype.size == 1)
