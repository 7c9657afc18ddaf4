"""Weights that several products have are in flash once, although zero points and biases differ: what unrolled
loops need.
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
from aot_model.ops.matmul import MatMul
from aot_model.ops.registry import Build, load_all
from aot_model.ops.requantise import Requantise
from aot_model.pipeline import Request, compile_graph
from aot_model.targets import int8
from aot_model.targets.registry import parse_target

STEPS, SIZE = 6, 32


def constants(zero_points: bool = True) -> int:
    """Bytes of STEPS products with one matrix, each with a zero point and a multiplier of its own."""
    load_all()
    rng = np.random.default_rng(4)
    graph = Graph("net", [Value("x", TensorType(DType.INT8, (1, SIZE)))])
    build = Build(graph.nodes, "net")
    [y] = graph.inputs
    matrix = rng.integers(-127, 128, (SIZE, SIZE)).astype(np.int8)
    shift = build.constant(np.full(SIZE, -9, np.int32))
    for step in range(STEPS):
        sums = build(MatMul(x_zero_point=step if zero_points else 3), y, build.constant(matrix.copy()))
        m = build.constant(np.full(SIZE, 2**30 + step, np.int32))
        y = build(Requantise(step, -128, 127, DType.INT8, "double"), sums, m, shift)
    y.name = "y"
    graph.outputs = [y]
    request = Request(Path("net.onnx"), "net", "cortex-m4", library=Options(io="workspace"))
    return compile_graph(request, Model(graph, (), ""), parse_target("cortex-m4", {})).view.constant_bytes


def test_weights_of_a_loop_that_was_unrolled_are_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    once = constants()
    monkeypatch.setattr(int8, "_common", lambda site: False)
    each = constants()
    assert each > STEPS * SIZE * SIZE
    assert once < SIZE * SIZE + STEPS * (4 * SIZE + 16) + 64, "the starts of the sums are what a step adds"


def test_starts_of_a_loop_that_was_unrolled_are_there_once() -> None:
    """Where steps differ in the multiplier alone, as products of one input with scales of results do."""
    assert constants(zero_points=False) <= SIZE * SIZE + 4 * SIZE + 16 * STEPS
