"""What mutants are compiled with: the rows of the conformance suite, and those of the kernels' table."""

from __future__ import annotations

from dataclasses import dataclass

from oracles import expected
from rows import registry_rows
from verdict import verdict

from batch import Case, Outcome


@dataclass(frozen=True)
class Subject:
    """A case, and what is wrong with an outcome of it."""

    case: Case
    row: object

    def problem(self, outcome: Outcome) -> str:
        return verdict(self.row, outcome, expected(self.row))  # type: ignore[arg-type]


def subjects() -> dict[str, Subject]:
    return {row.label: Subject(row.case, row) for row in registry_rows()}
