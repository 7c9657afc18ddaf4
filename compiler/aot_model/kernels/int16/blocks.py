"""A block of sums, rows of x by rows of weights, in C or by Helium's functions, and what becomes of each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Protocol

from aot_model.c.text import total
from aot_model.ir.types import DType
from aot_model.kernels.base import Tail
from aot_model.kernels.int16 import block_mve
from aot_model.kernels.int16.dots import Dots
from aot_model.kernels.int16.finish import Finish
from aot_model.kernels.row_tail import VectorTail

Index = tuple[str, str, str, str]


class Results(Protocol):
    """Where the results of a block's row go."""

    @property
    def tail(self) -> Tail | None:
        """What becomes of them on the way."""

    def index(self, row: int) -> Index:
        """Of the block's first result in that row, for the tail."""

    def place(self, row: int) -> str | None:
        """C of its address, where nothing becomes of results and those of a row are neighbours."""

    def store(self, row: int, column: str) -> list[str]:
        """Statements that store `v`."""


@dataclass(frozen=True)
class Blocks:
    """Rows of x begin at the pointers r0, r1, rows of weights at w, which moves on."""

    dots: Dots
    finish: Finish | None
    sum_type: str
    """C type of `v` where nothing finishes a sum here."""
    results: Results
    column: str
    """C of the block's first row of weights."""
    start: bool = False
    """Whether `start` belongs to the sums that nothing finishes."""

    def lines(self, rows: int, columns: int) -> list[str]:
        """Statements of a block."""
        if self.dots.mve:
            return self._lanes(rows, columns)
        lines = self.dots.lines(rows, columns)
        if self.finish is not None:
            lines += [line for j in range(columns) for line in self.finish.row(f"row{j}", self._at(j))]
        return [*lines, *self._each(rows, columns)]

    def _lanes(self, rows: int, columns: int) -> list[str]:
        finish, tail = self.finish, self.results.tail
        lines = block_mve.sums(self.dots, rows, columns)
        lines += block_mve.finished(finish, rows, columns, self.column)
        if columns == self.dots.width:
            places = [place for i in range(rows) if (place := self.results.place(i)) is not None]
            if finish is not None and places:
                return [*lines, *(block_mve.put_four(finish.to, at, i) for i, at in enumerate(places))]
            if isinstance(tail, VectorTail) and not self.start and self.dots.chunk == self.dots.taps:
                for i in range(rows):
                    stored = tail.store_row(block_mve.of_row(i), self.results.index(i), columns, DType.INT32)
                    lines += stored.splitlines()
                return lines
        return [*lines, *self._each(rows, columns)]

    def _each(self, rows: int, columns: int) -> list[str]:
        lines = []
        for i, j in product(range(rows), range(columns)):
            value = f"sums[{4 * i + j}]" if self.dots.mve else f"sum{i}{j}"
            lines += self.stored(value, i, self._at(j), f"row{j}")
        return lines

    def stored(self, value: str, row: int, column: str, table: str) -> list[str]:
        """A sum becomes `v`, which is stored. table: of the constants of its column."""
        if self.finish is None:
            value += f" + start[{column}]" if self.start else ""
            lines = [f"const {self.sum_type} v = {value};"]
        elif self.dots.mve:
            kind = self.finish.to.c_type
            lines = [f"const {kind} v = ({kind}){value};"]
        else:
            lines = self.finish.lines(value, table)
        return ["{", *lines, *self.results.store(row, column), "}"]

    def _at(self, column: int) -> str:
        return total(self.column, str(column))
