"""Cases: integer layers, many elements each, so that a rounding that is done twice or in another precision
shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from case import OpCase, draw, network, whole

from tflite_models import INT4, INT8, INT16, INT32, INT64, UINT8, Op, T, floats

_LIMITS = {INT8: (-128, 127, "int8"), UINT8: (0, 255, "uint8"), INT16: (-32768, 32767, "int16")}


def _scales(channels: int, each: bool) -> tuple[float, ...]:
    return tuple(np.linspace(0.004, 0.02, channels).tolist()) if each else (0.0095,)


def layer(
    name: str,
    kind: str,
    type_: int,
    each: bool = False,
    bias: int | None = INT32,
    both: bool = True,
    nibbles: bool = False,
    **more: Any,
) -> list[OpCase]:
    """A layer of integers against LiteRT, and against TensorFlow Lite Micro where that has it. nibbles: its
    weights are int4.
    """
    low, high, dtype = _LIMITS[type_]
    channels, depth = 8, 16
    weights = UINT8 if type_ == UINT8 else INT8
    zero, w_zero, y_zero = (10, 130, 100) if type_ == UINT8 else (-5, 0, 3) if type_ == INT8 else (0, 0, 0)
    x_scale, y_scale = (0.0235, 0.21) if type_ != INT16 else (0.0003, 0.0021)
    shape = {
        "CONV_2D": (1, 14, 14, depth),
        "DEPTHWISE_CONV_2D": (1, 22, 22, channels),
        "TRANSPOSE_CONV": (1, 9, 9, depth),
    }.get(kind, (300, depth))
    w_shape = {
        "CONV_2D": (channels, 2, 2, depth),
        "DEPTHWISE_CONV_2D": (1, 3, 3, channels),
        "TRANSPOSE_CONV": (channels, 2, 2, depth),
    }.get(kind, (channels, depth))
    out = {
        "CONV_2D": (1, 13, 13, channels),
        "DEPTHWISE_CONV_2D": (1, 20, 20, channels),
        "TRANSPOSE_CONV": (1, 18, 18, channels),
    }.get(kind, (300, channels))
    options = {
        "CONV_2D": ("Conv2DOptions", {"Padding": 1, "StrideH": 1, "StrideW": 1}),
        "FULLY_CONNECTED": ("FullyConnectedOptions", {}),
        "DEPTHWISE_CONV_2D": (
            "DepthwiseConv2DOptions",
            {"Padding": 1, "StrideH": 1, "StrideW": 1, "DepthMultiplier": 1},
        ),
        "TRANSPOSE_CONV": ("TransposeConvOptions", {"Padding": 1, "StrideH": 2, "StrideW": 2}),
    }[kind]
    scale = _scales(channels, each)
    fields: dict[str, Any] = dict(options[1])
    if bias is not None and type_ == INT16 and bias == INT32:
        fields["QuantizedBiasType"] = INT32
    w = whole(
        0 if weights == UINT8 else -127,
        255 if weights == UINT8 else 127,
        *w_shape,
        dtype="uint8" if weights == UINT8 else "int8",
    )
    if nibbles:
        low_half, high_half = whole(-7, 7, 2, w.size // 2, dtype="int8").astype(np.uint8) & 15
        w, weights = low_half | high_half << 4, INT4
    tensors = [
        T("x", shape, type_, (x_scale,), (zero,)),
        T("w", w_shape, weights, scale, (w_zero,) * len(scale), w, axis=3 if kind.startswith("DEPTH") else 0),
        T("y", out, type_, (y_scale,), (y_zero,)),
    ]
    places = [0, 1]
    if kind == "TRANSPOSE_CONV":
        tensors.append(T("s", (4,), INT32, (), data=np.asarray(out, np.int32)))
        places = [3, 1, 0]
    if bias is not None:
        data = whole(-999, 999, channels, dtype="int64" if bias == INT64 else "int32")
        places.append(len(tensors))
        tensors.append(
            T(
                "b",
                (channels,),
                bias,
                tuple(float(np.float32(x_scale)) * float(np.float32(s)) for s in scale),
                (0,) * len(scale),
                data,
            )
        )
    op = Op(kind, tuple(places), (2,), options[0], fields)
    fed = (whole(low, high, *shape, dtype=dtype),)
    result = [network(name, tensors, [op], [0], [2], fed, **more)]
    if both:
        result.append(network(f"{name}-tflm", tensors, [op], [0], [2], fed, oracle="tflm", arithmetic="tflm"))
    return result


def pair(
    name: str,
    kind: str,
    type_: int,
    scales: tuple[float, float, float],
    zeros: tuple[int, int, int] = (0, 0, 0),
    options: str | None = None,
) -> list[OpCase]:
    """An element-wise operator on two quantised tensors, against both."""
    low, high, dtype = _LIMITS[type_]
    tensors = [T(n, (64, 40), type_, (s,), (z,)) for n, s, z in zip("aby", scales, zeros, strict=True)]
    fed = tuple(whole(low, high, 64, 40, dtype=dtype) for _ in range(2))
    op = Op(
        kind,
        (0, 1),
        (2,),
        options,
        {"PotScaleInt16": False} if options in ("AddOptions", "SubOptions") else {},
    )
    both = [("", "litert", "litert-ref")] + ([("-tflm", "tflm", "tflm")] if type_ != UINT8 else [])
    return [
        network(f"{name}-plane{more}", tensors, [op], [0, 1], [2], fed, oracle=oracle, arithmetic=arithmetic)
        for more, oracle, arithmetic in both
    ]


def joined() -> OpCase:
    """Bytes of several scales, one after the other."""
    tensors = [
        T("a", (9, 16), UINT8, (0.013,), (7,)),
        T("b", (9, 16), UINT8, (0.21,), (130,)),
        T("y", (18, 16), UINT8, (0.17,), (121,)),
    ]
    op = Op("CONCATENATION", (0, 1), (2,), "ConcatenationOptions", {"Axis": 0})
    every = np.arange(144, dtype=np.uint8).reshape(9, 16)
    return network("CONCATENATION-uint8", tensors, [op], [0, 1], [2], (every, 255 - every))


def columns(adjoint: bool) -> OpCase:
    """int16 by int8 with a scale for each column, powers of two: LiteRT's reference kernel takes them for
    0.
    """
    a, b, scales = (
        whole(-999, 999, 5, 24, dtype="int16"),
        whole(-127, 127, 24, 6, dtype="int8"),
        [2.0**-k for k in range(6)],
    )
    w = np.ascontiguousarray(b.T if adjoint else b)
    tensors = [
        T("a", a.shape, INT16, (0.5,), (0,)),
        T("b", w.shape, INT8, scales, (0,) * 6, w, axis=0 if adjoint else 1),
        T("y", (5, 6), INT16, (64.0,), (0,)),
    ]
    real = a.astype(np.int64) @ b.astype(np.int64) * np.asarray(scales) / 128
    expected = np.clip(np.floor(real + 0.5), -32768, 32767).astype(np.int16)
    op = Op("BATCH_MATMUL", (0, 1), (2,), "BatchMatMulOptions", {"AdjY": adjoint})
    return network(
        f"BATCH_MATMUL-each-{adjoint}", tensors, [op], [0], [2], (a,), oracle="numpy", expected=(expected,)
    )


_packed = whole(-127, 127, 24 * 16, dtype="int8").view(np.uint8)


CASES: list[OpCase] = [
    *layer("CONV_2D-uint8", "CONV_2D", UINT8, both=False),
    *layer("CONV_2D-int8", "CONV_2D", INT8),
    *layer("CONV_2D-int8-each", "CONV_2D", INT8, each=True),
    *layer("CONV_2D-int16", "CONV_2D", INT16, each=True, bias=INT64),
    *layer("CONV_2D-int16-bias32", "CONV_2D", INT16, each=True),
    *layer("DEPTHWISE-uint8", "DEPTHWISE_CONV_2D", UINT8, both=False),
    *layer("DEPTHWISE-int8-each", "DEPTHWISE_CONV_2D", INT8, each=True),
    *layer("DEPTHWISE-int16", "DEPTHWISE_CONV_2D", INT16, each=True, bias=INT64),
    *layer("FULLY_CONNECTED-uint8", "FULLY_CONNECTED", UINT8, both=False),
    *layer("FULLY_CONNECTED-int8", "FULLY_CONNECTED", INT8),
    *layer("FULLY_CONNECTED-int8-each", "FULLY_CONNECTED", INT8, each=True),
    *layer("FULLY_CONNECTED-int16", "FULLY_CONNECTED", INT16, bias=INT64),
    *layer("FULLY_CONNECTED-int16-bias32", "FULLY_CONNECTED", INT16),
    *layer("FULLY_CONNECTED-int16-each", "FULLY_CONNECTED", INT16, each=True, bias=INT64, both=False),
    *layer("FULLY_CONNECTED-int8-no-bias", "FULLY_CONNECTED", INT8, bias=None),
    *layer("TRANSPOSE_CONV-uint8", "TRANSPOSE_CONV", UINT8, both=False),
    *layer("TRANSPOSE_CONV-int8-each", "TRANSPOSE_CONV", INT8, each=True),
    *layer("TRANSPOSE_CONV-int16", "TRANSPOSE_CONV", INT16, each=True, bias=INT64),
    *pair("ADD-int16-far", "ADD", INT16, (0.0001, 0.013, 0.012), options="AddOptions"),
    *pair("SUB-int16-far", "SUB", INT16, (0.0001, 0.013, 0.012), options="SubOptions"),
    *pair("ADD-int16", "ADD", INT16, (0.0011, 0.0013, 0.0021), options="AddOptions"),
    *pair("SUB-int16", "SUB", INT16, (0.00017, 0.0013, 0.0012), options="SubOptions"),
    *pair("ADD-int8", "ADD", INT8, (0.011, 0.13, 0.12), (3, -9, 5), options="AddOptions"),
    *pair("SUB-uint8", "SUB", UINT8, (0.011, 0.13, 0.12), (3, 130, 90), options="SubOptions"),
    *pair("MUL-int16", "MUL", INT16, (0.0011, 0.0013, 0.041), options="MulOptions"),
    *pair("MUL-int8", "MUL", INT8, (0.011, 0.013, 0.019), (3, -9, 5), options="MulOptions"),
    *pair("SQUARED_DIFFERENCE-int8", "SQUARED_DIFFERENCE", INT8, (0.011, 0.013, 0.041), (3, -9, 5)),
    *pair("SQUARED_DIFFERENCE-int16", "SQUARED_DIFFERENCE", INT16, (0.0011, 0.0013, 1.9))[1:],
    *pair("MAXIMUM-int8", "MAXIMUM", INT8, (0.01, 0.01, 0.01), (3, 3, 3)),
    joined(),
    *[
        network(
            f"BATCH_MATMUL-{name}-plane{more}",
            [
                T("a", (2, 40, 24), a, (0.0011,), (0,)),
                T("b", (2, 24, 30), b, (0.013,), (0,)),
                T("y", (2, 40, 30), a, (ys,), (0,)),
            ],
            [Op("BATCH_MATMUL", (0, 1), (2,), "BatchMatMulOptions")],
            [0, 1],
            [2],
            (
                whole(*_LIMITS[a][:2], 2, 40, 24, dtype=_LIMITS[a][2]),
                whole(-127, 127, 2, 24, 30, dtype=_LIMITS[b][2]),
            ),
            oracle=oracle,
            arithmetic=arithmetic,
        )
        for name, a, b, ys in (
            ("int8", INT8, INT8, 0.0021),
            ("int16", INT16, INT16, 0.041),
            ("int16x8", INT16, INT8, 0.041),
        )
        for more, oracle, arithmetic in (("", "litert", "litert-ref"), ("-tflm", "tflm", "tflm"))
        if not (name == "int16x8" and more)
    ],
    *layer("CONV_2D-int8-int4", "CONV_2D", INT8, each=True, nibbles=True, both=False),
    *layer("DEPTHWISE-int8-int4", "DEPTHWISE_CONV_2D", INT8, each=True, nibbles=True, both=False),
    *layer("FULLY_CONNECTED-int8-int4", "FULLY_CONNECTED", INT8, nibbles=True, both=False),
    columns(False),
    columns(True),
    network(
        "FULLY_CONNECTED-int4",
        [
            floats("x", 5, 16),
            T("w", (24, 16), INT4, (0.05,) * 24, (0,) * 24, _packed[:192]),
            floats("y", 5, 24),
        ],
        [Op("FULLY_CONNECTED", (0, 1), (2,), "FullyConnectedOptions", {"AsymmetricQuantizeInputs": True})],
        [0],
        [2],
        (draw(5, 16),),
    ),
    network(
        "FULLY_CONNECTED-uint8-hybrid",
        [floats("x", 5, 16), T("w", (24, 16), UINT8, (0.05,), (0,), _packed), floats("y", 5, 24)],
        [Op("FULLY_CONNECTED", (0, 1), (2,), "FullyConnectedOptions", {"AsymmetricQuantizeInputs": False})],
        [0],
        [2],
        (draw(5, 16),),
    ),
]
