"""Samples of operators in memory that is laid out at random, within what their calls say of their buffers:
inputs and outputs lie in the workspace too, over each other where they may. A call that permits more than it
stands gives other numbers. A part of the samples for every commit; tests/layouts.py has all of them.
"""

from __future__ import annotations

from layouts import wrong_samples
from turns import commit_number

PARTS = 12


def test_samples() -> None:
    turn = commit_number()
    wrong, count = wrong_samples("c", "*", slice(turn % PARTS, None, PARTS), turn)
    assert count and not wrong, "\n".join(wrong)
