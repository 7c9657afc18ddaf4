"""What `express` reads lies within its tensors, for every form that `infer` accepts.

Samples, and samples with the shape of one input changed: whatever is accepted is expressed, and every index
is computed for every element of the outputs, where the conditions around it hold.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator

import numpy as np
from changes import changed
from rows import Row, graph, label_of, registry_rows

from aot_model.errors import CompileError
from aot_model.ir.evaluate import evaluate
from aot_model.ir.expr import Call, Expr, Load, Reduce, Var, clear_interned, load, var
from aot_model.ir.operator import Operator, OperatorError
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import Build
from turns import commit_number

PARTS = 8
PRECONDITIONS = {"aot.Exponential": "its inputs are differences to a maximum"}
"""Internal operators that read by the value of an input, which only their makers can vouch for."""

ELEMENTS = 20_000
"""Outputs with more elements are not computed one by one."""


class Reads:
    """The loads of an expression, each with the condition under which it is done."""

    def __init__(self) -> None:
        self.wrong: set[str] = set()
        self.count = 0
        self._seen: set[tuple[Expr, bytes]] = set()

    def of(self, x: Expr, variables: tuple[Var, ...], where: np.ndarray) -> None:
        """where: bool, broadcasts to the extents of the variables."""
        key = (x, where.tobytes() + str(where.shape).encode())
        if key in self._seen or not where.any():
            return
        self._seen.add(key)
        if isinstance(x, Call) and x.op in ("select", "and", "or"):
            first = x.args[0]
            self.of(first, variables, where)
            holds = self._values(first, variables)
            if x.op == "select":
                self.of(x.args[1], variables, where & holds)
                self.of(x.args[2], variables, where & ~holds)
            else:
                self.of(x.args[1], variables, where & (holds if x.op == "and" else ~holds))
            return
        if isinstance(x, Reduce):
            more = tuple(v for v in x.over if v not in variables)
            self.of(x.body, variables + more, where.reshape(where.shape + (1,) * len(more)))
            return
        for child in x.children:
            self.of(child, variables, where)
        if isinstance(x, Load):
            for i, extent in zip(x.index, x.value.shape, strict=True):
                at = self._values(i, variables)
                self.count += 1
                if (where & ((at < 0) | (at >= extent))).any():
                    self.wrong.add(f"{x.value.type}: {int(at.min())} to {int(at.max())}, extent {extent}")

    def _values(self, x: Expr, variables: tuple[Var, ...]) -> np.ndarray:
        return evaluate(x, variables, tuple(v.extent for v in variables))


def with_data(value: Value | None, shape: tuple[int, ...] | None = None) -> Value | None:
    """The same as a constant, so that indices that depend on it can be computed."""
    if value is None or (value.data is not None and shape is None):
        return value
    shape = value.shape if shape is None else shape
    data = value.data if value.data is not None else value.initial
    if data is None or not np.size(data):
        random = np.random.default_rng(1)
        data = random.integers(0, 3, max(int(np.prod(shape)), 1)).astype(value.dtype.numpy)
    return constant(value.name, np.resize(data, shape).astype(value.dtype.numpy))


def computed(node_op: Operator, inputs: list[Value | None], result: Value, output: int) -> Value | None:
    """What a step of an expansion gives, where it can be said simply: later steps may rely on it."""
    if not node_op.has("express") or not 0 < result.type.elements <= ELEMENTS:
        return with_data(result)
    index = tuple(var(f"i{d}", n) for d, n in enumerate(result.shape))
    return constant(result.name, evaluate(node_op.express(load, inputs, index, output), index, result.shape))


def expressed(node_op: Operator, inputs: list[Value | None], reads: Reads, depth: int = 0) -> None:
    types = node_op.infer(inputs)
    if node_op.has("express"):
        for k, type_ in enumerate(types[: len(types) - len(node_op.sized_by_data(inputs))]):
            if 0 < np.prod(type_.shape, dtype=np.int64) <= ELEMENTS:
                index = tuple(var(f"i{d}", n) for d, n in enumerate(type_.shape))
                variables = tuple(v for v in index if isinstance(v, Var))
                x = node_op.express(load, inputs, index, k)
                reads.of(x, variables, np.ones((1,) * len(variables), bool))
    elif node_op.has("expand") and depth < 6:
        build = Build([], "node")
        node_op.expand(build, inputs)
        known: dict[str, Value | None] = {}
        for node in build.nodes:
            taken = [known.setdefault(v.name, with_data(v)) if v is not None else None for v in node.inputs]
            expressed(node.op, taken, reads, depth + 1)
            known.update((v.name, computed(node.op, taken, v, k)) for k, v in enumerate(node.outputs))


def forms(row: Row) -> Iterator[list[Value | None]]:
    """The inputs of a sample, then with one shape changed each."""
    given = [
        None
        if v is None
        else with_data(
            v if v.data is not None else constant(v.name, np.asarray(x)) if v.dtype.numpy.kind != "S" else v
        )
        for v, x in zip(graph(row).nodes[-1].inputs, row.sample.inputs, strict=False)
    ]
    yield given
    for k, value in enumerate(given):
        if value is not None:
            for shape in changed(value.shape):
                yield [*given[:k], with_data(value, shape), *given[k + 1 :]]


@functools.cache
def _rows() -> list[Row]:
    return list(registry_rows())


def check(row: Row) -> tuple[set[str], int]:
    wrong, count = set(), 0
    for inputs in forms(row):
        clear_interned()
        reads = Reads()
        try:
            expressed(row.operator, inputs, reads)
        except (OperatorError, CompileError):
            continue
        count += reads.count
        wrong |= {
            f"{label_of(row.kind)} {row.sample.attributes} of "
            f"{[str(v.type) if v else None for v in inputs]} reads {w}"
            for w in reads.wrong
        }
    return wrong, count


def test_reads_lie_within_their_tensors() -> None:
    rows = [r for r in _rows() if label_of(r.kind) not in PRECONDITIONS][commit_number() % PARTS :: PARTS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = [check(row) for row in rows]
    assert sum(count for _, count in results) > len(rows)
    wrong = sorted(w for found, _ in results for w in found)
    assert not wrong, "\n".join(wrong)
