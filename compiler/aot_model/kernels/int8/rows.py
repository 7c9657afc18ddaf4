"""What loops in plain C read for each channel: the start of its sums, the numbers of its requantisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.kernels.base import Packed
from aot_model.kernels.int8.finish import (
    ROWS,
    admissible_rows,
    finish_c,
    requantise_helper,
    requantise_words,
    wrapped,
)
from aot_model.kernels.int8.requantise import RequantisePlan, bounds, plan, room_for_bias
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

    @staticmethod
    def of(kind: np.dtype, weights: Int64, bias: Int64, quant: QuantSpec) -> Rows:
        """weights [channels, taps] and bias as folded; kind: type of the weights as they lie in memory."""
        rq = plan(quant, *bounds(weights, bias, quant))
        most = room_for_bias(kind, weights.shape[1], quant)
        start = bias + rq.bias_shift
        return Rows.starting(start, quant, rq, most if int(np.abs(start).max(initial=0)) <= most else None)

    @staticmethod
    def starting(start: Int64, quant: QuantSpec, rq: RequantisePlan, room: int | None = None) -> Rows:
        """Of sums that begin with `start`."""
        words = np.array([requantise_words(rq, c) for c in range(start.size)], np.int64).T
        if rq.form == "raw":
            words = np.array(quant.channels(start.size) if quant.rounding else np.zeros((0, start.size)))
        return Rows(quant, rq, np.stack([start, *words], axis=1), room)

    @property
    def width(self) -> int:
        """Words of a row."""
        return int(self.table.shape[1])

    def packed(self, name: str = "requantisation") -> Packed:
        return Packed(name, wrapped(self.table.reshape(-1)), layout=ROWS,
                      admissible=admissible_rows(self.rq, self.width, self.room))

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
