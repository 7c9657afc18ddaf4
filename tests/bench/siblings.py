"""Small integer networks of kinds that the corpora lack: squeeze-and-excite with SiLU, and a U-Net with a
bilinear resize before and LeakyReLU behind its transposed convolutions. Random weights, quantised by ONNX
Runtime.

    python tests/bench/siblings.py FOLDER
    python -m aot_model time FOLDER/squeeze_qdq.onnx --target cortex-m4
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static


class Net:
    """Nodes and weights of a network."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(1)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, values: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        out = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], f"n{len(self.nodes)}", **attributes))
        return out

    def conv(self, x: str, ins: int, outs: int, edge: int = 1, stride: int = 1, group: int = 1) -> str:
        taps = ins // group * edge * edge
        w = self.constant(self.random.normal(0, (2 / taps) ** 0.5, (outs, ins // group, edge, edge)))
        return self.op("Conv", x, w, self.constant(self.random.normal(0, 0.1, outs)), strides=[stride] * 2,
                       group=group, pads=[edge // 2] * 4)  # fmt: skip

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))


def squeeze(m: Net) -> tuple[str, int, int]:
    x = m.silu(m.conv("x", 3, 16, 3, 2))
    for ins, outs in ((16, 16), (16, 24), (24, 24)):
        wide = 4 * ins
        y = m.silu(m.conv(m.silu(m.conv(x, ins, wide)), wide, wide, 3, 1, wide))
        gate = m.silu(m.conv(m.op("GlobalAveragePool", y), wide, 8))
        y = m.conv(m.op("Mul", y, m.op("Sigmoid", m.conv(gate, 8, wide))), wide, outs)
        x = m.op("Add", x, y) if ins == outs else y
    return m.conv(m.op("GlobalAveragePool", m.silu(m.conv(x, 24, 64))), 64, 10), 3, 10


def unet(m: Net) -> tuple[str, int, int]:
    def down(x: str, ins: int, outs: int) -> str:
        x = m.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        return m.op("Relu", m.conv(x, ins, outs, 3))

    def up(x: str, beside: str, ins: int, outs: int) -> str:
        x = m.op("Resize", x, "", m.constant([1, 1, 2, 2]), mode="linear")
        w = m.constant(m.random.normal(0, (2 / (9 * ins)) ** 0.5, (ins, outs, 3, 3)))
        x = m.op("LeakyRelu", m.op("ConvTranspose", x, w, pads=[1] * 4), alpha=0.1)
        return m.op("Relu", m.conv(m.op("Concat", x, beside, axis=1), 2 * outs, outs, 3))

    a = m.op("Relu", m.conv("x", 1, 8, 3))
    b = down(a, 8, 16)
    return m.conv(up(up(down(b, 16, 32), b, 32, 16), a, 16, 8), 8, 2), 1, 2


class Samples(CalibrationDataReader):  # type: ignore[misc]
    """Noise of the input's shape."""

    def __init__(self, shape: list[int]) -> None:
        self.left = [np.random.default_rng(k).normal(0, 1, shape).astype(np.float32) for k in range(8)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return {"x": self.left.pop()} if self.left else None


def write(folder: Path, name: str, build: Callable[[Net], tuple[str, int, int]]) -> None:
    m = Net()
    out, ins, outs = build(m)
    shape = [1, ins, 32, 32]
    graph = helper.make_graph(
        m.nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(out, TensorProto.FLOAT, [1, outs, None, None])],
        m.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, folder / f"{name}_f32.onnx")
    quantize_static(folder / f"{name}_f32.onnx", folder / f"{name}_qdq.onnx", Samples(shape),
                    per_channel=True, quant_format=QuantFormat.QDQ, activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    to = parser.parse_args().folder
    to.mkdir(parents=True, exist_ok=True)
    write(to, "squeeze", squeeze)
    write(to, "unet", unet)
