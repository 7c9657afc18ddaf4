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
    "E901": "internal error",
    "E902": "a Python package is missing",
    "E903": "out of memory",
}


@dataclass(frozen=True)
class Problem:
    """One problem: code of CODES, where it is (file, node), what is wrong and why, and what to do about it."""

    code: str
    message: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}error: {self.message} [{self.code}]{hint}"


class CompileError(Exception):
    """Everything that is wrong with the user's model or options; exit status 1."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


@contextmanager
def located(file: str) -> Iterator[None]:
    """Problems that are found inside, which know their node only, get the file as well."""
    try:
        yield
    except CompileError as error:
        raise CompileError(replace(p, where=f"{file}: {p.where}" if p.where else file) for p in error.problems) from error


def fail(code: str, message: str, *, where: str = "", hint: str = "") -> CompileError:
    """The error to raise for a single problem."""
    return CompileError(Problem(code, message, where, hint))
