"""Products of neighbouring bytes, four at a time: a word of them becomes two pairs of 16 bits, zero points
are added to both of a pair at once, and a product takes a half of one register and a half of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aot_model.c.hoisting import always_in_range
from aot_model.c.reading_order import step_of
from aot_model.ir.bounds import bounds, only_asking
from aot_model.ir.expr import Call, Cell, Const, Expr, Reduce, Var, walk
from aot_model.ir.nibbles import is_packed
from aot_model.ir.types import DType

HEADER = "aot_model/int8_dsp.h"
LANES = (0, "b"), (1, "b"), (0, "t"), (1, "t")
"""Which of two registers has the factor of each of four turns, and in which half."""

BYTES = (DType.INT8, DType.UINT8)


class Factor(NamedTuple):
    """A factor of products. bytes: what it is made of where it moves, the zero point that is added to it."""

    x: Expr
    bytes: Cell | None = None
    zero: int = 0

    def pairs(self, word: str) -> tuple[str, str]:
        """C of both registers, given the word of four bytes."""
        assert self.bytes is not None
        both = (self.zero & 0xFFFF) * 0x10001
        name = f"dsp_{'s' if self.bytes.value.dtype is DType.INT8 else 'u'}xtab16"
        return f"(int32_t){name}({both}u, {word})", f"(int32_t){name}_ror8({both}u, {word})"


def products(roots: Sequence[Expr], v: Var) -> dict[Expr, tuple[Factor, Factor]]:
    """Those of two numbers of 16 bits of which one is a byte that moves along v with its neighbours; the
    other one, too, or it stays. Terms of sums are none: what a sum runs over has no value outside of it.
    """
    inner = {w for root in roots for n in walk(root) if isinstance(n, Reduce) for w in n.over}
    found: dict[Expr, tuple[Factor, Factor]] = {}
    for node in (n for root in roots for n in walk(root)):
        if (
            isinstance(node, Call)
            and node.op == "mul"
            and node.dtype is DType.INT32
            and inner.isdisjoint(walk(node))
        ):
            a, b = (_factor(x, v) for x in node.args)
            if a is not None and b is not None and (a.bytes or b.bytes) is not None:
                found[node] = a, b
    return found


def _factor(x: Expr, v: Var) -> Factor | None:
    if isinstance(x, Const) or not always_in_range(x) or not _is_half(x):
        return None
    if not any(n is v for n in walk(x)):
        return Factor(x)
    zero, inner = 0, x
    if isinstance(x, Call) and x.op in ("add", "sub") and isinstance(x.args[1], Const):
        inner, zero = x.args[0], int(x.args[1].value) * (1 if x.op == "add" else -1)
    cell = inner.args[0] if isinstance(inner, Call) and inner.op == "cast" else None
    if not isinstance(cell, Cell) or cell.value.dtype not in BYTES or is_packed(cell.value):
        return None
    return Factor(x, cell, zero) if step_of(cell.position, v) == 1 else None


def _is_half(x: Expr) -> bool:
    """Whether an expression is of 16 bits."""
    least, most = DType.INT16.limits

    def fits() -> bool:
        low, high = bounds(x)
        return low is not None and high is not None and least <= low and high <= most

    with only_asking():
        if not fits():
            return False
    return fits()  # the code relies on it
