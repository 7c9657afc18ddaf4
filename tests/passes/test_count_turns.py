"""Loops whose condition counts, as converters of TensorFlow write them: results have a known size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node as node
from onnx.reference import ReferenceEvaluator

from aot_model.errors import CompileError
from aot_model.frontends import onnx_structure
from aot_model.passes import count_turns
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases
from onnx_models import model, save, tensor

INT, BOOL = TensorProto.INT64, TensorProto.BOOL


def looping(
    condition: Sequence[onnx.NodeProto], most: int | None = 100, start: int = 0, **constants: object
) -> onnx.ModelProto:
    """A state doubles or so each turn and is a result; the sum of all results and the last counter are
    outputs. condition: nodes that make `again` of `turn`, `count`, `next_count` and `state`.
    """
    nodes = [
        node("Add", ["count", "step"], ["next_count"]),
        *condition,
        node("Cast", ["count"], ["c"], to=TensorProto.FLOAT),
        node("Add", ["state", "c"], ["s"]),
        node("Mul", ["s", "x"], ["next"]),
        node("Identity", ["next"], ["result"]),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [tensor("turn", [], INT), tensor("on", [], BOOL), tensor("count", [], INT), tensor("state", [3])],
        [
            tensor("again", [], BOOL),
            tensor("next_count", [], INT),
            tensor("next", [3]),
            tensor("result", [3]),
        ],
    )
    loop = node(
        "Loop",
        ["most" if most is not None else "", "go", "start", "x"],
        ["counted", "last", "all"],
        body=body,
    )
    fixed = {
        "most": np.int64(most or 0),
        "go": np.asarray(True),
        "start": np.int64(start),
        "step": np.int64(2),
        "rows": np.asarray([0], np.int64),
        **constants,
    }
    return model(
        [loop, node("ReduceSum", ["all", "rows"], ["y"], keepdims=0)],
        [tensor("x", [3])],
        [tensor("counted", [], INT), tensor("last", [3]), tensor("y", [3])],
        {k: np.asarray(v) for k, v in fixed.items()},
    )


def less(value: str, limit: str) -> onnx.NodeProto:
    return node("Less", [value, limit], ["again"])


COUNTING = {
    "a counter below a limit": looping([less("next_count", "limit")], limit=np.int64(9)),
    "one turn": looping([less("next_count", "limit")], limit=np.int64(1)),
    "the counter before its step": looping([less("count", "limit")], start=3, limit=np.int64(9)),
    "the number of the turn": looping([less("turn", "limit")], limit=np.int64(3)),
    "at most": looping([less("next_count", "limit")], most=2, limit=np.int64(9)),
    "no turn": looping([less("next_count", "limit")], most=0, limit=np.int64(9)),
    "without a limit": looping([less("next_count", "limit")], most=None, limit=np.int64(7)),
    "two limits of floats": looping(
        [
            node("Cast", ["next_count"], ["f"], to=TensorProto.FLOAT),
            node("Less", ["f", "limit"], ["p"]),
            node("Cast", ["turn"], ["t"], to=TensorProto.FLOAT),
            node("Less", ["t", "turns"], ["q"]),
            node("And", ["p", "q"], ["again"]),
        ],
        limit=np.float32(9),
        turns=np.float32(2),
    ),
}


def bags(starts: tuple[int, ...], limit: bool = False, step: int = 1) -> onnx.ModelProto:
    """An EmbeddingBag of means as exporters of PyTorch unfold it: a loop without a number of turns collects
    rows in a sequence; an empty bag is a branch. starts: of the bags, and the end of the last.
    step: of the counter of bags.
    """
    nothing = helper.make_tensor("nothing", TensorProto.FLOAT, [1, 4], [0] * 4)
    zero = helper.make_graph(
        [node("Constant", [], ["none"], value=nothing)], "zero", [], [tensor("none", [1, 4])]
    )
    mean = helper.make_graph(
        [node("Slice", ["rows", "start", "end"], ["bag"]), node("ReduceMean", ["bag", "first"], ["mean"])],
        "mean",
        [],
        [tensor("mean", [1, 4])],
    )
    nodes = [
        node("Reshape", ["k", "flat"], ["k1"]),
        node("Add", ["k1", "one"], ["k2"]),
        node("Add", ["k2", "one"], ["k3"]),
        node("Slice", ["offsets", "k1", "k2"], ["start"]),
        node("Slice", ["offsets", "k2", "k3"], ["end"]),
        node("Equal", ["start", "end"], ["empty"]),
        node("If", ["empty"], ["row"], then_branch=zero, else_branch=mean),
        node("SequenceInsert", ["before", "row"], ["after"]),
        node("Add", ["k", "step"], ["next"]),
        node("Less", ["next", "count"], ["again"]),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [
            tensor("turn", [], INT),
            tensor("on", [], BOOL),
            tensor("k", [], INT),
            helper.make_tensor_sequence_value_info("before", TensorProto.FLOAT, None),
        ],
        [
            tensor("again", [], BOOL),
            tensor("next", [], INT),
            helper.make_tensor_sequence_value_info("after", TensorProto.FLOAT, None),
        ],
    )
    fixed = {
        "offsets": np.asarray(starts),
        "count": np.int64(len(starts) - 1),
        "k0": np.int64(0),
        "step": np.int64(step),
        "one": np.asarray([1]),
        "flat": np.asarray([-1]),
        "first": np.asarray([0]),
        "go": np.asarray(True),
        "most": np.int64(2),
        "table": np.random.default_rng(3).normal(size=(9, 4)).astype(np.float32),
    }
    graph = [
        node("Gather", ["table", "x"], ["rows"]),
        node("SequenceEmpty", [], ["nothing"]),
        node("Loop", ["most" if limit else "", "go", "k0", "nothing"], ["last", "list"], body=body),
        node("ConcatFromSequence", ["list"], ["y"], axis=0),
    ]
    return model(
        graph, [tensor("x", [6], INT)], [tensor("y", None)], {k: np.asarray(v) for k, v in fixed.items()}
    )


def test_loops_of_growing_values_count_by_their_condition() -> None:
    x = np.asarray([1, 8, 0, 3, 3, 5])
    forms = ((0, 3, 6), False), ((0, 2, 2, 6), False), ((0, 6), False), ((0, 1, 4, 6), True)
    cases = [Case(str(starts), bags(starts, limit), (x,)) for starts, limit in forms]
    for case, outcome in zip(
        cases, run_cases(cases, "c", jobs=1, sanitize=False, flags=("-O0",)), strict=True
    ):
        assert outcome.status == "ok", outcome.message
        want = ReferenceEvaluator(case.model).run(None, {"x": x})
        np.testing.assert_allclose(outcome.outputs[0], want[0], rtol=1e-6, err_msg=case.name)


def test_a_loop_of_growing_values_without_an_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_structure, "MAX_UNROLLED", 200)
    with pytest.raises(CompileError, match="too many to unroll"):
        compile_model(Request(save(bags((0, 3, 6), step=0), tmp_path / "m.onnx"), "m", "c"))


def test_results() -> None:
    x = np.asarray([0.5, -1, 1.25], np.float32)
    cases = [Case(name, proto, (x,)) for name, proto in COUNTING.items()]
    for case, outcome in zip(
        cases, run_cases(cases, "c", jobs=1, sanitize=False, flags=("-O0",)), strict=True
    ):
        assert outcome.status == "ok", outcome.message
        assert not outcome.shapes
        if case.name == "no turn":
            want = [np.int64(0), x, np.zeros(3, np.float32)]
        else:
            want = ReferenceEvaluator(case.model).run(None, {"x": x})
        for got, expected in zip(outcome.outputs, want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=case.name)


def test_turns_without_an_end_cannot_be_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of all results needs a size that is known, or a bound of the model's own."""
    monkeypatch.setattr(count_turns, "MAX_STEPS", 200)
    proto = looping([less("start", "next_count")], most=None)
    with pytest.raises(CompileError, match="E203"):
        compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
    # one of the user's may be too low, which no sum would say
    with pytest.raises(CompileError, match="E203"):
        compile_model(Request(tmp_path / "m.onnx", "m", "c", bounds={"all": 8}))


def test_results_of_turns_that_depend_on_data_are_summed() -> None:
    state = [node("ReduceSum", ["state"], ["total"], keepdims=0), less("total", "limit")]
    model, x = looping(state, limit=np.float32(9)), np.asarray([1.5, 1, 1.25], np.float32)
    (outcome,) = run_cases([Case("of data", model, (x,))], "c", jobs=1, sanitize=False, flags=("-O0",))
    assert outcome.status == "ok", outcome.message
    want = ReferenceEvaluator(model).run(None, {"x": x})
    for got, expected in zip(outcome.outputs, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("go", [None, True, False])
def test_the_condition_that_a_body_reads(go: bool | None) -> None:
    """... by a branch inside of it, as an operand and as a result: true, whatever the number of the turn."""
    inner, outer = (
        helper.make_graph([node(kind, ["state"], [f"{kind}_of"])], kind, [], [tensor(f"{kind}_of", [3])])
        for kind in ("Neg", "Exp")
    )
    nodes = [
        node("If", ["on"], ["chosen"], then_branch=inner, else_branch=outer),
        node("Where", ["on", "x", "chosen"], ["added"]),
        node("Add", ["chosen", "added"], ["next"]),
        node("Not", ["on"], ["off"]),
        node("Identity", ["on"], ["again"]),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [tensor("turn", [], INT), tensor("on", [], BOOL), tensor("state", [3])],
        [tensor("again", [], BOOL), tensor("next", [3]), tensor("off", [], BOOL)],
    )
    loop = node("Loop", ["most", "" if go is None else "go", "x"], ["last", "never"], body=body)
    fixed = {"most": np.asarray(3), **({} if go is None else {"go": np.asarray(go)})}
    proto = model([loop], [tensor("x", [3])], [tensor("last", [3]), tensor("never", None, BOOL)], fixed)
    x = np.asarray([0.5, -2, 3], np.float32)
    wanted = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    (outcome,) = run_cases([Case("loop", proto, (x,))], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    for y, of in zip(outcome.outputs, wanted, strict=True):
        np.testing.assert_array_equal(y, of)


@pytest.mark.parametrize("below", [2, 9])
def test_a_condition_that_becomes_a_constant_later(below: int) -> None:
    """Constants that are dequantised are folded behind the passes that look for them: results have their
    shapes by then.
    """
    body = helper.make_graph(
        [node("Identity", ["on"], ["again"]), node("Add", ["state", "state"], ["next"])],
        "body",
        [tensor("turn", [], INT), tensor("on", [], BOOL), tensor("state", [3])],
        [tensor("again", [], BOOL), tensor("next", [3]), tensor("state", [3])],
    )
    nodes = [
        node("DequantizeLinear", ["w", "s"], ["real"]),
        node("Less", ["real", "below"], ["go"]),
        node("Loop", ["most", "go", "x"], ["last", "all"], body=body),
    ]
    numbers = {"w": np.int8(5), "s": np.float32(1), "below": np.float32(below), "most": np.int64(3)}
    fixed = {k: np.asarray(v) for k, v in numbers.items()}
    proto = model(nodes, [tensor("x", [3])], [tensor("last", [3]), tensor("all", None)], fixed)
    x = np.asarray([0.5, -2, 3], np.float32)
    (outcome,) = run_cases([Case("loop", proto, (x,))], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    turns = 3 if below > 5 else 0
    assert outcome.outputs[0].tolist() == (x * 2**turns).tolist()
    assert outcome.outputs[1].tolist() == [(x * 2**k).tolist() for k in range(turns)]


def test_the_number_of_turns_of_an_inner_loop_is_there_in_every_outer_turn() -> None:
    """It is an input in the workspace: nothing lies over it before the outer loop ends."""
    inner = helper.make_graph(
        [node("Identity", ["on2"], ["again2"]), node("Mul", ["u", "two"], ["v"])],
        "inner",
        [tensor("turn2", [], INT), tensor("on2", [], BOOL), tensor("u", [4])],
        [tensor("again2", [], BOOL), tensor("v", [4])],
    )
    nodes = [
        node("Identity", ["on"], ["again"]),
        node("Loop", ["count", "", "state"], ["last"], body=inner),
        node("CumSum", ["last", "axis"], ["sums"]),
        node("CumSum", ["sums", "axis"], ["more"]),
        node("Add", ["more", "x"], ["next"]),
    ]
    outer = helper.make_graph(
        nodes,
        "outer",
        [tensor("turn", [], INT), tensor("on", [], BOOL), tensor("state", [4])],
        [tensor("again", [], BOOL), tensor("next", [4])],
    )
    proto = model(
        [node("Loop", ["three", "", "x"], ["y"], body=outer)],
        [tensor("x", [4]), tensor("count", [], INT)],
        [tensor("y", [4])],
        {"three": np.asarray(3), "two": np.asarray(2, np.float32), "axis": np.asarray(0)},
    )
    given = {"x": np.asarray([1, -2, 3, 4], np.float32), "count": np.asarray(2)}
    wanted = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, given)
    (outcome,) = run_cases([Case("loops", proto, tuple(given.values()), io="workspace")], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    np.testing.assert_array_equal(outcome.outputs[0], wanted[0])


def test_results_of_no_turn_of_a_loop_whose_values_grow() -> None:
    body = helper.make_graph(
        [node("Concat", ["state", "state"], ["next"], axis=0), node("Neg", ["state"], ["result"])],
        "body",
        [tensor("turn", [], INT), tensor("on", [], BOOL), tensor("state", None)],
        [tensor("on", [], BOOL), tensor("next", None), tensor("result", [3])],
    )
    proto = model(
        [node("Loop", ["none", "", "x"], ["last", "all"], body=body)],
        [tensor("x", [3])],
        [tensor("last", [3]), tensor("all", None)],
        {"none": np.asarray(0)},
    )
    x = np.asarray([0.5, -2, 3], np.float32)
    wanted = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    (outcome,) = run_cases([Case("loop", proto, (x,))], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    for got, want in zip(outcome.outputs, wanted, strict=True):
        assert (got.shape, got.tolist()) == (want.shape, want.tolist())
