"""Nests of loops over integers in Helium: one element of the result in each lane, copies of eight or sixteen
elements, and folds along neighbouring terms.
"""

from __future__ import annotations

from collections.abc import Sequence

from aot_model.c.expr import SUMMAND
from aot_model.c.integer_vectors import LANES, NARROW, LaneWriter, Plain
from aot_model.c.literal import literal
from aot_model.ir.expr import Call, Cell, Const, Expr, Reduce, Var, walk
from aot_model.ir.nibbles import is_packed
from aot_model.ir.types import DType
from aot_model.ir.values import Value


def vector_loops(loops: Sequence[Var], position: Expr, element: Expr, to: DType,
                 names: dict[Value, str]) -> list[str] | None:
    """C of the nest that stores y[position] = element, or None where it stays a plain loop."""
    if to not in NARROW:
        return None
    moves = (MoveWriter(v, names, to, n) for v in loops[-1:] for n in (16, 8)
             if n * to.bits <= 128 and v.extent % n == 0)  # fmt: skip
    lanes = (LaneWriter(v, names) for v in loops[-1:] if v.extent >= LANES)
    writers: tuple[LaneWriter, ...] = (*moves, *_folds(loops, element, names), *lanes)
    for writer in writers:
        try:
            return writer.nest(loops, position, element, to)
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


class FoldWriter(LaneWriter):
    """A nest whose elements are folds, four of their terms at a time."""

    def nest(self, loops: Sequence[Var], position: Expr, element: Expr, to: DType) -> list[str]:
        assert isinstance(element, Reduce)
        name, start = "folded", self.begin(element)
        for v in loops:
            self.line(f"for (int32_t {v.name} = 0; {v.name} < {v.extent}; {v.name}++) {{")
            self.indent += 1
        self.line(f"int32_t {name} = {literal(start, DType.INT32)};")
        place = self.open(element.over)
        function = {"add": "vaddvaq", "min": "vminvq", "max": "vmaxvq"}[element.op]
        p, inside = ("_p", ", inside") if self.partial else ("", "")
        self.line(f"{name} = {function}{p}_s32({name}, {self.vector(element.body)}{inside});")
        for _ in element.over:
            self.indent -= 1
            self.line("}")
        own = "" if to is DType.INT32 else f"({to.c_type})"
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
        return f"vldr{'b' if self.to.bits == 8 else 'h'}q_{self.kind}({at})"
