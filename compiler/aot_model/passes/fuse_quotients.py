"""Quotients of quantised tensors become one division of integers.

The rule of TensorFlow Lite multiplies by a reciprocal that it finds in three steps of Newton's. What it gives
for all 65,536 pairs of bytes is computed by the operator itself; the division's factor is what no pair
contradicts. Scales whose quotients are exactly half a step have none: the rule's rounding errors decide
there. Helium has vectors for the rule.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import OperatorError
from aot_model.ir.values import Value, constant
from aot_model.kernels.target import Target
from aot_model.ops.quantised_div import QuantisedDiv
from aot_model.ops.quantised_quotient import QuantisedQuotient, quotient
from aot_model.passes.explain import refuse
from aot_model.passes.fold_constants import compute


def pays(target: Target) -> bool:
    """Whether a target has no vectors for the rule."""
    return target.dialect() != "mve"


def fuse_quotients(graph: Graph) -> bool:
    """Replace divisions of bytes. True when something changed."""
    found = [_divided(node) if isinstance(node.op, QuantisedDiv) else None for node in graph.nodes]
    graph.nodes = [node if op is None else Node(op, node.inputs, node.outputs, node.name)
                   for node, op in zip(graph.nodes, found, strict=True)]  # fmt: skip
    return any(op is not None for op in found)


def _divided(node: Node) -> QuantisedQuotient | None:
    op = node.op
    assert isinstance(op, QuantisedDiv)
    a, b = node.inputs
    assert a is not None and b is not None
    if a.dtype.bits != 8:
        return None
    every = [np.arange(v.dtype.limits[0], v.dtype.limits[1] + 1).astype(v.dtype.numpy) for v in (a, b)]
    inputs: list[Value | None] = [constant("a", every[0][:, None]), constant("b", every[1][None, :])]
    try:
        results = compute(Node(op, inputs, [Value("y", op.infer(inputs)[0])], node.name))
    except OperatorError:
        return None
    assert results is not None
    x, y = (
        v.astype(np.int64) - zero for v, zero in zip(every, (op.a_zero_point, op.b_zero_point), strict=True)
    )
    zero = op.result.zero_point
    less = results[0].astype(np.int64) - zero
    made = quotient(x, y, less, op.low - zero, op.high - zero)
    if isinstance(made, str):
        refuse(node, made)
        return None
    return QuantisedQuotient(
        op.a_zero_point, op.b_zero_point, made.factor, made.places, zero, op.low, op.high, op.to
    )
