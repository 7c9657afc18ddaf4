"""Fourier transforms of real signals as TensorFlow Lite Micro's operators SignalRfft and SignalIrfft have
them.
"""

from __future__ import annotations

import numpy as np

from aot_model.arithmetic.exact_fourier import FixedPoint
from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Scratch
from aot_model.kernels.fourier import MAX_LENGTH, Fourier, factors
from aot_model.kernels.site import Site
from aot_model.ops.registry import operator, required


def _checked(x: TensorType, length: int) -> None:
    if x.dtype not in (DType.INT16, DType.INT32, DType.FLOAT32) or not x.shape:
        raise OperatorError(f"a transform of {x} is not supported", "E202")
    if length < 4 or length % 2 or length > MAX_LENGTH or factors(length // 2) is None:
        raise OperatorError(
            f"a transform of length {length} is not supported",
            "E202",
            f"lengths are even, from 4 to {MAX_LENGTH}, and have no prime factor above 5",
        )


@operator("RealFourier", domain="aot", stores_itself=True)
class RealFourier(Operator):
    """Half of the spectrum of the last axis: length / 2 + 1 pairs of real and imaginary parts. Zeros follow a
    shorter axis.

    Of integers the spectrum is divided by the length.
    """

    length: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs).type
        _checked(x, self.length)
        if not 1 <= x.shape[-1] <= self.length:
            raise OperatorError(f"a transform of length {self.length} of {x}")
        return [TensorType(x.dtype, (*x.shape[:-1], self.length + 2))]

    def lower(self, site: Site) -> None:
        x, fft = site.input(0), Fourier(site.input(0).dtype, self.length, False)
        count, t = x.shape[-1], x.dtype.c_type
        text = CText()
        with text.loop("row", str(x.type.elements // count)):
            text.line(
                f"const {t} *const in = x + row * {count};\n{t} *const out = y + row * {self.length + 2};"
            )
            with text.loop("i", str(fft.half)):
                text.line("const int32_t p = 2 * places[i];")
                for k in range(2):
                    known = (
                        f"(p + {k} < {count}) ? in[p + {k}] : 0" if count < self.length else (f"in[p + {k}]")
                    )
                    text.line(f"work[2 * i + {k}] = {known};")
            text.line("\n".join(fft.stages("work")))
            text.line(fft.taken_apart("work"))
        arguments = [Argument("x", x), *(Argument(c.name, c) for c in fft.constants())]
        arguments += [
            Argument("work", Scratch("work", self.length * x.dtype.size, x.dtype.size, t)),
            written("y", site.node.outputs[0]),
        ]
        site.call(
            "real_fourier",
            block(text),
            arguments,
            helpers=fft.helpers(str(text)),
            note=f"transform of {self.length} reals",
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        padded = np.concatenate(
            [x, np.zeros((*x.shape[:-1], self.length - x.shape[-1]), x.dtype)], axis=-1
        ).reshape(-1, self.length)
        if x.dtype.kind == "f":
            found = np.fft.rfft(padded.astype(np.float64))
            rows = np.stack([found.real, found.imag], axis=-1)
        else:
            fixed = FixedPoint(x.dtype.itemsize * 8, False)
            rows = np.asarray([fixed.real_spectrum(row) for row in padded.tolist()])
        return [rows.reshape(*x.shape[:-1], -1).astype(x.dtype)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(3)
        cases = [
            Sample((_noise(rng, t, 2, n),), {"length": length})
            for t, n, length in (
                ("int16", 60, 64),
                ("int16", 120, 120),
                ("int16", 7, 10),
                ("int16", 4, 4),
                ("int16", 50, 96),
                ("int32", 128, 128),
                ("int32", 30, 30),
                ("int32", 18, 18),
            )
        ]
        extremes = np.asarray(
            [
                np.full(60, -32768),
                np.full(60, 32767),
                np.where(np.arange(60) % 2, 32767, -32768),
                np.zeros(60),
            ],
            np.int16,
        )
        wide = (extremes[:, :12].astype(np.int64) << 16).astype(np.int32)
        cases += [Sample((extremes,), {"length": 60}), Sample((wide,), {"length": 12})]
        return cases + [
            Sample((_noise(rng, "float32", 2, n),), {"length": length}, tolerance=2e-5)
            for n, length in ((64, 64), (55, 60), (18, 18))
        ]


@operator("InverseRealFourier", domain="aot", stores_itself=True)
class InverseRealFourier(Operator):
    """The reals of which the last axis, length / 2 + 1 pairs, is half of the spectrum.

    The result is divided by the length, that of integers because every stage of the transform divides.
    """

    length: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs).type
        _checked(x, self.length)
        if x.shape[-1] != self.length + 2:
            raise OperatorError(f"{x} is no half of a spectrum of {self.length} reals")
        return [TensorType(x.dtype, (*x.shape[:-1], self.length))]

    def lower(self, site: Site) -> None:
        x, fft = site.input(0), Fourier(site.input(0).dtype, self.length, True)
        t = x.dtype.c_type
        text = CText()
        with text.loop("row", str(x.type.elements // (self.length + 2))):
            text.line(
                f"const {t} *const in = x + row * {self.length + 2};\n{t} *const out = y + row * "
                f"{self.length};"
            )
            text.line(fft.put_together("in", "out"))
            text.line("\n".join(fft.stages("out")))
            if x.dtype.is_float:
                with text.loop("i", str(self.length)):
                    text.line(f"out[i] /= {self.length}.0f;")
        arguments = [
            Argument("x", x),
            *(Argument(c.name, c) for c in fft.constants()),
            written("y", site.node.outputs[0]),
        ]
        site.call(
            "inverse_real_fourier",
            block(text),
            arguments,
            helpers=fft.helpers(str(text)),
            note=f"transform to {self.length} reals",
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        pairs = x.reshape(-1, self.length // 2 + 1, 2)
        if x.dtype.kind == "f":
            wide = pairs.astype(np.float64)
            rows = np.fft.irfft(wide[..., 0] + 1j * wide[..., 1], self.length)
        else:
            fixed = FixedPoint(x.dtype.itemsize * 8, True)
            rows = np.asarray([fixed.reals([(r, i) for r, i in row]) for row in pairs.tolist()])
        return [rows.reshape(*x.shape[:-1], self.length).astype(x.dtype)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(4)
        cases = [
            Sample((_noise(rng, t, 2, n + 2),), {"length": n})
            for t, n in (
                ("int16", 64),
                ("int16", 120),
                ("int16", 10),
                ("int16", 4),
                ("int32", 128),
                ("int32", 30),
                ("int32", 18),
            )
        ]
        cases.append(Sample((_noise(rng, "int16", 7, 6),), {"length": 4}))
        extremes = np.asarray(
            [
                np.full(62, -32768),
                np.full(62, 32767),
                np.where(np.arange(62) % 2, 32767, -32768),
                np.zeros(62),
            ],
            np.int16,
        )
        wide = (extremes[:, :14].astype(np.int64) << 16).astype(np.int32)
        cases += [Sample((extremes,), {"length": 60}), Sample((wide,), {"length": 12})]
        return cases + [Sample((_spectrum(rng, n),), {"length": n}, tolerance=2e-5) for n in (64, 60, 18)]


def _noise(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    if dtype == "float32":
        return np.asarray(rng.uniform(-1, 1, shape), np.float32)
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max, shape, endpoint=True), dtype)


def _spectrum(rng: np.random.Generator, length: int) -> np.ndarray:
    """Half of a spectrum of floats; its first and last numbers are real."""
    y = _noise(rng, "float32", 2, length + 2)
    y[:, [1, -1]] = 0
    return y
