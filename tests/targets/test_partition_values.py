"""What the inputs, results and constants of a region are, and the names in it."""

from __future__ import annotations

from vector_unit import on, unit

from aot_model.ir.pattern import constant, op
from aot_model.ir.pattern import value as any_value
from aot_model.ir.values import Value
from aot_model.partition.offload import Claim
from aot_model.partition.partition import partition
from graphs import Maker, graph, kinds, value, weights

X, Y = value("x", 2, 4), value("y", 2, 4)


def test_a_value_with_readers_inside_and_outside_is_a_result() -> None:
    def make(m: Maker, x: Value, y: Value) -> list[Value]:
        s = m.Add(x, y)
        return [m.Tanh(s), m.Relu(s)]

    g = graph(make, X, Y)
    (region,) = partition(g, [on("Add", "Relu")]).regions
    assert [n.kind for n in g.nodes] == ["Region", "Tanh"] and [v.name for v in region.graph.outputs] == [
        "add0.add1",
        "relu2.relu1",
    ]


def test_a_result_that_is_read_twice_is_one_result() -> None:
    g = graph(lambda m, x, y: (lambda s: m.Sub(m.Tanh(s), m.Sigmoid(s)))(m.Add(x, y)), X, Y)
    (region,) = partition(g, [on("Add")]).regions
    assert len(region.graph.outputs) == 1


def test_an_output_that_is_read_again_is_a_result() -> None:
    g = graph(lambda m, x, y: (lambda s: [s, m.Relu(s)])(m.Add(x, y)), X, Y)
    (region,) = partition(g, [on("Add", "Relu")]).regions
    assert len(region.graph.outputs) == 2 and kinds(g.nodes) == ["Region"]


def test_outputs_that_are_the_same_twice() -> None:
    g = graph(lambda m, x, y: (lambda s: [s, s])(m.Add(x, y)), X, Y)
    (region,) = partition(g, [on("Add")]).regions
    assert len(region.graph.outputs) == 1 and g.outputs[0] is g.outputs[1]


def test_an_input_that_is_read_twice_is_one_input() -> None:
    g = graph(lambda m, x: m.Mul(m.Add(x, x), x), X)
    (region,) = partition(g, [on("Add", "Mul")]).regions
    assert [v.name for v in region.graph.inputs] == ["x"]


def test_operators_with_several_results() -> None:
    g = graph(lambda m, x: (lambda a, b: [m.Tanh(a), b])(*m.Split(x, axis=1, num_outputs=2)), X)
    (region,) = partition(g, [on("Split")]).regions
    assert len(region.graph.outputs) == 2 and kinds(g.nodes) == ["Region", "Tanh"]


def test_constants_are_in_the_region() -> None:
    g = graph(lambda m, x: m.Add(x, weights("b", 2, 4)), X)
    (region,) = partition(g, [on("Add")]).regions
    assert [v.name for v in region.graph.inputs] == ["x"] and [v.name for v in region.constant_values()] == [
        "b"
    ]


def test_constants_are_inputs_when_asked() -> None:
    g = graph(lambda m, x: m.Add(x, weights("b", 2, 4)), X)
    (region,) = partition(g, [on("Add", constants_as_inputs=True)]).regions
    assert [v.name for v in region.graph.inputs] == ["x", "b"] and not region.constant_values()
    assert [v and v.is_const for v in g.nodes[0].inputs] == [False, True]


def test_one_constant_in_two_regions() -> None:
    b = weights("b", 2, 4)
    g = graph(lambda m, x: m.Add(m.Tanh(m.Add(x, b)), b), X)
    first, second = partition(g, [on("Add")]).regions
    assert first.constant_values() == second.constant_values() == [b]


def test_a_region_without_inputs() -> None:
    g = graph(lambda m: m.Add(weights("a", 2, 4), weights("b", 2, 4)))
    (region,) = partition(g, [on("Add")]).regions
    assert not region.graph.inputs


def test_names_of_regions_are_c_identifiers() -> None:
    g = graph(lambda m, x: m.Relu(x), X)
    assert partition(g, [on("Relu", name="my-npu.v2")]).regions[0].name == "my_npu_v2_0"


def test_names_in_a_match_are_those_of_the_region() -> None:
    """What a name stands for is the region's own value where it is an input or a result."""
    target = unit(patterns=(Claim("add", op("Add", any_value("left"), constant("right"), name="sum")),))
    g = graph(lambda m, x: m.Tanh(m.Add(x, weights("b", 2, 4))), X)
    (region,) = partition(g, [target]).regions
    (match,) = region.matches
    assert (
        match.value("left") is region.graph.inputs[0]
        and match.value("sum") is region.graph.outputs[0]
        and match.node("sum") is region.nodes[0]
    )
