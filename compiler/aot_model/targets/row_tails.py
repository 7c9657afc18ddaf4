"""Tails that finish the results of a pixel at once: the sum with another tensor, a table, and on Helium any
expression of neighbouring channels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

from aot_model.c.expr import SUMMAND
from aot_model.c.vectors import Vectors, vectors
from aot_model.ir.expr import Var, cell, var
from aot_model.ir.graph import Node
from aot_model.ir.index import add, substitute
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.float32.vector_text import position_text
from aot_model.kernels.int8.affine_sum import Affine, RowSum
from aot_model.kernels.tail import FusedTail, leaves
from aot_model.ops.quantised import QuantisedSum
from aot_model.ops.quantised_tables import Lookup
from aot_model.targets.int8_families import Family


@dataclass(frozen=True)
class ByRows(FusedTail):
    """A tail whose work a function does, a row at a time; it reads one more tensor."""

    row: RowSum = field(default_factory=lambda: RowSum(""))
    in_place: bool = True
    """Whether that tensor is read where the result goes, or from its beginning."""
    adjacent: bool = True
    """Whether pixels that follow one another do so in the output."""

    @property
    def row_helpers(self) -> tuple[str, ...]:
        """Texts of the functions that store_row's statement calls."""
        return self.row.helpers

    def store_row(self, source: str, index: tuple[str, str, str, str], count: int | str) -> str:
        """`count` results from a pixel's first channel on; see kernels/row_tail.py."""
        at = position_text(substitute(self.position, self.mapping("acc", index)), SUMMAND)
        (other,) = self.names.values()
        where = "" if at == "0" else f" + {at}"
        self.headers.update({self.row.header} - {""})
        return self.row.call(source, f"{other}{where if self.in_place else ''}", f"y{where}", str(count))


@dataclass(frozen=True)
class ByVectors(FusedTail):
    """A tail that is a loop over the channels of a pixel, in vectors, and a plain one elsewhere."""

    row_helpers: tuple[str, ...] = ()
    adjacent: bool = False
    """Constants of a channel are those of its pixel."""
    of_channels: bool = True

    def store_row(
        self, source: str, index: tuple[str, str, str, str], count: int | str, kind: DType | None = None
    ) -> str:
        """`count` results that lie at `source` in the type `kind`, that of the accumulator if None, from a
        channel on. index: (n, y, x, channel) of the first.
        """
        array, _, place = source.partition(" + ")
        first = f"{index[3]} + " if index[3] != "0" else ""
        each = self.store(f"{array}[{place}{' + ' if place else ''}lane]", (*index[:3], f"{first}lane"), 1)
        plain = f"for (int32_t lane = 0; lane < {count}; lane++) {{\n{each.rstrip()}\n}}\n"
        found = self._vectors(source, index, int(count), kind or self.accumulator.dtype)
        if found is None:
            return plain
        self.headers.add(found.header)
        lines = "\n".join(found.nest.lines)
        return f"#if AOT_MODEL_{found.kind}_VECTORS\n{{\n{lines}\n}}\n#else\n{plain}#endif\n"

    def _vectors(
        self, source: str, index: tuple[str, str, str, str], count: int, kind: DType
    ) -> Vectors | None:
        lane, row = var("lane", count), Value("row", TensorType(kind, (count,)))
        if not isinstance(lane, Var):
            return None
        *pixel, channel = leaves(index)
        places = self.places((*pixel, add(channel, lane)))  # type: ignore[arg-type]
        element = substitute(self.element, {**places, self.accumulator: cell(row, lane)})
        return vectors([lane], substitute(self.position, places), element, self.element.dtype,
                       {**self.names, row: source})  # fmt: skip


def by_vectors(tail: FusedTail) -> FusedTail:
    """The tail as a loop in vectors, where something is left to do."""
    if tail.is_identity or type(tail) is not FusedTail:
        return tail
    return ByVectors(**{f.name: getattr(tail, f.name) for f in fields(tail)})


def by_rows(
    family: Family, tail: FusedTail, nodes: tuple[Node, ...], before: Value, adjacent: bool
) -> FusedTail:
    """The tail as one by rows where the family has a function for all of its nodes; before: what they read
    of the kernel.
    """
    found = _by_rows(family, tail, nodes, before)
    return replace(found, adjacent=adjacent) if isinstance(found, ByRows) else found


def _by_rows(family: Family, tail: FusedTail, nodes: tuple[Node, ...], before: Value) -> FusedTail:
    if len(nodes) != 1 or len(tail.names) != 1:
        return tail
    node = nodes[0]
    kind = node.outputs[0].dtype
    if {v.dtype for v in (*node.inputs, *node.outputs) if v is not None} != {kind}:
        return tail
    if isinstance(node.op, QuantisedSum) and kind in family.sum_rows:
        return _sum(family.sum_rows[kind], tail, node, node.op, before)
    if isinstance(node.op, Lookup) and kind in family.lookup_rows:
        return _by(tail, family.lookup_rows[kind], in_place=False)
    return tail


def _sum(
    row_kernel: Callable[[Affine], RowSum], tail: FusedTail, node: Node, op: QuantisedSum, before: Value
) -> FusedTail:
    """The sum of the kernel's result and a tensor of the same place."""
    (other,) = tail.names
    if op.function != "add" or not tail.reads_in_place(other):
        return tail
    if other.type.elements != node.outputs[0].type.elements:
        return tail
    form = op.affine(other.dtype, swapped=node.inputs[0] is not before)
    return tail if form is None else _by(tail, row_kernel(form), in_place=True)


def _by(tail: FusedTail, row: RowSum, in_place: bool) -> ByRows:
    return ByRows(**{f.name: getattr(tail, f.name) for f in fields(tail)}, row=row, in_place=in_place)
