"""sin and cos of a Cortex-M, beside double precision: as near as their header says."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from qemu import BOARDS, available, build_and_run

HEADER = include_dir() / "aot_model" / "circular.h"
EXACT = {"sin": np.sin, "cos": np.cos}
MULTIPLES = (np.arange(-260, 261) * (np.pi / 2)).astype(np.float32)
X = np.concatenate(
    [
        np.arange(0, 2**32, 50021, dtype=np.uint64).astype(np.uint32).view(np.float32),
        np.linspace(-8, 8, 300_007, dtype=np.float32),
        np.linspace(-401, 401, 300_007, dtype=np.float32),
        MULTIPLES,
        *(np.nextafter(MULTIPLES, np.float32(way)) for way in (np.inf, -np.inf)),
        np.asarray([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 400, 400.00003], np.float32),
    ]
)


def _bounds() -> dict[str, float]:
    """Of the header's own words."""
    words = re.sub(r"\s*\n \*", "", HEADER.read_text())
    said = re.search(r"units in the last place, [^:]*: (.*?)\. The", words) or re.search(
        r"tries a part\): (.*?)\. The", words
    )
    assert said is not None
    return {name: float(bound) for name, bound in re.findall(r"(\w+) ([\d.]+\d)", said[1])}


@pytest.mark.parametrize("flags", ["-O2", "-O3 -mfma -ffp-contract=fast"])
def test_as_close_as_the_header_says(flags: str, tmp_path: Path) -> None:
    if "-mfma" in flags and " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("no such processor")
    heads = {name: f"void all_{name}(const float *x, float *y, int32_t n)" for name in EXACT}
    loops = "".join(
        f"{head};\n{head}\n{{\n    for (int32_t i = 0; i < n; i++) {{\n"
        f"        y[i] = aot_model_short_{name}(x[i]);\n    }}\n}}\n"
        for name, head in heads.items()
    )
    (tmp_path / "f.c").write_text(f'#include "aot_model/circular.h"\n{loops}')
    subprocess.run(
        ["cc", *STRICT, *flags.split(), "-fPIC", "-shared", f"-I{include_dir()}", "f.c", "-lm", "-o", "f.so"],
        cwd=tmp_path,
        check=True,
    )
    library, bounds = ctypes.CDLL(str(tmp_path / "f.so")), _bounds()
    assert bounds.keys() == EXACT.keys()
    for name, exact in EXACT.items():
        y = np.empty_like(X)
        getattr(library, f"all_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in (X, y)), len(X))
        with np.errstate(all="ignore"):
            want = exact(X.astype(np.float64))
        there = np.isfinite(want)
        np.testing.assert_array_equal(np.isnan(y), ~there, name)
        size = np.maximum(np.abs(want[there]), 2.0**-126).astype(np.float32)
        off = np.abs(y[there].astype(np.float64) - want[there]) / np.spacing(size).astype(np.float64)
        assert off.max() <= bounds[name], (name, off.max(), X[there][off.argmax()])
        if name == "sin":
            assert (np.signbit(y) == np.signbit(X))[np.abs(X) < 1].all()


FAST = """
#include <stdio.h>
#include "aot_model/circular.h"
int main(void)
{
    volatile float from = -420.0f;
    for (int32_t i = 0; i < 4001; i++) {
        const float x = from + (float)i * 0.21f;
        const float all[] = {x, aot_model_short_sin(x), aot_model_short_cos(x)};
        for (int32_t k = 0; k < 3; k++) {
            uint32_t bits;
            memcpy(&bits, &all[k], sizeof bits);
            printf("%08lx ", (unsigned long)bits);
        }
    }
    return 0;
}
"""


def _near(said: str) -> None:
    bits = np.asarray([int(word, 16) for word in said.split()], np.uint32)
    x, *found = bits.view(np.float32).astype(np.float64).reshape(4001, 3).T
    for (name, exact), y in zip(EXACT.items(), found, strict=True):
        np.testing.assert_allclose(y, exact(x), rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("flags", ["-O0", "-Ofast", "-O3 -ffast-math"])
def test_sums_in_another_order(flags: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(FAST)
    command = ["gcc", *STRICT, *flags.split(), f"-I{include_dir()}", "main.c", "-lm", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    _near(subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("flags", ["-O2", "-Ofast"])
@pytest.mark.parametrize("board", ["m0", "m4", "m55"])
def test_sums_in_another_order_on_a_core(board: str, flags: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(FAST)
    command = [*STRICT, *flags.split(), f"-I{include_dir()}"]
    _near(build_and_run(BOARDS[board], ["main.c"], tmp_path, command))
