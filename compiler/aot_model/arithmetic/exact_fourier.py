"""Fourier transforms in fixed point by their definition, in Python integers: for the operators' `reference`.

A transform of n is p transforms of every p-th number, recombined; before that every number is divided by p.
Nothing here is shared with kernels/fourier.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Complex = tuple[int, int]


class FixedPoint:
    """Numbers of so many bits, of which all but the sign are behind the point."""

    def __init__(self, bits: int, inverse: bool) -> None:
        self.bits = bits
        self.limit: int = 2 ** (bits - 1)
        self.one = self.limit - 1
        self.sign = 1 if inverse else -1

    def wrapped(self, x: int) -> int:
        return (x + self.limit) % (2 * self.limit) - self.limit

    def rounded(self, x: int) -> int:
        """A product with the point in the place of one number's."""
        return self.wrapped((x + self.limit // 2) // self.limit)

    def unit(self, turns: float) -> Complex:
        angle = self.sign * 2 * math.pi * turns
        return math.floor(0.5 + self.one * math.cos(angle)), math.floor(0.5 + self.one * math.sin(angle))

    def divided(self, x: Complex, by: int) -> Complex:
        return self.rounded(x[0] * (self.one // by)), self.rounded(x[1] * (self.one // by))

    def times(self, a: Complex, b: Complex) -> Complex:
        return self.rounded(a[0] * b[0] - a[1] * b[1]), self.rounded(a[0] * b[1] + a[1] * b[0])

    def plus(self, a: Complex, b: Complex, sign: int = 1) -> Complex:
        return self.wrapped(a[0] + sign * b[0]), self.wrapped(a[1] + sign * b[1])

    def scaled(self, a: Complex, b: int) -> Complex:
        return self.rounded(a[0] * b), self.rounded(a[1] * b)

    def aside(self, a: Complex, b: Complex, sign: int) -> Complex:
        """a + sign i b"""
        return self.wrapped(a[0] - sign * b[1]), self.wrapped(a[1] + sign * b[0])

    # --- transforms -----------------------------------------------------------------------------------------

    def transform(self, x: Sequence[Complex], whole: int = 0) -> list[Complex]:
        """The complex transform; `whole` is the length of the outermost one."""
        n = len(x)
        whole = whole or n
        if n == 1:
            return list(x)
        p = next(p for p in (4, 2, 3, 5) if n % p == 0)
        m = n // p
        parts = [self.transform(x[j::p], whole) for j in range(p)]
        y: list[Complex] = [(0, 0)] * n
        for k in range(m):
            z = [self.divided(part[k], p) for part in parts]
            t = [z[0], *(self.times(z[j], self.unit(j * k / n)) for j in range(1, p))]
            y[k::m] = self.combined(t)
        return y

    def combined(self, t: list[Complex]) -> list[Complex]:
        """The transform of 2 to 5 numbers."""
        if len(t) == 2:
            return [self.plus(t[0], t[1]), self.plus(t[0], t[1], -1)]
        if len(t) == 4:
            even, odd = (
                (self.plus(t[0], t[2]), self.plus(t[1], t[3])),
                (self.plus(t[0], t[2], -1), self.plus(t[1], t[3], -1)),
            )
            return [
                self.plus(*even),
                self.aside(*odd, self.sign),
                self.plus(*even, -1),
                self.aside(*odd, -self.sign),
            ]
        if len(t) == 3:
            total, apart = self.plus(t[1], t[2]), self.plus(t[1], t[2], -1)
            middle = self.plus(t[0], (total[0] // 2, total[1] // 2), -1)
            side = self.scaled(apart, self.unit(1 / 3)[1])
            return [self.plus(t[0], total), self.aside(middle, side, 1), self.aside(middle, side, -1)]
        outer, inner = (
            (self.plus(t[1], t[4]), self.plus(t[1], t[4], -1)),
            (self.plus(t[2], t[3]), self.plus(t[2], t[3], -1)),
        )
        (c1, s1), (c2, s2) = self.unit(1 / 5), self.unit(2 / 5)
        a = self.plus(self.plus(t[0], self.scaled(outer[0], c1)), self.scaled(inner[0], c2))
        b = self.plus(self.plus(t[0], self.scaled(outer[0], c2)), self.scaled(inner[0], c1))
        g = self.plus(self.scaled(outer[1], s1), self.scaled(inner[1], s2))
        h = self.plus(self.scaled(outer[1], s2), self.scaled(inner[1], s1), -1)
        return [
            self.plus(t[0], self.plus(outer[0], inner[0])),
            self.aside(a, g, 1),
            self.aside(b, h, 1),
            self.aside(b, h, -1),
            self.aside(a, g, -1),
        ]

    def real_spectrum(self, x: Sequence[int]) -> list[Complex]:
        """Half of the spectrum of an even number of reals."""
        z = self.transform(list(zip(x[0::2], x[1::2], strict=True)))
        h = len(z)
        y: list[Complex] = [(0, 0)] * (h + 1)
        first = self.divided(z[0], 2)
        y[0], y[h] = (self.wrapped(first[0] + first[1]), 0), (self.wrapped(first[0] - first[1]), 0)
        for k in range(1, h // 2 + 1):
            s, t = self.folded(z[k], z[h - k], k / h)
            y[k] = self.halved(s[0] + t[0]), self.halved(s[1] + t[1])
            y[h - k] = self.halved(s[0] - t[0]), self.halved(t[1] - s[1])
        return y

    def reals(self, y: Sequence[Complex]) -> list[int]:
        """The reals of which this is half of the spectrum."""
        h = len(y) - 1
        z: list[Complex] = [(0, 0)] * h
        z[0] = self.divided((self.wrapped(y[0][0] + y[h][0]), self.wrapped(y[0][0] - y[h][0])), 2)
        for k in range(1, h // 2 + 1):
            s, t = self.folded(y[k], y[h - k], k / h)
            z[k] = self.plus(s, t)
            z[h - k] = self.wrapped(s[0] - t[0]), self.wrapped(t[1] - s[1])
        return [v for pair in self.transform(z) for v in pair]

    def folded(self, near: Complex, far: Complex, place: float) -> tuple[Complex, Complex]:
        a, b = self.divided(near, 2), self.divided((far[0], self.wrapped(-far[1])), 2)
        return self.plus(a, b), self.times(self.plus(a, b, -1), self.unit((place + 0.5) / 2))

    def halved(self, total: int) -> int:
        """Sums of 16 bits are halved before they wrap, those of 32 after."""
        return (total if self.bits == 16 else self.wrapped(total)) // 2
