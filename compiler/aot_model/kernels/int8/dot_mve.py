"""The Helium micro-kernel of convolutions and matrix products: dot products along the depth with VMLADAVA.

VMLADAVA.S8 multiplies 16 pairs of bytes and adds all products to a core register. A block is `pixels` x
`channels` = up to eight accumulators, which are the eight even core registers (the only ones that VMLADAVA
can name); the pointers live in the odd ones. Per 16 values of depth a block of 2 x 4 takes 6 loads for 8
multiplications, 128 MACs.

The weights are one stream in the order of reading: for each block of channels, for each chunk of depth, 16
weights of each channel; then the block's requantisation constants. The depth is padded to a multiple of 4
only: a rest of at most 4 or 8 is multiplied in 32- or 16-bit lanes, which load 4 or 8 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.assembly import advance
from aot_model.c.words import counted
from aot_model.kernels.int8.mve import dot_function
from aot_model.kernels.int8.requantise_mve import Requantiser

ACCUMULATORS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "r14")
UNROLL = 8
LAYOUT = "for each block of channels: for each 16 inputs those of each channel; numbers of the requantisation"
STRAIGHT = 12
"""Deepest block, in chunks, that is written without a loop."""


def chunk_widths(depth: int) -> list[int]:
    """How a dot product of `depth` values is cut: 16s, then one of 4, 8 or 16 that may reach beyond the
    depth.
    """
    rest = depth % 16
    return [16] * (depth // 16) + ([4 if rest <= 4 else 8 if rest <= 8 else 16] if rest else [])


@dataclass(frozen=True)
class Dot:
    """One micro-kernel: name, C text, and the geometry that its caller must keep to."""

    name: str
    text: str
    depth: int
    """Bytes that it reads of each pixel: the depth, rounded up."""
    note: str


def pack(weights: np.ndarray, rq: Requantiser, block: int, begin: int = 0) -> np.ndarray:
    """The stream of weights [channels, depth] int8 and constants in the order in which `dot` reads it.

    begin: which channel of `rq` the first of them is. Channels beyond the last are zeros. A block of eight
    takes its constants as channels 0, 2, 4, 6, then 1, 3, 5, 7.
    """
    channels, depth = weights.shape
    widths = chunk_widths(depth)
    blocks = -(-channels // block)
    padded = np.zeros((blocks * block, sum(widths)), np.int8)
    padded[:channels, :depth] = weights
    stream: list[np.ndarray] = [rq.head()]
    for first in range(0, blocks * block, block):
        start = 0
        for width in widths:
            stream.append(padded[first : first + block, start : start + width].reshape(-1).view(np.uint8))
            start += width
        lanes = begin + first + np.arange(block)
        stream += [rq.record(lanes)] if block == 4 else [rq.record(lanes[0::2]), rq.record(lanes[1::2])]
    return np.concatenate(stream).view(np.int8)


def dot(depth: int, channels: int, rq: Requantiser, pixels: int, block: int, sums: bool = False) -> Dot:
    """The micro-kernel `name(x0[, x1], w, channels, y0[, y1])`: `pixels` pixels times all channels.

    pixels x block is 2 x 4, 1 x 4 or 1 x 8. It reads Dot.depth bytes of each pixel (two pixels may be the
    same, then so may their outputs) and writes exactly `channels` bytes of each output. Layers of one depth
    share its text. sums: behind those bytes is an int32 that is added to all sums of the pixel.
    """
    widths = chunk_widths(depth)
    padded = sum(widths)
    partial = channels % block != 0
    lines = _straight(widths, pixels, block) if len(widths) <= STRAIGHT else _looped(widths, pixels, block)
    x = ["x0", "x1"][:pixels]
    y = ["y0", "y1"][:pixels]
    # Widening loads and narrowing stores take low registers only: r1, r3, r5, r7. Two pixels with a rest of
    # the depth would need a fifth one, for y1: then it moves through r0.
    rest = widths[-1] < 16
    low, spare = {"w", *y, *(x if rest else [])}, rest and pixels == 2
    if spare:
        low.remove("y1")
    mutable = len(widths) > UNROLL
    lines += _finish(rq, pixels, block, partial, spare, None if not sums else 0 if mutable else padded)
    if mutable:
        lines += [line for p in x for line in advance(f"%[{p}]", -padded, "r0")]
    lines += [f"subs %[left], %[left], #{block}", "bgt 1b"]
    # q5 is free: it holds what all blocks share.
    shared = ["vldrw.32 q5, [%[w]], #16"] if len(rq.head()) else rq.zero_point_constant("q5")
    code = [*shared, "1:", *lines]
    parameters = ", ".join(
        [
            *(f"const int8_t *{p}" for p in x),
            "const int8_t *w",
            "int32_t channels",
            *(f"int8_t *{p}" for p in y),
        ]
    )
    name, text = dot_function(
        f"aot_mve_dot_{pixels}x{block}_k{padded}",
        f"{counted(pixels, 'pixel')} x all channels, {padded} deep, {counted(block, 'channel')} at a time; "
        f"{rq.note}.",
        parameters,
        [*sorted(low), *sorted({"left", *x, *y} - low)],
        ["w", "left", *y, *(x if mutable else [])],
        code,
        _twin(padded, rq, pixels, block, sums),
    )
    loads = (pixels + block) / (16 * pixels * block)
    return Dot(name, text, padded, f"{pixels} x {block} blocks, {loads:.3f} loads per MAC")


def _load(width: int) -> str:
    return {16: "vldrb.8", 8: "vldrb.s16", 4: "vldrb.s32"}[width]


def _multiply(width: int, first: bool) -> str:
    return f"vmladav{'' if first else 'a'}.{ {16: 's8', 8: 's16', 4: 's32'}[width] }"


def _chunk(width: int, pixels: int, block: int, first: bool, offset: int | None) -> list[str]:
    """One chunk of depth: pixels in q0, q1, weights in q2, q3 by turns. offset None: the pixel pointers
    advance.
    """
    at = [f"[%[x{p}], #{offset}]" if offset is not None else f"[%[x{p}]], #{width}" for p in range(pixels)]
    lines = []
    for c in range(block):
        weight = f"q{2 + c % 2}"
        lines.append(f"{_load(width)} {weight}, [%[w]], #{width}")
        for p in range(pixels):
            if c == 0:
                lines.append(f"{_load(width)} q{p}, {at[p]}")
            lines.append(f"{_multiply(width, first)} {ACCUMULATORS[c * pixels + p]}, q{p}, {weight}")
    return lines


def _straight(widths: list[int], pixels: int, block: int) -> list[str]:
    fixed = len(widths) <= UNROLL
    lines: list[str] = []
    for i, width in enumerate(widths):
        lines += _chunk(width, pixels, block, i == 0, 16 * i if fixed else None)
    return lines


def _looped(widths: list[int], pixels: int, block: int) -> list[str]:
    """First chunks straight, then a loop of UNROLL, then the rest. The count of channels waits in q7
    meanwhile.
    """
    rest = [w for w in widths if w < 16]
    whole = len(widths) - len(rest)
    head = (whole - 1) % UNROLL + 1
    lines = []
    for i in range(head):
        lines += _chunk(16, pixels, block, i == 0, None)
    lines += ["vmov.32 q7[0], %[left]", f"mov %[left], #{(whole - head) // UNROLL}", "2:"]
    for _ in range(UNROLL):
        lines += _chunk(16, pixels, block, False, None)
    lines += ["subs %[left], %[left], #1", "bne 2b", "vmov.32 %[left], q7[0]"]
    for width in rest:
        lines += _chunk(width, pixels, block, False, None)
    return lines


def _finish(
    rq: Requantiser, pixels: int, block: int, partial: bool, spare: bool, sum_at: int | None
) -> list[str]:
    """Accumulators to vectors q6 (and q7), requantisation, store.

    Lanes: 2 x 4: q6 is pixel 0, q7 pixel 1. 1 x 8: q6 the even channels, q7 the odd ones, so that narrowing
    puts them in order. 1 x 4: q6. sum_at: from a pixel's pointer to a number to add; None: there is none.
    """
    lines = []
    common = len(rq.head()) > 0
    vectors = ["q6"] if pixels * block == 4 else ["q6", "q7"]
    for v, vector in enumerate(vectors):
        step = len(vectors)
        a = [ACCUMULATORS[v + step * i] for i in range(4)]
        lines += [
            f"vmov {vector}[2], {vector}[0], {a[0]}, {a[2]}",
            f"vmov {vector}[3], {vector}[1], {a[1]}, {a[3]}",
        ]
    for v, vector in enumerate(vectors if sum_at is not None else []):
        lines += [f"ldr r0, [%[x{v if pixels == 2 else 0}], #{sum_at}]", f"vadd.i32 {vector}, {vector}, r0"]
    for v, vector in enumerate(vectors):
        if v == 0 or pixels == 1:
            lines.append("vldrw.32 q0, [%[w]], #16")
            lines += ["vldrw.32 q1, [%[w]], #16"] if rq.own_multipliers else []
            lines += ["vldrb.s32 q2, [%[w]], #4"] if rq.has_left else []
            lines += ["vldrb.s32 q3, [%[w]], #4"] if rq.common_right is None else []
        last = pixels == 1 or v + 1 == len(vectors)  # of the vectors that share a record
        lines += [f"vadd.i32 {vector}, {vector}, q0",
                  *rq.vector(vector, "q4", "q5" if common else "q1", "q2", "q3", "r0",
                             "[%[w]], #16" if last else "[%[w]]")]  # fmt: skip
    lines += rq.narrow("q6", "q7" if len(vectors) == 2 else None, "q0", None if common else "q5")
    if block == 8:
        store = [("vstrb{t}.16", "q6, [%[y0]], #8")]
    elif pixels == 2:
        second = "[r0]" if spare else "[%[y1]], #4"
        store = [
            ("vstrb{t}.32", "q6, [%[y0]], #4"),
            ("vshr{t}.u32", "q6, q6, #16"),
            ("vstrb{t}.32", f"q6, {second}"),
        ]
    else:
        store = [("vstrb{t}.32", "q6, [%[y0]], #4")]
    if spare:
        lines.append("mov r0, %[y1]")
    if partial:
        lines += [f"vctp.{16 if block == 8 else 32} %[left]", "vps" + "t" * len(store)]
    lines += [f"{op.format(t='t' if partial else '')} {operands}" for op, operands in store]
    return lines + (["adds %[y1], %[y1], #4"] if spare else [])


def _twin(depth: int, rq: Requantiser, pixels: int, block: int, sums: bool) -> str:
    """The same blocks in portable C."""
    right = -1 if rq.common_right is None else rq.common_right
    ties = "AWAY" if rq.spec.rounding == "double" else rq.ties.upper()
    second = ("x1", "y1") if pixels == 2 else ("x0", "y0")
    return f"""\
    static const aot_mve_dot_form form = {{
        .pixels = {pixels}, .block = {block}, .depth = {depth},
        .multipliers = {int(rq.own_multipliers)}, .left = {int(rq.has_left)}, .right = {right},
        .half = {"1 << 30" if rq.rounds_product else "0"}, .ties = AOT_MVE_TIES_{ties},
        .zero = {rq.zero_point}, .low = {rq.spec.act_min}, .high = {rq.spec.act_max},{" .sums = 1," * sums}
    }};
    aot_mve_dot(&form, x0, {second[0]}, w, channels, y0, {second[1]});
"""
