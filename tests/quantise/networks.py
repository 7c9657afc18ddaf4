"""Small float networks with random weights, and data for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray


class Builder:
    """Nodes and constants, each result's name the operator's number."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, data: Array, name: str = "") -> str:
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(data), name))
        return name

    def weights(self, *shape: int) -> str:
        spread = np.sqrt(2 / max(np.prod(shape[1:]), 1))
        by_channel = np.exp(self.rng.normal(0, 0.7, (shape[0], *[1] * (len(shape) - 1))))
        return self.constant((self.rng.normal(0, spread, shape) * by_channel).astype(np.float32))

    def __call__(self, kind: str, *inputs: str, output: str = "", **attributes: object) -> str:
        name = f"n{len(self.nodes)}"
        output = output or name
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=name, **attributes))
        return output

    def conv(self, x: str, out: int, inside: int, size: int = 3, group: int = 1, stride: int = 1) -> str:
        bias = self.constant(self.rng.normal(0, 0.2, out).astype(np.float32))
        pads = [size // 2] * 4
        weights = self.weights(out, inside // group, size, size)
        return self("Conv", x, weights, bias, pads=pads, group=group, strides=[stride, stride])

    def split(self, x: str, outputs: tuple[str, ...]) -> onnx.NodeProto:
        """Equal pieces of the channels, a node that is not in `nodes` yet."""
        return helper.make_node("Split", [x], list(outputs), name="split", axis=1, num_outputs=len(outputs))

    def normalised(self, x: str, channels: int) -> str:
        draw = self.rng.uniform
        scale, shift = draw(0.5, 2, channels), draw(-0.5, 0.5, channels)
        mean, variance = draw(-0.5, 0.5, channels), draw(0.5, 2, channels)
        names = [self.constant(v.astype(np.float32)) for v in (scale, shift, mean, variance)]
        return self("BatchNormalization", x, *names)

    def model(
        self, inputs: dict[str, tuple[int, ...]], outputs: dict[str, tuple[int, ...]], opset: int = 17
    ) -> onnx.ModelProto:
        def infos(ports: dict[str, tuple[int, ...]]) -> list[onnx.ValueInfoProto]:
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ports.items()]

        graph = helper.make_graph(self.nodes, "net", infos(inputs), infos(outputs), self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 8
        onnx.checker.check_model(model, full_check=True)
        return model


def tiny() -> onnx.ModelProto:
    """A convolution and a product."""
    b = Builder(2)
    x = b("Flatten", b("Relu", b.conv("x", 4, 2)))
    b("Gemm", x, b.weights(3, 64), b.constant(np.zeros(3, np.float32)), transB=1, output="y")
    return b.model({"x": (1, 2, 4, 4)}, {"y": (1, 3)})


def mobile(opset: int = 17) -> onnx.ModelProto:
    """What MobileNets are made of: normalisation, depthwise, squeeze and excitation, hard swish, residual,
    concat."""
    b = Builder()
    x = b("Relu", b.normalised(b.conv("x", 8, 3, stride=2), 8))
    y = b("Relu", b.conv(x, 8, 8, group=8))
    y = b.conv(y, 8, 8, size=1)
    x = b("Add", x, y)
    y = b.conv(x, 16, 8, size=1)
    y = b("Mul", y, b("HardSigmoid", y, alpha=1 / 6, beta=0.5))
    z = b("Relu", b.conv(b("GlobalAveragePool", y), 4, 16, size=1))
    z = b("HardSigmoid", b.conv(z, 16, 4, size=1), alpha=1 / 6, beta=0.5)
    y = b("Mul", y, z)
    x = b("Concat", x, y, axis=1)
    x = b("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b("Flatten", b("GlobalAveragePool", x))
    x = b("Gemm", x, b.weights(10, 24), b.constant(np.zeros(10, np.float32)), transB=1)
    b("Softmax", x, output="y", axis=1)
    return b.model({"x": (1, 3, 16, 16)}, {"y": (1, 10)}, opset)


def attention() -> onnx.ModelProto:
    """One layer of a transformer: normalisation, products of activations, softmax, GELU as exporters write
    it."""
    b = Builder(1)

    def dense(x: str, out: int, inside: int) -> str:
        shift = b.constant(b.rng.normal(0, 0.1, out).astype(np.float32))
        weights = b.constant(b.rng.normal(0, inside**-0.5, (inside, out)).astype(np.float32))
        return b("Add", b("MatMul", x, weights), shift)

    def normal(x: str) -> str:
        scale = b.constant(np.exp(b.rng.normal(0, 0.8, 16)).astype(np.float32))
        return b("LayerNormalization", x, scale, b.constant(np.zeros(16, np.float32)))

    half, one, root = (b.constant(np.float32(v)) for v in (0.5, 1.0, 2**0.5))
    n = normal("x")
    q, k, v = (dense(n, 16, 16) for _ in range(3))
    scores = b("Mul", b("MatMul", q, b("Transpose", k, perm=[0, 2, 1])), b.constant(np.float32(0.25)))
    x = b("Add", "x", dense(b("MatMul", b("Softmax", scores, axis=-1), v), 16, 16))
    y = dense(normal(x), 32, 16)
    y = b("Mul", b("Mul", y, half), b("Add", b("Erf", b("Div", y, root)), one))
    x = b("Add", x, dense(y, 16, 32))
    b("ReduceMean", x, output="y", axes=[1], keepdims=0)
    return b.model({"x": (1, 6, 16)}, {"y": (1, 16)})


def data(model: onnx.ModelProto, count: int, seed: int = 3) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    result = {}
    for k, info in enumerate(model.graph.input):
        shape = tuple(d.dim_value for d in info.type.tensor_type.shape.dim)
        result[f"in_{k}"] = rng.normal(0, 1, (count, *shape)).astype(np.float32)
    return result


def saved(folder: Path, model: onnx.ModelProto, count: int = 48, **more: Array) -> tuple[Path, Path]:
    """Files of a model and of data for it."""
    file, samples = folder / "float.onnx", folder / "data.npz"
    onnx.save(model, file)
    np.savez(samples, **{**data(model, count), **more})
    return file, samples
