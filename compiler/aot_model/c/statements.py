"""Statements that compute expressions: loops of reductions, locals, branches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from aot_model.c.expr import PRECEDENCE, UNARY, ExprWriter, compute_label, value_type
from aot_model.c.hoisting import branches, hoistable
from aot_model.c.literal import literal
from aot_model.c.reading_order import ascends
from aot_model.c.text import IN_ORDER
from aot_model.ir.expr import Call, Cell, Expr, Reduce, Var
from aot_model.ir.scalar_ops import SCALAR_OPS
from aot_model.ir.types import DType

_IDENTITY: dict[str, float] = {"add": 0, "mul": 1, "and": True, "or": False}

LONG_SUM = 512
"""Terms of a sum of floats from which on it is a sum of sums: one accumulator rounds as often as there are
terms, and what it loses, up to n / 2^25 of the sum of n terms that are alike, is more than a normalisation
behind it can take.
"""


class CWriter(ExprWriter):
    """Writes statements that compute expressions. `address` gives the C text of an element in memory."""

    def __init__(self, address: Callable[[Cell, str], str], indent: int = 1) -> None:
        super().__init__(address)
        self.lines: list[str] = []
        self.indent = indent
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def compute(self, *roots: Expr) -> list[str]:
        """Emit locals for what is shared or folded, and return the texts of the roots."""
        for node in hoistable(roots):
            if node in self._names:
                continue
            if isinstance(node, Reduce):
                self._fold(node)
            elif isinstance(node, Call) and branches(node):
                self._decide(node)
            else:
                name = self._local(node.dtype)
                self.line(f"const {value_type(node.dtype)} {name} = {self.text(node)};")
                self._names[node] = name
        return [self.text(r) for r in roots]

    def _decide(self, node: Call) -> None:
        """A local that is computed by the branch that its condition chooses."""
        name, c_type = self._local(node.dtype), value_type(node.dtype)
        condition = self.text(node.args[0])
        if node.op == "select":
            self.line(f"{c_type} {name};")
            self.line(f"if ({condition}) {{")
            self._assign(name, node.args[1])
            self.line("} else {")
            self._assign(name, node.args[2])
        else:
            self.line(f"{c_type} {name} = {condition};")
            self.line(f"if ({name}) {{" if node.op == "and" else f"if (!{name}) {{")
            self._assign(name, node.args[1])
        self.line("}")
        self._names[node] = name

    def _assign(self, name: str, value: Expr) -> None:
        outer = dict(self._names)
        self.indent += 1
        (text,) = self.compute(value)
        self.line(f"{name} = {text};")
        self.indent -= 1
        self._names = outer

    def _local(self, dtype: DType) -> str:
        self._count += 1
        return f"t{self._count - 1}"

    def _fold(self, node: Reduce) -> None:
        outer, name = dict(self._names), self._local(node.dtype)
        c_type = value_type(node.dtype)
        low, high = (-math.inf, math.inf) if node.dtype.is_float else node.dtype.limits
        start = _IDENTITY.get(node.op, high if node.op == "min" else low)
        self.line(f"{c_type} {name} = {literal(start, node.dtype)};")
        self.headers.add("math.h" if infix_of(node) and node.dtype.is_float else "aot_model/scalar.h")
        if node.op == "add" and node.dtype.is_float and math.prod(v.extent for v in node.over) >= LONG_SUM:
            self._sum_of_sums(node, name)
        else:
            self.open_loops(node.over)
            self._accumulate(node, name)
            self.close_loops(len(node.over))
        self._names = outer
        self._names[node] = name

    def _accumulate(self, node: Reduce, name: str) -> None:
        if node.dtype.is_float and infix_of(node) and not ascends(node):
            self.line(IN_ORDER)
        self.compute(node.body)
        self.line(f"{name} = {self._combine(node, name)};")

    def _sum_of_sums(self, node: Reduce, name: str) -> None:
        """About as many sums as each has terms: loops around them, and of one loop so many turns at once."""
        terms = math.isqrt(math.prod(v.extent for v in node.over))
        k = next(k for k in range(len(node.over)) if math.prod(v.extent for v in node.over[k + 1 :]) <= terms)
        split, inner, part = node.over[k], node.over[k + 1 :], self._local(node.dtype)
        turns = terms // math.prod(v.extent for v in inner)
        self.open_loops(node.over[:k])
        step = f"{split.name}++" if turns == 1 else f"{split.name}_at += {turns}"
        first = split.name if turns == 1 else f"{split.name}_at"
        self.line(f"for (int32_t {first} = 0; {first} < {split.extent}; {step}) {{")
        self.indent += 1
        if turns > 1 and split.extent % turns:
            self.line(f"const int32_t {split.name}_end = {first} < {split.extent - turns} ? "
                      f"{first} + {turns} : {split.extent};")
        self.line(f"{value_type(node.dtype)} {part} = {literal(0, node.dtype)};")
        if turns > 1:
            end = f"{split.name}_end" if split.extent % turns else f"{first} + {turns}"
            self.line(f"for (int32_t {split.name} = {first}; {split.name} < {end}; {split.name}++) {{")
            self.indent += 1
        self.open_loops(inner)
        self._accumulate(node, part)
        self.close_loops(len(inner) + (turns > 1))
        self.line(f"{name} = {name} + {part};")
        self.close_loops(k + 1)

    def _combine(self, node: Reduce, name: str) -> str:
        """The next value of an accumulator."""
        infix = SCALAR_OPS[node.op].infix
        if infix is None:
            text = f"aot_model_{node.op}_{compute_label(node.dtype)}({name}, {self.text(node.body)})"
            return f"({node.dtype.c_type}){text}" if node.dtype.is_integer and node.dtype.bits < 32 else text
        if node.dtype.is_integer:
            unsigned = f"uint{max(node.dtype.bits, 32)}_t"
            return (f"({node.dtype.c_type})(({unsigned}){name} {infix} "
                    f"({unsigned}){self.text(node.body, UNARY)})")
        return (f"{name} {infix} "
                f"{self.text(node.body, PRECEDENCE[infix] + 1 if infix == '*' else PRECEDENCE[infix])}")

    def open_loops(self, over: Sequence[Var]) -> None:
        for v in over:
            self.line(f"for (int32_t {v.name} = 0; {v.name} < {v.extent}; {v.name}++) {{")
            self.indent += 1

    def close_loops(self, count: int) -> None:
        for _ in range(count):
            self.indent -= 1
            self.line("}")


def infix_of(node: Reduce) -> str | None:
    return SCALAR_OPS[node.op].infix
