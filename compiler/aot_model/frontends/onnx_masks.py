"""What masks pick, where its size does not depend on data after all.

Assignments of one value to the elements that a mask picks, `x[mask] = value` in PyTorch: its exporter writes
them as ScatterND at the places NonZero(mask) of the value, repeated by Expand as often as the mask holds. How
often that is depends on data; what comes of it does not: Where(mask, value, x).

Compress by a mask that is known: slices by their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from aot_model.frontends.onnx_extents import at_bound
from aot_model.frontends.onnx_structure import Handler, Place
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.dynamic import NonZeroRows
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Expand, Gather, Slice
from aot_model.ops.registry import normal_axis, static
from aot_model.ops.views import Reshape


@dataclass(frozen=True)
class Repeated:
    """A value of one element, repeated as data say: for ScatterND here, an error to all else."""

    one: Value
    error: OperatorError

    def __getattr__(self, name: str) -> NoReturn:
        raise self.error


def _expand(place: Place) -> bool:
    """Of one element to a shape that depends on data, and is more than a number of rows."""
    x, shape = place.input(0), place.input(1)
    if not isinstance(x, Value) or x.type.elements != 1:
        return False
    rows = at_bound(place.importer.sizes, place.build, shape) if isinstance(shape, Value) else None
    if rows is not None and x.type.rank <= len(rows[1]):
        return False
    try:
        static(place.inputs, 1, "the shape")
    except OperatorError as error:
        place.set(Repeated(x, error))
        return True
    return False


def _reshape(place: Place) -> bool:
    """What repeats one element has the same elements in any shape."""
    x = place.input(0)
    if not isinstance(x, Repeated):
        return False
    place.set(x)
    return True


def _repeated(place: Place, updates: object) -> Value | None:
    """The one element that is in all rows of updates."""
    made = {v: n for n in place.graph.nodes for v in n.outputs}
    while isinstance(updates, Value) and updates in made and isinstance(made[updates].op, Reshape):
        updates = made[updates].inputs[0]
    if not isinstance(updates, Value) or updates not in place.importer.sizes.counts:
        return None
    node = made.get(updates)
    one = node.inputs[0] if node is not None and isinstance(node.op, Expand) else None
    return one if one is not None and one.type.elements == 1 else None


def _scatter(place: Place) -> bool:
    x, places, updates = (place.input(k) for k in range(3))
    one = updates.one if isinstance(updates, Repeated) else _repeated(place, updates)
    if one is None:
        return False
    node = next((n for n in place.graph.nodes if places in n.outputs), None)
    mask = node.inputs[0] if node is not None and isinstance(node.op, NonZeroRows) else None
    if (
        place.attribute("reduction") not in (None, b"none")
        or not isinstance(x, Value)
        or mask is None
        or mask.shape != x.shape[: mask.type.rank]
        or place.importer.sizes.among((x, one))  # Where would forget how many rows there are
    ):
        if isinstance(updates, Repeated):
            raise updates.error
        return False
    build, rest = place.build, x.type.rank - mask.type.rank
    holds = mask if mask.dtype is DType.BOOL else build(Cast(DType.BOOL), mask)
    if rest:
        holds = build(op("Reshape"), holds, build.constant((*mask.shape, *[1] * rest), DType.INT64))
    value = build(op("Reshape"), one, build.constant((), DType.INT64))
    place.set(build(op("Where"), holds, value, x, output=place.proto.output[0]))
    return True


def _compress(place: Place) -> bool:
    """By a mask that is known, as tf2onnx crops what it mirrors; a slice where the picked lie together."""
    x, mask, axis = place.input(0), place.input(1), place.attribute("axis")
    if not (isinstance(x, Value) and isinstance(mask, Value)) or place.importer.sizes.among((x,)):
        return False
    if mask.data is None or mask.dtype is not DType.BOOL or (axis is not None and mask.type.rank != 1):
        return False
    build, name = place.build, place.proto.output[0]
    if axis is None:
        x = build(op("Reshape"), x, build.constant([-1], DType.INT64))
    a = 0 if axis is None else normal_axis(axis, x.type.rank)
    picked = np.flatnonzero(mask.data)
    picked = picked[picked < x.shape[a]]
    first, last = (int(picked[0]), int(picked[-1]) + 1) if picked.size else (0, 0)
    if last - first == picked.size:
        limits = (build.constant([n], DType.INT64) for n in (first, last, a))
        place.set(build(Slice(), x, *limits, output=name))
    else:
        place.set(build(Gather(a), x, build.constant(picked, DType.INT64), output=name))
    return True


MASKS: dict[str, Handler] = {
    "Compress": _compress,
    "Expand": _expand,
    "Reshape": _reshape,
    "ScatterND": _scatter,
}
