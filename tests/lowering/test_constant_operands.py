"""Kernels whose operands are all constants, too large to be folded: they read them as they read inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from aot_model.host.program import build
from aot_model.layers.choice import open_reference
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor

RNG = np.random.default_rng(3)
CASES: dict[str, tuple[onnx.NodeProto, Mapping[str, tuple[int, ...]]]] = {
    "MatMul": (helper.make_node("MatMul", ["a", "b"], ["y"]), {"a": (300, 4), "b": (4, 300)}),
    "Gemm": (helper.make_node("Gemm", ["a", "b", "c"], ["y"]), {"a": (300, 4), "b": (4, 300), "c": (300,)}),
    "MaxPool": (helper.make_node("MaxPool", ["a"], ["y"], kernel_shape=[2, 2]), {"a": (1, 4, 50, 50)}),
    "AveragePool": (
        helper.make_node("AveragePool", ["a"], ["y"], kernel_shape=[2, 2]),
        {"a": (1, 4, 50, 50)},
    ),
    "GlobalAveragePool": (helper.make_node("GlobalAveragePool", ["a"], ["y"]), {"a": (1, 2000, 10, 10)}),
}


@pytest.mark.parametrize("target", ["c", "host", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("kind", CASES)
def test_operands_that_are_all_constants(kind: str, target: str, tmp_path: Path) -> None:
    node, shapes = CASES[kind]
    node.name = "node"
    constants = {k: RNG.standard_normal(s).astype(np.float32) for k, s in shapes.items()}
    proto = model(
        [node, helper.make_node("Add", ["y", "x"], ["z"])],
        [tensor("x", (1,))],
        [tensor("z", None)],
        constants,
    )
    path = save(proto, tmp_path / "model.onnx")
    compiled = compile_model(Request(path, "net", target))
    assert "node" in {call.layer for call in compiled.view.program.calls()}
    if target.startswith("cortex"):
        return
    x = [np.array([0.5], np.float32)]
    (got,) = build(compiled.view, compiled.texts, tmp_path / "build").run([x])[0]
    (want,) = open_reference(path, "onnx", None, {}).run(x, ["z"]).values()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
