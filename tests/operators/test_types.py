"""Samples in other types than their own: those of the standard, where what is right can be known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from near_samples import TYPE_PARTS, wrong_types
from rows import Row, rows_of

from aot_model.ops.registry import OPERATORS
from batch import run_cases
from qemu import available
from turns import commit_number

NO_BOARD = pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")


def test_samples_in_other_types() -> None:
    """A part of them for every commit."""
    found, compared = wrong_types(commit_number() % TYPE_PARTS, TYPE_PARTS)
    assert compared > 50, compared
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", [np.int32, np.uint32])
def test_a_mean_is_one_of_the_numbers_though_their_sum_is_not(kind: type[np.integer]) -> None:
    row = rows_of(OPERATORS["", "ReduceMean"])[0]
    top = np.iinfo(kind).max
    x = np.asarray([[top - 1, top - 3, top - 8], [6, top // 2, top]], kind)
    sample = replace(row.sample, inputs=(x, np.asarray([1], np.int64)), attributes={"keepdims": 0})
    (outcome,) = run_cases([Row("mean", row.kind, 0, sample).case], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    assert outcome.outputs[0].tolist() == [int(row) // 3 for row in x.astype(np.int64).sum(axis=1)]


@pytest.mark.parametrize(
    ("kind", "alpha", "beta", "fits"),
    [
        (np.int32, 0.5, 1.0, False),
        (np.int32, 2.0, -3.0, True),
        (np.uint32, 1.0, -1.0, False),
        (np.int32, 1.0, 0.25, False),
        (np.int32, float("inf"), 1.0, False),
    ],
)
def test_factors_that_the_type_does_not_have_are_refused(
    kind: type[np.integer], alpha: float, beta: float, fits: bool
) -> None:
    """They were 0, or what is left of them in so many bits."""
    (row,) = rows_of(OPERATORS["", "Gemm"])[:1]
    six = np.arange(6, dtype=kind)
    inputs = (six.reshape(2, 3), six.reshape(3, 2), np.ones(2, kind))
    sample = replace(row.sample, inputs=inputs, attributes={"alpha": alpha, "beta": beta})
    (outcome,) = run_cases([Row("gemm", row.kind, 0, sample).case], "c", jobs=1)
    assert outcome.status == ("ok" if fits else "refused"), outcome.message
    if fits:
        assert outcome.outputs[0].tolist() == (2 * (inputs[0] @ inputs[1]) - 3).tolist()


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32])
@pytest.mark.parametrize("board", ["", pytest.param("m55", marks=NO_BOARD)])
def test_products_of_integers_are_folded_where_no_vectors_do(kind: type[np.integer], board: str) -> None:
    x = np.asarray(np.arange(24).reshape(2, 12) % 3 + 1, kind)
    (row,) = rows_of(OPERATORS["", "ReduceProd"])[:1]
    sample = replace(row.sample, inputs=(x, np.asarray([1], np.int64)), attributes={})
    case = Row("product", row.kind, 0, sample).case
    if board:
        (outcome,) = run_cases([case], "cortex-m55", jobs=1, board=board, sanitize=False)
    else:
        (outcome,) = run_cases([case], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    assert outcome.outputs[0].tolist() == np.prod(x, axis=1, keepdims=True, dtype=kind).tolist()
