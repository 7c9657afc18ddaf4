"""Small ONNX models for tests, built in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18


def tensor(
    name: str, shape: Sequence[int | str | None] | None, dtype: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    """An input or output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = OPSET,
    domains: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of one graph; nothing of it is checked."""
    initial = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, initial)
    opsets = [
        helper.make_opsetid("", opset),
        *(helper.make_opsetid(d, v) for d, v in (domains or {}).items()),
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions)


def save(proto: onnx.ModelProto, path: Path) -> Path:
    """Write without any check."""
    path.write_bytes(proto.SerializeToString())
    return path


def unary(
    op: str, shape: Sequence[int | str | None] = (1, 4), x: str = "x", y: str = "y", **attributes: Any
) -> onnx.ModelProto:
    """y = op(x) of one node."""
    return model(
        [helper.make_node(op, [x], [y], name="node", **attributes)], [tensor(x, shape)], [tensor(y, None)]
    )


def small_cnn() -> onnx.ModelProto:
    """Convolution, batch normalisation, activation, pooling, residual addition, reshape, product, softmax."""
    rng = np.random.default_rng(0)

    def real(*shape: int) -> np.ndarray:
        return np.asarray(rng.normal(size=shape) * 0.5, dtype=np.float32)

    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], name="conv1"),
        node("BatchNormalization", ["c1", "scale", "bias", "mean", "var"], ["n1"], name="norm"),
        node("Relu", ["n1"], ["r1"], name="relu"),
        node("Conv", ["r1", "w2"], ["c2"], pads=[1, 1, 1, 1], name="conv2"),
        node("Add", ["c2", "r1"], ["a"], name="residual"),
        node("MaxPool", ["a"], ["p"], kernel_shape=[2, 2], strides=[2, 2], name="pool"),
        node("Reshape", ["p", "shape"], ["f"], name="flatten"),
        node("Gemm", ["f", "w3", "b3"], ["g"], transB=1, name="dense"),
        node("Softmax", ["g"], ["y"], name="softmax"),
    ]
    constants = {
        "w1": real(4, 2, 3, 3),
        "b1": real(4),
        "scale": real(4),
        "bias": real(4),
        "mean": real(4),
        "var": np.abs(real(4)) + 0.5,
        "w2": real(4, 4, 3, 3),
        "shape": np.asarray([1, -1], np.int64),
        "w3": real(5, 36),
        "b3": real(5),
    }
    return model(nodes, [tensor("x", [1, 2, 6, 6])], [tensor("y", [1, 5])], constants)
