"""Samples with another attribute or shape (variants.py) give what ONNX Runtime says, or another oracle."""

from __future__ import annotations

import json

from variants import FILE, GATES, chosen, problem

from batch import run_cases


def test_variants_of_samples() -> None:
    rows = chosen()
    known = len(json.loads(FILE.read_text()))
    recurrent = sum("recurrence" in row.label for row in rows)
    assert recurrent == 18 * len(GATES) and len(rows) - recurrent > 0.9 * known, (
        "samples have moved: choose anew"
    )
    outcomes = run_cases([row.case for row in rows], "c", flags=("-O0",))
    wrong = [
        f"{row.label}: {said}" for row, o in zip(rows, outcomes, strict=True) if (said := problem(row, o))
    ]
    assert not wrong, "\n".join(wrong)
