"""Requantisation in Helium: the cheapest instruction sequence that is exact for one layer's constants.

TensorFlow Lite Micro's arithmetic ("double" rounding) on an int32 accumulator `a`:

    h = (a * 2^left * m + 2^30) >> 31              VQRDMULH
    v = h / 2^right, ties away from zero           VRSHL, which rounds ties up, after -1 was added to
                                                   negatives
    y = clamp(v + zero_point, act_min, act_max)

What the constants make superfluous is left out:

* the -1, where act_min >= zero_point: a negative h ends at act_min whichever way its ties are rounded;
* the vector of shifts, where all channels share one: then the shift rides on the narrowing instruction;
* a separate clamp, where the activation range is that of int8: the narrowing saturates.

"single" rounds once, (a * m + 2^(30 + right)) >> (31 + right): VQDMULH, which rounds down, then VRSHL; with
no right shift anywhere VQRDMULH.

The sum v + zero_point is taken in saturating int16. That is exact: |zero_point| <= 128, so a value cut to
int16 stays outside of int8 after the addition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .requantise import fold_zero_point
from .spec import QuantSpec, Rounding

HEADER = "aot_model/int8_mve.h"
"""What all micro-kernels start from: the choice of instruction set, copies, and arithmetic for the twins."""

@dataclass(frozen=True)
class Requantiser:
    """The instruction sequence for one layer and its per-channel constants."""

    bias: np.ndarray
    multiplier: np.ndarray
    left: np.ndarray
    right: np.ndarray
    zero_point: int
    act_min: int
    act_max: int
    ties: str
    """'up': VRSHL alone; 'away': all channels need the -1; 'mixed': only those with a right shift."""
    rounding: Rounding | None

    @property
    def has_left(self) -> bool:
        return bool(np.any(self.left > 0))

    @property
    def common_right(self) -> int | None:
        """The right shift that all channels share, or None; None too where some channels shift left."""
        return int(self.right[0]) if np.all(self.right == self.right[0]) and not self.has_left else None

    @property
    def signed_shift(self) -> np.ndarray:
        """int8, one per channel: positive shifts left, as the depthwise kernels read it."""
        shift: np.ndarray = (self.left - self.right).astype(np.int8)
        return shift

    @property
    def rounds_product(self) -> bool:
        """Whether the product is rounded before it is shifted; without shifts the one rounding is there."""
        return self.rounding != "single" or not np.any(self.right)

    @property
    def common_multiplier(self) -> int | None:
        """The multiplier that all channels share, or None."""
        return int(self.multiplier[0]) if np.all(self.multiplier == self.multiplier[0]) else None

    @property
    def shifts_at(self) -> int:
        """Where in a record the shifts begin, behind the words."""
        return 16 if self.common_multiplier is not None else 32

    @property
    def record_bytes(self) -> int:
        """Bytes of the constants of four channels in the packed stream."""
        return self.shifts_at + 4 * self.has_left + 4 * (self.common_right is None)

    @property
    def note(self) -> str:
        """What becomes of sums, for the comment above a kernel."""
        shift = "shifts by channel" if self.common_right is None else f">> {self.common_right}"
        factor = "one factor" if self.common_multiplier is not None else "factors by channel"
        limits = f"within {self.act_min} .. {self.act_max}"
        return f"results: {factor}, {shift}, zero point {self.zero_point}, {limits}"

    def head(self) -> np.ndarray:
        """What precedes all records, uint8: the common multiplier, if there is one, four times."""
        common = self.common_multiplier
        return np.frombuffer(np.full(0 if common is None else 4, common or 0, "<i4").tobytes(), np.uint8)

    def record(self, channels: np.ndarray) -> np.ndarray:
        """Constants of four channels as uint8: bias[4], multiplier[4] (int32), left[4], -right[4] (int8).

        Without the multipliers where there is a common one.
        """
        parts = [self._at(self.bias, channels, "<i4")]
        if self.common_multiplier is None:
            parts.append(self._at(self.multiplier, channels, "<i4"))
        if self.has_left:
            parts.append(self._at(self.left, channels, "i1"))
        if self.common_right is None:
            parts.append(self._at(-self.right, channels, "i1"))
        return np.concatenate([np.frombuffer(part.tobytes(), np.uint8) for part in parts])

    @staticmethod
    def _at(values: np.ndarray, channels: np.ndarray, dtype: str) -> np.ndarray:
        inside = channels < len(values)
        return np.where(inside, values[np.minimum(channels, len(values) - 1)], 0).astype(dtype)

    def vector(self, acc: str, temp: str, mult: str, left: str, right: str) -> list[str]:
        """Instructions for one vector of four int32 that already hold the bias, up to the shift.

        `mult`, `left`, `right` are vector registers or, where the four lanes are one channel, core registers.
        A common right shift is left to `narrow`.
        """
        lines = []
        if self.has_left:
            lines.append(
                f"vshl.s32 {acc}, {acc}, {left}" if left.startswith("q") else f"vshl.s32 {acc}, {left}")
        lines.append(f"{'vqrdmulh' if self.rounds_product else 'vqdmulh'}.s32 {acc}, {acc}, {mult}")
        if self.ties == "away":
            lines += [f"vshr.s32 {temp}, {acc}, #31", f"vqadd.s32 {acc}, {acc}, {temp}"]
        elif self.ties == "mixed":
            if right.startswith("q"):
                lines += [f"vand {temp}, {acc}, {right}", f"vshr.s32 {temp}, {temp}, #31"]
            else:
                lines += [
                    f"vdup.32 {temp}, {right}", f"vand {temp}, {temp}, {acc}", f"vshr.s32 {temp}, {temp}, #31"
                ]
            lines.append(f"vqadd.s32 {acc}, {acc}, {temp}")
        if self.common_right is None:
            lines.append(
                f"vrshl.s32 {acc}, {acc}, {right}" if right.startswith("q") else f"vrshl.s32 {acc}, {right}")
        elif self.common_right > 16:
            lines.append(f"vrshr.s32 {acc}, {acc}, #{self.common_right}")
        return lines

    def narrow(self, even: str, odd: str | None, temp: str, zero: str | None = None) -> list[str]:
        """Instructions that bring two vectors to int8: 16-bit lane 2i is lane i of `even`, 2i + 1 lane i of
        `odd`.

        The result is in `even`, each int8 in the low byte of its 16-bit lane. odd = None: only the even lanes
        count. zero: a register that already holds `zero_point_constant`.
        """
        shift = self.common_right
        if shift is not None and 1 <= shift <= 16:
            lines = [f"vqrshrnb.s32 {even}, {even}, #{shift}"]
            lines += [f"vqrshrnt.s32 {even}, {odd}, #{shift}"] if odd else []
        else:
            lines = [f"vqmovnb.s32 {even}, {even}"]
            lines += [f"vqmovnt.s32 {even}, {odd}"] if odd else []
        if self.zero_point:
            lines += [] if zero else self.zero_point_constant(temp)
            lines.append(f"vqadd.s16 {even}, {even}, {zero or temp}")
        if self.act_min == -128 and self.act_max == 127:
            return [*lines, f"vqmovnb.s16 {even}, {even}"]
        lines += [_constant_s16(temp, self.act_min), f"vmax.s16 {even}, {even}, {temp}"]
        return [*lines, _constant_s16(temp, self.act_max), f"vmin.s16 {even}, {even}, {temp}"]

    def zero_point_constant(self, register: str) -> list[str]:
        """Sets all 16-bit lanes to the zero point, where `narrow` needs it."""
        return [_constant_s16(register, self.zero_point)] if self.zero_point else []

    def scalar(self, acc: str, mult: str, left: str, right: str) -> str:
        """C expression of the int8 result, for the portable twin; `right` holds minus the right shift."""
        shift = f"-({right})" if self.common_right is None else str(self.common_right)
        rounding = f"{'1 << 30' if self.rounds_product else '0'}, {int(self.rounding == 'double')}"
        value = f"aot_mve_requantise({acc}, {mult}, {left if self.has_left else '0'}, {shift}, {rounding})"
        return f"aot_mve_clamp({value} + ({self.zero_point}), {self.act_min}, {self.act_max})"


def _constant_s16(register: str, value: int) -> str:
    """A constant of -256..255 in every 16-bit lane."""
    return f"vmov.i16 {register}, #{value}" if value >= 0 else f"vmvn.i16 {register}, #{~value}"


def supports(spec: QuantSpec) -> bool:
    """Whether the Helium kernels compute this arithmetic.

    Single rounding takes one kind of multiplication for all channels: all shift right, or none does.
    """
    kinds = (spec.x_dtype, spec.out_dtype, spec.weight_zero_point)
    in_range = -128 <= spec.out_zero_point <= 127 and -128 <= spec.act_min <= spec.act_max <= 127
    multiplier, shift = np.broadcast_arrays(spec.multiplier, spec.shift)
    one_kind = len(set(shift[multiplier != 0] < 0)) < 2
    alike = spec.rounding == "double" or (spec.rounding == "single" and one_kind)
    return kinds == ("int8", "int8", 0) and in_range and alike and bool(np.all(np.abs(spec.shift) <= 31))


def requantiser(spec: QuantSpec, weights: np.ndarray, bias: np.ndarray | None) -> Requantiser:
    """The sequence for the outputs of weights [channels, taps].

    Raises:
        ValueError: a type, rounding or range that these kernels do not have.
    """
    if not supports(spec):
        raise ValueError(f"not for the Helium kernels: {spec}")
    start = fold_zero_point(weights, bias, spec)[1].astype(np.int32)  # wraps, as the accumulators do
    multiplier, shift = spec.channels(len(weights))
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    live = multiplier != 0
    if np.any(live):  # 0 may be shifted at will
        left, right = np.where(live, left, left[live][0]), np.where(live, right, right[live][0])
    if spec.rounding != "double" or spec.act_min >= spec.out_zero_point or not np.any(right):
        ties = "up"
    else:
        ties = "away" if np.all(right > 0) else "mixed"
    return Requantiser(start, multiplier, left, right, spec.out_zero_point, spec.act_min, spec.act_max, ties,
                       spec.rounding)
