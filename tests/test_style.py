"""Format, style, architecture rules (banned imports), strict types of the whole project: pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "command", [("ruff", "format", "--check", "."), ("ruff", "check", "."), ("mypy",)], ids=" ".join
)
def test_clean(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_signature_is_left_out_of_the_format() -> None:
    """Tables may be written by hand; functions and statements look alike everywhere."""
    files = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    assert files
    skipped = [
        f for f in files for line in (ROOT / f).read_text().splitlines() if line.endswith(":  # fmt: skip")
    ]
    assert not skipped, skipped
