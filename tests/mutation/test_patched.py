"""Functions of a loaded module become those of another text of it, where nothing else differs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from patched import patch

SOURCE = """
from functools import cache

FACTOR = 2


@cache
def slow(x):
    return x + 1


def many(x, by=1):
    return [slow(v) * 5 for v in range(x)] + [by]


class Shape:
    sides: int = 3

    @property
    def corners(self):
        return self.sides + 0

    @classmethod
    def made(cls):
        return cls().sides - 1
"""


@pytest.mark.parametrize(
    ("before", "after", "done"),
    [
        ("x + 1", "x - 1", True),
        ("v) * 5", "v) * 6", True),
        ("self.sides + 0", "self.sides + 1", True),
        ("sides - 1", "sides - 2", True),
        ("FACTOR = 2", "FACTOR = 3", False),
        ("by=1", "by=2", False),
        ("int = 3", "int = 4", False),
    ],
)
def test_what_is_held_elsewhere_changes(
    before: str, after: str, done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "subject_of_patch.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "subject_of_patch", raising=False)
    import subject_of_patch as module  # type: ignore[import-not-found]

    held, shape = module.many, module.Shape
    changed = SOURCE.replace(before, after)
    assert changed != SOURCE and patch("subject_of_patch", SOURCE, changed) is done
    fresh: dict[str, object] = {}
    exec(changed if done else SOURCE, fresh)
    again = fresh["Shape"]
    assert held(3) == fresh["many"](3)  # type: ignore[operator]
    assert (shape().corners, shape.made()) == (again().corners, again.made())  # type: ignore[operator, attr-defined]
