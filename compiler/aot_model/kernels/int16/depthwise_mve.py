"""Depthwise convolution of int16, Helium: gathers of eight taps of one channel.

As kernels/int8/depthwise_taps_mve.py: a gather brings eight taps of one channel wherever they lie, VMLADAVA
multiplies them with eight weights, four outputs of a row are requantised together. An image that needs
padding passes through a ring of padded rows, which also lets the output overwrite the input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aot_model.c.assembly import forward
from aot_model.ir.types import DType
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.channel_rows_mve import (
    FOUR,
    ChannelRows,
    RowEnd,
    SumEnd,
    gathered_sums,
    scattered,
)
from aot_model.kernels.int8.depthwise_taps_mve import RESIDENT, tap_offsets, tap_plan, tap_sums
from aot_model.kernels.int8.image_rows_mve import PaddedRows, image_loops, slack_of_rows
from aot_model.kernels.int8.requantise_mve import HEADER
from aot_model.kernels.int16 import block_mve
from aot_model.kernels.int16.finish_mve import Ending, where_stored
from aot_model.kernels.row_tail import VectorTail


@dataclass(frozen=True)
class _End:
    """Of a channel the start of its sums and its multiplier, and minus its shift."""

    ending: Ending

    @property
    def halved(self) -> int:
        """1 where VQDMULH, which doubles, takes half of the multipliers: there is no left shift to halve."""
        f = self.ending.finish
        return int(f.rule == "up" and f.left == 0 and not (f.rows[:, 1] & 1).any())

    @property
    def sizes(self) -> tuple[int, int]:
        return 2, self.ending.finish.to.size

    @property
    def numbers(self) -> np.ndarray:
        rows = self.ending.finish.rows
        return np.stack([rows[:, 0], rows[:, 1] >> self.halved], axis=1).astype(np.int32)

    @property
    def shifts(self) -> np.ndarray | None:
        f = self.ending.finish
        return None if f.uniform_shift else (-f.rows[:, 3]).astype(np.int8)

    @property
    def load(self) -> list[str]:
        return ["ldrd r12, r8, [r7], #8"]

    def finished(self, steps: int, partial: bool, eight: bool = False, first: str | None = None) -> list[str]:
        """Of a block of up to four."""
        f, e = self.ending.finish, self.ending
        lines = [*gathered_sums("q0"), "vadd.i32 q0, q0, r12"]
        if f.left > 1:
            lines.append(f"vshl.s32 q0, q0, #{f.left - 1}")
        if f.left == 0 and not self.halved:
            lines += ["vdup.32 q7, r8", "vmulh.s32 q0, q0, q7"]
        else:
            lines.append(f"{'vqrdmulh' if f.rule == 'away' else 'vqdmulh'}.s32 q0, q0, r8")
        own = int(f.rows[0][3])
        if f.rule == "away" and (not f.uniform_shift or own):
            lines += ["vshr.s32 q7, q0, #31", "vadd.i32 q0, q0, q7"]
        if not f.uniform_shift:
            lines.append("vrshl.s32 q0, r10")
        elif own:
            lines.append(f"vrshr.s32 q0, q0, #{own}")
        lines += [*e.clamped("q0", "q7", "r0"), *(["vpst"] if partial else [])]
        return [*lines, f"{e.store.format(t='t' * partial)} q0, [r3, q6]", *forward("r3", steps)]

    def stored(self, place: str, shift: str) -> str:
        to, multiplier = self.ending.finish.to, f"(int32_t)((uint32_t)k[2 * c + 1] << {self.halved})"
        put = f"(int{to.bits}_t){f'(uint{to.bits}_t)' if to.c_type.startswith('u') else ''}v"
        scalar = self.ending.scalar("acc", "k[2 * c]", multiplier, shift)
        return "\n".join([*scalar, f"y[{place}] = {put};"])


def applicable(shape: ConvShape, weights: np.ndarray, ending: Ending | None) -> bool:
    """Whether `depthwise` takes a layer: weights of int8, steps of 12 bits, offsets of 16. So few taps have
    sums of 32 bits. ending: None where the sums stay as they are.
    """
    taps = shape.kernel_h * shape.kernel_w
    if weights.dtype != np.int8 or taps > 120:
        return False
    p = tap_plan(shape.along_row, size=2)
    size = 4 if ending is None else ending.finish.to.size
    return 4 * shape.out_c * size <= 4095 and p.step <= 4095 and p.reach <= 65535


def cycles(shape: ConvShape) -> float:
    """Of a Cortex-M55, for all outputs, about."""
    return tap_plan(shape.along_row, size=2).cycles


def depthwise(
    shape: ConvShape, weights: np.ndarray, ending: Ending | None, tail: Tail | None, sum_type: str = ""
) -> KernelCode:
    """weights: int8 [kernel_h, kernel_w, channel], some for each channel of x, whose zero point is 0. ending:
    as of `applicable`; the tail takes the sums then, as `sum_type`.
    """
    assert applicable(shape, weights, ending), shape
    p = tap_plan(shape.along_row, size=2)
    s, chunks = p.shape, range(p.chunks if p.chunks <= RESIDENT else 0)
    end: RowEnd = SumEnd(np.zeros(s.out_c, np.int32), 2) if ending is None else _End(ending)
    count, multiplier = s.kernel_h * s.kernel_w, p.multiplier
    rows = ChannelRows(s, end, 8 * p.chunks, p.step, s.in_c, multiplier, (1, multiplier), False, 8 * p.chunks)
    name, text = rows.kernel(
        f"int16_mve_depthwise_t{count}_c{s.out_c}",
        f"One row of {s.out_w} outputs, {s.in_c} channels, {count} taps at given offsets.",
        p.resident_offsets,
        [f"vldrb.s16 q{1 + i}, [r5, #{8 * i}]" for i in chunks],
        tap_sums(p, min(s.out_w, FOUR), ["q1", "q2"]),
        "uint16_t",
        f"const int16_t *from = x + (column + lane) * {p.step // 2} + c;",
        f"from[taps[tap] / 2u] * w[{rows.record} * c + tap]",
    )
    by_column = weights.reshape(s.kernel_h, s.kernel_w, s.out_c).transpose(2, 1, 0).reshape(s.out_c, -1)
    offsets = tap_offsets(p, scattered(False, s.out_c * end.sizes[1]))
    constants = [*rows.packed(by_column), Packed("offsets", offsets)]
    x, table = ("ring", "taps") if p.slots else (p.first, "offsets")
    tables = f"{table}, offsets + {max(p.slots, 1) * 8 * p.chunks}"
    note = f"{p.chunks} gather(s) of 8 taps per output, {p.slots} buffered rows"
    to = DType.INT32 if ending is None else ending.finish.to
    return layer_code(p, to, tail, (name, text), constants, p.taps_now,
                      lambda to: rows.call(name, x, tables, to), note, sum_type)  # fmt: skip


def layer_code(
    rows: PaddedRows,
    to: DType,
    tail: Tail | None,
    kernel: tuple[str, str],
    constants: list[Packed],
    table: str,
    calls: Callable[[str], str],
    note: str,
    sum_type: str = "",
) -> KernelCode:
    """The kernel around calls of a function, name and text, that makes a row of outputs. to: what the calls
    make. table: C before them, where there is a ring; calls: theirs, for where the results go. sum_type: as
    of `depthwise`.
    """
    s = rows.shape
    out_row, ring = s.out_w * s.out_c, rows.ring(0, table)
    scratch = [ring.scratch] if ring else []
    place = f"y + (n * {s.out_h} + oy) * {out_row}"
    row = calls(where_stored(place, to))
    if tail is not None:
        scratch.append(Scratch("results", out_row * to.size, 4, to.c_type))  # which is how a tail reads them
        pixel = f"(n * {s.out_h} + oy) * {s.out_w} + ox"
        if isinstance(tail, VectorTail):
            each = tail.store_row(f"results + ox * {s.out_c}", ("0", "0", pixel, "0"), s.out_c, to)
        else:
            each = f"""\
for (int32_t c = 0; c < {s.out_c}; c++) {{
    const {sum_type or to.c_type} v = results[ox * {s.out_c} + c];
    {tail.store("v", ("0", "0", pixel, "c"), 1)}
}}
"""
        row = f"{calls(where_stored('results', to))}for (int32_t ox = 0; ox < {s.out_w}; ox++) {{\n{each}}}\n"
    sizes = 2, to.size
    return KernelCode(image_loops(s, "const int16_t *image = x", ring, row), tuple(constants), tuple(scratch),
                      frozenset({HEADER, block_mve.HEADER}), (kernel[1],), slack_of_rows(s, ring, sizes),
                      sizes=sizes, note=note)  # fmt: skip
