"""Values of which the number of rows, the extent of the first axis, hangs on data: what may be computed from them.

Such a value is as large as its upper bound; its rows lie at the front, and zeros behind them. An operator of which row i
of the result hangs on row i alone may go on with the bound, for the results behind the last row are of no account. That
is read off the operator's expression: every element of the value that row i reads must be of row i.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from aot_model.ir.expr import Expr, load
from aot_model.ir.graph import Value
from aot_model.ir.types import TensorType
from aot_model.lowering.loops import index_variables
from aot_model.ops.registry import Build, Index, Inputs, Operator, OperatorError


def row_count(op: Operator, inputs: Inputs, sized: Sequence[Value], counts: Mapping[Value, Value]) -> Value:
    """The number of rows of an operator's results, which is that of the inputs `sized`. OperatorError E203 where the
    operator does more than rows. counts: the numbers of rows of values, as values."""
    other = next((v for v in sized if v not in counts), None)
    if other is not None:
        raise OperatorError(f"reads '{other.name}', of which an inner extent hangs on data", "E203", "such a value can be an output of the model only")
    if len({counts[v] for v in sized}) > 1:
        raise OperatorError(f"reads {' and '.join(repr(v.name) for v in sized)}, whose numbers of rows hang on different data", "E203")
    rows = max(sized[0].shape[0], 2)  # of one row everything is row by row
    trial = {v: Value(v.name, TensorType(v.dtype, (rows, *v.shape[1:]))) for v in sized}
    if not _by_rows(op, [trial.get(v, v) if v is not None else None for v in inputs], set(trial.values()), rows):
        hint = "operators that treat each row alone can read such a value; others need a size that is known"
        raise OperatorError(f"reads more than one row of '{sized[0].name}', whose number of rows hangs on data", "E203", hint)
    return counts[sized[0]]


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


def _reads_its_row(op: Operator, inputs: Inputs, sized: Collection[Value], result: TensorType, number: int) -> bool:
    index = index_variables(result.shape)
    alone = True

    def at(value: Value, where: Index) -> Expr:
        nonlocal alone
        # A value of fixed size that has as many rows as the bound does not fit the actual number.
        alone = alone and (bool(where) and where[0] is index[0]) if value in sized else alone and all(w is not index[0] for w in where)
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
