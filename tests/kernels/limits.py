"""Numbers, shapes and requantisations that are drawn at limits and beside them, for decisions.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8.spec import QuantSpec

LIMITS = (8, 16, 64, 100, 120, 127, 128, 255, 256, 511, 512, 1020, 4000, 4092, 4094, 4095, 5000, 8191, 8192,
          16383, 20000, 32767, 32768, 65535, 65536, 131071, 1 << 18, 1 << 20, 1 << 22, 1 << 24)  # fmt: skip


class Draw:
    """Numbers at limits and beside them, and others."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def few(self, most: int = 9) -> int:
        return int(self.rng.integers(1, most + 1))

    def any(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def beside(self, limit: int) -> int:
        return limit + self.pick(-2, -1, -1, 0, 0, 1, 1, 2)

    def power(self, least: int, most: int) -> int:
        """Of two, or beside one."""
        return self.beside(1 << self.any(least, most))

    def factor(self, given: int) -> int:
        """What times `given` is a limit, or nearly."""
        return max(1, -(-int(self.pick(*LIMITS)) // max(given, 1)) + self.pick(-1, -1, 0, 0, 1))


def shape(draw: Draw, depthwise: bool) -> ConvShape:
    """One of whose sizes makes a product of them a limit, more often than not."""
    kernel = [draw.pick(1, 1, 2, 3, 3, 5, draw.few(12)) for _ in range(2)]
    strides = [draw.pick(1, 1, 2, 3, draw.few(24)) for _ in range(2)]
    dilations = [draw.pick(1, 1, 1, 2, 3) if k > 1 else 1 for k in kernel]
    outputs = [draw.pick(1, 2, 3, 4, 7, 8, draw.few(40)) for _ in range(2)]
    batch, channels, times = draw.pick(1, 1, 1, 2, 3), draw.few(40), draw.pick(1, 1, 1, 2, 3, draw.few(8))
    if draw.chance(0.2):  # one window
        strides, outputs = [1, 1], [1, 1]
    taps = kernel[0] * kernel[1]
    form = draw.any(0, 11)
    if form < 4:
        channels = draw.factor(
            draw.pick(1, taps, strides[1], times, taps * times, 4 * times, 7 * outputs[1] * kernel[1])
        )
    elif form == 4:
        times = draw.factor(draw.pick(channels, channels * taps))
    elif form == 5:
        strides[1] = draw.factor(draw.pick(1, channels))
    elif form == 6:
        dilations[1] = draw.factor(draw.pick(channels, 2 * channels, channels * max(kernel[1] - 1, 1)))
    elif form == 7:
        kernel[draw.any(0, 1)] = draw.factor(draw.pick(1, *kernel, channels))
    elif form == 8:
        outputs[1] = draw.factor(draw.pick(1, channels, channels * kernel[0], outputs[0] * channels * times))
    wide = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    begin = [draw.pick(0, 0, 0, draw.any(0, w // 2), -1) for w in wide]
    end = [draw.pick(0, 0, b, draw.any(0, w // 2), -2) for b, w in zip(begin, wide, strict=True)]
    sizes = [
        max(1, (n - 1) * t + w - b - e)
        for n, t, w, b, e in zip(outputs, strides, wide, begin, end, strict=True)
    ]
    groups = channels if depthwise else draw.pick(1, 1, 1, 2, 4)
    ins, outs = (channels, channels * times) if depthwise else (channels * groups, times * groups)
    found = ConvShape(
        batch, sizes[0], sizes[1], ins, outputs[0], outputs[1], outs, kernel[0], kernel[1], strides[0],
        strides[1], dilations[0], dilations[1], begin[0], begin[1], groups,
    )  # fmt: skip
    n, h, w, c = found.strides
    return found if draw.chance(0.9) else replace(found, x_strides=(2 * n, 2 * h, 2 * w, 2 * c))


def quantisation(draw: Draw, count: int) -> QuantSpec:
    """Also such as no model should have."""
    many = draw.chance(0.6)

    def each(pick: Callable[[], int]) -> np.ndarray:
        one = pick()
        alike = not many or draw.chance(0.3)
        return np.array([one if alike else pick() for _ in range(count if many else 1)], np.int32)

    half = 1 << 30
    exact = draw.chance(0.3)  # powers of two
    m = each(
        lambda: (
            half
            if exact
            else draw.pick(
                draw.any(half, 2 * half - 1), draw.any(half, 2 * half - 1), draw.any(1, half), 3 << 29,
                2 * half - 1, half + 1, draw.pick(0, 1, -5),
                *(draw.any(half >> k, (half >> k - 1) - 1) << k for k in (14, 24)),
            )
        )
    )  # fmt: skip
    least = draw.any(-26, -1)
    s = each(lambda: draw.pick(least, least, least - draw.any(0, 3), draw.any(-32, 9), 0, 1))
    to, kind = draw.pick("int8", "int8", "uint8"), draw.pick("int8", "int8", "uint8")
    low, high = (-128, 127) if to == "int8" else (0, 255)
    zero = draw.pick(low, low, high, 0, draw.any(low, high))
    ends = draw.pick((low, high), (zero, high), (low + 1, high - 1), (min(zero + 1, high), high), (low, zero),
                     (low + 9, high))  # fmt: skip
    return QuantSpec(
        draw.any(low, high), m, s, zero, *ends, kind, to, draw.pick("double", "double", "single", "even"),
        draw.pick(0, 0, 0, 0, 0, 3, -128, 127, 128, -129),
    )  # fmt: skip


def accumulators(draw: Draw, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends of what is accumulated: around powers of two, some of one number."""
    bits = draw.pick(8, 12, 16, 20, 22, 23, 24, 28, 29, 30, 31)
    ends = []
    for _ in range(count):
        low = draw.pick(0, -draw.power(6, bits), -draw.power(bits - 1, bits), -draw.any(0, 1 << bits))
        high = draw.pick(0, draw.power(6, bits), draw.power(bits - 1, bits), draw.any(0, 1 << bits))
        high = low if draw.chance(0.06) else high
        ends.append((max(low, -(1 << 31)), min(max(low, high), (1 << 31) - 1)))
    found = np.array(ends, np.int64)
    return found[:, 0], found[:, 1]
