"""External parameters: the file, its checks in C, and the parameters of a model that was trained again."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from aot_model.cli import main
from aot_model.emit import runner
from aot_model.emit.parameters_file import structure
from aot_model.emit.view import Options
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write
from onnx_models import save, small_cnn
from qemu import BOARDS, available, build_and_run

X = np.random.default_rng(1).normal(size=(1, 2, 6, 6)).astype(np.float32)
EXTERNAL = Options(params="external")

# Reads the file of parameters, and answers what the bytes of a script ask for; prints status and outputs.
MAIN = """#include <stdio.h>
#include <string.h>
#include "cnn.h"

static _Alignas(64) uint8_t file[CNN_PARAMS_SIZE + 64u];
static float x[72], y[5];
int main(void)
{
    const cnn_inputs inputs = { x };
    const cnn_outputs outputs = { y };
    FILE *const f = fopen("new.params", "rb");
    const uint32_t size = (uint32_t)fread(file, 1, sizeof file, f);
    FILE *const in = fopen("x.bin", "rb");
    if (fread(x, 4, 72, in) != 72) { return 9; }
    if (cnn_run(&inputs, &outputs) != AOT_MODEL_ERROR_PARAMETERS) { return 1; }
    if (cnn_set_params(NULL, size) != AOT_MODEL_ERROR_NULL) { return 2; }
    if (cnn_set_params(file + 4, size) != AOT_MODEL_ERROR_ALIGNMENT) { return 3; }
    if (cnn_set_params(file, size) != AOT_MODEL_OK) { printf("refused"); return cnn_run(&inputs, &outputs) == AOT_MODEL_ERROR_PARAMETERS ? 0 : 4; }
    if (cnn_set_params(file, size + 64u) != AOT_MODEL_OK) { return 5; }
    if (cnn_run(&inputs, &outputs) != AOT_MODEL_OK) { return 6; }
    for (int k = 0; k < 5; ++k) { printf("%.9g ", (double)y[k]); }
    if (cnn_set_params(file, CNN_PARAMS_SIZE - 1u) != AOT_MODEL_ERROR_PARAMETERS || cnn_run(&inputs, &outputs) != AOT_MODEL_ERROR_PARAMETERS) { return 7; }
    for (uint32_t bit = 0; bit < CNN_PARAMS_SIZE * 8u; bit += bit < 512u ? 1u : 41u) {
        file[bit / 8u] ^= (uint8_t)(1u << (bit % 8u));
        if (cnn_set_params(file, CNN_PARAMS_SIZE) != AOT_MODEL_ERROR_PARAMETERS) { printf("bit %u", (unsigned)bit); return 8; }
        file[bit / 8u] ^= (uint8_t)(1u << (bit % 8u));
    }
    return 0;
}
"""  # noqa: E501


def retrained(change: str = "") -> onnx.ModelProto:
    """The same model after more training, its tensors under other names; or changed."""
    proto = small_cnn()
    rng = np.random.default_rng(5)
    for tensor in proto.graph.initializer:
        old = numpy_helper.to_array(tensor)
        if old.dtype == np.float32:
            new = (old * rng.uniform(0.8, 1.2, old.shape)).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(new, tensor.name))
        if change == "wider" and tensor.name in ("w3", "b3"):
            wide = np.concatenate([old, old[:1]])
            tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))
    if change == "wider":
        proto.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 6
    for node in proto.graph.node:
        node.name = f"new/{node.name}"
        if change == "sigmoid" and node.op_type == "Relu":
            node.op_type = "Sigmoid"
    return proto


def reference(path: Path) -> np.ndarray:
    found: np.ndarray = onnxruntime.InferenceSession(str(path)).run(None, {"x": X})[0]
    return found


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    write(
        compile_model(Request(save(small_cnn(), folder / "cnn.onnx"), "cnn", "c", library=EXTERNAL)), folder
    )
    (folder / "main.c").write_text(MAIN)
    X.tofile(folder / "x.bin")
    subprocess.run(
        [
            "cc",
            "-std=c11",
            *STRICT[1:],
            *SANITIZE,
            f"-I{include_dir()}",
            "main.c",
            "cnn.c",
            "-lm",
            "-o",
            "main",
        ],
        cwd=folder,
        check=True,
    )
    return folder


def run(library: Path, params: bytes) -> str:
    (library / "new.params").write_bytes(params)
    done = subprocess.run(["./main"], cwd=library, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout


def test_right_parameters_and_every_wrong_bit(library: Path) -> None:
    got = run(library, (library / "cnn.params").read_bytes())
    np.testing.assert_allclose(
        np.array(got.split(), float), reference(library / "cnn.onnx")[0], rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("cut", [0, 1, 63, 64, 100, -1])
def test_truncated(library: Path, cut: int) -> None:
    assert run(library, (library / "cnn.params").read_bytes()[:cut]) == "refused"


def test_retrained_model_runs_without_compiling_code(library: Path) -> None:
    new = save(retrained(), library / "new.onnx")
    assert (
        main(["params", str(new), "-o", str(library / "made.params"), "--for", str(library / "cnn.json")])
        == 0
    )
    got = run(library, (library / "made.params").read_bytes())
    assert not np.allclose(reference(new), reference(library / "cnn.onnx"), rtol=1e-3)
    np.testing.assert_allclose(np.array(got.split(), float), reference(new)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [("wider", "it has 'output 0: float32[1,6]', the library has 'output 0: float32[1,5]'"), ("sigmoid", "")],
)
def test_another_structure_is_refused_with_the_reason(
    library: Path, capsys: pytest.CaptureFixture[str], change: str, reason: str
) -> None:
    other = save(retrained(change), library / f"{change}.onnx")
    assert (
        main(["params", str(other), "-o", str(library / "no.params"), "--for", str(library / "cnn.json")])
        == 1
    )
    error = capsys.readouterr().err
    assert "E303" in error and reason in error
    assert not (library / "no.params").exists()
    params = compile_model(Request(other, "cnn", "c", library=EXTERNAL)).binaries["cnn.params"]
    assert run(library, params) == "refused"


@pytest.mark.parametrize("text", ["{}", "[", '{"name": 1, "parameters": {"structure": 5}}'])
def test_metadata_of_another_library(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "x.json").write_text(text)
    assert (
        main(
            [
                "params",
                str(library / "cnn.onnx"),
                "-o",
                str(tmp_path / "p"),
                "--for",
                str(tmp_path / "x.json"),
            ]
        )
        == 1
    )
    assert "E102" in capsys.readouterr().err


def test_structure_does_not_depend_on_pools_or_names(library: Path) -> None:
    from aot_model.memory import Pool

    request = Request(library / "cnn.onnx", "cnn", "c", library=EXTERNAL)
    lines = structure(compile_model(request).view)
    assert (
        structure(compile_model(replace(request, name="other", pools=(Pool("a", 640), Pool("b")))).view)
        == lines
    )


def test_same_bytes_each_time(library: Path) -> None:
    assert (
        compile_model(Request(library / "cnn.onnx", "cnn", "c", library=EXTERNAL)).binaries["cnn.params"]
        == (library / "cnn.params").read_bytes()
    )


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
def test_on_cortex_m4_in_flash(library: Path, tmp_path: Path) -> None:
    """The test program of the build rules, with the parameters as a region of flash."""
    path = library / "cnn.onnx"
    write(compile_model(Request(path, "cnn", "cortex-m4", library=EXTERNAL)), tmp_path)
    np.savez(tmp_path / "v.npz", in_0=X[None], out_0=reference(path)[None])
    (tmp_path / "test.c").write_text(
        runner.test_main(tmp_path / "cnn.json", tmp_path / "v.npz", runner.Tolerance())[0]
    )
    build_and_run(BOARDS["m4"], ["test.c", "cnn.c"], tmp_path, ["-O2", f"-I{include_dir()}"])
