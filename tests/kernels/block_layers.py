"""Layers of the kernels' table that multiply floats by matrices quantised by blocks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from draw import Draw
from layer import Layer, Step

from aot_model.ops.registry import OPERATORS

CASES: tuple[tuple[Any, tuple[int, ...], int, int, int, float | str | None], ...] = (
    (np.uint8, (1,), 40, 24, 8, 0.0),
    (ml_dtypes.uint4, (2,), 20, 32, 16, 0.0),
    (np.int8, (3,), 17, 40, 16, "floats"),
    (np.uint8, (5,), 9, 8, 10, 130.0),
    (ml_dtypes.int4, (4,), 80, 16, 20, "own"),
    (np.uint8, (4,), 100, 20, 16, "own"),
    (ml_dtypes.uint4, (6,), 70, 1, 16, None),
    (np.int8, (2, 3), 50, 33, 32, -128.0),
)
"""Kind, rows, columns, depth, elements of a block; zero points: all the same, of each block, or floats."""


def block_products() -> list[Layer]:
    draw, layers = Draw(52), []
    for kind, rows, columns, depth, block, zero in CASES:
        info = ml_dtypes.iinfo(kind) if kind in (ml_dtypes.int4, ml_dtypes.uint4) else np.iinfo(kind)
        shape = columns, -(-depth // block)
        q = draw.rng.integers(info.min, info.max + 1, (columns, depth)).astype(kind)
        others = [q, draw.rng.uniform(0.01, 0.1, shape).astype(np.float32)]
        if zero == "floats":
            others.append(draw.rng.uniform(info.min, info.max, shape).astype(np.float32))
        elif zero == "own":
            others.append(draw.rng.integers(info.min, info.max + 1, shape).astype(kind))
        elif zero is not None:
            others.append(np.full(shape, zero).astype(kind))
        x = draw.tensor(np.float32, *rows, depth)
        name = f"{list(x.shape)} x {np.dtype(kind).name}{list(q.shape)} by {block}, {zero}"
        layers.append(Layer(name, x, (Step(OPERATORS["aot", "BlockMatMul"](block=block), tuple(others)),)))
    return layers
