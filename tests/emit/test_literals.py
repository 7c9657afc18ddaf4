"""Numbers in C text: read back by the C compiler, they have the same bits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from aot_model.c.literal import literal
from aot_model.emit.constants import initialiser
from aot_model.ir.types import DType

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    float("inf"),
    -float("inf"),
    float("nan"),
    1e-45,
    -1e-45,
    1.17549435e-38,
    1.1754942e-38,
    3.4028235e38,
    0.1,
    1 / 3,
    16777217,
    1e10,
    1e-10,
]
LIMITS = {
    d: [0, 1, *d.limits, d.limits[0] + 1, d.limits[1] - 1] for d in DType if d.is_integer and d.bits >= 8
}


def read_back(
    tmp_path: Path, dtype: DType, texts: str, count: int, flags: tuple[str, ...] = ()
) -> np.ndarray:
    source = (
        "#include <stdint.h>\n#include <stdbool.h>\n#include <math.h>\n#include <stdio.h>\nstatic "
        f"const {dtype.c_type} x[{count}] = {{\n{texts}\n}};\nint main(void) {{ return fwrite(x, "
        f"sizeof x, 1, stdout) != 1; }}\n"
    )
    (tmp_path / "a.c").write_text(source)
    command = [
        "gcc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wpedantic",
        "-Werror",
        *flags,
        "a.c",
        "-o",
        "a",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(
        subprocess.run(["./a"], cwd=tmp_path, check=True, capture_output=True).stdout, dtype=dtype.numpy
    )


def reals(dtype: DType) -> np.ndarray:
    rng = np.random.default_rng(0)
    wide = dtype is DType.FLOAT64
    words = rng.integers(0, 2 ** (64 if wide else 32), 4000, dtype=np.uint64 if wide else np.uint32)
    with np.errstate(all="ignore"):
        return np.concatenate(
            [
                np.asarray([*SPECIAL, 5e-324, 1.7976931348623157e308]).astype(dtype.numpy),
                words.view(dtype.numpy),
            ]
        )


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    """NaN is NaN whatever its payload; everything else is the same to the bit, the sign of zero included."""
    as_float = a.dtype.kind == "f"
    keep = ~np.isnan(b) if as_float else np.ones(b.shape, bool)
    np.testing.assert_array_equal(a[keep].view(np.uint8), b[keep].view(np.uint8))
    if as_float:
        assert np.isnan(a[~keep]).all()


SINGLE = ("-fsingle-precision-constant",)
"""Of GCC; firmware for an FPU of single precision has it."""

real_numbers = pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64])
constants_single = pytest.mark.parametrize("flags", [(), SINGLE], ids=["double", "single"])


@real_numbers
@constants_single
def test_constants_of_real_numbers(dtype: DType, flags: tuple[str, ...], tmp_path: Path) -> None:
    data = reals(dtype)
    same_bits(read_back(tmp_path, dtype, initialiser(data), data.size, flags), data)


@real_numbers
@constants_single
def test_literals_of_real_numbers(dtype: DType, flags: tuple[str, ...], tmp_path: Path) -> None:
    data = reals(dtype)[:300]
    texts = ",\n".join(literal(v.item(), dtype) for v in data)
    same_bits(read_back(tmp_path, dtype, texts, data.size, flags), data)


@pytest.mark.parametrize("dtype", list(LIMITS))
def test_integers(dtype: DType, tmp_path: Path) -> None:
    data = np.asarray(LIMITS[dtype], dtype=dtype.numpy)
    same_bits(read_back(tmp_path, dtype, initialiser(data), data.size), data)
    same_bits(read_back(tmp_path, dtype, ", ".join(literal(int(v), dtype) for v in data), data.size), data)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_small_floats_are_their_bits(dtype: DType, tmp_path: Path) -> None:
    with np.errstate(all="ignore"):
        data = np.asarray(SPECIAL, dtype=np.float32).astype(
            np.float16 if dtype is DType.FLOAT16 else ml_dtypes.bfloat16
        )
    read = read_back(tmp_path, dtype, initialiser(data), data.size)
    np.testing.assert_array_equal(read.view(np.uint16), data.view(np.uint16))


def test_lines_are_of_a_readable_width() -> None:
    assert max(map(len, initialiser(reals(DType.FLOAT32)).split("\n"))) <= 120
