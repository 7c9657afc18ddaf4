"""The whole output of two small models, to be read in review: pytest tests/emit/test_golden.py --update-golden writes it anew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from aot_model.emit.view import Options
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor

GOLDEN = Path(__file__).parent / "golden"
node = helper.make_node


def dense() -> onnx.ModelProto:
    """One dense layer with an activation."""
    weights = np.arange(-6, 6, dtype=np.float32).reshape(3, 4) / 4
    nodes = [node("Gemm", ["features", "w", "b"], ["g"], transB=1, name="dense"), node("Relu", ["g"], ["scores"], name="relu")]
    return model(nodes, [tensor("features", [1, 4])], [tensor("scores", [1, 3])], {"w": weights, "b": np.asarray([0.5, 0, -0.5], np.float32)})


def movement() -> onnx.ModelProto:
    """No kernel: a transpose, a slice and element-wise operators in fused loops, a concatenation, a reduction."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 2, 1], name="turn"), node("Slice", ["t", "one", "three", "one"], ["s"], name="cut"), node("Sigmoid", ["s"], ["a"], name="gate"),
        node("Mul", ["a", "s"], ["m"], name="swish"), node("Concat", ["m", "s"], ["c"], axis=1, name="join"), node("ReduceMean", ["c", "one"], ["y"], keepdims=0, name="mean"),
    ]  # fmt: skip
    constants = {"one": np.asarray([1], np.int64), "three": np.asarray([3], np.int64)}
    return model(nodes, [tensor("x", [1, 2, 4])], [tensor("y", [1, 2])], constants)


CASES = {
    "dense": (dense, Options()),
    "movement": (movement, Options(workspace="caller", io="workspace", metadata="size")),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    make, options = CASES[name]
    compiled = compile_model(Request(save(make(), tmp_path / f"{name}.onnx"), name, "c", library=options))
    digest = compiled.view.sha256
    texts = {n: t.replace(digest, "0" * 64) for n, t in compiled.texts.items()}  # protobuf's bytes may change with its version
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for file, text in texts.items():
            (GOLDEN / file).write_text(text)
        return
    for file, text in texts.items():
        assert text == (GOLDEN / file).read_text(), f"{file} has changed: read it, then run with --update-golden"
