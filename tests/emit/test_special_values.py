"""Constants that have names or limits in C: infinities, NaN, the ends of the integers. What is made of them
compiles cleanly.

numpy, from the specification of the operators, says what they compute.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.emit.standard_headers import missing_headers
from aot_model.emit.view import Options
from aot_model.host.program import STRICT, build
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor

TYPES = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.FLOAT16: np.float16,
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.INT8: np.int8,
    TensorProto.UINT8: np.uint8,
    TensorProto.INT16: np.int16,
    TensorProto.UINT16: np.uint16,
    TensorProto.INT32: np.int32,
    TensorProto.UINT32: np.uint32,
    TensorProto.INT64: np.int64,
    TensorProto.UINT64: np.uint64,
}
BINARY = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Max",
    "Min",
    "Equal",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
)
REDUCTIONS = ("ReduceMax", "ReduceMin", "ArgMax")


def special(code: int) -> np.ndarray:
    dtype = np.dtype(TYPES[code])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.asarray([limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1], dtype)
    with np.errstate(all="ignore"):
        return np.asarray([-np.inf, np.nan, np.inf, -0.0, 1e-45, 3.4e38], np.float64).astype(dtype)


def everything(code: int) -> onnx.ModelProto:
    """Operators with the special values as a tensor, and with each as a scalar."""
    values = special(code)
    nodes: list[onnx.NodeProto] = []
    constants = {
        "i64": np.asarray([1, 1]),
        "depth": np.asarray(4),
        "all": values,
        **{f"v{k}": v for k, v in enumerate(values)},
    }

    def add(op: str, names: list[str], **attributes: object) -> None:
        nodes.append(helper.make_node(op, names, [f"y{len(nodes)}"], **attributes))

    for constant in ("all", *(f"v{k}" for k in range(values.size))):
        for op in BINARY:
            add(op, ["x", constant])
        add("Where", ["m", "x", constant])
    add("Concat", ["x", "all"], axis=0)
    add("Gather", ["all", "i"])
    for k, value in enumerate(values):
        add("Pad", ["x", "i64", f"v{k}"])
        add("Clip", ["x", f"v{k}"])
        constants[f"two{k}"] = np.asarray([value, values[0]])
        if code != TensorProto.BFLOAT16:
            add("OneHot", ["i", "depth", f"two{k}"])
        add("ConstantOfShape", ["i64"], value=numpy_helper.from_array(value.reshape(1)))
        if code in (TensorProto.FLOAT, TensorProto.DOUBLE):
            constants |= {
                f"w{k}": np.full((2, 1, 2, 2), value),
                f"b{k}": np.full(2, value),
                f"p{k}": np.full((4, 4), value),
            }
            add("Conv", ["z", f"w{k}", f"b{k}"])
            add("MatMul", ["z", f"p{k}"])
    if code not in (TensorProto.BFLOAT16, TensorProto.INT16, TensorProto.UINT16):
        for op in REDUCTIONS:
            add(op, ["x"])
    inputs = [
        tensor("x", [values.size], code),
        tensor("m", [values.size], TensorProto.BOOL),
        tensor("i", [3], TensorProto.INT64),
        tensor("z", [1, 1, 4, 4], code),
    ]
    return model(nodes, inputs, [onnx.ValueInfoProto(name=n.output[0]) for n in nodes], constants, opset=22)


@pytest.mark.parametrize(("target", "flags"), [("c", ["-O1"]), ("host", ["-O1", "-march=native"])])
@pytest.mark.parametrize("code", TYPES, ids=[np.dtype(t).name for t in TYPES.values()])
def test_they_compile(code: int, target: str, flags: list[str], tmp_path: Path) -> None:
    found = compile_model(
        Request(save(everything(code), tmp_path / "m.onnx"), "m", target, library=Options(metadata="none"))
    )
    for name, text in found.texts.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["gcc", *STRICT, *flags, "-fsyntax-only", f"-I{include_dir()}", "m.c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.parametrize("code", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("op", ["Add", "Concat", "Where", "Gather"])
def test_alone(op: str, code: int, tmp_path: Path) -> None:
    """Where nothing else in the file needs the header."""
    values = special(code)
    attributes = {"axis": 0} if op == "Concat" else {}
    names = {"Where": ["m", "x", "c"], "Gather": ["c", "i"]}.get(op, ["x", "c"])
    inputs = [tensor("x", [6], code), tensor("m", [6], TensorProto.BOOL), tensor("i", [3], TensorProto.INT64)]
    proto = model(
        [helper.make_node(op, names, ["y"], **attributes)],
        inputs,
        [onnx.ValueInfoProto(name="y")],
        {"c": values},
    )
    found = compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
    for name, text in found.texts.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["gcc", *STRICT, "-fsyntax-only", f"-I{include_dir()}", "m.c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[:3000]


def test_what_they_compute(tmp_path: Path) -> None:
    w = np.asarray([1, -np.inf, np.nan, np.inf], np.float32)
    nodes = [
        helper.make_node("Add", ["x", "w"], ["s"]),
        helper.make_node("Concat", ["x", "w"], ["c"], axis=0),
        helper.make_node("Where", ["m", "x", "w"], ["v"]),
    ]
    proto = model(
        nodes,
        [tensor("x", [4]), tensor("m", [4], TensorProto.BOOL)],
        [tensor(n, None) for n in "scv"],
        {"w": w},
    )
    found = compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
    x, mask = np.asarray([1, 2, np.inf, -np.inf], np.float32), np.asarray([True, False, True, False])
    ((s, c, v),) = build(found.view, found.texts, tmp_path).run([[x, mask]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(s, x + w)
    np.testing.assert_array_equal(c, np.concatenate([x, w]))
    np.testing.assert_array_equal(v, np.where(mask, x, w))


def test_headers_follow_from_the_names() -> None:
    text = "y[i] = sqrtf(x[i]); memcpy(a, b, 4u); z = FLT_MAX; aot_model_max_float32(a, fabsf_of);"
    assert missing_headers((), [text], []) == {"math.h", "string.h", "float.h"}
    assert missing_headers(("math.h", "aot_model/narrow.h"), [text], []) == {"float.h"}, (
        "narrow.h includes string.h"
    )
    assert missing_headers(("aot_model/scalar.h",), [], [np.asarray([np.nan], np.float32)]) == set()
    assert missing_headers((), ["my_sqrtf(x)"], [np.asarray([1.5], np.float32)]) == set()
