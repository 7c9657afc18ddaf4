"""TFLite: lists of tensors, in which TensorFlow's loops gather results: what Keras' recurrent layers become
when a converter is allowed to leave TensorFlow's own operators in the file (SELECT_TF_OPS).

A list is one tensor, its items along the first axis. Its length is known when it is made. TensorFlow ends a
run that reads or writes beyond the ends of a list; here such an index is that of the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from aot_model.frontends.tflite_conversion import Conversion, rule
from aot_model.frontends.tflite_file import File, FileOperator
from aot_model.frontends.tflite_tensorflow import FLEX, Attributes
from aot_model.frontends.tflite_tensors import Tensor
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, elements_beside
from aot_model.ir.values import Value
from aot_model.ops.movement import Concat
from aot_model.ops.registry import bounded
from aot_model.ops.slices import SliceAt, UpdateAt

KIND = "VARIANT"
"""The type of a list in the file."""
_FLEX = f"{FLEX}TensorList"
_BEFORE = {"WHILE": 0, "IF": 1, "CALL": 0}
"""Operators that hand lists to sub-graphs, and how many inputs of theirs come before what they hand on."""


def check_readers(operator: FileOperator, tensors: tuple[Tensor | None, ...]) -> None:
    """OperatorError when an operator reads a list that cannot."""
    if any(t is not None and t.kind == KIND for t in tensors) and not (
        operator.kind in _BEFORE or operator.kind.startswith(_FLEX)
    ):
        raise OperatorError("reads a list of tensors, which only operators of lists can", "E102")


def _list(n: Conversion) -> Value:
    """The list that an operator reads."""
    if n.tensor(0).kind != KIND:
        raise OperatorError(f"input 0 is {n.tensor(0).kind}, not a list of tensors", "E102")
    return n.x(0)


def _at(n: Conversion, items: Value) -> Value:
    """The place of an item, and the beginnings of all other axes."""
    index = n.x(1)
    if index.dtype is not DType.INT32 or index.type.elements != 1:
        raise OperatorError(f"an index {index.type} is not one int32")
    rest = n.constant(np.zeros(items.type.rank - 1), DType.INT32)
    return n.build(Concat(0), n.reshape(index, (1,)), rest)


@rule(f"{_FLEX}Reserve")
def reserve(n: Conversion) -> Value:
    """A list of zeros: an item that nothing writes is that."""
    shape = n.ints(0, "the shape of a list's items")
    count = n.ints(1, "the length of a list")
    item = _item(n.host.file, n.subgraph, n.operator.outputs[0], shape)
    if item is None or item.dtype is None or len(count) != 1 or count[0] < 0:
        raise OperatorError(
            "the shape of a list's items or its length is not known",
            "E203",
            "convert the model with fixed shapes, batch 1 among them",
        )
    bounded(count[0] * max(elements_beside(item.shape), 1))
    return n.constant(np.zeros((count[0], *item.shape)), item.dtype)


@rule(f"{_FLEX}FromTensor")
def from_tensor(n: Conversion) -> Value:
    x = n.x(0)
    if not x.shape:
        raise OperatorError("a list is made of one number")
    return n.add("Identity", x)


@rule(f"{_FLEX}SetItem")
def set_item(n: Conversion) -> Value:
    items, item = _list(n), n.x(2)
    if Attributes(n).flag("resize_if_index_out_of_bounds"):
        raise OperatorError("a list that grows is not supported", "E202")
    if (item.dtype, item.shape) != (items.dtype, items.shape[1:]):
        raise OperatorError(
            f"an item {item.type} does not fit a list {items.type}",
            "E203",
            "convert the model with fixed shapes, batch 1 among them",
        )
    lined = n.reshape(item, (1, *item.shape))
    # In a list of one item there is one place for it.
    return lined if items.shape[0] == 1 else n.build(UpdateAt(), items, lined, _at(n, items))


@rule(f"{_FLEX}GetItem")
def get_item(n: Conversion) -> Value:
    items = _list(n)
    if not items.shape[0]:
        raise OperatorError("reads an item of an empty list")
    found = n.build(SliceAt(sizes=(1, *items.shape[1:])), items, _at(n, items))
    return n.reshape(found, items.shape[1:])


@rule(f"{_FLEX}Stack")
def stack(n: Conversion) -> Value:
    return n.add("Identity", _list(n))


@rule(f"{_FLEX}Length")
def length(n: Conversion) -> Value:
    return n.constant(_list(n).shape[0], DType.INT32)


# --- what is in a list --------------------------------------------------------------------------------------


def _item(file: File, graph: int, tensor: int, shape: tuple[int, ...]) -> Tensor | None:
    """What is put into a list or taken out of it, as the file declares it; None where nothing fits the shape
    that the list says, -1 for what it leaves open.
    """
    for g, index, beside in _items(file, graph, tensor, set()):
        found = file.subgraphs[g].tensors[index]
        inside = found.shape[beside:]
        known = len(shape) == len(inside) and all(s in (-1, d) for s, d in zip(shape, inside, strict=True))
        if found.dtype is not None and (known or shape in ((), (-1,))):
            return replace(found, shape=inside)
    return None


def _items(file: File, graph: int, tensor: int, seen: set[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """(sub-graph, tensor, axes before those of an item) of all that goes into a list or comes out of it."""
    waiting = [(graph, tensor)]
    while waiting:
        place = waiting.pop(0)
        if place in seen:
            continue
        seen.add(place)
        g, t = place
        for o in file.subgraphs[g].operators:
            if t not in o.inputs:
                continue
            if o.kind == f"{_FLEX}SetItem" and len(o.inputs) > 2:
                yield g, o.inputs[2], 0
                waiting += [(g, i) for i in o.outputs]
            elif o.kind == f"{_FLEX}GetItem":
                yield from ((g, i, 0) for i in o.outputs)
            elif o.kind == f"{_FLEX}Stack":
                yield from ((g, i, 1) for i in o.outputs)
            elif o.kind in _BEFORE:
                before = _BEFORE[o.kind]
                places = [k - before for k, i in enumerate(o.inputs) if i == t and k >= before]
                for body in o.bodies:
                    if (inner := file.body(body)) is not None:
                        inside = inner.inputs
                        waiting += [(body, inside[k]) for k in places if k < len(inside)]
                if o.kind == "WHILE":
                    waiting += [(g, o.outputs[k]) for k in places if k < len(o.outputs)]
