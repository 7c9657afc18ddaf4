"""What may run whatever a condition says: what reads nothing outside of its tensor, element by element."""

from __future__ import annotations

import pytest

from aot_model.c.hoisting import always_in_range, branches, hoistable, run_anyway
from aot_model.ir.expr import Expr, call, const, load, reduce, select, var
from aot_model.ir.index import add, flatten, less, mul
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value

EXTENT, TURNS = 8, 5
X = Value("x", TensorType(DType.FLOAT32, (EXTENT,)))
AT, R = var("i", TURNS), var("r", 3)


def element(index: tuple[Expr, ...]) -> Expr:
    return flatten(load(X, index))


def read(begin: int, by: int = 1) -> Expr:
    return call("exp", element((add(mul(AT, by), begin),)))


@pytest.mark.parametrize("by", [1, -1, 2])
@pytest.mark.parametrize("begin", range(-2, 10))
def test_what_reads_within_its_tensor(begin: int, by: int) -> None:
    within = all(0 <= by * i + begin < EXTENT for i in range(TURNS))
    assert always_in_range(read(begin, by)) == within
    some = less(AT, 3)
    choice, zero = select(some, read(begin, by), element((const(0),))), const(0.0, DType.FLOAT32)
    assert run_anyway(choice) == [some, *([read(begin, by)] if within else []), element((const(0),))]
    both = call("and", some, call("lt", read(begin, by), zero, dtype=DType.BOOL), dtype=DType.BOOL)
    assert run_anyway(both) == list(both.children)[: 2 if within else 1]
    assert run_anyway(call("add", read(begin, by), zero)) == [read(begin, by), zero]
    # of what is read twice, nothing that a condition may be there for
    assert (
        read(begin, by) in hoistable([select(some, call("mul", read(begin, by), read(begin, by)), zero)])
    ) == (within)


@pytest.mark.parametrize("begin", [0, 2, 3, -1])
def test_a_loop_that_reads_outside_runs_on_its_condition_alone(begin: int) -> None:
    within, zero = 0 <= begin <= 8 - 7, const(0.0, DType.FLOAT32)
    some, fold = less(AT, 3), reduce("add", (R,), element((add(add(AT, R), begin),)))
    for choice in (select(some, fold, zero), select(some, zero, fold)):
        assert branches(choice) != within
        assert (choice in hoistable([choice])) != within and (fold in hoistable([choice])) == within
    assert not branches(select(some, read(4), zero)) and not branches(call("add", fold, zero))
    first = select(call("lt", fold, zero, dtype=DType.BOOL), read(0), zero)
    assert not branches(first) and hoistable([first]) == [fold]


def test_indices_are_written_where_they_are_read() -> None:
    place = add(mul(AT, 2), -1)
    twice = call("mul", element((place,)), call("neg", element((add(place, 1),))))
    assert hoistable([call("add", twice, const(1.0, DType.FLOAT32)), twice]) == [twice]
    assert hoistable([call("cast", place, dtype=DType.FLOAT32), call("neg", place)]) == []
