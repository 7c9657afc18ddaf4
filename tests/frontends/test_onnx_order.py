"""Nodes out of order, circles, and dimensions without a name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.errors import CompileError
from aot_model.frontends.model import Bindings
from aot_model.frontends.onnx import read_onnx

FLOAT = TensorProto.FLOAT


def _read(
    tmp_path: Path, nodes: list[onnx.NodeProto], shape: tuple[object, ...] = (2, 3), **dims: int
) -> object:
    x, y = helper.make_tensor_value_info("x", FLOAT, shape), helper.make_tensor_value_info("y", FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], [onnx.numpy_helper.from_array(np.float32(2), "two")])
    path = tmp_path / "m.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
    )
    return read_onnx(path, Bindings({k.replace("__", ":"): v for k, v in dims.items()})).graph


def test_nodes_are_sorted(tmp_path: Path) -> None:
    """Whatever the order of the file: nearest to it."""
    nodes = [
        helper.make_node(*a)
        for a in (
            ("Add", ["a", "c"], ["y"]),
            ("Relu", ["b"], ["c"]),
            ("Neg", ["x"], ["a"]),
            ("Mul", ["a", "two"], ["b"]),
        )
    ]
    assert [n.kind for n in _read(tmp_path, nodes).nodes] == ["Neg", "Mul", "Relu", "Add"]  # type: ignore[attr-defined]


def test_order_in_bodies(tmp_path: Path) -> None:
    """A body reads what a later node of the outer graph computes; its own nodes are out of order too."""
    out = helper.make_tensor_value_info("r", FLOAT, None)
    inner = [helper.make_node("Add", ["q", "a"], ["r"]), helper.make_node("Relu", ["a"], ["q"])]
    then, otherwise = (
        helper.make_graph(n, "b", [], [out]) for n in (inner, [helper.make_node("Neg", ["a"], ["r"])])
    )
    total = helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0)
    nodes = [
        helper.make_node("If", ["t"], ["y"], then_branch=then, else_branch=otherwise),
        helper.make_node("Greater", ["m", "two"], ["t"]),
        total,
        helper.make_node("Mul", ["x", "two"], ["a"]),
    ]
    graph = _read(tmp_path, nodes)
    assert [n.kind for n in graph.nodes] == ["ReduceMax", "Greater", "Mul", "If"]  # type: ignore[attr-defined]
    assert [n.kind for n in graph.nodes[-1].op.then_branch.nodes] == ["Relu", "Add"]  # type: ignore[attr-defined]


def test_a_circle_is_an_error(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Add", ["x", "c"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Neg", ["b"], ["c"], name="last"),
        helper.make_node("Abs", ["c"], ["y"], name="outside"),
    ]
    with pytest.raises(CompileError, match="in a circle: ") as error:
        _read(tmp_path, nodes)
    assert all(f"'{name}'" in str(error.value) for name in ("first", "b", "last")) and "outside" not in str(
        error.value
    )


@pytest.mark.parametrize("name", ["?", "", "None", "-1"])
def test_nameless_dimensions_are_independent(tmp_path: Path, name: str) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    graph = _read(tmp_path, nodes, (name, name, 5, name), x__1=3, x__3=7)
    assert graph.inputs[0].shape == (1, 3, 5, 7)  # type: ignore[attr-defined]
    with pytest.raises(CompileError, match="--dim x:1=N"):
        _read(tmp_path, nodes, (name, name))


def test_equal_names_are_one_dimension(tmp_path: Path) -> None:
    assert _read(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], ("n", "n", "m"), n=3, m=2).inputs[
        0
    ].shape == (3, 3, 2)  # type: ignore[attr-defined]
