"""Fragments with extreme parameters: others for every commit, of some that are known to be right; extremes.py
draws new ones.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import extremes

from qemu import available
from turns import commit_number

COUNT, TURNS = 16, 5
BOARDS = ("cortex-m4", "cortex-m55")


def check(kind: str, target: str, count: int) -> None:
    first = count * (commit_number() % TURNS)
    found, tally = extremes.run(kind, range(first, first + count), target, jobs=1)
    assert tally["right"] > count / 2, tally
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", extremes.KINDS)
def test_extreme_parameters(kind: str) -> None:
    check(kind, "c", COUNT)


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("kind", extremes.KINDS)
def test_extreme_parameters_on_boards(kind: str) -> None:
    check(kind, BOARDS[commit_number() % len(BOARDS)], COUNT // 2)
