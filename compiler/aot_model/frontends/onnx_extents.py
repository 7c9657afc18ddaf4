"""Shapes that are computed from the shapes of values of which the number of rows depends on data
(onnx_rows.py): which of their elements are numbers, and which are such a number of rows.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from aot_model.ir.graph import Node
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.conversion import Cast
from aot_model.ops.movement import Concat, Gather, Slice
from aot_model.ops.reduction import Reduction
from aot_model.ops.registry import Build, ints
from aot_model.ops.views import Reshape, Squeeze, Unsqueeze
from aot_model.passes.fold_constants import compute


class Counts(Protocol):
    """What is known of sizes: onnx_rows.Sizes."""

    shapes: dict[Value, Value]
    counts: dict[Value, Value]
    lifted: dict[Value, tuple[Value, int]]
    owners: dict[Value, Value]
    picked: dict[tuple[str, Value, int], Value]
    room: dict[Value, int]
    fewer: dict[Value, set[Value]]

    def at_most(self, count: Value, rows: int, build: Build) -> Value: ...

    def times(self, count: Value, factor: int, build: Build) -> Value: ...

    def together(self, parts: list[Value], counts: list[Value], build: Build) -> Value: ...


def extents_of(known: Counts, build: Build, value: Value | None) -> list[Value | int] | None:
    """The elements of a shape that is computed: numbers, and numbers of rows; None where one is neither."""
    if value is None or value.type.rank > 1:
        return None
    if value.data is not None:  # of real numbers those that are whole
        whole = value.dtype.is_integer or (value.dtype.is_float and bool((value.data % 1 == 0).all()))
        return list(ints(value.data)) if whole else None
    if value in known.owners:
        owner, parts = known.owners[value], list[Value | int](known.owners[value].shape)
        count, lead = (
            (known.counts[owner], 0) if owner in known.counts else known.lifted.get(owner, (None, 0))
        )
        if count is None:
            return None
        parts[lead] = count
        return parts
    node = next((n for n in build.nodes if value in n.outputs), None)
    if node is None:
        return None
    if isinstance(node.op, Reduction):
        count = _trues(known, build, node) or _least(known, build, node)
        return None if count is None else [count]
    if isinstance(node.op, Concat):
        found = [extents_of(known, build, v) for v in node.inputs]
        return None if None in found else [part for parts in found for part in parts or ()]
    if node.kind == "Add":
        return _sum(*(extents_of(known, build, v) for v in node.inputs))
    if not isinstance(node.op, Cast | Gather | Slice | Unsqueeze | Squeeze | Reshape):
        return None
    return moved_extents(known, build, node)


def _sum(a: list[Value | int] | None, b: list[Value | int] | None) -> list[Value | int] | None:
    """Of numbers; a number of rows and 0 are that number."""
    if a is None or b is None or len(a) != len(b):
        return None
    result: list[Value | int] = []
    for x, y in zip(a, b, strict=True):
        if isinstance(x, int) and isinstance(y, int):
            result.append(x + y)
        elif 0 in (x, y):
            result.append(y if x == 0 else x)
        else:
            return None
    return result


def moved_extents(known: Counts, build: Build, node: Node) -> list[Value | int] | None:
    """Of a node that picks elements of a shape, or gives it another type or rank."""
    value, source = node.outputs[0], node.inputs[0]
    if source is None or any(v is not None and v.data is None for v in node.inputs[1:]):
        return None
    if value.dtype.bits < 32:  # where a number of rows may become another
        return None
    whole = extents_of(known, build, source)
    if whole is None:
        return None
    places = np.arange(len(whole), dtype=value.dtype.numpy).reshape(source.shape)
    moved = Node(node.op, [constant("places", places), *node.inputs[1:]], list(node.outputs))
    chosen = compute(moved)
    return None if chosen is None else [whole[int(k)] for k in chosen[0].reshape(-1)]


def _trues(known: Counts, build: Build, node: Node) -> Value | None:
    """The number of rows that a mask picks, where a sum is that of the mask."""
    made = {v: n for n in build.nodes for v in n.outputs}
    value = node.inputs[0]
    if node.kind != "ReduceSum" or node.outputs[0].type.elements != 1:
        return None
    while value in made and isinstance(made[value].op, Cast | Reshape):
        value = made[value].inputs[0]
    if value is None or value.dtype is not DType.BOOL:
        return None
    return known.picked.get(("NonZeroRows", value, value.type.elements))


def _least(known: Counts, build: Build, node: Node) -> Value | None:
    """The lower one of a number of rows and a known one, as exporters write it."""
    parts = extents_of(known, build, node.inputs[0]) if node.kind == "ReduceMin" else None
    if parts is None or node.outputs[0].type.elements != 1:
        return None
    counts, numbers = [n for n in parts if isinstance(n, Value)], [n for n in parts if isinstance(n, int)]
    if len(counts) != 1 or min(numbers, default=-1) < 0:  # below 0 it is no number of rows
        return None
    return known.at_most(counts[0], min(numbers), build)


def at_bound(known: Counts, build: Build, shape: Value | None) -> tuple[Value, list[int]] | None:
    """Of a shape whose first extent is a number of rows: that, and the shape of what has room for all."""
    extents = extents_of(known, build, shape) if shape is not None and shape.data is None else None
    if not extents or not isinstance(count := extents[0], Value) or count not in known.room:
        return None
    rest = [n for n in extents[1:] if isinstance(n, int)]
    return (count, [known.room[count], *rest]) if len(rest) == len(extents) - 1 else None
