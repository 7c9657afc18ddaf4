"""Layers of the kernels' table in memory that is laid out at random, within what kernels say of their buffers
(see tests/operators/test_scattered_operators.py). A part of the layers for every commit; tests/layouts.py has
all of them.
"""

from __future__ import annotations

import pytest

from layouts import BOARDS, wrong_layers
from qemu import available
from turns import commit_number

PARTS = 6


@pytest.mark.parametrize("target", BOARDS)
def test_layers(target: str) -> None:
    if BOARDS[target] is not None and not available():
        pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
    turn = commit_number()
    wrong, count = wrong_layers(target, "*", slice(turn % PARTS, None, PARTS), turn)
    assert count and not wrong, "\n".join(wrong)
