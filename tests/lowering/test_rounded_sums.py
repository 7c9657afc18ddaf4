"""tanh and the logistic function of sums that a Cortex-M4 rounds one by one are rounded so, those of other
numbers as ONNX Runtime's are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from aot_model.emit.view import Options
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor

W = {
    "w": np.eye(4, dtype=np.float32),
    "scale": np.float32(0.5),
    "zero": np.int8(0),
    "two": np.full((1, 4), 2, np.float32),
    "bytes": np.eye(4, dtype=np.int8),
}


def _text(nodes: list[NodeProto], target: str, folder: Path, kind: int = TensorProto.FLOAT) -> str:
    used = {name for node in nodes for name in node.input}
    constants = {k: v for k, v in W.items() if k in used}
    proto = model(nodes, [tensor("x", (1, 4), kind)], [tensor("y", None)], constants)
    found = compile_model(
        Request(save(proto, folder / "m.onnx"), "m", target, library=Options(metadata="none"))
    )
    return found.texts["m.c"]


PRODUCT = helper.make_node("MatMul", ["x", "w"], ["p"])
BEHIND = [PRODUCT, helper.make_node("Sigmoid", ["p"], ["y"])]
LATER = [
    PRODUCT,
    helper.make_node("Abs", ["p"], ["q"]),
    helper.make_node("Tanh", ["q"], ["t"]),
    helper.make_node("Mul", ["t", "p"], ["m"]),
    helper.make_node("Concat", ["m", "two"], ["y"], axis=0),
]
BEHIND_A_TAIL = [
    PRODUCT,
    helper.make_node("Add", ["p", "x"], ["q"]),
    helper.make_node("MatMul", ["q", "w"], ["r"]),
    helper.make_node("Tanh", ["q"], ["t"]),
    helper.make_node("Mul", ["r", "t"], ["y"]),
]
BESIDE = [
    helper.make_node("Abs", ["x"], ["a"]),
    helper.make_node("MatMul", ["a", "w"], ["p"]),
    helper.make_node("Tanh", ["a"], ["t"]),
    helper.make_node("Add", ["p", "t"], ["y"]),
]
BEFORE = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mul", ["t", "two"], ["y"])]
QUANTISED = [
    helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["d"]),
    helper.make_node("Tanh", ["d"], ["t"]),
    helper.make_node("Mul", ["t", "two"], ["y"]),
]
OF_INTEGERS = [
    helper.make_node("MatMulInteger", ["x", "bytes"], ["p"]),
    helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
    helper.make_node("Mul", ["f", "scale"], ["s"]),
    helper.make_node("Tanh", ["s"], ["y"]),
]


@pytest.mark.parametrize("nodes", [BEHIND, LATER, BEHIND_A_TAIL])
def test_of_sums(nodes: list[NodeProto], tmp_path: Path) -> None:
    assert "_apart_float32(" in _text(nodes, "cortex-m4", tmp_path)
    for target in ("c", "cortex-m7", "cortex-m55"):
        assert "_apart_float32(" not in _text(nodes, target, tmp_path)


def test_of_other_numbers(tmp_path: Path) -> None:
    for nodes in (BEFORE, BESIDE):
        assert "_apart_float32(" not in _text(nodes, "cortex-m4", tmp_path)
    for nodes in (QUANTISED, OF_INTEGERS):
        assert "_apart_float32(" not in _text(nodes, "cortex-m4", tmp_path, TensorProto.INT8)
