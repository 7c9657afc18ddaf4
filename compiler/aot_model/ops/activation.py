"""Activations with parameters. Those without are rows of the table in elementwise.py.

Source: ONNX operator specification.
"""

from __future__ import annotations

import math

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, select
from aot_model.ir.operator import Arrays, At, Inputs, Operator, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.elementwise import Unary, clamp, one, relu, sigmoid, tanh
from aot_model.ops.registry import alike, broadcast_index, numeric, operator, required, shared_shape


@operator("LeakyRelu", elementwise=True)
class LeakyRelu(Unary):
    """x < 0 ? alpha * x : x."""

    alpha: float = 0.01

    def scalar(self, x: Expr) -> Expr:
        scaled = call("mul", x, one(x, self.alpha))
        if 0 < self.alpha <= 1:  # 0 times infinity is no number, of which no maximum is infinity
            return call("max", x, scaled)
        return select(call("lt", x, one(x, 0), dtype=DType.BOOL), scaled, x)


@operator("Elu", elementwise=True)
class Elu(Unary):
    """x < 0 ? alpha * (exp(x) - 1) : x."""

    alpha: float = 1.0

    def scalar(self, x: Expr) -> Expr:
        return select(
            call("lt", x, one(x, 0), dtype=DType.BOOL), call("mul", call("expm1", x), one(x, self.alpha)), x
        )


@operator("Selu", elementwise=True)
class Selu(Unary):
    """gamma * (x > 0 ? x : alpha * exp(x) - alpha)."""

    alpha: float = 1.67326319217681884765625
    gamma: float = 1.05070102214813232421875

    def scalar(self, x: Expr) -> Expr:
        negative = call("mul", call("expm1", x), one(x, self.alpha))
        return call(
            "mul", select(call("le", x, one(x, 0), dtype=DType.BOOL), negative, x), one(x, self.gamma)
        )


@operator("Celu", elementwise=True)
class Celu(Unary):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""

    alpha: float = 1.0

    def scalar(self, x: Expr) -> Expr:
        inner = call("mul", call("expm1", call("div", x, one(x, self.alpha))), one(x, self.alpha))
        return call("add", relu(x), call("min", inner, one(x, 0)))


@operator("HardSigmoid", elementwise=True)
class HardSigmoid(Unary):
    """max(0, min(1, alpha * x + beta))."""

    alpha: float = 0.2
    beta: float = 0.5

    def scalar(self, x: Expr) -> Expr:
        return clamp(call("add", call("mul", x, one(x, self.alpha)), one(x, self.beta)), one(x, 0), one(x, 1))


@operator("ThresholdedRelu", elementwise=True)
class ThresholdedRelu(Unary):
    """x > alpha ? x : 0."""

    alpha: float = 1.0

    def scalar(self, x: Expr) -> Expr:
        return select(call("lt", one(x, self.alpha), x, dtype=DType.BOOL), x, one(x, 0))


@operator("Shrink", elementwise=True)
class Shrink(Unary):
    """x < -lambd ? x + bias : x > lambd ? x - bias : 0."""

    bias: float = 0.0
    lambd: float = 0.5

    def scalar(self, x: Expr) -> Expr:
        # the attributes of integers are floats, too; a float has not the digits of words
        real = x if x.dtype.is_float else cast(x, DType.FLOAT64 if x.dtype.bits > 16 else DType.FLOAT32)
        high = select(
            call("lt", one(real, self.lambd), real, dtype=DType.BOOL),
            call("sub", real, one(real, self.bias)),
            one(real, 0),
        )
        low = call("lt", real, one(real, -self.lambd), dtype=DType.BOOL)
        return cast(select(low, call("add", real, one(real, self.bias)), high), x.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        whole = [np.asarray([3, -5, 1, 0, -1, 2, 7], t) for t in (np.int8, np.int32, np.int64)]
        return [
            *super().samples(),
            Sample((whole[0].astype(np.float32),), {"bias": 1.5, "lambd": 2.0}),
            *(Sample((x,), {"bias": b, "lambd": 1.5}) for x in whole for b in (0.5, -2.0)),
            Sample((np.asarray([200, 3, 0, 1], np.uint8),), {"bias": 0.75, "lambd": -0.5}),
        ]


@operator("Gelu", elementwise=True)
class Gelu(Unary):
    """x / 2 * (1 + erf(x / sqrt 2)), or the tanh approximation in the order in which ONNX Runtime
    multiplies.
    """

    approximate: str = "none"

    def scalar(self, x: Expr) -> Expr:
        if self.approximate == "tanh":
            root = math.sqrt(2 / math.pi)
            slope = call("add", call("mul", call("mul", one(x, 0.044715 * root), x), x), one(x, root))
            inner = tanh(call("mul", x, slope))
        else:
            inner = call("erf", call("mul", x, one(x, math.sqrt(0.5))))
        return call("mul", call("mul", x, one(x, 0.5)), call("add", inner, one(x, 1)))


@operator("LibmGelu", domain="aot", elementwise=True)
class LibmGelu(Unary):
    """The tanh approximation of Gelu by the C library, as LiteRT's reference kernel has it."""

    def scalar(self, x: Expr) -> Expr:
        cubic = call("mul", call("mul", call("mul", x, x), x), one(x, 0.044715))
        inner = call("tanh", call("mul", call("add", x, cubic), one(x, math.sqrt(2 / math.pi))))
        return call("mul", call("mul", x, one(x, 0.5)), call("add", inner, one(x, 1)))

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0], np.float64)
        return [(x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))).astype(np.float32)]


@operator("Swish", elementwise=True)
class Swish(Unary):
    """x * sigmoid(alpha * x)."""

    alpha: float = 1.0

    def scalar(self, x: Expr) -> Expr:
        return call("mul", x, sigmoid(call("mul", x, one(x, self.alpha))))


@operator("PRelu", elementwise=True)
class PRelu(Operator):
    """x < 0 ? slope * x : x, slope broadcast to x."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, slope = numeric(inputs), required(inputs, 1)
        alike(x, slope)
        return [TensorType(x.dtype, shared_shape(inputs, 2))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, slope = at(required(inputs), index), required(inputs, 1)
        scaled = call("mul", x, at(slope, broadcast_index(slope.shape, index)))
        return select(call("lt", x, one(x, 0), dtype=DType.BOOL), scaled, x)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)
        slopes = [
            np.asarray([0.1, -0.5, 2, 0], np.float32),
            np.asarray([[0.1], [0.2], [-3]], np.float32),
            np.asarray([0.25], np.float32),
        ]
        return [Sample((x, s), constants=c) for s in slopes for c in (frozenset(), frozenset({1}))] + [
            Sample((np.arange(-3, 3, dtype=np.int32), np.asarray([2], np.int32)))
        ]
