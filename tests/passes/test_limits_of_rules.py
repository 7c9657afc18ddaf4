"""Rules of passes at their limits: the last case that one is for, and the first that stays as it is. What is
made of the last means the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pass_case import made, numbers, tensor

from aot_model.ir.graph import Graph, Node
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.elementwise import op
from aot_model.ops.registry import OPERATORS, Build
from aot_model.ops.requantise import Requantise
from aot_model.passes import fold_constants, fuse_tables, qdq_elements, qdq_site, qdq_weights, share_results
from aot_model.passes.fuse_qdq import fuse_qdq
from batch import Case, run_cases
from graphs import Maker

BELOW, ABOVE = 1 - 2.0**-23, 1 + 2.0**-23
"""A float32 times it is another one."""
LIMIT = 2.0**31 - 2**17
"""Of results, from where 32 bits have no room for zero points of 16 bits and roundings."""


def quantised(
    function: Callable[..., Value],
    *shapes: tuple[int, ...],
    x: float = 1.0,
    to: float = 1.0,
    dtype: DType = DType.INT8,
    result: DType | None = None,
) -> Graph:
    """function of tensors of integers with the scale x, as integers with the scale `to`."""

    def build(m: Maker, *given: Value) -> Value:
        reals = [m.DequantizeLinear(q, numbers(x), numbers(0, dtype.numpy)) for q in given]
        zero = numbers(0, (result or dtype).numpy)
        return m.QuantizeLinear(function(m, *reals), numbers(to), zero)  # type: ignore[no-any-return]

    return made(build, *(tensor(f"q{k}", *s, dtype=dtype) for k, s in enumerate(shapes)))()


def computed(graph: Callable[[], Graph], x: np.ndarray) -> np.ndarray:
    (outcome,) = run_cases([Case("case", graph, (x,))], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    return outcome.outputs[0]


def softmax(m: Maker, x: Value) -> Value:
    return m.Softmax(x)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("x", "to", "fits"),
    [
        (1.0, 2.0**-20, True),
        (1.0, 2.0**-20 * BELOW, False),
        (1.0, 1.0, True),
        (1.0, ABOVE, False),
        (2.0**-24, 0.5, True),
        (2.0**-24 * BELOW, 0.5, False),
        (1024.0, 0.5, True),
        (1024 * ABOVE, 0.5, False),
    ],
)
def test_scales_of_a_softmax(x: float, to: float, fits: bool) -> None:
    def graph() -> Graph:
        return quantised(softmax, (2, 5), x=x, to=to, dtype=DType.INT16)

    assert fuse_qdq(graph()) is fits
    q = np.asarray([[3, -2, 3, 0, -32768], [0, 32767, 1, 1, 1]], np.int16)
    powers = np.exp((q - q.max(1, keepdims=True).astype(int)) * x)
    real = np.clip(powers / powers.sum(1, keepdims=True) / to, -32768, 32767)
    assert np.abs(computed(graph, q) - real).max() <= 0.501


@pytest.mark.parametrize(("to", "fits"), [(2.0**-16, True), (2.0**-16 * BELOW, False)])
def test_scales_of_a_sum(to: float, fits: bool) -> None:
    """A step of an operand is 2^16 of the result: their sum has 20 bits behind it, 17 of which are left."""
    assert fuse_qdq(quantised(lambda m, x, y: m.Add(x, y), (4,), (4,), to=to)) is fits


@pytest.mark.parametrize(("scale", "fits"), [(LIMIT / 2**14, False), (LIMIT / 2**14 - 1, True)])
def test_scales_of_a_product(scale: float, fits: bool) -> None:
    """(-128)^2 times it is beyond the limit or not."""
    assert (128 * 128 * scale >= LIMIT) is not fits
    assert fuse_qdq(quantised(lambda m, x, y: m.Mul(x, y), (4,), (4,), x=scale, to=scale)) is fits


@pytest.mark.parametrize(
    ("scale", "slopes", "fits"),
    [
        (2.0**24 - 2**10, (2.0**-10, 0.0), False),
        (2.0**24 - 2**10 - 1, (2.0**-10, 0.0), True),
        (1024.0, (2.0**14 - 1, 1.0), False),
        (1023.0, (2.0**14 - 1, 1.0), True),
        (1.0, (0.0, 0.0), True),
        (1.0, (np.inf, 1.0), False),
        (1.0, (np.nan, 1.0), False),
    ],
)
@pytest.mark.filterwarnings("error")
def test_slopes_have_room(scale: float, slopes: tuple[float, float], fits: bool) -> None:
    """-128 times the scale, and times the largest slope."""
    graph = quantised(lambda m, x: m.PRelu(x, numbers(np.reshape(slopes, (2, 1)))), (1, 2, 3), x=scale)
    assert fuse_qdq(graph) is fits


@pytest.mark.parametrize(
    ("kind", "number", "scale"),
    [
        ("Mul", 3.0, 1.5),
        ("Mul", 0.0, None),
        ("Mul", -1.0, None),
        ("Mul", 1e39, None),
        ("Div", 2.0, 0.25),
        ("Div", 0.0, None),
        ("Div", -1.0, None),
        ("Div", 1e-39, None),
    ],
)
@pytest.mark.filterwarnings("error")
def test_multiples_have_a_scale(kind: str, number: float, scale: float | None) -> None:
    x, by = Value("x", TensorType(DType.FLOAT32, (3,))), constant("by", np.asarray(number))
    nodes: list[Node] = []
    Build(nodes, "n")(op(kind), x, Value("by", x.type))
    half = replace(scaled(DType.INT16, 3), scale=np.asarray([0.5]))
    site: Any = SimpleNamespace(
        tensor=lambda v: half if v is x else None, real=lambda v: by.data, rescaled=lambda made: made.s
    )
    found = qdq_elements.multiple(site, nodes[0])
    assert str(scale or "the number is not positive, or too large") == str(found)


def slopes(m: Maker, x: Value) -> Value:
    return m.PRelu(x, numbers(np.ones((2, 1))))  # type: ignore[no-any-return]


def rows(scale: float) -> Callable[[Maker, Value], Value]:
    """Normalised."""
    return lambda m, x: m.LayerNormalization(x, numbers(np.full(3, scale)))[0]


def weights(m: Maker, *zeros: int) -> Value:
    """[3, 2], with a zero point for each column."""
    data = numbers([[-128, 127], [127, -128], [1, 2]], "int8")
    return m.DequantizeLinear(data, numbers([1.0, 2.0]), numbers(zeros, "int8"), axis=1)  # type: ignore[no-any-return]


def product(*zeros: int) -> Callable[[Maker, Value], Value]:
    return lambda m, x: m.MatMul(x, weights(m, *zeros))


def image(*zeros: int) -> Callable[[Maker, Value], Value]:
    """Weights of a convolution of one tap: [2, 2, 1]."""

    def make(m: Maker, x: Value) -> Value:
        data = numbers([[[-128], [127]], [[127], [-128]]], "int8")
        w = m.DequantizeLinear(data, numbers([1.0, 2.0]), numbers(zeros, "int8"), axis=0)
        return m.Conv(x, w)  # type: ignore[no-any-return]

    return make


@pytest.mark.parametrize(
    ("function", "given", "fits"),
    [
        (slopes, {}, True),
        (slopes, {"result": DType.UINT8}, False),
        (rows(1.0), {}, True),
        (rows(1.0), {"dtype": DType.INT16}, False),
        (rows(np.inf), {}, False),
        (product(3, -4), {}, True),
        (product(0, 0), {"dtype": DType.INT16}, True),
        (product(3, -4), {"dtype": DType.INT16}, False),
        (image(3, -4), {}, True),
        (image(0, 0), {"dtype": DType.INT16}, True),
        (image(3, -4), {"dtype": DType.INT16}, False),
    ],
)
def test_types_that_rules_take(
    function: Callable[[Maker, Value], Value], given: dict[str, Any], fits: bool
) -> None:
    graph = quantised(function, (1, 2, 3), **given)
    fuse_qdq(graph)
    assert all(n.kind != "QuantizeLinear" for n in graph.nodes) is fits


@pytest.mark.parametrize(
    ("real", "most", "meets"),
    [
        (2.0**-3, 4, True),
        (2.0**-3, 3, False),
        (0.5, 1, True),
        (1.5, 1, True),
        (1.0, 2**20, False),
        (3.0, 2**20, False),
        (0.75, 2, True),
        (0.75, 1, False),
    ],
)
def test_whole_numbers_that_become_halves(real: float, most: float, meets: bool) -> None:
    assert any(k * real % 1 == 0.5 for k in range(min(int(most), 8) + 1)) is meets
    assert qdq_site._meets_ties(real, most) is meets


@pytest.mark.parametrize(("terms", "wide"), [(511, False), (512, True)])
def test_sums_of_half_words_that_leave_32_bits(terms: int, wide: bool) -> None:
    """512 times -32768 * -128 is 2^31."""
    weights = constant("w", np.full((terms, 1), -128, np.int8))
    graph = quantised(
        lambda m, x: m.MatMul(x, m.DequantizeLinear(weights, numbers(1.0))),
        (1, terms),
        to=2.0**17,
        dtype=DType.INT16,
    )
    assert fuse_qdq(graph)
    (rounding,) = (n.op.rounding for n in graph.nodes if isinstance(n.op, Requantise))
    assert (rounding == "wide") is wide


def scaled(dtype: DType, *shape: int) -> qdq_site.Scaled:
    """Of ones."""
    return qdq_site.Scaled(constant("v", np.ones(shape, dtype.numpy)), np.ones(1), np.zeros(1))


@pytest.mark.parametrize(("terms", "most"), [(2**17 - 1, 2**31 - 2**14), (2**17, 2**24)])
def test_bounds_of_long_sums_are_those_of_their_weights(terms: int, most: float) -> None:
    """Where 32 bits might not hold them."""
    w = scaled(DType.INT8, terms, 1)
    assert qdq_weights.largest_sum(scaled(DType.INT8, 1), w, 1, terms, None) == most


@pytest.mark.parametrize(
    ("dtype", "bias", "unit", "to", "terms", "said"),
    [
        (DType.INT8, 0.5, 1.0, 1.0, 0.0, ""),
        (DType.INT8, 0.5, 1.0, BELOW, 0.0, "half a step"),
        (DType.INT8, None, 1.0, 1.0, 2.0**31 - 1, ""),
        (DType.INT8, None, 1.0, 1.0, 2.0**31, "beyond 32 bits"),
        (DType.INT16, None, 1.0, 1.0, 2.0**47 - 1, ""),
        (DType.INT16, None, 1.0, 1.0, 2.0**47, "beyond 48 bits"),
        (DType.INT16, None, 2.0**-32, 1.0, 2.0**40, ""),
        (DType.INT16, None, 2.0**-33, 1.0, 2.0**32, "too small"),
        (DType.INT16, None, 2.0**-33, 1.0, 2.0**32 - 1, ""),
    ],
)
def test_sums_fit(dtype: DType, bias: float | None, unit: float, to: float, terms: float, said: str) -> None:
    site: Any = SimpleNamespace(to=SimpleNamespace(s=to))
    given = None if bias is None else np.asarray([bias])
    why = qdq_weights.unfit(site, given, np.asarray([unit]), scaled(dtype, 1), terms)
    assert bool(why) is bool(said) and said in why, why


@pytest.mark.parametrize(("count", "told"), [(1024, True), (1025, False)])
def test_arrays_that_are_told_apart(count: int, told: bool) -> None:
    """4096 bytes are compared."""
    one, two = (np.zeros(count, np.float32) for _ in range(2))
    assert (share_results._input(constant("a", one)) == share_results._input(constant("b", two))) is told
    if told:
        assert share_results._told_apart(one) == share_results._told_apart(two)
    else:
        with pytest.raises(TypeError):
            share_results._told_apart(one)
    with pytest.raises(TypeError):
        share_results._told_apart(np.asarray(["a"], object))


def chain(length: int) -> Graph:
    """So many operators on integers."""

    def build(m: Maker, x: Value) -> Value:
        for k in range(length):
            x = m.Add(x, numbers([k % 3], "int8"))
        return x

    return made(build, tensor("x", 4, dtype=DType.INT8))()


@pytest.mark.parametrize(("length", "table"), [(fuse_tables.MOST, True), (fuse_tables.MOST + 1, False)])
def test_operators_of_a_table(length: int, table: bool) -> None:
    assert fuse_tables.fuse_tables(chain(length)) is table


def sum_of(*shape: int) -> Node:
    x = Value("x", TensorType(DType.FLOAT32, shape))
    nodes: list[Node] = []
    Build(nodes, "n")(OPERATORS["", "ReduceSum"](keepdims=0), x)  # type: ignore[call-arg]
    return nodes[0]


@pytest.mark.parametrize(("more", "known"), [(0, True), (1, False)])
def test_additions_of_a_constant(more: int, known: bool) -> None:
    assert (fold_constants._too_much_work(sum_of(fold_constants.MAX_WORK + more)) is None) is known


@pytest.mark.parametrize(("elements", "known"), [(64, True), (65, False)])
def test_elements_between_constants(elements: int, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large to be a constant may be on the way to a small one."""
    monkeypatch.setattr(fold_constants, "MAX_PASSING", 64)
    monkeypatch.setattr(fold_constants, "MAX_GROWTH", 1)

    def build(m: Maker) -> Value:
        wide = m.Expand(numbers([2.0]), numbers([elements], "int64"))
        return m.ReduceSum(wide, numbers([0], "int64"))  # type: ignore[no-any-return]

    graph = made(build)()
    fold_constants.fold_constants(graph)
    (y,) = graph.outputs
    assert y.is_const is known
    assert y.data is None or y.data.tolist() == [2.0 * elements]


@pytest.mark.parametrize(("scale", "zero"), [((1.0, 2.0, 4.0), True), ((1.0, 2.0, 4.0), False), (None, True)])
def test_views_before_what_has_axes_of_its_own(scale: tuple[float, ...] | None, zero: bool) -> None:
    """A scale for each row of the new shape is none of the old one."""

    def build(m: Maker, x: Value, s: Value) -> Value:
        y = m.Reshape(m.Relu(x), numbers([3, 4], "int64"))
        each = s if scale is None else numbers(scale)
        zeros = [numbers(np.zeros(np.shape(scale or 1.0)), "int8")] if zero else []
        return m.QuantizeLinear(y, each, *zeros, axis=0)  # type: ignore[no-any-return]

    graph = made(build, tensor("x", 2, 6), tensor("s"))()
    fuse_qdq(graph)
    assert [n.kind for n in graph.nodes] == ["Relu", "Reshape", "QuantizeLinear"]


@pytest.mark.parametrize(("shape", "axis"), [((2, 3), 1), ((3, 2), 0), ((2, 3, 1), 1)])
def test_constants_with_a_scale_for_each_channel(shape: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(3)
    w, q = rng.integers(-100, 100, (2, *shape)).astype(np.int8)
    scale, zero = np.float32([0.25, 1, 2]), np.int8([3, 0, -7])

    def build(m: Maker, x: Value) -> Value:
        real = m.DequantizeLinear(
            constant("w", w), constant("scale", scale), constant("zero", zero), axis=axis
        )
        total = m.Add(m.DequantizeLinear(x, numbers(0.5), numbers(0, np.int8)), real)
        return m.QuantizeLinear(total, numbers(4.0), numbers(0, np.int8))  # type: ignore[no-any-return]

    apart = tuple(3 if k == axis else 1 for k in range(len(shape)))
    real = q * 0.5 + (w - zero.astype(float).reshape(apart)) * scale.reshape(apart)
    graph = made(build, tensor("q", *shape, dtype=DType.INT8))
    assert (computed(graph, q) == np.clip(np.rint(real / 4), -128, 127)).all()
