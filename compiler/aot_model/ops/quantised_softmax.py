"""Softmax of quantised tensors, in fixed point as TensorFlow Lite Micro computes them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from aot_model.arithmetic import exact
from aot_model.arithmetic.fixed_point import scaled_differences, softmax_exponentials
from aot_model.ir.admissible import Range, observed, want
from aot_model.ir.expr import Expr, Index, call, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Unary, op
from aot_model.ops.quantised_tables import Table
from aot_model.ops.registry import (
    Build,
    broadcast,
    broadcast_index,
    normal_axis,
    operator,
    required,
    shared_shape,
)
from aot_model.ops.requantise import saturated, two_widened

# --- softmax ------------------------------------------------------------------------------------------------


class _OfBytes(Operator):
    """A softmax of 8-bit integers over an axis, to integers of the type `to`."""

    axis: int
    to: DType

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype.bits != 8:
            raise OperatorError(f"softmax of {x.type} is not supported", "E202")
        normal_axis(self.axis, x.type.rank)
        return [TensorType(self.to, x.shape)]


MOST_TERMS = 2**13
"""Exponentials in Q12.19, each at most 1, whose sum is below 2^32."""


def _total(build: Build, exponential: Value, axes: Value, terms: int) -> Value:
    """The sum of exponentials in Q12.19, as the bits of 32 without a sign: no larger one gives 8 bits a share
    that is not 0.
    """
    each = build(RoundingShift(12), exponential)
    if terms < MOST_TERMS:
        return build(op("ReduceSum"), each, axes)
    wide = build(op("ReduceSum"), build(Cast(DType.INT64), each), axes)
    within = build(op("Min"), wide, build.constant(2**32 - 1, DType.INT64))
    return build(Cast(DType.INT32), build(Cast(DType.UINT32), within))


@operator("QuantisedSoftmax", domain="aot")
class QuantisedSoftmax(_OfBytes):
    """exp(beta * scale * (x - max)) / sum over an axis, in fixed point; the result has scale 2^-8 (int16:
    2^-15).

    The differences to the maximum have 256 values, so their exponentials are a table; the sum is accumulated
    in Q12.19 and inverted by Newton's method.
    """

    scale: float
    beta: float = 1.0
    axis: int = -1
    to: DType = DType.INT8

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        axes = build.constant([normal_axis(self.axis, x.type.rank)], DType.INT64)
        table = Table(tuple(softmax_exponentials(self.scale, self.beta)), DType.INT32, 0)
        most = build(op("ReduceMax"), x, axes)
        exponential = build(Exponential(table), most, x)
        total = _total(build, exponential, axes, x.shape[normal_axis(self.axis, x.type.rank)])
        return [build(SoftmaxRatio(self.to), exponential, total, build(FixedReciprocal(), total))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        rows = np.moveaxis(np.asarray(arrays[0], np.int64), self.axis, -1)
        shares = np.apply_along_axis(
            lambda row: exact.softmax(row.tolist(), self.beta * self.scale, self.to.bits), -1, rows
        )
        return [np.moveaxis(shares, -1, self.axis).astype(self.to.numpy)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(12)
        cases: list[tuple[tuple[int, ...], dict[str, Any]]] = [
            ((1, 10), {}),
            ((3, 1), {}),
            ((2, 5, 7), {}),
            ((2, 3, 4), {"axis": 1, "beta": 0.5}),
            ((2, 6), {"to": DType.INT16}),
            ((3, 9), {"scale": 0.4}),
        ]
        return [
            Sample((np.asarray(rng.integers(-128, 128, s), dtype=np.int8),), {"scale": 0.11, **more})
            for s, more in cases
        ]


@operator("Exponential", domain="aot", elementwise=True, movement=True)
class Exponential(Operator):
    """table[a - b] for a >= b."""

    table: Table

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.table.dtype, broadcast(required(inputs, 0).shape, required(inputs, 1).shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        a, b = two_widened(at, inputs, index)
        values = self.table.value
        assert values.data is not None
        # of the largest element: so sums have an inverse and a logarithm
        greatest = Range(int(values.data[0]), int(values.data[0]), count=1)
        want(values, *observed(values.data), greatest)
        return self.table.at(call("sub", a, b))

    @classmethod
    def samples(cls) -> list[Sample]:
        table = Table(tuple(7 * k * k - 3 for k in range(256)), DType.INT32, 0)
        return [
            Sample(
                (
                    np.asarray([[127], [5]], np.int8),
                    np.asarray([[-128, 127, 3, 0], [5, 4, -1, -128]], np.int8),
                ),
                {"table": table},
            )
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return exact.by_element(lambda a, b: self.table.values[a - b], self.table.dtype.numpy, *arrays)


@operator("RoundingShift", domain="aot", elementwise=True)
class RoundingShift(Operator):
    """x / 2^bits, ties away from zero."""

    bits: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        return call("rounding_shift", at(required(inputs), index), const(self.bits))

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([0, 1, -1, 6, -6, 7, -7, 8, 10, -10, 2**31 - 1, -(2**31)], np.int32)
        return [Sample((x,), {"bits": b}) for b in (0, 1, 2, 12)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return exact.by_element(
            lambda x: exact.away(Fraction(x, 2**self.bits)), np.asarray(arrays[0]).dtype, arrays[0]
        )


@operator("FixedReciprocal", domain="aot", elementwise=True)
class FixedReciprocal(Unary):
    """1 / x of a positive int32, normalised: Q0.31 with the exponent that the leading zeros of x say."""

    def scalar(self, x: Expr) -> Expr:
        return call("reciprocal", x)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((np.asarray([1, 2, 3, 5, 2**19, 2**19 + 1, 700000, 2**27 + 12345, 2**31 - 1], np.int32),))
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return exact.by_element(lambda x: exact.normalised_inverse(x)[0], np.dtype(np.int32), arrays[0])


@operator("SoftmaxRatio", domain="aot", elementwise=True)
class SoftmaxRatio(Operator):
    """exponential / total given the reciprocal of total, scaled to the whole range of `to`."""

    to: DType

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.to, shared_shape(inputs, 3))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        e, total, reciprocal = (
            at(v, broadcast_index(v.shape, index)) for v in (required(inputs, k) for k in range(3))
        )
        # total is Q12.19: its integer part takes 12 - leading zeros bits.
        low, high = self.to.limits
        return saturated(
            call("softmax_ratio", reciprocal, e, total, const(12 + 31 - self.to.bits)),
            low,
            low,
            high,
            self.to,
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        powers = np.asarray([[2**31 - 1, 2**30, 12345678, 0], [2**31 - 1, 3, 2**31 - 1, 5]], np.int32)
        totals = np.asarray([[790000], [2**20 + 5]], np.int32)
        inverses = np.asarray([[exact.normalised_inverse(int(t))[0]] for t in totals[:, 0]], np.int32)
        return [Sample((powers, totals, inverses), {"to": t}) for t in (DType.INT8, DType.UINT8, DType.INT16)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        low, high = self.to.limits

        def one(power: int, total: int, inverse: int) -> int:
            bits = 43 - self.to.bits - exact.normalised_inverse(total)[1]
            return exact.clamped(
                exact.away(Fraction(exact.product(inverse, power), 2**bits)) + low, low, high
            )

        return exact.by_element(one, self.to.numpy, *arrays)


@operator("QuantisedLogSoftmax", domain="aot")
class QuantisedLogSoftmax(_OfBytes):
    """scale * (x - max) - log(sum(exp(scale * (x - max)))) over the last axis; the result has scale 2^-4 and
    its zero at the top.
    """

    scale: float

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype.bits != 8 or not x.shape:
            raise OperatorError(f"the logarithm of the softmax of {x.type} is not supported", "E202")
        if x.shape[-1] > MOST_TERMS // 2 - 1:
            raise OperatorError(
                f"the logarithm of the softmax of {x.shape[-1]} numbers is not supported: sums of more than "
                f"{MOST_TERMS // 2 - 1} exponentials are beyond 32 bits",
                "E202",
            )
        return [x.type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        axes = build.constant([x.type.rank - 1], DType.INT64)
        most = build(op("ReduceMax"), x, axes)
        exponential = build(
            Exponential(Table(tuple(softmax_exponentials(self.scale, 1.0)), DType.INT32, 0)), most, x
        )
        log = build(FixedLog(), build(op("ReduceSum"), build(RoundingShift(12), exponential), axes))
        # Everything below -1.2e9 (-18) is the smallest result, and no sum with it overflows.
        differences = Table(tuple(scaled_differences(self.scale, 1.0, -1200000000)), DType.INT32, 0)
        shifted = build(RoundingShift(22), build(op("Sub"), build(Exponential(differences), most, x), log))
        low, high = x.dtype.limits
        return [build(Saturate(high, low, high, x.dtype), shifted)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        real = self.scale * np.asarray(arrays[0], np.float64)
        difference = real - real.max(axis=-1, keepdims=True)
        log = difference - np.log(np.exp(difference).sum(axis=-1, keepdims=True))
        limits = np.iinfo(np.asarray(arrays[0]).dtype)
        return [np.clip(np.rint(log * 16) + limits.max, limits.min, limits.max).astype(limits.dtype)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(13)
        return [
            Sample((np.asarray(rng.integers(-128, 128, s), dtype=np.int8),), {"scale": 0.11})
            for s in [(1, 10), (3, 1)]
        ]


@operator("FixedLog", domain="aot", elementwise=True)
class FixedLog(Unary):
    """log of Q12.19 in Q5.26."""

    def scalar(self, x: Expr) -> Expr:
        return call("fixed_log", x)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample(
                (np.asarray([2**19, 2**19 + 1, 600000, 2**20, 3 * 2**20 + 7, 2**26, 2**31 - 1], np.int32),),
                tolerance=64,
            )
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return [np.rint(np.log(np.asarray(arrays[0]) / 2.0**19) * 2**26).astype(np.int32)]


@operator("Saturate", domain="aot", elementwise=True)
class Saturate(Operator):
    """clamp(x + zero_point, low, high) of int32."""

    zero_point: int = 0
    low: int = -128
    high: int = 127
    to: DType = DType.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.to, required(inputs).shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        return saturated(at(required(inputs), index), self.zero_point, self.low, self.high, self.to)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([-1000, -131, -130, -5, 0, 99, 100, 1000], np.int32)
        return [
            Sample((x,), {"zero_point": 3}),
            Sample((x,), {"zero_point": -7, "low": 0, "high": 90}),
            Sample((x,), {"to": DType.UINT8, "low": 0, "high": 255}),
            Sample((x,), {"low": -2000, "high": 500, "to": DType.INT16}),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return exact.by_element(
            lambda x: exact.clamped(x + self.zero_point, self.low, self.high), self.to.numpy, arrays[0]
        )
