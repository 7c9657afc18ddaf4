"""QuantizeLinear and DequantizeLinear between the layers of a random ONNX network.

What is quantised, to which type, by tensor or by channel, is drawn as well: some tensors stay float, so that
integer layers have float neighbours. Ranges are those of the network's own numbers.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper
from onnx_network import Array, Network

INTEGERS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
HEAVY = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class Quantiser:
    """Puts pairs of QuantizeLinear and DequantizeLinear behind tensors, as `rng` decides."""

    def __init__(self, n: Network, ranges: dict[str, Array]) -> None:
        self.n, self.ranges = n, ranges
        self.constants = dict(n.constants)
        self.kind = n.pick("int8", "int8", "uint8", "int16", "uint16")
        self.nodes: list[onnx.NodeProto] = []
        self.scales: dict[str, tuple[float, int]] = {}
        """And bits of tensors that are quantised, by the names of what reads them."""

    def constant(self, data: Array) -> str:
        self.constants[f"q{len(self.constants)}"] = data
        return f"q{len(self.constants) - 1}"

    def pair(self, name: str, real: str) -> None:
        """name becomes the quantised values of `real`."""
        kind = self.kind if self.n.number(0, 9) else self.n.pick(*INTEGERS)
        low, high = INTEGERS[kind]
        values = self.ranges[name]
        least, most = min(float(values.min()), 0.0), max(float(values.max()), 1e-3)
        if kind.startswith("int") and self.n.number(0, 1):
            most = max(-least, most)
            least = -most
        squeeze = self.n.pick(1, 1, 0.8)
        scale = np.float32((most - least) / (high - low) * squeeze)
        zero = np.asarray(np.clip(np.round(low - least * squeeze / scale), low, high), kind)
        names = [self.constant(np.asarray(scale)), self.constant(zero)]
        self.nodes.append(helper.make_node("QuantizeLinear", [real, *names], [f"{name}_q"]))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *names], [name]))
        self.scales[name] = float(scale), 16 if kind.endswith("16") else 8

    def weights(self, node: onnx.NodeProto) -> list[str]:
        """The inputs of a heavy node, its weights and its bias of integers."""
        n, inputs = self.n, list(node.input)
        if inputs[1] not in n.constants or not n.number(0, 9):
            return inputs
        data = n.constants[inputs[1]]
        flipped = any(a.name == "transB" and a.i for a in node.attribute)
        axis = 0 if node.op_type == "Conv" or flipped else 1
        groups = next((a.i for a in node.attribute if a.name == "group"), 1)
        each = n.number(0, 1) and not (node.op_type == "ConvTranspose" and groups > 1) and data.ndim >= 2
        others = tuple(k for k in range(data.ndim) if k != axis)
        scale = np.maximum(np.abs(data).max(axis=others if each else None) / 127, 1e-6).astype(np.float32)
        along = scale.reshape([-1 if k == axis else 1 for k in range(data.ndim)]) if each else scale
        whole = np.clip(np.round(data / along), -127, 127).astype(np.int8)
        names = [self.constant(whole), self.constant(scale), self.constant(np.zeros(scale.shape, np.int8))]
        self.nodes.append(
            helper.make_node("DequantizeLinear", names, [f"{inputs[1]}_w{len(self.nodes)}"], axis=axis)
        )
        inputs[1] = self.nodes[-1].output[0]
        if len(inputs) > 2 and inputs[0] in self.scales and n.number(0, 4):
            by = np.asarray(np.float32(self.scales[inputs[0]][0]) * scale, np.float32)
            bias = np.clip(
                np.round(n.constants[inputs[2]] / by.astype(np.float64)), -(2**31), 2**31 - 1
            ).astype(np.int32)
            names = [self.constant(bias), self.constant(by), self.constant(np.zeros(by.shape, np.int32))]
            self.nodes.append(
                helper.make_node("DequantizeLinear", names, [f"{inputs[2]}_b{len(self.nodes)}"], axis=0)
            )
            inputs[2] = self.nodes[-1].output[0]
        return inputs

    def run(self, inputs: list[str]) -> list[onnx.NodeProto]:
        names: dict[str, str] = {}
        for x in inputs:
            names[x] = f"{x}_dq"
            self.ranges[names[x]] = self.ranges[x]
            self.pair(names[x], x)
        for node in self.n.nodes:
            node = onnx.NodeProto.FromString(node.SerializeToString())
            for k, name in enumerate(node.input):
                node.input[k] = names.get(name, name)
            if node.op_type in HEAVY:
                node.input[:] = self.weights(node)
            ends = list(node.output)
            kept = [e not in self.ranges or not self.n.number(0, 7) for e in ends]
            node.output[:] = [e if k else f"{e}_real" for e, k in zip(ends, kept, strict=True)]
            self.nodes.append(node)
            for e, k in zip(ends, kept, strict=True):
                if not k:
                    self.pair(e, f"{e}_real")
        return self.nodes
