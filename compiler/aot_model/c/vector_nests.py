"""Nests of loops over integers in Helium: one element of the result in each lane, copies of eight or sixteen
elements, and folds along neighbouring terms.
"""

from __future__ import annotations

from collections.abc import Sequence

from aot_model.c.expr import SUMMAND
from aot_model.c.integer_vectors import FAR, LANES, NARROW, LaneWriter, Nest, Plain
from aot_model.c.literal import literal
from aot_model.c.rescale import Product, product, saturated
from aot_model.ir.bounds import bounds, only_asking
from aot_model.ir.expr import Call, Cell, Const, Expr, Reduce, Var, walk
from aot_model.ir.nibbles import is_packed
from aot_model.ir.types import DType
from aot_model.ir.values import Value


def vector_loops(
    loops: Sequence[Var], position: Expr, element: Expr, to: DType, names: dict[Value, str]
) -> Nest | None:
    """C of the nest that stores y[position] = element, or None where it stays a plain loop. Where the
    innermost loop is too short, or its elements are far from each other, another one may be along vectors.
    """
    folds = [(w, loops) for w in _folds(loops, element, names)]
    if to is DType.INT64:
        return _first(folds, position, element, to)
    if to not in NARROW:
        return None
    moves = (MoveWriter(v, names, to, n) for v in loops[-1:] for n in _moved_at_once(v.extent, to))
    lanes = (LaneWriter(v, names) for v in loops[-1:] if v.extent >= LANES)
    products = (ProductWriter(v, names) for v in loops[-1:] if v.extent > LANES)
    across = ((LaneWriter(order[-1], names, FAR), order) for order in turned(loops, position, element, to))
    near = ((w, loops) for w in (*products, *lanes))
    writers = [*((w, loops) for w in moves), *folds, *near, *across]
    return _first(writers, position, element, to)


def _moved_at_once(extent: int, to: DType) -> list[int]:
    """Elements of a vector that moves them: those that leave no rest before those of a whole register."""
    most = 128 // to.bits
    whole = [n for n in (16, 8) if n <= most and extent % n == 0]
    return [*whole, *([most] if most > LANES < extent else [])]


def turned(loops: Sequence[Var], position: Expr, element: Expr, to: DType) -> list[list[Var]]:
    """Orders of the loops with each that is long enough for vectors innermost, the longest first; none where
    the result may take the memory of larger elements, in order.
    """
    if any(
        isinstance(n, Cell) and n.position is position and n.value.dtype.size != to.size
        for n in walk(element)
    ):
        return []
    long = sorted((v for v in loops if v.extent >= LANES), key=lambda v: v.extent, reverse=True)
    return [[*(v for v in loops if v is not one), one] for one in long]


def _first(
    writers: Sequence[tuple[LaneWriter, Sequence[Var]]], position: Expr, element: Expr, to: DType
) -> Nest | None:
    """What the first writer makes that has vectors for all of it, from loops in the order that it takes."""
    for writer, order in writers:
        try:
            return Nest(writer.nest(order, position, element, to), writer.in_order)
        except Plain:
            continue
    return None


def _folds(loops: Sequence[Var], element: Expr, names: dict[Value, str]) -> list[LaneWriter]:
    """A writer along the terms of a sum or a maximum, where they are neighbours and those of neighbouring
    results are not, or where there are few results.
    """
    if not isinstance(element, Reduce) or element.over[-1].extent < LANES:
        return []
    folded = FoldWriter(element.over[-1], names)
    if not loops or loops[-1].extent < LANES:
        return [folded]
    lanes = LaneWriter(loops[-1], names)
    reads = [n for n in walk(element.body) if isinstance(n, Cell)]
    apart = [sum(w.stride(n.position) not in (0, 1) for n in reads) for w in (folded, lanes)]
    return [folded] if apart[0] < apart[1] else []


def _widened(x: Expr) -> bool:
    return isinstance(x, Call) and x.op == "cast" and x.dtype is DType.INT64 and x.args[0].dtype in NARROW


class FoldWriter(LaneWriter):
    """A nest whose elements are folds, four of their terms at a time."""

    def nest(self, loops: Sequence[Var], position: Expr, element: Expr, to: DType) -> list[str]:
        assert isinstance(element, Reduce)
        functions = {"add": "vaddvaq", "min": "vminvq", "max": "vmaxvq"}
        if element.op not in functions:
            raise Plain
        body, function = element.body, functions[element.op]
        if to is DType.INT64:
            if element.op != "add" or not _widened(body):
                raise Plain
            assert isinstance(body, Call)
            start, body, function = 0, body.args[0], "vaddlvaq"
        else:
            start = self.begin(element)
        name = "folded"
        for v in loops:
            self.line(f"for (int32_t {v.name} = 0; {v.name} < {v.extent}; {v.name}++) {{")
            self.indent += 1
        wide = DType.INT64 if to is DType.INT64 else DType.INT32
        self.line(f"{wide.c_type} {name} = {literal(start, wide)};")
        place = self.open(element.over)
        p, inside = ("_p", ", inside") if self.partial else ("", "")
        self.line(f"{name} = {function}{p}_s32({name}, {self.vector(body)}{inside});")
        for _ in element.over:
            self.indent -= 1
            self.line("}")
        own = "" if to is wide else f"({to.c_type})"
        self.line(f"y[{self.scalar.text(position)}] = {own}{name};")
        return self.closed(len(loops), place)


class MoveWriter(LaneWriter):
    """A nest that moves elements, or fills with a constant: no arithmetic, so lanes need not be wider."""

    def __init__(self, along: Var, names: dict[Value, str], to: DType, lanes: int) -> None:
        self.lanes = lanes
        self.to = to
        bits = 128 // lanes
        self.kind, self.ctype = f"s{bits}", f"int{bits}x{lanes}_t"
        super().__init__(along, names)

    def choices(self, x: Call) -> str:
        raise Plain

    def text(self, x: Expr) -> str:
        if x.dtype is not self.to:
            raise Plain
        if isinstance(x, Const):
            value, top = int(x.value), 1 << self.to.bits - 1
            return f"vdupq_n_{self.kind}({value - 2 * top if value >= top else value})"
        if isinstance(x, Call) and x.op == "select":
            return self.choice(x)
        if not isinstance(x, Cell) or x.value.dtype is not self.to or is_packed(x.value):
            raise Plain
        if self.stride(x.position) != 1 or any(isinstance(n, Cell) for n in walk(x.position)):
            raise Plain
        own_type = f"int{self.to.bits}_t"
        at = f"{self.names[x.value]} + {self.scalar.text(x.position, SUMMAND)}"
        at = at if self.to.c_type == own_type else f"(const {own_type} *)({at})"
        if self.partial or 128 // self.lanes != self.to.bits:
            at = f"aot_model_read_{own_type}({at})"
        z, inside = ("_z", ", inside") if self.partial else ("", "")
        return f"vldr{'b' if self.to.bits == 8 else 'h'}q{z}_{self.kind}({at}{inside})"


class ProductWriter(LaneWriter):
    """A nest that multiplies numbers of 16 bits and brings the products to bytes: eight lanes until they are
    multiplied, and again when they have been narrowed.
    """

    kind = "s16"
    ctype = "int16x8_t"
    lanes = 8

    def nest(self, loops: Sequence[Var], position: Expr, element: Expr, to: DType) -> list[str]:
        clamped = element.args[0] if isinstance(element, Call) and element.op == "cast" else element
        limits = saturated(clamped) if isinstance(clamped, Call) else None
        form = product(limits[1]) if limits and isinstance(limits[1], Call) else None
        if to.bits != 8 or limits is None or limits[0] != to.c_type.removesuffix("_t") or form is None:
            raise Plain
        half = 1 << form.shift >> 1
        if self.stride(position) != 1 or form.shift == 32 or form.offset % (2 * half) != half:
            raise Plain  # other offsets are rare
        if not isinstance(form.x, Call) or form.x.op != "mul" or abs(form.offset >> form.shift) > 1 << 14:
            raise Plain
        if any(v.extent >= LANES for v in loops[:-1]) and self.repeats(form.x):
            loops, self.in_order = [self.along, *loops[:-1]], False
        at = loops.index(self.along) + 1
        place = self.open(loops[:at])
        if at < len(loops):
            for n in form.x.args:
                if not any(v in loops[at:] for v in walk(n)):
                    self.vector(n)  # once for all turns of the loops within
        for v in loops[at:]:
            self.line(f"for (int32_t {v.name} = 0; {v.name} < {v.extent}; {v.name}++) {{")
            self.indent += 1
        kind = "u" if to is DType.UINT8 else "s"
        self.narrowed(form, form.x.args, f"y + {self.scalar.text(position, SUMMAND)}", kind)
        return self.closed(len(loops), place)

    def repeats(self, x: Call) -> bool:
        """Whether a factor moves along vectors alone: it is read once where their loop is the outer one."""
        return any({v for v in walk(n) if isinstance(v, Var)} == {self.along} for n in x.args)

    def narrowed(self, form: Product, factors: Sequence[Expr], y: str, kind: str) -> None:
        """Stores the bytes. What narrows keeps half of a register: one that is no longer needed."""
        a, b = (self.vector(n) for n in factors)
        by, zero = form.shift - 32, form.offset >> form.shift
        for side, name in (("b", "even"), ("t", "odd")):
            upper = f"vmulhq_s32(vmull{side}q_int_s16({a}, {b}), vdupq_n_s32({form.multiplier}))"
            self.line(f"const int32x4_t {name} = {upper};")
        self.line(f"int16x8_t both = vqrshrnbq_n_s32({a}, even, {by});")
        self.line(f"both = vqrshrntq_n_s32(both, odd, {by});")
        if zero:
            self.line(f"both = vaddq_n_s16(both, {zero});")
        values = f"vqmov{'u' if kind == 'u' else ''}nbq_s16(vreinterpretq_{kind}8_s32(odd), both)"
        p, inside = ("_p", ", inside") if self.partial else ("", "")
        y = f"aot_model_written_{'' if kind == 's' else 'u'}int8_t({y})"
        self.line(f"vstrbq{p}_{kind}16({y}, vreinterpretq_{kind}16_{kind}8({values}){inside});")

    def text(self, x: Expr) -> str:
        with only_asking():
            low, high = bounds(x)
        if low is None or high is None or not DType.INT16.limits[0] <= low <= high <= DType.INT16.limits[1]:
            raise Plain
        bounds(x)  # the code relies on it
        if self.uniform(x):
            return f"vdupq_n_s16((int16_t){self.one(x)})"
        if isinstance(x, Call) and x.op == "cast":
            return self.vector(x.args[0])
        if isinstance(x, Call) and x.op in ("add", "sub") and isinstance(x.args[1], Const):
            return f"v{x.op}q_n_s16({self.vector(x.args[0])}, {self.one(x.args[1])})"
        if not isinstance(x, Cell) or x.value.dtype.bits != 8 or is_packed(x.value):
            raise Plain
        if x.value.dtype not in NARROW or self.stride(x.position) != 1:
            raise Plain
        z, inside = ("_z", ", inside") if self.partial else ("", "")
        sign = "u" if x.value.dtype is DType.UINT8 else "s"
        place = f"aot_model_read_{x.value.dtype.c_type}({self.names[x.value]} + {self.at(x.position)})"
        text = f"vldrbq{z}_{sign}16({place}{inside})"
        return f"vreinterpretq_s16_u16({text})" if sign == "u" else text
