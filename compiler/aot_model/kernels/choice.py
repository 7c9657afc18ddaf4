"""The choice among kernels that take a layer, by their cycles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Writer = TypeVar("Writer")


def fastest_first(*kernels: tuple[bool, Callable[[], float], Writer]) -> list[tuple[float, Writer]]:
    """(cycles, writer) of those that take a layer; of equal ones the first stays the first. kernels: whether
    one takes it, its cycles if it does, its writer.
    """
    found = [(cycles(), write) for takes, cycles, write in kernels if takes]
    return sorted(found, key=lambda one: one[0])
