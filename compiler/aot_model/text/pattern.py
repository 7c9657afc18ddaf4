"""RE2's syntax of regular expressions: from a pattern to a tree.

What needs tables of Unicode (\\p{…}, letters beyond ASCII without regard to case), single bytes (\\C) or
lines ((?m)) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

LAST = 0x10FFFF
MAX_REPETITION = 1000
Ranges = tuple[tuple[int, int], ...]


class PatternError(ValueError):
    """What is wrong with a pattern, or not supported."""


@dataclass(frozen=True)
class Letters:
    """One of several code points."""

    ranges: Ranges


class Assertion(Enum):
    """A condition on a place between two code points."""

    BEGIN = "^"
    END = "$"
    BOUNDARY = r"\b"
    NO_BOUNDARY = r"\B"


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Choice:
    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Repetition:
    """`most` None: without an end."""

    part: Tree
    least: int
    most: int | None


Tree = Letters | Assertion | Sequence | Choice | Repetition


def word(code: int) -> bool:
    """Whether a code point is one of \\w: a letter or digit of ASCII, or an underscore."""
    return code < 128 and (chr(code).isalnum() or code == ord("_"))


def _ranges(text: str) -> Ranges:
    """Pairs of first and last letters."""
    return tuple((ord(a), ord(b)) for a, b in zip(text[::2], text[1::2], strict=True))


_WORD, _DIGIT, _SPACE = _ranges("09AZ__az"), _ranges("09"), _ranges("\t\n\f\r  ")
_PERL = {"w": _WORD, "d": _DIGIT, "s": _SPACE}
_POSIX = {
    "alnum": _ranges("09AZaz"),
    "alpha": _ranges("AZaz"),
    "ascii": _ranges("\0\x7f"),
    "blank": _ranges("\t\t  "),
    "cntrl": _ranges("\0\x1f\x7f\x7f"),
    "digit": _DIGIT,
    "graph": _ranges("!~"),
    "lower": _ranges("az"),
    "print": _ranges(" ~"),
    "punct": _ranges("!/:@[`{~"),
    "space": _ranges("\t\r  "),
    "upper": _ranges("AZ"),
    "word": _WORD,
    "xdigit": _ranges("09AFaf"),
}
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ASSERTIONS = {"A": Assertion.BEGIN, "z": Assertion.END, "b": Assertion.BOUNDARY, "B": Assertion.NO_BOUNDARY}
_PARTNERS = {ord("k"): 0x212A, ord("s"): 0x17F}
"""Letters beyond ASCII whose case folds into it."""


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorted, without overlaps."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def inverse(ranges: Ranges) -> Ranges:
    """All other code points."""
    borders = [-1, *(b for pair in merged(ranges) for b in pair), LAST + 1]
    return tuple((a + 1, b - 1) for a, b in zip(borders[::2], borders[1::2], strict=True) if a + 1 <= b - 1)


def any_case(ranges: Ranges) -> Ranges:
    """With the other case of each letter. PatternError for letters beyond ASCII."""
    if any(high > 127 for _, high in ranges):
        raise PatternError("has letters beyond ASCII without regard to case")
    found = list(ranges)
    for low, high in ranges:
        for code in (c for c in range(low, high + 1) if chr(c).isalpha()):
            found.append((code ^ 32, code ^ 32))
            partner = _PARTNERS.get(code | 32)
            found += [(partner, partner)] if partner else []
    return merged(found)


@dataclass(frozen=True)
class _Flags:
    fold: bool = False
    dot_all: bool = False


_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.", re.DOTALL)


def _unquoted(found: re.Match[str]) -> str:
    """\\Q…\\E with a backslash before each sign; other escapes as they are."""
    return (
        found[0]
        if found[1] is None
        else "".join(c if c.isalnum() or ord(c) > 127 else f"\\{c}" for c in found[1])
    )


def parse(pattern: str) -> Tree:
    """The tree of a pattern. PatternError."""
    parser = _Parser(_QUOTED.sub(_unquoted, pattern))
    tree = parser.choice(_Flags())
    if parser.at < len(parser.pattern):
        raise PatternError("has a ')' too many")
    return tree


class _Parser:
    """Recursive descent; `at` is the place of the next character."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.depth = 0

    def _take(self, text: str) -> bool:
        """Go behind `text` when it is next."""
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _match(self, expression: str) -> re.Match[str] | None:
        found = re.compile(expression, re.DOTALL).match(self.pattern, self.at)
        self.at = found.end() if found else self.at
        return found

    def choice(self, flags: _Flags) -> Tree:
        """Alternatives up to a ')' or the end."""
        self.depth += 1
        if self.depth > 100:
            raise PatternError("is nested too deep")
        parts: list[Tree] = []
        branch: list[Tree] = []
        while self.at < len(self.pattern) and self.pattern[self.at] != ")":
            if self._take("|"):
                parts.append(Sequence(tuple(branch)))
                branch = []
            elif found := self._match(r"\(\?([a-zA-Z-]+)\)"):
                flags = self._flags(found[1], flags)
            else:
                branch.append(self._repeated(flags))
        self.depth -= 1
        parts.append(Sequence(tuple(branch)))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _flags(self, text: str, flags: _Flags) -> _Flags:
        value = True
        for letter in text:
            if letter == "-":
                value = False
            elif letter == "i":
                flags = _Flags(value, flags.dot_all)
            elif letter == "s":
                flags = _Flags(flags.fold, value)
            elif letter != "U" and (letter != "m" or value):
                raise PatternError(f"has the flag '{letter}', which is not supported")
        return flags

    def _repeated(self, flags: _Flags) -> Tree:
        atom = self._atom(flags)
        count = 0
        while found := self._match(r"(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??"):
            count += 1
            if count > 1:
                raise PatternError(f"repeats a repetition ('{found[0]}')")
            if found[1]:
                least, most = (1 if found[1] == "+" else 0), (1 if found[1] == "?" else None)
            else:
                if max(len(found[2]), len(found[4] or "")) > 9:
                    raise PatternError(f"has the repetition '{found[0][:20]}…'")
                least = int(found[2])
                most = least if not found[3] else int(found[4]) if found[4] else None
            if max(least, most or 0) > MAX_REPETITION or (most is not None and most < least):
                raise PatternError(f"has the repetition '{found[0]}'")
            atom = Repetition(atom, least, most)
        return atom

    def _atom(self, flags: _Flags) -> Tree:
        if found := self._match(r"\((?:\?(?:P?<\w+>|([a-zA-Z-]*):))?"):
            if self.pattern.startswith("?", self.at):
                raise PatternError(
                    "has a group that RE2 does not know (looking ahead or behind, or a condition)"
                )
            tree = self.choice(self._flags(found[1] or "", flags))
            if not self._take(")"):
                raise PatternError("lacks a ')'")
            return tree
        if self._take("["):
            return self._class(flags)
        if found := self._match(r"\\([AzbB])"):
            return _ASSERTIONS[found[1]]
        if found := self._match(r"\\([wdsWDS])"):
            return Letters(_perl(found[1]))
        letter = self.pattern[self.at]
        if letter in "^$":
            self.at += 1
            return Assertion(letter)
        if letter == ".":
            self.at += 1
            return Letters(((0, LAST),) if flags.dot_all else inverse(((10, 10),)))
        if letter in "*+?":
            raise PatternError(f"has '{letter}' with nothing to repeat")
        return self._letter(self._code(), flags)

    def _letter(self, code: int, flags: _Flags) -> Letters:
        return Letters(any_case(((code, code),)) if flags.fold else ((code, code),))

    def _code(self) -> int:
        """The code point of a letter or of an escape that is one."""
        if found := self._match(r"\\x(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))"):
            code = int(found[1] or found[2], 16)
            if code > LAST:
                raise PatternError(f"has the code point '{found[0]}'")
            return code
        if found := self._match(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})"):
            return int(found[1], 8)
        if found := self._match(r"\\(.)"):
            if found[1] in _CONTROL:
                return _CONTROL[found[1]]
            if found[1].isalnum() and found[1].isascii():
                raise PatternError(f"has the escape '{found[0]}', which is not supported")
            return ord(found[1])
        letter = self.pattern[self.at : self.at + 1]
        if not letter:
            raise PatternError("lacks a ']'")
        if letter == "\\":
            raise PatternError("ends with a backslash")
        self.at += 1
        return ord(letter)

    def _class(self, flags: _Flags) -> Letters:
        """What is behind a '['."""
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self._take("]"):
            first = False
            if self.at >= len(self.pattern):
                raise PatternError("lacks a ']'")
            if found := self._match(r"\[:(\^?)(\w+):\]"):
                if found[2] not in _POSIX:
                    raise PatternError(f"has the class '{found[0]}', which RE2 does not know")
                named = any_case(_POSIX[found[2]]) if flags.fold else _POSIX[found[2]]
                ranges += inverse(named) if found[1] else named
            elif found := self._match(r"\\([wdsWDS])"):
                ranges += _perl(found[1])
            else:
                low = high = self._code()
                if self._match(r"-(?!\])"):
                    high = self._code()
                if high < low:
                    raise PatternError(f"has a range from '{chr(low)}' to '{chr(high)}'")
                ranges += any_case(((low, high),)) if flags.fold else ((low, high),)
        return Letters(inverse(tuple(ranges)) if negated else merged(ranges))


def _perl(letter: str) -> Ranges:
    found = _PERL[letter.lower()]
    return inverse(found) if letter.isupper() else found
