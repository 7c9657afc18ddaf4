"""From an accumulator to the tail."""

from __future__ import annotations

from aot_model.kernels.base import Tail
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.text import CText, total


def store_vector(
    text: CText,
    dialect: VectorDialect,
    tail: Tail,
    acc: str,
    index: tuple[str, str, str, str],
    lanes: int,
    vector_tail: bool,
) -> None:
    """Give the first `lanes` channels of the accumulator `acc` to the tail: as a vector if it is full and the tail
    takes vectors, otherwise one by one from a small array."""
    if dialect.lanes == 1 or (vector_tail and lanes == dialect.lanes):
        text.line(tail.store(acc, index, lanes))
        return
    n, y, x, c = index
    with text.block():
        text.line(f"float lane[{dialect.lanes}];")
        text.line(dialect.store("lane", acc))
        if lanes == 1:
            text.line(tail.store("lane[0]", index, 1))
            return
        with text.loop("l", str(lanes)):
            text.line(tail.store("lane[l]", (n, y, x, total(c, "l")), 1))
