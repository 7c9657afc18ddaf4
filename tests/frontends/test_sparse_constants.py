"""ONNX: sparse initialisers and sparse Constant nodes are dense ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node as node

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases
from onnx_models import model, save, tensor

DENSE = np.asarray([[1.5, 0, 0, 0], [0, -2, 0, 0], [0, 0, 0, 0.5]], np.float32)
FLAT, AXES = [0, 5, 11], [0, 0, 1, 1, 2, 3]


def sparse(indices: list[int], shape: list[int], name: str = "w") -> onnx.SparseTensorProto:
    values = helper.make_tensor(name, TensorProto.FLOAT, [3], [1.5, -2.0, 0.5])
    return helper.make_sparse_tensor(
        values, helper.make_tensor("", TensorProto.INT64, shape, indices), [3, 4]
    )


def in_graph(constant: onnx.SparseTensorProto) -> onnx.ModelProto:
    proto = model([node("MatMul", ["x", "w"], ["y"])], [tensor("x", [2, 3])], [tensor("y", [2, 4])])
    proto.graph.sparse_initializer.append(constant)
    return proto


def in_branches(constant: onnx.SparseTensorProto) -> onnx.ModelProto:
    """Of a branch; a Constant node of the other."""
    then = helper.make_graph(
        [node("MatMul", ["x", "w"], ["a"])], "then", [], [tensor("a", [2, 4])], sparse_initializer=[constant]
    )
    otherwise = helper.make_graph(
        [node("Constant", [], ["v"], sparse_value=constant), node("MatMul", ["x", "v"], ["b"])],
        "else",
        [],
        [tensor("b", [2, 4])],
    )
    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Greater", ["s", "zero"], ["c"]),
        node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise),
    ]
    return model(nodes, [tensor("x", [2, 3])], [tensor("y", [2, 4])], {"zero": np.float32(0)})


@pytest.mark.parametrize("indices, shape", [(FLAT, [3]), (AXES, [3, 2])])
def test_numbers(indices: list[int], shape: list[int]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    cases = [
        Case(f"{make.__name__}{sign}", make(sparse(indices, shape)), (x * np.float32(sign),))
        for make in (in_graph, in_branches)
        for sign in (1, -1)
    ]
    for case, outcome in zip(
        cases, run_cases(cases, "c", jobs=1, sanitize=False, flags=("-O0",)), strict=True
    ):
        assert outcome.status == "ok", outcome.message
        np.testing.assert_array_equal(outcome.outputs[0], case.inputs[0] @ DENSE)


@pytest.mark.parametrize(
    "indices, shape, words",
    [
        ([0, 5, 12], [3], "outside"),
        ([0, -1, 2], [3], "outside"),
        ([0, 0, 1, 4, 2, 3], [3, 2], "outside"),
        ([0, 1], [2], "indices of the shape"),
        ([0, 1, 2], [4], "damaged"),
    ],
)
def test_damaged(indices: list[int], shape: list[int], words: str, tmp_path: Path) -> None:
    constant = sparse(FLAT, [3])
    constant.indices.CopyFrom(onnx.TensorProto(data_type=TensorProto.INT64, dims=shape, int64_data=indices))
    with pytest.raises(CompileError, match=f"E102.*{words}|{words}"):
        compile_model(Request(save(in_graph(constant), tmp_path / "m.onnx"), "m", "c"))


def test_a_name_twice(tmp_path: Path) -> None:
    proto = in_graph(sparse(FLAT, [3]))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(DENSE, "w"))
    with pytest.raises(CompileError, match="'w' is written more than once"):
        compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
