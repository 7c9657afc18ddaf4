"""float16 and bfloat16 of narrow.h, with vectors and without, beside numpy's and ml_dtypes' types."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from aot_model.host.program import STRICT
from aot_model.installation import include_dir

HALVES = np.arange(65536, dtype=np.uint32).astype(np.uint16)
TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def floats(dtype: np.dtype) -> np.ndarray:
    """Every 20,011th number, each that the type has, halfway between two of them, and their neighbours."""
    held = np.sort(HALVES.view(dtype).astype(np.float32)[np.isfinite(HALVES.view(dtype).astype(np.float32))])
    between = ((held[1:].astype(np.float64) + held[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(between, np.float32(end)) for end in (np.inf, -np.inf)]
    some = np.arange(0, 2**32, 20011, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ends = np.asarray([0.0, -0.0, np.inf, -np.inf, np.nan, 65519.996, 65520, -65520, 1e-45, 3e38], np.float32)
    return np.concatenate([some, held, between, *near, ends])


@pytest.mark.parametrize("flags", ["-O2", "-O3", "-O3 -D__FAST_MATH__"])
@pytest.mark.parametrize("name", TYPES)
def test_all_numbers(name: str, flags: str, tmp_path: Path) -> None:
    loops = "".join(
        f"void {there}(const {a} *x, {b} *y, int32_t n);\n"
        f"void {there}(const {a} *x, {b} *y, int32_t n)\n{{\n"
        f"    for (int32_t i = 0; i < n; i++) {{\n        y[i] = aot_model_{there}(x[i]);\n    }}\n}}\n"
        for there, a, b in (
            (f"float32_to_{name}", "float", "uint16_t"),
            (f"{name}_to_float32", "uint16_t", "float"),
        )
    )
    (tmp_path / "f.c").write_text(f'#include "aot_model/narrow.h"\n{loops}')
    own = [*STRICT, *flags.split(), f"-I{include_dir()}"]
    command = ["cc", *own, "-fPIC", "-shared", "f.c", "-lm", "-o", "f.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "f.so"))

    def through(function: str, x: np.ndarray, to: np.dtype) -> np.ndarray:
        y = np.empty(x.shape, to)
        getattr(library, function)(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y)), len(x))
        return y

    wide = through(f"{name}_to_float32", HALVES, np.dtype(np.float32))
    with np.errstate(all="ignore"):
        expected = HALVES.view(TYPES[name]).astype(np.float32)
        x = floats(TYPES[name])
        narrow = x.astype(TYPES[name])
    np.testing.assert_array_equal(wide, expected)
    assert (np.signbit(wide) == np.signbit(expected)).all()
    found = through(f"float32_to_{name}", np.ascontiguousarray(x), np.dtype(np.uint16))
    is_nan = np.isnan(x)
    np.testing.assert_array_equal(found[~is_nan], narrow.view(np.uint16)[~is_nan])
    assert np.isnan(found[is_nan].view(TYPES[name]).astype(np.float32)).all()
