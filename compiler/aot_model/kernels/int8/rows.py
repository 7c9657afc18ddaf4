"""What loops in plain C read for each channel: the start of its sums, the numbers of its requantisation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.ir.admissible import ANYTHING, Range
from aot_model.kernels.base import Packed
from aot_model.kernels.int8.finish import (
    ROWS,
    admissible_rows,
    finish_c,
    numbers_of,
    requantise_helper,
    wrapped,
)
from aot_model.kernels.int8.requantise import SHORT, RequantisePlan, bounds, plan, room_for_bias
from aot_model.kernels.int8.spec import Int64, QuantSpec


@dataclass(frozen=True)
class Rows:
    """The table of a layer, and the C of its sums."""

    quant: QuantSpec
    rq: RequantisePlan
    table: Int64
    """[channels, words]"""
    room: int | None
    """How large a start may be, so that sums stay within int32; None where they may wrap."""
    paired: bool = False
    """The rows of two channels are {start, multiplier} of each, then both offsets in a word."""

    @staticmethod
    def of(
        kind: np.dtype,
        weights: Int64,
        bias: Int64,
        quant: QuantSpec,
        paired: bool = False,
        short: bool = False,
    ) -> Rows:
        """weights [channels, taps] and bias as folded; kind: type of the weights as they lie in memory.
        paired: channels are read two at a time, so that short offsets may share a word. short: a multiplier
        of 16 bits and its offset do, where they are exact.
        """
        rq = plan(quant, *bounds(weights, bias, quant), short=short)
        if short and rq.form != "short":
            rq = plan(quant, *bounds(weights, bias, quant))
        most = room_for_bias(kind, weights.shape[1], quant)
        start = bias + rq.bias_shift
        room = most if int(np.abs(start).max(initial=0)) <= most else None
        rows = Rows.starting(start, quant, rq, room)
        short = rq.form == "affine" and rq.uniform_shift and int(np.abs(rq.offset).max()) < SHORT
        if not (paired and short):
            return rows
        both = rq.offset.reshape(-1, 2) & 0xFFFF
        pairs = rows.table[:, :2].reshape(-1, 4)
        table = np.concatenate([pairs, both[:, :1] | both[:, 1:] << 16], axis=1)
        return replace(rows, table=table, paired=True)

    @staticmethod
    def starting(start: Int64, quant: QuantSpec, rq: RequantisePlan, room: int | None = None) -> Rows:
        """Of sums that begin with `start`."""
        words = numbers_of(rq)
        if rq.form == "raw" and quant.rounding:
            words = np.stack(quant.channels(start.size), axis=1)
        return Rows(quant, rq, np.column_stack([start, words]), room)

    @property
    def width(self) -> int:
        """Words of a row; of one of two channels, if they are paired."""
        return int(self.table.shape[1])

    def packed(self, name: str = "requantisation") -> Packed:
        data = wrapped(self.table.reshape(-1))
        if not self.paired:
            return Packed(name, data, layout=ROWS, admissible=admissible_rows(self.rq, self.width, self.room))
        room = self.room
        starts = ANYTHING if room is None else tuple(Range(-room, room, k, self.width) for k in (0, 2))
        return Packed(
            name,
            data,
            admissible=starts,
            layout="for each two channels: start value of the sums and multiplier of each; two "
            "offsets in a word",
        )

    def start(self, table: str, channel: int) -> str:
        """Where in `table`, a pointer to a block of channels, the start of one's sums is."""
        return f"{table}[{channel * (2 if self.paired else self.width)}]"

    def step(self, channels: int) -> int:
        """Words of a block of channels."""
        return self.width * channels // (2 if self.paired else 1)

    def sums(self) -> tuple[str, str]:
        """(type of the sums, cast of what is added).

        Unsigned ones wrap as the rule's do, but gcc reorders them and runs out of registers: only where they
        may wrap.
        """
        return ("int32_t", "") if self.room is not None else ("uint32_t", "(uint32_t)")

    def as_sum(self, product: str) -> str:
        """A product as it is added to a sum."""
        return product if self.room is not None else f"(uint32_t)({product})"

    def as_int(self, total: str) -> str:
        """A finished sum as int32."""
        return total if self.room is not None else f"(int32_t){total}"

    def helpers(self) -> tuple[str, ...]:
        """Functions that `finish` calls."""
        return tuple(t for t in (requantise_helper(self.quant)[1],) if t and self.rq.form == "raw")

    def finish_of(self, table: str, channel: int) -> list[str]:
        """C that turns the sum `v` into the result, of a channel of the block at `table`."""
        if not self.paired:
            return self.finish(f"{table} + {channel * self.width + 1}")
        both = f"{table}[4]"
        offset = f"{both} >> 16" if channel else f"(int16_t){both}"
        return finish_c(self.rq, self.quant.out_dtype, f"({table} + {2 * channel + 1})", offset)

    def finish(self, constants: str) -> list[str]:
        """C that turns the sum `v` into the result; constants: a pointer behind the row's start."""
        if self.rq.form != "raw":
            at = constants if constants.isidentifier() else f"({constants})"
            return finish_c(self.rq, self.quant.out_dtype, at)
        rule, _ = requantise_helper(self.quant)
        return [f"v = {rule}(v, {constants});"] if rule else []


def less(zero_point: int) -> str:
    """C that subtracts a weight's zero point, behind the weight."""
    return f" - {zero_point}" if zero_point > 0 else f" + {-zero_point}" if zero_point else ""
