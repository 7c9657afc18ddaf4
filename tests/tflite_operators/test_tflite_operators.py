"""Operators of TFLite, each as a small model: the generated C against LiteRT's reference kernels or TensorFlow Lite Micro."""

from __future__ import annotations

from functools import cache

import indexing
import layers
import numpy as np
import pytest
from case import OpCase

from batch import Case, Outcome, run_cases
from tflite_reference import litert, tflm

CASES = [*indexing.CASES, *layers.CASES]
NAMES = [c.name for c in CASES]


@cache
def outcomes() -> dict[str, Outcome]:
    cases = [Case(c.name, c.model, c.inputs, c.dims, options={"arithmetic": c.arithmetic}) for c in CASES]
    return dict(zip(NAMES, run_cases(cases, "c"), strict=True))


def wanted(case: OpCase, outputs: int) -> list[np.ndarray]:
    if case.oracle.startswith("litert"):
        return litert(case.model, case.inputs, "BUILTIN_REF" if case.oracle == "litert" else "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    return tflm(case.model, [case.inputs], outputs)[0] if case.oracle == "tflm" else list(case.expected)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_an_operator_gives_what_its_oracle_gives(case: OpCase) -> None:
    outcome = outcomes()[case.name]
    assert outcome.status == "ok", outcome.message
    for k, (got, want) in enumerate(zip(outcome.outputs, wanted(case, len(outcome.outputs)), strict=True)):
        assert got.dtype == want.dtype and got.size == want.size, (k, got.dtype, got.shape, want.dtype, want.shape)
        if want.dtype.kind == "f":
            bound = case.tolerance * max(float(np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)), initial=0)), 1e-30)
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=0, atol=bound)
        else:
            np.testing.assert_array_equal(got.reshape(want.shape), want)


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)
