"""Loops whose condition counts, as converters of TensorFlow write them: results have a known size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node as node
from onnx.reference import ReferenceEvaluator

from aot_model.errors import CompileError
from aot_model.frontends import onnx_turns
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases
from onnx_models import model, save, tensor

INT, BOOL = TensorProto.INT64, TensorProto.BOOL


def looping(condition: Sequence[onnx.NodeProto],
            most: int | None = 100,
            start: int = 0,
            **constants: object) -> onnx.ModelProto:
    """A state doubles or so each turn and is a result; the sum of all results and the last counter are
    outputs. condition: nodes that make `again` of `turn`, `count`, `next_count` and `state`.
    """
    nodes = [node("Add", ["count", "step"], ["next_count"]), *condition,
             node("Cast", ["count"], ["c"], to=TensorProto.FLOAT), node("Add", ["state", "c"], ["s"]),
             node("Mul", ["s", "x"], ["next"]), node("Identity", ["next"], ["result"])]
    body = helper.make_graph(
        nodes, "body",
        [tensor("turn", [], INT), tensor("on", [], BOOL), tensor("count", [], INT), tensor("state", [3])],
        [tensor("again", [], BOOL), tensor("next_count", [], INT), tensor("next", [3]),
         tensor("result", [3])])
    loop = node("Loop", ["most" if most is not None else "", "go", "start", "x"],
                ["counted", "last", "all"], body=body)
    fixed = {"most": np.int64(most or 0), "go": np.asarray(True), "start": np.int64(start),
             "step": np.int64(2), "rows": np.asarray([0], np.int64), **constants}
    return model([loop, node("ReduceSum", ["all", "rows"], ["y"], keepdims=0)], [tensor("x", [3])],
                 [tensor("counted", [], INT), tensor("last", [3]), tensor("y", [3])],
                 {k: np.asarray(v) for k, v in fixed.items()})


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
    "two limits of floats": looping([
        node("Cast", ["next_count"], ["f"], to=TensorProto.FLOAT), node("Less", ["f", "limit"], ["p"]),
        node("Cast", ["turn"], ["t"], to=TensorProto.FLOAT), node("Less", ["t", "turns"], ["q"]),
        node("And", ["p", "q"], ["again"])], limit=np.float32(9), turns=np.float32(2)),
}


def test_results() -> None:
    x = np.asarray([0.5, -1, 1.25], np.float32)
    cases = [Case(name, proto, (x,)) for name, proto in COUNTING.items()]
    for case, outcome in zip(cases, run_cases(cases, "c", jobs=1, sanitize=False, flags=("-O0",)),
                             strict=True):
        assert outcome.status == "ok", outcome.message
        assert not outcome.shapes
        if case.name == "no turn":
            want = [np.int64(0), x, np.zeros(3, np.float32)]
        else:
            want = ReferenceEvaluator(case.model).run(None, {"x": x})
        for got, expected in zip(outcome.outputs, want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=case.name)


@pytest.mark.parametrize("name", ["of data", "without end"])
def test_turns_that_cannot_be_counted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of all results needs a size that is known."""
    monkeypatch.setattr(onnx_turns, "MAX_STEPS", 200)
    state = [node("ReduceSum", ["state"], ["total"], keepdims=0), less("total", "limit")]
    proto = (looping(state, limit=np.float32(9)) if name == "of data"
             else looping([less("start", "next_count")], most=None))
    with pytest.raises(CompileError, match="E203"):
        compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
