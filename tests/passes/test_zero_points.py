"""Quantised products whose weights have a zero point for each channel are products of bytes and sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.frontends.onnx import read_onnx
from aot_model.passes.manager import run_passes
from aot_model.targets.registry import parse_target
from batch import Case, run_cases

KINDS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any], int, str]] = {
    "conv": ("Conv", (2, 3, 6, 7), (5, 3, 3, 3), {"pads": [1, 0, 2, 1], "strides": [2, 1]}, 0, "Convolution"),
    "line": ("Conv", (1, 4, 12), (3, 4, 5), {"pads": [2, 2], "dilations": [2]}, 0, "Convolution"),
    "volume": ("Conv", (1, 2, 4, 4, 5), (3, 2, 2, 2, 2), {"pads": [1] * 6}, 0, "Convolution"),
    "depthwise": ("Conv", (1, 6, 5, 5), (6, 1, 3, 3), {"group": 6, "pads": [1] * 4}, 0, ""),
    "groups": ("Conv", (1, 6, 5, 5), (4, 3, 3, 3), {"group": 2}, 0, ""),
    "transposed": ("ConvTranspose", (1, 3, 4, 4), (3, 5, 3, 3), {"strides": [2, 2]}, 1, ""),
    "rows": ("MatMul", (7, 33), (33, 6), {}, 1, "MatMul"),
    "one row": ("MatMul", (1, 40), (40, 9), {}, 1, "MatMul"),
    "batches": ("MatMul", (2, 3, 5, 8), (8, 4), {}, 1, "MatMul"),
    "gemm": ("Gemm", (4, 20), (7, 20), {"transB": 1}, 0, "MatMul"),
}
"""(operator, shape of x, of the weights, attributes, the axis of channels, the kind of integers or none)."""


def _model(kind: str, weights: str, bias: bool, rng: np.random.Generator) -> onnx.ModelProto:
    name, x, w, attributes, axis, _ = KINDS[kind]
    signed = not weights.startswith("u")
    bits = 4 if "4" in weights else 8
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    channels = w[axis]
    element = getattr(TensorProto, weights.upper())

    def narrow(array: np.ndarray, label: str) -> onnx.TensorProto:
        return helper.make_tensor(label, element, array.shape, array.reshape(-1).tolist())

    zeros = rng.integers(low, high + 1, channels)
    given = [
        numpy_helper.from_array(np.float32(0.031), "sx"), numpy_helper.from_array(np.uint8(117), "zx"),
        numpy_helper.from_array(np.float32(0.2), "sy"), numpy_helper.from_array(np.uint8(131), "zy"),
        numpy_helper.from_array((rng.uniform(0.01, 0.03, channels) * 256 / 2**bits).astype(np.float32), "sw"),
        narrow(rng.integers(low, high + 1, w), "w"), narrow(zeros, "zw"),
    ]  # fmt: skip
    if bias:
        given.append(numpy_helper.from_array(rng.normal(size=channels).astype(np.float32), "b"))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=axis),
        helper.make_node(name, ["xd", "wd", *(["b"] if bias else [])], ["t"], **attributes),
        helper.make_node("QuantizeLinear", ["t", "sy", "zy"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "zeros",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        given,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _expected(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """As written: the runtime's own fusion asks for one zero point."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize("kind", KINDS)
def test_channels_with_zero_points_of_their_own(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(sum(map(ord, kind)))
    types = ("int8", "uint8", "int4", "uint4")
    biases = (False, True) if KINDS[kind][0] != "MatMul" else (False,)
    models = {(t, b): _model(kind, t, b, rng) for t in types for b in biases}
    x = rng.normal(size=KINDS[kind][1]).astype(np.float32)
    outcomes = run_cases([Case(f"{t} {b}", m, (x,)) for (t, b), m in models.items()], "c")
    for (key, model), outcome in zip(models.items(), outcomes, strict=True):
        assert outcome.status == "ok", (key, outcome.message)
        theirs = _expected(model, x).astype(int)
        away = np.abs(outcome.outputs[0].astype(int) - theirs)
        assert away.max() <= 1 and np.count_nonzero(away) <= 1 + away.size // 50, (key, away.max())
        assert np.ptp(theirs) > 20, key
    integer = KINDS[kind][5]
    path = tmp_path / "zeros.onnx"
    onnx.save(models["int8", False], path)
    graph = read_onnx(path).graph
    run_passes(graph, parse_target("c"))
    products = [n for n in graph.nodes if n.kind.startswith("Convolution") or n.kind == "MatMul"]
    assert all(n.outputs[0].dtype.is_integer == bool(integer) for n in products) and products
