"""com.microsoft: products and convolutions with what ONNX Runtime's optimiser fuses into them. Source: its
contrib operators.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, OperatorError, Sample
from aot_model.ir.values import Value
from aot_model.ops.channels_first import ConvTranspose, Windowed, channels_first, channels_last
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.microsoft_activation import activated, drawn
from aot_model.ops.normalisation import Gemm
from aot_model.ops.registry import Build, ints, operator, required, static

Ints = tuple[int, ...]


def _transposed(a: Algebra, x: Value, last: int, batch: int) -> Value:
    """The two last axes exchanged; before that, with `batch`, the first axis of x put where its last but one
    is.
    """
    if x.type.rank < 2:
        return x
    order = list(range(x.type.rank))
    if batch:
        order = [*order[1:-1], order[0], order[-1]]
    if last:
        order = [*order[:-2], order[-1], order[-2]]
    return x if order == sorted(order) else a.transpose(x, *order)


@operator("FusedMatMul", domain="com.microsoft", inputs=2)
class FusedMatMul(Composition):
    """alpha * A' * B'."""

    alpha: float = 1.0
    transA: int = 0
    transB: int = 0
    transBatchA: int = 0
    transBatchB: int = 0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a = Algebra(build)
        left = _transposed(a, required(inputs, 0), self.transA, self.transBatchA)
        right = _transposed(a, required(inputs, 1), self.transB, self.transBatchB)
        return [a.mul(a.matmul(left, right), self.alpha)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, y, flipped = drawn(1, 2, 3, 4), drawn(2, 2, 4, 5), drawn(3, 2, 5, 4)
        return [
            Sample((x, y), {"alpha": 0.5}),
            Sample((x, flipped), {"transB": 1, "alpha": 0.125}),
            Sample((drawn(4, 2, 4, 3), flipped), {"transA": 1, "transB": 1}),
            Sample((x, drawn(5, 4, 6)), constants=frozenset({1})),
            Sample((drawn(6, 3, 2, 4), y), {"transBatchA": 1}),
            Sample((x, drawn(7, 5, 2, 4)), {"transB": 1, "transBatchB": 1}),
            Sample((drawn(8, 4), y)),
            Sample((x, drawn(9, 4)), {"alpha": 2.0}),
        ]


@operator("TransposeMatMul", domain="com.microsoft", inputs=2)
class TransposeMatMul(Composition):
    """FusedMatMul by its former name."""

    alpha: float = 1.0
    transA: int = 0
    transB: int = 0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return FusedMatMul(self.alpha, self.transA, self.transB).expand(build, inputs)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((drawn(1, 2, 3, 4), drawn(3, 2, 5, 4)), {"transB": 1, "alpha": 0.125})]


@operator("FusedGemm", domain="com.microsoft", inputs=3)
class FusedGemm(Composition):
    """Gemm, then an activation."""

    activation: str = ""
    activation_alpha: float | None = None
    activation_beta: float | None = None
    activation_gamma: float | None = None
    alpha: float = 1.0
    beta: float = 1.0
    transA: int = 0
    transB: int = 0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        y = build(Gemm(self.alpha, self.beta, self.transA, self.transB), *inputs)
        second = self.activation_gamma if self.activation == "Selu" else self.activation_beta
        return [activated(build, y, self.activation, self.activation_alpha, second)]

    @classmethod
    def samples(cls) -> list[Sample]:
        inputs, constants = (drawn(1, 2, 3), drawn(2, 3, 4), drawn(3, 4)), frozenset({1, 2})
        cases: list[dict[str, object]] = [
            {"activation": "Relu"},
            {"activation": "LeakyRelu", "activation_alpha": 0.2},
            {"activation": "Tanh", "alpha": 0.5, "beta": 2.0},
            {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
            {"activation": "Elu", "activation_alpha": 0.7},
        ]
        return [Sample(inputs, c, constants) for c in cases] + [
            Sample((drawn(1, 3, 2), drawn(2, 4, 3)), {"activation": "Sigmoid", "transA": 1, "transB": 1})
        ]


@operator("FusedConv", domain="com.microsoft", inputs=4)
class FusedConv(Windowed, Composition):
    """Conv with bias, plus a tensor of the result's shape, then an activation."""

    activation: str = ""
    activation_params: tuple[float, ...] = ()

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        y = build(self.convolution(), required(inputs, 0), required(inputs, 1), present(inputs, 2))
        return [
            activated(
                build, Algebra(build).add(y, present(inputs, 3)), self.activation, *self.activation_params
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w, b = drawn(1, 1, 2, 5, 5), drawn(2, 3, 2, 3, 3), drawn(3, 3)
        weights = frozenset({1, 2})
        cases: list[dict[str, object]] = [
            {"activation": "Relu"},
            {"activation": "LeakyRelu", "activation_params": (0.2,)},
            {"activation": "Clip", "activation_params": (-0.5, 1.5)},
            {"activation": "HardSigmoid", "activation_params": (0.3, 0.4)},
            {"activation": "Tanh"},
            {"activation": "Sigmoid", "strides": (2, 2)},
        ]
        residual = (x, w, b, drawn(4, 1, 3, 5, 5))
        return [
            *(Sample((x, w, b), {**c, "pads": (1, 1, 1, 1)}, weights) for c in cases),
            Sample((x, w, None), {"activation": "Relu"}, frozenset({1})),
            Sample(residual, {"activation": "Relu", "auto_pad": "SAME_UPPER"}, weights),
            Sample((x, w), {}, frozenset({1})),
        ]


class _ChannelsLastConv(Windowed, Composition):
    """Convolution of activations (N, spatial…, C); weights are (O, spatial…, I / group)."""

    fused: ClassVar[bool] = False

    def activation_of(self) -> tuple[str, tuple[float, ...]]:
        return "", ()

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, w = channels_first(build, required(inputs, 0)), channels_first(build, required(inputs, 1))
        y = channels_last(build, build(self.convolution(), x, w, present(inputs, 2)))
        name, numbers = self.activation_of()
        return [activated(build, Algebra(build).add(y, present(inputs, 3)), name, *numbers)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        """Of samples with strides of 1 and explicit pads, with a Relu if any."""
        x, w, b, z = (None if v is None else np.asarray(v, np.float64) for v in (*arrays, None, None)[:4])
        assert x is not None and w is not None and self.pads is not None and self.strides is None
        top, left, bottom, right = self.pads
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0))), w.shape[1:3], (1, 2)
        )
        y = np.einsum("nhwcij,oijc->nhwo", windows, w) + (0 if b is None else b) + (0 if z is None else z)
        return [(np.maximum(y, 0) if self.activation_of()[0] == "Relu" else y).astype(np.float32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w, b, z, pads = (
            drawn(1, 1, 5, 4, 2),
            drawn(2, 3, 3, 2, 2),
            drawn(3, 3),
            drawn(4, 1, 5, 4, 3),
            {"pads": (1, 0, 1, 1)},
        )
        plain = [Sample((x, w, b), pads, frozenset({1, 2})), Sample((x, w), pads, frozenset({1}))]
        return (
            [Sample((x, w, b, z), {**pads, "activation": "Relu"}, frozenset({1, 2})), plain[0]]
            if cls.fused
            else plain
        )


@operator("NhwcConv", domain="com.microsoft", inputs=3)
class NhwcConv(_ChannelsLastConv):
    """Conv, channels last."""


@operator("NhwcFusedConv", domain="com.microsoft", inputs=4)
class NhwcFusedConv(_ChannelsLastConv):
    """FusedConv, channels last."""

    fused: ClassVar[bool] = True

    activation: str = ""
    activation_params: tuple[float, ...] = ()

    def activation_of(self) -> tuple[str, tuple[float, ...]]:
        return self.activation, self.activation_params


@operator("ConvTransposeWithDynamicPads", domain="com.microsoft", inputs=4)
class ConvTransposeWithDynamicPads(Composition):
    """ConvTranspose with the pads as third input; they must be constant."""

    auto_pad: str = "NOTSET"
    dilations: Ints | None = None
    group: int = 1
    kernel_shape: Ints | None = None
    output_padding: Ints | None = None
    strides: Ints | None = None

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        data = static(inputs, 2, "the pads") if present(inputs, 2) is not None else None
        pads = None if data is None else ints(data)
        conv = ConvTranspose(
            self.auto_pad,
            self.dilations,
            self.group,
            self.kernel_shape,
            self.output_padding,
            None,
            pads,
            self.strides,
        )
        return [build(conv, required(inputs, 0), required(inputs, 1), present(inputs, 3))]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w, pads = drawn(1, 1, 2, 4, 4), drawn(2, 2, 3, 3, 3), np.asarray([1, 1, 0, 1], np.int64)
        return [
            Sample((x, w, pads), {"strides": (2, 2)}, frozenset({1, 2})),
            Sample((x, w, pads, drawn(3, 3)), {"output_padding": (0, 0)}, frozenset({1, 2, 3})),
        ]


@operator("Inverse", domain="com.microsoft", inputs=1)
class Inverse(Composition):
    """Inverse of each matrix of the last two axes, by adjugates."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, a = required(inputs), Algebra(build)
        n = x.shape[-1] if x.type.rank >= 2 else 0
        if x.type.rank < 2 or x.shape[-2] != n or not 1 <= n <= 3:
            raise OperatorError(f"takes square matrices of at most 3 rows, not {x.type}", "E202")
        rank = x.type.rank

        def at(i: int, j: int) -> Value:
            return a.cut(a.cut(x, rank - 2, i, i + 1), rank - 1, j, j + 1)

        def minor(i: int, j: int) -> Value | None:
            """The determinant without row i and column j."""
            rows, columns = ([k for k in range(n) if k != skip] for skip in (i, j))
            if n == 1:
                return None
            if n == 2:
                return at(rows[0], columns[0])
            return a.sub(
                a.mul(at(rows[0], columns[0]), at(rows[1], columns[1])),
                a.mul(at(rows[0], columns[1]), at(rows[1], columns[0])),
            )

        def cofactor(i: int, j: int) -> Value:
            found = minor(i, j)
            if found is None:
                return a.add(a.mul(at(0, 0), 0.0), 1.0)
            return found if (i + j) % 2 == 0 else a.of("Neg", found)

        cofactors = [[cofactor(i, j) for j in range(n)] for i in range(n)]
        determinant = a.mul(at(0, 0), cofactors[0][0])
        for j in range(1, n):
            determinant = a.add(determinant, a.mul(at(0, j), cofactors[0][j]))
        adjugate = a.concat(
            rank - 2, *(a.concat(rank - 1, *(cofactors[j][i] for j in range(n))) for i in range(n))
        )
        return [a.div(adjugate, determinant)]

    @classmethod
    def samples(cls) -> list[Sample]:
        eye = np.eye(3, dtype=np.float32)
        return [
            Sample((drawn(1, 4, 3, 3) + 3 * eye,)),
            Sample((drawn(2, 2, 2) + 3 * eye[:2, :2],)),
            Sample((drawn(3, 5, 1, 1) + 3,)),
        ]
