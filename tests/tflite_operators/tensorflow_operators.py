"""Cases: operators of TensorFlow itself (SELECT_TF_OPS). LiteRT's package has none of them: numpy, or the
functions of Python's math, say what they give.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from case import OpCase, draw, one, plain
from flatbuffers import flexbuffers

from tflite_models import BOOL, FLOAT32, T, ints

FLOAT64 = 10


def _sized(number: int, data: bytes) -> bytes:
    """A field of Protocol Buffers; all sizes are below 128."""
    return bytes([number << 3 | 2, len(data)]) + data


def node(kind: str, **attributes: bool | str | tuple[int, ...]) -> bytes:
    """The custom options of an operator: its kind and a NodeDef."""
    fields = b"\x0a\x04node" + _sized(2, kind.encode())
    for name, value in attributes.items():
        if isinstance(value, bool):
            said = bytes([5 << 3, value])
        elif isinstance(value, str):
            said = _sized(2, value.encode())
        else:
            said = _sized(1, _sized(3, bytes(value)))
        fields += _sized(5, _sized(1, name.encode()) + _sized(2, said))
    return bytes(flexbuffers.Dumps([kind, fields.decode()]))


_x = draw(9, low=-0.9, high=0.9)
_FUNCTIONS = (
    ("Acos", _x, math.acos),
    ("Acosh", np.abs(_x) + 1, math.acosh),
    ("Asin", _x, math.asin),
    ("Asinh", _x, math.asinh),
    ("Atan", _x * 3, math.atan),
    ("Atanh", _x, math.atanh),
    ("Cosh", _x, math.cosh),
    ("Erf", _x * 3, math.erf),
    ("Erfc", _x * 3, math.erfc),
    ("Expm1", np.asarray([-90, -3, -1e-6, -0.0, 1e-7, 0.3, 2, 5, 9], np.float32), math.expm1),
    ("Inv", _x, lambda v: 1 / v),
    ("Log1p", np.asarray([-0.9999999, -0.5, -1e-6, 0, 1e-7, 0.49, 0.5, 3, 1e30], np.float32), math.log1p),
    ("Reciprocal", _x, lambda v: 1 / v),
    ("Rint", np.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49, -7.9, 1e9], np.float32), round),
    ("Selu", _x * 3, lambda v: 1.0507009873554805 * (v if v > 0 else 1.6732632423543772 * math.expm1(v))),
    ("Sinh", _x, math.sinh),
    ("Softplus", _x * 9, lambda v: math.log1p(math.exp(v))),
    ("Softsign", _x * 9, lambda v: v / (1 + abs(v))),
    ("Tan", _x, math.tan),
)
_odd = np.asarray([0, -1.5, np.nan, np.inf, -np.inf, 3e38, -0.0, 1e-45, -3e38], np.float32)

CASES = [
    *(
        one(
            f"Flex{name}",
            f"CUSTOM:Flex{name}",
            [x],
            [plain("y", (9,), FLOAT32)],
            custom=node(name),
            oracle="numpy",
            expected=(np.asarray([function(float(v)) for v in x], np.float32),),
        )
        for name, x, function in _FUNCTIONS
    ),
    *(
        one(
            f"Flex{name}",
            f"CUSTOM:Flex{name}",
            [_odd],
            [plain("y", (9,), BOOL)],
            oracle="numpy",
            expected=(function(_odd),),
        )
        for name, function in (("IsFinite", np.isfinite), ("IsInf", np.isinf), ("IsNan", np.isnan))
    ),
    one(
        "FlexCast",
        "CUSTOM:FlexCast",
        [_x],
        [T("y", (9,), FLOAT64, scale=())],
        custom=node("Cast", Truncate=False),
        oracle="numpy",
        expected=(_x.astype(np.float64),),
    ),
]


def _windows(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    same: bool,
) -> tuple[tuple[int, ...], Iterator[tuple[tuple[int, ...], list[tuple[int, ...]]]]]:
    """The extents of the result, and of each of its places the positions of the window's taps."""
    reach = [(k - 1) * r + 1 for k, r in zip(kernel, rates, strict=True)]
    if same:
        counts = tuple(math.ceil(d / s) for d, s in zip(shape, strides, strict=True))
    else:
        counts = tuple(math.ceil((d - a + 1) / s) for d, a, s in zip(shape, reach, strides, strict=True))
    begins = [
        max((c - 1) * s + a - d, 0) // 2 if same else 0
        for d, c, s, a in zip(shape, counts, strides, reach, strict=True)
    ]

    def each() -> Iterator[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
        for place in np.ndindex(*counts):
            axes = [
                [p * s - b + k * r for k in range(taps)]
                for p, s, b, r, taps in zip(place, strides, begins, rates, kernel, strict=True)
            ]
            yield place, list(product(*axes))

    return counts, each()


def _inside(position: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(0 <= p < d for p, d in zip(position, shape, strict=True))


def _pool(
    kind: str, shape: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], same: bool
) -> OpCase:
    x = draw(2, *shape, 3)
    counts, windows = _windows(shape, kernel, strides, (1, 1, 1), same)
    y = np.zeros((2, *counts, 3), np.float32)
    for place, taps in windows:
        there = np.stack([x[(slice(None), *t)] for t in taps if _inside(t, shape)])
        y[(slice(None), *place)] = there.max(0) if kind == "MaxPool3D" else there.mean(0, dtype=np.float64)
    padding = "SAME" if same else "VALID"
    return one(
        f"Flex{kind}-{padding}-{'x'.join(map(str, kernel))}",
        f"CUSTOM:Flex{kind}",
        [x],
        [plain("y", y.shape, FLOAT32)],
        custom=node(
            kind, ksize=(1, *kernel, 1), strides=(1, *strides, 1), padding=padding, data_format="NDHWC"
        ),
        oracle="numpy",
        expected=(y,),
    )


def _patches(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    rates: tuple[int, ...],
    same: bool,
) -> OpCase:
    x = draw(2, *shape, 3)
    counts, windows = _windows(shape, kernel, strides, rates, same)
    y = np.zeros((2, *counts, math.prod(kernel) * 3), np.float32)
    for place, taps in windows:
        for k, tap in enumerate(taps):
            if _inside(tap, shape):
                y[(slice(None), *place, slice(3 * k, 3 * k + 3))] = x[(slice(None), *tap)]
    padding = "SAME" if same else "VALID"
    return one(
        f"FlexExtractImagePatches-{padding}-{kernel}-{strides}-{rates}",
        "CUSTOM:FlexExtractImagePatches",
        [x],
        [plain("y", y.shape, FLOAT32)],
        custom=node(
            "ExtractImagePatches",
            ksizes=(1, *kernel, 1),
            strides=(1, *strides, 1),
            rates=(1, *rates, 1),
            padding=padding,
        ),
        oracle="numpy",
        expected=(y,),
    )


def _roll(shift: int | list[int], axis: int | list[int]) -> OpCase:
    x = draw(3, 4, 5)
    return one(
        f"FlexRoll-{shift}-{axis}",
        "CUSTOM:FlexRoll",
        [x, ints("shift", np.asarray(shift, np.int32)), ints("axis", np.asarray(axis, np.int32))],
        [plain("y", x.shape, FLOAT32)],
        oracle="numpy",
        expected=(np.roll(x, shift, axis),),
    )


CASES += [
    *(
        _pool(kind, *given)
        for kind in ("MaxPool3D", "AvgPool3D")
        for given in (
            ((4, 5, 6), (2, 2, 2), (2, 2, 2), False),
            ((4, 5, 6), (2, 3, 1), (1, 2, 2), True),
            ((3, 4, 4), (3, 3, 3), (1, 1, 2), True),
        )
    ),
    _patches((6, 9), (2, 3), (2, 3), (1, 1), False),
    _patches((7, 8), (3, 3), (3, 3), (1, 1), True),
    _patches((7, 8), (3, 2), (2, 1), (1, 1), False),
    _patches((7, 8), (3, 2), (2, 3), (2, 1), True),
    _roll(2, 1),
    _roll(-7, -1),
    _roll([1, -1, 3], [0, 2, 0]),
    _roll(4, 1),
]
