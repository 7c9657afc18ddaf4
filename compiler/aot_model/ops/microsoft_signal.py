"""com.microsoft: spectra of real signals, and products of complex numbers. Source: ONNX Runtime's contrib
operators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, OperatorError, Sample
from aot_model.ir.values import Value
from aot_model.ops.composition import Algebra, Composition
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.registry import Build, operator, required
from aot_model.ops.signal import DFT


def _check(normalized: int, onesided: int, signal_ndim: int) -> None:
    if normalized or not onesided or signal_ndim != 1:
        raise OperatorError(
            "a transform that is normalised, of both sides, or of several axes is not supported",
            "E202",
            "export it as ONNX's DFT",
        )


@operator("Rfft", domain="com.microsoft", inputs=1)
class Rfft(Composition):
    """The first half of the spectrum of the last axis, real and imaginary parts behind it."""

    normalized: int = 0
    onesided: int = 1
    signal_ndim: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        _check(self.normalized, self.onesided, self.signal_ndim)
        a, x = Algebra(build), required(inputs)
        return [
            build(
                DFT(0, 1),
                a.reshape(x, *x.shape, 1),
                None,
                a.build.constant(np.asarray(x.type.rank - 1, np.int64)),
            )
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        y = np.fft.rfft(np.asarray(arrays[0], np.float64))
        return [np.stack([y.real, y.imag], -1).astype(np.float32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((drawn(1, 3, 16),)), Sample((drawn(2, 6),), {"onesided": 1, "normalized": 0})]


@operator("Irfft", domain="com.microsoft", inputs=1)
class Irfft(Composition):
    """The real signal of the first half of a spectrum."""

    signal_ndim: int
    normalized: int = 0
    onesided: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        _check(self.normalized, self.onesided, self.signal_ndim)
        a, x = Algebra(build), required(inputs)
        if x.type.rank < 2 or x.shape[-1] != 2:
            raise OperatorError(f"takes real and imaginary parts, not {x.type}")
        y = build(DFT(1, 1), x, None, a.build.constant(np.asarray(x.type.rank - 2, np.int64)))
        return [a.reshape(y, *y.shape[:-1])]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0], np.float64)
        return [np.fft.irfft(x[..., 0] + 1j * x[..., 1]).astype(np.float32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((x,), {"signal_ndim": 1}) for x in (drawn(1, 3, 9, 2), drawn(2, 4, 2))]


class _ComplexProduct(Composition, ABC):
    """Of numbers whose real and imaginary parts are the last axis."""

    @abstractmethod
    def product(self, a: Algebra, parts: tuple[Value, Value, Value, Value]) -> tuple[Value, Value]: ...

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, found = Algebra(build), []
        for x in (required(inputs, 0), required(inputs, 1)):
            if not x.type.rank or x.shape[-1] != 2:
                raise OperatorError(f"takes real and imaginary parts, not {x.type}")
            found += [a.cut(x, x.type.rank - 1, k, k + 1) for k in (0, 1)]
        real, imaginary = self.product(a, (found[0], found[1], found[2], found[3]))
        return [a.concat(real.type.rank - 1, real, imaginary)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, y = (np.asarray(v, np.float64)[..., 0] + 1j * np.asarray(v, np.float64)[..., 1] for v in arrays)
        z = x * (np.conj(y) if self.name.endswith("Conj") else y)
        return [np.stack([z.real, z.imag], -1).astype(np.float32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((drawn(1, 3, 4, 2), drawn(2, 3, 4, 2))), Sample((drawn(1, 3, 4, 2), drawn(2, 4, 2)))]


@operator("ComplexMul", domain="com.microsoft", inputs=2)
class ComplexMul(_ComplexProduct):
    """a * b."""

    def product(self, a: Algebra, parts: tuple[Value, Value, Value, Value]) -> tuple[Value, Value]:
        ar, ai, br, bi = parts
        return a.sub(a.mul(ar, br), a.mul(ai, bi)), a.add(a.mul(ar, bi), a.mul(ai, br))


@operator("ComplexMulConj", domain="com.microsoft", inputs=2)
class ComplexMulConj(_ComplexProduct):
    """a * conjugate of b."""

    def product(self, a: Algebra, parts: tuple[Value, Value, Value, Value]) -> tuple[Value, Value]:
        ar, ai, br, bi = parts
        return a.add(a.mul(ar, br), a.mul(ai, bi)), a.sub(a.mul(ai, br), a.mul(ar, bi))
