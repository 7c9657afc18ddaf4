"""A finish in Helium's instructions: four sums of int32 become four clamped results in lanes of 32 bits.

The rounding that a finish has in its offset is the one of VRSHL, and the zero point is added behind it:
((word + 2^(s - 1) + zero * 2^s) >> s) = VRSHL(word, -s) + zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.assembly import constant
from aot_model.ir.types import DType
from aot_model.kernels.int16.finish import Finish

LIMITS = ("q4", "q5")
"""Vectors that hold the limits of the results, where storing the low bits would not be clamping."""


def with_a_sign(to: DType) -> str:
    """C type of pointers by which vectors store results."""
    return f"int{to.bits}_t *"


def where_stored(place: str, to: DType) -> str:
    """A pointer to results of their own type, as vectors take it."""
    return place if f"{to.c_type} *" == with_a_sign(to) else f"({with_a_sign(to)})({place})"


@dataclass(frozen=True)
class Ending:
    """The instructions for a finish with one of the rules that round once or twice, but never to even."""

    finish: Finish

    @staticmethod
    def of(finish: Finish | None) -> Ending | None:
        """None where there is no such sequence."""
        if finish is None or finish.rule not in ("up", "away") or finish.to.bits > 16:  # stores narrow
            return None
        return Ending(finish)

    @property
    def saturates(self) -> bool:
        """Whether the limits are those of int16."""
        return (self.finish.low, self.finish.high) == (-32768, 32767)

    @property
    def store(self) -> str:
        """What stores the results' low bits."""
        return {8: "vstrb{t}.32", 16: "vstrh{t}.32"}[self.finish.to.bits]

    @property
    def pointer(self) -> str:
        """C type of where they go."""
        return with_a_sign(self.finish.to)

    def limits(self) -> list[str]:
        """Instructions before all, which spoil r0."""
        pairs = zip(LIMITS, (self.finish.low, self.finish.high), strict=True)
        return (
            []
            if self.saturates
            else [line for q, value in pairs for line in (*constant("r0", value), f"vdup.32 {q}, r0")]
        )

    def record(self, channels: np.ndarray) -> np.ndarray:
        """Constants of some channels as bytes: starts, multipliers (int32), shifts where they differ."""
        f = self.finish
        rows = np.zeros((len(channels), 4), np.int64)
        inside = channels < len(f.rows)
        rows[inside] = f.rows[channels[inside]]
        parts = [rows[:, 0].astype("<i4"), rows[:, 1].astype("<i4")]
        parts += [] if f.uniform_shift else [(-rows[:, 3]).astype("i1")]
        return np.concatenate([np.frombuffer(p.tobytes(), np.int8) for p in parts])

    def lines(self, sums: str, multiplier: str, shift: str, zero: str, temp: str) -> list[str]:
        """For sums that hold the start already. multiplier, shift: vectors; zero: a register of the core with
        the zero point.
        """
        f = self.finish
        lines = [f"vshl.s32 {sums}, {sums}, #{f.left}"] if f.left else []
        own = int(f.rows[0][3])
        if f.rule == "away":
            lines.append(f"vrmulh.s32 {sums}, {sums}, {multiplier}")
            if not f.uniform_shift or own:
                lines += [f"vshr.s32 {temp}, {sums}, #31", f"vadd.i32 {sums}, {sums}, {temp}"]
        else:
            lines.append(f"vmulh.s32 {sums}, {sums}, {multiplier}")
        if not f.uniform_shift:
            lines.append(f"vrshl.s32 {sums}, {sums}, {shift}")
        elif own:
            lines.append(f"vrshr.s32 {sums}, {sums}, #{own}")
        lines += [f"vadd.i32 {sums}, {sums}, {zero}"] if f.zero else []
        if self.saturates:
            return [*lines, f"vqmovnb.s32 {sums}, {sums}"]
        return [*lines, f"vmax.s32 {sums}, {sums}, {LIMITS[0]}", f"vmin.s32 {sums}, {sums}, {LIMITS[1]}"]

    def clamped(self, results: str, temp: str, register: str) -> list[str]:
        """Zero point and limits without vectors that hold them: behind the shift of `lines`, by a register of
        the core.
        """
        f = self.finish
        lines = [*constant(register, f.zero), f"vadd.i32 {results}, {results}, {register}"
                 ] if f.zero else []  # fmt: skip
        whole = (f.to.bits, f.to.c_type) == (16, "int16_t")
        bits = 16 if whole else 32
        if whole:
            lines.append(f"vqmovnb.s32 {results}, {results}")
        for name, limit, end in (("max", f.low, -32768), ("min", f.high, 32767)):
            if limit != end or not whole:
                lines += [*constant(register, limit), f"vdup.{bits} {temp}, {register}",
                          f"v{name}.s{bits} {results}, {results}, {temp}"]  # fmt: skip
        return lines

    def scalar(self, total: str, start: str, multiplier: str, shift: str) -> list[str]:
        """C for the twin that declares `v`, int32_t. shift: minus the shift, where channels differ in it."""
        f = self.finish
        right = str(int(f.rows[0][3])) if f.uniform_shift else f"(-({shift}) & 31)"
        whole = f"(int32_t)(((uint32_t)({total}) + (uint32_t)({start})) << {f.left})"
        return [
            f"const int32_t v = aot_model_finished({whole}, {multiplier}, {right}, {int(f.rule == 'away')}, "
            f"{f.zero}, {f.low}, {f.high});"
        ]
