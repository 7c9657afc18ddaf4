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

from aot_model.c.statements import CWriter
from aot_model.installation import include_dir
from aot_model.ir.evaluate import evaluate
from aot_model.ir.expr import call, const, load, var
from aot_model.ir.index import flatten
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from qemu import BOARDS, available, build_and_run

LIMITS = (
    (0, -128, 127),
    (-17, -128, 127),
    (200, 0, 255),
    (128, 5, 90),
    (-32768, -32768, 32767),
    (32768, 0, 65535),
)
FLAGS = [
    "-std=c99",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wfloat-equal",
    "-Wdouble-promotion",
    "-Werror",
    f"-I{include_dir()}",
]


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
    rows = [
        f"{{{text(x)}, {z}, {a}, {b}, {wanted(x, z, a, b, 'rint')}, {wanted(x, z, a, b, 'round')}}},"
        for x in numbers()
        for z, a, b in LIMITS
    ]
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


# --- behind a division by a number that is known ----------------------------------------------------------

SCALES = tuple(float(np.float32(v)) for v in (0.02, 0.0235, 1 / 255, 3e-5, 1.7, 977.3, 0.25, 1e-12))
COLUMN = var("i", 1 << 20)


def ratios(scale: float, zero: int, low: int, high: int) -> list[float]:
    """Floats beside the halves that a quotient is rounded at, and what is no number to round."""
    rng = np.random.default_rng(low & 0xFFFF)
    halves = ((rng.choice(np.arange(low - zero, high - zero), 40) + 0.5) * scale).astype(np.float32)
    beside = [np.nextafter(halves, np.float32(way)) for way in (-1e30, 1e30)]
    odd = (0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, math.inf, -math.inf, math.nan)
    return [float(v) for v in np.concatenate([halves, *beside, np.float32(odd)])]


def quotients() -> tuple[str, int]:
    """A program that counts what is wrong, and of how many."""
    parts, calls, count = [], [], 0
    for k, (scale, limits) in enumerate((s, n) for s in SCALES for n in LIMITS):
        for rounding in ("rint", "round"):
            x = load(Value("x", TensorType(DType.FLOAT32, (1 << 20,))), (COLUMN,))
            real = call("div", x, const(scale, DType.FLOAT32), dtype=DType.FLOAT32)
            node = flatten(call(f"quantise_{rounding}", real, *(const(v) for v in limits), dtype=DType.INT32))
            (written,) = CWriter(lambda _, place: f"x[{place}]").compute(node)
            assert ("quotient(" in written) == (limits in BYTES or math.log2(scale) % 1 != 0)
            given = ratios(scale, *limits)
            with np.errstate(over="ignore"):
                asked = [wanted(float(np.float32(v) / np.float32(scale)), *limits, rounding) for v in given]
            name, count = f"{rounding}{k}", count + len(given)
            parts.append(
                f"static const float x_{name}[] = {{{', '.join(text(v) for v in given)}}};\n"
                f"static const int32_t y_{name}[] = {{{', '.join(str(v) for v in asked)}}};\n"
                f"static int32_t {name}(const float *x, int32_t i) {{ return {written}; }}\n"
            )
            calls.append(
                f"    for (int32_t i = 0; i < {len(given)}; i++) {{ "
                f"wrong += {name}(x_{name}, i) != y_{name}[i]; }}\n"
            )
    program = (
        f'#include <stdio.h>\n#include "aot_model/divisor.h"\n{"".join(parts)}int main(void)\n{{\n'
        f"    int wrong = 0;\n{''.join(calls)}"
        f'    printf("%d of {count}\\n", wrong);\n    return 0;\n}}\n'
    )
    return program, count


SOFT = "-DAOT_MODEL_SOFT_FLOATS=1"
"""Reciprocals as integers, as on cores without floats."""


@pytest.mark.parametrize(
    "flags", [["-O2"], ["-O3", "-march=x86-64-v3"], ["-O0", "-march=x86-64-v3"], ["-O2", SOFT]]
)
def test_quotients_on_this_machine(flags: list[str], tmp_path: Path) -> None:
    program, count = quotients()
    (tmp_path / "main.c").write_text(program)
    if "-march=x86-64-v3" in flags and "fma" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("this processor has no FMA")
    subprocess.run(["gcc", *FLAGS, *flags, "main.c", "-o", "a"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout
    assert said == f"0 of {count}\n" and count > 10_000


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("board", ["m4", "m7", "m33", "m55", "m0"])
def test_quotients_on_a_core(board: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(quotients()[0])
    assert build_and_run(BOARDS[board], ["main.c"], tmp_path, FLAGS).startswith("0 of ")


# --- behind a division by a number that the model computes ------------------------------------------------

DIVISORS = (0.02, 1 / 255, 3e-5, 1.7, 977.3, 0.25, 1 - 2**-24, 1 + 2**-23, 1e-27, 1e-29, 1e-40, 1e29, 1e31)
DIVISORS += (3e38, 0.0, -0.0235, math.inf, math.nan)
BYTES = (*(limits for limits in LIMITS if limits[2] - limits[1] <= 255), (255, 0, 255), (-128, -128, 127))
FAR = [sign * (near + 0.25) for near in (511, 1023, 8191, 16383, 32767, 65535, 2**20) for sign in (1, -1)]


def divided(x: float, by: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(x) / np.float32(by))


def by_computed() -> tuple[str, int]:
    """A program that counts what is wrong, and of how many."""
    rng, rows = np.random.default_rng(3), []
    for by in DIVISORS:
        for zero, low, high in BYTES:
            usual = min(abs(by), 1e35) if by > 0 else 1.0
            given = (*rng.uniform(low - zero - 9, high - zero + 9, 20), *FAR)
            drawn = [float(np.float32(v * min(usual, 1e30))) for v in given]
            for x in (*ratios(usual, zero, low, high), *drawn):
                even, away = (wanted(divided(x, by), zero, low, high, r) for r in ("rint", "round"))
                rows.append(
                    f"{{{text(x)}, {text(float(np.float32(by)))}, {zero}, {low}, {high}, {even}, {away}}},"
                )
    return (
        f"""\
#include <stdio.h>
#include "aot_model/divisor.h"
static const struct {{ float x, by; int32_t zero, low, high, even, away; }} rows[] = {{
{chr(10).join(rows)}
}};
int main(void)
{{
    int wrong = 0;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {{
        const aot_model_divisor d = aot_model_divisor_of(rows[i].by);
        wrong += aot_model_rint_by(rows[i].x, d, rows[i].zero, rows[i].low, rows[i].high) != rows[i].even;
        wrong += aot_model_round_by(rows[i].x, d, rows[i].zero, rows[i].low, rows[i].high) != rows[i].away;
    }}
    printf("%d of %u\\n", wrong, (unsigned)(sizeof rows / sizeof rows[0]));
    return 0;
}}
""",
        len(rows),
    )


@pytest.mark.parametrize("flags", [["-O2"], ["-O2", SOFT]])
def test_computed_divisors_on_this_machine(flags: list[str], tmp_path: Path) -> None:
    program, count = by_computed()
    (tmp_path / "main.c").write_text(program)
    sanitisers = [
        "-fsanitize=address,undefined",
        "-fno-sanitize=float-divide-by-zero",
        "-fno-sanitize-recover=all",
    ]
    subprocess.run(["gcc", *FLAGS, *flags, *sanitisers, "main.c", "-o", "a"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout
    assert said == f"0 of {count}\n" and count > 10_000


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("board", ["m4", "m7", "m33", "m55", "m0", "m3"])
def test_computed_divisors_on_a_core(board: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(by_computed()[0])
    assert build_and_run(BOARDS[board], ["main.c"], tmp_path, FLAGS).startswith("0 of ")


@pytest.mark.parametrize("rounding", ["rint", "round"])
def test_folded(rounding: str) -> None:
    """What constants are folded with."""
    for x in numbers():
        for limits in LIMITS:
            node = call(
                f"quantise_{rounding}",
                const(x, DType.FLOAT32),
                *(const(v) for v in limits),
                dtype=DType.INT32,
            )
            assert int(evaluate(node, (), ())) == wanted(x, *limits, rounding), (x, limits)
