"""Which pairs of weights a depthwise kernel for the DSP extension multiplies with, and how bytes become them.

W[k] = (w[k], w[k + 1]) are the pairs of a line of the kernel, X[p] = (x[p], x[p + 1]) the words of a line of
the plane, p even. An output that begins at an even place is W[0] * X[0] + W[2] * X[2] + ...; one at an odd
place begins with the low half of W[0] and the high one of X[0], and goes on W[1] * X[2] + W[3] * X[4] + ...
What is left over at the end is half a pair, too. So outputs that are neighbours read the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from aot_model.kernels.int8.plane import Plane
from aot_model.kernels.int8.spec import Int32, Int64

IN_REGISTERS = 6
"""Pairs of all lines of a kernel whose weights stay in registers."""
_PART = 24
"""Longer lines are done in parts of so many taps at most."""
_FAR = 256
"""Largest dilation of taps that have a word each."""
Widening = tuple[str, list[str], list[Callable[[str], list[str]]]]


@dataclass(frozen=True)
class Term:
    """A product of one output: instruction, place of the word of the plane, number of the pair of weights."""

    name: str
    output: int
    place: int
    pair: int


@dataclass(frozen=True)
class Pairs:
    """The lines of a kernel. taps: of a line or of a part of it, where dilated ones are not far zeros between
    them included.
    """

    lines: int
    parts: int
    taps: int
    stride: int
    dilation: int

    @staticmethod
    def of(plane: Plane) -> Pairs:
        """far: dilated taps have a word each; else there are zeros between them."""
        u, v = plane.u, plane.v
        if v.dilation > 1 and v.stride == 1 and v.dilation <= _FAR:
            far = Pairs(u.kernel, 1, v.kernel, 1, v.dilation)
            if v.kernel > 1 and far.in_registers and reaches(plane, 1):
                return far
        parts = -(-v.reach // _PART)
        taps = v.reach if parts == 1 else -(-v.reach // parts // 4) * 4
        # a single output begins at an even place
        return Pairs(u.kernel, parts, taps, v.stride if v.size_out > 1 else 2, 1)

    def terms(self, outputs: int) -> list[Term]:
        """The products of one line or part for neighbouring outputs."""
        found: list[Term] = []
        for i in range(outputs):
            if self.dilation > 1:
                found += [
                    Term(f"smla{'bt'[i]}{'t' if t else 'b'}", i, t * self.dilation, max(t - 1, 0))
                    for t in range(self.taps)
                ]
                continue
            begin = i * self.stride
            odd = begin % 2
            if self.taps == 1:
                found.append(Term("smlatb" if odd else "smlad", i, begin - odd, 0))
                continue
            found += [Term("smlatb", i, begin - 1, 0)] * odd
            found += [Term("smlad", i, begin + t, t) for t in range(odd, self.taps - 1, 2)]
            if (self.taps - odd) % 2:
                found.append(Term("smlabt", i, begin + self.taps - 1, self.taps - 2))
        return found

    @cached_property
    def kept(self) -> list[int]:
        """Numbers of the pairs that are multiplied with, in order."""
        return sorted({t.pair for t in self.terms(2)})

    @property
    def words(self) -> int:
        """Pairs of all lines."""
        return self.lines * self.parts * len(self.kept)

    @property
    def quads(self) -> int:
        """Words of the bytes of a line or part."""
        return -(-self.taps // 4)

    @property
    def in_registers(self) -> bool:
        return self.parts == 1 and self.words <= IN_REGISTERS and self.lines * self.quads <= 3

    @property
    def beyond(self) -> int:
        """Elements of the plane behind its last one that are multiplied by zero."""
        return 4 * self.parts if self.parts > 1 else 0

    def packed(self, grid: Int64, zero: int, dilation: int) -> Int32:
        """One channel's weights [lines, taps] as bytes, each line or part in whole words, the weights' zero
        point where there is no tap.
        """
        lines, taps = grid.shape
        step = 1 if self.dilation > 1 else dilation
        wide = np.full((lines, self.parts * 4 * self.quads), zero, np.int64)
        wide[:, : (taps - 1) * step + 1 : step] = grid
        return wide.astype(np.int8).reshape(-1).view("<i4").astype(np.int32)

    def sum_c(self, plane: Plane, less: str, twice: bool) -> list[str]:
        """C that adds the products of an output at `from` to `sum`; two loops stay open. less: its zero."""
        u, v = plane.u, plane.v
        apart, reach = (v.dilation, v.kernel) if self.dilation > 1 else (1, v.reach)
        at = f"(i * {4 * self.parts * self.quads} + t)"
        return [
            f"for (int32_t i = 0; i < {u.kernel}; i++) {{", f"for (int32_t t = 0; t < {reach}; t++) {{",
            f"const int32_t w = (int8_t)((uint32_t)constants[1 + {at} / 4] >> t % 4 * 8 & 0xffu){less};",
            f"sum += (uint32_t)(from[i * {u.dilation * plane.length} + t * {apart}] * w){' * 2u' * twice};",
        ]  # fmt: skip

    def widen(self, words: Sequence[str], even: str, zero: str, twice: bool) -> list[Widening]:
        """For each word of a line's bytes: its register, what widens it, and for each kept pair that it
        completes the lines for a register that gets it. words: registers, changed as `even` is. zero: one
        with the weights' zero point, if any. twice: the pairs are doubled.
        """
        found: list[Widening] = []
        for q, odd in enumerate(words):
            text = [f"sxtb16 {even}, {odd}", f"sxtb16 {odd}, {odd}, ror #8"]
            text += [f"ssub16 {r}, {r}, {zero}" for r in (even, odd) if zero]
            text += [f"sadd16 {r}, {r}, {r}" for r in (even, odd) if twice]
            forms = [
                [f"lsl {{0}}, {even}, #16", f"pkhtb {{0}}, {{0}}, {words[q - 1]}, asr #16"],
                [f"pkhbt {{0}}, {even}, {odd}, lsl #16"],
                [f"pkhbt {{0}}, {odd}, {even}"],
                [f"pkhtb {{0}}, {odd}, {even}, asr #16"],
            ]
            kept = [form for k, form in enumerate(forms, 4 * q - 1) if k in self.kept]
            found.append((odd, text, [partial(_of, form) for form in kept]))
        return found


def _of(form: list[str], register: str) -> list[str]:
    return [line.format(register) for line in form]


def reaches(plane: Plane, rows: int) -> bool:
    """Whether a block of so many rows has lines in common, all of which its loads reach."""
    u, v = plane.u, plane.v
    last = (rows - 1) * u.stride + u.reach - 1
    common = u.stride < u.kernel and u.dilation == 1 and v.stride <= 2
    most = 1020 if v.dilation == 1 else 2044
    return (rows == 1 or common) and last * 2 * plane.length + 2 * v.reach + 4 <= most


Place = tuple[str, int]
"""Of a word in memory: register, bytes behind it."""


@dataclass
class Loads:
    """Which words of memory are in which registers. doubles: of which base two words may come by one
    instruction; early: how many registers must be free for that.
    """

    registers: list[str]
    doubles: dict[str, bool]
    early: int

    def __post_init__(self) -> None:
        self.held: dict[Place, str] = {}

    def bring(self, keys: tuple[Place, ...], later: list[Place]) -> tuple[list[str], list[str]]:
        """(loads, registers) of the words at these places; later: the places that are read after them."""
        text: list[str] = []
        for key in keys:
            if key in self.held:
                continue
            self.held = {k: r for k, r in self.held.items() if k in later or k in keys}
            free = [r for r in self.registers if r not in self.held.values()]
            base, offset = key
            other = base, offset + 4
            if self.doubles[base] and len(free) >= self.early and other in later and other not in self.held:
                self.held[key], self.held[other] = free[:2]
                text.append(f"ldrd {free[0]}, {free[1]}, [{base}, #{offset}]")
                continue
            if not free:
                least = max((k for k in self.held if k not in keys), key=later.index)
                free = [self.held.pop(least)]
            self.held[key] = free[0]
            text.append(f"ldr.w {free[0]}, [{base}, #{offset}]")
        return text, [self.held[key] for key in keys]


@dataclass(frozen=True)
class MicroKernel:
    """name, text: of the function. twice: the bias is doubled. scratch: words that it widens weights to. how:
    for the comment above a kernel.
    """

    name: str
    text: str
    pairs: Pairs
    twice: bool
    scratch: int
    how: str
