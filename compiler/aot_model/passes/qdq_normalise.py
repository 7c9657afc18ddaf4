"""The rules of fuse_qdq for layers, instances and groups that are normalised: rows of bytes
(ops/normalised_rows.py).
"""

from __future__ import annotations

import math

import numpy as np

from aot_model.ir.graph import Node
from aot_model.ops.local_normalisation import GroupNormalization, InstanceNormalization
from aot_model.ops.microsoft_normalisation import SimplifiedLayerNormalization
from aot_model.ops.normalisation import LayerNormalization
from aot_model.ops.normalised_rows import Normalisation
from aot_model.ops.registry import normal_axis
from aot_model.ops.views import ReshapeTo
from aot_model.passes.qdq_site import Answer, QdqSite


def normalised(n: QdqSite, node: Node) -> Answer:
    """LayerNormalization, InstanceNormalization, GroupNormalization; SimplifiedLayerNormalization, which
    takes no mean from what it divides.
    """
    x = n.tensor(node.inputs[0])
    if x is None or x.value.dtype.bits != 8:
        return "the input is not quantised with one scale, to 8 bits"
    if any(n.uses.get(v) or v in n.graph.outputs for v in node.outputs[1:]):
        return "its mean or deviation is a result, too"
    gain, offset = n.real(node.inputs[1]), n.real(node.input(2))
    if gain is None or (offset is None and node.input(2) is not None):
        return "its scale or bias is no constant"
    offset = np.zeros(()) if offset is None else offset
    op, shape = node.op, x.value.shape
    if isinstance(op, (LayerNormalization, SimplifiedLayerNormalization)):
        axis = normal_axis(op.axis, len(shape))
        rows = shape if axis else (1, *shape)
        axis = max(axis, 1)
    else:
        assert isinstance(op, (InstanceNormalization, GroupNormalization))
        groups = op.num_groups if isinstance(op, GroupNormalization) else shape[1]
        # images, groups, channels of one, positions
        rows, axis = (shape[0], groups, shape[1] // max(groups, 1), math.prod(shape[2:])), 2
        gain, offset = (v.reshape((groups, -1, 1)) for v in (gain, offset))
    centred = not isinstance(op, SimplifiedLayerNormalization)
    scaled = Normalisation(axis, op.epsilon / x.s**2, centred, x.z, gain / n.to.s, offset / n.to.s + n.to.z)
    given = x.value if rows == shape else n.build(ReshapeTo(rows), x.value)
    made = scaled.build(n.build, given, n.to.low, n.to.high, n.to.dtype)
    if made is None:
        return "32 bits have no room for it, or a row has one element, or too many"
    return made if rows == shape else n.build(ReshapeTo(shape), made)
