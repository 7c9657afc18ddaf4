"""A random ONNX network that grows node by node, and the lists of layers that it is drawn from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

Array = np.ndarray
Shape = tuple[int, ...]
MAX_ELEMENTS, MAX_PRODUCTS = 3000, 400_000


class Network:
    """Adds random nodes; `rng` decides everything."""

    def __init__(self, rng: np.random.Generator, room: int = 1) -> None:
        self.rng, self.room = rng, room
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.shapes: dict[str, Shape] = {}
        self.values: list[str] = []
        self.products = 0

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def pick(self, *options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]

    def constant(self, data: object, dtype: str = "int64") -> str:
        self.constants[f"c{len(self.constants)}"] = np.asarray(data, dtype)
        return f"c{len(self.constants) - 1}"

    def floats(self, *shape: int, spread: float = 1, middle: float = 0) -> str:
        return self.constant(self.rng.normal(middle, spread, shape), "float32")

    def weights(self, *shape: int, terms: int) -> str:
        by_channel = np.exp(self.rng.normal(0, 0.5, (shape[0], *[1] * (len(shape) - 1))))
        return self.constant(self.rng.normal(0, 1, shape) * by_channel / np.sqrt(max(terms, 1)), "float32")

    def affordable(self, outputs: int, terms: int) -> bool:
        many, products = MAX_ELEMENTS * self.room, self.products + outputs * terms
        if not 0 < outputs <= many or products > MAX_PRODUCTS * self.room:
            return False
        self.products += outputs * terms
        return True

    def add(self, kind: str, inputs: list[str], *shapes: Shape, **attributes: Any) -> str | None:
        """A node whose results have these shapes; None where they are too large or empty."""
        if any(not 0 < np.prod(s) <= MAX_ELEMENTS * self.room for s in shapes):
            return None
        names = [f"v{len(self.shapes) + k}" for k in range(len(shapes))]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        self.shapes.update(zip(names, shapes, strict=True))
        self.values += names
        return names[0]


Layer = Callable[[Network, str, Shape], "str | None"]
IMAGE: list[Layer] = []
ANY: list[Layer] = []


def image(layer: Layer) -> Layer:
    IMAGE.append(layer)
    return layer


def anywhere(layer: Layer) -> Layer:
    ANY.append(layer)
    return layer
