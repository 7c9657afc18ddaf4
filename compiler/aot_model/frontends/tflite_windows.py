"""TFLite: operators of windows and of bits, among them those of StableHLO that LiteRT runs itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from aot_model.frontends.tflite_conversion import Conversion, finite, rule
from aot_model.frontends.tflite_layers import finish, same_or_valid
from aot_model.frontends.tflite_movement import slices
from aot_model.ir.operator import Operator, OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import BitCast, Cast
from aot_model.ops.convolution import ConvolutionTranspose
from aot_model.ops.elementwise import BitShift
from aot_model.ops.local_normalisation import LRN
from aot_model.ops.movement import Concat, Expand, Pad


@rule("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(n: Conversion) -> Value:
    x = n.real()
    radius, *numbers = (
        n.operator.options.get("LocalResponseNormalizationOptions", f)
        for f in ("Radius", "Bias", "Alpha", "Beta")
    )
    if radius < 0 or x.type.rank != 4:
        raise OperatorError(f"radius {radius} of {x.type}")
    bias, alpha, beta = (finite(float(v), "bias, alpha or beta") for v in numbers)
    size = 2 * int(radius) + 1
    rows = n.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    return n.reshape(n.build(LRN(size, alpha * size, beta, bias), rows), x.shape)


@rule("CONV_3D_TRANSPOSE")
def conv_3d_transpose(n: Conversion) -> Value:
    """Floats. Inputs: output shape, weights (D, H, W, O, I), x, bias."""
    options = "Conv3DOptions"
    w, x = n.real(1), n.real(2)
    shape = n.ints(0, "the output shape") if n.x(0).is_const else n.declared_shape()
    if len(shape) != 5 or x.type.rank != 5 or w.type.rank != 5 or 0 in x.shape + w.shape + tuple(shape):
        raise OperatorError(
            f"{x.type}, weights {w.type} and output shape {shape} are not those of a 3-D convolution"
        )
    strides, dilations = (tuple(int(n.operator.options.get(options, f)) for f in fields) for fields in (
        ("StrideD", "StrideH", "StrideW"), ("DilationDFactor", "DilationHFactor", "DilationWFactor"),
    ))  # fmt: skip
    if min(strides + dilations) < 1:
        raise OperatorError(f"strides {strides} and dilations {dilations}")
    same = same_or_valid(n.operator.options.get(options, "Padding")) == "SAME_UPPER"
    begins, ends, extra = [], [], []
    for k in range(3):
        reach = (x.shape[1 + k] - 1) * strides[k] + (w.shape[k] - 1) * dilations[k] + 1
        begins.append(max(reach - shape[1 + k], 0) // 2 if same else 0)
        end = reach - begins[k] - shape[1 + k]
        ends.append(max(end, 0))
        extra.append(max(-end, 0))
    node = ConvolutionTranspose(strides, (*begins, *ends), dilations, tuple(extra))
    return finish(n, n.build(node, x, n.transpose(w, (3, 0, 1, 2, 4))), options, 3, (1.0,))


_UNSIGNED = {8: DType.UINT8, 16: DType.UINT16, 32: DType.UINT32, 64: DType.UINT64}


@rule("BITCAST")
def bitcast(n: Conversion) -> Value:
    """Of another width: an element is a last axis of smaller ones, of which the first has the lowest bits."""
    x, to = n.x(), n.out_dtype()
    if to is x.dtype:
        return x
    if to.bits == x.dtype.bits:
        return n.build(BitCast(to), x)
    narrow, wide = sorted((to, x.dtype), key=lambda t: t.bits)
    if narrow.bits not in _UNSIGNED or wide.bits not in _UNSIGNED or DType.BOOL in (narrow, wide):
        raise OperatorError(f"bits of {x.type} as {to.label}", "E202")
    few, many, count = _UNSIGNED[narrow.bits], _UNSIGNED[wide.bits], wide.bits // narrow.bits
    steps = [n.constant(k * narrow.bits, many) for k in range(count)]
    bits = _bits(n, x, _UNSIGNED[x.dtype.bits])
    if wide is x.dtype:
        low = n.constant((1 << narrow.bits) - 1, many)
        parts = [
            n.build(Cast(few), n.add("BitwiseAnd", n.build(BitShift("RIGHT"), bits, step), low))
            for step in steps
        ]
        pieces = [n.reshape(part, (*x.shape, 1)) for part in parts]
        return _bits(n, n.build(Concat(x.type.rank), *pieces), to)
    if x.shape[-1:] != (count,):
        raise OperatorError(f"{count} elements of {x.type} are not one {to.label}")
    total: Value | None = None
    for k, step in enumerate(steps):
        ranges = [(0, e, 1) for e in x.shape[:-1]]
        piece = n.reshape(slices(n, bits, [*ranges, (k, k + 1, 1)]), x.shape[:-1])
        shifted = n.build(BitShift("LEFT"), n.build(Cast(many), piece), step)
        total = shifted if total is None else n.add("BitwiseOr", total, shifted)
    assert total is not None
    return _bits(n, total, to)


def _bits(n: Conversion, x: Value, to: DType) -> Value:
    return x if x.dtype is to else n.build(BitCast(to), x)


@rule("RIGHT_SHIFT", "STABLEHLO_SHIFT_LEFT")
def shift(n: Conversion) -> Value:
    """By less than 0 or more than all bits: by as many as there are, or none."""
    x, by = n.x(0), n.x(1)
    if not x.dtype.is_integer or by.dtype is not x.dtype:
        raise OperatorError(f"{x.type} shifted by {by.type}", "E202")
    if n.operator.kind != "RIGHT_SHIFT":
        return n.build(BitShift("LEFT"), x, by)
    most = n.constant(x.dtype.bits - 1, x.dtype)
    within = n.add("Min", n.add("Max", by, n.constant(0, x.dtype)), most)
    return n.build(BitShift("RIGHT"), x, within)


_BY_ELEMENT = {
    "STABLEHLO_ADD": "Add", "STABLEHLO_MULTIPLY": "Mul", "STABLEHLO_MAXIMUM": "Max",
    "STABLEHLO_MINIMUM": "Min", "STABLEHLO_AND": "And",
}  # fmt: skip


@rule(*_BY_ELEMENT)
def by_element(n: Conversion) -> Value:
    if n.quantised(0) or n.quantised(1):
        raise OperatorError("quantised tensors are not supported", "E202")
    name = _BY_ELEMENT[n.operator.kind]
    return n.add("BitwiseAnd" if name == "And" and n.x().dtype is not DType.BOOL else name, n.x(0), n.x(1))


def _spread(n: Conversion, x: Value, steps: Sequence[int], fill: Value) -> Value:
    """Elements of an axis `step` apart, with `fill` between them."""
    for axis, step in enumerate(steps):
        extent = x.shape[axis]
        if step == 1 or extent < 2:
            continue
        shape = x.shape
        apart = n.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        pads = [0] * (apart.type.rank * 2)
        pads[apart.type.rank + axis + 1] = step - 1
        filled = n.build(Pad(), apart, n.constant(pads, DType.INT64), fill)
        whole = n.reshape(filled, (*shape[:axis], extent * step, *shape[axis + 1 :]))
        x = slices(
            n, whole, [(0, e if k != axis else (extent - 1) * step + 1, 1) for k, e in enumerate(whole.shape)]
        )
    return x


@rule("DILATE")
def dilate(n: Conversion) -> Value:
    """Inputs: x, a step for each axis, what is between."""
    x, steps = n.x(0), n.ints(1, "the dilations")
    if len(steps) != x.type.rank or min(steps, default=1) < 1:
        raise OperatorError(f"dilations {steps} of {x.type}")
    return _spread(n, x, steps, n.reshape(n.x(2), ()))


@rule("STABLEHLO_PAD")
def stablehlo_pad(n: Conversion) -> Value:
    """Pads between the elements and at the ends; where they are negative, elements are cut off."""
    x, options = n.x(0), n.operator.options
    low, high, inner = (
        options.ints("StablehloPadOptions", f)
        for f in ("EdgePaddingLow", "EdgePaddingHigh", "InteriorPadding")
    )
    if not len(low) == len(high) == len(inner) == x.type.rank or min(inner, default=0) < 0:
        raise OperatorError(f"pads {low}, {high} and {inner} of {x.type}")
    fill = n.reshape(n.x(1), ())
    return _padded(n, _spread(n, x, [i + 1 for i in inner], fill), low, high, fill)


def _padded(n: Conversion, x: Value, low: Sequence[int], high: Sequence[int], fill: Value) -> Value:
    """`fill` before and behind each axis; elements are cut off where pads are negative."""
    pads = [max(p, 0) for p in (*low, *high)]
    wide = n.build(Pad(), x, n.constant(pads, DType.INT64), fill) if any(pads) else x
    parts = [(max(-a, 0), max(e - max(-b, 0), 0), 1) for a, b, e in zip(low, high, wide.shape, strict=True)]
    return slices(n, wide, parts)


_REDUCERS = {1: "Add", 2: "Mul", 3: "Min", 4: "Max", 5: "And", 6: "Or"}

Combine = Callable[[Value, Value], Value]


@rule("REDUCE_WINDOW")
def reduce_window(n: Conversion) -> Value:
    """Inputs: x, what a window begins with, the window, its strides and dilations."""
    x = n.x(0)
    window, strides, dilations = (n.ints(k, "the window") for k in (2, 3, 4))
    name = _REDUCERS.get(n.operator.options.get("ReduceWindowOptions", "ReduceFunction"))
    if name is None:
        raise OperatorError(f"a reduction that is none of {', '.join(_REDUCERS.values())}", "E202")
    return _windows(n, lambda a, b: n.add(name, a, b), x, n.reshape(n.x(1), ()), window, strides, dilations)


@rule("STABLEHLO_REDUCE_WINDOW")
def stablehlo_reduce_window(n: Conversion) -> Value:
    """Inputs: x and what a window begins with, which is between and around the elements of x, too. A
    sub-graph of one operator combines two numbers.
    """
    x, kind = n.x(0), "StablehloReduceWindowOptions"
    if len(n.inputs) != 2 or n.quantised(0):
        raise OperatorError(f"windows of {len(n.inputs) - 1} tensors, or of quantised ones", "E202")
    window, strides, apart, dilations, pads = (
        n.operator.options.ints(kind, f)
        for f in ("WindowDimensions", "WindowStrides", "BaseDilations", "WindowDilations", "Padding")
    )
    ones, rank = (1,) * x.type.rank, x.type.rank
    strides, apart, dilations = strides or ones, apart or ones, dilations or ones
    pads = pads or (0, 0) * rank
    if not len(window) == len(apart) == rank or len(pads) != 2 * rank or min(apart, default=1) < 1:
        raise OperatorError(f"window {window} of {x.type}, pads {pads}, {apart} apart")
    begin = n.reshape(n.x(1), ())
    operation = combination(n, int(n.operator.options.get(kind, "BodySubgraphIndex")), x.dtype)
    if operation is None:
        raise OperatorError("its sub-graph combines nothing", "E202")
    wide = _padded(n, _spread(n, x, apart, begin), pads[::2], pads[1::2], begin)
    return _windows(n, lambda a, b: n.build(operation, a, b), wide, begin, window, strides, dilations)


def combination(n: Conversion, index: int, dtype: DType) -> Operator | None:
    """The operator of a sub-graph that makes one number of two; None for one that gives the second."""
    a, b = (Value(f"{n.build.prefix}.{k}", TensorType(dtype, ())) for k in "ab")
    made = n.host.body(index, [a, b])
    if not made.nodes and made.outputs == [b]:
        return None
    node = made.nodes[0] if len(made.nodes) == 1 else None
    if (
        node is None
        or node.kind not in _COMBINATIONS
        or {*node.inputs} != {a, b}
        or made.outputs != node.outputs
    ):
        raise OperatorError(
            "its sub-graph is not one operator that combines two numbers",
            "E202",
            f"supported are {', '.join(_COMBINATIONS)}",
        )
    return node.op


_COMBINATIONS = ("Add", "Mul", "Min", "Max", "And", "Or", "BitwiseAnd", "BitwiseOr")


def _windows(
    n: Conversion,
    combine: Combine,
    x: Value,
    begin: Value,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Value:
    """Windows of x, combined, and with `begin`: one axis after the other."""
    if not len(window) == len(strides) == len(dilations) == x.type.rank:
        raise OperatorError(f"window {window} of {x.type} with strides {strides} and dilations {dilations}")
    if min((*window, *strides, *dilations), default=1) < 1:
        raise OperatorError(f"a window of {window} places, strides {strides}, dilations {dilations}")
    if any(e < (w - 1) * d + 1 for e, w, d in zip(x.shape, window, dilations, strict=True)):
        raise OperatorError(f"{x.type} is smaller than the window {window}")
    for axis, (size, stride, dilation) in enumerate(zip(window, strides, dilations, strict=True)):
        if size > 1 or stride > 1:
            x = _along(n, combine, x, axis, size, stride, dilation)
    return combine(n.build(Expand(), begin, n.constant(x.shape, DType.INT64)), x)


def _along(
    n: Conversion, combine: Combine, x: Value, axis: int, size: int, stride: int, dilation: int
) -> Value:
    """Windows along an axis, of pieces of 1, 2, 4, ... places, each made of two of the one before."""

    def places(piece: Value, begin: int, end: int, step: int = 1) -> Value:
        return slices(
            n, piece, [(begin, end, step) if k == axis else (0, e, 1) for k, e in enumerate(piece.shape)]
        )

    count = (x.shape[axis] - (size - 1) * dilation - 1) // stride + 1
    total, done, covers, piece = None, 0, 1, x
    while True:
        if size & covers:
            part = places(piece, done * dilation, done * dilation + (count - 1) * stride + 1, stride)
            total, done = part if total is None else combine(total, part), done + covers
        if done == size:
            assert total is not None
            return total
        extent, shift = piece.shape[axis], covers * dilation
        piece = combine(places(piece, 0, extent - shift), places(piece, shift, extent))
        covers *= 2
