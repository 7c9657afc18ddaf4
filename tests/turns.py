"""Which part of a long test is run for this commit: over some commits each part has its turn."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def commit_number() -> int:
    """How many commits there are; 0 without a history. AOT_MODEL_TURN, a number, takes its place: what other
    commits run."""
    if os.environ.get("AOT_MODEL_TURN"):
        return int(os.environ["AOT_MODEL_TURN"])
    try:
        said = subprocess.run(
            ["git", "rev-list", "--count", "HEAD"],
            cwd=Path(__file__).parent,
            text=True,
            capture_output=True,
            check=False,
        )
    except OSError:
        return 0
    return int(said.stdout) if said.returncode == 0 else 0


def in_turn(items: list[T], parts: int) -> list[T]:
    """One of so many parts, another one for every commit."""
    return items[commit_number() % parts :: parts]
