"""Calling conventions: structs, pointers one by one, DLPack tensors. The same results, the same checks, with
every kind of memory.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from aot_model.emit.view import ModelView, Options
from aot_model.errors import CompileError
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.memory import Pool
from aot_model.pipeline import Request, compile_model, write
from onnx_models import model, save, small_cnn, tensor

POOLS = {1: (Pool("workspace"),), 3: (Pool("a", 320, 32), Pool("b", 640), Pool("c"))}
BOTH = ("positional", "packed")


def constant() -> onnx.ModelProto:
    return model(
        [helper.make_node("Neg", ["a"], ["y"])],
        [],
        [tensor("y", [3])],
        {"a": np.asarray([1, 2, 3], np.float32)},
    )


def many() -> onnx.ModelProto:
    """Names that differ in C's eyes only, a scalar, an output that is an input, int64 and bool."""
    nodes = [
        helper.make_node("Cast", ["in:0"], ["in.0"], to=TensorProto.BOOL),
        helper.make_node("Identity", ["in:0"], ["same"]),
        helper.make_node("Add", ["x", "x"], ["workspace"]),
    ]
    return model(
        nodes,
        [tensor("in:0", [], TensorProto.INT64), tensor("x", [2, 3])],
        [
            tensor("in.0", [], TensorProto.BOOL),
            tensor("same", [], TensorProto.INT64),
            tensor("workspace", [2, 3]),
        ],
    )


def program(view: ModelView) -> str:
    """Runs by each convention with memory of its own, and compares bytes; `x` are the inputs, filled with
    small numbers.
    """
    caller, several = view.options.workspace == "caller", len(view.pools) > 1
    memory = (
        "".join(
            f"static uint8_t memory{k}[{p.size + 1}] AOT_MODEL_ALIGNED(64);\n"
            for k, p in enumerate(view.pools)
        )
        if caller
        else ""
    )
    memory += (
        (f"static const m_pools pools = {{ {', '.join(f'memory{k}' for k in range(len(view.pools)))} }};\n")
        if caller and several
        else ""
    )
    last = [] if not caller else ["&pools"] if several else ["memory0"]
    ins, outs = ([p.buffer.type for p in ports] for ports in (view.inputs, view.outputs))
    text = f'#include "m.h"\n#include <string.h>\n#include "aot_model/tensor.h"\n{memory}'
    text += "".join(f"static {t.dtype.c_type} x{k}[{max(t.elements, 1)}];\n" for k, t in enumerate(ins))
    text += "".join(f"static {t.dtype.c_type} y{k}[3][{max(t.elements, 1)}];\n" for k, t in enumerate(outs))
    text += (
        "static aot_model_dl_tensor t[9];\nstatic int64_t shapes[9][8];\nint main(void)\n{\n    const "
        "aot_model_dl_tensor *table[9];\n"
    )
    text += "".join(
        f"    for (int i = 0; i < {t.elements}; ++i) {{ x{k}[i] = ({t.dtype.c_type})(i % 7 - 3); }}\n"
        for k, t in enumerate(ins)
    )
    inputs, outputs = (
        ", ".join(f"{name}{k}{at}" for k in range(n)) or "NULL"
        for name, n, at in (("x", len(ins), ""), ("y", len(outs), "[0]"))
    )
    text += f"    const m_inputs in = {{ {inputs} }};\n    const m_outputs out = {{ {outputs} }};\n"
    text += f"    if (m_run({', '.join(['&in', '&out', *last])}) != 0) {{ return 1; }}\n"
    text += (
        "    if "
        f"(m_run_positional({', '.join([*(f'x{k}' for k in range(len(ins))), *(f'y{k}[1]' for k in range(len(outs))), *last])}) != 0) {{ return 2; }}\n"  # noqa: E501
    )
    for k, t in enumerate([*ins, *outs]):
        address = f"x{k}" if k < len(ins) else f"y{k - len(ins)}[2]"
        port = view.inputs[k] if k < len(ins) else view.outputs[k - len(ins)]
        kind = f"m_metadata()->{'inputs' if k < len(ins) else 'outputs'}[{k if k < len(ins) else k - len(ins)}].dtype"  # noqa: E501
        text += "".join(f"    shapes[{k}][{axis}] = {extent};\n" for axis, extent in enumerate(t.shape))
        text += (
            f"    t[{k}] = (aot_model_dl_tensor){{ {address}, {{ 1, 0 }}, {len(t.shape)}, "
            f"aot_model_dl_dtype_of({kind}), shapes[{k}], NULL, 0 }}; /* {port.c_name} */\n"
        )
    n = len(ins) + len(outs)
    call = f"m_run_packed(table, {{}}, {', '.join(last)})" if last else "m_run_packed(table, {})"
    text += (
        f"    for (int k = 0; k < 9; ++k) {{ table[k] = &t[k]; }}\n    if ({call.format(n + 1)} != "
        f"AOT_MODEL_ERROR_INDEX) {{ return 3; }}\n"
    )
    for field, value, error in (
        ("device.type", "2", "DEVICE"),
        ("dtype.bits", "24", "DTYPE"),
        ("ndim", "7", "SHAPE"),
        ("data", "NULL", "NULL"),
    ):
        text += (
            f"    t[{n - 1}].{field} = {value};\n    if ({call.format(n)} != AOT_MODEL_ERROR_{error}) "
            f"{{ return 4; }}\n    t[{n - 1}] = saved({n - 1});\n"
        )
    text += (
        f"    table[0] = NULL;\n    if ({call.format(n)} != AOT_MODEL_ERROR_NULL) {{ return 5; }}\n    "
        "table[0] = &t[0];\n"
    )
    text += (
        f"    for (unsigned k = 0; k < sizeof y0[2]; ++k) {{ if (((const uint8_t *)y0[2])[k] != 0) {{ "
        f"return 6; }} }}\n    if ({call.format(n)} != 0) {{ return 7; }}\n"
    )
    same = " || ".join(
        f"memcmp(y{k}[0], y{k}[1], sizeof y{k}[0]) != 0 || memcmp(y{k}[0], y{k}[2], sizeof y{k}[0]) != 0"
        for k in range(len(outs))
    )
    text += f"    return {same} ? 8 : 0;\n}}\n"
    # a tensor as it was before a field was changed
    before = (
        "static aot_model_dl_tensor first[9];\nstatic aot_model_dl_tensor saved(int k) { return first[k]; }\n"
    )
    return text.replace("int main(void)", before + "int main(void)").replace(
        "    for (int k = 0; k < 9; ++k) { table",
        "    memcpy(first, t, sizeof t);\n    for (int k = 0; k < 9; ++k) { table",
    )


@pytest.mark.parametrize("make", [small_cnn, many, constant])
@pytest.mark.parametrize(("workspace", "pools"), [("static", 1), ("caller", 1), ("static", 3), ("caller", 3)])
def test_every_convention_gives_the_same(tmp_path: Path, make: object, workspace: str, pools: int) -> None:
    path = save(make(), tmp_path / "m.onnx")  # type: ignore[operator]
    compiled = compile_model(
        Request(path, "m", "c", pools=POOLS[pools], library=Options(workspace, interfaces=BOTH))
    )
    write(compiled, tmp_path)
    (tmp_path / "main.c").write_text(program(compiled.view))
    command = ["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "m.c", "-lm", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0


NULLS = """#include "m.h"
static float x[72], y[5], memory[2000];
int main(void)
{
    m_inputs in = { x };
    m_outputs out = { y };
    if (m_run(NULL, &out, memory) != AOT_MODEL_ERROR_NULL || m_run(&in, NULL, memory) != AOT_MODEL_ERROR_NULL) { return 1; }
    if (m_run(&in, &out, NULL) != AOT_MODEL_ERROR_NULL || m_run(&in, &out, (uint8_t *)memory + 1) != AOT_MODEL_ERROR_ALIGNMENT) { return 2; }
    in.x = NULL;
    if (m_run(&in, &out, memory) != AOT_MODEL_ERROR_NULL || m_run_positional(x, NULL, memory) != AOT_MODEL_ERROR_NULL) { return 3; }
    in.x = x;
    out.y = NULL;
    return m_run(&in, &out, memory) == AOT_MODEL_ERROR_NULL && m_run_positional(x, y, memory) == AOT_MODEL_OK ? 0 : 4;
}
"""  # noqa: E501


def test_null_is_an_error_code(tmp_path: Path) -> None:
    """Of the structs, of each of their fields, of the workspace."""
    write(
        compile_model(
            Request(
                save(small_cnn(), tmp_path / "m.onnx"),
                "m",
                "c",
                library=Options("caller", interfaces=("positional",)),
            )
        ),
        tmp_path,
    )
    (tmp_path / "main.c").write_text(NULLS.replace("memory[2000]", "memory[2000] AOT_MODEL_ALIGNED(64)"))
    subprocess.run(
        ["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "m.c", "-lm", "-o", "main"],
        cwd=tmp_path,
        check=True,
    )
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0


def test_results_are_those_of_the_model(tmp_path: Path) -> None:
    """Positional arguments come in the order of the model, through ctypes."""
    import ctypes

    path = save(many(), tmp_path / "m.onnx")
    write(
        compile_model(Request(path, "m", "c", library=Options(interfaces=("positional",), metadata="none"))),
        tmp_path,
    )
    subprocess.run(
        ["cc", *STRICT, "-shared", "-fPIC", f"-I{include_dir()}", "m.c", "-lm", "-o", "libm.so"],
        cwd=tmp_path,
        check=True,
    )
    number, x = np.array(7), np.arange(6, dtype=np.float32).reshape(2, 3)
    want = onnxruntime.InferenceSession(str(path)).run(None, {"in:0": number, "x": x})
    got = [np.zeros_like(w) for w in want]
    status = ctypes.CDLL(str(tmp_path / "libm.so")).m_run_positional(
        *(ctypes.c_void_p(a.ctypes.data) for a in (number, x, *got))
    )
    assert status == 0
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("options", "messages"), [
    (Options(interfaces=("packed",), metadata="size"), ["--interface packed with --metadata size"]),
    (Options(interfaces=("positional",), io="workspace"), ["--interface positional with --io workspace"]),
    (Options("caller", "workspace", "none", interfaces=("module", "tvm-ffi")), [
        "--interface module with --metadata none", "--interface module with --io workspace",
        "--interface tvm-ffi with --workspace caller"
    ]),
    (Options("caller", sections={"dtcm": ".x"}), ["there is no pool 'dtcm'", "the caller places the memory"]),
])  # fmt: skip
def test_contradictions_are_named_all_at_once(tmp_path: Path, options: Options, messages: list[str]) -> None:
    with pytest.raises(CompileError) as error:
        compile_model(Request(save(small_cnn(), tmp_path / "m.onnx"), "m", "c", library=options))
    assert all(p.code == "E501" for p in error.value.problems)
    for message in messages:
        assert message in str(error.value)
