"""Calls that hand constants to a driver once: on first use, again after an error, and for new external
parameters.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from vector_unit import compiled, install, unit

from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.kernels.arguments import Argument, written
from aot_model.partition.lower import RegionSite
from aot_model.partition.region import Region
from aot_model.pipeline import write
from onnx_models import model, tensor

HEADER = """#include <stdint.h>
extern int loads, fails;
int32_t driver_load(const float *w, const float *bias);
int32_t driver_dense(const float *x, float *y);
"""
# Keeps a copy of the constants that it was given last; `fails` loads fail first.
DRIVER = """#include "driver.h"
#include <string.h>
int loads = 0, fails = 0;
static float kept[12], offsets[3];
int32_t driver_load(const float *w, const float *bias)
{
    ++loads;
    if (fails > 0) { --fails; return -77; }
    memcpy(kept, w, sizeof kept);
    memcpy(offsets, bias, sizeof offsets);
    return 0;
}
int32_t driver_dense(const float *x, float *y)
{
    for (int c = 0; c < 3; ++c) {
        y[c] = offsets[c];
        for (int i = 0; i < 4; ++i) { y[c] += x[i] * kept[3 * i + c]; }
    }
    return 0;
}
"""


def dense() -> onnx.ModelProto:
    constants = {"w": np.arange(12, dtype=np.float32).reshape(4, 3), "b": np.asarray([1, 2, 3], np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    return model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 3])], constants)


def keeps(region: Region, build: RegionSite) -> None:
    (match,) = region.matches
    build.once(
        "driver_load",
        [Argument("w", match.value("w")), Argument("bias", match.value("bias"))],
        header="driver.h",
    )
    build.external(
        "driver_dense",
        [Argument("x", match.value("x")), written("y", match.result.outputs[0])],
        header="driver.h",
        match=match,
        fails=True,
    )


def run(folder: Path, main: str, options: Options, monkeypatch: pytest.MonkeyPatch) -> int:
    install(monkeypatch, unit(lower=keeps))
    write(compiled(dense(), folder, "unit,c", library=options), folder)
    start = (
        '#include "m.h"\n#include "driver.h"\nstatic const float x[4] = { 1.0f, 0.0f, 0.0f, 2.0f '
        "};\nstatic float y[3];\n"
    )
    body = "    const m_inputs in = { x };\n    const m_outputs out = { y };\n"
    texts = {
        "driver.c": DRIVER,
        "driver.h": HEADER,
        "main.c": main.replace("#START\n", start).replace("#BODY\n", body),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    command = [
        "cc",
        "-std=c11",
        *STRICT[1:],
        *SANITIZE,
        f"-I{include_dir()}",
        "main.c",
        "driver.c",
        "m.c",
        "-lm",
        "-o",
        "main",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return subprocess.run(["./main"], cwd=folder).returncode


def test_constants_are_handed_over_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before the first run, and not again in the second: 1 + 0 + 18 = 19, 2 + 1 + 20, 3 + 2 + 22."""
    main = """#START
int main(void)
{
#BODY
    if (loads != 0) { return 1; }
    for (int k = 0; k < 3; ++k) { if (m_run(&in, &out) != 0 || loads != 1) { return 2; } }
    return y[0] == 19.0f && y[1] == 23.0f && y[2] == 27.0f ? 0 : 3;
}
"""
    assert run(tmp_path, main, Options(), monkeypatch) == 0


def test_again_after_an_error_and_for_new_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed load is the result of the run, and tried again; other parameters, the bias 5 more, are loaded
    anew.
    """
    main = """#START
#include <stdio.h>
#include "aot_model/parameters.h"
static _Alignas(64) uint8_t file[M_PARAMS_SIZE];
int main(void)
{
#BODY
    FILE *const f = fopen("m.params", "rb");
    float bias;
    if (f == NULL || fread(file, 1, sizeof file, f) != sizeof file || m_set_params(file, sizeof file) != 0) { return 1; }
    fails = 2;
    if (m_run(&in, &out) != -77 || m_run(&in, &out) != -77 || loads != 2) { return 2; }
    if (m_run(&in, &out) != 0 || m_run(&in, &out) != 0 || loads != 3 || y[0] != 19.0f) { return 3; }
    for (uint32_t at = 64; at + 12u <= sizeof file; at += 4u) {
        memcpy(&bias, file + at, 4);
        if (bias == 1.0f && memcmp(file + at + 4, "\\0\\0\\0\\x40\\0\\0\\x40\\x40", 8) == 0 && at >= 64u + 48u) { bias = 6.0f; memcpy(file + at, &bias, 4); }
    }
    {
        const uint32_t crc = aot_model_crc32(aot_model_crc32(0u, file, 60u), file + 64, (uint32_t)sizeof file - 64u);
        memcpy(file + 60, &crc, 4);
    }
    if (m_set_params(file, sizeof file) != 0 || m_run(&in, &out) != 0 || loads != 4) { return 4; }
    return y[0] == 24.0f && y[1] == 23.0f ? 0 : 5;
}
"""  # noqa: E501
    assert run(tmp_path, main, Options(params="external"), monkeypatch) == 0


def test_only_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(region: Region, build: RegionSite) -> None:
        build.once("driver_load", [Argument("w", region.matches[0].value("x"))], header="driver.h")
        keeps(region, build)

    install(monkeypatch, unit(lower=wrong))
    with pytest.raises(
        CompileError, match="'driver_load' is called once, and gets something else than constants"
    ):
        compiled(dense(), tmp_path, "unit,c")
