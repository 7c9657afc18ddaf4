"""Samples whose inputs have other shapes (near_samples.py): a part of them for every commit."""

from __future__ import annotations

from near_samples import forms, wrong

from turns import commit_number

PARTS = 120


def test_near_samples() -> None:
    numbers = range(commit_number() % PARTS, len(forms()), PARTS)
    found, compared = wrong(numbers)
    assert compared > len(numbers) // 10, compared
    assert not found, "\n".join(found)
