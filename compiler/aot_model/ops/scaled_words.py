"""Sums and products of quantised tensors of up to 16 bits, each rounded once: a term takes one multiplication
of a word by a half word.

What is cut off behind the fraction is less than 2^-7 of a unit: it shows only where a result lies that near
to the middle between two integers. Results of 8 bits, and others that are often exactly in the middle, have
forms of their own (quantised.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, const
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.registry import broadcast, broadcast_index, operator, required
from aot_model.ops.requantise import saturated, widened

WORD = 1 << 31
"""What terms and their sums stay below in size."""
FRACTIONS = range(16, 8, -1)
"""Bits behind the point that results are computed with, the best first."""


def _to_half_words(dtype: DType) -> tuple[int, int]:
    """What is taken from integers, and what they are multiplied by, so that they are signed half words."""
    return int(dtype.limits[0]) + (1 << dtype.bits - 1), 1 << 16 - dtype.bits


@dataclass(frozen=True)
class Operand:
    """Integers that stand for numbers, and the zero point."""

    dtype: DType
    zero: int

    @property
    def times(self) -> int:
        """How many steps of half words one of the integers is."""
        return _to_half_words(self.dtype)[1]

    @property
    def half_word(self) -> int:
        """The zero point as half words have it."""
        return (self.zero - _to_half_words(self.dtype)[0]) * self.times

    @property
    def largest(self) -> int:
        """A bound of the size of half words less the zero point."""
        low, high = (int(v) for v in self.dtype.limits)
        return max(high - self.zero, self.zero - low) * self.times


def _pair(inputs: Inputs) -> tuple[Value, Value]:
    a, b = required(inputs, 0), required(inputs, 1)
    if any(not v.dtype.is_integer or v.dtype.storage or v.dtype.bits > 16 for v in (a, b)):
        raise OperatorError(f"no tensors of up to 16 bits: {a.type} and {b.type}")
    return a, b


def _element(at: At, value: Value, index: Index) -> Expr:
    less, times = _to_half_words(value.dtype)
    x = widened(at(value, broadcast_index(value.shape, index)), less)
    return call("mul", x, const(times)) if times > 1 else x


def _half_words(arrays: Arrays) -> list[np.ndarray]:
    kinds = {"int8": (0, 256), "uint8": (128, 256), "int16": (0, 1), "uint16": (32768, 1)}
    given = [(np.asarray(x), *kinds[np.asarray(x).dtype.name]) for x in arrays]
    return [(x.astype(np.int64) - less) * times for x, less, times in given]


def _samples(signed: Operator | None, mixed: Operator | None) -> list[Sample]:
    """Of two of 16 bits, and of 8 and 16 without a sign."""
    assert signed is not None and mixed is not None
    rng = np.random.default_rng(19)
    a, b = rng.integers(-32768, 32768, (2, 4, 6)).astype(np.int16)
    a[0, :4], b[0, :4] = (-32768, -32768, 32767, 32767), (-32768, 32767, -32768, 32767)
    given, other = (vars(x) for x in (signed, mixed))
    return [
        Sample((a, b), given),
        Sample((a, b[:, :1]), given),
        Sample((b.astype(np.int8), a.view(np.uint16)), other),
    ]


@dataclass(frozen=True)
class _OfHalfWords(Operator):
    """The result's range and type, and the bits behind the point that it is computed with."""

    low: int
    high: int
    to: DType
    shift: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = _pair(inputs)
        return [TensorType(self.to, broadcast(a.shape, b.shape))]


@operator("ScaledSum", domain="aot", elementwise=True)
class ScaledSum(_OfHalfWords):
    """(offset + (a * factor_a >> 16) + (b * factor_b >> 16)) >> shift, within low and high, of half words
    (`_to_half_words`). No sum leaves 32 bits.
    """

    factor_a: int
    factor_b: int
    offset: int

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        total: Expr = const(self.offset)
        for value, factor in zip(_pair(inputs), (self.factor_a, self.factor_b), strict=True):
            total = call("add_scaled", total, const(factor), _element(at, value, index))
        return saturated(call("sar", total, const(self.shift)), 0, self.low, self.high, self.to)

    @classmethod
    def samples(cls) -> list[Sample]:
        signed = Operand(DType.INT16, -525), Operand(DType.INT16, 376), 0.6609, 0.3347, 119
        mixed = Operand(DType.INT8, -5), Operand(DType.UINT16, 30000), 37.0, -0.71, 40000
        return _samples(
            scaled_sum(*signed, -32768, 32767, DType.INT16), scaled_sum(*mixed, 100, 65535, DType.UINT16)
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, y: int) -> int:
            total = self.offset + x * self.factor_a // 2**16 + y * self.factor_b // 2**16
            return exact.clamped(total // 2**self.shift, self.low, self.high)

        return exact.by_element(one, self.to.numpy, *_half_words(arrays))


def scaled_sum(
    a: Operand, b: Operand, by_a: float, by_b: float, zero: int, low: int, high: int, to: DType
) -> ScaledSum | None:
    """(a - its zero point) * by_a + (b - its) * by_b + zero, rounded, within low and high; None where 32 bits
    have no room for it.
    """
    for bits in FRACTIONS:
        factors = [round(Fraction(by) * 2 ** (bits + 16) / x.times) for by, x in ((by_a, a), (by_b, b))]
        zeros = [Fraction(f * x.half_word, 1 << 16) for f, x in zip(factors, (a, b), strict=True)]
        offset = round(((2 * zero + 1) << bits - 1) - sum(zeros)) + 1  # the mean of what two terms lose
        if max(map(abs, factors)) < WORD and abs(offset) + (sum(map(abs, factors)) >> 1) + 2 < WORD:
            return ScaledSum(low, high, to, bits, factors[0], factors[1], offset)
    return None


@operator("ScaledProduct", domain="aot", elementwise=True)
class ScaledProduct(_OfHalfWords):
    """(offset + ((a - zero) * 2^left * t >> 32)) >> shift, within low and high, where t = start + (b * factor
    >> 16), of half words (`_to_half_words`). Nothing leaves 32 bits.
    """

    zero: int
    left: int
    start: int
    factor: int
    offset: int

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        a, b = (_element(at, v, index) for v in _pair(inputs))
        a = call("sub", a, const(self.zero)) if self.zero else a
        a = call("mul", a, const(1 << self.left))
        total = call(
            "add_high", const(self.offset), a, call("add_scaled", const(self.start), const(self.factor), b)
        )
        return saturated(call("sar", total, const(self.shift)), 0, self.low, self.high, self.to)

    @classmethod
    def samples(cls) -> list[Sample]:
        signed = Operand(DType.INT16, -525), Operand(DType.INT16, 376), 5.2e-5, 591
        mixed = Operand(DType.INT8, -5), Operand(DType.UINT16, 30000), 0.011, 4000
        return _samples(
            scaled_product(*signed, -32768, 32767, DType.INT16),
            scaled_product(*mixed, 100, 65535, DType.UINT16),
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, y: int) -> int:
            scaled = self.start + y * self.factor // 2**16
            total = self.offset + (x - self.zero) * 2**self.left * scaled // 2**32
            return exact.clamped(total // 2**self.shift, self.low, self.high)

        return exact.by_element(one, self.to.numpy, *_half_words(arrays))


def scaled_product(
    a: Operand, b: Operand, by: float, zero: int, low: int, high: int, to: DType
) -> ScaledProduct | None:
    """(a - its zero point) * (b - its) * by + zero, rounded, within low and high, by > 0; None where 32 bits
    have no room for it.
    """
    left = 31 - a.largest.bit_length()
    by_step = Fraction(by) / (a.times * b.times)
    for bits in FRACTIONS:
        scale = by_step * 2 ** (bits + 32 - left)
        factor = round(scale * 2**16)
        start = -round(Fraction(factor * b.half_word, 1 << 16))
        offset = (2 * zero + 1) << bits - 1
        most = by_step * 2**bits * a.largest * b.largest
        terms = factor, abs(start) + (factor >> 1) + 1, scale * b.largest + 2, abs(offset) + most + 2
        if max(terms) < WORD:
            return ScaledProduct(low, high, to, bits, a.half_word, left, start, factor, offset)
    return None
