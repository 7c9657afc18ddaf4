"""The pattern language: which values a pattern stands for."""

from __future__ import annotations

import pytest

from aot_model.ir.graph import Graph
from aot_model.ir.pattern import Bindings, Nearest, Pattern, absent, constant, op, sequence
from aot_model.ir.pattern import value as any_value
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from graphs import graph, kinds, value, weights

X, Y = value("x", 2, 4), value("y", 2, 4)


def found(pattern: Pattern, g: Graph, of: Value | None = None) -> list[Bindings]:
    """Every match that ends with the graph's output."""
    return list(pattern.bind(of or g.outputs[0], Bindings(g.producers(), lambda node: True)))


def nodes(pattern: Pattern, g: Graph) -> list[str] | None:
    """Operators of the preferred match, in the order of the graph."""
    matches = found(pattern, g)
    return kinds([n for n in g.nodes if n in matches[0].nodes.values()]) if matches else None


def test_a_chain() -> None:
    g = graph(lambda m, x: m.Relu(m.Add(x, weights("b", 2, 4))), X)
    assert nodes(op("Relu", op("Add")), g) == ["Add", "Relu"]
    assert nodes(op("Relu", op("Mul")), g) is None
    assert nodes(sequence(op("Add"), "Relu"), g) == ["Add", "Relu"]
    assert nodes(sequence(any_value(), "Add", ("Sigmoid", "Relu")), g) == ["Add", "Relu"]
    assert nodes(op(("Sigmoid", "Relu")), g) == ["Relu"]


def test_constants_and_operands_in_both_orders() -> None:
    """x + b and b + x are one pattern; x - b and b - x are two."""
    for first in (True, False):
        g = graph(
            lambda m, x, first=first: m.Add(*((x, weights("b", 2, 4)) if first else (weights("b", 2, 4), x))),
            X,
        )
        (match,) = found(op("Add", any_value("x", constant=False), constant("b")), g)
        assert {p.name: v.name for p, v in match.values.items() if p.name and v} == {"x": "x", "b": "b"}
    g = graph(lambda m, x: m.Sub(weights("b", 2, 4), x), X)
    assert nodes(op("Sub", any_value(), constant("b")), g) is None


def test_a_commutative_operator_with_one_operand_given_finds_it_anywhere() -> None:
    g = graph(lambda m, x, y: m.Add(x, m.Relu(y)), X, Y)
    assert nodes(op("Add", op("Relu")), g) == ["Relu", "Add"]


def test_optional_takes_the_larger_first() -> None:
    pattern = op("Add").optional(lambda p: op("Relu", p, name="relu"))
    with_relu, without = (
        graph(lambda m, x, y: m.Relu(m.Add(x, y)), X, Y),
        graph(lambda m, x, y: m.Add(x, y), X, Y),
    )
    assert nodes(pattern, with_relu) == ["Add", "Relu"]
    assert nodes(pattern, without) == ["Add"]


def test_optional_in_the_middle() -> None:
    pattern = op("Sigmoid", op("Mul").optional(lambda p: op("Relu", p)))
    assert nodes(pattern, graph(lambda m, x, y: m.Sigmoid(m.Relu(m.Mul(x, y))), X, Y)) == [
        "Mul",
        "Relu",
        "Sigmoid",
    ]
    assert nodes(pattern, graph(lambda m, x, y: m.Sigmoid(m.Mul(x, y)), X, Y)) == ["Mul", "Sigmoid"]


def test_alternatives_in_order() -> None:
    pattern = op("Relu", op("Sigmoid")) | op("Relu", name="alone")
    assert nodes(pattern, graph(lambda m, x: m.Relu(m.Sigmoid(x)), X)) == ["Sigmoid", "Relu"]
    assert nodes(pattern, graph(lambda m, x: m.Relu(m.Tanh(x)), X)) == ["Relu"]


def test_a_pattern_used_twice_is_one_value() -> None:
    """x · sigmoid(x), but not x · sigmoid(y)."""
    x = any_value("x")
    swish = op("Mul", x, op("Sigmoid", x))
    assert nodes(swish, graph(lambda m, x: m.Mul(m.Sigmoid(x), x), X)) == ["Sigmoid", "Mul"]
    assert nodes(swish, graph(lambda m, x, y: m.Mul(y, m.Sigmoid(x)), X, Y)) is None


def test_a_diamond() -> None:
    """Both arms begin at one node, which is in the match once."""
    root = op("Relu", name="root")
    pattern = op("Add", op("Sigmoid", root), op("Tanh", root))
    assert nodes(pattern, graph(lambda m, x: (lambda r: m.Add(m.Tanh(r), m.Sigmoid(r)))(m.Relu(x)), X)) == [
        "Relu",
        "Tanh",
        "Sigmoid",
        "Add",
    ]
    assert nodes(pattern, graph(lambda m, x: m.Add(m.Tanh(m.Relu(x)), m.Sigmoid(m.Relu(x))), X)) is None


def test_attributes_and_predicates() -> None:
    w = weights("w", 8, 3, 3, 4)
    g = graph(lambda m, x: m.Convolution(x, w, strides=(2, 2)), value("x", 1, 9, 9, 4))
    assert nodes(op("Convolution", strides=(2, 2), group=1), g)
    assert nodes(op("Convolution", strides=(1, 1)), g) is None
    assert nodes(op("Convolution", strides=lambda s: max(s) <= 2), g)
    assert nodes(op("Convolution", no_such_attribute=1), g) is None
    assert nodes(op("Convolution", where=lambda n: n.outputs[0].shape[-1] > 8), g) is None


def test_types() -> None:
    g = graph(lambda m, x: m.Relu(x), X)
    assert nodes(op("Relu", any_value(dtype=DType.FLOAT32, rank=2)), g)
    assert nodes(op("Relu", any_value(dtype=(DType.INT8, DType.UINT8))), g) is None
    assert nodes(op("Relu", any_value(rank=3)), g) is None
    assert nodes(op("Relu", any_value(where=lambda v: v.shape[0] == 1)), g) is None


def test_inputs_that_are_absent() -> None:
    g = graph(lambda m, x: m.Clip(x, None, weights("high")), X)
    assert nodes(op("Clip", any_value(), absent(), constant("high")), g)
    assert nodes(op("Clip", any_value(), constant("low")), g) is None
    assert nodes(op("Clip", any_value(), constant("low") | absent()), g)
    assert nodes(op("Relu", any_value(), absent()), graph(lambda m, x: m.Relu(x), X))


def test_a_result_that_is_not_the_first() -> None:
    g = graph(lambda m, x: m.Split(x, axis=1, num_outputs=2)[1], X)
    assert nodes(op("Split", output=1), g)
    assert nodes(op("Split"), g) is None


def test_kinds_of_a_pattern() -> None:
    assert (op("Relu", op("Add") | op(("Mul", "Sub"), any_value()))).kinds() == {"Relu", "Add", "Mul", "Sub"}


@pytest.mark.parametrize("depth", [200])
def test_long_chains(depth: int) -> None:
    def make(m: object, x: Value) -> Value:
        for _ in range(depth):
            x = m.Relu(x)  # type: ignore[attr-defined]
        return x

    g = graph(make, X)
    pattern = sequence(any_value(), *["Relu"] * 50)
    assert nodes(pattern, g) == ["Relu"] * 50


W = weights("w", 2, 4)
BIASED = graph(lambda m, x: m.Relu(m.Add(x, W)), X)
SPLIT = graph(lambda m, x: m.Relu(m.Split(x, axis=1, num_outputs=2)[1]), X)
TWICE = graph(lambda m, x: m.Sub(m.Relu(x), m.Relu(x)), X)
NEAREST = {
    "another operator": (
        op("Relu", op("Mul")),
        BIASED,
        "'add0.add1' is the result of Add 'add0', not that of Mul",
    ),
    "no operator": (
        op("Relu", op("Add", op(("Mul", "Sub")))),
        BIASED,
        "'x' is no operator's result, not that of Mul or Sub",
    ),
    "an attribute": (op("Relu", op("Split", axis=0, output=1)), SPLIT, "Split 'split0' has axis 1, not 0"),
    "an attribute's condition": (
        op("Relu", op("Split", axis=lambda a: a == 0 or "not the first", output=1)),
        SPLIT,
        "Split 'split0' has axis 1: not the first",
    ),
    "a result": (
        op("Relu", op("Split", output=0)),
        SPLIT,
        "Split 'split0' makes 'split0.split2' as its result 1, not 0",
    ),
    "not constant": (op("Relu", op("Add", constant("a"), constant("b"))), BIASED, "'x' (a) is not constant"),
    "constant": (
        op("Relu", op("Add", any_value("a", constant=False), any_value("b", constant=False))),
        BIASED,
        "'w' (b) is constant",
    ),
    "a type": (
        op("Relu", op("Add", any_value(), constant(dtype=(DType.INT8, DType.INT32)))),
        BIASED,
        "'w' is float32, not int8 or int32",
    ),
    "a rank": (op("Relu", op("Add", any_value(), constant(rank=1))), BIASED, "'w' has 2 axes, not 1"),
    "a condition": (op("Relu", where=lambda n: False), BIASED, "Relu 'relu1' does not fit"),
    "a condition with words": (
        op("Relu", op("Add", any_value(), constant(where=lambda v: "is odd"))),
        BIASED,
        "'w' is odd",
    ),
    "not there": (op("Relu", any_value(), any_value("slope")), BIASED, "slope is absent"),
    "there": (op("Relu", absent()), BIASED, "'add0.add1' is there"),
    "two values for one": (op("Sub", same := any_value(), same), TWICE, "'relu1.relu1' is not 'relu0.relu1'"),
    "the first of two that got as far": (op("Relu", op("Mul") | op("Sub")), BIASED, "not that of Mul"),
    "the one that got further": (
        op("Relu", op("Mul") | op("Add", op("Sub"))),
        BIASED,
        "'x' is no operator's result, not that of Sub",
    ),
    "another root": (op("Tanh"), BIASED, ""),
}


@pytest.mark.parametrize("name", NEAREST)
def test_why_a_pattern_does_not_fit(name: str) -> None:
    pattern, g, why = NEAREST[name]
    nearest = Nearest()
    assert not list(pattern.bind(g.outputs[0], Bindings(g.producers(), nearest=nearest)))
    assert nearest.why == why or (why and nearest.why.endswith(why))


def test_a_node_that_is_taken_says_so() -> None:
    nearest = Nearest()
    known = Bindings(BIASED.producers(), lambda node: node.kind != "Add", nearest=nearest)
    assert not list(op("Relu", op("Add")).bind(BIASED.outputs[0], known))
    assert nearest.why == "Add 'add0' is taken already"
