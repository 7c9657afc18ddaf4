"""Indices of constants that can be counted are what the constants say, at each element."""

import numpy as np
import pytest

from aot_model.ir.evaluate import evaluate
from aot_model.ir.expr import load
from aot_model.ir.index import index_variables
from aot_model.ir.progressions import progression
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value


def constant(places: object) -> Value:
    data = np.asarray(places, np.int64)
    return Value("places", TensorType(DType.INT64, data.shape), data=data)


def windows(size: int, step: int, dilation: int, count: int) -> np.ndarray:
    return np.arange(size)[:, None] * dilation + np.arange(count) * step


@pytest.mark.parametrize(
    "places",
    [
        np.arange(7),
        np.asarray([1, 3]),
        np.arange(7)[::-1],
        np.arange(-7, 0),
        -1 - np.arange(7),
        np.asarray([[2, 2, 2], [4, 4, 4]]),
        windows(3, 2, 1, 4),
        windows(2, 1, 3, 5)[:, None],
    ],
)
def test_what_is_counted(places: np.ndarray) -> None:
    value, extent = constant(places), 9 if places.min() >= 0 else 7
    index = index_variables(places.shape)
    found = progression(load(value, index), extent)
    assert found is not None
    assert np.array_equal(evaluate(found, index, places.shape), places % extent)


@pytest.mark.parametrize(
    ("places", "extent"),
    [
        ([0, 1, 3], 9),
        ([0, 1, 2], 2),
        ([-3, -2, -1], 2),
        ([[0, 1], [1, 3]], 9),
        ([-1, 0, 1], 9),  # 8, 0, 1
        (np.zeros((0,)), 9),
        (3, 9),  # one alone
        ([-1], 9),
    ],
)
def test_what_is_not(places: object, extent: int) -> None:
    value = constant(places)
    assert progression(load(value, index_variables(value.shape)), extent) is None


def test_an_index_that_no_constant_gives() -> None:
    value = Value("given", TensorType(DType.INT64, (4,)))
    assert progression(load(value, index_variables((4,))), 9) is None
