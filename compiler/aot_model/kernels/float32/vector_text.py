"""Expressions over a vector of neighbouring channels, in the C of a float vector dialect."""

from __future__ import annotations

import math

from aot_model.c.expr import SUMMAND
from aot_model.c.float_vectors import rounded
from aot_model.c.literal import float_literal
from aot_model.c.rounding import Rounding
from aot_model.c.statements import CWriter
from aot_model.ir.expr import Call, Cell, Const, Expr, Leaf, walk
from aot_model.ir.index import substitute
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.float32.dialect import VectorDialect

_OPERATIONS = ("add", "sub", "mul", "max", "min")
_FUNCTIONS = ("rational_tanh", "rational_logistic")


def can_vectorise(element: Expr, index: tuple[Expr, ...], accumulator: Leaf, dialect: VectorDialect) -> bool:
    """Whether a tail can be computed on vectors: arithmetic only, memory read along the channels or not at
    all.
    """
    channel = index[-1] if index else None
    operations = _OPERATIONS if dialect.div_text is None else (*_OPERATIONS, *_FUNCTIONS)
    pending = [element]
    while pending:
        x = pending.pop()
        if x is accumulator or isinstance(x, Const):
            continue
        if isinstance(x, Cell):
            if (
                x.value.dtype is not DType.FLOAT32
                or not _along(x.position, channel)
                or any(isinstance(n, Cell) for n in walk(x.position))
            ):
                # a row that is looked up, as of an embedding, is a position that reads memory itself
                return False
        elif isinstance(x, Call) and x.op in operations and x.dtype is DType.FLOAT32:
            pending.extend(x.args)
        else:
            return False
    return True


def rounding_of(element: Expr) -> Rounding | None:
    """What a tail rounds and stores as an integer of at most 16 bits; None where it does something else."""
    if not (isinstance(element, Call) and element.op == "cast" and element.dtype.bits <= 16):
        return None
    return Rounding.of(element.args[0])


def store_rounded(y: str, rounding: Rounding, value: str, to: DType, some: int | None = None) -> str:
    """C that stores at y the integers of a vector `value` of floats; some: of its first lanes alone."""
    own, letter = (f"int{to.bits}_t", "b" if to.bits == 8 else "h")
    place = y if to.c_type == own else f"({own} *)({y})"
    form, lanes = ("", "") if some is None else ("_p", f", vctp32q({some})")
    return f"vstr{letter}q{form}_s32(aot_model_written_{own}({place}), {rounded(rounding, value)}{lanes});"


def _along(position: Expr, channel: Expr | None) -> bool:
    """Whether a position moves by one with the channel, or does not depend on it."""
    if position is channel or not any(n is channel for n in walk(position)):
        return True
    if not (isinstance(position, Call) and position.op == "isum"):
        return False
    atoms = position.args[:-1]
    for atom, factor in zip(atoms[::2], atoms[1::2], strict=True):
        if atom is channel:
            if not (isinstance(factor, Const) and factor.value == 1):
                return False
        elif any(n is channel for n in walk(atom)):
            return False
    return True


class VectorText:
    """Writes a tail over vectors. names: C names of the tensors that are read; mapping: the tail's indices
    and accumulator to what they are where the vector is stored."""

    def __init__(
        self, dialect: VectorDialect, names: dict[Value, str], channel: Expr | None, mapping: dict[Expr, Expr]
    ) -> None:
        self.dialect = dialect
        self.names = names
        self.channel = channel
        self.mapping = mapping

    def text(self, x: Expr) -> str:
        d = self.dialect
        if isinstance(x, Leaf):
            return position_text(self.mapping[x])
        if isinstance(x, Const):
            return d.splat(float_literal(float(x.value), DType.FLOAT32))
        if isinstance(x, Cell):
            position = position_text(substitute(x.position, self.mapping), SUMMAND)
            name = self.names[x.value]
            moves = self.channel is not None and any(n is self.channel for n in walk(x.position))
            if not moves:
                return d.splat(f"{name}[{position}]")
            return d.load(name if position == "0" else f"{name} + {position}")
        assert isinstance(x, Call)
        if x.op in _FUNCTIONS:
            return f"{d.function(x.op)}({self.text(x.args[0])})"
        a, b = (self.text(v) for v in x.args)
        if x.op == "max":
            # The vector instructions return their second operand when one is NaN: NaN then stays NaN under a
            # clamp.
            low = x.args[1]
            if isinstance(low, Const) and float(low.value) >= 0 and math.copysign(1, float(low.value)) > 0:
                return d.at_least(b, a)
            return d.maximum(b, a)
        if x.op == "min":
            return d.minimum(b, a)
        if x.op == "sub":
            return d.sub(a, b)
        return d.add(a, b) if x.op == "add" else d.mul(a, b)


def position_text(x: Expr, precedence: int = 0) -> str:
    """C text of an index; it reads no memory. precedence: in brackets where its operator binds less
    (c/expr.py).
    """

    def no_cells(cell: Cell, text: str) -> str:
        raise AssertionError(f"{cell.value} in an index")

    return CWriter(no_cells, 0).text(x, precedence)
