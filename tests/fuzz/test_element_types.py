"""A part of element_types.py at each commit, for each target."""

from __future__ import annotations

import pytest
from campaign import TARGETS

from turns import commit_number

PARTS = 120
pytest.importorskip("ai_edge_litert.schema_py_generated")


@pytest.mark.parametrize("target", TARGETS)
def test_other_element_types(target: str) -> None:
    from element_types import cases, wrong

    forms = list(cases(commit_number() + 30 * TARGETS.index(target), PARTS, target))
    compiled, found = wrong(forms)
    assert len(forms) > 100 and compiled > 5 and not found, "\n".join(found)
