"""Weights of a Resize as whole multiples of a unit."""

from __future__ import annotations

import numpy as np
import pytest

from aot_model.passes.qdq_resize import whole_weights

HALVES = [[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]]
THIRDS = [[1 / 3, 2 / 3], [1.0, 0.0]]
CUBIC = [[-0.0703125, 0.8671875, 0.2265625, -0.0234375]]


@pytest.mark.parametrize(
    ("weights", "unit"), [([[1.0]], 1), (HALVES, 4), (THIRDS, 3), (CUBIC, 128), ([[1 / 128, 127 / 128]], 128)]
)
@pytest.mark.parametrize("rounded", [False, True])
def test_the_fewest_units_that_are_exact(weights: list[list[float]], unit: int, rounded: bool) -> None:
    real = np.asarray(weights, np.float32)
    found = whole_weights(real, 7, rounded)
    assert found is not None and found[1] == unit and found[0].dtype == np.int32
    np.testing.assert_allclose(found[0], np.asarray(weights) * unit, atol=1e-4)


def test_others_are_rounded_where_that_is_allowed() -> None:
    share = np.random.default_rng(1).uniform(0, 1, 9).astype(np.float32)
    real = np.stack([share, 1 - share], 1)
    assert whole_weights(real, 11, rounded=False) is None
    found = whole_weights(real, 11, rounded=True)
    assert found is not None and found[1] == 1 << 11
    assert (found[0].sum(1) == 1 << 11).all()
    assert np.abs(found[0] / found[1] - real).max() <= 2.0**-11
    assert np.abs(found[0] / found[1] - real).mean() <= 2.0**-12


@pytest.mark.parametrize("weights", [np.zeros((0, 2)), np.array([[0.5, 0.4]]), np.array([[np.nan, 1.0]])])
def test_what_is_no_share_of_one(weights: np.ndarray) -> None:
    assert whole_weights(weights, 11, rounded=True) is None
