"""Conformance of every operator of the registry, on every kind of target, against oracles that share no code
with it.

    python -m pytest tests/operators -k "LayerNormalization and c"

An operator without a sample fails, and so does a sample that no oracle computes. Code for a core runs in
QEMU, and code for the host here, where it is not, apart from comments, the portable code that ran already.
"""

from __future__ import annotations

from functools import cache

import pytest
from costs import cost_of, differs, recorded
from oracles import Expected, expected
from rows import folded, label_of, registry_rows
from test_refusals import key
from verdict import verdict

from aot_model.errors import CompileError
from aot_model.ir.operator import Operator, OperatorError
from aot_model.ops.registry import OPERATORS
from batch import Outcome, run_cases, substance
from c_functions import exposed, header_functions
from qemu import available

ROWS = {row.label: row for row in registry_rows()}
FLAGS = ("-O1",)
BOARDS = {"cortex-m4": "m4", "cortex-m55": "m55"}
NO_BOARD = pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
TARGETS = [
    pytest.param(t, marks=[pytest.mark.xdist_group("operators"), *([NO_BOARD] if t in BOARDS else [])])
    for t in ("c", "host", *BOARDS)
]

ELSEWHERE = {"aot.Region": "a call of what another target made: tests/targets"}
"""Operators without a meaning of their own, and what tests them."""


@pytest.fixture(scope="session")
def selected(request: pytest.FixtureRequest) -> dict[str, tuple[str, ...]]:
    """The labels that this session asks for, by target: they are compiled and run together."""
    asked: dict[str, list[str]] = {}
    for item in request.session.items:
        if getattr(item, "originalname", "") == "test_sample" and item.path.name == "test_operators.py":
            given = item.callspec.params  # type: ignore[attr-defined]
            asked.setdefault(given["target"], []).append(given["label"])
    return {target: tuple(labels) for target, labels in asked.items()}


@cache
def outcomes(target: str, labels: tuple[str, ...]) -> dict[str, Outcome]:
    cases = [ROWS[label].case for label in labels]
    if target == "c":
        found = run_cases(cases, target, flags=FLAGS)
        return dict(zip(labels, found, strict=True))
    portable = [None if o.made is None else substance(o.made.source) for o in outcomes("c", labels).values()]
    if target in BOARDS:
        found = run_cases(cases, target, sanitize=False, board=BOARDS[target], unlike=portable)
    else:
        found = run_cases(cases, target, flags=(*FLAGS, "-march=native"), unlike=portable)
    return dict(zip(labels, found, strict=True))


costs = cache(recorded)


@cache
def wanted(label: str) -> Expected:
    return expected(ROWS[label])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("label", ROWS)
def test_sample(label: str, target: str, selected: dict[str, tuple[str, ...]]) -> None:
    outcome = outcomes(target, selected[target])[label]
    problem = verdict(ROWS[label], outcome, wanted(label))
    assert not problem, problem
    if target == "c" and outcome.made is not None:
        other = differs(key(ROWS[label]), outcome.made, costs())
        assert not other, f"it costs {cost_of(outcome.made)}: see costs.py"
        assert not exposed(outcome.made.source, header_functions()), "see test_exposed_functions.py"


def test_costs_are_recorded() -> None:
    known = [key(row) in costs() for row in ROWS.values()]
    assert known.count(True) > 0.9 * len(known), "record them: costs.py"


@pytest.mark.parametrize("label", [label for label, row in ROWS.items() if not row.sample.states])
def test_constants(label: str) -> None:
    """What is computed at compile time, by other code, is the same."""
    try:
        outputs = folded(ROWS[label])
    except (OperatorError, CompileError) as error:  # of an operator, or of what a pass made of it
        assert "scale" in str(error), error
        return
    if outputs is not None:
        problem = verdict(ROWS[label], Outcome("ok", "", tuple(outputs)), wanted(label))
        assert not problem, problem


@pytest.mark.parametrize(
    "kind", [k for _, k in sorted(OPERATORS.items()) if label_of(k) not in ELSEWHERE], ids=label_of
)
def test_every_operator_has_samples(kind: type[Operator]) -> None:
    assert kind.samples(), f"{label_of(kind)} has no samples: nothing tests it"
