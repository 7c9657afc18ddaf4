"""Transposes move as long as there are moves, but not for ever."""

from __future__ import annotations

import importlib

import pytest

from aot_model.ir.graph import Graph, Node
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.elementwise import op
from aot_model.ops.registry import Build

move_transposes = importlib.import_module("aot_model.passes.move_transposes")


def test_a_rule_that_always_finds_something_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 0

    def always(sweep: object, node: Node) -> list[Node]:
        nonlocal turns
        turns += 1
        assert turns < 10_000, "no end"
        return [node]

    monkeypatch.setattr(move_transposes, "_rewritten", always)
    x = Value("x", TensorType(DType.FLOAT32, (2, 3)))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    graph.outputs = [build(op("Relu"), build(op("Abs"), x))]
    assert move_transposes.move_transposes(graph) and turns
    assert [n.kind for n in graph.nodes] == ["Abs", "Relu"]
