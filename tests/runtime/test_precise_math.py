"""Options of a build that let compilers compute floats otherwise change nothing in a generated file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.host.program import STRICT
from aot_model.installation import include_dir

FLAGS = (
    ("-O2", "-ffast-math"),
    ("-O3", "-ffast-math"),
    ("-O2", "-ffinite-math-only"),
    ("-O2", "-funsafe-math-optimizations"),
    ("-O2", "-freciprocal-math"),
    ("-O2", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"),
    ("-O2", "-fno-signed-zeros"),
)
PROGRAM = """\
#include "aot_model/precise_math.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define N 4096
int main(void)
{
    static float x[N], y[9][N];
    if (fread(x, sizeof(float), N, stdin) != N) { return 1; }
    float sum = 0.0f;
    for (int32_t i = 0; i < N; i++) {
        y[0][i] = isnan(x[i]) ? 1.0f : 0.0f;
        y[1][i] = x[i] != x[i] ? 1.0f : 0.0f;
        y[2][i] = x[i] > 3.0e38f ? INFINITY : x[i];
        y[3][i] = x[i] / 3.0f;
        y[4][i] = (x[i] + 12582912.0f) - 12582912.0f;
        y[5][i] = x[i] - x[i];
        y[6][i] = x[i] + 0.0f;
        sum += i % 512 == 0 ? -sum : isfinite(x[i]) ? x[i] : 0.0f;
        y[7][i] = sum;
        y[8][i] = x[i] != x[i] ? 0.0f : x[i] * 0.1f * 10.0f;
    }
    fwrite(y, sizeof(float), 9 * N, stdout);
    return 0;
}
"""


def _numbers() -> np.ndarray:
    rng = np.random.default_rng(5)
    found = rng.uniform(-1e3, 1e3, 4096).astype(np.float32)
    found[::5] = (found[::5] / 1e3).astype(np.float32)
    found[:6] = np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5
    return found


def _expected(x: np.ndarray) -> list[np.ndarray]:
    f = np.float32
    with np.errstate(invalid="ignore", over="ignore"):
        sums, total = [], f(0)
        for i, v in enumerate(x):
            total = f(total + (-total if i % 512 == 0 else v if np.isfinite(v) else f(0)))
            sums.append(total)
        return [
            np.isnan(x).astype(f),
            (x != x).astype(f),
            np.where(x > f(3.0e38), f(np.inf), x),
            x / f(3),
            (x + f(12582912)) - f(12582912),
            x - x,
            x + f(0),
            np.array(sums, f),
            np.where(x != x, f(0), x * f(0.1) * f(10)),
        ]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("compiler", ["gcc", "clang-14", "clang-19", "clang-22"])
def test_numbers(compiler: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    (tmp_path / "p.c").write_text(PROGRAM)
    command = [compiler, *STRICT, *flags, f"-I{include_dir()}", "p.c", "-lm", "-o", "p"]
    if compiler.startswith("clang") and {"-ffast-math", "-ffinite-math-only"} & set(flags):
        # Its pragmas leave permissions on conditional expressions: `x != x ? 0 : y` of a NaN was y.
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode and "-fno-fast-math" in done.stderr, done.stderr
        command = [*(c for c in command if c != "-Werror"), "-fno-fast-math"]
    subprocess.run(command, cwd=tmp_path, check=True)
    x = _numbers()
    done = subprocess.run([tmp_path / "p"], input=x.tobytes(), capture_output=True, check=True)
    found = np.frombuffer(done.stdout, np.float32).reshape(9, -1)
    for k, (got, want) in enumerate(zip(found, _expected(x), strict=True)):
        same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
        if compiler.startswith("clang"):
            # These options by themselves define no macro with Clang (docs/compilers.md).
            same |= (got == 0) & (want == 0)
            if k == 3 and compiler == "clang-14":
                same |= np.isclose(got, want, rtol=2e-7, atol=0)
        assert same.all(), (k, x[~same][:3], got[~same][:3], want[~same][:3])
