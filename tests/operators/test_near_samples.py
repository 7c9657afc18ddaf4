"""Samples whose inputs have other shapes (near_samples.py): a part of them for every commit."""

from __future__ import annotations

from near_samples import forms, wrong

from turns import commit_number

PARTS = 120


def test_near_samples() -> None:
    rows = forms()[commit_number() % PARTS::PARTS]
    found, compared = wrong(rows)
    assert compared > len(rows) // 10, compared
    assert not found, "\n".join(found)
