"""What is computed twice is computed once: nodes of the same operator with the same attributes and inputs.

    x ─┬─ QuantizeLinear ─ DequantizeLinear ─ Slice          x ─ QuantizeLinear ─ DequantizeLinear ─┬─ Slice
       └─ QuantizeLinear ─ DequantizeLinear ─ Conv     →                                            └─ Conv

Quantisers that give every reader a pair of its own (ONNX Runtime's DedicatedQDQPair), and exporters that
write out the same subexpression again, would have the layer in front of them computed for each.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from enum import Enum

import numpy as np

from aot_model.ir.graph import Graph, Node, read_values, subgraphs
from aot_model.ir.operator import Operator
from aot_model.ir.values import Value
from aot_model.passes.explain import refuse

_LARGEST = 4096
"""Bytes of constants that are compared by their data; larger ones are the same only where they are one."""


def share_results(graph: Graph) -> bool:
    """Readers of a node's results read those of the first node that computes the same. True when something
    changed.
    """
    first: dict[Hashable, Node] = {}
    same: dict[Value, Value] = {}
    new: dict[Value, Value] = {}
    kept = set(graph.outputs)
    for node in graph.nodes:
        key = _key(node, same)
        if key is None:
            continue
        other = first.setdefault(key, node)
        if other is node:
            continue
        results = dict(zip(node.outputs, other.outputs, strict=True))
        same.update(results)
        if any(v in kept for v in results):
            refuse(node, f"'{other.name}' computes the same, but this is an output of the model")
        elif not _widens(node):
            new.update(results)
    graph.replace_all(new)
    return graph.prune() if new else False


def _widens(node: Node) -> bool:
    """Whether a result is its operand in a wider type: it is computed again for less memory than it takes."""
    (out, *more), (x, *_) = node.outputs, node.inputs or [None]
    return not more and node.op.elementwise and x is not None and out.dtype.bits > x.dtype.bits


def _key(node: Node, same: dict[Value, Value]) -> Hashable | None:
    """What nodes that compute the same have in common; None where there can be no other."""
    if node.op.effects or node.op.draws or any(True for _ in subgraphs(node)):
        return None
    if any(v.state for v in read_values(node)):
        return None
    attributes = _attributes(node.op)
    if attributes is None:
        return None
    inputs = tuple(None if v is None else _input(same.get(v, v)) for v in node.inputs)
    return type(node.op), attributes, inputs, tuple((v.type, v.quantisation) for v in node.outputs)


def _input(value: Value) -> Hashable:
    if value.data is None or value.data.nbytes > _LARGEST or value.data.dtype == object:
        return value
    return value.type, value.quantisation, value.data.tobytes()


def _attributes(op: Operator) -> Hashable | None:
    """The attributes, told apart by types and signs of zero, too; None where one has no such form."""
    try:
        return _told_apart(op)
    except TypeError:
        return None


def _told_apart(value: object) -> Hashable:
    if isinstance(value, (bool, int, str, bytes, Enum, Value, type(None))):
        return type(value), value
    if isinstance(value, float):
        return "float", value.hex()
    if isinstance(value, (np.generic, np.ndarray)) and value.nbytes <= _LARGEST and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(map(_told_apart, value))
    if is_dataclass(value):
        return type(value), tuple(_told_apart(getattr(value, f.name)) for f in fields(value))
    raise TypeError(value)
