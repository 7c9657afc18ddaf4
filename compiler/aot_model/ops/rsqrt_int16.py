"""Inverse square root of int16, in fixed point as TensorFlow Lite Micro computes it."""

from __future__ import annotations

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, select
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.registry import operator, required


@operator("RsqrtInt16", domain="aot", elementwise=True)
class RsqrtInt16(Operator):
    """1 / sqrt(x) of int16; multiplier and shift are 1 / (sqrt(scale) * scale of the result). The largest
    value where x is not positive.
    """

    multiplier: int
    shift: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        if required(inputs).dtype is not DType.INT16:
            raise OperatorError(f"{required(inputs).type} is not int16")
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = cast(at(required(inputs), index), DType.INT32)
        multiplier, shift = call("inverse_sqrt_multiplier", x), call("inverse_sqrt_shift", x)
        inverse = call("requantise", const(1), multiplier, call("add", shift, const(20)))
        y = call("requantise", inverse, const(self.multiplier), const(self.shift - 20))
        most = const(32767)
        return cast(
            select(call("lt", x, const(1), dtype=DType.BOOL), most, call("min", y, most)), DType.INT16
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.concatenate([np.arange(-300, 32768, 257), [0, 1, 2, 3, 4, 32767]]).astype(np.int16)
        return [Sample((x,), {"multiplier": 1717986918, "shift": s}, tolerance=2) for s in (0, 14, 22)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0], np.float64)
        y = np.rint(self.multiplier * 2.0 ** (self.shift - 31) / np.sqrt(np.maximum(x, 1)))
        return [np.where(x > 0, np.minimum(y, 32767), 32767).astype(np.int16)]
