"""Networks of the corpora in memory that is laid out at random give the same bits as with the compiler's own
planner (see tests/operators/test_scattered_operators.py). A few for every commit; tests/layouts.py has all.
"""

from __future__ import annotations

import pytest

from corpus import REASON
from layouts import differing, network_cases
from turns import commit_number

PARTS = 60
LARGEST = 200_000
"""Bytes of files."""


def test_networks() -> None:
    cases = network_cases(LARGEST)
    if not cases:
        pytest.skip(REASON)
    turn = commit_number()
    wrong, count = differing(cases[turn % PARTS :: PARTS], "c", [turn], jobs=1)
    assert count and not wrong, "\n".join(wrong)
