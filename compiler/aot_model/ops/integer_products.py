"""ONNX products of integers that are integers by definition: int32, whatever the zero points are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.channels_first import Windowed, channels_last
from aot_model.ops.composition import present
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.quantised_linear import check_zero_point
from aot_model.ops.registry import OPERATORS, Build, counts, operator, ranked, required
from aot_model.ops.volumes import convolved, unfolded_first
from aot_model.ops.zero_points import middle, ones, row_sums

Ints = tuple[int, ...]


def _zero_point(value: Value | None) -> int | None:
    """The constant zero point of all elements; 0 when absent; None when it is something else."""
    if value is None:
        return 0
    counts(value)
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
        single = a_zero is None or a_zero.type.elements == 1
        if b.type.rank == 2 and b_zero is not None and b_zero.shape == b.shape[1:] and single:
            return [self._of_columns(build, a, b, a_zero, b_zero)]
        rows = (*[1] * (a.type.rank - 2), -1, 1) if a.type.rank > 1 else (1,)
        product = build(MatMul(), _centred(build, a, a_zero, rows), _centred(build, b, b_zero, columns))
        return [build(Cast(DType.INT32), product)]

    def _of_columns(self, build: Build, a: Value, b: Value, a_zero: Value | None, b_zero: Value) -> Value:
        """Each column of b has a zero point of its own."""
        zero = None if a_zero is None else _scalar(build, a_zero)
        less = build(op("Mul"), row_sums(build, a, zero), _beyond(build, b_zero, b.dtype, (-1,)))
        acc = build(MatMulInteger(), a, b, a_zero, build.constant(middle(b.dtype), b.dtype))
        return build(op("Sub"), acc, less)

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


def _beyond(build: Build, zero: Value, weights: DType, shape: Ints) -> Value:
    """How far zero points are from the middle of the weights' type, as int32 of a shape."""
    wide = build(op("Sub"), build(Cast(DType.INT32), zero), build.constant(middle(weights), DType.INT32))
    return build(OPERATORS["", "Reshape"](), wide, build.constant(shape, DType.INT64))


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
        for value, zero in ((x, present(inputs, 2)), (w, present(inputs, 3))):
            check_zero_point(value, zero and ranked(zero, 0, 1))
        x_zero, w_zero = _zero_point(present(inputs, 2)), _zero_point(present(inputs, 3))
        inner = self.convolution()._inner(x, w)
        zero = present(inputs, 2)
        computed = x_zero is None and zero is not None and zero.type.elements == 1
        if computed and zero is not None and w_zero is not None and w.data is not None:
            return [self._of_bytes(build, x, w, zero, w_zero)]
        each = present(inputs, 3)
        one_zero = (zero is None or zero.type.elements == 1) and w.dtype.bits == 8
        if w_zero is None and each is not None and each.shape == w.shape[:1] and one_zero and self.group == 1:
            return [self._of_channels(build, x, w, zero, each)]
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

    def _of_channels(self, build: Build, x: Value, w: Value, zero: Value | None, w_zero: Value) -> Value:
        """Each channel's weights have a zero point of their own."""
        beyond = _beyond(build, w_zero, w.dtype, (-1, *[1] * (w.type.rank - 2)))
        less = build(op("Mul"), build(self, x, ones(build, w), zero), beyond)
        acc = build(self, x, w, zero, build.constant(middle(w.dtype), w.dtype))
        return build(op("Sub"), acc, less)

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
