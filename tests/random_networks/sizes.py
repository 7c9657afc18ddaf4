"""Sizes of what random networks are given."""

from __future__ import annotations

ROOM = 8
"""Of a larger network: so many times the elements of a tensor, and the products."""


def room(number: int) -> int:
    """Every eighth network is larger."""
    return ROOM if number % 8 == 7 else 1


def larger(shape: tuple[int, ...], channels: int) -> tuple[int, ...]:
    """Twice the places, more channels: sums of many terms, blocks that repeat, weights in several parts."""
    if len(shape) == 2:
        return shape[0], 16 * shape[1]
    places = (d if k == channels else 2 * d for k, d in enumerate(shape[1:], 1))
    return tuple(4 * d if k == channels else d for k, d in enumerate((shape[0], *places)))
