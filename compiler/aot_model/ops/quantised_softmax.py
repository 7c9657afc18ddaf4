"""Softmax and L2 normalisation of quantised tensors, in fixed point as TensorFlow Lite Micro computes them."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from aot_model.arithmetic import exact
from aot_model.arithmetic.fixed_point import interpolated_table, scaled_differences, softmax_exponentials
from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import clamp, op
from aot_model.ops.quantised import Requantise, Table, saturated
from aot_model.ops.registry import Build, broadcast, broadcast_index, normal_axis, operator, required

# --- softmax ----------------------------------------------------------------------------------------------------------


@operator("QuantisedSoftmax", domain="aot")
class QuantisedSoftmax(Operator):
    """exp(beta * scale * (x - max)) / sum over an axis, in fixed point; the result has scale 2^-8 (int16: 2^-15).

    The differences to the maximum have 256 values, so their exponentials are a table; the sum is accumulated in Q12.19
    and inverted by Newton's method.
    """

    scale: float = 1.0
    beta: float = 1.0
    axis: int = -1
    to: DType = DType.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype.bits != 8:
            raise OperatorError(f"softmax of {x.type} is not supported", "E202")
        normal_axis(self.axis, x.type.rank)
        return [TensorType(self.to, x.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        axes = build.constant([normal_axis(self.axis, x.type.rank)], DType.INT64)
        table = Table(tuple(softmax_exponentials(self.scale, self.beta)), DType.INT32, 0)
        most = build(op("ReduceMax"), x, axes)
        exponential = build(Exponential(table), most, x)
        total = build(op("ReduceSum"), build(RoundingShift(12), exponential), axes)
        return [build(SoftmaxRatio(self.to), exponential, total, build(FixedReciprocal(), total))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        rows = np.moveaxis(np.asarray(arrays[0], np.int64), self.axis, -1)
        shares = np.apply_along_axis(lambda row: exact.softmax(row.tolist(), self.beta * self.scale, self.to.bits), -1, rows)
        return [np.moveaxis(shares, -1, self.axis).astype(self.to.numpy)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(12)
        cases: list[tuple[tuple[int, ...], dict[str, Any]]] = [((1, 10), {}), ((3, 1), {}), ((2, 5, 7), {}), ((2, 3, 4), {"axis": 1, "beta": 0.5}), ((2, 6), {"to": DType.INT16}), ((3, 9), {"scale": 0.4})]
        return [Sample((np.asarray(rng.integers(-128, 128, s), dtype=np.int8),), {"scale": 0.11, **more}) for s, more in cases]


@operator("RoundedSoftmax", domain="aot")
class RoundedSoftmax(Operator):
    """round(exp(scale * (x - max)) / sum / to_scale) + zero_point, clamped: rounded once, ties to even, as
    QuantizeLinear(Softmax(DequantizeLinear(x))) is. x has 8 bits.

    Exponentials come from a table in Q1.30 and are summed in 64 bits. One division for each sum gives
    2^bits / (sum * to_scale), 2^-bits of a unit exact at most: the result is that of real numbers but where it is within
    2^-20 units of a tie.
    """

    scale: float = 1.0
    to_scale: float = 1.0 / 256
    axis: int = -1
    zero_point: int = 0
    low: int = 0
    high: int = 255
    to: DType = DType.UINT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype.bits != 8:
            raise OperatorError(f"softmax of {x.type} is not supported", "E202")
        normal_axis(self.axis, x.type.rank)
        return [TensorType(self.to, x.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        one, steps = 1 << 30, 1.0 / self.to_scale
        bits = 30 - max(math.frexp(steps)[1], 0)  # the factor of a sum of one is below 2^30
        if bits < 1:
            raise OperatorError(f"a softmax in steps of {self.to_scale} is not supported", "E202")
        axes = build.constant([normal_axis(self.axis, x.type.rank)], DType.INT64)
        table = Table(tuple(round(math.exp(-self.scale * k) * one) for k in range(256)), DType.INT32, 0)
        exponential = build(Exponential(table), build(op("ReduceMax"), x, axes), x)
        total = build(op("ReduceSum"), build(Cast(DType.INT64), exponential), axes)
        half = build(op("Div"), total, build.constant([2], DType.INT64))
        wanted = build(op("Add"), half, build.constant([round(steps * 2.0 ** (30 + bits))], DType.INT64))
        factor = build(Cast(DType.INT32), build(op("Div"), wanted, total))
        shift = build.constant([31 - 30 - bits], DType.INT32)
        return [build(Requantise(self.zero_point, self.low, self.high, self.to, "even"), exponential, factor, shift)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(14)
        cases = [((1, 10), {}), ((3, 1), {}), ((2, 5, 7), {"axis": 1, "to": DType.INT8, "zero_point": -128, "low": -128, "high": 127})]
        return [Sample((np.asarray(rng.integers(-128, 128, s), dtype=np.int8),), {"scale": 0.11, **more}) for s, more in cases]


@operator("Exponential", domain="aot", elementwise=True, movement=True)
class Exponential(Operator):
    """table[a - b] for a >= b."""

    table: Table = Table((), DType.INT32, 0)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.table.dtype, broadcast(required(inputs, 0).shape, required(inputs, 1).shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        a, b = (cast(at(v, broadcast_index(v.shape, index)), DType.INT32) for v in (required(inputs, 0), required(inputs, 1)))
        return self.table.at(call("sub", a, b))


@operator("RoundingShift", domain="aot", elementwise=True)
class RoundingShift(Operator):
    """x / 2^bits, ties away from zero."""

    bits: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        return call("rounding_shift", at(required(inputs), index), const(self.bits))


@operator("FixedReciprocal", domain="aot", elementwise=True)
class FixedReciprocal(Operator):
    """1 / x of a positive int32, normalised: Q0.31 with the exponent that the leading zeros of x say."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        return call("reciprocal", at(required(inputs), index))


@operator("SoftmaxRatio", domain="aot", elementwise=True)
class SoftmaxRatio(Operator):
    """exponential / total given the reciprocal of total, scaled to the whole range of `to`."""

    to: DType = DType.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.to, required(inputs).shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        e, total, reciprocal = (at(v, broadcast_index(v.shape, index)) for v in (required(inputs, k) for k in range(3)))
        # total is Q12.19: its integer part takes 12 - leading zeros bits.
        bits = call("sub", const(12 + 31 - self.to.bits), call("leading_zeros", total))
        low, high = self.to.limits
        return saturated(call("rounding_shift", call("high_multiply", reciprocal, e), bits), low, low, high, self.to)


@operator("QuantisedLogSoftmax", domain="aot")
class QuantisedLogSoftmax(Operator):
    """scale * (x - max) - log(sum(exp(scale * (x - max)))) over the last axis; the result has scale 2^-4 and its zero at the top."""

    scale: float = 1.0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype.bits != 8 or not x.shape:
            raise OperatorError(f"the logarithm of the softmax of {x.type} is not supported", "E202")
        return [x.type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        axes = build.constant([x.type.rank - 1], DType.INT64)
        most = build(op("ReduceMax"), x, axes)
        exponential = build(Exponential(Table(tuple(softmax_exponentials(self.scale, 1.0)), DType.INT32, 0)), most, x)
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
        return [Sample((np.asarray(rng.integers(-128, 128, s), dtype=np.int8),), {"scale": 0.11}) for s in [(1, 10), (3, 1)]]


@operator("FixedLog", domain="aot", elementwise=True)
class FixedLog(Operator):
    """log of Q12.19 in Q5.26."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        return call("fixed_log", at(required(inputs), index))


@operator("Saturate", domain="aot", elementwise=True)
class Saturate(Operator):
    """clamp(x + zero_point, low, high) of int32."""

    zero_point: int = 0
    low: int = -128
    high: int = 127
    to: DType = DType.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.to, required(inputs).shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        return saturated(at(required(inputs), index), self.zero_point, self.low, self.high, self.to)


# --- int16 softmax ----------------------------------------------------------------------------------------------------


@cache
def exponential_table() -> Table:
    """exp(x) for x in [-10, 0]."""
    return Table(interpolated_table(10 / np.float32(65535), 32767, np.exp), DType.INT16, 0)


@cache
def reciprocal_table() -> Table:
    """1 / (1 + x) for x in [0, 1]."""
    return Table(interpolated_table(1 / np.float32(65535), -32768, lambda v: np.float32(1) / (np.float32(1) + v)), DType.INT16, 0)


def interpolated(table: Table, x: Expr) -> Expr:
    """A function of int16 x (as int32): the upper 9 bits choose one of 512 pieces, the others interpolate in it."""
    place = call("add", call("sar", x, const(7)), const(256))
    left, right = (cast(table.at(i), DType.INT32) for i in (place, call("add", place, const(1))))
    part = call("mul", call("sub", right, left), call("bitand", x, const(127)))
    return call("add", left, call("sar", call("add", part, const(64)), const(7)))


def saturated16(x: Expr) -> Expr:
    return clamp(x, const(-32768, x.dtype), const(32767, x.dtype))


@operator("SoftmaxInt16", domain="aot")
class SoftmaxInt16(Operator):
    """Softmax of int16 over the last axis; the result has scale 2^-15. The factor brings differences to 10 / 65535."""

    multiplier: int = 0
    shift: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype is not DType.INT16 or not x.shape:
            raise OperatorError(f"{x.type} is not an int16 tensor")
        return [x.type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        axes = build.constant([x.type.rank - 1], DType.INT64)
        most = build(op("ReduceMax"), x, axes)
        exponential = build(ExponentialInt16(self.multiplier, self.shift), most, x)
        total = build(op("ReduceSum"), exponential, axes)
        return [build(SoftmaxRatioInt16(), exponential, total)]


@operator("ExponentialInt16", domain="aot", elementwise=True)
class ExponentialInt16(Operator):
    """exp(b - a) in Q0.15 as int32, for a >= b."""

    multiplier: int = 0
    shift: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT32, broadcast(required(inputs, 0).shape, required(inputs, 1).shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        a, b = (cast(at(v, broadcast_index(v.shape, index)), DType.INT32) for v in (required(inputs, 0), required(inputs, 1)))
        scaled = call("requantise", call("sub", b, a), const(self.multiplier), const(self.shift))
        return interpolated(exponential_table(), saturated16(call("add", scaled, const(32767))))


@operator("SoftmaxRatioInt16", domain="aot", elementwise=True)
class SoftmaxRatioInt16(Operator):
    """exponential / total, both Q0.15: the reciprocal of the normalised total comes from a table of 1 / (1 + x)."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT16, required(inputs).shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        e, total = (at(v, broadcast_index(v.shape, index)) for v in (required(inputs, 0), required(inputs, 1)))
        bits = call("leading_zeros", total)
        left = call("sub", cast(bits, DType.INT64), const(1, DType.INT64))
        normal = call("shl", cast(total, DType.INT64), left)
        fraction = cast(call("sar", call("add", normal, const(1 << 13, DType.INT64)), const(14, DType.INT64)), DType.INT32)
        reciprocal = interpolated(reciprocal_table(), saturated16(call("sub", fraction, const((1 << 15) + (1 << 16)))))
        right = call("sub", const(31), bits)
        half = call("shl", const(1), call("sub", right, const(1)))
        y = call("sar", call("add", call("mul", e, reciprocal), half), right)
        return cast(clamp(y, const(0), const(32767)), DType.INT16)


# --- L2 normalisation -------------------------------------------------------------------------------------------------


@operator("L2Normalise", domain="aot", elementwise=True)
class L2Normalise(Operator):
    """x / sqrt(square sum) of centred int32, as int8 with scale 2^-7."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT8, required(inputs).shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        x, total = (at(v, broadcast_index(v.shape, index)) for v in (required(inputs, 0), required(inputs, 1)))
        multiplier, shift = call("inverse_sqrt_multiplier", total), call("inverse_sqrt_shift", total)
        y = call("requantise", x, multiplier, call("add", shift, const(7)))
        return saturated(y, 0, -128, 127, DType.INT8)
