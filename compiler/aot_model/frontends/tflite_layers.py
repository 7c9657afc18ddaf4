"""TFLite: convolutions, fully connected layers, matrix products, pooling.

An integer layer becomes accumulators, a bias and a requantisation, which lowering fuses into one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.frontends.tflite_conversion import QUANTISED, Conversion, activation, rule
from aot_model.frontends.tflite_hybrid import is_hybrid, quantised_input, real_result, signed_weights
from aot_model.frontends.tflite_tensors import short
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.channels_first import resolved_pads
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.matmul import MatMul
from aot_model.ops.pool import Pool
from aot_model.ops.products import accumulator
from aot_model.ops.quantised_linear import DequantizeLinear
from aot_model.ops.requantise import RequantiseFloat

_PADDING = {0: "SAME_UPPER", 1: "VALID"}


def same_or_valid(code: int) -> str:
    if code not in _PADDING:
        raise OperatorError(f"padding {code} is unknown", "E102")
    return _PADDING[code]


def _pair(n: Conversion, options: str, first: str, second: str) -> tuple[int, int]:
    pair = (int(n.operator.options.get(options, first)), int(n.operator.options.get(options, second)))
    if min(pair) < 1:
        raise OperatorError(f"{first} and {second} are {pair}", "E301")
    return pair


def finish(n: Conversion, acc: Value, options: str, bias: int, w_scales: tuple[float, ...]) -> Value:
    """Bias, requantisation and activation of an integer layer; bias and activation of a float one."""
    act = activation(n, options)
    if n.has(bias):
        b = n.x(bias)
        if b.type.elements not in (acc.shape[-1], 1) or b.dtype.is_float != acc.dtype.is_float:
            raise OperatorError(f"bias {b.type} does not fit {acc.shape[-1]} channels of {acc.dtype.label}")
        if b.dtype is not acc.dtype:
            if b.data is None:
                raise OperatorError(f"bias {b.type} is not of type {acc.dtype.label}", "E202")
            low, high = acc.dtype.limits
            b = constant(b.name, np.clip(b.data, low, high).astype(acc.dtype.numpy))
        acc = n.add("Add", acc, n.reshape(b, (b.type.elements,)))
    if acc.dtype.is_float:
        return n.activate(acc, act)
    to = n.out_dtype()
    x_scale, scale = n.scale(0), n.scale_out()
    # The reference multiplies the scales in single precision where there is one for all channels, as there
    # was at first.
    real = n.operator.kind == "FULLY_CONNECTED" and n.host.arithmetic == "litert-ref"
    single = (
        len(w_scales) == 1
        and not real
        and acc.dtype is DType.INT32
        and (n.operator.kind == "FULLY_CONNECTED" or n.x(0).dtype is DType.UINT8)
    )
    products = [float(np.float32(x_scale) * np.float32(s)) if single else x_scale * s for s in w_scales]
    if real:
        factors = n.constant([p / scale for p in products], DType.FLOAT64)
        return n.build(RequantiseFloat(n.zero_out(), *n.limits(act), to), acc, factors)
    rounding = "wide" if acc.dtype is DType.INT64 and not _narrow(n, options, bias) else "double"
    return n.requantise(acc, [p / scale for p in products], n.limits(act), n.zero_out(), to, rounding)


def _narrow(n: Conversion, options: str, bias: int) -> bool:
    """Whether a layer of int16 has accumulators of 32 bits."""
    if n.operator.kind == "DEPTHWISE_CONV_2D":
        return False
    if n.has(bias):
        return n.tensor(bias).dtype is DType.INT32
    return bool(n.operator.options.get(options, "QuantizedBiasType") == 2)


def weight_parameters(
    n: Conversion, k: int, axis: int, channels: int, symmetric: bool = False
) -> tuple[tuple[float, ...], int]:
    """Scales (one, or one per output channel) and the zero point of integer weights.

    symmetric: the runtimes' kernels take int8 weights for symmetric ones even where they have one scale.
    """
    q = n.q(k)
    if any(q.zero_point) and n.x(k).dtype is DType.INT8 and (symmetric or len(q.scale) > 1):
        # The format gives them a meaning, its kernels give them none.
        n.host.note(
            f"tensor {n.tensor(k).index} ('{short(n.tensor(k).name)}'): zero points of int8 weights count as "
            "0, as in LiteRT and TensorFlow Lite Micro"
        )
        q = replace(q, zero_point=(0,) * len(q.scale))
    if len(set(q.zero_point)) != 1:
        raise OperatorError(
            "weights with several zero points are not supported",
            "E202",
            "quantise the model again, with symmetric weights",
        )
    if len(q.scale) > 1 and (q.axis != axis or len(q.scale) != channels):
        raise OperatorError(
            f"{len(q.scale)} scales along axis {q.axis} do not fit {channels} output channels along axis "
            f"{axis}",
            "E302",
        )
    return q.scale, q.zero_point[0]


def plain_weights(n: Conversion, k: int, to: DType) -> Value:
    """Weights for inputs of a type: those of a hybrid layer (floats times integers) are dequantised at
    compile time.
    """
    w = n.x(k)
    if to.is_float and w.dtype.is_integer and w.data is not None:
        blocks = n.tensor(k).blocks
        if blocks is not None:
            parts = row_blocks(n, k)
            if parts is None:
                return constant(w.name, blocks.dequantised(w.data))
            return n.build(DequantizeLinear(1, parts.block), parts.q, parts.scales, parts.zeros)
        q, integers = n.q(k), signed_weights(n, k).data
        assert integers is not None
        shape = [1] * w.type.rank
        if q.axis is not None:
            shape[q.axis] = -1
        scale = np.asarray(q.scale, dtype=np.float32).reshape(shape)
        zero = np.asarray(q.zero_point, dtype=np.float32).reshape(shape)
        return constant(w.name, ((integers.astype(np.float32) - zero) * scale).astype(np.float32))
    if to.is_float != w.dtype.is_float or (to.is_integer and to not in QUANTISED):
        raise OperatorError(f"{to.label} and weights {w.type} do not go together", "E202")
    return w


@dataclass(frozen=True)
class RowBlocks:
    """A constant matrix of integers whose rows are divided into blocks with scales of their own; a whole row
    can be one.
    """

    q: Value
    scales: Value
    zeros: Value | None
    block: int


def row_blocks(n: Conversion, k: int) -> RowBlocks | None:
    """The integers of a matrix as they are in the file, and their parameters; None where the form is another
    one.
    """
    w, blocks = n.x(k), n.tensor(k).blocks
    if w.type.rank != 2 or w.data is None or 0 in w.shape:
        return None
    if blocks is not None:
        scales, zeros = blocks.scales, blocks.zeros
    else:
        w = signed_weights(n, k)
        q = n.q(k)
        if q.axis not in (None, 0):
            return None
        scales, zeros = (
            np.broadcast_to(np.asarray(v), (w.shape[0],)).reshape(-1, 1) for v in (q.scale, q.zero_point)
        )
    if (
        scales.ndim != 2
        or scales.shape[0] != w.shape[0]
        or not scales.shape[1]
        or w.shape[1] % scales.shape[1]
        or not (scales > 0).all()
    ):
        return None
    q4 = nibbles(n, k, w)
    zero = None if zeros is None or not zeros.any() else n.constant(zeros.astype(q4.dtype.numpy))
    return RowBlocks(q4, n.constant(scales.astype(np.float32)), zero, w.shape[1] // scales.shape[1])


def nibbles(n: Conversion, k: int, w: Value) -> Value:
    """A constant in the 4 bits that it has in the file (ir/nibbles.py)."""
    small = {"INT4": DType.INT4, "UINT4": DType.UINT4}.get(n.tensor(k).kind)
    return (
        w if small is None or w.data is None else constant(w.name, w.data.astype(small.numpy), w.quantisation)
    )


def as_stored(n: Conversion, k: int, w: Value) -> Value:
    """Weights of a layer of 8-bit integers in the 4 bits that they have in the file."""
    return (
        nibbles(n, k, w)
        if w.dtype is DType.INT8 and n.x().dtype in (DType.INT8, DType.UINT8, DType.FLOAT32)
        else w
    )


@rule("CONV_2D", "DEPTHWISE_CONV_2D")
def convolution(n: Conversion) -> Value:
    depthwise = n.operator.kind == "DEPTHWISE_CONV_2D"
    options = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    x = n.x()
    hybrid = is_hybrid(n, 0, 1)
    w = signed_weights(n, 1) if hybrid else plain_weights(n, 1, x.dtype)
    if x.type.rank != 4 or w.type.rank != 4 or 0 in x.shape + w.shape:
        raise OperatorError(f"{x.type} and weights {w.type} are not those of a 2-D convolution")
    if depthwise and (w.shape[0] != 1 or w.shape[3] % x.shape[3]):
        raise OperatorError(f"depthwise weights {w.type} do not fit {x.shape[3]} channels")
    axis, group = (3, x.shape[3]) if depthwise else (0, x.shape[3] // w.shape[3] or 1)
    scales: tuple[float, ...] = (1.0,)
    w_zero = 0
    if x.dtype.is_integer:
        scales, w_zero = weight_parameters(n, 1, axis, w.shape[axis], symmetric=True)
    if depthwise:
        w = n.transpose(w, (3, 1, 2, 0))
    strides, dilations = (
        _pair(n, options, "StrideH", "StrideW"),
        _pair(n, options, "DilationHFactor", "DilationWFactor"),
    )
    pads = resolved_pads(
        same_or_valid(n.operator.options.get(options, "Padding")),
        None,
        x.shape[1:3],
        w.shape[1:3],
        strides,
        dilations,
    )
    if hybrid:
        scales, w_zero = weight_parameters(n, 1, axis, n.x(1).shape[axis])
        # Channels that all have the same scale are one scale to LiteRT, whose inputs are symmetric.
        q, scale = quantised_input(n, x, asymmetric=depthwise or len(set(scales)) > 1)
        acc = n.build(Convolution(strides, pads, dilations, group, 0, w_zero), q, as_stored(n, 1, w))
        return n.activate(real_result(n, acc, scale, 1, 2), activation(n, options))
    x_zero = n.zero() if x.dtype.is_integer else 0
    acc = n.build(Convolution(strides, pads, dilations, group, x_zero, w_zero), x, as_stored(n, 1, w))
    return finish(n, acc, options, 2, scales)


@rule("TRANSPOSE_CONV")
def transpose_conv(n: Conversion) -> Value:
    """Inputs: output shape, weights (O, H, W, I), x, bias. The output shape is also that of the output
    tensor.
    """
    options = "TransposeConvOptions"
    x = n.x(2)
    hybrid = is_hybrid(n, 2, 1)
    w = signed_weights(n, 1) if hybrid else plain_weights(n, 1, x.dtype)
    shape = n.ints(0, "the output shape") if n.x(0).is_const else n.declared_shape()
    if len(shape) != 4 or x.type.rank != 4 or w.type.rank != 4 or 0 in x.shape + w.shape:
        raise OperatorError(
            f"{x.type}, weights {w.type} and output shape {shape} are not those of a 2-D convolution"
        )
    strides = _pair(n, options, "StrideH", "StrideW")
    same = same_or_valid(n.operator.options.get(options, "Padding")) == "SAME_UPPER"
    begins, ends, extra = [], [], []
    for k in range(2):
        extent, wanted, taps = x.shape[1 + k], shape[1 + k], w.shape[1 + k]
        # as if the result were convolved: the input may have other extents than that gives
        total = max((-(-wanted // strides[k]) - 1) * strides[k] + taps - wanted, 0) if same else 0
        begin = total // 2
        begins.append(begin)
        end = (extent - 1) * strides[k] + taps - begin - wanted
        ends.append(max(end, 0))
        extra.append(max(-end, 0))
    scales: tuple[float, ...] = (1.0,)
    w_zero = 0
    if x.dtype.is_integer:
        scales, w_zero = weight_parameters(n, 1, 0, w.shape[0], symmetric=True)
    if hybrid:
        _, w_zero = weight_parameters(n, 1, 0, w.shape[0])
        q, scale = quantised_input(n, x, asymmetric=True)
        acc = n.build(
            ConvolutionTranspose(strides, (*begins, *ends), (1, 1), tuple(extra), 1, 0, w_zero), q, w
        )
        return n.activate(real_result(n, acc, scale, 1, 3), activation(n, options))
    x_zero = n.zero(2) if x.dtype.is_integer else 0
    acc = n.build(
        ConvolutionTranspose(strides, (*begins, *ends), (1, 1), tuple(extra), 1, x_zero, w_zero), x, w
    )
    moved = replace(
        n,
        inputs=(x, n.x(1), *n.inputs[3:4]),
        in_tensors=(n.in_tensors[2], n.in_tensors[1], *n.in_tensors[3:4]),
    )
    return finish(moved, acc, options, 2, scales)


@rule("CUSTOM:Convolution2DTransposeBias")
def transpose_conv_bias(n: Conversion) -> Value:
    """MediaPipe's: x, weights (O, H, W, I), bias; the options are three words: padding (1: same, 2: valid),
    strides.
    """
    if len(n.operator.custom) < 12:
        raise OperatorError(f"its options have {len(n.operator.custom)} bytes", "E102")
    padding, wide, high = (
        int.from_bytes(n.operator.custom[k : k + 4], "little", signed=True) for k in (0, 4, 8)
    )
    x, w = n.real(0), plain_weights(n, 1, DType.FLOAT32)
    if (
        padding not in (1, 2)
        or min(wide, high) < 1
        or x.type.rank != 4
        or w.type.rank != 4
        or 0 in x.shape + w.shape
    ):
        raise OperatorError(
            f"padding {padding} and strides {high}, {wide} do not fit {x.type} and weights {w.type}"
        )
    spatial = [
        d * s if padding == 1 else (d - 1) * s + t
        for d, s, t in zip(x.shape[1:3], (high, wide), w.shape[1:3], strict=True)
    ]
    begins, ends, extra = [], [], []
    for extent, wanted, taps, stride in zip(x.shape[1:3], spatial, w.shape[1:3], (high, wide), strict=True):
        begin = max((extent - 1) * stride + taps - wanted, 0) // 2
        end = (extent - 1) * stride + taps - begin - wanted
        begins.append(begin)
        ends.append(max(end, 0))
        extra.append(max(-end, 0))
    y = n.build(ConvolutionTranspose((high, wide), (*begins, *ends), (1, 1), tuple(extra), 1), x, w)
    return n.add("Add", y, n.reshape(n.real(2), (w.shape[0],))) if n.has(2) else y


@rule("CONV_3D")
def conv_3d(n: Conversion) -> Value:
    """Floats; weights are (D, H, W, I, O)."""
    options = "Conv3DOptions"
    x, w = n.real(0), n.real(1)
    if x.type.rank != 5 or w.type.rank != 5 or 0 in x.shape + w.shape or x.shape[4] != w.shape[3]:
        raise OperatorError(f"{x.type} and weights {w.type} are not those of a 3-D convolution")
    strides, dilations = (tuple(int(n.operator.options.get(options, f)) for f in fields) for fields in (
        ("StrideD", "StrideH", "StrideW"), ("DilationDFactor", "DilationHFactor", "DilationWFactor"),
    ))  # fmt: skip
    if min(strides + dilations) < 1:
        raise OperatorError(f"strides {strides} and dilations {dilations}")
    pads = resolved_pads(
        same_or_valid(n.operator.options.get(options, "Padding")),
        None,
        x.shape[1:4],
        w.shape[:3],
        strides,
        dilations,
    )
    return finish(
        n,
        n.build(Convolution(strides, pads, dilations), x, n.transpose(w, (4, 0, 1, 2, 3))),
        options,
        2,
        (1.0,),
    )


@rule("FULLY_CONNECTED")
def fully_connected(n: Conversion) -> Value:
    options = "FullyConnectedOptions"
    x = n.x()
    hybrid = is_hybrid(n, 0, 1)
    w = signed_weights(n, 1) if hybrid else plain_weights(n, 1, x.dtype)
    if n.operator.options.get(options, "WeightsFormat") != 0:
        raise OperatorError("shuffled weights are not supported", "E202")
    if w.type.rank != 2 or 0 in w.shape or x.type.elements % w.shape[1]:
        raise OperatorError(f"weights {w.type} do not fit {x.type}")
    scales, w_zero = weight_parameters(n, 1, 0, w.shape[0]) if x.dtype.is_integer else ((1.0,), 0)
    keep = n.operator.options.get(options, "KeepNumDims") and x.shape[-1:] == (w.shape[1],)
    rows = n.reshape(x, (x.type.elements // w.shape[1], w.shape[1]))
    if hybrid:
        _, w_zero = weight_parameters(n, 1, 0, w.shape[0])
        q, scale = quantised_input(n, rows, bool(n.operator.options.get(options, "AsymmetricQuantizeInputs")))
        acc = n.build(MatMul(0, w_zero), q, n.transpose(as_stored(n, 1, w), (1, 0)))
        y = n.activate(real_result(n, acc, scale, 1, 2), activation(n, options))
    else:
        acc = n.build(
            MatMul(n.zero() if x.dtype.is_integer else 0, w_zero),
            rows,
            n.transpose(as_stored(n, 1, w), (1, 0)),
        )
        y = finish(n, acc, options, 2, scales)
    return n.reshape(y, (*x.shape[:-1], w.shape[0])) if keep else y


@rule("BATCH_MATMUL")
def batch_matmul(n: Conversion) -> Value:
    a, b = n.x(0), n.x(1)
    if min(a.type.rank, b.type.rank) < 2:
        raise OperatorError(f"{a.type} and {b.type} are not matrices")
    hybrid = is_hybrid(n, 0, 1) and n.q(1).axis is None and 0 not in a.shape
    product = signed_weights(n, 1) if hybrid else plain_weights(n, 1, a.dtype) if a.dtype.is_float else b
    for k, name in enumerate(("AdjX", "AdjY")):
        if n.operator.options.get("BatchMatMulOptions", name):
            value = (a, product)[k]
            r = value.type.rank
            value = n.transpose(value, (*range(r - 2), r - 1, r - 2))
            a, product = (value, product) if k == 0 else (a, value)
    if hybrid:
        rows = n.reshape(a, (a.type.elements // a.shape[-1], a.shape[-1]))
        q, scale = quantised_input(
            n, rows, bool(n.operator.options.get("BatchMatMulOptions", "AsymmetricQuantizeInputs"))
        )
        acc = n.build(MatMul(0, n.zero(1)), n.reshape(q, a.shape), product)
        return real_result(n, acc, n.reshape(scale, (*a.shape[:-1], 1)), 1, 2)
    if a.dtype.is_float:
        return n.build(MatMul(), a, product)
    mixed = (a.dtype, b.dtype) == (DType.INT16, DType.INT8)
    if (a.dtype is not b.dtype and not mixed) or a.dtype not in QUANTISED:
        raise OperatorError(f"cannot multiply {a.type} by {b.type}", "E202")
    columns = b.type.rank - (2 if n.operator.options.get("BatchMatMulOptions", "AdjY") else 1)
    scales, zero = weight_parameters(n, 1, columns, b.shape[columns])
    acc = n.build(MatMul(n.zero(0), zero), a, product)
    products = [float(np.float32(n.scale(0)) * np.float32(s)) for s in scales]
    rounding = "wide" if accumulator(a.dtype) is DType.INT64 else "double"
    return n.requantise(
        acc, [p / n.scale_out() for p in products], n.limits(), n.zero_out(), n.out_dtype(), rounding
    )


@rule("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pool(n: Conversion) -> Value:
    options = "Pool2DOptions"
    x = n.x()
    if x.type.rank != 4 or 0 in x.shape:
        raise OperatorError(f"{x.type} is not the input of 2-D pooling")
    kernel, strides = (
        _pair(n, options, "FilterHeight", "FilterWidth"),
        _pair(n, options, "StrideH", "StrideW"),
    )
    padding = same_or_valid(n.operator.options.get(options, "Padding"))
    pads = resolved_pads(padding, None, x.shape[1:3], kernel, strides, (1, 1))
    mode = "max" if n.operator.kind == "MAX_POOL_2D" else "average"
    act = activation(n, options)
    if n.operator.kind == "L2_POOL_2D":
        if not x.dtype.is_float:
            raise OperatorError("L2 pooling of integers is not supported", "E202")
        return n.activate(n.add("Sqrt", n.build(Pool(mode, kernel, strides, pads), n.add("Mul", x, x))), act)
    y = n.build(Pool(mode, kernel, strides, pads), x)
    if x.dtype.is_float:
        return n.activate(y, act)
    n.as_they_are(0)
    if act == "NONE":
        return y
    low, high = n.limits(act)
    least, most = y.dtype.limits
    return n.clip(y, low if low > least else None, high if high < most else None)
