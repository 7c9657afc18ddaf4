"""The gates of recurrent cells (aot_model/gates.h), beside double precision: as near as the header says,
whatever the compiler's flags are.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from qemu import BOARDS, available, build_and_run

HEADER = include_dir() / "aot_model" / "gates.h"
T = np.concatenate(
    [
        np.arange(0, 2**32, 50021, dtype=np.uint64).astype(np.uint32).view(np.float32),
        np.linspace(-60, 60, 200_003, dtype=np.float32),
        np.linspace(-0.6, 0.6, 50_003, dtype=np.float32),
        np.asarray([0.0, -0.0, np.inf, -np.inf, np.nan, 16, -16, 1e-45, 43, 26, -26, -126], np.float32),
    ]
)


COMPILERS = [c for c in ("gcc", "clang-14", "clang-22", "clang") if shutil.which(c)]


def _exact(t: np.ndarray) -> dict[str, np.ndarray]:
    with np.errstate(all="ignore"):
        t = t.astype(np.float64)
        return {"logistic": 1 / (1 + 2.0**-t), "tanh": np.tanh(t * np.log(2) / 2)}


def _bounds() -> dict[str, tuple[float, float]]:
    """Units in the last place and differences, of the header's own words."""
    words = re.sub(r"\s*\n \*", "", HEADER.read_text())
    said = re.search(r"logistic ([\d.]+), tanh ([\d.]+); as differences (\S+) and (\S+)\. The", words)
    assert said is not None
    return {"logistic": (float(said[1]), float(said[3])), "tanh": (float(said[2]), float(said[4]))}


LOOPS = "\n".join(
    f"void all_{name}(const float *t, float *y, int32_t n);\n"
    f"void all_{name}(const float *t, float *y, int32_t n)\n{{\n"
    f"    for (int32_t i = 0; i < n; i++) {{\n        y[i] = aot_model_gate_{name}(t[i]);\n    }}\n}}"
    for name in ("logistic", "tanh")
)


@pytest.mark.parametrize("flags", ["-O2", "-O0", "-O3 -mfma -ffp-contract=fast"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_as_close_as_the_header_says(compiler: str, flags: str, tmp_path: Path) -> None:
    if "-mfma" in flags and " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("no such processor")
    (tmp_path / "f.c").write_text(f'#include "aot_model/gates.h"\n{LOOPS}\n')
    command = [
        compiler,
        *STRICT,
        *flags.split(),
        "-fPIC",
        "-shared",
        f"-I{include_dir()}",
        "f.c",
        "-o",
        "f.so",
    ]
    subprocess.run([*command, "-lm"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "f.so"))
    for name, want in _exact(T).items():
        y = np.empty_like(T)
        getattr(library, f"all_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in (T, y)), len(T))
        np.testing.assert_array_equal(np.isnan(y), np.isnan(T), name)
        there = ~np.isnan(T)
        y, want, t = y[there].astype(np.float64), want[there], T[there]
        places, difference = _bounds()[name]
        assert np.abs(y - want).max() <= difference, name
        near = t >= -126 if name == "logistic" else np.full_like(t, True, bool)
        place = np.spacing(np.maximum(np.abs(want), 2**-126).astype(np.float32)).astype(np.float64)
        off = (np.abs(y - want) / place)[near]
        assert off.max() <= places, (name, off.max(), t[near][off.argmax()])
        assert ((y >= 0) & (y <= 1)).all() if name == "logistic" else (np.abs(y) <= 1).all(), name
        if name == "tanh":
            assert (np.signbit(y) == np.signbit(t))[t != 0].all()


CELLS = """
#include <stdio.h>
#include "aot_model/gates.h"
static void show(float y)
{
    uint32_t bits;
    memcpy(&bits, &y, sizeof bits);
    printf("%08lx ", (unsigned long)bits);
}
int main(void)
{
    volatile float from = -60.0f;
    for (int32_t k = 0; k < 1501; k++) {
        const float t = from + (float)k * 0.08f;
        const float sums[4] = {t, 0.5f * t - 1.0f, (k % 2 != 0) ? t : -t, 1.0f + 0.6f * t};
        float cell[1] = {0.01f * t};
        float h[1] = {0.7f};
        float y[7];
        aot_model_lstm_units(sums, 1, cell, y, 1);
        y[1] = cell[0];
        aot_model_gru_gates(sums, 1, h, y + 2, y + 3, 1);
        aot_model_gru_candidates(sums + 2, y + 2, h, y + 4, 1);
        aot_model_gru_units(sums, 1, h, y + 5, 1);
        aot_model_rnn_units(sums, y + 6, 1);
        show(t);
        for (int32_t i = 0; i < 7; i++) {
            show(y[i]);
        }
    }
    return 0;
}
"""


def _near(said: str) -> None:
    bits = np.asarray([int(word, 16) for word in said.split()], np.uint32)
    t, *found = bits.view(np.float32).astype(np.float64).reshape(1501, 8).T

    def logistic(x: np.ndarray) -> np.ndarray:
        return _exact(x)["logistic"]

    def tanh(x: np.ndarray) -> np.ndarray:
        return _exact(x)["tanh"]

    odd = np.arange(len(t)) % 2 != 0
    # odd turns: two logistic functions and a tanh at their ends are divided at once, with -Ofast by an FPU
    # that flushes small numbers to zero
    i, o, f, g = t, 0.5 * t - 1, np.where(odd, t, -t), 1 + 0.6 * t
    cell = logistic(f) * 0.01 * t + logistic(i) * tanh(g)
    z, r, h = logistic(i), logistic(o), 0.7
    want = [
        logistic(o) * np.tanh(cell),
        cell,
        z,
        r * h,
        (1 - z) * tanh(f) + z * h,
        (1 - z) * tanh(f + r * g) + z * h,
        tanh(t),
    ]
    for k, (y, exact) in enumerate(zip(found, want, strict=True)):
        np.testing.assert_allclose(y, exact, rtol=3e-6, atol=6e-7, err_msg=str(k))


@pytest.mark.parametrize("flags", ["-O2", "-O0", "-Ofast", "-O3 -ffast-math -mfma"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_cells(compiler: str, flags: str, tmp_path: Path) -> None:
    if "fast" in flags and compiler != "gcc":
        pytest.skip("clang warns of NAN and INFINITY then")
    if "-mfma" in flags and " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("no such processor")
    (tmp_path / "main.c").write_text(CELLS)
    command = [compiler, *STRICT, *flags.split(), f"-I{include_dir()}", "main.c", "-lm", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    _near(subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("flags", ["-O2", "-Ofast", "-O1 -ffp-contract=fast"])
@pytest.mark.parametrize("board", ["m0", "m4", "m7"])
def test_cells_on_a_core(board: str, flags: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(CELLS)
    flags_of = [*STRICT, *flags.split(), f"-I{include_dir()}"]
    _near(build_and_run(BOARDS[board], ["main.c"], tmp_path, flags_of))
