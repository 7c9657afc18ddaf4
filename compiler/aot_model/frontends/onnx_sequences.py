"""Sequences and optionals of an ONNX model. They exist at import only: a sequence is a tuple of values, an
absent optional is an empty one.
"""

from __future__ import annotations

import numpy as np
import onnx

from aot_model.frontends.onnx_structure import Handler, Items, Place
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.movement import Concat, Slice
from aot_model.ops.registry import ints, normal_axis, static
from aot_model.ops.views import Squeeze, Unsqueeze


def _construct(place: Place) -> bool:
    place.set(Items(tuple(place.inputs)))
    return True


def _empty(place: Place) -> bool:
    place.set(Items(()))
    return True


def _position(place: Place, index: int, count: int, default: int) -> int:
    found = place.number(index, "the position") if place.input(index) is not None else None
    position = default if found is None else found
    position += count if position < 0 else 0
    if not 0 <= position <= count:
        raise OperatorError(f"position {found} is outside of a sequence of {count}")
    return position


def _insert(place: Place) -> bool:
    values = list(place.items())
    values.insert(_position(place, 2, len(values), len(values)), place.input(1))
    place.set(Items(tuple(values)))
    return True


def _erase(place: Place) -> bool:
    values = list(place.items())
    del values[_position(place, 1, len(values), len(values) - 1)]
    place.set(Items(tuple(values)))
    return True


def _sequence_at(place: Place) -> bool:
    values = place.items()
    position = _position(place, 1, len(values), 0)
    if position >= len(values):
        raise OperatorError(f"position {position} is outside of a sequence of {len(values)}")
    place.set(values[position])
    return True


def _length(place: Place) -> bool:
    place.set(constant(place.proto.output[0], np.asarray(len(place.items()), np.int64)))
    return True


def _split(place: Place) -> bool:
    x, axis, keep = place.input(0), place.attribute("axis") or 0, place.attribute("keepdims")
    a = normal_axis(axis, x.type.rank)
    data = static(place.inputs, 1, "the sizes") if place.input(1) is not None else None
    n = x.shape[a]
    if data is None:
        sizes = [1] * n
    elif data.ndim == 0:
        step = int(data)
        if step < 1:
            raise OperatorError(f"pieces of {step} elements")
        sizes = [min(step, n - k) for k in range(0, n, step)]
    else:
        sizes = list(ints(data))
    if sum(sizes) != n or any(size < 0 for size in sizes):
        raise OperatorError(f"pieces of {sizes} elements are not the {n} of axis {a} of {x.type}")
    # The standard ignores keepdims where it is told the sizes. PyTorch's exporter writes unbind() as pieces
    # of 1 without their axis, and ONNX Runtime gives these.
    alone = keep == 0 and (data is None or (data.ndim == 0 and int(data) == 1))
    build, pieces, begin = place.build, [], 0
    for size in sizes:
        piece = build(Slice(), x, *(build.constant([v], DType.INT64) for v in (begin, begin + size, a)))
        if alone:
            piece = build(Squeeze(), piece, build.constant([a], DType.INT64))
        pieces.append(piece)
        begin += size
    place.set(Items(tuple(pieces)))
    return True


def _concat(place: Place) -> bool:
    values, axis, build = place.items(), int(place.attribute("axis") or 0), place.build
    if not values:
        raise OperatorError("cannot concatenate an empty sequence")
    if place.attribute("new_axis"):
        a = normal_axis(axis, values[0].type.rank + 1)
        values = tuple(build(Unsqueeze(), v, build.constant([a], DType.INT64)) for v in values)
        axis = a
    place.set(build(Concat(axis), *values))
    return True


def _optional(place: Place) -> bool:
    found = place.input(0)
    place.set(Items(()) if found is None else found)
    return True


def _has_element(place: Place) -> bool:
    found = place.input(0)
    present = found is not None and not (isinstance(found, Items) and not found.values)
    place.set(constant(place.proto.output[0], np.asarray(present)))
    return True


def _get_element(place: Place) -> bool:
    found = place.input(0)
    if found is None or found == Items(()):
        raise OperatorError("the optional has no element")
    place.set(found)
    return True


def _map(place: Place) -> bool:
    body: onnx.GraphProto = place.attribute("body")
    results: list[tuple[Value, ...]] = []
    for k in range(len(place.items())):
        given = [v.values[k] if isinstance(v, Items) else v for v in place.inputs]
        inner = {**place.scope, **{i.name: v for i, v in zip(body.input, given, strict=True)}}
        results.append(tuple(place.importer.inline(body, place.graph, inner, f"item{k}")))
    columns = zip(*results, strict=True) if results else [() for _ in body.output]
    place.set(*(Items(tuple(column)) for column in columns))
    return True


def _identity(place: Place) -> bool:
    """Of a sequence: itself."""
    if isinstance(place.input(0), Items):
        place.set(place.input(0))
        return True
    return False


SEQUENCES: dict[str, Handler] = {
    "ConcatFromSequence": _concat,
    "Identity": _identity,
    "Optional": _optional,
    "OptionalGetElement": _get_element,
    "OptionalHasElement": _has_element,
    "SequenceAt": _sequence_at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SequenceMap": _map,
    "SplitToSequence": _split,
}
