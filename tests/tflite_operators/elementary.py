"""Cases: the operators that work element by element, compare and reduce, of floats and of plain integers; and
the inputs that the other elementary ones take, too.
"""

from __future__ import annotations

import numpy as np
from case import TYPES, OpCase, draw, one, plain, whole

from tflite_models import BOOL, FLOAT32, INT16, INT32, T, floats, ints

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
    *(
        one(
            f"L2_NORMALIZATION-{size}", "L2_NORMALIZATION", [size * X[0]], [plain("y", X[0])], "L2NormOptions"
        )
        for size in (np.float32(1e-4), np.float32(1e-7), np.float32(0))  # above and below the least norm
    ),
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
            f"{k} of a scalar",
            k,
            [np.asarray(2.75, np.float32), ints("axes", axes)],
            [plain("y", (), FLOAT32)],
            "ReducerOptions",
            {"KeepDims": keep},
        )
        for k, axes, keep in (("SUM", [0], False), ("REDUCE_MAX", [-1], True))
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
]
