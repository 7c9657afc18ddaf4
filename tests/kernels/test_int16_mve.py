"""Functions of aot_model/int16_mve.h against the same arithmetic in 64 bits: Helium in QEMU, portable twins
on the host under sanitizers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.ir.types import DType
from aot_model.kernels.int16.finish import Finish
from aot_model.kernels.int16.finish_mve import Ending
from qemu import BOARDS, available, build_and_run
from sanitizers import REPORTS, built_and_run

PROGRAM = """
#include <string.h>
#include "aot_model/int16_mve.h"

static uint32_t state = 1u;
static int32_t any(void)
{
    state = state * 1664525u + 1013904223u;
    return (int32_t)(state >> 7);
}

static int32_t expected(const aot_model_finish *f, const int32_t *row, int32_t sum)
{
    const int64_t product = ((int64_t)sum + row[0]) * ((int64_t)1 << f->left) * row[1];
    const int32_t right = f->width == 4 ? row[3] : f->shift;
    int64_t v;
    if (f->rule == AOT_MODEL_AWAY) {
        const int64_t rounded = (product + ((int64_t)1 << 31)) >> 32;
        v = (rounded - (rounded < 0 && right > 0) + row[2]) >> right;
    } else {
        const int64_t word = (product >> 32) + row[2];
        v = word >> right;
        if (f->rule == AOT_MODEL_EVEN && product % 4294967296LL == 0 && word % (1LL << right) == 0) {
            v -= (v + f->odd) & 1;
        }
    }
    return (int32_t)(v < f->low ? f->low : v > f->high ? f->high : v);
}

static int finishes(int32_t rule, int32_t width, int32_t columns)
{
    const aot_model_finish f = {.rule = rule, .left = 1 + any() % 3, .width = width, .shift = 1 + any() % 12,
        .odd = any() % 2, .low = -32768 + any() % 9, .high = any() % 32768};
    int32_t rows[16], sums[4], v[4] = {0, 0, 0, 0};
    int wrong = 0;
    for (int32_t i = 0; i < 4; i++) {
        int32_t *row = rows + i * width;
        row[0] = any() % 4000 - 2000;
        row[1] = rule == AOT_MODEL_EVEN && i % 2 == 0 ? 1 << 30 : any() * 64 + any() % 64; /* ties */
        row[2] = any() % 2000000 - 1000000;
        if (rule == AOT_MODEL_EVEN && i % 2 == 0) {
            row[2] = row[2] / 4096 * 4096;
        }
        if (width == 4) {
            row[3] = 1 + any() % 20;
        }
        sums[i] = (any() % 8388608 - 4194304) * (i < 2 ? 1 : 16);
        if (rule == AOT_MODEL_EVEN) {
            sums[i] = sums[i] / 4096 * 4096 - row[0];
        }
    }
    int32_t before[4];
    memcpy(before, sums, sizeof before);
    aot_model_finish_four(&f, rows, columns, sums, v);
    for (int32_t i = 0; i < columns; i++) {
        wrong += v[i] != expected(&f, rows + i * width, before[i]);
    }
    return wrong;
}

static int dots(int32_t n)
{
    static int16_t x[160], wide[320];
    static int8_t w[320];
    int32_t sums[8], four[4];
    int wrong = 0;
    for (int32_t k = 0; k < 320; k++) {
        x[k % 160] = (int16_t)(any() % 65536 - 32768);
        w[k] = (int8_t)(any() % 256 - 128);
        wide[k] = (int16_t)(any() % 512 - 256);
    }
    for (int32_t bits = 8; bits <= 16; bits += 8) {
        if (bits == 8) {
            aot_model_two_by_two_int8(x, x + n, w + n, w, n, sums);
            aot_model_one_by_four_int8(x, w, n, n, four);
        } else {
            aot_model_two_by_two_int16(x, x + n, wide + n, wide, n, sums);
            aot_model_one_by_four_int16(x, wide, n, n, four);
        }
        for (int32_t i = 0; i < 6; i++) {
            int32_t sum = 0;
            const int32_t row = i < 4 ? (i < 2 ? 1 - i : i) : 5 - i, from = i < 4 ? 0 : n;
            for (int32_t k = 0; k < n; k++) {
                const int32_t at = (i < 4 ? i : row) * n + k;
                sum += x[(i < 4 ? 0 : from) + k] * (bits == 8 ? w[at] : wide[at]);
            }
            if (i < 4) {
                wrong += four[i] != sum;
                wrong += i < 2 && sums[1 - i] != sum;
            } else {
                wrong += sums[i] != sum;
            }
        }
    }
    static uint16_t strided[80 * 3];
    for (int32_t k = 0; k < 240; k++) {
        strided[k] = (uint16_t)any();
    }
    int16_t collected[4][81];
    for (int32_t i = 0; i < 4; i++) {
        collected[i][n] = 77; /* stays */
    }
    aot_model_collect_int8(collected[0], (const int8_t *)strided, 6, -9, n);
    aot_model_collect_uint8(collected[1], (const uint8_t *)strided, 6, 7, n);
    aot_model_collect_int16(collected[2], (const int16_t *)strided, 3, 0, n);
    aot_model_collect_uint16(collected[3], strided, 3, 32768, n);
    for (int32_t k = 0; k < n; k++) {
        const uint16_t v = strided[3 * k];
        const int32_t byte = v % 256;
        wrong += collected[0][k] != (byte > 127 ? byte - 256 : byte) + 9 || collected[1][k] != byte - 7;
        wrong += collected[2][k] != (v > 32767 ? v - 65536 : v) || collected[3][k] != v - 32768;
    }
    for (int32_t i = 0; i < 4; i++) {
        wrong += collected[i][n] != 77;
    }
    int16_t taken[3][80], filled[80];
    aot_model_take_int8(taken[0], w, -9, n);
    aot_model_take_uint8(taken[1], (const uint8_t *)w, 7, n);
    aot_model_take_uint16(taken[2], (const uint16_t *)x, 32768, n);
    aot_model_fill_int16(filled, -5, n);
    for (int32_t k = 0; k < n; k++) {
        wrong += taken[0][k] != w[k] + 9 || taken[1][k] != (uint8_t)w[k] - 7 || filled[k] != -5;
        wrong += taken[2][k] != (uint16_t)x[k] - 32768;
    }
    return wrong;
}

static int rows(int32_t rule, int32_t n)
{
    const aot_model_finish f = {.rule = rule, .left = 1 + any() % 3, .width = 0,
        .shift = any() % 12 + (rule != AOT_MODEL_AWAY), .odd = any() % 2,
        .low = -100, .high = 27 + any() % 100};
    const int32_t even = rule == AOT_MODEL_EVEN, half = f.shift > 0 ? (int32_t)1 << (f.shift - 1) : 0;
    const int32_t constants[3] = {any() % 2 * (any() % 4000 - 2000), even ? 1 << 30 : any() * 64 + any() % 64,
        half + (any() % 200 - 100) * ((int32_t)1 << f.shift)}; /* ties */
    int32_t sums[48];
    int8_t bytes[3][25];
    int16_t halves[3][25];
    int wrong = 0;
    for (int32_t k = 0; k < 48; k++) {
        sums[k] = (any() % 8388608 - 4194304) >> (any() % 12);
        sums[k] = even ? sums[k] / 64 * 64 - constants[0] : sums[k];
    }
    memset(bytes, 77, sizeof bytes);
    memset(halves, 77, sizeof halves);
    aot_model_finish_rows_8(&f, constants, sums, n, bytes[0], bytes[1]);
    aot_model_finish_rows_8(&f, constants, sums, n, bytes[2], NULL);
    aot_model_finish_rows_16(&f, constants, sums, n, halves[0], halves[1]);
    aot_model_finish_rows_16(&f, constants, sums, n, halves[2], NULL);
    for (int32_t k = 0; k < n; k++) {
        for (int32_t i = 0; i < 3; i++) {
            const int32_t v = expected(&f, constants, sums[k / 4 * 8 + k % 4 + (i == 1 ? 4 : 0)]);
            wrong += bytes[i][k] != v || halves[i][k] != v;
        }
    }
    for (int32_t i = 0; i < 3; i++) {
        wrong += bytes[i][n] != 77 || halves[i][n] != 77 * 257;
    }
    return wrong;
}

int main(void)
{
    int wrong = 0;
    for (int32_t n = 1; n < 80; n++) {
        wrong += dots(n);
    }
    for (int turn = 0; turn < 200; turn++) {
        const int32_t n = turn % 24 + 1;
        wrong += rows(AOT_MODEL_UP, n) + rows(AOT_MODEL_AWAY, n) + rows(AOT_MODEL_EVEN, n);
        for (int32_t columns = 1; columns <= 4; columns++) {
            wrong += finishes(AOT_MODEL_UP, 3, columns) + finishes(AOT_MODEL_AWAY, 3, columns);
            wrong += finishes(AOT_MODEL_UP, 4, columns) + finishes(AOT_MODEL_AWAY, 4, columns);
            wrong += finishes(AOT_MODEL_EVEN, 3, columns) + finishes(AOT_MODEL_EVEN, 4, columns);
        }
    }
    const int32_t v[4] = {-32768, 65535, 255, -128};
    int16_t halves[4];
    int8_t bytes[4];
    aot_model_put_four_16(halves, v);
    aot_model_put_four_8(bytes, v);
    wrong += halves[0] != -32768 || halves[1] != -1 || halves[2] != 255 || bytes[2] != -1 || bytes[3] != -128;
    return wrong != 0;
}
"""


def test_twins_on_the_host(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    command = ["gcc", *STRICT, "-O1", *REPORTS, f"-I{include_dir()}", "program.c", "-o", "program"]
    built_and_run([command], ["./program"], tmp_path)


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
@pytest.mark.parametrize("optimise", ["-O2", "-O0"])
def test_in_helium(optimise: str, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    build_and_run(
        BOARDS["m55"], ["program.c"], tmp_path, [optimise, "-std=c99", "-Wall", f"-I{include_dir()}"]
    )


@pytest.mark.parametrize(("to", "there"), [("int8", True), ("int16", True), ("int32", False)])
def test_results_of_32_bits_are_left_to_c(to: str, there: bool) -> None:
    """Helium's finish stores the low half or byte of a lane; a dense layer of an SVDF gives int32."""
    rows = np.array([[0, 1 << 30, 0, 8]], np.int64)
    finish = Finish(1, "up", rows, 1, 0, DType.of(np.dtype(to)), -128, 127, 1 << 20)
    assert (Ending.of(finish) is not None) is there
