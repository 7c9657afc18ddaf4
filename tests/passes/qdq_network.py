"""ONNX networks of quantised tensors, which grow operator by operator."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_models import model, tensor

TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int16": TensorProto.INT16}


class Net:
    """A network of quantised tensors: every call adds an operator with its dequantisations and
    quantisation.
    """

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def constant(self, data: object, dtype: str = "float32") -> str:
        name = self.name()
        self.constants[name] = np.asarray(data, dtype=dtype)
        return name

    def parameters(self) -> tuple[str, str]:
        zero = (
            0
            if self.kind == "int16"
            else int(self.rng.integers(100, 140)) - (0 if self.kind == "uint8" else 128)
        )
        scale = self.rng.uniform(0.01, 0.05) * (1 / 128 if self.kind == "int16" else 1)
        return self.constant(scale), self.constant(zero, self.kind)

    def input(self, *shape: int) -> str:
        """A quantised input, dequantised."""
        name = self.name()
        self.inputs.append(tensor(name, shape, TYPES[self.kind]))
        return self.op("DequantizeLinear", name, *self.parameters())

    def weights(self, *shape: int, axis: int | None = None) -> str:
        count = 1 if axis is None else shape[axis]
        scale = self.rng.uniform(0.005, 0.02, count)
        data = self.constant(self.rng.integers(-128, 128, shape), "int8")
        if axis is None:
            return self.op("DequantizeLinear", data, self.constant(scale[0]), self.constant(3, "int8"))
        return self.op(
            "DequantizeLinear", data, self.constant(scale), self.constant(np.zeros(count), "int8"), axis=axis
        )

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        out = self.name()
        self.nodes.append(helper.make_node(kind, inputs, [out], name=f"{kind}_{out}", **attributes))
        return out

    def quantised(self, x: str) -> str:
        return self.quantised_with(x)[0]

    def quantised_with(self, x: str) -> tuple[str, str, str]:
        """Quantised, with its scale and zero point."""
        scale, zero = self.parameters()
        return self.op("QuantizeLinear", x, scale, zero), scale, zero

    def proto(self, result: str) -> onnx.ModelProto:
        output = helper.make_tensor_value_info(result, TYPES[self.kind], None)
        return model(self.nodes, self.inputs, [output], self.constants, opset=21)
