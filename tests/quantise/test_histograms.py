"""Ranges from what calibration saw, where there is hardly one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from aot_model.quantise.ranges import BINS, METHODS, observe


class Recorded:
    """A model whose tensor was this, sample by sample."""

    wanted = ("t",)

    def __init__(self, *samples: np.ndarray) -> None:
        self.samples = samples

    def each(self, _: object) -> Iterator[list[np.ndarray]]:
        yield from ([sample] for sample in self.samples)


@pytest.mark.parametrize("begin", [1.0, -1.0, 0.0, 1e-38, 3e38], ids=str)
def test_a_tensor_that_moves_by_a_few_floats(begin: float) -> None:
    """There are fewer floats in its range than bins in a histogram."""
    low = np.float32(begin)
    values = [low]
    for _ in range(3):
        values.append(np.nextafter(values[-1], np.float32(np.inf)))
    seen = observe(Recorded(*(np.asarray([[v]], np.float32) for v in values)), None)["t"]  # type: ignore[arg-type]
    assert (seen.low, seen.high) == (values[0], values[-1])
    assert seen.counts.sum() == 4 and seen.counts[0] == seen.counts[-1] == 1 and len(seen.counts) == BINS
    for method in METHODS.values():
        a, b = method(seen, 255)
        assert a <= b and np.isfinite([a, b]).all()
