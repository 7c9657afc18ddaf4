"""From a graph to regions: which nodes go where, what a region's inputs and outputs are, and why a node was
not taken.
"""

from __future__ import annotations

import numpy as np
import pytest
from vector_unit import UNIT, unit

from aot_model.ir.graph import Graph
from aot_model.ir.pattern import constant, op
from aot_model.ir.pattern import value as any_value
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.partition.lower import RegionCall
from aot_model.partition.offload import Claim
from aot_model.partition.partition import partition
from graphs import Maker, graph, kinds, regions, value, weights

X, Y = value("x", 2, 4), value("y", 2, 4)


def on(*operators: str, name: str = "unit", **more: object):  # type: ignore[no-untyped-def]
    """A target that takes these operators one by one."""
    return unit(name, patterns=tuple(Claim(k.lower(), op(k)) for k in operators), **more)


def reasons(g: Graph, *targets: object) -> dict[str, list[str]]:
    return {
        a.node: [why for _, pattern, why in a.refused if pattern] for a in partition(g, targets).assignments
    }  # type: ignore[arg-type]


# --- claims -------------------------------------------------------------------------------------------------


def test_nothing_to_take() -> None:
    g = graph(lambda m, x: m.Relu(x), X)
    before = str(g)
    assert not partition(g, [on("Tanh")]).regions
    assert str(g) == before


def test_one_operator() -> None:
    g = graph(lambda m, x, y: m.Sigmoid(m.Add(x, y)), X, Y)
    (region,) = partition(g, [on("Add")]).regions
    assert kinds(g.nodes) == ["Region", "Sigmoid"] and kinds(region.nodes) == ["Add"]
    assert [v.name for v in region.graph.inputs
            ] == ["x", "y"] and region.graph.outputs[0].name == g.nodes[0].outputs[0].name
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
    assert match.pattern == "dense" and match.has("relu") and match.value(
        "w").name == "w" and match.macs == 24


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
    assert [m.pattern
            for m in partition(made(), [unit(patterns=(both, alone))]).regions[0].matches] == ["both"]
    assert [m.pattern
            for m in partition(made(), [unit(patterns=(alone, both))]).regions[0].matches] == ["alone"]


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
    assert [a.refused for a in result.assignments] == [(("one", "gate",
                                                         "'x' is no operator's result, not that of Add"),),
                                                       (("one", "", "it has no pattern for Tanh"),)]


def test_a_refusal_is_told_of_every_node_of_the_match() -> None:
    g = graph(lambda m, x, y: m.Relu(m.Add(x, y)), X, Y)
    assert reasons(g,
                   unit(patterns=(Claim("both", op("Relu", op("Add")), lambda match, target: "no"),))) == {
                       "add0": ["no"], "relu1": ["no"]
                   }


def test_types_decide() -> None:
    target = unit(patterns=(Claim("add", op("Add", any_value(dtype=DType.FLOAT32), any_value())),))
    assert partition(graph(lambda m, x, y: m.Add(x, y), X, Y), [target]).regions
    wide = [value(n, 2, 4, dtype=DType.INT32) for n in "xy"]
    assert not partition(graph(lambda m, x, y: m.Add(x, y), *wide), [target]).regions


# --- results and inputs -------------------------------------------------------------------------------------


def test_a_value_with_readers_inside_and_outside_is_a_result() -> None:
    def make(m: Maker, x: Value, y: Value) -> list[Value]:
        s = m.Add(x, y)
        return [m.Tanh(s), m.Relu(s)]

    g = graph(make, X, Y)
    (region,) = partition(g, [on("Add", "Relu")]).regions
    assert [n.kind for n in g.nodes] == ["Region", "Tanh"] and [v.name for v in region.graph.outputs
                                                                ] == ["add0.add1", "relu2.relu1"]


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
    assert [v.name for v in region.graph.inputs] == ["x"] and [v.name
                                                               for v in region.constant_values()] == ["b"]


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


# --- cycles -------------------------------------------------------------------------------------------------


def test_a_match_that_something_else_runs_through() -> None:
    """add(relu, tanh(relu)): tanh would have to run both after and before the region."""
    target = unit(patterns=(Claim("fork", op("Add", op("Relu", name="r"), any_value())),))
    g = graph(lambda m, x: (lambda r: m.Add(r, m.Tanh(r)))(m.Relu(x)), X)
    assert "read elsewhere" in reasons(g, target)["add2"][0]
    split = unit(patterns=(Claim("fork", op("Add", op("Split", output=0), any_value())),))
    g = graph(lambda m, x: (lambda a, b: m.Add(a, m.Tanh(b)))(*m.Split(x, axis=1, num_outputs=2)), X)
    assert reasons(g, split)["add2"], "a cycle through the second result"


def test_regions_are_not_merged_around_a_node_between_them() -> None:
    """relu → tanh → add with relu → add: both regions stay apart."""
    g = graph(lambda m, x: (lambda r: m.Add(r, m.Tanh(r)))(m.Relu(x)), X)
    assert len(partition(g, [on("Relu", "Add")]).regions) == 2
    assert kinds(g.nodes) == ["Region", "Tanh", "Region"]


def test_a_diamond_with_one_arm_of_another_target() -> None:
    g = graph(lambda m, x: (lambda r: m.Add(m.Sigmoid(r), m.Tanh(r)))(m.Relu(x)), X)
    partition(g, [on("Relu", "Add", "Sigmoid", name="one"), on("Tanh", name="two")])
    assert [r.target.name for r in regions(g)] == ["one", "two", "one"]


def test_a_diamond_of_one_target_is_one_region() -> None:
    g = graph(lambda m, x: (lambda r: m.Add(m.Sigmoid(r), m.Tanh(r)))(m.Relu(x)), X)
    assert len(partition(g, [on("Relu", "Add", "Sigmoid", "Tanh")]).regions) == 1


def test_fan_out_of_a_diamond() -> None:
    """The result of the first node is read inside, by another target and by nobody of ours."""

    def make(m: Maker, x: Value) -> list[Value]:
        r = m.Relu(x)
        s = m.Sigmoid(r)
        t = m.Tanh(m.Exp(r))
        return [m.Add(s, t), r]

    g = graph(make, X)
    partition(g, [on("Relu", "Sigmoid", "Add")])
    assert kinds(g.nodes) == ["Region", "Exp", "Tanh", "Region"]


def test_three_regions_in_a_ring_are_not_merged_into_a_circle() -> None:
    """a1 → b → a2 and a1 → a2: merging a1 with a2 is refused whichever other merge came first."""

    def make(m: Maker, x: Value, y: Value) -> Value:
        a1 = m.Add(x, y)
        b = m.Tanh(a1)
        a2 = m.Add(a1, m.Relu(b))
        return m.Add(a2, m.Tanh(a2))

    g = graph(make, X, Y)
    partition(g, [on("Add", "Relu")])
    g.verify()
    assert [kinds(r.nodes) for r in regions(g)] == [["Add"], ["Relu", "Add"], ["Add"]]


def test_what_reads_an_early_result_comes_after_the_whole_region() -> None:
    """The graph is put in order again: tanh stood between the nodes of the region."""
    g = graph(lambda m, x, y: (lambda s: (lambda t: [m.Relu(m.Mul(s, y)), t])(m.Tanh(s)))(m.Add(x, y)), X, Y)
    assert kinds(g.nodes) == ["Add", "Tanh", "Mul", "Relu"]
    partition(g, [on("Add", "Mul", "Relu")])
    assert kinds(g.nodes) == ["Region", "Tanh"]
    g.verify()


# --- several targets, control flow, state -------------------------------------------------------------------


def test_order_of_targets_decides() -> None:
    for first, second in (("one", "two"), ("two", "one")):
        g = graph(lambda m, x, y: m.Add(x, y), X, Y)
        result = partition(g, [on("Add", name=first), on("Add", name=second)])
        assert [r.target.name for r in result.regions] == [first]


def test_a_later_target_gets_what_the_first_refuses() -> None:
    g = graph(lambda m, x, y: m.Add(x, y), X, Y)
    never = unit("one", patterns=(Claim("add", op("Add"), lambda match, target: "never"),))
    (region,) = partition(g, [never, on("Add", name="two")]).regions
    assert region.target.name == "two"


def test_regions_of_two_targets_that_touch() -> None:
    g = graph(lambda m, x, y: m.Relu(m.Add(x, y)), X, Y)
    assert [r.name for r in partition(
        g, [on("Relu", name="cmsis-nn"), on("Add", name="npu")]).regions] == ["npu_0", "cmsis_nn_0"]


def test_a_second_partition_leaves_regions_alone() -> None:
    g = graph(lambda m, x, y: m.Tanh(m.Add(x, y)), X, Y)
    partition(g, [on("Add")])
    partition(g, [on("Tanh", name="other")])
    assert [r.target.name for r in regions(g)] == ["unit", "other"]


def test_bodies_of_control_flow_have_regions_and_are_never_in_one() -> None:
    a, b = graph(lambda m, t: m.Add(t, t), value("t", 2, 4)), graph(lambda m, t: m.Tanh(t), value("t", 2, 4))
    for body in (a, b):
        body.replace(body.inputs[0], X)
        for node in body.nodes:
            node.inputs = [X if v is body.inputs[0] else v for v in node.inputs]
        body.inputs = []
    g = graph(lambda m, c, x: m.Relu(m.If(c, then_branch=a, else_branch=b)), value("c", dtype=DType.BOOL), X)
    g.inputs[1] = X
    result = partition(g, [on("Add", "Relu", "If")])
    assert kinds(a.nodes) == ["Region"] and kinds(b.nodes) == ["Tanh"] and kinds(g.nodes) == ["If", "Region"]
    assert [r.name for r in result.regions] == ["unit_0", "unit_1"]
    assert next(x for x in result.assignments
                if x.operator == "If").refused[0][2].endswith("has state or control flow")


def test_state_stays_with_the_processor_and_in_order() -> None:
    state = Value("s", X.type, state=True)
    g = graph(lambda m, x: (lambda old: (m.Assign(state, m.Add(x, x)), old)[1])(m.Mul(state, x)), X)
    result = partition(g, [on("Add", "Mul", "Assign")])
    assert kinds(g.nodes) == ["Region", "Mul", "Assign"] or kinds(g.nodes) == ["Mul", "Region", "Assign"]
    assert sum(1 for a in result.assignments if any(p for _, p, _ in a.refused)) == 2


def test_empty_tensors_are_not_taken() -> None:
    g = graph(lambda m, x: m.Relu(x), value("x", 0, 4))
    assert reasons(g, on("Relu"))["relu0"] == ["Relu 'relu0' has an empty tensor"]


# --- names --------------------------------------------------------------------------------------------------


def test_names_of_regions_are_c_identifiers() -> None:
    g = graph(lambda m, x: m.Relu(x), X)
    assert partition(g, [on("Relu", name="my-npu.v2")]).regions[0].name == "my_npu_v2_0"


def test_names_in_a_match_are_those_of_the_region() -> None:
    """What a name stands for is the region's own value where it is an input or a result."""
    target = unit(patterns=(Claim("add", op("Add", any_value("left"), constant("right"), name="sum")),))
    g = graph(lambda m, x: m.Tanh(m.Add(x, weights("b", 2, 4))), X)
    (region,) = partition(g, [target]).regions
    (match,) = region.matches
    assert match.value("left") is region.graph.inputs[0] and match.value(
        "sum") is region.graph.outputs[0] and match.node("sum") is region.nodes[0]


def test_many_nodes() -> None:
    """600 nodes, of which every third stays: the time does not explode."""

    def make(m: Maker, x: Value) -> Value:
        for k in range(200):
            x = m.Add(m.Relu(m.Mul(x, x)), x) if k % 2 else m.Tanh(m.Relu(m.Add(x, x)))
        return x

    g = graph(make, X)
    assert len(partition(g, [on("Add", "Mul", "Relu")]).regions) == 101
    g.verify()


# --- random graphs ------------------------------------------------------------------------------------------

FUNCTIONS = {
    "Add": np.add, "Mul": np.multiply, "Sub": np.subtract, "Relu": lambda a: np.maximum(a, 0), "Tanh": np.tanh
}


def run(g: Graph, known: dict[Value, np.ndarray]) -> list[np.ndarray]:
    """Results of a graph, those of regions by their own graphs."""
    known = dict(known)
    for node in g.nodes:
        inputs = [known[v] for v in node.inputs if v is not None]
        if isinstance(node.op, RegionCall):
            body = node.op.region.graph
            results = run(body, dict(zip(body.inputs, inputs, strict=True)))
        else:
            results = [FUNCTIONS[node.kind](*inputs)]
        known.update(zip(node.outputs, results, strict=True))
    return [known[v] for v in g.outputs]


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_mean_the_same(seed: int) -> None:
    """Any graph, any patterns, merged or not: in order, each node once, with the same results."""
    rng = np.random.default_rng(seed)

    def make(m: Maker, x: Value, y: Value) -> list[Value]:
        values = [x, y]
        for _ in range(int(rng.integers(5, 30))):
            kind = str(rng.choice(list(FUNCTIONS)))
            picked = [
                values[max(len(values) - 1 - int(rng.integers(0, 5)), 0)]
                for _ in range(2 if kind in ("Add", "Mul", "Sub") else 1)
            ]
            values.append(getattr(m, kind)(*picked))
        return [values[-1], *(values[k] for k in rng.integers(2, len(values), 2))]

    g = graph(make, X, Y)
    g.prune()
    x, y = rng.normal(size=(2, 2, 4))
    want, count = run(g, {X: x, Y: y}), len(g.nodes)
    pairs = [
        Claim("pair",
              op("Relu", op("Add")).optional(lambda p: op("Mul", p)), lambda match, target: None
              if len(match.nodes) % 2 else "even")
    ]
    singles = [Claim(k.lower(), op(k)) for k in FUNCTIONS if rng.random() < 0.5]
    one = unit("one", patterns=tuple(pairs + singles), merge=bool(rng.random() < 0.8))
    two = unit("two", patterns=tuple(Claim(k.lower(), op(k)) for k in FUNCTIONS if rng.random() < 0.5))
    result = partition(g, [one, two])
    assert sum(len(n.op.region.nodes) if isinstance(n.op, RegionCall) else 1
               for n in g.nodes) == count == len(result.assignments)
    for region in result.regions:
        region.graph.verify()
        assert sorted(map(id, region.nodes)) == sorted(id(n) for m in region.matches for n in m.nodes)
    np.testing.assert_array_equal(run(g, {X: x, Y: y}), want)
