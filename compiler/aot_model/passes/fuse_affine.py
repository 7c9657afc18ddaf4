"""Fold a multiplication and an addition by constants into the weights before them.

    (sum(x * w[o]) + b[o]) * m[o] + a[o]  =  sum(x * (w[o] * m[o])) + (b[o] * m[o] + a[o])

Batch normalisation after a convolution or matrix product disappears this way. Only for floats: integer
arithmetic rounds. The multiplication moves up through an addition of a constant first: (y + b) * m = y * m +
b * m.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.pattern import constant as any_constant
from aot_model.ir.pattern import op, value
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value, constant
from aot_model.partition.region import Match
from aot_model.passes.rewrite import Rule, apply_rules


def fuse_affine(graph: Graph) -> bool:
    """Fold multiplications into weights. True when something changed."""
    return apply_rules(graph, RULES)


def per_channel(value: Value, like: Value) -> np.ndarray | str:
    """A constant that depends on the last axis of another value only, as [channels]; else why it is not
    one.
    """
    assert value.data is not None
    channels = like.shape[-1]
    if (
        value.data.size not in (1, channels)
        or len(value.shape) > like.type.rank
        or (value.data.size > 1 and value.shape[-1] != channels)
    ):
        return f"'{value.name}' is not one number for each of {channels} channels"
    return np.broadcast_to(value.data.reshape(-1), (channels,))


def _into_weights(match: Match) -> list[Node] | str:
    """sum(x * w) * m -> sum(x * (w * m))."""
    total, weights, out = match.node("sum"), match.value("weights"), match.result.outputs[0]
    scale = _scale(match, match.value("sum"))
    if isinstance(scale, str):
        return scale
    assert weights.data is not None
    # their axis: the last, or the first
    channels = (-1,) if total.kind == "MatMul" else (-1, *[1] * (weights.type.rank - 1))
    scaled = constant(weights.name, weights.data * scale.astype(weights.data.dtype).reshape(channels))
    return [Node(total.op, [total.inputs[0], scaled, *total.inputs[2:]], [out], total.name)]


def _before_addition(match: Match) -> list[Node] | str:
    """(y + b) * m -> y * m + b * m."""
    y, b, factor, total = (match.value(name) for name in ("y", "b", "factor", "total"))
    scale = _scale(match, total)
    offset = per_channel(b, total) if y.shape == total.shape else f"'{y.name}' is spread over more axes"
    for why in (scale, offset):
        if isinstance(why, str):
            return why
    assert b.data is not None and factor.data is not None
    product = constant(f"{b.name}.scaled", (b.data * factor.data).astype(b.data.dtype))
    scaled = Value(f"{total.name}.scaled", TensorType(total.dtype, total.shape))
    addition = match.node("total")
    return [
        Node(match.result.op, [y, factor], [scaled], match.result.name),
        Node(addition.op, [scaled, product], match.result.outputs, addition.name),
    ]


def _scale(match: Match, x: Value) -> np.ndarray | str:
    """The factor of a match by channel of x."""
    if not x.shape or x.shape != match.result.outputs[0].shape:
        return f"'{x.name}' has no channels, or is spread over more axes"
    return per_channel(match.value("factor"), x)


def _is_float(value: Value) -> bool | str:
    return value.dtype.is_float or "is not of floats"


SUMS = ("Convolution", "ConvolutionTranspose", "MatMul")
WEIGHTS = any_constant(
    "weights",
    where=lambda v: (v.type.rank >= 2 or "is no matrix") if v.dtype.is_float else "is not of floats",
)
FACTOR = any_constant("factor", where=_is_float)
RULES = (
    Rule(op("Mul", op("Add", value("y"), any_constant("b"), name="total"), FACTOR), _before_addition),
    Rule(op("Mul", op(SUMS, value("x"), WEIGHTS, name="sum"), FACTOR), _into_weights),
)
