"""Cases: constants of zeros whose scale is 0. Converters write it for what has no range: the state that an
unrolled LSTM begins with, channels that training has emptied.
"""

from __future__ import annotations

import numpy as np
from case import OpCase, one, whole

from tflite_models import INT8, INT16, INT32, T

_ALONE = {"FusedActivationFunction": 0}


def _product(dtype: str, scale: float, zero: int = 0) -> OpCase:
    """A tensor times such a constant. LiteRT ends the process where one is added."""
    limits, code = np.iinfo(dtype), {"int8": INT8, "int16": INT16}[dtype]
    x = whole(limits.min, limits.max, 1, 24, dtype=dtype)
    nothing = T("nothing", (1, 24), code, (0.0,), (zero,), data=np.full((1, 24), zero, dtype))
    y = T("y", (1, 24), code, (scale,), (0 if dtype == "int16" else 4,))
    given = [T("x", (1, 24), code, (3.0e-5,), (0,)), nothing]
    return one(f"MUL-{dtype}-zeros-{zero}-{scale:.0e}", "MUL", given, [y], "MulOptions", _ALONE, given=[x])


def _layer(kind: str, empty: tuple[int, ...]) -> OpCase:
    """A layer some of whose channels are empty."""
    shape, count = {"CONV_2D": ((8, 1, 1, 6), 8), "DEPTHWISE_CONV_2D": ((1, 3, 3, 6), 6)}[kind]
    axis = 0 if kind == "CONV_2D" else 3
    weights = whole(-127, 127, *shape, dtype="int8")
    np.moveaxis(weights, axis, 0)[list(empty)] = 0
    scales = [0.0 if k in empty else 0.01 + 0.001 * k for k in range(count)]
    x, y = T("x", (1, 5, 4, 6), INT8, (0.1,), (-3,)), T("y", (1, 5, 4, count), INT8, (0.5,), (7,))
    w = T("w", shape, INT8, tuple(scales), (0,) * count, data=weights, axis=axis)
    b = T(
        "b",
        (count,),
        INT32,
        tuple(0.1 * s for s in scales),
        (0,) * count,
        data=whole(-400, 400, count),
        axis=0,
    )
    fields: dict[str, object] = {"Padding": 0, "StrideW": 1, "StrideH": 1, "FusedActivationFunction": 0}
    fields |= {"DepthMultiplier": 1} if kind != "CONV_2D" else {}
    options = "Conv2DOptions" if kind == "CONV_2D" else "DepthwiseConv2DOptions"
    given = [whole(-128, 127, 1, 5, 4, 6, dtype="int8")]
    return one(f"{kind}-empty-channels-{len(empty)}", kind, [x, w, b], [y], options, fields, given=given)


CASES = [
    _product("int16", 3.587324068671532e-43),
    _product("int16", 1e-5),
    _product("int8", 1e-5),
    _product("int8", 1e-5, zero=3),
    _layer("CONV_2D", (0, 5)),
    _layer("CONV_2D", tuple(range(8))),
    _layer("DEPTHWISE_CONV_2D", (2,)),
]
