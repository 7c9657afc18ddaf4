"""TFLite: hybrid layers, floats times 8-bit weights. The input is quantised at run time, as LiteRT does it.

x ~ s * (q - z)        y = s * w_scale * sum((q - z) * w) + b        s, z from the range of each item of
                       the batch
"""

from __future__ import annotations

import numpy as np

from aot_model.frontends.tflite_conversion import Conversion
from aot_model.frontends.tflite_reduction import reduction
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.conversion import Cast
from aot_model.ops.quantised_linear import RoundWithin, rounded


def is_hybrid(n: Conversion, x: int, w: int) -> bool:
    """Whether a layer multiplies floats by 8-bit constants."""
    return (
        n.x(x).dtype is DType.FLOAT32
        and n.x(w).dtype in (DType.INT8, DType.UINT8)
        and n.x(w).is_const
        and n.tensor(w).blocks is None
    )


def signed_weights(n: Conversion, k: int) -> Value:
    """8-bit weights of a layer on floats. They are signed: old converters say uint8 and store int8."""
    w = n.x(k)
    if w.dtype is not DType.UINT8 or w.data is None:
        return w
    if any(n.q(k).zero_point):
        raise OperatorError(
            f"weights {w.type} of a layer on floats have a zero point",
            "E302",
            "quantise the model again, with signed weights",
        )
    return constant(w.name, w.data.view(np.int8), w.quantisation)


def quantised_input(n: Conversion, x: Value, asymmetric: bool) -> tuple[Value, Value]:
    """(q - z, s): integers of each item of the batch, and its scale, which broadcasts to the item."""
    axes = n.constant(range(1, x.type.rank), DType.INT64)
    low, high = n.build(reduction("ReduceMin"), x, axes), n.build(reduction("ReduceMax"), x, axes)
    zero, one = n.constant(0, DType.FLOAT32), n.constant(1, DType.FLOAT32)
    if asymmetric:
        low, high = n.add("Min", low, zero), n.add("Max", high, zero)
        step = n.add("Div", n.add("Sub", high, low), n.constant(255, DType.FLOAT32))
    else:
        step = n.add(
            "Div", n.add("Max", n.add("Abs", low), n.add("Abs", high)), n.constant(127, DType.FLOAT32)
        )
    # An item of zeros: any scale will do.
    scale = n.add("Where", n.add("Equal", step, zero), one, step)
    real = n.add("Mul", x, n.add("Reciprocal", scale))
    if not asymmetric:
        return n.build(RoundWithin(DType.INT8, -127, 127), real), scale
    point = rounded(n.build, n.add("Sub", n.constant(-128, DType.FLOAT32), n.add("Div", low, scale)))
    q = n.build(RoundWithin(DType.INT16, -128, 127), n.add("Add", real, point))
    return n.add("Sub", q, n.build(Cast(DType.INT16), point)), scale


def real_result(n: Conversion, acc: Value, scale: Value, k: int, bias: int) -> Value:
    """acc * scale * scale of the weights + bias (none where its number is negative)."""
    weights = np.asarray(n.q(k).scale, dtype=np.float32)
    factor = n.add("Mul", scale, n.constant(weights if weights.size > 1 else weights[0], DType.FLOAT32))
    # Sums of 16-bit integers have 64 bits, but these differences have nine: 32 are enough.
    narrow = acc if acc.dtype is DType.INT32 else n.build(Cast(DType.INT32), acc)
    y = n.add("Mul", n.build(Cast(DType.FLOAT32), narrow), factor)
    return n.add("Add", y, n.x(bias)) if bias >= 0 and n.has(bias) else y
