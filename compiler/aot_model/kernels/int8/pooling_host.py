"""int8 and uint8 pooling on hosts, channels last: sums or maxima of 16 channels at a time over the window.

average: the sum of what lies inside of the image, divided by how many they are, ties away from zero; no zero points. The
division is one of floats: |sum| + n / 2 < 2^24 and the quotient below 2^9 is exact to 2^-16, so that for n < 2^15
truncation cannot meet a wrong integer.
"""

from __future__ import annotations

from typing import Literal

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.int8 import pooling


def pool(
    kind: Literal["average", "max"], shape: ConvShape, act_min: int, act_max: int, dtype: str = "int8", tail: Tail | None = None
) -> KernelCode:
    """Pooling; every window holds at least one element of the image. Dense input, out_c = in_c."""
    return pooling.pool(kind, shape, act_min, act_max, dtype, tail=tail)
