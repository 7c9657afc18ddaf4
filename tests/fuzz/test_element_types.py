"""A part of element_types.py and of extents.py at each commit, for each target."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from campaign import TARGETS, Case

from turns import commit_number

PARTS = 200
pytest.importorskip("ai_edge_litert.schema_py_generated")


def _check(cases: Callable[[int, int, str], Iterator[Case]], target: str) -> None:
    from element_types import wrong

    forms = list(cases(commit_number() + 50 * TARGETS.index(target), PARTS, target))
    compiled, found = wrong(forms)
    assert len(forms) > 150 and compiled > 5 and not found, "\n".join(found)


@pytest.mark.parametrize("target", TARGETS)
def test_other_element_types(target: str) -> None:
    from element_types import cases

    _check(cases, target)


@pytest.mark.parametrize("target", TARGETS)
def test_larger_extents(target: str) -> None:
    from extents import cases

    _check(cases, target)
