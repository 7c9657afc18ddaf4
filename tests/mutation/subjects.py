"""What mutants are compiled with: the rows of the conformance suite, variants of them, the kernels' table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from drawn_samples import Form, at_edges, drawn
from drawn_samples import problem as problem_of_form
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


def _form(form: Form) -> Subject:
    return Subject(drawn(form).case, lambda outcome: problem_of_form(form, outcome))


def _operators() -> dict[str, Subject]:
    """Forms of TFLite's operators; none where LiteRT is missing."""
    if find_spec("ai_edge_litert") is None:
        return {}
    import drawn_operators

    found = {}
    for number in drawn_operators.at_edges():
        one = drawn_operators.computed(number, drawn_operators.results_of)
        if one is not None:
            found[one[0].name] = Subject(one[1], partial(drawn_operators.problem, number))
    return found


def _layer(group: str, layer: Layer) -> Subject:
    return Subject(case_of(group, layer, {}), lambda outcome: "".join(problems([layer], [outcome])))


def subjects() -> dict[str, Subject]:
    found = {row.label: _row(row) for _, kind in sorted(OPERATORS.items()) for row in rows_of(kind)}
    found.update({row.label: _variant(row) for row in chosen()})
    found.update({f"{label} drawn {number}": _form((label, number)) for label, number in at_edges()})
    found.update(_operators())
    for group, layers in GROUPS.items():
        found.update({f"{group}-{k}": _layer(group, layer) for k, layer in enumerate(layers())})
    return found
