"""Functions of int16 by a table of 513 values with linear interpolation, as TensorFlow Lite does them."""

from __future__ import annotations

import numpy as np

from aot_model.ir.expr import Expr, Index, cast
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.quantised_tables import Table
from aot_model.ops.registry import operator, required
from aot_model.ops.softmax_int16 import interpolated


@operator("InterpolatedLookup", domain="aot", elementwise=True)
class InterpolatedLookup(Operator):
    """The upper 9 bits of x choose one of 512 pieces, the lower 7 interpolate in it, by int16 slopes."""

    table: Table

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype is not DType.INT16 or len(self.table.values) != 513:
            raise OperatorError(f"a table of {len(self.table.values)} does not fit {x.type}")
        return [x.type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        return cast(interpolated(self.table, cast(at(required(inputs), index), DType.INT32)), DType.INT16)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, values = np.asarray(arrays[0], np.int64), np.asarray(self.table.values, np.int64)
        place, part = (x + 32768) // 128, (x + 32768) % 128
        slopes = np.diff(values).astype(np.int16).astype(np.int64)
        return [(values[place] + (slopes[place] * part + 64) // 128).astype(np.int16)]

    @classmethod
    def samples(cls) -> list[Sample]:
        table = Table(tuple((k - 256) ** 2 // 4 - 9000 for k in range(513)), DType.INT16, 0)
        steep = Table((*range(-256, 0), -32768, *range(20000, 20256)), DType.INT16, 0)
        return [
            Sample((np.asarray([[-32768, 32767, 0], [5, -1, 12345]], np.int16),), {"table": table}),
            Sample((np.asarray([-128, -1, 0, 1, 9, 64, 127, 128, 200], np.int16),), {"table": steep}),
        ]
