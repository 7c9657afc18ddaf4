"""Which tokens of a source file can be changed, and into what."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SKIPPED = frozenset(("samples", "reference", "__repr__", "__str__"))
"""Functions that are tests or texts for people."""
MESSAGES = frozenset(
    ("OperatorError", "fail", "CompileError", "Problem", "ValueError", "hasattr", "TypeVar", "operator")
)
OPERATORS: dict[str, tuple[str, ...]] = {
    "+": ("-",),
    "-": ("+",),
    "*": ("+", "//"),
    "//": ("*",),
    "/": ("*",),
    "%": ("//",),
    "**": ("*",),
    "<<": (">>",),
    ">>": ("<<",),
    "&": ("|",),
    "|": ("&",),
    "^": ("|",),
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "==": ("!=",),
    "!=": ("==",),
    "and": ("or",),
    "or": ("and",),
    "not": ("",),
    "is": ("is not",),
    "in": ("not in",),
    "min": ("max",),
    "max": ("min",),
    "any": ("all",),
    "all": ("any",),
    "True": ("False",),
    "False": ("True",),
    "+=": ("-=",),
    "-=": ("+=",),
}
IN_TEXT = {
    " + ": " - ",
    " - ": " + ",
    " * ": " + ",
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >> ": " << ",
    " << ": " >> ",
    " == ": " != ",
    " & ": " | ",
    "++": "--",
    " && ": " || ",
    "+=": "-=",
}
"""Of C: with the spaces that this project writes around operators."""


@dataclass(frozen=True)
class Mutant:
    """The characters [start, end) of a file become `after`."""

    file: Path
    start: int
    end: int
    line: int
    column: int
    before: str
    after: str
    source: str

    @property
    def valid(self) -> bool:
        """Whether the file is still Python: "for x not in y" is not."""
        try:
            ast.parse(self.apply(self.file.read_text()))
        except SyntaxError:
            return False
        return True

    def apply(self, text: str) -> str:
        assert text[self.start : self.end] == self.before
        return text[: self.start] + self.after + text[self.end :]


@cache
def mutants_of(file: Path) -> list[Mutant]:
    """All mutants of a file."""
    text = file.read_text()
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    skipped = _skipped(tree, file)
    names = {
        (n.lineno, n.col_offset)
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    found: list[Mutant] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        (row, column), end_column = token.start, token.end[1]
        if row > len(lines) or any(a <= (row, column) < b for a, b in skipped):
            continue
        start = begins[row - 1] + column
        called = (row, len(lines[row - 1][:column].encode())) in names
        for offset, before, after in _changes(token, called, lines[row - 1][end_column:]):
            at = start + offset
            inner = row + text[start:at].count("\n")
            found.append(
                Mutant(
                    file,
                    at,
                    at + len(before),
                    inner,
                    at - begins[inner - 1],
                    before,
                    after,
                    lines[inner - 1].rstrip("\n"),
                )
            )
    return found


def token_count(file: Path) -> int:
    """Tokens that can be changed."""
    return len({m.start for m in mutants_of(file)})


def _changes(token: tokenize.TokenInfo, called: bool, rest: str) -> list[tuple[int, str, str]]:
    """(offset in the token, text, other text)."""
    word = token.string
    if token.type == tokenize.NUMBER:
        return [(0, word, other) for other in _numbers(word)]
    if token.type == tokenize.STRING:
        if not re.search(r"[;\[{]|&&|[<>=]=", word) or word.lstrip("rfRF").startswith('"""'):
            return []
        spots = [
            (m.start(), m.group(0), b) for a, b in IN_TEXT.items() for m in re.finditer(re.escape(a), word)
        ]
        return [s for s in spots if word.lstrip("rfRF")[0] in "\"'"]
    if word in ("min", "max", "any", "all") and not called:
        return []
    if word in ("*", "**") and re.search(r"[(,\[{]\s*$", token.line[: token.start[1]]):
        return []  # of arguments
    if word in ("is", "in", "not") and (
        (word == "not" and rest.lstrip().startswith("in "))
        or (word == "is" and rest.lstrip().startswith("not "))
    ):
        return []
    if token.type in (tokenize.OP, tokenize.NAME) and word in OPERATORS:
        return [(0, word, other) for other in OPERATORS[word]]
    return []


def _numbers(word: str) -> list[str]:
    try:
        value = int(word, 0)
    except ValueError:
        return [f"({word} * 1.5)"] if re.fullmatch(r"[\d.e+-]+", word) and float(word) else ["1.0"]
    return [str(value + 1), *([str(value - 1)] if value else [])]


Span = tuple[tuple[int, int], tuple[int, int]]


def _skipped(tree: ast.Module, file: Path) -> list[Span]:
    """Parts of the file that are not mutated."""
    only_for_tests = {
        name.split(":")[-1]
        for name in _names_for_tests()
        if name.startswith(f"{file.name}:") or ":" not in name
    }
    found: list[Span] = []

    def skip(node: ast.AST) -> None:
        found.append(((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)))  # type: ignore[attr-defined]

    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            if node.name in SKIPPED or node.name in only_for_tests:
                skip(node)
            for part in (
                node.returns,
                *(a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg)),
                *node.decorator_list,
            ):
                if part is not None:
                    skip(part)
        elif isinstance(node, ast.AnnAssign):
            skip(
                node
                if isinstance(node.target, ast.Name) and node.target.id in only_for_tests
                else node.annotation
            )
        elif isinstance(node, ast.Starred):
            found.append(((node.lineno, node.col_offset), (node.lineno, node.col_offset + 1)))
        elif isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.Assert)):
            skip(node)
        elif isinstance(node, ast.ClassDef):
            for part in node.decorator_list:
                skip(part)
        elif (
            (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MESSAGES)
            or (isinstance(node, ast.keyword) and node.arg in ("note", "hint", "strict"))
            or (
                isinstance(node, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id in only_for_tests for t in node.targets)
            )
            or (
                isinstance(node, ast.If)
                and isinstance(node.test, ast.Name)
                and node.test.id == "TYPE_CHECKING"
            )
        ):
            skip(node)
    return found


@cache
def _names_for_tests() -> frozenset[str]:
    """Functions and constants that nothing but samples, references and each other read, in the whole
    compiler.
    """
    users: dict[str, set[str]] = {}
    defined: set[str] = set()
    for path in sorted((Path(__file__).resolve().parents[2] / "compiler" / "aot_model").rglob("*.py")):

        def known(name: str, path: Path = path) -> str:
            """Names with an underscore are those of their file."""
            return f"{path.name}:{name}" if name.startswith("_") and not name.startswith("__") else name

        for top in ast.parse(path.read_text()).body:
            for scope, own in _scopes(top):
                name = known(own)
                if not name.startswith("class "):
                    defined.add(name)
                for node in ast.walk(scope):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id != own:
                        users.setdefault(known(node.id), set()).add(name)
                    elif isinstance(node, ast.Attribute):
                        users.setdefault(known(node.attr), set()).add(name)
    tests: set[str] = set()
    while True:
        more = {
            n
            for n in defined - tests
            if ":_" in n or n in ("ramp", "texts")
            if users.get(n) and users[n] <= tests | SKIPPED
        }
        if not more:
            return frozenset(tests)
        tests |= more


def _scopes(top: ast.stmt) -> list[tuple[ast.AST, str]]:
    """(node, name) of a function or constant, or of the methods of a class and of the rest of it."""
    if isinstance(top, ast.ClassDef):
        methods = [(n, n.name) for n in top.body if isinstance(n, ast.FunctionDef)]
        return [
            *methods,
            *((n, f"class {top.name}") for n in top.body if not isinstance(n, ast.FunctionDef)),
            *((n, f"class {top.name}") for n in (*top.bases, *top.decorator_list)),
        ]
    if isinstance(top, ast.FunctionDef):
        return [(top, top.name)]
    if isinstance(top, ast.Assign) and len(top.targets) == 1 and isinstance(top.targets[0], ast.Name):
        return [(top.value, top.targets[0].id)]
    if isinstance(top, ast.AnnAssign) and isinstance(top.target, ast.Name):
        return [(top.value, top.target.id)] if top.value is not None else []
    return [] if isinstance(top, (ast.Import, ast.ImportFrom)) else [(top, "class module")]
