"""Cases: windows and bits."""

from __future__ import annotations

import numpy as np
from case import OpCase, draw, network, one, whole

from tflite_models import BOOL, FLOAT32, INT32, INT64, G, Op, T, floats, ints

_x = draw(2, 5, 6, 3)
_whole = whole(-1000, 1000, 2, 5)


def _number(x: T, value: float) -> T:
    return T("fill", (), x.type, scale=(), data=np.asarray(value, "int32" if x.type == INT32 else "float32"))


def _transposed(padding: int, shape: tuple[int, ...]) -> OpCase:
    w, x, b = draw(2, 3, 2, 4, 3), draw(1, 3, 4, 5, 3), draw(4)
    return one(
        f"CONV_3D_TRANSPOSE-{padding}",
        "CONV_3D_TRANSPOSE",
        [ints("s", shape), floats("w", *w.shape, data=w), x, floats("b", 4, data=b)],
        [floats("y", *shape)],
        "Conv3DOptions",
        {
            "Padding": padding,
            "StrideD": 2,
            "StrideH": 1,
            "StrideW": 2,
            "DilationDFactor": 1,
            "DilationHFactor": 1,
            "DilationWFactor": 1,
            "FusedActivationFunction": 0,
        },
    )


def _unequal(rows: int, columns: int) -> OpCase:
    """A transposed convolution with another input than one whose convolution gives its output."""
    w = draw(4, 5, 4, 3)
    return one(
        f"TRANSPOSE_CONV-{rows}-{columns}",
        "TRANSPOSE_CONV",
        [ints("s", [2, 10, 9, 4]), floats("w", *w.shape, data=w), draw(2, rows, columns, 3)],
        [floats("y", 2, 10, 9, 4)],
        "TransposeConvOptions",
        {"Padding": 0, "StrideH": 2, "StrideW": 3},
        oracle="tflm",
    )  # LiteRT 2.3 refuses it


def _window(reducer: int, x: np.ndarray, begin: float) -> OpCase:
    type_ = FLOAT32 if x.dtype == np.float32 else INT32
    y = T("y", (2, 2, 2, 3), type_, scale=())
    return one(
        f"REDUCE_WINDOW-{reducer}-{x.dtype}",
        "REDUCE_WINDOW",
        [
            x,
            _number(y, begin),
            ints("w", [1, 2, 3, 1], INT64),
            ints("s", [1, 2, 2, 1], INT64),
            ints("d", [1, 2, 1, 1], INT64),
        ],
        [y],
        "ReduceWindowOptions",
        {"ReduceFunction": reducer},
        oracle="litert-all",
    )


def _spread_window(
    label: str,
    body: str,
    x: np.ndarray,
    begin: float,
    result: tuple[int, ...],
    window: tuple[int, ...],
    strides: tuple[int, ...] = (1, 1),
    apart: tuple[int, ...] = (1, 1),
    dilations: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0, 0, 0),
) -> OpCase:
    """A window that is combined by an operator in a sub-graph."""
    type_ = {"float32": FLOAT32, "int32": INT32, "bool": BOOL}[str(x.dtype)]
    first = T("b", (), type_, scale=(), data=np.asarray(begin, x.dtype))
    sizes = {
        "WindowDimensions": window,
        "WindowStrides": strides,
        "BaseDilations": apart,
        "WindowDilations": dilations,
        "Padding": padding,
        "BodySubgraphIndex": 1,
    }
    operator = Op(
        "STABLEHLO_REDUCE_WINDOW",
        (0, 1),
        (2,),
        "StablehloReduceWindowOptions",
        {k: v if isinstance(v, int) else np.asarray(v) for k, v in sizes.items()},
    )
    options = {"ADD": "AddOptions", "MUL": "MulOptions"}.get(body)
    combination = G(
        [T(k, (), type_, scale=()) for k in "abc"], [Op(body, (0, 1), (2,), options)], [0, 1], [2]
    )
    tensors = [T("x", x.shape, type_, scale=()), first, T("y", result, type_, scale=())]
    return network(
        f"STABLEHLO_REDUCE_WINDOW-{label}",
        tensors,
        [operator],
        [0],
        [2],
        (x,),
        combination,
        oracle="litert-all",
    )


_rows = draw(4, 9)

CASES: list[OpCase] = [
    one("LOCAL_RESPONSE_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION", [draw(2, 3, 4, 9)],
        [floats("y", 2, 3, 4, 9)], "LocalResponseNormalizationOptions",
        {"Radius": 2, "Bias": 1.5, "Alpha": 0.3, "Beta": 0.75},
        oracle="litert-all"),  # its reference kernel leaves the last neighbour out
    _transposed(0, (1, 6, 4, 10, 4)),
    _transposed(1, (1, 6, 6, 10, 4)),
    *(_unequal(*extents) for extents in ((5, 3), (6, 5), (4, 2))),
    one("BITCAST-int32", "BITCAST", [draw(3, 4)], [T("y", (3, 4), INT32, scale=())], "BitcastOptions"),
    *(one(f"BITCAST-{x.dtype}{list(x.shape)}-{to}", "BITCAST", [x], [T("y", shape, to, scale=())],
          "BitcastOptions")
      for x, shape, to in (
          (draw(3, 4), (3, 4, 4), 3), (whole(-2**31, 2**31 - 1, 2, 5), (2, 5, 2), 7),
          (whole(-2**62, 2**62, 4, dtype="int64"), (4, 2), INT32),
          (whole(-99, 99, 6, dtype="int16"), (6, 2), 9), (whole(-9, 9, 4, dtype="int8"), (), INT32),
          (whole(-128, 127, 3, 2, 4, dtype="int8"), (3, 2), INT32),
          (whole(15000, 16000, 3, 2, dtype="int16"), (3,), FLOAT32),
          (whole(-2**31, 2**31 - 1, 5, 2), (5,), 4))),
    one("BITCAST-float32", "BITCAST", [whole(1 << 27, 1 << 28, 5)], [floats("y", 5)], "BitcastOptions"),
    one("RIGHT_SHIFT", "RIGHT_SHIFT", [_whole, np.asarray([[0, 1, 5, 31, 40], [3, -1, 2, 9, 32]], np.int32)],
        [T("y", (2, 5), INT32, scale=())], "RightShiftOptions"),
    *(one(f"STABLEHLO_{kind}-{x.dtype}", f"STABLEHLO_{kind}", [x, x[::-1].copy()],
          [T("y", x.shape, FLOAT32 if x.dtype == np.float32 else INT32, scale=())], oracle="litert-all")
      for kind in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM") for x in (draw(4, 3), whole(-90, 90, 4, 3))),
    one("STABLEHLO_AND", "STABLEHLO_AND", [_whole > 0, _whole < 500], [T("y", (2, 5), BOOL, scale=())],
        oracle="litert-all"),
    one("STABLEHLO_SHIFT_LEFT", "STABLEHLO_SHIFT_LEFT", [_whole, np.abs(_whole) % 12],
        [T("y", (2, 5), INT32, scale=())], oracle="litert-all"),
    one("DILATE", "DILATE", [draw(2, 3, 4), ints("d", [1, 3, 2]), _number(floats("f"), -1.5)],
        [floats("y", 2, 7, 7)], "DilateOptions", oracle="litert-all"),
    one("STABLEHLO_PAD", "STABLEHLO_PAD", [draw(3, 4), _number(floats("f"), 2.5)], [floats("y", 6, 5)],
        "StablehloPadOptions",
        {"EdgePaddingLow": np.asarray([2, -1]), "EdgePaddingHigh": np.asarray([-1, -1]),
         "InteriorPadding": np.asarray([1, 1])},
        oracle="litert-all"),
    _window(1, _x, 0.5),
    _window(2, _x, 1),
    _window(4, _x, -9),
    _window(3, whole(-99, 99, 2, 5, 6, 3), 1000),
    _spread_window("cumulative sum", "ADD", _rows, 0, (4, 9), (1, 9), padding=(0, 0, 8, 0)),
    _spread_window("sum backwards", "STABLEHLO_ADD", _rows, 0, (4, 9), (4, 1), padding=(0, 3, 0, 0)),
    _spread_window("cumulative maximum", "MAXIMUM", _rows, -np.inf, (4, 9), (1, 9), padding=(0, 0, 8, 0)),
    _spread_window("all", "STABLEHLO_MINIMUM", _rows, 5, (3, 2), (2, 7), (1, 2), (1, 1), (1, 1)),
    _spread_window("apart", "STABLEHLO_MULTIPLY", _rows, 1, (4, 8), (3, 5), (2, 2), (2, 2), (1, 1),
                   (1, 2, 0, 3)),
    _spread_window("dilated", "ADD", _rows, 0.5, (4, 3), (1, 3), (1, 3), (1, 1), (1, 2), (0, 0, 2, 2)),
    _spread_window("cut", "ADD", _rows, 0, (2, 3), (2, 5), (1, 1), (1, 1), (1, 1), (0, -1, -2, 0)),
    _spread_window("whole numbers", "STABLEHLO_ADD", whole(-99, 99, 4, 9), 7, (2, 4), (2, 3), (2, 2)),
    _spread_window("any", "LOGICAL_OR", _rows > 1, False, (3, 5), (2, 5)),
]  # fmt: skip
