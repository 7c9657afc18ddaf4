"""Old forms of ONNX operators brought to the newest: attributes that became inputs, defaults that changed.

One row for each change: operator, last opset of the old form, how to rewrite (attributes, inputs).
Source: ONNX operator changelog.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import Build
from aot_model.ops.views import ReshapeTo

Attributes = dict[str, Any]
Inputs = list[Value | None]
Rewrite = Callable[[Attributes, Inputs, Build], None]


def _ints(name: str, position: int) -> Rewrite:
    """An attribute of integers that became an input."""

    def rewrite(attributes: Attributes, inputs: Inputs, build: Build) -> None:
        if name in attributes:
            while len(inputs) < position:
                inputs.append(None)
            inputs[position:] = [
                constant(name, np.asarray(attributes.pop(name), dtype=np.int64)),
                *inputs[position + 1 :],
            ]

    return rewrite


def _floats(name: str, position: int) -> Rewrite:
    """A float attribute that became an input of the first input's type."""

    def rewrite(attributes: Attributes, inputs: Inputs, build: Build) -> None:
        if name in attributes and inputs[0] is not None:
            while len(inputs) <= position:
                inputs.append(None)
            inputs[position] = constant(name, np.asarray(attributes.pop(name), dtype=inputs[0].dtype.numpy))

    return rewrite


def _drop(*names: str) -> Rewrite:
    def rewrite(attributes: Attributes, inputs: Inputs, build: Build) -> None:
        for name in names:
            attributes.pop(name, None)

    return rewrite


def _all(*rewrites: Rewrite) -> Rewrite:
    def rewrite(attributes: Attributes, inputs: Inputs, build: Build) -> None:
        for one in rewrites:
            one(attributes, inputs, build)

    return rewrite


def _broadcast(attributes: Attributes, inputs: Inputs, build: Build) -> None:
    """Opset 6 and before: `axis` says where the second input's shape begins."""
    axis = attributes.pop("axis", None)
    attributes.pop("broadcast", None)
    attributes.pop("consumed_inputs", None)
    a, b = inputs[0], inputs[1]
    if axis is not None and a is not None and b is not None:
        tail = a.type.rank - axis % max(a.type.rank, 1) - b.type.rank
        inputs[1] = _reshaped(build, b, b.shape + (1,) * max(tail, 0))


def _reshaped(build: Build, x: Value, shape: tuple[int, ...]) -> Value:
    return build(ReshapeTo(shape), x) if x.data is None else constant(x.name, x.data.reshape(shape))


def _slope(attributes: Attributes, inputs: Inputs, build: Build) -> None:
    """PRelu of opset 6 and before: a slope for each channel."""
    x, slope = inputs[0], inputs[1]
    if x is not None and slope is not None and slope.type.rank == 1 and x.type.rank > 1:
        inputs[1] = _reshaped(build, slope, slope.shape + (1,) * (x.type.rank - 2))


def _cast_to(attributes: Attributes, inputs: Inputs, build: Build) -> None:
    if isinstance(attributes.get("to"), str):
        attributes["to"] = DType.of(
            attributes["to"].lower().replace("float", "float32")
            if attributes["to"] == "FLOAT"
            else attributes["to"].lower()
        )


def _dft_axis(attributes: Attributes, inputs: Inputs, build: Build) -> None:
    """DFT of opset 19 and before: the axis is an attribute, by default 1."""
    inputs[1:] = [
        *(inputs[1:] or [None])[:1],
        constant("axis", np.asarray(attributes.pop("axis", 1), np.int64)),
    ]


def _pad_list(attributes: Attributes, inputs: Inputs, build: Build) -> None:
    if "paddings" in attributes:
        attributes["pads"] = attributes.pop("paddings")


_REDUCTIONS = (
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceLogSumExp",
)

_TABLE: list[tuple[str, int, Rewrite]] = [
    *(
        (name, 6, _broadcast)
        for name in ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Less", "Greater", "Equal")
    ),
    *((name, 17, _ints("axes", 1)) for name in _REDUCTIONS),
    ("ReduceSum", 12, _ints("axes", 1)),
    ("Squeeze", 12, _ints("axes", 1)),
    ("Unsqueeze", 12, _ints("axes", 1)),
    ("PRelu", 6, _slope),
    ("Split", 12, _ints("split", 1)),
    ("Clip", 10, _all(_floats("min", 1), _floats("max", 2))),
    ("Pad", 10, _all(_pad_list, _ints("pads", 1), _floats("value", 2))),
    ("Reshape", 4, _ints("shape", 1)),
    ("Slice", 9, _all(_ints("starts", 1), _ints("ends", 2), _ints("axes", 3))),
    ("TopK", 9, _ints("k", 1)),
    ("DFT", 19, _dft_axis),
    ("Gemm", 6, _drop("broadcast")),
    ("Cast", 5, _cast_to),
    ("BatchNormalization", 8, _drop("spatial", "is_test", "consumed_inputs")),
    ("Dropout", 11, _drop("ratio", "is_test")),
    ("Concat", 3, lambda a, i, b: a.setdefault("axis", 1)),
    *(
        (name, 5, _drop("consumed_inputs"))
        for name in (
            "Relu",
            "Sigmoid",
            "Tanh",
            "Abs",
            "Neg",
            "Exp",
            "Log",
            "Sqrt",
            "LeakyRelu",
            "PRelu",
            "Elu",
            "Selu",
            "HardSigmoid",
            "Clip",
            "Sum",
            "Max",
            "Min",
            "Mean",
            "Floor",
            "Ceil",
            "Reciprocal",
        )
    ),
]


def _only_axis(attributes: Attributes, inputs: Inputs) -> None:
    """A tensor of one axis with a scale for each element has no other axis, whatever the node says.

    Neural Compressor gives the bias of a layer the axis of its weights; ONNX Runtime fuses it all the same.
    """
    x, scale = (inputs[k] if k < len(inputs) else None for k in (0, 1))
    if x is not None and scale is not None and x.type.rank == 1 and scale.type.elements > 1:
        attributes["axis"] = 0


def modernise(
    domain: str, name: str, version: int, attributes: Attributes, inputs: Inputs, outputs: int, build: Build
) -> tuple[str, Attributes, Inputs]:
    """(name, attributes, inputs) of the newest form of an operator used at an opset version; `build` adds
    nodes before it.
    """
    if name in ("QuantizeLinear", "DequantizeLinear"):
        _only_axis(attributes, inputs)
    if domain:
        return name, attributes, inputs
    for row, last, rewrite in _TABLE:
        if row == name and version <= last:
            rewrite(attributes, inputs, build)
    if name in ("Softmax", "LogSoftmax", "Hardmax") and version <= 12:
        attributes.setdefault("axis", 1)
        name = f"{name}Flattened"
    if (name == "Resize" and version <= 10) or name == "Upsample":
        # x, scales; pixels are counted from their corner, and rounded down
        attributes.update(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        scales = attributes.pop("scales", None)
        given = inputs[1] if scales is None else constant("scales", np.asarray(scales, dtype=np.float32))
        inputs, name = [inputs[0], None, given], "Resize"
    if name == "Split" and version <= 17 and len(inputs) < 2:
        attributes.setdefault("num_outputs", outputs)
    return name, attributes, inputs
