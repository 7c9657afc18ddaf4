"""Outputs keep the names of the model, whatever becomes of the operators that made them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

from aot_model.emit.view import Options
from aot_model.pipeline import Request, compile_model

SIZES = {"sizes": np.asarray([1, 2, 4, 4]), "ones": np.ones(4, np.int64), "none": np.zeros(8, np.int64)}
CONSTANTS = {
    **SIZES,
    "scales": np.ones(4, np.float32),
    "zero": np.zeros(1, np.float32),
    "begin": np.zeros(1, np.int64),
    "end": np.ones(1, np.int64),
    "axes": np.zeros(0, np.int64),
}
NOTHING = {
    "Identity": make_node("Identity", ["a"], ["y"]),
    "Dropout": make_node("Dropout", ["a"], ["y"]),
    "Reshape": make_node("Reshape", ["a", "sizes"], ["y"]),
    "Resize": make_node("Resize", ["a", "", "scales"], ["y"]),
    "Transpose": make_node("Transpose", ["a"], ["y"], perm=[0, 1, 2, 3]),
    "Add": make_node("Add", ["a", "zero"], ["y"]),
    "Concat": make_node("Concat", ["a"], ["y"], axis=1),
    "Slice": make_node("Slice", ["a", "begin", "end"], ["y"]),
    "Pad": make_node("Pad", ["a", "none"], ["y"]),
    "Cast": make_node("Cast", ["a"], ["y"], to=1),
    "Expand": make_node("Expand", ["a", "sizes"], ["y"]),
    "Tile": make_node("Tile", ["a", "ones"], ["y"]),
    "AveragePool": make_node("AveragePool", ["a"], ["y"], kernel_shape=[1, 1]),
    "MaxPool": make_node("MaxPool", ["a"], ["y"], kernel_shape=[1, 1]),
    "Relu": make_node("Relu", ["a"], ["y"]),
    "ReduceSum": make_node("ReduceSum", ["a", "axes"], ["y"], noop_with_empty_axes=1),
}
"""Nodes that change nothing of what a Relu gives."""


def names(nodes: list[NodeProto], outputs: list[str], folder: Path) -> list[str]:
    """The names of the library's outputs."""
    read = {name for node in nodes for name in node.input}
    graph = make_graph(
        nodes,
        "g",
        [make_tensor_value_info("x", 1, [1, 2, 4, 4])],
        [make_tensor_value_info(name, 1, [1, 2, 4, 4]) for name in outputs],
        [numpy_helper.from_array(data, name) for name, data in CONSTANTS.items() if name in read],
    )
    onnx.save(make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    view = compile_model(Request(folder / "m.onnx", "m", "c", {}, {}, Options())).view
    assert [port.c_name for port in view.outputs] == [port.buffer.name for port in view.outputs]
    return [port.c_name for port in view.outputs]


@pytest.mark.parametrize("kind", NOTHING)
def test_of_an_operator_that_does_nothing(kind: str, tmp_path: Path) -> None:
    relu, sigmoid = make_node("Relu", ["x"], ["a"]), make_node("Sigmoid", ["a"], ["z"])
    assert names([relu, NOTHING[kind]], ["y"], tmp_path) == ["y"]
    assert names([relu, NOTHING[kind], sigmoid], ["y", "z"], tmp_path) == ["y", "z"]
    assert names([relu, NOTHING[kind]], ["a", "y"], tmp_path) == ["a", "y"]


@pytest.mark.parametrize("kind", NOTHING)
def test_of_the_input_itself(kind: str, tmp_path: Path) -> None:
    node = NodeProto()
    node.CopyFrom(NOTHING[kind])
    node.input[0] = "x"
    assert names([node], ["y"], tmp_path) == ["y"]


def test_of_operators_that_do_the_same(tmp_path: Path) -> None:
    nodes = [make_node("Relu", ["x"], ["a"]), make_node("Relu", ["x"], ["b"])]
    assert names(nodes, ["a", "b"], tmp_path) == ["a", "b"]
