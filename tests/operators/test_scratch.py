"""Operators that need memory of their own: within its bounds, and written before it is read (see
red_zones.py).
"""

from __future__ import annotations

from collections import Counter

import pytest
from oracles import expected
from rows import Row, label_of, registry_rows
from verdict import verdict

import red_zones
from batch import Outcome, run_cases
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
