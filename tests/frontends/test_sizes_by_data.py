"""Results whose size depends on data: their actual shapes, what may be computed from them, and that nothing
is written beyond the upper bound. The buffers of the tests are of the exact size, and sanitizers watch them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases

Arrays = list[np.ndarray]
N = helper.make_node


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, np.ndarray],
    outputs: list[str],
    constants: dict[str, object] | None = None,
) -> onnx.ModelProto:
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    fixed = [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=n) for n in outputs], fixed)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def _range(start: float, limit: float, delta: float, dtype: type = np.float32) -> dict[str, np.ndarray]:
    return {n: np.asarray(v, dtype) for n, v in (("start", start), ("limit", limit), ("delta", delta))}


def _loop() -> onnx.NodeProto:
    """Running sums of `step`, one result each turn, while `go`."""
    body = helper.make_graph(
        [
            N("Identity", ["on"], ["again"]),
            N("Add", ["sum", "step"], ["next"]),
            N("Identity", ["next"], ["result"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [2]),
            helper.make_tensor_value_info("result", TensorProto.FLOAT, [2]),
        ],
    )
    return N("Loop", ["turns", "go", "step"], ["last", "all"], body=body)


def _cases() -> list[tuple[Case, Arrays]]:
    rng = np.random.default_rng(17)
    x = rng.integers(-1, 2, (3, 4, 2)).astype(np.float32)
    rows = rng.normal(size=(6, 3)).astype(np.float32)
    found: list[
        tuple[
            str,
            list[onnx.NodeProto],
            dict[str, np.ndarray],
            list[str],
            dict[str, object],
            dict[str, int],
            Arrays,
        ]
    ] = []

    def case(
        name: str,
        nodes: list[onnx.NodeProto],
        inputs: dict[str, np.ndarray],
        outputs: list[str],
        expected: Arrays,
        constants: dict[str, object] | None = None,
        bounds: dict[str, int] | None = None,
    ) -> None:
        found.append((name, nodes, inputs, outputs, constants or {}, bounds or {}, expected))

    unsettled = np.where(x > 0, np.float32(np.nan), x)
    for kind, data in (
        ("some", x),
        ("none", np.zeros_like(x)),
        ("all", np.ones_like(x)),
        ("not numbers", unsettled),
    ):
        nodes = [
            N("NonZero", ["x"], ["i"]),
            N("Transpose", ["i"], ["p"], perm=[1, 0]),
            N("GatherND", ["x", "p"], ["v"]),
            N("Mul", ["v", "two"], ["y"]),
        ]
        case(
            f"elements that are not zero: {kind}",
            nodes,
            {"x": data},
            ["y", "i"],
            [data[data != 0] * 2, np.stack(np.nonzero(data))],
            {"two": np.float32(2)},
        )
        unique = [N("Unique", ["x"], ["y"])]
        case(f"unique: {kind}", unique, {"x": data}, ["y"], [np.unique(data)])
    for picked in ([True] * 6, [False] * 6, [True, False, False, True, True, False]):
        chosen = np.asarray(picked)
        nodes = [
            N("Compress", ["x", "c"], ["p"], axis=0),
            N("Softmax", ["p"], ["s"], axis=1),
            N("Concat", ["s", "p"], ["y"], axis=1),
        ]
        exponents = np.exp(rows - rows.max(1, keepdims=True))
        both = np.concatenate([exponents / exponents.sum(1, keepdims=True), rows], axis=1)[chosen]
        case(f"rows picked: {sum(picked)}", nodes, {"x": rows, "c": chosen}, ["y", "p"], [both, rows[chosen]])
        inner = [N("Compress", ["x", "c"], ["y"], axis=1)]
        case(
            f"columns picked: {sum(picked)}",
            inner,
            {"x": rows.T.copy(), "c": chosen},
            ["y"],
            [rows.T[:, chosen]],
        )
    boxes = np.asarray([[[0, 0, 1, 1], [0, 0.05, 1, 1.05], [0, 2, 1, 3], [0, 4, 1, 5]]], np.float32)
    scores = np.asarray([[[0.9, 0.95, 0.3, 0.7]]], np.float32)
    nodes = [
        N("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"]),
        N("Gather", ["chosen", "two"], ["i"], axis=1),
        N("Gather", ["flat", "i"], ["y"]),
    ]
    limits: dict[str, object] = {
        "most": np.asarray([3]),
        "overlap": np.float32([0.5]),
        "least": np.float32([0.2]),
        "two": np.asarray(2),
        "flat": boxes[0],
    }
    case(
        "boxes of a detector", nodes, {"boxes": boxes, "scores": scores}, ["y"], [boxes[0][[1, 3, 2]]], limits
    )
    strange = np.asarray([[[np.nan, np.inf, -np.inf, 0.5]]], np.float32)
    case(
        "strange boxes",
        nodes[:1],
        {"boxes": boxes * np.float32(1e37), "scores": strange},
        ["chosen"],
        [],
        limits,
    )
    bound = {"r": 8}
    for name, numbers, expected in (
        ("up", _range(1, 5, 1.5), np.float32([1, 2.5, 4])),
        ("down", _range(3, -2, -2, np.int32), np.int32([3, 1, -1])),
        ("empty", _range(3, 3, 1), np.float32([])),
        ("away", _range(0, 5, -1), np.float32([])),
        ("more than fits", _range(0, 100, 1, np.int64), np.arange(8, dtype=np.int64)),
        ("standing", _range(0, 1, 0), np.zeros(8, np.float32)),
    ):
        case(
            f"range {name}",
            [N("Range", ["start", "limit", "delta"], ["r"])],
            numbers,
            ["r"],
            [expected],
            bounds=bound,
        )
    case(
        "range read",
        [N("Range", ["start", "limit", "delta"], ["r"]), N("Neg", ["r"], ["y"])],
        _range(0, 3, 1),
        ["y"],
        [np.float32([0, -1, -2])],
        bounds=bound,
    )
    step = np.float32([1, 2])
    for turns, go in ((3, True), (0, True), (3, False), (7, True)):
        count = turns if go else 0
        sums = np.stack([step * (k + 2) for k in range(count)]) if count else np.zeros((0, 2), np.float32)
        inputs = {"turns": np.asarray(turns, np.int64), "go": np.asarray(go), "step": step}
        case(
            f"loop {turns} {go}",
            [_loop()],
            inputs,
            ["last", "all"],
            [step * (count + 1), sums[:5]],
            bounds={"all": 5},
        )
    most = {"turns": np.asarray(4, np.int64)}
    for go in (True, False):
        sums = np.stack([step * (k + 2) for k in range(4)]) if go else np.zeros((0, 2), np.float32)
        case(
            f"at most four turns: {go}",
            [_loop()],
            {"go": np.asarray(go), "step": step},
            ["all"],
            [sums],
            constants=dict(most),
        )
        case(  # a row for each turn goes on
            f"what turns say, negated: {go}",
            [_loop(), N("Neg", ["all"], ["less"])],
            {"go": np.asarray(go), "step": step},
            ["less"],
            [-sums],
            constants=dict(most),
        )
    return [
        (Case(n, model(nodes, ins, outs, fixed), tuple(ins.values()), bounds=bounds), want)
        for n, nodes, ins, outs, fixed, bounds, want in found
    ]


def test_results() -> None:
    cases = _cases()
    for (case, wanted), outcome in zip(cases, run_cases([c for c, _ in cases]), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        for got, want in zip(outcome.outputs, wanted, strict=False):
            np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=case.name)
            assert got.dtype == want.dtype, case.name
        # The shape says how many there were, also when there was no room for all.
        expected = {
            "range more than fits": {"r": (100,)},
            "range standing": {"r": (2**31 - 1,)},
            "loop 7 True": {"all": (7, 2)},
        }
        assert outcome.shapes == expected.get(case.name, outcome.shapes)


ROWS = [N("Compress", ["x", "c"], ["p"], axis=0)]
REFUSED: dict[str, list[onnx.NodeProto]] = {
    "rows of fixed number": [*ROWS, N("Add", ["p", "x"], ["y"])],
    "rows of another number": [
        *ROWS,
        N("Not", ["c"], ["d"]),
        N("Compress", ["x", "d"], ["q"], axis=0),
        N("Add", ["p", "q"], ["y"]),
    ],
    "sums over the rows so far": [*ROWS, N("CumSum", ["p", "first"], ["y"])],
    "the best of a number of rows": [*ROWS, N("TopK", ["p", "first"], ["y", "i"], axis=0)],
    "the rows backwards": [*ROWS, N("Slice", ["p", "last", "end", "first", "last"], ["y"])],
    "columns of a number": [N("Compress", ["x", "c"], ["p"], axis=1), N("Relu", ["p"], ["y"])],
    "turned": [*ROWS, N("Transpose", ["p"], ["y"])],
    "as many columns": [
        *ROWS,
        N("Shape", ["p"], ["sh"], end=1),
        N("Unsqueeze", ["c", "last"], ["columns"]),
        N("Expand", ["columns", "sh"], ["y"]),
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_more_than_one_row_is_refused(name: str, tmp_path: Path) -> None:
    constants: dict[str, object] = {
        "first": np.asarray([0]),
        "last": np.asarray([-1]),
        "end": np.asarray([-9]),
    }
    proto = model(
        REFUSED[name], {"x": np.zeros((3, 3), np.float32), "c": np.zeros(3, bool)}, ["y"], constants
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(CompileError, match="E203"):
        compile_model(Request(path, "m"))


@pytest.mark.parametrize(
    ("make", "bounds"),
    [(lambda: ([_loop()], {"turns": np.asarray(1), "go": np.asarray(True), "step": np.zeros(2, np.float32)},
               ["last", "all"]), {}),
     (lambda: ([N("Range", ["start", "limit", "delta"], ["r"])], _range(0, 1, 1), ["r"]), {}),
     (lambda: ([N("Relu", ["x"], ["y"])], {"x": np.zeros(2, np.float32)}, ["y"]), {"y": 1}),
     (lambda: ([N("Relu", ["x"], ["y"])], {"x": np.zeros(2, np.float32)}, ["y"]), {"z": 1})])  # fmt: skip
def test_bounds_are_for_sizes_that_hang_on_data(
    make: Callable[[], tuple[list[onnx.NodeProto], dict[str, np.ndarray], list[str]]],
    bounds: dict[str, int],
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model(*make()).SerializeToString())
    with pytest.raises(CompileError, match="E203"):
        compile_model(Request(path, "m", bounds=bounds))
