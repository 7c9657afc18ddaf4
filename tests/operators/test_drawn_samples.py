"""Samples with several changes at once: others for every commit."""

from __future__ import annotations

from drawn_samples import drawn, wrong

from turns import commit_number

COUNT = 240


def test_drawn_samples() -> None:
    first = commit_number() * COUNT
    found, compared = wrong(range(first, first + COUNT))
    assert compared > COUNT / 4, compared
    assert not found, "\n".join(found)


def test_a_seed_is_one_form() -> None:
    forms = [drawn(7), drawn(7)]
    assert repr(forms[0]) == repr(forms[1])
    assert len({drawn(seed).label for seed in range(40)}) == 40
