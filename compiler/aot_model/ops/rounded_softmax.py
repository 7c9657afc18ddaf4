"""Softmax of quantised tensors that is rounded once: what QDQ networks mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.admissible import Range, observed, want
from aot_model.ir.expr import Expr, Index, call, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.quantised_softmax import Exponential
from aot_model.ops.quantised_tables import Table
from aot_model.ops.registry import Build, broadcast, normal_axis, operator, required
from aot_model.ops.requantise import Requantise, two_widened
from aot_model.ops.softmax_rows import SoftmaxRows, softmax_rows


@operator("RoundedSoftmax", domain="aot")
class RoundedSoftmax(Operator):
    """round(exp(scale * (x - max)) / sum / to_scale) + zero_point, clamped: rounded once, ties to even, as
    QuantizeLinear(Softmax(DequantizeLinear(x))) is. x has 8 or 16 bits.

    Exponentials come from a table in Q1.30, those of 16 bits are products of two tables' in Q1.29; they are
    summed in 64 bits. One division for each sum gives 2^bits / (sum * to_scale), 2^-bits of a unit exact at
    most: the result is that of real numbers but where it is within 2^-20 units of a tie (2^-9, where it or x
    has 16 bits). Rows of bytes that become bytes of the same type go by softmax_rows.py, to 2^-13 of a unit;
    long ones of n elements to n 2^-23, where a unit is 2^-8.
    """

    scale: float
    to_scale: float = 1.0 / 256
    axis: int = -1
    zero_point: int = 0
    low: int = 0
    high: int = 255
    to: DType = DType.UINT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if not x.dtype.is_integer or x.dtype.bits not in (8, 16):
            raise OperatorError(f"softmax of {x.type} is not supported", "E202")
        normal_axis(self.axis, x.type.rank)
        return [TensorType(self.to, x.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        if normal_axis(self.axis, x.type.rank) == x.type.rank - 1:
            rows = self.in_rows(x, x.shape[-1])
            if rows is not None:
                return [build(rows, x)]
        steps = 1.0 / self.to_scale
        bits = 30 - max(math.frexp(steps)[1], 0)  # the factor of a sum of one is below 2^30
        if bits < 1:
            raise OperatorError(f"a softmax in steps of {self.to_scale} is not supported", "E202")
        axes = build.constant([normal_axis(self.axis, x.type.rank)], DType.INT64)
        most = build(op("ReduceMax"), x, axes)
        if x.dtype.bits == 8:
            point, exponential = 30, build(Exponential(_exponentials(self.scale, 256)), most, x)
        else:
            point, exponential = 29, build(ExponentialProduct(*_factors(self.scale)), most, x)
        total = build(op("ReduceSum"), build(Cast(DType.INT64), exponential), axes)
        half = build(op("Div"), total, build.constant([2], DType.INT64))
        wanted = build(op("Add"), half, build.constant([round(steps * 2.0 ** (point + bits))], DType.INT64))
        factor = build(Cast(DType.INT32), build(op("Div"), wanted, total))
        shift = build.constant([31 - point - bits], DType.INT32)
        return [
            build(
                Requantise(self.zero_point, self.low, self.high, self.to, "even"), exponential, factor, shift
            )
        ]

    def in_rows(self, x: Value, count: int) -> SoftmaxRows | None:
        """The softmax of rows of `count` elements of x that lie in one piece, where these give what they are
        made of.
        """
        if x.dtype is not self.to or (self.low, self.high) != x.dtype.limits or x.dtype.bits > 8:
            return None
        return softmax_rows(self.scale, self.to_scale, self.zero_point, count) if x.type.elements else None

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(14)
        cases: list[tuple[tuple[int, ...], dict[str, Any]]] = [
            ((1, 10), {}),
            ((3, 1), {}),
            ((2, 5, 7), {"axis": 1, "to": DType.INT8, "zero_point": -128, "low": -128, "high": 127}),
            ((2, 9), {"to_scale": 0.003, "zero_point": 5, "high": 200}),
        ]
        wide: list[tuple[tuple[int, ...], dict[str, Any]]] = [
            ((3, 17), {"scale": 2.0**-11, "to": DType.INT8, "zero_point": -128, "low": -128, "high": 127}),
            (
                (2, 9),
                {"scale": 2.0**-13, "to_scale": 2.0**-15, "to": DType.INT16, "low": -32768, "high": 32767},
            ),
            ((4, 5), {"scale": 1e-5, "axis": 0}),
            ((2, 7), {"scale": 0.3, "to_scale": 2.0**-16, "to": DType.UINT16, "high": 65535}),
        ]
        return [
            *(
                Sample((np.asarray(rng.integers(-128, 128, s), dtype=np.int8),), {"scale": 0.11, **more})
                for s, more in cases
            ),
            *(
                Sample((np.asarray(rng.integers(-32768, 32768, s), dtype=np.int16),), more)
                for s, more in wide
            ),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        real = self.scale * np.asarray(arrays[0], np.float64)
        powers = np.exp(real - real.max(axis=self.axis, keepdims=True))
        steps = np.rint(powers / powers.sum(axis=self.axis, keepdims=True) / self.to_scale)
        return [np.clip(steps + self.zero_point, self.low, self.high).astype(self.to.numpy)]


def _exponentials(scale: float, count: int) -> Table:
    """exp(-scale * k) in Q1.30."""
    return Table(tuple(round(math.exp(-scale * k) * (1 << 30)) for k in range(count)), DType.INT32, 0)


def _factors(scale: float) -> tuple[Table, Table, int]:
    """(exponentials of multiples of 2^bits, of what is left, bits), with the fewest entries: of multiples up
    to the first that is nothing.
    """

    def count(bits: int) -> int:
        nothing = math.log(1 << 31) / (scale * (1 << bits))  # less than half of 2^-30
        return int(min((65535 >> bits) + 1, nothing + 2))

    bits = min(range(2, 13), key=lambda b: count(b) + (1 << b))
    return _exponentials(scale * (1 << bits), count(bits)), _exponentials(scale, 1 << bits), bits


@operator("ExponentialProduct", domain="aot", elementwise=True)
class ExponentialProduct(Operator):
    """coarse[(a - b) >> bits] * fine[(a - b) & (2^bits - 1)] in Q1.29 for a >= b of 16 bits, tables in Q1.30;
    beyond the end of `coarse` its last entry.
    """

    coarse: Table
    fine: Table
    bits: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT32, broadcast(required(inputs, 0).shape, required(inputs, 1).shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        a, b = two_widened(at, inputs, index)
        for table in (self.coarse, self.fine):  # sums of rows have an inverse
            assert table.value.data is not None
            one = int(table.value.data[0])
            want(table.value, *observed(table.value.data), Range(one, one, count=1))
        difference = call("sub", a, b)
        multiple = call("sar", difference, const(self.bits))
        last = len(self.coarse.values) - 1
        multiple = call("min", multiple, const(last)) if last < 65535 >> self.bits else multiple
        rest = call("bitand", difference, const((1 << self.bits) - 1))
        return call("high_multiply", self.coarse.at(multiple), self.fine.at(rest))

    @classmethod
    def samples(cls) -> list[Sample]:
        b = np.asarray([[0, -1, -7, -300], [-4000, -20000, -32768, -5]], np.int16)
        most = np.asarray([[0], [32767]], np.int16)
        return [
            Sample((most, b), dict(zip(("coarse", "fine", "bits"), _factors(s), strict=True)))
            for s in (2.0**-11, 1e-5, 0.5)
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(a: int, b: int) -> int:
            high, low = divmod(a - b, 1 << self.bits)
            coarse = self.coarse.values[min(high, len(self.coarse.values) - 1)]
            return coarse * self.fine.values[low] + (1 << 30) >> 31

        return exact.by_element(one, np.dtype(np.int32), *arrays)
