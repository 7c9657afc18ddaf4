"""Which elements a constant may have where it is read from a file of parameters, for the code that was made
with others.

What is an index, a shift, a count or an offset in the code has a range; so has what the code was written for.
A file of parameters is checked against them when it is opened (docs/parameters.md); constants in the code
need no check.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from aot_model.ir.types import DType
from aot_model.ir.values import Value


@dataclass(frozen=True)
class Range:
    """low <= element <= high, for the elements first, first + step, … (`count` of them; None: as many as
    there are).

    rise: `low` grows by this from each of them to the next.
    """

    low: int
    high: int
    first: int = 0
    step: int = 1
    count: int | None = None
    rise: int = 0

    def elements(self, size: int) -> int:
        """How many elements of an array of this size it speaks of."""
        there = -(-(size - self.first) // self.step)
        return max(0, there if self.count is None else min(self.count, there))

    def holds(self, data: np.ndarray) -> bool:
        """Whether it is so of all elements."""
        flat = data.reshape(-1)[self.first :: self.step][: self.elements(data.size)]
        if flat.dtype != np.uint64:
            flat = flat.astype(np.int64)
        return bool(((flat >= self.low + self.rise * np.arange(flat.size)) & (flat <= self.high)).all())


Ranges = tuple[Range, ...]
ANYTHING: Ranges = ()
"""For constants that are nothing but data: weights, thresholds, texts that are read as far as they go."""
SHIFTS = (-31, 30)
"""Shifts of a requantisation, all rules and forms."""


def observed(data: np.ndarray) -> Ranges:
    """From the least to the greatest element that there is: for integers of which nothing else is known."""
    if data.dtype.kind not in "iu" or not data.size:
        return ANYTHING
    return (Range(int(data.min()), int(data.max())),)


def beyond_type(ranges: Iterable[Range], dtype: DType) -> Ranges:
    """What of the ranges the type does not say already, each once; and what C says of a type that it has
    not.
    """
    if dtype.is_float and dtype.bits < 8:
        return (Range(0, 2**dtype.bits - 1),)
    if dtype is DType.BOOL:
        return (Range(0, 1),)
    if not dtype.is_integer:
        return ANYTHING
    low, high = dtype.limits
    own = (Range(low, high),) if dtype.bits < 8 else ()
    return tuple(dict.fromkeys((*own, *(r for r in ranges if r.low > low or r.high < high or r.rise))))


_wanted: WeakKeyDictionary[Value, Ranges] = WeakKeyDictionary()


def want(value: Value, *ranges: Range) -> None:
    """Code relies on it that the elements of a constant are in these ranges."""
    _wanted[value] = tuple(dict.fromkeys((*_wanted.get(value, ()), *ranges)))


def clear_wanted() -> None:
    """Before another model: what code relies on is of that code alone."""
    _wanted.clear()


def wanted(value: Value) -> Ranges:
    """All that code relies on of a constant."""
    return _wanted.get(value, ANYTHING)
