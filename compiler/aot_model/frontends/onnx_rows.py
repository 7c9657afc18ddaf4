"""Values of which the number of rows, the extent of the first axis, depends on data: what may be computed
from them.

Such a value is as large as its upper bound; its rows lie at the front, and zeros behind them. An operator of
which row i of the result depends on row i alone may go on with the bound, for the results behind the last row
are of no account. That is read off the operator's expression: every element of the value that row i reads
must be of row i.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from aot_model.frontends.onnx_row_ways import Way, other_way
from aot_model.ir.expr import Expr, Index, load
from aot_model.ir.graph import Node
from aot_model.ir.index import index_variables
from aot_model.ir.operator import Inputs, Operator, OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.control import Loop
from aot_model.ops.creation import ConstantOfShape, Range
from aot_model.ops.dynamic import Compress, NonZeroRows, RangeUpTo
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Concat, Expand, Gather, Slice
from aot_model.ops.registry import Build
from aot_model.ops.views import Reshape

_OF_SHAPES = (ConstantOfShape, Expand, Gather, Range, Reshape, Slice)


class Sizes:
    """What is known of the sizes in a model that depend on data.

    shapes: values of which an extent does, and the values that hold their actual shapes; counts: those of
    which it is the number of rows alone, and the values that hold that; lifted: such ones with axes of
    extent 1 before their rows, and how many; owners: whose a shape is; room: how many rows there can be,
    beyond: or more;
    picked: numbers of what masks pick; fewer: what is no more than a number; bounds: numbers of rows that
    the user gave and nobody has taken.
    """

    def __init__(self, bounds: Mapping[str, int]) -> None:
        self.bounds = dict(bounds)
        self.shapes: dict[Value, Value] = {}
        self.counts: dict[Value, Value] = {}
        self.lifted: dict[Value, tuple[Value, int]] = {}
        self.owners: dict[Value, Value] = {}
        self.room: dict[Value, int] = {}
        self.beyond: set[Value] = set()
        self.fewer: dict[Value, set[Value]] = {}
        self.others: dict[tuple[str, Value, int], Value] = {}
        self.sums: dict[tuple[Value | int, ...], Value] = {}
        self.picked: dict[tuple[str, Value, int], Value] = {}

    @contextmanager
    def inside(self) -> Iterator[None]:
        """While a body is read: numbers of rows that are made in it are not there outside of it."""
        outside = self.picked, self.others, self.sums
        self.picked, self.others, self.sums = dict(self.picked), dict(self.others), dict(self.sums)
        try:
            yield
        finally:
            self.picked, self.others, self.sums = outside

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

    def add(self, value: Value, shape: Value, axis: int, node: Node, build: Build) -> None:
        """Note that the extent of a value, which a node gives, along an axis depends on data."""
        self.shapes[value] = shape
        self.owners[shape] = value
        if axis != 0:
            return
        first = build.constant([0], DType.INT64), build.constant([1], DType.INT64)
        count = build(Slice(), shape, *first)
        if isinstance(node.op, Compress | NonZeroRows):
            # What the same mask picks of several values are as many rows.
            mask = node.inputs[1 if isinstance(node.op, Compress) else 0]
            assert mask is not None
            count = self.picked.setdefault((node.kind, mask, value.shape[0]), count)
        self.counts[value] = count
        self.room[count] = value.shape[0]
        if isinstance(node.op, RangeUpTo) or (isinstance(node.op, Loop) and node.op.most is not None):
            self.beyond.add(count)

    def add_rows(self, values: list[Value], count: Value, lead: int, build: Build) -> None:
        """Note that values have as many rows as `count` says, behind so many axes of extent 1."""
        for value in values:
            ones = [build.constant([1] * lead, DType.INT32)] if lead else []
            rest = build.constant(value.shape[lead + 1 :], DType.INT32)
            shape = build(Concat(0), *ones, count, rest, output=f"{value.name}.shape")
            self.shapes[value] = shape
            self.owners[shape] = value
            if lead:
                self.lifted[value] = (count, lead)
            else:
                self.counts[value] = count
                self.room.setdefault(count, value.shape[0])

    def at_most(self, count: Value, rows: int, build: Build) -> Value:
        """The lower one of a number of rows and a known one."""
        if rows >= self.room[count]:
            return count
        made = self._other("Min", count, rows, build)
        self.fewer.setdefault(count, {count}).add(made)
        return made

    def times(self, count: Value, factor: int, build: Build) -> Value:
        """So many times a number of rows."""
        if factor == 1:
            return count
        return self._other("Mul", count, factor, build)

    def together(self, parts: list[Value], counts: list[Value], build: Build) -> Value:
        """The number of rows of several values."""
        known = [v.data for v in counts]
        key = tuple(v if d is None else int(d[0]) for v, d in zip(counts, known, strict=True))
        if key not in self.sums:
            total = counts[0]
            for v in counts[1:]:
                total = build(op("Add"), total, v)
            self.sums[key] = total
            self.room[total] = sum(v.shape[0] for v in parts)
        return self.sums[key]

    def _other(self, name: str, count: Value, number: int, build: Build) -> Value:
        """Made once, so that what has as many rows is known to."""
        key = (name, count, number)
        if key not in self.others:
            made = build(op(name), count, build.constant([number], DType.INT32))
            self.others[key] = made
            self.room[made] = self.room[count] * number if name == "Mul" else number
        return self.others[key]

    def settled(self, node: Operator, inputs: list[Value | None], build: Build) -> Way:
        """What is to be computed for an operator, and the number of rows of its results where it depends on
        data. OperatorError E203 where there is no way.
        """
        if not self.shapes:
            return node, inputs, None, 0
        # Where the user's bound is too low, the shape of what has rows says so, but no sum of them.
        hidden = any(self.counts.get(v) in self.beyond for v in self.among(inputs))
        try:
            # What is computed of shapes alone may say how many rows there are.
            first = isinstance(node, _OF_SHAPES) and not hidden
            way = other_way(self, node, inputs, build) if first else None
            return way or (node, inputs, self._row_count(node, inputs), 0)
        except OperatorError:
            way = None if hidden else other_way(self, node, inputs, build)
            if way is None:
                node.infer(inputs)  # what is wrong beside that is said first
                raise
            return way

    def _row_count(self, op: Operator, inputs: Inputs) -> Value | None:
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
                "operators that treat each row alone, and some others (docs/shapes.md), can read such a "
                "value; the rest need a size that is known"
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
