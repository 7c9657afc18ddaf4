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


@pytest.mark.parametrize("counted", [True, False])
def test_turns_that_a_counter_decides_are_counted(counted: bool, tmp_path: Path) -> None:
    """x doubles while i, from 2 by 3, is below 20: six turns. Not where an input says how far."""

    def whole(name: str, value: int | None = None) -> T:
        return T(name, (), INT32, (), data=None if value is None else np.asarray(value, np.int32))

    main = [
        whole("i", 2),
        scalar("x"),
        whole("n", 20 if counted else None),
        whole("j"),
        scalar("y"),
        whole("m"),
    ]
    loop = Op("WHILE", (0, 1, 2), (3, 4, 5), "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    values = [whole("i"), scalar("a"), whole("n")]
    again = G([*values, scalar("c", BOOL)], [Op("LESS", (0, 2), (3,))], [0, 1, 2], [3])
    operators = [Op("ADD", (0, 3), (4,), "AddOptions"), Op("ADD", (1, 1), (5,), "AddOptions")]
    double = G([*values, whole("step", 3), whole("next"), scalar("b")], operators, [0, 1, 2], [4, 5, 2])
    data = build(main, [loop], [1] if counted else [1, 2], [3, 4], again, double)
    inputs = [np.asarray(1.5, np.float32), np.asarray(20, np.int32)][: 1 if counted else 2]
    (row,) = run_one(tmp_path, data, inputs)
    assert [float(v) for v in row] == [float(v) for v in litert(data, inputs)] == [20.0, 96.0]
    (text,) = (p.read_text() for p in (tmp_path / "built").glob("*.c") if "turn1" in p.read_text())
    assert ("turn1 < INT64_C(6);" in text) == counted


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


def test_weights_that_are_masked_in_every_run_are_constants(tmp_path: Path) -> None:
    """What the wrappers of pruning leave: w = w * mask at the start of a run, w a resource variable."""
    names, shape = {"Container": 0, "SharedName": 0}, (3, 4)
    weights = np.arange(12, dtype=np.float32).reshape(shape) - 5
    mask = np.asarray(weights % 2 == 0, np.float32)
    handle = T("handle", (), 13, scale=())
    main = [
        T("x", (3, 4), FLOAT32, ()), handle, T("old", shape, FLOAT32, ()),
        T("mask", shape, FLOAT32, (), data=mask),
        T("new", shape, FLOAT32, ()), T("w", shape, FLOAT32, ()), T("y", shape, FLOAT32, ()),
    ]  # fmt: skip
    operators = [
        Op("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}),
        Op("VAR_HANDLE", (), (1,), "VarHandleOptions", names),
        Op("READ_VARIABLE", (1,), (2,)),
        Op("MUL", (2, 3), (4,), "MulOptions"),
        Op("ASSIGN_VARIABLE", (1, 4), ()),
        Op("READ_VARIABLE", (1,), (5,)),
        Op("ADD", (0, 5), (6,), "AddOptions"),
    ]
    start = G(
        [handle, T("weights", shape, FLOAT32, (), data=weights)],
        [Op("VAR_HANDLE", (), (0,), "VarHandleOptions", names), Op("ASSIGN_VARIABLE", (0, 1), ())],
        [],
        [],
    )
    data = build(main, operators, [0], [6], start)
    x = np.arange(12, dtype=np.float32).reshape(shape)
    rows = run_one(tmp_path, data, [x], [2 * x])
    np.testing.assert_array_equal(rows[0][0], litert(data, [x])[0])
    np.testing.assert_array_equal(rows[1][0], 2 * x + weights * mask)
    text = "".join(p.read_text() for p in sorted((tmp_path / "built").glob("*.c")))
    assert "(Add)" in text and "(Assign)" not in text


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
