"""Fold a multiplication and an addition by constants into the weights before them.

    (sum(x * w[o]) + b[o]) * m[o] + a[o]  =  sum(x * (w[o] * m[o])) + (b[o] * m[o] + a[o])

Batch normalisation after a convolution or matrix product disappears this way. Only for floats: integer arithmetic
rounds. The multiplication moves up through an addition of a constant first: (y + b) * m = y * m + b * m.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.nn import Convolution, ConvolutionTranspose, MatMul


def fuse_affine(graph: Graph) -> bool:
    """Fold multiplications into weights. True when something changed."""
    changed = False
    progress = True
    while progress:
        progress = False
        producer, uses = graph.producers(), graph.uses()
        for node in graph.nodes:
            if node.kind == "Mul" and _fold_multiplication(graph, node, producer, uses):
                progress = changed = True
                break
    return changed


def per_channel(value: Value, channels: int, rank: int) -> np.ndarray | None:
    """A constant that depends on the last axis only, as [channels]; None when it is something else."""
    if value.data is None or not value.dtype.is_float or value.data.size not in (1, channels) or len(value.shape) > rank:
        return None
    if value.data.size > 1 and value.shape[-1] != channels:
        return None
    return np.broadcast_to(value.data.reshape(-1), (channels,))


def _fold_multiplication(graph: Graph, node: Node, producer: dict[Value, Node], uses: dict[Value, list[Node]]) -> bool:
    out = node.outputs[0]
    for x, factor in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])):
        if x is None or factor is None or x.shape != out.shape or not x.shape or x not in producer:
            continue
        if len(uses.get(x, [])) != 1 or x in graph.outputs:
            continue
        scale = per_channel(factor, out.shape[-1], out.type.rank)
        before = producer[x]
        if scale is None:
            continue
        if before.kind == "Add" and _swap_with_addition(graph, node, before, factor, scale, uses):
            return True
        if isinstance(before.op, (Convolution, ConvolutionTranspose, MatMul)) and _scale_weights(before, scale):
            graph.nodes.remove(node)
            x.stands_for = ()  # it is the scaled sum now
            graph.replace(out, x)
            return True
    return False


def _scale_weights(node: Node, scale: np.ndarray) -> bool:
    weights = node.inputs[1]
    if weights is None or weights.data is None or not weights.dtype.is_float:
        return False
    if isinstance(node.op, MatMul):
        if weights.type.rank < 2:
            return False
        data = weights.data * scale.astype(weights.data.dtype)
    else:
        data = weights.data * scale.astype(weights.data.dtype).reshape(-1, *[1] * (weights.type.rank - 1))
    node.inputs[1] = constant(weights.name, data)
    return True


def _swap_with_addition(graph: Graph, mul: Node, addition: Node, factor: Value, scale: np.ndarray, uses: dict[Value, list[Node]]) -> bool:
    """(y + b) * m -> y * m + b * m."""
    for y, b in ((addition.inputs[0], addition.inputs[1]), (addition.inputs[1], addition.inputs[0])):
        if y is None or b is None or b.data is None or y.shape != addition.outputs[0].shape:
            continue
        if per_channel(b, scale.size, len(y.shape)) is None:
            continue
        total = addition.outputs[0]
        product = constant(f"{b.name}.scaled", (b.data * factor.data).astype(b.data.dtype))
        scaled = Value(f"{total.name}.scaled", TensorType(total.dtype, total.shape))
        place = graph.nodes.index(mul)
        graph.nodes[place : place + 1] = [
            Node(mul.op, [y, factor], [scaled], mul.name),
            Node(addition.op, [scaled, product], [mul.outputs[0]], addition.name),
        ]
        graph.nodes.remove(addition)
        return True
    return False
