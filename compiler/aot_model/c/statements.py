"""Statements that compute expressions: loops of reductions, locals, branches."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from aot_model.c.byte_pairs import HEADER, LANES, Factor, products
from aot_model.c.expr import PRECEDENCE, UNARY, ExprWriter, compute_label, value_type
from aot_model.c.hoisting import always_in_range, branches, hoistable, run_anyway
from aot_model.c.lane_folds import ACCUMULATORS, takes_lanes
from aot_model.c.lane_folds import HEADER as FOLDS_HEADER
from aot_model.c.literal import literal
from aot_model.c.reading_order import ascends
from aot_model.c.rounding import divided_by
from aot_model.c.text import IN_ORDER
from aot_model.c.turns import TURNS, is_plain, is_short
from aot_model.ir.expr import Call, Cell, Expr, Reduce, Var, call, const, reduce, var, walk
from aot_model.ir.index import add, mul, substitute
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

    def __init__(
        self, address: Callable[[Cell, str], str], indent: int = 1, turns: int = 1, lanes: bool = False
    ) -> None:
        """turns: how many of a short loop are written one behind the other. lanes: whether folds along
        neighbours have several accumulators.
        """
        super().__init__(address)
        self.lines: list[str] = []
        self.indent = indent
        self.turns = turns
        self.whole_sums = turns > 1  # where elements are computed one by one, not in vectors
        self.lanes = lanes
        self._count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def compute(self, *roots: Expr) -> list[str]:
        """Emit locals for what is shared or folded, and return the texts of the roots."""
        for node in hoistable(roots, self._names):
            if node in self._names:
                continue
            lanes = isinstance(node, Reduce) and self.lanes and takes_lanes(node)
            if isinstance(node, Reduce) and is_long(node, ACCUMULATORS if lanes else 1):
                (text,) = self.compute(sum_of_sums(node))
                self._names[node] = text if text.isidentifier() else f"({text})"
            elif isinstance(node, Reduce) and lanes:
                self._fold_lanes(node)
            elif isinstance(node, Reduce):
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
        if not self._begins(node):
            self.line(f"{value_type(node.dtype)} {name} = {_start(node)};")
        self.headers.add("math.h" if infix_of(node) and node.dtype.is_float else "aot_model/scalar.h")
        self._accumulate(node, name)
        self._names = outer
        self._names[node] = name

    def _fold_lanes(self, node: Reduce) -> None:
        outer, name = dict(self._names), self._local(node.dtype)
        self.headers.update({"math.h", FOLDS_HEADER})
        around, v = node.over[:-1], node.over[-1]
        lane, whole = var("lane", ACCUMULATORS), v.extent // ACCUMULATORS * ACCUMULATORS
        first, one = var(v.name, whole - ACCUMULATORS + 1), f"lanes_of_{name}[lane]"

        def combine(place: Expr, lanes: int) -> None:
            body, names = substitute(node.body, {v: add(place, lane)}), dict(self._names)
            self._open_lanes(lanes)
            self.compute(body)
            if infix_of(node):
                self.line(f"{one} = {self._combine(node, one, body)};")
            else:
                self.line(f"{one} = aot_model_lanes_{node.op}({one}, {self.text(body)});")
            self.close_loops(1)
            self._names = names

        self.line(f"float lanes_of_{name}[{ACCUMULATORS}];")
        self._open_lanes(ACCUMULATORS)
        self.line(f"{one} = {_start(node)};")
        self.close_loops(1)
        for k, w in enumerate(around):
            self.steady(node.body, node.over[k:])
            self.open_loops([w])
        self.steady(node.body, (v,))
        self.line(f"for (int32_t {v.name} = 0; {v.name} < {whole}; {v.name} += {ACCUMULATORS}) {{")
        self.indent += 1
        combine(first, ACCUMULATORS)
        self.close_loops(1)
        if whole < v.extent:
            combine(const(whole), v.extent - whole)
        self.close_loops(len(around))
        self.line(f"const float {name} = aot_model_{node.op}_of_lanes(lanes_of_{name});")
        self._names = {**outer, node: name}

    def _open_lanes(self, lanes: int) -> None:
        self.line(f"for (int32_t lane = 0; lane < {lanes}; lane++) {{")
        self.indent += 1

    def _begins(self, node: Reduce) -> bool:
        """Whether a sum begins with its first term: its terms are written one by one, and nothing becomes of
        them by adding them to zero.
        """
        terms = math.prod(v.extent for v in node.over)
        few = len(node.over) == 1 and 0 < terms <= self.turns > 1 and is_short(node.body)
        return few and node.op == "add" and node.dtype.is_float and is_no_negative_zero(node.body)

    def _accumulate(self, node: Reduce, name: str) -> None:
        first = self._begins(node)

        def combine(body: Expr) -> None:
            nonlocal first
            self.compute(body)
            value = self.text(body) if first else self._combine(node, name, body)
            self.line(f"{value_type(node.dtype) + ' ' if first else ''}{name} = {value};")
            first = False

        before = IN_ORDER if node.dtype.is_float and infix_of(node) and not ascends(node) else ""
        for k, v in enumerate(node.over):
            self.steady(node.body, node.over[k:])
            self.open_loops([v] if k < len(node.over) - 1 else [])
        turns = self.turns if is_short(node.body) else 1
        self.along(node.over[-1], (node.body,), combine, turns, before, sums=True)
        self.close_loops(len(node.over) - 1)

    def along(
        self,
        v: Var,
        roots: Sequence[Expr],
        turn: Callable[..., None],
        by: int,
        before: str = "",
        sums: bool = False,
    ) -> None:
        """A loop over v whose body `turn` writes, given the roots at an element: `by` of them at a time, and
        one by one what is left. before: a line in front of them. sums: a product is a term, which costs
        nothing beside its addition.
        """

        def write(at: Expr) -> None:
            turn(*(root if at is v else substitute(root, {v: at}) for root in roots))

        whole = v.extent // by * by
        if by == 1 or whole > by:
            first, names = var(v.name, whole - by + 1), dict(self._names)
            step = f"{v.name}++" if by == 1 else f"{v.name} += {by}"
            self.line(f"for (int32_t {v.name} = 0; {v.name} < {whole}; {step}) {{")
            self.indent += 1
            if before:
                self.line(before)
            if by == len(LANES) and not sums:
                self._pair_bytes(v, roots, first)
            for k in range(by):
                write(add(first, k))
            self.close_loops(1)
            self._names = names
        else:
            whole = 0
            if before:
                self.line(before)
        for k in range(whole, v.extent):
            write(const(k))

    def _pair_bytes(self, v: Var, roots: Sequence[Expr], first: Expr) -> None:
        """Names for the products of bytes in four turns of a loop over v."""
        known: dict[Factor, list[str]] = {}
        for product, both in products(roots, v).items():
            self.headers.add(HEADER)
            for factor in both:
                if factor not in known:
                    known[factor] = self._pairs(factor, v, first)
            for k, (register, half) in enumerate(LANES):
                halves = "".join(half if f.bytes else "b" for f in both)
                given = ", ".join(known[f][register] for f in both)
                self._names[substitute(product, {v: add(first, k)})] = f"dsp_smul{halves}({given})"

    def _pairs(self, factor: Factor, v: Var, first: Expr) -> list[str]:
        """Both registers with a factor of four turns: that stays is in the low half of one."""
        if factor.bytes is None:
            return [self.text(factor.x)] * 2
        word, *pairs = (self._local(DType.INT32) for _ in range(3))
        self.line(f"const uint32_t {word} = dsp_four_at(&{self.text(substitute(factor.bytes, {v: first}))});")
        for name, text in zip(pairs, factor.pairs(word), strict=True):
            self.line(f"const int32_t {name} = {text};")
        return pairs

    def _combine(self, node: Reduce, name: str, body: Expr) -> str:
        """The next value of an accumulator, of a fold that has this body."""
        infix = SCALAR_OPS[node.op].infix
        if infix is None:
            text = f"aot_model_{node.op}_{compute_label(node.dtype)}({name}, {self.text(body)})"
            return f"({node.dtype.c_type}){text}" if node.dtype.is_integer and node.dtype.bits < 32 else text
        if node.dtype.is_integer:
            unsigned = f"uint{max(node.dtype.bits, 32)}_t"
            return f"({node.dtype.c_type})(({unsigned}){name} {infix} ({unsigned}){self.text(body, UNARY)})"
        return (
            f"{name} {infix} {self.text(body, PRECEDENCE[infix] + 1 if infix == '*' else PRECEDENCE[infix])}"
        )

    def divisors(self, root: Expr, around: Sequence[Var]) -> None:
        """A local for each divisor of what is rounded in `root` and depends on the loops `around` alone."""
        found = (by for n in walk(root) if (by := divided_by(n)) is not None)
        for by in dict.fromkeys(found):
            parts = set(walk(by))
            steady = not any(isinstance(n, Reduce) or (isinstance(n, Var) and n not in around) for n in parts)
            if not steady or by in self._divisors or not always_in_range(by):
                continue
            name = f"by{len(self._divisors)}"
            self.headers.add("aot_model/divisor.h")
            self.line(f"const aot_model_divisor {name} = aot_model_divisor_of({self.text(by)});")
            self._divisors[by] = name

    def steady(self, root: Expr, over: Collection[Var]) -> None:
        """A local for what takes a function and is the same for all turns of loops: compilers do not move it
        out of loops that have branches or loops of their own, or that keep an order.
        """
        turning, costly = set[Expr](), set[Expr]()
        for node in walk(root):  # arguments come first
            if node in over or isinstance(node, Reduce) or not turning.isdisjoint(node.children):
                turning.add(node)
            if (isinstance(node, Call) and not is_plain(node)) or not costly.isdisjoint(node.children):
                costly.add(node)
        waiting, seen, found = [root], set[Expr](), list[Expr]()
        while waiting:
            node = waiting.pop(0)
            if node in seen or node not in costly or isinstance(node, Reduce):
                continue
            seen.add(node)
            if node in turning or not always_in_range(node):
                waiting += run_anyway(node)
            else:
                found.append(node)
        for node, text in zip(found, self.compute(*found), strict=True):
            if node not in self._names:
                self._names[node] = self._local(node.dtype)
                self.line(f"const {value_type(node.dtype)} {self._names[node]} = {text};")

    def open_loops(self, over: Sequence[Var]) -> None:
        for v in over:
            self.line(f"for (int32_t {v.name} = 0; {v.name} < {v.extent}; {v.name}++) {{")
            self.indent += 1

    def close_loops(self, count: int) -> None:
        for _ in range(count):
            self.indent -= 1
            self.line("}")


def is_long(node: Reduce, accumulators: int = 1) -> bool:
    """Whether a fold is one of the sums that are sums of sums."""
    terms = math.prod(v.extent for v in node.over)
    return node.op == "add" and node.dtype.is_float and terms >= LONG_SUM * accumulators


def _start(node: Reduce) -> str:
    """The accumulator before the first term."""
    low, high = (-math.inf, math.inf) if node.dtype.is_float else node.dtype.limits
    return literal(_IDENTITY.get(node.op, high if node.op == "min" else low), node.dtype)


def sum_of_sums(node: Reduce) -> Expr:
    """A sum whose terms are sums, about as many as each has terms: of one loop so many turns at once. What it
    leaves is a sum of its own.
    """
    terms = math.isqrt(math.prod(v.extent for v in node.over))
    k = next(k for k in range(len(node.over)) if math.prod(v.extent for v in node.over[k + 1 :]) <= terms)
    split, inner = node.over[k], node.over[k + 1 :]
    turns = terms // math.prod(v.extent for v in inner)
    turns -= 0 if inner else turns % TURNS
    whole = split.extent // turns * turns
    sums = []
    for begin, parts, length in ((0, whole // turns, turns), (whole, 1, split.extent - whole)):
        of, one = var(f"{split.name}_of", parts), var(f"{split.name}_in", length)
        body = substitute(node.body, {split: add(mul(of, turns), add(one, begin))})
        if length:
            sums.append(reduce("add", (*node.over[:k], of), reduce("add", (one, *inner), body)))
    return call("add", *sums) if len(sums) > 1 else sums[0]


def is_no_negative_zero(x: Expr) -> bool:
    """Whether floats are never -0, which alone becomes another number by an addition of 0: squares, and what
    has lost its sign."""
    return isinstance(x, Call) and (x.op == "abs" or (x.op == "mul" and x.args[0] is x.args[1]))


def infix_of(node: Reduce) -> str | None:
    return SCALAR_OPS[node.op].infix
