"""How far a rounding inside of a fused layer may grow until it leaves it.

A convolution whose result is quantised, multiplied by another tensor and quantised again is one layer of
the program. Where its sum falls to the other side, which a float sum in another order may do, the product is
off by as many steps as the factor is large. So the reference is asked: what becomes of the layer when all
elements that it rounds in between are a step larger, and a step smaller?
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot_model.ir.operator import Operator
from aot_model.layers.reference import FileNode, Key, Reference, Tensors
from aot_model.ops.registry import load_all, operator_of

_ONE_BY_ONE = (
    "QuantizeLinear", "DequantizeLinear", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu",
)  # fmt: skip
"""Nodes that make an element of one element of each input, beside those that the registry says."""


def rounds(node: FileNode) -> bool:
    """Whether a node rounds to integers."""
    return node.kind in ("QuantizeLinear", "DynamicQuantizeLinear") or node.kind.startswith("QLinear")


def grown(
    reference: Reference, nodes: Sequence[FileNode], key: Key, inputs: Sequence[np.ndarray], given: Tensors
) -> np.ndarray | None:
    """Steps that each element of a layer's result may be off, for one vector of inputs: one of its own, and
    those that a step of what the layer rounds before it makes. None where the reference cannot tell.

    nodes: those of the layer; the last rounds and makes `key`. given: what the program has for the tensors
    of the file.
    """
    steps: np.ndarray | None = None
    inside = [node for node in nodes if rounds(node) and key not in node.outputs]
    for node in inside:
        name = node.outputs[0]
        before = reference.run(inputs, [name]).get(name)
        if before is None or before.dtype.kind not in "iu" or not _one_by_one(nodes, name):
            continue
        exact = (reference.run_apart(inputs, {**given, name: before}) or {}).get(name)
        if exact is None:
            return None
        low, high = np.iinfo(exact.dtype).min, np.iinfo(exact.dtype).max
        found = [
            (reference.run_apart(inputs, {**given, name: value}) or {}).get(key)
            for value in (exact, *(_moved(exact, step, low, high) for step in (-1, 1)))
        ]
        if any(f is None for f in found):
            return None
        middle, *ends = (np.asarray(f, np.int64) for f in found)
        most = np.maximum(*(np.abs(end - middle) for end in ends))
        steps = most if steps is None else steps + most
    return None if steps is None else steps + 1


def _moved(values: np.ndarray, step: int, low: int, high: int) -> np.ndarray:
    return np.clip(values.astype(np.int64) + step, low, high).astype(values.dtype)


def _one_by_one(nodes: Sequence[FileNode], name: Key) -> bool:
    """Whether each element of the result is made of one element of a tensor of the layer: a step of another
    one cannot make up for it, or add to it.
    """
    load_all()
    reached = {name}
    for node in nodes:
        if reached & set(node.inputs):
            kind = operator_of("", node.kind)
            if node.kind not in _ONE_BY_ONE and not (kind and _marked(kind)):
                return False
            reached |= set(node.outputs)
    return True


def _marked(kind: type[Operator]) -> bool:
    return kind.elementwise or kind.movement
