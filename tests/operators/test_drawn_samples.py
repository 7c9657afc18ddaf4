"""Samples with several changes at once: others for every commit."""

from __future__ import annotations

from drawn_samples import at_edges, drawn, form_of, wrong

from turns import commit_number

COUNT = 240


def test_drawn_samples() -> None:
    first = commit_number() * COUNT
    found, compared = wrong([form_of(seed) for seed in range(first, first + COUNT)])
    assert compared > COUNT / 4, compared
    assert not found, "\n".join(found)


def test_forms_at_edges() -> None:
    """Each is still one that somebody else computes, but for a few: samples may have moved."""
    forms = at_edges()
    found, compared = wrong(forms)
    assert compared > 0.9 * len(forms) > 100, "choose anew: mutation/noted_edges.py"
    assert not found, "\n".join(found)


def test_a_seed_is_one_form() -> None:
    forms = [drawn(form_of(7)), drawn(form_of(7))]
    assert repr(forms[0]) == repr(forms[1])
    assert len({drawn(form_of(seed)).label for seed in range(40)}) == 40
