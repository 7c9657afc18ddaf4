"""Limits of kernels that are met exactly, and passed by one: how many cases and outputs there may be, how far
immediates and sums reach. Of int8 kernels: test_exact_limits_int8.py.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from aot_model.c.text import CText
from aot_model.ir.expr import Expr, call, const
from aot_model.ir.expr import cast as cast_to
from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import Operator
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels import cases, copies, overlap, tail
from aot_model.kernels.base import ConvShape
from aot_model.kernels.float32 import direct, matmul, panel_fpv4, pool, tiles, vector_text, window_plan
from aot_model.kernels.float32.axis import conv_axis
from aot_model.kernels.float32.block import Block
from aot_model.kernels.float32.blocks import Blocks
from aot_model.kernels.float32.dialects import DIALECTS
from aot_model.kernels.float32.direct import DirectConvolution
from aot_model.kernels.float32.matmul import MatmulShape
from aot_model.kernels.float32.repack import Weights
from aot_model.kernels.float32.window_plan import MAC, WindowPlan
from aot_model.kernels.int16 import block_mve, bytes_mve, depthwise, dot_mve, groups_mve
from aot_model.kernels.int16 import conv as conv_int16
from aot_model.kernels.int16.dots import Dots
from aot_model.kernels.int16.elements import Elements
from aot_model.kernels.int16.finish import Rule, finish
from aot_model.kernels.int16.finish_mve import Ending

INT32 = (1 << 31) - 1


class Plain:
    """A tail; what it writes has so many characters at least."""

    def __init__(self, length: int = 0) -> None:
        self.length = length

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        return f"y[{index[3]}] = {acc};".ljust(self.length)


def _row(outputs: int, kernel: int = 1, batch: int = 1) -> ConvShape:
    """One channel, without padding."""
    return ConvShape(batch, 1, outputs + kernel - 1, 1, 1, outputs, 1, 1, kernel)


@pytest.mark.parametrize(
    ("axes", "taken"), [([2048, 16], True), ([16, 2048], True), ([2049, 1], False), ([2048, 17], False),
                        ([32, 32, 32], True), ([32, 32, 33], False)],
)  # fmt: skip
def test_cases_of_borders(axes: list[int], taken: bool) -> None:
    """2048 of an axis, 2^15 of all."""
    assert (cases._refused(axes) is None) is taken


@pytest.mark.parametrize(("strides", "taken"), [((8, 16), True), ((1, 128), True), ((3, 43), False)])
def test_phases_that_are_functions(strides: tuple[int, int], taken: bool) -> None:
    """128, and 129."""
    shape = ConvShape(1, 2, 2, 1, 90, 180, 1, stride_h=strides[0], stride_w=strides[1])
    assert (cases.too_many_phases(shape, True) is None) is taken


@pytest.mark.parametrize(
    ("dialect", "nbytes", "function"),
    [("mve", 64, "aot_mve_copy"), ("mve", 63, "memcpy"), ("scalar", 64, "memcpy")],
)
def test_copies_of_vectors(dialect: str, nbytes: int, function: str) -> None:
    assert copies.copied("to", "x", nbytes, dialect)[0].startswith(function + "(")


def test_no_blocks_have_no_zero_point_in_common() -> None:
    for columns, zero in ((0, None), (1, 7)):
        numbers = np.ones((columns, 1), np.float32), np.full((columns, 1), 7, np.int16)
        assert Blocks(np.ones((columns, 16), np.uint8), 8, *numbers, 16).zero == zero


@pytest.mark.parametrize("outputs", [6, 7])
@pytest.mark.parametrize("batch", [1, 2])
def test_outputs_that_are_followed_one_by_one(
    batch: int, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as the limit are, one more is not: how near x and y may be is unknown then."""
    shape, axes = _row(outputs, batch=batch), (conv_axis(n, n, 1, 1, 1, 0) for n in (1, outputs))
    for module in (direct, overlap, window_plan):
        monkeypatch.setattr(module, "MANY_OUTPUTS", 6 * batch)
    known = outputs == 6
    assert (overlap.by_pixels(shape, 2) is not None) is known
    rows, cols = axes
    plain = DIALECTS["scalar"]
    weights = Weights(np.ones((1, 1, 1, 1), np.float32))
    convolution = DirectConvolution(shape, None, rows, cols, weights, Plain(), plain, True)
    assert (convolution.slack(Block(2, 1)) != (None, None)) is known
    window = WindowPlan(shape, None, rows, cols, MAC, Plain(), plain, True)
    assert (window.slack(None) is not None) is known
    monkeypatch.setattr(window_plan, "MANY_OUTPUTS", 100)
    monkeypatch.setattr(window_plan, "MANY_COLUMNS", 6)
    assert (window.slack(None) is not None) is known


@pytest.mark.parametrize(("rows", "columns", "gathered"), [(4, 4, True), (3, 4, False), (4, 3, False)])
def test_columns_that_are_gathered(rows: int, columns: int, gathered: bool) -> None:
    """Vectors of four columns, four rows at a time."""
    assert DIALECTS["mve"].lanes == 4
    shape = MatmulShape((1, 1), rows, columns, 8, (0, 0, 8, 1), (0, 0, 1, 8))
    assert matmul._gathered(shape, DIALECTS["mve"]) is gathered


@pytest.mark.parametrize("dialect", ["scalar", "v8", "v16", "mve"])
@pytest.mark.parametrize("more", [0, 1])
def test_a_window_alone_in_its_row(dialect: str, more: int) -> None:
    """It is unrolled as long as its taps are three quarters of the registers."""
    kernel = DIALECTS[dialect].registers * 3 // 4 + more
    axes = conv_axis(1, 1, 1, 1, 1, 0), conv_axis(kernel, 1, kernel, 1, 1, 0)
    weights = Weights(np.ones((1, 1, kernel, 1), np.float32))
    found = WindowPlan(_row(1, kernel), None, *axes, MAC, Plain(), DIALECTS[dialect], True, weights)
    assert (found.column_blocks() is None) is (more == 1)


@pytest.mark.parametrize(("saved", "copied"), [(2000.0, 50), (1999.5, 0)])
def test_a_copy_of_weights_that_is_worth_its_code(saved: float, copied: int) -> None:
    """2,000 cycles. There is room for 50 weights."""
    tiling = tiles.Tiling(2, 4)
    some = SimpleNamespace(
        reading=SimpleNamespace(room=200),
        staged=0,
        _ends=lambda tiling: [50, 51],
        _saving=lambda end, tiling: saved,
    )
    assert tiles.TiledConvolution.copied(cast(Any, some), tiling) == copied
    assert tiles.TiledConvolution.wish(cast(Any, some), tiling) == (200 if copied else None)


@pytest.mark.parametrize(("length", "loop"), [(120, False), (121, True)])
def test_tails_that_are_repeated_for_each_channel(length: int, loop: bool) -> None:
    axis = SimpleNamespace(repeated=False, out="0")
    some = SimpleNamespace(_rows=axis, _cols=axis, shape=_row(1), tail=Plain(length))
    text = CText()
    tiles.TiledConvolution._finish(cast(Any, some), text, 1, None, "c", 4)
    assert ("for (int32_t l = 0" in str(text)) is loop
    assert str(text).count("y[") == (1 if loop else 4)


@pytest.mark.parametrize("pixels", [1, 2])
def test_one_pixel_needs_no_loop_to_be_copied(pixels: int) -> None:
    text = CText()
    panel_fpv4.pack_panel(text, 4, pixels, str(pixels))
    assert ("for (int32_t p = 0" in str(text)) is (pixels > 1)
    assert ("at[p][i]" in str(text)) is (pixels > 1) and ("at[0][i]" in str(text)) is (pixels == 1)


@pytest.mark.parametrize(
    ("to", "stored"), [("int8", True), ("int16", True), ("uint16", True), ("int32", False)]
)
def test_tails_that_store_narrow_integers(to: str, stored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_text.Rounding, "of", lambda x: x)
    value: Expr = call("round", const(1.5, DType.FLOAT32))
    assert (vector_text.rounding_of(cast_to(value, DType[to.upper()])) is not None) is stored


@pytest.mark.parametrize(("step", "taken"), [(9362, True), (9363, False)])
def test_columns_that_are_not_too_far_apart(step: int, taken: bool) -> None:
    """Seven steps have 16 bits: offsets of the eight elements that are gathered."""
    assert (7 * block_mve.APART < 1 << 16) and 7 * (block_mve.APART + 1) >= 1 << 16
    one = SimpleNamespace(dtype="int8", size=1)
    shape = SimpleNamespace(k=16, a_strides=(0, 0, 16, 1), b_strides=(0, 0, step, 1))
    some = SimpleNamespace(operands=SimpleNamespace(a=one, b=one), shape=shape, together=True)
    assert bytes_mve.takes(cast(Any, some)) is taken


def _conv(taps: int, outs: int, pixels: int, start: int, most: int) -> conv_int16.Conv:
    return conv_int16.Conv(
        ConvShape(1, 1, pixels, taps, 1, pixels, outs),
        np.ones((outs, taps), np.int8),
        Elements("int16", 0, 0),
        Dots(True, taps, most),
        None,
        np.full(outs, start, np.int64),
        None,
        "int64_t",
        ("int16_t", 2),
    )


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("more", [0, 1])
def test_what_is_added_to_sums_of_32_bits(sign: int, more: int) -> None:
    conv = _conv(3, 4, 2, sign * (INT32 - 3 * 1000 + more), 1000)
    assert conv.start_type is (np.int64 if more else np.int32)


@pytest.mark.parametrize(("taps", "outs", "pixels", "taken"), [(10, 20, 50, True), (8, 12, 104, False)])
def test_channels_of_bytes_by_fours(taps: int, outs: int, pixels: int, taken: bool) -> None:
    """10,000 products are worth the code; 9,984 are not."""
    assert conv_int16._by_fours(_conv(taps, outs, pixels, 0, 1000)) is taken


@pytest.mark.parametrize(("taps", "most"), [(1, INT32), (INT32, 1)])
def test_products_whose_sum_is_the_largest_integer(taps: int, most: int) -> None:
    """All of them have 32 bits together: their number is prime."""
    for mve in (False, True):
        dots = Dots(False, taps, most, mve=mve)
        assert (dots.chunk, dots.sum_type) == (taps, "int32_t")
        assert Dots(False, taps, most + 1, mve=mve).sum_type == "int64_t"
    ending = Ending.of(_finish())
    weights = SimpleNamespace(shape=(2, taps))
    for more in (0, 1):
        shape = ConvShape(1, 1, 16, 2, 1, 16, 2, groups=2)
        taken = groups_mve.applicable(shape, cast(np.ndarray, weights), most + more, ending)
        assert taken is (more == 0)


def _finish() -> Any:
    one, to = np.ones(1, np.int64), DType.INT16
    return finish(1, 0 * one, Rule("single", one << 30, -8 * one, 0, *to.limits, to), 1 << 20)


@pytest.mark.parametrize(("most", "own"), [(INT32, "int32_t"), (INT32 + 1, "int64_t")])
def test_sums_of_a_depthwise_layer(most: int, own: str) -> None:
    shape = ConvShape(1, 1, 4, 2, 1, 4, 2, groups=2)
    code = depthwise.depthwise(
        shape, np.ones((1, 1, 2), np.int16), most, None, None, "int64_t", ("int64_t", 8)
    )
    assert f"{own} sum0" in code.body


@pytest.mark.parametrize(("distance", "lines"), [(4095, 2), (4096, 3)])
def test_pointers_that_go_back_by_an_immediate(distance: int, lines: int) -> None:
    """Of 12 bits; else by a register."""
    text = dot_mve._rewound(["x", "y"], distance)
    assert len(text) == lines and all("subw" in line for line in text) is (lines == 2)


class ByElement(Operator):
    """One input, one result of its shape."""

    def by_element(self, inputs: object) -> bool:
        return True


@pytest.mark.parametrize(("nodes", "taken"), [(23, 23), (24, 24), (25, 24)])
def test_chains_end_where_a_tail_has_as_many_nodes_as_it_may(nodes: int, taken: int) -> None:
    values = [Value(f"v{k}", TensorType(DType.FLOAT32, (1, 2))) for k in range(nodes + 2)]
    row = [Node(ByElement(), [x], [y]) for x, y in pairwise(values)]
    graph = Graph("row", values[:1], values[-1:], row)
    made = {node.outputs[0]: k for k, node in enumerate(row)}
    chain = tail.find_chain(graph, row[0], graph.uses(), made, set())
    assert chain.nodes == tuple(row[1 : taken + 1]) and tail.MAX_TAIL_NODES == 24
    for k in range(1, nodes):
        chain = tail.find_chain(graph, row[0], graph.uses(), made, {row[k]})
        assert len(chain.nodes) == min(k - 1, taken)


@pytest.mark.parametrize(
    ("most", "kernel", "taken"), [(0.5, 3, True), (0.4999, 3, False), (0, 3, False), (0.5, 300, False)]
)
def test_channels_whose_windows_slide(
    most: float, kernel: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where loads for each product are few enough: half a load here."""
    monkeypatch.setattr(WindowPlan, "loads_for_each", lambda plan, block: 0.5)
    dialect = replace(DIALECTS["v8"], sliding=((2, most),))
    shape = ConvShape(1, 8, 16 + kernel - 1, 2, 8, 16, 8, 1, kernel)
    weights = Weights(np.ones((8, 1, kernel, 2), np.float32))
    assert (pool.sliding(shape, weights, Plain(), dialect) is not None) is taken
    one = Weights(weights.values[..., :1])  # of one channel they are never too many, but where it never pays
    alone = pool.sliding(replace(shape, in_c=1), one, Plain(), dialect)
    assert (alone is not None) is (most > 0 and kernel == 3)


@pytest.mark.parametrize(
    ("outputs", "lanes", "apart"), [(1, 1, True), (2, 1, False), (3, 4, True), (4, 4, False)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_windows_too_wide_for_neighbouring_outputs(
    outputs: int, lanes: int, apart: bool, turned: bool
) -> None:
    """More than 32 taps along the row, or along the only column; for outputs that fill a vector."""
    for taps, wide in ((32, False), (33, True)):
        sizes = [(1, 50), (1, 60 - taps), (1, taps)]
        image, result, kernel = [s[::-1] for s in sizes] if turned else sizes
        shape = ConvShape(1, *image, 3, *result, 3 * outputs, *kernel, groups=3)
        assert pool.output_by_output(shape, lanes) is (wide and not apart)
    tall = ConvShape(1, 50, 2, 3, 10, 2, 3 * outputs, 33, 1, groups=3)
    assert not pool.output_by_output(tall, lanes)


@pytest.mark.parametrize(("registers", "wide"), [(8, 2), (9, 3), (16, 3), (17, 4), (32, 4)])
def test_sums_of_partial_sums(registers: int, wide: int) -> None:
    shape = MatmulShape((1, 1), 8, 8, 16, (0, 0, 16, 1), (0, 0, 1, 16))
    product = matmul._Dots(shape, Plain(), replace(DIALECTS["v8"], registers=registers), "a", "b")
    assert product.emit(CText()).startswith(f"{wide} rows x {wide} columns, partial sums of 8 ")
