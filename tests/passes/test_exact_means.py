"""Means of quantised tensors whose scales are powers of two: equal to ONNX Runtime, ties among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from aot_model.cli import main
from aot_model.frontends.read import read_model
from aot_model.ir.graph import Graph
from aot_model.passes.fuse_qdq import fuse_qdq
from onnx_models import save

SCALE = 1 / 64
CASES = [(kind, size, to) for kind in ("AveragePool", "GlobalAveragePool", "ReduceMean")
         for size, to in ((3, 1 / 32), (6, 1 / 64), (7, 1 / 16), (3, 1 / 64))]  # fmt: skip


def means(dtype: str) -> onnx.ModelProto:
    """Every kind of mean over windows of several sizes, of one model: x0, x1, … to y0, y1, …"""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    constants = {"s": np.float32(SCALE), "z": np.asarray(3, dtype), "axes": np.asarray([2, 3], np.int64)}
    nodes, inputs, outputs = [], [], []
    for k, (kind, size, to) in enumerate(CASES):
        constants[f"s{k}"] = np.float32(to)
        shape = [1, 2, 20, 20] if kind == "AveragePool" else [60, 2, size, size]
        attributes = {"kernel_shape": [size, size]} if kind == "AveragePool" else {}
        nodes += [
            helper.make_node("DequantizeLinear", [f"x{k}", "s", "z"], [f"f{k}"]),
            helper.make_node(kind, [f"f{k}", "axes"][: 1 + (kind == "ReduceMean")], [f"m{k}"], **attributes),
            helper.make_node("QuantizeLinear", [f"m{k}", f"s{k}", "z"], [f"y{k}"]),
        ]
        inputs.append(helper.make_tensor_value_info(f"x{k}", element, shape))
        outputs.append(helper.make_tensor_value_info(f"y{k}", element, None))
    graph = helper.make_graph(
        nodes,
        "means",
        inputs,
        outputs,
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def exact_quotients(graph: Graph) -> int:
    return sum(n.kind == "ExactQuotient" for n in graph.nodes)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_ties_are_those_of_onnx_runtime(dtype: str, tmp_path: Path) -> None:
    path = save(means(dtype), tmp_path / "m.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    rng, limits = np.random.default_rng(5), np.iinfo(dtype)
    feed = {
        i.name: np.asarray(rng.integers(limits.min, limits.max + 1, i.shape), dtype)
        for i in session.get_inputs()
    }
    outputs = session.run(None, feed)
    vectors = {f"in_{k}": v[None] for k, v in enumerate(feed.values())}
    np.savez(tmp_path / "m.npz", **vectors, **{f"out_{k}": v[None] for k, v in enumerate(outputs)})
    assert main(["verify", str(path), "--vectors", str(tmp_path / "m.npz"), "--target", "c"]) == 0


def test_only_where_there_are_ties(tmp_path: Path) -> None:
    """3x3 to the same scale has none: nine is odd."""
    graph = read_model(save(means("int8"), tmp_path / "m.onnx")).graph
    assert fuse_qdq(graph)
    assert exact_quotients(graph) == 9
    assert not {n.kind for n in graph.nodes} & {"QuantizeLinear", "DequantizeLinear"}
