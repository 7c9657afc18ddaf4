"""Weights with a zero point that do not fit int8 without it: taps more, whose inputs are sums of the others.

    sum of x * (w - zero)  =  sum of x * w  +  zero * -(sum of x)

So `zero` is the weight of taps behind the last one, and their input is the negated sum of all inputs, which
every channel takes. SSUB16 makes two of these sums at once, of the inputs in the low and in the high half of
up to 128 words: no sum leaves int16. Inputs are int16 pairs as the kernels of convolutions and of dense
layers have expanded them; the padding of a patch is a zero there, which adds nothing.
"""

from __future__ import annotations

import numpy as np

from aot_model.kernels.int8.dsp import dsp_function
from aot_model.kernels.int8.spec import Int64

WORDS = 128
"""Pairs of inputs that a word has the sums of: 128 * 255 fits int16."""


def fits(zero: int) -> bool:
    """Whether a zero point can be a weight."""
    return -128 <= zero <= 127


def words(taps: int, zero: int) -> int:
    """Words of sums behind so many taps."""
    return -(-taps // (2 * WORDS)) if zero else 0


def with_sums(taps: Int64, zero: int, words: int) -> Int64:
    """Weights [channels, taps] with those of the sums."""
    return np.concatenate([taps, np.full((taps.shape[0], 2 * words), zero, np.int64)], axis=1)


def column_sums(taps: int, count: int) -> tuple[list[str], tuple[str, ...]]:
    """(statements, helpers): `count` words of sums for each of the four pixels in `columns`, behind their
    taps.
    """
    half = taps // 2
    parts = [(k * WORDS, min(WORDS, half - k * WORDS)) for k in range(count)]
    name = "negated_sums4"
    lines = [
        "push {r4-r11, lr}",
        "add r2, r0, r2, lsl #4",
        *[f"mov r{r}, #0" for r in range(8, 12)],
        "1:",
        "ldmia r0!, {r4-r7}",
        *[f"ssub16 r{8 + i}, r{8 + i}, r{4 + i}" for i in range(4)],
        "cmp r0, r2",
        "bne 1b",
        "stmia r1, {r8-r11}",
        "pop {r4-r11, pc}",
    ]
    twin = ["for (uint32_t i = 0; i < 4; i++) {", "uint32_t sum = 0;",
            "for (uint32_t k = 0; k < half; k++) {", "sum = dsp_ssub16(sum, columns[4 * k + i]);", "}",
            "to[i] = sum;", "}"]  # fmt: skip
    comment = "Negated sums of four pixels' int16 [half][4][2], of the first and the second of each pair."
    parameters = "const uint32_t *columns, uint32_t *to, uint32_t half"
    text = dsp_function(name, comment, parameters, lines, twin)
    calls = [
        f"{name}(columns + {4 * first}, columns + {4 * (half + k)}, {size}u);"
        for k, (first, size) in enumerate(parts)
    ]
    return calls, (text,) if calls else ()


def row_sums(taps: int, count: int, size: int) -> list[str]:
    """Statements: the same of one row of input, int16 pairs in `wide`; zeros up to `size` words."""
    half = taps // 2
    lines = [f"wide[{k}] = 0u;" for k in range(half + count, size)] if count else []
    for k in range(count):
        first, last = k * WORDS, min((k + 1) * WORDS, half)
        lines += ["{", "uint32_t sum = 0;", f"for (int32_t k = {first}; k < {last}; k++) {{",
                  "sum = dsp_ssub16(sum, wide[k]);", "}", f"wide[{half + k}] = sum;", "}"]  # fmt: skip
    return lines
