"""Multiplications that recurrent layers are said to have, each weight once for each step of each sequence,
and loops, whose bodies count as often as they run.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from rows import Row, label_of, registry_rows

from batch import Case, compiled_case

WEIGHTS = {
    "LSTM": (1, 2),
    "GRU": (1, 2),
    "RNN": (1, 2),
    "aot.HybridLstm": (3, 4),
    "aot.SequenceLstm": (3, 4, 8),
}
"""Inputs that are matrices; the input 0 has a row for each step of each sequence."""


def rows(label: str) -> list[Row]:
    return [row for row in registry_rows() if label_of(row.kind) == label]


@pytest.mark.parametrize("label", WEIGHTS)
def test_each_weight_counts_once_for_each_step(label: str, tmp_path: Path) -> None:
    found = {}
    for row in rows(label):
        compiled = compiled_case(row.case, tmp_path / "model", "m", "c")
        inputs = [None if v is None else np.asarray(v) for v in row.sample.inputs]
        x, *weights = (inputs[k] for k in (0, *WEIGHTS[label]) if k < len(inputs))
        assert x is not None
        elements = sum(w.size for w in weights if w is not None)
        said = sum(call.macs for call in compiled.view.program.calls())
        found[row.label] = said, x.size // x.shape[-1] * elements
    assert found
    assert all(said == macs for said, macs in found.values()), found


LOOP = """
<ir_version: 9, opset_import: ["" : 18]>
loop (float[2,4] x, bool go) => (float[2,4] y)
<int64 turns = {5}, bool yes = {1}>
{
    y = Loop (turns, CONDITION, x)
        <body = body (int64 turn, bool again, float[2,4] before) => (bool on, float[2,4] after)
        <float[4,4] w = {1,2,3,4,5,6,7,8,9,8,7,6,5,4,3,2}>
        {
            on = Identity (again)
            after = MatMul (before, w)
        }>
}
"""


@pytest.mark.parametrize(("condition", "turns"), [("yes", 5), ("go", 1)])
def test_a_body_counts_as_often_as_it_surely_runs(condition: str, turns: int, tmp_path: Path) -> None:
    """Once where data decide how often."""
    model = onnx.parser.parse_model(LOOP.replace("CONDITION", condition))
    inputs = (np.ones((2, 4), np.float32), np.asarray(True))
    compiled = compiled_case(Case("loop", model, inputs), tmp_path / "model", "m", "c")
    assert sum(call.macs for call in compiled.view.program.calls()) == turns * 2 * 4 * 4
