"""Intervals of integers against numpy and the operators' references, at the inputs that reach their ends."""

from __future__ import annotations

import numpy as np
import pytest

from aot_model.ir.graph import Graph, Value
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import constant
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.ranges import Interval, channel_ranges
from aot_model.ops.registry import Build, Operator
from aot_model.ops.requantise import Requantise


def interval(operator: Operator, x: TensorType, *constants: np.ndarray) -> Interval:
    """Of an operator's result, for any x."""
    value = Value("x", x)
    graph = Graph("ranges", [value])
    others = [constant(f"c{k}", c) for k, c in enumerate(constants)]
    y = Build(graph.nodes, "ranges")(operator, value, *others)
    graph.outputs.append(y)
    return channel_ranges(graph)[y]


@pytest.mark.parametrize(("x_zero", "w_zero"), [(0, 0), (-128, 0), (7, 0), (0, 5), (-3, -9)])
def test_products_reach_the_ends_of_their_interval(x_zero: int, w_zero: int) -> None:
    w = np.random.default_rng(3).integers(-128, 128, (9, 5)).astype(np.int8)
    found = interval(MatMul(x_zero, w_zero), TensorType(DType.INT8, (1, 9)), w)
    for channel in range(5):
        rising = w[:, channel].astype(int) > w_zero
        least, most = (np.where(rising == top, 127, -128).astype(np.int8)[None] for top in (False, True))
        column = w[:, channel].astype(int) - w_zero
        ends = [int((x[0].astype(int) - x_zero) @ column) for x in (least, most)]
        assert ends == [found.low[channel], found.high[channel]]


@pytest.mark.parametrize(("group", "pads"), [(1, 0), (2, 0), (1, 1), (2, 1)])
def test_convolutions_reach_the_ends_of_their_interval(group: int, pads: int) -> None:
    """With pads the interval is that of any of its taps outside of the image."""
    w = np.random.default_rng(4).integers(-128, 128, (4, 3, 3, 6 // group)).astype(np.int8)
    node = Convolution(group=group, pads=(pads,) * 4, x_zero_point=-100, w_zero_point=4)
    found = interval(node, TensorType(DType.INT8, (1, 3, 3, 6)), w)
    for channel in range(4):
        first = channel // (4 // group) * (6 // group)
        x = np.zeros((2, 3, 3, 6), np.int8)
        rising = w[channel].astype(int) > 4
        for k, top in enumerate((False, True)):
            x[k, :, :, first : first + 6 // group] = np.where(rising == top, 127, -100 if pads else -128)
        ends = node.reference([x, w])[0][:, pads, pads, channel].astype(int)
        if pads:
            assert found.low[channel] <= ends[0] and ends[1] <= found.high[channel]
            assert ends[1] == found.high[channel] or (~rising).any()
        else:
            assert [*ends] == [found.low[channel], found.high[channel]]


@pytest.mark.parametrize("pads", [(1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("zero", [-130, 130])
def test_a_tap_outside_of_the_image_adds_nothing(pads: tuple[int, ...], zero: int) -> None:
    """Where every element less the zero point is positive, or negative: fewer of them are nearer to 0."""
    node, w = Convolution(pads=pads, x_zero_point=zero), np.ones((1, 3, 3, 2), np.int8)
    found = interval(node, TensorType(DType.INT8, (1, 3, 3, 2)), w)
    for end in (-128, 127):
        y = node.reference([np.full((1, 3, 3, 2), end, np.int8), w])[0]
        assert found.low[0] <= y.min() and y.max() <= found.high[0]
    assert (found.low[0], found.high[0]) == (18 * min(-128 - zero, 0), 18 * max(127 - zero, 0))


@pytest.mark.parametrize("shape", [(), (5,), (7, 5), (7, 1)])
def test_sums_reach_the_ends_of_their_interval(shape: tuple[int, ...]) -> None:
    """Of a constant each channel has an interval of its own, over all of its elements."""
    given = np.random.default_rng(5).integers(-1000, 1000, shape).astype(np.int32)
    w = np.eye(5, dtype=np.int8)
    value = Value("x", TensorType(DType.INT8, (7, 5)))
    graph = Graph("ranges", [value])
    build = Build(graph.nodes, "ranges")
    y = build(op("Add"), build(MatMul(), value, constant("w", w)), constant("c", given))
    graph.outputs.append(y)
    found = channel_ranges(graph)[y]
    every = np.broadcast_to(given, (7, 5))
    assert (found.low == every.min(axis=0) - 128).all() and (found.high == every.max(axis=0) + 127).all()


BYTES = TensorType(DType.INT8, (2, 1))
INT32 = DType.INT32.limits


def behind_a_product(operator: Operator, *constants: np.ndarray, zero: int = 0) -> tuple[int, int]:
    """The ends of what an operator makes of any int8 less a zero point, as int32."""
    value = Value("x", BYTES)
    graph = Graph("ranges", [value])
    build = Build(graph.nodes, "ranges")
    product = build(MatMul(zero), value, constant("w", np.ones((1, 1), np.int8)))
    y = build(operator, product, *(constant(f"c{k}", c) for k, c in enumerate(constants)))
    graph.outputs.append(y)
    found = channel_ranges(graph)[y]
    return int(found.low[0]), int(found.high[0])


@pytest.mark.parametrize(
    ("least", "most"),
    [
        (INT32[1] - 255, INT32[1]),
        (INT32[1] - 254, INT32[1] + 1),
        (INT32[0], INT32[0] + 255),
        (INT32[0] - 1, INT32[0] + 254),
    ],
)
def test_sums_at_the_ends_of_their_type(least: int, most: int) -> None:
    """Beyond them they wrap to anything."""
    wraps = least < INT32[0] or most > INT32[1]
    given = np.asarray([least + 128], np.int64).astype(np.int32)
    assert behind_a_product(op("Add"), given) == (INT32 if wraps else (least, most))


@pytest.mark.parametrize(
    ("multiplier", "shift", "zero", "ends"),
    [
        (1 << 30, 1, 0, (-128, 127)),
        (1 << 30, -6, 0, (-1, 1)),
        (0, 1, 0, (0, 0)),
        (-(1 << 30), 1, 0, (-1000, 1000)),
        (1, 23, 0, (0, 0)),
        (1, 24, 0, (-1000, 1000)),  # 2^7 becomes 2^31
        (1, 24, -1, (-1000, 1000)),
        (1, 24, 1, (-1000, 1000)),
    ],
)
def test_requantised_numbers_where_nothing_wraps(
    multiplier: int, shift: int, zero: int, ends: tuple[int, int]
) -> None:
    node = Requantise(0, -1000, 1000, DType.INT16)
    given = (np.asarray([n], np.int32) for n in (multiplier, shift))
    found = behind_a_product(node, *given, zero=zero)
    assert found == (ends if abs(ends[0]) < 1000 else tuple(DType.INT16.limits))
