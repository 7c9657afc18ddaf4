"""Loops over integer expressions in Helium: four neighbouring elements at a time, in intrinsics.

The innermost loop of a nest becomes one over vectors of int32 where everything that changes along it is
arithmetic of at most 32 bits, read from neighbouring elements or looked up; the last vector is predicated.
The numbers are those of the plain loop, which stands beside it for other instruction sets. vector_nests.py
has what is not one element of the result for each lane.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from aot_model.c.expr import SUMMAND
from aot_model.c.hoisting import always_in_range
from aot_model.c.literal import literal
from aot_model.c.rescale import halves, product, rounded_quotient, saturated
from aot_model.c.statements import CWriter
from aot_model.ir.bounds import bounds, only_asking
from aot_model.ir.expr import Call, Cell, Const, Expr, Reduce, Var, call, cast, const, walk
from aot_model.ir.nibbles import is_packed
from aot_model.ir.types import DType
from aot_model.ir.values import Value

HEADER = "aot_model/integer_vectors.h"
LANES = 4
NARROW = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32)
FAR = 1 << 16
"""Elements from one result to the next in a vector that is scattered."""
_BINARY = {"add": "vaddq", "sub": "vsubq", "mul": "vmulq"}
_COMPARED = {"lt": ("ge", "lt"), "le": ("gt", "le"), "eq": ("ne", "eq")}
"""Comparison -> what says that it does not hold, and that it does."""
_JOINED = {("and", True): "&", ("and", False): "|", ("or", True): "|", ("or", False): "&"}
"""Condition, and whether it is to hold -> what joins its operands, which are to hold or not as well."""
_LIMITS = {"min": "vminq_s32", "max": "vmaxq_s32"}
_SHIFTS = ("sar", "rounding_shift", "requantise", "requantise_even", "requantise_single")
"""By their last operand."""
_FORMS = {
    "neg": "vnegq_s32({0})",
    "bitand": "vandq_s32({0}, {1})",
    "leading_zeros": "vclzq_s32({0})",
    "rounding_shift": "aot_model_four_rounded({0}, {1})",
    "softmax_ratio": "aot_model_four_rounded(vqrdmulhq_s32({0}, {1}), vsubq_s32({3}, vclzq_s32({2})))",
    "reciprocal": "aot_model_four_reciprocals({0})",
    "high_multiply": "vqrdmulhq_s32({0}, {1})",
    "add_scaled": "vaddq_s32({0}, vmulhq_s32({1}, vshlq_n_s32({2}, 16)))",
    "add_high": "vaddq_s32({0}, vmulhq_s32({1}, {2}))",
}
"""Operation -> C over vectors of its operands."""


def _holds(dtype: DType, low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and dtype.limits[0] <= low and high <= dtype.limits[1]


class Plain(Exception):
    """Something that has no vector form here."""


class Nest(NamedTuple):
    """C of a nest of loops, and whether it stores elements in their order."""

    lines: list[str]
    in_order: bool = True


class LaneWriter:
    """Writes a nest; `text` says what its expressions are in vectors."""

    kind = "s32"
    ctype = "int32x4_t"
    lanes = LANES

    def __init__(self, along: Var, names: dict[Value, str], furthest: int = 1) -> None:
        self.along = along
        self.names = names
        self.furthest = furthest
        """How many elements a result may be from the one before in its vector."""
        self.lines: list[str] = []
        self.indent = 1
        self.known: dict[Expr, str] = {}
        self.before: dict[str, str] = {}
        """Names of what is computed once, before the innermost loop, by its C."""
        self.inner = 0
        self.count = 0
        self.in_order = furthest == 1
        """Whether it stores elements in the order of memory, which loops in another one do not."""
        self.partial = along.extent % self.lanes != 0
        self.scalar, self.row = (CWriter(lambda c, text: f"{names[c.value]}[{text}]", 0) for _ in range(2))

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def nest(self, loops: Sequence[Var], position: Expr, element: Expr, to: DType) -> list[str]:
        apart = self.stride(position)
        if apart is None or not 1 <= apart <= self.furthest:
            raise Plain
        place = self.open(loops)
        while (
            isinstance(element, Call)
            and element.op == "cast"
            and not to.is_float
            and (to.bits == element.dtype.bits and element.args[0].dtype is DType.INT32)
        ):
            element = element.args[0]  # the store takes the low bits
        value = self.vector(element)
        width, own = {8: "b", 16: "h", 32: "w"}[to.bits], "float" if self.kind == "f32" else f"int{to.bits}_t"
        y = f"y + {self.scalar.text(position, SUMMAND)}"
        y = y if to.c_type == own else f"({own} *)({y})"
        predicate = ("_p", ", inside") if self.partial else ("", "")
        if apart != 1:
            shifted = "" if width == "b" else "shifted_"
            y = f"{y}, {self.places(apart)}"
            predicate = (f"_scatter_{shifted}offset{predicate[0]}", predicate[1])
        elif self.kind == "f32" and not self.partial:
            self.line(f"aot_model_store_f32({y}, {value});")
            return self.closed(len(loops), place)
        elif self.partial or 128 // self.lanes != to.bits:
            y = f"aot_model_written_{own}({y})"
        self.line(f"vstr{width}q{predicate[0]}_{self.kind}({y}, {value}{predicate[1]});")
        return self.closed(len(loops), place)

    def open(self, loops: Sequence[Var]) -> int:
        """Begins the loops; the line of the innermost one."""
        for v in loops:
            step = f"{v.name} += {self.lanes}" if v is self.along else f"{v.name}++"
            self.line(f"for (int32_t {v.name} = 0; {v.name} < {v.extent}; {step}) {{")
            self.indent += 1
        self.inner, self.row.indent = self.indent, self.indent - 1
        if self.partial:
            n = self.along
            bits = 128 // self.lanes
            self.line(f"const mve_pred16_t inside = vctp{bits}q((uint32_t)({n.extent} - {n.name}));")
        return len(self.lines) - 1 - self.partial

    def closed(self, loops: int, place: int) -> list[str]:
        """All lines, with the ends of the loops, and with what is computed before line `place`."""
        for _ in range(loops):
            self.indent -= 1
            self.line("}")
        return [*self.lines[:place], *self.row.lines, *self.lines[place:]]

    def computed_before(self, x: Expr) -> str:
        """The name of a number that is the same in all vectors, where it is needed in each: C compilers take
        it that a store of a vector changes what is in memory.
        """
        if self.indent != self.inner:
            return self.scalar.text(x)
        (text,) = self.row.compute(x)
        if text not in self.before:
            self.before[text] = f"u{len(self.before)}"
            self.row.line(f"const {x.dtype.c_type} {self.before[text]} = {text};")
        return self.before[text]

    def at(self, position: Expr) -> str:
        """C of a position that moves by one along a vector."""
        if isinstance(position, Call) and any(isinstance(n, Cell) for n in walk(position)):
            pairs = [*zip(position.args[:-1:2], position.args[1::2], strict=False)]
            still = [n for pair in pairs if self.uniform(pair[0]) for n in pair]
            moving = [n for pair in pairs if not self.uniform(pair[0]) for n in pair]
            if position.op == "isum" and still:
                row = self.computed_before(call("isum", *still, position.args[-1]))
                return f"{row} + {self.scalar.text(call('isum', *moving, const(0)), SUMMAND)}"
        return self.scalar.text(position, SUMMAND)

    def uniform(self, x: Expr) -> bool:
        return not any(n is self.along for n in walk(x))

    def stride(self, position: Expr) -> int | None:
        """By how much a position moves from an element of a vector to the next; None where that changes."""
        if position is self.along:
            return 1
        if self.uniform(position):
            return 0
        if not isinstance(position, Call):
            return None
        if position.op in ("idiv", "imod"):  # the elements begin at a multiple of their number
            size = position.args[1]
            whole = isinstance(size, Const) and int(size.value) % self.lanes == 0
            return int(position.op == "imod") if whole and position.args[0] is self.along else None
        if position.op != "isum":
            return None
        total = 0
        for atom, factor in zip(position.args[:-1:2], position.args[1::2], strict=False):
            moves = self.stride(atom)
            if moves is None:
                return None
            assert isinstance(factor, Const)
            total += moves * int(factor.value)
        return total

    def vector(self, x: Expr) -> str:
        """The name of four values of an expression."""
        if x not in self.known:
            text = self.text(x)
            name = f"v{self.count}"
            self.count += 1
            self.line(f"const {self.ctype_of(x)} {name} = {text};")
            self.known[x] = name
        return self.known[x]

    def ctype_of(self, x: Expr) -> str:
        """Of the vector of an expression."""
        return self.ctype

    def one(self, x: Expr) -> str:
        """C of a value that is the same for all four."""
        if x.dtype not in NARROW or any(isinstance(n, Reduce) for n in walk(x)):
            raise Plain
        if any(isinstance(n, Cell) for n in walk(x)):
            return self.computed_before(x if x.dtype is DType.INT32 else cast(x, DType.INT32))
        text = self.scalar.text(x)
        return text if isinstance(x, Const) or x.dtype is DType.INT32 else f"(int32_t)({text})"

    def text(self, x: Expr) -> str:
        if isinstance(x, Reduce):
            return self.fold(x)
        if self.uniform(x):
            return f"vdupq_n_s32({self.one(x)})"
        if isinstance(x, Call) and x.op == "select":
            return self.choice(x)
        if x is self.along:
            return f"vaddq_n_s32(vreinterpretq_s32_u32(aot_model_lanes_u32()), {self.along.name})"
        if isinstance(x, Cell):
            return self.load(x)
        if not isinstance(x, Call) or x.dtype not in NARROW:
            raise Plain
        return self.fixed_point(x) or self.operation(x)

    def choice(self, x: Call) -> str:
        """One of two vectors, by what is the same for all elements, or lane by lane."""
        condition, yes, no = x.args
        if not self.uniform(condition):
            return self.choices(x)
        if any(isinstance(n, Reduce) for n in walk(condition)):
            raise Plain
        name, outer = f"v{self.count}", dict(self.known)
        self.count += 1
        self.line(f"{self.ctype_of(x)} {name};")
        for opening, value in ((f"if ({self.scalar.text(condition)}) {{", yes), ("} else {", no)):
            self.line(opening)
            self.indent += 1
            self.line(f"{name} = {self.vector(value)};")
            self.indent -= 1
            self.known = dict(outer)
        self.line("}")
        return name

    def choices(self, x: Call) -> str:
        """One of two vectors of integers in each lane; both are computed."""
        condition, yes, no = x.args
        if x.dtype not in NARROW or not (always_in_range(yes) and always_in_range(no)):
            raise Plain
        lanes = self.where(condition)
        return f"vpselq_s32({self.vector(yes)}, {self.vector(no)}, {lanes})"

    def where(self, condition: Expr, holds: bool = True) -> str:
        """The lanes in which a condition, which changes along the vector, holds or does not."""
        if isinstance(condition, Cell):
            # GCC 12 breaks down over the zero of vcmpneq_n_s32()
            return f"vcmp{_COMPARED['eq'][not holds]}q_s32({self.load(condition)}, vdupq_n_s32(0))"
        if not isinstance(condition, Call) or self.uniform(condition):
            raise Plain
        if condition.op == "not":
            return self.where(condition.args[0], not holds)
        if (condition.op, holds) in _JOINED:
            a, b = (self.where(n, holds) for n in condition.args)
            return f"(mve_pred16_t)({a} {_JOINED[condition.op, holds]} {b})"
        return self.compared(condition, holds)

    def compared(self, x: Call, holds: bool) -> str:
        """The lanes in which a comparison of integers holds or does not."""
        if x.op not in _COMPARED or not {n.dtype for n in x.args} <= set(NARROW):
            raise Plain
        a, b = x.args
        return f"vcmp{_COMPARED[x.op][holds]}q_s32({self.vector(a)}, {self.vector(b)})"

    def begin(self, x: Reduce) -> int:
        """What a fold of int32 begins with."""
        if x.dtype not in ((DType.INT32,) if x.op == "add" else NARROW) or x.op not in ("add", *_LIMITS):
            raise Plain
        return {"add": 0, "min": int(x.dtype.limits[1]), "max": int(x.dtype.limits[0])}[x.op]

    def fold(self, x: Reduce) -> str:
        return self.folded(x, literal(self.begin(x), DType.INT32), _LIMITS.get(x.op, "vaddq_s32"))

    def folded(self, x: Reduce, start: str, function: str) -> str:
        """The name of four folds, each of the terms of its lane."""
        name, outer = f"v{self.count}", dict(self.known)
        self.count += 1
        kind = "f32" if x.dtype.is_float else "s32"
        self.line(f"{self.ctype_of(x)} {name} = vdupq_n_{kind}({start});")
        for v in x.over:
            self.line(f"for (int32_t {v.name} = 0; {v.name} < {v.extent}; {v.name}++) {{")
            self.indent += 1
        self.line(f"{name} = {function}({name}, {self.vector(x.body)});")
        for _ in x.over:
            self.indent -= 1
            self.line("}")
        self.known = outer
        return name

    def load(self, x: Cell) -> str:
        dtype, name = x.value.dtype, self.names[x.value]
        if dtype is DType.BOOL:  # a byte, 0 or 1
            dtype, name = DType.UINT8, f"(const uint8_t *){name}"
        if dtype not in NARROW or is_packed(x.value):
            raise Plain
        letter, sign = {8: "b", 16: "h", 32: "w"}[dtype.bits], "u" if dtype.c_type.startswith("u") else "s"
        z, inside = ("_z", ", inside") if self.partial else ("", "")
        apart = self.stride(x.position)
        if apart == 1:
            at = self.at(x.position)
            place = f"{name} + {at}" if letter == "w" else f"aot_model_read_{dtype.c_type}({name} + {at})"
            text = f"vldr{letter}q{z}_{sign}32({place}{inside})"
        else:
            shifted = "" if letter == "b" else "shifted_"
            if apart and apart > 0:
                place, at = f"{name} + {self.at(x.position)}", self.places(apart)
            else:
                place, at = name, f"vreinterpretq_u32_s32({self.vector(x.position)})"
            place = f"aot_model_read_{dtype.c_type}({place})"
            text = f"vldr{letter}q_gather_{shifted}offset{z}_{sign}32({place}, {at}{inside})"
        return f"vreinterpretq_s32_u32({text})" if sign == "u" else text

    def places(self, apart: int) -> str:
        """C of the places of a vector's elements, which are `apart` elements from each other."""
        return f"vmulq_n_u32(aot_model_lanes_u32(), {apart})"

    def fixed_point(self, x: Call) -> str | None:
        clamped = saturated(x)
        if clamped is not None:
            limits = DType[clamped[0].upper()].limits
            inner = self.vector(clamped[1])
            return f"vminq_s32(vmaxq_s32({inner}, vdupq_n_s32({limits[0]})), vdupq_n_s32({limits[1]}))"
        form = product(x)
        if form is None or form.offset % (1 << 32) or form.shift - 32 > 31:
            return self.halves(x)
        upper = f"vmulhq_s32({self.vector(form.x)}, vdupq_n_s32({form.multiplier}))"
        word = f"vaddq_n_s32({upper}, {form.offset >> 32})"
        return f"vshrq_n_s32({word}, {form.shift - 32})" if form.shift > 32 else word

    def halves(self, x: Call) -> str | None:
        """Ties to even within 32 bits."""
        form = halves(x)
        if form is None or form.bits == 0:
            return None if form is None else self.vector(form.x)
        return f"aot_model_four_halved_even({self.vector(form.x)}, {form.bits})"

    def operation(self, x: Call) -> str:
        if x.op == "cast":
            return self.cast(x)
        if x.op == "isum":
            return self.sum(x)
        if x.op in _LIMITS:
            return self.filled(f"{_LIMITS[x.op]}({{0}}, {{1}})", x)
        if x.dtype is not DType.INT32 or x.args[0].dtype is not DType.INT32:
            raise Plain
        nearest = rounded_quotient(x)
        if nearest is not None:
            return f"aot_model_four_shifted({self.vector(nearest[0])}, {nearest[1]})"
        if x.op in _BINARY:
            return self.binary(x)
        by_constant = self.shifted(x)
        if by_constant is not None:
            return by_constant
        if x.op == "sar" and self.uniform(x.args[1]):
            return f"vshlq_r_s32({self.vector(x.args[0])}, -{self.one(x.args[1])})"
        if x.op in _FORMS:
            return self.filled(_FORMS[x.op], x)
        raise Plain

    def filled(self, form: str, x: Call) -> str:
        """A form with the vectors of the operands, which are computed in the order of the form."""
        return re.sub(r"\{(\d)\}", lambda found: self.vector(x.args[int(found[1])]), form)

    def cast(self, x: Call) -> str:
        """Where it changes no value."""
        a = x.args[0]
        if a.dtype not in NARROW:
            raise Plain
        if not _holds(x.dtype, *a.dtype.limits):
            clamped = saturated(a) if isinstance(a, Call) else None
            if clamped is None or not _holds(x.dtype, *DType[clamped[0].upper()].limits):
                with only_asking():
                    found = bounds(a)
                if not _holds(x.dtype, *found):
                    raise Plain
                bounds(a)  # the code relies on it
        return self.vector(a)

    def binary(self, x: Call) -> str:
        a, b = self.factors(x) if x.op == "mul" else x.args
        for added, times in ((a, b), (b, a)) if x.op == "add" else ():
            if isinstance(times, Call) and times.op == "mul" and times not in self.known:
                many, one = self.factors(times)
                if self.uniform(one) and not self.uniform(many) and self.uniform(added):
                    return f"vmlasq_n_s32({self.vector(many)}, {self.vector(one)}, {self.one(added)})"
                if self.uniform(one) and not self.uniform(many):
                    return f"vmlaq_n_s32({self.vector(added)}, {self.vector(many)}, {self.one(one)})"
        if self.uniform(a) and x.op != "sub":
            a, b = b, a
        if self.uniform(b):
            return f"{_BINARY[x.op]}_n_s32({self.vector(a)}, {self.one(b)})"
        return f"{_BINARY[x.op]}_s32({self.vector(a)}, {self.vector(b)})"

    def shifted(self, x: Call) -> str | None:
        """Shifts and scalings by a number of places that is known."""
        places = x.args[-1]
        if x.op not in _SHIFTS or not isinstance(places, Const):
            return None
        shift = int(places.value)
        if x.op == "sar" and 0 < shift < 32:
            return f"vshrq_n_s32({self.vector(x.args[0])}, {shift})"
        if x.op == "rounding_shift" and 0 < shift < 32:
            return f"aot_model_four_shifted({self.vector(x.args[0])}, {shift})"
        if x.op == "requantise" and -31 <= shift <= 30:
            left = f"vshlq_n_s32({{0}}, {shift})" if shift > 0 else "{0}"
            upper = f"vqrdmulhq_s32({left}, {{1}})"
            return self.filled(f"aot_model_four_shifted({upper}, {-shift})" if shift < 0 else upper, x)
        if x.op == "requantise_even" and -31 <= shift < 0:
            return self.filled(f"aot_model_four_even({{0}}, {{1}}, {-shift})", x)
        if x.op == "requantise_single" and shift == 0:
            return self.filled("vqrdmulhq_s32({0}, {1})", x)
        if x.op == "requantise_single" and -31 <= shift < 0:
            # what the high word cut off is below a half of the last place, which the shift rounds
            return self.filled(f"vrshrq_n_s32(vqdmulhq_s32({{0}}, {{1}}), {-shift})", x)
        return None

    def factors(self, x: Call) -> tuple[Expr, Expr]:
        """Of a product: what is the same for all four is multiplied before."""
        a, b = x.args
        while self.uniform(b) and isinstance(a, Call) and a.op == "mul" and self.uniform(a.args[1]):
            b, a = call("mul", a.args[1], b), a.args[0]
        return a, b

    def sum(self, x: Call) -> str:
        """Of an index: atoms by factors and a constant."""
        base = x.args[-1]
        assert isinstance(base, Const)
        total = ""
        for atom, factor in zip(x.args[:-1:2], x.args[1::2], strict=False):
            assert isinstance(factor, Const)
            c, v = int(factor.value), self.vector(atom)
            term = v if c == 1 else f"vmulq_n_s32({v}, {c})"
            total = f"vaddq_s32({total}, {term})" if total else term
        return f"vaddq_n_s32({total}, {int(base.value)})" if int(base.value) else total
