"""A discrete Fourier transform along any axis in float32, by the stages of kernels/fourier.py: a transform of
N complex numbers, or, of real numbers and to them, one of N / 2 where N is even.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from aot_model.c.literal import float_literal
from aot_model.c.text import CText, product, total
from aot_model.ir.types import DType
from aot_model.kernels.base import Packed, Scratch
from aot_model.kernels.fourier import Fourier, places


@dataclass(frozen=True)
class Spectrum:
    """x [outer][count][inner][parts] to y [outer][bins][inner][2], or, if `real`, [outer][bins][inner]."""

    outer: int
    inner: int
    count: int
    """Elements of x; missing ones are zeros. Of the spectrum of a real signal the first half counts."""
    parts: int
    """1: real numbers, 2: complex ones."""
    length: int
    bins: int
    inverse: bool
    scale: float
    real: bool

    @property
    def _halved(self) -> bool:
        """Whether N / 2 complex numbers stand for N reals."""
        if self.length % 2:
            return False
        if self.real:
            return self.inner == 1
        return self.parts == 1 and not self.inverse

    @property
    def _fft(self) -> Fourier:
        return Fourier(DType.FLOAT32, self.length if self._halved else 2 * self.length, self.inverse)

    @property
    def _in_place(self) -> bool:
        """Whether the transform happens where the result lies."""
        return self.inner == 1 and (self._halved or (not self.real and self.bins == self.length))

    @property
    def _row(self) -> int:
        """Elements of a transform's memory."""
        return max(2 * self.bins, self.length + 2) if self._halved else 2 * self.length

    def constants(self) -> list[Packed]:
        if self._halved:
            return self._fft.constants()
        turn = (2 if self.inverse else -2) * math.pi / self.length
        units = np.array([f(turn * k) for k in range(self.length) for f in (math.cos, math.sin)], np.float32)
        order = np.asarray(places(self._fft.radices), np.uint16)
        return [Packed("places", order, 2), Packed("twiddles", units)]

    def scratch(self) -> list[Scratch]:
        sizes = (("work", 0 if self._in_place else self._row), ("terms", self._fft.terms))
        return [Scratch(name, 4 * size, 4, "float") for name, size in sizes if size]

    def body(self) -> CText:
        """Reads x, writes y; constants and scratch as above."""
        text = CText()
        last = 1 if self.real else 2
        with (
            text.loop("o", str(self.outer), needed=self.outer > 1),
            text.loop("i", str(self.inner), needed=self.inner > 1),
        ):
            for kind, name, size, parts in (
                ("const float", "in", self.count, self.parts),
                ("float", "result", self.bins, last),
            ):
                at = total(
                    "x" if name == "in" else "y",
                    product("o", size * self.inner * parts) if self.outer > 1 else "0",
                    product("i", parts) if self.inner > 1 else "0",
                )
                text.line(f"{kind} *const {name} = {at};")
            text.line(f"float *const out = {'result' if self._in_place else 'work'};")
            if self._halved and self.real:
                text.line(self._fft.put_together("in", "out"))
            else:
                self._load(text)
            text.line("\n".join(self._fft.stages("out")))
            if self._halved and not self.real:
                text.line(self._fft.taken_apart("out"))
                self._mirror(text)
            if not self._in_place:
                with text.loop("k", str(self.bins)):
                    for part in range(last):
                        text.line(f"result[k * {self.inner * last} + {part}] = out[2 * k + {part}];")
            elif self._halved and self.scale != 1:
                with text.loop("k", str(self.bins)):
                    text.line(f"out[k] *= {float_literal(self.scale, DType.FLOAT32)};")
        return text

    def helpers(self, body: str) -> tuple[str, ...]:
        return self._fft.helpers(body)

    def _load(self, text: CText) -> None:
        """Every element to its place."""
        step = self.inner * self.parts
        with text.loop("k", str(self._fft.half)):
            if self._halved:
                text.line("const int32_t p = 2 * places[k];")
                for part in range(2):
                    inside = "" if self.count >= self.length else f"p + {part} >= {self.count} ? 0.0f : "
                    text.line(f"out[2 * k + {part}] = {inside}in[(p + {part}) * {step}];")
                return
            text.line("const int32_t p = places[k];")
            scale = "" if self.scale == 1 else f" * {float_literal(self.scale, DType.FLOAT32)}"
            if self.real:  # the other half is the conjugate, backwards
                first = f"p <= {self.length // 2}"
                text.line(f"const int32_t q = {first} ? p : {self.length} - p;")
                text.line(f"out[2 * k] = in[q * {step}]{scale};")
                imaginary = f"({first} ? in[q * {step} + 1] : -in[q * {step} + 1])"
            else:
                inside = "" if self.count >= self.length else f"p >= {self.count} ? 0.0f : "
                text.line(f"out[2 * k] = {inside}in[p * {step}]{scale};")
                imaginary = f"{inside}in[p * {step} + 1]"
            value = f"{imaginary}{scale}" if self.parts == 2 else "0.0f"
            text.line(f"out[2 * k + 1] = {value};")

    def _mirror(self, text: CText) -> None:
        """The other half of the spectrum of a real signal."""
        half = self.length // 2
        if self.bins <= half + 1:
            return
        with text.block(f"for (int32_t k = {half + 1}; k < {self.bins}; k++)"):
            text.line(f"out[2 * k] = out[2 * ({self.length} - k)];")
            text.line(f"out[2 * k + 1] = -out[2 * ({self.length} - k) + 1];")
