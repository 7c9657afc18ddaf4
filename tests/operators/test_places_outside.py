"""Indices that a tensor does not have are those of its nearest element, whether they are constants or not."""

from __future__ import annotations

from itertools import product

import numpy as np
from rows import Row

from aot_model.ir.operator import Sample
from aot_model.ops.registry import OPERATORS
from batch import run_cases

X = np.arange(12, dtype=np.float32).reshape(4, 3)
PLACES = ((3, 4), (-5, -4))


def _found(kind: str, places: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """numpy: rows of X, or X with rows that are updated one after the other."""
    near = np.clip(np.where(places < 0, places + 4, places), 0, 3)
    if not kind.startswith("Scatter"):
        return X[near]
    y = X.copy()
    for place, row in zip(near, updates, strict=True):
        y[place] = row
    return y


def test_the_nearest_element() -> None:
    rows, wanted = [], []
    for (k, of), kind, constant in product(
        enumerate(PLACES), ("ScatterND", "ScatterElements", "GatherND", "GatherElements"), (True, False)
    ):
        places, updates = np.asarray(of), 40 + np.arange(6, dtype=np.float32).reshape(2, 3)
        index = np.repeat(places[:, None], 3, 1) if kind.endswith("Elements") else places[:, None]
        inputs = (X, index, *([updates] if kind.startswith("Scatter") else []))
        sample = Sample(inputs, constants=frozenset({1} if constant else ()))
        rows.append(Row(f"{kind} {k} {constant}", OPERATORS["", kind], 0, sample))
        wanted.append(_found(kind, places, updates))
    for row, outcome, y in zip(
        rows, run_cases([row.case for row in rows], "c", flags=("-O0",)), wanted, strict=True
    ):
        assert outcome.status == "ok", f"{row.label}: {outcome.message}"
        np.testing.assert_array_equal(outcome.outputs[0], y, row.label)
