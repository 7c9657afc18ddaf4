"""Values that a kernel can read where they lie, through strides: transposes, slices and reshapes of a stored
value.
"""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.ir.expr import Call, Cell, Const, Expr, Index, Var, load
from aot_model.ir.graph import Node
from aot_model.ir.index import flatten, index_variables
from aot_model.ir.types import strides_of
from aot_model.ir.values import Value


@dataclass(frozen=True)
class Strided:
    """Element (i, j, …) is source[offset + i * strides[0] + j * strides[1] + …], in elements."""

    source: Value
    offset: int
    strides: tuple[int, ...]


def dense(value: Value) -> Strided:
    """The value itself."""
    return Strided(value, 0, strides_of(value.shape))


def strided(value: Value, producer: dict[Value, Node]) -> Strided | None:
    """The value as a strided window of another one; None when it is no such window, or of itself only."""
    if value not in producer or not producer[value].op.movement or not producer[value].op.has("express"):
        return None
    index = index_variables(value.shape)

    def at(v: Value, where: Index) -> Expr:
        node = producer.get(v)
        if node is None or not node.op.movement or not node.op.has("express") or v.is_const:
            return load(v, where)
        return node.op.express(at, node.inputs, where, node.outputs.index(v))

    element = flatten(at(value, index))
    if not isinstance(element, Cell) or element.value.is_const or element.value is value:
        return None
    found = _linear(element.position, index)
    return None if found is None else Strided(element.value, *found)


def _linear(position: Expr, index: Index) -> tuple[int, tuple[int, ...]] | None:
    """(offset, stride of each index) of a position that is a sum of indices times constants."""
    strides = [0] * len(index)
    offset = 0
    if isinstance(position, Const):
        return int(position.value), tuple(strides)
    if isinstance(position, Var):
        terms: list[tuple[Expr, int]] = [(position, 1)]
    elif isinstance(position, Call) and position.op == "isum":
        numbers = [a.value if isinstance(a, Const) else 0 for a in position.args]
        terms = [(atom, int(numbers[2 * k + 1])) for k, atom in enumerate(position.args[:-1:2])]
        offset = int(numbers[-1])
    else:
        return None
    for atom, factor in terms:
        if atom not in index:
            return None
        strides[index.index(atom)] = factor
    return (offset, tuple(strides)) if offset >= 0 and min(strides, default=0) >= 0 else None
