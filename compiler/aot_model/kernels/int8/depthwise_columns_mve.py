"""Depthwise convolution, int8, Helium: dot products over windows that lie in one piece.

The rows that a window needs are kept in a ring, turned: for each channel, for each column, one byte of each
row. So the window of an output is one run of bytes, and the next output's begins one column further:
2 instructions per 16 taps and nothing else. The ring's oldest row moves on instead of the bytes: a gather
brings the weights of a channel in the order in which the rows lie by now, once for a row of outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.admissible import ANYTHING
from ..base import ConvShape, KernelCode, Packed, Scratch, Tail
from ..overlap import by_rows
from .channel_rows_mve import (
    ACCUMULATORS,
    EIGHT,
    FOUR,
    channel_loop,
    even_lanes,
    finished_block,
    finished_eight,
    gathered_sums,
    image_loops,
    ring_loop,
    ring_unread,
    row_kernel,
    rows_to_tail,
    rows_twin,
    scalar_result,
    scattered,
)
from .conv_mve import INCLUDES
from .requantise_mve import Requantiser, requantiser
from .row_tail import tail_helpers
from .spec import QuantSpec

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

    @property
    def by_multiple(self) -> bool:
        """Whether a call takes every multiplier-th output channel, or all of one input channel."""
        return self.multiplier <= self.shape.in_c


def _plan(shape: ConvShape, compact: bool = False) -> _Plan:
    s = shape.along_row
    columns = (s.out_w - 1) * s.stride_w + s.wide
    return _Plan(s, s.tall, columns, s.wide * s.tall, s.out_c // s.in_c, compact)


def applicable(shape: ConvShape) -> bool:
    """Whether `depthwise_columns` takes a geometry: a window fits registers, steps 7 bits, offsets 16."""
    if shape.out_c % shape.in_c or shape.out_c > 1023 or not shape.dense:
        return False
    p = _plan(shape)
    return p.chunks <= RESIDENT and p.step <= 127 and 7 * p.plane <= 65535


def pays(shape: ConvShape, otherwise: float) -> bool:
    """Whether its windows take fewer instructions than so many for an output's sums, rows turned along."""
    p = _plan(shape)
    s = p.shape
    vectors, each = (-(-s.in_c // 8), 4 * s.in_w) if s.in_c >= 8 else (s.in_c, 5 * -(-s.in_w // 8))
    rows = min(s.in_h + s.pad_top, s.out_h * s.stride_h + p.slots)
    turned = rows * (40 + vectors * (20 + each)) + p.chunks * s.out_h * s.out_c
    return (otherwise - 2 * p.chunks) * s.out_h * s.out_w * s.out_c > turned


def depthwise_columns(shape: ConvShape, weights: np.ndarray, bias: np.ndarray | None, spec: QuantSpec,
                      tail: Tail | None = None, compact: bool = False) -> KernelCode:  # fmt: skip
    """Any stride, padding and channel multiplier; kernels whose window has up to 80 bytes.

    weights: int8 [kernel_h, kernel_w, out_c]. bias: int32 [out_c]. tail: as for `conv`.

    Raises:
        ValueError: a geometry that is not `applicable`, or what `requantiser` does not have.
    """
    if not applicable(shape):
        raise ValueError(f"not for the depthwise kernel: {shape}")
    p = _plan(shape, compact)
    s = p.shape
    taps = s.kernel_h * s.kernel_w
    matrix = np.asarray(weights, np.int8).reshape(taps, s.out_c).T
    rq = requantiser(spec, matrix, bias)
    name, text = _row_kernel(p, rq)
    order = np.arange(s.out_c)
    if p.by_multiple:
        order = order.reshape(s.in_c, p.multiplier).T.reshape(-1)
    constants = [
        Packed("w", _pack(matrix[order], rq, order), admissible=ANYTHING),
        Packed("k", np.stack([rq.bias, rq.multiplier], 1)[order].astype(np.int32), admissible=ANYTHING),
        Packed("taps", _taps(p).reshape(-1)),
        Packed("scatter", scattered(p.eight, s.out_c)),
    ]
    scratch = [Scratch("ring", p.ring)]
    if tail is not None:
        scratch.append(Scratch("row", s.out_w * s.out_c))
    return KernelCode(
        body=_body(p, _record(taps, rq), name, spec.x_zero_point, tail, s is not shape),
        constants=tuple(constants),
        scratch=tuple(scratch),
        includes=INCLUDES,
        helpers=(text, *tail_helpers(tail)),
        slack=by_rows(s.batch, s.in_h, s.in_w * s.in_c, s.out_h, s.out_w * s.out_c, 1,
                      ring_unread(s)),
        note=f"{p.chunks} vector(s) of 16 taps per output, {p.slots} turned rows",
    )


def _record(taps: int, rq: Requantiser) -> int:
    """Bytes of a channel: weights, a zero, and the signed shift where channels differ in it."""
    return taps + 1 + (rq.common_right is None)


def _pack(matrix: np.ndarray, rq: Requantiser, order: np.ndarray) -> np.ndarray:
    taps = matrix.shape[1]
    records = np.zeros((len(matrix), _record(taps, rq)), np.int8)
    records[:, :taps] = matrix
    if rq.common_right is None:
        records[:, -1] = rq.signed_shift[order]
    return records.reshape(-1)


def _taps(p: _Plan) -> np.ndarray:
    """uint8 [slots, 16 * chunks]: which weight each byte of a window takes, by the slot of its first row."""
    s = p.shape
    row, column = np.divmod(np.arange(s.kernel_h * s.kernel_w), s.kernel_w)
    found = np.full((p.slots, 16 * p.chunks), s.kernel_h * s.kernel_w, np.uint8)  # the zero
    for first in range(p.slots):
        at = column * s.dilation_w * p.slots + (row * s.dilation_h + first) % p.slots
        found[first, at] = np.arange(s.kernel_h * s.kernel_w)
    return found


def _row_kernel(p: _Plan, rq: Requantiser) -> tuple[str, str]:
    """(name, text) of name(x, w, k, taps, scatter, y): one output row of the channels of a call."""
    s, record = p.shape, _record(p.shape.kernel_h * p.shape.kernel_w, rq)
    count, next_x, next_y = (s.in_c, p.plane, p.multiplier) if p.by_multiple else (p.multiplier, 0, 1)
    pixels, eight = min(s.out_w, FOUR), p.eight
    sums: list[str] = []
    for r in ACCUMULATORS[:pixels]:
        for i in (*range(1, p.chunks), 0):  # the first vector last: it moves on
            begins = i == min(1, p.chunks - 1)
            sums.append(f"vldrb.8 q0, {f'[r1, #{16 * i}]' if i else f'[r1], #{p.step}'}")
            sums.append(f"vmladav{'' if begins else 'a'}.s8 {r}, q0, q{1 + i}")
    # Of q4 and q5 one holds the sums of four outputs while four more are made.
    zero = "q5" if rq.zero_point and p.chunks < RESIDENT - eight else None
    bits, first = (16, "q4" if p.chunks < RESIDENT - 1 else "q5") if eight else (32, "")
    block = four = [*sums, *finished_block(rq, pixels * s.out_c, pixels < FOUR or eight, zero, bits)]
    if eight:
        block = [*sums, *gathered_sums(first), *sums, *gathered_sums("q0")]
        block += finished_eight(rq, first, s.out_c, "q7", zero)
    per_channel = ["ldrd r12, r8, [r7], #8"]
    per_channel += [f"ldrsb r10, [r5, #{record - 1}]"] if rq.common_right is None else []
    for i in range(p.chunks):
        per_channel += [f"vldrb.8 q7, [r11, #{16 * i}]", f"vldrb.u8 q{1 + i}, [r5, q7]"]
    lines = ["vldrw.32 q6, [r2]"]
    lines += [f"mov r0, #{pixels}", "vctp.32 r0"] if pixels < FOUR else even_lanes(s.out_w) if eight else []
    lines += [*(rq.zero_point_constant("q5") if zero else []), f"movw r9, #{count}"]
    across = EIGHT if eight else pixels
    steps = (across * p.step, across * s.out_c)
    # r5 moves on at the end of a channel, before the loop's own count.
    loop = channel_loop(per_channel, block, s.out_w, across, steps, (next_x, next_y),
                        four if eight else None)
    lines += [*loop[:-2], f"addw r5, r5, #{record}", *loop[-2:]]
    parameters = [("const int8_t *", "x", "r1"), ("const int8_t *", "w", "r5"),
                  ("const int32_t *", "k", "r7"), ("const uint8_t *", "taps", "r11"),
                  ("const uint16_t *", "scatter", "r2"), ("int8_t *", "y", "r3")]
    window = f"const int8_t *from = x + (column + lane) * {p.step}{f' + c * {next_x}' if next_x else ''};"
    result = scalar_result(rq, f"w[{record} * c + {record - 1}]")
    twin = "(void)scatter;\n" + rows_twin(count, s.out_w, pixels, str(pixels), window, 16 * p.chunks,
                     f"from[tap] * w[{record} * c + taps[tap]]",
                     f"y[(column + lane) * {s.out_c} + c * {next_y}] = {result};")
    return row_kernel(f"aot_mve_depthwise_{s.kernel_h}x{s.kernel_w}_c{s.out_c}",
                      f"One row of {s.out_w} outputs, {count} channels, from turned rows.", parameters, lines,
                      twin)


def _body(p: _Plan, record: int, kernel: str, zero: int, tail: Tail | None, down: bool) -> str:
    s = p.shape
    image_row, out_row = s.in_w * s.in_c, s.out_w * s.out_c
    used = max(min(s.in_w, p.columns - s.pad_left), 0)
    to = "row" if tail is not None else f"y + (n * {s.out_h} + oy) * {out_row}"
    source = f"line >= 0 && line < {s.in_h} ? image + line * {image_row} : NULL"
    inner = ring_loop(
        s, f"aot_mve_turn(ring + {p.slots * s.pad_left} + filled % {p.slots}, &geometry, {source});")
    inner += f"const uint8_t *order = taps + oy * {s.stride_h} % {p.slots} * {16 * p.chunks};\n"
    times, of_x, of_k, of_y = ((p.multiplier, 0, s.in_c, 1) if p.by_multiple else
                               (s.in_c, p.plane, p.multiplier, p.multiplier))
    if times == 1:
        inner += f"{kernel}(ring, w, k, order, scatter, {to});\n"
    else:
        x = f"ring + m * {of_x}" if of_x else "ring"
        constants = f"w + m * {record * of_k}, k + m * {2 * of_k}, order, scatter"
        inner += (f"for (int32_t m = 0; m < {times}; m++) {{\n"
                  f"{kernel}({x}, {constants}, {to} + m * {of_y});\n}}\n")
    if tail is not None:
        inner += rows_to_tail(s, "row", tail, ("n", "ox", "0") if down else ("n", "oy", "ox"))
    geometry = (f"static const aot_mve_turned_rows geometry = {{.channels = {s.in_c}, .columns = {used}, "
                f".slots = {p.slots}, .plane = {p.plane}, .fill = {zero}}};\n")
    before = f"int32_t filled = 0;\naot_mve_fill(ring, {zero}, {p.ring});\n"
    return geometry + image_loops(s, before, inner)
