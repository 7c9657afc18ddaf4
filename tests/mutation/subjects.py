"""What mutants are compiled with: the rows of the conformance suite, variants of them, the kernels' table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layer import Layer
from oracles import expected
from rows import Row, rows_of
from table import GROUPS, case_of
from test_table import problems
from variants import chosen, problem
from verdict import verdict

from aot_model.ops.registry import OPERATORS
from batch import Case, Outcome


@dataclass(frozen=True)
class Subject:
    """A case, and what is wrong with an outcome of it."""

    case: Case
    problem: Callable[[Outcome], str]
    row: Row | None = None


def _row(row: Row) -> Subject:
    return Subject(row.case, lambda outcome: verdict(row, outcome, expected(row)), row)


def _variant(row: Row) -> Subject:
    return Subject(row.case, lambda outcome: problem(row, outcome))


def _layer(group: str, layer: Layer) -> Subject:
    return Subject(case_of(group, layer, {}), lambda outcome: "".join(problems([layer], [outcome])))


def subjects() -> dict[str, Subject]:
    found = {row.label: _row(row) for _, kind in sorted(OPERATORS.items()) for row in rows_of(kind)}
    found.update({row.label: _variant(row) for row in chosen()})
    for group, layers in GROUPS.items():
        found.update({f"{group}-{k}": _layer(group, layer) for k, layer in enumerate(layers())})
    return found
