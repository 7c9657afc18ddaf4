"""Operators that ONNX had on trial and dropped before opset 10; files of that time (CoreML's and WinML's
converters) still have them, and ONNX Runtime still computes them.

Source: ONNX operator specification, release 1.1; ONNX Runtime's kernels.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.operator import Inputs, OperatorError, Sample
from aot_model.ir.values import Value
from aot_model.ops.composition import Algebra, Composition
from aot_model.ops.microsoft_activation import activated
from aot_model.ops.normalisation import scalar
from aot_model.ops.registry import Build, operator, required


def _samples(*attributes: dict[str, object], shape: tuple[int, ...] = (2, 3, 5, 4)) -> list[Sample]:
    x = np.random.default_rng(len(attributes)).uniform(-3, 3, shape).astype(np.float32)
    return [Sample((x,), given) for given in attributes]


def _image(inputs: Inputs) -> Value:
    """x, (n, channels, rows, columns)."""
    x = required(inputs)
    if x.type.rank != 4:
        raise OperatorError(f"{x.type} is no batch of images")
    return x


@operator("Affine")
class Affine(Composition):
    """alpha x + beta."""

    alpha: float = 1.0
    beta: float = 0.0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [activated(build, required(inputs), "Affine", self.alpha, self.beta)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return _samples({}, {"alpha": 2.0, "beta": 0.5})


@operator("Scale")
class Scale(Composition):
    """scale x."""

    scale: float = 1.0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        return [Algebra(build).of("Mul", x, scalar(build, self.scale, x.dtype))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return _samples({}, {"scale": -3.0})


@operator("ScaledTanh")
class ScaledTanh(Composition):
    """alpha tanh(beta x)."""

    alpha: float
    beta: float

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [activated(build, required(inputs), "ScaledTanh", self.alpha, self.beta)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return _samples({"alpha": 1.7159, "beta": 0.6667}, {"alpha": 1.0, "beta": 1.0})


@operator("ParametricSoftplus")
class ParametricSoftplus(Composition):
    """alpha log(1 + exp(beta x))."""

    alpha: float
    beta: float

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a = Algebra(build)
        return [a.mul(a.of("Softplus", a.mul(required(inputs), self.beta)), self.alpha)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return _samples({"alpha": 1.5, "beta": 0.5}, {"alpha": 2.0, "beta": 30.0})


@operator("ImageScaler")
class ImageScaler(Composition):
    """scale x + bias, one bias for each channel."""

    bias: tuple[float, ...] = ()
    scale: float = 1.0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, x = Algebra(build), _image(inputs)
        if len(self.bias) != x.shape[1]:
            raise OperatorError(f"{len(self.bias)} biases for {x.shape[1]} channels")
        bias = build.constant([[[b]] for b in self.bias], x.dtype)
        return [a.add(a.mul(x, self.scale), bias)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return _samples({"bias": (1.0, 2.0, -3.0), "scale": 0.5}, {"bias": (0.0, 0.5, 1.0)})


@operator("Crop")
class Crop(Composition):
    """An image without its borders (left, top, right, bottom), or, with a scale, so many (rows, columns) of
    it from left and top on.
    """

    border: tuple[int, ...] = ()
    scale: tuple[int, ...] = ()

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, x = Algebra(build), _image(inputs)
        if len(self.border) != 4 or len(self.scale) not in (0, 2):
            raise OperatorError(f"a border of {len(self.border)} and a scale of {len(self.scale)} numbers")
        left, top, right, bottom = self.border
        rows, columns = x.shape[2:]
        high, wide = self.scale or (rows - top - bottom, columns - left - right)
        if min(left, top, high, wide) < 0 or top + high > rows or left + wide > columns:
            raise OperatorError(f"{x.type} has no {high} x {wide} pixels from row {top}, column {left} on")
        return [a.cut(a.cut(x, 2, top, top + high), 3, left, left + wide)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return _samples({"border": (1, 2, 1, 1)}, {"border": (1, 2, 0, 0), "scale": (2, 3)})
