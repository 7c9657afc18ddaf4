"""The functions of the generated C, found in its text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_HEAD = re.compile(r"(?!typedef\b)[A-Za-z_][\w\s*]*?\b(\w+)\(")


@dataclass(frozen=True)
class Definition:
    """Text of a function with the comment above it, and the number of its first line."""

    name: str
    line: int
    text: str

    @property
    def lines(self) -> int:
        return self.text.count("\n") + 1


def definitions(source: str, names: Iterable[str]) -> dict[str, Definition]:
    """By name: the definitions of those functions; declarations are left out."""
    wanted, lines = set(names), source.split("\n")
    found: dict[str, Definition] = {}
    for k, line in enumerate(lines):
        head = _HEAD.match(line)
        if head is None or head.group(1) not in wanted or head.group(1) in found:
            continue
        opens = next(
            (n for n in range(k, min(k + 40, len(lines))) if lines[n].rstrip().endswith(("{", ";"))), None
        )
        if opens is None or lines[opens].rstrip().endswith(";"):
            continue
        end = next((n for n in range(opens, len(lines)) if lines[n].rstrip() == "}"), None)
        if end is None:
            continue
        begin = k
        if k and lines[k - 1].rstrip().endswith("*/"):
            begin = next((n for n in range(k - 1, -1, -1) if lines[n].lstrip().startswith("/*")), k)
        found[head.group(1)] = Definition(head.group(1), begin + 1, "\n".join(lines[begin : end + 1]))
    return found
