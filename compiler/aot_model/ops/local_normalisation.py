"""Normalisations over neighbouring channels, over positions and groups of channels, and by a norm.

A variance is the mean of squared distances from the mean, also where the standard's function takes the square
of the mean from the mean of squares: in float32 that is noise, or negative, where an input hardly varies.

Source: ONNX operator specification.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.expr import Expr, Index, call, const, fresh, logical_and, reduce, select
from aot_model.ir.index import add, less
from aot_model.ir.operator import At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Where, op
from aot_model.ops.normalisation import reduction, scalar
from aot_model.ops.pooling import draw
from aot_model.ops.powers import power
from aot_model.ops.registry import OPERATORS, Build, axis_of, numeric, operator, required
from aot_model.ops.views import ReshapeTo

MAX_NEIGHBOURS = 1 << 20
"""Channels that LRN sums over."""


@operator("LRN", reducing=True, rereads=True)
class LRN(Operator):
    """x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta."""

    size: int = 1
    alpha: float = 0.0001
    beta: float = 0.75
    bias: float = 1.0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = numeric(inputs)
        if x.type.rank < 2 or not 1 <= self.size <= MAX_NEIGHBOURS:
            raise OperatorError(
                f"takes channels and a size from 1 to {MAX_NEIGHBOURS}, not {x.type} and {self.size}"
            )
        return [x.type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        k = fresh("k", self.size)
        c = add(add(index[1], k), -((self.size - 1) // 2))
        inside = logical_and(less(const(-1), c), less(c, x.shape[1]))
        other = at(x, (index[0], c, *index[2:]))
        total = reduce("add", (k,), select(inside, call("mul", other, other), const(0, x.dtype)))
        base = call(
            "add", const(self.bias, x.dtype), call("mul", const(self.alpha / self.size, x.dtype), total)
        )
        return call("div", at(x, index), power(base, self.beta))

    @classmethod
    def samples(cls) -> list[Sample]:
        forms = ((1, 0.5), (3, 0.75), (5, 1.0), (3, 0.3))
        return [
            Sample((draw(2, 5, 2, 3),), {"size": n, "alpha": 0.2, "beta": b, "bias": 2.0}) for n, b in forms
        ]


def _centred(build: Build, x: Value, axes: tuple[int, ...]) -> tuple[Value, Value]:
    """Distances from the mean over axes, and their mean square."""
    centred = build(op("Sub"), x, reduction("ReduceMean", build, x, axes))
    return centred, reduction("ReduceMean", build, build(op("Mul"), centred, centred), axes)


@operator("InstanceNormalization")
class InstanceNormalization(Operator):
    """Each channel of each image normalised over its spatial positions, scaled and shifted."""

    epsilon: float = 1e-5

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, scale, b = (required(inputs, k) for k in range(3))
        if x.type.rank < 3 or scale.shape != x.shape[1:2] or b.shape != x.shape[1:2]:
            raise OperatorError(f"scale {scale.type} and bias {b.type} do not fit {x.type}")
        return [x.type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, scale, b = (required(inputs, k) for k in range(3))
        axes = tuple(range(2, x.type.rank))
        centred, variance = _centred(build, x, axes)
        deviation = build(op("Sqrt"), build(op("Add"), variance, scalar(build, self.epsilon, x.dtype)))
        shape = ReshapeTo((x.shape[1], *(1 for _ in axes)))
        factor = build(op("Div"), build(shape, scale), deviation)
        return [build(op("Add"), build(op("Mul"), centred, factor), build(shape, b))]

    @classmethod
    def samples(cls) -> list[Sample]:
        shapes = ((2, 3, 4, 5), 1e-5), ((2, 3, 4, 5), 0.1), ((2, 3, 7), 0.01)
        return [Sample((draw(*shape), draw(3), draw(3)), {"epsilon": e}) for shape, e in shapes]


@operator("GroupNormalization")
class GroupNormalization(Operator):
    """Groups of channels of each image normalised, then scaled and shifted by channel (by group: opset 20 and
    before).
    """

    num_groups: int
    epsilon: float = 1e-5
    stash_type: int = 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, scale, b = (required(inputs, k) for k in range(3))
        channels = x.shape[1] if x.type.rank > 1 else 0
        if self.num_groups < 1 or not channels or channels % self.num_groups:
            raise OperatorError(f"{self.num_groups} groups do not fit {x.type}")
        if scale.shape != b.shape or scale.shape not in ((channels,), (self.num_groups,)):
            raise OperatorError(f"scale {scale.type} and bias {b.type} do not fit {x.type}")
        return [x.type]

    def _by_channel(self, build: Build, v: Value, channels: int, rank: int) -> Value:
        if v.shape != (channels,):
            of_group = build(ReshapeTo((self.num_groups, 1)), v)
            shape = np.asarray((self.num_groups, channels // self.num_groups), np.int64)
            v = build(OPERATORS["", "Expand"](), of_group, build.constant(shape))
        return build(ReshapeTo((channels, *(1 for _ in range(rank - 2)))), v)

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        given, scale, b = (required(inputs, k) for k in range(3))
        wide = DType.FLOAT32 if self.stash_type == 1 and given.dtype.bits < 32 else given.dtype
        x = given if wide is given.dtype else build(Cast(wide), given)
        of_group = x.type.elements // max(x.shape[0] * self.num_groups, 1)
        x = build(ReshapeTo((x.shape[0], self.num_groups, of_group)), x)
        centred, variance = _centred(build, x, (2,))
        deviation = build(op("Sqrt"), build(op("Add"), variance, scalar(build, self.epsilon, wide)))
        y = build(ReshapeTo(given.shape), build(op("Div"), centred, deviation))
        y = y if wide is given.dtype else build(Cast(given.dtype), y)
        channels, rank = given.shape[1], given.type.rank
        y = build(op("Mul"), y, self._by_channel(build, scale, channels, rank))
        return [build(op("Add"), y, self._by_channel(build, b, channels, rank))]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = draw(2, 6, 3, 4)
        half = tuple(v.astype(np.float16) for v in (draw(1, 4, 5), draw(4), draw(4)))
        return [
            *(Sample((x, draw(6), draw(6)), {"num_groups": n}) for n in (1, 2, 6)),
            Sample((draw(2, 4), draw(4), draw(4)), {"num_groups": 2, "epsilon": 0.1}),
            Sample(half, {"num_groups": 2}),
        ]


@operator("MeanVarianceNormalization")
class MeanVarianceNormalization(Operator):
    """(x - mean) / (deviation + 1e-9) over axes."""

    axes: tuple[int, ...] = (0, 2, 3)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        for axis in self.axes:
            axis_of(x, axis)
        return [x.type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        centred, variance = _centred(build, x, self.axes)
        deviation = build(op("Add"), build(op("Sqrt"), variance), scalar(build, 1e-9, x.dtype))
        return [build(op("Div"), centred, deviation)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((draw(2, 3, 4, 5),)), Sample((draw(2, 3, 4),), {"axes": (-1,)})]


@operator("LpNormalization")
class LpNormalization(Operator):
    """x over its p-norm along an axis; 0 where the norm is 0."""

    axis: int = -1
    p: int = 2

    def infer(self, inputs: Inputs) -> list[TensorType]:
        if self.p not in (1, 2):
            raise OperatorError(f"p = {self.p} is not 1 or 2")
        return [required(inputs).type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        norm = reduction("ReduceL1" if self.p == 1 else "ReduceL2", build, x, (self.axis,))
        zero = scalar(build, 0, x.dtype)
        quotient = build(op("Div"), x, norm)
        return [build(Where(), build(op("Equal"), norm, zero), zero, quotient)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = draw(3, 4)
        x[1] = 0
        return [Sample((x,), {"axis": a, "p": p}) for a in (0, -1) for p in (1, 2)]
