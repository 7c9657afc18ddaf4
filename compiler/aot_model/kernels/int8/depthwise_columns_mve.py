"""Depthwise convolution, int8, Helium: dot products over windows that lie in one piece.

The rows that a window needs are kept in a ring, turned: for each channel, for each column, one byte of each
row. So the window of an output is one run of bytes, and the next output's begins one column further:
2 instructions per 16 taps and nothing else. The ring's oldest row moves on instead of the bytes: a gather
brings the weights of a channel in the order in which the rows lie by now, once for a row of outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.channel_rows_mve import (
    ACCUMULATORS,
    EIGHT,
    ByteEnd,
    ChannelRows,
    covered,
    scattered,
    summed,
)
from aot_model.kernels.int8.image_rows_mve import Ring
from aot_model.kernels.int8.requantise_mve import DEPTHWISE_HEADER, Ends, padding, requantiser
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights

RESIDENT = 5
"""Vectors of weights that stay in registers along a row."""


@dataclass(frozen=True)
class _Plan:
    """The ring and how the channels pass through it."""

    shape: ConvShape
    slots: int
    """Rows in the ring."""
    columns: int
    span: int
    """Bytes of a window."""
    multiplier: int
    compact: bool
    """Whether blocks of eight outputs are not worth their code beside those of four."""

    @property
    def chunks(self) -> int:
        return -(-self.span // 16)

    @property
    def plane(self) -> int:
        """Bytes of one channel."""
        return self.columns * self.slots

    @property
    def ring(self) -> int:
        """Bytes of all channels, and what the last vector reads beyond."""
        return self.shape.in_c * self.plane + 16 * self.chunks - self.span

    @property
    def eight(self) -> bool:
        """Whether blocks are of eight outputs: there is a vector for the sums of the first four."""
        return self.shape.out_w >= EIGHT and self.chunks < RESIDENT and not self.compact

    @property
    def step(self) -> int:
        """Bytes from the window of one output to the next."""
        return self.shape.stride_w * self.slots


def _plan(shape: ConvShape, compact: bool = False) -> _Plan:
    s = shape.along_row
    columns = (s.out_w - 1) * s.stride_w + s.wide
    return _Plan(s, s.tall, columns, s.wide * s.tall, s.out_c // s.in_c, compact)


def applicable(shape: ConvShape) -> bool:
    """Whether `depthwise_columns` takes a geometry: a window fits registers, steps 7 bits, offsets 16."""
    if shape.out_c % shape.in_c or shape.out_c > 1023:
        return False
    p = _plan(shape)
    return p.chunks <= RESIDENT and p.step <= 127 and 7 * p.plane <= 65535


def cycles(shape: ConvShape) -> float:
    """Of a Cortex-M55, for all outputs, about."""
    p = _plan(shape)
    s = p.shape
    vectors, each = (-(-s.in_c // 8), 11 * s.in_w) if s.in_c >= 8 else (s.in_c, 14 * -(-s.in_w // 8))
    rows = min(s.in_h + s.pad_top, s.out_h * s.stride_h + p.slots)
    row = 10 + 18 * p.chunks + covered(s.out_w) * 4.8 + 2.1 * p.chunks * summed(s.out_w)
    return s.batch * (rows * (40 + vectors * (20 + each)) + s.out_h * (30 + s.out_c * row))


def depthwise_columns(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    spec: QuantSpec,
    tail: Tail | None = None,
    compact: bool = False,
) -> KernelCode:
    """Any stride, padding and channel multiplier; kernels whose window has up to 80 bytes.

    weights: int8 [kernel_h, kernel_w, out_c]. bias: int32 [out_c]. tail: as for `conv`.
    """
    assert applicable(shape), shape
    p = _plan(shape, compact)
    s = p.shape
    taps = s.kernel_h * s.kernel_w
    matrix = np.asarray(weights, np.int8).reshape(taps, s.out_c).T
    # a call takes every so-manyth output channel, or all of one input channel
    channels, calls, following = s.in_c, p.multiplier, (p.plane, p.multiplier)
    if p.multiplier > s.in_c:
        channels, calls, following = p.multiplier, s.in_c, (0, 1)
    ends, fill = Ends.of(spec), padding(spec)
    rq = requantiser(ends.signed(spec), matrix, bias)
    rows = ChannelRows(s, ByteEnd(rq), 16 * p.chunks, p.step, channels, calls, following, p.eight, taps + 1)
    used, zero = max(min(s.in_w, p.columns - s.pad_left), 0), ends.signed(spec).x_zero_point
    geometry = (
        f"static const aot_mve_turned_rows geometry = {{.channels = {s.in_c}, .columns = {used}, "
        f".slots = {p.slots}, .plane = {p.plane}, .fill = {fill}"
        f"{', .unsigned_rows = 1' * ends.unsigned_x}}};\n"
    )
    source = f"line >= 0 && line < {s.in_h} ? image + line * {s.in_w * s.in_c} : NULL"
    turn = f"aot_mve_turn(ring + {p.slots * s.pad_left} + filled % {p.slots}, &geometry, {source});"
    order = f"const uint8_t *order = taps + oy * {s.stride_h} % {p.slots} * {16 * p.chunks};\n"
    ring = Ring(Scratch("ring", p.ring), f"aot_mve_fill(ring, {zero}, {p.ring});", turn, order)
    x = "ring" if rows.apart else f"ring + m * {p.plane}"
    return rows.code(ends, _row_kernel(p, rows), [*rows.packed(matrix), Packed("taps", _taps(p).reshape(-1)),
                                            Packed("scatter", scattered(p.eight, s.out_c))],
                     (x, "order, scatter"), ring, tail, s is not shape,
                     f"{p.chunks} vector(s) of 16 taps per output, {p.slots} turned rows", geometry,
                     DEPTHWISE_HEADER)  # fmt: skip


def _taps(p: _Plan) -> np.ndarray:
    """uint8 [slots, 16 * chunks]: which weight each byte of a window takes, by the slot of its first row."""
    s = p.shape
    row, column = np.divmod(np.arange(s.kernel_h * s.kernel_w), s.kernel_w)
    found = np.full((p.slots, 16 * p.chunks), s.kernel_h * s.kernel_w, np.uint8)  # the zero
    for first in range(p.slots):
        at = column * s.dilation_w * p.slots + (row * s.dilation_h + first) % p.slots
        found[first, at] = np.arange(s.kernel_h * s.kernel_w)
    return found


def _row_kernel(p: _Plan, rows: ChannelRows) -> tuple[str, str]:
    """(name, text) of name(x, w, k, taps, scatter, y): one output row of the channels of a call."""
    s, next_x = p.shape, rows.next_channel[0]
    sums: list[str] = []
    for r in ACCUMULATORS[: s.out_w]:
        for i in (*range(1, p.chunks), 0):  # the first vector last: it moves on
            begins = i == min(1, p.chunks - 1)
            sums.append(f"vldrb.8 q0, {f'[r1, #{16 * i}]' if i else f'[r1], #{p.step}'}")
            sums.append(f"vmladav{'' if begins else 'a'}.s8 {r}, q0, q{1 + i}")
    load = [line for i in range(p.chunks)
            for line in (f"vldrb.8 q7, [r11, #{16 * i}]", f"vldrb.u8 q{1 + i}, [r5, q7]")]  # fmt: skip
    window = f"const int8_t *from = x + (column + lane) * {p.step}{f' + c * {next_x}' if next_x else ''};"
    return rows.kernel(f"aot_mve_depthwise_{s.kernel_h}x{s.kernel_w}_c{s.out_c}",
                       f"One row of {s.out_w} outputs, {rows.channels} channels, from turned rows.",
                       [], load, sums, "uint8_t", window,
                       f"from[tap] * w[{rows.record} * c + taps[tap]]")  # fmt: skip
