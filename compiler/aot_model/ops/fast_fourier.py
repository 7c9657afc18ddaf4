"""Discrete Fourier transforms of float32 along any axis, of any length, in n log n steps."""

from __future__ import annotations

from math import prod

import numpy as np

from aot_model.c.text import block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.float32.spectrum import Spectrum
from aot_model.kernels.fourier import MAX_LENGTH
from aot_model.kernels.site import Site
from aot_model.ops.products import draw
from aot_model.ops.registry import operator, required

SHORTEST, LONGEST = 4, MAX_LENGTH // 2


@operator("FastFourier", domain="aot", stores_itself=True)
class FastFourier(Operator):
    """y[…, k, …, (re, im)] = sum over n of x[…, n, …] e^(-2 pi i n k / length) along an axis; the inverse has
    the other sign and is divided by the length. The last axis of x is 1 (real) or 2 (complex).

    Of a shorter axis the rest is zeros.
    """

    axis: int = 1
    length: int = 4
    bins: int = 4
    """The first so many of the result: all, or length / 2 + 1."""
    inverse: bool = False
    real: bool = False
    """x is complex, the spectrum of a real signal, whose first half counts; the last axis of y is 1."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs).type
        if x.dtype is not DType.FLOAT32 or not SHORTEST <= self.length <= LONGEST:
            raise OperatorError(f"a fast transform of length {self.length} of {x}")
        if not 0 <= self.axis < x.rank - 1 or x.shape[-1] not in (1, 2) or (self.real and x.shape[-1] == 1):
            raise OperatorError(f"{x} has no axis {self.axis} before one of 1 (real) or 2 (complex)")
        if self.bins != self.length and (self.real or self.bins != self.length // 2 + 1):
            raise OperatorError(f"{self.bins} bins of a transform of length {self.length}")
        if self.real and x.shape[self.axis] <= self.length // 2:
            raise OperatorError(f"{x} is no half of a spectrum of {self.length} bins")
        last = 1 if self.real else 2
        return [TensorType(x.dtype, (*x.shape[: self.axis], self.bins, *x.shape[self.axis + 1 : -1], last))]

    def lower(self, site: Site) -> None:
        x = site.input(0)
        plan = Spectrum(
            prod(x.shape[: self.axis]),
            prod(x.shape[self.axis + 1 : -1]),
            x.shape[self.axis],
            x.shape[-1],
            self.length,
            self.bins,
            self.inverse,
            1.0 / self.length if self.inverse else 1.0,
            self.real,
        )
        body = plan.body()
        arguments = [
            Argument("x", x),
            *(Argument(c.name, c) for c in plan.constants()),
            *(Argument(c.name, c) for c in plan.scratch()),
            written("y", site.node.outputs[0]),
        ]
        site.call(
            "fourier",
            block(body),
            arguments,
            helpers=plan.helpers(str(body)),
            note=f"transform of {self.length} numbers",
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0], np.float64)
        signal = np.moveaxis(x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0), self.axis, -1)
        if self.real:
            y = np.fft.irfft(signal[..., : self.length // 2 + 1], self.length)[..., None]
        else:
            found = (np.fft.ifft if self.inverse else np.fft.fft)(signal, self.length)[..., : self.bins]
            y = np.stack([found.real, found.imag], -1)
        return [np.moveaxis(y, -2, self.axis).astype(np.float32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        f = np.float32
        kinds: list[tuple[tuple[int, ...], dict[str, object]]] = [
            ((2, 16, 1), {"length": 16, "bins": 9}),
            ((1, 12, 1), {"length": 12, "bins": 12}),
            ((1, 15, 1), {"length": 15, "bins": 8}),
            ((2, 40, 1), {"length": 30, "bins": 30}),
            ((2, 11, 1), {"length": 14, "bins": 8}),
            ((3, 62, 1), {"length": 62, "bins": 32}),
            ((1, 49, 1), {"length": 49, "bins": 49}),
            ((2, 4, 1), {"length": 4, "bins": 3}),
            ((2, 16, 2), {"length": 16, "bins": 16}),
            ((2, 20, 2), {"length": 20, "bins": 20, "inverse": True}),
            ((1, 9, 2), {"length": 12, "bins": 7}),
            ((1, 13, 2), {"length": 10, "bins": 10, "inverse": True}),
            ((1, 14, 1), {"length": 14, "bins": 14, "inverse": True}),
            ((12, 3, 2), {"axis": 0, "length": 12, "bins": 12}),
            ((2, 12, 3, 1), {"length": 12, "bins": 7}),
            ((8, 3, 1), {"axis": 0, "length": 8, "bins": 8}),
            ((2, 9, 2), {"length": 16, "bins": 16, "inverse": True, "real": True}),
            ((1, 8, 2), {"length": 15, "bins": 15, "inverse": True, "real": True}),
            ((7, 2, 2), {"axis": 0, "length": 12, "bins": 12, "inverse": True, "real": True}),
            ((2, 7, 2), {"length": 8, "bins": 8, "inverse": True, "real": True}),
            ((1, 10, 3, 2), {"length": 15, "bins": 15, "inverse": True, "real": True}),
        ]
        found = [Sample((draw(f, *shape),), given, tolerance=2e-5) for shape, given in kinds]
        whole = np.stack([(y := np.fft.fft(draw(f, 1, 10), axis=-1)).real, y.imag], -1).astype(f)
        given = {"length": 10, "bins": 10, "inverse": True, "real": True}
        return [*found, Sample((whole,), given, tolerance=2e-5)]
