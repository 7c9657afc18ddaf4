"""What the compiler does about a graph grows with its nodes, not with their square: parts of it on chains of
20,000.

Limits are ten times what was measured; a quadratic search takes a hundred times as long.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onnx import helper

from aot_model.ir.graph import Graph, Node
from aot_model.ir.program import Access, Buffer, Call, Function, Param, Program, Role
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.lowering.memory_plan import live_bytes, plan_memory
from aot_model.ops.elementwise import op
from aot_model.ops.registry import load_all
from aot_model.partition.dependence import Dependence
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor

LENGTH = 20_000
FOUR = TensorType(DType.FLOAT32, (4,))


@contextmanager
def seconds(most: float) -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < most


def test_memory() -> None:
    """Live ranges, placement and the table of what is live."""
    buffers = [
        Buffer(f"b{k}", FOUR, Role.INPUT if k == 0 else Role.OUTPUT if k == LENGTH else Role.WORKSPACE)
        for k in range(LENGTH + 1)
    ]
    function = Function(
        "f",
        (Param("x", DType.FLOAT32, Access.READ), Param("y", DType.FLOAT32, Access.WRITE)),
        "    y[0] = x[0];",
    )
    calls = [Call(function, pair, (), f"n{k}", "Relu") for k, pair in enumerate(itertools.pairwise(buffers))]
    program = Program("chain", buffers[:1], buffers[-1:], list(calls), [])
    with seconds(60):
        addresses = plan_memory(program)
        assert addresses.plan.pools["workspace"].size == 32
        assert [n for _, n in live_bytes(program, addresses)][1:-1] == [32] * (LENGTH - 2)


def test_regions() -> None:
    """Neighbours of a chain become one region, one after the other."""
    load_all()
    values = [Value(f"v{k}", FOUR) for k in range(LENGTH + 1)]
    nodes = [Node(op("Relu"), [a], [b], f"n{k}") for k, (a, b) in enumerate(itertools.pairwise(values))]
    with seconds(20):
        dependence = Dependence(Graph("chain", values[:1], values[-1:], nodes))
        for a, b in itertools.pairwise(nodes):
            assert not dependence.makes_cycle([a, b])
            dependence.join([a, b])
        assert dependence.order() == [nodes]


def test_a_model(tmp_path: Path) -> None:
    names = [f"t{k}" for k in range(3000)]
    nodes = [
        helper.make_node(("Relu", "Neg")[k % 2], [a], [b])
        for k, (a, b) in enumerate(itertools.pairwise(names))
    ]
    path = save(model(nodes, [tensor("t0", [4])], [tensor(names[-1], [4])]), tmp_path / "m.onnx")
    for target in ("c", "json,c"):
        with seconds(40):
            compile_model(Request(path, "m", target))
