"""Assignments of one value to the elements that a mask picks, `x[mask] = value` in PyTorch.

Its exporter writes them as ScatterND at the places NonZero(mask) of the value, repeated by Expand as often as
the mask holds. How often that is depends on data; what comes of it does not: Where(mask, value, x).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from aot_model.frontends.onnx_structure import Handler, Place
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.dynamic import NonZeroRows
from aot_model.ops.elementwise import op
from aot_model.ops.registry import static


@dataclass(frozen=True)
class _Repeated:
    """A value of one element, repeated as data say: known to this module alone, an error to all else."""

    one: Value
    error: OperatorError

    def __getattr__(self, name: str) -> NoReturn:
        raise self.error


def _expand(place: Place) -> bool:
    """Of one element to a shape that depends on data."""
    x = place.input(0)
    if not isinstance(x, Value) or x.type.elements != 1:
        return False
    try:
        static(place.inputs, 1, "the shape")
    except OperatorError as error:
        place.set(_Repeated(x, error))
        return True
    return False


def _reshape(place: Place) -> bool:
    """What repeats one element has the same elements in any shape."""
    x = place.input(0)
    if not isinstance(x, _Repeated):
        return False
    place.set(x)
    return True


def _scatter(place: Place) -> bool:
    x, places, updates = (place.input(k) for k in range(3))
    if not isinstance(updates, _Repeated):
        return False
    node = next((n for n in place.graph.nodes if places in n.outputs), None)
    if (
        node is None
        or not isinstance(node.op, NonZeroRows)
        or place.attribute("reduction") not in (None, b"none")
    ):
        raise updates.error
    (mask,) = node.inputs
    if not isinstance(x, Value) or mask is None or mask.shape != x.shape[: mask.type.rank]:
        raise updates.error
    if place.importer.sizes.among((x, updates.one)):  # Where would forget how many rows there are
        raise updates.error
    build, rest = place.build, x.type.rank - mask.type.rank
    holds = mask if mask.dtype is DType.BOOL else build(Cast(DType.BOOL), mask)
    if rest:
        holds = build(op("Reshape"), holds, build.constant((*mask.shape, *[1] * rest), DType.INT64))
    value = build(op("Reshape"), updates.one, build.constant((), DType.INT64))
    place.set(build(op("Where"), holds, value, x, output=place.proto.output[0]))
    return True


MASKS: dict[str, Handler] = {"Expand": _expand, "Reshape": _reshape, "ScatterND": _scatter}
