"""Values of which the number of rows, the extent of the first axis, depends on data: what may be computed
from them.

Such a value is as large as its upper bound; its rows lie at the front, and zeros behind them. An operator of
which row i of the result depends on row i alone may go on with the bound, for the results behind the last row
are of no account. That is read off the operator's expression: every element of the value that row i reads
must be of row i.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from aot_model.ir.expr import Expr, Index, load
from aot_model.ir.index import index_variables
from aot_model.ir.operator import Inputs, Operator, OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.control import Loop
from aot_model.ops.creation import Range
from aot_model.ops.dynamic import RangeUpTo
from aot_model.ops.movement import Concat, Slice
from aot_model.ops.registry import Build


class Sizes:
    """What is known of the sizes in a model that depend on data.

    shapes: values of which an extent does, and the values that hold their actual shapes; counts: those of
    which it is the number of rows alone, and the values that hold that; bounds: numbers of rows that the user
    gave and nobody has taken.
    """

    def __init__(self, bounds: Mapping[str, int]) -> None:
        self.bounds = dict(bounds)
        self.shapes: dict[Value, Value] = {}
        self.counts: dict[Value, Value] = {}

    def among(self, values: Iterable[object]) -> list[Value]:
        """Those values whose size depends on data."""
        return [v for v in values if isinstance(v, Value) and v in self.shapes]

    def bounded(self, op: Operator, outputs: Iterable[str]) -> Operator:
        """The form of an operator that has room for as many rows as the user says."""
        most = [self.bounds.pop(name) for name in outputs if name in self.bounds]
        if not most:
            return op
        if isinstance(op, Loop):
            return replace(op, most=most[0])
        if isinstance(op, Range):
            return RangeUpTo(most[0])
        raise OperatorError("--bound is for results of Range and Loop", "E203")

    def add(self, value: Value, shape: Value, axis: int, build: Build) -> None:
        """Note that the extent of a value along an axis depends on data."""
        self.shapes[value] = shape
        if axis == 0:
            self.counts[value] = build(
                Slice(), shape, build.constant([0], DType.INT64), build.constant([1], DType.INT64)
            )

    def add_rows(self, value: Value, count: Value | None, build: Build) -> None:
        """Note that a value has as many rows as `count` says."""
        assert count is not None
        self.shapes[value] = build(
            Concat(0), count, build.constant(value.shape[1:], DType.INT32), output=f"{value.name}.shape"
        )
        self.counts[value] = count

    def row_count(self, op: Operator, inputs: Inputs) -> Value | None:
        """The number of rows of an operator's results where it depends on data: that of such inputs.
        OperatorError E203 where the operator does more with them than rows."""
        sized = self.among(inputs)
        if not sized:
            return None
        other = next((v for v in sized if v not in self.counts), None)
        if other is not None:
            raise OperatorError(
                f"reads '{other.name}', of which an inner extent depends on data",
                "E203",
                "such a value can be an output of the model only",
            )
        if len({self.counts[v] for v in sized}) > 1:
            raise OperatorError(
                f"reads {' and '.join(repr(v.name) for v in sized)}, whose numbers of rows depend on "
                "different data",
                "E203",
            )
        rows = max(sized[0].shape[0], 2)  # of one row everything is row by row
        trial = {v: Value(v.name, TensorType(v.dtype, (rows, *v.shape[1:]))) for v in sized}
        if not _by_rows(
            op, [trial.get(v, v) if v is not None else None for v in inputs], set(trial.values()), rows
        ):
            hint = (
                "operators that treat each row alone can read such a value; others need a size that is known"
            )
            raise OperatorError(
                f"reads more than one row of '{sized[0].name}', whose number of rows depends on data",
                "E203",
                hint,
            )
        return self.counts[sized[0]]


def _by_rows(op: Operator, inputs: Inputs, sized: Collection[Value], rows: int) -> bool:
    try:
        types = op.infer(inputs)
        if op.shape_only or op.effects or any(not t.rank or t.shape[0] != rows for t in types):
            return False
        if op.has("express"):
            return all(_reads_its_row(op, inputs, sized, t, k) for k, t in enumerate(types))
        return op.has("expand") and _expands_by_rows(op, inputs, sized, rows)
    except OperatorError:
        return False


def _reads_its_row(
    op: Operator, inputs: Inputs, sized: Collection[Value], result: TensorType, number: int
) -> bool:
    index = index_variables(result.shape)
    alone = True

    def at(value: Value, where: Index) -> Expr:
        nonlocal alone
        # A value of fixed size that has as many rows as the bound does not fit the actual number.
        alone = (
            alone and (bool(where) and where[0] is index[0])
            if value in sized
            else alone and all(w is not index[0] for w in where)
        )
        return load(value, where)

    op.express(at, inputs, index, number)
    return alone


def _expands_by_rows(op: Operator, inputs: Inputs, sized: Collection[Value], rows: int) -> bool:
    build = Build([], "trial")
    results = op.expand(build, inputs)
    known = set(sized)
    for node in build.nodes:
        read = [v for v in node.inputs if v in known]
        if not read:
            continue
        if not _by_rows(node.op, node.inputs, known, rows):
            return False
        known.update(node.outputs)
    return all(v in known for v in results)
