"""--interface tvm-ffi: the shared library is loaded by the package apache-tvm-ffi and called with its
tensors.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from aot_model.emit.view import Options
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write
from onnx_models import save, small_cnn

tvm_ffi = pytest.importorskip(
    "tvm_ffi", reason="the package apache-tvm-ffi is not installed (pip install apache-tvm-ffi)"
)

X = np.random.default_rng(1).normal(size=(1, 2, 6, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(small_cnn(), tmp_path_factory.mktemp("model") / "cnn.onnx")


def load(model: Path, folder: Path, options: Options) -> Any:
    write(compile_model(Request(model, "cnn", "c", library=options)), folder)
    subprocess.run(
        ["cc", *STRICT, "-O1", "-shared", "-fPIC", f"-I{include_dir()}", "cnn.c", "-lm", "-o", "libcnn.so"],
        cwd=folder,
        check=True,
    )
    return tvm_ffi.load_module(str(folder / "libcnn.so"))


@pytest.fixture(scope="module")
def module(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load(model, tmp_path_factory.mktemp("library"), Options(interfaces=("module", "tvm-ffi")))


def test_arrays_of_numpy(model: Path, module: Any) -> None:
    out = np.zeros((1, 5), np.float32)
    module.cnn(tvm_ffi.from_dlpack(X.copy()), tvm_ffi.from_dlpack(out))
    np.testing.assert_allclose(
        out, onnxruntime.InferenceSession(str(model)).run(None, {"x": X})[0], rtol=1e-4, atol=1e-6
    )


def test_tensors_of_torch(model: Path, module: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    out = torch.zeros(1, 5)
    module.cnn(torch.from_numpy(X.copy()), out)
    np.testing.assert_allclose(
        out.numpy(), onnxruntime.InferenceSession(str(model)).run(None, {"x": X})[0], rtol=1e-4, atol=1e-6
    )


def _tensor(*shape: int, dtype: type = np.float32) -> Any:
    return tvm_ffi.from_dlpack(np.zeros(shape, dtype))


@pytest.mark.parametrize(("arguments", "error", "message"), [
    (lambda: (), TypeError, "takes 1 inputs and 1 outputs"),
    (lambda: (_tensor(1, 2, 6, 6),), TypeError, "takes 1 inputs and 1 outputs"),
    (lambda: (5, _tensor(1, 5)), TypeError, "not a tensor: x"),
    (lambda: (_tensor(1, 2, 6, 6), None), TypeError, "not a tensor: y"),
    (lambda: (_tensor(1, 2, 6, 5), _tensor(1, 5)), ValueError, "'x' has another shape"),
    (lambda: (_tensor(2, 6, 6), _tensor(1, 5)), ValueError, "'x' has another shape"),
    (lambda:
     (_tensor(1, 2, 6, 6, dtype=np.float64), _tensor(1, 5)), TypeError, "'x' has another element type"),
    (lambda: (tvm_ffi.from_dlpack(np.zeros(
        (1, 2, 6, 12), np.float32)[..., ::2]), _tensor(1, 5)), ValueError, "'x' is not compact"),
])  # fmt: skip
def test_refused(module: Any, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        module.cnn(*arguments())


def test_parameters_that_are_missing(model: Path, tmp_path: Path) -> None:
    module = load(model, tmp_path, Options(params="external", interfaces=("tvm-ffi",)))
    with pytest.raises(RuntimeError, match="cnn_set_params"):
        module.cnn(_tensor(1, 2, 6, 6), _tensor(1, 5))
