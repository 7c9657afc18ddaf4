"""Parts of the rules for networks between quantised tensors, each at its edges."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.passes import qdq_site, qdq_weights


@pytest.mark.parametrize(
    ("steps", "dtype", "times"),
    [
        ((-1, 0), DType.INT8, 128),
        ((0, 1), DType.INT8, 64),
        ((0, 1), DType.UINT8, 128),
        ((-2, 1), DType.INT8, 64),
        ((0, 128), DType.UINT8, 1),
    ],
)
def test_weights_become_as_fine_as_their_type_has_room(
    steps: tuple[int, int], dtype: DType, times: int
) -> None:
    data = np.asarray([[*steps, 0]])
    w = qdq_site.Scaled(constant("w", data.astype(dtype.numpy)), np.ones(1), np.zeros(1))
    x = qdq_site.Scaled(Value("x", TensorType(dtype, (1,))), np.ones(1), np.zeros(1))
    site: Any = SimpleNamespace(constant=constant)
    made = qdq_weights.finer(site, w, np.array([0.5]), x)
    assert made.value.data is not None and made.scale == 1 / times
    np.testing.assert_array_equal(made.value.data, data * times)
    assert qdq_weights.finer(site, w, np.array([1.0005]), x) is w, "as good as whole units"


@pytest.mark.parametrize(("multiplier", "factor"), [(2**31 - 1, 2**21 - 1), (3 << 29, 3 << 19)])
def test_a_factor_that_is_rounded_keeps_its_bits(multiplier: int, factor: int) -> None:
    assert qdq_site._wide_factor(multiplier, 0, 2.0**40) == (factor, -6)


@pytest.mark.parametrize(
    ("units", "away"),
    [
        (0.4, 0.4),
        (7.25, 0.25),
        (-7.25, 0.25),
        (7.0005, 0.0005),
        (7.000001, 0),
        (2.0**20 + 0.25, 0),
        (2.0**20 + 0.375, 0.375),
    ],
)
def test_biases_between_whole_units(units: float, away: float) -> None:
    """A scale of float32 accounts for 2^-22 of it."""
    assert qdq_weights._between(np.array([units * 0.5]), np.array([0.5])) == pytest.approx(away)
