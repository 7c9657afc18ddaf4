"""Sums of many floats, and the normalisations that divide by what is left when a mean of them is taken
away: close to what doubles give, also where an input hardly varies. ONNX Runtime and the standard's functions
are no oracles there: their variance of such an input is noise, or not a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from aot_model.c.statements import LONG_SUM
from batch import Case, run_cases
from onnx_models import model, tensor

Array = np.ndarray
SHAPES = ((1, 2, 61, 67), (1, 2, 4000), (1, 1, 3, 40, 50), (2, 3, 997, 2), (1, 2, LONG_SUM), (1, 2, 3, 1021))
"""Loops of two sums, of turns that divide them and that do not, outside, inside, and at the limit."""
INPUTS = ("one number", "noise on a large number")


def drawn(kind: str, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape))
    noise = np.random.default_rng(count).normal(0, 1, count)
    values = np.full(count, 10.3) if kind == "one number" else 1000.3 + noise
    return values.reshape(shape).astype(np.float32)


def normalised(x: Array, shape: tuple[int, ...], epsilon: float = 1e-5) -> Array:
    """The last axis of x in this shape, by doubles."""
    wide = x.astype(np.float64).reshape(shape)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    result: Array = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
    return result.reshape(x.shape)


def one(
    op: str, x: Array, constants: dict[str, Array], opset: int = 21, **attributes: Any
) -> onnx.ModelProto:
    node = helper.make_node(op, ["x", *constants], ["y"], **attributes)
    return model([node], [tensor("x", x.shape)], [tensor("y", None)], constants, opset)


def scale(count: int) -> dict[str, Array]:
    return {"s": np.ones(count, np.float32), "b": np.zeros(count, np.float32)}


def rows(kind: str, x: Array) -> list[tuple[str, onnx.ModelProto, Array, float]]:
    """Name, model, what doubles give, and how far off it may be."""
    images, channels = x.shape[:2]
    axes = {"axes": np.asarray(range(2, x.ndim), np.int64)}
    mean = x.astype(np.float64).mean(axis=tuple(range(2, x.ndim)))
    off = 8e-3 if kind == "one number" else 5e-4
    """Of a mean a few units in the last place, divided by the deviation: the root of epsilon, or 1."""
    by_channel, whole = (images, channels, -1), (images, 1, -1)
    return [
        ("InstanceNormalization", one("InstanceNormalization", x, scale(channels)),
         normalised(x, by_channel), off),
        ("GroupNormalization", one("GroupNormalization", x, scale(channels), num_groups=1),
         normalised(x, whole), off),
        ("GroupNormalization of opset 18",
         one("GroupNormalization", x, scale(channels), 18, num_groups=channels),
         normalised(x, by_channel), off),
        ("LayerNormalization", one("LayerNormalization", x, {"s": np.ones(x.shape[2:], np.float32)}, axis=2),
         normalised(x, by_channel), off),
        ("MeanVarianceNormalization",
         one("MeanVarianceNormalization", x, {}, axes=list(range(2, x.ndim))),
         normalised(x, by_channel, 1e-18), np.inf if kind == "one number" else off),
        ("ReduceMean", one("ReduceMean", x, axes, keepdims=0), mean, float(mean.max()) * 2e-6),
        ("ReduceL2", one("ReduceL2", x, axes, keepdims=0),
         np.sqrt((x.astype(np.float64)**2).sum(axis=tuple(range(2, x.ndim)))),
         float(mean.max()) * np.sqrt(x.size) * 2e-6),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", INPUTS)
def test_like_doubles(kind: str) -> None:
    found = [(shape, x, *row) for shape in SHAPES for x in (drawn(kind, shape),) for row in rows(kind, x)]
    cases = [Case(f"{name} {shape}", proto, (x,)) for shape, x, name, proto, _, _ in found]
    for (*_, wanted, error), case, outcome in zip(found, cases, run_cases(cases, "c"), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        got = outcome.outputs[0].astype(np.float64)
        assert np.isfinite(got).all(), case.name
        assert np.abs(got - wanted.reshape(got.shape)).max() <= error, (
            f"{case.name}: {np.abs(got - wanted.reshape(got.shape)).max()} > {error}"
        )
