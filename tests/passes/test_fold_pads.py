"""Explicit padding goes into the convolution that reads it, where it is the padding of a convolution."""

from __future__ import annotations

import numpy as np
import pytest
from test_passes import keeps_meaning, kinds, real, run, value

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.convolution import Convolution
from aot_model.ops.movement import Pad
from aot_model.ops.registry import Build
from aot_model.passes.fold_pads import fold_pads

PADS: dict[str, tuple[tuple[int, ...], float | None, tuple[int, ...], bool]] = {
    "both ends": ((0, 1, 2, 0, 0, 1, 2, 0), None, (0, 0, 0, 0), True),
    "one end, and its own": ((0, 0, 0, 0, 0, 1, 3, 0), 0.0, (1, 0, 0, 2), True),
    "something else": ((0, 1, 1, 0, 0, 1, 1, 0), 1.0, (0, 0, 0, 0), False),
    "crops what is padded": ((0, 0, -1, 0, 0, 0, 0, 0), None, (0, 1, 1, 1), False),
    "crops": ((0, 2, -1, 0, 0, 0, 0, 0), None, (0, 0, 1, 1), False),
    "channels": ((0, 1, 0, 1, 0, 0, 0, 0), None, (0, 0, 0, 0), False),
    "images": ((1, 1, 0, 0, 0, 0, 0, 0), None, (0, 0, 0, 0), False),
}
"""Pads of the image, with what, pads of the convolution; whether one becomes the other."""


@pytest.mark.parametrize("name", PADS)
def test_pads_of_a_convolution(name: str) -> None:
    around, fill, own, folds = PADS[name]
    x = value("x", (2, 5, 6, 3))
    graph = Graph("pads", [x])
    build = Build(graph.nodes, "pads")
    extra = [] if fill is None else [constant("fill", np.float32(fill))]
    padded = build(Pad(), x, constant("around", np.asarray(around, np.int64)), *extra)
    w = constant("w", real(3, 4, 3, 2, padded.shape[-1]))
    graph.outputs = [build(Convolution(pads=own, strides=(2, 1)), padded, w)]
    keeps_meaning(fold_pads, graph, 1e-5)
    assert ("Pad" not in kinds(graph)) is folds


def test_pads_with_an_input_stay() -> None:
    x, fill = value("x", (1, 4, 4, 2)), value("fill", ())
    graph = Graph("pads", [x, fill])
    build = Build(graph.nodes, "pads")
    padded = build(Pad(), x, constant("around", np.asarray([0, 1, 1, 0] * 2, np.int64)), fill)
    graph.outputs = [build(Convolution(), padded, constant("w", real(3, 1, 3, 3, 2)))]
    keeps_meaning(fold_pads, graph, 1e-5)
    assert kinds(graph) == ["Pad", "Convolution"]


@pytest.mark.parametrize("zero", [0, -7])
def test_pads_with_the_zero_point(zero: int) -> None:
    x = Value("x", TensorType(DType.INT8, (1, 4, 4, 2)))
    graph = Graph("pads", [x])
    build = Build(graph.nodes, "pads")
    padded = build(
        Pad(), x, constant("around", np.asarray([0, 1, 1, 0] * 2, np.int64)), constant("fill", np.int8(-7))
    )
    w = np.arange(18, dtype=np.int8).reshape(1, 3, 3, 2)
    graph.outputs = [build(Convolution(x_zero_point=zero), padded, constant("w", w))]
    data = np.arange(32, dtype=np.int8).reshape(1, 4, 4, 2)
    before = run(graph, [data])
    assert fold_pads(graph) is (zero == -7)
    np.testing.assert_array_equal(run(graph, [data])[0], before[0])


def test_pads_of_infinite_weights_stay() -> None:
    """0 * infinity is what the file says, and no number; a convolution computes no products of its pads."""
    x = value("x", (1, 4, 4, 1))
    graph = Graph("pads", [x])
    build = Build(graph.nodes, "pads")
    padded = build(Pad(), x, constant("around", np.asarray([0, 1, 1, 0] * 2, np.int64)))
    graph.outputs = [build(Convolution(), padded, constant("w", np.full((1, 3, 3, 1), np.inf, np.float32)))]
    assert not fold_pads(graph)


def test_padded_tensor_that_others_read_stays() -> None:
    x = value("x", (1, 4, 4, 2))
    graph = Graph("pads", [x])
    build = Build(graph.nodes, "pads")
    padded = build(Pad(), x, constant("around", np.asarray([0, 1, 1, 0] * 2, np.int64)))
    w = constant("w", real(1, 3, 3, 3, 2))
    graph.outputs = [build(Convolution(), padded, w), build(Convolution(strides=(2, 2)), padded, w), padded]
    keeps_meaning(fold_pads, graph, 1e-5)
    assert kinds(graph).count("Pad") == 1 and all(n.inputs[0] is x for n in graph.nodes)
