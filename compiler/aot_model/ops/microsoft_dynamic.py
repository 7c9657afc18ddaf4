"""com.microsoft: integer products with a float result, activations quantised while the model runs. Source:
ONNX Runtime's contrib operators.

Scales and zero points of weights are one for all or one per column. Sums are exact; the factor of the
accumulators is the product of the scales in float32, as there.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.operator import Inputs, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.integer_products import MatMulInteger
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.microsoft_attention import Projected
from aot_model.ops.quantised_linear import check_zero_point
from aot_model.ops.quantised_onnx import DynamicQuantizeLinear
from aot_model.ops.registry import Build, operator, required


def scaled_product(
    a: Algebra, x: Value, w: Value, x_scale: Value, w_scale: Value, x_zero: Value | None, w_zero: Value | None
) -> Value:
    """(x - x_zero) (w - w_zero) * (x_scale * w_scale)."""
    if not (x_scale.dtype.is_float and w_scale.dtype.is_float):
        raise OperatorError(f"the scales are {x_scale.type} and {w_scale.type}, no floats")
    check_zero_point(x, x_zero)
    check_zero_point(w, w_zero)
    total = a(MatMulInteger(), x, w, x_zero, w_zero)
    return a.mul(
        a.cast(total, x_scale.dtype),
        a.mul(a.reshape(x_scale) if x_scale.type.elements == 1 else x_scale, w_scale),
    )


@operator("MatMulIntegerToFloat", domain="com.microsoft", inputs=7)
class MatMulIntegerToFloat(Composition):
    """Inputs: A, B, their scales, their zero points, bias."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a = Algebra(build)
        x, w, x_scale, w_scale = (required(inputs, k) for k in range(4))
        return [
            a.add(
                scaled_product(a, x, w, x_scale, w_scale, present(inputs, 4), present(inputs, 5)),
                present(inputs, 6),
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w = _bytes(1, np.uint8, 2, 3, 5), _bytes(2, np.int8, 5, 4)
        one, each, bias = (
            np.asarray(0.02, np.float32),
            np.asarray([0.01, 0.02, 0.005, 0.03], np.float32),
            drawn(3, 4),
        )
        zero, columns = np.asarray(120, np.uint8), np.asarray([1, -3, 0, 5], np.int8)
        weights = frozenset({1, 3, 5, 6})
        return [
            Sample((x, w, one, one), {}, weights),
            Sample((x, w, one, each, zero), {}, weights),
            Sample((x, w, one, each, zero, columns, bias), {}, weights),
            Sample((x, w.astype(np.uint8), one, one, zero, np.asarray(99, np.uint8)), {}, weights),
            Sample((x, w, one, each, zero, columns, bias), {}, weights | {2, 4}),
        ]


@operator("DynamicQuantizeMatMul", domain="com.microsoft", inputs=5)
class DynamicQuantizeMatMul(Composition):
    """A quantised as DynamicQuantizeLinear does, times B, plus bias. Inputs: A, B, B's scale, B's zero point,
    bias.
    """

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, (x, w, scale) = Algebra(build), (required(inputs, k) for k in range(3))
        quantised, x_scale, x_zero = build.many(DynamicQuantizeLinear(), x)
        return [
            a.add(
                scaled_product(a, quantised, w, x_scale, scale, x_zero, present(inputs, 3)),
                present(inputs, 4),
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w = drawn(1, 2, 3, 5), _bytes(2, np.int8, 5, 4)
        one, each, bias = (
            np.asarray(0.02, np.float32),
            np.asarray([0.01, 0.02, 0.005, 0.03], np.float32),
            drawn(3, 4),
        )
        columns, weights = np.asarray([1, -3, 0, 5], np.int8), frozenset({1, 2, 3, 4})
        return [
            Sample((x, w, one), {}, weights),
            Sample((x, w, each, columns, bias), {}, weights),
            Sample((np.abs(x), w.astype(np.uint8), one, np.asarray(99, np.uint8)), {}, weights),
            Sample((x, w, one, None, bias), {}, weights),
        ]


@operator("QAttention", domain="com.microsoft", inputs=9)
class QAttention(Composition):
    """Attention with an integer projection. Inputs: input, weights, bias, their scales, mask, their zero
    points, past.
    """

    num_heads: int
    do_rotary: int = 0
    mask_filter_value: float = -10000.0
    past_present_share_buffer: int = 0
    scale: float = 0.0
    unidirectional: int = 0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        if self.do_rotary or self.past_present_share_buffer:
            raise OperatorError("rotation, or a buffer that past and present share, is not supported", "E202")
        a = Algebra(build)
        x, w, bias, x_scale, w_scale = (required(inputs, k) for k in range(5))
        qkv = a.add(scaled_product(a, x, w, x_scale, w_scale, present(inputs, 6), present(inputs, 7)), bias)
        return Projected(self.num_heads, self.scale, self.unidirectional, self.mask_filter_value).expand(
            a, qkv, present(inputs, 5), present(inputs, 8), None
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w, bias = _bytes(1, np.uint8, 2, 3, 4), _bytes(2, np.int8, 4, 24), drawn(3, 24)
        scale, each = np.asarray(0.02, np.float32), np.asarray(np.linspace(0.01, 0.03, 24), np.float32)
        zero, zeros = np.asarray(120, np.uint8), np.asarray(np.arange(24) % 5 - 2, np.int8)
        keys, past, weights = (
            np.asarray([[1, 1, 0], [0, 1, 1]], np.int32),
            drawn(4, 2, 2, 2, 2, 4),
            frozenset({1, 2, 4, 7}),
        )
        two = {"num_heads": 2}
        return [
            Sample((x, w, bias, scale, scale), two, weights),
            Sample((x, w, bias, scale, each, keys, zero, zeros), two, weights),
            Sample(
                (x, w, bias, scale, scale, None, zero, np.asarray(3, np.int8)),
                {**two, "unidirectional": 1},
                weights | {3, 6},
            ),
            Sample(
                (x, w, bias, scale, scale, None, zero, np.asarray(0, np.int8), past),
                {**two, "unidirectional": 1},
                weights,
                2,
            ),
        ]


@operator("MatMulInteger16", domain="com.microsoft", inputs=2)
class MatMulInteger16(Composition):
    """The product of 16-bit integers, summed in 32 bits that wrap."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        if a.dtype is not DType.INT16 or b.dtype is not DType.INT16:
            raise OperatorError(f"takes int16, not {a.type} and {b.type}", "E202")
        return super().infer(inputs)

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a = Algebra(build)
        return [a.matmul(*(a.cast(required(inputs, k), DType.INT32) for k in (0, 1)))]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(4)
        return [
            Sample(tuple(np.asarray(rng.integers(-32768, 32768, s), np.int16) for s in ((2, 3, 5), (5, 4))))
        ]


def _bytes(seed: int, dtype: type[np.integer], *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.asarray(np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape), dtype=dtype)
