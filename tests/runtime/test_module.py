"""The generic interface in C, C++ and Python: what it computes and what it refuses."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import aot_model
from aot_model.cli import main
from aot_model.emit.view import Options
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.library.module import ModelError, Module
from aot_model.memory import Pool
from aot_model.pipeline import Request, compile_model, write
from onnx_models import model, save, tensor
from tflite_models import FLOAT32, G, Op, T, build

X = np.random.default_rng(1).normal(size=(1, 2, 6, 6)).astype(np.float32)
MODULE = Options(interfaces=("module",))
MEMORY = [("static", 1), ("caller", 1), ("static", 3), ("caller", 3)]
POOLS = {1: (Pool("workspace"),), 3: (Pool("a", 320, 32), Pool("b", 640), Pool("c"))}

C_PROGRAM = """#include "cnn.h"

static float x[72], y[5];
static int64_t shape[4] = { 1, 2, 6, 6 }, strides[4] = { 99, 36, 6, 1 }, wrong[4] = { 1, 6, 2, 6 }, columns[4] = { 72, 1, 2, 12 };
static _Alignas(64) uint8_t storage[8192];

#define EXPECT(code, call) do { if ((call) != (code)) { return __LINE__; } } while (0)

int main(void)
{
    const aot_model_module *const all[] = { &cnn_module };
    const aot_model_module *const m = aot_model_find(all, 1, "cnn");
    const aot_model_dl_tensor good = { x, { 1, 0 }, 4, { 2, 32, 1 }, shape, strides, 0 };
    aot_model_dl_tensor bad = good, out;
    aot_model_session s;
    int64_t extents[2];
    const uint64_t bytes = aot_model_storage_bytes(m, true), few = aot_model_storage_bytes(m, false);

    if (m != &cnn_module || aot_model_find(all, 1, "kws") != NULL || aot_model_find(all, 1, NULL) != NULL) { return 1; }
    if (bytes > sizeof storage || few >= bytes || aot_model_num_inputs(m) != 1 || aot_model_num_outputs(m) != 1) { return 2; }
    EXPECT(0, aot_model_get_input_index(m, "x"));
    EXPECT(AOT_MODEL_ERROR_INDEX, aot_model_get_input_index(m, "y"));
    EXPECT(AOT_MODEL_ERROR_INDEX, aot_model_get_input_index(m, NULL));
    EXPECT(0, aot_model_get_output_index(m, "y"));

    EXPECT(AOT_MODEL_ERROR_NULL, aot_model_open(&s, m, NULL, bytes, true));
    EXPECT(AOT_MODEL_ERROR_NULL, aot_model_open(&s, NULL, storage, bytes, true));
    EXPECT(AOT_MODEL_ERROR_ALIGNMENT, aot_model_open(&s, m, storage + 8, bytes, true));
    EXPECT(AOT_MODEL_ERROR_MEMORY, aot_model_open(&s, m, storage, bytes - 1u, true));
    {
        aot_model_module later = *m;
        later.version = AOT_MODEL_MODULE_VERSION + 1u;
        EXPECT(AOT_MODEL_ERROR_VERSION, aot_model_open(&s, &later, storage, bytes, true));
    }
    EXPECT(AOT_MODEL_OK, aot_model_open(&s, m, storage, few, false));
    EXPECT(AOT_MODEL_ERROR_MEMORY, aot_model_set_input(&s, 0, &good));
    EXPECT(AOT_MODEL_ERROR_NULL, aot_model_run(&s));
    EXPECT(AOT_MODEL_OK, aot_model_set_input_zero_copy(&s, 0, &good));
    EXPECT(AOT_MODEL_ERROR_NULL, aot_model_run(&s));
    EXPECT(AOT_MODEL_ERROR_NULL, aot_model_get_output(&s, 0, &out, extents, 2));

    EXPECT(AOT_MODEL_OK, aot_model_open(&s, m, storage, bytes, true));
    EXPECT(AOT_MODEL_ERROR_NULL, aot_model_run(&s));
    EXPECT(AOT_MODEL_ERROR_INDEX, aot_model_set_input(&s, 1, &good));
    EXPECT(AOT_MODEL_ERROR_INDEX, aot_model_set_input_zero_copy(&s, -1, &good));
    EXPECT(AOT_MODEL_ERROR_INDEX, aot_model_set_output_zero_copy(&s, 1, &good));
    EXPECT(AOT_MODEL_ERROR_NULL, aot_model_set_input(&s, 0, NULL));
    bad.data = NULL;
    EXPECT(AOT_MODEL_ERROR_NULL, aot_model_set_input(&s, 0, &bad));
    bad = good; bad.device.type = 2;
    EXPECT(AOT_MODEL_ERROR_DEVICE, aot_model_set_input(&s, 0, &bad));
    bad = good; bad.dtype.bits = 16;
    EXPECT(AOT_MODEL_ERROR_DTYPE, aot_model_set_input(&s, 0, &bad));
    bad = good; bad.dtype.lanes = 2;
    EXPECT(AOT_MODEL_ERROR_DTYPE, aot_model_set_input(&s, 0, &bad));
    bad = good; bad.ndim = 3;
    EXPECT(AOT_MODEL_ERROR_SHAPE, aot_model_set_input(&s, 0, &bad));
    bad = good; bad.shape = wrong;
    EXPECT(AOT_MODEL_ERROR_SHAPE, aot_model_set_input(&s, 0, &bad));
    bad = good; bad.strides = columns;
    EXPECT(AOT_MODEL_ERROR_STRIDES, aot_model_set_input(&s, 0, &bad));
    bad = good; bad.byte_offset = 2;
    EXPECT(AOT_MODEL_ERROR_ALIGNMENT, aot_model_set_input_zero_copy(&s, 0, &bad));
    EXPECT(AOT_MODEL_ERROR_SHAPE, aot_model_set_output_zero_copy(&s, 0, &good));
    EXPECT(AOT_MODEL_ERROR_NULL, aot_model_run(&s));
    for (int k = 0; k < 72; ++k) { x[k] = (float)(k % 7) - 3.0f; }
    EXPECT(AOT_MODEL_OK, aot_model_set_input(&s, 0, &good));
    EXPECT(AOT_MODEL_OK, aot_model_run(&s));
    EXPECT(AOT_MODEL_ERROR_INDEX, aot_model_get_output(&s, 1, &out, extents, 2));
    EXPECT(AOT_MODEL_ERROR_SHAPE, aot_model_get_output(&s, 0, &out, extents, 1));
    EXPECT(AOT_MODEL_OK, aot_model_get_output(&s, 0, &out, extents, 2));
    if (out.ndim != 2 || extents[0] != 1 || extents[1] != 5 || out.dtype.code != 2 || out.dtype.bits != 32) { return 3; }
    {
        const cnn_inputs inputs = { x };
        const cnn_outputs outputs = { y };
        float copied[5];
        memcpy(copied, out.data, sizeof copied);
        EXPECT(AOT_MODEL_OK, DIRECT);
        if (memcmp(copied, y, sizeof y) != 0) { return 4; }
        memset(y, 0, sizeof y);
        out.data = y;
        EXPECT(AOT_MODEL_OK, aot_model_set_output_zero_copy(&s, 0, &out));
        EXPECT(AOT_MODEL_OK, aot_model_set_input_zero_copy(&s, 0, &good));
        EXPECT(AOT_MODEL_OK, aot_model_run(&s));
        return memcmp(copied, y, sizeof y) == 0 ? 0 : 5;
    }
}
"""  # noqa: E501

CPP_PROGRAM = """#include "cnn.h"
#include "aot_model/module.hpp"
int main()
{
    std::vector<float> x(72, 1.0f), y(5);
    std::vector<int64_t> shape = { 1, 2, 6, 6 }, got;
    aot_model_dl_tensor t = { x.data(), { 1, 0 }, 4, { 2, 32, 1 }, shape.data(), nullptr, 0 };
    aot_model::Session s(cnn_module);
    s.set_input(s.input("x"), t);
    s.run();
    aot_model_dl_tensor view = s.get_output(s.output("y"), got);
    if (got.size() != 2 || got[1] != 5) { return 1; }
    try { s.input("none"); return 2; } catch (const aot_model::Error &e) { if (e.status() != AOT_MODEL_ERROR_INDEX) { return 3; } }
    shape[1] = 3;
    try { s.set_input(0, t); return 4; } catch (const aot_model::Error &e) { if (e.status() != AOT_MODEL_ERROR_SHAPE) { return 5; } }
    float sum = 0;
    for (int k = 0; k < 5; ++k) { sum += static_cast<const float *>(view.data)[k]; }
    return sum > 0.999f && sum < 1.001f ? 0 : 6;
}
"""  # noqa: E501


def shared_library(request: Request, folder: Path, flags: tuple[str, ...] = ("-O1",)) -> Path:
    write(compile_model(request), folder)
    path = folder / f"lib{request.name}.so"
    subprocess.run(
        [
            "cc",
            *STRICT,
            *flags,
            "-shared",
            "-fPIC",
            f"-I{include_dir()}",
            f"{request.name}.c",
            "-lm",
            "-o",
            path.name,
        ],
        cwd=folder,
        check=True,
    )
    return path


@pytest.mark.parametrize(("workspace", "pools"), MEMORY)
def test_c(cnn: Request, tmp_path: Path, workspace: str, pools: int) -> None:
    write(
        compile_model(replace(cnn, pools=POOLS[pools], library=Options(workspace, interfaces=("module",)))),
        tmp_path,
    )
    (tmp_path / "main.c").write_text(C_PROGRAM)
    memory = (
        ""
        if workspace == "static"
        else ",s.pools[0]"
        if pools == 1
        else (",&(const cnn_pools){s.pools[0],s.pools[1],s.pools[2]}")
    )
    flags = [
        "-std=c11",
        *STRICT[1:],
        *SANITIZE,
        f"-I{include_dir()}",
        f"-DDIRECT=cnn_run(&inputs,&outputs{memory})",
    ]
    subprocess.run(["cc", *flags, "main.c", "cnn.c", "-lm", "-o", "main"], cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0


def test_cpp(cnn: Request, tmp_path: Path) -> None:
    write(compile_model(replace(cnn, library=Options("caller", interfaces=("module",)))), tmp_path)
    (tmp_path / "main.cpp").write_text(CPP_PROGRAM)
    subprocess.run(["cc", *STRICT, f"-I{include_dir()}", "-c", "cnn.c"], cwd=tmp_path, check=True)
    strict = ["-std=c++11", *STRICT[1:], *SANITIZE]
    subprocess.run(
        ["c++", *strict, f"-I{include_dir()}", "main.cpp", "cnn.o", "-lm", "-o", "main"],
        cwd=tmp_path,
        check=True,
    )
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(("workspace", "pools"), MEMORY)
def test_python(cnn: Request, tmp_path: Path, workspace: str, pools: int) -> None:
    loaded = aot_model.load(
        shared_library(
            replace(cnn, pools=POOLS[pools], library=Options(workspace, interfaces=("module",))), tmp_path
        )
    )
    want = onnxruntime.InferenceSession(str(cnn.model)).run(None, {"x": X})[0]
    np.testing.assert_allclose(loaded(X)[0], want, rtol=1e-4, atol=1e-6)
    result = np.zeros((1, 5), np.float32)
    samples = X * np.float32(0.5)
    loaded.set_input_zero_copy("x", samples)
    loaded.set_output_zero_copy("y", result)
    loaded.run()
    assert loaded.get_output(0) is result
    np.testing.assert_array_equal(result, loaded(samples)[0])
    samples[:] = X
    loaded.set_input_zero_copy(0, samples)
    loaded.run()
    np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-6)


class Foreign:
    """A tensor of another framework: nothing but DLPack."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


def test_python_tensors_of_others(cnn: Request, tmp_path: Path) -> None:
    """Used where they are, inputs and outputs, and the outputs are tensors for others; those of another
    device are refused.
    """
    loaded = aot_model.load(shared_library(cnn, tmp_path))
    samples, result = X.copy(), np.zeros((1, 5), np.float32)
    loaded.set_input_zero_copy("x", Foreign(samples))
    loaded.set_output_zero_copy("y", Foreign(result))
    loaded.run()
    want = onnxruntime.InferenceSession(str(cnn.model)).run(None, {"x": X})[0]
    np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-6)
    samples *= np.float32(0.5)
    loaded.run()
    assert not np.allclose(result, want, rtol=1e-3)
    assert np.shares_memory(np.from_dlpack(loaded.get_output(0)), result)
    for use in (loaded.set_input, loaded.set_input_zero_copy):
        with pytest.raises(ValueError, match="not in the memory of the CPU"):
            use("x", Foreign(samples, device=2))
    raw = np.zeros(72 * 4 + 1, np.uint8)
    with pytest.raises(ValueError, match="aligned"):
        loaded.set_input_zero_copy("x", raw[1:].view(np.float32).reshape(1, 2, 6, 6))


def test_python_refuses(cnn: Request, tmp_path: Path) -> None:
    path = shared_library(cnn, tmp_path)
    with pytest.raises(ValueError, match="no model 'kws'"):
        aot_model.load(path, "kws")
    loaded = aot_model.load(path)
    with pytest.raises(ModelError, match="not set"):
        loaded.run()
    for key in ("y", 1, -1):
        with pytest.raises(KeyError):
            loaded.set_input(key, X)
    for wrong, error in (
        (X.astype(np.float64), TypeError),
        (X[0], ValueError),
        (X.transpose(0, 1, 3, 2), ValueError),
        (X.astype(">f4"), TypeError),
    ):
        with pytest.raises(error):
            loaded.set_input_zero_copy("x", wrong)
    frozen = np.zeros((1, 5), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        loaded.set_output_zero_copy("y", frozen)
    with pytest.raises(TypeError):
        loaded(X, X)
    with pytest.raises(ValueError, match="part of its code"):
        loaded.set_params(b"")
    with pytest.raises(ValueError, match="before the first run"):
        loaded.get_output(0)


def test_names_and_types_of_the_model(tmp_path: Path) -> None:
    """Names that are no C identifiers go by both spellings; scalars, bool and int64 tensors; outputs that are
    inputs.
    """
    proto = model(
        [
            helper.make_node("Cast", ["in:0/x"], ["flag@1"], to=TensorProto.BOOL),
            helper.make_node("Identity", ["in:0/x"], ["same"]),
        ],
        [tensor("in:0/x", [], TensorProto.INT64)],
        [tensor("flag@1", [], TensorProto.BOOL), tensor("same", [], TensorProto.INT64)],
    )
    loaded = aot_model.load(
        shared_library(Request(save(proto, tmp_path / "m.onnx"), "m", "c", library=MODULE), tmp_path)
    )
    assert loaded.input_index("in:0/x") == loaded.input_index(loaded.inputs[0].c_name) == 0
    flag, same = loaded(np.int64(7))
    assert (flag.shape, flag.dtype, bool(flag), same.dtype, int(same)) == ((), np.bool_, True, np.int64, 7)


def test_external_parameters(cnn: Request, tmp_path: Path) -> None:
    loaded = aot_model.load(
        shared_library(replace(cnn, library=Options(params="external", interfaces=("module",))), tmp_path)
    )
    with pytest.raises(ModelError, match="parameters are missing") as error:
        loaded(X)
    assert error.value.status == -3
    data = (tmp_path / "cnn.params").read_bytes()
    loaded.set_params(data)
    np.testing.assert_allclose(
        loaded(X)[0],
        onnxruntime.InferenceSession(str(cnn.model)).run(None, {"x": X})[0],
        rtol=1e-4,
        atol=1e-6,
    )
    with pytest.raises(ModelError):
        loaded.set_params(data[:-1])


@pytest.mark.parametrize("workspace", ["static", "caller"])
def test_state(tmp_path: Path, workspace: str) -> None:
    """A running sum in a variable that begins at 5: kept from run to run, afresh after reset, apart in each
    session.
    """
    names = {"Container": 0, "SharedName": 0}
    handle, five = (
        T("handle", (), 13, scale=()),
        T("five", (), FLOAT32, scale=(), data=np.asarray(5, np.float32)),
    )
    tensors = [
        T("x", (), FLOAT32, scale=()),
        handle,
        T("old", (), FLOAT32, scale=()),
        T("new", (), FLOAT32, scale=()),
    ]
    begin = [Op("VAR_HANDLE", (), (0,), "VarHandleOptions", names), Op("ASSIGN_VARIABLE", (0, 1), ())]
    step = [
        Op("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}),
        Op("VAR_HANDLE", (), (1,), "VarHandleOptions", names),
        Op("READ_VARIABLE", (1,), (2,)),
        Op("ADD", (0, 2), (3,), "AddOptions"),
        Op("ASSIGN_VARIABLE", (1, 3), ()),
    ]
    (tmp_path / "sum.tflite").write_bytes(build(tensors, step, [0], [3], G([handle, five], begin, [], [])))
    path = shared_library(
        Request(tmp_path / "sum.tflite", "sum", "c", library=Options(workspace, interfaces=("module",))),
        tmp_path,
    )
    one = aot_model.load(path)
    assert [float(one(np.float32(v))[0]) for v in (1, 2)] == [6.0, 8.0]
    two = aot_model.load(path)
    assert float(two(np.float32(1))[0]) == 6.0
    assert float(one(np.float32(1))[0]) == (9.0 if workspace == "caller" else 7.0)
    one.reset()
    assert float(one(np.float32(1))[0]) == 6.0


@pytest.mark.parametrize(
    "more",
    [["--metadata", "size"], ["--io", "workspace"], ["--interface", "tvm-ffi", "--workspace", "caller"]],
)
def test_options_that_exclude_each_other(
    cnn: Request, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert main(["compile", str(cnn.model), "-o", str(tmp_path / "out"), "--interface", "module", *more]) == 1
    assert "E501" in capsys.readouterr().err


def test_loads_by_name_only(cnn: Request, tmp_path: Path) -> None:
    path = shared_library(cnn, tmp_path)
    other = path.rename(tmp_path / "anything.so")
    assert isinstance(aot_model.load(other, "cnn"), Module)
