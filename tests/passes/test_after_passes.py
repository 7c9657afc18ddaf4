"""Every pass over small graphs: what it takes, what it must leave alone, and the edges between.

What a graph computes is the same before and after, on random and on hostile inputs, by the definition of each
operator; what became of it is recorded in after_passes.txt: a pass that does less, or more, is noticed.
`--update-golden` writes it anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import channel_cases
import float_cases
import nibble_cases
import numpy as np
import pytest
import qdq_cases
import qdq_edges
import qdq_limits
import qdq_refused
import qdq_views
from graph_text import graph_text, hostile, run_graph
from pass_case import PassCase

FILE = Path(__file__).with_name("after_passes.txt")
CASES = {
    **float_cases.CASES,
    **qdq_cases.CASES,
    **qdq_edges.CASES,
    **qdq_limits.CASES,
    **qdq_refused.CASES,
    **qdq_views.CASES,
    **channel_cases.CASES,
    **nibble_cases.CASES,
}


@cache
def after(name: str) -> str:
    """What a pass makes of a case's graph, as text, when it computes the same."""
    case = CASES[name]
    graph = case.make()
    inputs = hostile(graph, len(name), case.special)
    with np.errstate(all="ignore"):
        before = [run_graph(graph, row) for row in inputs]
        text = graph_text(graph)
        changed = case.run(graph)
        graph.verify()
        found = graph_text(graph)
        assert changed == (found != text), f"the pass says {changed}"
        for row, wanted in zip(inputs, before, strict=True):
            for got, want in zip(run_graph(graph, row), wanted, strict=True):
                agree(case, got, want)
        assert not case.run(graph) or graph_text(graph) != found, (
            "it says that it changes what it leaves as it is"
        )
    return f"{found}\n{'changed' if changed else 'left alone'}"


def agree(case: PassCase, got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.dtype.kind in "iub":
        assert np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0) <= case.units
    elif case.tolerance:
        wide = want.astype(np.float64)
        bound = case.tolerance * np.abs(wide[np.isfinite(wide)]).max(initial=0)
        np.testing.assert_allclose(got.astype(np.float64), wide, rtol=0, atol=bound)
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        assert np.array_equal(a, b, equal_nan=True) and np.array_equal(
            np.signbit(a[a == 0]), np.signbit(b[b == 0])
        )


@cache
def recorded() -> dict[str, str]:
    parts = FILE.read_text().split("=== ")[1:]
    return {name: text.rstrip("\n") for name, _, text in (part.partition("\n") for part in parts)}


@pytest.mark.parametrize("name", CASES)
def test_the_same_from_what_is_recorded(name: str, request: pytest.FixtureRequest) -> None:
    found = after(name)
    if not request.config.getoption("--update-golden"):
        assert found == recorded().get(name), "run with --update-golden if this is what it should be"


def test_the_record_has_these_cases(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        FILE.write_text("\n".join(f"=== {name}\n{after(name)}\n" for name in CASES))
    assert list(recorded()) == list(CASES)
