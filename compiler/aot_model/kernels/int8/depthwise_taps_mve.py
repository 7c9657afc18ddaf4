"""Depthwise convolution of any kernel size, int8, Helium: gathers of eight taps of one channel.

A gather of eight bytes, widened to int16, brings eight taps of one channel wherever they lie; VMLADAVA.S16
multiplies them with eight weights: 2 instructions per 8 taps. The channel's weights and the taps' offsets
stay in registers along the row where there are at most 16 taps. An image that needs padding passes through a
ring of padded rows, which also lets the output overwrite the input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.admissible import ANYTHING
from ..base import ConvShape, KernelCode, Packed, Scratch, Tail
from ..overlap import by_pixels, by_rows
from .channel_rows_mve import (
    channel_loop,
    finished_block,
    image_loops,
    ring_loop,
    ring_unread,
    row_kernel,
    rows_to_tail,
    rows_twin,
    scalar_result,
)
from .conv_mve import INCLUDES
from .requantise_mve import Requantiser, requantiser
from .row_tail import tail_helpers
from .spec import QuantSpec


@dataclass(frozen=True)
class _Plan:
    """Where the taps lie: a ring of `slots` padded rows of `row` bytes, or the image itself (slots = 0)."""

    shape: ConvShape
    chunks: int
    slots: int
    row: int
    multiplier: int

    @property
    def step(self) -> int:
        """Bytes from the window of one output to the next in the row."""
        return self.shape.stride_w * self.shape.in_c


def depthwise_taps(shape: ConvShape, weights: np.ndarray, bias: np.ndarray | None, spec: QuantSpec,
                   tail: Tail | None = None) -> KernelCode:  # fmt: skip
    """Any kernel of up to 128 taps, stride, dilation, padding and channel multiplier.

    weights: int8 [kernel_h, kernel_w, out_c]. bias: int32 [out_c]. tail: as for `conv`.

    Raises:
        ValueError: a geometry that is not `applicable`, or what `requantiser` does not have.
    """
    s = shape.along_row
    taps = s.kernel_h * s.kernel_w
    if not applicable(shape):
        raise ValueError(f"not for the depthwise kernel: {shape}")
    matrix = np.asarray(weights, np.int8).reshape(taps, s.out_c).T
    rq = requantiser(spec, matrix, bias)
    p = _plan(s)
    offsets = _offsets(p)
    name, text = _row_kernel(p, rq)
    order = np.arange(s.out_c).reshape(s.in_c, p.multiplier).T.reshape(-1)  # one run per multiple
    constants = [
        Packed("w", _pack(matrix[order], rq, order, p.chunks), admissible=ANYTHING),
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
        note=f"{p.chunks} gather(s) of 8 taps per output, {p.slots} buffered rows",
    )


def applicable(shape: ConvShape) -> bool:
    """Whether `depthwise_taps` takes a geometry: steps are 12 bits, offsets 16, a channel's weights within
    reach.
    """
    s = shape.along_row
    if s.out_c % s.in_c or s.out_c > 1023 or s.in_c * s.stride_w > 4095 or s.kernel_h * s.kernel_w > 128:
        return False
    p = _plan(s)
    span = s.tall - 1
    return shape.dense and span * p.row + (s.kernel_w - 1) * s.dilation_w * s.in_c <= 65535


def _plan(s: ConvShape) -> _Plan:
    columns = (s.out_w - 1) * s.stride_w + s.wide
    slots, row = (0, s.in_w * s.in_c) if s.inside else (s.tall, columns * s.in_c)
    return _Plan(s, -(-s.kernel_h * s.kernel_w // 8), slots, row, s.out_c // s.in_c)


def _offsets(p: _Plan) -> np.ndarray:
    """uint16 [phases, chunks, 8]: taps' offsets for each position of the ring's oldest row; outputs' (u32)
    behind.
    """
    s = p.shape
    rows = np.arange(s.kernel_h) * s.dilation_h
    columns = np.arange(s.kernel_w) * s.dilation_w * s.in_c
    phases = []
    for phase in range(max(p.slots, 1)):
        slot = (rows + phase) % p.slots if p.slots else rows
        taps = (slot[:, None] * p.row + columns[None, :]).reshape(-1)
        phases.append(np.append(taps, np.full(8 * p.chunks - len(taps), taps[0])))
    outputs = (np.arange(4) * s.out_c).astype("<u4").view("<u2")
    return np.concatenate([np.array(phases).reshape(-1).astype("<u2"), outputs])


def _pack(matrix: np.ndarray, rq: Requantiser, order: np.ndarray, chunks: int) -> np.ndarray:
    """Per channel: weights, zeros up to 8 * chunks, and the signed shift where channels differ in it."""
    padded = np.zeros((len(matrix), 8 * chunks + (rq.common_right is None)), np.int8)
    padded[:, : matrix.shape[1]] = matrix
    if rq.common_right is None:
        padded[:, -1] = rq.signed_shift[order]
    return padded.reshape(-1)


def _row_kernel(p: _Plan, rq: Requantiser) -> tuple[str, str]:
    """(name, text) of name(x, w, k, taps, scatter, y): one output row, every p.multiplier-th channel."""
    s = p.shape
    pixels = min(s.out_w, 4)
    accumulators = ("r0", "r2", "r4", "r6")[:pixels]
    resident = p.chunks <= 2
    record = 8 * p.chunks + (rq.common_right is None)
    block: list[str] = []
    if resident:
        for r in accumulators:
            for i in range(p.chunks):
                block += [f"vldrb.s16 q0, [r1, q{3 + i}]", f"vmladav{'a' if i else ''}.s16 {r}, q0, q{1 + i}"]
            block.append(f"addw r1, r1, #{p.step}")
    else:
        for i in range(p.chunks):
            block += [f"vldrb.s16 q1, [r5, #{8 * i}]", f"vldrh.16 q3, [r11, #{16 * i}]"]
            for r in accumulators:
                block += ["vldrb.s16 q0, [r1, q3]", f"vmladav{'a' if i else ''}.s16 {r}, q0, q1"]
                block.append(f"addw r1, r1, #{p.step}")
            if i + 1 < p.chunks:
                block += [f"subw r1, r1, #{p.step}"] * pixels if pixels * p.step > 4095 else [
                    f"subw r1, r1, #{pixels * p.step}"]  # fmt: skip
    block += finished_block(rq, pixels * s.out_c, pixels < 4)
    per_channel = ["ldrd r12, r8, [r7], #8"]
    per_channel += [f"ldrsb r10, [r5, #{8 * p.chunks}]"] if rq.common_right is None else []
    per_channel += [f"vldrb.s16 q{1 + i}, [r5, #{8 * i}]" for i in range(p.chunks) if resident]
    lines = [f"vldrh.16 q{3 + i}, [r11, #{16 * i}]" for i in range(p.chunks) if resident]
    lines += [
        "vldrw.32 q6, [r2]", *([f"mov r0, #{pixels}", "vctp.32 r0"] if pixels < 4 else []),
        f"movw r9, #{s.in_c}"
    ]
    steps = (pixels * p.step, pixels * s.out_c)
    # r5 moves on at the end of a channel, before the loop's own count.
    loop = channel_loop(per_channel, block, s.out_w, pixels, steps, (1, p.multiplier))
    lines += [*loop[:-2], f"addw r5, r5, #{record}", *loop[-2:]]
    parameters = [("const int8_t *", "x", "r1"), ("const int8_t *", "w", "r5"),
                  ("const int32_t *", "k", "r7")]
    parameters += [("const uint16_t *", "taps", "r11"), ("const uint16_t *", "scatter", "r2"),
                   ("int8_t *", "y", "r3")]
    result = scalar_result(rq, f"w[{record} * c + {8 * p.chunks}]")
    twin = "uint32_t to[4];\nmemcpy(to, scatter, sizeof to);\n" + rows_twin(
        s.in_c, s.out_w, pixels, str(pixels), f"const int8_t *from = x + (column + lane) * {p.step} + c;",
        8 * p.chunks, f"from[taps[tap]] * w[{record} * c + tap]",
        f"y[column * {s.out_c} + (int32_t)to[lane] + c * {p.multiplier}] = {result};")
    count = s.kernel_h * s.kernel_w
    return row_kernel(f"aot_mve_depthwise_t{count}_c{s.out_c}",
                      f"One row of {s.out_w} outputs, {s.in_c} channels, {count} taps at given offsets.",
                      parameters, lines, twin)


def _body(p: _Plan, rq: Requantiser, kernel: str, zero: int, tail: Tail | None, down: bool) -> str:
    s = p.shape
    image_row, out_row, table = s.in_w * s.in_c, s.out_w * s.out_c, 8 * p.chunks
    record = (table + (rq.common_right is None)) * s.in_c
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
