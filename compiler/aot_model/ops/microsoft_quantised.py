"""com.microsoft: quantised operators as what they mean: dequantise, compute, quantise. Source: ONNX Runtime's
contrib operators.

The pass fuse_qdq makes integer arithmetic of that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from aot_model.ir.operator import MANY, Inputs, Operator, OperatorError, Sample
from aot_model.ir.values import Value
from aot_model.ops.activation import LeakyRelu
from aot_model.ops.channels_first import channels_first, channels_last
from aot_model.ops.composition import present
from aot_model.ops.elementwise import Where, op
from aot_model.ops.movement import Concat
from aot_model.ops.normalisation import Gemm, Softmax
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear
from aot_model.ops.quantised_onnx import AsQdq, QLinearConv, dequantised, integer_bias, quantised
from aot_model.ops.registry import OPERATORS, Build, operator, required

Ints = tuple[int, ...]
I8 = np.int8


def scale_zero(scale: float, zero: int, dtype: type[np.integer] = np.uint8) -> tuple[np.ndarray, np.ndarray]:
    """A scale and a zero point, for samples."""
    return np.asarray(scale, np.float32), np.asarray(zero, dtype)


def draw(seed: int, *shape: int, dtype: type[np.integer] = np.uint8) -> np.ndarray:
    """Random numbers of all that the type has, for samples."""
    limits = np.iinfo(dtype)
    return np.asarray(np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape), dtype=dtype)


@operator("QGemm", domain="com.microsoft", inputs=9)
class QGemm(AsQdq):
    """alpha * a' * b' + c, c an int32 in units of the product of scales and alpha; a float result without y's
    scale and zero point.
    """

    alpha: float = 1.0
    transA: int = 0
    transB: int = 0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        if (present(inputs, 7) is None) != (present(inputs, 8) is None):
            raise OperatorError("of y's scale and zero point one is there, the other is not")
        a, b = dequantised(build, inputs, 0), dequantised(build, inputs, 3, 0 if self.transB else 1)
        c = integer_bias(build, present(inputs, 6), required(inputs, 1), required(inputs, 4))
        y = build(Gemm(self.alpha, self.alpha, self.transA, self.transB), a, b, c)
        return [y] if present(inputs, 7) is None else [quantised(build, y, inputs, 7)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w, bias = draw(1, 3, 5), draw(2, 5, 4, dtype=I8), np.asarray([100, -2000, 0, 700], np.int32)
        a, b, y = scale_zero(0.02, 120), scale_zero(0.01, 0, I8), scale_zero(0.05, 110)
        each = np.asarray([0.01, 0.02, 0.005, 0.03], np.float32), np.zeros(4, I8)
        constants = frozenset(range(1, 9))
        return [
            Sample((x, *a, w, *b, bias, *y), {}, constants),
            Sample((x, *a, w, *each, bias, *y), {}, constants),
            Sample((x, *a, w, *b), {}, constants),
            Sample((x, *a, np.ascontiguousarray(w.T), *each, bias), {"transB": 1, "alpha": 0.5}, constants),
            Sample((np.ascontiguousarray(x.T), *a, w, *b, None, *y), {"transA": 1}, constants),
        ]


class _Pair(AsQdq):
    function: ClassVar[str]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [
            quantised(
                build,
                build(op(self.function), dequantised(build, inputs, 0), dequantised(build, inputs, 3)),
                inputs,
                6,
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        constants = frozenset({1, 2, 4, 5, 6, 7})
        signed = (
            draw(3, 2, 7, dtype=I8),
            *scale_zero(0.05, -7, I8),
            draw(4, 7, dtype=I8),
            *scale_zero(0.02, 11, I8),
            *scale_zero(0.06, 3, I8),
        )
        unsigned = (
            draw(1, 2, 3, 4),
            *scale_zero(0.031, 120),
            draw(2, 2, 3, 4),
            *scale_zero(0.017, 99),
            *scale_zero(0.043, 128),
        )
        return [
            Sample(unsigned, {}, constants),
            Sample(signed, {}, constants),
            Sample(signed, {}, constants | {3}),
            Sample((*signed[:6], np.asarray(0.0437, np.float32)), {}, constants - {7}),
            Sample((*unsigned[:3], draw(2, 1), *unsigned[4:]), {}, constants),
        ]


@operator("QLinearAdd", domain="com.microsoft", inputs=8)
class QLinearAdd(_Pair):
    """Inputs as of QLinearMatMul."""

    function: ClassVar[str] = "Add"


@operator("QLinearMul", domain="com.microsoft", inputs=8)
class QLinearMul(_Pair):
    """Inputs as of QLinearMatMul."""

    function: ClassVar[str] = "Mul"


class _One(AsQdq, ABC):
    """Inputs: x, scale, zero point, y's scale, zero point."""

    @abstractmethod
    def inner(self) -> Operator: ...

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [quantised(build, build(self.inner(), dequantised(build, inputs, 0)), inputs, 3)]

    @classmethod
    def samples(cls) -> list[Sample]:
        every, constants = np.arange(256, dtype=np.uint8), frozenset({1, 2, 3, 4})
        signed = (
            np.arange(-128, 128, dtype=I8).reshape(2, 128),
            *scale_zero(0.07, -5, I8),
            *scale_zero(0.05, -20, I8),
        )
        return [
            Sample((every, *scale_zero(0.05, 128), *scale_zero(1 / 256, 0)), {}, constants),
            Sample(signed, {}, constants),
        ]


@operator("QLinearLeakyRelu", domain="com.microsoft", inputs=5)
class QLinearLeakyRelu(_One):
    """x < 0 ? alpha * x : x."""

    alpha: float = 0.01

    def inner(self) -> Operator:
        return LeakyRelu(self.alpha)


@operator("QLinearSigmoid", domain="com.microsoft", inputs=5)
class QLinearSigmoid(_One):
    """Logistic function."""

    def inner(self) -> Operator:
        return op("Sigmoid")


@operator("QLinearSoftmax", domain="com.microsoft", inputs=5)
class QLinearSoftmax(AsQdq):
    """Softmax over an axis; before opset 13 over all axes from it on."""

    opset: int
    axis: int = -1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, by = dequantised(build, inputs, 0), _whole_steps(build, inputs)
        if self.opset >= 13 or self.axis in (-1, x.type.rank - 1):
            return [quantised(build, build(Softmax(self.axis), x), by, 3)]
        return [quantised(build, build(_flattened_softmax(self.axis), x), by, 3)]

    @classmethod
    def samples(cls) -> list[Sample]:
        inputs, constants = (
            (draw(1, 3, 2, 8), *scale_zero(0.05, 128), *scale_zero(1 / 256, 0)),
            frozenset({1, 2, 3, 4}),
        )
        cases: list[dict[str, Any]] = [
            {"axis": -1, "opset": 13},
            {"axis": 1, "opset": 13},
            {"axis": 2, "opset": 11},
            {"axis": 1, "opset": 11},
        ]
        signed = (draw(2, 4, 10, dtype=I8), *scale_zero(0.1, 3, I8), *scale_zero(1 / 256, -128, I8))
        odd = (draw(3, 4, 6), *scale_zero(0.03, 120), *scale_zero(0.00373, 0))  # 268.1 steps
        return [
            *(Sample(inputs, c, constants) for c in cases),
            *(Sample(s, {"axis": -1, "opset": 13}, constants) for s in (signed, odd)),
        ]


def _whole_steps(build: Build, inputs: Inputs) -> Inputs:
    """The inputs with a scale of which 1 is a whole number of steps: ONNX Runtime multiplies by the integer
    part of 1 / scale.
    """
    scale = required(inputs, 3)
    if scale.data is None or not (scale.data > 0).all():
        return inputs  # what is no scale is refused where it is used
    with np.errstate(over="ignore"):
        steps = np.floor(np.float32(1) / np.asarray(scale.data, np.float32))
    if not ((steps >= 1) & np.isfinite(steps)).all():
        return inputs
    return [*inputs[:3], build.constant(np.float32(1) / steps), *inputs[4:]]


def _flattened_softmax(axis: int) -> Any:
    """Softmax of opset 12 and before: over all axes from `axis` on."""
    return OPERATORS["", "SoftmaxFlattened"](axis=axis)  # type: ignore[call-arg]


@operator("QLinearConcat", domain="com.microsoft", inputs=MANY)
class QLinearConcat(AsQdq):
    """Inputs: y's scale and zero point, then value, scale and zero point of each piece."""

    axis: int

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        if len(inputs) < 5 or (len(inputs) - 2) % 3:
            raise OperatorError(f"{len(inputs)} inputs are not two and three for each piece")
        pieces = [dequantised(build, inputs, k) for k in range(2, len(inputs), 3)]
        return [quantised(build, build(Concat(self.axis), *pieces), inputs, 0)]

    @classmethod
    def samples(cls) -> list[Sample]:
        y, a, b = scale_zero(0.05, 128), scale_zero(0.05, 128), scale_zero(0.07, 90)
        pieces = (draw(1, 2, 3), *a, draw(2, 2, 4), *b, draw(3, 2, 1), *scale_zero(0.01, 0))
        parameters = frozenset({0, 1, 3, 4, 6, 7, 9, 10})
        return [
            Sample((*y, *pieces), {"axis": 1}, parameters),
            Sample((*y, *pieces), {"axis": -1}, parameters | {5}),
        ]


@operator("QLinearWhere", domain="com.microsoft", inputs=9)
class QLinearWhere(AsQdq):
    """Inputs: condition, x, scale, zero point, y, scale, zero point, the result's scale and zero point."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        y = build(Where(), required(inputs), dequantised(build, inputs, 1), dequantised(build, inputs, 4))
        return [quantised(build, y, inputs, 7)]

    @classmethod
    def samples(cls) -> list[Sample]:
        condition = np.asarray([[True], [False], [True]])
        inputs = (
            condition,
            draw(1, 3, 4),
            *scale_zero(0.05, 128),
            draw(2, 4),
            *scale_zero(0.03, 99),
            *scale_zero(0.06, 120),
        )
        return [
            Sample(inputs, {}, frozenset({2, 3, 5, 6, 7, 8})),
            Sample(inputs, {}, frozenset({2, 3, 4, 5, 6, 7, 8})),
        ]


@operator("QLinearConv", domain="com.microsoft", inputs=9)
class MicrosoftQLinearConv(QLinearConv):
    """ONNX's QLinearConv, channels last where the attribute says so; weights are (O, I / group, spatial…)
    either way.
    """

    channels_last: int = 0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        if not self.channels_last:
            return super().expand(build, inputs)
        (y,) = super().expand(build, [channels_first(build, required(inputs)), *inputs[1:]])
        return [channels_last(build, y)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w, bias = (
            draw(1, 1, 5, 6, 4),
            draw(2, 3, 4, 3, 3, dtype=I8),
            np.asarray([100, -2000, 700], np.int32),
        )
        scales = np.asarray([0.01, 0.02, 0.005], np.float32), np.zeros(3, I8)
        inputs = (x, *scale_zero(0.02, 120), w, *scales, *scale_zero(0.3, 110), bias)
        constants = frozenset(range(1, 9))
        return [
            Sample(inputs, {"channels_last": 1, "pads": (1, 1, 1, 1)}, constants),
            Sample((x.transpose(0, 3, 1, 2).copy(), *inputs[1:]), {"strides": (2, 1)}, constants),
            Sample(
                (x, *inputs[1:3], w[:, :1].repeat(4, 0)[:8, :1], *scale_zero(0.01, 0, I8), *inputs[6:8]),
                {"channels_last": 1, "group": 4},
                constants - {8},
            ),
        ]


@operator("QuantizeLinear", domain="com.microsoft", inputs=3)
class MicrosoftQuantizeLinear(AsQdq):
    """QuantizeLinear for types that ONNX took later."""

    axis: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build(QuantizeLinear(axis=self.axis), *inputs)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, each = (
            np.asarray([[-1.5, -0.25, 0.0], [0.5, 0.75, 1e9]], np.float32),
            np.asarray([0.1, 0.5], np.float32),
        )
        one, constants = np.asarray(0.001, np.float32), frozenset({1, 2})
        zeros = [np.asarray(z, t) for z, t in ((3, np.uint16), (-7, np.int16), (100, np.uint8), (5, I8))]
        return [
            *(
                Sample((x, one if z.dtype.itemsize == 2 else each[:1].reshape(()), z), {}, constants)
                for z in zeros
            ),
            Sample((x, each, np.asarray([1, -2], np.int16)), {"axis": 0}, constants),
        ]


@operator("DequantizeLinear", domain="com.microsoft", inputs=3)
class MicrosoftDequantizeLinear(AsQdq):
    """DequantizeLinear for types that ONNX took later."""

    axis: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build(DequantizeLinear(axis=self.axis), *inputs)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, one, constants = (
            np.asarray([[-8, 7, 3], [0, 1, -1]]),
            np.asarray(0.1, np.float32),
            frozenset({1, 2}),
        )
        cases = [
            (x * 4000, np.int16, -5),
            (x + 30000, np.uint16, 9),
            (x * 10, I8, 3),
            (x + 100, np.uint8, 7),
            (x, ml_dtypes.int4, -2),
            (x + 8, ml_dtypes.uint4, 3),
        ]
        each = (x.astype(np.int16), np.asarray([0.1, 0.2, 3], np.float32), np.asarray([1, -2, 0], np.int16))
        small = frozenset({0, 1, 2})  # ONNX Runtime's Python interface takes no array of 4-bit integers
        return [
            *(
                Sample(
                    (v.astype(t), one, np.asarray(z, t)),
                    {},
                    constants if v.astype(t).dtype.kind in "iu" else small,
                )
                for v, t, z in cases
            ),
            Sample(each, {}, constants),
        ]
