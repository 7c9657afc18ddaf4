"""TFLite: slices whose extent is computed, as loops over lists have them. TensorFlow writes item i of a list
as

    CONCATENATION(SLICE(x, [0, 0], [i, -1]), item, SLICE(x, [i + 1, 0], [-1, -1]))

The pieces have no size that is known when the model is compiled, and nobody needs them: together they are x
with the item at i. So a slice of this kind is a placeholder, which only CONCATENATION understands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aot_model.frontends.tflite_conversion import Conversion
from aot_model.ir.graph import Node
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.movement import Concat
from aot_model.ops.registry import normal_axis
from aot_model.ops.slices import SliceAt, UpdateAt

OPEN = "its size is computed at run time"


@dataclass(frozen=True)
class Number:
    """A whole number that is known, or a value plus one that is."""

    offset: int
    root: Value | None = None


@dataclass(frozen=True)
class Piece:
    """x up to a place along an axis, or from there on."""

    x: Value
    axis: int
    tail: bool
    place: Number


def numbers(nodes: Sequence[Node], value: Value) -> list[Number]:
    """The elements of a value as far as the nodes before say what they are."""
    if value.data is not None:
        return [Number(int(v)) for v in np.asarray(value.data).reshape(-1)]
    node = next((n for n in reversed(nodes) if value in n.outputs), None)
    inputs = [] if node is None else [v for v in node.inputs if v is not None]
    if node is not None and node.kind == "Concat" and value.type.rank == 1:
        return [element for v in inputs for element in numbers(nodes, v)]
    if (
        node is not None
        and node.kind in ("ReshapeTo", "Cast", "Identity")
        and inputs[0].dtype.is_integer
        and value.dtype.is_integer
    ):
        return numbers(nodes, inputs[0])
    if (
        node is not None
        and node.kind in ("Add", "Sub")
        and value.type.elements == 1
        and all(v.type.elements == 1 for v in inputs)
    ):
        (a,), (b,) = (numbers(nodes, v) for v in inputs)
        if node.kind == "Add" and (a.root is None or b.root is None):
            return [Number(a.offset + b.offset, a.root or b.root)]
        if node.kind == "Sub" and b.root is None:
            return [Number(a.offset - b.offset, a.root)]
    return [Number(0, value)] if value.type.elements == 1 else []


def computed_slice(n: Conversion) -> Value:
    """SLICE at a place that is computed; of a size that is known, or a piece."""
    x = n.x()
    begins, sizes = (numbers(n.build.nodes, n.x(k)) for k in (1, 2))
    declared = (
        n.out().shape
        if len(n.out().shape) == x.type.rank and not n.out().dynamic and not n.host.resized
        else None
    )
    begins = begins or [Number(-1)] * x.type.rank
    if len(begins) != x.type.rank or (sizes and len(sizes) != x.type.rank):
        raise OperatorError(f"{len(begins)} begins and {len(sizes)} sizes for {x.type}")
    wanted = declared or _extents(x, begins, sizes)
    if wanted is not None:
        return n.build(SliceAt(tuple(wanted)), x, n.x(1))
    cut = [
        k for k, (b, s) in enumerate(zip(begins, sizes, strict=False)) if (b, s) != (Number(0), Number(-1))
    ]
    if len(cut) == 1:
        begin, size = begins[cut[0]], sizes[cut[0]]
        if begin == Number(0) or (size == Number(-1) and begin.root is not None):
            placeholder = Value(n.out().name, TensorType(x.dtype, ()))
            n.host.pieces[placeholder] = Piece(
                x, cut[0], begin != Number(0), begin if begin != Number(0) else size
            )
            return placeholder
    raise OperatorError(OPEN, "E203", "convert the model with fixed shapes")


def _extents(x: Value, begins: list[Number], sizes: list[Number]) -> list[int] | None:
    """The size of a slice along each axis; None when it is computed."""
    found = []
    for begin, size, extent in zip(begins, sizes, x.shape, strict=False):
        if size.root is not None or (size.offset == -1 and begin.root is not None):
            return None
        found.append(extent - begin.offset if size.offset == -1 else size.offset)
    return found if len(found) == x.type.rank else None


def joined(n: Conversion, axis: int) -> Value:
    """CONCATENATION of the pieces around items: x with the items written at a place. OperatorError when it is
    something else.
    """
    parts = [n.x(k) for k in range(len(n.inputs))]
    first, last = n.host.pieces.get(parts[0]), n.host.pieces.get(parts[-1])
    items = parts[1:-1]
    if (
        first is None
        or last is None
        or not items
        or first.tail
        or not last.tail
        or first.x is not last.x
        or first.axis != last.axis
    ):
        raise OperatorError(OPEN, "E203", "convert the model with fixed shapes")
    x = first.x
    at = normal_axis(axis, x.type.rank)
    item = n.build(Concat(at), *items) if len(items) > 1 else items[0]
    length = item.shape[at] if len(item.shape) == x.type.rank else -1
    if (
        at != first.axis
        or first.place.root is not last.place.root
        or last.place.offset - first.place.offset != length
    ):
        raise OperatorError(OPEN, "E203", "convert the model with fixed shapes")
    return n.build(UpdateAt(), x, item, _begins(n, x, at, first.place))


def _begins(n: Conversion, x: Value, axis: int, place: Number) -> Value:
    """The place as a vector with zeros for the other axes."""
    if place.root is None:
        return n.constant([place.offset if k == axis else 0 for k in range(x.type.rank)], DType.INT32)
    number = n.reshape(place.root, (1,))
    if place.offset:
        number = n.add("Add", number, n.constant([place.offset], number.dtype))
    rest = [n.constant(np.zeros(count), number.dtype) for count in (axis, x.type.rank - axis - 1)]
    return n.build(Concat(0), *(v for v in (rest[0], number, rest[1]) if v.type.elements))
