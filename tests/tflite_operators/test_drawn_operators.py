"""Cases of TFLite's operators with several changes at once: others for every commit."""

from __future__ import annotations

import pytest

from turns import commit_number

COUNT = 120
pytest.importorskip("ai_edge_litert.interpreter")


def test_drawn_operators() -> None:
    from drawn_operators import number_of, wrong

    first = commit_number() * COUNT
    found, compared, refused = wrong([number_of(seed) for seed in range(first, first + COUNT)])
    assert compared > COUNT / 4, compared
    assert len(refused) < compared
    assert not found, "\n".join(found)


def test_forms_at_edges() -> None:
    """Each is still one that LiteRT computes, but for a few: cases may have moved."""
    from drawn_operators import at_edges, wrong

    numbers = at_edges()
    found, compared, _ = wrong(numbers)
    assert compared > 0.9 * len(numbers) > 20, "choose anew: mutation/noted_edges.py"
    assert not found, "\n".join(found)


def test_a_seed_is_one_form() -> None:
    from drawn_operators import drawn, number_of

    forms = [drawn(number_of(7)), drawn(number_of(7))]
    assert forms[0].packed() == forms[1].packed()
    assert len({drawn(number_of(seed)).packed() for seed in range(40)}) > 30
