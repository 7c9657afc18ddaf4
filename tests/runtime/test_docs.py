"""docs/parity.md names tests that exist, and says why where there is none."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (TESTS.parent / "docs" / "parity.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| theirs")
]


def test_every_row_has_a_test_or_a_reason() -> None:
    assert len(ROWS) >= 120
    for theirs, ours, test in ROWS:
        assert test or "**no**" in ours or ours.startswith("n/a"), theirs


def test_the_tests_exist() -> None:
    for theirs, _, test in ROWS:
        if test:
            found = re.fullmatch(r"`([\w/.]+)::(\w+)`", test)
            assert found, theirs
            assert f"def {found[2]}(" in (TESTS / found[1]).read_text(), test
