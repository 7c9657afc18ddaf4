"""What float kernels choose, which tails they take and which bias they get, where wrong choices cost time or
memory and no test of numbers would notice: each against what it means.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from aot_model.c.text import CText
from aot_model.ir.expr import Expr, call, const
from aot_model.ir.expr import cast as cast_to
from aot_model.ir.expr import cell as cell_of
from aot_model.ir.index import add, dense_position, floordiv, index_variables, mul
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.base import ConvShape
from aot_model.kernels.float32.axis import conv_axis
from aot_model.kernels.float32.block import Block
from aot_model.kernels.float32.dialects import DIALECTS, SCALAR
from aot_model.kernels.float32.direct import DirectConvolution
from aot_model.kernels.float32.repack import Weights
from aot_model.kernels.float32.store import Accumulators
from aot_model.kernels.float32.vector_text import VectorText
from aot_model.kernels.float32.window_plan import MAC, WindowPlan
from aot_model.kernels.site import Site
from aot_model.kernels.tail import FusedTail, accumulator_leaf


class LongTail:
    """Writes one statement; a long one is as long as it says."""

    def __init__(self, length: int) -> None:
        self.length = length

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        return f"y[{index[3]}] = {acc};".ljust(self.length)


def window(shape: ConvShape, dialect: str) -> WindowPlan:
    rows = conv_axis(shape.in_h, shape.out_h, shape.kernel_h, 1, 1, 0)
    cols = conv_axis(shape.in_w, shape.out_w, shape.kernel_w, 1, 1, 0)
    return WindowPlan(shape, None, rows, cols, MAC, LongTail(10), DIALECTS[dialect], True)


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize(("in_c", "multiplier", "step"),
                         [*product((1, 2, 3, 8, 13), (1, 2, 3, 4, 8, 12), (1,)), (8, 1, 2), (8, 4, 2),
                          (8, 3, 5)])  # fmt: skip
def test_vectors_of_channels_read_neighbours_or_one_element(
    dialect: str, in_c: int, multiplier: int, step: int
) -> None:
    """All channels once; vectors wherever the inputs of one are neighbours in memory or the same element."""
    shape = ConvShape(
        1,
        4,
        4,
        in_c,
        3,
        3,
        in_c * multiplier,
        2,
        2,
        groups=in_c,
        x_strides=(16 * in_c * step, 4 * in_c * step, in_c * step, step),
    )
    loops = window(shape, dialect).channel_loops()
    covered = []
    for d, first, vectors in loops:
        for v in range(vectors):
            channels = [first + v * d.lanes + lane for lane in range(d.used or d.lanes)]
            reads = np.diff([c // multiplier * step for c in channels])
            assert (reads == 0).all() or (multiplier == 1 and (reads == 1).all())
            covered += channels
    assert covered == list(range(shape.out_c))
    lanes = DIALECTS[dialect].lanes
    enough = shape.out_c > 1 if DIALECTS[dialect].loads_some else shape.out_c >= lanes
    of_one = in_c == 1 or (step == 1 and (multiplier == 1 or multiplier % lanes == 0))
    possible = of_one and enough
    assert (loops[0][0].lanes == lanes) == (possible or lanes == 1)


@pytest.mark.parametrize(("kernel", "width", "unrolled"), [(64, 3, True), (65, 3, False), (129, 200, False)])
def test_windows_wider_than_what_is_unrolled(kernel: int, width: int, unrolled: bool) -> None:
    shape = ConvShape(1, 1, width + kernel - 1, 4, 1, width, 4, 1, kernel, groups=4)
    assert (window(shape, "scalar").column_blocks() is not None) is unrolled


@pytest.mark.parametrize(("width", "unrolled"), [(1, False), (2, True)])
def test_a_wide_window_alone_in_its_row_is_not_unrolled(width: int, unrolled: bool) -> None:
    """Nothing would be shared; a pooling, which loads no weights, is."""
    shape = ConvShape(1, 1, width + 39, 4, 1, width, 4, 1, 40, groups=4)
    pool = window(shape, "scalar")
    weighted = replace(pool, weights=np.ones((4, 1, 40), np.float32))
    assert (weighted.column_blocks() is not None) is unrolled and pool.column_blocks() is not None


@pytest.mark.parametrize(
    ("dialect", "length"), [(n, w) for n in ("scalar", "v4") for w in (10, 200, 201, 300)]
)
def test_every_accumulator_is_stored_once(dialect: str, length: int) -> None:
    """From registers, and from memory where the tail is long."""
    d, text = DIALECTS[dialect], CText()
    names = [["acc0", "acc1"], ["acc2", "acc3"]]
    block = Accumulators(d, names, [("0", "0"), ("0", "1")], "0", "c", 2 * d.lanes)
    block.store(text, LongTail(length), True)
    said = str(text)
    assert ("done[2]" in said) == (length > 200)
    assert all(said.count(name) == 1 for row in names for name in row)
    if length > 200 and d is SCALAR:
        assert [f"done[{p}][{v}] = acc{2 * p + v};" in said for p in (0, 1) for v in (0, 1)] == [True] * 4


def test_tails_over_vectors() -> None:
    """Memory that moves by one with the channel, or not at all; never by halves, steps or look-up."""
    index = index_variables((2, 3, 4, 8))
    n, y, x, c = index
    accumulator = accumulator_leaf(DType.FLOAT32)

    def vectors(element: Expr, dialect: str = "v4") -> bool:
        position = dense_position(index, (2, 3, 4, 8))
        tail = FusedTail.of(element, accumulator, index, position, lambda at: at)
        return tail.with_dialect(DIALECTS[dialect]).vector

    def takes(shape: tuple[int, ...], *place: Expr) -> bool:
        value = Value("v", TensorType(DType.FLOAT32, shape))
        return vectors(call("add", accumulator, cell_of(value, dense_position(place, shape))))

    assert takes((8,), c) and takes((2, 3, 4, 8), *index) and takes((2, 3, 4, 1), n, y, x, const(0))
    assert takes((2, 9), n, add(c, const(1)))
    assert not takes((2, 3, 4, 16), n, y, x, mul(c, 2)) and not takes((8, 2), c, const(0))
    assert not takes((4,), floordiv(c, 2)) and not takes((2, 4), n, floordiv(c, 2))
    assert vectors(accumulator) and not vectors(accumulator, "scalar")
    assert not vectors(cast_to(accumulator, DType.INT8)) and not vectors(call("exp", accumulator))


def test_what_a_tail_reads_elsewhere_too_is_not_read_in_place() -> None:
    """A result may lie over an input only where every element is read before it is written."""
    index, accumulator = index_variables((1, 2, 2, 8)), accumulator_leaf(DType.FLOAT32)
    here = dense_position(index, (1, 2, 2, 8))
    first, other = (Value(name, TensorType(DType.FLOAT32, (1, 2, 2, 8))) for name in "ab")

    def tail(*reads: Expr) -> FusedTail:
        element = accumulator
        for read in reads:
            element = call("add", element, read)
        return FusedTail.of(element, accumulator, index, here, lambda at: at)

    both = tail(cell_of(first, here), cell_of(first, add(here, const(1))), cell_of(other, here))
    assert not both.reads_in_place(first) and both.reads_in_place(other)
    assert tail(cell_of(first, here), cell_of(first, here)).reads_in_place(first)


@pytest.mark.parametrize(
    ("out", "pixels", "outside"),
    [
        ((1, 3, 3), 2, True),
        ((1, 2, 4), 2, False),
        ((9, 1, 1), 2, True),
        ((2, 2, 2), 1, True),
        ((1, 1, 5), 1, True),
        ((1, 1, 4), 1, False),
    ],
)
def test_channels_are_outside_when_there_are_many_pixels(
    out: tuple[int, int, int], pixels: int, outside: bool
) -> None:
    """More than four blocks, and weights that no cache holds."""
    dialect = next(d for d in DIALECTS.values() if d.costs.cache is not None)
    weights = np.zeros((16, 1, 1, dialect.costs.cache // 64 + 1), np.float32)  # type: ignore[operator]
    batch, h, w = out
    shape = ConvShape(batch, h, w, weights.shape[-1], h, w, 16)
    axes = (conv_axis(e, e, 1, 1, 1, 0) for e in (h, w))
    found = DirectConvolution(shape, None, *axes, Weights(weights), LongTail(10), dialect, True)
    assert found._channels_outside(Block(pixels, 1)) is outside
    small = replace(found, weights=Weights(weights[:, :, :, :-1]))  # as many as the cache holds
    assert not small._channels_outside(Block(pixels, 1))


def test_a_bias_is_one_number_or_one_for_each_channel() -> None:
    """Added first, from either side; anything else stays with the tail."""
    out, other = (Value(n, TensorType(DType.FLOAT32, (1, 4, 4, 6))) for n in ("out", "other"))

    def bias(kind: str, *inputs: Value) -> np.ndarray | None:
        site = SimpleNamespace(
            node=SimpleNamespace(outputs=[out]),
            chain=SimpleNamespace(nodes=[SimpleNamespace(kind=kind, inputs=list(inputs))]),
        )
        return Site.bias(cast("Site", site))

    def number(*shape: int) -> Value:
        data = np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32).reshape(shape)
        return Value("b", TensorType(DType.FLOAT32, shape), data=data)

    one, each = [1] * 6, [1, 2, 3, 4, 5, 6]
    for shape, expected in (((), one), ((1,), one), ((1, 1, 1, 1), one), ((6,), each), ((1, 1, 1, 6), each)):
        for inputs in ((out, number(*shape)), (number(*shape), out)):
            np.testing.assert_array_equal(bias("Add", *inputs), expected)  # type: ignore[arg-type]
    for value in (number(2), number(6, 1), number(4, 6), other):
        assert bias("Add", out, value) is None
    assert bias("Mul", out, number(6)) is None


@pytest.mark.parametrize(
    ("low", "by_bits"), [(0.0, True), (0.5, True), (-0.0, False), (-0.5, False), (float("nan"), False)]
)
def test_a_lower_limit_is_compared_as_an_integer_from_zero_on(low: float, by_bits: bool) -> None:
    """Bits of a negative zero are those of the least integer: nothing would be below it."""
    text = VectorText(DIALECTS["mve"], {}, None, {})
    limited = text.text(call("max", const(1.5, DType.FLOAT32), const(low, DType.FLOAT32)))
    assert ("mve_at_least(" in limited) is by_bits
    assert ("mve_max(" in limited) is not by_bits
