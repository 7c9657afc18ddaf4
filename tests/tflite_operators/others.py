"""Cases: Fourier transforms, composites, functions by tables, convolutions of other kinds."""

from __future__ import annotations

import numpy as np
from case import OpCase, draw, network, one, whole

from tflite_models import COMPLEX64, INT8, INT16, G, Op, T, floats, ints

_signal = draw(3, 1, 30)
_square = draw(2, 7, 12)
_c = T("c", (3, 1, 17), COMPLEX64, scale=())
_every16 = np.arange(-32768, 32768, 7).astype(np.int16).reshape(1, -1)
_every8 = np.arange(-128, 128).astype(np.int8).reshape(1, -1)


def _function(
    kind: str,
    scales: tuple[float, float],
    zeros: tuple[int, int] = (0, 0),
    x: np.ndarray = _every16,
    tag: str = "",
    **fields: object,
) -> OpCase:
    type_ = INT16 if x.dtype == np.int16 else INT8
    tensors = [T("x", x.shape, type_, scales[:1], zeros[:1]), T("y", x.shape, type_, scales[1:], zeros[1:])]
    op = Op(kind, (0,), (1,), f"{kind.capitalize()}Options", fields) if fields else Op(kind, (0,), (1,))
    label = tag + "".join(f"-{v}" for v in fields.values())
    return network(f"{kind}-{x.dtype}{label}", tensors, [op], [0], [1], (x,))


def _product(
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    keep: bool,
    dtype: str,
    scale: float,
    zeros: tuple[int, int] = (0, 0),
) -> OpCase:
    """Elements of [-1.6, 1.6), a result of another scale."""
    limits = np.iinfo(dtype)
    x = whole(limits.min, limits.max, *shape, dtype=dtype)
    y = tuple(1 if a in axes else e for a, e in enumerate(shape) if keep or a not in axes)
    type_ = INT16 if dtype == "int16" else INT8
    tensors = [
        T("x", shape, type_, (1.6 / limits.max,), zeros[:1]),
        ints("axes", axes),
        T("y", y, type_, (scale / limits.max,), zeros[1:]),
    ]
    return network(
        f"REDUCE_PROD-{dtype}{list(shape)}{list(axes)}-{keep}",
        tensors,
        [Op("REDUCE_PROD", (0, 1), (2,), "ReducerOptions", {"KeepDims": keep})],
        [0],
        [2],
        (x,),
    )


def _transposed(padding: int) -> OpCase:
    """MediaPipe's transposed convolution; the same as TRANSPOSE_CONV."""
    x, w, b = draw(1, 5, 6, 3), draw(4, 3, 2, 3), draw(4)
    out = (1, 10, 18, 4) if padding == 1 else (1, 11, 17, 4)
    tensors = [
        floats("x", *x.shape),
        floats("w", *w.shape, data=w),
        floats("b", 4, data=b),
        floats("y", *out),
    ]
    op = Op(
        "CUSTOM:Convolution2DTransposeBias",
        (0, 1, 2),
        (3,),
        custom=np.asarray([padding, 3, 2], "<i4").tobytes(),
    )
    y = np.zeros((1, 11, 18, 4))
    for i in range(5):
        for j in range(6):
            y[0, 2 * i : 2 * i + 3, 3 * j : 3 * j + 2] += np.einsum("c,ohwc->hwo", x[0, i, j], w)
    expected = (y[:, : out[1], : out[2]] + b).astype(np.float32)
    return network(
        f"Convolution2DTransposeBias-{padding}",
        tensors,
        [op],
        [0],
        [3],
        (x,),
        oracle="numpy",
        expected=(expected,),
    )


_x, _w = draw(2, 3), draw(3)
_body = G(
    [floats("a", 2, 3), floats("b", 3), floats("d", 2, 3)],
    [Op("MUL", (0, 1), (2,), "MulOptions")],
    [0, 1],
    [2],
)


def _island(kind: str, **fields: object) -> OpCase:
    """A function of floats between int8, which becomes one table."""
    tensors = [
        T("x", _every8.shape, INT8, (0.029,), (11,)),
        floats("r", *_every8.shape),
        floats("f", *_every8.shape),
        T("y", _every8.shape, INT8, (0.017,), (-23,)),
    ]
    ops = [
        Op("DEQUANTIZE", (0,), (1,)),
        Op(kind, (1,), (2,), f"{kind.capitalize()}Options" if fields else None, fields),
        Op("QUANTIZE", (2,), (3,), "QuantizeOptions"),
    ]
    oracle = "litert-all" if kind == "ELU" else "litert"  # no reference kernel has it
    return network(f"{kind}-between-integers", tensors, ops, [0], [3], (_every8,), oracle=oracle)


CASES: list[OpCase] = [
    network(
        "RFFT2D-abs",
        [floats("x", 3, 1, 30), ints("n", [1, 32]), _c, floats("y", 3, 1, 17)],
        [Op("RFFT2D", (0, 1), (2,), "Rfft2dOptions"), Op("COMPLEX_ABS", (2,), (3,))],
        [0],
        [3],
        (_signal,),
        tolerance=1e-5,
    ),
    network(
        "RFFT2D-parts",
        [
            floats("x", 2, 7, 12),
            ints("n", [8, 16]),
            T("c", (2, 8, 9), COMPLEX64, scale=()),
            ints("s", [16, 9]),
            T("r", (16, 9), COMPLEX64, scale=()),
            floats("re", 16, 9),
            floats("im", 16, 9),
        ],
        [
            Op("RFFT2D", (0, 1), (2,), "Rfft2dOptions"),
            Op("RESHAPE", (2, 3), (4,), "ReshapeOptions"),
            Op("REAL", (4,), (5,)),
            Op("IMAG", (4,), (6,)),
        ],
        [0],
        [5, 6],
        (_square,),
        tolerance=1e-5,
    ),
    network(
        "STABLEHLO_COMPOSITE",
        [floats("x", 2, 3), floats("w", 3, data=_w), floats("y", 2, 3)],
        [
            Op(
                "STABLEHLO_COMPOSITE",
                (0, 1),
                (2,),
                "StableHLOCompositeOptions",
                {"DecompositionSubgraphIndex": 1, "Name": "test.scale"},
            )
        ],
        [0],
        [2],
        (_x,),
        _body,
        oracle="numpy",
        expected=(_x * _w,),
    ),
    network(
        "CALL",
        [floats("x", 2, 3), floats("w", 3, data=_w), floats("y", 2, 3)],
        [Op("CALL", (0, 1), (2,), "CallOptions", {"Subgraph": 1})],
        [0],
        [2],
        (_x,),
        _body,
        oracle="numpy",
        expected=(_x * _w,),
    ),
    one(
        "ATAN2",
        "ATAN2",
        [
            np.asarray([0, 1, -1, 2, -3, 0, 1, -1, 5], np.float32),
            np.asarray([0, 0, 0, 3, 1, -2, -4, -2, -0.5], np.float32),
        ],
        [floats("y", 9)],
    ),
    one(
        "ATAN2-zeros",
        "ATAN2",
        [
            np.asarray([0.0, -0.0, 0.0, -0.0, 1, -1, -0.0], np.float32),
            np.asarray([0.0, 0.0, -0.0, -0.0, -0.0, -0.0, -2], np.float32),
        ],
        [floats("y", 7)],
    ),
    one(
        "CONV_3D",
        "CONV_3D",
        [
            draw(1, 5, 6, 7, 2),
            floats("w", 2, 3, 2, 2, 3, data=draw(2, 3, 2, 2, 3)),
            floats("b", 3, data=draw(3)),
        ],
        [floats("y", 1, 3, 3, 4, 3)],
        "Conv3DOptions",
        {
            "Padding": 0,
            "StrideD": 2,
            "StrideH": 2,
            "StrideW": 2,
            "DilationDFactor": 1,
            "DilationHFactor": 1,
            "DilationWFactor": 1,
            "FusedActivationFunction": 1,
        },
    ),
    _function("EXP", (0.0001, 0.0009)),
    _function("LOG", (0.0002, 0.0003)),
    _function("LOG", (0.112, 0.00025), tag="-steep"),  # of a softplus of Keras: beside 0 the slope wraps
    _function("RSQRT", (0.0004, 0.0005), x=_every16[_every16 > 0].reshape(1, -1)),
    _function("GELU", (0.0002, 0.0001), Approximate=False),
    _function("GELU", (0.0002, 0.0002), Approximate=True),
    _product((7, 3), (1,), False, "int8", 3.0, (5, -7)),
    _product((3, 4, 5, 2), (0, 2), True, "int8", 20.0, (-30, 20)),
    _product((6, 1), (1,), False, "int8", 1.2),
    _product((30, 4), (1,), False, "int16", 4.0),
    _product((9, 2, 3), (0, 1, 2), False, "int16", 50.0),
    _function("EXP", (0.02, 0.05), (3, -128), _every8),
    _function("LOG", (0.027, 0.0276), (-38, 73), _every8),  # of what is not positive the lowest
    _function("SQRT", (0.02, 0.011), (-128, -120), _every8),
    _transposed(1),
    _transposed(2),
    _island("ELU"),
    _island("EXP"),
    _island("LOGISTIC"),
    _island("GELU", Approximate=True),
    _island("SIN"),
]
