"""Fold a multiplication by constants into the weights and the additions before it, and those into one.

    (sum(x * w[o]) + b[o]) * m[o] + c[o]  =  sum(x * (w[o] * m[o])) + (b[o] * m[o] + c[o])

Batch normalisation after a convolution or matrix product disappears this way. Only for floats: integer
arithmetic rounds. Without weights before it a factor stays behind additions: y * m + b * m has the rounding
errors of y * m, beside which (y + b) * m may be small, as an input less its mean is.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.pattern import constant as any_constant
from aot_model.ir.pattern import op, value
from aot_model.ir.values import Value, constant
from aot_model.partition.region import Match
from aot_model.passes.rewrite import Rule, apply_rules


def fuse_affine(graph: Graph) -> bool:
    """Fold multiplications into weights, and additions together. True when something changed."""
    return apply_rules(graph, RULES)


def per_channel(value: Value, like: Value) -> np.ndarray | str:
    """A constant that depends on the last axis of another value only, as [channels]; else why it is not
    one.
    """
    assert value.data is not None
    channels = like.shape[-1]
    if value.data.size not in (1, channels) or (value.data.size > 1 and value.shape[-1] != channels):
        return f"'{value.name}' is not one number for each of {channels} channels"
    return np.broadcast_to(value.data.reshape(-1), (channels,))


def _into_constants(match: Match) -> list[Node] | str:
    """(sum(x * w) + b + …) * m -> sum(x * (w * m)) + b * m + …"""
    _, *outer, total = match.nodes  # a search binds what reads before what is read
    additions = outer[::-1]
    factor, weights, out = match.value("factor"), match.value("weights"), match.result.outputs[0]
    for node in (total, *additions):
        if node.outputs[0].shape != out.shape:
            return f"'{node.outputs[0].name}' is spread over more axes"
    offsets = [v for n in additions for v in n.inputs if v is not None and v.data is not None]
    scale = per_channel(factor, out)
    for why in (scale, *(per_channel(v, out) for v in offsets)):
        if isinstance(why, str):
            return why
    assert weights.data is not None and factor.data is not None and not isinstance(scale, str)
    # their axis: the last, or the first
    channels = (-1,) if total.kind == "MatMul" else (-1, *[1] * (weights.type.rank - 1))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = [
            constant(weights.name, weights.data * scale.astype(weights.data.dtype).reshape(channels)),
            *(constant(f"{v.name}.scaled", v.data * factor.data) for v in offsets if v.data is not None),
        ]
    if not all(np.isfinite(v.data).all() for v in scaled if v.data is not None):
        return f"constants times '{factor.name}' are not finite"
    nodes: list[Node] = []
    y = total.inputs[0]
    for node, new in zip((total, *additions), scaled, strict=True):
        inputs = [y, new, *node.inputs[2:]]
        y = Value(f"{node.outputs[0].name}.scaled", out.type)
        nodes.append(Node(node.op, inputs, [y], node.name))
    nodes[-1].outputs = [out]
    return nodes


SUMS = ("Convolution", "ConvolutionTranspose", "MatMul")
WEIGHTS = any_constant(
    "weights",
    where=lambda v: (v.type.rank >= 2 or "is no matrix") if v.dtype.is_float else "is not of floats",
)
TOTAL = op(SUMS, value("x"), WEIGHTS, name="sum")
BEHIND = op("Add", TOTAL, any_constant("first"))


def _one_addition(match: Match) -> list[Node] | str:
    """sum + b + c -> sum + (b + c)"""
    outer, inner, _ = match.nodes
    first, second, out = match.value("first"), match.value("second"), match.result.outputs[0]
    assert first.data is not None and second.data is not None
    with np.errstate(over="ignore", invalid="ignore"):
        both = first.data + second.data
    if both.size > max(first.data.size, second.data.size):
        return f"'{first.name}' and '{second.name}' are of different axes"
    if not np.isfinite(both).all():
        return f"the sums of '{first.name}' and '{second.name}' are not finite"
    total = next(v for v in inner.inputs if v is not first)
    return [Node(outer.op, [total, constant(f"{first.name}.sum", both)], [out], outer.name)]


RULES = (
    Rule(op("Add", BEHIND, any_constant("second")), _one_addition),
    Rule(op("Mul", BEHIND | TOTAL, any_constant("factor")), _into_constants),
)
