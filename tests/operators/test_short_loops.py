"""Short loops with several turns written one behind the other compute and read what the loops do, under
sanitizers: whatever has a loop over elements, with and without turns that are left, with indices that are
divided, with reads that are guarded.
"""

from __future__ import annotations

import pytest
from oracles import expected
from rows import registry_rows
from verdict import verdict

from aot_model.c.turns import TURNS
from aot_model.kernels.target import Target
from batch import run_cases

KINDS = (
    "Reduce",
    "Softmax",
    "LayerNormalization",
    "InstanceNormalization",
    "CumSum",
    "Add",
    "Mul",
    "Relu",
    "Clip",
    "Transpose",
    "Pad",
    "Tile",
    "Gather",
    "Slice",
    "Resize",
    "DepthToSpace",
    "ArgMax",
    "LpPool",
    "Concat",
    "Einsum",
    "QuantizeLinear",
    "DequantizeLinear",
    "Col2Im",
    "Where",
    "OneHot",
    "Expand",
)


def test_turns_are_those_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Target, "turns", lambda self: TURNS)
    chosen = [row for row in registry_rows() if row.label.startswith(KINDS)]
    assert len(chosen) > 200
    outcomes = run_cases([row.case for row in chosen], "c", flags=("-O1",))
    for row, outcome in zip(chosen, outcomes, strict=True):
        problem = verdict(row, outcome, expected(row))
        assert not problem, f"{row.label}: {problem}"
