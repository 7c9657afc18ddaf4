"""Removing known channels changes no bit of the result, whatever they are: zero filters, clamps, unread
channels.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aot_model.emit.render import header_and_source
from aot_model.emit.view import ModelView, Options
from aot_model.host import program as host_run
from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.lowering.lower import lower
from aot_model.lowering.memory_plan import plan_memory
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.pool import Pool
from aot_model.ops.ranges import channel_ranges
from aot_model.ops.registry import Build, load_all
from aot_model.ops.requantise import Requantise
from aot_model.passes.dead_channels import dead_channels
from aot_model.targets.registry import parse_target

SIZE = 5
load_all()


def network(seed: int, pads: bool, zero_point: int) -> Graph:
    """Convolution, depthwise, pointwise, pooling, matrix product; many filters and some columns are zero."""
    rng = np.random.default_rng(seed)
    graph = Graph("net", [Value("x", TensorType(DType.INT8, (1, SIZE, SIZE, 3)))])
    build = Build(graph.nodes, "n")

    def weights(*shape: int, dead: float) -> np.ndarray:
        w = rng.integers(-127, 128, shape)
        w[rng.random(shape[0]) < dead] = 0
        w[..., rng.random(shape[-1]) < 0.2] = 0
        return np.asarray(w, dtype=np.int8)

    def finish(acc: Value, low: int) -> Value:
        c = acc.shape[-1]
        acc = build(op("Add"), acc, build.constant(rng.integers(-20000, 20000, c), DType.INT32))
        m = build.constant(rng.integers(2**30, 2**31, c), DType.INT32)
        s = build.constant(rng.integers(-9, -6, c), DType.INT32)
        return build(Requantise(zero_point=zero_point, low=max(low, zero_point), high=127), acc, m, s)

    edge = (1, 1, 1, 1) if pads else (0, 0, 0, 0)
    y = finish(
        build(
            Convolution((1, 1), edge, x_zero_point=3),
            graph.inputs[0],
            build.constant(weights(12, 3, 3, 3, dead=0.5)),
        ),
        -128,
    )
    y = finish(
        build(
            Convolution((1, 1), edge, group=12, x_zero_point=zero_point),
            y,
            build.constant(weights(12, 3, 3, 1, dead=0.3)),
        ),
        -128,
    )
    y = finish(
        build(Convolution(x_zero_point=zero_point), y, build.constant(weights(9, 1, 1, 12, dead=0.4))), -128
    )
    y = build(Pool("average", y.shape[1:3], (1, 1)), y)
    flat = build(op_view(y.shape[-1]), y)
    acc = build(MatMul(x_zero_point=zero_point), flat, build.constant(weights(9, 4, dead=0.2)))
    graph.outputs = [finish(acc, -128)]
    return graph


def op_view(channels: int):  # type: ignore[no-untyped-def]
    from aot_model.ops.views import ReshapeTo

    return ReshapeTo((1, channels))


def outputs(graph: Graph, inputs: list[np.ndarray], folder: Path) -> list[np.ndarray]:
    target = parse_target("c")
    program = lower(graph, target)
    view = ModelView.of("net", program, plan_memory(program), target, Options(metadata="none"), "net", "")
    built = host_run.build(
        view, dict(zip(("net.h", "net.c"), header_and_source(view), strict=True)), folder, ["-O0"]
    )
    return [row[0] for row in built.run([[x] for x in inputs])]


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), pads=st.booleans(), zero_point=st.sampled_from([-128, -5, 20]))
def test_same_bytes(seed: int, pads: bool, zero_point: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    inputs = [np.asarray(rng.integers(-128, 128, (1, SIZE, SIZE, 3)), dtype=np.int8) for _ in range(3)]
    inputs += [np.full((1, SIZE, SIZE, 3), v, dtype=np.int8) for v in (-128, 127)]
    expected = outputs(network(seed, pads, zero_point), inputs, tmp_path)
    graph = network(seed, pads, zero_point)
    dead_channels(graph)
    graph.prune()
    graph.verify()
    for a, b in zip(outputs(graph, inputs, tmp_path), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_ranges_hold_for_every_value(tmp_path: Path) -> None:
    """No intermediate value leaves its interval."""
    graph = network(11, True, -5)
    inner = [v for n in graph.nodes for v in n.outputs if v.dtype is DType.INT8]
    graph.outputs = inner
    ranges = channel_ranges(graph)
    target = parse_target("c")
    program = lower(graph, target)
    view = ModelView.of("net", program, plan_memory(program), target, Options(metadata="none"), "net", "")
    built = host_run.build(
        view, dict(zip(("net.h", "net.c"), header_and_source(view), strict=True)), tmp_path, ["-O0"]
    )
    rng = np.random.default_rng(1)
    rows = built.run(
        [[np.asarray(rng.choice([-128, 127, 0], (1, SIZE, SIZE, 3)), dtype=np.int8)] for _ in range(8)]
    )
    for row in rows:
        for value, data in zip(inner, row, strict=True):
            flat = data.reshape(-1, value.shape[-1]).astype(np.int64)
            assert (flat >= ranges[value].low).all()
            assert (flat <= ranges[value].high).all()


@pytest.mark.parametrize("pads", [False, True])
def test_something_is_removed(pads: bool) -> None:
    """Filters of zeros go, and with them the depthwise channels that follow; no layer keeps fewer than four
    channels.
    """
    graph = network(3, pads, -128)
    before = [n.outputs[0].shape[-1] for n in graph.nodes]
    assert dead_channels(graph)
    after = [n.outputs[0].shape[-1] for n in graph.nodes]
    assert sum(after) < sum(before)
    assert min(after) >= 4
