"""`verify`: how far results may be off where a model computes in half precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from onnx.helper import make_node as node

from aot_model.cli import main
from onnx_models import model, save, tensor

STEP = 2.0**-10
"""Of float16, at 1."""


@pytest.mark.parametrize(
    "half, off, right",
    [(True, 0.9 * STEP, True), (True, 4 * STEP, False), (False, 0.9 * STEP, False), (False, 5e-5, True)],
)
def test_of_the_range(
    half: bool, off: float, right: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The inputs and outputs are float32; the small result beside a large one is off."""
    kind = TensorProto.FLOAT16 if half else TensorProto.FLOAT
    nodes = [
        node("Cast", ["x"], ["a"], to=kind),
        node("MatMul", ["a", "a"], ["b"]),
        node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
    ]
    path = save(model(nodes, [tensor("x", [2, 2])], [tensor("y", [2, 2])]), tmp_path / "m.onnx")
    x = np.asarray([[1, 0], [0, 0.125]], np.float32)
    want = x @ x + np.asarray([[0, off], [0, 0]], np.float32)
    np.savez(tmp_path / "v.npz", in_0=x[None], out_0=want[None])
    status = main(["verify", str(path), "--vectors", str(tmp_path / "v.npz"), "--target", "c"])
    assert (status == 0) == right, capsys.readouterr().out
