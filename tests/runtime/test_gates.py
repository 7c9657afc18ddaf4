"""The gates of recurrent cells (aot_model/gates.h), beside double precision: as near as the header says,
whatever the compiler's flags are.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from float_functions import columns, of_arrays, places_off, program, said
from qemu import BOARDS, available

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
    words = said("gates.h", r"(logistic [\d.]+, tanh [\d.]+; as differences \S+ and \S+)\. The")
    logistic, tanh, *differences = map(float, re.findall(r"\d\S*\d", words))
    return {"logistic": (logistic, differences[0]), "tanh": (tanh, differences[1])}


@pytest.mark.parametrize("flags", ["-O2", "-O0", "-O3 -mfma -ffp-contract=fast"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_as_close_as_the_header_says(compiler: str, flags: str, tmp_path: Path) -> None:
    exact = _exact(T)
    found = of_arrays("gates.h", [f"aot_model_gate_{name}" for name in exact], tmp_path, flags, compiler)
    for name, want in exact.items():
        y = found[f"aot_model_gate_{name}"](T)
        np.testing.assert_array_equal(np.isnan(y), np.isnan(T), name)
        there = ~np.isnan(T)
        y, want, t = y[there], want[there], T[there]
        places, difference = _bounds()[name]
        assert np.abs(y.astype(np.float64) - want).max() <= difference, name
        near = t >= -126 if name == "logistic" else np.full_like(t, True, bool)
        off = places_off(y, want)[near]
        assert off.max() <= places, (name, off.max(), t[near][off.argmax()])
        assert ((y >= 0) & (y <= 1)).all() if name == "logistic" else (np.abs(y) <= 1).all(), name
        if name == "tanh":
            assert (np.signbit(y) == np.signbit(t))[t != 0].all()


CELLS = program(
    "gates.h",
    """    volatile float from = -60.0f;
    for (int32_t k = 0; k < 1501; k++) {
        const float t = from + (float)k * 0.08f;
        const float sums[4] = {t, 0.5f * t - 1.0f, (k % 2 != 0) ? t : -t, 1.0f + 0.6f * t};
        float cell[1] = {0.01f * t};
        float h[1] = {0.7f};
        float row[10];
        row[0] = t;
        aot_model_lstm_units(sums, 1, cell, row + 1, 1);
        row[2] = cell[0];
        aot_model_gru_gates(sums, 1, h, row + 3, row + 4, 1);
        aot_model_gru_candidates(sums + 2, row + 3, h, row + 5, 1);
        aot_model_gru_units(sums, 1, h, row + 6, 1);
        aot_model_rnn_units(sums, row + 7, 1);
        cell[0] = 0.01f * t;
        aot_model_lstm_clipped_units(sums, 1, cell, row + 8, 1, 0.3f);
        row[9] = cell[0];
        show(row);
    }""",
    10,
)


def _near(t: np.ndarray, *found: np.ndarray) -> None:
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
        logistic(o) * np.tanh(np.clip(cell, -0.3, 0.3)),
        np.clip(cell, -0.3, 0.3),
    ]
    for k, (y, exact) in enumerate(zip(found, want, strict=True)):
        np.testing.assert_allclose(y, exact, rtol=3e-6, atol=6e-7, err_msg=str(k))


@pytest.mark.parametrize("flags", ["-O2", "-O0", "-Ofast", "-O3 -ffast-math -mfma"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_cells(compiler: str, flags: str, tmp_path: Path) -> None:
    if "fast" in flags and compiler != "gcc":
        pytest.skip("clang warns of NAN and INFINITY then")
    _near(*columns(CELLS, 10, tmp_path, flags, compiler=compiler))


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("flags", ["-O2", "-Ofast", "-O1 -ffp-contract=fast"])
@pytest.mark.parametrize("board", ["m0", "m4", "m7"])
def test_cells_on_a_core(board: str, flags: str, tmp_path: Path) -> None:
    _near(*columns(CELLS, 10, tmp_path, flags, board=BOARDS[board]))
