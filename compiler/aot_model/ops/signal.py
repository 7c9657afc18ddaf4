"""Fourier transforms and what goes with them: DFT, STFT, MelWeightMatrix.

A transform is a sum over a table of cosines and sines, whose argument is reduced modulo the length, so that
the table has one period. Source: ONNX operator specification.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aot_model.ir.expr import Expr, Index, call, const, fresh, reduce, select
from aot_model.ir.index import add, less, mod, mul
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.composition import present
from aot_model.ops.elementwise import op
from aot_model.ops.fast_fourier import LONGEST, SHORTEST, FastFourier
from aot_model.ops.registry import (
    Build,
    bounded,
    normal_axis,
    only,
    operator,
    ranked,
    required,
    static,
    whole,
)
from aot_model.ops.views import ReshapeTo


def _draw(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(19).uniform(-1, 1, shape), dtype=np.float32)


@operator("Fourier", domain="aot", reducing=True, rereads=True)
class Fourier(Operator):
    """y[…, k, …, (re, im)] = scale * sum over n of x[…, n, …] e^(sign * 2 pi i n k / length), along an axis.

    Inputs: x with a last axis of 1 (real) or 2 (complex), cosines and sines of one period.
    """

    axis: int = 1
    bins: int = 1
    sign: int = -1
    scale: float = 1.0
    real: bool = False
    """Of the first half of a spectrum, whatever is behind it, the real signal: the last axis of y is 1."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, cosines, sines = (required(inputs, k) for k in range(3))
        if ranked(cosines, 1).type != sines.type or cosines.dtype is not x.dtype:
            raise OperatorError(f"tables {cosines.type} and {sines.type} do not fit {x.type}")
        if not 0 <= self.axis < x.type.rank - 1 or x.shape[-1] not in (1, 2):
            raise OperatorError(f"{x.type} has no axis {self.axis} before one of 1 (real) or 2 (complex)")
        if self.real and x.shape[self.axis] <= cosines.shape[0] // 2:
            raise OperatorError(f"{x.type} is no half of a spectrum of {cosines.shape[0]} bins")
        shape = (*x.shape[: self.axis], self.bins, *x.shape[self.axis + 1 : -1], 1 if self.real else 2)
        return [TensorType(x.dtype, shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, cosines, sines = (required(inputs, k) for k in range(3))
        length = cosines.shape[0]
        used = length if self.real else min(x.shape[self.axis], length)
        n = fresh("n", used)
        phase = mod(call("mul", n, index[self.axis]) if used > 1 and self.bins > 1 else const(0), length)
        c, s = at(cosines, (phase,)), at(sines, (phase,))

        def part(number: int) -> Expr:
            if not self.real:
                return at(x, (*index[: self.axis], n, *index[self.axis + 1 : -1], const(number)))
            # The other half of the spectrum is the conjugate, backwards.
            first = less(n, length // 2 + 1)
            place = select(first, n, add(mul(n, -1), length))
            value = at(x, (*index[: self.axis], place, *index[self.axis + 1 : -1], const(number)))
            return value if number == 0 else select(first, value, call("neg", value))

        s = s if self.sign > 0 else call("neg", s)
        real, imaginary = call("mul", part(0), c), call("mul", part(0), s)
        if x.shape[-1] == 2:
            real = call("sub", real, call("mul", part(1), s))
            imaginary = call("add", imaginary, call("mul", part(1), c))
        if self.real:
            total = reduce("add", (n,), real)
        else:
            first_part = call("eq", index[-1], const(0), dtype=DType.BOOL)
            total = reduce("add", (n,), select(first_part, real, imaginary))
        return total if self.scale == 1 else call("mul", total, const(self.scale, x.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        angle = 2 * np.pi * np.arange(8) / 8
        tables = tuple(np.asarray(f(angle), np.float32) for f in (np.cos, np.sin))
        kinds: list[tuple[tuple[int, ...], dict[str, Any]]] = [
            ((2, 8, 2), {"bins": 8}),
            ((2, 8, 1), {"bins": 5}),
            ((2, 6, 2), {"bins": 8, "sign": 1, "scale": 0.125}),
            ((1, 11, 2), {"bins": 8}),
            ((8, 3, 2), {"axis": 0, "bins": 8}),
        ]
        return [Sample((_draw(*s), *tables), c, frozenset({1, 2})) for s, c in kinds] + [
            Sample(
                (_draw(2, count, 2), *tables),
                {"bins": 8, "sign": 1, "scale": 0.125, "real": True},
                frozenset({1, 2}),
            )
            for count in (5, 7)
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, length = np.asarray(arrays[0], np.float64), np.asarray(arrays[1]).size
        signal = np.moveaxis(x[..., 0] + 1j * (x[..., 1] if x.shape[-1] == 2 else 0), self.axis, -1)
        y: np.ndarray
        if self.real:
            y = np.fft.irfft(signal, length)[..., None]
        elif self.sign < 0:
            y = np.fft.fft(signal, length)[..., : self.bins, None]
        else:
            y = length * np.fft.ifft(signal, length)[..., : self.bins, None]
        parts = y if self.real else self.scale * np.concatenate([y.real, y.imag], -1)
        return [np.moveaxis(parts, -2, self.axis).astype(np.asarray(arrays[0]).dtype)]


def fourier(
    build: Build, x: Value, axis: int, length: int, bins: int, inverse: bool, real: bool = False
) -> Value:
    """The transform of a value: a fast one where there is one, else one with its tables."""
    if x.dtype is DType.FLOAT32 and SHORTEST <= length <= LONGEST:
        return build(FastFourier(axis, length, bins, inverse, real), x)
    bounded(2 * length)
    angle = 2 * np.pi * np.arange(length) / max(length, 1)
    tables = [build.constant(f(angle), x.dtype) for f in (np.cos, np.sin)]
    inner = Fourier(axis, bins, 1 if inverse else -1, 1.0 / length if inverse else 1.0, real)
    return build(inner, x, *tables)


@operator("DFT")
class DFT(Operator):
    """Discrete Fourier transform along an axis; inverse; of real signals half the spectrum."""

    inverse: int = 0
    onesided: int = 0

    def _plan(self, inputs: Inputs) -> tuple[int, int, int, bool]:
        """(axis, length, bins, real result)."""
        x = required(inputs)
        given, axis_data = static(inputs, 1, "the length"), static(inputs, 2, "the axis")
        if x.type.rank < 2 or x.shape[-1] not in (1, 2):
            raise OperatorError(f"takes a last axis of 1 (real) or 2 (complex), not {x.type}")
        axis = normal_axis(-2 if axis_data is None else whole(axis_data, "the axis"), x.type.rank)
        if axis == x.type.rank - 1:
            raise OperatorError("the last axis holds real and imaginary parts")
        real = bool(self.inverse and self.onesided)
        length = 2 * (x.shape[axis] - 1) if real else x.shape[axis]
        length = length if given is None else whole(given, "the length")
        if length < 1:
            raise OperatorError(f"a transform of {length} elements")
        return axis, length, length if not self.onesided or real else length // 2 + 1, real

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        axis, _, bins, real = self._plan(inputs)
        return [TensorType(x.dtype, (*x.shape[:axis], bins, *x.shape[axis + 1 : -1], 1 if real else 2))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        axis, length, bins, real = self._plan(inputs)
        return [fourier(build, required(inputs), axis, length, bins, bool(self.inverse), real)]

    @classmethod
    def samples(cls) -> list[Sample]:
        none = frozenset({1, 2})
        axis = np.asarray(1, np.int64)
        return [
            Sample((_draw(2, 8, 1), None, axis), {}, none),
            Sample((_draw(2, 6, 3, 2), None, axis), {}, none),
            Sample((_draw(2, 4, 3, 2).astype(np.float64), None, axis - 4), {"inverse": 1}, none),
            Sample((_draw(2, 8, 1), None, axis), {"onesided": 1}, none),
            Sample((_draw(1, 6, 1), np.asarray(4, np.int64), axis), {}, none),
            Sample((_draw(3, 4, 5, 2), None, axis), {"inverse": 1, "onesided": 1}, none),
        ]


@operator("Frames", domain="aot", movement=True)
class Frames(Operator):
    """Overlapping pieces of a signal: y[b, f, n, …] = x[b, f * step + n, …]."""

    length: int
    step: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = ranked(required(inputs), 2, 3)
        return [
            TensorType(
                x.dtype, (x.shape[0], (x.shape[1] - self.length) // self.step + 1, self.length, *x.shape[2:])
            )
        ]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        return at(required(inputs), (index[0], add(mul(index[1], self.step), index[2]), *index[3:]))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((_draw(2, 11),), {"length": 4, "step": 3}),
            Sample((_draw(1, 9, 2),), {"length": 3, "step": 1}),
            Sample((_draw(1, 5, 2),), {"length": 5, "step": 2}),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        begins = range(0, x.shape[1] - self.length + 1, self.step)
        return [np.stack([x[:, b : b + self.length] for b in begins], 1)]


@operator("STFT")
class STFT(Operator):
    """Transforms of windowed frames: signal, frame_step, window, frame_length."""

    onesided: int = 1

    def _plan(self, inputs: Inputs) -> tuple[int, int]:
        """(step, length)."""
        step, length = static(inputs, 1, "the frame step"), static(inputs, 3, "the frame length")
        window = present(inputs, 2)
        if step is None or (length is None and window is None):
            raise OperatorError("the frame step, or both the frame length and the window, are missing")
        size = window.shape[0] if window is not None and window.shape else 0
        size = size if length is None else whole(length, "the frame length")
        x, every = ranked(required(inputs), 2, 3), whole(step, "the frame step")
        if every < 1 or not 1 <= size <= x.shape[1] or x.shape[2:] not in ((), (1,), (2,)):
            raise OperatorError(f"frames of {size} every {every} do not fit {x.type}")
        return every, size

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        step, length = self._plan(inputs)
        frames = (x.shape[1] - length) // step + 1
        return [TensorType(x.dtype, (x.shape[0], frames, length // 2 + 1 if self.onesided else length, 2))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, window = required(inputs), present(inputs, 2)
        step, length = self._plan(inputs)
        x = x if x.type.rank == 3 else build(ReshapeTo((*x.shape, 1)), x)
        frames = build(Frames(length, step), x)
        if window is not None:
            frames = build(op("Mul"), frames, build(ReshapeTo((length, 1)), window))
        return [fourier(build, frames, 2, length, length // 2 + 1 if self.onesided else length, False)]

    @classmethod
    def samples(cls) -> list[Sample]:
        window = np.hanning(8).astype(np.float32)
        plain = _draw(1, 32, 1), np.asarray(4, np.int64), None, np.asarray(8, np.int64)
        given = plain[0], plain[1], window, plain[3]
        windowed = [Sample(given, {"onesided": o}, frozenset({1, 2, 3})) for o in (0, 1)]
        apart = _draw(2, 20), np.asarray(3, np.int64), None, np.asarray(6, np.int64)
        return [*windowed, Sample(apart, {}, frozenset({1, 3}))]


@operator("MelWeightMatrix")
class MelWeightMatrix(Operator):
    """Triangular filters from frequency bins to mel bands; all inputs are constants."""

    output_datatype: DType = DType.FLOAT32

    def _matrix(self, inputs: Inputs) -> np.ndarray:
        names = ("number of bands", "DFT length", "sample rate", "lower edge", "upper edge")
        given = [static(inputs, k, f"the {name}") for k, name in enumerate(names)]
        if any(v is None for v in given):
            raise OperatorError("an input is missing")
        count, length = (whole(v, f"the {name}") for v, name in zip(given[:2], names, strict=False))
        rate, low, high = (float(only(v, f"the {n}")) for v, n in zip(given[2:], names[2:], strict=True))
        if not (0 < rate < np.inf and 0 <= low <= high <= rate):
            raise OperatorError(
                f"its bands lie between {low:g} and {high:g} Hz, not between 0 and the rate, {rate:g} Hz"
            )
        bins = length // 2 + 1
        if min(count, length) < 0:
            raise OperatorError(f"{count} bands of a transform of {length} samples")
        bounded(count * bins)
        lowest, highest = (2595 * np.log10(1 + edge / 700) for edge in (low, high))
        # As the reference: the top edge is not part of the division.
        mel = np.arange(count + 2) * ((highest - lowest) / (count + 2)) + lowest
        place = np.floor(((length + 1) * (700 * (10 ** (mel / 2595) - 1))) / rate).astype(int)
        if place[-1] >= bins:
            raise OperatorError(f"its bands reach {high:g} Hz, beyond the last of {bins} frequencies")
        matrix = np.zeros((bins, count))
        for k in range(count):
            a, b, c = place[k], place[k + 1], place[k + 2]
            if b == a:
                matrix[b, k] = 1
            else:
                for j in range(a, b + 1):
                    matrix[j, k] = (j - a) / (b - a)
            if c > b:
                for j in range(b, c):
                    matrix[j, k] = (c - j) / (c - b)
        return matrix.astype(self.output_datatype.numpy)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.output_datatype, self._matrix(inputs).shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build.constant(self._matrix(inputs))]

    @classmethod
    def samples(cls) -> list[Sample]:
        sizes = ((8, 16, 8192, 0.0, 4096.0), (40, 512, 16000, 20.0, 8000.0))
        types = (np.int64, np.int64, np.int64, np.float32, np.float32)
        return [
            Sample(
                tuple(np.asarray(v, t) for v, t in zip(values, types, strict=True)), {}, frozenset(range(5))
            )
            for values in sizes
        ]
