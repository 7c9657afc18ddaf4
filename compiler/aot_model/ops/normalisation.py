"""Gemm, softmax and normalisations in terms of smaller operators. Source: ONNX operator specification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Transpose
from aot_model.ops.registry import OPERATORS, Build, axis_of, broadcast, normal_axis, operator, required
from aot_model.ops.views import Flatten, ReshapeTo


def scalar(build: Build, value: float, dtype: DType) -> Value:
    """OperatorError for a number that the type does not have: half of an integer would be nothing."""
    if dtype.is_integer and not (float(value).is_integer() and dtype.limits[0] <= value <= dtype.limits[1]):
        raise OperatorError(f"{value:g} is no number of {dtype.label}", "E202")
    return build.constant(np.asarray(value), dtype)


def reduction(name: str, build: Build, x: Value, axes: tuple[int, ...]) -> Value:
    """A reduction that keeps its axes."""
    return build(OPERATORS["", name](), x, build.constant(np.asarray(axes, dtype=np.int64)))


def _draw(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(11).uniform(-2, 2, shape), dtype=np.float32)


@operator("Gemm")
class Gemm(Operator):
    """alpha * A' * B' + beta * C."""

    alpha: float = 1.0
    beta: float = 1.0
    transA: int = 0
    transB: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        if a.type.rank != 2 or b.type.rank != 2:
            raise OperatorError(f"takes matrices, not {a.type} and {b.type}")
        m, k = reversed(a.shape) if self.transA else a.shape
        q, n = reversed(b.shape) if self.transB else b.shape
        if k != q:
            raise OperatorError(f"cannot multiply {a.type} by {b.type}")
        if len(inputs) > 2 and inputs[2] is not None:
            broadcast(inputs[2].shape, (m, n))
        return [TensorType(a.dtype, (m, n))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, b = required(inputs, 0), required(inputs, 1)
        a = build(Transpose((1, 0)), a) if self.transA else a
        b = build(Transpose((1, 0)), b) if self.transB else b
        y = build(OPERATORS["", "MatMul"](), a, b)
        if self.alpha != 1:
            y = build(op("Mul"), y, scalar(build, self.alpha, y.dtype))
        if len(inputs) > 2 and inputs[2] is not None:
            c = inputs[2]
            c = c if self.beta == 1 else build(op("Mul"), c, scalar(build, self.beta, c.dtype))
            y = build(op("Add"), y, c)
        return [y]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((_draw(2, 3), _draw(3, 4), _draw(4)), constants=frozenset({1, 2})),
            Sample(
                (_draw(3, 2), _draw(4, 3), _draw(2, 1)), {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}
            ),
            Sample((_draw(1, 3), _draw(3, 1))),
            Sample(
                tuple(np.asarray(9 * _draw(*s), np.int32) for s in ((2, 3), (3, 4), (4,))),
                {"alpha": 2.0, "beta": -1.0},
            ),
        ]


@operator("Softmax", stepwise=True)
class Softmax(Operator):
    """exp(x - max) / sum(exp(x - max)) along an axis, as runtimes compute it: by the sum's reciprocal. It has
    too few digits where floats have 16 bits.
    """

    axis: int = -1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        axis_of(x, self.axis)
        return [x.type]

    def _shifted(self, build: Build, x: Value) -> tuple[Value, tuple[int, ...]]:
        axes = (normal_axis(self.axis, x.type.rank),)
        return build(op("Sub"), x, reduction("ReduceMax", build, x, axes)), axes

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        shifted, axes = self._shifted(build, required(inputs))
        e = build(op("Exp"), shifted)
        total = reduction("ReduceSum", build, e, axes)
        if e.dtype.storage:
            return [build(op("Div"), e, total)]
        return [build(op("Mul"), e, build(op("Reciprocal"), total))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((_draw(3, 5),)),
            Sample((_draw(3, 5, 2) * 50,), {"axis": 1}),
            Sample((_draw(4, 1),)),
            Sample((_draw(7),), {"axis": 0}),
        ]


@operator("LogSoftmax", stepwise=True)
class LogSoftmax(Softmax):
    """log(softmax(x))."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        shifted, axes = self._shifted(build, required(inputs))
        total = reduction("ReduceSum", build, build(op("Exp"), shifted), axes)
        return [build(op("Sub"), shifted, build(op("Log"), total))]


@operator("ReduceLogSumExp")
class ReduceLogSumExp(Operator):
    """log(sum(exp(x))) over axes, with the largest element taken out of the sum, which would overflow."""

    keepdims: int = 1
    noop_with_empty_axes: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return OPERATORS["", "ReduceSum"](self.keepdims, self.noop_with_empty_axes).infer(inputs)  # type: ignore[call-arg]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        given, axes = required(inputs), inputs[1] if len(inputs) > 1 else None
        x = given if given.dtype.is_float else build(Cast(DType.FLOAT64), given)

        def reduced(name: str, v: Value) -> Value:
            return build(OPERATORS["", name](1, self.noop_with_empty_axes), v, axes)  # type: ignore[call-arg]

        largest = reduced("ReduceMax", x)
        infinite = build(OPERATORS["", "IsInf"](), largest)
        largest = build(op("Where"), infinite, scalar(build, 0, x.dtype), largest)
        total = reduced("ReduceSum", build(op("Exp"), build(op("Sub"), x, largest)))
        y = build(op("Add"), build(op("Log"), total), largest)
        shape = self.infer(inputs)[0].shape
        y = y if y.shape == shape else build(ReshapeTo(shape), y)
        return [y if y.dtype is given.dtype else build(Cast(given.dtype), y)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, constants = _draw(2, 3, 4), frozenset({1})
        large = _draw(3, 4) * 100
        large[0, 0], large[1, 2], large[2, 1] = -np.inf, np.inf, np.nan
        return [
            *(
                Sample((x, np.asarray(a, np.int64)), {"keepdims": k}, constants)
                for a in ((1,), (0, -1), ())
                for k in (0, 1)
            ),
            Sample((x,)),
            Sample((large, np.asarray([1], np.int64)), {}, constants),
            Sample((x.astype(np.float64),), {"keepdims": 0}),
            Sample((x, np.asarray([], np.int64)), {"noop_with_empty_axes": 1}, constants),
        ]


@operator("BatchNormalization")
class BatchNormalization(Operator):
    """(x - mean) / sqrt(var + epsilon) * scale + b for each channel (axis 1), or for each element of a sample
    (spatial=0 of opset 8 and before).

    In training mode mean and variance are those of x, and the running ones are results: old * momentum + new
    * (1 - momentum).
    """

    epsilon: float = 1e-5
    momentum: float = 0.9
    training_mode: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, mean, var = required(inputs), required(inputs, 3), required(inputs, 4)
        wanted = [x.shape[1:2] or (1,)] + ([] if self.training_mode else [x.shape[1:]])
        for v in (required(inputs, k) for k in range(1, 5)):
            if v.shape not in wanted:
                raise OperatorError(f"'{v.name}' is {v.type}: no number for each channel of {x.type}")
        return [x.type, mean.type, var.type] if self.training_mode else [x.type]

    def _trained(self, build: Build, x: Value, mean: Value, var: Value) -> tuple[Value, Value, list[Value]]:
        """(mean, variance) of x, and the running ones after it."""
        axes = tuple(d for d in range(x.type.rank) if d != 1)
        centre = reduction("ReduceMean", build, x, axes)
        distance = build(op("Sub"), x, centre)
        spread = reduction("ReduceMean", build, build(op("Mul"), distance, distance), axes)
        new = [
            build(ReshapeTo(old.shape), build(Cast(old.dtype), v))
            for v, old in ((centre, mean), (spread, var))
        ]
        running = []
        for old, v in ((mean, new[0]), (var, new[1])):
            kept = build(op("Mul"), old, scalar(build, self.momentum, old.dtype))
            running.append(
                build(op("Add"), kept, build(op("Mul"), v, scalar(build, 1 - self.momentum, v.dtype)))
            )
        return new[0], new[1], running

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, scale, b, mean, var = (required(inputs, i) for i in range(5))
        running: list[Value] = []
        if self.training_mode:
            mean, var, running = self._trained(build, x, mean, var)

        def channel(v: Value) -> Value:
            return build(ReshapeTo(v.shape + (1,) * (x.type.rank - 1 - v.type.rank)), v)

        deviation = build(op("Sqrt"), build(op("Add"), var, scalar(build, self.epsilon, var.dtype)))
        factor = build(op("Div"), scale, deviation)
        shift = build(op("Sub"), b, build(op("Mul"), mean, factor))
        return [build(op("Add"), build(op("Mul"), x, channel(factor)), channel(shift)), *running]

    @classmethod
    def samples(cls) -> list[Sample]:
        v = np.abs(_draw(3)) + 0.5
        inputs = (_draw(2, 3, 4), v, _draw(3), _draw(3), v)
        return [
            Sample(inputs, constants=frozenset({1, 2, 3, 4})),
            Sample(inputs, {"training_mode": 1, "momentum": 0.75}, outputs=3),
        ]


@operator("LayerNormalization")
class LayerNormalization(Operator):
    """Normalised over the axes from `axis` on, scaled and shifted."""

    axis: int = -1
    epsilon: float = 1e-5
    stash_type: int = 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        axis = normal_axis(self.axis, x.type.rank)
        reduced = (*x.shape[:axis], *(1 for _ in x.shape[axis:]))
        return [x.type, TensorType(DType.FLOAT32, reduced), TensorType(DType.FLOAT32, reduced)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        axes = tuple(range(normal_axis(self.axis, x.type.rank), x.type.rank))
        mean = reduction("ReduceMean", build, x, axes)
        centred = build(op("Sub"), x, mean)
        variance = reduction("ReduceMean", build, build(op("Mul"), centred, centred), axes)
        deviation = build(op("Sqrt"), build(op("Add"), variance, scalar(build, self.epsilon, x.dtype)))
        inverse = build(op("Reciprocal"), deviation)
        y = build(op("Mul"), build(op("Mul"), centred, inverse), required(inputs, 1))
        if len(inputs) > 2 and inputs[2] is not None:
            y = build(op("Add"), y, inputs[2])
        return [y, mean, inverse]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((_draw(2, 3, 4), _draw(4), _draw(4)), constants=frozenset({1, 2})),
            Sample((_draw(2, 3, 4), _draw(3, 4)), {"axis": 1}),
        ]


@dataclass(frozen=True)
class _Flattened(Operator):
    """Opset 12 and before: over all axes from `axis` on, as one."""

    axis: int = 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        flat = build(Flatten(normal_axis(self.axis, x.type.rank) if x.type.rank else 0), x)
        y = build(OPERATORS["", self.name.removesuffix("Flattened")](axis=1), flat)  # type: ignore[call-arg]
        return [build(ReshapeTo(x.shape), y)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(6).uniform(-3, 3, (2, 3, 4)), np.float32)
        return [Sample((x,), {"axis": a}) for a in (0, 1, 2, -1, -2)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        over = tuple(range(self.axis % x.ndim, x.ndim))
        if self.name.startswith("Hard"):
            rows = x.reshape(int(np.prod(x.shape[: over[0]])), -1)
            return [np.eye(rows.shape[1], dtype=x.dtype)[rows.argmax(axis=1)].reshape(x.shape)]
        powers = np.exp(x - x.max(axis=over, keepdims=True))
        shares = powers / powers.sum(axis=over, keepdims=True)
        return [np.log(shares) if self.name.startswith("Log") else shares]


for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    operator(f"{_name}Flattened")(
        type(f"{_name}Flattened", (_Flattened,), {"__doc__": f"ONNX {_name}, opset 12 and before."})
    )
