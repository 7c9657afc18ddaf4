"""Sums of products of rows: the inner loop of every kernel of this package, for an instruction set.

A block is `rows` rows of x times `columns` rows of weights. The C around it declares the pointers r0, r1 ...
(int16, or int8) and w; the text leaves the sums in sum00, sum01 ... (row, column). With the DSP extension
weights of bytes are stored so that SXTB16 gives neighbours as pairs, and those of a block's columns lie side
by side; elsewhere each row of weights is as it is, which compilers can vectorise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

INT32 = (1 << 31) - 1
UNROLLED = 8
"""Taps that are no loop."""


@dataclass(frozen=True)
class Dots:
    """taps: the length of a row. most: no product is larger, whatever the elements are."""

    dsp: bool
    taps: int
    most: int
    w_type: str = "int8_t"
    mve: bool = False
    """Whether sums come from Helium's functions, which have 32 bits: those of more are made of parts."""

    @property
    def width(self) -> int:
        """Rows of weights that a block takes."""
        return 4 if self.mve else 2

    @property
    def chunk(self) -> int:
        """Products that are summed in 32 bits, a multiple of four (Helium: eight); 0: not even so many."""
        if self.taps * self.most <= INT32:
            return self.taps
        step = 8 if self.mve else 4
        return INT32 // self.most // step * step

    @property
    def sum_type(self) -> str:
        """C type of the sums."""
        return "int32_t" if self.chunk == self.taps else "int64_t"

    @property
    def step(self) -> int:
        """Taps that lie together in packed weights."""
        return 1 if not self.dsp else 4 if self.w_type == "int8_t" else 2

    def packed(self, rows: npt.NDArray[np.integer], columns: int) -> npt.NDArray[np.integer]:
        """Weights [row, tap] in the order in which blocks of `columns` rows read them."""
        if not self.dsp:
            return rows.reshape(-1)
        count = len(rows) - len(rows) % columns
        parts = [self._block(rows[k : k + columns]) for k in range(0, count, columns)]
        return np.concatenate([*parts, *(self._block(rows[k : k + 1]) for k in range(count, len(rows)))])

    def _block(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        whole = self.taps - self.taps % self.step
        groups = rows[:, :whole].reshape(len(rows), -1, self.step)
        if self.step == 4:
            groups = groups[..., [0, 2, 1, 3]]
        return np.concatenate([groups.transpose(1, 0, 2).reshape(-1), rows[:, whole:].T.reshape(-1)])

    def lines(self, rows: int, columns: int) -> list[str]:
        """The block; the pointers are at the ends of their rows afterwards, w behind the block's weights."""
        sums = [f"sum{i}{j}" for i in range(rows) for j in range(columns)]
        if self.chunk == self.taps:
            lines = [f"{self.sum_type} {s} = 0;" for s in sums]
            return [*lines, *self._inner(rows, columns, self.taps, "sum"), *self._next(columns)]
        lines = [f"int64_t {s} = 0;" for s in sums]
        if self.chunk == 0:
            return [*lines, *self._inner(rows, columns, self.taps, "sum"), *self._next(columns)]
        whole = self.taps - self.taps % self.chunk
        parts = [f"int32_t part{s[3:]} = 0;" for s in sums]
        add = [f"{s} += part{s[3:]};" for s in sums]
        turn = f"for (int32_t begin = 0; begin < {whole}; begin += {self.chunk}) {{"
        lines += [turn, *_indented([*parts, *self._inner(rows, columns, self.chunk, "part"), *add]), "}"]
        if whole < self.taps:
            left = self._inner(rows, columns, self.taps - whole, "part")
            lines += ["{", *_indented([*parts, *left, *add]), "}"]
        return [*lines, *self._next(columns)]

    def _next(self, columns: int) -> list[str]:
        """w is moved by the inner loop to the end of the first row: on to the next block."""
        return [f"w += {(columns - 1) * self.taps};"] if not self.dsp and columns > 1 else []

    def _inner(self, rows: int, columns: int, taps: int, name: str) -> list[str]:
        if self.dsp and self.chunk and self.step == 4:
            return self._quads(rows, columns, taps, name)
        if self.dsp:
            return self._pairs(rows, columns, taps, name)
        cast = "" if self.chunk else "(int64_t)"
        body = [
            f"    {name}{i}{j} += {cast}(r{i}[k] * w[k{f' + {j * self.taps}' if j else ''}]);"
            for i in range(rows)
            for j in range(columns)
        ]
        moved = [*(f"r{i} += {taps};" for i in range(rows)), f"w += {taps};"]
        return [f"for (int32_t k = 0; k < {taps}; k++) {{", *body, "}", *moved]

    def _quads(self, rows: int, columns: int, taps: int, name: str) -> list[str]:
        """Four taps at a time: weights of four bytes, x of two words (or of four bytes)."""
        whole = taps - taps % 4
        lines = ["{"]  # more than four need more registers than there are
        for i in range(rows):
            lines.append(f"    const int32_t a{i} = dsp_pair_at(r{i}), b{i} = dsp_pair_at(r{i} + 2);")
        for j in range(columns):
            lines.append(f"    const int32_t w{j} = dsp_quad_at(w + {4 * j});")
            lines.append(f"    const int32_t c{j} = dsp_sxtb16(w{j}), d{j} = dsp_sxtb16_ror8(w{j});")
            for i in range(rows):
                lines.append(f"    {name}{i}{j} = dsp_smlad(a{i}, c{j}, {name}{i}{j});")
                lines.append(f"    {name}{i}{j} = dsp_smlad(b{i}, d{j}, {name}{i}{j});")
        lines += ["}", *(f"r{i} += 4;" for i in range(rows)), f"w += {4 * columns};"]
        return [*self._turns(whole, 4, lines), *self._left(rows, columns, taps - whole, name)]

    def _pairs(self, rows: int, columns: int, taps: int, name: str) -> list[str]:
        """Two taps at a time: words of both."""
        whole = taps - taps % 2
        times = whole // 2 if whole <= UNROLLED else 2 if whole % 4 == 0 else 1
        mac = "dsp_smlad" if self.chunk else "dsp_smlald"
        lines: list[str] = []
        for t in range(times):
            lines.append("{")
            lines += [f"    const int32_t a{i} = dsp_pair_at(r{i} + {2 * t});" for i in range(rows)]
            for j in range(columns):
                lines.append(f"    const int32_t c{j} = dsp_pair_at(w + {2 * (t * columns + j)});")
                lines += [f"    {name}{i}{j} = {mac}(a{i}, c{j}, {name}{i}{j});" for i in range(rows)]
            lines.append("}")
        lines += [*(f"r{i} += {2 * times};" for i in range(rows)), f"w += {2 * times * columns};"]
        loop = self._turns(whole, 2 * times, lines)
        return [*loop, *self._left(rows, columns, taps - whole, name)]

    def _turns(self, whole: int, step: int, lines: list[str]) -> list[str]:
        if whole <= step:
            return lines if whole else []
        return [f"for (const int16_t *end = r0 + {whole}; r0 != end;) {{", *_indented(lines), "}"]

    def _left(self, rows: int, columns: int, count: int, name: str) -> list[str]:
        """The taps of a row that are no whole group."""
        lines = []
        for k in range(count):
            for j in range(columns):
                lines += [f"{name}{i}{j} += r{i}[{k}] * w[{k * columns + j}];" for i in range(rows)]
        moved = [*(f"r{i} += {count};" for i in range(rows)), f"w += {count * columns};"]
        return [*lines, *moved] if count else []


def _indented(lines: list[str]) -> list[str]:
    return ["    " + t for t in lines]
