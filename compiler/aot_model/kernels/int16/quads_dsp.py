"""Sums of one or two rows of int16 with four rows of bytes, for cores with the DSP extension.

Weights of two channels a, b lie in a word as the bytes a(k), b(k), a(k + 1), b(k + 1): SXTB16 of it are two
taps of a, SXTB16 of it rotated by a byte those of b. A step is two taps of four channels:

    two rows   4 LDR, 4 SXTB16, 8 SMLAD for 16 MACs: 18 cycles of a Cortex-M4, for three loads are neighbours
    one row    3 LDR, 4 SXTB16, 4 SMLAD for 8 MACs: 12 cycles

Two rows are as far from each other as a row is long, so that one pointer is enough. Sums of more products
than 32 bits hold are made of parts: a kernel is called for some taps at a time, its sums are added in 64
bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aot_model.kernels.int8.dsp import Load, Peek, Schedule, dsp_function, op, twin
from aot_model.kernels.int8.gemm_dsp import stream_lines

CHANNELS = 4
LONGEST = 2044
"""Taps of two rows: the second one must be within an LDR's offset."""
UNROLL = 4

_SUMS = tuple(f"r{k}" for k in range(2, 10))


def packed(rows: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Weights [channel, tap], multiples of four channels and two taps, in the order of the kernel."""
    # four, pair, channel of it, step, tap of it
    fours: npt.NDArray[np.integer] = rows.reshape(len(rows) // CHANNELS, 2, 2, -1, 2)
    return np.asarray(fours.transpose(0, 3, 1, 4, 2).reshape(-1))


def _two_rows(taps: int) -> Schedule:
    """Two taps; sums of a channel's two rows are neighbours."""
    second = f"dsp_pair_at((const int16_t *)(const void *)(r0 + {2 * taps}))"
    step: Schedule = [Load(("r10",), "r1", of_bytes=True), Peek("lr", "r0", 2 * taps, second),
                      Load(("r12",), "r0", of_bytes=True)]  # fmt: skip

    def products(channel: int, w: str) -> Schedule:
        return [op("smlad", _SUMS[2 * channel + k], x, w, _SUMS[2 * channel + k])
                for k, x in enumerate(("r12", "lr"))]  # fmt: skip

    step += [op("sxtb16_ror8", "r11", "r10"), *products(1, "r11")]
    step += [Load(("r11",), "r1", of_bytes=True), op("sxtb16", "r10", "r10"), *products(0, "r10")]
    step += [op("sxtb16_ror8", "r10", "r11"), op("sxtb16", "r11", "r11")]
    return [*step, *products(3, "r10"), *products(2, "r11")]


def _one_row() -> Schedule:
    step: Schedule = [Load((r,), p, of_bytes=True) for r, p in (("r10", "r1"), ("r11", "r1"), ("r12", "r0"))]
    for pair, w in enumerate(("r10", "r11")):
        step += [op("sxtb16_ror8", "lr", w), op("sxtb16", w, w)]
        step += [op("smlad", acc, "r12", x, acc)
                 for acc, x in zip(_SUMS[2 * pair:2 * pair + 2], (w, "lr"), strict=True)]  # fmt: skip
    return step


def sums(taps: int, chunk: int, rows: int) -> tuple[str, list[str]]:
    """(text of the kernel, statements): `sums` of four channels of the rows at from0, which have `taps` each;
    w moves on. chunk: taps that are summed in 32 bits, an even number.
    """
    count = CHANNELS * rows
    if chunk == taps:
        name, text = kernel(taps, rows, whole=True)
        return text, [f"int32_t sums[{count}];", f"{name}(from0, w, sums);", f"w += {CHANNELS * taps};"]
    name, text = kernel(taps, rows, whole=False)
    return text, [
        f"int64_t sums[{count}] = {{0}};",
        f"for (int32_t begin = 0; begin < {taps}; begin += {chunk}) {{",
        f"    const int32_t taps = {taps} - begin < {chunk} ? {taps} - begin : {chunk};",
        f"    int32_t parts[{count}];",
        f"    {name}(from0 + begin, w, parts, taps);",
        f"    w += {CHANNELS} * taps;",
        f"    for (int32_t k = 0; k < {count}; k++) {{",
        "        sums[k] += parts[k];",
        "    }", "}",
    ]  # fmt: skip


def kernel(distance: int, rows: int, whole: bool) -> tuple[str, str]:
    """(name, C text): four channels of one or two rows; sums: of each channel those of the rows.

    distance: of the second row from the first one, in elements, at most LONGEST. whole: it is the number of
    taps, too; else they are an argument, an even number.
    """
    step = _two_rows(distance) if rows == 2 else _one_row()
    name = f"sums{rows}x4_{distance}" if whole else f"parts2x4_{distance}" if rows == 2 else "parts1x4"
    registers = _SUMS[: CHANNELS * rows]
    arguments = [
        "str r2, [sp]",
        f"movw r3, #{2 * distance}" if whole else "lsls r3, r3, #1",
        "add r5, r0, r3",
        "str r5, [sp, #4]",
        "lsrs r3, r3, #2",
    ]
    lines = stream_lines(12, arguments, step, UNROLL, 8, ["ldr r10, [sp, #4]", "cmp r0, r10"],
                         [f"mov {r}, #0" for r in registers],
                         ["ldr r10, [sp]", f"stmia r10, {{{registers[0]}-{registers[-1]}}}"])  # fmt: skip
    used = [*registers, "r10", "r11", "r12", "lr"]
    body = [
        "const uint8_t *r0 = (const uint8_t *)x, *r1 = (const uint8_t *)w;",
        f"int32_t {', '.join(f'{r} = 0' for r in used)};",
        f"for (int32_t k = 0; k < {distance // 2 if whole else 'taps / 2'}; k++) {{", *twin(step), "}",
        *(f"sums[{k}] = {r};" for k, r in enumerate(registers)),
    ]  # fmt: skip
    taps = f"{distance} " if whole else ""
    comment = (
        f"{'Two rows' if rows == 2 else 'A row'} of {taps}int16 x four channels; w: of each two taps "
        "two words, each with the taps of two channels in turn."
    )
    parameters = "const int16_t *x, const int8_t *w, int32_t *sums" + ("" if whole else ", int32_t taps")
    return name, dsp_function(name, comment, parameters, lines, body)
