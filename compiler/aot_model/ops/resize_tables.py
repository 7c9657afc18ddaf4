"""Numbers of Resize's tables: weights of neighbours by their distance, and which is the nearest.

Source: ONNX operator specification (Resize).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aot_model.ir.operator import OperatorError

Array = np.ndarray


def cubic(distance: Array, a: float) -> Array:
    """Keys' kernel."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    weights: Array = np.where(d <= 1, near, np.where(d < 2, far, 0.0))
    return weights


def linear(distance: Array) -> Array:
    weights: Array = np.clip(1 - np.abs(distance), 0, 1)
    return weights


def between(x: Array, n: int) -> tuple[Array, Array]:
    """The two neighbours of positions in float32, and their weights as ONNX Runtime has them: halves of the
    last element behind it, which is a sum of other numbers than the element alone.
    """
    at = np.clip(x, 0, n - 1).astype(np.float32)
    first = at.astype(np.int32)
    second = np.minimum(first + 1, n - 1)
    beyond = at - first.astype(np.float32)
    if not beyond.any():
        return first[:, None], np.ones((len(x), 1))
    share = np.where(first == second, np.float32(0.5), beyond)
    near = np.where(first == second, np.float32(0.5), second.astype(np.float32) - at)
    return np.stack([first, second], 1), np.stack([near, share], 1)


def single(x: float) -> float:
    """Rounded to float32; what is beyond is infinite."""
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def nearest(x: Array, mode: str) -> Array:
    """Rounding of positions."""
    rules: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda v: np.ceil(v - 0.5), "round_prefer_ceil": lambda v: np.floor(v + 0.5),
        "floor": np.floor, "ceil": np.ceil,
    }  # fmt: skip
    if mode not in rules:
        raise OperatorError(f"unknown nearest_mode '{mode}'")
    return np.asarray(rules[mode](x))
