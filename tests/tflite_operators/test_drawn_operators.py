"""Cases of TFLite's operators with several changes at once: others for every commit."""

from __future__ import annotations

import pytest

from turns import commit_number

COUNT = 120
pytest.importorskip("ai_edge_litert.interpreter")


def test_drawn_operators() -> None:
    from drawn_operators import wrong

    first = commit_number() * COUNT
    found, compared, refused = wrong(range(first, first + COUNT))
    assert compared > COUNT / 4, compared
    assert len(refused) < compared
    assert not found, "\n".join(found)


def test_a_seed_is_one_form() -> None:
    from drawn_operators import drawn

    forms = [drawn(7), drawn(7)]
    assert forms[0].packed() == forms[1].packed()
    assert len({drawn(seed).packed() for seed in range(40)}) > 30
