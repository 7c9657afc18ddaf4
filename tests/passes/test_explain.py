"""`--explain PASS`: every node that a pass nearly changed is named, with the reason; what it changed is
not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.control import Loop
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Pad
from aot_model.ops.quantised import QuantisedSum
from aot_model.ops.quantised_div import QuantisedDiv
from aot_model.ops.quantised_tables import lookup
from aot_model.ops.registry import Build
from aot_model.ops.requantise import Rescale
from aot_model.ops.views import ReshapeTo
from aot_model.passes.count_turns import count_turns
from aot_model.passes.dead_channels import dead_channels
from aot_model.passes.explain import reasons
from aot_model.passes.fold_constants import fold_constants
from aot_model.passes.fold_pads import fold_pads
from aot_model.passes.fuse_affine import fuse_affine
from aot_model.passes.fuse_lines import fuse_lines
from aot_model.passes.fuse_qdq import fuse_qdq
from aot_model.passes.fuse_quotients import fuse_quotients
from aot_model.passes.fuse_tables import fuse_tables
from aot_model.passes.manager import ORDER, Observer, run_passes
from aot_model.passes.move_reshapes import move_reshapes
from aot_model.passes.move_transposes import move_transposes
from aot_model.passes.settled_states import settled_states
from aot_model.passes.share_results import share_results
from aot_model.passes.share_tables import share_tables
from aot_model.passes.signed_weights import signed_weights
from aot_model.passes.weight_only import keep_integers
from aot_model.targets.registry import parse_target
from graphs import Maker, graph, value, weights

X, MATRIX = value("x", 2, 3), weights("w", 3, 4)
IMAGE = value("image", 1, 4, 5, 3)


def numbers(name: str, data: object, dtype: str = "float32") -> Value:
    return constant(name, np.asarray(data, dtype))


def nibbles(name: str, *shape: int) -> Value:
    made = constant(name, np.zeros(shape, DType.INT4.numpy))
    assert made.dtype is DType.INT4
    return made


@dataclass(frozen=True)
class Case:
    """A graph that a pass leaves alone, and what it says."""

    run: Callable[[Graph], bool]
    graph: Graph
    said: str


def scaled(m: object, x: Value, factor: Value) -> Value:
    return m.Mul(m.MatMul(x, MATRIX), factor)  # type: ignore[attr-defined, no-any-return]


def read_twice(m: object, x: Value) -> list[Value]:
    product = m.MatMul(x, MATRIX)  # type: ignore[attr-defined]
    return [m.Mul(product, numbers("f", [2.0])), product]  # type: ignore[attr-defined]


def padded_with_ones() -> Graph:
    x = value("x", 1, 4, 4, 2)
    made = Graph("pads", [x])
    build = Build(made.nodes, "pads")
    padded = build(Pad(), x, numbers("around", [0, 1, 1, 0] * 2, "int64"), numbers("fill", 1.0))
    made.outputs = [build(Convolution(), padded, weights("w", 3, 3, 3, 2))]
    return made


def unsigned_weights() -> Graph:
    x = value("x", 2, 3, dtype=DType.UINT8)
    made = Graph("unsigned", [x])
    w = numbers("w", [[0], [255], [7]], "uint8")
    made.outputs = [Build(made.nodes, "unsigned")(MatMul(0, 100), x, w)]
    return made


def negated(times: int) -> Graph:
    x = value("x", 2, 3, dtype=DType.INT8)
    made = Graph("negated", [x])
    build, y = Build(made.nodes, "negated"), x
    for _ in range(times):
        y = build(op("Neg"), y)
    made.outputs = [y]
    return made


def tables_of_steps() -> Graph:
    """Of no curve: parabolas."""
    made = Graph("tables", [value(f"x{k}", 2, dtype=DType.INT8) for k in range(20)])
    build = Build(made.nodes, "tables")
    made.outputs = [build(lookup(DType.INT8, [x * x // 160 - k for x in range(-128, 128)]), v)
                    for k, v in enumerate(made.inputs)]  # fmt: skip
    return made


def halves_of_quotients() -> Graph:
    a, b = (value(n, 2, 3, dtype=DType.INT8) for n in "ab")
    made = Graph("quotients", [a, b])
    made.outputs = [Build(made.nodes, "quotients")(QuantisedDiv(0, 0, Rescale(0, 2**30, 0)), a, b)]
    return made


def squares_of_channels() -> Graph:
    x = value("x", 1, 90, 2, dtype=DType.INT8)
    made = Graph("squares", [x])
    squared = QuantisedSum(
        "squared difference", Rescale(0, 2**30, 0), Rescale(0, 2**30, 0), Rescale(0, 2**30, -20), 7
    )
    made.outputs = [Build(made.nodes, "squares")(squared, x, numbers("c", [3, -3], "int8"))]
    return made


def endless() -> Graph:
    """Until a number of the model is below 0."""
    x, turn, again, y = (
        value("x", 1),
        value("t", dtype=DType.INT64),
        value("c", dtype=DType.BOOL),
        value("y", 1),
    )
    body = Graph("body", [turn, again, y])
    build = Build(body.nodes, "body")
    less = build(op("Sub"), y, numbers("one", [1.0]))
    body.outputs = [build(ReshapeTo(()), build(op("Less"), less, numbers("zero", [0.0]))), less]
    made = Graph("endless", [x])
    made.outputs = [Build(made.nodes, "endless")(Loop(body), None, numbers("yes", True, "bool"), x)]
    return made


def counting() -> Graph:
    state = Value("n", TensorType(DType.FLOAT32, (2,)), state=True)

    def add(m: Maker) -> Value:
        more = m.Add(state, numbers("one", [1.0, 1.0]))
        m.Assign(state, more)
        return more  # type: ignore[no-any-return]

    return graph(add)


CASES = {
    "curves by channel": Case(fuse_lines, squares_of_channels(), "as a function of 'x': it is no line"),
    "halves of quotients": Case(fuse_quotients, halves_of_quotients(), "no quotient, or rounds some ties up"),
    "tables of no curve": Case(share_tables, tables_of_steps(), "Lookup 'tables': no multiplier and offset"),
    "unsigned weights": Case(signed_weights, unsigned_weights(), "its weights less 100 are not all from"),
    "long function": Case(fuse_tables, negated(40), "by 40 operators, more than 32"),
    "pads with ones": Case(fold_pads, padded_with_ones(), "it pads with 1.0, which is not 0"),
    "factor by row": Case(
        fuse_affine,
        graph(lambda m, x: scaled(m, x, weights("f", 2, 1)), X),
        "Mul 'mul1': 'f' is not one number for each of 4 channels",
    ),
    "factor not constant": Case(
        fuse_affine,
        graph(lambda m, x, f: scaled(m, x, f), X, value("f", 4)),
        "Mul 'mul1': 'f' (factor) is not constant",
    ),
    "weights not constant": Case(
        fuse_affine,
        graph(lambda m, x, w: m.Mul(m.MatMul(x, w), numbers("f", [2.0])), X, value("w", 3, 4)),
        "Mul 'mul1': 'w' (weights) is not constant",
    ),
    "product read elsewhere": Case(
        fuse_affine, graph(read_twice, X), "Mul 'mul1': the result of MatMul 'matmul0' is read elsewhere"
    ),
    "no product": Case(
        fuse_affine,
        graph(lambda m, x: m.Mul(m.Relu(x), numbers("f", [2.0])), X),
        "is the result of Relu 'relu0', not that of Add",
    ),
    "integers of 8 bits": Case(
        keep_integers,
        graph(
            lambda m, x: m.MatMul(
                x, m.DequantizeLinear(numbers("q", np.zeros((3, 64)), "int8"), numbers("s", 0.5))
            ),
            X,
        ),
        "DequantizeLinear 'dequantizelinear0' has int8 without blocks, which optimize=size keeps",
    ),
    "few integers": Case(
        keep_integers,
        graph(lambda m, x: m.MatMul(x, m.DequantizeLinear(nibbles("q", 3, 4), numbers("s", 0.5))), X),
        "MatMul 'matmul1': 'q' (q) has fewer than 64 elements",
    ),
    "scales along the sum": Case(
        keep_integers,
        graph(
            lambda m, x: m.MatMul(
                x, m.DequantizeLinear(nibbles("q", 3, 64), numbers("s", [0.5] * 3), axis=0)
            ),
            X,
        ),
        "MatMul 'matmul1': the scale is another one for every element of a sum",
    ),
    "no way through": Case(
        move_transposes,
        graph(lambda m, x: m.CumSum(m.Transpose(x, perm=(0, 3, 1, 2)), numbers("a", 1, "int64")), IMAGE),
        "no transpose moves through it",
    ),
    "dearer before": Case(
        move_transposes,
        graph(lambda m, x, y: m.Add(m.Transpose(x, perm=(0, 3, 1, 2)), y), IMAGE, value("y", 1, 3, 4, 5)),
        "Add 'add1': more elements would be transposed on the way in than are saved",
    ),
    "reshaped, but not alike": Case(
        move_reshapes,
        graph(
            lambda m, x: m.Add(
                m.Reshape(m.MatMul(x, MATRIX), numbers("s", [4, 2], "int64")), numbers("c", [1.0, 2.0])
            ),
            X,
        ),
        "Add 'add2': 'c' does not fit the shape before the reshape",
    ),
    "reshaped for several": Case(
        move_reshapes,
        graph(
            lambda m, x: [
                m.Relu(y := m.Reshape(m.MatMul(x, MATRIX), numbers("s", [4, 2], "int64"))),
                m.Neg(y),
            ],
            X,
        ),
        "something else reads what was reshaped",
    ),
    "too large": Case(
        fold_constants,
        graph(lambda m: m.Expand(numbers("v", [1.0]), numbers("shape", [300, 300], "int64"))),
        "its result would be 90,000 constant elements, made of 3",
    ),
    "channels in the result": Case(
        dead_channels,
        graph(
            lambda m, x: m.MatMul(x, numbers("w", np.zeros((3, 8)), "int8")),
            value("x", 2, 3, dtype=DType.INT8),
        ),
        "MatMul 'matmul0': its channels are in the result",
    ),
    "float between integers": Case(
        fuse_qdq,
        graph(
            lambda m, x: m.QuantizeLinear(
                m.CumSum(m.DequantizeLinear(x, numbers("s", 0.5)), numbers("a", 0, "int64")),
                numbers("t", 0.5),
                numbers("z", 0, "int8"),
            ),
            value("x", 2, 3, dtype=DType.INT8),
        ),
        "CumSum 'cumsum1': ",
    ),
    "turns that depend on data": Case(
        count_turns, endless(), "Loop 'endless': its condition depends on more than counters"
    ),
    "a state that counts": Case(
        settled_states, counting(), "Assign 'assign1': the next run changes it again"
    ),
    "two results of the model": Case(
        share_results,
        graph(lambda m, x: (m.Exp(x), m.Exp(x)), X),
        "Exp 'exp1': 'exp0' computes the same, but this is an output of the model",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_nearly_fits_is_named(name: str) -> None:
    case = CASES[name]
    before = str(case.graph)
    with reasons() as said:
        assert not case.run(case.graph)
    assert str(case.graph) == before
    assert any(case.said in line for line in said), list(said)


def test_what_fits_is_not_named() -> None:
    with reasons() as said:
        assert fuse_affine(graph(lambda m, x: scaled(m, x, numbers("f", [2.0])), X))
    assert not said


def test_every_pass_that_looks_for_shapes_has_a_case() -> None:
    """The others fit always (expand, widen, prune): they have nothing to say."""
    silent = {"expand", "widen", "prune"}
    tried = {case.run for case in CASES.values()}
    assert {name for name, run in ORDER if run not in tried} == silent


def test_a_pass_that_changes_one_of_several_graphs_is_logged() -> None:
    """A sum of constants beside a loop, whose body has none; then the other way round."""
    for inside in (False, True):
        turn, again, x = (
            value(n, dtype=d) for n, d in (("turn", DType.INT64), ("again", DType.BOOL), ("x", DType.FLOAT32))
        )
        body = Graph("body", [turn, again, x])
        build = Build(body.nodes, "body")
        two = (numbers("a", 1.0), numbers("b", 2.0))
        body.outputs = [
            build(op("Identity"), again),
            build(op("Add"), x, build(op("Add"), *two) if inside else x),
        ]
        start = value("start")
        whole = Graph("whole", [start])
        build = Build(whole.nodes, "whole")
        first = start if inside else build(op("Add"), start, build(op("Add"), *two))
        whole.outputs = [build(Loop(body), numbers("four", 4, "int64"), numbers("yes", True, "bool"), first)]
        observer = Observer()
        run_passes(whole, parse_target("c"), observer)
        assert "fold_constants: changed" in observer.log
