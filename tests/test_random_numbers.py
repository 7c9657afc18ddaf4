"""Random operators over several runs: the generator goes on, and starts again as it did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from aot_model.host.program import build
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor


def _runs(proto: onnx.ModelProto, count: int, folder: Path) -> list[np.ndarray]:
    compiled = compile_model(Request(save(proto, folder / "m.onnx"), "m", "c"))
    program = build(compiled.view, compiled.texts, folder)
    x = np.full((3, 5), 0.25, np.float32)
    first, again = ([out[0] for out in program.run([[x]] * count)] for _ in range(2))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    return first


def _model(kind: str, **attributes: object) -> onnx.ModelProto:
    node = helper.make_node(kind, ["x"], ["y"], name="noise", **attributes)
    return model([node], [tensor("x", [3, 5])], [tensor("y", None)])


def test_the_generator_goes_on(tmp_path: Path) -> None:
    expected = np.random.RandomState(9)
    for got in _runs(_model("RandomUniformLike", seed=9.0), 60, tmp_path):
        np.testing.assert_array_equal(got, expected.rand(3, 5).astype(np.float32))


def test_without_a_seed_the_name_is_the_seed(tmp_path: Path) -> None:
    one, two = _runs(_model("RandomUniformLike"), 2, tmp_path)
    other = _model("RandomUniformLike")
    other.graph.node[0].name = "more noise"
    assert not np.array_equal(one, two) and not np.array_equal(one, _runs(other, 1, tmp_path)[0])


def test_distributions(tmp_path: Path) -> None:
    hits = np.stack(_runs(_model("Bernoulli"), 400, tmp_path))
    assert set(np.unique(hits)) == {0, 1} and abs(hits.mean() - 0.25) < 0.03
    normal = np.stack(_runs(_model("RandomNormalLike", mean=2.0, scale=0.5), 400, tmp_path))
    assert abs(normal.mean() - 2) < 0.03 and abs(normal.std() - 0.5) < 0.03
    # Three classes with weights 1, 2, 5.
    weights = helper.make_node(
        "Constant", [], ["w"], value=helper.make_tensor("w", TensorProto.FLOAT, [1, 3], np.log([1, 2, 5]))
    )
    drawn = model(
        [weights, helper.make_node("Multinomial", ["w"], ["y"], sample_size=8, name="draw")],
        [tensor("x", [3, 5])],
        [tensor("y", None, TensorProto.INT32)],
    )
    counts = np.bincount(np.concatenate(_runs(drawn, 400, tmp_path)).reshape(-1), minlength=3)
    np.testing.assert_allclose(counts / counts.sum(), np.asarray([1, 2, 5]) / 8, atol=0.03)
