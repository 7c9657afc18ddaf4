"""Multiplications by constants that go into weights: the same numbers, and nothing is multiplied
afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from test_passes import keeps_meaning, kinds, real, run, value

from aot_model.ir.graph import Graph
from aot_model.ir.operator import Operator
from aot_model.ir.values import Value, constant
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.registry import Build
from aot_model.passes.fuse_affine import fuse_affine

SUMS: dict[str, tuple[Operator, tuple[int, ...], tuple[int, ...]]] = {
    "matrix": (MatMul(), (4, 6), (6, 5)),
    "matrices": (MatMul(), (2, 4, 6), (2, 6, 5)),
    "convolution": (Convolution(), (1, 5, 6, 3), (5, 2, 3, 3)),
    "line": (Convolution((1,), (0, 0), (1,)), (1, 7, 3), (5, 2, 3)),
    "grouped": (Convolution(group=2), (1, 5, 6, 4), (6, 2, 3, 2)),
    "depthwise": (Convolution(group=5), (1, 5, 6, 5), (5, 3, 3, 1)),
    "transposed": (ConvolutionTranspose(strides=(2, 2)), (1, 3, 4, 3), (5, 2, 2, 3)),
}
"""An operator, the shapes of its input and of its weights."""


def _network(kind: str, *chain: tuple[str, Any]) -> Graph:
    operator, shape, weights = SUMS[kind]
    x = value("x", shape)
    graph = Graph("affine", [x])
    build: Build = Build(graph.nodes, "affine")
    y: Value = build(operator, x, constant("w", real(1, *weights)))
    for k, (name, of_channels) in enumerate(chain):
        y = build(op(name), y, constant(f"k{k}", of_channels(y.shape[-1])))
    graph.outputs = [y]
    return graph


def _per_channel(seed: int, *axes: int) -> Any:
    return lambda channels: real(seed, *axes, channels)


def _single(channels: int) -> np.ndarray:
    return np.asarray(1.75, np.float32)


@pytest.mark.parametrize(
    "factor", [_per_channel(5), _per_channel(6, 1), _single], ids=["channels", "row", "single"]
)
@pytest.mark.parametrize("kind", SUMS)
def test_a_factor_goes_into_the_weights(kind: str, factor: Any) -> None:
    graph = _network(kind, ("Mul", factor))
    keeps_meaning(fuse_affine, graph, tolerance=1e-5)
    assert len(graph.nodes) == 1


@pytest.mark.parametrize("kind", SUMS)
@pytest.mark.parametrize("offset", [_per_channel(7), _single], ids=["channels", "single"])
def test_a_factor_moves_through_an_addition(kind: str, offset: Any) -> None:
    """Batch normalisation: bias, factor, offset."""
    graph = _network(kind, ("Add", offset), ("Mul", _per_channel(8)), ("Add", _per_channel(9)))
    keeps_meaning(fuse_affine, graph, tolerance=1e-5)
    assert "Mul" not in kinds(graph)


@pytest.mark.parametrize(
    "factor",
    [lambda c: real(3, 4, 1), lambda c: real(3, 4, c), lambda c: real(3, 2, 1, 1)],
    ids=["rows", "elements", "more axes"],
)
def test_a_factor_that_is_no_number_by_channel_stays(factor: Any) -> None:
    graph = _network("matrix", ("Mul", factor))
    keeps_meaning(fuse_affine, graph)
    assert kinds(graph) == ["MatMul", "Mul"]


def test_a_product_with_a_vector_has_no_channels() -> None:
    """Its result has one axis fewer: a factor of that axis is one by row."""
    x = value("x", (5, 6))
    graph = Graph("vector", [x])
    build = Build(graph.nodes, "vector")
    graph.outputs = [
        build(op("Mul"), build(MatMul(), x, constant("w", real(1, 6))), constant("m", real(2, 5)))
    ]
    keeps_meaning(fuse_affine, graph)
    assert kinds(graph) == ["MatMul", "Mul"]


@pytest.mark.parametrize("read", ["sum", "total"])
def test_what_others_read_keeps_its_value(read: str) -> None:
    graph = _network("matrix", ("Add", _per_channel(7)), ("Mul", _per_channel(8)))
    inner: Sequence[Value] = graph.nodes[0].outputs if read == "sum" else graph.nodes[1].outputs
    graph.outputs = [*graph.outputs, *inner]
    keeps_meaning(fuse_affine, graph, tolerance=1e-5)


def test_without_weights_a_factor_stays_behind_an_addition() -> None:
    """Inputs less their mean, over their spread: before the addition, rounding would be larger than all."""
    x = value("x", (2, 5))
    graph = Graph("scaled", [x])
    build = Build(graph.nodes, "scaled")
    mean, factor = np.asarray([-1e6] * 5, np.float32), real(4, 5)
    graph.outputs = [build(op("Mul"), build(op("Add"), x, constant("b", mean)), constant("m", factor))]
    fuse_affine(graph)
    near = np.asarray(np.arange(-5, 5).reshape(2, 5) / 4 + 1e6, np.float32)
    assert np.array_equal(run(graph, [near])[0], (near + mean) * factor)


@pytest.mark.parametrize(
    ("offset", "factor"), [(1.0, np.inf), (1.0, 1e38), (1e30, 1e10)], ids=["factor", "weights", "offset"]
)
def test_what_would_be_infinite_stays(offset: float, factor: float) -> None:
    def few(number: float) -> Any:
        return lambda channels: np.asarray([1, number, *[2] * (channels - 2)], np.float32)

    graph = _network("matrix", ("Add", few(offset)), ("Mul", few(factor)))
    weights = graph.nodes[0].inputs[1]
    assert weights is not None and weights.data is not None
    weights.data *= np.float32(100)
    fuse_affine(graph)
    assert kinds(graph) == ["MatMul", "Add", "Mul"]


@pytest.mark.parametrize("kind", ["convolution", "matrix"])
def test_additions_become_one(kind: str) -> None:
    """Two normalisations behind a bias: the first leaves an addition, which the second meets."""
    chain = [("Add", _per_channel(k) if k % 2 else _single) for k in range(4)]
    graph = _network(kind, *chain, ("Mul", _per_channel(9)), ("Add", _per_channel(10)))
    total = graph.nodes[0].kind
    keeps_meaning(fuse_affine, graph, tolerance=1e-5)
    assert kinds(graph) == [total, "Add"]


def test_additions_whose_sum_is_infinite_stay_apart() -> None:
    def large(channels: int) -> np.ndarray:
        return np.full(channels, 3e38, np.float32)

    graph = _network("matrix", ("Add", large), ("Add", large))
    fuse_affine(graph)
    assert kinds(graph) == ["MatMul", "Add", "Add"]


def test_additions_of_different_axes_stay_apart() -> None:
    """As one they would be a constant of all of these axes."""
    graph = _network("matrix", ("Add", _per_channel(1)))
    rows = constant("rows", real(6, *graph.outputs[0].shape[:-1], 1))
    graph.outputs = [Build(graph.nodes, "more")(op("Add"), graph.outputs[0], rows)]
    keeps_meaning(fuse_affine, graph, tolerance=1e-6)
    assert kinds(graph) == ["MatMul", "Add", "Add"]
