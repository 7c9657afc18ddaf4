"""exp, log, tanh, erf, the logistic function, expm1, log1p and softplus of a Cortex-M, beside double
precision: as near as their header says.
"""

from __future__ import annotations

import math
import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.installation import include_dir
from float_functions import columns, of_arrays, places_off, program, said
from qemu import BOARDS, available

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
NAMES = {"tanh": "libm_tanh", "logistic": "sigmoid"}
"""Of the functions of generated code, where they are others."""
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


HEADERS = {"short": "exponential.h", "lanes": "exponential_lanes.h"}
"""By what the functions' names begin with."""
FAST = {
    kind: program(
        header,
        """    volatile float from = -20.0f;
    for (int32_t i = 0; i < 4001; i++) {
        const float x = from + (float)i * 0.01f;
        const float row[] = {x, aot_model_short_exp(x), aot_model_short_tanh(x), aot_model_short_erf(x),
                             aot_model_short_logistic(x), aot_model_short_expm1(x),
                             aot_model_short_log(fabsf(x)), aot_model_short_log1p(fabsf(x)),
                             aot_model_short_softplus_rest(x)};
        show(row);
    }""".replace("short", kind),
        9,
    )
    for kind, header in HEADERS.items()
}


def _near(x: np.ndarray, *found: np.ndarray) -> None:
    for (name, exact), y in zip(EXACT.items(), found, strict=True):
        with np.errstate(divide="ignore"):
            want = exact(np.abs(x) if name in ("log", "log1p") else x)
        np.testing.assert_allclose(y, want, rtol=4e-6, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "flags", ["-Ofast", "-O3 -ffast-math", "-O2 -fassociative-math -fno-signed-zeros -fno-trapping-math"]
)
@pytest.mark.parametrize("kind", HEADERS)
def test_sums_in_another_order(kind: str, flags: str, tmp_path: Path) -> None:
    """What is added to round and taken off again is no sum to simplify."""
    _near(*columns(FAST[kind], 9, tmp_path, flags))


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("board", ["m0", "m4", "m55"])
def test_sums_in_another_order_on_a_core(board: str, tmp_path: Path) -> None:
    _near(*columns(FAST["short"], 9, tmp_path, "-Ofast", board=BOARDS[board]))


@pytest.mark.parametrize("flags", ["-O2", "-O3 -mfma -ffp-contract=fast"])
@pytest.mark.parametrize("kind", HEADERS)
def test_as_close_as_the_header_says(kind: str, flags: str, tmp_path: Path) -> None:
    words = said(HEADERS[kind], r"units in the last place, [^:]*: (.*?)\. The")
    bounds = dict(re.findall(r"(\w+) ([\d.]+\d)", words))
    assert bounds.keys() == EXACT.keys()
    found = of_arrays(HEADERS[kind], [f"aot_model_{kind}_{name}" for name in EXACT], tmp_path, flags)
    for name, exact in EXACT.items():
        y = found[f"aot_model_{kind}_{name}"](X)
        with np.errstate(all="ignore"):
            want = exact(X.astype(np.float64))
            nearest = want.astype(np.float32)
        finite = np.isfinite(want) & np.isfinite(nearest)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(want), name)
        # just above the largest number either it or infinity is near enough
        beyond = ~finite & ~np.isnan(want)
        assert (y[beyond] == nearest[beyond]).all(), name
        off = places_off(y[finite], want[finite])
        assert off.max() <= float(bounds[name]), (name, off.max(), X[finite][off.argmax()])
        if name in ("tanh", "erf"):
            assert (np.signbit(y) == np.signbit(X))[~np.isnan(X)].all(), name


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are x86-64's")
@pytest.mark.parametrize("compiler", ["gcc", "clang-14", "clang-19", "clang-22"])
@pytest.mark.parametrize("name", EXACT)
def test_loops_become_vectors(name: str, compiler: str, tmp_path: Path) -> None:
    """Products of eight floats, and no call; of what the loop leaves GCC makes a loop of single ones."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    element = f"y[i] = aot_model_{NAMES.get(name, name)}_float32(x[i]);"
    (tmp_path / "f.c").write_text(
        '#include "aot_model/exponential.h"\nvoid f(const float *restrict x, float *restrict y, int32_t n)\n'
        f"{{\n    for (int32_t i = 0; i < n; i++) {{\n        {element}\n    }}\n}}\n"
    )
    command = [compiler, "-O3", "-mavx2", "-mfma", f"-I{include_dir()}", "-S", "f.c", "-o", "f.s"]
    subprocess.run(command, cwd=tmp_path, check=True)
    text = (tmp_path / "f.s").read_text()
    assert re.search(r"vf?n?m(ul|add\w+)ps\s.*%ymm", text), text[:2000]
    assert "call" not in text
