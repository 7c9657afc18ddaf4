"""Indices read from constants that are sums of multiples of where they are read: windows, steps, what is
turned round. They become these sums, which loops count and kernels read through strides.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.expr import Expr, Load, const
from aot_model.ir.index import add, mul


def progression(i: Expr, extent: int) -> Expr | None:
    """The index that `i`, an element of a constant, is by where it is read; None where that is no sum, or
    elements are outside of the extent. Negative ones count from the end.

    A constant of one element stays: what it picks is copied, and the rest of the tensor need not live on (of
    queries, keys and values in one tensor each attention would hold all, an eighth of its memory).
    """
    if not isinstance(i, Load) or i.value.data is None or i.value.data.dtype.kind not in "iu":
        return None
    data = i.value.data
    if data.size < 2 or int(data.min()) < -extent or int(data.max()) >= extent:
        return None
    places = data.astype(np.int64)
    places[places < 0] += extent
    base = places[(0,) * places.ndim]
    steps = [int(places[_unit(k, places.ndim)] - base) if n > 1 else 0 for k, n in enumerate(places.shape)]
    counted = base + sum(
        step * axis for step, axis in zip(steps, np.ogrid[tuple(slice(n) for n in places.shape)], strict=True)
    )
    if not np.array_equal(places, np.broadcast_to(counted, places.shape)):
        return None
    total: Expr = const(int(base))
    for step, at in zip(steps, i.index, strict=True):
        total = add(total, mul(at, step))
    return total


def _unit(axis: int, rank: int) -> tuple[int, ...]:
    """The element after the first along an axis."""
    return tuple(int(k == axis) for k in range(rank))
