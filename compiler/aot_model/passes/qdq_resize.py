"""Resize between quantised tensors: sums of integers by whole weights, rounded once."""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Node
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.registry import Build
from aot_model.ops.resample import Interpolation, Resize
from aot_model.passes.qdq_site import Answer, QdqSite, Scaled

NEAR = 2.0**-20
"""Weights that are no further from whole numbers of units are exact."""
ROOM = 30
"""Bits of a sum without its sign."""
MOST_BITS = 11
"""Of a unit: results of 8 bits change by less than a tenth, and no more units are tried."""


def resized(n: QdqSite, node: Node) -> Answer:
    """Interpolation. Nearest neighbours are elements that move (qdq_site.py)."""
    assert isinstance(node.op, Resize)
    x = n.tensor(node.inputs[0])
    if x is None:
        return "the input is not quantised with one scale"
    found = _interpolation(node, x)
    if found is None:
        return "no interpolation alone"
    op, tables = found
    bits = min((ROOM - x.value.dtype.bits) // len(tables), MOST_BITS)
    made = [whole_weights(w, bits, x.value.dtype.bits <= 8) for _, w in tables]
    weights, units = [w for w in made if w is not None], 1
    if len(weights) < len(made):
        return "its weights are no multiples of a unit that 32 bits have room for"
    inputs: list[Value] = []
    gain = 1.0
    for (positions, _), (whole, unit) in zip(tables, weights, strict=True):
        inputs += [n.constant("positions", positions), n.constant("weights", whole)]
        units, gain = units * unit, gain * float(np.abs(whole).sum(1).max()) / unit
    most = x.largest * units * gain
    if (abs(x.z) + x.largest) * units * gain >= 2**31:
        return "its sums are beyond 32 bits"
    total = n.build(op, x.value, *inputs)
    return n.requantised(total, [x.s / (n.to.s * units)], x.z * units, most=most)


def _interpolation(node: Node, x: Scaled) -> tuple[Interpolation, list[tuple[np.ndarray, np.ndarray]]] | None:
    """The operator that it is of integers, with positions and weights for each axis."""
    nodes: list[Node] = []
    node.op.expand(Build(nodes, node.name), [x.value, *node.inputs[1:]])
    if [type(made.op) for made in nodes] != [Interpolation, Cast]:
        return None
    op, data = nodes[0].op, [v.data for v in nodes[0].inputs[1:] if v is not None]
    assert isinstance(op, Interpolation)
    tables = [d for d in data if d is not None]
    return op, list(zip(tables[::2], tables[1::2], strict=True))


def whole_weights(weights: np.ndarray, bits: int, rounded: bool) -> tuple[np.ndarray, int] | None:
    """Weights [out, taps], which add up to 1 in each row, as int32 multiples of a unit, and how many of those
    are 1: the fewest that are exact, of less than 2^bits; else, if they may be rounded, as many as there is
    room for.
    """
    real = weights.astype(np.float64)
    if not real.size or not np.allclose(real.sum(1), 1, atol=1e-5):
        return None
    last = 1 << bits
    for unit in range(1, last + 1):
        whole = np.rint(real * unit)
        if np.abs(real * unit - whole).max() <= NEAR * unit and (whole.sum(1) == unit).all():
            return whole.astype(np.int32), unit
    if not rounded:
        return None
    whole = np.rint(real * last)
    rows = np.arange(len(whole))
    whole[rows, np.abs(whole).argmax(1)] += last - whole.sum(1)
    return whole.astype(np.int32), last
