"""Names where there is little room: the part that tells a name from the others is what stays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_PARTS = re.compile(r"[/.:;]")
_WORDS = re.compile(r"[/.:;_]")
LEAST_ENDS = 0.5
"""Share of the names that have an ending for it to say nothing."""


class Shorter:
    """Of names that stand beside each other."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(dict.fromkeys(names))
        self._fronts = Counter(name[:end] for name in self._names for end in _fronts(name))
        ends = Counter(name[m.start() :] for name in self._names for m in _WORDS.finditer(name) if m.start())
        common = [e for e, count in ends.items() if count > 1 and count >= LEAST_ENDS * len(self._names)]
        self._end = max(common, key=lambda e: (len(e), e), default="")
        self._bare = Counter(name.removesuffix(self._end) for name in self._names)

    def of(self, name: str, room: int) -> str:
        """At most `room` characters: the name, or less of a front that others share, or its start. An ending
        that most have goes first, where no two names become one by that."""
        if len(name) <= room:
            return name
        bare = name.removesuffix(self._end)
        if self._bare[bare] == 1 and bare:
            name = bare
        if len(name) <= room:
            return name
        last = 0
        for end in _fronts(name):
            if self._fronts[name[:end]] < 2:
                break
            last = end
            if len(name) - end < room:
                return "…" + name[end:]
        rest = "…" + name[last:] if last else name
        return rest if len(rest) <= room else rest[: max(room - 1, 0)] + "…"[:room]


def _fronts(name: str) -> list[int]:
    """Where parts of a name begin, but for the first."""
    ends = [m.end() for m in _PARTS.finditer(name) if m.end() < len(name)]
    return [end for end in ends if _PARTS.sub("", name[:end])]
