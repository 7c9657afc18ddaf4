"""Operators with constants become lines of one tensor of bytes: the same results at all 256 values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from aot_model.arithmetic.fixed_point import quantise_multiplier
from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.quantised import QuantisedMul, QuantisedPRelu, QuantisedSum
from aot_model.ops.quantised_div import QuantisedDiv
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear
from aot_model.ops.quantised_lines import BEYOND, QuantisedLine, _slopes, bends, lines
from aot_model.ops.quantised_tables import lookup
from aot_model.ops.registry import Build, load_all
from aot_model.ops.requantise import Requantise, Rescale
from aot_model.passes.explain import reasons
from aot_model.passes.fuse_lines import MOST, fuse_lines, own_forms, pays
from aot_model.targets.registry import parse_target

Make = Callable[[Build, Value], Value]
EDGES = np.asarray([-128, 127, 0, 9, -77, 31], np.int8)
SUM = QuantisedSum("add", Rescale(-3, 2**30, 0), Rescale(9, 1717986918, -1), Rescale(4, 1288490189, -18), 20)
SQUARES = QuantisedSum("squared difference", SUM.a, SUM.b, SUM.result, 7)
BY = QuantisedMul(5, -9, Rescale(-128, 1503238553, -5), rounding="single")
ROWS = 48


def graph_of(make: Make, dtype: DType = DType.INT8, rows: int = ROWS) -> Graph:
    load_all()
    x = Value("x", TensorType(dtype, (1, rows, len(EDGES))))
    graph = Graph("g", [x])
    graph.outputs = [make(Build(graph.nodes, "n"), x)]
    return graph


def channels(build: Build, dtype: DType = DType.INT8) -> Value:
    return build.constant(EDGES if dtype is DType.INT8 else EDGES.view(np.uint8), dtype)


def at_all(make: Make, dtype: DType, fused: Sequence[str] = ()) -> np.ndarray:
    """The result for every value in every channel. fused: what the pass makes of it."""
    graph = graph_of(make, dtype, 256)
    assert not fused or fuse_lines(graph)
    assert not fused or [n.kind for n in graph.nodes] == list(fused)
    every = np.arange(dtype.limits[0], dtype.limits[1] + 1).astype(dtype.numpy)
    known: dict[Value, np.ndarray] = {
        graph.inputs[0]: np.ascontiguousarray(np.broadcast_to(every[None, :, None], (1, 256, len(EDGES))))
    }
    for node in graph.nodes:
        arrays = [known[v] if v in known else np.asarray(v.data) for v in node.inputs if v is not None]
        known[node.outputs[0]] = node.op.reference(arrays)[0]
    return known[graph.outputs[0]]


def mixed(build: Build, x: Value) -> Value:
    """A product, then a sum: one line."""
    return build(SUM, build(BY, x, channels(build)), build.constant([-5], DType.INT8))


FUSED: dict[str, tuple[Make, DType]] = {
    "sum": (lambda b, x: b(SUM, x, channels(b)), DType.INT8),
    "constant first": (lambda b, x: b(SUM, channels(b), x), DType.INT8),
    "difference": (
        lambda b, x: b(QuantisedSum("sub", SUM.a, SUM.b, SUM.result, 20), channels(b), x),
        DType.INT8,
    ),
    "clamped": (
        lambda b, x: b(QuantisedSum("add", SUM.a, SUM.b, SUM.result, 20, low=4, high=60), x, channels(b)),
        DType.INT8,
    ),
    "product": (lambda b, x: b(BY, x, channels(b)), DType.INT8),
    "one number": (
        lambda b, x: b(QuantisedMul(5, -9, BY.result), x, b.constant([70], DType.INT8)),
        DType.INT8,
    ),
    "unsigned": (
        lambda b, x: b(
            QuantisedMul(200, 3, Rescale(255, 1503238553, -6), 0, 255, DType.UINT8, "even"),
            x,
            channels(b, DType.UINT8),
        ),
        DType.UINT8,
    ),
    "quotient": (
        lambda b, x: b(QuantisedDiv(-5, -128, Rescale(-20, 1503238553, 6)), x, b.constant([90], DType.INT8)),
        DType.INT8,
    ),
}


@pytest.mark.parametrize("name", FUSED)
def test_the_same_at_all_values(name: str) -> None:
    make, dtype = FUSED[name]
    assert np.array_equal(at_all(make, dtype), at_all(make, dtype, ["QuantisedLine"]))


def test_a_product_beside_its_factor_is_no_function_of_the_product() -> None:
    """x * c + x, as attention by channel has it: the sum is no line of x, and reads more than the product."""

    def make(build: Build, x: Value) -> Value:
        return build(SUM, build(BY, x, channels(build)), x)

    assert np.array_equal(
        at_all(make, DType.INT8), at_all(make, DType.INT8, ["QuantisedLine", "QuantisedSum"])
    )


def test_sums_have_one_slope_for_all_channels() -> None:
    graph = graph_of(FUSED["sum"][0])
    assert fuse_lines(graph)
    slope, offset = (v for v in graph.nodes[0].inputs[1:] if v is not None)
    assert slope.type.elements == 1 and offset.shape == (1, 1, len(EDGES))
    assert not fuse_lines(graph)


def test_floats_between_integers() -> None:
    """What ONNX Runtime computes in floats, where no rounding of floats changes a result."""

    def make(build: Build, x: Value) -> Value:
        zero = build.constant(np.int8(7), DType.INT8)
        real = build(DequantizeLinear(), x, build.constant(np.float32(0.11), DType.FLOAT32), zero)
        by = build(op("Div"), real, build.constant(np.float32([3.1, -0.7, 11, 0.4, 2, 1]), DType.FLOAT32))
        by = build(op("Clip"), by, None, build.constant(np.float32(1.0), DType.FLOAT32))  # no minimum
        return build(QuantizeLinear(), by, build.constant(np.float32(0.013), DType.FLOAT32), zero)

    graph = graph_of(make)
    assert fuse_lines(graph)
    (node,) = graph.nodes
    assert isinstance(node.op, QuantisedLine)
    x = np.arange(-128, 128, dtype=np.int8)[:, None]
    divided = (x - 7.0) * 0.11 / np.float32([3.1, -0.7, 11, 0.4, 2, 1])
    wanted = np.rint(np.minimum(divided, 1) / 0.013) + 7
    made = node.op.reference([x, *(np.asarray(v.data)[0] for v in node.inputs[1:] if v is not None)])[0]
    assert np.array_equal(made, np.clip(wanted, -128, 127))


def curve(build: Build, x: Value) -> Value:
    return build(SUM, build(lookup(DType.INT8, [v * v // 129 for v in range(-128, 128)]), x), channels(build))


def test_the_last_line_of_a_chain_that_is_none() -> None:
    graph = graph_of(curve)
    assert fuse_lines(graph) and [n.kind for n in graph.nodes] == ["Lookup", "QuantisedLine"]


def test_of_what_is_wider_on_the_way_nothing_is_left() -> None:
    def make(build: Build, x: Value) -> Value:
        wide = build(op("Add"), build(Cast(DType.INT32), x), build.constant(np.arange(6) * 50, DType.INT32))
        factor, shift = build.constant([1717986918], DType.INT32), build.constant([0], DType.INT32)
        return build(Requantise(2, -100, 90), wide, factor, shift)

    graph = graph_of(make)
    assert fuse_lines(graph) and [n.kind for n in graph.nodes] == ["QuantisedLine"]


def ties(build: Build, x: Value) -> Value:
    """exp(0) is 1 but for the proof: half a step."""
    step, zero = build.constant(np.float32(0.01), DType.FLOAT32), build.constant(np.int8(0), DType.INT8)
    real = build(op("Exp"), build(DequantizeLinear(), x, step, zero))
    by = build(op("Mul"), real, build.constant(np.float32([1, 3, 5, 2, 7, 4]), DType.FLOAT32))
    return build(QuantizeLinear(), by, build.constant(np.float32(2), DType.FLOAT32), zero)


LEFT: dict[str, tuple[Make, int, str]] = {
    "what floats round either way": (ties, ROWS, "numpy does not compute it"),
    "few elements": (FUSED["sum"][0], 7, "6 lines of 42 elements are not worth"),
    "a curve": (lambda b, x: b(SQUARES, x, channels(b)), ROWS, "it is no line"),
    "what is cheaper": (lambda b, x: b(op("Max"), x, channels(b)), ROWS, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_as_it_is(name: str) -> None:
    make, rows, why = LEFT[name]
    graph = graph_of(make, rows=rows)
    before = [n.kind for n in graph.nodes]
    with reasons() as said:
        assert not fuse_lines(graph)
    assert [n.kind for n in graph.nodes] == before
    assert not why or any(why in line for line in said)


@pytest.mark.parametrize("of_input", [True, False])
def test_scales_along_an_axis_before_the_last_are_no_numbers_of_the_last(of_input: bool) -> None:
    load_all()
    x = Value("x", TensorType(DType.INT8, (8, 6, 10, 6)))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    one = (build.constant(np.float32(0.07), DType.FLOAT32), build.constant(np.int8(3), DType.INT8))
    six = (
        build.constant(np.float32([0.01, 0.02, 0.05, 0.03, 0.1, 0.04]), DType.FLOAT32),
        build.constant(EDGES // 9, DType.INT8),
    )
    real = build(DequantizeLinear(axis=1), x, *(six if of_input else one))
    graph.outputs = [build(QuantizeLinear(axis=1), build(op("Relu"), real), *(one if of_input else six))]
    assert not fuse_lines(graph)


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_lines_and_no_more(more: int) -> None:
    constants = np.resize(EDGES, MOST + more)
    x = Value("x", TensorType(DType.INT8, (8, constants.size)))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    graph.outputs = [build(SUM, x, build.constant(constants, DType.INT8))]
    assert fuse_lines(graph) is not bool(more)


def test_where_it_pays() -> None:
    targets = {n: pays(parse_target(n)) for n in ("c", "cortex-m4", "cortex-m55", "cortex-m4,optimize=size")}
    assert targets == {"c": True, "cortex-m4": True, "cortex-m55": True, "cortex-m4,optimize=size": False}


@pytest.mark.parametrize("where", ["alone", "behind a kernel", "beside another reader"])
def test_what_a_target_has_a_form_for_is_a_line_behind_a_kernel(where: str) -> None:
    """Helium multiplies eight elements at once, but not in the chain of a kernel."""
    assert own_forms(parse_target("cortex-m55")) == (QuantisedMul,)
    assert not own_forms(parse_target("cortex-m4"))

    def make(build: Build, x: Value) -> Value:
        if where != "alone":
            total = build(MatMul(), x, build.constant(np.eye(len(EDGES), dtype=np.int8)))
            x = build(Requantise(), total, *(build.constant(np.asarray([v], np.int32)) for v in (2**30, 1)))
        product = build(BY, x, build.constant(EDGES))
        return build(SUM, product, x) if where == "beside another reader" else product

    graph = graph_of(make)
    kinds = [n.kind for n in graph.nodes]
    line = where == "behind a kernel"
    assert fuse_lines(graph, (QuantisedMul,)) is line
    assert [n.kind for n in graph.nodes] == ([*kinds[:-1], "QuantisedLine"] if line else kinds)


@pytest.mark.parametrize("seed", range(4))
def test_lines_that_there_are_are_found(seed: int) -> None:
    """All of them have one shift; what no line is says so."""
    rng = np.random.default_rng(seed)
    x = np.arange(-128, 128)
    slopes, offsets = rng.uniform(-1.5, 1.5, 40), rng.uniform(-90, 90, 40)
    wanted = np.clip(np.floor(slopes[:, None] * x + offsets[:, None]), -128, 127).astype(np.int64)
    found = lines(wanted, range(-128, 128), (-128, 127))
    assert not isinstance(found, str)
    total = found.slopes.astype(np.int64)[:, None] * x + found.offsets[:, None]
    assert np.abs(total).max() < 1 << 31
    assert np.array_equal(np.clip(total >> found.shift, found.low, found.high), wanted)
    wanted[7] = np.abs(x) // 2
    assert lines(wanted, range(-128, 128), (-128, 127)) == "it is no line"


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize("zero", [0, 1, 5, 120, 254, 255])
@pytest.mark.parametrize("factor", [1.0, 0.61, 1.7])
def test_a_slope_for_each_channel_bends_a_line(dtype: DType, zero: int, factor: float) -> None:
    """PRelu with zero points at the ends of their range, and beyond its limits."""
    low = dtype.limits[0]
    positive, negative = (quantise_multiplier(v) for v in (factor, factor / 9730.1))
    bent = QuantisedPRelu(low + zero, 0, Rescale(low + 255 - zero, *positive), Rescale(0, *negative))

    def make(build: Build, x: Value) -> Value:
        return build(bent, x, build.constant(EDGES * np.int16(100), DType.INT16))

    assert np.array_equal(at_all(make, dtype), at_all(make, dtype, ["QuantisedBend"]))


@pytest.mark.parametrize("seed", range(4))
def test_bends_that_there_are_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    t = np.arange(-128, 128) - (zero := int(rng.integers(-128, 128)))
    slopes = rng.uniform(-2, 2, (40, 1))
    real = np.where(t < 0, slopes, rng.uniform(0.1, 2)) * t + rng.integers(-20, 20)
    wanted = np.clip(np.floor(real + 0.5), -128, 127).astype(np.int64)
    found = bends(wanted, range(-128, 128), (-128, 127), zero)
    assert found is not None
    bent = np.minimum(t, 0) * found.less.astype(np.int64)[:, None] + found.offset
    total = t * found.slope + bent
    assert max(np.abs(bent).max(), np.abs(total).max(), np.abs(t * found.slope).max()) < 1 << 31
    assert np.array_equal(np.clip(total >> found.shift, -128, 127), wanted)
    wanted[7] = np.abs(t) // 2 % 100
    wanted[7, t >= 0] = wanted[0, t >= 0]
    wanted[7, 0] = 99
    assert bends(wanted, range(-128, 128), (-128, 127), zero) is None
    assert bends(np.stack([t, -t]), range(-128, 128), (-128, 127), zero) is None


@pytest.mark.parametrize("slope", [-(1 << 31), -7, -1, 0, 1, 2, 3, 5, 1000, 1 << 31])
@pytest.mark.parametrize("together", [False, True])
def test_the_only_slope(slope: int, together: bool) -> None:
    """Beside a function that has any, and between limits of which no offset is left but one."""
    x = np.arange(-128, 128)
    line = np.stack([slope * x + 5, slope * x])
    least, most = line.copy(), line.copy()
    least[1], most[1] = -BEYOND, BEYOND
    found = _slopes(least, most, x, together)
    assert found is not None and found[0] == slope
    assert not together or found[1] == slope


def test_functions_of_other_slopes_have_none_together() -> None:
    x = np.arange(-128, 128)
    rising = np.stack([3 * x, -3 * x])
    assert _slopes(rising, rising, x, together=True) is None
    each = _slopes(rising, rising, x, together=False)
    assert each is not None and each.tolist() == [3, -3]


def test_one_offset_between_two_limits() -> None:
    """0, of which the first and the last result are not less, and the middle one not more."""
    least, most = np.asarray([[0, -10, 0]]), np.asarray([[10, 0, 10]])
    found = _slopes(least, most, np.arange(3), together=False)
    assert found is not None and found.tolist() == [0]
