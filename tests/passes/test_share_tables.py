"""Tables of the logistic curve, each with its own scale, become the curve where all entries are its."""

from __future__ import annotations

import numpy as np
import pytest

from aot_model.ir.graph import Graph, Node
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.quantised_curves import Curve
from aot_model.ops.quantised_tables import Lookup, lookup
from aot_model.ops.registry import Build, load_all
from aot_model.passes.explain import reasons
from aot_model.passes.fold_constants import compute
from aot_model.passes.manager import run_passes
from aot_model.passes.share_tables import share_tables
from aot_model.targets.registry import parse_target

STEPS = 24


def levels(scale: float, zero_point: int, hyperbolic: bool, low: int = -128) -> np.ndarray:
    """Of all 256 arguments, as the formats have them: steps of 1/256 from 0, or of 1/128 from -1."""
    x = scale * (np.arange(low, low + 256) - zero_point)
    y = 128 + 128 * np.tanh(x) if hyperbolic else 256 / (1 + np.exp(-x))
    return np.clip(np.floor(y + 0.5), 0, 255).astype(int)


def tables(count: int = STEPS, dtype: DType = DType.INT8) -> list[np.ndarray]:
    rng = np.random.default_rng(8)
    low = int(dtype.limits[0])
    return [levels(rng.uniform(0.004, 0.12), int(rng.integers(low, low + 256)), k % 3 == 2, low)
            for k in range(count)]  # fmt: skip


def graph_of(values: list[np.ndarray], dtype: DType = DType.INT8, size: int = 16) -> Graph:
    load_all()
    graph = Graph("g", [Value(f"x{k}", TensorType(dtype, (1, size))) for k in range(len(values))])
    build = Build(graph.nodes, "n")
    low = int(dtype.limits[0])
    graph.outputs = [build(lookup(dtype, [int(v) + low for v in t]), x)
                     for t, x in zip(values, graph.inputs, strict=True)]  # fmt: skip
    return graph


def evaluated(node: Node, dtype: DType) -> np.ndarray:
    """The node's expression for every argument."""
    every = np.arange(dtype.limits[0], int(dtype.limits[1]) + 1).astype(dtype.numpy)
    made = Value("y", TensorType(node.outputs[0].dtype, every.shape))
    found = compute(Node(node.op, [constant("every", every)], [made], node.name))
    assert found is not None
    return found[0].astype(int) - int(dtype.limits[0])


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_every_entry_is_the_same(dtype: DType) -> None:
    wanted = tables(96, dtype)
    graph = graph_of(wanted, dtype)
    assert share_tables(graph)
    assert sum(isinstance(n.op, Curve) for n in graph.nodes) >= 94
    for node, table in zip(graph.nodes, wanted, strict=True):
        assert np.array_equal(evaluated(node, dtype), table), node
    assert not share_tables(graph)


def test_falling_curves_and_scales_at_the_ends() -> None:
    """What a step is: nearly nothing, or from one end of the curve to the other."""
    odd = [levels(-0.05, 3, False), levels(1e-6, 0, False), levels(3.0, 10, True), levels(0.4, -128, False),
           np.zeros(256, int), np.full(256, 255)]  # fmt: skip
    graph = graph_of([*odd, *tables()])
    assert share_tables(graph)
    for node, table in zip(graph.nodes, odd, strict=False):
        assert np.array_equal(evaluated(node, DType.INT8), table)
    assert isinstance(graph.nodes[0].op, Curve)


def test_one_entry_that_is_not_the_curves() -> None:
    changed = tables()
    changed[5][128] += 2
    graph = graph_of(changed)
    with reasons() as said:
        assert share_tables(graph)
    assert any("make its table the logistic curve" in line for line in said)
    assert isinstance(graph.nodes[5].op, Lookup)
    assert np.array_equal(evaluated(graph.nodes[5], DType.INT8), changed[5])
    assert sum(isinstance(n.op, Lookup) for n in graph.nodes) == 1


def test_tables_stay_where_they_are_few_or_much_read() -> None:
    few, large = graph_of(tables(12)), graph_of(tables(), size=257)
    equal = graph_of(tables(1) * STEPS, size=1)
    for graph in (few, large, equal):
        assert not share_tables(graph) and all(isinstance(n.op, Lookup) for n in graph.nodes)


def test_tables_of_wider_results_stay() -> None:
    """Their entries less the least of the type would be the curve's."""
    graph = graph_of(tables())
    for node, levels_of_one in zip(graph.nodes, tables(), strict=True):
        node.op = lookup(DType.INT8, [int(v) - 2**15 for v in levels_of_one], DType.INT16)
        node.outputs[0].type = TensorType(DType.INT16, node.outputs[0].shape)
    assert not share_tables(graph)


@pytest.mark.parametrize(("target", "wish", "shared"), [
    ("cortex-m4", "balanced", True), ("cortex-m4", "speed", False), ("cortex-m55", "balanced", False),
    ("cortex-m55", "size", True), ("cortex-m55", "speed", False),
])  # fmt: skip
def test_what_the_target_would_rather_have(target: str, wish: str, shared: bool) -> None:
    graph = graph_of(tables())
    run_passes(graph, parse_target(target, {"optimize": wish}))
    assert any(isinstance(n.op, Curve) for n in graph.nodes) == shared
