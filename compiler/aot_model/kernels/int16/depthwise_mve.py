"""Depthwise convolution of int16, Helium: gathers of eight taps of one channel.

As kernels/int8/depthwise_taps_mve.py: a gather brings eight taps of one channel wherever they lie, VMLADAVA
multiplies them with eight weights, four outputs of a row are requantised together. An image that needs
padding passes through a ring of padded rows, which also lets the output overwrite the input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.channel_rows_mve import channel_loop, row_kernel, rows_twin, scattered
from aot_model.kernels.int8.depthwise_taps_mve import RESIDENT, TapPlan, tap_offsets, tap_plan, tap_sums
from aot_model.kernels.int8.image_rows_mve import PaddedRows, image_loops, slack_of_rows
from aot_model.kernels.int8.requantise_mve import HEADER
from aot_model.kernels.int16 import block_mve
from aot_model.kernels.int16.dots import INT32
from aot_model.kernels.int16.finish_mve import Ending


@dataclass(frozen=True)
class _Layer:
    """A layer: its gathers, and what becomes of its sums."""

    taps: TapPlan
    ending: Ending

    @property
    def record(self) -> int:
        """Bytes of a channel: weights, and minus its shift where channels differ in it."""
        return 8 * self.taps.chunks + (not self.ending.finish.uniform_shift)


def _layer(shape: ConvShape, ending: Ending) -> _Layer:
    return _Layer(tap_plan(shape.along_row, size=2), ending)


def applicable(shape: ConvShape, weights: np.ndarray, most: int, ending: Ending | None) -> bool:
    """Whether `depthwise` takes a layer: weights of int8, sums of 32 bits, steps of 12 bits, offsets of 16.

    most: no product is larger.
    """
    taps = shape.kernel_h * shape.kernel_w
    if ending is None or weights.dtype != np.int8 or taps * most > INT32 or taps > 120 or not shape.dense:
        return False
    p = _layer(shape, ending).taps
    return 4 * shape.out_c * ending.finish.to.size <= 4095 and p.step <= 4095 and p.reach(1) <= 65535


def cycles(shape: ConvShape) -> float:
    """Of a Cortex-M55, for all outputs, about."""
    return tap_plan(shape.along_row, size=2).cycles


def depthwise(shape: ConvShape, weights: np.ndarray, ending: Ending, tail: Tail | None) -> KernelCode:
    """weights: int8 [kernel_h, kernel_w, channel], some for each channel of x, whose zero point is 0."""
    assert applicable(shape, weights, 0, ending), shape
    layer = _layer(shape, ending)
    p, f = layer.taps, ending.finish
    s = p.shape
    name, text = _row_kernel(layer)
    order = np.arange(s.out_c).reshape(s.in_c, -1).T.reshape(-1)  # one run per multiple
    rows, records = f.rows[order], np.zeros((s.out_c, layer.record), np.int8)
    by_column = weights.reshape(s.kernel_h, s.kernel_w, s.out_c).transpose(2, 1, 0)
    records[:, : s.kernel_h * s.kernel_w] = by_column.reshape(s.out_c, -1)[order]
    if not f.uniform_shift:
        records[:, -1] = -rows[:, 3]
    outputs = scattered(False, s.out_c * f.to.size)
    numbers = np.stack([rows[:, 0], rows[:, 1] >> _halved(ending)], axis=1).astype(np.int32)
    constants = [Packed("w", records.reshape(-1), admissible=ANYTHING),
                 Packed("k", numbers.reshape(-1), admissible=ANYTHING),
                 Packed("offsets", tap_offsets(p, outputs))]  # fmt: skip
    x, table = ("ring", "taps") if p.slots else (p.first, "offsets")
    places = f"{table}, offsets + {max(p.slots, 1) * 8 * p.chunks}"

    def calls(to: str) -> str:
        if p.multiplier == 1:
            return f"{name}({x}, w, k, {places}, {to});\n"
        own_w, own_k = f"w + m * {layer.record * s.in_c}", f"k + m * {2 * s.in_c}"
        call = f"{name}({x}, {own_w}, {own_k}, {places}, {to} + m);\n"
        return f"for (int32_t m = 0; m < {p.multiplier}; m++) {{\n{call}}}\n"

    note = f"{p.chunks} gather(s) of 8 taps per output, {p.slots} buffered rows"
    return layer_code(p, ending, tail, (name, text), constants, p.taps_now, calls, note)


def _halved(ending: Ending) -> int:
    """1 where VQDMULH, which doubles, takes half of the multipliers: there is no left shift to halve."""
    f = ending.finish
    return int(f.rule == "up" and f.left == 0 and not (f.rows[:, 1] & 1).any())


def _row_kernel(layer: _Layer) -> tuple[str, str]:
    """(name, text) of name(x, w, k, taps, scatter, y): one output row, every p.multiplier-th channel."""
    p, f = layer.taps, layer.ending.finish
    s, pixels = p.shape, min(p.shape.out_w, 4)
    resident = p.chunks <= RESIDENT
    block = [*tap_sums(p, pixels, ["q1", "q2"]), *_finished(layer, pixels)]
    per_channel = ["ldrd r12, r8, [r7], #8"]
    per_channel += [] if f.uniform_shift else [f"ldrsb r10, [r5, #{8 * p.chunks}]"]
    per_channel += [f"vldrb.s16 q{1 + i}, [r5, #{8 * i}]" for i in range(p.chunks) if resident]
    lines = [
        *p.resident_offsets,
        "vldrw.32 q6, [r2]",
        *([f"mov r0, #{pixels}", "vctp.32 r0"] if pixels < 4 else []),
        f"movw r9, #{s.in_c}",
    ]
    size = f.to.size
    # r5 moves on at the end of a channel, before the loop's own count.
    loop = channel_loop(
        per_channel,
        block,
        s.out_w,
        pixels,
        (pixels * p.step, pixels * s.out_c * size),
        (2, size * p.multiplier),
    )
    lines += [*loop[:-2], f"addw r5, r5, #{layer.record}", *loop[-2:]]
    parameters = (
        "r1: const int16_t *x, r5: const int8_t *w, r7: const int32_t *k, r11: const uint16_t *taps, "
        f"r2: const uint16_t *scatter, r3: {layer.ending.pointer}y"
    )
    multiplier = f"(int32_t)((uint32_t)k[2 * c + 1] << {_halved(layer.ending)})"
    scalar = layer.ending.scalar("acc", "k[2 * c]", multiplier, f"w[{layer.record} * c + {8 * p.chunks}]")
    put = f"(int{f.to.bits}_t){f'(uint{f.to.bits}_t)' if f.to.c_type.startswith('u') else ''}v"
    channel = f"c * {p.multiplier}" if p.multiplier > 1 else "c"
    place = f"column * {s.out_c} + (int32_t)(to[lane] / {size}u) + {channel}"
    store = "\n".join([*scalar, f"y[{place}] = {put};"])
    twin = "uint32_t to[4];\nmemcpy(to, scatter, sizeof to);\n" + rows_twin(
        s.in_c,
        s.out_w,
        pixels,
        str(pixels),
        f"const int16_t *from = x + (column + lane) * {p.step // 2} + c;",
        8 * p.chunks,
        f"from[taps[tap] / 2u] * w[{layer.record} * c + tap]",
        store,
    )
    count = s.kernel_h * s.kernel_w
    return row_kernel(
        f"int16_mve_depthwise_t{count}_c{s.out_c}",
        f"One row of {s.out_w} outputs, {s.in_c} channels, {count} taps at given offsets.",
        parameters,
        lines,
        twin,
    )


def _finished(layer: _Layer, pixels: int) -> list[str]:
    """Instructions after the sums of a block: start in r12, multiplier in r8, minus the shift in r10; the
    results go to the offsets in q6.
    """
    f, e = layer.ending.finish, layer.ending
    lines = ["vmov q0[2], q0[0], r0, r4", "vmov q0[3], q0[1], r2, r6", "vadd.i32 q0, q0, r12"]
    whole = f.left == 0 and not _halved(e)
    if f.left > 1:
        lines.append(f"vshl.s32 q0, q0, #{f.left - 1}")
    if whole:
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
    lines += e.clamped("q0", "q7", "r0")
    t = "t" if pixels < 4 else ""
    step = pixels * layer.taps.shape.out_c * f.to.size
    return [*lines, *(["vpst"] if t else []), f"{e.store.format(t=t)} q0, [r3, q6]", f"addw r3, r3, #{step}"]


def layer_code(
    rows: PaddedRows,
    ending: Ending,
    tail: Tail | None,
    kernel: tuple[str, str],
    constants: list[Packed],
    table: str,
    calls: Callable[[str], str],
    note: str,
) -> KernelCode:
    """The kernel around calls of a function, name and text, that makes a row of outputs. table: C before the
    calls, where there is a ring; calls: theirs, for where the results go.
    """
    s, to, pointer = rows.shape, ending.finish.to, ending.pointer
    out_row, ring = s.out_w * s.out_c, rows.ring(0, table)
    scratch = [ring.scratch] if ring else []
    place = f"y + (n * {s.out_h} + oy) * {out_row}"
    row = calls(place if to.c_type + " *" == pointer else f"({pointer})({place})")
    if tail is not None:
        scratch.append(Scratch("results", out_row * to.size, 4, pointer[:-2]))
        pixel = f"(n * {s.out_h} + oy) * {s.out_w} + ox"
        row = f"""\
{calls("results")}for (int32_t ox = 0; ox < {s.out_w}; ox++) {{
    for (int32_t c = 0; c < {s.out_c}; c++) {{
        const {to.c_type} v = ({to.c_type})results[ox * {s.out_c} + c];
        {tail.store("v", ("0", "0", pixel, "c"), 1)}
    }}
}}
"""
    sizes = 2, to.size
    return KernelCode(image_loops(s, "const int16_t *image = x", ring, row), tuple(constants), tuple(scratch),
                      frozenset({HEADER, block_mve.HEADER}), (kernel[1],), slack_of_rows(s, ring, sizes),
                      sizes=sizes, note=note)  # fmt: skip
