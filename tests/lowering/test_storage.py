"""Which values get memory: what would be computed twice is stored, the rest is fused into its reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.lowering.lower import lower
from aot_model.lowering.storage import MAX_FUSED_DEPTH, MAX_FUSED_OPERATIONS, stored_values
from aot_model.passes.expand import expand
from aot_model.targets.registry import parse_target
from graphs import graph, value, weights

X = value("x", 2, 6)


def inner_stored(make: Callable[..., Any], *inputs: Value, calls: Sequence[str] = ()) -> list[str]:
    """Kinds of the nodes whose results are stored, without the graph's own outputs. calls: operators that
    kernels compute.
    """
    g = graph(make, *inputs)
    expand(g)
    return stored_kinds(g, calls)


def stored_kinds(g: Graph, calls: Sequence[str] = ()) -> list[str]:
    found = stored_values(
        g, lambda n: [v for v in n.inputs if v is not None] if n.kind in calls else None, set()
    )
    assert set(g.inputs) | set(g.outputs) <= found
    return [n.kind for n in g.nodes if n.outputs[0] in found and n.outputs[0] not in g.outputs]


def test_a_chain_of_elements_is_one_expression() -> None:
    assert inner_stored(lambda m, x: m.Relu(m.Neg(m.Abs(x))), X) == []


def test_what_two_read_is_computed_once() -> None:
    def twice(m: Any, x: Value) -> Sequence[Value]:
        y = m.Exp(x)
        return m.Neg(y), m.Abs(y)

    assert inner_stored(twice, X) == ["Exp"]


def meeting(m: Any, x: Value) -> Value:
    y = m.Exp(x)
    z = m.Add(m.Neg(y), m.Sqrt(y))
    return m.Mul(z, m.Tanh(z))  # type: ignore[no-any-return]


def test_what_meets_again_is_one_expression() -> None:
    """What two read is a local of the loop."""
    assert inner_stored(meeting, X) == []


def two_ways(m: Any, x: Value, length: int) -> Value:
    """The first operation is written out twice."""
    a = b = m.Exp(x)
    for _ in range(length):
        a, b = m.Sqrt(a), m.Neg(b)
    return m.Add(a, b)  # type: ignore[no-any-return]


APART = {
    "it is spread": lambda m, x: m.Add(
        m.Mul(y := m.Exp(x), weights("w", 3, 2, 6)), m.Add(y, weights("v", 3, 2, 6))
    ),
    "a part is spread": lambda m, x: m.Add(m.Neg(y := m.Exp(x)), m.Mul(y, weights("w", 3, 2, 6))),
    "another output": lambda m, x: [m.Add(n := m.Neg(y := m.Exp(x)), m.Abs(y)), n],
    "a kernel reads it": lambda m, x: m.Add(y := m.Exp(x), m.MatMul(y, weights("w", 6, 6))),
    "too many operations": lambda m, x: two_ways(m, x, MAX_FUSED_OPERATIONS // 2 - 1),
}


@pytest.mark.parametrize("why", APART)
def test_what_does_not_meet_is_stored(why: str) -> None:
    assert "Exp" in inner_stored(APART[why], X, calls=("MatMul",))


def test_an_expression_that_meets_may_be_as_long_as_others() -> None:
    assert inner_stored(lambda m, x: two_ways(m, x, MAX_FUSED_OPERATIONS // 2 - 2), X) == []


def test_what_meets_again_and_again_is_cut() -> None:
    """It doubles each time."""

    def nested(m: Any, x: Value) -> Value:
        for _ in range(20):
            y = m.Sqrt(x)
            x = m.Mul(y, m.Neg(y))
        return x

    assert 4 <= len(inner_stored(nested, X)) < 20


def test_a_sum_that_two_read_is_computed_once() -> None:
    """Its loop is written once: every reader asks for the same element."""
    x = value("x", 4, 9)
    total = graph(lambda m, x: m.Add(y := m.ReduceSum(x, constant("a", np.asarray([1]))), m.Sqrt(y)), x)
    (call,) = lower(total, parse_target("c")).calls()
    assert call.function.body.count("for (") == 2


def test_floats_that_become_integers_are_one_expression() -> None:
    scale, zero = constant("s", np.float32([0.5])), constant("z", np.asarray([3], np.int8))
    assert inner_stored(lambda m, x: m.QuantizeLinear(m.Exp(x), scale, zero), X) == []


def test_moving_twice_costs_nothing() -> None:
    def twice(m: Any, x: Value) -> Value:
        y = m.Transpose(x, perm=(1, 0))
        return m.Add(m.Neg(y), m.Abs(y))  # type: ignore[no-any-return]

    assert inner_stored(twice, X) == []


def test_what_is_spread_over_more_elements_is_computed_before() -> None:
    spread = lambda m, x, y: m.Add(m.Exp(x), y)  # noqa: E731
    assert inner_stored(spread, value("x", 1, 6), value("y", 5, 6)) == ["Exp"]
    assert inner_stored(spread, value("x", 5, 6), value("y", 1, 6)) == []


def test_a_repeated_window_of_something_dear_is_computed_before() -> None:
    rows = lambda n: constant("rows", np.arange(n, dtype=np.int64) % 2)  # noqa: E731
    assert inner_stored(lambda m, x: m.Gather(m.Exp(x), rows(5)), X) == ["Exp"]
    assert inner_stored(lambda m, x: m.Gather(m.Exp(x), rows(2)), X) == []


def test_a_sum_is_not_repeated_for_every_element_that_reads_it() -> None:
    assert inner_stored(
        lambda m, x: m.Sub(x, m.ReduceSum(x, constant("axes", np.asarray([1], np.int64)), keepdims=1)), X
    ) == ["ReduceSum"]
    assert (
        inner_stored(
            lambda m, x: m.Neg(m.ReduceSum(x, constant("axes", np.asarray([1], np.int64)), keepdims=1)), X
        )
        == []
    )


def test_kernels_read_and_write_memory() -> None:
    assert inner_stored(lambda m, x: m.Relu(m.MatMul(m.Neg(x), weights("w", 6, 3))), X, calls=["MatMul"]) == [
        "Neg",
        "MatMul",
    ]


def test_operands_of_products_are_stored() -> None:
    """Each row meets each column."""
    assert inner_stored(lambda m, x: m.MatMul(m.Exp(x), weights("w", 6, 3)), X) == ["Exp"]


@pytest.mark.parametrize(("kind", "limit"), [("Neg", MAX_FUSED_OPERATIONS), ("Transpose", MAX_FUSED_DEPTH)])
def test_long_chains_are_cut(kind: str, limit: int) -> None:
    def chain(m: Any, x: Value) -> Value:
        for _ in range(2 * limit + 1):
            x = getattr(m, kind)(x)
        return x

    g = graph(chain, value("x", 3, 3))
    assert len(stored_kinds(g)) >= 1
    between = [k for k, n in enumerate(g.nodes) if n.outputs[0] in stored_values(g, lambda n: None, set())]
    assert max(b - a for a, b in zip([-1, *between], between, strict=False)) <= limit + 1


def test_a_result_of_a_kernel_is_in_memory_wherever_it_meets() -> None:
    stored = inner_stored(lambda m, x: meeting(m, m.MatMul(x, weights("w", 6, 6))), X, calls=["MatMul"])
    assert stored == ["MatMul"]


def test_every_33rd_of_a_chain_is_stored() -> None:
    def chain(m: Any, x: Value) -> Value:
        for _ in range(40):
            x = m.Neg(x)
        return x

    g = graph(chain, X)
    found = stored_values(g, lambda n: None, set())
    assert [k for k, n in enumerate(g.nodes) if n.outputs[0] in found] == [32, 39]


def negated(m: Any, x: Value, times: int) -> Value:
    for _ in range(times):
        x = m.Neg(x)
    return x


def test_the_deepest_of_several_counts() -> None:
    found = inner_stored(lambda m, x: negated(m, m.Add(negated(m, x, 20), m.Abs(x)), 20), X)
    assert found == ["Neg"]


AXIS = constant("axis", np.asarray([1]))


@pytest.mark.parametrize(("make", "expected"), [
    (lambda m, x: m.Transpose(m.Exp(m.ReduceSum(x, AXIS)), perm=(1, 0)), ["Exp"]),
    (lambda m, x: m.Transpose(m.Exp(m.Neg(x)), perm=(1, 0)), []),
    (lambda m, x: m.Concat(m.Exp(x), x, axis=0), []),
    (lambda m, x: m.Abs(two_ways(m, x, 22)), []),
    (lambda m, x: m.Neg(m.Abs(two_ways(m, x, 22))), ["Exp"]),
], ids=["a sum", "no sum", "joined", "48 operations", "49 operations"])  # fmt: skip
def test_what_is_read_once_is_an_expression_unless_it_is_a_sum(
    make: Callable[..., Any], expected: list[str]
) -> None:
    assert inner_stored(make, X) == expected


def test_what_meets_by_way_of_a_call_is_in_memory() -> None:
    assert inner_stored(meeting, X, calls=["Sqrt"]) == ["Exp", "Sqrt"]


def summed(m: Any, terms: Sequence[Value]) -> Value:
    """Their sum, each two at a time."""
    while len(terms) > 1:
        pairs = [m.Add(*terms[k : k + 2]) for k in range(0, len(terms) - 1, 2)]
        terms = [*pairs, *terms[2 * len(pairs) :]]
    return terms[0]


GIVEN = value("index", 2, dtype=DType.INT64)


@pytest.mark.parametrize(("make", "expected"), [
    (lambda m, x, i: summed(m, [x] * 48), []),
    (lambda m, x, i: summed(m, [x] * 49), ["Add"]),
    (lambda m, x, i: m.Mul(summed(m, [x] * 48), weights("w", 2, 6)), []),
    (lambda m, x, i: summed(m, [m.Gather(x, i)] * 6), []),
    (lambda m, x, i: summed(m, [m.Gather(x, i)] * 7), ["Add"]),
    (lambda m, x, i: summed(m, [*(m.Neg(x) for _ in range(23)), m.Neg(m.Neg(x))]), []),
    (lambda m, x, i: summed(m, [*(m.Neg(x) for _ in range(22)), *(m.Neg(m.Neg(x)) for _ in "ab")]), ["Add"]),
], ids=["48 loads", "49 loads", "a constant", "6 looked up", "7 looked up", "48", "49"])  # fmt: skip
def test_how_long_an_expression_is(make: Callable[..., Any], expected: list[str]) -> None:
    assert inner_stored(lambda m, x, i: m.Abs(make(m, x, i)), X, GIVEN) == expected


@pytest.mark.parametrize("reader", [
    lambda m, x: m.LRN(x, size=3),
    lambda m, x: m.Einsum(x, x, equation="abcd,abce->de"),
    lambda m, x: m.Resize(x, None, constant("s", np.asarray([1, 1, 0.5, 0.5], np.float32)), mode="cubic"),
    lambda m, x: m.GridSample(x, weights("g", 1, 2, 2, 2)),
    lambda m, x: m.Frames(m.Reshape(x, constant("shape", np.asarray([2, 36]))), length=4, step=2),
])  # fmt: skip
def test_what_a_reader_reads_again_is_computed_once(reader: Callable[..., Any]) -> None:
    """Windows that overlap, channels that meet others, frames: the exponential is not computed for each."""
    stored = inner_stored(lambda m, x: reader(m, m.Exp(x)), value("x", 1, 2, 6, 6))
    assert stored[0] in ("Exp", "Reshape")


@pytest.mark.parametrize("absorbed", [False, True])
def test_what_a_kernel_goes_on_with_is_stored_where_another_reads_it(absorbed: bool) -> None:
    """What two read meets again in one loop; not where one of the two is the tail of a kernel."""
    g = graph(meeting, X)
    expand(g)
    exp, neg = (next(n for n in g.nodes if n.kind == kind).outputs[0] for kind in ("Exp", "Neg"))
    found = stored_values(g, lambda n: None, {neg} if absorbed else set())
    assert (exp in found) is absorbed
