"""Constant places that are a box of a tensor, which updates are copied to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import OPERATORS, load_all

load_all()


def test_places_that_are_a_box() -> None:
    """Against all boxes of a small tensor: in its order, all inside, none of them left out."""
    rng, boxes = np.random.default_rng(3), 0
    for _ in range(1000):
        shape = tuple(int(v) for v in rng.integers(1, 5, 3))
        k = int(rng.integers(1, 4))
        begin, count = rng.integers(0, 4, k), rng.integers(1, 4, k)
        places = np.stack([b + i.reshape(-1) for b, i in zip(begin, np.indices(count), strict=True)], -1)
        places -= np.asarray(shape[:k]) * (rng.random() < 0.2)  # counted from the end
        if rng.random() < 0.3:
            places = places[rng.permutation(len(places))]
        if rng.random() < 0.1:
            places[-1, -1] += int(rng.integers(-2, 3))
        whole = np.where(places < 0, places + shape[:k], places)
        inside = (whole >= 0).all() and (whole < shape[:k]).all()
        wanted = {tuple(map(tuple, np.argwhere(region))): region for region in _regions(shape[:k])}
        region = wanted.get(tuple(map(tuple, whole))) if inside else None
        found = OPERATORS["", "ScatterND"]().box(  # type: ignore[attr-defined]
            Value("x", TensorType(DType.FLOAT32, shape)), constant("i", places)
        )
        assert (found is None) == (region is None), (shape, whole)
        if region is not None:
            boxes += 1
            ends = [(int(v.min()), int(np.ptp(v)) + 1) for v in np.nonzero(region)]
            assert found == (*ends, *((0, d) for d in shape[k:]))
    assert boxes > 100


def _regions(shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """All boxes of a tensor."""
    for ends in product(*(combinations(range(d + 1), 2) for d in shape)):
        region = np.zeros(shape, bool)
        region[tuple(slice(*e) for e in ends)] = True
        yield region
