"""Two rows of int16 by all rows of int8 weights for cores with the DSP extension: sums, bias,
requantisation.

Two rows of x by two of weights: per four taps five neighbouring loads, which overlap, a sixth, four SXTB16
and eight SMLAD: 18 instructions for 16 MACs. x is read where it lies, at any even address. A pair of channels
is, in the order of reading: the starts of their sums, a word of four taps of each by turns, what is left of
the taps filled up with zeros, their requantisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aot_model.kernels.int8.dsp import SATURATIONS, Load, Peek, Schedule, dsp_function, op
from aot_model.kernels.int8.finish import wrapped
from aot_model.kernels.int8.gemm_dsp import channel_pairs, stream_lines
from aot_model.kernels.int8.spec import Int32
from aot_model.kernels.int16.dots import Dots
from aot_model.kernels.int16.finish import Finish

UNROLL = 4
LEAST, LEAST_TAIL = 32, 256
"""Products of a pixel that are worth a call; where the results go to a tail behind it."""
ORDER = [0, 2, 1, 3]
"""Of the taps in a word, so that SXTB16 gives neighbours."""
LAYOUT = (
    "for each two channels: two start values of the sums, four taps of the one and of the other, "
    "numbers of the requantisation"
)
_SUMS = (("r3", "r5"), ("r4", "r6"))
"""Of each channel: of both rows."""


@dataclass(frozen=True)
class Rows:
    """The micro-kernel of a layer and its stream."""

    name: str
    text: str
    words: Int32
    cuts: tuple[tuple[int, int, int], ...]
    """(first word, last word, first channel) of each call: an odd last channel is computed with its
    neighbour, once more.
    """
    quads: int
    rows: int

    def calls(self, x: list[str], y: list[str], stream: str = "weights") -> list[str]:
        """Statements for the rows of x, whose results go to y; two may be the same."""
        return [
            f"{self.name}({x[0]}, {x[-1]}, {stream}{f' + {first}' if first else ''}, {stream} + {last}, "
            f"{', '.join(f'{to} + {channel}' if channel else to for to in (y[0], y[-1]))}, {self.quads});"
            for first, last, channel in self.cuts
        ]


def rows_of(
    dots: Dots,
    weights: npt.NDArray[np.integer],
    finish: Finish | None,
    rows: int,
    tail: bool,
    groups: int = 1,
) -> Rows | None:
    """None where the sums have more than 32 bits, no such sequence ends them, or calls would not pay. weights
    [channel, tap]; rows: of x, 1 or 2. groups: of channels, with a call each.
    """
    if not dots.dsp or weights.dtype != np.int8 or dots.chunk != dots.taps or finish is None:
        return None
    channels, taps = len(weights) // groups, weights.shape[1]
    known = (finish.low, finish.high) in SATURATIONS
    if not known or channels in (1, 3) or taps < 4:  # a third channel is a call of its own
        return None
    if channels * taps < (LEAST_TAIL if tail and groups == 1 else LEAST // min(groups, 2)):
        return None
    padded = np.zeros((len(weights), -(-taps // 4) * 4), np.int64)
    padded[:, :taps] = weights
    ordered = padded.reshape(len(weights), -1, 4)[..., ORDER].astype(np.int8)
    quads = np.ascontiguousarray(ordered).reshape(len(weights), -1).view("<i4")
    pairs = channel_pairs(channels, False, groups)
    parts = []
    for pair in pairs:
        ends = finish.rows[pair][:, 1 : finish.width]
        parts += [wrapped(finish.rows[pair][:, 0]), quads[pair].T.reshape(-1), wrapped(ends.reshape(-1))]
    stream = np.concatenate(parts).astype(np.int32)
    size, whole = len(stream) // len(pairs), channels // 2
    cuts = [(0, whole * size, 0)]
    cuts += [(whole * size, (whole + 1) * size, channels - 2)] if channels % 2 else []
    name, text = _kernel(taps % 4, finish, rows)
    return Rows(name, text, stream, tuple(cuts), taps // 4, rows)


def _step(rows: int) -> Schedule:
    """Four taps of two rows, or of one, by two."""
    step: Schedule = [Peek("r8", "r0", 4), Load(("r7",), "r0", skip=4)]
    step += [Peek("r10", "r1", 4), Load(("r9",), "r1", skip=4)] if rows == 2 else []
    for sums in _SUMS:
        step += [Load(("r11",), "r2"), op("sxtb16", "r12", "r11"), op("sxtb16_ror8", "r11", "r11")]
        for pair, w in ((("r7", "r9"), "r12"), (("r8", "r10"), "r11")):
            step += [op("smlad", s, x, w, s) for s, x in zip(sums[:rows], pair, strict=False)]
    return step


def _left(count: int, rows: int) -> list[str]:
    """The last one to three taps; what is not there has weights of zero, and is not read."""
    if not count:
        return []
    load, pairs = "ldrsh.w" if count == 1 else "ldr.w", ["r7", "r9"][:rows]
    lines = [f"{load} {to}, [r{k}]" for k, to in enumerate(pairs)]
    singles = ["r8", "r10"][:rows] if count == 3 else []
    lines += [f"ldrsh.w {to}, [r{k}, #4]" for k, to in enumerate(singles)]
    for sums in _SUMS:
        lines += ["ldr r11, [r2], #4", "sxtb16 r12, r11"]
        lines += [f"smlad {s}, {x}, r12, {s}" for s, x in zip(sums, pairs, strict=False)]
        lines += ["sxtb16 r11, r11, ror #8"] if singles else []
        lines += [f"smlad {s}, {x}, r11, {s}" for s, x in zip(sums, singles, strict=False)]
    return lines


def _finish(f: Finish, rows: int) -> list[str]:
    lines = []
    saturation = SATURATIONS[f.low, f.high]
    kind, bits = saturation[:4], saturation[4:]
    shift = int(f.rows[0, 3]) if f.uniform_shift else None
    for sums in _SUMS:
        lines += ["ldrd r7, r8, [r2], #8", *(["ldr r9, [r2], #4"] if shift is None else [])]
        lines += ["rsb r10, r9, #32"] if shift is None and f.rule == "even" else []
        for s in sums[:rows]:
            lines += [f"lsl {s}, {s}, #{f.left}"] if f.left else []
            if f.rule == "even":  # a tie has no fraction left, and goes to the even one of its neighbours
                lines += [
                    f"smull r11, {s}, {s}, r7",
                    f"add {s}, {s}, r8",
                    f"lsl r12, {s}, {'r10' if shift is None else f'#{32 - shift}'}",
                    "orrs r12, r12, r11",
                    f"asr {s}, {s}, {'r9' if shift is None else f'#{shift}'}",
                ]
                lines += (
                    ["it eq", f"biceq {s}, {s}, #1"]
                    if f.zero % 2 == 0
                    else ["itt eq", f"subeq {s}, {s}, #1", f"orreq {s}, {s}, #1"]
                )
                lines.append(f"{kind} {s}, #{bits}, {s}")
                continue
            if f.rule == "up":
                lines.append(f"smmla {s}, {s}, r7, r8")
            else:
                lines.append(f"smmulr {s}, {s}, r7")
                lines += [f"add {s}, {s}, {s}, asr #31"] if shift != 0 else []
                lines.append(f"add {s}, {s}, r8")
            lines += [f"asr {s}, {s}, r9"] if shift is None else []
            lines.append(f"{kind} {s}, #{bits}, {s}{f', asr #{shift}' if shift else ''}")
    return lines


def _kernel(left: int, f: Finish, rows: int) -> tuple[str, str]:
    """(name, text). Of one row the second pointers are not used."""
    to, size = f.to.c_type, f.to.size
    shift = f"s{int(f.rows[0, 3])}" if f.uniform_shift else "v"
    rule = "odd" if f.rule == "even" and f.zero % 2 else f.rule
    name = f"int16_dot{rows}x2_k{left}_{rule}{f.left}_{shift}_{SATURATIONS[f.low, f.high]}_{f.to.label}"
    store = "strb" if size == 1 else "strh"
    arguments = [
        "strd r0, r1, [sp]",
        "str r3, [sp, #8]",  # end of the stream
        "ldr r3, [sp, #64]",  # fours of taps
        "str r3, [sp, #16]",
    ]
    begin = [
        "1:",
        "ldrd r3, r4, [r2], #8",
        "ldrd r0, r1, [sp]",
        *(["mov r5, r3", "mov r6, r4"] if rows == 2 else []),
        "ldr r12, [sp, #16]",
        "add lr, r0, r12, lsl #3",
    ]
    stores = [
        "ldrd r7, r8, [sp, #56]",  # where the results go
        f"{store}.w r4, [r7, #{size}]",
        f"{store} r3, [r7], #{2 * size}",
        *([f"{store}.w r6, [r8, #{size}]", f"{store} r5, [r8], #{2 * size}"] if rows == 2 else []),
        "strd r7, r8, [sp, #56]",
        "ldr r7, [sp, #8]",
    ]
    lines = stream_lines(20, arguments, _step(rows), UNROLL, 12, ["cmp r0, lr"], begin,
                         [*_left(left, rows), *_finish(f, rows), *stores], "r2, r7")  # fmt: skip
    words = f"(quads{' + 1' if left else ''})"
    away = f.rule == "away"
    sign = " + (high >> 31)" if away and shift != "s0" else ""
    moved = "n[2]" if shift == "v" else shift[1:]
    tie = (
        [
            f"if ((uint32_t)product == 0u && (uint32_t)word << (32 - {moved}) == 0u) {{",
            "v = (v - 1) | 1;" if f.zero % 2 else "v -= v & 1;",
            "}",
        ]
        if f.rule == "even"
        else []
    )
    body = [
        "static const int32_t places[4] = {0, 16, 8, 24};",
        f"const int32_t taps = 4 * quads + {left}, width = {f.width - 1};",
        f"for (const int32_t *p = stream; p != end; p += 2 + 2 * {words} + 2 * width) {{",
        "for (int32_t j = 0; j < 2; j++) {",
        "const int32_t *n = p + 2 + 2 * " + words + " + j * width;",
        f"for (int32_t i = 0; i < {rows}; i++) {{",
        "const int16_t *x = i == 0 ? x0 : x1;",
        "uint32_t sum = (uint32_t)p[j];",
        "for (int32_t t = 0; t < taps; t++) {",
        "const uint32_t word = (uint32_t)p[2 + t / 4 * 2 + j];",
        "sum += (uint32_t)(x[t] * (int8_t)(word >> places[t % 4] & 0xffu));", "}",
        f"const int64_t product = (int64_t)(int32_t)(sum << {f.left}) * n[0];",
        f"const int32_t high = (int32_t)((product{' + INT64_C(0x80000000)' if away else ''}) >> 32);",
        f"const int32_t word = (int32_t)((uint32_t)(high{sign}) + (uint32_t)n[1]);",
        f"int32_t v = word >> {moved};", *tie,
        f"v = v < {f.low} ? {f.low} : v > {f.high} ? {f.high} : v;",
        f"(i == 0 ? y0 : y1)[j] = ({to})v;", "}", "}", "y0 += 2;", "y1 += 2;", "}",
    ]  # fmt: skip
    comment = f"{'Two rows' if rows == 2 else 'A row'} of int16 x all pairs of channels of the stream."
    ends = f"const int32_t *end, {to} *y0, {to} *y1, int32_t quads"
    parameters = f"const int16_t *x0, const int16_t *x1, const int32_t *stream, {ends}"
    return name, dsp_function(name, comment, parameters, lines, body)
