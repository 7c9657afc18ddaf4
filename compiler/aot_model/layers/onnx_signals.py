"""The signals of an ONNX file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import numpy_helper

from aot_model.layers.reference import Key
from aot_model.layers.signals import EQUALISED, Signal, Signals, Steps, collected

_RESULT = {
    "QLinearConv": 6,
    "QLinearMatMul": 6,
    "QLinearAdd": 6,
    "QLinearMul": 6,
    "QGemm": 7,
    "QLinearLeakyRelu": 3,
    "QLinearSigmoid": 3,
    "QLinearSoftmax": 3,
    "QLinearAveragePool": 3,
    "QLinearGlobalAveragePool": 3,
    "QLinearReduceMean": 3,
    "QLinearConcat": 0,
}  # fmt: skip
"""Operators on integers: which of their inputs is the scale of the result; the zero point is the next."""
_MOVES = frozenset(
    {
        "MaxPool",
        "Reshape",
        "Flatten",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Identity",
        "Gather",
        "Slice",
        "Expand",
        "DepthToSpace",
        "SpaceToDepth",
    }
)
"""Operators whose result has the scale of their first input."""


def of_onnx(proto: onnx.ModelProto, fixed: Sequence[str] = ()) -> Signals:
    """Of the main graph. fixed: inputs that are constants."""
    graph = proto.graph
    constants = {t.name: t for t in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            constants[node.output[0]] = node.attribute[0].t
    inputs = [i.name for i in graph.input if i.name not in constants and i.name not in fixed]
    of: dict[Key, Signal] = {name: Signal([name]) for name in inputs}
    walk = _Walk(constants, of)
    for node in graph.node:
        if not any(name in constants for name in node.output):
            walk.node(node)
    whole = collected(of, {key: str(key) for key in of}, inputs, [o.name for o in graph.output])
    return replace(whole, divided=_divided(proto))


class _Walk:
    """Over the nodes in their order."""

    def __init__(self, constants: dict[str, onnx.TensorProto], of: dict[Key, Signal]) -> None:
        self.constants, self.of = constants, of
        self.back = set[Key]()
        """Floats that integers became."""

    def node(self, node: onnx.NodeProto) -> None:
        results = [name for name in node.output if name]
        source = self.of.get(node.input[0]) if node.input else None
        if node.op_type == "QuantizeLinear":
            self._quantised(node, results[0], source)
        elif node.op_type == "DequantizeLinear" and source is not None:
            self._back(node, results[0], source)
        else:
            self._computed(node, results, source)

    def _quantised(self, node: onnx.NodeProto, result: str, source: Signal | None) -> None:
        found = self._steps(node.input[1:3], _axis(node))
        self.of[result] = signal = _joined(source if node.input[0] not in self.back else None, result)
        if found is not None:
            signal.steps[result] = found

    def _back(self, node: onnx.NodeProto, result: str, source: Signal) -> None:
        found, before = self._steps(node.input[1:3], _axis(node)), source.steps.get(node.input[0])
        self.of[result] = _joined(source, result)
        self.back.add(result)
        if found is not None:
            if before is not None and not before.same(found):
                source.made.setdefault(node.input[0], before)
            source.steps[node.input[0]] = found

    def _computed(self, node: onnx.NodeProto, results: Sequence[str], source: Signal | None) -> None:
        for name in results:
            self.of[name] = Signal([name])
        at = _RESULT.get(node.op_type)
        kept = source.steps.get(node.input[0]) if source is not None and node.op_type in _MOVES else None
        made = kept if at is None else self._steps(node.input[at : at + 2], None)
        if made is not None and made.scale.size == 1:
            self.of[results[0]].steps[results[0]] = made

    def _steps(self, names: Sequence[str], axis: int | None) -> Steps | None:
        """By the names of a scale and a zero point."""
        if not names or names[0] not in self.constants:
            return None
        scale = np.asarray(numpy_helper.to_array(self.constants[names[0]]), np.float64).reshape(-1)
        given = names[1] if len(names) > 1 else ""
        zero = np.zeros(1, np.int64)
        if given in self.constants:
            zero = np.asarray(numpy_helper.to_array(self.constants[given])).astype(np.int64).reshape(-1)
        return Steps(scale, zero, axis)


def _divided(proto: onnx.ModelProto) -> dict[str, np.ndarray]:
    """What `aot-model quantise` wrote of its equalisation; nothing where that is damaged."""
    text = next((p.value for p in proto.metadata_props if p.key == EQUALISED), "{}")
    try:
        return {str(name): np.asarray(factors, np.float64) for name, factors in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _axis(node: onnx.NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "axis"), 1)


def _joined(signal: Signal | None, name: str) -> Signal:
    if signal is None:
        return Signal([name])
    signal.keys.append(name)
    return signal


def input_types(
    proto: onnx.ModelProto,
) -> list[tuple[str, np.dtype[np.generic] | None, tuple[int | None, ...]]]:
    """Name, type and shape of what the graph takes."""
    found: list[tuple[str, np.dtype[np.generic] | None, tuple[int | None, ...]]] = []
    for port in proto.graph.input:
        type_ = port.type.tensor_type
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(type_.elem_type)) if type_.elem_type else None
        found.append(
            (
                port.name,
                dtype,
                tuple(d.dim_value if d.HasField("dim_value") else None for d in type_.shape.dim),
            )
        )
    return found
