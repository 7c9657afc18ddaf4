"""Where values lie: pieces of a concatenation and sources of a view are computed in their place, outputs are
never shared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aot_model.errors import CompileError
from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import Inputs, Operator, OperatorError
from aot_model.ir.program import Call, Program, Role
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import ModelTensor, Value, constant
from aot_model.lowering.lower import lower
from aot_model.ops.registry import required
from aot_model.passes.expand import expand
from aot_model.targets.registry import parse_target
from graphs import graph, value, weights

X, Y = value("x", 2, 8), value("y", 2, 8)


def lowered(make: Callable[..., Any], *inputs: Value) -> Program:
    g = graph(make, *inputs)
    expand(g)
    program = lower(g, parse_target("c"))
    program.verify()
    return program


def calls(program: Program) -> list[str]:
    return [c.op for c in program.calls()]


def writes(call: Call) -> tuple[str, int]:
    """The buffer that a call writes, and where in it."""
    root, offset = call.arguments[-1].root()
    return root.name, offset


def product(m: Any, x: Value, name: str) -> Value:
    """A call of its own."""
    return m.MatMul(x, weights(name, 8, 8))  # type: ignore[no-any-return]


def test_pieces_of_a_concatenation_are_computed_in_it() -> None:
    program = lowered(lambda m, x, y: m.Concat(product(m, x, "a"), product(m, y, "b"), axis=0), X, Y)
    assert calls(program) == ["MatMul", "MatMul"]
    assert [writes(c) for c in program.calls()] == [
        (program.outputs[0].name, 0),
        (program.outputs[0].name, 64),
    ]


def test_a_piece_begins_where_the_one_before_it_ends() -> None:
    both = value("x", 2, 3, 8), value("y", 2, 5, 8)
    first, second = lowered(lambda m, x, y: m.Concat(m.Exp(x), m.Exp(y), axis=1), *both).calls()
    assert "y[i * 64 + j]" in first.function.body and "y[i * 64 + j + 24]" in second.function.body


def test_a_concatenation_that_a_kernel_reads_is_computed_where_it_is_read() -> None:
    program = lowered(
        lambda m, x, y: product(m, m.Concat(product(m, x, "a"), product(m, y, "b"), axis=0), "c"), X, Y
    )
    first, second, last = program.calls()
    assert [writes(c)[1] for c in (first, second)] == [0, 64]
    assert {writes(c)[0] for c in (first, second)} == {last.arguments[0].root()[0].name}


@pytest.mark.parametrize(("rows", "copies"), [(1, 0), (2, 2)])
def test_pieces_that_lie_beside_each_other_are_copied(rows: int, copies: int) -> None:
    """Those of one row lie one behind the other."""
    both = value("x", rows, 8), value("y", rows, 8)
    program = lowered(lambda m, x, y: m.Concat(product(m, x, "a"), product(m, y, "b"), axis=1), *both)
    assert calls(program) == ["MatMul", "MatMul", *["Concat"] * copies]


def test_pieces_that_are_expressions_are_written_by_it() -> None:
    program = lowered(lambda m, x, y: m.Concat(m.Exp(x), m.Neg(y), axis=1), X, Y)
    assert calls(program) == ["Concat", "Concat"] and {writes(c)[0] for c in program.calls()} == {
        program.outputs[0].name
    }


def test_pieces_at_odd_places_are_copied() -> None:
    """Kernels read words: a piece that would begin at byte 6 is computed elsewhere."""
    axis = constant("axis", np.asarray(0, np.int64))
    a, b = value("a", 6, dtype=DType.INT8), value("b", 6, dtype=DType.INT8)
    program = lowered(lambda m, x, y: m.Concat(m.CumSum(x, axis), m.CumSum(y, axis), axis=0), a, b)
    offsets = [
        writes(c)[1] for c in program.calls() if writes(c)[0] == program.outputs[0].name and c.op != "Concat"
    ]
    assert all(offset % 4 == 0 for offset in offsets) and "Concat" in calls(program)


def test_what_stores_its_results_itself_has_nothing_behind_it() -> None:
    two = constant("two", np.asarray([2], np.int64))
    for make, name in (
        (lambda m, x: [m.Neg(v) for v in m.TopK(x, two, axis=1)], "TopK"),
        (lambda m, x: m.Neg(m.Unique(x)[0]), "Unique"),
    ):
        found = calls(lowered(make, X))
        assert found == [name, *["Neg"] * (len(found) - 1)] and len(found) > 1


def test_a_view_is_the_memory_of_its_source() -> None:
    program = lowered(
        lambda m, x: m.Reshape(product(m, x, "w"), constant("to", np.asarray([16], np.int64))), X
    )
    assert calls(program) == ["MatMul"] and writes(next(iter(program.calls())))[0] == program.outputs[0].name


def test_a_contiguous_slice_is_a_window() -> None:
    def make(m: Any, x: Value) -> Value:
        y = m.Exp(x)
        ends = (constant(n, np.asarray([v], np.int64)) for n, v in (("s", 1), ("e", 2), ("a", 0)))
        return m.MatMul(m.Slice(y, *ends), m.Transpose(y, perm=(1, 0)))  # type: ignore[no-any-return]

    program = lowered(make, X)
    assert "Slice" not in calls(program)
    assert {b.root()[1] for c in program.calls() for b in c.arguments} == {0, 4 * 8}


@pytest.mark.parametrize(("dtype", "begin", "copies"), [
    (DType.FLOAT32, 1, 0), (DType.FLOAT32, 0, 0), (DType.INT8, 4, 0), (DType.INT8, 2, 1), (DType.INT8, 1, 1),
])  # fmt: skip
def test_what_is_cut_off_begins_at_a_word(dtype: DType, begin: int, copies: int) -> None:
    """Of kernels that read no strides: a window of what is there, or a copy."""
    ends = (constant(n, np.asarray([v], np.int64)) for n, v in (("s", begin), ("e", begin + 4), ("a", 0)))
    axis = constant("axis", np.asarray(0, np.int64))

    def make(m: Any, x: Value) -> list[Value]:
        sums = m.CumSum(x, axis)
        return [m.CumSum(m.Slice(sums, *ends), axis), m.CumSum(sums, axis)]

    program = lowered(make, value("x", 16, dtype=dtype))
    assert calls(program).count("Slice") == copies and calls(program).count("CumSum") == 3
    last = next(c for c in program.calls() if c.arguments[-1].root()[0] is program.outputs[0])
    assert last.arguments[0].root()[1] == (0 if copies else begin * dtype.size)


@pytest.mark.parametrize(("move", "name"), [
    (lambda m, x: m.Transpose(x, perm=(1, 0)), "Transpose"),
    (lambda m, x: m.Pad(x, constant("pads", np.asarray([1, 0, 0, 0], np.int64))), "Pad"),
])  # fmt: skip
def test_what_is_no_window_is_copied(move: Callable[..., Any], name: str) -> None:
    axis = constant("axis", np.asarray(0, np.int64))
    program = lowered(lambda m, x: m.CumSum(move(m, m.CumSum(x, axis)), axis), X)
    assert calls(program) == ["CumSum", name, "CumSum"]


def test_a_number_alone_is_computed() -> None:
    assert calls(lowered(lambda m, x: m.Neg(x), value("x"))) == ["Neg"]


def test_a_state_stays_where_it_is() -> None:
    """A view of it that is an output is a copy, although views are computed in the place of their source."""
    state = Value("state", X.type, state=True)

    def make(m: Any, x: Value) -> list[Value]:
        view = m.Reshape(state, constant("to", np.asarray([16], np.int64)))
        joined = m.Concat(state, m.Exp(x), axis=0)
        m.Assign(state, x)
        return [view, joined]

    g = graph(make, X)
    expand(g)
    program = lower(g, parse_target("c"))
    assert [s.root()[0].role for s in program.states] == [Role.STATE]
    roles = [c.arguments[-1].root()[0].role for c in program.calls()]
    assert roles == [Role.OUTPUT, Role.OUTPUT, Role.OUTPUT, Role.STATE]


def test_tensors_of_the_file_are_found_in_memory() -> None:
    """Through moves where they are not themselves; what the caller has, and what lasts, is no result."""
    state = Value("state", X.type, state=True)

    def make(m: Any, x: Value) -> list[Value]:
        first, second = product(m, x, "a"), product(m, m.Add(x, state), "b")
        moved = m.Transpose(first, perm=(1, 0))
        result, both = m.Exp(moved), m.Transpose(second, perm=(1, 0))
        hidden = m.Transpose(second, perm=(1, 0))
        m.Assign(state, x)
        named = {"x": x, "s": state, "first": first, "moved": moved, "result": result, "both": both}
        for name, v in named.items():
            v.stands_for = (ModelTensor(name, name),)
        hidden.stands_for = both.stands_for
        return [result, both, m.Neg(hidden)]

    g = graph(make, X)
    expand(g)
    found = [[(t.key, len(t.through)) for t in h.tensors] for h in lower(g, parse_target("c")).held]
    assert sorted(found) == [[("both", 0)], [("first", 0), ("moved", 1)], [("result", 0)]]


@pytest.mark.parametrize(
    "make", [lambda m, x: x, lambda m, x: weights("c", 2, 8)], ids=["an input", "a constant"]
)
def test_outputs_that_nothing_computes_are_copied(make: Callable[..., Any]) -> None:
    program = lowered(lambda m, x: [make(m, x), m.Neg(x)], X)
    assert calls(program) == ["Neg", "Identity"]
    assert all(o.root()[0].role is Role.OUTPUT for o in program.outputs)


def test_one_value_as_two_outputs_is_two_buffers() -> None:
    def make(m: Any, x: Value) -> list[Value]:
        y = m.Neg(x)
        return [y, y]

    program = lowered(make, X)
    assert len({id(o.root()[0]) for o in program.outputs}) == 2 and calls(program) == ["Neg", "Identity"]


def test_equal_constants_are_there_once() -> None:
    program = lowered(
        lambda m, x: m.Add(m.MatMul(x, weights("a", 8, 8)), m.MatMul(m.Neg(x), weights("b", 8, 8))), X
    )
    tables = {
        id(b.root()[0]) for c in program.calls() for b in c.arguments if b.root()[0].role is Role.CONSTANT
    }
    assert len(tables) == 1


class Refusing(Operator):
    """An operator of which no form is supported."""

    name = "Refusing"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def lower(self, site: Any) -> None:
        raise OperatorError("is not supported", "E202")


def test_every_node_that_cannot_be_lowered_is_named() -> None:
    between, out = value("between", 2, 8), value("out", 2, 8)
    g = Graph(
        "g",
        [X],
        [out],
        [Node(Refusing(), [X], [between], "first"), Node(Refusing(), [between], [out], "second")],
    )
    with pytest.raises(CompileError) as error:
        lower(g, parse_target("c"))
    assert [p.where for p in error.value.problems] == ["node 'first' (Refusing)", "node 'second' (Refusing)"]
