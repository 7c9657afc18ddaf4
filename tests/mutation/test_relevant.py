"""A mutant meets every test of the folders that are about what is mutated."""

from __future__ import annotations

from pathlib import Path

from relevant import TESTS, mutated_files, near_files, pytest_files

import aot_model


def _named() -> set[str]:
    """What stands in the lists for any module that is mutated."""
    files = mutated_files(Path(aot_model.__file__).parent)
    return {
        name for f in files for argument in (*near_files(f), *pytest_files(f)) for name in argument.split()
    }


def test_what_is_named_exists() -> None:
    # pytest ends without a word, and without a test, where a path does not exist
    assert not [name for name in _named() if not (TESTS.parent / name).exists()]


def test_each_test_of_kernels_and_passes_is_named() -> None:
    named = _named()
    written = [
        p.relative_to(TESTS.parent) for d in ("kernels", "passes") for p in (TESTS / d).glob("test_*.py")
    ]
    # counts, not numbers; rows_of_mutant runs the table's rows
    others = {"test_instructions.py", "test_table.py"}
    assert not [
        p for p in written if not named & {p.as_posix(), p.parent.as_posix()} and p.name not in others
    ]
