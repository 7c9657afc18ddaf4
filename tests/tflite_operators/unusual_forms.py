"""Cases: forms of operators that the format allows, old converters wrote, and few files have."""

from __future__ import annotations

import numpy as np
from case import OpCase, one, plain
from elementary import EVERY, X

from tflite_models import FLOAT32, INT8, INT16, T, floats, ints


def _range(start: float, limit: float, delta: float, count: int) -> OpCase:
    """A range of floats: single precision decides how many there are."""
    given = [
        floats(name, data=np.asarray(v, np.float32))
        for name, v in (("start", start), ("limit", limit), ("delta", delta))
    ]
    return one(f"RANGE-{start}-{limit}-{delta}", "RANGE", given, [plain("y", (count,), FLOAT32)], tolerance=0)


def _from(begins: list[int], ends: list[int], shape: tuple[int, ...], **masks: int) -> OpCase:
    """A slice whose ends count from its begins."""
    return one(
        f"STRIDED_SLICE-from-{begins}-{ends}-{masks}",
        "STRIDED_SLICE",
        [X, ints("b", begins), ints("e", ends), ints("s", [1] * len(begins))],
        [plain("y", shape, FLOAT32)],
        "StridedSliceOptions",
        {"Offset": True, **masks},
    )


def _sigmoid(kind: str, scale: float, zero: int) -> OpCase:
    """Of a result in another scale than the usual one: TensorFlow Lite Micro takes it for the usual one."""
    return one(
        f"{kind}-int8-scale-{scale}",
        kind,
        [T("x", EVERY.shape, INT8, (0.03,), (4,))],
        [T("y", EVERY.shape, INT8, (scale,), (zero,))],
        given=[EVERY],
        arithmetic="tflm",
    )


def _sliced(shape: tuple[int, ...], begins: list[int], ends: list[int], **masks: int) -> OpCase:
    """A slice with masks of x[2, 3, 4]."""
    return one(
        f"STRIDED_SLICE-masks-{begins}-{ends}-{masks}",
        "STRIDED_SLICE",
        [X, ints("b", begins), ints("e", ends), ints("s", [1] * len(begins))],
        [plain("y", shape, FLOAT32)],
        "StridedSliceOptions",
        masks,
    )


def _selected(kind: str, condition: np.ndarray) -> OpCase:
    """One of two matrices: SELECT takes whole rows where the condition has one axis, SELECT_V2 columns."""
    a = X[0, :, :3]
    return one(f"{kind}-{list(condition.shape)}", kind, [condition, a, -a], [plain("y", a)])


def _by_axis(kind: str, axis: int) -> OpCase:
    """To and from scales of their own for each part along an axis."""
    scales, zeros = (0.03, 0.02, 0.05), (3, -4, 0)
    form = T("q", (3, 3), INT8, scales, zeros, axis=axis)
    every = np.arange(-128, 127, 30, dtype=np.int8).reshape(3, 3)
    if kind == "QUANTIZE":
        return one(f"{kind}-axis-{axis}", kind, [X[0, :, :3]], [form])
    return one(f"{kind}-axis-{axis}", kind, [form], [plain("y", (3, 3), FLOAT32)], given=[every])


def _unevenly_weighted(kind: str, dtype: int) -> OpCase:
    """Weights of one scale whose zero point no kernel reads."""
    rng = np.random.default_rng(7)
    x = rng.integers(-100, 100, (1, 5, 5, 4)).astype(np.int8 if dtype == INT8 else np.int16)
    image = T("x", x.shape, dtype, (0.05,), (3 if dtype == INT8 else 0,))
    depthwise = kind == "DEPTHWISE_CONV_2D"
    w = rng.integers(-100, 100, (1, 3, 3, 4) if depthwise else (3, 2, 2, 4)).astype(np.int8)
    weights = T("w", w.shape, INT8, (0.02,), (5,), data=w, axis=3 if depthwise else 0)
    y = T("y", (1, 3, 3, 4) if depthwise else (1, 10, 10, 3), dtype, (0.9,), (0,))
    name, strides = f"{kind}-{x.dtype}-weights-off-zero", {"Padding": 1}
    if depthwise:
        strides.update(StrideH=1, StrideW=1, DepthMultiplier=1)
        return one(name, kind, [image, weights], [y], "DepthwiseConv2DOptions", strides, given=[x])
    strides.update(StrideH=2, StrideW=2)
    shape = ints("s", [1, 10, 10, 3])
    return one(name, kind, [shape, weights, image], [y], "TransposeConvOptions", strides, given=[x])


CASES: list[OpCase] = [
    *(
        _unevenly_weighted(kind, dtype)
        for kind in ("DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")
        for dtype in (INT8, INT16)
    ),
    _sliced((3, 4), [1], [2], ShrinkAxisMask=1),
    _sliced((2, 3), [0, -1], [0, 0], EllipsisMask=1, ShrinkAxisMask=2),
    _sliced((2, 1, 3, 2), [0, 5, 0, 1], [2, 7, 0, 3], NewAxisMask=2, EllipsisMask=4),
    _sliced((1, 2, 3, 4, 1), [0, 0, 0], [0, 0, 0], NewAxisMask=5, EllipsisMask=2),
    _selected("SELECT", np.asarray([True, False, True])),
    _selected("SELECT_V2", np.asarray([True, False, True])),
    _selected("SELECT_V2", np.asarray([[True], [False], [True]])),
    *(_by_axis(kind, axis) for kind in ("QUANTIZE", "DEQUANTIZE") for axis in (0, 1)),
    one("GATHER-batch-from-behind", "GATHER", [X, ints("i", [[0, 2], [1, 1]])],
        [plain("y", (2, 2, 4), FLOAT32)], "GatherOptions", {"Axis": -2, "BatchDims": -1}),
    *(
        one(f"MIRROR_PAD-{mode}-whole", "MIRROR_PAD", [X, ints("p", [[0, 1], [2, 1], [1, 3]])],
            [plain("y", (3, 6, 8), FLOAT32)], "MirrorPadOptions", {"Mode": mode})
        for mode in (0, 1)
    ),
    one("SQUEEZE-all", "SQUEEZE", [X[:1, :, :1]], [plain("y", (3,), FLOAT32)], "SqueezeOptions"),
    one("SQUEEZE-from-behind", "SQUEEZE", [X[:1, :, :1]], [plain("y", (1, 3), FLOAT32)], "SqueezeOptions",
        {"SqueezeDims": [-1]}),
    one("RESHAPE-options", "RESHAPE", [X], [plain("y", (6, 4), FLOAT32)], "ReshapeOptions",
        {"NewShape": [6, -1]}),
    _range(0, 0.3, 0.1, 3),
    _range(0, 1, 0.1, 10),
    _range(10, 0, -0.3, 34),
    one("RESHAPE-scalar", "RESHAPE", [X[0, 0, :1]], [plain("y", (), FLOAT32)], "ReshapeOptions",
        {"NewShape": [0]}),
    one("TRANSPOSE-negative", "TRANSPOSE", [X, ints("p", [-1, 0, -2])], [plain("y", (4, 2, 3), FLOAT32)]),
    _from([-2, 1, 0], [1, 2, 3], (1, 2, 3)),
    _from([-2, -3, -3], [2, 3, 2], (2, 3, 2)),
    _from([1, 1, 1], [1, 2, 3], (1, 2, 3), BeginMask=2),
    *(
        one(f"{kind}-int8-no-axes", kind, [T("x", EVERY.shape, INT8, (0.1,), (3,)), ints("axes", [])],
            [T("y", EVERY.shape, INT8, (scale,), (-5,))], "ReducerOptions", {"KeepDims": True}, given=[EVERY],
            oracle=oracle)
        for kind, scale, oracle in (("SUM", 0.3, "litert-all"), ("MEAN", 0.3, "litert"),
                                    ("REDUCE_PROD", 0.07, "litert"))
    ),
    _sigmoid("TANH", 0.01, 0),
    _sigmoid("TANH", 1 / 128, 9),
]  # fmt: skip
