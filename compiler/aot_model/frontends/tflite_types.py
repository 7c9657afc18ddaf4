"""TFLite: operators that change the type of a tensor."""

from __future__ import annotations

import numpy as np

from aot_model.frontends.tflite_conversion import QUANTISED, Conversion, rule
from aot_model.frontends.tflite_layers import nibbles
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.quantised_linear import DequantizeLinear, Quantise

# --- types --------------------------------------------------------------------------------------------------


@rule("DENSIFY")
def densify(n: Conversion) -> Value:
    """Sparse constants are dense from the moment that they are read."""
    return n.x()


@rule("CAST")
def cast(n: Conversion) -> Value:
    return n.build(Cast(n.out_dtype()), n.x())


@rule("QUANTIZE")
def quantize(n: Conversion) -> Value:
    x, to = n.x(), n.out_dtype()
    if x.dtype.is_float:
        q = n.q_out()
        scale = np.asarray(q.scale if q.axis is not None else q.scale[0], dtype=np.float32)
        zero = np.asarray(q.zero_point if q.axis is not None else q.zero_point[0], dtype=to.numpy)
        return n.build(Quantise(axis=q.axis or 0), x, n.constant(scale), n.constant(zero))
    if x.dtype not in (*QUANTISED, DType.INT32) or to not in (*QUANTISED, DType.INT32):
        raise OperatorError(f"requantisation of {x.type} to {to.label} is not supported", "E202")
    return n.requantise(x, [n.scale() / n.scale_out()], to.limits, n.zero_out(), to, x_zero_point=n.zero())


@rule("DEQUANTIZE")
def dequantize(n: Conversion) -> Value:
    x = n.x()
    if x.dtype.is_float:
        return n.build(Cast(n.out_dtype()), x)
    q = n.q()
    scale = np.asarray(q.scale if q.axis is not None else q.scale[0], dtype=np.float32)
    x = nibbles(n, 0, x)
    zero = np.asarray(q.zero_point if q.axis is not None else q.zero_point[0], dtype=x.dtype.numpy)
    return n.build(DequantizeLinear(axis=q.axis or 0), x, n.constant(scale), n.constant(zero))
