"""Constants of few bits that are dequantised for floats stay integers: products and rows of them read the
integers, so that they lie in flash as in the model's file.

    x * DQ(q)         = BlockMatMul(x, q, scales, zero points)      MatMul, and Gemm without alpha
    DQ(q)[indices]    = DQ(q[indices])                              Gather

Rows cost nothing. Products with integers of 8 bits that have no blocks take up to three times as long as with
floats: they stay where code is to be small.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.nibbles import NIBBLES
from aot_model.ir.pattern import Answer, Pattern, absent, constant, op, value
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


def keep_integers(graph: Graph, bytes_too: bool = False) -> bool:
    """Replace products and rows of dequantised constants; products with 8 bits that have no blocks, too, if
    asked. True when something changed.
    """
    return apply_rules(graph, _rules(bytes_too))


def _worth_it(q: Value) -> Answer:
    return q.type.elements >= MIN_ELEMENTS or f"has fewer than {MIN_ELEMENTS} elements"


def _kept(node: Node, every_byte: bool) -> Answer:
    """Whether the integers of a DequantizeLinear are better kept."""
    q, scale, zero = node.inputs[0], node.inputs[1], node.input(2)
    assert isinstance(node.op, DequantizeLinear) and q is not None and scale is not None
    if scale.dtype is not node.outputs[0].dtype:
        return f"makes {node.outputs[0].dtype.label} of {scale.dtype.label} scales"
    if zero is not None and zero.type.elements != scale.type.elements:
        return "has not as many zero points as scales"
    if q.dtype in NIBBLES:
        return True
    if q.dtype not in (DType.INT8, DType.UINT8):
        return f"has {q.dtype.label}"
    return every_byte or bool(node.op.block_size) or (
        f"has {q.dtype.label} without blocks, which optimize=size keeps")  # fmt: skip


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
    axis, along = normal_axis(gather.axis, 2), normal_axis(behind.op.axis, 2)
    block = behind.op.block_size
    nodes: list[Node] = []
    build = Build(nodes, match.result.name)
    if block and along != axis:
        block_rows(build, q, indices, scale, zero, axis, along, block)
    elif scale.type.elements == 1:
        build(DequantizeLinear(), build(gather, q, indices), scale, zero)
    elif block:
        return "the scales are of blocks of rows"
    elif along == axis:  # a scale of its own: that of a block as long as the row
        shape = (-1, 1) if axis == 0 else (1, -1)
        own = [
            None if v is None or v.data is None else build.constant(v.data.reshape(shape))
            for v in (scale, zero)
        ]
        assert own[0] is not None
        block_rows(build, q, indices, own[0], own[1], axis, 1 - axis, q.shape[1 - axis])
    else:
        moved = along + indices.type.rank - 1 if along > axis else along
        build(DequantizeLinear(moved), build(gather, q, indices), scale, zero)
    nodes[-1].outputs = match.result.outputs
    return nodes


@cache
def _rules(bytes_too: bool) -> tuple[Rule, ...]:
    def matrix(every_byte: bool) -> Pattern:
        return op(
            "DequantizeLinear",
            constant("q", rank=2, where=_worth_it),
            constant("scale"),
            constant("zero") | absent(),
            name="matrix",
            where=partial(_kept, every_byte=every_byte),
        )

    factor = matrix(bytes_too)
    flipped = op("Transpose", factor, name="flipped", where=_flips)
    product = op(("MatMul", "Gemm"), value("x"), flipped | factor, where=_plain)
    rows = op("Gather", matrix(True), value("indices"), where=_of_float32)
    return Rule(product, _product, sole_reader=False), Rule(rows, _rows, sole_reader=False)
