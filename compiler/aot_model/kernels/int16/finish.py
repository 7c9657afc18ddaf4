"""From a sum to the clamped integer: a requantisation as one multiplication, where that gives the same for every sum.

    rule        (sum * m + 2^(t - 1)) >> t, then the zero point is added and the result is clamped
    here        (high word of (sum + start) * 2^left * m' + offset) >> s, offset holding the rounding and the zero point

The high word is of the exact product of 64 bits, so nothing is rounded twice. It holds for the rules with one rounding and
ties up: that with 32-bit multipliers ("single"), and that of 64-bit sums with multipliers of 16 bits ("wide") as long as
the sums have 32 bits in fact. Other rules, and all that follows, are the tail's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.ir.admissible import Range
from aot_model.ir.graph import Node
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.base import Packed
from aot_model.kernels.int16.dots import INT32
from aot_model.kernels.tail import Chain
from aot_model.ops.quantised import Requantise

_LARGEST_OFFSET = 1 << 30


@dataclass(frozen=True)
class Finish:
    """Bias and requantisation of a layer; `after` nodes of the chain are done by it."""

    after: int
    table: Packed
    width: int
    """Of the table's rows: start, multiplier, offset, and the shift where channels have different ones."""
    left: int
    shift: int
    low: int
    high: int

    def lines(self, total: str, row: str) -> list[str]:
        """C that computes `v` from a sum; row: a pointer to the channel's row of the table."""
        shift = f"{row}[3]" if self.width == 4 else str(self.shift)
        return [
            f"const int64_t scaled = (int64_t)(({total} + {row}[0]){f' * {1 << self.left}' if self.left else ''}) * {row}[1];",
            f"const int32_t shifted = ((int32_t)(scaled >> 32) + {row}[2]) >> {shift};",
            f"const int32_t v = shifted < {self.low} ? {self.low} : shifted > {self.high} ? {self.high} : shifted;",
        ]


def per_channel(value: Value | None, channels: int) -> np.ndarray | None:
    """A constant for each channel of the last axis, or one for all."""
    if value is None or value.data is None or value.data.size not in (1, channels):
        return None
    if value.data.size > 1 and value.shape[-1] != channels:
        return None
    return np.broadcast_to(value.data.reshape(-1), (channels,))


def finish_of(node: Node, chain: Chain, start: np.ndarray, most: int) -> Finish | None:
    """How the first nodes of a chain are done at once; None where they are left to the tail.

    start: what belongs to every sum of a channel besides the products. most: the largest sum of products.
    """
    out, after, channels = node.outputs[0], 0, start.size
    if chain.nodes and chain.nodes[0].kind == "Add":
        first = chain.nodes[0]
        bias = per_channel(first.inputs[1] if first.inputs[0] is out else first.inputs[0], channels)
        if bias is None:
            return None
        start, out, after = start + bias.astype(object), first.outputs[0], 1
    step = chain.nodes[after] if len(chain.nodes) > after else None
    if step is None or not isinstance(step.op, Requantise) or step.inputs[0] is not out or step.op.x_zero_point:
        return None
    multiplier, shift = (per_channel(step.inputs[k], channels) for k in (1, 2))
    if multiplier is None or shift is None or step.op.rounding not in ("single", "wide"):
        return None
    m, s = multiplier.astype(np.int64), -1 - shift.astype(np.int64)
    m = m << 16 if step.op.rounding == "wide" else m
    left = max(0, 1 - int(s.min()))  # a shift of no place would leave the rounding to the high word
    s = s + left
    if bool((m < 0).any() or (m > INT32).any() or (s > 30).any()) or left > 16:
        return None
    room = (INT32 >> left) - most
    if any(abs(int(v)) > room for v in start):
        return None
    offset = (np.int64(1) << (s - 1)) + (np.int64(step.op.zero_point) << s)
    if int(np.abs(offset).max()) >= _LARGEST_OFFSET:
        return None
    columns = [start.astype(np.int64), m, offset]
    uniform = bool((s == s[0]).all())
    if not uniform:
        columns.append(s)
    width = len(columns)
    rows = np.ascontiguousarray(np.stack(columns, axis=1).astype(np.int32)).reshape(-1)
    admissible = (
        Range(-room, room, 0, width), Range(-_LARGEST_OFFSET, _LARGEST_OFFSET, 2, width),
        *(() if uniform else (Range(0, 31, 3, width),)),
    )  # fmt: skip
    table = Packed("requantisation", rows, admissible=admissible)
    low, high = (int(v) for v in (step.op.low, step.op.high))
    return Finish(after + 1, table, width, left, int(s[0]), low, high)


def accumulates(dtype: DType, most: int) -> bool:
    """Whether sums of products of at most this size in all are right in an accumulator's type."""
    return dtype is DType.INT64 or most <= INT32
