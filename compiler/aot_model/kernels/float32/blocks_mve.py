"""A tile of eight columns of a matrix of 4 or 8 bits times rows of floats, in Helium: blocks.py has it in
plain C. Zero points are multiplied by the sum of a block's elements.
"""

from __future__ import annotations

from aot_model.c.float_vectors import HEADER
from aot_model.c.text import CText

HEADERS = frozenset({HEADER, "aot_model/integer_vectors.h"})
TILE = 8
_HALVES = ("", " + 4")
"""The columns of a vector, from the first one of the tile on."""


def sums(
    text: CText, rows: int, blocks: str, many: bool, length: str, bits: int, zero: int | None, zero_type: str
) -> None:
    """Adds the products of all blocks to the arrays sum0, sum1, … of the rows at at0, at1, …, and moves them,
    w, s and z on.

    blocks, length: C of how many, and of the elements of one. zero: the zero point of all blocks; else z are
    those of a block, of zero_type.
    """
    with text.loop("b", blocks, needed=many):
        if zero != 0:
            for r in range(rows):
                text.line(f"const float all{r} = aot_model_sum_of_floats(at{r}, {length});")
        for r in range(rows):
            text.line(f"float32x4_t low{r} = vdupq_n_f32(0.0f), high{r} = vdupq_n_f32(0.0f);")
        with text.block(f"for (const float *const end = at0 + {length}; at0 != end;)"):
            for r in range(rows):
                text.line(f"const float v{r} = *at{r}++;")
            _weights(text, bits)
            for name in ("low", "high"):
                text.line(f"const float32x4_t w_{name} = aot_model_four_of_int32(q_{name});")
                for r in range(rows):
                    text.line(f"{name}{r} = vfmaq_n_f32({name}{r}, w_{name}, v{r});")
            text.line(f"w += {bits};")
        for name, at in zip(("low", "high"), _HALVES, strict=True):
            if zero is None:
                load = "aot_model_load_f32(z{})" if zero_type == "float" else (
                    "aot_model_four_of_int32(vldrhq_s32(aot_model_read_int16_t(z{})))")  # fmt: skip
                text.line(f"const float32x4_t z_{name} = {load.format(at)};")
            for r in range(rows):
                if zero is None:
                    text.line(f"{name}{r} = vfmaq_n_f32({name}{r}, z_{name}, -all{r});")
                elif zero:
                    text.line(f"{name}{r} = vsubq_n_f32({name}{r}, {zero}.0f * all{r});")
                total = f"vfmaq_f32(aot_model_load_f32(sum{r}{at}), {name}{r}, aot_model_load_f32(s{at}))"
                text.line(f"aot_model_store_f32(sum{r}{at}, {total});")
        text.line(f"s += {TILE};")
        if zero is None:
            text.line(f"z += {TILE};")


def _weights(text: CText, bits: int) -> None:
    """One of each column, as integers without a sign."""

    def load(at: str) -> str:
        return f"vreinterpretq_s32_u32(vldrbq_u32(aot_model_read_uint8_t(w{at})))"

    if bits == 8:
        for name, at in zip(("low", "high"), _HALVES, strict=True):
            text.line(f"const int32x4_t q_{name} = {load(at)};")
        return
    text.line(f"const int32x4_t both = {load('')};")
    text.line("const int32x4_t q_low = vandq_s32(both, vdupq_n_s32(15)), q_high = vshrq_n_s32(both, 4);")
