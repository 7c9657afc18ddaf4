"""Whether the terms of a sum are read from low addresses to high (see text.IN_ORDER)."""

from __future__ import annotations

from aot_model.ir.expr import Call, Cell, Const, Expr, Reduce, Var, walk


def ascends(node: Reduce) -> bool:
    """Whether no access of a fold over two or more loops goes back while they turn; of one loop it does not
    matter. False also where that is not known. A fold of folds has the loops of both.
    """
    folds = [node]
    while isinstance(folds[-1].body, Reduce):
        folds.append(folds[-1].body)
    loops = [v for fold in folds for v in fold.over if v.extent > 1]
    if len(loops) < 2:
        return True
    return all(_ascends(n.position, loops) for n in walk(node.body) if isinstance(n, Cell))


def _ascends(position: Expr, loops: list[Var]) -> bool:
    reach = 0
    for loop in reversed(loops):
        step = step_of(position, loop)
        if step is None or step < 0 or (0 < step <= reach):
            return False
        reach += step * (loop.extent - 1)
    return True


def step_of(position: Expr, loop: Var) -> int | None:
    """By how much a position moves from one turn of a loop to the next; None where that changes."""
    if position is loop:
        return 1
    if not any(n is loop for n in walk(position)):
        return 0
    if not isinstance(position, Call) or position.op != "isum":
        return None
    total = 0
    for atom, factor in zip(position.args[:-1:2], position.args[1::2], strict=False):
        step = step_of(atom, loop)
        if step is None or not isinstance(factor, Const):
            return None
        total += step * int(factor.value)
    return total
