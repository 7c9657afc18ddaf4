"""Fast Fourier transforms of real signals in int16, int32 and float32: N reals are N / 2 complex numbers,
transformed in stages of radix 4, 2, 3 and 5 (decimation in time), and then taken apart by one more pass.
Of floats a stage may have any other prime number as its radix.

Every stage of an integer transform divides by its radix, rounded, so that nothing has to grow; sums wrap as
the type does. Order of the stages, constants and roundings are those of kissfft 1.30 (FIXED_POINT 16 and 32),
which TensorFlow Lite Micro uses, so results are equal to its to the bit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from aot_model.ir.types import DType
from aot_model.kernels.base import Packed

RADICES = (4, 2, 3, 5)
MAX_LENGTH = 1 << 17
"""Places in the transform are 16-bit constants."""


def factors(n: int) -> list[int] | None:
    """Radices of a complex transform of n, the outermost stage first; None where a factor has no
    butterfly.
    """
    found = []
    for p in RADICES:
        while n > 1 and n % p == 0:
            found.append(p)
            n //= p
    return found if n == 1 and found else None


def primes(n: int) -> list[int]:
    """Radices of a transform of any n, the outermost stage first: those with a butterfly, then prime
    numbers.
    """
    found = []
    for p in (*RADICES, *range(7, n + 1, 2)):
        while n > 1 and n % p == 0:
            found.append(p)
            n //= p
        if n == 1:
            break
    return found


def places(radices: list[int]) -> list[int]:
    """Which input the transform takes to each place before its innermost stage."""
    order, step = [0], 1
    for p in radices:
        order = [o + j * step for o in order for j in range(p)]
        step *= p
    return order


@dataclass(frozen=True)
class Fourier:
    """The C of one transform: element type, length in reals, direction."""

    dtype: DType
    length: int
    inverse: bool

    @property
    def half(self) -> int:
        return self.length // 2

    @property
    def radices(self) -> list[int]:
        return primes(self.half)

    @property
    def terms(self) -> int:
        """Elements of scratch memory of the stages without a butterfly."""
        return max((2 * p - 2 for p in self.radices if p not in RADICES), default=0)

    @property
    def name(self) -> str:
        return self.dtype.label

    @property
    def most(self) -> int:
        """1 as a fixed-point number."""
        return self.dtype.limits[1]

    # --- constants ------------------------------------------------------------------------------------------

    def constants(self) -> list[Packed]:
        """Places; twiddle factors of the stages, and of the pass that takes the spectrum apart."""
        order = np.asarray(places(self.radices))
        if self.inverse:
            order = np.argsort(order)  # each input is stored to its place
        stages = [-2 * math.pi * i / self.half for i in range(self.half)]
        apart = [-math.pi * ((i + 1) / self.half + 0.5) for i in range(self.half // 2)]
        return [
            Packed("places", order.astype(np.uint16), 2),
            *(Packed(k, self._unit(v), self.dtype.size) for k, v in (("twiddles", stages), ("apart", apart))),
        ]

    def _unit(self, phases: list[float]) -> np.ndarray:
        turned = [-p if self.inverse else p for p in phases]
        pairs = np.asarray([f(p) for p in turned for f in (math.cos, math.sin)])
        return np.asarray(pairs if self.dtype.is_float else np.floor(0.5 + self.most * pairs)).astype(
            self.dtype.numpy
        )

    # --- text -----------------------------------------------------------------------------------------------

    def _divided(self, x: str, by: int) -> str:
        return x if self.dtype.is_float else f"fft_scaled_{self.name}({x}, {self.most // by})"

    def _complex(self, name: str, source: str, by: int) -> str:
        """Declare the two parts of a number, divided."""
        return "".join(
            f"const {self.dtype.c_type} {name}{part} = {self._divided(f'{source}[{k}]', by)};\n"
            for k, part in enumerate("ri")
        )

    def _turned(self, name: str, x: str, factor: str) -> str:
        """Declare a complex product."""
        return (
            f"const {self.dtype.c_type} {name}r = fft_real_{self.name}({x}r, {x}i, {factor}[0], "
            f"{factor}[1]);\n"
            f"const {self.dtype.c_type} {name}i = fft_imaginary_{self.name}({x}r, {x}i, {factor}[0], "
            f"{factor}[1]);\n"
        )

    def _pair(self, name: str, operation: str, a: str, b: str) -> str:
        """Declare the sum or the difference of two complex numbers."""
        return "".join(
            f"const {self.dtype.c_type} {name}{p} = {self._do(operation, f'{a}{p}', f'{b}{p}')};\n"
            for p in "ri"
        )

    def _do(self, operation: str, a: str, b: str) -> str:
        return f"fft_{operation}_{self.name}({a}, {b})"

    def _store(self, place: str, real: str, imaginary: str) -> str:
        return f"{place}[0] = {real};\n{place}[1] = {imaginary};\n"

    def _crossed(self, place: str, operation: str, a: str, b: str) -> str:
        """Store a + i b or a - i b."""
        other = {"add": "sub", "sub": "add"}
        return self._store(
            place, self._do(other[operation], f"{a}r", f"{b}i"), self._do(operation, f"{a}i", f"{b}r")
        )

    def scalar_helpers(self) -> dict[str, str]:
        """Functions for the arithmetic of one element, by name."""
        products = (("real", "(W)a * c - (W)b * d"), ("imaginary", "(W)a * d + (W)b * c"))
        if self.dtype.is_float:
            wide, bits, rounded = "float", 0, "X"
            sums = [
                ("add", "a + b"),
                ("sub", "a - b"),
                ("half_add", "(a + b) * 0.5f"),
                ("half_sub", "(a - b) * 0.5f"),
            ]
            products = (("real", "a * c - b * d"), ("imaginary", "a * d + b * c"))
        elif self.dtype is DType.INT16:  # sums are those of int, and wrap where they are stored
            wide, bits, rounded = "int32_t", 15, "(T)((X + HALF) >> BITS)"
            sums = [
                ("add", "(T)(a + b)"),
                ("sub", "(T)(a - b)"),
                ("half_add", "(T)((a + b) >> 1)"),
                ("half_sub", "(T)((a - b) >> 1)"),
            ]
        else:
            wide, bits, rounded = "int64_t", 31, "(T)((X + HALF) >> BITS)"
            plus, minus = "(T)((uint32_t)a + (uint32_t)b)", "(T)((uint32_t)a - (uint32_t)b)"
            sums = [
                ("add", plus),
                ("sub", minus),
                ("half_add", f"{plus} >> 1"),
                ("half_sub", f"{minus} >> 1"),
            ]
        made = [("T a, T b", o, x) for o, x in sums] + [
            ("T a, T b, T c, T d", o, rounded.replace("X", x)) for o, x in products
        ]
        if bits:
            made.append(("T a, T b", "scaled", rounded.replace("X", "(W)a * b")))
        texts = {
            f"fft_{o}_{self.name}": f"static inline T fft_{o}_{self.name}({signature})\n{{\n    return "
            f"{x};\n}}"
            for signature, o, x in made
        }
        words = {
            "T": self.dtype.c_type,
            "W": wide,
            "HALF": str(1 << (bits - 1)) if bits else "",
            "BITS": str(bits),
        }
        return {
            name: re.sub(r"\b(T|W|HALF|BITS)\b", lambda m: words[m.group()], text)
            for name, text in texts.items()
        }

    def _butterfly(self, p: int) -> str:
        """The statements that combine p numbers z0, z1, …, of which w1, w2, … are the twiddle factors."""
        text = "".join(self._complex(f"x{j}", f"z{j}", p) for j in range(p)) + "".join(
            self._turned(f"t{j}", f"x{j}", f"w{j}") for j in range(1, p)
        )
        if p == 2:
            return text + "".join(
                self._stored_pair(f"z{j}", o, "x0", "t1") for j, o in enumerate(("add", "sub"))
            )
        if p == 4:
            text += (
                self._pair("d", "sub", "x0", "t2")
                + self._pair("s", "add", "x0", "t2")
                + self._pair("u", "add", "t1", "t3")
                + self._pair("v", "sub", "t1", "t3")
            )
            first, last = ("add", "sub") if self.inverse else ("sub", "add")
            return (
                text
                + self._stored_pair("z0", "add", "s", "u")
                + self._crossed("z1", first, "d", "v")
                + self._stored_pair("z2", "sub", "s", "u")
                + self._crossed("z3", last, "d", "v")
            )
        if p == 3:
            text += self._pair("s", "add", "t1", "t2") + self._pair("d", "sub", "t1", "t2")
            text += "".join(
                f"const {self.dtype.c_type} m{c} = {self._do('sub', f'x0{c}', self._halved(f's{c}'))};\n"
                for c in "ri"
            )
            text += "".join(
                f"const {self.dtype.c_type} e{c} = {self._scaled(f'd{c}', 'root[1]')};\n" for c in "ri"
            )
            return (
                text
                + self._stored_pair("z0", "add", "x0", "s")
                + self._crossed("z1", "add", "m", "e")
                + self._crossed("z2", "sub", "m", "e")
            )
        text += (
            self._pair("s", "add", "t1", "t4")
            + self._pair("d", "sub", "t1", "t4")
            + self._pair("u", "add", "t2", "t3")
            + self._pair("v", "sub", "t2", "t3")
        )
        text += self._store(
            "z0", *(self._do("add", f"x0{c}", self._do("add", f"s{c}", f"u{c}")) for c in "ri")
        )
        for name, one, two in (("a", "root", "root2"), ("b", "root2", "root")):
            parts = (
                self._do(
                    "add",
                    self._do("add", f"x0{c}", self._scaled(f"s{c}", f"{one}[0]")),
                    self._scaled(f"u{c}", f"{two}[0]"),
                )
                for c in "ri"
            )
            text += "".join(
                f"const {self.dtype.c_type} {name}{c} = {x};\n" for c, x in zip("ri", parts, strict=True)
            )
        for name, operation, one, two in (("g", "add", "root", "root2"), ("h", "sub", "root2", "root")):
            parts = (
                self._do(operation, self._scaled(f"d{c}", f"{one}[1]"), self._scaled(f"v{c}", f"{two}[1]"))
                for c in "ri"
            )
            text += "".join(
                f"const {self.dtype.c_type} {name}{c} = {x};\n" for c, x in zip("ri", parts, strict=True)
            )
        for place, operation, middle, side in (
            ("z1", "add", "a", "g"),
            ("z4", "sub", "a", "g"),
            ("z2", "add", "b", "h"),
            ("z3", "sub", "b", "h"),
        ):
            text += self._crossed(place, operation, middle, side)
        return text

    def _stored_pair(self, place: str, operation: str, a: str, b: str) -> str:
        return self._store(place, *(self._do(operation, f"{a}{c}", f"{b}{c}") for c in "ri"))

    def _scaled(self, x: str, factor: str) -> str:
        return f"{x} * {factor}" if self.dtype.is_float else f"fft_scaled_{self.name}({x}, {factor})"

    def _halved(self, x: str) -> str:
        return f"{x} * 0.5f" if self.dtype.is_float else f"({self.dtype.c_type})({x} >> 1)"

    def stage_name(self, p: int) -> str:
        if p not in RADICES:
            return "fft_any_radix_float32"
        return f"fft_{'inverse_' if self.inverse and p == 4 else ''}radix{p}_{self.name}"

    def stage_helper(self, p: int) -> str:
        """A function for all butterflies of one stage."""
        if p not in RADICES:
            return _ANY_RADIX
        t = self.dtype.c_type
        lines = [f"{t} *const z0 = z + 2 * (start + k);"]
        lines += [f"{t} *const z{j} = z{j - 1} + 2 * m;" for j in range(1, p)]
        lines += [f"const {t} *const w{j} = twiddles + {2 * j} * k * step;" for j in range(1, p)]
        lines += self._butterfly(p).rstrip("\n").split("\n")
        roots = {3: ("root",), 5: ("root", "root2")}.get(p, ())
        before = "".join(
            f"    const {t} *const {r} = twiddles + {2 * (k + 1)} * step * m;\n" for k, r in enumerate(roots)
        )
        inner = "".join(f"            {line}\n" for line in lines)
        return (
            f"/* One stage: n / {p} butterflies, between numbers that are m apart. */\n"
            f"AOT_MODEL_OPAQUE static void {self.stage_name(p)}({t} *z, int32_t n, int32_t m, int32_t step, "
            f"const {t} *twiddles)\n{{\n{before}"
            f"    for (int32_t start = 0; start < n; start += {p} * m) {{\n        for (int32_t k = 0; k < "
            f"m; k++) {{\n{inner}        }}\n    }}\n}}"
        )

    def helpers(self, body: str) -> tuple[str, ...]:
        """The functions that a body and the stages call; one that nothing calls would be a warning."""
        stages = list(dict.fromkeys(self.stage_helper(p) for p in sorted(set(self.radices))))
        called = "".join((body, *stages))
        return (*(text for name, text in self.scalar_helpers().items() if f"{name}(" in called), *stages)

    def stages(self, memory: str) -> list[str]:
        """The calls that transform numbers which are in their places."""
        calls, m = [], 1
        for p in reversed(self.radices):
            radix = "" if p in RADICES else f", {p}, terms"
            calls.append(
                f"{self.stage_name(p)}({memory}, {self.half}, {m}, {self.half // (p * m)}, twiddles{radix});"
            )
            m *= p
        return calls

    def taken_apart(self, work: str) -> str:
        """Statements: the spectrum of the reals from that of the complex numbers. Of k and N / 2 - k, the
        latter is stored last.
        """
        t, h = self.dtype.c_type, self.half
        text = self._complex("x", work, 2)
        text += self._store("out", self._do("add", "xr", "xi"), "0") + self._store(
            f"(out + {2 * h})", self._do("sub", "xr", "xi"), "0"
        )
        inner = f"const {t} *const near = {work} + 2 * k;\nconst {t} *const far = {work} + 2 * ({h} - k);\n"
        inner += (
            self._complex("a", "near", 2)
            + self._conjugate("far")
            + self._pair("s", "add", "a", "b")
            + self._pair("d", "sub", "a", "b")
        )
        inner += f"const {t} *const w = apart + 2 * k - 2;\n" + self._turned("t", "d", "w")
        inner += self._store(
            "(out + 2 * k)", self._do("half_add", "sr", "tr"), self._do("half_add", "si", "ti")
        )
        inner += self._store(
            f"(out + 2 * ({h} - k))", self._do("half_sub", "sr", "tr"), self._do("half_sub", "ti", "si")
        )
        return text + self._for_pairs(inner)

    def put_together(self, source: str, to: str) -> str:
        """Statements: the reverse, stored where the transform begins. Of k and N / 2 - k, the latter is
        stored last.
        """
        t, h = self.dtype.c_type, self.half
        sums = [self._do(o, f"{source}[0]", f"{source}[{2 * h}]") for o in ("add", "sub")]
        text = self._store(f"({to} + 2 * places[0])", *(self._divided(s, 2) for s in sums))
        inner = (
            f"const {t} *const near = {source} + 2 * k;\nconst {t} *const far = {source} + 2 * ({h} - k);\n"
        )
        inner += (
            self._complex("a", "near", 2)
            + self._conjugate("far")
            + self._pair("s", "add", "a", "b")
            + self._pair("d", "sub", "a", "b")
        )
        inner += f"const {t} *const w = apart + 2 * k - 2;\n" + self._turned("t", "d", "w")
        inner += self._stored_pair(f"({to} + 2 * places[k])", "add", "s", "t")
        inner += self._store(
            f"({to} + 2 * places[{h} - k])", self._do("sub", "sr", "tr"), self._do("sub", "ti", "si")
        )
        return text + self._for_pairs(inner)

    def _conjugate(self, source: str) -> str:
        zero = "0.0f" if self.dtype.is_float else "0"
        negative = f"-{source}[1]" if self.dtype.is_float else self._do("sub", zero, f"{source}[1]")
        return (
            f"const {self.dtype.c_type} br = {self._divided(f'{source}[0]', 2)};\nconst "
            f"{self.dtype.c_type} bi = {self._divided(negative, 2)};\n"
        )

    def _for_pairs(self, inner: str) -> str:
        body = "".join(f"    {line}\n" for line in inner.rstrip("\n").split("\n"))
        return f"for (int32_t k = 1; k <= {self.half // 2}; k++) {{\n{body}}}\n"


_ANY_RADIX = """\
/* One stage of an odd radix p: sums of p terms, of which the j-th and the last but j meet the same cosines,
 * and sines that are opposite. */
AOT_MODEL_OPAQUE static void fft_any_radix_float32(float *z, int32_t n, int32_t m, int32_t step,
                                                   const float *twiddles, int32_t p, float *terms)
{
    for (int32_t start = 0; start < n; start += p * m) {
        for (int32_t k = 0; k < m; k++) {
            float *const at = z + 2 * (start + k);
            const float real = at[0];
            const float imaginary = at[1];
            for (int32_t j = 1; 2 * j < p; j++) {
                const float *const a = at + 2 * m * j;
                const float *const b = at + 2 * m * (p - j);
                const float *const u = twiddles + 2 * j * k * step;
                const float *const v = twiddles + 2 * (p - j) * k * step;
                const float ar = fft_real_float32(a[0], a[1], u[0], u[1]);
                const float ai = fft_imaginary_float32(a[0], a[1], u[0], u[1]);
                const float br = fft_real_float32(b[0], b[1], v[0], v[1]);
                const float bi = fft_imaginary_float32(b[0], b[1], v[0], v[1]);
                float *const t = terms + 4 * (j - 1);
                t[0] = ar + br;
                t[1] = ai + bi;
                t[2] = ar - br;
                t[3] = ai - bi;
                at[0] += t[0];
                at[1] += t[1];
            }
            for (int32_t q = 1; 2 * q < p; q++) {
                float sr = real;
                float si = imaginary;
                float dr = 0.0f;
                float di = 0.0f;
                int32_t phase = 0;
                for (const float *t = terms, *const end = terms + 2 * (p - 1); t != end; t += 4) {
                    phase += phase + q < p ? q : q - p;
                    const float *const w = twiddles + 2 * phase * (step * m);
                    sr += t[0] * w[0];
                    si += t[1] * w[0];
                    dr += t[2] * w[1];
                    di += t[3] * w[1];
                }
                float *const near = at + 2 * m * q;
                float *const far = at + 2 * m * (p - q);
                near[0] = sr - di;
                near[1] = si + dr;
                far[0] = sr + di;
                far[1] = si - dr;
            }
        }
    }
}"""
