"""Softmax of bytes along the last axis, row by row and where they lie: between tensors of one type."""

from __future__ import annotations

import math

import numpy as np

from aot_model.arithmetic import exact
from aot_model.c.literal import literal
from aot_model.ir.admissible import Range, observed, want
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.program import Overlap
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.quantised_tables import Table
from aot_model.ops.registry import operator, required

NARROW = 2.0**-14
"""What the sum of 32 bits of a short row may change a result by, in its units."""
WIDE = 2.0**-8
"""... that of 64 bits, which has exponentials of 30 bits."""


@operator("SoftmaxRows", domain="aot", stores_itself=True)
class SoftmaxRows(Operator):
    """(offset + (table[most - x] * f >> 32)) >> shift, saturated, with f = unit / sum(table[most - x]),
    where `most` is the largest of a row. The table has exponentials, that of 0 first. wide: the sum
    has 64 bits, and integers are divided.
    """

    table: Table
    unit: int
    offset: int
    shift: int
    wide: bool

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype not in (DType.INT8, DType.UINT8) or not x.type.elements or not x.shape:
            raise OperatorError(f"takes rows of bytes, not {x.type}")
        return [x.type]

    def lower(self, site: Site) -> None:
        x, y, table = site.input(0), site.node.outputs[0], self.table.value
        assert table.data is not None
        # of the largest element: no sum is smaller, and none leaves its type
        one = int(table.data[0])
        want(table, *observed(table.data), Range(one, one, count=1))
        n = x.shape[-1]
        unit = f"UINT64_C({self.unit})" if self.wide else literal(float(self.unit), DType.FLOAT32)
        call = f"aot_model_softmax_{x.dtype.c_type}_{'uint64_t' if self.wide else 'uint32_t'}"
        text = f"""\
    for (int32_t i = 0; i < {x.type.elements}; i += {n}) {{
        {call}(x + i, y + i, {n}, table, {unit}, {self.offset}, {self.shift});
    }}"""
        arguments = [Argument("x", x), Argument("table", table), written("y", y)]
        overlaps = () if x.is_const else (Overlap(0, 2, 0),)
        site.call("softmax_rows", text, arguments, includes=["aot_model/byte_softmax.h"], overlaps=overlaps)

    def fold(self, arrays: Arrays) -> list[np.ndarray]:
        return self.reference(arrays)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        low, high = int(np.iinfo(x.dtype.name).min), int(np.iinfo(x.dtype.name).max)
        rows = []
        for row in x.reshape(-1, x.shape[-1]).tolist():
            each = [self.table.values[max(row) - v] for v in row]
            nearest = int(np.float32(self.unit) / np.float32(sum(each)) + np.float32(0.5))
            f = self.unit // sum(each) if self.wide else nearest
            rows.append(
                [exact.clamped((self.offset + e * f // 2**32) // 2**self.shift, low, high) for e in each]
            )
        return [np.asarray(rows, x.dtype).reshape(x.shape)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(15)
        made = []
        for kind, shape in (("int8", (3, 1)), ("uint8", (2, 3, 10)), ("int8", (4, 17)), ("uint8", (2, 130))):
            x = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
            rows = softmax_rows(0.06, 1 / 256, int(np.iinfo(kind).min), shape[-1])
            assert rows is not None
            made.append(Sample((x,), vars(rows)))
        return made


def softmax_rows(scale: float, to_scale: float, zero: int, count: int) -> SoftmaxRows | None:
    """exp(scale * (x - most)) / sum / to_scale + zero, rounded, for rows of `count`: to NARROW of a unit,
    where 32 bits hold the sum, else to WIDE; None where there is no room for that.

    Ties go down: where a unit is a power of 2, those of equal elements are between 0 and 1.
    """
    steps = 1.0 / to_scale
    for wide, bits in ((False, min(31 - (count - 1).bit_length(), 30)), (True, 30)):
        if steps * count * 2.0 ** (-bits - 1) > (WIDE if wide else NARROW):
            continue
        for shift in range(20, 8, -1):
            unit = round(steps * 2.0 ** (32 + shift))
            offset = (zero << shift) + (1 << shift - 1) - 1
            # the factor of a sum of one is below 2^31, also where it is rounded
            if unit < 2.0 ** (bits + 31) * 0.999 and steps * 2.0**shift + abs(offset) < 2.0**31 - 2:
                powers = tuple(round(math.exp(-scale * k) * (1 << bits)) for k in range(256))
                return SoftmaxRows(Table(powers, DType.UINT32, 0), unit, offset, shift, wide)
    return None
