"""Expressions as C text.

A value used more than once becomes a `const` local, so that the text says what is computed once.
Sub-expressions of a `?:` stay inside it: the guarded load of a padded or concatenated tensor must not run
when its guard does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from aot_model.c.literal import float_literal, literal
from aot_model.c.rescale import Product, halves, halves_and_zero, product, saturated
from aot_model.c.rounding import ROUNDED, Rounding, divided_by
from aot_model.c.whole_sums import whole_sum
from aot_model.ir.admissible import Range, observed, want
from aot_model.ir.bounds import bounds, only_asking
from aot_model.ir.expr import Call, Cell, Const, Expr, Leaf, Var, const, walk
from aot_model.ir.operator import OperatorError
from aot_model.ir.scalar_ops import SCALAR_OPS
from aot_model.ir.types import DType

# C operator precedence; a text of lower precedence than its place needs parentheses.
_ATOM, UNARY, _MUL, _ADD, _SHIFT = 16, 15, 13, 12, 11
_COMPARE, _EQUAL, _AND, _LOGIC, _SELECT = 10, 9, 8, 5, 3
SUMMAND = _MUL
"""The precedence that a text needs to stand beside a + without brackets."""
PRECEDENCE = {
    "*": _MUL,
    "/": _MUL,
    "%": _MUL,
    "+": _ADD,
    "-": _ADD,
    "<": _COMPARE,
    "<=": _COMPARE,
    "==": _EQUAL,
    "!=": _EQUAL,
    ">>": _SHIFT,
    "&": _AND,
    "^": _AND - 1,
    "|": _AND - 2,
    "&&": _LOGIC,
    "||": _LOGIC - 1,
}


class ExprWriter:
    """Writes expressions. `address` gives the C text of an element in memory."""

    def __init__(self, address: Callable[[Cell, str], str]) -> None:
        self.headers: set[str] = set()
        self.whole_sums = False
        """Whether sums of floats that are rounded to bytes are of integers where they can (whole_sums.py)."""
        self._address = address
        self._names: dict[Expr, str] = {}
        """Locals that hold expressions."""
        self._divisors: dict[Expr, str] = {}
        """Locals that hold what divides floats, for those that are rounded behind."""

    def text(self, x: Expr, place: int = 0) -> str:
        """C text of an expression, in parentheses where its place needs them."""
        text, precedence = self._render(x)
        return f"({text})" if precedence < place else text

    def _render(self, x: Expr) -> tuple[str, int]:
        if x in self._names:
            return self._names[x], _ATOM
        if isinstance(x, Const):
            text = literal(x.value, x.dtype)
            if text.lstrip("-") in ("INFINITY", "NAN"):
                self.headers.add("math.h")
            return text, UNARY if text.startswith(("-", "(double)")) else _ATOM
        if isinstance(x, (Var, Leaf)):
            return x.name, _ATOM
        if isinstance(x, Cell):
            _want_as_observed(x.position)
            return self._address(x, self.text(x.position)), _ATOM
        assert isinstance(x, Call), x
        special = _SPECIAL.get(x.op)
        if special:
            return special(self, x)
        return self._fixed_point(x) or self._quotient(x) or self._operation(x)

    def _quotient(self, x: Call) -> tuple[str, int] | None:
        """A quotient that is rounded to a whole number, without a division where a processor has better."""
        if x.op not in ROUNDED or x.args[0] in self._names:
            return None
        name, by = x.op.removeprefix("quantise_"), divided_by(x)
        if by is not None and by in self._divisors:
            assert isinstance(x.args[0], Call)
            self.headers.add("aot_model/divisor.h")
            given = ", ".join(self.text(n) for n in x.args[1:])
            return (
                f"aot_model_{name}_by({self.text(x.args[0].args[0])}, {self._divisors[by]}, {given})",
                _ATOM,
            )
        rounding = Rounding.of(x)
        if rounding is None or rounding.parts is None or not (rounding.in_parts or rounding.parts[1]):
            return None
        numbers = (rounding.divisor, *rounding.parts)
        divided = ", ".join((self.text(rounding.real), *(float_literal(n, DType.FLOAT32) for n in numbers)))
        limits = f"{rounding.zero}, {rounding.low}, {rounding.high}"
        self.headers.add("aot_model/divisor.h" if rounding.in_parts else "aot_model/scalar.h")
        form = whole_sum(rounding) if self.whole_sums and rounding.in_parts else None
        if form is not None:
            total = f"{self.text(form.total)}, {form.shift}, {form.beside:#x}u"
            return f"aot_model_{name}_sum({total}, {divided}, {limits})", _ATOM
        if rounding.in_parts:
            return f"aot_model_{name}_quotient({divided}, {limits})", _ATOM
        return f"aot_model_{x.op}(aot_model_quotient({divided}), {limits})", _ATOM

    def _fixed_point(self, x: Call) -> tuple[str, int] | None:
        """The cheaper form of c/rescale.py, where there is one and no part of it was computed before."""
        clamped = saturated(x)
        if clamped is not None and x.args[0] not in self._names:
            self.headers.add("aot_model/saturate.h")
            return self._saturated(*clamped), _ATOM
        form = product(x) if x.op != "add" or x.args[0] not in self._names else None
        return self._halves(x) if form is None else (self._product(form, form.shift), _ATOM)

    def _product(self, form: Product, shift: int) -> str:
        self.headers.add("aot_model/scalar.h")
        return f"aot_model_rescale({self.text(form.x)}, {form.multiplier}, INT64_C({form.offset}), {shift})"

    def _saturated(self, name: str, x: Expr) -> str:
        """The nearest value of a type, with what makes the value before where one instruction does both."""
        if isinstance(x, Call) and x not in self._names:
            shift = x.args[-1]
            if x.op == "sar" and isinstance(shift, Const) and 0 < int(shift.value) < 32:
                return f"aot_model_saturate_shifted_{name}({self.text(x.args[0])}, {int(shift.value)})"
            inner, zero = (x.args[0], x.args[1]) if x.op == "add" else (x, const(0))
            form = product(x) if inner not in self._names else None
            if form is not None and form.shift > 32:
                return f"aot_model_saturate_shifted_{name}({self._product(form, 32)}, {form.shift - 32})"
            moved = halves_and_zero(inner, zero) if inner not in self._names else None
            if moved is not None:
                ties, before, bits = moved
                self.headers.add("aot_model/scalar.h")
                whole = f"aot_model_to_{ties}({self.text(before)}, {bits})"
                return f"aot_model_saturate_shifted_{name}({whole}, {bits})"
            if form is None and inner not in self._names and _may_be_saturated(inner, zero):
                given = ", ".join(self.text(n) for n in (*inner.children, zero))
                return f"aot_model_requantised_{name}({given})"
        return f"aot_model_saturate_{name}({self.text(x)})"

    def _halves(self, x: Call) -> tuple[str, int] | None:
        """The form of ties to even in 32 bits, where there is one."""
        form = halves(x)
        if form is None or form.bits == 0:
            return None if form is None else self._render(form.x)
        self.headers.add("aot_model/scalar.h")
        return f"aot_model_halved_even({self.text(form.x)}, {form.bits})", _ATOM

    def _operation(self, x: Call) -> tuple[str, int]:
        op = SCALAR_OPS[x.op]
        for place, limits in op.domain:
            _want_operand(x.args[place], Range(*limits))
        if op.infix:
            return self._infix(x, op.infix, op.wrap)
        template = op.c_float if x.args[0].dtype.is_float else op.c_int
        if op.c_small is not None and _is_small(x):
            template = op.c_small
        if x.op == "neg" and x.dtype.is_integer and _fits(x):
            template = SCALAR_OPS["neg"].c_float
        if template is None:  # of an operator that has no schema, which would name its types
            raise OperatorError(f"{x.op} of {x.args[0].dtype.label} is not defined", "E202")
        dtype = x.args[0].dtype
        d = compute_label(dtype)
        self.headers.add(
            op.header or "aot_model/scalar.h"
            if "aot_model_" in template
            else "math.h"
            if dtype.is_float
            else "stdint.h"
        )
        args = [self.text(a, _place(template, k)) for k, a in enumerate(x.args)]
        names = {
            "t": x.dtype.c_type,
            "u": f"uint{x.dtype.bits}_t",
            "d": d,
            "f": "" if dtype is DType.FLOAT64 else "f",
        }
        text = template.format(*args, **names)
        narrow = x.dtype.is_integer and x.dtype.bits < 32 and not text.startswith(f"({x.dtype.c_type})")
        if narrow:
            return f"({x.dtype.c_type}){text}", UNARY
        return text, _MUL if "/" in template else UNARY

    def _infix(self, x: Call, infix: str, wrap: bool) -> tuple[str, int]:
        level = PRECEDENCE[infix]
        a, b = x.args
        dtype = x.dtype
        if infix == "==" and a.dtype.is_float:
            return self._equal_floats(self.text(a), self.text(b), a.dtype), _ATOM
        if wrap and dtype.is_integer and not _fits(x):
            u = f"uint{max(dtype.bits, 32)}_t"
            left, right = self.text(a, UNARY), self.text(b, UNARY)
            return f"({dtype.c_type})(({u}){left} {infix} ({u}){right})", UNARY
        if level in (_COMPARE, _EQUAL):
            # Compilers warn of comparisons of comparisons without parentheses.
            left, right = self.text(a, _COMPARE + 1), self.text(b, _COMPARE + 1)
            turned = infix == "<" and isinstance(a, Const)
            return f"{right} > {left}" if turned else f"{left} {infix} {right}", level
        if level in (_SHIFT, _AND, _AND - 1, _AND - 2):
            # Compilers warn of arithmetic beside these without parentheses.
            text = f"{self.text(a, UNARY)} {infix} {self.text(b, UNARY)}"
            return (
                (f"({dtype.c_type})({text})", UNARY)
                if dtype.is_integer and dtype.bits < 32
                else (text, level)
            )
        if infix == "||":
            # Compilers warn of && beside || without parentheses.
            left = self.text(a, _LOGIC + 1 if isinstance(a, Call) and a.op == "and" else level)
            return f"{left} || {self.text(b, _LOGIC + 1)}", level
        # C adds and multiplies from the left: the right operand needs parentheses at its own level.
        text = f"{self.text(a, level)} {infix} {self.text(b, level + 1)}"
        if dtype.is_integer and dtype.bits < 32:
            return f"({dtype.c_type})({text})", UNARY
        return text, level

    def _equal_floats(self, a: str, b: str, dtype: DType) -> str:
        """By name, as it is meant so: -Wfloat-equal warns of the operator."""
        self.headers.add("aot_model/scalar.h")
        return f"aot_model_equal_{compute_label(dtype)}({a}, {b})"

    def _sum(self, x: Call) -> tuple[str, int]:
        base = x.args[-1]
        assert isinstance(base, Const)
        _want_as_observed(x)
        parts: list[str] = []
        for atom, factor in zip(x.args[:-1:2], x.args[1::2], strict=False):
            assert isinstance(factor, Const)
            c = int(factor.value)
            body = self.text(atom, _ADD + 1) if abs(c) == 1 else f"{self.text(atom, _MUL)} * {abs(c)}"
            sign = "-" if c < 0 else "+"
            parts.append(
                f"{sign} {body}"
                if parts
                else (f"-{self.text(atom, UNARY)}" if c == -1 else f"-{body}" if c < 0 else body)
            )
        offset = int(base.value)
        if offset:
            parts.append(f"{'-' if offset < 0 else '+'} {abs(offset)}" if parts else str(offset))
        return " ".join(parts), _MUL if len(parts) == 1 and x.args[1] is not x.args[-1] else _ADD

    def _idiv(self, x: Call) -> tuple[str, int]:
        low, _ = bounds(x.args[0])
        n = self.text(x.args[1])
        if low is not None and low >= 0:
            return f"{self.text(x.args[0], _MUL)} / {n}", _MUL
        self.headers.add("aot_model/scalar.h")
        return f"aot_model_floordiv({self.text(x.args[0])}, {n})", _ATOM

    def _imod(self, x: Call) -> tuple[str, int]:
        low, _ = bounds(x.args[0])
        n = self.text(x.args[1])
        if low is not None and low >= 0:
            return f"{self.text(x.args[0], _MUL)} % {n}", _MUL
        self.headers.add("aot_model/scalar.h")
        return f"aot_model_floormod({self.text(x.args[0])}, {n})", _ATOM

    def _same_text(self, x: Call) -> tuple[str, int]:
        return self._equal_texts(*x.args)

    def _equal_texts(self, a: Expr, b: Expr) -> tuple[str, int]:
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Call) and one.op == "select" and one not in self._names:
                # What "?:" gives has no address: its branches are compared instead.
                yes, no = (self._equal_texts(branch, other) for branch in one.args[1:])
                return f"{self.text(one.args[0], _SELECT + 1)} ? {yes[0]} : {no[0]}", _SELECT
        self.headers.add("aot_model/strings.h")
        return (
            f"aot_model_string_order({self.text(a, _ATOM)}.text, {self.text(b, _ATOM)}.text, "
            f"{a.dtype.size}) == 0"
        ), _EQUAL

    def _select(self, x: Call) -> tuple[str, int]:
        c, a, b = x.args
        text = f"{self.text(c, _SELECT + 1)} ? {self.text(a, _SELECT + 1)} : {self.text(b, _SELECT)}"
        if x.dtype.is_integer and x.dtype.bits < 32:
            return f"({x.dtype.c_type})({text})", UNARY
        return text, _SELECT

    def _cast(self, x: Call) -> tuple[str, int]:
        (a,) = x.args
        source, target = a.dtype, x.dtype
        if source.storage != target.storage:
            self.headers.add("aot_model/narrow.h")
            return f"aot_model_{source.label}_to_{target.label}({self.text(a)})", _ATOM
        if target is DType.BOOL and source.is_float:
            return f"!{self._equal_floats(self.text(a), literal(0, source), source)}", UNARY
        if target is DType.BOOL:
            return f"{self.text(a, _COMPARE + 1)} != {literal(0, source)}", _EQUAL
        if source.is_float and target.is_integer:
            self.headers.add("aot_model/scalar.h")
            return f"aot_model_{source.label}_to_{target.label}({self.text(a)})", _ATOM
        kept = self._kept(x)
        return (f"({target.c_type}){self.text(a, UNARY)}", UNARY) if kept is None else self._render(kept)

    def _kept(self, x: Call) -> Expr | None:
        """What a cast to a narrower type and back leaves as it is."""
        narrow = x.args[0]
        if not isinstance(narrow, Call) or narrow.op != "cast" or narrow in self._names:
            return None
        whole = narrow.args[0]
        if whole.dtype is not x.dtype or not x.dtype.is_integer or not narrow.dtype.is_integer:
            return None
        with only_asking():
            low, high = bounds(whole)
        least, most = narrow.dtype.limits
        if low is None or high is None or low < least or high > most:
            return None
        bounds(whole)  # the code relies on it
        return whole

    def _cast_unbounded(self, x: Call) -> tuple[str, int]:
        self.headers.add("aot_model/narrow.h")
        return f"aot_model_float32_to_{x.dtype.label}_unbounded({self.text(x.args[0])})", _ATOM

    def _bitcast(self, x: Call) -> tuple[str, int]:
        source, target = x.args[0].dtype, x.dtype
        text = self.text(x.args[0], UNARY)
        wide = {DType.FLOAT32: "uint32_t", DType.FLOAT64: "uint64_t"}
        if source in wide:
            self.headers.add("aot_model/narrow.h")
            text = f"aot_model_{source.label}_bits({self.text(x.args[0])})"
        if target in wide:
            self.headers.add("aot_model/narrow.h")
            return f"aot_model_bits_{target.label}(({wide[target]}){text})", _ATOM
        if target is DType.BOOL:
            return f"({text}) != 0", _EQUAL
        return f"({target.c_type}){text}", UNARY

    def _cast_up(self, x: Call) -> tuple[str, int]:
        self.headers.add("aot_model/narrow.h")
        return f"aot_model_float32_to_{x.dtype.label}_up({self.text(x.args[0])})", _ATOM


_SPECIAL: dict[str, Callable[[ExprWriter, Call], tuple[str, int]]] = {
    "isum": ExprWriter._sum,
    "idiv": ExprWriter._idiv,
    "imod": ExprWriter._imod,
    "same_text": ExprWriter._same_text,
    "select": ExprWriter._select,
    "cast": ExprWriter._cast,
    "cast_unbounded": ExprWriter._cast_unbounded,
    "cast_up": ExprWriter._cast_up,
    "bitcast": ExprWriter._bitcast,
}


@cache
def _place(template: str, operand: int) -> int:
    """What the text of an operand must bind as strongly as, where it is put into that of an operation."""
    if template.startswith("-"):
        return _ATOM  # It must not begin with a sign itself: "--x" is a decrement.
    slot = rf"\{{{operand}\}}"
    beside = re.search(rf"(?<!\()(?<!, ){slot}|{slot}(?![,)])", template)
    return UNARY if beside else 0


def _want_operand(x: Expr, domain: Range) -> None:
    """Have constants be such that an operand is in the domain of its operation."""
    if isinstance(x, Cell) and x.value.data is not None:
        want(x.value, domain)
    else:
        _want_as_observed(x)


def _want_as_observed(x: Expr) -> None:
    """Have the constants that an expression is made of be in the range that they are in now."""
    for node in walk(x):
        if isinstance(node, Cell) and node.value.data is not None:
            want(node.value, *observed(node.value.data))


def _fits(x: Call) -> bool:
    """Whether the result of add, sub, mul or neg is one of its type, or of int where C computes in it."""
    least, most = DType.INT32.limits if x.dtype.bits < 32 else x.dtype.limits
    with only_asking():
        low, high = _exact_bounds(x)
    if low is None or high is None or low < least or high > most:
        return False
    _exact_bounds(x)  # the code relies on it
    return True


def _is_small(x: Call) -> bool:
    """Whether a fixed-point operation by constants may take the cheaper form of its function."""
    if not all(isinstance(a, Const) for a in x.args[1:]):
        return False
    shift = x.args[-1]
    assert isinstance(shift, Const)
    by = int(shift.value)
    if x.op == "requantise":
        least, most = -((1 << 30) >> max(by, 0)), ((1 << 30) - 1) >> max(by, 0)
    else:
        least, most = 1 - (1 << 31), (1 << 31) - (2 if by == 1 else 1)

    def fits() -> bool:
        low, high = bounds(x.args[0])
        return low is not None and high is not None and least <= low and high <= most

    with only_asking():
        if not fits():
            return False
    return fits()  # the code relies on it


def _may_be_saturated(x: Expr, zero: Expr) -> bool:
    """Whether a requantisation by constants, plus a zero point, may be aot_model_requantised_…()."""
    if not isinstance(x, Call) or x.op != "requantise" or not isinstance(zero, Const):
        return False
    _, multiplier, shift = x.args
    if not isinstance(multiplier, Const) or not isinstance(shift, Const) or int(multiplier.value) < 0:
        return False
    bits = -int(shift.value)
    return bits < 30 and abs(int(zero.value)) << max(bits, 0) < 1 << 29 and _is_small(x)


def _exact_bounds(x: Call) -> tuple[int | None, int | None]:
    """Range of the mathematical result of add, sub, mul or neg, before any wrap."""
    if x.op == "neg":
        low, high = bounds(x.args[0])
        return None if high is None else -high, None if low is None else -low
    (a, b), (c, d) = bounds(x.args[0]), bounds(x.args[1])
    if a is None or b is None or c is None or d is None:
        return None, None
    if x.op == "add":
        return a + c, b + d
    if x.op == "sub":
        return a - d, b - c
    corners = [p * q for p in (a, b) for q in (c, d)]
    return min(corners), max(corners)


def compute_label(dtype: DType) -> str:
    """The type in which C computes: integers narrower than int are promoted."""
    return "int32" if dtype.kind in ("int", "uint", "bool") and dtype.bits < 32 else dtype.label


def value_type(dtype: DType) -> str:
    return dtype.c_type
