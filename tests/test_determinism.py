"""The same bytes whatever the directory, the hash seed, the Python version, the environment, and what was
compiled before.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

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
        check = subprocess.run(
            [program, "-c", "import numpy, onnx, jinja2, ml_dtypes"], capture_output=True, check=False
        )
        if check.returncode == 0:
            found.append(program)
    return found


def compiled(
    folder: Path, seed: str, target: str, program: str = sys.executable, **environment: str
) -> dict[str, bytes]:
    folder.mkdir(parents=True)
    save(small_cnn(), folder / "cnn.onnx")
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(COMPILER), **environment}
    command = [
        program,
        "-m",
        "aot_model",
        "compile",
        "cnn.onnx",
        "-o",
        "out",
        "--target",
        target,
        "--report",
        "out/report.txt",
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
    _other_pythons() or [pytest.param("", marks=pytest.mark.skip(reason="no other Python has the packages"))],
)
def test_same_bytes_from_another_python(program: str, tmp_path: Path) -> None:
    assert compiled(tmp_path / "a", "1", "c") == compiled(tmp_path / "b", "1", "c", program)


def test_an_earlier_compilation_leaves_no_trace(tmp_path: Path) -> None:
    request = Request(save(small_cnn(), tmp_path / "cnn.onnx"), "cnn", "c")
    first = compile_model(request).texts
    compile_model(Request(request.model, "other", "host"))
    assert compile_model(request).texts == first


def folded_functions() -> onnx.ModelProto:
    """Constants that numpy computes when the model is compiled."""
    data = np.random.default_rng(0).uniform(0.05, 3, (40, 50)).astype(np.float32)
    nodes, last = [], "x"
    for kind in ("Exp", "Log", "Sin", "Cos", "Tan", "Atan", "Tanh", "Sigmoid", "Softplus", "Softmax", "Pow"):
        nodes.append(helper.make_node(kind, ["c", "c"] if kind == "Pow" else ["c"], [f"of_{kind}"]))
        nodes.append(helper.make_node("Add", [last, f"of_{kind}"], [f"to_{kind}"]))
        nodes.append(helper.make_node("Relu", [f"to_{kind}"], [f"r_{kind}"]))  # or the constants become one
        last = f"r_{kind}"
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, data.shape) for n in ("x", last)]
    graph = helper.make_graph(nodes, "folded", ports[:1], ports[1:], [numpy_helper.from_array(data, "c")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_same_bytes_with_other_vectors(tmp_path: Path) -> None:
    """numpy computes functions by the vectors of the processor, whose last places differ; without them it
    does as a smaller processor would. Its names of them have changed with version 2.4.
    """
    onnx.save(folded_functions(), tmp_path / "folded.onnx")
    command = [sys.executable, "-m", "aot_model", "compile", "folded.onnx", "--target", "c", "-o"]
    found = []
    for vectors in ("", "AVX512_ICL X86_V4 X86_V3", "AVX512F AVX512CD AVX512_SKX AVX2 FMA3"):
        env = {**os.environ, "PYTHONPATH": str(COMPILER), "NPY_DISABLE_CPU_FEATURES": vectors}
        folder = f"out{len(found)}"
        subprocess.run([*command, folder], cwd=tmp_path, env=env, check=True, capture_output=True)
        found.append((tmp_path / folder / "folded.c").read_bytes())
    assert len(found[0]) > 250_000
    assert found[1:] == found[:1] * 2
