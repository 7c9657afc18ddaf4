"""Register blocks of float32 kernels that are chosen for typical work, against recorded ones.

On a board instructions notice another choice; on a host only time would, which no test measures. So every
change of a cost or of the search is seen here: python -m pytest tests/kernels/test_blocks.py --update-golden
accepts it, and the commit says what was measured.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from aot_model.kernels.float32.block import Work, choose
from aot_model.kernels.float32.dialects import DIALECTS

FILE = Path(__file__).with_name("blocks.json")
RECTANGLES = {
    "one row of 64": {(1, 1, 64): 1},
    "49 pixels of 40": {(49, 1, 40): 1},
    "8 rows of 12 of 3 x 3 x 16": {(10, 3, 48): 8, (1, 3, 32): 16, (10, 2, 48): 2},
    "5 volumes of 3 pixels of 2 x 7": {(3, 2, 7): 5},
}
CHANNELS = (1, 3, 8, 20, 64, 100)
WEIGHTS = (100, 6144, 6145)
"""The nearest cache of a host holds 6,144."""


def chosen(dialect: str) -> dict[str, str]:
    """Pixels x vectors of channels by what is to be done."""
    blocks = {}
    for (name, rectangles), channels, weights in product(RECTANGLES.items(), CHANNELS, WEIGHTS):
        costs = DIALECTS[dialect].costs
        if costs.near is None and weights != WEIGHTS[0]:
            continue
        block = choose(Work(rectangles, channels, weights), DIALECTS[dialect], costs.unroll)
        blocks[f"{name}, {channels} channels, {weights} weights"] = f"{block.pixels} x {block.vectors}"
    return blocks


@pytest.mark.parametrize("dialect", DIALECTS)
def test_blocks_are_those_recorded(dialect: str, request: pytest.FixtureRequest) -> None:
    now = chosen(dialect)
    recorded = json.loads(FILE.read_text()) if FILE.is_file() else {}
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps({**recorded, dialect: now}, indent=0) + "\n")
        return
    other = {work: (block, recorded[dialect].get(work)) for work, block in now.items()
             if block != recorded[dialect].get(work)}  # fmt: skip
    assert not other, f"other blocks than recorded (now, before): {other}"
