"""Fold explicit padding into the convolution that reads it.

    Convolution(Pad(x, k zeros around), w)  =  Convolution(x, w, pads + k)

Zeros, or of quantised tensors their zero point, are what a convolution takes for everything outside of the
image. Exporters write them apart where a framework pads at one end only (PyTorch's ZeroPad2d, strides of 2 in
Keras); the padded copy would be a pass over memory and the largest tensor of the network.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import OperatorError
from aot_model.ir.pattern import op, value
from aot_model.ops.convolution import Convolution
from aot_model.ops.movement import Pad
from aot_model.partition.region import Match
from aot_model.passes.rewrite import Rule, apply_rules


def fold_pads(graph: Graph) -> bool:
    """Let convolutions pad by themselves. True when something changed."""
    return apply_rules(graph, RULES)


def _into_convolution(match: Match) -> list[Node] | str:
    pad, conv = match.node("pad"), match.result
    assert isinstance(pad.op, Pad) and isinstance(conv.op, Convolution)
    fill = pad.input(2)
    if fill is not None and fill.data is None:
        return "what it pads with is not constant"
    outside = 0 if fill is None or fill.data is None else np.asarray(fill.data).reshape(-1)[0]
    if outside != conv.op.x_zero_point:
        return f"it pads with {outside}, which is not {conv.op.x_zero_point}, the convolution's zero"
    weights = conv.inputs[1]
    known = None if weights is None or not weights.dtype.is_float else weights.data
    if known is not None and not np.isfinite(known).all():
        return "products of its zeros with infinite weights are no numbers, which a convolution leaves out"
    around = pad.op.pads(pad.inputs)
    if any(around[0]) or any(around[-1]):
        return "it pads images or channels"
    pads = tuple(
        old + new
        for old, new in zip(
            conv.op.pads, (*(b for b, _ in around[1:-1]), *(e for _, e in around[1:-1])), strict=True
        )
    )
    if min(pads) < 0 or min(min(p) for p in around) < 0:
        return "it crops"
    inside = replace(conv.op, pads=pads)
    inputs = [pad.inputs[0], *conv.inputs[1:]]
    try:
        made = inside.infer(inputs)
    except OperatorError as error:
        return str(error)
    assert made[0].shape == conv.outputs[0].shape
    return [Node(inside, inputs, conv.outputs, conv.name)]


RULES = (
    Rule(
        op("Convolution", op("Pad", value("x"), name="pad", mode="constant")),
        _into_convolution,
        sole_reader=False,
    ),
)
"""Other readers of the padded tensor keep it; mostly there are none, or they are convolutions as well."""
