"""One step of an optimiser: Momentum, Adagrad, Adam of ai.onnx.preview.training, as compositions.

Inputs: learning rate, number of the step, then as many of each as there are tensors: values, gradients,
states. Source: ONNX preview training operator specification, version 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Where, op
from aot_model.ops.normalisation import scalar
from aot_model.ops.registry import Build, operator, required


class _Math:
    """Arithmetic on values, for formulas that read like those of the specification."""

    def __init__(self, build: Build) -> None:
        self.build = build

    def __call__(self, name: str, a: Value | float, b: Value | float | None = None) -> Value:
        like = a if isinstance(a, Value) else b
        assert isinstance(like, Value)
        values = [
            v if isinstance(v, Value) else scalar(self.build, v, like.dtype) for v in (a, b) if v is not None
        ]
        return self.build(op(name), *values)


class _Optimizer(Operator, ABC):
    """Groups of inputs: `kinds` tensors for each optimised one; the outputs are the new values and states."""

    settings: ClassVar[tuple[dict[str, Any], ...]]
    """Attributes of the samples."""

    def kinds(self) -> int:
        return 3

    def _groups(self, inputs: Inputs) -> list[list[Value]]:
        values = [required(inputs, k) for k in range(2, len(inputs))]
        kinds = self.kinds()
        if not values or len(values) % kinds:
            raise OperatorError(f"{len(values)} tensors are not groups of {kinds}")
        count = len(values) // kinds
        return [values[k * count : (k + 1) * count] for k in range(kinds)]

    def infer(self, inputs: Inputs) -> list[TensorType]:
        groups = self._groups(inputs)
        return [v.type for group in (groups[0], *groups[2:]) for v in group]

    @abstractmethod
    def step(self, m: _Math, rate: Value, number: Value, tensors: list[Value]) -> list[Value]:
        """New value and states of one tensor."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        groups = self._groups(inputs)
        results = []
        for tensors in zip(*groups, strict=True):
            rate, number = (build(Cast(tensors[0].dtype), required(inputs, k)) for k in (0, 1))
            results.append(self.step(_Math(build), rate, number, list(tensors)))
        return [row[k] for k in range(len(results[0])) for row in results]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(4)
        values = [np.asarray(rng.uniform(0.1, 2, (2, 3)), np.float32) for _ in range(cls.kinds(cls()))]
        other = [np.asarray(rng.uniform(0.1, 2, 4), np.float32) for _ in values]
        both = [v for pair in zip(values, other, strict=True) for v in pair]
        rate, start = np.asarray(0.1, np.float32), np.asarray(0, np.int64)
        one: tuple[np.ndarray, ...] = (rate, np.asarray(3), *values)
        two: tuple[np.ndarray, ...] = (rate, np.asarray(1), *both)
        count = len(values) - 1
        return [Sample(one, c, outputs=count) for c in cls.settings] + [
            Sample(two, cls.settings[-1], outputs=2 * count),
            Sample((rate, start, *values), cls.settings[-1], outputs=count),
        ]


@operator("Momentum", domain="ai.onnx.preview.training")
class Momentum(_Optimizer):
    """v' = alpha v + beta g; x' = x - rate v' (Nesterov: x - rate (g + alpha v'))."""

    alpha: float = 0.0
    beta: float = 0.0
    mode: str = "standard"
    norm_coefficient: float = 0.0

    settings: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"alpha": 0.9, "beta": 0.7, "mode": m, "norm_coefficient": n}
        for m in ("standard", "nesterov")
        for n in (0.0, 0.01)
    )

    def step(self, m: _Math, rate: Value, number: Value, tensors: list[Value]) -> list[Value]:
        x, g, v = tensors
        g = m("Add", g, m("Mul", x, self.norm_coefficient))
        first = m("Equal", number, 0.0)
        weight = m.build(Where(), first, scalar(m.build, 1.0, x.dtype), scalar(m.build, self.beta, x.dtype))
        new = m("Add", m("Mul", v, self.alpha), m("Mul", g, weight))
        move = new if self.mode == "standard" else m("Add", g, m("Mul", new, self.alpha))
        return [m("Sub", x, m("Mul", move, rate)), new]


@operator("Adagrad", domain="ai.onnx.preview.training")
class Adagrad(_Optimizer):
    """h' = h + g g; x' = x - rate / (1 + decay t) g / (sqrt(h') + epsilon)."""

    decay_factor: float = 0.0
    epsilon: float = 1e-6
    norm_coefficient: float = 0.0

    settings: ClassVar[tuple[dict[str, Any], ...]] = (
        {"decay_factor": 0.1, "epsilon": 0.02, "norm_coefficient": 0.3},
    )

    def step(self, m: _Math, rate: Value, number: Value, tensors: list[Value]) -> list[Value]:
        x, g, h = tensors
        rate = m("Div", rate, m("Add", m("Mul", number, self.decay_factor), 1.0))
        g = m("Add", g, m("Mul", x, self.norm_coefficient))
        new = m("Add", h, m("Mul", g, g))
        return [m("Sub", x, m("Div", m("Mul", g, rate), m("Add", m("Sqrt", new), self.epsilon))), new]


@operator("Adam", domain="ai.onnx.preview.training")
class Adam(_Optimizer):
    """Moments of the gradient, their bias corrected from the second step on."""

    alpha: float = 0.9
    beta: float = 0.999
    epsilon: float = 1e-6
    norm_coefficient: float = 0.0
    norm_coefficient_post: float = 0.0

    settings: ClassVar[tuple[dict[str, Any], ...]] = (
        {"alpha": 0.95, "beta": 0.85, "epsilon": 0.02, "norm_coefficient": 0.1},
        {"norm_coefficient_post": 0.2, "alpha": 0.8, "beta": 0.9},
    )

    def kinds(self) -> int:
        return 4

    def step(self, m: _Math, rate: Value, number: Value, tensors: list[Value]) -> list[Value]:
        x, g, v, h = tensors
        g = m("Add", g, m("Mul", x, self.norm_coefficient))
        first = m("Add", m("Mul", v, self.alpha), m("Mul", g, 1 - self.alpha))
        second = m("Add", m("Mul", h, self.beta), m("Mul", m("Mul", g, g), 1 - self.beta))
        powers = [
            m("Sub", 1.0, m("Pow", scalar(m.build, b, x.dtype), number)) for b in (self.alpha, self.beta)
        ]
        corrected = m("Div", m("Mul", rate, m("Sqrt", powers[1])), powers[0])
        started = m("Less", scalar(m.build, 0.0, x.dtype), number)
        step = m.build(Where(), started, corrected, rate)
        new = m("Sub", x, m("Div", m("Mul", first, step), m("Add", m("Sqrt", second), self.epsilon)))
        return [m("Mul", new, 1 - self.norm_coefficient_post), first, second]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        rate, number, *tensors = (np.asarray(a, np.float64) for a in arrays)
        count = len(tensors) // 4
        x, g, v, h = (tensors[k * count : (k + 1) * count] for k in range(4))
        values, first, second = [], [], []
        for xk, gk, vk, hk in zip(x, g, v, h, strict=True):
            gradient = gk + self.norm_coefficient * xk
            first.append(self.alpha * vk + (1 - self.alpha) * gradient)
            second.append(self.beta * hk + (1 - self.beta) * gradient**2)
            step = rate * np.sqrt(1 - self.beta**number) / (1 - self.alpha**number) if number > 0 else rate
            values.append(
                (1 - self.norm_coefficient_post)
                * (xk - step * first[-1] / (np.sqrt(second[-1]) + self.epsilon))
            )
        return [y.astype(np.float32) for y in (*values, *first, *second)]
