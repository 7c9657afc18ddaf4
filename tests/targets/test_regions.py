"""Regions in whole models: the C of targets runs beside that of the processor, and every buffer is
planned.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from vector_unit import UNIT, compiled, elementwise, install, outputs, unit

from aot_model.ir.pattern import op
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.partition.lower import RegionSite
from aot_model.partition.offload import Claim
from aot_model.partition.region import Region
from onnx_models import model, tensor

node = helper.make_node
X = np.asarray([[1, 2, 3, 4], [0, -1, 2, -3]], np.float32)
W, B = np.arange(12, dtype=np.float32).reshape(4, 3), np.asarray([1, -60, 3], np.float32)


def network() -> onnx.ModelProto:
    """Dense layer with activation, sigmoid, residual: the unit takes the first and the last."""
    nodes = [
        node("Gemm", ["x", "w", "b"], ["g"]),
        node("Relu", ["g"], ["r"]),
        node("Sigmoid", ["r"], ["s"]),
        node("Add", ["s", "r"], ["y"]),
    ]
    return model(nodes, [tensor("x", [2, 4])], [tensor("y", [2, 3])], {"w": W, "b": B})


def expected() -> np.ndarray:
    r = np.maximum(X @ W + B, 0)
    return 1 / (1 + np.exp(-r)) + r


@pytest.mark.parametrize("merge", [False, True])
def test_regions_beside_the_processor(merge: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(merge=merge))
    result = compiled(network(), tmp_path, "unit,c")
    assert [a.pattern for a in result.assignments] == ["dense", "dense", "dense", "", "add"]
    np.testing.assert_allclose(outputs(result, tmp_path, X)[0], expected(), rtol=1e-5)
    assert [c["op"] for c in json.loads(result.texts["m.json"])["layers"]] == [
        "unit:dense",
        "Sigmoid",
        "unit:add",
    ]
    assert result.view.macs == 24


def test_same_bytes_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, UNIT)
    assert compiled(network(), tmp_path, "unit,c").texts == compiled(network(), tmp_path, "unit,c").texts


def test_without_the_target_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that takes nothing gives the processor's code, but for its name."""

    def code(target: str) -> str:
        return re.sub(r"(?<=_BUILD != )\w+", "", compiled(network(), tmp_path, target).texts["m.c"]).replace(
            "unit,c", "c"
        )

    before = code("c")
    install(monkeypatch, unit(patterns=(elementwise("Mul"),)))
    assert code("unit,c") == before


def test_an_option_of_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, UNIT)
    result = compiled(network(), tmp_path, "unit,elements=5,c,optimize=size")
    last = result.assignments[-1]
    assert last.pattern == "" and ("unit", "add", "6 elements are more than 5") in last.refused
    assert result.view.target.option("optimize") == "size"


def test_scratch_and_values_between_functions_are_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two functions with a value between them, packed data and scratch: all in the plan, none in the region's
    own memory.
    """

    def lower(region: Region, build: RegionSite) -> None:
        first, second = region.nodes
        scale = Packed("scale", np.full(8, 2, np.float32), 16)
        body = (
            "    for (int32_t i = 0; i < 8; ++i) {\n        half[i] = x[i] + x[i];\n        y[i] = "
            "half[i] * scale[i];\n    }"
        )
        build.call(
            "twice",
            body,
            [
                Argument("x", first.inputs[0]),
                Argument("scale", scale),
                Argument("half", Scratch("half", 32, 32, "float")),
                written("y", first.outputs[0]),
            ],
        )  # type: ignore[arg-type]
        body = "    for (int32_t i = 0; i < 8; ++i) {\n        y[i] = a[i] > 0.0f ? a[i] : 0.0f;\n    }"
        build.call("relu", body, [Argument("a", second.inputs[0]), written("y", second.outputs[0])])  # type: ignore[arg-type]

    install(monkeypatch, unit(patterns=(elementwise("Add"), elementwise("Relu")), lower=lower))
    proto = model(
        [node("Add", ["x", "x"], ["a"]), node("Relu", ["a"], ["y"])],
        [tensor("x", [2, 4])],
        [tensor("y", [2, 4])],
    )
    result = compiled(proto, tmp_path, "unit,c")
    assert result.view.workspace_size == 64 and result.view.constant_bytes == 32
    np.testing.assert_array_equal(outputs(result, tmp_path, X)[0], np.maximum(4 * X, 0))


def test_values_are_aligned_where_they_are_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that reads whole cache lines; what the caller gives is as the caller has it."""
    granted: list[bool] = []

    def lower_aligned(region: Region, build: RegionSite) -> None:
        m = region.matches[0].result
        x, y = m.inputs[0], m.outputs[0]
        assert x is not None
        granted.extend([build.align(x, 64), build.align(y, 64)])
        body = (
            "    if ((((uintptr_t)x | (uintptr_t)y) & 63u) != 0u) {\n        return 7;\n    }\n    "
            "memcpy(y, x, 32);\n    return 0;"
        )
        build.call("move", body, [Argument("x", x), written("y", y)], includes=["string.h"], fails=True)

    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=lower_aligned))
    chain = [node("Tanh", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Tanh", ["b"], ["y"])]
    result = compiled(model(chain, [tensor("x", [2, 4])], [tensor("y", [2, 4])]), tmp_path, "unit,c")
    assert granted == [True, True] and "#define M_WORKSPACE_ALIGN 64u" in result.texts["m.h"]
    np.testing.assert_allclose(outputs(result, tmp_path, X)[0], np.tanh(np.tanh(X)), rtol=1e-5)
    compiled(
        model([node("Relu", ["x"], ["y"])], [tensor("x", [2, 4])], [tensor("y", [2, 4])]), tmp_path, "unit,c"
    )
    assert granted[2:] == [False, False]


def test_equal_functions_are_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(patterns=(elementwise("Add"),)))
    proto = model(
        [node("Add", ["x", "x"], ["a"]), node("Tanh", ["a"], ["b"]), node("Add", ["b", "a"], ["y"])],
        [tensor("x", [2, 4])],
        [tensor("y", [2, 4])],
    )
    result = compiled(proto, tmp_path, "unit,c")
    assert result.texts["m.c"].count("static void") == 2
    np.testing.assert_allclose(outputs(result, tmp_path, X)[0], np.tanh(2 * X) + 2 * X, rtol=1e-5)


def test_a_region_with_two_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum that is an output, and read by the region and by the processor."""
    install(monkeypatch, UNIT)
    nodes = [node("Add", ["x", "x"], ["s"]), node("Relu", ["s"], ["r"]), node("Tanh", ["s"], ["t"])]
    proto = model(nodes, [tensor("x", [2, 4])], [tensor(n, [2, 4]) for n in "srt"])
    found = outputs(compiled(proto, tmp_path, "unit,c"), tmp_path, X)
    for got, wanted in zip(found, (2 * X, np.maximum(2 * X, 0), np.tanh(2 * X)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_results_in_a_concatenation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of regions are computed in the place where the concatenation has them."""
    install(monkeypatch, UNIT)
    nodes = [
        node("Add", ["x", "x"], ["s"]),
        node("Mul", ["x", "x"], ["m"]),
        node("Concat", ["s", "m"], ["y"], axis=0),
    ]
    result = compiled(model(nodes, [tensor("x", [2, 4])], [tensor("y", [4, 4])]), tmp_path, "unit,c")
    assert len(list(result.view.program.calls())) == 2
    np.testing.assert_array_equal(outputs(result, tmp_path, X)[0], np.concatenate([2 * X, X * X]))


def concatenate(region: Region, build: RegionSite) -> None:
    m = region.matches[0].result
    body = "    memcpy(y, a, 32);\n    memcpy(y + 8, b, 32);"
    build.call(
        "concat",
        body,
        [Argument("a", m.inputs[0]), Argument("b", m.inputs[1]), written("y", m.outputs[0])],
        includes=["string.h"],
    )  # type: ignore[arg-type]


def test_a_concatenation_in_a_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(patterns=(Claim("concat", op("Concat", axis=0)),), lower=concatenate))
    nodes = [node("Tanh", ["x"], ["t"]), node("Concat", ["x", "t"], ["y"], axis=0)]
    result = compiled(model(nodes, [tensor("x", [2, 4])], [tensor("y", [4, 4])]), tmp_path, "unit,c")
    np.testing.assert_allclose(outputs(result, tmp_path, X)[0], np.concatenate([X, np.tanh(X)]), rtol=1e-5)


def test_a_region_in_a_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three turns, each of which adds and takes the hyperbolic tangent."""
    body = helper.make_graph(
        [node("Add", ["v", "v"], ["s"]), node("Tanh", ["s"], ["w"]), node("Identity", ["go"], ["on"])],
        "body",
        [
            tensor("turn", [], onnx.TensorProto.INT64),
            tensor("go", [], onnx.TensorProto.BOOL),
            tensor("v", [2, 4]),
        ],
        [tensor("on", [], onnx.TensorProto.BOOL), tensor("w", [2, 4])],
    )
    proto = model(
        [node("Loop", ["n", "", "x"], ["y"], body=body)],
        [tensor("x", [2, 4])],
        [tensor("y", [2, 4])],
        {"n": np.asarray(3, np.int64)},
    )
    install(monkeypatch, unit(patterns=(elementwise("Add"),)))
    result = compiled(proto, tmp_path, "unit,c")
    assert "(unit:add)" in result.texts["m.c"]
    expected = X
    for _ in range(3):
        expected = np.tanh(2 * expected)
    np.testing.assert_allclose(outputs(result, tmp_path, X)[0], expected, rtol=1e-5)


def test_the_text_of_docs_targets(tmp_path: Path) -> None:
    """The twenty lines of docs/targets.md compile and run."""
    root = Path(__file__).resolve().parents[2]
    (text,) = re.findall(r"```python\n(.*?)```", (root / "docs/targets.md").read_text(), re.DOTALL)
    (tmp_path / "fast.py").write_text(text)
    header = (
        "static inline void fast_add(const float *a, const float *b, float *y, unsigned n) { for "
        "(unsigned k = 0; k < n; ++k) { y[k] = a[k] + b[k]; } }\n"
    )
    proto = model([node("Add", ["x", "x"], ["y"])], [tensor("x", [2, 4])], [tensor("y", [2, 4])])
    result = compiled(proto, tmp_path, "fast,c", plugins=(tmp_path / "fast.py",))
    np.testing.assert_array_equal(outputs(result, tmp_path, X, texts={"fast.h": header})[0], 2 * X)
