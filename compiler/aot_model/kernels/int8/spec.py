"""The numbers of one integer operator: zero points, multipliers, activation range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class QuantSpec:
    """How an accumulator becomes an output: y = clamp(requantise(acc) + out_zero_point, act_min, act_max)."""

    x_zero_point: int
    multiplier: np.ndarray
    """int32, one per output channel or one for all: the multiplier in Q0.31."""
    shift: np.ndarray
    """int32, as `multiplier`: the exponent in TFLite's sign, positive = left."""
    out_zero_point: int
    act_min: int
    act_max: int
    x_dtype: str = "int8"
    y_dtype: str = "int8"
    variant: int = 1
    """1: rounding doubling high multiply, then a rounding shift with ties away from zero."""
