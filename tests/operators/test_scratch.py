"""Operators that need memory of their own: within its bounds, and written before it is read (see
red_zones.py).
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from oracles import expected
from rows import Row, label_of, registry_rows
from verdict import verdict

import red_zones
from batch import Case, Outcome, run_cases
from red_zones import generate_guarded

EACH = 4
"""Samples of an operator."""


def _rows() -> list[Row]:
    taken: Counter[str] = Counter()
    rows = []
    for row in registry_rows():
        taken[label_of(row.kind)] += 1
        if taken[label_of(row.kind)] <= EACH and not row.sample.states:
            rows.append(row)
    return rows


def _problem(row: Row, outcome: Outcome) -> str:
    return "" if outcome.status == "same" else verdict(row, outcome, expected(row))


def test_operators_keep_to_their_memory() -> None:
    rows = _rows()
    outcomes = run_cases([row.case for row in rows], "c", flags=("-O0",), make=generate_guarded)
    wrong = [
        f"{row.label}: {problem}"
        for row, outcome in zip(rows, outcomes, strict=True)
        if (problem := _problem(row, outcome))
    ]
    assert not wrong, "\n".join(wrong)
    assert sum(outcome.status == "ok" for outcome in outcomes) > 150, (
        "most operators with a workspace are not run at all"
    )


@pytest.mark.parametrize("sanitize", [True, False])
@pytest.mark.parametrize("label", ["LSTM-0", "TopK-0", "Softmax-0"])
def test_memory_that_is_too_small_is_noticed(
    label: str, sanitize: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zones that begin four bytes early are buffers that are four bytes too small."""
    zones = red_zones.zones
    monkeypatch.setattr(red_zones, "zones", lambda view: [(max(a - 4, 0), b) for a, b in zones(view)])
    row = next(r for r in registry_rows() if r.label == label)
    assert run_cases([row.case], "c", sanitize=sanitize, jobs=1, make=generate_guarded)[0].status == "crash"


def _last_state(kind: str, gates: int, direction: str, lengths: bool) -> Case:
    """A recurrent layer of which the states of the steps are not read."""
    steps, batch, size, hidden = 5, 2, 4, 3
    passes = 2 if direction == "bidirectional" else 1
    rng = np.random.default_rng(gates)
    w, r = (rng.uniform(-1, 1, (passes, gates * hidden, n)).astype(np.float32) for n in (size, hidden))
    inputs = ["x", "w", "r", "", "lengths"] if lengths else ["x", "w", "r"]
    node = helper.make_node(kind, inputs, ["", "last"], hidden_size=hidden, direction=direction)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, batch, size])
    last = helper.make_tensor_value_info("last", TensorProto.FLOAT, [passes, batch, hidden])
    constants = {"w": w, "r": r, **({"lengths": np.asarray([5, 3], np.int32)} if lengths else {})}
    graph = helper.make_graph(
        [node], "g", [x], [last], [numpy_helper.from_array(v, k) for k, v in constants.items()]
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    data = rng.uniform(-1, 1, (steps, batch, size)).astype(np.float32)
    return Case(f"{kind} {direction}{' with lengths' if lengths else ''}", proto, (data,))


def test_states_that_are_not_kept_take_turns() -> None:
    """Where the states of the steps are not read there is room for two, within the memory of the layer."""
    cases = [
        _last_state(kind, gates, direction, lengths)
        for kind, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))
        for direction in ("forward", "reverse", "bidirectional")
        for lengths in (False, True)
    ]
    outcomes = run_cases(cases, "c", flags=("-O0",), make=generate_guarded)
    for case, outcome in zip(cases, outcomes, strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (want,) = session.run(None, {"x": case.inputs[0]})
        np.testing.assert_allclose(outcome.outputs[0], want, rtol=2e-5, atol=2e-6, err_msg=case.name)
