"""Which parts of expressions are computed once, before the statement that needs them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aot_model.ir.bounds import bounds
from aot_model.ir.expr import Call, Cell, Expr, Reduce, walk


def hoistable(roots: Sequence[Expr], known: Collection[Expr] = ()) -> list[Expr]:
    """What becomes a local, children first: reductions, operations read more than once that run whatever the
    conditions say, and those that decide whether a reduction runs (`branches`). known: what is one already.
    """
    uses: dict[Expr, int] = {}
    order: list[Expr] = []

    def visit(node: Expr) -> None:
        uses[node] = uses.get(node, 0) + 1
        if uses[node] > 1 or node in known:
            return
        if not isinstance(node, Reduce):
            for child in run_anyway(node):
                visit(child)
        order.append(node)

    for root in roots:
        visit(root)
    return [
        n
        for n in order
        if isinstance(n, Reduce)
        or branches(n)
        or (uses[n] > 1 and isinstance(n, (Call, Cell)) and not _is_index(n))
    ]


def branches(node: Expr) -> bool:
    """Whether statements must decide what runs: a reduction reads memory that is there on one condition
    only.
    """
    guarded = [c for c in node.children[1:] if not always_in_range(c)] if decides(node) else []
    return any(isinstance(n, Reduce) for child in guarded for n in walk(child))


def decides(node: Expr) -> bool:
    """Whether what the first operand is decides which of the others are computed."""
    return isinstance(node, Call) and node.op in ("select", "and", "or")


def run_anyway(node: Expr) -> list[Expr]:
    """The operands that may be computed whatever a condition among them says."""
    return [c for k, c in enumerate(node.children) if k == 0 or not decides(node) or always_in_range(c)]


def always_in_range(x: Expr) -> bool:
    """Whether all loads of x may run without the guard around x."""
    for node in walk(x):
        if isinstance(node, Cell):
            low, high = bounds(node.position)
            if low is None or high is None or low < 0 or high >= node.value.type.elements:
                return False
    return True


def _is_index(x: Expr) -> bool:
    return isinstance(x, Call) and x.op in ("isum", "idiv", "imod")
