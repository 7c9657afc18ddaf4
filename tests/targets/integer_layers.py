"""TFLite models of one int8 layer each, with the edges that libraries for microcontrollers stumble over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tflite_models import INT8, INT32, Op, T, build

SAME, VALID = 0, 1
NONE, RELU, RELU6 = 0, 1, 3


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: kind, shapes and whatever differs from the usual."""

    name: str
    kind: str
    x: tuple[int, ...]
    w: tuple[int, ...] = ()
    y: tuple[int, ...] = ()
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: int = SAME
    activation: int = NONE
    zeros: tuple[int, int] = (-3, 5)
    """Zero points of input and output."""
    scale: float = 0.05
    per_channel: bool = True
    bias: bool = True
    more: dict[str, int] = field(default_factory=dict)

    def save(self, folder: Path) -> Path:
        """The model as a file."""
        path = folder / f"{self.name}.tflite"
        path.write_bytes(_WRITERS[self.kind](self))
        return path

    def inputs(self, count: int = 3) -> Iterator[list[np.ndarray]]:
        """Vectors: random ones, then the extremes."""
        rng = np.random.default_rng(len(self.name))
        number = 2 if self.kind in ("ADD", "MUL") else 1
        for _ in range(count):
            yield [rng.integers(-128, 128, self.x, dtype=np.int8) for _ in range(number)]
        yield [np.full(self.x, -128, np.int8) for _ in range(number)]
        yield [np.full(self.x, 127, np.int8) for _ in range(number)]


def _x(layer: Layer, name: str = "x", scale: float = 0.05) -> T:
    return T(name, layer.x, INT8, (scale,), (layer.zeros[0],))


def _y(layer: Layer) -> T:
    return T("y", layer.y, INT8, (layer.scale,), (layer.zeros[1],))


def _weights(layer: Layer, axis: int) -> list[T]:
    rng = np.random.default_rng(5)
    channels = layer.w[axis]
    count = channels if layer.per_channel else 1
    scales = tuple(float(s) for s in np.asarray(rng.uniform(0.001, 0.02, count), np.float32))
    w = T("w", layer.w, INT8, scales, (0,) * count, rng.integers(-127, 128, layer.w, dtype=np.int8), axis)
    bias = T(
        "b",
        (channels,),
        INT32,
        tuple(0.05 * s for s in scales),
        (0,) * count,
        np.asarray(rng.integers(-3000, 3000, channels), np.int32),
    )
    return [w, *([bias] if layer.bias else [])]


def _windows(layer: Layer) -> dict[str, int]:
    return {
        "Padding": layer.padding,
        "StrideH": layer.stride[0],
        "StrideW": layer.stride[1],
        "FusedActivationFunction": layer.activation,
    }


def _one(layer: Layer, operands: list[T], options: str, fields: dict[str, int]) -> bytes:
    tensors = [*operands, _y(layer)]
    ports = [k for k, t in enumerate(operands) if t.data is None]
    return build(
        tensors,
        [Op(layer.kind, tuple(range(len(operands))), (len(operands),), options, {**fields, **layer.more})],
        ports,
        [len(operands)],
    )


def _convolution(layer: Layer) -> bytes:
    fields = {**_windows(layer), "DilationHFactor": layer.dilation[0], "DilationWFactor": layer.dilation[1]}
    return _one(layer, [_x(layer), *_weights(layer, 0)], "Conv2DOptions", fields)


def padded_convolution(top: int, left: int, bottom: int, right: int, kernel: int = 3) -> bytes:
    """PAD, then a convolution without padding of its own, stride 2."""
    x, z = (1, 6, 5, 3), (1, 6 + top + bottom, 5 + left + right, 3)
    layer = Layer(
        "padded",
        "CONV_2D",
        z,
        (4, kernel, kernel, 3),
        (1, (z[1] - kernel) // 2 + 1, (z[2] - kernel) // 2 + 1, 4),
        (2, 2),
        padding=VALID,
    )
    quantised = ((0.05,), (-3,))
    pads = np.asarray([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32)
    tensors = [
        T("x", x, INT8, *quantised),
        T("pads", (4, 2), INT32, (), (), pads),
        T("z", z, INT8, *quantised),
        *_weights(layer, 0),
        _y(layer),
    ]
    fields = {**_windows(layer), "DilationHFactor": 1, "DilationWFactor": 1}
    return build(
        tensors,
        [Op("PAD", (0, 1), (2,), "PadOptions"), Op("CONV_2D", (2, 3, 4), (5,), "Conv2DOptions", fields)],
        [0],
        [5],
    )


def _depthwise(layer: Layer) -> bytes:
    fields = {
        **_windows(layer),
        "DilationHFactor": layer.dilation[0],
        "DilationWFactor": layer.dilation[1],
        "DepthMultiplier": layer.w[3] // layer.x[3],
    }
    return _one(layer, [_x(layer), *_weights(layer, 3)], "DepthwiseConv2DOptions", fields)


def _fully_connected(layer: Layer) -> bytes:
    return _one(
        layer,
        [_x(layer), *_weights(layer, 0)],
        "FullyConnectedOptions",
        {"FusedActivationFunction": layer.activation},
    )


def _pool(layer: Layer) -> bytes:
    x = T("x", layer.x, INT8, (layer.scale,), (layer.zeros[1],))  # pooling keeps the quantisation
    return _one(
        layer,
        [x],
        "Pool2DOptions",
        {**_windows(layer), "FilterHeight": layer.w[0], "FilterWidth": layer.w[1]},
    )


def _pair(layer: Layer) -> bytes:
    fields = {"FusedActivationFunction": layer.activation}
    b = T("b", layer.w or layer.x, INT8, (0.11,), (layer.zeros[1],))
    return _one(layer, [_x(layer, "a"), b], "AddOptions" if layer.kind == "ADD" else "MulOptions", fields)


def _softmax(layer: Layer) -> bytes:
    tensors = [
        T("x", layer.x, INT8, (layer.scale,), (layer.zeros[0],)),
        T("y", layer.x, INT8, (1 / 256,), (-128,)),
    ]
    return build(
        tensors,
        [Op("SOFTMAX", (0,), (1,), "SoftmaxOptions", {"Beta": layer.more.get("beta", 1.0)})],
        [0],
        [1],
    )


_WRITERS = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "AVERAGE_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
    "ADD": _pair,
    "MUL": _pair,
    "SOFTMAX": _softmax,
}

CONVOLUTIONS = (
    Layer("conv_3x3", "CONV_2D", (1, 7, 6, 3), (4, 3, 3, 3), (1, 7, 6, 4)),
    Layer("conv_asymmetric_padding", "CONV_2D", (1, 8, 7, 2), (3, 4, 2, 2), (1, 4, 4, 3), stride=(2, 2)),
    Layer(
        "conv_stride_beyond_kernel",
        "CONV_2D",
        (1, 9, 8, 2),
        (3, 2, 1, 2),
        (1, 3, 2, 3),
        stride=(3, 5),
        padding=VALID,
    ),
    Layer("conv_dilation", "CONV_2D", (1, 9, 9, 2), (3, 3, 3, 2), (1, 9, 9, 3), dilation=(2, 3)),
    Layer("conv_batch", "CONV_2D", (3, 5, 4, 2), (3, 3, 2, 2), (3, 5, 4, 3)),
    Layer("conv_per_tensor", "CONV_2D", (1, 5, 5, 3), (4, 3, 3, 3), (1, 5, 5, 4), per_channel=False),
    Layer("conv_without_bias", "CONV_2D", (1, 5, 5, 3), (4, 3, 3, 3), (1, 5, 5, 4), bias=False),
    Layer(
        "conv_zero_points_low",
        "CONV_2D",
        (1, 5, 5, 3),
        (4, 3, 3, 3),
        (1, 5, 5, 4),
        zeros=(-128, -128),
        activation=RELU,
    ),
    Layer("conv_zero_points_high", "CONV_2D", (1, 5, 5, 3), (4, 3, 3, 3), (1, 5, 5, 4), zeros=(127, 127)),
    Layer(
        "conv_relu6", "CONV_2D", (1, 5, 5, 3), (4, 3, 3, 3), (1, 5, 5, 4), activation=RELU6, zeros=(0, -20)
    ),
    Layer("conv_large_multiplier", "CONV_2D", (1, 3, 3, 2), (3, 1, 1, 2), (1, 3, 3, 3), scale=0.0001),
    Layer("conv_1x1", "CONV_2D", (1, 5, 3, 17), (9, 1, 1, 17), (1, 5, 3, 9)),
    Layer("conv_1x1_stride", "CONV_2D", (1, 5, 4, 8), (6, 1, 1, 8), (1, 3, 2, 6), stride=(2, 2)),
    Layer("conv_1x1_batch", "CONV_2D", (2, 4, 3, 8), (6, 1, 1, 8), (2, 4, 3, 6)),
    Layer("conv_row", "CONV_2D", (1, 1, 20, 4), (5, 1, 3, 4), (1, 1, 20, 5)),
    Layer("conv_row_even", "CONV_2D", (1, 1, 21, 4), (5, 1, 4, 4), (1, 1, 11, 5), stride=(1, 2)),
    Layer("conv_row_short", "CONV_2D", (1, 1, 3, 4), (5, 1, 7, 4), (1, 1, 3, 5)),
    Layer(
        "conv_row_rest", "CONV_2D", (1, 1, 20, 4), (5, 1, 2, 4), (1, 1, 7, 5), stride=(1, 3), padding=VALID
    ),
    Layer("conv_row_batch", "CONV_2D", (2, 1, 9, 4), (5, 1, 3, 4), (2, 1, 9, 5)),
    Layer("conv_one_channel", "CONV_2D", (1, 9, 5, 1), (6, 5, 4, 1), (1, 5, 3, 6), stride=(2, 2)),
    Layer("depthwise_3x3", "DEPTHWISE_CONV_2D", (1, 7, 6, 5), (1, 3, 3, 5), (1, 7, 6, 5)),
    Layer("depthwise_many_channels", "DEPTHWISE_CONV_2D", (1, 4, 3, 131), (1, 3, 3, 131), (1, 4, 3, 131)),
    Layer("depthwise_stride", "DEPTHWISE_CONV_2D", (1, 7, 6, 5), (1, 3, 3, 5), (1, 4, 3, 5), stride=(2, 2)),
    Layer("depthwise_5x2", "DEPTHWISE_CONV_2D", (1, 7, 6, 5), (1, 5, 2, 5), (1, 7, 6, 5)),
    Layer("depthwise_multiplier", "DEPTHWISE_CONV_2D", (1, 6, 5, 3), (1, 3, 2, 9), (1, 6, 5, 9)),
    Layer("depthwise_one_channel", "DEPTHWISE_CONV_2D", (1, 6, 5, 1), (1, 3, 3, 9), (1, 6, 5, 9)),
    Layer(
        "depthwise_dilation", "DEPTHWISE_CONV_2D", (1, 9, 9, 4), (1, 3, 3, 4), (1, 9, 9, 4), dilation=(2, 2)
    ),
    Layer("depthwise_batch", "DEPTHWISE_CONV_2D", (2, 5, 5, 4), (1, 3, 3, 4), (2, 5, 5, 4)),
    Layer(
        "depthwise_zero_points",
        "DEPTHWISE_CONV_2D",
        (1, 5, 5, 4),
        (1, 4, 4, 4),
        (1, 5, 5, 4),
        zeros=(-128, 127),
    ),
)
OTHERS = (
    Layer("dense", "FULLY_CONNECTED", (1, 37), (11, 37), (1, 11), per_channel=False),
    Layer(
        "dense_batch",
        "FULLY_CONNECTED",
        (5, 16),
        (6, 16),
        (5, 6),
        per_channel=False,
        zeros=(127, -128),
        activation=RELU,
    ),
    Layer("dense_per_channel", "FULLY_CONNECTED", (3, 18), (7, 18), (3, 7)),
    Layer(
        "dense_without_bias",
        "FULLY_CONNECTED",
        (1, 9),
        (4, 9),
        (1, 4),
        per_channel=False,
        bias=False,
        zeros=(-128, 0),
    ),
    Layer("average", "AVERAGE_POOL_2D", (1, 7, 6, 5), (3, 2), (1, 7, 6, 5)),
    Layer("average_whole", "AVERAGE_POOL_2D", (1, 25, 5, 17), (25, 5), (1, 1, 1, 17), (25, 5), padding=VALID),
    Layer(
        "average_relu6_batch",
        "AVERAGE_POOL_2D",
        (2, 5, 5, 3),
        (2, 2),
        (2, 3, 3, 3),
        (2, 2),
        activation=RELU6,
        zeros=(0, -100),
    ),
    Layer("max", "MAX_POOL_2D", (1, 7, 6, 5), (3, 2), (1, 7, 6, 5)),
    Layer("max_stride_beyond_window", "MAX_POOL_2D", (2, 9, 8, 19), (2, 2), (2, 3, 3, 19), (3, 3)),
    Layer(
        "max_relu", "MAX_POOL_2D", (1, 6, 6, 3), (2, 2), (1, 3, 3, 3), (2, 2), activation=RELU, zeros=(0, 7)
    ),
    Layer("add", "ADD", (1, 5, 4, 3), y=(1, 5, 4, 3), scale=0.13),
    Layer("add_zero_points", "ADD", (1, 37), y=(1, 37), zeros=(-128, 127), activation=RELU, scale=0.02),
    Layer("mul", "MUL", (1, 5, 4, 3), y=(1, 5, 4, 3), scale=0.13),
    Layer("mul_relu6", "MUL", (1, 37), y=(1, 37), zeros=(127, -128), activation=RELU6, scale=0.02),
    Layer("softmax", "SOFTMAX", (1, 12), y=(1, 12), scale=0.1),
    Layer("softmax_rows", "SOFTMAX", (7, 5), y=(7, 5), scale=0.9),
    Layer("softmax_steep", "SOFTMAX", (2, 130), y=(2, 130), scale=5.0),
)
