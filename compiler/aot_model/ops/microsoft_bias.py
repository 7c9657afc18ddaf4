"""com.microsoft: additions of biases and residuals, with what is fused behind them. Source: ONNX Runtime's
contrib operators.

Of most of them ONNX Runtime has kernels for other processors only: they are in models that were optimised for
those.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, OperatorError, Sample
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.activation import Gelu, Swish
from aot_model.ops.channels_first import channels_first, channels_last
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.registry import OPERATORS, Build, axis_of, operator, required, static


@operator("BiasAdd", domain="com.microsoft", inputs=3)
class BiasAdd(Composition):
    """x + bias of the last axis + residual."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a = Algebra(build)
        return [a.add(a.add(required(inputs, 0), required(inputs, 1)), required(inputs, 2))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, bias, skip = (np.asarray(v) for v in arrays)
        return [x + bias + skip]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((drawn(1, 2, 3, 4), drawn(2, 4), drawn(3, 2, 3, 4)), constants=frozenset({1}))]


@operator("BiasDropout", domain="com.microsoft", inputs=5)
class BiasDropout(Composition):
    """x + bias + residual, and a mask of what was kept: everything, but in training."""

    seed: int | None = None

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        training = static(inputs, 4, "training_mode")
        if training is not None and training.any():
            raise OperatorError(
                "dropout in training is not supported", "E202", "export the model for inference"
            )
        a = Algebra(build)
        y = a.add(a.add(required(inputs, 0), required(inputs, 1)), present(inputs, 2))
        return [y, build.constant(np.ones(y.shape, np.bool_))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, bias, *rest = (None if v is None else np.asarray(v) for v in arrays)
        assert x is not None and bias is not None
        y = x + bias + (0 if not rest or rest[0] is None else rest[0])
        return [y, np.ones(y.shape, np.bool_)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, bias, ratio, off = drawn(1, 2, 3, 4), drawn(2, 4), np.asarray(0.3, np.float32), np.asarray(False)
        return [
            Sample((x, bias, drawn(3, 2, 3, 4), ratio, off), {"seed": 3}, frozenset({1, 3, 4}), 2),
            Sample((x, bias), {}, frozenset({1}), 2),
        ]


@operator("BiasSoftmax", domain="com.microsoft", inputs=2)
class BiasSoftmax(Composition):
    """Softmax of x + bias over all axes from `axis` on."""

    is_inner_broadcast: int
    axis: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, x, bias = Algebra(build), required(inputs, 0), required(inputs, 1)
        if self.is_inner_broadcast and 0 < bias.type.rank < x.type.rank:
            raise OperatorError(f"a bias {bias.type} of fewer axes than {x.type} is not supported", "E202")
        return [
            build(
                OPERATORS["", "SoftmaxFlattened"](axis=self.axis),  # type: ignore[call-arg]
                a.add(x, bias),
            )
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, bias = (np.asarray(v, np.float64) for v in arrays)
        total = x + bias
        powers = np.exp(total - total.max(tuple(range(self.axis % total.ndim, total.ndim)), keepdims=True))
        return [
            (powers / powers.sum(tuple(range(self.axis % total.ndim, total.ndim)), keepdims=True)).astype(
                np.float32
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((drawn(1, 2, 3, 4, 5), drawn(2, 2, 1, 1, 5)), {"axis": 3, "is_inner_broadcast": 1}),
            Sample((drawn(1, 2, 3, 4), drawn(2, 1, 3, 4)), {"axis": 1, "is_inner_broadcast": 0}),
        ]


@operator("BiasSplitGelu", domain="com.microsoft", inputs=2)
class BiasSplitGelu(Composition):
    """The first half of x + bias times the Gelu of the second."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a = Algebra(build)
        y = a.add(required(inputs, 0), required(inputs, 1))
        axis = axis_of(y, -1)
        half = y.shape[axis] // 2
        if y.shape[axis] % 2:
            raise OperatorError(f"{y.type} has no two halves")
        return [a.mul(a.cut(y, axis, 0, half), a(Gelu(), a.cut(y, axis, half, 2 * half)))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        from math import erf, sqrt

        left, right = np.split(np.asarray(arrays[0], np.float64) + np.asarray(arrays[1], np.float64), 2, -1)
        return [(left * right * (1 + np.vectorize(erf)(right / sqrt(2))) / 2).astype(np.float32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((drawn(1, 2, 3, 8), drawn(2, 8)), constants=frozenset({1}))]


@operator("GemmFastGelu", domain="com.microsoft", inputs=3)
class GemmFastGelu(Composition):
    """The tanh approximation of the Gelu of x w + bias."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a = Algebra(build)
        return [
            a(Gelu("tanh"), a.add(a.matmul(required(inputs, 0), required(inputs, 1)), present(inputs, 2)))
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, w, bias = (np.asarray(v, np.float64) for v in (*arrays, 0.0)[:3])
        y = x @ w + bias
        return [(y / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))).astype(np.float32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((drawn(1, 2, 3, 4), drawn(2, 4, 5), drawn(3, 5)), constants=frozenset({1, 2})),
            Sample((drawn(1, 3, 4), drawn(2, 4, 5))),
        ]


def _group_norm(
    a: Algebra, x: Value, gamma: Value, beta: Value, groups: int, epsilon: float, last: int, silu: int
) -> Value:
    """Normalisation of each group of channels, then by channel gamma and beta, then SiLU."""
    y = channels_first(a.build, x) if last else x
    if y.type.rank < 3 or groups < 1 or y.shape[1] % groups or not y.type.elements:
        raise OperatorError(f"{groups} groups of the channels of {x.type}")
    flat = a.reshape(y, y.shape[0], groups, y.type.elements // (y.shape[0] * groups))
    apart = a.sub(flat, a.reduced("ReduceMean", flat, 2))
    deviation = a.of("Sqrt", a.add(a.reduced("ReduceMean", a.mul(apart, apart), 2), epsilon))
    normal = a.reshape(a.div(apart, deviation), *y.shape)
    channels = (1, y.shape[1], *[1] * (y.type.rank - 2))
    wide = (
        a.reshape(a.cast(v, DType.FLOAT32) if y.dtype is DType.FLOAT32 else v, *channels)
        for v in (gamma, beta)
    )
    result = a.add(a.mul(normal, next(wide)), next(wide))
    result = a(Swish(), result) if silu else result
    return channels_last(a.build, result) if last else result


def _group_norm_reference(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, groups: int, epsilon: float, last: int, silu: int
) -> np.ndarray:
    y = np.asarray(np.moveaxis(x, -1, 1) if last else x, np.float64)
    parts = np.stack(
        [
            (p - p.mean((1, 2, 3), keepdims=True)) / np.sqrt(p.var((1, 2, 3), keepdims=True) + epsilon)
            for p in np.split(y, groups, 1)
        ]
    )
    y = np.concatenate(list(parts), 1) * gamma[:, None, None] + beta[:, None, None]
    y = y / (1 + np.exp(-y)) if silu else y
    return np.asarray(np.moveaxis(y, 1, -1) if last else y, np.float32)


@operator("GroupNorm", domain="com.microsoft", inputs=3)
class GroupNorm(Composition):
    """Group normalisation, channels last unless the attribute says otherwise."""

    groups: int
    activation: int
    channels_last: int = 1
    epsilon: float = 1e-5

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, gamma, beta = (required(inputs, k) for k in range(3))
        return [
            _group_norm(
                Algebra(build), x, gamma, beta, self.groups, self.epsilon, self.channels_last, self.activation
            )
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, gamma, beta = (np.asarray(v) for v in arrays)
        return [
            _group_norm_reference(
                x, gamma, beta, self.groups, self.epsilon, self.channels_last, self.activation
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        weights = (drawn(2, 6), drawn(3, 6))
        return [
            Sample((drawn(1, 2, 4, 3, 6), *weights), {"groups": 3, "activation": 1}, frozenset({1, 2})),
            Sample(
                (drawn(1, 2, 6, 4, 3), *weights),
                {"groups": 2, "activation": 0, "channels_last": 0, "epsilon": 1e-3},
                frozenset({1, 2}),
            ),
        ]


@operator("SkipGroupNorm", domain="com.microsoft", inputs=5)
class SkipGroupNorm(Composition):
    """GroupNorm of x + residual + bias. Outputs: the result, the sum."""

    groups: int
    activation: int
    channels_last: int = 1
    epsilon: float = 1e-5

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, gamma, beta, skip = (required(inputs, k) for k in range(4))
        a, bias = Algebra(build), present(inputs, 4)
        if not self.channels_last:
            raise OperatorError(
                "SkipGroupNorm with the channels first is not supported",
                "E202",
                "optimise the model with the channels last",
            )
        if skip.type.rank == 2:  # the same for all positions
            skip = a.reshape(skip, skip.shape[0], 1, 1, skip.shape[1])
        total = a.add(a.add(x, skip), bias)
        return [_group_norm(a, total, gamma, beta, self.groups, self.epsilon, 1, self.activation), total]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, gamma, beta, skip, bias = (np.asarray(v) for v in (*arrays, np.float32(0))[:5])
        total = x + (skip[:, None, None, :] if skip.ndim == 2 else skip) + bias
        return [
            _group_norm_reference(total, gamma, beta, self.groups, self.epsilon, 1, self.activation),
            total,
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, weights = drawn(1, 2, 4, 3, 6), (drawn(2, 6), drawn(3, 6))
        return [
            Sample(
                (x, *weights, drawn(4, 2, 4, 3, 6), drawn(5, 6)),
                {"groups": 3, "activation": 0},
                frozenset({1, 2, 4}),
                2,
            ),
            Sample((x, *weights, drawn(4, 2, 6)), {"groups": 2, "activation": 1}, frozenset({1, 2}), 2),
        ]
