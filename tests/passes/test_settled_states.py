"""States that no run changes any more are constants; what a program computes, run by run, stays the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from pass_case import drawn, numbers, tensor

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.state import Assign
from aot_model.passes.explain import reasons
from aot_model.passes.settled_states import settled_states
from batch import Case, run_cases
from graphs import Maker

SHAPE = (3, 4)
MASK = np.asarray(np.arange(12).reshape(SHAPE) % 3 != 0, np.float32)
WEIGHTS = drawn(1, *SHAPE).data
assert WEIGHTS is not None
X = np.asarray([[0.5, -2.0, 3.0]], np.float32)


@dataclass
class States:
    """What builds a graph with states."""

    m: Maker = field(default_factory=Maker)
    x: Value = field(default_factory=lambda: tensor("x", 1, 3))

    def state(self, initial: np.ndarray | None, name: str = "w") -> Value:
        return Value(name, TensorType(DType.FLOAT32, SHAPE), state=True, initial=initial)

    def assign(self, state: Value, new: Value) -> None:
        self.m.Assign(state, new)


def _masked(s: States) -> list[Value]:
    w = s.state(WEIGHTS)
    new = s.m.Mul(w, numbers(MASK))
    y = s.m.MatMul(s.x, new)
    s.assign(w, new)
    return [y]


def _kept(s: States) -> list[Value]:
    """The state itself is read, and never another one."""
    w = s.state(WEIGHTS)
    y = s.m.MatMul(s.x, w)
    s.assign(w, s.m.Neg(s.m.Neg(w)))
    return [y]


def _zero(s: States) -> list[Value]:
    """Without an initial value."""
    w = s.state(None)
    new = s.m.Max(w, numbers(WEIGHTS))
    y = s.m.MatMul(s.x, s.m.Abs(new))
    s.assign(w, new)
    return [y]


def _two(s: States) -> list[Value]:
    """One settles, one does not."""
    w, other = s.state(WEIGHTS), s.state(WEIGHTS, "v")
    new, more = s.m.Mul(w, numbers(MASK)), s.m.Mul(other, numbers(0.5))
    y = s.m.MatMul(s.x, s.m.Add(new, more))
    s.assign(w, new)
    s.assign(other, more)
    return [y]


def _read_before(s: States) -> list[Value]:
    w = s.state(WEIGHTS)
    y = s.m.MatMul(s.x, w)
    s.assign(w, s.m.Mul(w, numbers(MASK)))
    return [y]


def _between(s: States) -> list[Value]:
    """What comes before the new value is another number in the first run."""
    w = s.state(WEIGHTS)
    half = s.m.Abs(w)
    new = s.m.Max(half, numbers(np.full(SHAPE, 0.25)))
    y = s.m.MatMul(s.x, s.m.Sub(new, half))
    s.assign(w, new)
    return [y]


def _flipped(s: States) -> list[Value]:
    w = s.state(WEIGHTS)
    new = s.m.Neg(w)
    y = s.m.MatMul(s.x, new)
    s.assign(w, new)
    return [y]


def _fed(s: States) -> list[Value]:
    w = s.state(WEIGHTS)
    new = s.m.Mul(w, s.m.Relu(s.m.ReduceMax(s.x, numbers([1], "int64"))))
    y = s.m.MatMul(s.x, new)
    s.assign(w, new)
    return [y]


def _long(s: States) -> list[Value]:
    w = s.state(WEIGHTS)
    new = w
    for _ in range(66):
        new = s.m.Neg(new)
    y = s.m.MatMul(s.x, new)
    s.assign(w, new)
    return [y]


def _drawn(s: States) -> list[Value]:
    """A random number is another one in every run."""
    w = s.state(WEIGHTS)
    new = s.m.Mul(w, s.m.RandomUniform(shape=SHAPE, seed=1.0))
    y = s.m.MatMul(s.x, new)
    s.assign(w, new)
    return [y]


SETTLED: list[Callable[[States], list[Value]]] = [_masked, _kept, _zero]
KEPT = {
    _read_before: "'w' has another value in the first run",
    _between: "has another value in the first run",
    _flipped: "the next run changes it again",
    _fed: "its new value depends on 'x', too",
    _long: "its new value takes more than 64 operators",
    _drawn: "numpy does not compute its new value",
}


def graph(make: Callable[[States], list[Value]]) -> Graph:
    s = States()
    return Graph("g", [s.x], make(s), s.m.nodes)


def runs(make: Callable[[States], list[Value]], count: int) -> list[np.ndarray]:
    """The outputs of run 1 to `count`."""
    cases = [Case(f"{make.__name__}{k}", lambda: graph(make), (X,), runs=k) for k in range(1, count + 1)]
    found = run_cases(cases, "c", jobs=1)
    assert all(o.status == "ok" for o in found), found
    return [o.outputs[0] for o in found]


def expected(make: Callable[[States], list[Value]], count: int) -> list[np.ndarray]:
    """By hand."""
    assert WEIGHTS is not None
    w, v, results = np.zeros(SHAPE, np.float32) if make is _zero else WEIGHTS, WEIGHTS, []
    for _ in range(count):
        before = w
        if make in (_masked, _two, _read_before):
            w = w * MASK
        elif make is _zero:
            w = np.maximum(w, WEIGHTS)
        elif make is _between:
            w = np.maximum(np.abs(w), np.float32(0.25))
        elif make is _flipped:
            w = -w
        elif make is _fed:
            w = w * X.max()
        v = v * np.float32(0.5)
        used = {_read_before: before, _two: w + v, _zero: np.abs(w), _between: w - np.abs(before)}
        results.append(X @ used.get(make, w))
    return results


@pytest.mark.parametrize("make", [*SETTLED, _two, *[k for k in KEPT if k is not _drawn]])
def test_every_run_gives_the_same_as_before(make: Callable[[States], list[Value]]) -> None:
    for got, want in zip(runs(make, 3), expected(make, 3), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("make", SETTLED)
def test_settled_states_are_gone(make: Callable[[States], list[Value]]) -> None:
    g = graph(make)
    assert settled_states(g)
    g.verify()
    assert not any(v is not None and v.state for n in g.nodes for v in n.inputs)
    assert not settled_states(g)


def test_of_two_one_goes() -> None:
    g = graph(_two)
    assert settled_states(g)
    assert [n.inputs[0].name for n in g.nodes if isinstance(n.op, Assign) and n.inputs[0]] == ["v"]


@pytest.mark.parametrize(("make", "why"), KEPT.items())
def test_others_stay(make: Callable[[States], list[Value]], why: str) -> None:
    g = graph(make)
    with reasons() as found:
        assert not settled_states(g)
    assert why in str(found)
    assert [n for n in g.nodes if isinstance(n.op, Assign)]
