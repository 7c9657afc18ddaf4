"""The one place that indents C: statements come with any indentation or none, and leave with that of their
braces.

Tokens stay as they are, but for products with 1 and sums with 0 (terms.py): white space between lines
changes, and a line that is too long gets a break behind a comma or an operator. The style is four spaces for
a brace and four for what goes on, labels of a switch at its column, directives of the preprocessor at the
first one: what clang-format makes of it with tests/emit/clang-format.yaml.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field

from aot_model.c.terms import folded

WIDTH = 110
STEP = 4
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?(?:\*/|$)|//.*|[(){}\[\];,:?]|[^\s"\'(){}\[\];,:?/]+|/'
)
_LABEL = re.compile(r"(?:case\b.*?|default\s*):(?!:)")
_HEADER = re.compile(r"(?:else|do)$|(?:else )?(?:if|for|while|switch)\b")


@dataclass
class _Open:
    """A bracket that is open: which, the column of the line that it is in, whether it holds values."""

    bracket: str
    column: int
    values: bool = False


@dataclass
class _Layout:
    lines: list[str] = field(default_factory=list)
    open: list[_Open] = field(default_factory=list)
    start: int | None = None
    """Column of the statement that has begun and not ended."""
    comment: int | None = None
    """Column of the comment that has begun and not ended."""
    carried: str = ""
    """Words of a comment for which the line before had no room."""
    before: str = ""
    """The last token."""

    def inner(self) -> int:
        """Column of statements in the innermost braces."""
        braces = [o.column for o in self.open if o.bracket == "{"]
        return braces[-1] + STEP if braces else 0

    def add(self, line: str) -> None:
        if not line:
            if self.lines and self.lines[-1] and not self.lines[-1].endswith("{"):
                self.lines.append("")
        elif self.comment is not None:
            self.comment_line(line, self.comment)
            if "*/" in line:
                self.comment = None
        elif line.startswith("#"):
            self.lines += _directive(line)
        else:
            self.statement(line)

    def statement(self, line: str) -> None:
        tokens = _TOKEN.findall(line)
        column = self.column(line, tokens)
        if line.startswith("}") and self.lines and not self.lines[-1]:
            self.lines.pop()
        if line.startswith("/*") and "*/" not in line:
            self.comment = column
            self.comment_line(line, column)
            return
        if '"' not in line and not line.startswith("/*"):
            code, comment = _trailing_comment(line)
            line = f"{folded(code)} {comment}".rstrip()
            tokens = _TOKEN.findall(line)
        going_on = self.start is not None
        self.lines += broken(
            line, column, column if going_on or line.startswith(("case ", "default:")) else column + STEP
        )
        self.read(tokens, column)

    def comment_line(self, line: str, column: int) -> None:
        """A line of a comment of several. What the line before it had too much goes to its begin."""
        if self.carried and (begin := re.match(r"\* (?=\S)", line)):
            line = f"* {self.carried} {line[begin.end() :]}"
        elif self.carried:
            self.lines.append(f"{' ' * (column + 1)}* {self.carried}")
        first, *rest = _comment_line(line, column)
        prose = re.match(r"(?:/\*|\*) \S", line) and "  " not in line[3:] and not line.endswith("*/")
        self.carried = " ".join(r.strip().removeprefix("* ") for r in rest) if prose else ""
        self.lines += [first] if prose else [first, *rest]

    def column(self, line: str, tokens: list[str]) -> int:
        """Where a line begins."""
        closed = 0
        while closed < len(tokens) and tokens[closed] == "}":
            closed += 1
        if closed:
            return [o.column for o in self.open if o.bracket == "{"][-closed]
        if _LABEL.match(line) and self.inner():
            return self.inner() - STEP
        if self.start is None or line.startswith("{"):
            return self.inner() if self.start is None else self.start
        return self.start + STEP

    def read(self, tokens: list[str], column: int) -> None:
        """Follow the brackets, and see whether the statement has ended."""
        base = column if self.start is None else self.start
        for token in tokens:
            if token.startswith(("/*", "//")):
                continue
            if token in "([{":
                values = token == "{" and (
                    self.before in ("=", ",", "(", "return")
                    or bool(self.open and self.open[-1].values)
                    or self.in_parentheses()
                )
                self.open.append(
                    _Open(
                        token,
                        base if token != "{" or values else column if self.start is None else base,
                        values,
                    )
                )
                if token == "{":
                    self.start = None
            elif token in ")]}" and self.open:
                closed = self.open.pop()
                if token == "}":
                    self.start = closed.column if closed.values else None
                    self.before = token
                    continue
            ended = token == ";" and not self.in_parentheses()
            ended = ended or (token == "," and bool(self.open) and self.open[-1].values) or (token == "{")
            if ended:
                self.start = None
            elif self.start is None and token not in "}":
                self.start = base
            self.before = token
        if self.before == ":" and not self.in_parentheses() and tokens and _LABEL.match(" ".join(tokens)):
            self.start = None

    def in_parentheses(self) -> bool:
        return bool(self.open) and self.open[-1].bracket in "(["


def layout(text: str) -> str:
    """A text of C, laid out."""
    state, raw = _Layout(), False
    for line in text.split("\n"):
        if raw:  # the line before ends with a backslash
            state.lines.append(line)
        else:
            state.add(line.strip())
        raw = line.endswith("\\")
    return "\n".join(state.lines)


def broken(line: str, column: int, rest: int) -> list[str]:
    """A line at a column, in several where it is too long; those behind the first begin at `rest`."""
    if column + len(line) <= WIDTH:
        return [" " * column + line]
    if line.startswith("/*"):
        return _comment(line, column)
    head, comment = _trailing_comment(line)
    if comment:
        return [*_comment(comment, column), *broken(head, column, rest)]
    if any(token.startswith("//") for token in _TOKEN.findall(line)):
        return [" " * column + line]
    lines = []
    while column + len(line) > WIDTH:
        at = _best_break(line, WIDTH - column)
        if at is None:
            break
        lines.append(" " * column + line[:at].rstrip())
        line, column = line[at:].lstrip(), rest
    return [*lines, " " * column + line]


def _directive(line: str) -> list[str]:
    """A directive of the preprocessor; a condition that is too long goes on behind an operator between its
    parts.
    """
    lines: list[str] = []
    while len(line) > WIDTH and (lines or line.startswith(("#if ", "#elif "))):
        at = max(line.rfind(f" {operator} ", 0, WIDTH - 1) for operator in ("&&", "||"))
        if at < 0:
            break
        lines.append(f"{line[: at + 3]} \\")
        line = " " * STEP + line[at + 4 :]
    return [*lines, line]


def _comment_line(line: str, column: int) -> list[str]:
    """A line of a comment of several, in more where it is too long."""
    first = line.startswith("/*")
    if not first and not line.startswith("*"):
        line = f"  {line}"
    room = WIDTH - column - (0 if first else 1)
    if len(line) <= room:
        return [" " * (column + (not first)) + line]
    begin = re.match(r"(?:/\*|\*)? *", line)
    head = begin.group() if begin else ""
    rest = ("*" if line.startswith(("/*", "*")) else " ") + " " * (len(head) - 1 - first)
    parts = textwrap.wrap(line[len(head) :], room - len(head), break_on_hyphens=False, break_long_words=False)
    return [
        " " * (column + (k > 0 or not first)) + (head if k == 0 else rest) + part
        for k, part in enumerate(parts)
    ]


def _comment(line: str, column: int) -> list[str]:
    if not line.endswith("*/"):
        return [" " * column + line]
    words = line[2:-2].strip()
    parts = textwrap.wrap(words, WIDTH - column - 6, break_on_hyphens=False)
    pad = " " * column
    return [
        f"{pad}{'/*' if k == 0 else ' *'} {part}{' */' if k == len(parts) - 1 else ''}"
        for k, part in enumerate(parts)
    ]


def _trailing_comment(line: str) -> tuple[str, str]:
    """A line without the comment at its end, and the comment."""
    found = list(_TOKEN.finditer(line))
    if (
        found
        and found[-1].group().startswith("/*")
        and found[-1].group().endswith("*/")
        and found[-1].start() > 0
    ):
        return line[: found[-1].start()].rstrip(), found[-1].group()
    return line, ""


_OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "&&",
    "||",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "=",
)


_WORD = re.compile(r"\w")


def _best_break(line: str, width: int) -> int | None:
    """The place of a break in the first `width` characters: the least nested one, and of those the last."""
    depth = 0
    best: tuple[float, int] | None = None
    for match in _TOKEN.finditer(line):
        token, end = match.group(), match.end()
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        spaced = line[end : end + 1] == " "
        if token == "?" and match.start() and line[match.start() - 1] == " ":
            end, rank = match.start(), depth + 0.5
        elif token in (",", ";") and spaced:
            rank = depth + (0.25 if token == "," else 0.0)
        elif token.startswith("AOT_MODEL_") and depth == 0 and match.start():
            end, rank = match.start(), 0.0  # an attribute behind a declaration
        elif token == "(" and _WORD.match(line, end - 2) and line[end : end + 1] != ")":
            rank = depth + 20.0  # behind a function's name: where nothing else is left
        elif token in _OPERATORS and spaced and line[match.start() - 1 : match.start()] == " ":
            rank = depth + (0.75 if token != "=" else 0.5)
        else:
            continue
        if end > width:  # nothing behind it is better
            return best[1] if best else end
        if 0 in (end, len(line)):
            continue
        if best is None or (end > width // 2 and (rank <= best[0] or best[1] <= width // 2)):
            best = (rank, end)
    return best[1] if best else None
