"""How far one array is from another, and whether that is within tolerances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from aot_model.ir.strings import decoded
from aot_model.ir.types import DType


@dataclass(frozen=True)
class Tolerance:
    """Floats: |got - want| <= atol + rtol * |want|; integers: |got - want| <= max_lsb. atol None: `share` of
    the largest |want|.
    """

    atol: float | None = None
    rtol: float = 1e-3
    max_lsb: int = 0
    share: float = 1e-4


def share_of(dtypes: Iterable[DType]) -> float:
    """The share of its range that a result may be off which is computed in such types: runtimes round numbers
    of half precision at different places, and are a step of them apart.
    """
    return max((STEPS.get(dtype, 0.0) for dtype in dtypes), default=0.0) or Tolerance.share


STEPS = {DType.FLOAT16: 2.0**-10, DType.BFLOAT16: 2.0**-7}
"""From 1 to the next number."""


@dataclass(frozen=True)
class Comparison:
    """One tensor against what it should be: `worst` is the largest |got - want|, `extent` the largest
    |want|.
    """

    name: str
    type: str
    elements: int
    differing: int
    worst: float
    extent: float

    @property
    def of_range(self) -> float | None:
        """The largest difference in units of the largest |want|; None where that is 0."""
        return self.worst / self.extent if self.extent else None


def compare(name: str, type_: str, got: np.ndarray, want: np.ndarray, tolerance: Tolerance) -> Comparison:
    """NaN is equal to NaN, infinities to themselves; strings are equal or not."""
    if want.dtype.kind == "S":
        return Comparison(name, type_, want.size, int((decoded(got) != decoded(want)).sum()), 0.0, 0.0)
    if want.dtype.kind in "iub":
        difference = (
            np.abs(got.astype(object) - want.astype(object))
            if want.dtype.itemsize == 8
            else np.abs(got.astype(np.int64) - want.astype(np.int64))
        )
        wide = np.asarray(difference, dtype=np.float64)
        extent = float(np.max(np.abs(want.astype(np.float64)), initial=0.0))
        return Comparison(
            name,
            type_,
            want.size,
            int((wide > tolerance.max_lsb).sum()),
            float(wide.max(initial=0.0)),
            extent,
        )
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    extent = float(np.max(np.abs(b[finite]), initial=0.0))
    allowed = (
        tolerance.share * extent if tolerance.atol is None else tolerance.atol
    ) + tolerance.rtol * np.abs(np.where(finite, b, 0.0))
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        error = np.where(same, 0.0, np.abs(a - b))
    error = np.where(np.isnan(error), np.inf, error)
    return Comparison(
        name, type_, want.size, int((error > allowed).sum()), float(error.max(initial=0.0)), extent
    )
