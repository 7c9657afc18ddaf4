"""Sections of a nest: they store what the nest stores, every element once, without what a loop knows."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.ir.evaluate import evaluate
from aot_model.ir.expr import Call, Expr, Var, call, const, load, logical_and, select, walk
from aot_model.ir.index import add, dense_position, index_variables, less, mul, sub, turning_point
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.lowering.loops import loop_nest
from aot_model.lowering.sections import FEWEST, MOST, Section, sections

SHAPE = (6, 20)
X = Value("x", TensorType(DType.INT32, SHAPE), data=np.arange(120, dtype=np.int32).reshape(SHAPE) + 1000)
Z = Value("z", TensorType(DType.INT32, SHAPE), data=-np.arange(120, dtype=np.int32).reshape(SHAPE))


def stored(nests: Sequence[Section]) -> tuple[np.ndarray, np.ndarray]:
    """(how often each element is stored, what was stored last)."""
    count, result = np.zeros(120, int), np.zeros(120, np.int32)
    for nest in nests:
        index, extents = tuple(nest.loops), tuple(v.extent for v in nest.loops)
        places = np.broadcast_to(evaluate(nest.position, index, extents), extents).reshape(-1)
        np.add.at(count, places, 1)
        result[places] = np.broadcast_to(evaluate(nest.element, index, extents), extents).reshape(-1)
    return count, result


def whole(element: Callable[[Sequence[Expr]], Expr]) -> Section:
    index = index_variables(SHAPE)
    return Section([v for v in index if isinstance(v, Var)], dense_position(index, SHAPE), element(index))


def choices(nests: Sequence[Section]) -> int:
    return sum(isinstance(n, Call) and n.op == "select" for nest in nests for n in walk(nest.element))


def piece(value: Value) -> Callable[[Sequence[Expr]], Expr]:
    return lambda i: load(value, tuple(i))


Made = Callable[[Sequence[Expr]], Expr]


def _choice(axis: int, factor: int, base: int, form: str, pieces: tuple[Made, Made]) -> Made:
    """By whether factor * index + base is below 0, or not above."""

    def made(i: Sequence[Expr]) -> Expr:
        place = add(mul(i[axis], factor), base)
        below = less(place, 0) if form == "lt" else call("le", place, const(0), dtype=DType.BOOL)
        return select(below, *(p(i) for p in pieces))

    return made


LEAVES: st.SearchStrategy[Made] = st.sampled_from([piece(X), piece(Z), lambda i: const(7)])
ELEMENTS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        _choice,
        st.integers(0, 1),
        st.sampled_from([1, -1, 2, -3]),
        st.integers(-45, 45),
        st.sampled_from(["lt", "le"]),
        st.tuples(inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(ELEMENTS)
def test_they_store_what_the_nest_stores(element: Made) -> None:
    nest = whole(element)
    parts = sections(nest)
    count, result = stored(parts)
    assert (count == 1).all() and np.array_equal(result, stored([nest])[1])
    assert len(parts) <= MOST and (len(parts) == 1 or choices(parts) == 0)


def joined(i: Sequence[Expr]) -> Expr:
    return select(less(i[1], 8), load(X, tuple(i)), select(less(i[1], 13), load(Z, tuple(i)), const(3)))


def bordered(i: Sequence[Expr]) -> Expr:
    inside = const(True, DType.BOOL)
    for k, (first, end) in enumerate(((1, 5), (2, 18))):
        inside = logical_and(inside, logical_and(less(const(first - 1), i[k]), less(i[k], end)))
    return select(inside, load(X, (sub(i[0], 1), sub(i[1], 2))), const(-5))


@pytest.mark.parametrize(("element", "expected"), [(joined, 3), (bordered, 5)])
def test_no_question_is_left(element: Made, expected: int) -> None:
    """Of tensors that are joined, and of one with a border: above, below, at its sides, and within."""
    parts = sections(whole(element))
    assert len(parts) == expected and choices(parts) == 0
    assert np.array_equal(stored(parts)[1], stored([whole(element)])[1])
    index, out = index_variables(SHAPE), Value("y", TensorType(DType.INT32, SHAPE))
    body = loop_nest("f", out, index, dense_position(index, SHAPE), element(index)).function.body
    assert "?" not in body and "if" not in body and body.count("{") == body.count("for (")


@pytest.mark.parametrize("turns", [1, 4])
def test_names_of_parts_do_not_meet(turns: int, tmp_path: Path) -> None:
    """Turns that are left over stand behind their loop, with names of their own."""

    values = [Value(n, TensorType(DType.INT32, (119,))) for n in "xz"]
    index, out = index_variables((119,)), Value("y", TensorType(DType.INT32, (119,)))
    x, z = (load(v, index) for v in values)
    squares = [call("mul", call(op, x, z), call(op, x, z)) for op in ("sub", "add")]
    element = select(less(index[0], 50), *squares)
    nest = loop_nest("f", out, index, index[0], element, turns=turns)
    assert nest.function.body.count("for (") == 2
    params = "const int32_t *x0, const int32_t *x1, int32_t *y"
    (tmp_path / "f.c").write_text(
        f'#include "aot_model/scalar.h"\nvoid f({params});\nvoid f({params})\n{{\n{nest.function.body}\n}}\n'
    )
    subprocess.run(["gcc", *STRICT, "-fsyntax-only", f"-I{include_dir()}", "f.c"], cwd=tmp_path, check=True)


def test_when_a_nest_stays_whole() -> None:
    (v,) = index_variables((FEWEST - 1,))
    assert isinstance(v, Var)
    few = Section([v], v, select(less(v, 9), const(1), const(2)))
    assert sections(few) == [few]

    def often(i: Sequence[Expr]) -> Expr:
        element: Expr = load(X, tuple(i))
        for k in range(1, MOST + 2):
            element = select(less(i[1], MOST + 2 - k), const(k), element)
        return element

    def costly(i: Sequence[Expr]) -> Expr:
        element = joined(i)
        for k in range(20):
            element = call("mul", call("add", element, const(k)), element)
        return element

    def of_both(i: Sequence[Expr]) -> Expr:
        return select(less(add(i[0], i[1]), 9), load(X, tuple(i)), load(Z, tuple(i)))

    for element in (often, costly, of_both):
        assert len(sections(whole(element))) == 1, element.__name__


@pytest.mark.parametrize(("extent", "ends", "expected"), [
    (63, (9,), 1), (64, (9,), 2),  # so few elements are not worth it
    (120, range(1, 12), 12), (120, range(1, 13), 1),  # nor are so many parts
    (120, (0,), 1), (120, (120,), 1), (120, (1,), 2), (120, (119,), 2),
])  # fmt: skip
def test_edges_of_what_is_parted(extent: int, ends: Sequence[int], expected: int) -> None:
    (v,) = index_variables((extent,))
    assert isinstance(v, Var)
    element: Expr = const(0)
    for end in reversed(ends):
        element = select(call("lt", v, const(end), dtype=DType.BOOL), const(end + 1), element)
    assert len(sections(Section([v], v, element))) == expected


@pytest.mark.parametrize(("rows", "columns", "expected"), [(3, 4, MOST), (2, 6, MOST), (3, 5, 1), (1, 13, 1)])
def test_parts_of_both_loops(rows: int, columns: int, expected: int) -> None:
    """Each row's parts have as many as the columns."""

    def grid(i: Sequence[Expr]) -> Expr:
        numbers: list[Expr] = []
        for v, count in zip(i, (rows, columns), strict=True):
            number: Expr = const(count)
            for k in range(count - 1, 0, -1):
                number = select(less(v, k), const(10 * k), number)
            numbers.append(number)
        return call("sub", *numbers)

    nest = whole(grid)
    parts = sections(nest)
    assert len(parts) == expected
    assert np.array_equal(stored(parts)[1], stored([nest])[1])


@pytest.mark.parametrize("factor", [-7, -3, -1, 1, 2, 5])
@pytest.mark.parametrize("base", [-14, -6, -1, 0, 1, 6, 14])
def test_turning_points(factor: int, base: int) -> None:
    (v,) = index_variables((50,))
    assert isinstance(v, Var)
    found = turning_point(add(mul(v, factor), base), const(0), v)
    values = [factor * n + base < 0 for n in range(-60, 60)]
    (expected,) = (n - 60 for n in range(1, 120) if values[n] != values[n - 1])
    assert found == expected
