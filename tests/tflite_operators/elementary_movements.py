"""Cases: the operators that move elements to other places or shapes, and those that make tensors."""

from __future__ import annotations

import numpy as np
from case import OpCase, draw, one, plain
from elementary import FLAGS, IMAGE, ROW, X

from tflite_models import FLOAT32, INT32, INT64, T, floats, ints

CASES: list[OpCase] = [
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
    one(
        "STRIDED_SLICE-begin-of-one",
        "STRIDED_SLICE",
        [X, ints("b", [0, 1, 2]), ints("e", [2, 3, 4]), ints("s", [1, 1, 1])],
        [plain("y", (2, 2), FLOAT32)],
        "StridedSliceOptions",
        {"BeginMask": 2, "ShrinkAxisMask": 2},
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
]
