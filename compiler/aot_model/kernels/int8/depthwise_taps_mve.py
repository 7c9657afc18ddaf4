"""Depthwise convolution of any kernel size, int8, Helium: gathers of eight taps of one channel.

A gather of eight bytes, widened to int16, brings eight taps of one channel wherever they lie; VMLADAVA.S16
multiplies them with eight weights: 2 instructions per 8 taps. The channel's weights and the taps' offsets
stay in registers along the row where there are at most 16 taps. An image that needs padding passes through a
ring of padded rows, which also lets the output overwrite the input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.int8.channel_rows_mve import (
    ACCUMULATORS,
    FOUR,
    ByteEnd,
    ChannelRows,
    RowEnd,
    SumEnd,
    covered,
    scattered,
    summed,
)
from aot_model.kernels.int8.image_rows_mve import PaddedRows, ring_of
from aot_model.kernels.int8.requantise import fold_zero_point
from aot_model.kernels.int8.requantise_mve import Ends, constant_s16, padding, requantiser
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights

RESIDENT = 2
"""Vectors of weights, and of their taps' offsets, that stay in registers along a row."""


@dataclass(frozen=True)
class TapPlan(PaddedRows):
    """Where the taps lie. Of elements of two bytes, a gather is of half-words."""

    chunks: int
    """Gathers of eight taps that an output has."""
    multiplier: int

    @property
    def step(self) -> int:
        """Bytes from the window of one output to the next in the row."""
        return self.size * self.shape.stride_w * self.shape.in_c

    @property
    def reach(self) -> int:
        """Offset of an output's last tap."""
        return (self.shape.tall - 1) * self.row + (self.shape.wide - 1) * self.shape.in_c * self.size

    @property
    def cycles(self) -> float:
        """Of a Cortex-M55, for all outputs, about."""
        s = self.shape
        lines = 35 * (s.in_h + s.pad_top) if self.slots and self.size == 1 else 0
        outputs = covered(s.out_w) * 5 + (11 * self.chunks - 1) * summed(s.out_w)
        return s.batch * (lines + s.out_h * (30 + s.out_c * (14 + outputs)))

    @property
    def taps_now(self) -> str:
        """C that finds the offsets for the place of the ring's oldest row."""
        at = f"oy * {self.shape.stride_h} % {self.slots} * {8 * self.chunks}"
        return f"const uint16_t *taps = offsets + {at};\n" if self.slots else ""

    @property
    def resident_offsets(self) -> list[str]:
        """Instructions before all channels."""
        resident = range(self.chunks if self.chunks <= RESIDENT else 0)
        return [f"vldrh.16 q{3 + i}, [r11, #{16 * i}]" for i in resident]


def depthwise_taps(
    shape: ConvShape, weights: Weights, bias: Bias, spec: QuantSpec, tail: Tail | None = None
) -> KernelCode:
    """Any kernel of up to 128 taps, stride, dilation, padding and channel multiplier.

    weights: int8 [kernel_h, kernel_w, out_c]. bias: int32 [out_c]. tail: as for `conv`; it takes the sums
    where spec.rounding is None.
    """
    s = shape.along_row
    taps = s.kernel_h * s.kernel_w
    assert applicable(shape), shape
    by_column = np.asarray(weights, np.int8).reshape(s.kernel_h, s.kernel_w, s.out_c).transpose(2, 1, 0)
    matrix = by_column.reshape(s.out_c, taps)
    p = tap_plan(s)
    outside, ends = spec.weight_zero_point, Ends.of(spec)
    end: RowEnd
    if spec.rounding is None:
        end = SumEnd(fold_zero_point(matrix, bias, spec)[1].astype(np.int32))
    else:
        end = ByteEnd(requantiser(spec, matrix, bias))
    rows = ChannelRows(s, end, 8 * p.chunks, p.step, s.in_c, p.multiplier, (1, p.multiplier), False,
                       8 * p.chunks)  # fmt: skip
    scatter = f"offsets + {max(p.slots, 1) * 8 * p.chunks}"
    places = ("ring", f"taps, {scatter}") if p.slots else (p.first, f"offsets, {scatter}")
    offsets = Packed("offsets", tap_offsets(p, scattered(False, end.sizes[1] * s.out_c)))
    kernel = _row_kernel(p, rows, outside, ends.unsigned_x)
    return rows.code(ends, kernel, [*rows.packed(matrix, outside), offsets],
                     places, p.ring(padding(spec), p.taps_now), tail, s is not shape,
                     f"{p.chunks} gather(s) of 8 taps per output, {p.slots} buffered rows")  # fmt: skip


def applicable(shape: ConvShape) -> bool:
    """Whether `depthwise_taps` takes a geometry: steps are 12 bits, offsets 16, a channel's weights within
    reach.
    """
    s = shape.along_row
    if s.out_c % s.in_c or s.out_c > 1023 or s.in_c * s.stride_w > 4095 or s.kernel_h * s.kernel_w > 128:
        return False
    return tap_plan(s).reach <= 65535


def tap_plan(s: ConvShape, size: int = 1) -> TapPlan:
    """How the taps of a layer are gathered."""
    chunks = -(-s.kernel_h * s.kernel_w // 8)
    return TapPlan(s, *ring_of(s, size), size, chunks, s.out_c // s.in_c)


def cycles(shape: ConvShape) -> float:
    """Of a Cortex-M55, for all outputs, about."""
    return tap_plan(shape.along_row).cycles


def tap_offsets(p: TapPlan, outputs: np.ndarray) -> np.ndarray:
    """uint16 [phases, chunks, 8]: taps' offsets for each position of the ring's oldest row, by columns;
    those of the outputs behind.
    """
    s = p.shape
    rows, columns = np.arange(s.kernel_h) * s.dilation_h, np.arange(s.kernel_w) * s.dilation_w
    phases = []
    for phase in range(max(p.slots, 1)):
        slot = (rows + phase) % p.slots if p.slots else rows
        taps = (columns[:, None] * s.in_c * p.size + slot[None, :] * p.row).reshape(-1)
        phases.append(np.append(taps, np.full(8 * p.chunks - len(taps), taps[0])))
    return np.concatenate([np.array(phases).reshape(-1).astype("<u2"), outputs])


def tap_sums(
    p: TapPlan, pixels: int, weights: list[str], sign: str = "s", zero: str | None = None
) -> list[str]:
    """The sums of up to four outputs; moves r1 behind them. weights: registers. sign: s or u, of bytes of the
    input. zero: a register that holds minus the zero point of weights that are loaded here.
    """
    lines: list[str] = []
    accumulators, gather = ACCUMULATORS[:pixels], f"vldrb.{sign}16" if p.size == 1 else "vldrh.u16"
    if p.chunks <= RESIDENT:
        for r in accumulators:
            for i in range(p.chunks):
                multiply = f"vmladav{'a' if i else ''}.s16"
                lines += [f"{gather} q0, [r1, q{3 + i}]", f"{multiply} {r}, q0, {weights[i]}"]
            lines.append(f"addw r1, r1, #{p.step}")
        return lines
    for i in range(p.chunks):
        lines += [f"vldrb.s16 q1, [r5, #{8 * i}]", f"vldrh.16 q3, [r11, #{16 * i}]"]
        lines += [f"vadd.i16 q1, q1, {zero}"] if zero else []
        for r in accumulators:
            lines += [f"{gather} q0, [r1, q3]", f"vmladav{'a' if i else ''}.s16 {r}, q0, q1"]
            lines.append(f"addw r1, r1, #{p.step}")
        if i + 1 < p.chunks:
            lines += [f"subw r1, r1, #{p.step}"] * pixels if pixels * p.step > 4095 else [
                f"subw r1, r1, #{pixels * p.step}"]  # fmt: skip
    return lines


def _row_kernel(p: TapPlan, rows: ChannelRows, zero: int, unsigned: bool) -> tuple[str, str]:
    """(name, text) of name(x, w, k, taps, scatter, y): one output row, every p.multiplier-th channel. zero:
    of the weights; unsigned: whether x is uint8.
    """
    s = p.shape
    weights = ["q1", "q2"][: p.chunks] if p.chunks <= RESIDENT else []
    load = [f"vldrb.s16 {q}, [r5, #{8 * i}]" for i, q in enumerate(weights)]
    before, lower = p.resident_offsets, None
    if zero and weights:
        load += [f"movw r0, #{-zero & 0xFFFF}", *(f"vadd.i16 {q}, {q}, r0" for q in weights)]
    elif zero:
        before, lower = [*before, constant_s16("q4", -zero)], "q4"
    sign, of_x = ("u", "uint8_t") if unsigned else ("s", "int8_t")
    x = f"(const {of_x} *)x" if unsigned else "x"
    window = (
        f"const {of_x} *from = {x} + (column + lane) * {p.step} + c;\n"
        f"const int8_t *weight = w + {rows.record} * c;"
    )
    count, weight = s.kernel_h * s.kernel_w, f"(weight[tap] - ({zero}))" if zero else "weight[tap]"
    return rows.kernel(f"aot_mve_depthwise_t{count}_c{s.out_c}",
                       f"One row of {s.out_w} outputs, {s.in_c} channels, {count} taps at given offsets.",
                       before, load, tap_sums(p, min(s.out_w, FOUR), weights, sign, lower), "uint16_t",
                       window, f"from[taps[tap]] * {weight}")  # fmt: skip
