"""The least and the largest of floats by their bits, against numpy: rests of vectors, infinities, NaN of both
signs; on this machine and on Cortex-M cores.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.installation import include_dir
from qemu import BOARDS, available, build_and_run

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{include_dir()}"]
ODD = (np.inf, -np.inf, -0.0, 1e-45, -1e-45, 3e38, -3e38)


def rows() -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    drawn = [rng.normal(0, 10, n).astype(np.float32) for n in range(12) for _ in range(3)]
    signed = [s * np.abs(r) for r in drawn for s in (np.float32(1), np.float32(-1))]
    placed = [np.insert(rng.normal(0, 1, 6), k, odd).astype(np.float32) for odd in ODD for k in range(7)]
    return [*drawn, *signed, *placed]


def program() -> tuple[str, int]:
    """Counts what is wrong, and of how many; with a NaN, one of the two is one."""
    calls, given = [], rows()
    for row in given:
        bits = ", ".join(f"0x{v:08x}u" for v in row.view(np.uint32)) or "0u"
        with_zero = np.append(row, np.float32(0))
        least, most = (float(v).hex() if np.isfinite(v) else f"{'-' if v < 0 else ''}INFINITY"
                       for v in (with_zero.min(), with_zero.max()))  # fmt: skip
        calls.append(
            f"{{ static const uint32_t b[] = {{{bits}}}; wrong += !is(b, {row.size}, {least}, {most}); }}"
        )
    for nan in (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF):
        for k in range(7):
            held = ", ".join(f"0x{nan:08x}u" if j == k else "0x3f800000u" for j in range(7))
            calls.append(f"{{ static const uint32_t b[] = {{{held}}}; wrong += !odd(b, 7); }}")
    text = f"""\
#include <math.h>
#include <stdio.h>
#include "aot_model/extremes.h"
static float least, most;
static void find(const uint32_t *bits, int32_t n)
{{
    static float x[16];
    memcpy(x, bits, (size_t)n * sizeof *x);
    aot_model_extremes(x, n, &least, &most);
}}
static int is(const uint32_t *bits, int32_t n, double a, double b)
{{
    find(bits, n);
    return (double)least == a && (double)most == b;
}}
static int odd(const uint32_t *bits, int32_t n)
{{
    find(bits, n);
    return isnan(least) || isnan(most);
}}
int main(void)
{{
    int wrong = 0;
    {chr(10).join(calls)}
    printf("%d of {len(calls)}\\n", wrong);
    return 0;
}}
"""
    return text, len(calls)


@pytest.mark.parametrize(
    "flags", [["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], ["-O3", "-march=native"]]
)
def test_extremes_on_this_machine(flags: list[str], tmp_path: Path) -> None:
    text, count = program()
    (tmp_path / "main.c").write_text(text)
    subprocess.run(["gcc", *FLAGS, *flags, "main.c", "-o", "a", "-lm"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout
    assert said == f"0 of {count}\n" and count > 150


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("board", ["m0", "m4", "m55"])
@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
def test_extremes_on_a_core(board: str, level: str, tmp_path: Path) -> None:
    text, count = program()
    (tmp_path / "main.c").write_text(text)
    assert build_and_run(BOARDS[board], ["main.c"], tmp_path, [*FLAGS, level]) == f"0 of {count}\n"
