"""Integer functions of one tensor of bytes become a table, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.activation import Elu
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.quantised import QuantisedMul, QuantisedSum
from aot_model.ops.quantised_linear import DequantizeLinear, Quantise
from aot_model.ops.quantised_tables import Lookup, lookup
from aot_model.ops.registry import OPERATORS, Build, load_all
from aot_model.ops.requantise import Requantise, Rescale
from aot_model.passes.explain import reasons
from aot_model.passes.fuse_tables import fuse_tables

GATE = [(k * k) % 251 - 125 for k in range(256)]
HALF = Rescale(-3, 1518500250, -6)
SUM = QuantisedSum("add", HALF, HALF, HALF, 20)


def graph_of(
    make: Callable[[Build, Value], list[Value]], dtype: DType = DType.INT8, shape: tuple[int, ...] = (1, 3, 4)
) -> Graph:
    load_all()
    x = Value("x", TensorType(dtype, shape))
    graph = Graph("g", [x])
    graph.outputs = make(Build(graph.nodes, "n"), x)
    return graph


def kinds(graph: Graph) -> list[str]:
    return [n.kind for n in graph.nodes]


def the_table(graph: Graph) -> list[int]:
    (node,) = graph.nodes
    assert isinstance(node.op, Lookup) and node.inputs == graph.inputs and node.outputs == graph.outputs
    return list(node.op.table.values)


def silu(build: Build, x: Value) -> list[Value]:
    gate = build(lookup(x.dtype, GATE if x.dtype is DType.INT8 else [g + 128 for g in GATE]), x)
    low, high = (int(v) for v in x.dtype.limits)
    return [
        build(QuantisedMul(5, -7, Rescale(low + 9, HALF.multiplier, HALF.shift), low, high, x.dtype), x, gate)
    ]


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_silu(dtype: DType) -> None:
    before, after = graph_of(silu, dtype), graph_of(silu, dtype)
    assert fuse_tables(after)
    every = np.arange(dtype.limits[0], dtype.limits[1] + 1).astype(dtype.numpy)
    gate = before.nodes[0].op.reference([every])[0]
    assert the_table(after) == before.nodes[1].op.reference([every, gate])[0].tolist()
    assert not fuse_tables(after)  # one table is no chain


def test_wider_integers_and_constants_between() -> None:
    """Through int32, with numbers of one element in several shapes."""

    def make(build: Build, x: Value) -> list[Value]:
        wide = build(op("Add"), build(Cast(DType.INT32), x), build.constant([[[1000]]], DType.INT32))
        return [
            build(
                Requantise(2, -100, 90),
                wide,
                build.constant([1717986918], DType.INT32),
                build.constant([-3], DType.INT32),
            )
        ]

    graph = graph_of(make)
    (wanted,) = Requantise(2, -100, 90).reference(
        [np.arange(-128, 128, dtype=np.int32) + 1000, np.asarray([1717986918]), np.asarray([-3])]
    )
    assert fuse_tables(graph) and the_table(graph) == wanted.tolist()


def test_square() -> None:
    graph = graph_of(lambda build, x: [build(QuantisedMul(1, 1, HALF), x, x)])
    every = np.arange(-128, 128, dtype=np.int8)
    assert fuse_tables(graph)
    assert the_table(graph) == QuantisedMul(1, 1, HALF).reference([every, every])[0].tolist()


def test_value_that_others_read_is_kept() -> None:
    """The gate is an output too: a second table would replace one operator and take 256 bytes."""

    def make(build: Build, x: Value) -> list[Value]:
        found = silu(build, x)
        return [*found, build.nodes[0].outputs[0]]

    graph = graph_of(make)
    assert not fuse_tables(graph) and kinds(graph) == ["Lookup", "QuantisedMul"]


def by_channel(build: Build, x: Value) -> list[Value]:
    y = build(SUM, x, build.constant(np.arange(4), DType.INT8))
    return [build(QuantisedMul(0, 0, HALF), y, build.constant(np.arange(4), DType.INT8))]


def floats(build: Build, x: Value) -> list[Value]:
    return [build(Cast(DType.INT8), build(op("Tanh"), build(Cast(DType.FLOAT32), x)))]


def alone(build: Build, x: Value) -> list[Value]:
    return [build(QuantisedMul(0, 0, HALF), x, build.constant([3], DType.INT8))]


def more_axes(build: Build, x: Value) -> list[Value]:
    y = build(QuantisedMul(0, 0, HALF), x, build.constant(np.int8([[[[3]]]]), DType.INT8))
    return [build(SUM, y, build.constant([5], DType.INT8))]


def through_nibbles(build: Build, x: Value) -> list[Value]:
    scale, zero = build.constant(0.5, DType.FLOAT32), build.constant(0, DType.INT4)
    few = build(Quantise(), build(DequantizeLinear(), x, scale), scale, zero)
    return [build(Quantise(), build(DequantizeLinear(), few, scale), scale, build.constant(0, DType.INT8))]


@pytest.mark.parametrize("make", [by_channel, floats, alone, more_axes, through_nibbles])
def test_what_is_no_function_of_one_tensor_of_bytes(make: Callable[[Build, Value], list[Value]]) -> None:
    graph = graph_of(make)
    before = kinds(graph)
    assert not fuse_tables(graph) and kinds(graph) == before


def test_what_passes_take_for_granted_of_operators_by_element() -> None:
    load_all()
    for kind in {k for k in OPERATORS.values() if k.elementwise}:
        assert kind.has("express") and not kind.effects and not kind.deferred, kind.name
        for sample in kind.samples():
            values = [None if a is None else constant("a", a) for a in sample.inputs]
            assert len(kind(**sample.attributes).infer(values)) == 1, kind.name


def test_wide_inputs_have_no_table() -> None:
    graph = graph_of(lambda build, x: [build(op("Neg"), build(op("Neg"), x))], DType.INT16)
    assert not fuse_tables(graph)


def test_masks_have_no_table() -> None:
    """A bool takes a byte, but has two values: a masked score of attention, quantised."""

    def make(build: Build, x: Value) -> list[Value]:
        real = build(op("Where"), x, *(build.constant(v, DType.FLOAT32) for v in (0.0, -3.0e38)))
        step, zero = build.constant(1.2e36, DType.FLOAT32), build.constant(127, DType.INT8)
        return [build(Quantise(), real, step, zero)]

    graph = graph_of(make, DType.BOOL)
    assert not fuse_tables(graph) and kinds(graph) == ["Where", "Quantise"]


def test_long_chains_say_why() -> None:
    def make(build: Build, x: Value) -> list[Value]:
        for _ in range(40):
            x = build(op("Neg"), x)
        return [x]

    with reasons() as said:
        assert not fuse_tables(graph_of(make))
    assert any("more than 32" in line for line in said)


def island(
    function: Callable[[Build, Value], Value], scale: float = 0.031, step: float = 0.027, zero: int = -37
) -> Callable[[Build, Value], list[Value]]:
    """int8 that are floats for a while, as a converter leaves what it has no integers for."""

    def make(build: Build, x: Value) -> list[Value]:
        first = [build.constant(scale, DType.FLOAT32), build.constant(np.asarray(5, x.dtype.numpy), x.dtype)]
        real = function(build, build(DequantizeLinear(), x, *first))
        last = [build.constant(step, DType.FLOAT32), build.constant(np.asarray(zero, x.dtype.numpy), x.dtype)]
        return [build(Quantise(), real, *last)]

    return make


FUNCTIONS: dict[str, tuple[Callable[[Build, Value], Value], Callable[[np.ndarray], np.ndarray]]] = {
    "elu": (lambda b, x: b(Elu(0.7), x), lambda v: np.where(v < 0, 0.7 * np.expm1(v), v)),
    "silu": (lambda b, x: b(op("Mul"), x, b(op("LibmSigmoid"), x)), lambda v: v / (1 + np.exp(-v))),
    "sin": (lambda b, x: b(op("Sin"), x), np.sin),
    "of two": (
        lambda b, x: b(op("Max"), b(op("Exp"), x), b(op("Neg"), x)),
        lambda v: np.maximum(np.exp(v), -v),
    ),
    "softplus": (
        lambda b, x: b(op("Log"), b(op("Add"), b(op("Exp"), x), b.constant(1, DType.FLOAT32))),
        lambda v: np.log1p(np.exp(v)),
    ),
    "nothing": (lambda b, x: x, lambda v: v),
}


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats_between_integers(name: str, dtype: DType) -> None:
    """The table is the function of real numbers, rounded once."""
    make, function = FUNCTIONS[name]
    low, high = (int(v) for v in dtype.limits)
    zero = low + 91
    graph = graph_of(island(make, zero=zero), dtype)
    assert fuse_tables(graph)
    every = np.arange(low, high + 1, dtype=np.float64)
    reals = function((every - 5) * np.float64(np.float32(0.031))) / np.float64(np.float32(0.027))
    wanted = np.copysign(np.floor(np.abs(reals) + 0.5), reals) + zero
    assert the_table(graph) == np.clip(wanted, low, high).astype(int).tolist()


def test_a_tie_that_libraries_may_round_either_way() -> None:
    """exp(0) is 1 in all of them but for the proof: half-way between two integers of step 2, and near it."""
    for step, exact in ((2.0, False), (2.0 * (1 + 2**-22), False), (2.01, True)):
        graph = graph_of(island(lambda b, x: b(op("Exp"), x), step=step, scale=0.01))
        with reasons() as said:
            assert fuse_tables(graph) == exact
        assert exact or any("however floats are rounded" in line for line in said)


def test_a_tie_of_what_is_rounded_as_the_standard_says() -> None:
    """5 steps of 0.5 are 2.5 in every processor: 3, away from zero."""
    graph = graph_of(island(lambda b, x: b(op("Neg"), x), scale=0.5, step=1.0, zero=0))
    assert fuse_tables(graph)
    every = np.arange(-128, 128) - 5
    assert the_table(graph) == [int(-np.sign(v) * ((abs(v) + 1) // 2)) for v in every]


def test_floats_that_something_else_reads_stay() -> None:
    def make(build: Build, x: Value) -> list[Value]:
        found = island(lambda b, v: b(op("Exp"), v))(build, x)
        return [*found, build.nodes[1].outputs[0]]

    graph = graph_of(make)
    assert not fuse_tables(graph)
