"""Rows of floats times a matrix of blocks.py on a Cortex-M with an FPU: integers stay in their words, from
which conversions take several at once (aot_model/few_bits.h).

A tile of columns is computed at a time, for each step a word of each column: eight integers of 4 bits, or
four of 8. What the elements of a row are made to for a step serves all columns of the tile. Zero points are
multiplied by the sum of a block's elements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.text import CText, product, total
from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import KernelCode, Packed, Tail
from aot_model.kernels.float32.blocks import Blocks, tiles

HEADER = "aot_model/few_bits.h"
_KINDS = {4: "nibbles", 8: "bytes"}


def takes(m: Blocks) -> bool:
    """Whether all blocks, the last one, too, are whole words."""
    step, depth = 32 // m.bits, m.q.shape[1]
    return depth % step == 0 and (m.block % step == 0 or m.block >= depth)


def block_matmul(rows: int, m: Blocks, tail: Tail, apart: bool) -> KernelCode:
    """x (rows, depth) times the matrix, which `takes` allows. apart: as few_bits.h has it."""
    columns = m.q.shape[0]
    together = min(rows, 2)
    # two rows share the conversions; a tile that is filled up costs at most a fifth
    tile = 8 if together == 1 and -columns % 8 * 5 <= columns else 4
    words = _words(m.q, m.bits)
    constants = [
        Packed("weights", tiles(words, tile).reshape(-1), admissible=ANYTHING,
               layout=f"for each {tile} columns: for each step a word of each column"),
        *m.numbers(tile),
    ]  # fmt: skip
    writer, text = _Writer(m, tail, tile, apart), CText()
    whole = rows - rows % together
    with text.loop("row", str(whole), together) if whole > together else text.block():
        writer.rows(text, "row" if whole > together else "0", together)
    if whole < rows:
        with text.block():
            writer.rows(text, str(whole), 1)
    return KernelCode(
        str(text),
        tuple(constants),
        includes=frozenset({HEADER}),
        note=f"{counted(together, 'row')} x {counted(tile, 'column')}; {m.bits} bits in blocks of {m.block}",
    )


def _words(q: np.ndarray, bits: int) -> np.ndarray:
    """(columns, depth) integers as (columns, words), the first in the lowest bits."""
    step = 32 // bits
    parts = q.astype(np.uint32).reshape(len(q), -1, step) << (np.arange(step, dtype=np.uint32) * bits)
    return np.asarray(np.bitwise_or.reduce(parts, axis=2), np.uint32)


@dataclass(frozen=True)
class _Writer:
    m: Blocks
    tail: Tail
    tile: int
    apart: bool

    def rows(self, text: CText, row: str, count: int) -> None:
        m, (columns, depth) = self.m, self.m.q.shape
        text.line("const uint32_t *w = weights;")
        text.line("const float *s = scales;")
        if m.zero is None:
            text.line(f"const {m.zero_type} *z = zeros;")
        many = columns > self.tile
        with text.loop("column", str(columns), self.tile, many):
            for r in range(count):
                text.line(f"float sum{r}[{self.tile}] = {{0.0f}};")
                place = _sum(row, r)
                place = place if place.isdigit() else f"({place})"
                text.line(f"const float *at{r} = {total('x', product(place, depth))};")
            with text.loop("b", str(m.scales.shape[1]), needed=m.scales.shape[1] > 1):
                self._block(text, count)
            with text.loop("j", m.left("column" if many else "0", self.tile)):
                for r in range(count):
                    index = ("0", "0", _sum(row, r), total("column", "j") if many else "j")
                    text.line(self.tail.store(f"sum{r}[j]", index, 1))

    def _block(self, text: CText, count: int) -> None:
        """Adds the products of a block to the sums of the rows."""
        m, step = self.m, 32 // self.m.bits
        kind, columns = _KINDS[m.bits], range(self.tile)
        for r in range(count):
            if m.zero != 0:
                text.line(f"float all{r} = 0.0f;")
            text.line(f"float part{r}[{self.tile}] = {{0.0f}};")
        with text.block(f"for (const float *const end = at0 + {m.length}; at0 != end;)"):
            for r in range(count):
                text.line(f"float made{r}[{step}];")
                made = f"aot_model_for_{kind}(at{r}, made{r});"
                text.line(f"all{r} += {made}" if m.zero != 0 else f"(void){made}")
                text.line(f"at{r} += {step};")
            self._step(text, count)
            text.line(f"w += {self.tile};")
        if m.zero:
            for r in range(count):
                text.line(f"all{r} *= {m.zero}.0f;")
        for j in columns:
            for r in range(count):
                zeros = f"(float)z[{j}] * all{r}" if m.zero is None else f"all{r}"
                value = f"part{r}[{j}]" if m.zero == 0 else f"(part{r}[{j}] - {zeros})"
                text.line(f"sum{r}[{j}] += {value} * s[{j}];")
        text.line(f"s += {self.tile};")
        if m.zero is None:
            text.line(f"z += {self.tile};")

    def _step(self, text: CText, count: int) -> None:
        """A word of each column times the elements of each row."""
        kind, apart = _KINDS[self.m.bits], str(self.apart).lower()
        if count == 2:
            for j in range(self.tile):
                sums = f"&part0[{j}], &part1[{j}]"
                text.line(f"aot_model_{kind}_by_two({sums}, w[{j}], made0, made1, {apart});")
            return
        for j in range(0, self.tile, 2):
            text.line(f"aot_model_plus_{kind}(&part0[{j}], w + {j}, made0, {apart});")


def _sum(row: str, r: int) -> str:
    return str(int(row) + r) if row.isdigit() else total(row, str(r))
