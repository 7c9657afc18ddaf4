"""Constants of 4 bits (or 8, by blocks) that are dequantised for floats stay integers: products and rows of
them read the integers, so that they lie in flash as in the model's file.

    x * DQ(q)         = BlockMatMul(x, q, scales, zero points)      MatMul, and Gemm without alpha
    DQ(q)[indices]    = DQ(q[indices])                              Gather
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.nibbles import NIBBLES
from aot_model.ir.pattern import Answer, absent, constant, op, value
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.blocks import BlockMatMul, block_rows
from aot_model.ops.elementwise import op as elementwise
from aot_model.ops.movement import Gather, Transpose
from aot_model.ops.normalisation import Gemm
from aot_model.ops.quantised_linear import DequantizeLinear
from aot_model.ops.registry import Build, normal_axis
from aot_model.partition.region import Match
from aot_model.passes.rewrite import Rule, apply_rules

MIN_ELEMENTS = 64
"""A smaller constant is not worth it."""


def keep_integers(graph: Graph) -> bool:
    """Replace products and rows of dequantised constants. True when something changed."""
    return apply_rules(graph, RULES)


def _worth_it(q: Value) -> Answer:
    return q.type.elements >= MIN_ELEMENTS or f"has fewer than {MIN_ELEMENTS} elements"


def _small(node: Node) -> Answer:
    """Whether the integers of a DequantizeLinear are better kept."""
    q = node.inputs[0]
    assert isinstance(node.op, DequantizeLinear) and q is not None and node.inputs[1] is not None
    if node.inputs[1].dtype is not node.outputs[0].dtype:
        return f"makes {node.outputs[0].dtype.label} of {node.inputs[1].dtype.label} scales"
    small = q.dtype in NIBBLES or (bool(node.op.block_size) and q.dtype in (DType.INT8, DType.UINT8))
    return small or f"has {q.dtype.label} without blocks"


def _of_float32(node: Node) -> Answer:
    return node.outputs[0].dtype is DType.FLOAT32 or f"makes {node.outputs[0].dtype.label}"


def _plain(node: Node) -> Answer:
    """Whether a Gemm is a product and a sum."""
    fits = not isinstance(node.op, Gemm) or (node.op.alpha == 1 and node.op.beta == 1 and not node.op.transA)
    return _of_float32(node) if fits else "has alpha, beta or transA"


def _flips(node: Node) -> Answer:
    assert isinstance(node.op, Transpose)
    return node.op.permutation(node.outputs[0].type.rank) == (1, 0) or "does not swap two axes"


def _by_column(
    node: Node, columns_first: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int] | str:
    """(q, scales, zero points, block) of a matrix, each (columns, …); why it has none."""
    q, scale, zero = node.inputs[0], node.inputs[1], node.input(2)
    assert (
        isinstance(node.op, DequantizeLinear)
        and q is not None
        and q.data is not None
        and scale is not None
        and scale.data is not None
    )
    along = 1 if columns_first else 0  # the axis that is summed
    axis, block = normal_axis(node.op.axis, 2), node.op.block_size
    depth, columns = q.shape[along], q.shape[1 - along]
    zeros = None if zero is None else zero.data
    if scale.type.elements == 1:
        spread = [
            None if v is None else np.broadcast_to(v.reshape(1, 1), (columns, 1)) for v in (scale.data, zeros)
        ]
        block = depth
    elif block and axis == along:
        spread = [None if v is None else v if columns_first else v.T for v in (scale.data, zeros)]
    elif not block and axis != along:
        spread = [None if v is None else v.reshape(columns, 1) for v in (scale.data, zeros)]
        block = depth
    else:
        return "the scale is another one for every element of a sum"
    assert spread[0] is not None
    return q.data if columns_first else q.data.T, spread[0], spread[1], block


def _product(match: Match) -> list[Node] | str:
    node = match.result
    flipped = match.has("flipped") != bool(isinstance(node.op, Gemm) and node.op.transB)
    parts = _by_column(match.node("matrix"), flipped)
    if isinstance(parts, str):
        return parts
    q, scales, zeros, block = parts
    nodes: list[Node] = []
    build = Build(nodes, node.name)
    bias, out = node.input(2), node.outputs[0].name
    constants = [None if v is None else build.constant(np.ascontiguousarray(v)) for v in (q, scales, zeros)]
    y = build(BlockMatMul(block), node.inputs[0], *constants, output=out if bias is None else "")
    if bias is not None:
        build(elementwise("Add"), y, bias, output=out)
    nodes[-1].outputs = node.outputs
    return nodes


def _rows(match: Match) -> list[Node] | str:
    gather, behind, indices = match.result.op, match.node("matrix"), match.value("indices")
    q, scale, zero = behind.inputs[0], behind.inputs[1], behind.input(2)
    assert (
        isinstance(gather, Gather)
        and isinstance(behind.op, DequantizeLinear)
        and q is not None
        and scale is not None
    )
    axis, block = normal_axis(gather.axis, 2), behind.op.block_size
    nodes: list[Node] = []
    build = Build(nodes, match.result.name)
    if block and normal_axis(behind.op.axis, 2) != axis:
        block_rows(build, q, indices, scale, zero, axis, behind.op.axis, block)
    elif scale.type.elements == 1:
        build(DequantizeLinear(), build(gather, q, indices), scale, zero)
    else:
        return "each row has a scale of its own"
    nodes[-1].outputs = match.result.outputs
    return nodes


MATRIX = op(
    "DequantizeLinear",
    constant("q", rank=2, where=_worth_it),
    constant("scale"),
    constant("zero") | absent(),
    name="matrix",
    where=_small,
)
RULES = (
    Rule(
        op(
            ("MatMul", "Gemm"),
            value("x"),
            op("Transpose", MATRIX, name="flipped", where=_flips) | MATRIX,
            where=_plain,
        ),
        _product,
        sole_reader=False,
    ),
    Rule(op("Gather", MATRIX, value("indices"), where=_of_float32), _rows, sole_reader=False),
)
