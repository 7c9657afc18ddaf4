"""Depthwise convolution of any kernel size, int8, Helium: gathers of eight taps of one channel.

A gather of eight bytes, widened to int16, brings eight taps of one channel wherever they lie; VMLADAVA.S16
multiplies them with eight weights: 2 instructions per 8 taps. The channel's weights and the taps' offsets
stay in registers along the row where there are at most 16 taps. Where the taps of two or four neighbouring
outputs are eight together, they share a gather: taps lie column by column, so that the weights of the next
output are those of the first one further on, with zeros around. An image that needs padding passes through a
ring of padded rows, which also lets the output overwrite the input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.admissible import ANYTHING
from ..base import ConvShape, KernelCode, Packed, Scratch, Tail
from ..overlap import by_pixels, by_rows
from .channel_rows_mve import (
    ACCUMULATORS,
    EIGHT,
    FOUR,
    channel_loop,
    even_lanes,
    finished_block,
    finished_eight,
    forward,
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

RESIDENT = 2
"""Vectors of weights, and of their taps' offsets, that stay in registers along a row."""


@dataclass(frozen=True)
class _Plan:
    """Where the taps lie: a ring of `slots` padded rows of `row` bytes, or the image itself (slots = 0)."""

    shape: ConvShape
    chunks: int
    slots: int
    row: int
    multiplier: int
    compact: bool
    """Whether code and constants count more than time: there are no blocks of eight outputs beside those of
    four, and no gathers for several outputs, whose weights have zeros around them."""

    @property
    def eight(self) -> bool:
        return self.shape.out_w >= EIGHT and not self.compact

    @property
    def step(self) -> int:
        """Bytes from the window of one output to the next in the row."""
        return self.shape.stride_w * self.shape.in_c

    @property
    def further(self) -> int:
        """Taps from where an output's begin in a gather to where the next one's do."""
        return min(self.shape.stride_w, self.shape.kernel_w) * self.shape.kernel_h

    @property
    def together(self) -> int:
        """Outputs whose taps are in one gather."""
        s = self.shape
        alone = self.chunks > 1 or (s.dilation_w > 1 and s.kernel_w > 1)
        if self.compact or alone or s.out_w < FOUR:
            return 1
        shared = next(n for n in (4, 2, 1) if (n - 1) * self.further + s.kernel_h * s.kernel_w <= 8)
        return shared if self.reach(shared) <= 65535 else 1

    def reach(self, outputs: int) -> int:
        """Offset of the last tap of so many outputs."""
        s = self.shape
        return (s.tall - 1) * self.row + (s.wide - 1) * s.in_c + (outputs - 1) * self.step

    @property
    def before(self) -> int:
        """Zeros before a channel's weights."""
        return (self.together - 1) * self.further

    @property
    def columns(self) -> np.ndarray:
        """Of a gather's outputs: columns of the image from the first one's window."""
        s, n = self.shape, self.together
        if s.stride_w < s.kernel_w:
            return np.arange((n - 1) * s.stride_w + s.kernel_w) * s.dilation_w
        return (np.arange(n)[:, None] * s.stride_w + np.arange(s.kernel_w) * s.dilation_w).reshape(-1)

    @property
    def second(self) -> bool:
        """Whether a vector holds the offsets of the next gather, too."""
        few = self.chunks == 1 and self.together <= 2 and self.shape.out_w >= FOUR
        return few and self.reach(2 * self.together) <= 65535


def depthwise_taps(shape: ConvShape, weights: np.ndarray, bias: np.ndarray | None, spec: QuantSpec,
                   tail: Tail | None = None, compact: bool = False) -> KernelCode:  # fmt: skip
    """Any kernel of up to 128 taps, stride, dilation, padding and channel multiplier.

    weights: int8 [kernel_h, kernel_w, out_c]. bias: int32 [out_c]. tail: as for `conv`.

    Raises:
        ValueError: a geometry that is not `applicable`, or what `requantiser` does not have.
    """
    s = shape.along_row
    taps = s.kernel_h * s.kernel_w
    if not applicable(shape):
        raise ValueError(f"not for the depthwise kernel: {shape}")
    by_column = np.asarray(weights, np.int8).reshape(s.kernel_h, s.kernel_w, s.out_c).transpose(2, 1, 0)
    matrix = by_column.reshape(s.out_c, taps)
    rq = requantiser(spec, matrix, bias)
    p = _plan(s, compact)
    offsets = _offsets(p)
    name, text = _row_kernel(p, rq)
    order = np.arange(s.out_c).reshape(s.in_c, p.multiplier).T.reshape(-1)  # one run per multiple
    constants = [
        Packed("w", _pack(matrix[order], rq, order, p), admissible=ANYTHING),
        Packed("k", np.stack([rq.bias, rq.multiplier], 1)[order].astype(np.int32), admissible=ANYTHING),
        Packed("offsets", offsets),
    ]
    scratch = [Scratch("ring", p.slots * p.row)] if p.slots else []
    if tail is not None:
        scratch.append(Scratch("row", s.out_w * s.out_c))
    return KernelCode(
        body=_body(p, rq, name, spec.x_zero_point, tail, s is not shape),
        constants=tuple(constants),
        scratch=tuple(scratch),
        includes=INCLUDES,
        helpers=(text, *tail_helpers(tail)),
        slack=_slack(p),
        note=f"{p.chunks} gather(s) of 8 taps per {f'{p.together} outputs' if p.together > 1 else 'output'}, "
        f"{p.slots} buffered rows",
    )


def applicable(shape: ConvShape) -> bool:
    """Whether `depthwise_taps` takes a geometry: steps are 12 bits, offsets 16, a channel's weights within
    reach.
    """
    s = shape.along_row
    if s.out_c % s.in_c or s.out_c > 1023 or s.in_c * s.stride_w > 4095 or s.kernel_h * s.kernel_w > 128:
        return False
    p = _plan(s)
    return shape.dense and p.reach(1) <= 65535


def _plan(s: ConvShape, compact: bool = False) -> _Plan:
    columns = (s.out_w - 1) * s.stride_w + s.wide
    slots, row = (0, s.in_w * s.in_c) if s.inside else (s.tall, columns * s.in_c)
    return _Plan(s, -(-s.kernel_h * s.kernel_w // 8), slots, row, s.out_c // s.in_c, compact)


def sums_cost(shape: ConvShape) -> float:
    """Instructions for the sums of an output."""
    p = _plan(shape.along_row)
    if p.chunks > RESIDENT:
        return 3.5 * p.chunks
    return p.chunks / p.together + p.chunks + (0.5 if p.second else 1) / p.together


def _offsets(p: _Plan) -> np.ndarray:
    """uint16 [phases, chunks, 8]: taps' offsets for each position of the ring's oldest row; outputs' behind.
    """
    s = p.shape
    rows = np.arange(s.kernel_h) * s.dilation_h
    phases = []
    for phase in range(max(p.slots, 1)):
        slot = (rows + phase) % p.slots if p.slots else rows
        taps = (p.columns[:, None] * s.in_c + slot[None, :] * p.row).reshape(-1)
        phases.append(np.append(taps, np.full(8 * p.chunks - len(taps), taps[0])))
    outputs = scattered(p.eight, s.out_c)
    return np.concatenate([np.array(phases).reshape(-1).astype("<u2"), outputs])


def _record(p: _Plan, rq: Requantiser) -> int:
    """Bytes of a channel: its weights among zeros, and the signed shift where channels differ in it."""
    return p.before + 8 * p.chunks + (rq.common_right is None)


def _pack(matrix: np.ndarray, rq: Requantiser, order: np.ndarray, p: _Plan) -> np.ndarray:
    """matrix: [channels, taps], taps column by column."""
    padded = np.zeros((len(matrix), _record(p, rq)), np.int8)
    padded[:, p.before:p.before + matrix.shape[1]] = matrix
    if rq.common_right is None:
        padded[:, -1] = rq.signed_shift[order]
    return padded.reshape(-1)


def _sums(p: _Plan, pixels: int, weights: list[str]) -> list[str]:
    """The sums of up to four outputs; moves r1 behind them. weights: registers, those of one output first."""
    lines: list[str] = []
    accumulators = ACCUMULATORS[:pixels]
    if p.chunks == 1:
        for k in range(0, pixels, p.together):
            group = k // p.together
            lines.append(f"vldrb.s16 q0, [r1, {'q4' if p.second and group % 2 else 'q3'}]")
            lines += [f"vmladav.s16 {r}, q0, {q}"
                      for r, q in zip(accumulators[k:k + p.together], weights, strict=False)]  # fmt: skip
            if not p.second or group % 2:
                lines += forward("r1", p.together * p.step * (1 + p.second))
        return lines
    if p.chunks <= RESIDENT:
        for r in accumulators:
            for i in range(p.chunks):
                multiply = f"vmladav{'a' if i else ''}.s16"
                lines += [f"vldrb.s16 q0, [r1, q{3 + i}]", f"{multiply} {r}, q0, {weights[i]}"]
            lines.append(f"addw r1, r1, #{p.step}")
        return lines
    for i in range(p.chunks):
        lines += [f"vldrb.s16 q1, [r5, #{8 * i}]", f"vldrh.16 q3, [r11, #{16 * i}]"]
        for r in accumulators:
            lines += ["vldrb.s16 q0, [r1, q3]", f"vmladav{'a' if i else ''}.s16 {r}, q0, q1"]
            lines.append(f"addw r1, r1, #{p.step}")
        if i + 1 < p.chunks:
            lines += [f"subw r1, r1, #{p.step}"] * pixels if pixels * p.step > 4095 else [
                f"subw r1, r1, #{pixels * p.step}"]  # fmt: skip
    return lines


def _row_kernel(p: _Plan, rq: Requantiser) -> tuple[str, str]:
    """(name, text) of name(x, w, k, taps, scatter, y): one output row, every p.multiplier-th channel."""
    s = p.shape
    pixels, eight = min(s.out_w, FOUR), p.eight
    resident, record = p.chunks <= RESIDENT, _record(p, rq)
    # Four weights leave no register for the offsets of the results, where four sums wait for four more.
    reload = "r11" if eight and p.together == FOUR else None
    weights = ["q1", "q2", "q4", "q5"][:p.chunks * p.together]
    sums = _sums(p, pixels, weights)
    offsets, first = ("q7", "q6") if reload else ("q6", "q5")
    bits = 16 if eight else 32
    block = four = [*sums, *finished_block(rq, pixels * s.out_c, pixels < FOUR or eight, bits=bits,
                                           offsets=offsets, reload=reload)]  # fmt: skip
    if eight:
        block = [*sums, *gathered_sums(first), *sums, *gathered_sums("q0")]
        block += finished_eight(rq, first, s.out_c, "q7", offsets=offsets, reload=reload)
    per_channel = ["ldrd r12, r8, [r7], #8"]
    per_channel += [f"ldrsb r10, [r5, #{record - 1}]"] if rq.common_right is None else []
    for i, q in enumerate(weights if resident else []):
        at = 8 * i if p.chunks > 1 else p.before - i * p.further
        per_channel.append(f"vldrb.s16 {q}, [r5, #{at}]")
    lines = [f"vldrh.16 q{3 + i}, [r11, #{16 * i}]" for i in range(p.chunks) if resident]
    lines += [f"movw r0, #{p.together * p.step}", "vadd.i16 q4, q3, r0"] if p.second else []
    lines += [f"mov {reload}, r2"] if reload else ["vldrw.32 q6, [r2]"]
    lines += [f"mov r0, #{pixels}", "vctp.32 r0"] if pixels < FOUR else even_lanes(s.out_w) if eight else []
    lines += [f"movw r9, #{s.in_c}"]
    across = EIGHT if eight else pixels
    steps = (across * p.step, across * s.out_c)
    # r5 moves on at the end of a channel, before the loop's own count.
    loop = channel_loop(per_channel, block, s.out_w, across, steps, (1, p.multiplier),
                        four if eight else None)  # fmt: skip
    lines += [*loop[:-2], f"addw r5, r5, #{record}", *loop[-2:]]
    parameters = [("const int8_t *", "x", "r1"), ("const int8_t *", "w", "r5"),
                  ("const int32_t *", "k", "r7")]
    parameters += [("const uint16_t *", "taps", "r11"), ("const uint16_t *", "scatter", "r2"),
                   ("int8_t *", "y", "r3")]
    result = scalar_result(rq, f"w[{record} * c + {record - 1}]")
    own = f"(column + lane / {p.together} * {p.together})" if p.together > 1 else "(column + lane)"
    where = f"{record} * c"
    if p.together > 1:
        where += f" + {p.before} - lane % {p.together} * {p.further}"
    twin = "(void)scatter;\n" + rows_twin(
        s.in_c, s.out_w, pixels, str(pixels),
        f"const int8_t *from = x + {own} * {p.step} + c;\nconst int8_t *weight = w + {where};",
        8 * p.chunks, "from[taps[tap]] * weight[tap]",
        f"y[(column + lane) * {s.out_c} + c * {p.multiplier}] = {result};")
    count = s.kernel_h * s.kernel_w
    return row_kernel(f"aot_mve_depthwise_t{count}_c{s.out_c}",
                      f"One row of {s.out_w} outputs, {s.in_c} channels, {count} taps at given offsets.",
                      parameters, lines, twin)


def _body(p: _Plan, rq: Requantiser, kernel: str, zero: int, tail: Tail | None, down: bool) -> str:
    s = p.shape
    image_row, out_row, table = s.in_w * s.in_c, s.out_w * s.out_c, 8 * p.chunks
    record = _record(p, rq) * s.in_c
    to = "row" if tail is not None else f"y + (n * {s.out_h} + oy) * {out_row}"
    if p.slots:
        used = max(min(s.in_w, p.row // s.in_c - s.pad_left), 0) * s.in_c
        inner = ring_loop(s, f"""\
int8_t *slot = ring + filled % {p.slots} * {p.row} + {s.pad_left * s.in_c};
if (line >= 0 && line < {s.in_h}) {{
    aot_mve_copy(slot, image + line * {image_row}, {used});
}} else {{
    aot_mve_fill(slot, {zero}, {used});
}}""")
        inner += f"const uint16_t *taps = offsets + oy * {s.stride_h} % {p.slots} * {table};\n"
        before = f"int32_t filled = 0;\naot_mve_fill(ring, {zero}, {p.slots * p.row});\n"
        x, taps = "ring", "taps"
    else:
        inner, before, x, taps = "", "", f"image + oy * {s.stride_h * image_row}", "offsets"
    scatter = f"offsets + {max(p.slots, 1) * table}"
    if p.multiplier == 1:
        inner += f"{kernel}({x}, w, k, {taps}, {scatter}, {to});\n"
    else:
        call = f"{kernel}({x}, w + m * {record}, k + m * {2 * s.in_c}, {taps}, {scatter}, {to} + m);\n"
        inner += f"for (int32_t m = 0; m < {p.multiplier}; m++) {{\n{call}}}\n"
    if tail is not None:
        inner += rows_to_tail(s, "row", tail, ("n", "ox", "0") if down else ("n", "oy", "ox"))
    return image_loops(s, before, inner)


def _slack(p: _Plan) -> int | None:
    s = p.shape
    if not p.slots:
        return by_pixels(s, s.out_w, reread=True)
    return by_rows(s.batch, s.in_h, s.in_w * s.in_c, s.out_h, s.out_w * s.out_c, 1, ring_unread(s))
