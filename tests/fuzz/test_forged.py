"""Forged files of parameters with a right CRC: refused, or harmless; and what forges them notices code that
is not safe.
"""

from __future__ import annotations

import pytest
from forged import Verdict, forge, registry_cases, tflite_cases

from aot_model.ir.admissible import ANYTHING, Ranges
from aot_model.lowering import lower
from turns import commit_number

KINDS = (
    "TreeEnsembleClassifier-0",
    "TreeEnsembleRegressor-1",
    "aot.TreeSums-1",
    "aot.SequenceLstm-11",
    "aot.SequenceLstm-12",
    "QLinearConv-0",
    "QLinearMatMul-0",
    "LabelEncoder-1",
    "StringNormalizer-1",
    "RegexFullMatch-3",
    "GatherElements-0",
    "GatherND-0",
    "Resize-9",
    "aot.Interpolation-0",
    "aot.QuantisedSoftmax-2",
    "aot.QuantisedLogSoftmax-0",
    "CountGrams-1",
    "LSTM-0",
    "MatMulNBits-1",
    "Conv-0",
    "If-0",
    "ScatterElements-0",
)
SLICES = 24
"""A commit forges for one of so many parts of the registry, all of them in turn."""


def kind_of(label: str, name: str) -> bool:
    return label == name or label.endswith(f".{name}")


def failures(verdicts: list[Verdict]) -> str:
    return "\n".join(f"{v.label}: {v.report}" for v in verdicts if v.report)


def test_kinds_of_models() -> None:
    """Trees, integer LSTM, QDQ, look-up, strings, automata, indices, n-grams, softmax, 4 bits, control
    flow.
    """
    cases = [c for c in registry_cases() if any(kind_of(c.name, k) for k in KINDS)]
    verdicts = forge(cases, 150)
    assert not failures(verdicts), failures(verdicts)
    assert len(verdicts) >= 14, [v.label for v in verdicts]
    assert sum(v.forged for v in verdicts) == 150 * len(verdicts)
    # they get as far as the code
    assert sum(v.accepted for v in verdicts) > 0.5 * sum(v.forged for v in verdicts)
    assert sum(v.accepted for v in verdicts) < sum(v.forged for v in verdicts)


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55"])
def test_other_orders_of_reading(target: str) -> None:
    """Kernels of these targets read packed weights in orders of their own; cores by their portable twins."""
    kinds = ("QLinearConv-0", "QLinearMatMul-0", "aot.TreeSums-1", "MatMulNBits-1", "aot.SequenceLstm-11")
    cases = [c for c in registry_cases() if any(kind_of(c.name, k) for k in kinds)]
    verdicts = forge(cases, 60, target=target)
    assert not failures(verdicts), failures(verdicts)
    assert len(verdicts) >= 3 and sum(v.accepted for v in verdicts) > 100


def test_a_part_of_the_registry() -> None:
    turn = commit_number()
    cases = [*registry_cases(), *tflite_cases()][turn % SLICES :: SLICES]
    verdicts = forge(cases, 60, seed=turn)
    assert verdicts
    assert not failures(verdicts), failures(verdicts)


@pytest.mark.parametrize("name", ["aot.TreeSums-1", "StringNormalizer-1", "aot.Interpolation-0"])
def test_code_that_relies_on_what_nobody_checks_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Without the checks that operators declare, that are taken from the data, and that expressions leave
    behind.
    """
    from aot_model.emit import parameters_file

    def nothing(*_: object) -> Ranges:
        return ANYTHING

    monkeypatch.setattr(lower, "observed", nothing)
    monkeypatch.setattr(parameters_file, "beyond_type", nothing)
    (verdict,) = forge([c for c in registry_cases() if c.name == name], 300)
    assert (
        "runtime error" in verdict.report
        or "AddressSanitizer" in verdict.report
        or "status" in verdict.report
    )
