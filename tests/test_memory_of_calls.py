"""What the memory plan makes of a call that reads one buffer through several parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from aot_model.host_run import build
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, small_cnn, tensor

X = np.random.default_rng(1).normal(size=(1, 2, 6, 6)).astype(np.float32)


def _one_layer() -> object:
    weights = np.random.default_rng(2).normal(size=(2, 2, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Conv", ["r", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "r"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    return model(nodes, [tensor("x", [1, 2, 6, 6])], [tensor("y", [1, 2, 6, 6])], {"w": weights})


@pytest.mark.parametrize("make", [small_cnn, _one_layer])
def test_convolution_that_adds_its_own_input(make: object, tmp_path: Path) -> None:
    """The sum may be written over the addend, but the same memory is the convolution's input."""
    path = save(make(), tmp_path / "m.onnx")  # type: ignore[operator]
    want = onnxruntime.InferenceSession(str(path)).run(None, {"x": X})[0]
    compiled = compile_model(Request(path, "m", "c"))
    got = build(compiled.view, compiled.texts, tmp_path / "c", ("-O1",)).run([[X]])[0][0]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
