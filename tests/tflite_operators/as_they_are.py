"""Cases: operators that compare or move integers, whose output has another quantisation than their inputs.

LiteRT takes the integers as they are; so do files of old converters mean it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from case import OpCase, one, whole

from tflite_models import INT8, INT16, UINT8, T, ints

_TYPES = {"int8": INT8, "uint8": UINT8, "int16": INT16}
_ZEROS = {"int8": (-3, 5), "uint8": (120, 131), "int16": (0, 0)}
_WINDOW = {
    "Padding": 0,
    "StrideW": 2,
    "StrideH": 1,
    "FilterWidth": 3,
    "FilterHeight": 2,
    "FusedActivationFunction": 1,
}


def _case(
    kind: str,
    dtype: str,
    shape: Sequence[int],
    constants: Sequence[T] = (),
    options: str | None = None,
    fields: dict[str, object] | None = None,
    inputs: int = 1,
) -> OpCase:
    limits, zeros = np.iinfo(dtype), _ZEROS[dtype]
    x = [whole(limits.min, limits.max, 1, 5, 6, 3, dtype=dtype) for _ in range(inputs)]
    tensors = [T(f"x{k}", x[0].shape, _TYPES[dtype], (0.1,), zeros[:1]) for k in range(inputs)]
    y = T("y", tuple(shape), _TYPES[dtype], (0.13,), zeros[1:])
    return one(f"{kind}-{dtype}-as-they-are", kind, [*tensors, *constants], [y], options, fields, given=x)


def _of(dtype: str) -> list[OpCase]:
    size = ints("size", [7, 9])
    return [
        _case("RESIZE_BILINEAR", dtype, (1, 7, 9, 3), [size], "ResizeBilinearOptions", {}),
        _case("RESIZE_NEAREST_NEIGHBOR", dtype, (1, 7, 9, 3), [size], "ResizeNearestNeighborOptions", {}),
        _case("PAD", dtype, (1, 8, 9, 3), [ints("pads", [[0, 0], [1, 2], [0, 3], [0, 0]])]),
        _case("MAXIMUM", dtype, (1, 5, 6, 3), inputs=2),
        _case("MINIMUM", dtype, (1, 5, 6, 3), inputs=2),
        _case("AVERAGE_POOL_2D", dtype, (1, 5, 3, 3), (), "Pool2DOptions", _WINDOW),
        _case("MAX_POOL_2D", dtype, (1, 5, 3, 3), (), "Pool2DOptions", _WINDOW),
    ]


CASES = [case for dtype in _TYPES for case in _of(dtype)]
