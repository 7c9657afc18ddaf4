"""Layers of the kernels' table for products of pairs whose operands lie otherwise than a product reads them:
transposed, of a longer axis, and rows so far apart that no vector of offsets reaches them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from draw import Draw, requantised
from int16_layers import IntegerProduct
from layer import Layer, Step

from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Transpose


@dataclass(frozen=True)
class TransposedProduct(Layer):
    """Of an operand whose last two axes are turned round, the first step."""

    def expected(self) -> np.ndarray:
        return IntegerProduct(self.name, np.swapaxes(self.x, -1, -2), self.steps[1:]).expected()


Size = tuple[tuple[int, ...], tuple[int, ...], type[Any], type[Any]]
NEAR: tuple[Size, ...] = (
    ((9, 5), (9, 4), np.int16, np.int16),
    ((2, 16, 3), (2, 16, 8), np.int16, np.int16),
    ((33, 7), (33, 5), np.int8, np.int8),
    ((16, 3), (16, 5), np.int16, np.int8),
)
FAR: tuple[Size, ...] = (
    ((3, 9400), (3, 2), np.int16, np.int16),
    ((16, 9362), (16, 5), np.int16, np.int8),
    ((17, 9363), (17, 4), np.int16, np.int8),
    ((16, 9400), (16, 1), np.int8, np.int8),
    ((16, 5), (16, 9362), np.int16, np.int8),
    ((17, 4), (17, 9363), np.int16, np.int8),
    ((18, 2), (18, 9400), np.int8, np.int8),
)
"""Of one column the elements are so far apart, or farther; too large for a firmware of many layers."""


def strided_products(sizes: tuple[Size, ...] = NEAR) -> list[Layer]:
    draw, layers = Draw(63), []
    for turn, (a, b, x_kind, w_kind) in enumerate(sizes):
        x, w = draw.tensor(x_kind, *a), draw.tensor(w_kind, *b)
        perm = (*range(len(a) - 2), len(a) - 1, len(a) - 2)
        node = MatMul(-7 if x_kind is np.int8 else 0, 3 if w_kind is np.int8 and turn % 2 else 0)
        most = int(np.iinfo(x_kind).max) * int(np.iinfo(w_kind).max) // 2
        rule = "wide" if w_kind is np.int16 else "single"
        scale = requantised(draw, a[-2], most, b[-1], x_kind, 2, rule)[-1:]
        name = f"transposed {x.dtype}{list(a)} x {w.dtype}{list(b)}"
        layers.append(TransposedProduct(name, x, (Step(Transpose(perm)), Step(node, (w,), True), *scale)))
    return layers
