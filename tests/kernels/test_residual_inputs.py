"""Convolutions to whose results their own input is added, which is read again where a result is stored: the
result lies as close before it as blocks of pixels allow, wherever the planner finds that it may.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from draw import Draw, requantised
from drawn_layers import BOTH, TABLE
from layer import Layer, Step
from test_table import problems

from aot_model.ir.graph import Graph, Value
from aot_model.ir.types import DType, TensorType
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.pool import Pool
from aot_model.ops.quantised_tables import Lookup
from aot_model.ops.registry import OPERATORS, Build
from batch import run_cases
from qemu import available

SHAPES: tuple[tuple[tuple[int, ...], int, int, int], ...] = (
    ((1, 5, 7, 8), 1, 1, 8),
    ((1, 6, 9, 6), 1, 1, 6),
    ((1, 1, 23, 40), 1, 1, 40),
    ((2, 5, 7, 8), 3, 1, 8),
    ((1, 7, 6, 12), 3, 2, 12),
    ((1, 9, 5, 12), 3, 12, 12),
)
"""Input, kernel, groups, output channels."""
POOL = Pool("max", (1, 2))


@dataclass(frozen=True)
class Added(Layer):
    """The last step takes what the first one gave once more."""

    def expected(self) -> np.ndarray:
        z = Layer("", self.x, self.steps[:1]).expected()
        y = Layer("", z, self.steps[1:-1]).expected()
        return Layer("", y, (Step(self.steps[-1].operator, (z,)),)).expected()

    def graph(self) -> Graph:
        x = Value("x", TensorType(DType.of(self.x.dtype), self.x.shape))
        graph = Graph("added", [x])
        build = Build(graph.nodes, "added")
        y = z = build(self.steps[0].operator, x)
        for step in self.steps[1:-1]:
            y = build(step.operator, y, *map(build.constant, step.others))
        y = build(self.steps[-1].operator, y, z)
        y = build(POOL, y)  # so that the sum lies in the workspace, too
        y.name = "y"
        graph.outputs = [y]
        return graph


def layers(kind: type[Any]) -> list[Added]:
    draw, found = Draw(83), []
    for turn, (shape, kernel, groups, outs) in enumerate(SHAPES):
        pads, depth = (kernel // 2,) * 4, kernel * kernel * shape[-1] // groups
        x = draw.tensor(kind, *shape)
        w = draw.tensor(
            np.float32 if kind is np.float32 else np.int8, outs, kernel, kernel, shape[-1] // groups
        )
        first, last = OPERATORS["", "Relu"](), op("Add")
        after: tuple[Step, ...] = ()
        if kind is np.int8:
            first, last, after = Lookup(TABLE), BOTH, draw.requantised(depth, outs, kind, turn)
        elif kind is np.int16:
            after = requantised(draw, depth, 1 << 22, outs, kind, turn, "wide")
        node = Convolution(pads=pads, group=groups, x_zero_point=-7 if kind is np.int8 else 0)
        steps = (Step(first), Step(node, (w,)), *after, Step(last))
        found.append(Added(f"{list(shape)} by {kernel}, {groups} groups", x, steps))
    return found


def graph_of(kind: type[Any], number: int) -> Graph:
    return layers(kind)[number].graph()


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.float32])
@pytest.mark.parametrize(("target", "board"), [("c", None), ("cortex-m4", "m4"), ("cortex-m55", "m55")])
def test_numbers(target: str, board: str | None, kind: type[Any]) -> None:
    if board is not None and not available():
        pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
    found = layers(kind)
    cases = [layer.case(partial(graph_of, kind, k), {}) for k, layer in enumerate(found)]
    outcomes = run_cases(cases, target, sanitize=board is None, board=board, jobs=1)
    pooled = [Layer(one.name, one.expected(), (Step(POOL),)) for one in found]
    assert not problems(pooled, outcomes)
