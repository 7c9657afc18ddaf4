"""Softmax of int16 and L2 normalisation of quantised tensors, in fixed point as TensorFlow Lite Micro
computes them.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from aot_model.arithmetic.fixed_point import interpolated_table
from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.elementwise import Unary, clamp, op
from aot_model.ops.quantised_tables import Table
from aot_model.ops.registry import Build, broadcast, broadcast_index, operator, required, shared_shape
from aot_model.ops.requantise import saturated, two_widened


@cache
def exponential_table() -> Table:
    """exp(x) for x in [-10, 0]."""
    values = interpolated_table(10 / np.float32(65535), 32767, lambda v: np.float32(math.exp(v)))
    return Table(values, DType.INT16, 0)


@cache
def reciprocal_table(double: bool) -> Table:
    """1 / (1 + x) for x in [0, 1]. double: by floats of 64 bits, as LiteRT makes it."""
    real = np.float64 if double else np.float32
    return Table(
        interpolated_table(real(1) / real(65535), -32768, lambda v: real(1) / (real(1) + v), real=real),
        DType.INT16,
        0,
    )


def interpolated(table: Table, x: Expr) -> Expr:
    """A function of int16 x (as int32): the upper 9 bits choose one of 512 pieces, the others interpolate in
    it. Differences of neighbours are int16, as TensorFlow Lite's are: a logarithm beside 0, where they are
    larger, wraps.
    """
    place = call("add", call("sar", x, const(7)), const(256))
    left, right = (cast(table.at(i), DType.INT32) for i in (place, call("add", place, const(1))))
    slope = call("sub", right, left)
    if int(np.abs(np.diff(np.asarray(table.values, np.int64))).max()) >= 1 << 15:
        slope = cast(cast(slope, DType.INT16), DType.INT32)
    part = call("mul", slope, call("bitand", x, const(127)))
    return call("add", left, call("sar", call("add", part, const(64)), const(7)))


def saturated16(x: Expr) -> Expr:
    return clamp(x, const(-32768, x.dtype), const(32767, x.dtype))


@operator("SoftmaxInt16", domain="aot")
class SoftmaxInt16(Operator):
    """Softmax of int16 over the last axis; the result has scale 2^-15. The factor brings differences to 10 /
    65535. double: with LiteRT's table of reciprocals, not that of TensorFlow Lite Micro.
    """

    multiplier: int
    shift: int
    double: bool = False

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
        return [build(SoftmaxRatioInt16(), exponential, total, build(ReciprocalInt16(self.double), total))]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(3).integers(-32768, 32768, (3, 9)), np.int16)
        return [
            Sample((x >> 3,), {"multiplier": 1717986918, "shift": 0}, tolerance=4),
            Sample((x >> 6,), {"multiplier": 1342177280, "shift": 3}, tolerance=4),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        real = np.asarray(arrays[0], np.float64) * self.multiplier * 2.0 ** (self.shift - 31) * 10 / 65535
        powers = np.exp(real - real.max(axis=-1, keepdims=True))
        return [
            np.minimum(np.rint(powers / powers.sum(axis=-1, keepdims=True) * 2**15), 32767).astype(np.int16)
        ]


@operator("ExponentialInt16", domain="aot", elementwise=True)
class ExponentialInt16(Operator):
    """exp(b - a) in Q0.15 as int32, for a >= b."""

    multiplier: int
    shift: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT32, broadcast(required(inputs, 0).shape, required(inputs, 1).shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        a, b = two_widened(at, inputs, index)
        scaled = call("requantise", call("sub", b, a), const(self.multiplier), const(self.shift))
        return interpolated(exponential_table(), saturated16(call("add", scaled, const(32767))))

    @classmethod
    def samples(cls) -> list[Sample]:
        b = np.asarray([[0, -1, -7, -300], [-4000, -20000, -32768, -5]], np.int16)
        return [
            Sample((np.asarray([[0]], np.int16), b), {"multiplier": m, "shift": s}, tolerance=10)
            for m, s in ((2**30, 1), (1717986918, -1))
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        a, b = (np.asarray(v, np.float64) for v in arrays)
        real = (b - a) * self.multiplier * 2.0 ** (self.shift - 31) * 10 / 65535
        return [np.rint(np.exp(np.maximum(real, -10)) * 32767).astype(np.int32)]


@operator("ReciprocalInt16", domain="aot", elementwise=True)
class ReciprocalInt16(Unary):
    """1 / x of a positive int32 as Q0.15 in int32, x shifted to [1, 2): from a table of 1 / (1 + x)."""

    double: bool = False

    def scalar(self, x: Expr) -> Expr:
        normal = call("shl", x, call("sub", call("leading_zeros", x), const(1)))  # 2^30 to below 2^31
        odd = call("bitand", call("sar", normal, const(13)), const(1))
        fraction = call("add", call("sar", normal, const(14)), odd)
        return interpolated(
            reciprocal_table(self.double), saturated16(call("sub", fraction, const((1 << 15) + (1 << 16))))
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[1, 3, 32767, 32768], [65537, 40_000, (1 << 30) + 9, (1 << 31) - 1]], np.int32)
        return [Sample((x,), {"double": double}, tolerance=2) for double in (False, True)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        part, _ = np.frexp(np.asarray(arrays[0], np.float64))
        return [np.minimum(np.rint(2**14 / part), 32767).astype(np.int32)]


@operator("SoftmaxRatioInt16", domain="aot", elementwise=True)
class SoftmaxRatioInt16(Operator):
    """exponential / total, both Q0.15, given the reciprocal of the total as ReciprocalInt16 has it."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT16, shared_shape(inputs, 3))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        e, total, reciprocal = (
            at(v, broadcast_index(v.shape, index)) for v in (required(inputs, k) for k in range(3))
        )
        right = call("sub", const(31), call("leading_zeros", total))
        half = call("shl", const(1), call("sub", right, const(1)))
        y = call("sar", call("add", call("mul", e, reciprocal), half), right)
        return cast(clamp(y, const(0), const(32767)), DType.INT16)

    @classmethod
    def samples(cls) -> list[Sample]:
        powers = np.asarray([[32767, 20000, 3, 0], [32767, 32767, 32767, 1]], np.int32)
        total = powers.sum(1, keepdims=True, dtype=np.int32)
        return [Sample((powers, total, *ReciprocalInt16().reference([total])), tolerance=4)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        e, total = (np.asarray(v, np.float64) for v in arrays[:2])
        return [np.minimum(np.rint(e / total * 2**15), 32767).astype(np.int16)]


# --- L2 normalisation ---------------------------------------------------------------------------------------


@operator("L2Normalise", domain="aot", elementwise=True)
class L2Normalise(Operator):
    """x / sqrt(square sum) of centred int32, as int8 with scale 2^-7, or as uint8 with 128 for 0."""

    to: DType = DType.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.to, shared_shape(inputs, 2))]

    def _zero(self) -> int:
        return 128 + self.to.limits[0]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, total = (
            at(v, broadcast_index(v.shape, index)) for v in (required(inputs, 0), required(inputs, 1))
        )
        multiplier, shift = call("inverse_sqrt_multiplier", total), call("inverse_sqrt_shift", total)
        if self.to is DType.UINT8:  # TFLite multiplies by 2^7 before it rounds
            y = call("requantise", call("mul", x, const(128)), multiplier, shift)
        else:
            y = call("requantise", x, multiplier, call("add", shift, const(7)))
        return saturated(y, self._zero(), *self.to.limits, self.to)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[3, -4, 0, 12], [100, -200, 255, 1], [0, 0, 0, 1]], np.int32)
        arrays = (x, (x * x).sum(1, keepdims=True, dtype=np.int32))
        return [Sample(arrays), Sample(arrays, {"to": DType.UINT8}, tolerance=1)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, total = (np.asarray(v, np.float64) for v in arrays)
        y = np.rint(x / np.sqrt(total) * 128) + self._zero()
        return [np.clip(y, *self.to.limits).astype(self.to.numpy)]
