"""Products and their sums: the type in which both are computed, values for samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot_model.ir.expr import Expr, call, cast, const
from aot_model.ir.types import DType


def accumulator(dtype: DType) -> DType:
    """The type in which products are summed."""
    # Products of 16 and 8 bits overflow 32 bits after 512 of them.
    return {8: DType.INT32, 16: DType.INT64}.get(dtype.bits, dtype) if dtype.is_integer else dtype


def product(x: Expr, x_zero_point: int, w: Expr, w_zero_point: int) -> Expr:
    """(x - x_zero_point) * (w - w_zero_point) in the accumulator's type."""
    wide, w = accumulator(x.dtype), cast(w, w.dtype.compute) if w.dtype.is_integer else w
    factors = [
        call("sub", cast(v, wide), const(zero, wide)) if zero else cast(v, wide)
        for v, zero in ((x, x_zero_point), (w, w_zero_point))
    ]  # fmt: skip
    return call("mul", *factors)


def draw(dtype: type[Any], *shape: int) -> np.ndarray:
    """Random numbers, the same for the same shape."""
    rng = np.random.default_rng(shape)
    return np.asarray(
        rng.uniform(-1, 1, shape) if np.dtype(dtype).kind == "f" else rng.integers(*_RANGES[dtype], shape),
        dtype,
    )


_RANGES: dict[type[Any], tuple[int, int]] = {
    np.int8: (-128, 128),
    np.uint8: (0, 256),
    np.int16: (-32768, 32768),
}
