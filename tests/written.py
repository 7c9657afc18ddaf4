"""Files, or parts of files, that are written from a table of the compiler."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
from cmake_project import ROOT

Parts = Mapping[str, tuple[str, Callable[[], str]]]
"""File: the part that is written from the table, as a regular expression; what it is."""


def check_written(parts: Parts, name: str, config: pytest.Config) -> None:
    """The part of the file `name` is what the table says; with --update-golden it is made so."""
    pattern, write = parts[name]
    path = ROOT / name
    have = path.read_text() if path.exists() else ""
    found = re.search(pattern, have)
    assert found, f"{name} has no such part"
    want = have[: found.start()] + write() + have[found.end() :]
    if config.getoption("--update-golden"):
        path.write_text(want)
    else:
        assert have == want, f"{name} is stale: run this test with --update-golden"
