"""Data that are much too small, told by first layers' biases; what cannot be known is not told."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from networks import Array, Builder

from aot_model.quantise.data import Samples
from aot_model.quantise.statistics import doubts_of_biases, moved

IMAGE = (1, 3, 6, 6)


def convolution(bias: float) -> onnx.ModelProto:
    b = Builder(1)
    weights = b.constant(b.rng.normal(0, 0.2, (8, 3, 3, 3)).astype(np.float32))
    x = b("Conv", "x", weights, b.constant(np.full(8, bias, np.float32)), pads=[1] * 4)
    b("Identity", b("Relu", x), output="y")
    return onnx.shape_inference.infer_shapes(b.model({"x": IMAGE}, {"y": (1, 8, 6, 6)}))


def product(kind: str) -> onnx.ModelProto:
    """A product of the flattened image, its bias in it or in an Add."""
    b = Builder(2)
    weights = b.constant(b.rng.normal(0, 0.2, (108, 4)).astype(np.float32))
    bias, flat = b.constant(np.full(4, 0.5, np.float32)), b("Flatten", "x")
    if kind == "Gemm":
        b("Gemm", flat, weights, bias, output="y")
    else:
        b("Add", bias, b("MatMul", flat, weights), output="y")
    return onnx.shape_inference.infer_shapes(b.model({"x": IMAGE}, {"y": (1, 4)}))


def samples(scale: float, count: int = 20) -> Samples:
    x = np.random.default_rng(4).normal(0, 1, (count, *IMAGE)) * scale
    return Samples({"x": x.astype(np.float32)}, None, (), "")


def said(model: onnx.ModelProto, scale: float, count: int = 20) -> list[str]:
    return doubts_of_biases(model, samples(scale, count), "")


@pytest.mark.parametrize("model", [convolution(0.5), product("Gemm"), product("MatMul")])
def test_much_too_small(model: onnx.ModelProto) -> None:
    assert said(model, 1 / 255) and "of its biases only" in said(model, 1 / 255)[0]
    assert not said(model, 1) and not said(model, 1 / 3) and not said(model, 255)
    assert not said(model, 1 / 255, count=4), "four samples say nothing"


def test_without_biases_nothing_is_known() -> None:
    assert not said(convolution(0.0), 1 / 255)


def test_the_share_beside_numpy() -> None:
    """A convolution of 1x1 is a product of matrices."""
    b = Builder(3)
    weights, bias = b.rng.normal(0, 1, (4, 3, 1, 1)), b.rng.normal(0, 1, 4)
    names = [b.constant(v.astype(np.float32)) for v in (weights, bias)]
    b("Conv", "x", *names, output="y")
    model = onnx.shape_inference.infer_shapes(b.model({"x": IMAGE}, {"y": (1, 4, 6, 6)}))
    x: Array = samples(1).inputs["x"][:, 0].transpose(0, 2, 3, 1).reshape(-1, 3)
    wanted = np.sqrt((x @ weights[:, :, 0, 0].T).var(axis=0).mean() / np.square(bias).mean())
    assert moved(model, samples(1), "") == pytest.approx([wanted], rel=1e-4)


def test_one_input_that_moves_is_enough() -> None:
    b = Builder(4)
    both = []
    for name, size in (("x", 1.0), ("small", 1e-4)):
        weights = b.constant((b.rng.normal(0, 1, (4, 3, 1, 1)) * size).astype(np.float32))
        both.append(b("Conv", name, weights, b.constant(np.ones(4, np.float32))))
    b("Add", *both, output="y")
    model = b.model({"x": IMAGE, "small": IMAGE}, {"y": (1, 4, 6, 6)})
    model = onnx.shape_inference.infer_shapes(model)
    x = samples(1).inputs["x"]
    for scale, told in ((1, False), (1e-3, True)):
        both_given = Samples({"x": x * np.float32(scale), "small": x}, None, (), "")
        assert bool(doubts_of_biases(model, both_given, "")) == told
