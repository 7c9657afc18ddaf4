"""Multiplications that recurrent layers are said to have: each weight once for each step of each sequence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rows import Row, label_of, registry_rows

from batch import compiled_case

WEIGHTS = {
    "LSTM": (1, 2),
    "GRU": (1, 2),
    "RNN": (1, 2),
    "aot.HybridLstm": (3, 4),
    "aot.SequenceLstm": (3, 4, 8),
}
"""Inputs that are matrices; the input 0 has a row for each step of each sequence."""


def rows(label: str) -> list[Row]:
    return [row for row in registry_rows() if label_of(row.kind) == label][:6]


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
