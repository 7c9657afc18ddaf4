"""Layers of the kernels' table in memory that is laid out at random, within what kernels say of their buffers
(see tests/operators/test_scattered_operators.py). A part of the layers for every commit, all with
AOT_MODEL_SCATTERED_ALL=1.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from table import GROUPS
from test_table import problems

from aot_model.memory import planner
from batch import run_cases
from qemu import available
from scattered import Scattered
from turns import commit_number

PARTS = 4
BOARDS = {"c": None, "host": None, "cortex-m0": "m0", "cortex-m4": "m4", "cortex-m55": "m55"}


@pytest.mark.parametrize("target", BOARDS)
def test_layers(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    board, turn = BOARDS[target], commit_number()
    if board is not None and not available():
        pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
    chosen = [(group, layer) for group, layers in GROUPS.items() for layer in layers()]
    chosen = chosen if os.environ.get("AOT_MODEL_SCATTERED_ALL") else chosen[turn % PARTS::PARTS]
    monkeypatch.setitem(planner.ALGORITHMS, planner.DEFAULT, Scattered(turn))  # type: ignore[misc]
    outcomes = run_cases([replace(layer.case(group, {}), io="workspace") for group, layer in chosen],
                         target,
                         sanitize=False,
                         flags=("-O1", *(["-march=native"] if target == "host" else [])),
                         board=board)
    wrong = problems([layer for _, layer in chosen], outcomes)
    assert not wrong, "\n".join(wrong)
