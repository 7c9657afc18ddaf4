"""Outputs take the place of their inputs, unless memory is smaller where they do not: a large input before
and a large result after a depthwise layer want its two images at opposite ends.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot_model.emit.view import Options
from aot_model.frontends.model import Model
from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.lowering import memory_plan
from aot_model.ops.convolution import Convolution
from aot_model.ops.registry import Build, load_all
from aot_model.ops.requantise import Requantise
from aot_model.pipeline import Compiled, Request, compile_graph
from aot_model.targets.registry import parse_target


def network(edge: int = 48) -> Graph:
    """A convolution of stride 2, a depthwise one, one of twice the channels, and a small end."""
    load_all()
    rng = np.random.default_rng(3)
    graph = Graph("net", [Value("x", TensorType(DType.INT8, (1, edge, edge, 3)))])
    build = Build(graph.nodes, "net")
    [y] = graph.inputs
    layers = ((8, 3, 3, 2, 1), (8, 3, 1, 1, 8), (16, 1, 8, 1, 1), (2, 1, 16, 4, 1))
    for outs, kernel, ins, stride, group in layers:
        w = build.constant(rng.integers(-127, 128, (outs, kernel, kernel, ins)).astype(np.int8))
        pads = (1, 1, 1, 1) if kernel == 3 else (0, 0, 0, 0)
        sums = build(Convolution(pads=pads, strides=(stride, stride), group=group), y, w)
        m, s = build.constant(np.full(outs, 2**30, np.int32)), build.constant(np.full(outs, -7, np.int32))
        y = build(Requantise(0, -128, 127, DType.INT8, "double"), sums, m, s)
    y.name = "y"
    graph.outputs = [y]
    return graph


def compiled() -> Compiled:
    request = Request(Path("net.onnx"), "net", "cortex-m4", library=Options(io="workspace"))
    return compile_graph(request, Model(network(), (), ""), parse_target("cortex-m4", {}))


def test_images_of_a_depthwise_layer_lie_apart_where_that_is_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiled()
    monkeypatch.setattr(memory_plan, "TRIES", 0)
    in_place = compiled()
    assert made.view.workspace_size < in_place.view.workspace_size
    plans = [one.view.addresses.plan for one in (made, in_place)]
    assert plans[0].lower_bound == plans[1].lower_bound <= made.view.workspace_size
    assert plans[0].peak_live == plans[1].peak_live and "lower bound" in plans[0].report()
    assert not plans[0].proved or made.view.workspace_size == plans[0].lower_bound
