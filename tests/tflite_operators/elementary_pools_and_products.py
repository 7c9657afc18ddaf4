"""Cases: pooling, products of matrices, resizing of images, numbers that become integers and real again."""

from __future__ import annotations

from case import OpCase, draw, one, plain, whole
from elementary import EVERY, IMAGE, X

from tflite_models import FLOAT32, INT8, UINT8, T, ints

CASES: list[OpCase] = [
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
