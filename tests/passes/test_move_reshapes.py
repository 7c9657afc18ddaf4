"""Reshapes go behind what follows a kernel, and the numbers are the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_passes import keeps_meaning, kinds, real, value

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Transpose
from aot_model.ops.registry import Build
from aot_model.ops.sequence_lstm import SequenceLstm
from aot_model.ops.views import ReshapeTo
from aot_model.passes.move_reshapes import move_reshapes

LINE = Convolution()
"""Of one row, as a convolution of one axis is written."""
WEIGHTS = {"w": (4, 5, 3), "r": (4, 5, 5), "b": (4, 5)}
"""Of an LSTM."""


def _line() -> tuple[Graph, Build, Value]:
    x = value("x", (1, 1, 8, 3))
    graph = Graph("line", [x])
    build = Build(graph.nodes, "line")
    return graph, build, build(LINE, x, constant("w", real(1, 5, 1, 2, 3)))


def test_a_convolution_of_one_axis() -> None:
    """Bias and activation are the convolution's, whatever axes of one element come and go."""
    graph, build, y = _line()
    y = build(op("Relu"), build(op("Add"), build(ReshapeTo((1, 7, 5)), y), constant("b", real(2, 5))))
    y = build(op("Mul"), build(ReshapeTo((1, 7, 1, 5)), y), constant("m", real(3, 7, 1, 1)))
    graph.outputs = [y]
    keeps_meaning(move_reshapes, graph)
    assert kinds(graph) == ["Convolution", "Add", "Relu", "Mul", "ReshapeTo"]


def test_two_that_were_reshaped_alike() -> None:
    graph, build, y = _line()
    other = build(LINE, graph.inputs[0], constant("v", real(4, 5, 1, 2, 3)))
    graph.outputs = [build(op("Add"), *(build(ReshapeTo((7, 5)), v) for v in (y, other)))]
    keeps_meaning(move_reshapes, graph)
    assert kinds(graph) == ["Convolution", "Convolution", "Add", "ReshapeTo"]


def _stays(graph: Graph, *outputs: Value) -> None:
    graph.outputs = list(outputs)
    graph.prune()
    before = kinds(graph)
    assert "ReshapeTo" in before
    keeps_meaning(move_reshapes, graph)
    assert kinds(graph) == before


@pytest.mark.parametrize(
    "why", ["no kernel", "a result", "read twice", "other axes", "more axes", "not constant"]
)
def test_what_stays(why: str) -> None:
    graph, build, y = _line()
    if why == "no kernel":
        y = graph.inputs[0]
    shapes = {"other axes": (5, 7), "more axes": (1, 7, 5), "no kernel": (8, 3)}
    flat = build(ReshapeTo(shapes.get(why, (7, 5))), y)
    other: Value = constant("c", real(5, *([2, 1, 1] if why == "more axes" else flat.shape[-1:])))
    if why == "not constant":
        graph.inputs.append(other := value("other", flat.shape))
    sums = build(op("Add"), flat, other)
    more = {"a result": [flat], "read twice": [build(op("Neg"), flat)]}
    _stays(graph, sums, *more.get(why, []))


def test_two_that_were_reshaped_from_different_shapes_stay() -> None:
    graph, build, _ = _line()
    rows = build(MatMul(), graph.inputs[0], constant("v", real(4, 3, 5)))  # (1, 1, 8, 5)
    halves = build(MatMul(), build(ReshapeTo((2, 4, 3)), graph.inputs[0]), constant("u", real(6, 3, 5)))
    _stays(graph, build(op("Add"), *(build(ReshapeTo((8, 5)), v) for v in (rows, halves))))


def test_two_that_are_spread_over_each_other_stay() -> None:
    graph, build, y = _line()
    other = build(LINE, graph.inputs[0], constant("v", real(4, 5, 1, 2, 3)))
    _stays(graph, build(op("Add"), build(ReshapeTo((7, 5)), y), build(ReshapeTo((7, 1, 5)), other)))


def test_a_constant_of_rows_that_were_not_rows_stays() -> None:
    graph, build, _ = _line()
    halves = build(MatMul(), build(ReshapeTo((2, 4, 3)), graph.inputs[0]), constant("u", real(6, 3, 5)))
    _stays(graph, build(op("Add"), build(ReshapeTo((8, 5)), halves), constant("c", real(7, 8, 1))))


def test_integers_stay() -> None:
    """Their kernels' rows of results are as fast by themselves."""
    x = Value("x", TensorType(DType.INT8, (2, 3)))
    graph = Graph("integers", [x])
    build = Build(graph.nodes, "integers")
    total = build(MatMul(), x, constant("w", np.ones((3, 4), np.int8)))
    graph.outputs = [build(op("Add"), build(ReshapeTo((8,)), total), constant("c", np.ones(1, np.int32)))]
    assert not move_reshapes(graph) and kinds(graph) == ["MatMul", "ReshapeTo", "Add"]


@pytest.mark.parametrize("between", ["transposed", "spread"])
def test_what_no_kernel_goes_on_with_stays(between: str) -> None:
    graph, build, _ = _line()
    y = build(LINE, graph.inputs[0], constant("v", real(1, 7, 1, 2, 3)))  # (1, 1, 7, 7)
    if between == "transposed":
        y = build(Transpose((0, 1, 3, 2)), y)
    else:
        graph.inputs.append(image := value("image", (3, 1, 7, 7)))
        y = build(op("Add"), y, image)
    _stays(graph, build(op("Relu"), build(ReshapeTo((y.type.elements,)), y)))


def test_what_stores_its_own_results_has_no_tail() -> None:
    graph, build, _ = _line()
    x, h, c = (value(name, shape) for name, shape in (("s", (1, 4, 3)), ("h", (1, 5)), ("c", (1, 5))))
    graph.inputs = [x, h, c]
    weights = [constant(n, real(k, *s)) for k, (n, s) in enumerate(WEIGHTS.items())]
    y = build.many(SequenceLstm(), x, h, c, *weights)[0]
    graph.outputs = [build(op("Relu"), build(ReshapeTo((20,)), y))]
    graph.prune()
    assert not move_reshapes(graph) and kinds(graph) == ["SequenceLstm", "ReshapeTo", "Relu"]


def _shapes(data: st.DataObject, of: tuple[int, ...]) -> tuple[int, ...]:
    """Another shape of as many elements: with ones, flat in part, or of other factors."""
    place = data.draw(st.integers(0, len(of)))
    how = data.draw(st.sampled_from(["one", "none", "flat", "reversed"]))
    if how == "one":
        return (*of[:place], 1, *of[place:])
    if how == "none":
        return tuple(d for d in of if d != 1)
    return (math.prod(of[:place]), *of[place:]) if how == "flat" else of[::-1]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_moving_reshapes_keeps_the_meaning(data: st.DataObject) -> None:
    x = value("x", data.draw(st.sampled_from([(2, 3, 4), (1, 6, 4), (4, 2)])))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    values = [build(MatMul(), x, constant("w", real(1, x.shape[-1], 3)))]
    for _ in range(data.draw(st.integers(1, 8))):
        y = data.draw(st.sampled_from(values[-2:]))
        kind = data.draw(st.sampled_from(["reshape", "reshape", "relu", "add", "constant", "number"]))
        if kind == "reshape":
            values.append(build(ReshapeTo(_shapes(data, y.shape)), y))
        elif kind == "relu":
            values.append(build(op("Relu"), y))
        elif kind == "add":
            same = data.draw(st.sampled_from([v for v in values if v.shape == y.shape]))
            values.append(build(op("Add"), y, same))
        else:
            shape = tuple(d if data.draw(st.booleans()) else 1 for d in y.shape)
            shape = (
                shape[data.draw(st.integers(0, len(shape))) :]
                if kind == "constant"
                else (1,) * (len(shape) + 1)
            )
            values.append(build(op("Mul"), y, constant("c", real(len(values), *shape))))
    graph.outputs = list(dict.fromkeys(values[-2:]))
    graph.prune()
    keeps_meaning(move_reshapes, graph, 1e-6)


def test_numbers_of_more_axes() -> None:
    graph, build, y = _line()
    number = constant("n", np.full((1, 1, 1, 1, 1), 2, np.float32))
    graph.outputs = [build(op("Mul"), build(ReshapeTo((1, 1, 1, 7, 5)), y), number)]
    keeps_meaning(move_reshapes, graph)
    assert kinds(graph) == ["Convolution", "Mul", "ReshapeTo"]
