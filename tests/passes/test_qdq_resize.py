"""Weights of a Resize as whole multiples of a unit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from qdq_network import Net
from qdq_operators import resized

from aot_model.frontends.onnx import read_onnx
from aot_model.passes.fuse_qdq import fuse_qdq
from aot_model.passes.qdq_resize import MOST_BITS, whole_weights
from onnx_models import save

HALVES = [[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]]
THIRDS = [[1 / 3, 2 / 3], [1.0, 0.0]]
CUBIC = [[-0.0703125, 0.8671875, 0.2265625, -0.0234375]]


@pytest.mark.parametrize(
    ("weights", "unit"), [([[1.0]], 1), (HALVES, 4), (THIRDS, 3), (CUBIC, 128), ([[1 / 128, 127 / 128]], 128)]
)
@pytest.mark.parametrize("rounded", [False, True])
def test_the_fewest_units_that_are_exact(weights: list[list[float]], unit: int, rounded: bool) -> None:
    real = np.asarray(weights, np.float32)
    found = whole_weights(real, 7, rounded)
    assert found is not None and found[1] == unit and found[0].dtype == np.int32
    np.testing.assert_allclose(found[0], np.asarray(weights) * unit, atol=1e-4)


def test_others_are_rounded_where_that_is_allowed() -> None:
    share = np.random.default_rng(1).uniform(0, 1, 9).astype(np.float32)
    real = np.stack([share, 1 - share], 1)
    assert whole_weights(real, 11, rounded=False) is None
    found = whole_weights(real, 11, rounded=True)
    assert found is not None and found[1] == 1 << 11
    assert (found[0].sum(1) == 1 << 11).all()
    assert np.abs(found[0] / found[1] - real).max() <= 2.0**-11
    assert np.abs(found[0] / found[1] - real).mean() <= 2.0**-12


@pytest.mark.parametrize("weights", [np.zeros((0, 2)), np.array([[0.5, 0.4]]), np.array([[np.nan, 1.0]])])
def test_what_is_no_share_of_one(weights: np.ndarray) -> None:
    assert whole_weights(weights, 11, rounded=True) is None


def test_one_axis_tries_no_more_units_than_two(tmp_path: Path) -> None:
    """By 1.7113 no unit is exact; the compiler took minutes to try millions."""
    net = Net("int8", 1)
    proto = net.proto(net.quantised(resized(net, "linear", [1, 1.7113])))
    graph = read_onnx(save(proto, tmp_path / "net.onnx")).graph
    assert fuse_qdq(graph)
    (made,) = [node for node in graph.nodes if node.kind == "Interpolation"]
    weights = made.inputs[2]
    assert weights is not None and weights.data is not None
    assert weights.data.sum(1).tolist() == [1 << MOST_BITS] * len(weights.data)
