"""Branches, loops and variables of TFLite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_tflite import branches, errors_of, program, save, scalar

from tflite_models import BOOL, FLOAT32, INT32, INT64, G, Op, T, build
from tflite_reference import litert


def run_one(folder: Path, data: bytes, *vectors: list[np.ndarray]) -> list[list[np.ndarray]]:
    return program(save(folder, data), folder / "built").run(list(vectors))


def test_if_takes_one_branch(tmp_path: Path) -> None:
    x = np.asarray(3, np.float32)
    rows = run_one(
        tmp_path,
        branches(Op("MUL", (0, 0), (1,), "MulOptions")),
        [np.asarray(True), x],
        [np.asarray(False), x],
    )
    assert [float(r[0]) for r in rows] == [6.0, 9.0]


@pytest.mark.parametrize("most", [5, 6])
def test_if_of_a_condition_that_folding_finds(tmp_path: Path, most: int) -> None:
    """Whether an array has at most so many elements, as TensorFlow asks to choose a type of integers."""
    main = [
        T("x", (2, 3), FLOAT32, ()), T("shape", (2,), INT64, ()),
        T("axis", (1,), INT32, (), data=np.asarray([0], np.int32)), T("size", (), INT64, ()),
        T("most", (), INT64, (), data=np.asarray(most)), T("c", (), BOOL, ()), T("y", (2, 3), FLOAT32, ()),
    ]  # fmt: skip
    operators = [
        Op("SHAPE", (0,), (1,), "ShapeOptions", {"OutType": INT64}),
        Op("REDUCE_PROD", (1, 2), (3,), "ReducerOptions", {"KeepDims": False}),
        Op("LESS_EQUAL", (3, 4), (5,)),
        Op("IF", (5, 0), (6,), "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}),
    ]
    body = [T("a", (2, 3), FLOAT32, ()), T("b", (2, 3), FLOAT32, ())]
    then = G(body, [Op("ADD", (0, 0), (1,), "AddOptions")], [0], [1])
    otherwise = G(body, [Op("MUL", (0, 0), (1,), "MulOptions")], [0], [1])
    data = build(main, operators, [0], [6], then, otherwise)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (row,) = run_one(tmp_path, data, [x])
    np.testing.assert_array_equal(row[0], litert(data, [x])[0])
    np.testing.assert_array_equal(row[0], x + x if most == 6 else x * x)


def test_while_runs_until_its_condition_fails(tmp_path: Path) -> None:
    """Doubles until the value is 50 or more."""
    main = [scalar("x"), scalar("y")]
    loop = Op("WHILE", (0,), (1,), "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    again = G(
        [scalar("a"), scalar("limit", data=np.asarray(50, np.float32)), scalar("c", BOOL)],
        [Op("LESS", (0, 1), (2,))],
        [0],
        [2],
    )
    double = G([scalar("a"), scalar("b")], [Op("ADD", (0, 0), (1,), "AddOptions")], [0], [1])
    rows = run_one(
        tmp_path,
        build(main, [loop], [0], [1], again, double),
        *([np.asarray(v, np.float32)] for v in (3, 50, 99)),
    )
    assert [float(r[0]) for r in rows] == [96.0, 50.0, 99.0]


def test_a_body_with_one_tensor_for_two_inputs(tmp_path: Path) -> None:
    """The second value is in it when the body runs, and both are that after it."""
    main = [scalar(name) for name in ("n", "p", "q", "m", "r", "s")]
    loop = Op("WHILE", (0, 1, 2), (3, 4, 5), "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    again = G(
        [
            *(scalar(name) for name in "abc"),
            scalar("limit", data=np.asarray(50, np.float32)),
            scalar("d", BOOL),
        ],
        [Op("LESS", (0, 3), (4,))],
        [0, 1, 2],
        [4],
    )
    body = G(
        [scalar("a"), scalar("b"), scalar("t")], [Op("ADD", (0, 2), (1,), "AddOptions")], [0, 2, 2], [1, 2, 2]
    )
    data = build(main, [loop], [0, 1, 2], [3, 4, 5], again, body)
    values = [np.asarray(v, np.float32) for v in (3, 5, 20)]
    (row,) = run_one(tmp_path, data, values)
    assert [float(v) for v in row] == [float(v) for v in litert(data, values)] == [63.0, 20.0, 20.0]


def test_errors_inside_of_branches_are_told(tmp_path: Path) -> None:
    text = errors_of(tmp_path, branches(Op("MUL", (0, 9), (1,), "MulOptions")))
    assert "names tensor 9 of 2" in text
    text = errors_of(tmp_path, branches(Op("CUSTOM:Whisper", (0,), (1,))))
    assert "operator 0 of sub-graph 2" in text
    nested = Op("IF", (0, 0), (1,), "IfOptions", {"ThenSubgraphIndex": 2, "ElseSubgraphIndex": 2})
    assert "runs itself" in errors_of(tmp_path, branches(nested))


def test_a_variable_keeps_its_value_from_run_to_run(tmp_path: Path) -> None:
    """A running sum in a resource variable that begins at 5."""
    names = {"Container": 0, "SharedName": 0}
    handle = T("handle", (), 13, scale=())
    main = [scalar("x"), handle, scalar("old"), scalar("new")]
    operators = [
        Op("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}),
        Op("VAR_HANDLE", (), (1,), "VarHandleOptions", names),
        Op("READ_VARIABLE", (1,), (2,)),
        Op("ADD", (0, 2), (3,), "AddOptions"),
        Op("ASSIGN_VARIABLE", (1, 3), ()),
    ]
    start = G(
        [handle, scalar("five", data=np.asarray(5, np.float32))],
        [Op("VAR_HANDLE", (), (0,), "VarHandleOptions", names), Op("ASSIGN_VARIABLE", (0, 1), ())],
        [],
        [],
    )
    rows = run_one(
        tmp_path, build(main, operators, [0], [3], start), *([np.asarray(v, np.float32)] for v in (1, 2, 3))
    )
    assert [float(r[0]) for r in rows] == [6.0, 8.0, 11.0]


@pytest.mark.parametrize("assigned", [False, True])
def test_a_variable_that_gets_no_value_is_refused(assigned: bool, tmp_path: Path) -> None:
    """Converted from a concrete function, weights stay behind: LiteRT stops where they are read. One that the
    run itself assigns begins with 0.
    """
    operators = [
        Op("VAR_HANDLE", (), (1,), "VarHandleOptions", {"Container": 0, "SharedName": 0}),
        Op("READ_VARIABLE", (1,), (2,)),
        Op("ADD", (0, 2), (3,), "AddOptions"),
        *([Op("ASSIGN_VARIABLE", (1, 3), ())] if assigned else []),
    ]
    tensors = [scalar("x"), T("weights", (), 13, scale=()), scalar("old"), scalar("new")]
    model = build(tensors, operators, [0], [3])
    if assigned:
        rows = run_one(tmp_path, model, *([np.asarray(v, np.float32)] for v in (1, 2)))
        assert [float(r[0]) for r in rows] == [1.0, 3.0]
    else:
        assert "nothing gives a value to" in errors_of(tmp_path, model)
