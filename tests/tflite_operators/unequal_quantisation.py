"""Cases: operators that compare or move integers, whose output has another quantisation than their inputs.

LiteRT takes the integers as they are; so do files of old converters mean it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from case import OpCase, one, whole

from tflite_models import BOOL, INT8, INT16, UINT8, T, ints

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
_MASK = T("mask", (1, 5, 6, 3), BOOL, scale=(), data=np.arange(90).reshape(1, 5, 6, 3) % 3 == 0)


def _case(
    kind: str,
    dtype: str,
    shape: Sequence[int],
    constants: Sequence[T] = (),
    options: str | None = None,
    fields: dict[str, object] | None = None,
    inputs: int = 1,
    before: Sequence[T] = (),
) -> OpCase:
    limits, zeros = np.iinfo(dtype), _ZEROS[dtype]
    x = [whole(limits.min, limits.max, 1, 5, 6, 3, dtype=dtype) for _ in range(inputs)]
    tensors = [T(f"x{k}", x[0].shape, _TYPES[dtype], (0.1,), zeros[:1]) for k in range(inputs)]
    y = T("y", tuple(shape), _TYPES[dtype], (0.13,), zeros[1:])
    return one(
        f"{kind}-{dtype}-as-they-are", kind, [*before, *tensors, *constants], [y], options, fields, given=x
    )


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
        _case("TRANSPOSE", dtype, (1, 6, 3, 5), [ints("perm", [0, 2, 3, 1])]),
        _case("RESHAPE", dtype, (2, 45), [ints("shape", [2, 45])]),
        _case("SLICE", dtype, (1, 2, 4, 3), [ints("begin", [0, 1, 2, 0]), ints("size", [1, 2, 4, 3])]),
        _case("GATHER", dtype, (1, 4, 6, 3), [ints("places", [4, 0, 2, 2])], "GatherOptions", {"Axis": 1}),
        _case("TILE", dtype, (1, 10, 6, 3), [ints("times", [1, 2, 1, 1])]),
        _case("REVERSE_V2", dtype, (1, 5, 6, 3), [ints("axis", [2])]),
        _case(
            "SPLIT",
            dtype,
            (1, 5, 6, 3),
            options="SplitOptions",
            fields={"NumSplits": 1},
            before=[ints("axis", 2)],
        ),
        _case("GATHER_ND", dtype, (2, 6, 3), [ints("places", [[0, 4], [0, 1]])]),
        _case("SELECT_V2", dtype, (1, 5, 6, 3), inputs=2, before=[_MASK]),
        _case("SQUEEZE", dtype, (5, 6, 3), options="SqueezeOptions", fields={"SqueezeDims": [0]}),
    ]


CASES = [case for dtype in _TYPES for case in _of(dtype)]
