"""Cases: the operators that work element by element, move elements, compare, reduce; floats, and integers
where they are quantised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from case import OpCase, draw, network, one, whole

from tflite_models import BOOL, FLOAT32, INT8, INT16, INT32, INT64, UINT8, Op, T, floats, ints

TYPES = {
    "float32": FLOAT32, "int8": INT8, "uint8": UINT8, "int16": INT16, "int32": INT32, "int64": INT64,
    "bool": BOOL
}  # fmt: skip


def plain(name: str, array: np.ndarray | Sequence[int], type_: int | None = None) -> T:
    """An output of the shape of an array (or of that shape), without quantisation."""
    shape = array.shape if isinstance(array, np.ndarray) else tuple(array)
    return T(name, shape, type_ if type_ is not None else TYPES[str(np.asarray(array).dtype)], scale=())


def quantised(
    kind: str,
    inputs: Sequence[tuple[np.ndarray, float, int]],
    shape: Sequence[int],
    scale: float,
    zero: int,
    options: str | None = None,
    fields: dict[str, object] | None = None,
    constants: Sequence[T] = (),
    oracles: Sequence[str] = ("litert", "tflm"),
    tag: str = "",
) -> list[OpCase]:
    """An operator of int8 or int16 with (values, scale, zero point) of each input, against both engines."""
    type_ = TYPES[str(inputs[0][0].dtype)]
    tensors = [T(f"x{k}", a.shape, type_, (s,), (z,)) for k, (a, s, z) in enumerate(inputs)]
    names = {"litert": "litert-ref", "litert-all": "litert-ref", "tflm": "tflm"}
    return [
        one(
            f"{kind}-{inputs[0][0].dtype}-values{tag}-{oracle}",
            kind,
            [*tensors, *constants],
            [T("y", tuple(shape), type_, (scale,), (zero,))],
            options,
            fields,
            given=[a for a, _, _ in inputs],
            oracle=oracle,
            arithmetic=names[oracle],
        )
        for oracle in oracles
    ]


X, POSITIVE = draw(2, 3, 4), draw(2, 3, 4, low=0.1, high=4)
ROW = draw(4)
A, B = whole(-9, 9, 3, 4), whole(1, 5, 3, 4)
FLAGS = X > 0
EVERY = np.arange(-128, 128).reshape(4, 64).astype(np.int8)
SPREAD = np.linspace(-32768, 32767, 2048).reshape(1, 64, 32).astype(np.int16)
NEAR = np.arange(-8, 8).repeat(2) * np.asarray([1, 32] * 16)
"""From a number to one beside it, or to one some steps of 2^-8 away."""
SMALL = whole(-128, 127, 1, 4, 5, 3, dtype="int8")
WORDS = whole(-32768, 32767, 2, 50, dtype="int16")
IMAGE = draw(1, 6, 8, 3)

UNARY: dict[str, tuple[np.ndarray, str | None, dict[str, object]]] = {
    **{
        k: (X, None, {})
        for k in (
            "ABS",
            "COS",
            "EXP",
            "FLOOR",
            "NEG",
            "SIN",
            "SQUARE",
            "TANH",
            "LOGISTIC",
            "RELU_N1_TO_1",
            "RELU_0_TO_1",
            "SIGN",
            "ZEROS_LIKE",
            "HARD_SWISH",
        )
    },
    **{k: (3 * X, None, {}) for k in ("RELU", "RELU6")},
    **{k: (POSITIVE, None, {}) for k in ("LOG", "RSQRT", "SQRT")},
    "GELU": (X, "GeluOptions", {"Approximate": False}),
    "LEAKY_RELU": (X, "LeakyReluOptions", {"Alpha": 0.3}),
    "L2_NORMALIZATION": (X[0], "L2NormOptions", {}),
    "SOFTMAX": (X[0], "SoftmaxOptions", {"Beta": 0.7}),
    "LOG_SOFTMAX": (X[0], None, {}),
}
BINARY: dict[str, tuple[np.ndarray, np.ndarray, str | None, dict[str, object]]] = {
    **{
        k: (X, ROW, f"{k.capitalize()}Options", {"FusedActivationFunction": 3}) for k in ("ADD", "SUB", "MUL")
    },
    "DIV": (X, POSITIVE, "DivOptions", {}),
    "MAXIMUM": (X, ROW, "MaximumMinimumOptions", {}),
    "MINIMUM": (X, ROW, "MaximumMinimumOptions", {}),
    "POW": (POSITIVE, X, None, {}),
    "SQUARED_DIFFERENCE": (X, ROW, None, {}),
    "FLOOR_DIV": (X, POSITIVE, None, {}),
    "FLOOR_MOD": (A, B, None, {}),
}
OPTIMISED = {"CEIL": X, "ELU": X, "ROUND": np.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.4], np.float32)}
"""Operators of which LiteRT has no reference kernels."""
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")

CASES: list[OpCase] = [
    *(one(k, k, [x], [plain("y", x)], options, fields) for k, (x, options, fields) in UNARY.items()),
    *(one(k, k, [x], [plain("y", x)], oracle="litert-all") for k, x in OPTIMISED.items()),
    one("GELU-tanh", "GELU", [X], [plain("y", X)], "GeluOptions", {"Approximate": True}),
    *(one(k, k, [a, b], [plain("y", a)], options, fields) for k, (a, b, options, fields) in BINARY.items()),
    one("FLOOR_DIV-int32", "FLOOR_DIV", [A, B], [plain("y", A)]),
    *(
        one(
            f"FLOOR_DIV-{dtype}-wide", "FLOOR_DIV", [n, np.where(d == 0, 7, d).astype(dtype)], [plain("y", n)]
        )
        for dtype, most in (("int16", 2**15 - 1), ("int32", 2**31 - 1))
        for n, d in [[whole(-most, most, 20, 30, dtype=dtype) for _ in range(2)]]
    ),
    one("ADD-int32", "ADD", [A, B], [plain("y", A)], "AddOptions"),
    one("DIV-int32", "DIV", [A, B], [plain("y", A)], "DivOptions"),
    one("ABS-int32", "ABS", [A], [plain("y", A)]),
    *(one(k, k, [A, np.minimum(A, B - 3)], [plain("y", A, BOOL)]) for k in COMPARISONS),
    *(one(f"{k}-float", k, [X, ROW], [plain("y", X, BOOL)]) for k in COMPARISONS),
    # neighbours of fine scales are one number, of coarse ones two; equal scales and others
    *(
        one(
            f"{k}-{kind.__name__}-{scale}-{other}-{oracle}",
            k,
            [T(n, (1, 4, 64), TYPES[kind.__name__], (s,), (zero,)) for n, s in (("a", scale), ("b", other))],
            [T("y", (1, 4, 64), BOOL)],
            oracle=oracle,
            arithmetic="tflm" if oracle == "tflm" else "litert-ref",
            given=[EVERY.view(kind)[None], np.roll(EVERY.reshape(-1), 1).reshape(1, 4, 64).view(kind)],
        )
        for k in COMPARISONS
        for kind, zero in ((np.int8, -3), (np.uint8, 130))
        for scale, other in (
            (0.0019, 0.0019),
            (1 / 256, 1 / 256),
            (0.0039, 0.0039),
            (0.06, 0.06),
            (0.0019, 0.003),
        )
        for oracle in ("litert", *(("tflm",) if kind is np.int8 else ()))
    ),
    # of int16 only those that compare for equality do so; TensorFlow Lite Micro has none of int16
    *(
        one(
            f"{k}-int16-{scale}-{other}",
            k,
            [T(n, (1, 64, 32), INT16, (s,), (0,)) for n, s in (("a", scale), ("b", other))],
            [T("y", (1, 64, 32), BOOL)],
            arithmetic="litert-ref",
            given=[SPREAD, np.clip(SPREAD.astype(int) + NEAR, -32768, 32767).astype(np.int16)],
        )
        for k in COMPARISONS
        for scale, other in ((3e-5, 3e-5), (1 / 256, 1 / 256), (0.0039, 0.0039), (3e-5, 3.1e-5))
        if scale == other or k in ("EQUAL", "NOT_EQUAL")  # LiteRT takes the order of integers of other scales
    ),
    *(one(k, k, [FLAGS, X > 1], [plain("y", FLAGS)]) for k in ("LOGICAL_AND", "LOGICAL_OR")),
    one("LOGICAL_NOT", "LOGICAL_NOT", [FLAGS], [plain("y", FLAGS)]),
    one("BITWISE_XOR", "BITWISE_XOR", [A, B], [plain("y", A)], oracle="numpy", expected=(A ^ B,)),
    one("ADD_N", "ADD_N", [X, X * 2, -X], [plain("y", X)], "AddNOptions"),
    one("PRELU", "PRELU", [X, floats("a", 1, 1, 4, data=draw(1, 1, 4))], [plain("y", X)]),
    one(
        "CAST",
        "CAST",
        [3 * X],
        [plain("y", X, INT32)],
        "CastOptions",
        {"InDataType": FLOAT32, "OutDataType": INT32},
    ),
    one("SELECT", "SELECT", [FLAGS, X, -X], [plain("y", X)]),
    one("SELECT_V2", "SELECT_V2", [FLAGS, X, ROW], [plain("y", X)]),
    one(
        "CUMSUM",
        "CUMSUM",
        [X, ints("axis", 1)],
        [plain("y", X)],
        "CumsumOptions",
        {"Exclusive": True, "Reverse": False},
    ),
    one(
        "CUMSUM-reverse",
        "CUMSUM",
        [X, ints("axis", 2)],
        [plain("y", X)],
        "CumsumOptions",
        {"Exclusive": False, "Reverse": True},
    ),
    *(
        one(
            f"{k}-{keep}",
            k,
            [X, ints("axes", [0, 2])],
            [plain("y", (1, 3, 1) if keep else (3,), FLOAT32)],
            "ReducerOptions",
            {"KeepDims": keep},
        )
        for k in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
        for keep in (False, True)
    ),
    *(
        one(
            k,
            k,
            [FLAGS, ints("axes", [1])],
            [plain("y", (2, 4), BOOL)],
            "ReducerOptions",
            {"KeepDims": False},
        )
        for k in ("REDUCE_ANY", "REDUCE_ALL")
    ),
    *(
        one(
            k,
            k,
            [X, ints("axis", 1)],
            [plain("y", (2, 4), INT32)],
            f"Arg{k[4:].capitalize()}Options",
            {"OutputType": INT32},
        )
        for k in ("ARG_MAX", "ARG_MIN")
    ),
    one("TRANSPOSE", "TRANSPOSE", [X, ints("p", [2, 0, 1])], [plain("y", (4, 2, 3), FLOAT32)]),
    one(
        "PACK",
        "PACK",
        [X, -X],
        [plain("y", (2, 2, 3, 4), FLOAT32)],
        "PackOptions",
        {"ValuesCount": 2, "Axis": 1},
    ),
    one(
        "UNPACK",
        "UNPACK",
        [X],
        [plain(f"y{k}", (2, 4), FLOAT32) for k in range(3)],
        "UnpackOptions",
        {"Num": 3, "Axis": 1},
    ),
    one(
        "SPLIT",
        "SPLIT",
        [ints("axis", 2), X],
        [plain(f"y{k}", (2, 3, 2), FLOAT32) for k in range(2)],
        "SplitOptions",
        {"NumSplits": 2},
    ),
    one(
        "SPLIT_V",
        "SPLIT_V",
        [X, ints("s", [1, 2]), ints("axis", 1)],
        [plain("y0", (2, 1, 4), FLOAT32), plain("y1", (2, 2, 4), FLOAT32)],
        "SplitVOptions",
        {"NumSplits": 2},
    ),
    one(
        "STRIDED_SLICE",
        "STRIDED_SLICE",
        [X, ints("b", [1, -1, 0]), ints("e", [2, -4, 4]), ints("s", [1, -1, 2])],
        [plain("y", (1, 3, 2), FLOAT32)],
        "StridedSliceOptions",
    ),
    one(
        "STRIDED_SLICE-masks",
        "STRIDED_SLICE",
        [X, ints("b", [0, 1, 2]), ints("e", [0, 2, 0]), ints("s", [1, 1, 1])],
        [plain("y", (2, 2), FLOAT32)],
        "StridedSliceOptions",
        {"BeginMask": 1, "EndMask": 5, "ShrinkAxisMask": 2},
    ),
    one("PAD", "PAD", [X, ints("p", [[0, 1], [2, 0], [1, 1]])], [plain("y", (3, 5, 6), FLOAT32)]),
    one(
        "PADV2",
        "PADV2",
        [X, ints("p", [[0, 1], [2, 0], [1, 1]]), floats("v", data=np.asarray(7, np.float32))],
        [plain("y", (3, 5, 6), FLOAT32)],
    ),
    *(
        one(
            f"MIRROR_PAD-{m}",
            "MIRROR_PAD",
            [X, ints("p", [[0, 0], [1, 2], [2, 1]])],
            [plain("y", (2, 6, 7), FLOAT32)],
            "MirrorPadOptions",
            {"Mode": m},
        )
        for m in (0, 1)
    ),
    one("TILE", "TILE", [X, ints("m", [1, 2, 2])], [plain("y", (2, 6, 8), FLOAT32)]),
    one(
        "BROADCAST_TO",
        "BROADCAST_TO",
        [ROW, ints("s", [2, 3, 4])],
        [plain("y", X)],
        oracle="numpy",
        expected=(np.broadcast_to(ROW, X.shape),),
    ),
    one(
        "BROADCAST_ARGS",
        "BROADCAST_ARGS",
        [ints("a", [2, 1, 4]), ints("b", [3, 1])],
        [plain("y", (3,), INT32)],
        oracle="numpy",
        expected=(np.asarray([2, 3, 4], np.int32),),
    ),
    one("REVERSE_V2", "REVERSE_V2", [X, ints("axis", [1])], [plain("y", X)]),
    one("EXPAND_DIMS", "EXPAND_DIMS", [X, ints("axis", 1)], [plain("y", (2, 1, 3, 4), FLOAT32)]),
    one(
        "SQUEEZE",
        "SQUEEZE",
        [X[None, :, :1]],
        [plain("y", (2, 1, 4), FLOAT32)],
        "SqueezeOptions",
        {"SqueezeDims": [0]},
    ),
    one(
        "SPACE_TO_DEPTH",
        "SPACE_TO_DEPTH",
        [IMAGE],
        [plain("y", (1, 3, 4, 12), FLOAT32)],
        "SpaceToDepthOptions",
        {"BlockSize": 2},
    ),
    one(
        "DEPTH_TO_SPACE",
        "DEPTH_TO_SPACE",
        [draw(1, 2, 3, 8)],
        [plain("y", (1, 4, 6, 2), FLOAT32)],
        "DepthToSpaceOptions",
        {"BlockSize": 2},
    ),
    one(
        "SPACE_TO_BATCH_ND",
        "SPACE_TO_BATCH_ND",
        [IMAGE, ints("b", [2, 3]), ints("p", [[0, 0], [1, 0]])],
        [plain("y", (6, 3, 3, 3), FLOAT32)],
    ),
    one(
        "BATCH_TO_SPACE_ND",
        "BATCH_TO_SPACE_ND",
        [draw(6, 3, 2, 2), ints("b", [2, 3]), ints("c", [[1, 0], [0, 2]])],
        [plain("y", (1, 5, 4, 2), FLOAT32)],
    ),
    one("SHAPE", "SHAPE", [X], [plain("y", (3,), INT32)], "ShapeOptions", {"OutType": INT32}),
    one("RANK", "RANK", [X], [plain("y", (), INT32)], "RankOptions"),
    one("FILL", "FILL", [ints("s", [2, 3]), np.asarray(2.5, np.float32)], [plain("y", (2, 3), FLOAT32)]),
    one("RANGE", "RANGE", [ints("a", 2), ints("b", 11), ints("d", 3)], [plain("y", (3,), INT32)]),
    one(
        "WHERE",
        "WHERE",
        [FLAGS[0] | True],
        [T("y", (12, 2), INT64, scale=(), signature=(-1, 2))],
        oracle="numpy",
        expected=(np.argwhere(FLAGS[0] | True),),
    ),
    *(
        one(
            f"{k}-{p}",
            k,
            [IMAGE],
            [plain("y", (1, 3, 4, 3) if p == 0 else (1, 2, 4, 3), FLOAT32)],
            "Pool2DOptions",
            {"Padding": p, "StrideH": 2, "StrideW": 2, "FilterHeight": 3, "FilterWidth": 2},
        )
        for k in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
        for p in (0, 1)
    ),
    one(
        "BATCH_MATMUL",
        "BATCH_MATMUL",
        [draw(2, 3, 5), draw(2, 4, 5)],
        [plain("y", (2, 3, 4), FLOAT32)],
        "BatchMatMulOptions",
        {"AdjX": False, "AdjY": True},
    ),
    one(
        "BATCH_MATMUL-x",
        "BATCH_MATMUL",
        [draw(2, 5, 3), draw(2, 5, 4)],
        [plain("y", (2, 3, 4), FLOAT32)],
        "BatchMatMulOptions",
        {"AdjX": True, "AdjY": False},
    ),
    *(
        one(
            f"{k}-{a}{h}",
            f"RESIZE_{k}",
            [IMAGE, ints("s", [9, 5])],
            [plain("y", (1, 9, 5, 3), FLOAT32)],
            f"Resize{o}Options",
            {"AlignCorners": a, "HalfPixelCenters": h},
        )
        for k, o in (("BILINEAR", "Bilinear"), ("NEAREST_NEIGHBOR", "NearestNeighbor"))
        for a, h in ((False, False), (True, False), (False, True))
    ),
    *(
        one(
            f"BILINEAR-uint8-{a}{h}",
            "RESIZE_BILINEAR",
            [T("x", (1, 5, 7, 3), UINT8, (0.1,), (3,)), ints("s", [14, 17])],
            [T("y", (1, 14, 17, 3), UINT8, (0.1,), (3,))],
            "ResizeBilinearOptions",
            {"AlignCorners": a, "HalfPixelCenters": h},
            given=[whole(0, 255, 1, 5, 7, 3, dtype="uint8")],
        )
        for a, h in ((False, False), (True, False), (False, True))
    ),
    one("QUANTIZE", "QUANTIZE", [9 * X], [T("y", X.shape, INT8, (0.11,), (-7,))], "QuantizeOptions"),
    one(
        "DEQUANTIZE",
        "DEQUANTIZE",
        [T("x", EVERY.shape, INT8, (0.11,), (-7,))],
        [plain("y", EVERY.shape, FLOAT32)],
        given=[EVERY],
    ),
]


def _integers() -> list[OpCase]:
    found: list[OpCase] = []
    a, b = (EVERY, 0.07, -5), (EVERY.reshape(64, 4).T.copy(), 0.11, 9)
    pair: list[tuple[str, str, dict[str, Any], float]] = [
        ("ADD", "AddOptions", {}, 0.15),
        ("ADD", "AddOptions", {"FusedActivationFunction": 1}, 0.12),
        ("SUB", "SubOptions", {}, 0.15),
        ("MUL", "MulOptions", {}, 0.7),
        ("MUL", "MulOptions", {"FusedActivationFunction": 3}, 0.3),
    ]
    for k, (kind, options, fields, scale) in enumerate(pair):
        found += quantised(kind, [a, b], EVERY.shape, scale, 3, options, fields, tag=str(k))
    found += quantised("SQUARED_DIFFERENCE", [a, b], EVERY.shape, 1.1, -100)
    divisor = np.where(b[0] == b[2], 1, b[0]).astype(np.int8)
    # of small quotients the references shift by more bits than a word has
    for k, (scale, act) in enumerate(((0.008, 0), (0.011, 1))):
        found += quantised(
            "DIV",
            [a, (divisor, *b[1:])],
            EVERY.shape,
            scale,
            3,
            "DivOptions",
            {"FusedActivationFunction": act},
            tag=str(k),
        )
    many = whole(-128, 127, 300, 9, dtype="int8")
    found += quantised(
        "SUM",
        [(many, 0.05, -9)],
        (300,),
        0.31,
        7,
        "ReducerOptions",
        {"KeepDims": False},
        [ints("axes", [1])],
        ["litert-all", "tflm"],
        tag="-many",
    )
    found += quantised(
        "SUM",
        [(whole(-32768, 32767, 300, 9, dtype="int16"), 0.0005, 0)],
        (300,),
        0.0031,
        0,
        "ReducerOptions",
        {"KeepDims": False},
        [ints("axes", [1])],
        ["litert-all"],
        tag="-many",
    )
    # a quotient of floats and one of doubles differ in one number
    every = np.arange(-32768, 32768, dtype=np.int16).reshape(256, 256)
    found += quantised(
        "LEAKY_RELU",
        [(every, 0.000390066095860675, 0)],
        (256, 256),
        0.0003024706384167075,
        0,
        "LeakyReluOptions",
        {"Alpha": 0.3},
        tag="-every",
    )
    # LiteRT interpolates in a table, TensorFlow Lite Micro has Newton's steps
    for k, (scale, out) in enumerate(((4.9e-5, 4e-5), (3e-4, 0.01), (1 / 32768, 1 / 3000))):
        whole_numbers = np.arange(32768, dtype=np.int16).reshape(64, 512)
        found += quantised("RSQRT", [(whole_numbers, scale, 0)], (64, 512), out, 0, tag=f"-{k}")
    for kind in ("MAXIMUM", "MINIMUM"):
        found += quantised(
            kind, [(EVERY, 0.07, -5), (b[0], 0.07, -5)], EVERY.shape, 0.07, -5, "MaximumMinimumOptions"
        )
    for kind, options, fields, scale, zero in (
        ("LOGISTIC", None, {}, 1 / 256, -128),
        ("TANH", None, {}, 1 / 128, 0),
        ("LEAKY_RELU", "LeakyReluOptions", {"Alpha": 0.3}, 0.09, 4),
        ("HARD_SWISH", "HardSwishOptions", {}, 0.05, -60),
        ("SOFTMAX", "SoftmaxOptions", {"Beta": 1.0}, 1 / 256, -128),
        ("RELU", None, {}, 0.06, -128),
        ("LOG_SOFTMAX", None, {}, 16 / 256, 127),
    ):
        found += quantised(kind, [a], EVERY.shape, scale, zero, options, fields)  # type: ignore[arg-type]
    for kind in ("RELU_0_TO_1", "RELU_N1_TO_1"):
        found += quantised(kind, [(EVERY, 0.02, -5)], EVERY.shape, 0.013, 9, oracles=["litert"])
    # it does not rescale
    found += quantised("RELU6", [a], EVERY.shape, 0.03, -128, oracles=["litert"]) + quantised(
        "RELU6", [a], EVERY.shape, 0.07, -5, oracles=["tflm"]
    )
    found += quantised("ELU", [a], EVERY.shape, 0.06, -10, oracles=["tflm"]) + quantised(
        "L2_NORMALIZATION", [(EVERY, 0.07, 0)], EVERY.shape, 1 / 128, 0, "L2NormOptions"
    )
    bytes_ = EVERY.view(np.uint8)
    found += quantised(
        "L2_NORMALIZATION",
        [(bytes_, 0.07, 90)],
        EVERY.shape,
        1 / 128,
        128,
        "L2NormOptions",
        oracles=["litert"],
    )
    ties = (EVERY, 1 / 256, -128)  # LiteRT and TensorFlow Lite Micro round them to different steps
    found += quantised("TANH", [ties], EVERY.shape, 1 / 128, 0, tag="-ties") + quantised(
        "LOGISTIC", [(EVERY, 1 / 128, 0)], EVERY.shape, 1 / 256, -128, tag="-ties"
    )
    for kind, scale in (("LOGISTIC", 2**-15), ("TANH", 2**-15)):
        found += quantised(kind, [(WORDS, 2**-12, 0)], WORDS.shape, scale, 0)
    found += quantised(
        "SOFTMAX", [(WORDS, 2**-11, 0)], WORDS.shape, 2**-15, 0, "SoftmaxOptions", {"Beta": 1.0}
    )
    for kind, scale in (("ADD", 0.0009), ("MUL", 0.011)):
        found += quantised(
            kind,
            [(WORDS[:1], 0.0004, 0), (WORDS[1:], 0.0005, 0)],
            (1, 50),
            scale,
            0,
            f"{kind.capitalize()}Options",
        )
    window = {"Padding": 0, "StrideH": 2, "StrideW": 1, "FilterHeight": 3, "FilterWidth": 2}
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        found += quantised(kind, [(SMALL, 0.07, -5)], (1, 2, 5, 3), 0.07, -5, "Pool2DOptions", window)
    for kind in ("MEAN", "SUM", "REDUCE_MAX"):
        found += quantised(
            kind,
            [(SMALL, 0.07, -5)],
            (1, 3),
            0.05 if kind == "MEAN" else 0.3 if kind == "SUM" else 0.07,
            -5 if kind == "REDUCE_MAX" else 11,
            "ReducerOptions",
            {"KeepDims": False},
            [ints("axes", [1, 2])],
            # LiteRT's reference kernel says -1 whatever the sum
            ["litert-all", "tflm"] if kind == "SUM" else ["litert", "tflm"],
        )
    for kind, options in (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    ):
        found += quantised(
            kind,
            [(SMALL, 0.07, -5)],
            (1, 7, 9, 3),
            0.07,
            -5,
            options,
            {"AlignCorners": False, "HalfPixelCenters": True},
            [ints("s", [7, 9])],
        )
    alpha = T("a", (1, 1, 3), INT8, (0.01,), (4,), np.asarray([-90, 30, 120], np.int8).reshape(1, 1, 3))
    found += quantised("PRELU", [(SMALL, 0.07, -5)], SMALL.shape, 0.08, 6, None, None, [alpha])
    slopes = T("a", (1, 50), INT8, (0.02,), (0,), whole(-127, 127, 1, 50, dtype="int8"))  # to 2.54
    for scale in (0.0004, 0.00003):
        found += quantised(
            "PRELU", [(WORDS, 0.0004, 0)], WORDS.shape, scale, 0, None, None, [slopes], tag=f"-to-{scale}"
        )
    found += quantised(
        "BATCH_MATMUL",
        [(SMALL[0], 0.07, -5), (whole(-128, 127, 4, 3, 6, dtype="int8"), 0.05, 9)],
        (4, 5, 6),
        0.4,
        1,
        "BatchMatMulOptions",
        {"AdjX": False, "AdjY": False},
    )
    return found


CASES += _integers()
CASES += [
    one(
        f"{kind}-of-two-scales",
        kind,
        [EVERY > 0, T("a", EVERY.shape, INT8, (0.1,), (-5,)), T("b", EVERY.shape, INT8, (0.02,), (9,))],
        [T("y", EVERY.shape, INT8, (0.05,), (0,))],
        given=[EVERY, EVERY[::-1].copy()],
    )
    for kind in ("SELECT", "SELECT_V2")
]


def _svdf() -> OpCase:
    units, rank, memory, depth = 3, 2, 5, 4
    tensors = [
        floats("x", 1, depth),
        floats("feature", units * rank, depth, data=draw(units * rank, depth)),
        floats("time", units * rank, memory, data=draw(units * rank, memory)),
        floats("bias", units, data=draw(units)),
        T("state", (1, memory * units * rank), FLOAT32, scale=(), variable=True),
        floats("y", 1, units),
    ]
    return network(
        "SVDF",
        tensors,
        [Op("SVDF", (0, 1, 2, 3, 4), (5,), "SVDFOptions", {"Rank": rank, "FusedActivationFunction": 1})],
        [0],
        [5],
        (draw(1, depth),),
    )


def _lstm(time_major: bool) -> OpCase:
    units, depth, steps = 3, 4, 5
    shape = (steps, 2, depth) if time_major else (2, steps, depth)
    tensors = [
        floats("x", *shape),
        *(floats(f"w{k}", units, depth, data=draw(units, depth)) for k in range(4)),
        *(floats(f"r{k}", units, units, data=draw(units, units)) for k in range(4)),
    ]
    tensors += [
        *(floats(f"b{k}", units, data=draw(units)) for k in range(4)),
        *(T(name, (2, units), FLOAT32, scale=(), variable=True) for name in ("h", "c")),
        floats("y", *shape[:2], units),
    ]
    inputs = (*range(9), -1, -1, -1, 9, 10, 11, 12, -1, -1, 13, 14, -1, -1, -1, -1)
    fields = {"FusedActivationFunction": 4, "CellClip": 0.7, "TimeMajor": time_major}
    return network(
        f"LSTM-{time_major}",
        tensors,
        [Op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (15,), "UnidirectionalSequenceLSTMOptions", fields)],
        [0],
        [15],
        (draw(*shape),),
    )


def _suppression() -> list[OpCase]:
    low = draw(7, 2, low=0, high=4)
    boxes, scores = (
        np.concatenate([low, low + draw(7, 2, low=1, high=4)], 1),
        np.asarray([0.3, 0.9, 0.1, 0.75, 0.5, 0.62, 0.2], np.float32),
    )
    limits = [
        ints("most", 4),
        floats("overlap", data=np.asarray(0.3, np.float32)),
        floats("least", data=np.asarray(0.15, np.float32)),
    ]
    outputs = [plain("picked", (4,), INT32), plain("scores", (4,), FLOAT32), plain("count", (), INT32)]
    soft = floats("sigma", data=np.asarray(0.0, np.float32))
    return [
        one("NMS4", "NON_MAX_SUPPRESSION_V4", [boxes, scores, *limits], [outputs[0], outputs[2]]),
        one("NMS5", "NON_MAX_SUPPRESSION_V5", [boxes, scores, *limits, soft], outputs),
    ]


CASES += [_svdf(), _lstm(False), _lstm(True), *_suppression()]

_cubes = np.asarray([-8, -0.3, 0, 1e-6, 27, 1e5], np.float32)
CASES += [
    one(
        "STABLEHLO_CBRT",
        "STABLEHLO_CBRT",
        [_cubes],
        [plain("y", (6,), FLOAT32)],
        oracle="numpy",
        expected=(np.cbrt(_cubes),),
    ),  # LiteRT's package has none
    *(
        one(
            f"FAKE_QUANT-{bits}-{low}",
            "FAKE_QUANT",
            [draw(40, low=-4, high=4)],
            [plain("y", (40,), FLOAT32)],
            "FakeQuantOptions",
            {"Min": low, "Max": 3.1, "NumBits": bits},
        )
        for bits, low in ((8, -2.7), (4, 0.0), (16, -1.3), (8, 0.6), (2, -3.1))
    ),
]
