"""Cases: layers of floats with constants of 8 and 4 bits, with scales of their own for channels, rows and
blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from case import OpCase, draw, network, whole

from tflite_models import FLOAT16, FLOAT32, INT4, INT8, INT32, Op, T, floats, ints

_SCALES = tuple(float(s) for s in np.linspace(0.004, 0.02, 16))
_STEP = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": 1}
_LAYERS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], str, dict[str, Any]]] = {
    # kind: shapes of input, weights, output; options
    "CONV_2D": ((2, 5, 5, 16), (16, 2, 2, 16), (2, 4, 4, 16), "Conv2DOptions", _STEP),
    "DEPTHWISE_CONV_2D": (
        (2, 5, 5, 16),
        (1, 2, 2, 16),
        (2, 4, 4, 16),
        "DepthwiseConv2DOptions",
        {**_STEP, "DepthMultiplier": 1},
    ),
    "FULLY_CONNECTED": ((5, 32), (16, 32), (5, 16), "FullyConnectedOptions", {}),
}


def halves(values: np.ndarray) -> np.ndarray:
    """Integers of 4 bits, two in a byte."""
    flat = values.reshape(-1).astype(np.uint8) & 15
    return np.asarray(flat[::2] | flat[1::2] << 4, np.uint8)


def layer(
    kind: str, type_: int, asymmetric: bool = False, bias: bool = True, scales: tuple[float, ...] = _SCALES
) -> OpCase:
    """A layer that quantises its floats when it runs; a scale for each channel."""
    x, w, y, options, fields = _LAYERS[kind]
    data = halves(whole(-8, 7, *w)) if type_ == INT4 else whole(-127, 127, *w, dtype="int8")
    tensors = [
        floats("x", *x),
        T("w", w, type_, scales, (0,) * 16, data, axis=3 if kind.startswith("DEPTH") else 0),
        floats("b", 16, data=draw(16)),
        floats("y", *y),
    ]
    more = {"AsymmetricQuantizeInputs": asymmetric} if kind == "FULLY_CONNECTED" else {}
    return network(
        f"{kind}-hybrid-{type_}-{asymmetric}-{bias}{'' if scales is _SCALES else '-same'}",
        tensors,
        [Op(kind, (0, 1, 2) if bias else (0, 1, -1), (3,), options, {**fields, **more})],
        [0],
        [3],
        (draw(*x),),
    )


def product(a: tuple[int, ...], b: tuple[int, ...], adjoint: tuple[bool, bool], asymmetric: bool) -> OpCase:
    """A product of matrices whose first is quantised row by row when it runs."""
    shape = (*a[:-2], a[-1] if adjoint[0] else a[-2], b[-2] if adjoint[1] else b[-1])
    tensors = [
        floats("a", *a),
        T("b", b, INT8, (0.013,), (0,), whole(-127, 127, *b, dtype="int8")),
        floats("y", *shape),
    ]
    op = Op(
        "BATCH_MATMUL",
        (0, 1),
        (2,),
        "BatchMatMulOptions",
        {"AdjX": adjoint[0], "AdjY": adjoint[1], "AsymmetricQuantizeInputs": asymmetric},
    )
    return network(
        f"BATCH_MATMUL-hybrid-{a}-{b}-{adjoint}-{asymmetric}", tensors, [op], [0], [2], (draw(*a),)
    )


def dequantised(type_: int, zeros: tuple[int, ...]) -> OpCase:
    """Weights that an operator of their own makes floats, the zero points of channels too."""
    data = halves(whole(-8, 7, 16, 32)) if type_ == INT4 else whole(-127, 127, 16, 32, dtype="int8")
    tensors = [
        T("w", (16, 32), type_, _SCALES, zeros, data),
        floats("f", 16, 32),
        floats("x", 5, 32),
        floats("y", 5, 16),
    ]
    ops = [Op("DEQUANTIZE", (0,), (1,)), Op("FULLY_CONNECTED", (2, 1, -1), (3,), "FullyConnectedOptions")]
    return network(f"DEQUANTIZE-weights-{type_}-{zeros[1]}", tensors, ops, [2], [3], (draw(5, 32),))


def blocks(size: int, zeros: bool) -> OpCase:
    """A scale (and zero point) for each block of a row. LiteRT's own kernels do not have the form, so the
    product itself is what is wanted.
    """
    q, x = whole(-8, 7, 16, 32), draw(5, 32)
    s, z = np.asarray(draw(16, 32 // size, low=0.01, high=0.1), np.float16), whole(-8, 7, 16, 32 // size)
    tensors = [
        floats("x", 5, 32),
        T("w", (16, 32), INT4, scale=(), data=halves(q), blocks=(2, 4 if zeros else -1, size)),
        T("s", s.shape, FLOAT16, scale=(), data=s),
        floats("y", 5, 16),
    ]
    tensors += [T("z", z.shape, INT4, scale=(), data=halves(z))] if zeros else []
    real = (q - np.repeat(z if zeros else np.zeros_like(z), size, axis=1)) * np.repeat(
        s.astype(np.float64), size, axis=1
    )
    return network(
        f"FULLY_CONNECTED-blocks-{size}-{zeros}",
        tensors,
        [Op("FULLY_CONNECTED", (0, 1, -1), (3,), "FullyConnectedOptions")],
        [0],
        [3],
        (x,),
        oracle="numpy",
        expected=(np.asarray(x @ real.T, np.float32),),
    )


def zero_points(kind: str, oracle: str) -> OpCase:
    """Weights with a scale and a zero point for each channel: the kernels of both runtimes take no notice of
    the latter.
    """
    x, w, y, options, fields = _LAYERS[kind]
    zeros = tuple(range(-8, 8)) if oracle == "tflm" else (4,) * 16
    tensors = [
        T("x", x, INT8, (0.05,), (3,)),
        T(
            "w",
            w,
            INT8,
            _SCALES,
            zeros,
            whole(-127, 127, *w, dtype="int8"),
            axis=3 if kind.startswith("DEPTH") else 0,
        ),
        T("b", (16,), INT32, tuple(0.05 * s for s in _SCALES), (0,) * 16, whole(-999, 999, 16)),
        T("y", y, INT8, (0.3,), (-5,)),
    ]
    return network(
        f"{kind}-zero-points-{oracle}",
        tensors,
        [Op(kind, (0, 1, 2), (3,), options, fields)],
        [0],
        [3],
        (whole(-128, 127, *x, dtype="int8"),),
        oracle=oracle,
        arithmetic="tflm" if oracle == "tflm" else "litert-ref",
    )


def rows(type_: int) -> OpCase:
    """Rows of a table with a scale for each."""
    data = halves(whole(-8, 7, 16, 32)) if type_ == INT4 else whole(-127, 127, 16, 32, dtype="int8")
    tensors = [
        T("i", (3,), INT32, scale=()),
        T("w", (16, 32), type_, _SCALES, (0,) * 16, data),
        floats("y", 3, 32),
    ]
    return network(
        f"EMBEDDING_LOOKUP-each-{type_}",
        tensors,
        [Op("EMBEDDING_LOOKUP", (0, 1), (2,))],
        [0],
        [2],
        (np.asarray([15, 0, 7], np.int32),),
    )


def memory(asymmetric: bool) -> OpCase:
    """SVDF: the features of a row that is quantised when it runs."""
    w, t = (whole(-127, 127, 8, n, dtype="int8") for n in (10, 6))
    tensors = [
        floats("x", 2, 10),
        T("w", w.shape, INT8, (0.008,), (0,), w),
        T("t", t.shape, INT8, (0.011,), (0,), t),
        floats("b", 4, data=draw(4)),
        T("s", (2, 48), FLOAT32, scale=(), variable=True),
        floats("y", 2, 4),
    ]
    op = Op(
        "SVDF",
        (0, 1, 2, 3, 4),
        (5,),
        "SVDFOptions",
        {"Rank": 2, "FusedActivationFunction": 0, "AsymmetricQuantizeInputs": asymmetric},
    )
    return network(f"SVDF-hybrid-{asymmetric}", tensors, [op], [0], [5], (draw(2, 10),))


def transposed(each: bool) -> OpCase:
    w = whole(-127, 127, 4, 3, 3, 5, dtype="int8")
    scales = _SCALES[::4] if each else (0.01,)
    tensors = [
        floats("x", 2, 5, 6, 5),
        T("w", w.shape, INT8, scales, (0,) * len(scales), w),
        ints("s", [2, 10, 12, 4]),
        floats("b", 4, data=draw(4)),
        floats("y", 2, 10, 12, 4),
    ]
    op = Op(
        "TRANSPOSE_CONV",
        (2, 1, 0, 3),
        (4,),
        "TransposeConvOptions",
        {"Padding": 0, "StrideH": 2, "StrideW": 2},
    )
    return network(f"TRANSPOSE_CONV-hybrid-{each}", tensors, [op], [0], [4], (draw(2, 5, 6, 5),))


def recurrent(asymmetric: bool, time_major: bool = False, clip: float = 0.0) -> OpCase:
    """LSTM: 7 steps, at each of which input and hidden state are quantised."""
    batch, steps, inputs, units = 2, 7, 12, 16
    shape = (steps, batch) if time_major else (batch, steps)
    tensors, places = [floats("x", *shape, inputs)], [0]

    def add(t: T) -> None:
        places.append(len(tensors))
        tensors.append(t)

    for n in (inputs, units):
        for k in range(4):
            add(
                T(
                    f"w{n}.{k}",
                    (units, n),
                    INT8,
                    (0.008 + 0.001 * k,),
                    (0,),
                    whole(-127, 127, units, n, dtype="int8"),
                )
            )
    places += [-1] * 3
    for k in range(4):
        add(floats(f"b{k}", units, data=draw(units)))
    places += [-1] * 2
    for name in "hc":
        add(T(name, (batch, units), FLOAT32, scale=(), variable=True))
    tensors.append(floats("y", *shape, units))
    fields = {
        "FusedActivationFunction": 4,
        "AsymmetricQuantizeInputs": asymmetric,
        "TimeMajor": time_major,
        "CellClip": clip,
    }
    op = Op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        (*places, *[-1] * 4),
        (len(tensors) - 1,),
        "UnidirectionalSequenceLSTMOptions",
        fields,
    )
    return network(
        f"UNIDIRECTIONAL_SEQUENCE_LSTM-hybrid-{asymmetric}-{time_major}",
        tensors,
        [op],
        [0],
        [len(tensors) - 1],
        (draw(*shape, inputs),),
        tolerance=2e-6,
    )


PACKED = {
    c.name: nbytes
    for c, nbytes in (
        (layer("FULLY_CONNECTED", INT4), 16 * 16),
        (layer("FULLY_CONNECTED", INT4, True), 16 * 16),
        (layer("CONV_2D", INT4), 16 * 32),
        (dequantised(INT4, (0,) * 16), 16 * 16),
        (blocks(16, False), 16 * 16),
        (blocks(8, True), 16 * 16 + 128),
        (rows(INT4), 16 * 16),
        (rows(INT8), 16 * 32),
    )
}
"""Bytes of the integers of cases whose constants stay as they are in the file."""

CASES: list[OpCase] = [
    *(
        layer(k, t, a)
        for k, t, a in (
            ("CONV_2D", INT8, False),
            ("CONV_2D", INT4, False),
            ("DEPTHWISE_CONV_2D", INT8, False),
        )
    ),
    # Channels whose scales happen to be the same (clustered weights): LiteRT takes them as one scale.
    *(
        layer(k, t, scales=(0.01,) * 16)
        for k, t in (
            ("CONV_2D", INT8),
            ("CONV_2D", INT4),
            ("DEPTHWISE_CONV_2D", INT8),
            ("FULLY_CONNECTED", INT8),
        )
    ),
    *(layer("FULLY_CONNECTED", t, a, b) for t in (INT8, INT4) for a in (False, True) for b in (False, True)),
    product((4, 16), (8, 16), (False, True), False),
    product((4, 16), (16, 8), (False, False), True),
    product((16, 4), (16, 8), (True, False), False),
    product((2, 4, 16), (2, 16, 8), (False, False), False),
    product((3, 4, 16), (1, 16, 8), (False, False), True),
    product((2, 4, 16), (16, 8), (False, False), False),
    recurrent(False),
    recurrent(True),
    recurrent(False, True, 0.7),
    memory(False),
    memory(True),
    transposed(False),
    transposed(True),
    *(dequantised(t, z) for t in (INT8, INT4) for z in ((0,) * 16, tuple(range(-8, 8)))),
    blocks(16, False),
    blocks(8, True),
    blocks(32, False),
    rows(INT8),
    rows(INT4),
    zero_points("CONV_2D", "tflm"),
    zero_points("DEPTHWISE_CONV_2D", "tflm"),
    zero_points("FULLY_CONNECTED", "tflm"),
    zero_points("FULLY_CONNECTED", "litert"),
]
