"""Weights with a zero point become signed bytes without one, where all of them fit.

    (x - zx) * (w - zw)  =  (x - zx) * v        v = w - zw

Quantisers that write unsigned weights put their zero point at or near 128, so that v is what a symmetric
quantiser would have written, and the kernels for signed weights take the layer. Weights that do not fit stay.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.matmul import MatMul
from aot_model.passes.explain import refuse

BYTES = (DType.INT8, DType.UINT8)


def signed_weights(graph: Graph) -> bool:
    """Take zero points from weights. True when something changed."""
    known: dict[tuple[Value, int], Value | None] = {}
    changed = False
    for node in graph.nodes:
        op, w = node.op, node.input(1)
        if not isinstance(op, (Convolution, ConvolutionTranspose, MatMul)) or w is None or w.data is None:
            continue
        zero = op.w_zero_point
        if w.dtype not in BYTES or (w.dtype is DType.INT8 and zero == 0):
            continue
        if (w, zero) not in known:
            known[w, zero] = _signed(w, zero)
        made = known[w, zero]
        if made is None:
            refuse(node, f"its weights less {zero} are not all from -128 to 127")
            continue
        node.op, node.inputs = replace(op, w_zero_point=0), [node.inputs[0], made, *node.inputs[2:]]
        changed = True
    return changed


def _signed(w: Value, zero: int) -> Value | None:
    assert w.data is not None
    values = w.data.astype(np.int32) - zero
    if values.size and (values.min() < -128 or values.max() > 127):
        return None
    return constant(w.name, values.astype(np.int8))
