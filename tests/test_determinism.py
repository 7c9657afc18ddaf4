"""The same bytes whatever the directory, the hash seed, the Python version, the environment, and what was
compiled before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aot_model.pipeline import Request, compile_model
from onnx_models import save, small_cnn

COMPILER = Path(__file__).resolve().parents[1] / "compiler"


def _other_pythons() -> list[str]:
    """Interpreters of other versions that have what the compiler needs."""
    found = []
    for minor in range(10, 16):
        program = shutil.which(f"python3.{minor}")
        if program is None or minor == sys.version_info.minor:
            continue
        check = subprocess.run([program, "-c", "import numpy, onnx, jinja2, ml_dtypes"],
                               capture_output=True,
                               check=False)
        if check.returncode == 0:
            found.append(program)
    return found


def compiled(folder: Path,
             seed: str,
             target: str,
             program: str = sys.executable,
             **environment: str) -> dict[str, bytes]:
    folder.mkdir(parents=True)
    save(small_cnn(), folder / "cnn.onnx")
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(COMPILER), **environment}
    command = [
        program, "-m", "aot_model", "compile", "cnn.onnx", "-o", "out", "--target", target, "--report",
        "out/report.txt"
    ]
    subprocess.run(command, cwd=folder, env=env, check=True)
    return {p.name: p.read_bytes() for p in sorted((folder / "out").iterdir())}


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55"])
def test_same_bytes(target: str, tmp_path: Path) -> None:
    first = compiled(tmp_path / "a", "1", target)
    assert compiled(tmp_path / "another place" / "b", "4242", target, LANG="C", TZ="Asia/Tokyo") == first
    assert not any(str(tmp_path).encode() in data for data in first.values())


@pytest.mark.parametrize(
    "program",
    _other_pythons() or [pytest.param("", marks=pytest.mark.skip(reason="no other Python has the packages"))])
def test_same_bytes_from_another_python(program: str, tmp_path: Path) -> None:
    assert compiled(tmp_path / "a", "1", "c") == compiled(tmp_path / "b", "1", "c", program)


def test_an_earlier_compilation_leaves_no_trace(tmp_path: Path) -> None:
    request = Request(save(small_cnn(), tmp_path / "cnn.onnx"), "cnn", "c")
    first = compile_model(request).texts
    compile_model(Request(request.model, "other", "host"))
    assert compile_model(request).texts == first
