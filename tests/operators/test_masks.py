"""Masks of attention for which no oracle has a kernel on a processor: the same numbers as in a form that one
has.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles import difference
from rows import Row, rows_of

from aot_model.ops.registry import OPERATORS
from batch import run_cases

MASK = 3
"""The input of Attention."""


@pytest.mark.parametrize("more", [0, 2])
def test_a_mask_with_an_axis_of_heads(more: int) -> None:
    """(batch, 1, largest, largest): the rows behind the past and the first columns are those of
    (batch, queries, keys).
    """
    row = next(
        r
        for r in rows_of(OPERATORS["com.microsoft", "Attention"])
        if len(r.sample.inputs) == MASK + 1 and np.ndim(r.sample.inputs[MASK]) == 3
    )
    mask = np.asarray(row.sample.inputs[MASK])
    assert 0 < mask.sum() < mask.size
    larger = np.pad(mask, ((0, 0), (0, more), (0, more)), constant_values=1)[:, None]
    other = Row("mask", row.kind, 0, replace(row.sample, inputs=(*row.sample.inputs[:MASK], larger)))
    before, after = run_cases([row.case, other.case], "c", flags=("-O1",))
    assert before.status == after.status == "ok", after.message
    assert not difference(after.outputs, before.outputs, 0)
