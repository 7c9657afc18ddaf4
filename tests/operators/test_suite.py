"""The conformance suite notices what it is there for: operators that are wrong, and operators that nothing
tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from oracles import expected
from rows import rows_of
from verdict import verdict

from aot_model.ir.operator import Arrays, Inputs, Operator, Sample
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value
from aot_model.ops.registry import OPERATORS, Build, operator, required
from batch import run_cases

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


class Lazy(Operator):
    """An operator that returns its input."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build(OPERATORS["", "Identity"](), required(inputs))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((X,))]


@pytest.fixture
def empty_place(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A place in the registry for one test; the operator that is there comes back."""
    domain, name = request.param
    before = OPERATORS.pop((domain, name), None)
    yield domain, name
    del OPERATORS[domain, name]
    if before is not None:
        OPERATORS[domain, name] = before


def verdicts(kind: type[Operator], target: str = "c") -> list[str]:
    rows = rows_of(kind)
    found = run_cases([r.case for r in rows], target, sanitize=False, jobs=1)
    return [verdict(r, outcome, expected(r)) for r, outcome in zip(rows, found, strict=True)]


@pytest.mark.parametrize(
    "empty_place",
    [("", "Tanh"), ("com.microsoft", "Gelu"), ("com.microsoft", "QuickGelu"), ("", "Mish")],
    indirect=True,
)
def test_an_operator_that_returns_its_input_is_caught(empty_place: tuple[str, str]) -> None:
    domain, name = empty_place
    (problem,) = verdicts(operator(name, domain)(type("Lazy", (Lazy,), {})))
    assert "Mismatched elements" in problem


@pytest.mark.parametrize("empty_place", [("aot", "Doubled")], indirect=True)
def test_our_own_operators_are_compared_with_their_reference(empty_place: tuple[str, str]) -> None:
    class Doubled(Lazy):
        def reference(self, arrays: Arrays) -> list[np.ndarray]:
            return [2 * np.asarray(arrays[0])]

    (problem,) = verdicts(operator("Doubled", "aot")(Doubled))
    assert "the operator's reference()" in problem and "Mismatched elements" in problem


@pytest.mark.parametrize("empty_place", [("aot", "Unheard"), ("com.microsoft", "Unheard")], indirect=True)
def test_an_operator_without_an_oracle_is_a_failure(empty_place: tuple[str, str]) -> None:
    domain, name = empty_place
    (problem,) = verdicts(operator(name, domain)(type("Unheard", (Lazy,), {})))
    assert f"no oracle computes {domain}.Unheard-0" in problem


@pytest.mark.parametrize("empty_place", [("", "Tanh")], indirect=True)
def test_a_wrong_type_or_shape_is_caught(empty_place: tuple[str, str]) -> None:
    class Flat(Lazy):
        def infer(self, inputs: Inputs) -> list[TensorType]:
            return [TensorType(required(inputs).dtype, (12,))]

        def expand(self, build: Build, inputs: Inputs) -> list[Value]:
            flat = build.constant([12], required(inputs).dtype.INT64)
            return [build(OPERATORS["", "Reshape"](), required(inputs), flat)]

    (problem,) = verdicts(operator("Tanh")(Flat))
    assert "is float32[12], not float32[3, 4]" in problem
