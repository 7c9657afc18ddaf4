"""What the generic interface and metadata cost: bytes, symbols, instructions."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from aot_model.emit.view import Options
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write
from qemu import BOARDS, available, build_and_run


def _sizes(request: Request, folder: Path) -> tuple[int, set[str]]:
    """(bytes of code and constants, symbols) of the object file."""
    write(compile_model(request), folder)
    subprocess.run(["cc", *STRICT, "-Os", f"-I{include_dir()}", "-c", "cnn.c"], cwd=folder, check=True)
    row = (
        subprocess.run(["size", "cnn.o"], cwd=folder, check=True, capture_output=True, text=True)
        .stdout.splitlines()[1]
        .split()
    )
    names = subprocess.run(
        ["nm", "cnn.o"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.split()
    return int(row[0]) + int(row[1]), set(names)


def test_metadata_costs_what_is_asked_for(cnn: Request, tmp_path: Path) -> None:
    """none: not a byte, not a symbol; size: names and sizes; full: the tensors as well, readable in the
    file.
    """
    sizes = {}
    for level in ("none", "size", "full"):
        sizes[level], names = _sizes(replace(cnn, library=Options(metadata=level)), tmp_path / level)
        assert any("metadata" in n for n in names) == (level != "none")
        assert not any("module" in n for n in names)
    assert sizes["none"] < sizes["size"] < sizes["full"]
    assert compile_model(cnn).view.sha256.encode() in (tmp_path / "full" / "cnn.o").read_bytes()
    text = (tmp_path / "none" / "cnn.c").read_text()
    assert "metadata" not in text and "sha256" not in text


_TICKS = """#include <stdio.h>
#include "cnn.h"
uint32_t ticks(void);
static float x[72], y[5];
static int64_t xs[4] = { 1, 2, 6, 6 }, ys[2] = { 1, 5 };
static uint8_t storage[256] AOT_MODEL_ALIGNED(16);
static aot_model_session s;
static volatile int32_t status;
#define MANY 100
int main(void)
{
    const cnn_inputs inputs = { x };
    const cnn_outputs outputs = { y };
    const aot_model_dl_tensor tx = { x, { 1, 0 }, 4, { 2, 32, 1 }, xs, NULL, 0 }, ty = { y, { 1, 0 }, 2, { 2, 32, 1 }, ys, NULL, 0 };
    uint32_t start, bare, generic;
    if (aot_model_open(&s, &cnn_module, storage, sizeof storage, false) != 0 || aot_model_set_input_zero_copy(&s, 0, &tx) != 0
        || aot_model_set_output_zero_copy(&s, 0, &ty) != 0) { return 1; }
    start = ticks();
    for (int k = 0; k < MANY; ++k) { status = cnn_run(&inputs, &outputs); }
    bare = ticks() - start;
    start = ticks();
    for (int k = 0; k < MANY; ++k) { status = aot_model_run(&s); }
    generic = ticks() - start;
    printf("%lu %lu", (unsigned long)bare, (unsigned long)generic);
    return status != 0;
}
"""  # noqa: E501


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
def test_overhead_on_cortex_m4(cnn: Request, tmp_path: Path) -> None:
    """Through the interface a run costs at most 200 instructions more than the bare call."""
    write(compile_model(replace(cnn, target="cortex-m4")), tmp_path)
    (tmp_path / "main.c").write_text(_TICKS)
    printed = build_and_run(BOARDS["m4"], ["main.c", "cnn.c"], tmp_path, ["-O2", f"-I{include_dir()}"])
    bare, generic = map(int, printed.split())
    overhead = BOARDS["m4"].instructions(generic - bare) / 100
    print(f"{overhead:.0f} instructions")
    assert overhead <= 200
