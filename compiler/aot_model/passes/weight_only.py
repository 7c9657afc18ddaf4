"""Constants of 4 bits (or 8, by blocks) that are dequantised for floats stay integers: products and rows of them read the
integers, so that they lie in flash as in the model's file.

    x * DQ(q)         = BlockMatMul(x, q, scales, zero points)      MatMul, and Gemm without alpha
    DQ(q)[indices]    = DQ(q[indices])                              Gather
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.nibbles import NIBBLES
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.blocks import BlockMatMul, block_rows
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Gather, Transpose
from aot_model.ops.nn import MatMul
from aot_model.ops.normalisation import Gemm
from aot_model.ops.quantised_linear import DequantizeLinear
from aot_model.ops.registry import Build, normal_axis

MIN_ELEMENTS = 64
"""A smaller constant is not worth it."""


def keep_integers(graph: Graph) -> bool:
    """Replace products and rows of dequantised constants. True when something changed."""
    producer = graph.producers()
    nodes: list[Node] = []
    for node in graph.nodes:
        made = _product(node, producer) or _rows(node, producer)
        nodes += made or [node]
    changed = len(nodes) != len(graph.nodes) or any(a is not b for a, b in zip(nodes, graph.nodes, strict=True))
    graph.nodes = nodes
    if changed:
        graph.prune()
    return changed


def _source(value: Value | None, producer: dict[Value, Node]) -> tuple[Node, bool] | None:
    """The DequantizeLinear of a constant matrix behind a value, and whether it is transposed in between."""
    node = None if value is None else producer.get(value)
    flipped = node is not None and isinstance(node.op, Transpose) and node.outputs[0].type.rank == 2 and node.op.permutation(2) == (1, 0)
    if flipped and node is not None and node.inputs[0] is not None:
        node = producer.get(node.inputs[0])
    if node is None or not isinstance(node.op, DequantizeLinear) or any(v is not None and not v.is_const for v in node.inputs):
        return None
    q = node.inputs[0]
    if q is None or q.type.rank != 2 or q.type.elements < MIN_ELEMENTS or node.outputs[0].dtype is not DType.FLOAT32:
        return None
    small = q.dtype in NIBBLES or (bool(node.op.block_size) and q.dtype in (DType.INT8, DType.UINT8))
    return (node, flipped) if small else None


def _by_column(node: Node, columns_first: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int] | None:
    """(q, scales, zero points, block) of a matrix, each (columns, …); None where the scale is another for every element of a sum."""
    q, scale, zero = node.inputs[0], node.inputs[1], node.input(2)
    assert isinstance(node.op, DequantizeLinear) and q is not None and q.data is not None and scale is not None and scale.data is not None
    along = 1 if columns_first else 0  # the axis that is summed
    axis, block = normal_axis(node.op.axis, 2), node.op.block_size
    depth, columns = q.shape[along], q.shape[1 - along]
    zeros = None if zero is None else zero.data
    if scale.type.elements == 1:
        spread = [None if v is None else np.broadcast_to(v.reshape(1, 1), (columns, 1)) for v in (scale.data, zeros)]
        block = depth
    elif block and axis == along:
        spread = [None if v is None else v if columns_first else v.T for v in (scale.data, zeros)]
    elif not block and axis != along:
        spread = [None if v is None else v.reshape(columns, 1) for v in (scale.data, zeros)]
        block = depth
    else:
        return None
    assert spread[0] is not None
    return q.data if columns_first else q.data.T, spread[0], spread[1], block


def _product(node: Node, producer: dict[Value, Node]) -> list[Node] | None:
    if not isinstance(node.op, (MatMul, Gemm)) or node.outputs[0].dtype is not DType.FLOAT32 or node.inputs[0] is None:
        return None
    found = _source(node.inputs[1], producer)
    if found is None or (isinstance(node.op, Gemm) and (node.op.alpha != 1 or node.op.beta != 1 or node.op.transA)):
        return None
    flipped = found[1] != bool(isinstance(node.op, Gemm) and node.op.transB)
    parts = _by_column(found[0], flipped)
    if parts is None:
        return None
    q, scales, zeros, block = parts
    nodes: list[Node] = []
    build = Build(nodes, node.name)
    bias, out = node.input(2), node.outputs[0].name
    constants = [None if v is None else build.constant(np.ascontiguousarray(v)) for v in (q, scales, zeros)]
    y = build(BlockMatMul(block), node.inputs[0], *constants, output=out if bias is None else "")
    if bias is not None:
        build(op("Add"), y, bias, output=out)
    nodes[-1].outputs = node.outputs
    return nodes


def _rows(node: Node, producer: dict[Value, Node]) -> list[Node] | None:
    found = _source(node.inputs[0], producer) if isinstance(node.op, Gather) else None
    if found is None or found[1] or node.inputs[1] is None:
        return None
    behind, (q, scale) = found[0], (found[0].inputs[0], found[0].inputs[1])
    assert isinstance(node.op, Gather) and isinstance(behind.op, DequantizeLinear) and q is not None and scale is not None
    axis, block = normal_axis(node.op.axis, 2), behind.op.block_size
    nodes: list[Node] = []
    build = Build(nodes, node.name)
    if block and normal_axis(behind.op.axis, 2) != axis:
        block_rows(build, q, node.inputs[1], scale, behind.input(2), axis, behind.op.axis, block)
    elif scale.type.elements == 1:
        build(DequantizeLinear(), build(node.op, q, node.inputs[1]), scale, behind.input(2))
    else:
        return None
    nodes[-1].outputs = node.outputs
    return nodes
