"""Places in source files by their text: lines may change, «marks» say which token is meant.

    {"file": "ops/text.py", "code": "max(words, «1»)", "after": "0"}

Text is compared without white space, comments and commas before closing brackets: a formatter changes
nothing.
"""

from __future__ import annotations

import io
import json
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from change import Mutant, mutants_of

PACKAGE = Path(__file__).resolve().parents[2] / "compiler" / "aot_model"
EQUIVALENT = Path(__file__).with_name("equivalent.json")
ANY_FILE = "*"
WIDEST = 60
"""Characters on either side of a token that may be needed to tell it from others."""


@dataclass(frozen=True)
class Place:
    """A token by the text around it, and what it becomes; of a file, or of every file that has it."""

    file: str
    code: str
    after: str
    reason: str = ""

    @property
    def key(self) -> str:
        return f"{self.file}: {self.code} -> {self.after}"

    def mutants(self, package: Path) -> list[Mutant]:
        """All that are meant."""
        files = sorted(package.rglob("*.py")) if self.file == ANY_FILE else [package / self.file]
        near = re.search(r"(\w*)\W*«", self.code)
        if self.file == ANY_FILE and near is not None:  # not in most files
            files = [f for f in files if near[1] in f.read_text()]
        return [m for file in files if file.is_file() for m in self._in(file)]

    def fits(self, mutant: Mutant, package: Path) -> bool:
        """Whether a mutant is one of them."""
        same = (
            self.file in (ANY_FILE, mutant.file.relative_to(package).as_posix())
            and mutant.after == self.after
        )
        return same and mutant.start in self._starts(mutant.file)

    def _in(self, file: Path) -> list[Mutant]:
        starts = self._starts(file)
        return [m for m in mutants_of(file) if m.after == self.after and m.start in starts] if starts else []

    def _starts(self, file: Path) -> frozenset[int]:
        return _starts(file, self.code)


@cache
def _starts(file: Path, code: str) -> frozenset[int]:
    """Where the marked token of a fragment begins in a file."""
    text, places = squeezed(file)
    parts = re.fullmatch(r"(.*)«(.*)»(.*)", code, re.DOTALL)
    assert parts is not None, f"no «token» is marked in {code}"
    first, token, last = (re.sub(r",(?=[)\]}])", "", re.sub(r"\s+", "", part)) for part in parts.groups())
    white = len(parts[2]) - len(parts[2].lstrip())  # " + " of C text begins with its space
    wanted = first + token + last
    return frozenset(
        places[m.start() + len(first)] - white for m in re.finditer(f"(?={re.escape(wanted)})", text)
    )


@cache
def squeezed(file: Path) -> tuple[str, list[int]]:
    """The text of a file without white space and comments, and the offset of each of its characters."""
    text = file.read_text()
    begins = [0]
    for line in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [
        (begins[t.start[0] - 1] + t.start[1], begins[t.end[0] - 1] + t.end[1])
        for t in tokens
        if t.type == tokenize.COMMENT
    ]
    left = set(range(len(text))).difference(*(range(*c) for c in comments))
    kept = [k for k in sorted(left) if not text[k].isspace()]
    kept = [
        k
        for k, after in zip(kept, [*kept, None][1:], strict=True)
        if after is None or text[k] != "," or text[after] not in ")]}"
    ]
    return "".join(text[k] for k in kept), kept


def place_of(mutant: Mutant, package: Path) -> Place:
    """The shortest fragment that tells a mutant from all others; of its line, where that is the only one."""
    raw, (text, places) = mutant.file.read_text(), squeezed(mutant.file)
    white = len(mutant.before) - len(mutant.before.lstrip())
    start = places.index(mutant.start + white)
    end = start + len("".join(mutant.before.split()))
    # a comment is at the end of a line, which ends before it
    line = raw.rfind("\n", 0, mutant.start) + 1, raw.find("\n", mutant.end)
    last = max(k for k in places if k < line[1]) + 1
    name = mutant.file.relative_to(package).as_posix()
    for width in range(WIDEST // 10, 20 * WIDEST, 2):
        if width < 2 * WIDEST:
            left, right = max(mutant.start - width, line[0]), min(mutant.end + width, last)
            while left > line[0] and (raw[left - 1] + raw[left]).isidentifier():
                left -= 1
            while right < last and (raw[right - 1] + raw[right]).isidentifier():
                right += 1
            before, after = raw[left : mutant.start], raw[mutant.end : right]
        else:
            before, after = text[max(start - width, 0) : start], text[end : end + width]
        code = f"{before}«{mutant.before}»{after}".strip().rstrip(",")
        if len(_starts(mutant.file, code)) == 1:
            return Place(name, code, mutant.after)
    raise AssertionError(f"{name}:{mutant.line}: no fragment is the only one")


def read_places(file: Path) -> list[Place]:
    """Those that a file lists."""
    return [
        Place(e["file"], e["code"], e["after"], e.get("reason", "")) for e in json.loads(file.read_text())
    ]


def equivalents() -> list[Place]:
    """The mutants that no test can notice."""
    return read_places(EQUIVALENT)
