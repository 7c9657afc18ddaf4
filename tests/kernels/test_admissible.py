"""What rows of a table may hold where a file of parameters brings them: each column has the range of what is
in it, and no other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aot_model.ir.admissible import SHIFTS, Ranges
from aot_model.kernels.int8.finish import admissible_rows, admissible_shifts
from aot_model.kernels.int8.fully_connected_dsp import ROWS, RowSums
from aot_model.kernels.int8.requantise import RequantisePlan
from aot_model.ops.lstm_integer import _starts

LEAST = -(1 << 31)
ROOM = 5


def plan(form: Any, *shifts: int) -> RequantisePlan:
    some = np.ones(len(shifts), np.int64)
    return RequantisePlan(form, some, some, np.array(shifts), some, None, None)


def fits(ranges: Ranges, shape: tuple[int, int], column: int, value: int) -> bool:
    """Whether rows with `value` in one column are taken; ones are in the others."""
    rows = np.ones(shape, np.int64)
    rows[-1, column] = value
    return all(r.holds(rows) for r in ranges)


@pytest.mark.parametrize(
    ("form", "shifts", "width", "column", "value", "taken"),
    [
        ("ties", (3, 4), 4, 0, ROOM, True),
        ("ties", (3, 4), 4, 0, ROOM + 1, False),
        ("ties", (3, 4), 4, 0, -ROOM - 1, False),
        ("ties", (3, 4), 4, 1, LEAST, True),
        ("ties", (3, 4), 4, 2, LEAST + 1, True),
        ("ties", (3, 4), 4, 2, LEAST, False),
        ("ties", (3, 4), 4, 3, 31, True),
        ("ties", (3, 4), 4, 3, 32, False),
        ("ties", (3, 4), 4, 3, -1, False),
        ("ties", (3, 3), 3, 2, LEAST, False),
        ("affine", (3, 4), 4, 2, LEAST, True),
        ("affine", (3, 4), 4, 3, 32, False),
        ("affine", (3, 3), 3, 2, LEAST, True),
        ("raw", (3, 4), 3, 1, LEAST, True),
        ("raw", (3, 4), 3, 2, SHIFTS[1], True),
        ("raw", (3, 4), 3, 2, SHIFTS[1] + 1, False),
        ("raw", (3, 4), 3, 2, SHIFTS[0] - 1, False),
    ],
)
def test_rows_of_a_requantisation(
    form: str, shifts: tuple[int, ...], width: int, column: int, value: int, taken: bool
) -> None:
    ranges = admissible_rows(plan(form, *shifts), width, ROOM)
    assert fits(ranges, (3, width), column, value) is taken


@pytest.mark.parametrize(
    ("column", "value", "taken"),
    [(6, 31, True), (6, 32, False), (3, 32, False), (2, 32, True), (5, -1, True)],
)
def test_shifts_of_two_channels_at_the_end_of_a_row(column: int, value: int, taken: bool) -> None:
    assert fits(admissible_shifts(plan("affine", 3, 4), 7, 2), (3, 7), column, value) is taken


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("column", range(ROWS + 1))
def test_starts_of_four_rows(joined: bool, column: int) -> None:
    """Of joined rows the first of two begins with what both do, of which the upper one has 24 bits."""
    sums = RowSums("", "", np.zeros(0, np.int32), 2, joined)
    limited = column < ROWS and (column in (1, 3) or not joined)
    assert fits(_starts(sums, ROOM), (2, sums.group), column, ROOM)
    assert fits(_starts(sums, ROOM), (2, sums.group), column, ROOM + 1) is not limited
