"""exp, log, tanh, erf, the logistic function, expm1, log1p and softplus of a Cortex-M, beside double
precision: as near as their header says.
"""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from qemu import BOARDS, available, build_and_run

HEADER = include_dir() / "aot_model" / "exponential.h"
EXACT = {
    "exp": np.exp,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "softplus_rest": lambda x: np.log1p(np.exp(-np.abs(x))),
}
X = np.concatenate(
    [
        np.arange(0, 2**32, 50021, dtype=np.uint64).astype(np.uint32).view(np.float32),
        np.linspace(-20, 20, 100_003, dtype=np.float32),
        np.linspace(-104.5, -86.5, 5003, dtype=np.float32),
        np.linspace(86.5, 89.5, 5003, dtype=np.float32),
        np.linspace(-1 + 2**-24, 4, 100_003, dtype=np.float32),
        np.asarray([-1.0, np.nextafter(np.float32(-1), -np.inf), 2**24, 2**25, 2**26, 2**127], np.float32),
        np.asarray([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 88.72283, 88.72284], np.float32),
    ]
)


def _bounds() -> dict[str, float]:
    """Of the header's own words."""
    words = re.sub(r"\s*\n \*", "", HEADER.read_text())
    said = re.search(r"units in the last place, [^:]*: (.*?)\. The", words)
    assert said is not None
    return {name: float(bound) for name, bound in re.findall(r"(\w+) ([\d.]+\d)", said[1])}


FAST = """
#include <stdio.h>
#include "aot_model/exponential.h"
int main(void)
{
    volatile float from = -20.0f;
    for (int32_t i = 0; i < 4001; i++) {
        const float x = from + (float)i * 0.01f;
        const float all[] = {x, aot_model_short_exp(x), aot_model_short_tanh(x), aot_model_short_erf(x),
                             aot_model_short_logistic(x), aot_model_short_expm1(x),
                             aot_model_short_log(fabsf(x)), aot_model_short_log1p(fabsf(x)),
                             aot_model_short_softplus_rest(x)};
        for (int32_t k = 0; k < 9; k++) {
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
    x, *found = bits.view(np.float32).astype(np.float64).reshape(4001, 9).T
    for (name, exact), y in zip(EXACT.items(), found, strict=True):
        with np.errstate(divide="ignore"):
            want = exact(np.abs(x) if name in ("log", "log1p") else x)
        np.testing.assert_allclose(y, want, rtol=4e-6, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "flags", ["-Ofast", "-O3 -ffast-math", "-O2 -fassociative-math -fno-signed-zeros -fno-trapping-math"]
)
def test_sums_in_another_order(flags: str, tmp_path: Path) -> None:
    """What is added to round and taken off again is no sum to simplify."""
    (tmp_path / "main.c").write_text(FAST)
    subprocess.run(
        ["gcc", *STRICT, *flags.split(), f"-I{include_dir()}", "main.c", "-lm", "-o", "a"],
        cwd=tmp_path,
        check=True,
    )
    _near(subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("board", ["m0", "m4", "m55"])
def test_sums_in_another_order_on_a_core(board: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(FAST)
    _near(build_and_run(BOARDS[board], ["main.c"], tmp_path, [*STRICT, "-Ofast", f"-I{include_dir()}"]))


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
    (tmp_path / "f.c").write_text(f'#include "aot_model/exponential.h"\n{loops}')
    subprocess.run(
        ["cc", *STRICT, *flags.split(), "-fPIC", "-shared", f"-I{include_dir()}", "f.c", "-lm", "-o", "f.so"],
        cwd=tmp_path,
        check=True,
    )
    library, bounds = ctypes.CDLL(str(tmp_path / "f.so")), _bounds()
    assert bounds.keys() == EXACT.keys()
    for name, exact in EXACT.items():
        y = np.empty_like(X)
        pointers = (ctypes.c_void_p(a.ctypes.data) for a in (X, y))
        getattr(library, f"all_{name}")(*pointers, len(X))
        with np.errstate(all="ignore"):
            want = exact(X.astype(np.float64))
            nearest = want.astype(np.float32)
        finite = np.isfinite(want) & np.isfinite(nearest)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(want), name)
        # just above the largest number either it or infinity is near enough
        beyond = ~finite & ~np.isnan(want)
        assert (y[beyond] == nearest[beyond]).all(), name
        place = np.spacing(np.maximum(np.abs(nearest[finite]), np.float32(2**-126))).astype(np.float64)
        off = np.abs(y[finite].astype(np.float64) - want[finite]) / place
        assert off.max() <= bounds[name], (name, off.max(), X[finite][off.argmax()])
        if name in ("tanh", "erf"):
            assert (np.signbit(y) == np.signbit(X))[~np.isnan(X)].all(), name
