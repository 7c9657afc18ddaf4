"""Quantised operators of ONNX as what they mean: dequantise, compute, quantise. Those of ONNX Runtime:
microsoft_quantised.py.

The pass fuse_qdq makes integer arithmetic of that. ConvInteger, MatMulInteger and DynamicQuantizeLinear are
integer by definition. Source: ONNX operator specification.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.channels_first import Windowed
from aot_model.ops.composition import present
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Clip, op
from aot_model.ops.extremes import Extremes
from aot_model.ops.matmul import MatMul
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear, check_positive
from aot_model.ops.registry import Build, only, operator, required

Ints = tuple[int, ...]


def _types(values: list[Value]) -> list[TensorType]:
    return [v.type for v in values]


class AsQdq(Operator):
    """An operator whose meaning is an expansion; its types follow from it."""

    expands_to_qdq: ClassVar[bool] = True

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return _types(self.expand(Build([], "shape"), inputs))


def dequantised(build: Build, inputs: Inputs, k: int, axis: int = 0) -> Value:
    """Inputs k, k + 1, k + 2: integers, scale, zero point."""
    zero = present(inputs, k + 2)
    scale = required(inputs, k + 1)
    check_positive(scale)
    return build(DequantizeLinear(axis=axis), required(inputs, k), scale, _matching(build, zero, scale))


def _matching(build: Build, zero: Value | None, scale: Value) -> Value | None:
    """A zero point with as many elements as the scale."""
    if zero is None or zero.shape == scale.shape or zero.type.elements == scale.type.elements:
        return zero
    if zero.data is None or zero.data.size != 1:
        raise OperatorError(f"zero point {zero.type} does not fit scale {scale.type}", "E302")
    return build.constant(np.broadcast_to(zero.data.reshape(-1), scale.shape), zero.dtype)


def quantised(build: Build, x: Value, inputs: Inputs, k: int) -> Value:
    """To the scale in input k and the zero point in input k + 1; without one it is 0 of the first input's
    type.
    """
    scale, zero, first = required(inputs, k), present(inputs, k + 1), required(inputs)
    if zero is None and first.dtype.is_integer:
        zero = build.constant(np.zeros(scale.shape), first.dtype)
    return build(QuantizeLinear(), x, scale, zero)


@operator("QLinearConv")
class QLinearConv(Windowed, AsQdq):
    """Inputs: x, its scale and zero point, w (per output channel), y's scale and zero point, int32 bias."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, w = dequantised(build, inputs, 0), dequantised(build, inputs, 3)
        bias = integer_bias(build, present(inputs, 8), required(inputs, 1), required(inputs, 4))
        return [quantised(build, build(self.convolution(), x, w, bias), inputs, 6)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(18)

        def case(
            w_shape: Ints,
            given: dict[str, Any],
            kind: type[Any] = np.uint8,
            w_kind: type[Any] = np.int8,
            bias: bool = True,
            shape: Ints = (1, 4, 6, 5),
            each: bool = False,
        ) -> Sample:
            x = np.asarray(rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape), kind)
            w = np.asarray(rng.integers(np.iinfo(w_kind).min, np.iinfo(w_kind).max + 1, w_shape), w_kind)
            count = w_shape[0] if each else 1
            w_scale, w_zero = (
                np.asarray(rng.uniform(0.005, 0.02, count), np.float32),
                np.zeros(count, w_kind) + (3 if w_kind is np.uint8 else 0),
            )
            ends = np.asarray(0.15, np.float32), np.asarray(20 if kind is np.int8 else 130, kind)
            b = (np.asarray(rng.integers(-2000, 2000, w_shape[0]), np.int32),) if bias else ()
            zero = np.asarray(-4 if kind is np.int8 else 110, kind)
            return Sample(
                (
                    x,
                    np.asarray(0.03, np.float32),
                    zero,
                    w,
                    w_scale if each else w_scale[0],
                    w_zero.astype(w_kind) if each else w_zero.astype(w_kind)[0],
                    *ends,
                    *b,
                ),
                given,
                frozenset(range(1, 9)),
            )

        pads = {"pads": (1, 1, 1, 1)}
        return [
            case((5, 4, 3, 3), pads),
            case((5, 4, 3, 3), pads, each=True),
            case((6, 4, 1, 1), {}, each=True),
            case((4, 4, 2, 3), {"strides": (2, 1)}, np.int8),
            case((4, 1, 3, 3), {**pads, "group": 4}, each=True),
            case((6, 2, 3, 3), {**pads, "group": 2}, np.int8),
            case((5, 4, 3, 2), {"dilations": (2, 1), "auto_pad": "NOTSET"}),
            case((3, 4, 3, 3), {"auto_pad": "SAME_UPPER", "strides": (2, 2)}, w_kind=np.uint8),
            case((5, 4, 3, 3), {**pads, "kernel_shape": (3, 3)}, bias=False),
            case((4, 1, 3, 3), {**pads, "group": 4, "strides": (2, 2)}, np.int8),
            case((5, 4, 2, 3, 3), {"pads": (1, 1, 0, 1, 1, 1)}, shape=(2, 4, 5, 4, 3), each=True),
            case((4, 4, 1, 2, 2), {"strides": (2, 1, 1)}, np.int8, shape=(1, 4, 5, 3, 3)),
            case((4, 4, 2, 2, 1), {"dilations": (3, 2, 1)}, np.int8, shape=(1, 4, 5, 4, 3)),
            case((4, 2, 3, 1, 1), {"group": 2, "dilations": (2, 1, 1)}, shape=(1, 4, 6, 2, 3)),
            case((4, 1, 3, 2, 1), {"group": 4, "strides": (2, 1, 1)}, shape=(1, 4, 7, 3, 2), each=True),
        ]


def integer_bias(build: Build, bias: Value | None, x_scale: Value, w_scale: Value) -> Value | None:
    """A bias in units of the product of the scales."""
    if bias is None:
        return None
    if x_scale.data is None or w_scale.data is None:
        raise OperatorError("scales that are computed at run time are not supported", "E203")
    step = only(x_scale.data, "the scale of x")
    product = (step * w_scale.data.reshape(-1)).astype(np.float32)
    return build(
        DequantizeLinear(axis=0),
        bias,
        build.constant(product.reshape(()) if product.size == 1 else product, DType.FLOAT32),
    )


class Product(AsQdq):
    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        b = required(inputs, 3)
        axis = max(b.type.rank - 1, 0)
        return [
            quantised(
                build,
                build(MatMul(), dequantised(build, inputs, 0), dequantised(build, inputs, 3, axis)),
                inputs,
                6,
            )
        ]


@operator("QLinearMatMul")
class QLinearMatMul(Product):
    """Inputs: a, scale, zero point, b, scale, zero point, y's scale and zero point."""

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(19)

        def draw(kind: type[Any], *shape: int) -> np.ndarray:
            return np.asarray(rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape), kind)

        def scale(value: float, zero: int, kind: type[Any]) -> tuple[np.ndarray, np.ndarray]:
            return np.asarray(value, np.float32), np.asarray(zero, kind)

        fixed, run = frozenset(range(1, 8)), frozenset({1, 2, 4, 5, 6, 7})
        each = np.asarray(rng.uniform(0.005, 0.02, 6), np.float32), np.zeros(6, np.int8)
        unsigned, signed = (
            (scale(0.03, 120, np.uint8), scale(0.2, 130, np.uint8)),
            (scale(0.03, -7, np.int8), scale(0.2, 9, np.int8)),
        )
        return [
            Sample(
                (
                    draw(np.uint8, 4, 9),
                    *unsigned[0],
                    draw(np.int8, 9, 6),
                    *scale(0.01, 0, np.int8),
                    *unsigned[1],
                ),
                {},
                fixed,
            ),
            Sample((draw(np.uint8, 4, 9), *unsigned[0], draw(np.int8, 9, 6), *each, *unsigned[1]), {}, fixed),
            Sample(
                (
                    draw(np.int8, 1, 33),
                    *signed[0],
                    draw(np.int8, 33, 6),
                    *scale(0.01, 0, np.int8),
                    *signed[1],
                ),
                {},
                fixed,
            ),
            Sample(
                (
                    draw(np.int8, 2, 3, 5),
                    *signed[0],
                    draw(np.int8, 2, 5, 4),
                    *scale(0.02, 3, np.int8),
                    *signed[1],
                ),
                {},
                run,
            ),
            Sample(
                (
                    draw(np.uint8, 3, 5),
                    *unsigned[0],
                    draw(np.uint8, 5, 4),
                    *scale(0.02, 128, np.uint8),
                    *unsigned[1],
                ),
                {},
                run,
            ),
        ]


@operator("DynamicQuantizeLinear")
class DynamicQuantizeLinear(Operator):
    """uint8 of x with scale (max - min) / 255 and zero point round(-min / scale), 0 always in the range."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype is not DType.FLOAT32:
            raise OperatorError(f"takes float32, not {x.type}")
        return [TensorType(DType.UINT8, x.shape), TensorType(DType.FLOAT32, ()), TensorType(DType.UINT8, ())]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        zero, one, most = (build.constant(v, DType.FLOAT32) for v in (0, 1, 255))
        low, high = build.many(Extremes(), x)
        step = build(op("Div"), build(op("Sub"), high, low), most)
        # A tensor of zeros: any scale will do.
        scale = build(op("Where"), build(op("Equal"), low, high), one, step)
        point = build(op("Round"), build(op("Div"), build(op("Neg"), low), scale))
        zero_point = build(Cast(DType.UINT8), build(Clip(), point, zero, most))
        return [build(QuantizeLinear(), x, scale, zero_point), scale, zero_point]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[0, 2, -3], [-2.5, 1.34, 0.5]], dtype=np.float32)
        return [Sample((x,), outputs=3), Sample((np.abs(x),), outputs=3)]
