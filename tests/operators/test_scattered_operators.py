"""Samples of operators in memory that is laid out at random, within what their calls say of their buffers:
inputs and outputs lie in the workspace too, over each other where they may. A call that permits more than it
stands gives other numbers. A part of the samples for every commit, all with AOT_MODEL_SCATTERED_ALL=1.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from oracles import expected
from rows import registry_rows
from verdict import verdict

from aot_model.memory import planner
from batch import run_cases
from scattered import Scattered
from turns import commit_number

PARTS = 12


def test_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    turn, rows = commit_number(), list(registry_rows())
    rows = rows if os.environ.get("AOT_MODEL_SCATTERED_ALL") else rows[turn % PARTS::PARTS]
    monkeypatch.setitem(planner.ALGORITHMS, planner.DEFAULT, Scattered(turn))  # type: ignore[misc]
    outcomes = run_cases([replace(row.case, io="workspace") for row in rows], sanitize=False)
    wrong = [f"{row.label}: {problem}" for row, outcome in zip(rows, outcomes, strict=True)
             if (problem := verdict(row, outcome, expected(row)))]
    assert not wrong, "\n".join(wrong)
