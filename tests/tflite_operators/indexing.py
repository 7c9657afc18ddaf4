"""Cases: operators that read or write at places found in tensors."""

from __future__ import annotations

import numpy as np
from case import OpCase, draw, network, one, whole

from tflite_models import BOOL, FLOAT16, FLOAT32, INT4, INT8, INT32, INT64, UINT8, G, Op, T, floats, ints


def number(name: str, *shape: int) -> T:
    return T(name, shape, INT32, scale=())


def _loop_over_list() -> OpCase:
    """What TensorFlow makes of a loop that writes item i of a list: slices of computed size around the
    item.
    """
    main = [number("i"), floats("x", 4, 2), number("i2"), floats("y", 4, 2)]
    body = [
        number("i"),
        floats("x", 4, 2),
        ints("one", 1),
        number("next"),
        ints("shape1", [1]),
        number("iv", 1),
        ints("rest", [-1]),
        number("size", 2),
        ints("zeros", [0, 0]),
        T("head", (1, 1), FLOAT32, scale=(), signature=(-1, -1)),
        ints("zero", [0]),
        number("nv", 1),
        number("begin", 2),
        ints("all", [-1, -1]),
        T("tail", (1, 2), FLOAT32, scale=(), signature=(-1, 2)),
        number("at", 2),
        ints("sizes", [1, 2]),
        floats("item", 1, 2),
        floats("twice", 1, 2),
        floats("y", 4, 2),
    ]
    steps = [
        Op("ADD", (0, 2), (3,), "AddOptions"),
        Op("RESHAPE", (0, 4), (5,), "ReshapeOptions"),
        Op("CONCATENATION", (5, 6), (7,), "ConcatenationOptions"),
        Op("SLICE", (1, 8, 7), (9,), "SliceOptions"),
        Op("RESHAPE", (3, 4), (11,), "ReshapeOptions"),
        Op("CONCATENATION", (11, 10), (12,), "ConcatenationOptions"),
        Op("SLICE", (1, 12, 13), (14,), "SliceOptions"),
        Op("CONCATENATION", (5, 10), (15,), "ConcatenationOptions"),
        Op("SLICE", (1, 15, 16), (17,), "SliceOptions"),
        Op("ADD", (17, 17), (18,), "AddOptions"),
        Op("CONCATENATION", (9, 18, 14), (19,), "ConcatenationOptions"),
    ]
    again = G(
        [number("i"), floats("x", 4, 2), ints("limit", 3), T("c", (), BOOL, scale=())],
        [Op("LESS", (0, 2), (3,))],
        [0, 1],
        [3],
    )
    loop = Op("WHILE", (0, 1), (2, 3), "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    return network(
        "WHILE-list",
        main,
        [loop],
        [0, 1],
        [3],
        (np.asarray(1, np.int32), draw(4, 2)),
        again,
        G(body, steps, [0, 1], [3, 19]),
    )


_table = whole(-8, 7, 6, 8, dtype="int8")
_packed = np.asarray((_table[:, ::2] & 15) | (_table[:, 1::2] << 4), np.uint8)
_half = np.asarray(draw(6, 2, low=0.1, high=1), np.float16)
_blocks = T("w", (6, 8), INT4, scale=(), data=_packed, blocks=(2, -1, 4))

_x = draw(3, 4, 5)

CASES: list[OpCase] = [
    *[
        one(
            f"GATHER-{a}-{b}",
            "GATHER",
            [_x, np.asarray(i, np.int32)],
            [floats("y", *s)],
            "GatherOptions",
            {"Axis": a, "BatchDims": b},
        )
        for a, b, i, s in [
            (0, 0, [2, 0], (2, 4, 5)),
            (1, 1, [[0, 3], [1, 1], [2, 0]], (3, 2, 5)),
            (2, 1, [[0, 4], [1, 1], [2, 0]], (3, 4, 2)),
            (2, 2, [[0, 1, 2, 3], [4, 3, 2, 1], [0, 0, 0, 0]], (3, 4)),
        ]
    ],
    one(
        "GATHER-int16-indices",
        "GATHER",
        [_x, np.asarray([1, 2], np.int16)],
        [floats("y", 2, 4, 5)],
        "GatherOptions",
        oracle="numpy",
        expected=(_x[[1, 2]],),
    ),
    one(
        "GATHER_ND",
        "GATHER_ND",
        [_x, np.asarray([[0, 1], [2, 3]], np.int64)],
        [floats("y", 2, 5)],
        "GatherNdOptions",
    ),
    one(
        "SCATTER_ND",
        "SCATTER_ND",
        [np.asarray([[1], [3], [1]], np.int32), draw(3, 2), ints("s", [5, 2])],
        [floats("y", 5, 2)],
        "ScatterNdOptions",
    ),
    one(
        "SCATTER_ND-int8",
        "SCATTER_ND",
        [np.asarray([[1, 1], [0, 2]], np.int32), whole(-9, 9, 2, dtype="int8"), ints("s", [2, 3])],
        [T("y", (2, 3), INT8, scale=())],
        "ScatterNdOptions",
    ),
    one(
        "SPARSE_TO_DENSE",
        "SPARSE_TO_DENSE",
        [
            np.asarray([[0, 1], [2, 0]], np.int32),
            ints("s", [3, 2]),
            draw(2),
            floats("d", data=np.asarray(7, np.float32)),
        ],
        [floats("y", 3, 2)],
        "SparseToDenseOptions",
    ),
    one(
        "SPARSE_TO_DENSE-none",
        "SPARSE_TO_DENSE",
        [
            ints("i", np.zeros((0, 1), np.int64), INT64),
            ints("s", [3]),
            draw(0),
            floats("d", data=np.asarray(7, np.float32)),
        ],
        [floats("y", 3)],
        "SparseToDenseOptions",
    ),
    one(
        "SPARSE_TO_DENSE-places",
        "SPARSE_TO_DENSE",
        [np.asarray([2, 0], np.int32), ints("s", [3]), draw(2), floats("d", data=np.asarray(7, np.float32))],
        [floats("y", 3)],
        "SparseToDenseOptions",
    ),
    *[
        one(
            f"ONE_HOT-{a}",
            "ONE_HOT",
            [
                np.asarray([[0, 2], [5, -1]], np.int32),
                ints("d", 4),
                floats("on", data=np.asarray(3, np.float32)),
                floats("off", data=np.asarray(-1, np.float32)),
            ],
            [floats("y", *s)],
            "OneHotOptions",
            {"Axis": a},
        )
        for a, s in [(-1, (2, 2, 4)), (0, (4, 2, 2)), (1, (2, 4, 2))]
    ],
    one(
        "ONE_HOT-int64",
        "ONE_HOT",
        [np.asarray([1, 3], np.int64), ints("d", 4), ints("on", True, BOOL), ints("off", False, BOOL)],
        [T("y", (2, 4), BOOL, scale=())],
        "OneHotOptions",
        {"Axis": -1},
    ),
    one(
        "TOPK_V2",
        "TOPK_V2",
        [whole(0, 4, 3, 9).astype(np.float32), ints("k", 4)],
        [floats("v", 3, 4), number("i", 3, 4)],
        "TopKV2Options",
    ),
    one(
        "TOPK_V2-int8",
        "TOPK_V2",
        [whole(-99, 99, 7, dtype="int8"), ints("k", 7)],
        [T("v", (7,), INT8, scale=()), number("i", 7)],
        "TopKV2Options",
    ),
    one(
        "EMBEDDING_LOOKUP",
        "EMBEDDING_LOOKUP",
        [np.asarray([3, 0, 3], np.int32), floats("w", 5, 2, 3, data=draw(5, 2, 3))],
        [floats("y", 3, 2, 3)],
    ),
    one(
        "EMBEDDING_LOOKUP-hybrid",
        "EMBEDDING_LOOKUP",
        [
            np.asarray([3, 0], np.int32),
            T("w", (5, 4), UINT8, (0.3,), (0,), whole(0, 255, 5, 4, dtype="uint8")),
        ],
        [floats("y", 2, 4)],
    ),
    one(
        "EMBEDDING_LOOKUP-rows",
        "EMBEDDING_LOOKUP",
        [
            np.asarray([1, 0, 2], np.int32),
            T("w", (3, 4), INT8, (0.3, 0.1, 2.0), (0, 0, 0), whole(-9, 9, 3, 4, dtype="int8")),
        ],
        [floats("y", 3, 4)],
    ),
    network(
        "EMBEDDING_LOOKUP-blocks",
        [number("i", 3), _blocks, T("s", (6, 2), FLOAT16, scale=(), data=_half), floats("y", 3, 8)],
        [Op("EMBEDDING_LOOKUP", (0, 1), (3,))],
        [0],
        [3],
        (np.asarray([5, 0, 2], np.int32),),
    ),
    *[
        one(
            f"REVERSE_SEQUENCE-{s}-{b}",
            "REVERSE_SEQUENCE",
            [_x, np.asarray(n, np.int32)],
            [floats("y", 3, 4, 5)],
            "ReverseSequenceOptions",
            {"SeqDim": s, "BatchDim": b},
        )
        for s, b, n in [(1, 0, [4, 2, 1]), (2, 1, [5, 1, 2, 3]), (0, 2, [1, 2, 3, 3, 1])]
    ],
    one(
        "DYNAMIC_UPDATE_SLICE",
        "DYNAMIC_UPDATE_SLICE",
        [_x, draw(1, 4, 2), np.asarray([1, 0, 3], np.int32)],
        [floats("y", 3, 4, 5)],
    ),
    one(
        "DYNAMIC_UPDATE_SLICE-clamped",
        "DYNAMIC_UPDATE_SLICE",
        [_x, draw(2, 2, 5), np.asarray([5, -3, 1], np.int32)],
        [floats("y", 3, 4, 5)],
    ),
    one(
        "SLICE-computed",
        "SLICE",
        [_x, np.asarray([1, 0, 2], np.int32), ints("s", [2, 4, 3])],
        [floats("y", 2, 4, 3)],
        "SliceOptions",
    ),
    one(
        "SLICE-computed-int64",
        "SLICE",
        [_x, np.asarray([1, 0, 2], np.int64), ints("s", [2, 4, 3], INT64)],
        [floats("y", 2, 4, 3)],
        "SliceOptions",
    ),
    one(
        "SEGMENT_SUM",
        "SEGMENT_SUM",
        [draw(5, 3), ints("s", [0, 0, 1, 2, 2])],
        [floats("y", 3, 3)],
        "SegmentSumOptions",
        oracle="litert-all",
    ),
    *[
        one(
            f"UNSORTED_SEGMENT_{k}",
            f"UNSORTED_SEGMENT_{k}",
            [draw(5, 2), np.asarray([2, 0, -1, 2, 0], np.int32), ints("n", 4)],
            [floats("y", 4, 2)],
            f"UnsortedSegment{k.title()}Options",
        )
        for k in ("SUM", "PROD", "MAX", "MIN")
    ],
    one(
        "BUCKETIZE",
        "BUCKETIZE",
        [draw(3, 4)],
        [number("y", 3, 4)],
        "BucketizeOptions",
        {"Boundaries": [-1.0, 0.0, 0.5]},
    ),
    one("MATRIX_DIAG", "MATRIX_DIAG", [draw(2, 3)], [floats("y", 2, 3, 3)], "MatrixDiagOptions"),
    one(
        "MATRIX_SET_DIAG",
        "MATRIX_SET_DIAG",
        [draw(2, 3, 4), draw(2, 3)],
        [floats("y", 2, 3, 4)],
        "MatrixSetDiagOptions",
    ),
    _loop_over_list(),
]


def _gathered(
    x: np.ndarray,
    starts: np.ndarray,
    sizes: list[int],
    starting: list[int],
    offsets: list[int],
    collapsed: list[int],
    vector: int,
) -> np.ndarray:
    """The definition of StableHLO, window by window."""
    lines = np.moveaxis(starts.reshape(*starts.shape, *[1] * (vector == starts.ndim)), vector, -1)
    wanted = np.zeros((*lines.shape[:-1], *(e for k, e in enumerate(sizes) if k not in collapsed)), x.dtype)
    for batch in np.ndindex(lines.shape[:-1]):
        begins = [0] * x.ndim
        for axis, start in zip(starting, lines[batch], strict=True):
            begins[axis] = min(max(int(start), 0), x.shape[axis] - sizes[axis])
        window = x[tuple(slice(b, b + e) for b, e in zip(begins, sizes, strict=True))]
        wanted[batch] = window.reshape(wanted[batch].shape)
    return np.moveaxis(wanted, range(lines.ndim - 1, wanted.ndim), offsets)


def _windows(
    name: str,
    x: np.ndarray,
    starts: np.ndarray,
    sizes: list[int],
    starting: list[int],
    offsets: list[int],
    collapsed: list[int],
    vector: int,
) -> OpCase:
    """LiteRT 2.3 does not end where the last axis of the indices is implied."""
    wanted = _gathered(x, starts, sizes, starting, offsets, collapsed, vector)
    fields = {
        "OffsetDims": offsets,
        "CollapsedSliceDims": collapsed,
        "StartIndexMap": starting,
        "SliceSizes": sizes,
    }
    return one(
        f"STABLEHLO_GATHER-{name}",
        "STABLEHLO_GATHER",
        [x, starts],
        [T("y", wanted.shape, FLOAT32 if x.dtype == np.float32 else INT32, scale=())],
        "StablehloGatherOptions",
        {**{k: np.asarray(v, np.int64) for k, v in fields.items()}, "IndexVectorDim": vector},
        oracle="numpy",
        expected=(wanted,),
    )


CASES += [
    _windows("rows", draw(5, 3), whole(0, 4, 2, 4), [1, 3], [0], [2], [0], 2),
    _windows("columns", draw(5, 6), whole(0, 5, 4, 1), [5, 1], [1], [0], [1], 1),
    _windows("clamped", draw(5, 6, 2), whole(-2, 7, 3, 2), [2, 3, 2], [1, 0], [1, 2, 3], [], 1),
    _windows(
        "between", whole(-9, 9, 4, 5, 3), whole(0, 4, 2, 3, dtype="int64"), [2, 2, 1], [0, 2], [0, 2], [2], 0
    ),
    _windows("one", draw(4, 5), whole(0, 3, 2), [2, 3], [0, 1], [0, 1], [], 0),
]


def _scattered(
    name: str,
    body: str,
    x: np.ndarray,
    starts: np.ndarray,
    shape: tuple[int, ...],
    dims: tuple[list[int], list[int], list[int]],
    vector: int = 1,
) -> OpCase:
    """dims: axes of the updates that are windows, axes of x that windows have not, those that indices are
    of.
    """
    type_ = FLOAT32 if x.dtype == np.float32 else INT32
    updates = draw(*shape) if type_ == FLOAT32 else whole(-99, 99, *shape)
    fields = dict(
        zip(
            ("UpdateWindowDims", "InsertedWindowDims", "ScatterDimsToOperandDims"),
            (np.asarray(d, np.int64) for d in dims),
            strict=True,
        )
    )
    operators = [Op(body, (0, 1), (2,))] if body else []
    combination = G([T(k, (), type_, scale=()) for k in "abc"], operators, [0, 1], [2 if body else 1])
    index_type = {"int32": INT32, "int64": INT64}[str(starts.dtype)]
    tensors = [
        T("x", x.shape, type_, scale=()),
        T("i", starts.shape, index_type, scale=()),
        T("u", shape, type_, scale=()),
        T("y", x.shape, type_, scale=()),
    ]
    operator = Op(
        "STABLEHLO_SCATTER",
        (0, 1, 2),
        (3,),
        "StablehloScatterOptions",
        {**fields, "IndexVectorDim": vector, "UpdateComputationSubgraphIndex": 1},
    )
    return network(
        f"STABLEHLO_SCATTER-{name}",
        tensors,
        [operator],
        [0, 1, 2],
        [3],
        (x, starts, updates),
        combination,
        oracle="litert-all",
    )


CASES += [
    _scattered("rows", "", draw(5, 3), np.asarray([[4], [0]], np.int32), (2, 3), ([1], [0], [0])),
    _scattered(
        "sums of rows",
        "STABLEHLO_ADD",
        draw(5, 3),
        np.asarray([[4], [1], [4]], np.int64),
        (3, 3),
        ([1], [0], [0]),
    ),
    _scattered(
        "elements, some beyond",
        "STABLEHLO_MAXIMUM",
        whole(-99, 99, 4, 5),
        np.asarray([[0, 4], [3, 5], [-1, 2], [2, 2], [4, 0]], np.int32),
        (5,),
        ([], [0, 1], [0, 1]),
    ),
    _scattered(
        "products of windows",
        "STABLEHLO_MULTIPLY",
        draw(4, 5, 2),
        np.asarray([[1, 2], [0, 0]], np.int32),
        (2, 2, 2),
        ([0, 2], [0], [1, 0]),
        0,
    ),
    _scattered(
        "columns", "STABLEHLO_MINIMUM", draw(3, 5), np.asarray([[3], [0]], np.int32), (3, 2), ([0], [1], [1])
    ),
]
