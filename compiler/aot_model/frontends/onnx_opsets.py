"""Old forms of ONNX operators brought to the newest: attributes that became inputs, defaults that changed.

One row for each change: operator, last opset of the old form, how to rewrite (attributes, inputs).
Source: ONNX operator changelog.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from aot_model.ir.operator import OperatorError
from aot_model.ir.values import Value, constant
from aot_model.ops.elementwise import MAX_INPUTS, op
from aot_model.ops.registry import Build, normal_axis
from aot_model.ops.resample import Resize
from aot_model.ops.views import ReshapeTo

_LARGEST = float(np.finfo(np.float32).max)
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
    """The name of a type became its number."""
    to = attributes.get("to")
    if isinstance(to, str) and to.upper() in dict(onnx.TensorProto.DataType.items()):
        attributes["to"] = onnx.TensorProto.DataType.Value(to.upper())


def _dft_axis(attributes: Attributes, inputs: Inputs, build: Build) -> None:
    """DFT of opset 19 and before: the axis is an attribute, by default 1."""
    inputs[1:] = [
        *(inputs[1:] or [None])[:1],
        constant("axis", np.asarray(attributes.pop("axis", 1), np.int64)),
    ]


def _default(**values: Any) -> Rewrite:
    """Defaults that later forms do not have."""

    def rewrite(attributes: Attributes, inputs: Inputs, build: Build) -> None:
        for name, value in values.items():
            attributes.setdefault(name, value)

    return rewrite


def _whole_norm(attributes: Attributes, inputs: Inputs, build: Build) -> None:
    """The p of a norm was a float."""
    if isinstance(p := attributes.get("p"), float) and p.is_integer():
        attributes["p"] = int(p)


def _repeats(attributes: Attributes, inputs: Inputs, build: Build) -> None:
    """Tile of opset 5 and before: so many tiles along one axis, both of them numbers of x's type."""
    x, *numbers = inputs
    if x is None or len(numbers) != 2:
        return
    if any(v is None or v.data is None or v.type.elements != 1 for v in numbers):
        raise OperatorError("tiles and axis are not constant numbers", "E202")
    tiles, axis = (int(v.data.reshape(-1)[0]) for v in numbers if v is not None and v.data is not None)
    repeats = np.ones(x.type.rank, np.int64)
    repeats[normal_axis(axis, x.type.rank)] = tiles
    inputs[1:] = [constant("repeats", repeats)]


def _axes_of_channels(attributes: Attributes, inputs: Inputs, build: Build) -> None:
    """MeanVarianceNormalization before the standard had it, as ONNX Runtime reads it."""
    if not attributes.pop("normalize_variance", 1):
        raise OperatorError("normalize_variance=0 is not supported", "E202")
    across = attributes.pop("across_channels", 0)
    attributes["axes"] = (0, 1, 2, 3) if across else (0, 2, 3)


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
    ("Clip", 5, _default(min=-np.inf, max=np.inf)),
    ("Clip", 10, _all(_default(min=-_LARGEST, max=_LARGEST), _floats("min", 1), _floats("max", 2))),
    ("Pad", 10, _all(_pad_list, _ints("pads", 1), _floats("value", 2))),
    ("Reshape", 4, _ints("shape", 1)),
    ("Slice", 9, _all(_ints("starts", 1), _ints("ends", 2), _ints("axes", 3))),
    ("TopK", 9, _ints("k", 1)),
    ("DFT", 19, _dft_axis),
    ("Gemm", 6, _drop("broadcast")),
    ("Cast", 5, _cast_to),
    ("GlobalLpPool", 1, _whole_norm),
    ("LpPool", 1, _whole_norm),
    ("MeanVarianceNormalization", 8, _axes_of_channels),
    ("RoiAlign", 15, _default(coordinate_transformation_mode="output_half_pixel")),
    ("Selu", 5, _default(alpha=1.6732, gamma=1.0507)),
    ("Tile", 5, _repeats),
    *((name, 6, _drop("output_sequence")) for name in ("RNN", "GRU", "LSTM")),
    ("BatchNormalization", 8, _drop("spatial", "is_test", "consumed_inputs")),
    ("Dropout", 11, _drop("ratio", "is_test")),
    ("Concat", 3, lambda a, i, b: a.setdefault("axis", 1)),
]


def _scales(name: str, attributes: Attributes, inputs: Inputs) -> Value | None:
    """Of Resize, and of Upsample, which ends with opset 9: an attribute at first, one for each axis of an
    image before.
    """
    scales = attributes.pop("scales", None)
    height, width = (attributes.pop(f"{of}_scale", None) for of in ("height", "width"))
    if height is not None and width is not None:
        scales = (1.0, 1.0, height, width)
    if scales is None:
        given = inputs[1] if len(inputs) > 1 else None
    else:
        given = constant("scales", np.asarray(scales, dtype=np.float32))
    if name == "Upsample" and given is not None and given.data is not None and (given.data < 1).any():
        raise OperatorError("a scale is less than 1, which the standard does not allow")
    return given


def _shrunk(
    attributes: Attributes, x: Value | None, scales: Value | None, build: Build
) -> tuple[Value | None, Value | None]:
    """x and scales of a Resize of opset 10, once what shrinks is done.

    The nearest pixel, of which the standard says nothing, is rounded down where the image grows and up where
    it shrinks: so do ONNX's test case (resize_downsample_nearest) and ONNX Runtime.
    """
    if attributes.get("mode", "nearest") != "nearest":
        return x, scales
    attributes["nearest_mode"] = "floor"
    if x is None or scales is None or scales.data is None or not (scales.data < 1).any():
        return x, scales
    less, more = (constant("scales", bound(scales.data, np.float32(1))) for bound in (np.minimum, np.maximum))
    ceil = Resize(coordinate_transformation_mode="asymmetric", nearest_mode="ceil")
    return build(ceil, x, None, less), more


def _only_axis(attributes: Attributes, inputs: Inputs) -> None:
    """A tensor of one axis with a scale for each element has no other axis, whatever the node says.

    Neural Compressor gives the bias of a layer the axis of its weights; ONNX Runtime fuses it all the same.
    """
    x, scale = (inputs[k] if k < len(inputs) else None for k in (0, 1))
    if x is not None and scale is not None and x.type.rank == 1 and scale.type.elements > 1:
        attributes["axis"] = 0


def _in_turn(name: str, inputs: Inputs, build: Build) -> tuple[str, Inputs]:
    """A node of many inputs (the sum of a thousand trees' votes) as several, one after the other: that is the
    order in which it adds them up.
    """
    count, mean = len(inputs), name == "Mean"
    one = op("Sum" if mean else name)
    while len(inputs) > (1 if mean else MAX_INPUTS):
        inputs = [build(one, *inputs[:MAX_INPUTS]), *inputs[MAX_INPUTS:]]
    (x, *_) = inputs
    if not mean or x is None:
        return name, inputs
    return "Div", [x, constant("count", np.asarray(count, x.dtype.numpy))]


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
    if version <= 5:
        attributes.pop("consumed_inputs", None)
    for row, last, rewrite in _TABLE:
        if row == name and version <= last:
            rewrite(attributes, inputs, build)
    if name in ("Softmax", "LogSoftmax", "Hardmax") and version <= 12:
        attributes.setdefault("axis", 1)
        name = f"{name}Flattened"
    if (name == "Resize" and version <= 10) or name == "Upsample":
        for later in ("coordinate_transformation_mode", "nearest_mode"):
            if later in attributes:
                raise OperatorError(f"attribute '{later}' came with opset 11", "E202")
        attributes["coordinate_transformation_mode"] = "asymmetric"
        given = _scales(name, attributes, inputs)
        x, given = _shrunk(attributes, inputs[0], given, build)
        inputs, name = [x, None, given], "Resize"
    if name in ("Sum", "Mean", "Max", "Min") and len(inputs) > MAX_INPUTS and None not in inputs:
        name, inputs = _in_turn(name, inputs, build)
    if name == "Split" and version <= 17 and len(inputs) < 2:
        attributes.setdefault("num_outputs", outputs)
    return name, attributes, inputs
