"""--profile: ticks of each layer by the program's clock."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from onnx_models import save, small_cnn

from aot_model.cli import main
from aot_model.host_run import SANITIZE, STRICT
from aot_model.installation import include_dir

PROGRAM = """#include <stdio.h>
#include "cnn.h"
static uint32_t now = 0xfffffffdu;
static float x[72], y[5];
uint32_t aot_model_ticks(void) { return now += 3u; }
int main(void)
{
    const cnn_inputs inputs = { x };
    const cnn_outputs outputs = { y };
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
    subprocess.run(["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "cnn.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    counts = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
    assert counts == ["6"] * len(json.loads((tmp_path / "cnn.json").read_text())["layers"])


def test_nothing_without_it(tmp_path: Path) -> None:
    model = save(small_cnn(), tmp_path / "cnn.onnx")
    assert main(["compile", str(model), "-o", str(tmp_path), "--target", "c"]) == 0
    assert "profile" not in (tmp_path / "cnn.c").read_text() + (tmp_path / "cnn.h").read_text()
