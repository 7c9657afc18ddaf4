"""Weights with a zero point as signed bytes: the same sums, or the weights stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from aot_model.ir.graph import Graph
from aot_model.ir.operator import Operator
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.matmul import MatMul
from aot_model.ops.registry import Build, load_all
from aot_model.passes.explain import reasons
from aot_model.passes.signed_weights import signed_weights

RNG = np.random.default_rng(8)
LAYERS: dict[str, tuple[type[Operator], tuple[int, ...], tuple[int, ...]]] = {
    "convolution": (Convolution, (1, 5, 6, 3), (4, 2, 3, 3)),
    "transposed": (ConvolutionTranspose, (1, 3, 4, 3), (5, 2, 2, 3)),
    "matrix": (MatMul, (4, 6), (6, 5)),
}


def layer(kind: str, weights: np.ndarray, zero: int) -> tuple[Graph, np.ndarray]:
    load_all()
    operator, shape, _ = LAYERS[kind]
    x = Value("x", TensorType(DType.UINT8, shape))
    graph = Graph("g", [x])
    made = operator(x_zero_point=9, w_zero_point=zero)  # type: ignore[call-arg]
    graph.outputs = [Build(graph.nodes, "n")(made, x, constant("w", weights))]
    return graph, RNG.integers(0, 256, shape).astype(np.uint8)


def sums(graph: Graph, x: np.ndarray) -> np.ndarray:
    """By the operator's definition in numpy; a product by numpy alone."""
    (node,) = graph.nodes
    w = node.inputs[1]
    assert w is not None and w.data is not None
    if isinstance(node.op, MatMul):
        return (x.astype(np.int64) - node.op.x_zero_point) @ (w.data.astype(np.int64) - node.op.w_zero_point)
    return node.op.reference([x, w.data])[0]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(
    ("dtype", "low", "high", "zero"),
    [(np.uint8, 0, 256, 128), (np.uint8, 30, 200, 121), (np.int8, -100, 100, 7), (np.uint8, 0, 128, 0)],
)
def test_same_sums(kind: str, dtype: type, low: int, high: int, zero: int) -> None:
    weights = RNG.integers(low, high, LAYERS[kind][2]).astype(dtype)
    weights.reshape(-1)[:2] = low, high - 1
    graph, x = layer(kind, weights, zero)
    wanted = sums(graph, x)
    assert signed_weights(graph)
    (node,) = graph.nodes
    w = node.inputs[1]
    assert w is not None and w.dtype is DType.INT8 and node.op.w_zero_point == 0
    np.testing.assert_array_equal(sums(graph, x), wanted)
    assert not signed_weights(graph)


@pytest.mark.parametrize(
    ("low", "high", "zero"), [(0, 256, 127), (0, 200, 0), (0, 130, 129), (255, 256, 100)]
)
def test_weights_that_do_not_fit_stay(low: int, high: int, zero: int) -> None:
    weights = RNG.integers(low, high, (6, 5)).astype(np.uint8)
    weights.reshape(-1)[:2] = low, high - 1
    graph, _ = layer("matrix", weights, zero)
    with reasons() as said:
        assert not signed_weights(graph)
    assert graph.nodes[0].inputs[1] is not None and graph.nodes[0].inputs[1].dtype is DType.UINT8
    assert any(f"less {zero}" in line for line in said)


def test_symmetric_weights_are_left_alone() -> None:
    graph, _ = layer("matrix", np.ones((6, 5), np.int8), 0)
    with reasons() as said:
        assert not signed_weights(graph) and not said


def test_layers_share_their_weights() -> None:
    load_all()
    x, w = Value("x", TensorType(DType.UINT8, (4, 6))), constant("w", np.full((6, 6), 130, np.uint8))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    graph.outputs = [build(MatMul(0, zero), x, w) for zero in (128, 128, 127)]
    assert signed_weights(graph)
    first, second, third = (n.inputs[1] for n in graph.nodes)
    assert first is second and third is not first
