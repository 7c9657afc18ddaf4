"""Loops over floats in Helium that compute exp, log, erf, tanh or the logistic function, choose, make floats
of integers, or quantise floats: four elements at a time, in intrinsics and the functions of
aot_model/float_vectors.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from aot_model.c.expr import SUMMAND
from aot_model.c.integer_vectors import FAR, LANES, NARROW, LaneWriter, Nest, Plain
from aot_model.c.literal import float_literal
from aot_model.c.rounding import ROUNDED, TIES_AWAY, TIES_TO_EVEN, Rounding
from aot_model.c.statements import CWriter, is_long, sum_of_sums
from aot_model.c.vector_nests import turned
from aot_model.ir.expr import Call, Cell, Const, Expr, Reduce, Var, var, walk
from aot_model.ir.index import floordiv, mod, substitute
from aot_model.ir.nibbles import element_text
from aot_model.ir.types import DType
from aot_model.ir.values import Value

HEADER = "aot_model/float_vectors.h"
FUNCTIONS = {
    "exp": "aot_model_four_exp({0})",
    "expm1": "aot_model_four_expm1({0})",
    "log": "aot_model_four_log({0})",
    "log1p": "aot_model_four_log1p({0})",
    "softplus_rest": "aot_model_four_softplus_rest({0})",
    "erf": "aot_model_four_erf({0})",
    "rational_tanh": "aot_model_four_tanh({0})",
    "rational_logistic": "aot_model_four_logistic({0})",
    "sigmoid": "aot_model_four_sigmoid({0})",
    "tanh": "aot_model_four_libm_tanh({0})",
}
_FORMS = {
    **FUNCTIONS,
    "neg": "vnegq_f32({0})",
    "abs": "vabsq_f32({0})",
    "div": "aot_model_four_quotients({0}, {1})",
}
"""Operation -> C over vectors of its operands."""
_BINARY = {"add": "vaddq", "sub": "vsubq", "mul": "vmulq"}
_ROUNDED = {TIES_TO_EVEN: "vcvtnq_s32_f32", TIES_AWAY: "vcvtaq_s32_f32"}
_COMPARED = {"lt": ("le", "gt"), "le": ("lt", "ge"), "eq": ("ne", "eq")}
"""Comparison -> with the sides changed what says that it does not hold, and that it does: beside a NaN the
instructions for less, less or equal, and not equal say yes.
"""
_OF_TWO = {"min": "aot_model_four_min", "max": "aot_model_four_max"}
_BEGIN = {"min": "INFINITY", "max": "-INFINITY"}


def float_loops(
    loops: Sequence[Var], position: Expr, element: Expr, to: DType, names: dict[Value, str]
) -> Nest | None:
    """C of the nest that stores y[position] = element, or None where it stays a plain loop, as one that adds
    and multiplies alone does, without folds: compilers find vectors for it.
    """
    if not loops or loops[-1].extent < LANES or to is not DType.FLOAT32:
        return None
    changing = (n for n in walk(element) if isinstance(n, Reduce) or (isinstance(n, Call) and (
        n.op in FUNCTIONS or _from_integer(n) or _chooses(n))))  # fmt: skip
    if not any(v is loops[-1] for n in changing for v in walk(n)):
        return None
    try:
        return Nest(_Writer(loops[-1], names, to).nest(loops, position, element, to))
    except Plain:
        return None


def quantising_loops(
    loops: Sequence[Var], position: Expr, element: Expr, to: DType, names: dict[Value, str]
) -> Nest | None:
    """C of the nest that stores y[position] = element, a quantised float, or None where it stays plain.

    Along the longest loop where the innermost one is too short for a vector, or its elements are not
    neighbours, unless y may take the memory of wider elements, which are then read in order.
    """
    if to.bits > 16 or not any(isinstance(n, Call) and n.op in ROUNDED for n in walk(element)):
        return None
    near = [loops] if loops and loops[-1].extent >= LANES else []
    for order in (*near, *turned(loops, position, element, to)):
        try:
            return Nest(_Writer(order[-1], names, to).nest(order, position, element, to), order is loops)
        except Plain:
            continue
    return None


def fold_loops(
    loops: Sequence[Var], position: Expr, element: Expr, to: DType, names: dict[Value, str]
) -> Nest | None:
    """C of the nest that stores y[position] = element, with a least or largest one of neighbouring floats, or
    a sum of functions of them: four at a time. What is left of it stays as it is.
    """
    if not any(isinstance(n, Reduce) and (_is_limit(n) or _sums_functions(n)) for n in walk(element)):
        return None
    writer = _FoldWriter(lambda c, text: element_text(c, names[c.value], text, set()), names)
    writer.open_loops(loops)
    (text,) = writer.compute(element)
    writer.line(f"y[{writer.text(position)}] = {text};")
    writer.close_loops(len(loops))
    return Nest(writer.lines) if writer.found else None


def _is_limit(x: Reduce) -> bool:
    return x.op in _OF_TWO and x.dtype is DType.FLOAT32 and math.prod(v.extent for v in x.over) >= LANES


def _sums_functions(x: Reduce) -> bool:
    """Whether it is a sum of functions that are computed for four elements at once, of more than a few."""
    return (
        x.op == "add"
        and x.dtype is DType.FLOAT32
        and math.prod(v.extent for v in x.over) >= LANES
        and any(
            isinstance(n, Call) and n.op in FUNCTIONS and any(v is x.over[-1] for v in walk(n))
            for n in walk(x.body)
        )
    )


def _joined(x: Reduce) -> tuple[list[Var], Expr]:
    """The loops and the body of a fold, loops made one where no index needs a division for it."""
    over, body = list(x.over), x.body
    while len(over) > 1:
        outer, inner = over[-2:]
        both = var(f"{outer.name}_{inner.name}", outer.extent * inner.extent)
        changed = substitute(body, {outer: floordiv(both, inner.extent), inner: mod(both, inner.extent)})
        if not isinstance(both, Var) or any(
            isinstance(n, Call) and n.op in ("idiv", "imod") for n in walk(changed)
        ):
            break
        over, body = [*over[:-2], both], changed
    return over, body


class _FoldWriter(CWriter):
    """Statements whose folds take four neighbouring floats at a time where they can."""

    def __init__(self, address: Callable[[Cell, str], str], names: dict[Value, str]) -> None:
        super().__init__(address)
        self.names = names
        self.found = False
        """Whether there was such a fold."""

    def _fold(self, node: Reduce) -> None:
        name = f"t{self._count}"
        vectors = self._limit_of if _is_limit(node) else self._sum_of if _sums_functions(node) else None
        lines = vectors(node, name) if vectors else None
        if lines is None:
            super()._fold(node)
            return
        self.found, self._names[node] = True, self._local(node.dtype)
        for line in lines:
            self.line(line)

    def _limit_of(self, node: Reduce, name: str) -> list[str] | None:
        start, four, odd = f"vdupq_n_f32({_BEGIN[node.op]})", f"{name}_of", f"{name}_odd"
        begin = [f"float32x4_t {four} = {start};", f"uint32x4_t {odd} = vdupq_n_u32(0u);"]
        turn = [f"{four} = v{node.op}nmq_f32({four}, {{0}});", f"{odd} = aot_model_four_odd({odd}, {{0}});"]
        result = f"const float {name} = aot_model_{node.op}_of_four({four}, {odd});"
        return self._of_vectors(node, name, start, begin, turn, [result])

    def _sum_of(self, node: Reduce, name: str) -> list[str] | None:
        """The terms are added one by one, as in the plain loop."""
        begin, turn = f"float {name} = 0.0f;", f"{name} = aot_model_plus_four({name}, {{0}});"
        return self._of_vectors(node, name, "vdupq_n_f32(0.0f)", [begin], [turn], [])

    def _of_vectors(
        self, node: Reduce, name: str, start: str, begin: list[str], turn: list[str], end: list[str]
    ) -> list[str] | None:
        """The statements of a fold: `begin`, `turn` for four terms, whose vector takes the place of {0}, and
        `end`. Lanes beyond the last term are those of `start`.
        """
        over, body = _joined(node)
        if over[-1].extent < LANES:
            return None
        lanes = _Writer(over[-1], self.names, DType.FLOAT32)
        lanes.indent = 0
        for line in begin:
            lanes.line(line)
        try:
            place = lanes.open(over)
            value = lanes.vector(body)
            if lanes.partial:
                lanes.line(f"const float32x4_t {name}_in = vpselq_f32({value}, {start}, inside);")
                value = f"{name}_in"
            for line in turn:
                lanes.line(line.format(value))
        except Plain:
            return None
        return [*lanes.closed(len(over), place), *end]


def rounded(rounding: Rounding, value: str) -> str:
    """C of four integers for the vector `value` of four floats `rounding.real`."""
    if rounding.parts is not None:
        high, low = (float_literal(n, DType.FLOAT32) for n in rounding.parts)
        value = f"aot_model_four_divided({value}, {high}, {low})" if rounding.parts[1] else (
            f"vmulq_n_f32({value}, {high})")  # fmt: skip
    return (
        f"aot_model_four_quantised({_ROUNDED[rounding.op]}({value}), {rounding.zero}, {rounding.low}, "
        f"{rounding.high})"
    )


def _from_integer(x: Call) -> bool:
    return x.op == "cast" and x.dtype is DType.FLOAT32 and x.args[0].dtype in NARROW


def _chooses(x: Call) -> bool:
    return x.op in ("max", "min", "select") and x.dtype is DType.FLOAT32


class _Writer(LaneWriter):
    """Lanes of floats, of integers that become floats, and of those that floats become."""

    def __init__(self, along: Var, names: dict[Value, str], to: DType) -> None:
        super().__init__(along, names, 1 if to is DType.FLOAT32 else FAR)
        if to is DType.FLOAT32:
            self.kind = "f32"

    def ctype_of(self, x: Expr) -> str:
        return "float32x4_t" if x.dtype is DType.FLOAT32 else self.ctype

    def text(self, x: Expr) -> str:
        if isinstance(x, Call) and x.op in ROUNDED:
            return self.quantised(x)
        if x.dtype is not DType.FLOAT32:
            return super().text(x)
        if isinstance(x, Reduce):
            return self.fold(x)
        if self.uniform(x):
            if any(isinstance(n, Reduce) for n in walk(x)):
                raise Plain
            return f"vdupq_n_f32({self.number(x)})"
        if isinstance(x, Cell):
            return self.loaded(x)
        if not isinstance(x, Call):
            raise Plain
        return self.real(x)

    def loaded(self, x: Cell) -> str:
        """Neighbouring floats of memory."""
        if self.stride(x.position) != 1 or any(isinstance(n, Cell) for n in walk(x.position)):
            raise Plain
        at = f"{self.names[x.value]} + {self.scalar.text(x.position, SUMMAND)}"
        if self.partial:
            return f"vldrwq_z_f32(aot_model_read_float({at}), inside)"
        return f"aot_model_load_f32({at})"

    def real(self, x: Call) -> str:
        """An operation on floats."""
        if _from_integer(x):
            return f"aot_model_four_of_int32({self.vector(x.args[0])})"
        if x.op == "select":
            return self.choice(x)
        if x.op in ("max", "min"):
            return self.limited(x)
        if x.op in _FORMS:
            return self.filled(_FORMS[x.op], x)
        if x.op not in _BINARY:
            raise Plain
        a, b = x.args
        if self.uniform(a) and x.op != "sub":
            a, b = b, a
        if self.uniform(b):
            return f"{_BINARY[x.op]}_n_f32({self.vector(a)}, {self.number(b)})"
        return f"{_BINARY[x.op]}_f32({self.vector(a)}, {self.vector(b)})"

    def number(self, x: Expr) -> str:
        """C of a float that is the same for all four."""
        return self.computed_before(x) if any(isinstance(n, Cell) for n in walk(x)) else self.scalar.text(x)

    def fold(self, x: Reduce) -> str:
        """Sums of floats, the terms of each in the order in which a plain loop adds them."""
        if x.dtype is not DType.FLOAT32:
            return super().fold(x)
        if x.op in _OF_TWO and not self.uniform(x):
            return self.folded(x, _BEGIN[x.op], _OF_TWO[x.op])
        if x.op != "add" or self.uniform(x):
            raise Plain
        return self.vector(sum_of_sums(x)) if is_long(x) else self.folded(x, "0.0f", "vaddq_f32")

    def choices(self, x: Call) -> str:
        if x.dtype is not DType.FLOAT32:
            return super().choices(x)
        condition, yes, no = x.args
        lanes = self.where(condition)
        return f"vpselq_f32({self.vector(yes)}, {self.vector(no)}, {lanes})"

    def compared(self, x: Call, holds: bool) -> str:
        if x.args[0].dtype is not DType.FLOAT32:
            return super().compared(x, holds)
        if x.op == "isnan":
            value = self.vector(x.args[0])
            return f"vcmp{_COMPARED['eq'][not holds]}q_f32({value}, {value})"
        if x.op not in _COMPARED:
            raise Plain
        a, b = x.args
        return f"vcmp{_COMPARED[x.op][holds]}q_f32({self.vector(b)}, {self.vector(a)})"

    def limited(self, x: Call) -> str:
        """The larger or smaller one; a NaN stays one, as in the scalar functions. Beside a number one
        comparison does.
        """
        value, limit = self.vector(x.args[0]), x.args[1]
        if not isinstance(limit, Const) or math.isnan(float(limit.value)):
            return f"{_OF_TWO[x.op]}({value}, {self.vector(limit)})"
        end = self.vector(limit)
        sides = f"{end}, {value}" if x.op == "max" else f"{value}, {end}"
        return f"vpselq_f32({end}, {value}, vcmpgtq_f32({sides}))"

    def quantised(self, x: Call) -> str:
        rounding = Rounding.of(x)
        if rounding is not None:
            return rounded(rounding, self.vector(rounding.real))
        real, zero, *limits = x.args
        if not all(isinstance(n, Const) for n in limits):
            raise Plain
        whole, (low, high) = f"{_ROUNDED[x.op]}({self.vector(real)})", (self.scalar.text(n) for n in limits)
        if self.uniform(zero):
            return f"aot_model_four_quantised({whole}, {self.one(zero)}, {low}, {high})"
        moved = f"vqaddq_s32({whole}, {self.vector(zero)})"
        return f"vminq_s32(vmaxq_s32({moved}, vdupq_n_s32({low})), vdupq_n_s32({high}))"
