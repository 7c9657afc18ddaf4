"""What else may be computed from values of which the number of rows depends on data (onnx_rows.py): operators
that do more than treat each row alone, where their meaning allows it.

What lies behind the last row has no influence there: a reduction, or a search, sees its neutral element; a
loop over the rows ends with the last one; a shape is a result that is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from aot_model.frontends.onnx_extents import Counts, at_bound, extents_of, moved_extents
from aot_model.ir.graph import Node
from aot_model.ir.operator import Inputs, Operator
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.concat_rows import ConcatRows
from aot_model.ops.conversion import Cast
from aot_model.ops.creation import ConstantOfShape, Range, Shape, Size
from aot_model.ops.dynamic import Compress, NonZero
from aot_model.ops.elementwise import op
from aot_model.ops.indexing import GatherND
from aot_model.ops.movement import Concat, Expand, Gather, Slice
from aot_model.ops.non_max_suppression import NonMaxSuppression, NonMaxSuppressionRows
from aot_model.ops.normalisation import LogSoftmax, ReduceLogSumExp, Softmax
from aot_model.ops.ordering import ArgMax, ArgMin, CumSum, TopK
from aot_model.ops.reduction import Reduction
from aot_model.ops.registry import OPERATORS, Build, ints, normal_axis, static
from aot_model.ops.scatter import ScatterElements, ScatterElementsRows, ScatterND, ScatterNDRows
from aot_model.ops.views import Reshape, Unsqueeze

Way = tuple[Operator, list[Value | None], Value | None, int]
"""What stands for a node: an operator, its inputs, the number of rows of its results where that depends on
data, and how many axes of extent 1 lie before the rows."""

SUMS = ("ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum")


def other_way(known: Counts, op: Operator, inputs: Inputs, build: Build) -> Way | None:
    """How an operator computes from rows whose number depends on data; None where there is no way."""
    if not inputs or inputs[0] is None:
        return None
    for kinds, way in _WAYS:
        if isinstance(op, kinds):
            return way(known, op, inputs, build)
    return None


def _alive(build: Build, x: Value, count: Value) -> Value:
    places = np.arange(x.shape[0]).reshape(-1, *[1] * (x.type.rank - 1))
    return build(op("Less"), build.constant(places, DType.INT32), count)


def _with(build: Build, x: Value, count: Value, neutral: float | bool) -> Value:
    """x with a neutral element in what lies behind its last row."""
    alive = _alive(build, x, count)
    if x.dtype is DType.BOOL:
        return build(op("And"), x, alive) if not neutral else build(op("Or"), x, build(op("Not"), alive))
    return build(op("Where"), alive, x, build.constant(neutral, x.dtype))


def _extreme(dtype: DType, largest: bool) -> float:
    if dtype.is_float:
        return math.inf if largest else -math.inf
    return dtype.limits[1 if largest else 0]


def _reduction(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    x = inputs[0]
    if x not in known.counts or known.shapes.keys() & set(inputs[1:]):
        return None
    assert isinstance(node, Reduction | ReduceLogSumExp) and x is not None
    if 0 not in _axes(node, inputs):
        return None
    count, axes = known.counts[x], list(inputs[1:])
    if node.name == "ReduceMean":
        if x.dtype not in (DType.FLOAT32, DType.FLOAT64):
            return None
        assert isinstance(node, Reduction)
        others = math.prod(x.shape[a] for a in node.axes(inputs) if a)
        total = build(
            OPERATORS["", "ReduceSum"](node.keepdims, node.noop_with_empty_axes),  # type: ignore[call-arg]
            _with(build, x, count, 0),
            *axes,
        )
        # of ranges there may be more
        count = build(op("Min"), count, build.constant([x.shape[0]], DType.INT32))
        number = build(op("Reshape"), build(Cast(x.dtype), count), build.constant((), DType.INT64))
        number = build(op("Mul"), number, build.constant(others, x.dtype))
        return op("Div"), [total, number], None, 0
    neutral = (
        0.0 if node.name in SUMS else 1.0 if node.name == "ReduceProd" else
        _extreme(x.dtype, node.name == "ReduceMin")
    )  # fmt: skip
    return node, [_with(build, x, count, neutral), *axes], None, 0


def _axes(node: Operator, inputs: Inputs) -> frozenset[int]:
    if isinstance(node, Reduction):
        return node.axes(inputs)
    return OPERATORS["", "ReduceSum"](1, node.noop_with_empty_axes).axes(inputs)  # type: ignore[call-arg,attr-defined,no-any-return]


def _softmax(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    x = inputs[0]
    assert isinstance(node, Softmax)
    if x is None or x not in known.counts or normal_axis(node.axis, x.type.rank):
        return None
    return node, [_with(build, x, known.counts[x], -math.inf)], known.counts[x], 0


def _place_of_extreme(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    x = inputs[0]
    assert isinstance(node, ArgMax | ArgMin)
    if x is None or x not in known.counts:
        return None
    if normal_axis(node.axis, x.type.rank):
        return node, list(inputs), known.counts[x], 0
    if node.select_last_index:
        return None
    return node, [_with(build, x, known.counts[x], _extreme(x.dtype, isinstance(node, ArgMin)))], None, 0


def _best(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """The best rows: as many as there are, at most as many as asked for."""
    x, k = inputs[0], inputs[1] if len(inputs) > 1 else None
    assert isinstance(node, TopK)
    if x is None or x not in known.counts or k is None:
        return None
    if normal_axis(node.axis, x.type.rank):
        return _along(known, node, inputs, build)
    number, count = extents_of(known, build, k), known.counts[x]
    if (
        not number
        or not isinstance(fewer := number[0], Value)
        or fewer not in known.fewer.get(count, {count})
    ):
        return None
    masked = _with(build, x, count, _extreme(x.dtype, not node.largest))
    room = build.constant([min(known.room[fewer], x.shape[0])], DType.INT64)
    return node, [masked, room], fewer, 0


def _concat(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """Rows behind rows."""
    assert isinstance(node, Concat)
    parts = [v for v in inputs if v is not None]
    if not parts[0].type.rank or normal_axis(node.axis, parts[0].type.rank):
        return None
    if any(v in known.shapes and v not in known.counts for v in parts):
        return None
    counts = [
        known.counts[v] if v in known.counts else build.constant([v.shape[0]], DType.INT32) for v in parts
    ]
    return ConcatRows(), [*parts, *counts], known.together(parts, counts, build), 0


def _along(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """What goes along an axis within a row."""
    x = inputs[0]
    if x is None or x not in known.counts or known.shapes.keys() & set(inputs[1:]):
        return None
    if isinstance(node, TopK):
        axis = node.axis
    elif (data := static(inputs, 1, "the axis")) is not None:
        axis = ints(data)[0]
    else:
        return None
    if normal_axis(axis, x.type.rank) == 0:
        return None
    return node, list(inputs), known.counts[x], 0


def _picked(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """Of NonZero its input, of Compress its condition: what lies behind is not picked."""
    k = 1 if isinstance(node, Compress) else 0
    condition = inputs[k]
    if condition is None or condition not in known.counts:
        return None
    x = inputs[0]
    if k:
        assert x is not None and isinstance(node, Compress)
        if x in known.shapes and (known.counts.get(x) is not known.counts[condition] or node.axis != 0):
            return None
    masked = _with(build, condition, known.counts[condition], 0)
    return node, [x, masked] if k else [masked], None, 0


def _known_part(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """The elements of a shape that do not depend on data."""
    x = inputs[0]
    if x is None or x.data is not None or x.dtype is not DType.INT64 or x.type.rank != 1:
        return None
    if any(v is not None and v.data is None for v in inputs[1:]):
        return None
    result = Value("part", node.infer(inputs)[0])
    found = moved_extents(known, build, Node(node, list(inputs), [result]))
    numbers = [n for n in found or () if isinstance(n, int)]
    if found is None or len(numbers) < len(found):
        return None
    part = np.asarray(numbers, np.int64).reshape(result.shape)
    return op("Identity"), [build.constant(part)], None, 0


def _slice(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """The first rows: as many as there are, at most as many as asked for."""
    if part := _known_part(known, node, inputs, build):
        return part
    x, starts, ends, axes, steps = (inputs[k] if k < len(inputs) else None for k in range(5))
    if x is None or starts is None or ends is None or (x in known.shapes and x not in known.counts):
        return None
    if any(v is not None and v.data is None for v in (starts, axes, steps)):
        return None
    assert starts.data is not None
    begins = ints(starts.data)
    places = tuple(range(len(begins))) if axes is None or axes.data is None else ints(axes.data)
    strides = [1] * len(begins) if steps is None or steps.data is None else ints(steps.data)
    first = [k for k, a in enumerate(places) if normal_axis(a, x.type.rank) == 0]
    if any(begins[k] != 0 or strides[k] != 1 for k in first):
        return None
    count = known.counts.get(x)
    if ends.data is None:
        end = extents_of(known, build, ends) if len(first) == ends.type.elements == 1 else None
        if end is None or not isinstance(number := end[0], Value):
            return None
        fewer = known.at_most(number, x.shape[0], build) if count is None else build(op("Min"), count, number)
        return op("Identity"), [x], fewer, 0
    if count is None or not first or any(ints(ends.data)[k] < 0 for k in first):
        return None
    return node, list(inputs), known.at_most(count, node.infer(inputs)[0].shape[0], build), 0


def _shape(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    x = inputs[0]
    assert x is not None
    shape = known.shapes[x]
    if isinstance(node, Size):
        product = build(OPERATORS["", "ReduceProd"](0), shape)  # type: ignore[call-arg]
        return Cast(DType.INT64), [product], None, 0
    assert isinstance(node, Shape)
    part = range(x.type.rank)[node.start : node.end]
    if len(part) == x.type.rank:
        return Cast(DType.INT64), [shape], None, 0
    if x in known.counts and 0 not in part:
        return op("Identity"), [build.constant([x.shape[k] for k in part], DType.INT64)], None, 0
    limits = [build.constant([v], DType.INT64) for v in (part.start, part.stop)]
    return Cast(DType.INT64), [build(Slice(), shape, *limits)], None, 0


def _expand(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """To as many rows."""
    x, found = inputs[0], at_bound(known, build, inputs[1] if len(inputs) > 1 else None)
    if x is None or found is None:
        return None
    count, shape = found
    if x in known.shapes and (known.counts.get(x) is not count or x.type.rank != len(shape)):
        return None
    if x.type.rank > len(shape):  # the rows would be an inner axis
        return None
    if x not in known.shapes and x.type.rank == len(shape) and x.shape[0] != 1:
        return None
    return node, [x, build.constant(shape, DType.INT64)], count, 0


def _filled(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """As many rows of one number."""
    found = at_bound(known, build, inputs[0])
    if found is None or not isinstance(node, ConstantOfShape):
        return None
    number = np.zeros((), np.float32) if node.value is None else np.asarray(node.value).reshape(())
    return Expand(), [build.constant(number), build.constant(found[1], DType.INT64)], found[0], 0


def _range(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """The numbers of the rows."""
    start, limit, step = inputs[:3]
    if start is None or step is None or start.data is None or step.data is None:
        return None
    end = extents_of(known, build, limit)
    if not end or not isinstance(count := end[0], Value) or count not in known.room:
        return None
    if start.data.item() != 0 or step.data.item() != 1:  # of real numbers as well
        return None
    return op("Identity"), [build.constant(np.arange(known.room[count]), start.dtype)], count, 0


def _from_the_front(build: Build, indices: Value, count: Value, first: bool = False) -> Value:
    """Indices of rows, negative ones counted from the last row that there is. first: of the indices of an
    element, which are the last axis, the first one."""
    if indices.data is not None and (indices.data >= 0).all():
        return indices
    rows = build(Cast(indices.dtype), count)
    if first:
        alone = np.arange(indices.shape[-1]) == 0
        rows = build(op("Mul"), rows, build.constant(alone, indices.dtype))
    negative = build(op("Less"), indices, build.constant(0, indices.dtype))
    if first:
        negative = build(op("And"), negative, build.constant(alone))
    return build(op("Where"), negative, build(op("Add"), indices, rows), indices)


def _gather(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """Rows of such a value, as an index says."""
    if isinstance(node, Gather) and (part := _known_part(known, node, inputs, build)):
        return part
    x, indices = inputs[0], inputs[1] if len(inputs) > 1 else None
    nd = isinstance(node, GatherND)
    if (
        x is None
        or indices is None
        or x not in known.counts
        or (isinstance(node, GatherND) and node.batch_dims)
    ):
        return None
    if isinstance(node, Gather) and normal_axis(node.axis, x.type.rank) != 0:
        return None
    if indices in known.shapes and (indices not in known.counts or (nd and indices.type.rank < 2)):
        return None
    places = _from_the_front(build, indices, known.counts[x], nd)
    return node, [x, places], known.counts.get(indices), 0


def _unsqueeze(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """Axes before the rows, as NonMaxSuppression wants them for batches and classes."""
    x, axes = inputs[0], static(inputs, 1, "the axes")
    assert x is not None
    count, lead = (known.counts[x], 0) if x in known.counts else known.lifted.get(x, (None, 0))
    if count is None or axes is None:
        return None
    places = sorted(normal_axis(a, x.type.rank + axes.size) for a in ints(axes))
    if any(a > lead + k for k, a in enumerate(places)):
        return None
    return node, list(inputs), count, lead + axes.size


def _cast(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    x = inputs[0]
    return (node, list(inputs), *known.lifted[x]) if x in known.lifted else None


def _reshape(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """Of each row several, or of several one: x.reshape(-1), x.reshape(-1, 4)."""
    x, shape = inputs[0], inputs[1] if len(inputs) > 1 else None
    target = extents_of(known, build, shape)
    if x is None or x not in known.counts or not target:
        return None
    rest = [n for n in target[1:] if isinstance(n, int)]
    inner, row = math.prod(rest), math.prod(x.shape[1:])
    if len(rest) < len(target) - 1 or 0 in rest or not row:
        return None
    if inner < 0 and isinstance(target[0], Value) and target[0] is known.counts[x]:  # x.reshape(len(x), -1)
        rest[rest.index(-1)] = row // -inner
        inner = row
    if inner <= 0 or (x.shape[0] * row) % inner:
        return None
    if isinstance(target[0], Value):
        count = target[0]
    elif target[0] == -1 and row % inner == 0:
        count = known.times(known.counts[x], row // inner, build)
    else:
        return None
    return Reshape(), [x, build.constant([x.shape[0] * row // inner, *rest], DType.INT64)], count, 0


def _suppression(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    boxes, scores = inputs[:2]
    of_boxes, of_scores = (known.lifted.get(v) if v is not None else None for v in (boxes, scores))
    if of_boxes is None or of_scores is None or of_boxes[0] is not of_scores[0]:
        return None
    count = of_boxes[0]
    if (of_boxes[1], of_scores[1]) != (1, 2):
        return None
    if known.shapes.keys() & set(inputs[2:]):
        return None
    assert isinstance(node, NonMaxSuppression)
    numbers = [*inputs[2:], *[None] * (5 - len(inputs))]
    return NonMaxSuppressionRows(node.center_point_box), [boxes, scores, *numbers, count], None, 0


def _scatter(known: Counts, node: Operator, inputs: Inputs, build: Build) -> Way | None:
    """Of such updates those that there are."""
    x, indices, updates = inputs[:3]
    if x is None or indices is None or updates is None or x in known.shapes or indices.type.rank < 1:
        return None
    of_indices, of_updates = known.counts.get(indices), known.counts.get(updates)
    if of_indices is None or of_updates is None:
        return None
    # The standard wants both numbers to be the same.
    count = of_indices if of_indices is of_updates else build(op("Min"), of_indices, of_updates)
    if indices.shape[0] != updates.shape[0]:
        rows = min(indices.shape[0], updates.shape[0])
        limits = [build.constant([n], DType.INT64) for n in (0, rows, 0)]
        indices, updates = (build(Slice(), v, *limits) for v in (indices, updates))
    if isinstance(node, ScatterND):
        if indices.type.rank < 2:
            return None
        return ScatterNDRows(node.reduction), [x, indices, updates, count], None, 0
    assert isinstance(node, ScatterElements)
    return ScatterElementsRows(node.axis, node.reduction), [x, indices, updates, count], None, 0


_Way = Callable[[Counts, Operator, Inputs, Build], Way | None]
_WAYS: tuple[tuple[tuple[type[Operator], ...], _Way], ...] = (
    ((Reduction, ReduceLogSumExp), _reduction),
    ((Softmax, LogSoftmax), _softmax),
    ((ArgMax, ArgMin), _place_of_extreme),
    ((TopK,), _best),
    ((CumSum,), _along),
    ((Concat,), _concat),
    ((NonZero, Compress), _picked),
    ((Slice,), _slice),
    ((Shape, Size), _shape),
    ((Expand,), _expand),
    ((ConstantOfShape,), _filled),
    ((Range,), _range),
    ((Gather, GatherND), _gather),
    ((Unsqueeze,), _unsqueeze),
    ((Cast,), _cast),
    ((Reshape,), _reshape),
    ((NonMaxSuppression,), _suppression),
    ((ScatterElements, ScatterND), _scatter),
)
