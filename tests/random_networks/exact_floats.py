"""What an ONNX graph means, in floats of 64 bits and integers without ends, node by node: quantisation and
windows by functions of this module, everything else by the standard's reference evaluator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

Array = np.ndarray
INTEGERS = {
    "int2": (-2, 1),
    "uint2": (0, 3),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
}
NOISE = 2.0**-21
Tip = Callable[[Array], Array | float]
"""What is added to numbers that are rounded: an error that a compiler may make."""


class NoNumber(ValueError):
    """What is quantised is not a number, of which the standard says nothing."""


def _double(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype in (np.float16, np.float32) else x


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _along(parameter: Array, x: Array, given: Mapping[str, Any]) -> Array:
    """Scales or zero points in the shape of x."""
    if parameter.size == 1:
        return parameter.reshape(())
    axis = int(given.get("axis", 1)) % x.ndim
    if block := int(given.get("block_size", 0)):
        return np.repeat(parameter, block, axis).take(np.arange(x.shape[axis]), axis)
    return parameter.reshape([-1 if k == axis else 1 for k in range(x.ndim)])


def _whole(x: Array) -> Array:
    return x.astype(np.float64) if str(x.dtype).startswith(("float", "bfloat")) else x.astype(np.int64)


def dequantised(arrays: Sequence[Array | None], given: Mapping[str, Any]) -> Array:
    x, scale = arrays[0], arrays[1]
    assert x is not None and scale is not None
    zero = arrays[2] if len(arrays) > 2 and arrays[2] is not None else np.zeros((), np.int64)
    steps = _whole(x) - _whole(_along(np.asarray(zero), x, given))
    return np.asarray(steps * _along(np.asarray(scale, np.float64), x, given))


def quantised(arrays: Sequence[Array | None], given: Mapping[str, Any], tip: Tip) -> Array:
    x, scale, zero = arrays[0], arrays[1], arrays[2]
    assert x is not None and scale is not None and zero is not None
    kind, by = str(zero.dtype), _along(np.asarray(scale, np.float64), x, given)
    if kind not in INTEGERS:
        raise NotImplementedError(kind)
    steps = np.asarray(x, np.float64) / by
    if np.isnan(steps).any():
        raise NoNumber
    low, high = INTEGERS[kind]
    most = 2.0**40
    whole = np.rint(np.clip(steps, -most, most) + tip(steps)) + _whole(_along(zero, x, given))
    return np.asarray(np.clip(whole, low, high)).astype(zero.dtype)


def _windows(x: Array, given: Mapping[str, Any]) -> list[list[list[int]]]:
    """For each axis of the image and each place of a window along it, where its taps are, outside as well."""
    kernel = given["kernel_shape"]
    n = len(kernel)
    strides, dilations = given.get("strides", [1] * n), given.get("dilations", [1] * n)
    pads = given.get("pads", [0] * 2 * n)
    found = []
    for k, (size, taps) in enumerate(zip(x.shape[2:], kernel, strict=True)):
        room = size + pads[k] + pads[k + n] - dilations[k] * (taps - 1) - 1
        up = bool(given.get("ceil_mode", 0))
        count = (-(-room // strides[k]) if up else room // strides[k]) + 1
        if up and (count - 1) * strides[k] >= size + pads[k]:
            count -= 1
        found.append(
            [[p * strides[k] - pads[k] + t * dilations[k] for t in range(taps)] for p in range(count)]
        )
    return found


def pooled(x: Array, given: Mapping[str, Any], mean: bool) -> Array:
    places = _windows(x, given)
    ends = given.get("pads", [0] * 2 * len(places))[len(places) :]
    out = np.zeros((*x.shape[:2], *map(len, places)))
    for at in itertools.product(*(range(len(p)) for p in places)):
        taps = [p[k] for p, k in zip(places, at, strict=True)]
        inside = [[t for t in row if 0 <= t < d] for row, d in zip(taps, x.shape[2:], strict=True)]
        held = x[np.ix_(range(x.shape[0]), range(x.shape[1]), *inside)].reshape(*x.shape[:2], -1)
        if mean:
            padded = [
                [t for t in row if t < d + e] for row, d, e in zip(taps, x.shape[2:], ends, strict=True)
            ]
            count = math.prod(map(len, padded if given.get("count_include_pad", 0) else inside))
            out[(..., *at)] = held.sum(axis=-1) / count if count else np.nan
        else:
            out[(..., *at)] = held.max(axis=-1, initial=-float(np.finfo(np.float32).max))
    return out


def transposed(x: Array, w: Array, b: Array | None, given: Mapping[str, Any]) -> Array:
    """ConvTranspose: each element is added where its window is."""
    n, groups = x.ndim - 2, int(given.get("group", 1))
    strides, dilations = given.get("strides", [1] * n), given.get("dilations", [1] * n)
    pads, kernel, each = given.get("pads", [0] * 2 * n), w.shape[2:], x.shape[1] // groups
    size = [
        (d - 1) * s + (k - 1) * a + 1
        for d, s, k, a in zip(x.shape[2:], strides, kernel, dilations, strict=True)
    ]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *size))
    for at in itertools.product(*map(range, kernel)):
        places = tuple(
            slice(t * a, t * a + (d - 1) * s + 1, s)
            for t, a, d, s in zip(at, dilations, x.shape[2:], strides, strict=True)
        )
        for g in range(groups):
            rows = slice(g * each, (g + 1) * each)
            share = np.einsum("bc...,cm->bm...", x[:, rows], w[(rows, slice(None), *at)])
            out[(slice(None), slice(g * w.shape[1], (g + 1) * w.shape[1]), *places)] += share
    kept = tuple(slice(pads[k], d - pads[k + n]) for k, d in enumerate(size))
    out = out[(slice(None), slice(None), *kept)]
    return out if b is None else out + b.reshape(-1, *[1] * n)


def _integer_product(node: onnx.NodeProto, arrays: Sequence[Array | None], opset: int) -> Array:
    """Sums of 32 bits that wrap, of whole numbers less their zero points: in doubles, which hold them."""
    x, w = arrays[0], arrays[1]
    assert x is not None and w is not None
    points = [
        np.asarray(0) if len(arrays) <= k or arrays[k] is None else np.asarray(arrays[k]) for k in (2, 3)
    ]
    sides = [_whole(v).astype(np.float64) - _whole(z) for v, z in zip((x, w), points, strict=True)]
    if node.op_type == "MatMulInteger":
        made = np.matmul(*sides)
    else:
        inner = helper.make_node("Conv", ["x", "w"], ["y"], **_attributes(node))
        made = np.asarray(
            ReferenceEvaluator(inner, opsets={"": opset}).run(None, dict(zip("xw", sides, strict=True)))[0]
        )
    return np.asarray(made.astype(np.int64).astype(np.int32))


def _dynamic(x: Array) -> list[Array]:
    """With floats of 32 bits: which integers these are tips with their last bit."""
    x = x.astype(np.float32)
    if np.isnan(x).any() or not x.size:
        raise NoNumber
    low, high = np.minimum(x.min(), np.float32(0)), np.maximum(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    scale = np.float32(1) if scale == 0 else scale
    zero = np.clip(np.rint(-low / scale), 0, 255)
    if not np.isfinite(scale) or not np.isfinite(zero):
        raise NoNumber
    y = np.clip(np.rint(x / scale) + zero, 0, 255)
    return [y.astype(np.uint8), np.asarray(scale, np.float64), np.asarray(zero, np.uint8)]


def of_node(node: onnx.NodeProto, arrays: Sequence[Array | None], opset: int, tip: Tip) -> list[Array]:
    """The outputs of one node."""
    given = _attributes(node)
    if node.op_type == "QuantizeLinear":
        return [quantised(arrays, given, tip)]
    if node.op_type == "DequantizeLinear":
        return [dequantised(arrays, given)]
    if node.op_type in ("MaxPool", "AveragePool"):
        assert arrays[0] is not None
        return [pooled(arrays[0], given, node.op_type == "AveragePool")]
    if node.op_type == "ConvTranspose":
        x, w = arrays[:2]
        assert x is not None and w is not None
        return [transposed(x, w, arrays[2] if len(arrays) > 2 else None, given)]
    if node.op_type == "GlobalMaxPool":
        assert arrays[0] is not None
        return [np.max(arrays[0], axis=tuple(range(2, arrays[0].ndim)), keepdims=True)]
    if node.op_type in ("MatMulInteger", "ConvInteger"):
        return [_integer_product(node, arrays, opset)]
    if node.op_type == "DynamicQuantizeLinear":
        assert arrays[0] is not None
        return _dynamic(arrays[0])
    evaluator = ReferenceEvaluator(node, opsets={"": opset})
    fed = {n: a for n, a in zip(node.input, arrays, strict=True) if n and a is not None}
    return [_double(np.asarray(v)) for v in evaluator.run(None, fed)]


def evaluated(
    nodes: Sequence[onnx.NodeProto],
    known: Mapping[str, Array],
    opset: int,
    tip: Callable[[str], Tip],
    noise: np.random.Generator | None = None,
) -> dict[str, Array]:
    """All values of a graph. tip: by the name of what a QuantizeLinear makes. noise: of what is dequantised,
    about as much as rounding floats of 32 bits leaves in sums that cancel out.
    """
    values = {k: _double(v) for k, v in known.items()}
    with np.errstate(all="ignore"):
        for node in nodes:
            arrays = [values[i] if i else None for i in node.input]
            made = of_node(node, arrays, opset, tip(node.output[0]))
            if noise is not None and node.op_type == "DequantizeLinear":
                made = [v * (1 + NOISE * noise.uniform(-1, 1, v.shape)) for v in made]
            values.update(zip(node.output, made, strict=False))
    return values
