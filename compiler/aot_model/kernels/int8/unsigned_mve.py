"""uint8 at both ends of Helium's kernels, which multiply int8: what they copy of the input is turned into
int8, less 128 as its zero point is; results saturate to uint8 (requantise_mve.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..base import Scratch
from .spec import QuantSpec


@dataclass(frozen=True)
class Ends:
    """The types of a layer's input and results, as the C of its kernel names them."""

    unsigned_x: bool = False
    unsigned_y: bool = False

    @staticmethod
    def of(spec: QuantSpec) -> Ends:
        return Ends(spec.x_dtype == "uint8", spec.out_dtype == "uint8")

    @property
    def x(self) -> str:
        """C of the input as bytes."""
        return "(const int8_t *)x" if self.unsigned_x else "x"

    @property
    def y(self) -> str:
        """C of the results as bytes, where they are stored."""
        return "(int8_t *)y" if self.unsigned_y else "y"

    @property
    def row(self) -> str:
        """The same of those that wait for a tail."""
        return "(int8_t *)row" if self.unsigned_y else "row"

    def results(self, count: int) -> Scratch:
        """Room for those."""
        return Scratch("row", count, ctype="uint8_t" if self.unsigned_y else "int8_t")

    def signed(self, spec: QuantSpec) -> QuantSpec:
        """The layer of int8 inputs that they are turned into."""
        if not self.unsigned_x:
            return spec
        return replace(spec, x_dtype="int8", x_zero_point=spec.x_zero_point - 128)

    def turned(self, at: str, count: int) -> str:
        """The statement that turns `count` bytes at a place into int8; none where they are that."""
        return f"aot_mve_turn_signs({at}, {count});\n" if self.unsigned_x else ""


def padding(spec: QuantSpec) -> int:
    """The input's zero point as the int8 that has its bits, before it is turned."""
    return (spec.x_zero_point + 128) % 256 - 128
