"""Inputs of attention for which no oracle has a kernel on a processor: the same numbers as in a form that one
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


@pytest.mark.parametrize("rotated", [False, True])
def test_queries_and_keys_are_normalised_by_head(rotated: bool) -> None:
    """Before they are rotated; queries of two heads for each of keys, each with its own weights of a head."""
    kind = OPERATORS["com.microsoft", "GroupQueryAttention"]
    row = next(
        r
        for r in rows_of(kind)
        if np.shape(r.sample.inputs[0])[1] == 3 and r.sample.attributes.get("do_rotary", 0) == rotated
    )
    q, k, *rest = (None if x is None else np.asarray(x) for x in row.sample.inputs)
    assert q is not None and k is not None
    rng, heads = np.random.default_rng(5), (4, 2)
    weights = [rng.uniform(0.5, 2, q.shape[2] // heads[0]).astype(np.float32) for _ in heads]
    fed = []
    for x, count, w in zip((q, k), heads, weights, strict=True):
        apart = x.astype(np.float64).reshape(*x.shape[:2], count, -1)
        by = np.sqrt(np.mean(apart**2, axis=3, keepdims=True) + 1e-6)
        fed.append((apart / by * w).reshape(x.shape).astype(np.float32))
    given = (q, k, *rest, *[None] * (14 - 2 - len(rest)), *weights)
    cases = [
        Row(name, kind, 0, replace(row.sample, inputs=inputs)).case
        for name, inputs in (("given", given), ("fed", (*fed, *rest)))
    ]
    found, wanted = run_cases(cases, "c", flags=("-O1",))
    assert found.status == wanted.status == "ok", found.message
    assert not difference(found.outputs, wanted.outputs, 1e-5)
    alone = Row("alone", kind, 0, replace(row.sample, inputs=given[:-1])).case
    assert "normalised together" in run_cases([alone], "c")[0].message
