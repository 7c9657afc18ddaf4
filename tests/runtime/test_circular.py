"""sin and cos of a Cortex-M, beside double precision: as near as their header says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from float_functions import columns, of_arrays, places_off, program, said
from qemu import BOARDS, available

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


@pytest.mark.parametrize("flags", ["-O2", "-O3 -mfma -ffp-contract=fast"])
def test_as_close_as_the_header_says(flags: str, tmp_path: Path) -> None:
    bounds = dict(re.findall(r"(\w+) ([\d.]+\d)", said("circular.h", r"tries a part\): (.*?)\. The")))
    assert bounds.keys() == EXACT.keys()
    found = of_arrays("circular.h", [f"aot_model_short_{name}" for name in EXACT], tmp_path, flags)
    for name, exact in EXACT.items():
        y = found[f"aot_model_short_{name}"](X)
        with np.errstate(all="ignore"):
            want = exact(X.astype(np.float64))
        there = np.isfinite(want)
        np.testing.assert_array_equal(np.isnan(y), ~there, name)
        off = places_off(y[there], want[there])
        assert off.max() <= float(bounds[name]), (name, off.max(), X[there][off.argmax()])
        if name == "sin":
            assert (np.signbit(y) == np.signbit(X))[np.abs(X) < 1].all()


FAST = program(
    "circular.h",
    """    volatile float from = -420.0f;
    for (int32_t i = 0; i < 4001; i++) {
        const float x = from + (float)i * 0.21f;
        const float row[] = {x, aot_model_short_sin(x), aot_model_short_cos(x)};
        show(row);
    }""",
    3,
)


def _near(x: np.ndarray, *found: np.ndarray) -> None:
    for (name, exact), y in zip(EXACT.items(), found, strict=True):
        np.testing.assert_allclose(y, exact(x), rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("flags", ["-O0", "-Ofast", "-O3 -ffast-math"])
def test_sums_in_another_order(flags: str, tmp_path: Path) -> None:
    _near(*columns(FAST, 3, tmp_path, flags))


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("flags", ["-O2", "-Ofast"])
@pytest.mark.parametrize("board", ["m0", "m4", "m55"])
def test_sums_in_another_order_on_a_core(board: str, flags: str, tmp_path: Path) -> None:
    _near(*columns(FAST, 3, tmp_path, flags, board=BOARDS[board]))
