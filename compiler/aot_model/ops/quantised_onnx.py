"""Quantised operators of ONNX as what they mean: dequantise, compute, quantise. Those of ONNX Runtime:
microsoft_quantised.py.

The pass fuse_qdq makes integer arithmetic of that. ConvInteger, MatMulInteger and DynamicQuantizeLinear are
integer by definition. Source: ONNX operator specification.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.channels_first import Windowed, channels_last
from aot_model.ops.composition import present
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Clip, op
from aot_model.ops.extremes import Extremes
from aot_model.ops.matmul import MatMul
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear, check_positive
from aot_model.ops.registry import OPERATORS, Build, operator, required
from aot_model.ops.volumes import convolved, unfolded_first

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
    product = (x_scale.data.reshape(-1) * w_scale.data.reshape(-1)).astype(np.float32)
    return build(
        DequantizeLinear(axis=0),
        bias,
        build.constant(product if product.size > 1 else product[0], DType.FLOAT32),
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


# --- integer by definition ----------------------------------------------------------------------------------


def _zero_point(value: Value | None) -> int | None:
    """The constant zero point of all elements; 0 when absent; None when it is something else."""
    if value is None:
        return 0
    if value.data is None or not value.data.size or value.data.min() != value.data.max():
        return None
    return int(value.data.reshape(-1)[0])


def _centred(build: Build, x: Value, zero: Value | None, shape: Ints) -> Value:
    """8-bit x - zero as int16; zero points in a list are brought to a shape that broadcasts."""
    wide = build(Cast(DType.INT16), x)
    if zero is None:
        return wide
    if zero.type.elements == 1:
        shape = (1,) * x.type.rank
    elif zero.type.rank > 1:
        shape = zero.shape
    reshaped = build(
        OPERATORS["", "Reshape"](), build(Cast(DType.INT16), zero), build.constant(shape, DType.INT64)
    )
    return build(op("Sub"), wide, reshaped)


@operator("MatMulInteger")
class MatMulInteger(Operator):
    """(a - a_zero_point) * (b - b_zero_point) as int32; zero points for all, or per row of a and column of
    b.
    """

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        if a.dtype not in (DType.INT8, DType.UINT8) or b.dtype not in (DType.INT8, DType.UINT8):
            raise OperatorError(f"takes 8-bit integers, not {a.type} and {b.type}")
        return MatMul().infer([a, b])

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, b = required(inputs, 0), required(inputs, 1)
        a_zero, b_zero = present(inputs, 2), present(inputs, 3)
        left, right = _zero_point(a_zero), _zero_point(b_zero)
        columns = (*[1] * (b.type.rank - 1), -1)
        if right is not None and left is not None:
            return [build(MatMul(left, right), a, b)]
        if right is not None and a_zero is not None and a_zero.type.elements == 1 and b.type.rank == 2:
            # (a - z) * b = a * b - z * (sums of the columns of b), which are constants; they are there before
            # the product, so that what is left is done to its results at once
            wide = build(Cast(DType.INT32), _centred(build, b, b_zero, columns))
            sums = build(
                OPERATORS["", "ReduceSum"](keepdims=0),  # type: ignore[call-arg]
                wide,
                build.constant([b.type.rank - 2], DType.INT64),
            )
            less = build(op("Mul"), sums, _scalar(build, a_zero))
            return [build(op("Sub"), build(MatMul(0, right), a, b), less)]
        rows = (*[1] * (a.type.rank - 2), -1, 1) if a.type.rank > 1 else (1,)
        product = build(MatMul(), _centred(build, a, a_zero, rows), _centred(build, b, b_zero, columns))
        return [build(Cast(DType.INT32), product)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(6)
        a, b = (
            np.asarray(rng.integers(0, 256, (3, 5)), dtype=np.uint8),
            np.asarray(rng.integers(-128, 128, (5, 4)), dtype=np.int8),
        )
        za, zb = np.asarray(7, np.uint8), np.asarray(-2, np.int8)
        return [
            Sample((a, b)),
            Sample((a, b, za, zb), constants=frozenset({2, 3})),
            Sample((a, b, za), constants=frozenset({1})),
            Sample((a, b, za, np.asarray([-2] * 4, np.int8)), constants=frozenset({1, 3})),
            Sample((a, b, np.asarray([[7], [0], [250]], np.uint8), np.asarray([5, -2, 0, 9], np.int8))),
            Sample(
                (
                    np.stack([a, a[::-1]]),
                    np.stack([b[:, :1], b[:, 1:2]]),
                    za,
                    np.asarray([[[5]], [[-2]]], np.int8),
                )
            ),
        ]


def _scalar(build: Build, value: Value) -> Value:
    return build(
        OPERATORS["", "Reshape"](), build(Cast(DType.INT32), value), build.constant(np.zeros(0), DType.INT64)
    )


@operator("ConvInteger")
class ConvInteger(Windowed):
    """Convolution of x - x_zero_point with w - w_zero_point as int32; padding stands for the zero point."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return self.convolution().infer([required(inputs, 0), required(inputs, 1)])

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, w = required(inputs, 0), required(inputs, 1)
        x_zero, w_zero = _zero_point(present(inputs, 2)), _zero_point(present(inputs, 3))
        inner = self.convolution()._inner(x, w)
        zero = present(inputs, 2)
        computed = x_zero is None and zero is not None and zero.type.elements == 1
        if computed and zero is not None and w_zero is not None and w.data is not None:
            return [self._of_bytes(build, x, w, zero, w_zero)]
        if x_zero is None or w_zero is None:
            x = _centred(build, x, present(inputs, 2), (1,) * x.type.rank)
            x_zero = 0
        if w_zero is None:
            w = _centred(build, w, present(inputs, 3), (-1, *[1] * (w.type.rank - 1)))
            w_zero = 0
        inner = replace(inner, x_zero_point=x_zero, w_zero_point=w_zero)
        acc = convolved(build, inner, channels_last(build, x), channels_last(build, w))
        acc = acc if acc.dtype is DType.INT32 else build(Cast(DType.INT32), acc)
        return [unfolded_first(build, acc, self.infer(inputs)[0].shape)]

    def _of_bytes(self, build: Build, x: Value, w: Value, zero: Value, w_zero: int) -> Value:
        """By a zero point that the network computes: (x - z) * w = x * w - z * (the sum of a channel's
        weights), so that x stays bytes; z pads it.
        """
        assert w.data is not None
        inner, shape = self.convolution()._inner(x, w), self.infer([x, w])[0].shape
        x = channels_last(build, x)
        if any(inner.pads):
            d = len(inner.pads) // 2
            pads = [0, *inner.pads[:d], 0, 0, *inner.pads[d:], 0]
            x = build(OPERATORS["", "Pad"](), x, build.constant(pads, DType.INT64), zero)
        whole = w.data.astype(np.int64).reshape(w.shape[0], -1) - w_zero
        sums = build.constant(whole.sum(axis=1).astype(np.int32), DType.INT32)
        less = build(op("Mul"), sums, _scalar(build, zero))
        inner = replace(inner, pads=(0,) * len(inner.pads), w_zero_point=w_zero)
        acc = convolved(build, inner, x, channels_last(build, w))
        return unfolded_first(build, build(op("Sub"), acc, less), shape)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(7)
        x, w = (
            np.asarray(rng.integers(0, 256, (1, 2, 5, 5)), dtype=np.uint8),
            np.asarray(rng.integers(0, 256, (3, 2, 3, 3)), dtype=np.uint8),
        )
        zero, point = np.asarray(9, np.uint8), np.asarray(131, np.uint8)
        deep = np.asarray(rng.integers(-128, 128, (4, 2, 3)), dtype=np.int8)
        line = np.asarray(rng.integers(0, 256, (2, 4, 11)), dtype=np.uint8)
        box, cubes = rng.integers(0, 256, (1, 2, 4, 3, 3)), rng.integers(0, 256, (3, 2, 2, 2, 2))
        volume = box.astype(np.uint8), cubes.astype(np.uint8)
        weights = frozenset({1, 3})
        return [
            Sample((x, w)),
            Sample((x, w, zero), {"pads": (1, 1, 1, 1)}, frozenset({1, 2})),
            Sample((x, w, zero, point), {"pads": (1, 0, 2, 1), "strides": (2, 1)}, weights),
            Sample((x, w, np.asarray(255, np.uint8), point), {}, weights),
            Sample(
                (x, w, zero, np.asarray([131, 0, 7], np.uint8)), {"pads": (1, 1, 0, 0)}, frozenset({1, 2, 3})
            ),
            Sample((line, deep, zero), {"group": 2, "pads": (3, 0), "dilations": (3,)}, weights),
            Sample((*volume, zero, point), {"pads": (1, 0, 0, 0, 1, 1)}, weights),
            Sample((*volume, zero, point), {"pads": (0, 1, 0, 0, 0, 1)}, frozenset({1, 2, 3})),
            Sample(
                (line, deep[:, :1], np.asarray([0], np.uint8)),
                {"group": 4, "auto_pad": "SAME_UPPER"},
                weights,
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
