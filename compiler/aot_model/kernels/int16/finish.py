"""From a sum to the clamped integer: a requantisation as one multiplication, where that is the same.

    rule        (sum * m + 2^(t - 1)) >> t, then the zero point is added and the result is clamped
    here        (high word of (sum + start) * 2^left * m' + offset) >> s; offset: rounding and zero point

The high word is of the exact product of 64 bits, so nothing is rounded twice: so it is for the rules with one
rounding, with multipliers of 32 bits ("single"; "even", which looks for a tie) or of 16 to 31 ("wide", if
the sums have 32 bits in fact). TensorFlow Lite Micro's two roundings ("double") are a rounded high word
and a shift with ties away from zero. What fits none of these is the tail's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.ir.admissible import Range
from aot_model.ir.types import DType
from aot_model.kernels.base import Packed
from aot_model.kernels.int8.dsp import SATURATIONS
from aot_model.kernels.int16.dots import INT32

_LARGEST_OFFSET = 1 << 30


@dataclass(frozen=True)
class Finish:
    """Bias and requantisation of a layer; `after` nodes of the chain are done by it."""

    after: int
    rule: str
    rows: np.ndarray
    """For each channel: start, multiplier, offset, shift."""
    left: int
    zero: int
    to: DType
    low: int
    high: int
    room: int
    """No start is larger, or the sums would leave 32 bits."""

    @property
    def literal(self) -> bool:
        """Whether the same constants of the code are for all channels."""
        return bool((self.rows == self.rows[0]).all())

    @property
    def uniform_shift(self) -> bool:
        return bool((self.rows[:, 3] == self.rows[0, 3]).all())

    @property
    def width(self) -> int:
        """Words of the table's rows."""
        return 3 if self.uniform_shift else 4

    def table(self) -> tuple[Packed, ...]:
        """The constants that the lines read."""
        if self.literal:
            return ()
        ranges = [
            Range(-self.room, self.room, 0, self.width),
            Range(-_LARGEST_OFFSET, _LARGEST_OFFSET, 2, self.width),
        ]
        if not self.uniform_shift:
            ranges.append(Range(1, 30, 3, self.width))
        rows = np.ascontiguousarray(self.rows[:, : self.width].astype(np.int32)).reshape(-1)
        return (Packed("requantisation", rows, admissible=tuple(ranges)),)

    def row(self, name: str, channel: str) -> list[str]:
        """C that declares a pointer to a channel's constants."""
        return (
            []
            if self.literal
            else [f"const int32_t *const {name} = requantisation + ({channel}) * {self.width};"]
        )

    def lines(self, total: str, row: str) -> list[str]:
        """C that computes `v`, of the result's type, from a sum; row: what `row` declared."""
        first = [str(int(v)) for v in self.rows[0]]
        start, multiplier, offset = first[:3] if self.literal else [f"{row}[{k}]" for k in range(3)]
        shift = first[3] if self.uniform_shift else f"{row}[3]"
        whole = total if start == "0" else f"({total} + {start})"
        whole = f"{whole} * {1 << self.left}" if self.left else whole
        if self.rule == "away":
            lines = [f"const int32_t rounded = dsp_smmlar({whole}, {multiplier}, 0);"]
            sign = " + (rounded >> 31)" if shift != "0" else ""
            place = f"(rounded{sign} + {offset})"
            lines.append(f"const int32_t moved = {place if shift == '0' else f'{place} >> {shift}'};")
        else:
            lines = [
                f"const int64_t scaled = (int64_t)({whole}) * {multiplier};",
                f"const int32_t word = (int32_t)(scaled >> 32) + {offset};",
            ]
            moved = f"word >> {shift}"
            if self.rule == "even":
                odd = f"(({moved}) & 1)" if self.zero % 2 == 0 else f"(~({moved}) & 1)"
                mask = f"{(1 << int(shift)) - 1}" if self.uniform_shift else f"((1 << {shift}) - 1)"
                moved = f"({moved}) - (((uint32_t)scaled == 0u && (word & {mask}) == 0) ? {odd} : 0)"
            lines.append(f"const int32_t moved = {moved};")
        saturate = SATURATIONS.get((self.low, self.high))
        inside = f"moved < {self.low} ? {self.low} : moved > {self.high} ? {self.high} : moved"
        value = f"dsp_{saturate}(moved)" if saturate else f"({inside})"
        return [*lines, f"const {self.to.c_type} v = ({self.to.c_type}){value};"]


@dataclass(frozen=True)
class Rule:
    """A requantisation as the model has it: one multiplier and shift for each channel."""

    rounding: str
    multiplier: np.ndarray
    shift: np.ndarray
    zero: int
    low: int
    high: int
    to: DType


def finish(after: int, start: np.ndarray, rule: Rule, most: int) -> Finish | None:
    """How the first `after` nodes of a chain are done at once; None where they are left to the tail.

    start: what belongs to the sums of each channel besides the products. most: the largest sum of products.
    """
    found = _scaling(rule.rounding, rule.multiplier.astype(np.int64), rule.shift.astype(np.int64))
    if found is None:
        return None
    name, left, m, s, rounding = found
    room = (INT32 >> left) - most
    offset = rounding + (np.int64(rule.zero) << s)
    if int(np.abs(start).max()) > room or int(np.abs(offset).max()) >= _LARGEST_OFFSET:
        return None
    rows = np.stack([start, m, offset, s], axis=1)
    return Finish(after, name, rows, left, rule.zero, rule.to, rule.low, rule.high, room)


Scaling = tuple[str, int, np.ndarray, np.ndarray, np.ndarray]


def _scaling(rounding: str, m: np.ndarray, shift: np.ndarray) -> Scaling | None:
    """(rule, left, multipliers, shifts, what rounds) of a requantisation."""
    if bool((m < 0).any()):
        return None
    if rounding == "double":
        right = np.maximum(-shift, 0)
        if bool((shift > 0).any() or (right == 0).any()):
            if not bool((shift == shift[0]).all()) or shift[0] > 14:
                return None
            return "away", 1 + int(shift[0]), m, right, np.zeros_like(m)
        return ("away", 1, m, right, np.int64(1) << (right - 1)) if bool((right <= 30).all()) else None
    if rounding == "wide":  # 16 bits and more: the same factor with 31
        more = np.asarray([max(0, int(v).bit_length() - 15) for v in m], dtype=np.int64)
        m, shift = m << (16 - more), shift + more
    s = -1 - shift
    left = max(0, 1 - int(s.min()))  # a shift of no place would leave the rounding to the high word
    s = s + left
    if bool((s > 30).any()) or left > 16:
        return None
    return "even" if rounding == "even" else "up", left, m, s, np.int64(1) << (s - 1)
