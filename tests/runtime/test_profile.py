"""--profile: ticks of each layer by the program's clock."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import aot_model
from aot_model.cli import main
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.library.module import Module
from onnx_models import save, small_cnn

PROGRAM = """#include <stdio.h>
#include "cnn.h"
static uint32_t now = 0xfffffffdu;
static float x[72], y[5];
static uint32_t clock_of_test(void) { return now += 3u; }
int main(void)
{
    const cnn_inputs inputs = { x };
    const cnn_outputs outputs = { y };
    if (cnn_run(&inputs, &outputs) != 0 || cnn_profile[0] != 0u) { return 2; }
    cnn_ticks = clock_of_test;
    for (int run = 0; run < 2; ++run) { if (cnn_run(&inputs, &outputs) != 0) { return 1; } }
    for (unsigned k = 0; k < CNN_PROFILE_SIZE; ++k) { printf("%lu ", (unsigned long)cnn_profile[k]); }
    return 0;
}
"""


def test_every_layer_is_counted_once_a_run(tmp_path: Path) -> None:
    """A clock that goes 3 ticks with every reading, and wraps at the first."""
    model = save(small_cnn(), tmp_path / "cnn.onnx")
    assert main(["compile", str(model), "-o", str(tmp_path), "--target", "c", "--profile"]) == 0
    (tmp_path / "main.c").write_text(PROGRAM)
    subprocess.run(
        ["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "cnn.c", "-lm", "-o", "main"],
        cwd=tmp_path,
        check=True,
    )
    counts = subprocess.run(
        ["./main"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.split()
    assert counts == ["6"] * len(json.loads((tmp_path / "cnn.json").read_text())["layers"])


def library(folder: Path, *options: str) -> Module:
    model = save(small_cnn(), folder / "cnn.onnx")
    assert (
        main(["compile", str(model), "-o", str(folder), "--target", "c", "--interface", "module", *options])
        == 0
    )
    subprocess.run(
        ["cc", *STRICT, "-O1", "-shared", "-fPIC", f"-I{include_dir()}", "cnn.c", "-lm", "-o", "libcnn.so"],
        cwd=folder,
        check=True,
    )
    loaded = aot_model.load(folder / "libcnn.so")
    loaded.set_input(0, np.ones((1, 2, 6, 6), np.float32))
    return loaded


def test_layers_in_python(tmp_path: Path) -> None:
    """Every layer takes some time, not more than the runs; the clock is given back, and a library without
    counters says so.
    """
    loaded = library(tmp_path, "--profile")
    before = time.perf_counter()
    rows = loaded.profile(runs=3)
    taken = time.perf_counter() - before
    assert [layer for layer, _ in rows] == list(loaded.metadata.layers)
    assert all(seconds > 0 for _, seconds in rows) and 3 * sum(seconds for _, seconds in rows) < taken
    loaded.run()
    (tmp_path / "without").mkdir()
    with pytest.raises(ValueError, match="compiled without --profile"):
        library(tmp_path / "without").profile()


def test_time_of_a_run_in_python(tmp_path: Path) -> None:
    """As many repetitions as asked for, each as long as asked for."""
    loaded = library(tmp_path)
    before = time.perf_counter()
    timing = loaded.evaluate_time(repeat=3, number=2, min_seconds=0.01)
    assert time.perf_counter() - before > 0.03
    assert (
        len(timing.seconds) == 3
        and 0 < timing.least <= timing.median <= timing.most < 0.01
        and timing.least <= timing.mean <= timing.most
    )
    assert loaded.evaluate_time(repeat=1).deviation == 0.0
    with pytest.raises(ValueError, match="at least 1"):
        loaded.evaluate_time(repeat=0)


def test_nothing_without_it(tmp_path: Path) -> None:
    model = save(small_cnn(), tmp_path / "cnn.onnx")
    assert main(["compile", str(model), "-o", str(tmp_path), "--target", "c"]) == 0
    assert "profile" not in (tmp_path / "cnn.c").read_text() + (tmp_path / "cnn.h").read_text()
