"""Instructions, estimated cycles, flash and RAM of the MLPerf Tiny models against a recorded baseline: more
than 2 % worse fails.

The counts are those of an emulator, the same on every machine for one version of the C compiler; with another
version the test is skipped. After an improvement, record anew: python tests/test_baseline.py
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from aot_model.cli.cycles import of_library
from aot_model.emit.view import Options
from aot_model.pipeline import Request, compile_model
from corpus import MODELS, REASON, vectors
from firmware import run_firmware
from qemu import BOARDS, COMPILER, available

FILE = Path(__file__).with_name("bench") / "baseline.json"
CASES = [(f"{m}_int8.tflite", c) for m in ("ad", "kws", "resnet8", "sww", "vww") for c in ("m4", "m55")]
CASES += [(f"{m}_f32.onnx", c) for m in ("ad", "kws", "resnet8", "sww", "vww") for c in ("m4", "m55")]
CHECKED = CASES + [("kws_int8.tflite", c) for c in ("m7", "m33")]
CASES += [(f"{m}_int8.tflite", c) for m in ("ad", "kws", "resnet8", "sww", "vww") for c in ("m7", "m33")]
MEMORIES = {"m4": ("0ws", "l4-art"), "m7": ("tcm",), "m33": ("0ws",), "m55": ("0ws",)}
WORSE = 1.02


@cache
def compiler_version() -> str:
    return subprocess.run(
        [COMPILER, "-dumpversion"], check=True, capture_output=True, text=True
    ).stdout.strip()


def measure(model: str, core: str, folder: Path) -> dict[str, int]:
    """instructions of one inference, cycles by memory, bytes of flash, workspace and stack; inputs and
    outputs in the workspace.
    """
    assert MODELS is not None
    compiled = compile_model(
        Request(MODELS / model, "model", f"cortex-{core}", library=Options(io="workspace", metadata="none"))
    )
    inputs, _ = vectors(MODELS / model, len(compiled.view.inputs), len(compiled.view.outputs), 1)
    f = run_firmware(compiled, core, inputs, folder)
    command = [COMPILER, *BOARDS[core].flags]
    times = of_library(folder / "model.json", [folder / "model.o"], command, MEMORIES[core])
    assert all(not time.unknown and abs(time.instructions - f.instructions) < 2000 for time in times)
    cycles = {f"cycles {time.memory}": time.cycles for time in times}
    return {"instructions": f.instructions, **cycles, "flash": f.flash, "ram": f.workspace + f.stack}


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.parametrize(("model", "core"), CHECKED, ids=[f"{m}-{c}" for m, c in CHECKED])
def test_not_worse_than_the_baseline(model: str, core: str, tmp_path: Path) -> None:
    recorded = json.loads(FILE.read_text())
    if recorded["compiler"] != compiler_version():
        pytest.skip(f"recorded with {COMPILER} {recorded['compiler']}, this is {compiler_version()}")
    before = recorded["models"][f"{model} {core}"]
    now = measure(model, core, tmp_path)
    worse = {k: (v, before[k]) for k, v in now.items() if v > WORSE * before[k]}
    assert not worse, f"more than 2 % worse than recorded (now, before): {worse}"


def record() -> None:
    """Write the baseline anew."""
    rows = {}
    for model, core in CASES:
        with tempfile.TemporaryDirectory() as folder:
            rows[f"{model} {core}"] = measure(model, core, Path(folder))
            print(f"{model} {core}: {rows[f'{model} {core}']}", flush=True)
    FILE.write_text(json.dumps({"compiler": compiler_version(), "models": rows}, indent=1) + "\n")


if __name__ == "__main__":
    record()
