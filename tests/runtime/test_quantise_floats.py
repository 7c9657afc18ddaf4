"""Floats to whole numbers within limits, as generated code does it, against Python's decimal arithmetic.

Ties, neighbours of ties, infinities, NaN; on this machine and on Cortex-M cores.
"""

from __future__ import annotations

import math
import subprocess
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pytest

from aot_model.installation import include_dir
from aot_model.ir.evaluate import evaluate
from aot_model.ir.expr import call, const
from aot_model.ir.types import DType
from qemu import BOARDS, available, build_and_run

LIMITS = ((0, -128, 127), (-17, -128, 127), (200, 0, 255), (128, 5, 90), (-32768, -32768, 32767),
          (32768, 0, 65535))
FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wfloat-equal", "-Wdouble-promotion", "-Werror",
         f"-I{include_dir()}"]


def numbers() -> list[float]:
    near = [np.float32(v) for v in (0.5, 1.5, 2.5, 126.5, 127.5, 144.5, 32767.5, 65534.5, 7.25, 1e-30, 0.0)]
    near += [np.nextafter(v, np.float32(w)) for v in near for w in (0, 1e9)]
    both = [float(v) for v in (*near, *(-v for v in near))]
    return [*both, 1e30, -1e30, 2.0**22, -(2.0**22), math.inf, -math.inf, math.nan]


def wanted(x: float, zero: int, low: int, high: int, rounding: str) -> int:
    if math.isnan(x):
        return min(max(zero, low), high)
    if math.isinf(x):
        return high if x > 0 else low
    ties = ROUND_HALF_EVEN if rounding == "rint" else ROUND_HALF_UP
    return min(max(int(Decimal(x).quantize(Decimal(1), ties) if abs(x) < 1e9 else x) + zero, low), high)


def text(x: float) -> str:
    return "NAN" if math.isnan(x) else f"{'-' if x < 0 else ''}INFINITY" if math.isinf(x) else f"{x.hex()}f"


def program() -> str:
    rows = [f"{{{text(x)}, {z}, {a}, {b}, {wanted(x, z, a, b, 'rint')}, {wanted(x, z, a, b, 'round')}}},"
            for x in numbers() for z, a, b in LIMITS]
    return f"""\
#include <stdio.h>
#include "aot_model/scalar.h"
static const struct {{ float x; int32_t zero, low, high, even, away; }} rows[] = {{
{chr(10).join(rows)}
}};
int main(void)
{{
    int wrong = 0;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {{
        wrong += aot_model_quantise_rint(rows[i].x, rows[i].zero, rows[i].low, rows[i].high) != rows[i].even;
        wrong += aot_model_quantise_round(rows[i].x, rows[i].zero, rows[i].low, rows[i].high) != rows[i].away;
    }}
    printf("%d of %u\\n", wrong, (unsigned)(sizeof rows / sizeof rows[0]));
    return 0;
}}
"""


def test_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(program())
    sanitisers = ["-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
    for flags in (sanitisers, ["-O3", "-march=native", "-Wconversion"]):
        subprocess.run(["gcc", *FLAGS, *flags, "main.c", "-o", "a"], cwd=tmp_path, check=True)
        said = subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout
        assert said == f"0 of {len(numbers()) * len(LIMITS)}\n"


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("board", ["m4", "m7", "m33", "m55", "m0"])
def test_on_a_core(board: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(program())
    assert build_and_run(BOARDS[board], ["main.c"], tmp_path, FLAGS).startswith("0 of ")


@pytest.mark.parametrize("rounding", ["rint", "round"])
def test_folded(rounding: str) -> None:
    """What constants are folded with."""
    for x in numbers():
        for limits in LIMITS:
            node = call(f"quantise_{rounding}", const(x, DType.FLOAT32), *(const(v) for v in limits),
                        dtype=DType.INT32)
            assert int(evaluate(node, (), ())) == wanted(x, *limits, rounding), (x, limits)
