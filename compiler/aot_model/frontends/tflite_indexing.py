"""TFLite: operators that read or write at places found in tensors. Places outside are clamped, where LiteRT
stops the run.
"""

from __future__ import annotations

import math

import numpy as np

from aot_model.frontends.tflite_conversion import Conversion, rule
from aot_model.frontends.tflite_layers import plain_weights, row_blocks
from aot_model.frontends.tflite_movement import slices
from aot_model.frontends.tflite_windows import combination
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.blocks import block_rows
from aot_model.ops.conversion import Cast
from aot_model.ops.indexing import GatherElements, GatherND
from aot_model.ops.movement import Concat, Expand, Gather
from aot_model.ops.ordering import TopK
from aot_model.ops.registry import OPERATORS, bounded, normal_axis
from aot_model.ops.scatter import ScatterND
from aot_model.ops.slices import UpdateAt

_INDICES = (DType.INT32, DType.INT64)


def _indices(n: Conversion, k: int) -> Value:
    """Indices, of a type that the operators on them take."""
    value = n.x(k)
    if not value.dtype.is_integer:
        raise OperatorError(f"indices {value.type} are not integers")
    return value if value.dtype in _INDICES else n.build(Cast(DType.INT32), value)


@rule("GATHER")
def gather(n: Conversion) -> Value:
    """Along an axis; with batch axes the elements of indices[b, i] come from x[b]."""
    x, indices = n.x(0), _indices(n, 1)
    axis = normal_axis(n.operator.options.get("GatherOptions", "Axis"), x.type.rank)
    batch = int(n.operator.options.get("GatherOptions", "BatchDims"))
    batch += indices.type.rank if batch < 0 else 0
    if batch == 0:
        return n.build(Gather(axis), x, indices)
    if not 0 < batch <= min(axis, indices.type.rank) or x.shape[:batch] != indices.shape[:batch]:
        raise OperatorError(
            f"indices {indices.type} with {batch} batch axes do not fit axis {axis} of {x.type}"
        )
    # (batch, outer, extent, inner) and (batch, 1, wanted, 1), both of the same rank.
    count, wanted = math.prod(x.shape[:batch]), math.prod(indices.shape[batch:])
    outer, inner = math.prod(x.shape[batch:axis]), math.prod(x.shape[axis + 1 :])
    data = n.reshape(x, (count, outer, x.shape[axis], inner))
    places = n.build(
        Expand(),
        n.reshape(indices, (count, 1, wanted, 1)),
        n.constant((count, outer, wanted, inner), DType.INT64),
    )
    y = n.build(GatherElements(2), data, places)
    return n.reshape(y, (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]))


@rule("GATHER_ND")
def gather_nd(n: Conversion) -> Value:
    return n.build(GatherND(), n.x(0), _indices(n, 1))


@rule("STABLEHLO_GATHER")
def gather_windows(n: Conversion) -> Value:
    """A window of x for each vector of indices, which says where it begins along some axes; windows that
    would reach beyond the end of x begin earlier.

    Axes of x from `whole` on lie in the window as they are; what is before is one axis, of which rows are
    gathered: batch x window -> row.
    """
    x, starts, options = n.x(0), _indices(n, 1), n.operator.options
    offsets, collapsed, starting, sizes = (
        options.ints("StablehloGatherOptions", f)
        for f in ("OffsetDims", "CollapsedSliceDims", "StartIndexMap", "SliceSizes")
    )
    vector = int(options.get("StablehloGatherOptions", "IndexVectorDim"))
    if vector == starts.type.rank:
        starts = n.reshape(starts, (*starts.shape, 1))
    rank, axes = x.type.rank, list(range(starts.type.rank))
    kept = [a for a in range(rank) if a not in collapsed]
    total = starts.type.rank - 1 + len(kept)
    if not (
        vector in axes
        and len(sizes) == rank
        and starts.shape[vector] == len(starting)
        and all(0 < s <= e for s, e in zip(sizes, x.shape, strict=True))
        and all(
            len({*of}) == len(of) and all(0 <= a < most for a in of)
            for of, most in ((offsets, total), (collapsed, rank), (starting, rank))
        )
        and all(sizes[a] == 1 for a in collapsed)
        and len(offsets) == len(kept)
    ):
        raise OperatorError(f"windows {list(sizes)} of {x.type} at {starts.type}")
    starts = n.transpose(starts, [*(a for a in axes if a != vector), vector])
    batch = starts.shape[:-1]
    whole = next((a for a in reversed(range(rank)) if sizes[a] != x.shape[a]), -1) + 1
    bounded(math.prod(sizes[:whole]) * max(whole, 1))
    rows: Value = n.constant(np.zeros((*batch, 1)), starts.dtype)
    for k, axis in enumerate(starting):
        if axis < whole:
            place = slices(n, starts, [*((0, e, 1) for e in batch), (k, k + 1, 1)])
            place = n.add("Max", place, n.constant(0, starts.dtype))
            place = n.add("Min", place, n.constant(x.shape[axis] - sizes[axis], starts.dtype))
            stride = math.prod(x.shape[axis + 1 : whole])
            rows = n.add("Add", rows, n.add("Mul", place, n.constant(stride, starts.dtype)))
    grid = np.ravel_multi_index(np.indices(sizes[:whole]), x.shape[:whole]) if whole else np.zeros((), int)
    rows = n.add("Add", rows, n.constant(grid.reshape(-1), starts.dtype))
    lines = n.reshape(x, (math.prod(x.shape[:whole]), *x.shape[whole:]))
    y = n.reshape(n.build(Gather(0), lines, rows), (*batch, *(sizes[a] for a in kept)))
    order = {axis: len(batch) + k for k, axis in enumerate(sorted(offsets))}
    others = iter(range(len(batch)))
    return n.transpose(y, [order[a] if a in order else next(others) for a in range(total)])


@rule("STABLEHLO_SCATTER")
def scatter_windows(n: Conversion) -> Value:
    """Windows of updates go into x where vectors of indices say, as a sub-graph of one operator combines them
    with what is there, or over it; elements beyond x go nowhere.

    Axes of x from `whole` on lie in the window as they are, and no index says where; what is before is one
    axis, of which rows are written, those beyond x into one more row.
    """
    if len(n.inputs) != 3 or n.quantised(0):
        raise OperatorError(f"{len(n.inputs)} tensors, or quantised ones", "E202")
    x, starts, updates, kind = n.x(0), _indices(n, 1), n.x(2), "StablehloScatterOptions"
    windows, inserted, starting = (
        n.operator.options.ints(kind, f)
        for f in ("UpdateWindowDims", "InsertedWindowDims", "ScatterDimsToOperandDims")
    )
    vector = int(n.operator.options.get(kind, "IndexVectorDim"))
    if vector == starts.type.rank:
        starts = n.reshape(starts, (*starts.shape, 1))
    rank, axes = x.type.rank, list(range(starts.type.rank))
    kept = [a for a in range(rank) if a not in inserted]
    if not (
        vector in axes
        and starts.shape[vector] == len(starting)
        and len(windows) == len(kept)
        and all(
            len({*of}) == len(of) and all(0 <= a < most for a in of)
            for of, most in ((windows, updates.type.rank), (inserted, rank), (starting, rank))
        )
    ):
        raise OperatorError(f"windows of {updates.type} in {x.type} at {starts.type}")
    batch = tuple(starts.shape[a] for a in axes if a != vector)
    sizes = [1] * rank
    for axis, of_updates in zip(kept, sorted(windows), strict=True):
        sizes[axis] = updates.shape[of_updates]
    others = [a for a in range(updates.type.rank) if a not in windows]
    if (
        tuple(updates.shape[a] for a in others) != batch
        or any(s > e for s, e in zip(sizes, x.shape, strict=True))
        or updates.dtype is not x.dtype
    ):
        raise OperatorError(f"windows of {updates.type} in {x.type} at {starts.type}")
    whole = next((a for a in reversed(range(rank)) if sizes[a] != x.shape[a] or a in starting), -1) + 1
    lines, inner = math.prod(x.shape[:whole]), math.prod(x.shape[whole:])
    bounded(math.prod((*batch, *sizes[:whole])) * max(whole, 1))
    grid = np.indices(sizes[:whole]).reshape(whole, math.prod(sizes[:whole]))
    starts = n.transpose(starts, [*(a for a in axes if a != vector), vector])
    starts = n.reshape(starts, (math.prod(batch), len(starting)))
    rows: Value = n.constant(np.zeros((math.prod(batch), grid.shape[1])), starts.dtype)
    inside: Value | None = None
    for axis in range(whole):
        place: Value = n.constant(grid[axis], starts.dtype)
        if axis in starting:
            k = starting.index(axis)
            place = n.add("Add", slices(n, starts, [(0, starts.shape[0], 1), (k, k + 1, 1)]), place)
            for limit in (
                n.add("GreaterOrEqual", place, n.constant(0, starts.dtype)),
                n.add("Less", place, n.constant(x.shape[axis], starts.dtype)),
            ):
                inside = limit if inside is None else n.add("And", inside, limit)
        stride = n.constant(math.prod(x.shape[axis + 1 : whole]), starts.dtype)
        rows = n.add("Add", rows, n.add("Mul", place, stride))
    if inside is not None:
        rows = n.add("Where", inside, rows, n.constant(lines, starts.dtype))
    pieces = n.transpose(updates, [*others, *sorted(windows)])
    reduction = _scattered(n, int(n.operator.options.get(kind, "UpdateComputationSubgraphIndex")), x.dtype)
    table = n.build(Concat(0), n.reshape(x, (lines, inner)), n.constant(np.zeros((1, inner)), x.dtype))
    y = n.build(
        ScatterND(reduction),
        table,
        n.reshape(rows, (rows.type.elements, 1)),
        n.reshape(pieces, (rows.type.elements, inner)),
    )
    return n.reshape(slices(n, y, [(0, lines, 1), (0, inner, 1)]), x.shape)


def _scattered(n: Conversion, index: int, dtype: DType) -> str:
    """ScatterND's name of what a sub-graph makes of what is there and an update."""
    operation = combination(n, index, dtype)
    reductions = {"": "none", "Add": "add", "Mul": "mul", "Min": "min", "Max": "max"}
    kind = "" if operation is None else operation.name
    if kind not in reductions:
        raise OperatorError(f"updates combined by {kind} are not supported", "E202")
    return reductions[kind]


@rule("SCATTER_ND")
def scatter_nd(n: Conversion) -> Value:
    """Updates at indices of zeros; those for one place are added up."""
    indices, updates, shape = _indices(n, 0), n.x(1), n.ints(2, "the shape")
    zeros = n.build(Expand(), n.constant(0, updates.dtype), n.constant(shape, DType.INT64))
    return n.build(ScatterND("add"), zeros, indices, updates)


@rule("SPARSE_TO_DENSE")
def sparse_to_dense(n: Conversion) -> Value:
    """Values at indices of a tensor of one default value."""
    indices, shape, values = _indices(n, 0), n.ints(1, "the shape"), n.x(2)
    rank = len(shape)
    rows = indices.shape[0] if indices.shape else 1
    columns = indices.shape[1] if indices.type.rank == 2 else 1
    if columns != rank or indices.type.rank > 2:
        raise OperatorError(f"indices {indices.type} do not fit shape {list(shape)}")
    start = n.build(Expand(), n.reshape(n.x(3), ()), n.constant(shape, DType.INT64))
    each = n.build(Expand(), n.reshape(values, (values.type.elements,)), n.constant([rows], DType.INT64))
    return n.build(ScatterND(), start, n.reshape(indices, (rows, rank)), each)


@rule("ONE_HOT")
def one_hot(n: Conversion) -> Value:
    """`on` where the place along a new axis is the index, else `off`; what is outside selects nothing."""
    indices, depth = _indices(n, 0), n.ints(1, "the depth")
    on, off = n.reshape(n.x(2), ()), n.reshape(n.x(3), ())
    axis = normal_axis(int(n.operator.options.get("OneHotOptions", "Axis")), indices.type.rank + 1)
    if len(depth) != 1 or depth[0] < 0:
        raise OperatorError(f"the depth is {list(depth)}")
    bounded(depth[0])
    lined = n.reshape(indices, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    ramp = n.constant(np.arange(depth[0]).reshape(-1, *[1] * (indices.type.rank - axis)), indices.dtype)
    return n.add("Where", n.add("Equal", lined, ramp), on, off)


@rule("TOPK_V2")
def top_k(n: Conversion) -> list[Value]:
    """The k largest along the last axis, and their indices; of equal ones the first comes first."""
    values, indices = n.build.many(TopK(-1), n.x(0), n.constant(n.ints(1, "k"), DType.INT64))
    return [values, n.build(Cast(n.out_dtype(1)), indices)]


@rule("EMBEDDING_LOOKUP")
def embedding_lookup(n: Conversion) -> Value:
    """Rows of a table; those of a quantised one become floats where the result has them (scale times
    integer).
    """
    table, places = n.x(1), _indices(n, 0)
    if not table.dtype.is_integer or not n.out_dtype().is_float:
        return n.build(Gather(0), table, places)
    parts = row_blocks(n, 1)
    if parts is None:
        return n.build(Gather(0), plain_weights(n, 1, n.out_dtype()), places)
    return block_rows(n.build, parts.q, places, parts.scales, parts.zeros, 0, 1, parts.block)


@rule("REVERSE_SEQUENCE")
def reverse_sequence(n: Conversion) -> Value:
    """The first lengths[b] elements along an axis backwards, the rest as they are."""
    x, lengths = n.x(0), _indices(n, 1)
    options = "ReverseSequenceOptions"
    axis, batch = (
        normal_axis(int(n.operator.options.get(options, name)), x.type.rank)
        for name in ("SeqDim", "BatchDim")
    )
    if axis == batch or lengths.shape != (x.shape[batch],):
        raise OperatorError(
            f"lengths {lengths.type} along axis {batch} and steps along axis {axis} do not fit {x.type}"
        )

    def along(value: Value, a: int) -> Value:
        return n.reshape(value, tuple(d if k == a else 1 for k, d in enumerate(x.shape)))

    steps = along(n.constant(np.arange(x.shape[axis]), lengths.dtype), axis)
    last = n.add("Sub", along(lengths, batch), n.constant(1, lengths.dtype))
    backwards = n.add("Sub", last, steps)
    place = n.add("Where", n.add("Less", backwards, n.constant(0, lengths.dtype)), steps, backwards)
    return n.build(GatherElements(axis), x, n.build(Expand(), place, n.constant(x.shape, DType.INT64)))


@rule("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(n: Conversion) -> Value:
    return n.build(UpdateAt(), n.x(0), n.x(1), _indices(n, 2))


@rule("SEGMENT_SUM")
def segment_sum(n: Conversion) -> Value:
    """Sums of rows with the same number; the numbers are sorted constants."""
    return _segments(n, max(n.ints(1, "the segments"), default=-1) + 1, "add")


_SEGMENTS = {
    "UNSORTED_SEGMENT_SUM": "add",
    "UNSORTED_SEGMENT_PROD": "mul",
    "UNSORTED_SEGMENT_MAX": "max",
    "UNSORTED_SEGMENT_MIN": "min",
}


@rule(*_SEGMENTS)
def unsorted_segments(n: Conversion) -> Value:
    """Sums, products, extremes of what has the same number; what has a negative number is left out."""
    return _segments(n, n.ints(2, "the number of segments")[0], _SEGMENTS[n.operator.kind])


def _segments(n: Conversion, count: int, reduction: str) -> Value:
    x, numbers = n.x(0), _indices(n, 1)
    lead = numbers.type.rank
    if x.shape[:lead] != numbers.shape or count < 0 or x.dtype not in (DType.FLOAT32, DType.INT32):
        raise OperatorError(f"segments {numbers.type} do not fit {x.type}")
    bounded(count)
    rest = x.shape[lead:]
    limits = (-np.finfo(np.float32).max, np.finfo(np.float32).max) if x.dtype.is_float else x.dtype.limits
    start = {"add": 0, "mul": 1, "max": limits[0], "min": limits[1]}[reduction]
    # One row more takes what is left out.
    rows = math.prod(numbers.shape)
    flat = n.reshape(numbers, (rows, 1))
    kept = n.add("Where", n.add("Less", flat, n.constant(0, flat.dtype)), n.constant(count, flat.dtype), flat)
    empty = n.build(Expand(), n.constant(start, x.dtype), n.constant((count + 1, *rest), DType.INT64))
    y = n.build(ScatterND(reduction), empty, kept, n.reshape(x, (rows, *rest)))
    return n.build(Gather(0), y, n.constant(np.arange(count), DType.INT64))


@rule("WHERE")
def where(n: Conversion) -> Value:
    """The places of what is not 0, a row each: as many as there can be, the actual number is an output of its
    own.
    """
    return n.build.many(OPERATORS["aot", "NonZeroRows"](), n.x())[0]


@rule("BUCKETIZE")
def bucketize(n: Conversion) -> Value:
    """How many boundaries are not above the element."""
    x = n.x()
    reader = n.operator.options
    edges = [float(v) for v in reader.floats("BucketizeOptions", "Boundaries")]
    lined = n.reshape(x, (*x.shape, 1))
    below = n.add("LessOrEqual", n.constant(edges, DType.FLOAT32), n.build(Cast(DType.FLOAT32), lined))
    axes = n.constant([x.type.rank], DType.INT64)
    return n.build(
        OPERATORS["", "ReduceSum"](keepdims=0),  # type: ignore[call-arg]
        n.build(Cast(DType.INT32), below),
        axes,
    )


@rule("MATRIX_DIAG", "MATRIX_SET_DIAG")
def matrix_diag(n: Conversion) -> Value:
    """The last axis on the diagonal of matrices: of zeros, or of those given."""
    deep = n.operator.kind == "MATRIX_SET_DIAG"
    diagonal = n.x(1 if deep else 0)
    size = diagonal.shape[-1] if diagonal.shape else 0
    rows, columns = n.x(0).shape[-2:] if deep else (size, size)
    if not diagonal.shape or size != min(rows, columns):
        raise OperatorError(f"a diagonal {diagonal.type} does not fit matrices of {rows} by {columns}")
    bounded(rows * columns)
    places = n.constant(np.minimum(np.arange(columns), size - 1), DType.INT64)
    across = n.build(Gather(diagonal.type.rank - 1), diagonal, places)
    lined = n.reshape(across, (*diagonal.shape[:-1], 1, columns))
    base = n.x(0) if deep else n.constant(0, diagonal.dtype)
    return n.add("Where", n.constant(np.eye(rows, columns, dtype=bool), DType.BOOL), lined, base)
