"""What reports say of the body of a loop that counts: the work of all its turns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.pipeline import Request, compile_model

TURNS, WIDE = 7, 24


def network(turns: int, while_small: bool) -> onnx.ModelProto:
    """x = tanh(x) W, again and again: so often, or while a sum of it is small."""
    weights = np.random.default_rng(3).normal(0, 0.3, (WIDE, WIDE)).astype(np.float32)
    nodes = [helper.make_node("Tanh", ["x_in"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["x_out"])]
    again = "again_in"
    if while_small:
        nodes += [helper.make_node("ReduceSum", ["x_out"], ["total"], keepdims=0),
                  helper.make_node("Less", ["total", "most"], ["again"])]  # fmt: skip
        again = "again"
    else:
        nodes.append(helper.make_node("Identity", [again], ["again"]))
    state = helper.make_tensor_value_info("x_out", TensorProto.FLOAT, [1, WIDE])
    body = helper.make_graph(
        nodes,
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("again_in", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x_in", TensorProto.FLOAT, [1, WIDE]),
        ],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []), state],
    )
    loop = helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)
    constants = {"turns": np.int64(turns), "w": weights, "most": np.float32(3)}
    graph = helper.make_graph(
        [loop],
        "loop",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, WIDE])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(("while_small", "counted"), [(False, TURNS), (True, 1)])
def test_work_of_all_turns(while_small: bool, counted: int, tmp_path: Path) -> None:
    """Of a loop that a condition may end, one turn counts: nobody knows how many there are."""
    onnx.save(network(TURNS, while_small), tmp_path / "loop.onnx")
    view = compile_model(Request(tmp_path / "loop.onnx", "loop", "c")).view
    product, tanh = (next(c for c in view.program.calls() if c.op == op) for op in ("MatMul", "Tanh"))
    assert product.macs == counted * WIDE * WIDE == view.macs
    assert tanh.generic is not None and tanh.generic.operations == counted * 2 * WIDE
