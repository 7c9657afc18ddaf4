"""Words of comments."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """ "1 pixel", "4 pixels"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
