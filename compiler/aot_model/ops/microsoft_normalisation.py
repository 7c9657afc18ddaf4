"""com.microsoft: normalisations with the sums before them, and embeddings. Source: ONNX Runtime's contrib
operators.

The standard deviation's inverse that some of them give back is 1 / sqrt(variance + epsilon); of the
simplified forms, which subtract no mean, it is 1 / sqrt(mean of squares + epsilon).
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.normalisation import LayerNormalization
from aot_model.ops.quantised_linear import DequantizeLinear, check_positive
from aot_model.ops.registry import Build, normal_axis, operator, ranked, required


def simplified(a: Algebra, x: Value, scale: Value, epsilon: float, axis: int = -1) -> tuple[Value, Value]:
    """(x / rms(x) * scale, 1 / rms(x)) over the axes from `axis` on."""
    axes = range(normal_axis(axis, x.type.rank), x.type.rank)
    inverse = a.of("Reciprocal", a.of("Sqrt", a.add(a.reduced("ReduceMean", a.mul(x, x), *axes), epsilon)))
    return a.mul(a.mul(x, inverse), scale), inverse


@operator("SimplifiedLayerNormalization")
class SimplifiedLayerNormalization(Composition):
    """x / rms(x) * scale over the axes from `axis` on. ONNX Runtime writes it in the domain of ONNX."""

    axis: int = -1
    epsilon: float = 1e-5
    stash_type: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return list(
            simplified(Algebra(build), required(inputs), required(inputs, 1), self.epsilon, self.axis)
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, scale = (np.asarray(v, np.float64) for v in arrays)
        axes = tuple(range(self.axis % x.ndim, x.ndim))
        inverse = 1 / np.sqrt((x * x).mean(axes, keepdims=True) + self.epsilon)
        return [(x * inverse * scale).astype(np.float32), inverse.astype(np.float32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((drawn(1, 2, 3, 4), drawn(2, 4)), {"epsilon": 1e-3}, frozenset({1})),
            Sample((drawn(1, 2, 3, 4), drawn(2, 3, 4)), {"axis": 1}),
            Sample((drawn(1, 2, 4), drawn(2, 4)), outputs=2),
        ]


def _summed(a: Algebra, inputs: Inputs, bias: int) -> Value:
    """input + skip (of a batch of 1 or without one: the same for all) + bias."""
    return a.add(a.add(required(inputs, 0), required(inputs, 1)), present(inputs, bias))


@operator("SkipLayerNormalization", domain="com.microsoft", inputs=5)
class SkipLayerNormalization(Composition):
    """Layer normalisation of input + skip + bias. Outputs: the result, mean, inverse deviation, the sum."""

    epsilon: float = 1e-12

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        total = _summed(Algebra(build), inputs, 4)
        y, mean, inverse = build.many(
            LayerNormalization(-1, self.epsilon), total, required(inputs, 2), present(inputs, 3)
        )
        return [y, mean, inverse, total]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, skip, gamma, beta, bias = (
            drawn(1, 2, 3, 4),
            drawn(2, 2, 3, 4),
            drawn(3, 4),
            drawn(4, 4),
            drawn(5, 4),
        )
        weights = frozenset({2, 3, 4})
        return [
            Sample((x, skip, gamma, beta), constants=weights),
            Sample((x, skip, gamma, beta, bias), {"epsilon": 1e-3}, weights),
            Sample((x, skip, gamma, None, bias), constants=weights),
            Sample((x, drawn(6, 3, 4), gamma, beta)),
            Sample((x, drawn(6, 1, 3, 4), gamma)),
        ]


@operator("SkipSimplifiedLayerNormalization", domain="com.microsoft", inputs=4)
class SkipSimplifiedLayerNormalization(Composition):
    """Simplified layer normalisation of input + skip + bias. Outputs: the result, (nothing), inverse of the
    root, the sum.
    """

    epsilon: float = 1e-12

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a = Algebra(build)
        total = _summed(a, inputs, 3)
        y, inverse = simplified(a, total, required(inputs, 2), self.epsilon)
        return [y, a.mul(inverse, 0.0), inverse, total]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, skip, gamma, bias = drawn(1, 2, 3, 4), drawn(2, 2, 3, 4), drawn(3, 4), drawn(5, 4)
        weights = frozenset({2, 3})
        return [
            Sample((x, skip, gamma), constants=weights),
            Sample((x, skip, gamma, bias), {"epsilon": 1e-3}, weights),
            Sample((x, drawn(6, 3, 4), gamma)),
        ]


def _embedded(a: Algebra, ids: Value, table: Value) -> Value:
    if ids.type.rank != 2 or table.type.rank != 2:
        raise OperatorError(f"takes indices of a batch and a table, not {ids.type} and {table.type}")
    return a.gather(table, ids)


def _positions(a: Algebra, given: Value | None, length: int, table: Value) -> Value:
    """The embeddings of the positions: those given, else 0, 1, 2 …"""
    if given is not None:
        return a.gather(table, given)
    if length > ranked(table, 2).shape[0]:
        raise OperatorError(f"{length} positions are more than the {table.shape[0]} of the table")
    return a.cut(table, 0, 0, length)


def _words_before_padding(a: Algebra, mask: Value | None, batch: int) -> Value:
    """How many 1 a row of the mask has; 0 without a mask."""
    if mask is None:
        return a.build.constant(np.zeros(batch, np.int32))
    return a.reshape(a.reduced("ReduceSum", mask, 1), batch)


@operator("EmbedLayerNormalization", domain="com.microsoft", inputs=9)
class EmbedLayerNormalization(Composition):
    """Layer normalisation of the sum of word, position and segment embeddings. Outputs: the result, mask
    index, the sum.
    """

    epsilon: float = 1e-12
    mask_index_type: int = 0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, ids = Algebra(build), required(inputs, 0)
        total = a.add(
            _embedded(a, ids, required(inputs, 2)),
            _positions(a, present(inputs, 8), ids.shape[1], required(inputs, 3)),
        )
        segments, table = present(inputs, 1), present(inputs, 4)
        if segments is not None:
            total = a.add(total, _embedded(a, segments, required(inputs, 4)))
        elif table is not None:
            raise OperatorError("a table of segments without segments")
        y = build.many(LayerNormalization(-1, self.epsilon), total, required(inputs, 5), required(inputs, 6))[
            0
        ]
        return [y, _words_before_padding(a, present(inputs, 7), ids.shape[0]), total]

    @classmethod
    def samples(cls) -> list[Sample]:
        ids, segments = (
            np.asarray([[1, 4, 0], [2, 2, 3]], np.int32),
            np.asarray([[0, 1, 1], [0, 0, 1]], np.int32),
        )
        words, places, kinds, gamma, beta = (
            drawn(1, 5, 4),
            drawn(2, 6, 4),
            drawn(3, 2, 4),
            drawn(4, 4),
            drawn(5, 4),
        )
        mask, where = (
            np.asarray([[1, 1, 0], [1, 1, 1]], np.int32),
            np.asarray([[0, 2, 1], [5, 1, 1]], np.int32),
        )
        weights = frozenset({2, 3, 4, 5, 6})
        return [
            Sample((ids, segments, words, places, kinds, gamma, beta), {"epsilon": 1e-5}, weights, 2),
            Sample((ids, None, words, places, None, gamma, beta), {}, weights, 2),
            Sample((ids, segments, words, places, kinds, gamma, beta, mask), {}, weights, 2),
            Sample((ids, segments, words, places, kinds, gamma, beta, mask, where), {}, weights, 3),
        ]


@operator("QEmbedLayerNormalization", domain="com.microsoft", inputs=18)
class QEmbedLayerNormalization(Composition):
    """EmbedLayerNormalization over 8-bit tables. Outputs: the result, mask index."""

    epsilon: float = 1e-12

    def infer(self, inputs: Inputs) -> list[TensorType]:
        ids, words = required(inputs, 0), ranked(required(inputs, 2), 2)
        return [
            TensorType(DType.FLOAT32, (*ids.shape, words.shape[-1])),
            TensorType(DType.INT32, ids.shape[:1]),
        ]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, ids, segments = Algebra(build), required(inputs, 0), present(inputs, 1)

        def real(k: int, rows: Value | None = None) -> Value:
            """Table number k (of words, positions, segments, gamma, beta) dequantised, or its rows."""
            table = required(inputs, 2 + k)
            picked = table if rows is None else rows
            check_positive(required(inputs, 8 + k))
            return build(DequantizeLinear(), picked, required(inputs, 8 + k), present(inputs, 13 + k))

        total = real(0, _embedded(a, ids, required(inputs, 2)))
        total = a.add(total, real(1, _positions(a, None, ids.shape[1], required(inputs, 3))))
        table = present(inputs, 4)
        if segments is not None and table is not None:
            total = a.add(total, real(2, _embedded(a, segments, table)))
        y = build.many(LayerNormalization(-1, self.epsilon), total, real(3), real(4))[0]
        return [y, _words_before_padding(a, present(inputs, 7), ids.shape[0])]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(3)
        ids, segments = (
            np.asarray([[1, 4, 0], [2, 2, 3]], np.int32),
            np.asarray([[0, 1, 1], [0, 0, 1]], np.int32),
        )
        tables = [np.asarray(rng.integers(0, 256, s), np.uint8) for s in ((5, 4), (6, 4), (2, 4), (4,), (4,))]
        scales = [np.asarray(v, np.float32) for v in (0.02, 0.01, 0.03, 0.01, 0.02)]
        zeros = [np.asarray(v, np.uint8) for v in (120, 130, 99, 3, 128)]
        mask = np.asarray([[1, 1, 0], [1, 1, 1]], np.int32)
        weights = frozenset(range(2, 18)) - {7}
        return [Sample((ids, segments, *tables, mask, *scales, *zeros), {}, weights, 2)]
