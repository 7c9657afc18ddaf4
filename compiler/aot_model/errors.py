"""Errors that are for the user: what, where, why, what to do; all problems of a run at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

CODES: dict[str, str] = {
    "E101": "input file cannot be read",
    "E102": "input file is not a valid model",
    "E103": "external data is missing or outside the model's folder",
    "E104": "the vectors do not fit the model",
    "E105": "output cannot be written",
    "E201": "operator is not supported",
    "E202": "operator is supported, but not in this form",
    "E203": "dynamic shape",
    "E301": "shapes or types contradict each other",
    "E302": "quantisation parameters are missing or invalid",
    "E303": "parameters of another structure than the library's",
    "E401": "memory pool is too small",
    "E402": "budget exceeded",
    "E501": "unknown target, option or pass, or a name that cannot be used",
    "E502": "target plug-in failed",
    "E503": "the C compiler's flags do not say which processor they are for",
    "E601": "host compiler failed",
    "E602": "outputs differ from the reference",
    "E603": "the reference cannot run the model",
    "E604": "cycles cannot be estimated on this machine",
    "E901": "internal error",
    "E902": "a Python package is missing",
    "E903": "out of memory",
}


MAX_LINE, MAX_TEXT, MAX_PROBLEMS, MAX_ALL = 1000, 20_000, 50, 60_000
"""How much is shown: characters of a line and of a text of a problem, problems, characters of them all. What
a model says may be of any length."""


def shown(text: str) -> str:
    """Text that may come from a model as a terminal may have it: lines of printable characters, no escape
    sequences, and not too much of it."""
    cut = "\n".join(_line(line) for line in text[: MAX_TEXT + MAX_LINE].split("\n"))
    return cut if len(cut) <= MAX_TEXT else f"{cut[: MAX_TEXT - 4]}\n..."


def _line(text: str) -> str:
    if len(text) > MAX_LINE:
        text = f"{text[: MAX_LINE * 3 // 4]} ... {text[-MAX_LINE // 5 :]}"
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


@dataclass(frozen=True)
class Problem:
    """One problem: code of CODES, where it is (file, node), what is wrong and why, and what to do about it.

    Whatever a model has in it, its texts are safe to show and of bounded length.
    """

    code: str
    message: str
    where: str = ""
    hint: str = ""

    def __post_init__(self) -> None:
        for name in ("message", "where", "hint"):
            object.__setattr__(self, name, shown(getattr(self, name)))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        what, newline, more = self.message.rstrip().partition("\n")  # a table of layers may follow
        return f"{place}error: {what} [{self.code}]{newline}{more}{hint}"


class CompileError(Exception):
    """Everything that is wrong with the user's model or options; exit status 1."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        said: list[str] = []
        for problem in self.problems[:MAX_PROBLEMS]:
            if said and sum(map(len, said)) > MAX_ALL:
                break
            said.append(str(problem))
        if len(self.problems) > len(said):
            said.append(f"and {len(self.problems) - len(said):,} more problems")
        super().__init__("\n".join(said))


@contextmanager
def named(file: object, name: str) -> Iterator[None]:
    """Problems that are found inside of a file that the user never saw are of the file of that name."""
    try:
        yield
    except CompileError as error:
        raise CompileError(
            replace(p, where=p.where.replace(str(file), name)) for p in error.problems
        ) from error


@contextmanager
def located(file: str) -> Iterator[None]:
    """Problems that are found inside, which know their node only, get the file as well."""
    try:
        yield
    except CompileError as error:
        raise CompileError(
            replace(p, where=f"{file}: {p.where}" if p.where else file) for p in error.problems
        ) from error


def fail(code: str, message: str, *, where: str = "", hint: str = "") -> CompileError:
    """The error to raise for a single problem."""
    return CompileError(Problem(code, message, where, hint))
