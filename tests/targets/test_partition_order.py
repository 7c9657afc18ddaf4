"""Regions and the order of a run: no circles, several targets, control flow, state, graphs at random."""

from __future__ import annotations

import numpy as np
import pytest
from vector_unit import on, reasons, unit

from aot_model.ir.graph import Graph
from aot_model.ir.pattern import op
from aot_model.ir.pattern import value as any_value
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.partition.lower import RegionCall
from aot_model.partition.offload import Claim
from aot_model.partition.partition import partition
from graphs import Maker, graph, kinds, regions, value

X, Y = value("x", 2, 4), value("y", 2, 4)


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
    assert [r.name for r in partition(g, [on("Relu", name="cmsis-nn"), on("Add", name="npu")]).regions] == [
        "npu_0",
        "cmsis_nn_0",
    ]


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
    assert (
        next(x for x in result.assignments if x.operator == "If")
        .refused[0][2]
        .endswith("has state or control flow")
    )


def test_state_stays_with_the_processor_and_in_order() -> None:
    state = Value("s", X.type, state=True)
    g = graph(lambda m, x: (lambda old: (m.Assign(state, m.Add(x, x)), old)[1])(m.Mul(state, x)), X)
    result = partition(g, [on("Add", "Mul", "Assign")])
    assert kinds(g.nodes) == ["Region", "Mul", "Assign"] or kinds(g.nodes) == ["Mul", "Region", "Assign"]
    assert sum(1 for a in result.assignments if any(p for _, p, _ in a.refused)) == 2


def test_many_nodes() -> None:
    """600 nodes, of which every third stays: the time does not explode."""

    def make(m: Maker, x: Value) -> Value:
        for k in range(200):
            x = m.Add(m.Relu(m.Mul(x, x)), x) if k % 2 else m.Tanh(m.Relu(m.Add(x, x)))
        return x

    g = graph(make, X)
    assert len(partition(g, [on("Add", "Mul", "Relu")]).regions) == 101
    g.verify()


FUNCTIONS = {
    "Add": np.add,
    "Mul": np.multiply,
    "Sub": np.subtract,
    "Relu": lambda a: np.maximum(a, 0),
    "Tanh": np.tanh,
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
        Claim(
            "pair",
            op("Relu", op("Add")).optional(lambda p: op("Mul", p)),
            lambda match, target: None if len(match.nodes) % 2 else "even",
        )
    ]
    singles = [Claim(k.lower(), op(k)) for k in FUNCTIONS if rng.random() < 0.5]
    one = unit("one", patterns=tuple(pairs + singles), merge=bool(rng.random() < 0.8))
    two = unit("two", patterns=tuple(Claim(k.lower(), op(k)) for k in FUNCTIONS if rng.random() < 0.5))
    result = partition(g, [one, two])
    assert (
        sum(len(n.op.region.nodes) if isinstance(n.op, RegionCall) else 1 for n in g.nodes)
        == count
        == len(result.assignments)
    )
    for region in result.regions:
        region.graph.verify()
        assert sorted(map(id, region.nodes)) == sorted(id(n) for m in region.matches for n in m.nodes)
    np.testing.assert_array_equal(run(g, {X: x, Y: y}), want)
