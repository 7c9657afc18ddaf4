"""The Graph: what verify() finds, replacement and pruning."""

from __future__ import annotations

import numpy as np
import pytest

from aot_model.ir.graph import Graph, Node, count_parameters
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.elementwise import op
from aot_model.ops.registry import Build, load_all

load_all()


def value(name: str, *shape: int) -> Value:
    return Value(name, TensorType(DType.FLOAT32, shape))


def chain() -> tuple[Graph, Value, Value, Value]:
    """y = Neg(Relu(x))"""
    x = value("x", 2, 3)
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    a = build(op("Relu"), x, output="a")
    y = build(op("Neg"), a, output="y")
    graph.outputs = [y]
    return graph, x, a, y


def test_a_graph_in_order_is_verified() -> None:
    chain()[0].verify()


@pytest.mark.parametrize("damage", ["order", "twice", "type", "missing"])
def test_damage_is_found(damage: str) -> None:
    graph, _, a, y = chain()
    if damage == "order":
        graph.nodes.reverse()
    elif damage == "twice":
        graph.nodes.append(Node(op("Abs"), [a], [y]))
    elif damage == "type":
        y.type = TensorType(DType.INT8, (2, 3))
    else:
        graph.outputs = [value("z", 1)]
    with pytest.raises(AssertionError):
        graph.verify()


def test_replace_follows_chains_of_replacements() -> None:
    graph, x, a, y = chain()
    b = value("b", 2, 3)
    graph.replace_all({a: b, b: x, y: a})
    assert graph.nodes[1].inputs == [x] and graph.outputs == [x]


def test_prune_keeps_what_is_read() -> None:
    graph, _, a, _ = chain()
    graph.outputs = [a]
    assert graph.prune() and [n.kind for n in graph.nodes] == ["Relu"]
    assert not graph.prune()


def test_a_constant_of_two_nodes_counts_once() -> None:
    x, w = value("x", 4), constant("w", np.zeros(4, np.float32))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    graph.outputs = [build(op("Add"), build(op("Mul"), x, w), w)]
    assert count_parameters(graph) == 4
    assert "Mul" in str(graph) and "float32[4]" in str(graph)
