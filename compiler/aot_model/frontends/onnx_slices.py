"""Slices at places that are computed, of lengths that are known: `x[i : i + 4]`, lax.dynamic_slice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from aot_model.c.names import printable
from aot_model.frontends.onnx_structure import Handler, Place
from aot_model.ir.graph import Node
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Concat, Gather, Slice
from aot_model.ops.registry import ints, normal_axis
from aot_model.ops.slices import SliceAt
from aot_model.ops.views import Reshape, Squeeze, Unsqueeze

_WHOLE = (DType.INT32, DType.INT64)
MAX_STEPS = 50
"""Nodes between a start and what its end is computed from."""


class _Number(NamedTuple):
    """An element of a value, and what is added to it; a constant is added to nothing."""

    base: tuple[Value, int] | None
    added: int


@dataclass(frozen=True)
class _Sums:
    """Values as sums of elements of others and constants, as exporters compute ends from starts."""

    made: dict[Value, Node]
    known: dict[Value, list[_Number]] = field(default_factory=dict)

    def of(self, value: Value, steps: int = 0) -> list[_Number]:
        if value not in self.known:
            self.known[value] = self._computed(value, steps) if steps < MAX_STEPS else _itself(value)
        return self.known[value]

    def _computed(self, value: Value, steps: int) -> list[_Number]:
        if value.data is not None:
            return [_Number(None, n) for n in ints(value.data)]
        node = self.made.get(value)
        given = [v for v in node.inputs if v is not None and v.dtype in _WHOLE] if node is not None else []
        if node is None or not given:
            return _itself(value)
        same = isinstance(node.op, Cast | Reshape | Squeeze | Unsqueeze) or node.kind == "Identity"
        if same and given[0].dtype.bits <= value.dtype.bits:
            return self.of(given[0], steps + 1)
        if isinstance(node.op, Concat) and value.type.rank == 1:
            return [n for v in given for n in self.of(v, steps + 1)]
        if node.kind in ("Add", "Sub"):
            parts = [self.of(v, steps + 1) for v in given]
            return _sums(parts, -1 if node.kind == "Sub" else 1) or _itself(value)
        return _itself(value)


def _itself(value: Value) -> list[_Number]:
    return [_Number((value, k), 0) for k in range(value.type.elements)]


def _sums(parts: list[list[_Number]], sign: int) -> list[_Number]:
    """Of numbers and constants; empty where two that are no constants are added."""
    count = max(map(len, parts))
    a, b = (p * count if len(p) == 1 else p for p in parts)
    result = []
    for x, y in zip(a, b, strict=True):
        if y.base is not None and (sign < 0 or x.base is not None):
            return []
        result.append(_Number(x.base or y.base, x.added + sign * y.added))
    return result


def _slice(place: Place) -> bool:
    x, *limits = (place.input(k) for k in range(5))
    if len(place.inputs) < 3 or place.importer.sizes.among(place.inputs):
        return False
    starts, ends, axes, steps = limits
    if any(v is not None and v.data is None for v in (axes, steps)) or starts.data is not None:
        return False
    if any(v.dtype not in _WHOLE or v.type.rank != 1 or v.shape[0] > x.type.rank for v in (starts, ends)):
        return False
    sums = _Sums({v: n for n in place.graph.nodes for v in n.outputs})
    first, last = sums.of(starts), sums.of(ends)
    along = (
        list(range(len(first))) if axes is None else [normal_axis(a, x.type.rank) for a in ints(axes.data)]
    )
    strides = [1] * len(first) if steps is None else ints(steps.data)
    if not len(first) == len(last) == len(along) == len(strides) == len(set(along)):
        return False
    moving, fixed = {}, []
    for k, (begin, end, axis) in enumerate(zip(first, last, along, strict=True)):
        if begin.base is None and end.base is None:
            fixed.append(k)
        elif begin.base != end.base or strides[k] != 1 or not 0 < end.added - begin.added <= x.shape[axis]:
            return False
        else:
            moving[axis] = (k, end.added - begin.added)
    build, name = place.build, place.proto.output[0]
    place.importer.notes.append(
        f"'{printable(name)}' is a slice at computed places: where it would leave its tensor, it is moved "
        "inside, and keeps its length"
    )
    if fixed:
        known = ([n[k].added for k in fixed] for n in (first, last))
        rest = ([n[k] for k in fixed] for n in (along, strides))
        x = build(Slice(), x, *(build.constant(n, DType.INT64) for n in (*known, *rest)))
    zero = build.constant([0], starts.dtype)
    places = []
    for axis, extent in enumerate(x.shape):
        if axis not in moving:
            places.append(zero)
            continue
        at = build(Gather(), starts, build.constant([moving[axis][0]], DType.INT64))
        from_end = build(op("Add"), at, build.constant([extent], starts.dtype))
        places.append(build(op("Where"), build(op("Less"), at, zero), from_end, at))
    sizes = tuple(moving[a][1] if a in moving else n for a, n in enumerate(x.shape))
    place.set(build(SliceAt(sizes), x, build(Concat(0), *places), output=name))
    return True


SLICES: dict[str, Handler] = {"Slice": _slice}
