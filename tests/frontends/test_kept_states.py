"""States of loops that no turn changes, beside ONNX Runtime or the evaluator: weights and sequences that
JAX's exporter carries from turn to turn.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases

RANDOM = np.random.default_rng(74)
W = RANDOM.normal(size=(16, 16)).astype(np.float32) / 4
X = RANDOM.normal(size=(5, 1, 16)).astype(np.float32)
START = RANDOM.normal(size=(1, 16)).astype(np.float32)

LOOP = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[5,1,16] x, float[1,16] start, int64 turns) =>
    (float[1,16] h, float[1,16] d, float[16,16] v, float[5,1,16] s, float[1,16] f, float[t,1,16] y)
<bool yes = {1}>
{
    v, h, s, d, f, y = Loop (turns, yes, w, start, x, start, start) <body = turn
        (int64 t, bool go, float[16,16] weights, float[1,16] was, float[5,1,16] all, float[1,16] late,
         float[1,16] first)
        => (bool again, float[16,16] same_weights, float[1,16] now, float[5,1,16] same, float[1,16] before,
            float[1,16] first, float[1,16] now)
        {
            row = Gather <axis = 0> (all, t)
            product = MatMul (was, weights)
            sum = Add (product, row)
            more = Add (sum, late)
            now = Tanh (more)
            before = Identity (first)
            once = Identity (weights)
            same_weights = Identity (once)
            same = Identity (all)
            again = Identity (go)
        }>
}
"""
SCAN = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[5,1,16] x, float[1,16] start) => (float[16,16] v, float[1,16] h, float[5,1,16] y)
{
    v, h, y = Scan (w, start, x) <num_scan_inputs = 1, body = turn
        (float[16,16] weights, float[1,16] was, float[1,16] row) =>
        (float[16,16] weights, float[1,16] now, float[1,16] now)
        {
            product = MatMul (was, weights)
            sum = Add (product, row)
            now = Tanh (sum)
        }>
}
"""
KEPT = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[5,1,16] x, int64 turns) => (float[16,16] v, float[t,1,16] y)
<bool yes = {1}>
{
    v, y = Loop (turns, yes, w) <body = turn (int64 t, bool go, float[16,16] weights) =>
        (bool go, float[16,16] weights, float[1,16] now)
        {
            row = Gather <axis = 0> (x, t)
            now = MatMul (row, weights)
        }>
}
"""
CROSSED = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[5,1,16] x, float[1,16] start) => (float[5,1,16] v, float[1,16] h)
<int64 turns = {3}, bool yes = {1}>
{
    v, h = Loop (turns, yes, x, start) <body = turn
        (int64 t, bool go, float[5,1,16] start, float[1,16] x) =>
        (bool go, float[5,1,16] start, float[1,16] now)
        {
            row = Gather <axis = 0> (start, t)
            now = Add (row, x)
        }>
}
"""
"""The body calls its states by names that others have around it."""


def model(text: str, turns: int | None = None) -> onnx.ModelProto:
    """With the weights, which the text has no room for, and a number of turns that is known."""
    made = onnx.parser.parse_model(text)
    made.graph.initializer.append(onnx.numpy_helper.from_array(W, "w"))
    if turns is not None:
        del made.graph.input[-1]
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(turns, np.int64), "turns"))
    return made


def test_states_that_no_turn_changes() -> None:
    cases = []
    for name, net in {
        "loop": model(LOOP, 5),
        "no turn": model(LOOP, 0),
        "scan": model(SCAN),
        "no other state": model(KEPT, 4),
        "names of others": model(CROSSED),
    }.items():
        given = {"x": X, "start": START}
        given = {i.name: given[i.name] for i in net.graph.input}
        # ONNX Runtime gives zeros for a state of Scan that is a result, too; the evaluator cannot stack none
        evaluator = ReferenceEvaluator(net) if name == "scan" else None
        want = (evaluator or onnxruntime.InferenceSession(net.SerializeToString())).run(None, given)
        cases.append((Case(name, net, tuple(given.values())), want))
    for outcome, (case, want) in zip(run_cases([c for c, _ in cases]), cases, strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        for got, wanted in zip(outcome.outputs, want, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, err_msg=case.name)


def nested(depth: int) -> onnx.ModelProto:
    """Loops in loops, each of two turns; the innermost doubles."""
    made = f"r{depth} = Add (s{depth}, s{depth})"
    for k in range(depth, 0, -1):
        body = f"(int64 t{k}, bool g{k}, float[4] s{k}) => (bool g{k}, float[4] r{k}) {{ {made} }}"
        made = f"r{k - 1} = Loop (n, yes, s{k - 1}) <body = turn{k} {body}>"
    text = f"g (float[4] s0) => (float[4] r0) <int64 n = {{2}}, bool yes = {{1}}> {{ {made} }}"
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}')


def test_loops_in_loops(tmp_path: Path) -> None:
    """Each is tried before it is imported, with those inside: 2^20 times, were any number allowed."""
    (outcome,) = run_cases([Case("three", nested(3), (START[0, :4],))])
    np.testing.assert_array_equal(outcome.outputs[0], START[0, :4] * 256)
    onnx.save(nested(20), tmp_path / "net.onnx")
    with pytest.raises(CompileError, match="nested more than 8 deep"):
        compile_model(Request(tmp_path / "net.onnx", "net", "c"))


def test_they_take_no_memory(tmp_path: Path) -> None:
    net = model(SCAN)
    del net.graph.output[0]
    onnx.save(net, tmp_path / "net.onnx")
    view = compile_model(Request(tmp_path / "net.onnx", "net", "c")).view
    assert view.workspace_size < W.nbytes
