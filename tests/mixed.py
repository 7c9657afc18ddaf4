"""Expressions whose operands have several element types, which C would convert without a word."""

from __future__ import annotations

from aot_model.ir.expr import Call, Expr, Load, Reduce, load, var
from aot_model.ir.operator import Inputs, Operator
from aot_model.ir.types import DType

NUMBERS = frozenset("add sub mul div min max mod fmod floor_div pow lt le neg abs".split())
"""Operations that booleans do not have."""
ALIKE = frozenset(
    "add sub mul div min max mod fmod floor_div pow lt le eq and or bitand bitor bitxor select".split()
)
"""Operations of ir/scalar_ops.py whose operands have one type; of select, those that it chooses between."""


def mixed(expression: Expr) -> str:
    """An operation whose operands have several types or are no numbers, or an index that is no integer; empty
    where there is none.
    """
    seen, rest = set[Expr](), [expression]
    while rest:
        one = rest.pop()
        if one in seen:
            continue
        seen.add(one)
        if isinstance(one, Load) and not all(i.dtype.is_integer for i in one.index):
            return f"an index of {', '.join(i.dtype.label for i in one.index)}"
        if isinstance(one, Call) and one.op in ALIKE:
            operands = one.args[1:] if one.op == "select" else one.args
            if len({v.dtype for v in operands}) > 1:
                return f"{one.op} of {', '.join(v.dtype.label for v in operands)}"
        if isinstance(one, Call) and one.op in NUMBERS and one.args[0].dtype is DType.BOOL:
            return f"{one.op} of bool"
        if isinstance(one, Reduce) and one.op in ("add", "mul") and one.dtype is DType.BOOL:
            return f"{one.op} of many bool"
        rest += one.children
    return ""


def mixed_in(operator: Operator, inputs: Inputs) -> str:
    """What it computes of operands of several types, or in another type than its result's."""
    if type(operator).express is Operator.express:
        return ""
    for k, to in enumerate(operator.infer(inputs)):
        index = tuple(var(f"i{n}", extent) for n, extent in enumerate(to.shape))
        element = operator.express(load, inputs, index, k)
        found = mixed(element)
        if found or element.dtype not in (to.dtype, to.dtype.compute):
            return found or f"a result of {element.dtype.label} for {to.dtype.label}"
    return ""
