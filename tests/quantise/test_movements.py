"""Pieces of a tensor and zeros around it are in its scale: nothing becomes float between integer kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from networks import Builder, data, saved
from test_quantise import decibels, operators, run

from aot_model.quantise.choose import choose
from aot_model.quantise.network import Network
from aot_model.quantise.prepare import prepared, read_float
from aot_model.quantise.session import Job, quantise


def branches(fill: float | None, mode: str) -> Builder:
    """Halves of a padded tensor, a convolution for each."""
    b = Builder(3)
    pads = b.constant(np.array([0, 0, 1, 0, 0, 0, 0, 1]))
    fills = [] if fill is None else [b.constant(np.float32(fill))]
    x = b("Pad", b("Relu", b.conv("x", 8, 3)), pads, *fills, mode=mode)
    for name in ("u", "v"):
        b.conv(name, 4, 4)
    b.nodes[-2:-2] = [b.split(x, ("u", "v"))]
    b("Concat", b.nodes[-2].output[0], b.nodes[-1].output[0], output="y", axis=1)
    return b


@pytest.mark.parametrize(
    ("fill", "mode", "floats"),
    [(None, "constant", 0), (0.0, "constant", 0), (None, "reflect", 0), (0.5, "constant", 1)],
)
def test_pieces_and_padding(fill: float | None, mode: str, floats: int, tmp_path: Path) -> None:
    model = branches(fill, mode).model({"x": (1, 3, 8, 8)}, {"y": (1, 8, 9, 9)}, opset=18)
    file, samples = saved(tmp_path, model)
    network = Network(prepared(read_float(file, {}, {})[0], tmp_path, ""))
    groups = choose(network).groups
    assert groups["u"] == groups["v"]
    padded = next(node.input[0] for node in network.model.graph.node if node.op_type == "Pad")
    assert (groups[padded] == groups["u"]) is (fill != 0.5), "0.5 may be beyond the range"
    made = quantise(Job(file, samples, method="minmax", wide=0), tmp_path)
    inside = operators(made.model, tmp_path)[1:-1]
    assert sum(kind == "QuantizeLinear" for kind in inside) == floats, inside
    fresh = data(model, 20, seed=5)
    want = run(model, fresh)
    assert decibels(run(made.model, fresh), want) > 25
    assert made.library is not None and not any("far from" in note for note in made.notes)
