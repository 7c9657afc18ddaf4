"""What the integers are that a kernel of this package multiplies, and how they become int16."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Elements:
    """What x is: its type, its zero point, and what is taken from it so that it is int16."""

    dtype: str
    zero: int
    shift: int

    @property
    def size(self) -> int:
        return 2 if self.dtype.endswith("16") else 1

    def narrowed(self, text: str) -> str:
        """An element as int16."""
        if self.shift == 0:
            return text
        return f"(int16_t)({text} {'-' if self.shift > 0 else '+'} {abs(self.shift)})"


def elements(dtype: str, zero: int) -> Elements:
    """8-bit integers lose their zero point; of 16-bit ones what the type allows."""
    if dtype == "uint16":
        return Elements(dtype, zero, 32768)
    return Elements(dtype, zero, 0 if dtype == "int16" else zero)
