"""Rows of floats times a constant matrix of 4 or 8 bits, quantised by blocks along its rows: plain C for
every core.

A tile of columns is computed at a time; its weights lie in the order in which they are read, for each step
one of each column, 4-bit ones two in a byte (column j in the low half, column j + half a tile in the high
one), without a sign. Products of a block are summed as they are and multiplied by the block's scale once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.text import CText
from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import KernelCode, Packed, Tail
from aot_model.kernels.float32 import blocks_mve


@dataclass(frozen=True)
class Blocks:
    """The matrix: q (columns, depth) without sign (uint8), of so many bits; scales and zero points (columns,
    blocks).
    """

    q: np.ndarray
    bits: int
    scales: np.ndarray
    zeros: np.ndarray
    """int16, or float32."""
    block: int

    @property
    def zero(self) -> int | None:
        """The zero point that all blocks have."""
        same = (
            self.zeros.size > 0
            and self.zeros.dtype.kind == "i"
            and bool((self.zeros == self.zeros.flat[0]).all())
        )
        return int(self.zeros.flat[0]) if same else None

    @property
    def zero_type(self) -> str:
        """C type of zero points that differ."""
        return "float" if self.zeros.dtype.kind == "f" else "int16_t"

    @property
    def length(self) -> str:
        """C of the elements of block b."""
        depth, last = self.q.shape[1], self.scales.shape[1] - 1
        rest = depth % self.block
        if rest and last > 0:
            return f"(b == {last} ? {rest} : {self.block})"
        return str(min(self.block, depth))

    def left(self, column: str, tile: int) -> str:
        """C of the columns of a tile that there are, from C of the first one on."""
        columns = len(self.q)
        if column == "0":
            return str(min(columns, tile))
        return (
            f"({columns} - {column} < {tile} ? {columns} - {column} : {tile})"
            if columns % tile
            else str(tile)
        )

    def numbers(self, tile: int) -> list[Packed]:
        """Scales, and zero points where they differ, in the order of tiles."""
        found = [Packed("scales", tiles(self.scales.astype(np.float32), tile).reshape(-1))]
        if self.zero is None:
            kind = np.float32 if self.zero_type == "float" else np.int16
            found.append(Packed("zeros", tiles(self.zeros.astype(kind), tile).reshape(-1)))
        return found


def tiles(values: np.ndarray, tile: int) -> np.ndarray:
    """(columns, n) as (tiles, n, columns of a tile), filled up with zeros."""
    columns, n = values.shape
    padded = np.zeros((-(-columns // tile) * tile, n), values.dtype)
    padded[:columns] = values
    return np.asarray(padded.reshape(-1, tile, n).transpose(0, 2, 1))


def block_matmul(
    rows: int, m: Blocks, tail: Tail, tile: int, together: int, helium: bool = False
) -> KernelCode:
    """x (rows, depth) times the matrix; `tile` columns (even) of `together` rows at a time. helium: a tile of
    eight in vectors as well.
    """
    columns, depth = m.q.shape
    half, blocks = tile // 2, m.scales.shape[1]
    weights = tiles(m.q, tile)
    if m.bits == 4:
        weights = weights[..., :half] | weights[..., half:] << 4
    constants = [Packed("weights", weights.reshape(-1), admissible=ANYTHING), *m.numbers(tile)]
    writer = _Writer(m, tail, tile, columns, depth, blocks, m.zero, helium and tile == blocks_mve.TILE)
    text = CText()
    whole = rows - rows % together
    if whole:
        with text.loop("row", str(whole), together) if whole > together else text.block():
            writer.rows(text, "row" if whole > together else "0", together)
    for row in range(whole, rows):
        with text.block():
            writer.rows(text, str(row), 1)
    return KernelCode(
        str(text),
        tuple(constants),
        includes=blocks_mve.HEADERS if writer.helium else frozenset(),
        note=f"{counted(together, 'row')} x {counted(tile, 'column')}; {m.bits} bits in blocks of {m.block}",
    )


@dataclass(frozen=True)
class _Writer:
    m: Blocks
    tail: Tail
    tile: int
    columns: int
    depth: int
    blocks: int
    zero: int | None
    helium: bool

    def rows(self, text: CText, row: str, count: int) -> None:
        text.line("const uint8_t *w = weights;")
        text.line("const float *s = scales;")
        if self.zero is None:
            text.line(f"const {self.m.zero_type} *z = zeros;")
        with text.loop("column", str(self.columns), self.tile, self.columns > self.tile):
            self._tile(text, row, "column" if self.columns > self.tile else "0", count)

    def _tile(self, text: CText, row: str, column: str, count: int) -> None:
        for r in range(count):
            text.line(f"float sum{r}[{self.tile}] = {{0.0f}};")
            text.line(
                f"const float *at{r} = x + ({row} + {r}) * {self.depth};"
                if row != "0"
                else f"const float *at{r} = x + {r * self.depth};"
            )
        length = self.m.length
        if self.helium:
            text.line("#if AOT_MODEL_FLOAT_VECTORS")
            blocks_mve.sums(
                text,
                count,
                str(self.blocks),
                self.blocks > 1,
                length,
                self.m.bits,
                self.zero,
                self.m.zero_type,
            )
            text.line("#else")
        self._sums(text, count, length)
        if self.helium:
            text.line("#endif")
        with text.loop("j", self.m.left(column, self.tile)):
            for r in range(count):
                text.line(
                    self.tail.store(
                        f"sum{r}[j]",
                        (
                            "0",
                            "0",
                            f"{row} + {r}" if row != "0" else str(r),
                            f"{column} + j" if column != "0" else "j",
                        ),
                        1,
                    )
                )

    def _sums(self, text: CText, count: int, length: str) -> None:
        """Adds the products of all blocks to the sums of the rows."""
        with text.loop("b", str(self.blocks), needed=self.blocks > 1):
            for r in range(count):
                text.line(f"float part{r}[{self.tile}] = {{0.0f}};")
            with text.block(f"for (const float *const end = at0 + {length}; at0 != end;)"):
                for r in range(count):
                    text.line(f"const float v{r} = *at{r}++;")
                self._step(text, count)
            with text.loop("j", str(self.tile)):
                for r in range(count):
                    text.line(f"sum{r}[j] += part{r}[j] * s[j];")
            text.line(f"s += {self.tile};")
            if self.zero is None:
                text.line(f"z += {self.tile};")

    def _step(self, text: CText, count: int) -> None:
        """One element of each row times its weights of the tile."""
        half = self.tile // 2
        parts = [("w[j] & 15", "j"), ("w[j] >> 4", f"j + {half}")] if self.m.bits == 4 else [("w[j]", "j")]
        with text.loop("j", str(half if self.m.bits == 4 else self.tile)):
            for k, (weight, at) in enumerate(parts):
                text.line(f"const float w{k} = {self._real(weight, at)};")
                for r in range(count):
                    text.line(f"part{r}[{at}] += v{r} * w{k};")
        text.line(f"w += {half if self.m.bits == 4 else self.tile};")

    def _real(self, weight: str, at: str) -> str:
        if self.zero is not None:
            return f"(float)((int32_t)({weight}) - {self.zero})" if self.zero else f"(float)({weight})"
        if self.m.zero_type == "float":
            return f"(float)({weight}) - z[{at}]"
        return f"(float)((int32_t)({weight}) - z[{at}])"
