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
no right shift anywhere VQRDMULH. Where some channels shift right, those that do not are shifted by one bit in
both directions. A left shift saturates, as what it cuts off is beyond the activation range.

"even" rounds as "single" does, but of a tie above an even number it rounds a - 1, which is no tie any more.
Such ties are found in the product's low bits, which are those of half a unit with an even number before them:

    a * (m / 2^right) - 2^30                       VMLA(S): 0 modulo 2^32 for such a tie
    1 for 0, 0 for all others                      VCLZ, VSHR
    a - that                                       VSUB

A channel whose m is no multiple of 2^right has no ties that matter (`_even`); its factor is 0, which finds
none. Where all factors are powers of two, as in networks whose scales are, nothing need be multiplied:

    b = a - 1, and 1 more where bit s of it is 1   the bias has the 1; VSHL and VSHR bring -1 or 0, VSUB
    (b + 2^(s - 1)) >> s                           VRSHL

A tie between an odd and an even number has lost its half but where the lower one is odd. (Bit s of a - 1 is
not that of a where a is a whole number of units: then either sum ends there.)

The sum v + zero_point is taken in saturating int16. That is exact: |zero_point| <= 255, so a value cut to
int16 stays outside of int8 and uint8 after the addition.

The kernels multiply int8. Of uint8 what they copy of the input is turned into int8, less 128 as its zero
point is; results saturate to uint8 (`Ends`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.kernels.base import Scratch
from aot_model.kernels.int8.requantise import bounds, fold_zero_point
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights

HEADER = "aot_model/int8_mve.h"
"""What all micro-kernels start from: the choice of instruction set, copies, and arithmetic for the twins."""
DEPTHWISE_HEADER = "aot_model/int8_mve_depthwise.h"
"""The same, with rows that are turned."""


@dataclass(frozen=True)
class Requantiser:
    """The instruction sequence for one layer and its per-channel constants."""

    bias: np.ndarray
    multiplier: np.ndarray
    left: np.ndarray
    right: np.ndarray
    spec: QuantSpec
    ties: str
    """'up': VRSHL alone; 'away': all channels need the -1; 'mixed': only those with a right shift; 'even':
    the product's low bits say which are lowered; 'bit': factors are powers of two, whose ties one bit
    decides.
    """
    tie: np.ndarray
    """int32: what gives 2^30 modulo 2^32 times a number that 'even' lowers; 0: the channel has none."""

    @property
    def zero_point(self) -> int:
        return self.spec.out_zero_point

    @property
    def has_left(self) -> bool:
        return bool(np.any(self.left > 0))

    @property
    def both(self) -> bool:
        """Whether some channels shift in both directions: to the right by one bit then."""
        return bool(np.any((self.left > 0) & (self.right > 0)))

    @property
    def common_right(self) -> int | None:
        """The right shift that all channels share, or None; None too where some channels shift left."""
        return int(self.right[0]) if np.all(self.right == self.right[0]) and not self.has_left else None

    @property
    def signed_shift(self) -> np.ndarray:
        """int8, one per channel: positive shifts left, as the depthwise kernels read it. Where there are
        `both`, one that is not negative is one less than the left shift.
        """
        shift: np.ndarray = (self.left - self.right).astype(np.int8)
        return shift

    @property
    def rounds_product(self) -> bool:
        """Whether the product is rounded before it is shifted; without shifts the one rounding is there."""
        return self.spec.rounding == "double" or not np.any(self.right)

    @property
    def multiplies(self) -> bool:
        """Whether there is a product at all."""
        return self.ties != "bit"

    @property
    def common_multiplier(self) -> int | None:
        """The multiplier that all channels share, or None."""
        return int(self.multiplier[0]) if np.all(self.multiplier == self.multiplier[0]) else None

    @property
    def own_multipliers(self) -> bool:
        """Whether each channel has its own."""
        return self.multiplies and self.common_multiplier is None

    @property
    def shifts_at(self) -> int:
        """Where in a record the shifts begin, behind the words."""
        return 32 if self.own_multipliers else 16

    @property
    def tie_at(self) -> int:
        """Where in a record the factors of ties begin, behind the shifts."""
        return self.shifts_at + 4 * self.has_left + 4 * (self.common_right is None)

    @property
    def numbers(self) -> np.ndarray:
        """int32 [channels, 1 to 3]: bias, multiplier, factor of ties, of which a layer has what it needs."""
        columns = [self.bias, *([self.multiplier] if self.multiplies else []),
                   *([self.tie] if self.ties == "even" else [])]  # fmt: skip
        return np.stack(columns, 1).astype(np.int32)

    @property
    def record_bytes(self) -> int:
        """Bytes of the constants of four channels in the packed stream."""
        return self.tie_at + 16 * (self.ties == "even")

    @property
    def note(self) -> str:
        """What becomes of sums, for the comment above a kernel."""
        shift = "shifts by channel" if self.common_right is None else f">> {self.common_right}"
        factor = "factors by channel" if self.own_multipliers else "one factor"
        factor = factor if self.multiplies else "powers of two"
        even = ", ties to even" if self.ties in ("even", "bit") else ""
        limits = f"within {self.spec.act_min} .. {self.spec.act_max}"
        return f"results: {factor}, {shift}{even}, zero point {self.zero_point}, {limits}"

    def head(self) -> np.ndarray:
        """What precedes all records, uint8: the common multiplier, if there is one, four times."""
        common = self.common_multiplier if self.multiplies else None
        return np.frombuffer(np.full(0 if common is None else 4, common or 0, "<i4").tobytes(), np.uint8)

    def record(self, channels: np.ndarray) -> np.ndarray:
        """Constants of four channels as uint8: bias[4], multiplier[4] (int32), left[4], -right[4] (int8),
        tie[4] (int32), of which a layer has what it needs.
        """
        columns = (
            (True, self.bias, "<i4"),
            (self.own_multipliers, self.multiplier, "<i4"),
            (self.has_left, self.left, "i1"),
            (self.common_right is None, -self.right, "i1"),
            (self.ties == "even", self.tie, "<i4"),
        )
        parts = [self._at(values, channels, dtype) for needed, values, dtype in columns if needed]
        return np.concatenate([np.frombuffer(part.tobytes(), np.uint8) for part in parts])

    @staticmethod
    def _at(values: np.ndarray, channels: np.ndarray, dtype: str) -> np.ndarray:
        inside = channels < len(values)
        return np.where(inside, values[np.minimum(channels, len(values) - 1)], 0).astype(dtype)

    def vector(
        self, acc: str, temp: str, mult: str, left: str, right: str, spare: str, tie: str
    ) -> list[str]:
        """Instructions for one vector of four int32 that already hold the bias, up to the shift.

        `mult`, `left`, `right` are vector registers or, where the four lanes are one channel, core registers.
        spare: a core register to spoil. tie: where the factors of ties are: an address or, for one channel, a
        core register. A common right shift is left to `narrow`.
        """
        lines, doubly = list[str](), self.spec.rounding == "double"
        if self.has_left:
            lines.append(_shifted("vshl.s32" if doubly else "vqshl.s32", acc, left))
        if self.ties == "even":
            lines += [f"vmov.i32 {temp}, #0xc0000000", f"vmla.s32 {temp}, {acc}, {tie}"
                      ] if tie.startswith("r") else [f"vldrw.32 {temp}, {tie}", f"mov {spare}, #0xc0000000",
                                                     f"vmlas.s32 {temp}, {acc}, {spare}"]  # fmt: skip
            lines += [f"vclz.i32 {temp}, {temp}", f"vshr.u32 {temp}, {temp}, #5",
                      f"vsub.i32 {acc}, {acc}, {temp}"]  # fmt: skip
        if self.ties == "bit":
            lines += self._bit(acc, temp, right, spare)
            lines += [f"vshr.s32 {temp}, {temp}, #31", f"vsub.i32 {acc}, {acc}, {temp}"]
        if self.multiplies:
            lines.append(f"{'vqrdmulh' if self.rounds_product else 'vqdmulh'}.s32 {acc}, {acc}, {mult}")
        if self.ties == "away":
            lines += [f"vshr.s32 {temp}, {acc}, #31", f"vqadd.s32 {acc}, {acc}, {temp}"]
        elif self.ties == "mixed":
            both = [f"vand {temp}, {acc}, {right}"]
            if not right.startswith("q"):
                both = [f"vdup.32 {temp}, {right}", f"vand {temp}, {temp}, {acc}"]
            lines += [*both, f"vshr.s32 {temp}, {temp}, #31", f"vqadd.s32 {acc}, {acc}, {temp}"]
        if self.common_right is None and (doubly or np.any(self.right)):
            lines.append(_shifted("vrshl.s32", acc, right))
        elif self.common_right is not None and self.common_right > 16:
            lines.append(f"vrshr.s32 {acc}, {acc}, #{self.common_right}")
        return lines

    def _bit(self, acc: str, temp: str, right: str, spare: str) -> list[str]:
        """The lowest bit that the right shift leaves, as the sign of `temp`."""
        if self.common_right is not None:
            return [f"vshl.i32 {temp}, {acc}, #{31 - self.common_right}"]
        if right.startswith("q"):
            return [f"mov {spare}, #31", f"vadd.i32 {temp}, {right}, {spare}",
                    f"vshl.s32 {temp}, {acc}, {temp}"]  # fmt: skip
        return [f"add {spare}, {right}, #31", f"vmov {temp}, {acc}", f"vshl.s32 {temp}, {spare}"]

    def narrow(self, even: str, odd: str | None, temp: str, zero: str | None = None) -> list[str]:
        """Instructions that bring two vectors to int8 or uint8: 16-bit lane 2i is lane i of `even`, 2i + 1
        lane i of `odd`.

        The result is in `even`, each byte in the low byte of its 16-bit lane. odd = None: only the even lanes
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
        low, high, unsigned = self.spec.act_min, self.spec.act_max, self.spec.out_dtype == "uint8"
        if (low, high) == self.spec.out_range:
            return [*lines, f"vqmov{'u' * unsigned}nb.s16 {even}, {even}"]
        lines += [constant_s16(temp, low), f"vmax.s16 {even}, {even}, {temp}"]
        return [*lines, constant_s16(temp, high), f"vmin.s16 {even}, {even}, {temp}"]

    def zero_point_constant(self, register: str) -> list[str]:
        """Sets all 16-bit lanes to the zero point, where `narrow` needs it."""
        return [constant_s16(register, self.zero_point)] if self.zero_point else []

    def scalar(self, acc: str, mult: str, left: str, right: str, tie: str) -> str:
        """C expression of the int8 result, for the portable twin; `right` holds minus the right shift."""
        shift = f"-({right})" if self.common_right is None else str(self.common_right)
        numbers = f"{acc}, {mult}, {left if self.has_left else '0'}, {shift}"
        numbers += f", {'1 << 30' if self.rounds_product else '0'}"
        value = f"aot_mve_requantise({numbers}, {int(self.spec.rounding == 'double')})"
        if self.ties == "even":
            value = f"aot_mve_requantise_even({numbers}, {tie})"
        if self.ties == "bit":
            value = f"aot_mve_halve_even({acc}, {shift})"
        return f"aot_mve_clamp({value} + ({self.zero_point}), {self.spec.act_min}, {self.spec.act_max})"


def _shifted(name: str, acc: str, by: str) -> str:
    """By a vector, or by a core register for all lanes."""
    return f"{name} {acc}, {acc}, {by}" if by.startswith("q") else f"{name} {acc}, {by}"


def constant_s16(register: str, value: int) -> str:
    """A constant of -256..255 in every 16-bit lane."""
    return f"vmov.i16 {register}, #{value}" if value >= 0 else f"vmvn.i16 {register}, #{~value}"


def supports(spec: QuantSpec) -> bool:
    """Whether the Helium kernels compute this arithmetic: the one place that says which forms there are."""
    bytes_ = {spec.x_dtype, spec.out_dtype} <= {"int8", "uint8"} and -128 <= spec.weight_zero_point <= 127
    low, high = spec.out_range
    in_range = low <= spec.out_zero_point <= high and low <= spec.act_min <= spec.act_max <= high
    if not bytes_ or not in_range or bool(np.any(np.abs(spec.shift) > 31)):
        return False
    multiplier, shift = np.broadcast_arrays(spec.multiplier, spec.shift)
    # what a left shift cuts off is beyond the range if multipliers have all their bits
    whole = bool(np.all((multiplier == 0) | (multiplier >= 1 << 30)))
    single = whole and (spec.rounding == "single" or (spec.rounding == "even" and _even(multiplier, shift)))
    return spec.rounding == "double" or single


def supports_sums(spec: QuantSpec) -> bool:
    """The same of what takes no requantisation: sums that go to a tail."""
    bytes_ = spec.x_dtype in ("int8", "uint8") and -128 <= spec.weight_zero_point <= 127
    return spec.rounding is None and bytes_


def _even(multiplier: np.ndarray, shift: np.ndarray) -> bool:
    """Whether ties of all channels are found, whose multipliers have all their bits.

    A multiplier that is an odd number of 2^(right - 1) has one tie, of the smallest int32, and no factor that
    finds it. It is above an even number for 3, 7, ... of them; but where right is not more than 22, that is
    beyond the activation range.
    """
    right = np.maximum(-shift.astype(np.int64), 0)
    half = np.int64(1) << np.maximum(right - 1, 0)
    return not bool(np.any((right > 22) & (multiplier % (4 * half) == 3 * half)))


def requantiser(spec: QuantSpec, weights: Weights, bias: Bias) -> Requantiser:
    """The sequence for the outputs of weights [channels, taps].

    Raises:
        ValueError: a type, rounding or range that these kernels do not have.
    """
    if not supports(spec):
        raise ValueError(f"not for the Helium kernels: {spec}")
    folded, total = fold_zero_point(weights, bias, spec)
    start = total.astype(np.int32)  # wraps, as the accumulators do
    multiplier, shift = spec.channels(len(weights))
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    live = multiplier != 0
    if np.any(live):  # 0 may be shifted at will
        left, right = np.where(live, left, left[live][0]), np.where(live, right, right[live][0])
    shifts_alone = np.all(multiplier == 1 << 30) and np.all((shift >= -30) & (shift <= 0))
    inside = int(bounds(folded, total, spec)[0].min()) > -(1 << 31)
    halved = spec.rounding == "even" and bool(shifts_alone) and inside
    if spec.rounding != "double" and not halved and np.any(right):
        left, right = np.where(right, left, left + 1), np.maximum(right, 1)
    tie = np.zeros(len(weights), np.int32)
    if halved:
        ties, start, right = "bit", start - np.int32(1), right + 1
    elif spec.rounding == "even":
        exact = multiplier % (np.int64(1) << right) == 0
        tie = np.where(exact, multiplier >> right, 0).astype(np.int32)
        ties = "even" if np.any(tie) else "up"
    elif spec.rounding != "double" or spec.act_min >= spec.out_zero_point or not np.any(right):
        ties = "up"
    else:
        ties = "away" if np.all(right > 0) else "mixed"
    return Requantiser(start, multiplier, left, right, spec, ties, tie)


@dataclass(frozen=True)
class Ends:
    """The types of a layer's input and results, as the C of its kernel names them."""

    unsigned_x: bool = False
    unsigned_y: bool = False
    words: bool = False
    """Whether results are sums of 32 bits, which a tail takes."""

    @staticmethod
    def of(spec: QuantSpec) -> Ends:
        words = spec.rounding is None
        return Ends(spec.x_dtype == "uint8", spec.out_dtype == "uint8" and not words, words)

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
        if self.words:
            return Scratch("row", 4 * count, 4, "int32_t")
        return Scratch("row", count, ctype="uint8_t" if self.unsigned_y else "int8_t")

    def signed(self, spec: QuantSpec) -> QuantSpec:
        """The layer of int8 inputs that they are turned into."""
        if not self.unsigned_x:
            return spec
        return replace(spec, x_dtype="int8", x_zero_point=spec.x_zero_point - 128)

    def turned(self, at: str, count: int | str) -> str:
        """The statement that turns `count` bytes at a place into int8; none where they are that."""
        return f"aot_mve_turn_signs({at}, {count});\n" if self.unsigned_x else ""


def padding(spec: QuantSpec) -> int:
    """The input's zero point as the int8 that has its bits, before it is turned."""
    return (spec.x_zero_point + 128) % 256 - 128
