"""What generated C says when it is compiled with flags that allow more than it was made for: told, never an
error.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write
from onnx_models import save, small_cnn

ARM, HARD = "arm-none-eabi-gcc -mthumb", "-mfloat-abi=hard"
CASES = [  # target of the code, compiler, its flags, the target that is named
    ("c", ARM, f"-mcpu=cortex-m4 {HARD}", "cortex-m4"),
    ("c", ARM, f"-mcpu=cortex-m55 {HARD}", "cortex-m55"),
    ("c", ARM, f"-mcpu=cortex-m55+nomve {HARD}", "cortex-m4"),
    ("c", ARM, "-mcpu=cortex-m33+nodsp", ""),
    ("c", ARM, "-mcpu=cortex-m0", ""),
    ("c", "gcc", "-march=haswell", "host"),
    ("c", "gcc", "-march=x86-64", ""),
    ("c", "clang-19", "-march=haswell -Wno-error", "host"),
    ("c", "clang-19", "-march=haswell", "host"),
    ("c", "aarch64-linux-gnu-gcc", "", "host"),
    ("c", "arm-none-eabi-gcc", "-mcpu=cortex-a9", ""),
    ("cortex-m0", ARM, f"-mcpu=cortex-m7 {HARD}", "cortex-m4"),
    ("cortex-m3", ARM, "-mcpu=cortex-m3", ""),
    ("cortex-m4", ARM, f"-mcpu=cortex-m7 {HARD}", ""),
    ("cortex-m33", ARM, f"-mcpu=cortex-m55 {HARD}", "cortex-m55"),
    ("cortex-m55", ARM, f"-mcpu=cortex-m55 {HARD}", ""),
    ("host,vector=v8", "gcc", "-march=haswell", ""),
]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("advice")
    model = save(small_cnn(), folder / "cnn.onnx")

    @cache
    def make(target: str) -> Path:
        write(compile_model(Request(model, "cnn", target)), folder / target)
        return folder / target

    return make


@pytest.mark.parametrize(("target", "compiler", "flags", "better"), CASES)
def test_what_the_compiler_says(generated, target: str, compiler: str, flags: str, better: str) -> None:  # type: ignore[no-untyped-def]
    """As strict as anybody builds it, with warnings as errors: the object is made; and the macro makes it
    silent.
    """
    command = [
        *compiler.split(),
        *STRICT,
        "-Wundef",
        *flags.split(),
        f"-I{include_dir()}",
        "-c",
        "cnn.c",
        "-o",
        "cnn.o",
    ]
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    for more, wanted in (([], better), (["-DAOT_MODEL_NO_ADVICE"], "")):
        done = subprocess.run(
            [*command, *more], cwd=generated(target), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert (f"--target {wanted} would use" in done.stderr) if wanted else not done.stderr
