"""Small models whose generated C is read: one for each family of kernels, and two for the text around
them.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from onnx_models import model, tensor

node = helper.make_node


def dense() -> onnx.ModelProto:
    """One dense layer with an activation."""
    weights = np.arange(-6, 6, dtype=np.float32).reshape(3, 4) / 4
    nodes = [
        node("Gemm", ["features", "w", "b"], ["g"], transB=1, name="dense"),
        node("Relu", ["g"], ["scores"], name="relu"),
    ]
    return model(
        nodes,
        [tensor("features", [1, 4])],
        [tensor("scores", [1, 3])],
        {"w": weights, "b": np.asarray([0.5, 0, -0.5], np.float32)},
    )


def movement() -> onnx.ModelProto:
    """No kernel: a transpose, a slice and element-wise operators in fused loops, a concatenation, a
    reduction.
    """
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 2, 1], name="turn"),
        node("Slice", ["t", "one", "three", "one"], ["s"], name="cut"),
        node("Sigmoid", ["s"], ["a"], name="gate"),
        node("Mul", ["a", "s"], ["m"], name="swish"),
        node("Concat", ["m", "s"], ["c"], axis=1, name="join"),
        node("ReduceMean", ["c", "one"], ["y"], keepdims=0, name="mean"),
    ]
    constants = {"one": np.asarray([1], np.int64), "three": np.asarray([3], np.int64)}
    return model(nodes, [tensor("x", [1, 2, 4])], [tensor("y", [1, 2])], constants)


def integer() -> onnx.ModelProto:
    """A convolution, a depthwise one, pooling and a dense layer, in integers by QDQ."""
    rng = np.random.default_rng(1)
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, np.ndarray] = {
        "s": np.float32(1 / 32),
        "z": np.int8(3),
        "ws": np.float32(1 / 64),
        "wz": np.int8(0),
    }

    def quantised(value: str) -> str:
        nodes.append(node("QuantizeLinear", [value, "s", "z"], [f"{value}_q"]))
        nodes.append(node("DequantizeLinear", [f"{value}_q", "s", "z"], [f"{value}_d"]))
        return f"{value}_d"

    def weights(name: str, shape: tuple[int, ...]) -> str:
        constants[name] = rng.integers(-127, 128, shape).astype(np.int8)
        nodes.append(node("DequantizeLinear", [name, "ws", "wz"], [f"{name}_d"]))
        return f"{name}_d"

    x = quantised("x")
    nodes.append(node("Conv", [x, weights("w0", (8, 3, 3, 3))], ["a"], name="conv", pads=[1, 1, 1, 1]))
    nodes.append(
        node(
            "Conv",
            [quantised("a"), weights("w1", (8, 1, 3, 3))],
            ["b"],
            name="depthwise",
            group=8,
            pads=[1, 1, 1, 1],
        )
    )
    nodes.append(node("AveragePool", [quantised("b")], ["c"], name="pool", kernel_shape=[4, 4]))
    nodes.append(node("Flatten", [quantised("c")], ["d"], name="flat"))
    nodes.append(node("MatMul", ["d", weights("w2", (8, 4))], ["e"], name="dense"))
    nodes.append(node("Identity", [quantised("e")], ["y"]))
    return model(nodes, [tensor("x", [1, 3, 4, 4])], [tensor("y", [1, 4])], constants)


def real() -> onnx.ModelProto:
    """A convolution with an activation, a depthwise one, pooling and a dense layer, in float."""
    rng = np.random.default_rng(2)
    constants = {
        n: rng.integers(-8, 9, s).astype(np.float32) / 8
        for n, s in (("w0", (8, 3, 3, 3)), ("w1", (8, 1, 3, 3)), ("w2", (8, 4)))
    }
    nodes = [
        node("Conv", ["x", "w0"], ["a"], name="conv", pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"], name="relu"),
        node("Conv", ["b", "w1"], ["c"], name="depthwise", group=8, pads=[1, 1, 1, 1]),
        node("MaxPool", ["c"], ["d"], name="pool", kernel_shape=[4, 4]),
        node("Flatten", ["d"], ["e"], name="flat"),
        node("MatMul", ["e", "w2"], ["y"], name="dense"),
    ]
    return model(nodes, [tensor("x", [1, 3, 4, 4])], [tensor("y", [1, 4])], constants)


def recurrent() -> onnx.ModelProto:
    """An LSTM."""
    rng = np.random.default_rng(3)
    constants = {
        n: rng.integers(-8, 9, s).astype(np.float32) / 8
        for n, s in (("w", (1, 16, 3)), ("r", (1, 16, 4)), ("b", (1, 32)))
    }
    return model(
        [node("LSTM", ["x", "w", "r", "b"], ["y"], name="lstm", hidden_size=4)],
        [tensor("x", [5, 1, 3])],
        [tensor("y", [5, 1, 1, 4])],
        constants,
    )


FAMILIES = {"integer": integer, "real": real, "recurrent": recurrent}
