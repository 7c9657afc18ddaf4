"""Which nodes of a graph a target takes, and why a node was not taken."""

from __future__ import annotations

from vector_unit import UNIT, on, reasons, unit

from aot_model.ir.graph import Graph
from aot_model.ir.pattern import op
from aot_model.ir.pattern import value as any_value
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.partition.offload import Claim
from aot_model.partition.partition import partition
from graphs import Maker, graph, kinds, value, weights

X, Y = value("x", 2, 4), value("y", 2, 4)


def test_nothing_to_take() -> None:
    g = graph(lambda m, x: m.Relu(x), X)
    before = str(g)
    assert not partition(g, [on("Tanh")]).regions
    assert str(g) == before


def test_one_operator() -> None:
    g = graph(lambda m, x, y: m.Sigmoid(m.Add(x, y)), X, Y)
    (region,) = partition(g, [on("Add")]).regions
    assert kinds(g.nodes) == ["Region", "Sigmoid"] and kinds(region.nodes) == ["Add"]
    assert [v.name for v in region.graph.inputs] == ["x", "y"] and region.graph.outputs[0].name == g.nodes[
        0
    ].outputs[0].name
    assert region.name == "unit_0"
    region.graph.verify()


def test_operators_that_touch_are_one_region() -> None:
    g = graph(lambda m, x, y: m.Sub(m.Relu(m.Add(x, y)), m.Mul(y, y)), X, Y)
    (region,) = partition(g, [on("Add", "Sub", "Mul", "Relu")]).regions
    assert kinds(g.nodes) == ["Region"] and kinds(region.nodes) == ["Add", "Relu", "Mul", "Sub"]
    assert [m.pattern for m in region.matches] == ["add", "relu", "mul", "sub"]


def test_merging_can_be_turned_off() -> None:
    g = graph(lambda m, x, y: m.Relu(m.Add(x, y)), X, Y)
    assert [r.name for r in partition(g, [on("Add", "Relu", merge=False)]).regions] == ["unit_0", "unit_1"]
    assert kinds(g.nodes) == ["Region", "Region"]


def test_three_regions_around_what_stays() -> None:
    g = graph(lambda m, x, y: m.Add(m.Tanh(m.Mul(m.Tanh(m.Add(x, y)), y)), x), X, Y)
    assert len(partition(g, [on("Add", "Mul")]).regions) == 3
    assert kinds(g.nodes) == ["Region", "Tanh", "Region", "Tanh", "Region"]


def test_the_largest_match_is_taken() -> None:
    g = graph(lambda m, x: m.Relu(m.Add(m.MatMul(x, weights("w", 4, 3)), weights("b", 3))), X)
    (region,) = partition(g, [UNIT]).regions
    (match,) = region.matches
    assert (
        match.pattern == "dense" and match.has("relu") and match.value("w").name == "w" and match.macs == 24
    )


def test_the_smaller_match_where_the_larger_is_read_elsewhere() -> None:
    """relu(sum) and sum itself are wanted: the sum is a result, so the activation is not fused."""

    def make(m: Maker, x: Value) -> list[Value]:
        s = m.Add(m.MatMul(x, weights("w", 4, 3)), weights("b", 3))
        return [m.Relu(s), m.Tanh(s)]

    g = graph(make, X)
    (region,) = partition(g, [unit(patterns=UNIT.offload.patterns[:1])]).regions  # type: ignore[union-attr]
    assert not region.matches[0].has("relu") and kinds(g.nodes) == ["Region", "Relu", "Tanh"]


def test_a_value_inside_that_is_read_elsewhere_prevents_the_match() -> None:
    def make(m: Maker, x: Value, y: Value) -> list[Value]:
        s = m.Add(x, y)
        return [m.Relu(s), m.Tanh(s)]

    g = graph(make, X, Y)
    assert reasons(g, unit(patterns=(Claim("both", op("Relu", op("Add"))),)))["relu1"] == [
        "the result of Add 'add0' is read elsewhere"
    ]
    assert kinds(g.nodes) == ["Add", "Relu", "Tanh"]


def test_an_output_of_the_graph_inside_prevents_the_match() -> None:
    g = graph(lambda m, x, y: (lambda s: [s, m.Relu(s)])(m.Add(x, y)), X, Y)
    assert reasons(g, unit(patterns=(Claim("both", op("Relu", op("Add"))),)))["relu1"] == [
        "the result of Add 'add0' is read elsewhere"
    ]


def test_order_of_patterns_decides() -> None:
    def made() -> Graph:
        return graph(lambda m, x, y: m.Relu(m.Add(x, y)), X, Y)

    both, alone = Claim("both", op("Relu", op("Add"))), Claim("alone", op("Add"))
    assert [m.pattern for m in partition(made(), [unit(patterns=(both, alone))]).regions[0].matches] == [
        "both"
    ]
    assert [m.pattern for m in partition(made(), [unit(patterns=(alone, both))]).regions[0].matches] == [
        "alone"
    ]


def test_a_node_is_in_one_match_only() -> None:
    """a + b + c: either the first two or the last two, never all three twice."""
    g = graph(lambda m, x, y: m.Add(m.Add(m.Add(x, y), y), y), X, Y)
    (region,) = partition(g, [unit(patterns=(Claim("two", op("Add", op("Add"))),))]).regions
    assert kinds(region.nodes) == ["Add", "Add"] and kinds(g.nodes) == ["Add", "Region"]


def test_parallel_matches() -> None:
    g = graph(lambda m, x, y: m.Sub(m.Relu(m.Add(x, y)), m.Relu(m.Add(y, y))), X, Y)
    assert len(partition(g, [unit(patterns=(Claim("both", op("Relu", op("Add"))),))]).regions) == 2


def test_the_same_operator_twice_in_two_patterns() -> None:
    g = graph(lambda m, x, y: m.Mul(m.Relu(m.Add(x, y)), m.Sub(x, y)), X, Y)
    target = unit(patterns=(Claim("add_relu", op("Relu", op("Add"))), Claim("sub", op("Sub"))))
    assert [[m.pattern for m in r.matches] for r in partition(g, [target]).regions] == [["add_relu"], ["sub"]]


def test_checks_say_why() -> None:
    def check(match: object, target: object) -> str | None:
        return "too large" if match.result.outputs[0].shape[0] > 1 else None  # type: ignore[attr-defined]

    target = unit(patterns=(Claim("relu", op("Relu"), check),))
    assert reasons(graph(lambda m, x: m.Relu(x), X), target) == {"relu0": ["too large"]}
    assert reasons(graph(lambda m, x: m.Relu(x), value("x", 1, 4)), target) == {"relu0": []}


def test_nodes_that_fit_no_pattern_say_so() -> None:
    g = graph(lambda m, x: m.Tanh(m.Sigmoid(x)), X)
    result = partition(g, [unit("one", patterns=(Claim("gate", op("Sigmoid", op("Add"))),))])
    assert [a.refused for a in result.assignments] == [
        (("one", "gate", "'x' is no operator's result, not that of Add"),),
        (("one", "", "it has no pattern for Tanh"),),
    ]


def test_a_refusal_is_told_of_every_node_of_the_match() -> None:
    g = graph(lambda m, x, y: m.Relu(m.Add(x, y)), X, Y)
    assert reasons(g, unit(patterns=(Claim("both", op("Relu", op("Add")), lambda match, target: "no"),))) == {
        "add0": ["no"],
        "relu1": ["no"],
    }


def test_types_decide() -> None:
    target = unit(patterns=(Claim("add", op("Add", any_value(dtype=DType.FLOAT32), any_value())),))
    assert partition(graph(lambda m, x, y: m.Add(x, y), X, Y), [target]).regions
    wide = [value(n, 2, 4, dtype=DType.INT32) for n in "xy"]
    assert not partition(graph(lambda m, x, y: m.Add(x, y), *wide), [target]).regions


def test_empty_tensors_are_not_taken() -> None:
    g = graph(lambda m, x: m.Relu(x), value("x", 0, 4))
    assert reasons(g, on("Relu"))["relu0"] == ["Relu 'relu0' has an empty tensor"]
