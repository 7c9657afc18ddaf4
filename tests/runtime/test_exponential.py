"""exp, tanh, erf and the logistic function of a Cortex-M, beside double precision:
as near as their header says.
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

HEADER = include_dir() / "aot_model" / "exponential.h"
EXACT = {"exp": np.exp, "tanh": np.tanh, "erf": np.vectorize(math.erf, otypes=[float]),
         "logistic": lambda x: 1 / (1 + np.exp(-x))}
X = np.concatenate([
    np.arange(0, 2**32, 50021, dtype=np.uint64).astype(np.uint32).view(np.float32),
    np.linspace(-20, 20, 100_003, dtype=np.float32),
    np.linspace(-104.5, -86.5, 5003, dtype=np.float32), np.linspace(86.5, 89.5, 5003, dtype=np.float32),
    np.asarray([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 88.72283, 88.72284], np.float32),
])


def _bounds() -> dict[str, float]:
    """Of the header's own words."""
    words = re.sub(r"\s*\n \*", "", HEADER.read_text())
    said = re.search(r"units in the last place, [^:]*: (.*?)\. The", words)
    assert said is not None
    return {name: float(bound) for name, bound in re.findall(r"(\w+) ([\d.]+\d)", said[1])}


@pytest.mark.parametrize("flags", ["-O2", "-O3 -mfma -ffp-contract=fast"])
def test_as_close_as_the_header_says(flags: str, tmp_path: Path) -> None:
    if "-mfma" in flags and " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("no such processor")
    heads = {name: f"void all_{name}(const float *x, float *y, int32_t n)" for name in EXACT}
    loops = "".join(f"{head};\n{head}\n{{\n    for (int32_t i = 0; i < n; i++) {{\n"
                    f"        y[i] = aot_model_short_{name}(x[i]);\n    }}\n}}\n"
                    for name, head in heads.items())
    (tmp_path / "f.c").write_text(f'#include "aot_model/exponential.h"\n{loops}')
    subprocess.run(["cc", *STRICT, *flags.split(), "-fPIC", "-shared", f"-I{include_dir()}", "f.c", "-lm",
                    "-o", "f.so"], cwd=tmp_path, check=True)
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
        np.testing.assert_array_equal(np.isnan(y), np.isnan(X), name)
        # just above the largest number either it or infinity is near enough
        assert (y[~finite & ~np.isnan(X)] == nearest[~finite & ~np.isnan(X)]).all(), name
        place = np.spacing(np.maximum(np.abs(nearest[finite]), np.float32(2**-126))).astype(np.float64)
        off = np.abs(y[finite].astype(np.float64) - want[finite]) / place
        assert off.max() <= bounds[name], (name, off.max(), X[finite][off.argmax()])
        if name in ("tanh", "erf"):
            assert (np.signbit(y) == np.signbit(X))[~np.isnan(X)].all(), name
