"""clang for Cortex-M warns of nothing in samples of operators and layers of kernels (firmware_clang.py): a
part of them for every commit.
"""

from __future__ import annotations

import pytest

from firmware_clang import TARGETS, missing, rows, warned
from turns import commit_number

PARTS = 40

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.mark.parametrize("target", TARGETS)
def test_rows(target: str) -> None:
    cases = rows()[commit_number() % PARTS::PARTS]
    found, count = warned(target, cases)
    assert not found, "\n".join(found)
    assert count or target != "c"
