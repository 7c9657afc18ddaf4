"""What the quantiser knows of an ONNX graph: constants, types, who makes and who reads a tensor."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from aot_model.quantise.data import Port

QUANTISED = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"}
)


class Network:
    """Indices over a model with inferred shapes. The model is changed by those who say so; then `index`
    again."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.index()

    def index(self) -> None:
        graph = self.model.graph
        self.constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.producer: dict[str, onnx.NodeProto] = {}
        self.readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in graph.node:
            for name in node.output:
                self.producer[name] = node
            for name in dict.fromkeys(node.input):
                self.readers[name].append(node)
        self.outputs = [o.name for o in graph.output]
        self.inputs = [i.name for i in graph.input if i.name not in self.constants]
        self.types = {v.name: v.type.tensor_type for v in (*graph.value_info, *graph.input, *graph.output)}

    def is_float(self, name: str) -> bool:
        """Whether a tensor is float32 and no constant."""
        known = self.types.get(name)
        return known is not None and known.elem_type == TensorProto.FLOAT and name not in self.constants

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Extents; None when they are not all known."""
        if name in self.constants:
            return tuple(self.constants[name].shape)
        known = self.types.get(name)
        if known is None or not known.HasField("shape"):
            return None
        dims = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in known.shape.dim)
        return None if -1 in dims else dims

    def read_once(self, name: str) -> bool:
        return len(self.readers[name]) == 1 and name not in self.outputs

    def attribute(self, node: onnx.NodeProto, name: str, default: object = None) -> object:
        return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)

    def set_constant(self, name: str, data: np.ndarray) -> None:
        """Another value of an initialiser."""
        for tensor in self.model.graph.initializer:
            if tensor.name == name:
                tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(data), name))
        self.constants[name] = data

    def fresh(self, name: str) -> str:
        """A name that no tensor has."""
        taken = {*self.constants, *self.producer, *self.inputs}
        number, result = 0, name
        while result in taken:
            number += 1
            result = f"{name}_{number}"
        return result


def ports(model: onnx.ModelProto) -> list[Port]:
    """The inputs that data are given for."""
    initial = {t.name for t in model.graph.initializer}
    found = []
    for info in model.graph.input:
        if info.name not in initial:
            kind = info.type.tensor_type
            shape = tuple(d.dim_value for d in kind.shape.dim)
            found.append(Port(info.name, np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type)), shape))
    return found


def is_quantised(model: onnx.ModelProto) -> bool:
    """Whether somebody has quantised the model already."""
    return any(n.op_type in QUANTISED or n.op_type.startswith("QLinear") for n in model.graph.node)
