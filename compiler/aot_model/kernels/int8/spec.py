"""The numbers of one integer operator: zero points, multipliers, activation range; and the types of what its
kernels are given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from aot_model.kernels.base import ConvShape, KernelCode, Tail

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Weights = npt.NDArray[np.integer]
"""int8 or uint8, in the order that a kernel says."""
Bias = npt.NDArray[np.int32] | None
"""One for each output channel."""
Rounding = Literal["double", "single", "even"]


@dataclass(frozen=True)
class QuantSpec:
    """Quantisation of one operator. multiplier, shift: one per output channel, or one for all."""

    x_zero_point: int
    multiplier: Int32
    shift: Int32
    """Sign as in TFLite: positive shifts left."""
    out_zero_point: int
    act_min: int
    act_max: int
    x_dtype: str = "int8"
    out_dtype: str = "int8"
    rounding: Rounding | None = "double"
    """double: the product is rounded, then the shift, ties away from zero. single: once, ties up. even: once,
    ties to even. None: no requantisation, the accumulator itself goes to the tail.
    """
    weight_zero_point: int = 0

    @staticmethod
    def accumulators(x_zero_point: int, x_dtype: str, weight_zero_point: int) -> QuantSpec:
        """No requantisation: a tail gets the accumulators."""
        one = np.zeros(1, np.int32)
        return QuantSpec(
            x_zero_point, one, one, 0, -(1 << 31), (1 << 31) - 1, x_dtype, "int32", None, weight_zero_point
        )

    @property
    def x_range(self) -> tuple[int, int]:
        return (-128, 127) if self.x_dtype == "int8" else (0, 255)

    @property
    def out_range(self) -> tuple[int, int]:
        return (-128, 127) if self.out_dtype == "int8" else (0, 255)

    def channels(self, count: int) -> tuple[Int64, Int64]:
        """Multipliers and shifts, one per channel."""
        m, s = (np.broadcast_to(v.astype(np.int64), (count,)) for v in (self.multiplier, self.shift))
        return m, s


Writer = Callable[[ConvShape, np.ndarray, Bias, QuantSpec, "Tail | None"], KernelCode]
"""A kernel of a layer of such weights: its shape, weights, bias, numbers, and what is fused behind."""
