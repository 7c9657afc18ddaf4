"""What layers are drawn from: windows, shapes, random tensors, and what follows sums. The same every time."""

from __future__ import annotations

from typing import Any

import numpy as np
from layer import Step

from aot_model.ir.types import DType
from aot_model.ops.elementwise import op
from aot_model.ops.requantise import Requantise

WINDOWS: tuple[dict[str, Any], ...] = (
    {},
    {"strides": (2, 1)},
    {"pads": (1, 1, 1, 1)},
    {"strides": (2, 2), "pads": (0, 1, 1, 0)},
    {"dilations": (2, 1), "pads": (2, 0, 1, 0)},
    {"strides": (1, 3), "pads": (1, 2, 0, 1)},
)
SHAPES = (
    ((1, 1), 8, 8),
    ((3, 3), 3, 8),
    ((1, 1), 33, 5),
    ((3, 3), 16, 4),
    ((2, 5), 4, 7),
    ((3, 1), 13, 3),
    ((1, 1), 64, 12),
    ((3, 2), 1, 6),
)
"""Kernel, input and output channels."""
RULES = ("wide", "single", "even", "double")
"""By which a requantisation rounds, in the order in which layers take them."""


class Draw:
    """Random layers that are the same every time."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def tensor(self, dtype: type[Any], *shape: int) -> np.ndarray:
        if np.dtype(dtype).kind == "f":
            return np.asarray(self.rng.uniform(-1, 1, shape), dtype)
        limits = np.iinfo(dtype)
        return np.asarray(self.rng.integers(limits.min, limits.max + 1, shape), dtype)

    def requantised(self, depth: int, channels: int, to: type[Any], turn: int) -> tuple[Step, ...]:
        """A bias and a requantisation that spread the sums over the type; turn after turn another kind of
        them.
        """
        count = 1 if turn % 4 == 3 else channels
        fit = -int(np.log2(60.0 * 60.0 * np.sqrt(depth) / 64.0))
        m = self.rng.integers(1 << 30, 1 << 31, count).astype(np.int32)
        s = (fit + self.rng.integers(-1, 2, count)).astype(np.int32)
        limits = np.iinfo(to)
        low, high = ((limits.min, limits.max), (limits.min + 100, limits.max), (limits.min, limits.max - 60))[
            turn % 3
        ]
        zero = int(self.rng.integers(limits.min, limits.max + 1)) if turn % 2 else low
        bias = Step(op("Add"), (self.rng.integers(-3000, 3000, channels).astype(np.int32),))
        node = Requantise(zero, low, high, DType.of(np.dtype(to)), "single" if turn % 5 == 4 else "double")
        return (*(() if turn % 7 == 6 else (bias,)), Step(node, (m, s)))

    def even(self, channels: int, to: type[Any], turn: int) -> tuple[Step, ...]:
        """A bias and a requantisation whose halves go to even numbers: by powers of two, one for all channels
        or several, and by other factors of few bits.
        """
        count = channels if turn % 2 else 1
        m = (np.full(count, 1 << 30) if turn % 3 else self.rng.integers(4, 8, count) << 28).astype(np.int32)
        s = -self.rng.integers(7, 10, count).astype(np.int32)
        limits = np.iinfo(to)
        bias = Step(op("Add"), (self.rng.integers(-150, 150, channels).astype(np.int32) * 32,))
        low = limits.min + 90 * (turn % 4 == 2)
        node = Requantise(low + 60 * (turn % 3), low, limits.max, DType.of(np.dtype(to)), "even")
        return bias, Step(node, (m, s))

    def sums(self, channels: int, shape: tuple[int, ...], turn: int) -> tuple[Step, ...]:
        """What takes accumulators without a requantisation: nothing, a bias, a tensor that is added."""
        bias = Step(op("Add"), (self.rng.integers(-3000, 3000, channels).astype(np.int32),))
        fed = Step(op("Add"), (self.rng.integers(-9999, 9999, shape).astype(np.int32),), fed=True)
        return ((bias,), (), (bias, fed), (fed,))[turn % 4]


def requantised(
    draw: Draw, depth: int, most: int, channels: int, to: type[Any], turn: int, rule: str
) -> tuple[Step, ...]:
    """A bias and a requantisation that spread the sums of `depth` products over the type."""
    rng, limits = draw.rng, np.iinfo(to)
    count = 1 if turn % 3 == 2 else channels
    spread = np.sqrt(depth) * most / 4
    shift = int(np.floor(np.log2((limits.max - limits.min) / 6 / spread)))
    m = rng.integers(1 << 30, 1 << 31, count)
    m = m >> 16 if rule == "wide" else m
    s = shift - (rng.integers(0, 3, count) if turn % 2 else 0 * m)
    if rule == "even":  # many ties
        m = np.full(count, 1 << 30)
    zero = int(rng.integers(limits.min // 2, limits.max // 2)) if turn % 2 else 0
    low, high = ((limits.min, limits.max), (limits.min + 100, limits.max), (max(limits.min, 0), limits.max))[
        turn % 3
    ]
    size = int(spread)
    kind = np.int64 if most > 1 << 17 else np.int32
    bias = Step(op("Add"), (rng.integers(-size, size, channels).astype(kind),))
    node = Requantise(zero, low, high, DType.of(np.dtype(to)), rule)
    factors = (m.astype(np.int32), np.asarray(s, np.int32))
    return (*(() if turn % 4 == 3 else (bias,)), Step(node, factors))
