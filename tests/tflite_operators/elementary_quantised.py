"""Cases: the elementary operators of quantised integers, against LiteRT and TensorFlow Lite Micro."""

from __future__ import annotations

from typing import Any

import numpy as np
from case import OpCase, one, quantised, whole
from elementary import EVERY, SMALL, WORDS

from tflite_models import INT8, T, ints


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
    roots = np.arange(32768, dtype=np.int16).reshape(256, 128)
    for k, (scale, of_roots) in enumerate(((7e-5, 5e-5), (1.1e-4, 2.3e-6))):
        found += quantised(
            "SQRT", [(roots, scale, 0)], roots.shape, of_roots, 0, oracles=["litert"], tag=f"-{k}"
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
    for scale in (0.0014, 0.0028):  # 7 eighths of a step in floats, in doubles a little less, or more
        found += quantised(
            "PRELU", [(SMALL, scale, -5)], SMALL.shape, scale / 0.875, 6, None, None, [alpha], tag=f"-{scale}"
        )
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


CASES = _integers() + [
    one(
        f"{kind}-of-two-scales",
        kind,
        [EVERY > 0, T("a", EVERY.shape, INT8, (0.1,), (-5,)), T("b", EVERY.shape, INT8, (0.02,), (9,))],
        [T("y", EVERY.shape, INT8, (0.05,), (0,))],
        given=[EVERY, EVERY[::-1].copy()],
    )
    for kind in ("SELECT", "SELECT_V2")
]
