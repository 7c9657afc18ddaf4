"""Normalisation of rows of bytes: in integers, but for one root and one quotient of floats for each row.

With n elements x in a row, S their sum and Q that of their squares, what they are normalised to is

    (x - S / n) / sqrt((Q - S^2 / n) / n + epsilon)

epsilon in squares of the bytes' unit. No result is larger than sqrt(n), and no factor of x than n / sqrt(n -
1): what `POINT` bits leave of that is behind the point. A product of x and its factor may leave 32 bits; what
is left when the mean's is taken from it does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.elementwise import op
from aot_model.ops.registry import Build, broadcast, broadcast_index, operator, required, shared_shape
from aot_model.ops.requantise import saturated, widened

POINT = 30
MOST = 1 << 14
"""Elements of a row: the factor of those that differ most has 14 bits then."""
WORD = 1 << 31
LARGEST_EPSILON = 2.0**60
MEAN_BITS = 23
"""Behind the point of a row's mean."""


def _bytes(inputs: Inputs) -> TensorType:
    x = required(inputs)
    if x.dtype not in (DType.INT8, DType.UINT8):
        raise OperatorError(f"takes bytes, not {x.type}")
    return x.type


@operator("RowMoments", domain="aot", stores_itself=True)
class RowMoments(Operator):
    """The sums of rows of bytes, and of their squares, as int32. A row is what the axes from `axis` on hold;
    they stay with extent 1.
    """

    axis: int

    def _count(self, x: TensorType) -> int:
        return math.prod(x.shape[self.axis :])

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = _bytes(inputs)
        if not 0 < self.axis < x.rank or not 0 < self._count(x) <= MOST:
            raise OperatorError(f"no rows of at most {MOST} elements: {x} from axis {self.axis} on")
        shape = (*x.shape[: self.axis], *(1 for _ in x.shape[self.axis :]))
        return [TensorType(DType.INT32, shape)] * 2

    def lower(self, site: Site) -> None:
        x, (total, squares) = site.input(0), site.node.outputs
        count = self._count(x.type)
        text = f"""\
    for (int32_t i = 0; i < {total.type.elements}; i++) {{
        aot_model_moments_{x.dtype.c_type}(x + i * {count}, {count}, sums + i, squares + i);
    }}"""
        arguments = [Argument("x", x), written("sums", total), written("squares", squares)]
        site.call("row_moments", text, arguments, includes=["aot_model/moments.h"])

    def fold(self, arrays: Arrays) -> list[np.ndarray]:
        return self.reference(arrays)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0]).astype(np.int32)
        axes = tuple(range(self.axis, x.ndim))
        return [x.sum(axes, keepdims=True, dtype=np.int32), (x * x).sum(axes, keepdims=True, dtype=np.int32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(11)
        shapes = ((3, 1), 1), ((2, 3, 7), 1), ((1, 5, 16), 2), ((4, 4, 35), 2)
        made = [
            Sample((rng.integers(-128, 128, shape).astype(kind),), {"axis": axis}, outputs=2)
            for shape, axis in shapes
            for kind in (np.int8, np.uint8)
        ]
        return [*made, Sample((np.full((1, MOST), 255, np.uint8),), {"axis": 1}, outputs=2)]


@operator("RowFactor", domain="aot", elementwise=True)
class RowFactor(Operator):
    """What `count` elements of a row are multiplied by, from their sum and that of their squares: 2^bits /
    sqrt(variance + epsilon), or 0 where all elements are the same.

    centred: whether they are taken from their mean, or from `zero`.
    """

    count: int
    bits: int
    epsilon: float
    centred: bool = True
    zero: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT32, shared_shape(inputs, 2))]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.random.default_rng(13).integers(-128, 128, (6, 9))
        x[0], x[1, :8] = 77, 3
        total, squares = (v.astype(np.int32) for v in (x.sum(1), (x * x).sum(1)))
        given = {"count": 9, "bits": 28, "epsilon": 0.25}
        # in floats: a step for each of their bits that the factor does not have
        return [
            Sample((total, squares), given, tolerance=2**6),
            Sample((total, squares), {**given, "centred": False, "zero": -5}, tolerance=2**6),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        total, squares = (np.asarray(v, np.float64) for v in arrays)
        mean = total / self.count if self.centred else np.float64(self.zero)
        spread = squares / self.count - 2 * mean * total / self.count + mean**2
        factor = np.rint(2.0**self.bits / np.sqrt(spread + self.epsilon))
        return [np.where(spread < 1e-9, 0, factor).astype(np.int32)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        # count^2 times the variance: what leaves 32 bits on the way does not show where it fits
        most = self.count**2 * ((1 << 14) if self.centred else (1 << 16))
        wide, real = DType.INT32 if most < WORD else DType.INT64, DType.FLOAT32
        total, squares = (cast(at(v, broadcast_index(v.shape, index)), wide) for v in inputs if v is not None)
        n = const(self.count, wide)
        if self.centred:
            spread = call("sub", call("mul", n, squares), call("mul", total, total))
        else:
            less = call("mul", const(2 * self.zero, wide), total)
            squares = call("add", call("sub", squares, less), const(self.count * self.zero**2, wide))
            spread = call("mul", n, squares)
        square = call("add", cast(spread, real), const(float(self.epsilon * self.count**2), real))
        factor = call("div", const(float(self.count << self.bits), real), call("sqrt", square))
        rounded = cast(call("add", factor, const(0.5, real)), DType.INT32)
        same = call("eq", spread, const(0, wide))
        return call("select", same, const(0), rounded, dtype=DType.INT32)


@operator("RowStart", domain="aot", elementwise=True)
class RowStart(Operator):
    """The mean of `count` elements, whose sum comes first, times their factor, negative: to 2^-22 of the
    factor, without what leaves 32 bits.
    """

    count: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.INT32, shared_shape(inputs, 2))]

    def _less(self) -> tuple[int, int]:
        """A multiplier of 31 bits at most, and a shift, that make the mean of a sum, negative."""
        shift = 30 - MEAN_BITS + (self.count - 1).bit_length()
        return -round(Fraction(1 << MEAN_BITS + shift, self.count)), shift

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        total, factor = (
            cast(at(v, broadcast_index(v.shape, index)), DType.INT64) for v in (inputs[0], inputs[1]) if v
        )
        multiplier, shift = (const(v, DType.INT64) for v in self._less())
        mean = call("sar", call("mul", total, multiplier), shift)
        return cast(call("sar", call("mul", mean, factor), const(MEAN_BITS, DType.INT64)), DType.INT32)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(total: int, factor: int) -> int:
            multiplier, shift = self._less()
            return exact.modulo((total * multiplier // 2**shift) * factor // 2**MEAN_BITS)

        return exact.by_element(one, np.dtype(np.int32), *arrays)

    @classmethod
    def samples(cls) -> list[Sample]:
        total = np.asarray([[-128 * 7], [-1], [0], [3], [255 * 7]], np.int32)
        return [Sample((total, np.asarray([[1 << 27], [98765], [0], [1], [5]], np.int32)), {"count": 7})]


@operator("NormalisedRows", domain="aot", elementwise=True)
class NormalisedRows(Operator):
    """(offset + ((start + x * factor) * gain >> 32)) >> shift, within low and high: of bytes, with start and
    factor of their row, gain and offset of their channel. The product may leave 32 bits, but not the sum.
    """

    low: int
    high: int
    to: DType
    shift: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = _bytes(inputs)
        shapes = [required(inputs, k).shape for k in range(1, 5)]
        if broadcast(x.shape, *shapes) != x.shape:
            raise OperatorError(f"{shapes} do not fit {x}")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, factor, start, gain, offset = (
            at(v, broadcast_index(v.shape, index)) for v in inputs if v is not None
        )
        number = call("add", call("mul", widened(x, 0), factor), start)
        total = call("add_high", offset, number, gain)
        return saturated(call("sar", total, const(self.shift)), 0, self.low, self.high, self.to)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, factor: int, start: int, gain: int, offset: int) -> int:
            total = offset + exact.modulo(start + x * factor) * gain // 2**32
            return exact.clamped(total // 2**self.shift, self.low, self.high)

        return exact.by_element(one, self.to.numpy, *arrays)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(12)
        x = rng.integers(-128, 128, (3, 2, 5)).astype(np.int8)
        factor = np.asarray([1 << 27, 1 << 23, 0], np.int32).reshape(3, 1, 1)
        start = np.asarray([-100 << 27, 5 << 23, 0], np.int64).astype(np.int32).reshape(3, 1, 1)
        x[0] = rng.integers(96, 105, (2, 5))
        gain, offset = rng.integers(-(2**24), 2**24, 5), rng.integers(-(2**22), 2**22, 5)
        columns = gain.astype(np.int32), offset.astype(np.int32)
        rows = (gain[:2, None].astype(np.int32), offset[:2, None].astype(np.int32))
        to8 = {"low": -128, "high": 127, "to": DType.INT8, "shift": 14}
        to16 = {"low": 0, "high": 60000, "to": DType.UINT16, "shift": 9}
        return [
            Sample((x, factor, start, *columns), to8),
            Sample((x.view(np.uint8) & 127, factor // 64, start * 0, *rows), to16),
        ]


@dataclass(frozen=True)
class Normalisation:
    """Of rows of bytes, which the axes from `axis` on hold. epsilon: in squares of the bytes' unit. centred:
    whether their mean is taken from them, or `zero`. gain, offset: numbers, for each channel.
    """

    axis: int
    epsilon: float
    centred: bool
    zero: int
    gain: np.ndarray
    offset: np.ndarray

    def build(self, build: Build, x: Value, low: int, high: int, to: DType) -> Value | None:
        """The normalised numbers times `gain`, plus `offset`, to 2^-6 of a unit, rounded, within the limits;
        None where 32 bits have no room for it.
        """
        count = math.prod(x.shape[self.axis :])
        if not 1 < count <= MOST or not 0 < self.epsilon < LARGEST_EPSILON:
            return None
        largest = math.ceil(math.log2(count / math.sqrt(count - 1)))
        columns = self._in_words(POINT - largest, 1 << largest)
        if columns is None:
            return None
        shift, gain, offset = columns
        total, squares = build.many(RowMoments(self.axis), x)
        root = RowFactor(count, POINT - largest, self.epsilon, self.centred, self.zero)
        factor = build(root, total, squares)
        if self.centred:
            start = build(RowStart(count), total, factor)
        else:
            start = build(op("Mul"), factor, build.constant(-self.zero, DType.INT32))
        numbers = (build.constant(v, DType.INT32) for v in (gain, offset))
        return build(NormalisedRows(low, high, to, shift), x, factor, start, *numbers)

    def _in_words(self, bits: int, largest: int) -> tuple[int, np.ndarray, np.ndarray] | None:
        """Shift, gain and offset as NormalisedRows has them, for numbers of `bits` behind the point, which
        are not beyond `largest`.
        """
        most = float(np.abs(self.gain).max(initial=0))
        if not np.isfinite(self.gain).all() or not np.isfinite(self.offset).all():
            return None
        if most * 2.0 ** (8 - bits) > 2.0**-6:  # half a step of the factor, times a byte
            return None
        for shift in range(20, 8, -1):
            gain = np.rint(self.gain * 2.0 ** (shift + 32 - bits))
            offset = np.rint((self.offset + 0.5) * 2.0**shift)
            results = most * largest * 2.0**shift + np.abs(offset).max(initial=0) + 2
            if max(float(np.abs(gain).max(initial=0)), float(results)) < WORD:
                return shift, gain.astype(np.int32), offset.astype(np.int32)
        return None
