"""Tails that take the results of whole pixels at once."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from aot_model.ir.types import DType
from aot_model.kernels.base import Tail


@runtime_checkable
class RowTail(Protocol):
    """A tail that takes the results of whole pixels at once."""

    row_helpers: tuple[str, ...]

    @property
    def adjacent(self) -> bool:
        """Whether pixels that follow one another lie one behind the other in the output, so that a row may be
        several of them; those of a transposed convolution's phase do not.
        """

    def store_row(self, source: str, index: tuple[str, str, str, str], count: int | str) -> str:
        """C statements that finish `count` int8 results at `source`; index: (n, y, x, channel) of the
        first.
        """


@runtime_checkable
class VectorTail(RowTail, Protocol):
    """One that takes accumulators of any type, and constants of each channel."""

    def store_row(
        self, source: str, index: tuple[str, str, str, str], count: int | str, kind: DType | None = None
    ) -> str:
        """The same of accumulators that lie there as `kind`; None: in the type that the tail takes."""

    @property
    def of_channels(self) -> bool:
        """Tells it from a tail of bytes."""


def tail_helpers(tail: Tail | None) -> tuple[str, ...]:
    """Functions that the tail's statements call."""
    return tail.row_helpers if isinstance(tail, RowTail) else ()


def tail_loop(channels: int, row: str, pixel: tuple[str, str, str], tail: Tail) -> str:
    """Hands the int8 results of one pixel at `row` to the fused tail."""
    if isinstance(tail, RowTail):
        return tail.store_row(row, (*pixel, "0"), channels)
    array, _, place = row.partition(" + ")
    each = tail.store(f"{array}[{place}{' + ' if place else ''}c]", (*pixel, "c"), lanes=1)
    return f"for (int32_t c = 0; c < {channels}; c++) {{\n{each.rstrip()}\n}}\n"
