"""TFLite: what follows the layers of an object detector: decoding of boxes, suppression of those that
overlap.
"""

from __future__ import annotations

import numpy as np

from aot_model.frontends.tflite_conversion import Conversion, rule
from aot_model.frontends.tflite_custom import CustomOptions
from aot_model.frontends.tflite_movement import slices
from aot_model.frontends.tflite_reduction import reduction
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.detection import BoxSuppression, SoftSuppression
from aot_model.ops.movement import Concat, Expand, Gather, Pad
from aot_model.ops.ordering import ArgMax, TopK
from aot_model.ops.quantised_linear import DequantizeLinear


def column(n: Conversion, x: Value, k: int) -> Value:
    """x[:, k:k+1]."""
    return slices(n, x, [(0, x.shape[0], 1), (k, k + 1, 1)])


def real(n: Conversion, k: int) -> Value:
    """An input as floats."""
    x = n.x(k)
    if x.dtype is DType.FLOAT32:
        return x
    if not n.quantised(k):
        raise OperatorError(f"{x.type} is not supported", "E202")
    return n.build(
        DequantizeLinear(), x, n.constant(n.scale(k), DType.FLOAT32), n.constant(n.zero(k), x.dtype)
    )


def _corners(n: Conversion, encodings: Value, anchors: Value, scales: tuple[float, ...]) -> Value:
    """Boxes (y, x, y, x) from centres and sizes relative to anchors; in double precision as the reference."""
    wide, around = (n.build(Cast(DType.FLOAT64), v) for v in (encodings, anchors))
    parts = []
    for k in range(2):
        size, middle = column(n, around, k + 2), column(n, around, k)
        centre = n.add(
            "Add",
            n.add("Mul", n.add("Div", column(n, wide, k), n.constant(scales[k], DType.FLOAT64)), size),
            middle,
        )
        grown = n.add("Exp", n.add("Div", column(n, wide, k + 2), n.constant(scales[k + 2], DType.FLOAT64)))
        half = n.add("Mul", n.add("Mul", n.constant(0.5, DType.FLOAT64), grown), size)
        parts.append((n.build(Cast(DType.FLOAT32), centre), n.build(Cast(DType.FLOAT32), half)))
    edges = [n.add(side, *parts[k]) for side in ("Sub", "Add") for k in range(2)]
    return n.build(Concat(1), *edges)


@rule("CUSTOM:TFLite_Detection_PostProcess")
def detection_post_process(n: Conversion) -> list[Value]:
    """Boxes, classes, scores and their number; what is behind the number is 0."""
    options = CustomOptions(n.operator.custom)
    most, each, classes = (
        options.integer(k) for k in ("max_detections", "max_classes_per_detection", "num_classes")
    )
    scales = tuple(options.real(f"{k}_scale") for k in "yxhw")
    boxes, scores, anchors = real(n, 0), real(n, 1), real(n, 2)
    if (
        boxes.type.rank != 3
        or scores.type.rank != 3
        or anchors.type.rank != 2
        or boxes.shape[0] != 1
        or scores.shape[:2] != boxes.shape[:2]
    ):
        raise OperatorError(
            f"boxes {boxes.type}, scores {scores.type} and anchors {anchors.type} do not fit each other"
        )
    count, skipped = boxes.shape[1], scores.shape[2] - classes
    if (
        anchors.shape != (count, 4)
        or boxes.shape[2] < 4
        or skipped not in (0, 1)
        or min(most, each, classes) < 1
        or not all(scales)
    ):
        raise OperatorError(
            f"anchors {anchors.type} and {classes} classes do not fit boxes {boxes.type} and scores "
            f"{scores.type}"
        )
    corners = _corners(n, n.reshape(boxes, boxes.shape[1:]), anchors, scales)
    table = n.reshape(scores, scores.shape[1:])
    limits = options.real("nms_iou_threshold"), options.real("nms_score_threshold")
    if options.flag("use_regular_nms", False):
        per_class = min(options.integer("detections_per_class", 100), most)
        picks, found = n.build.many(BoxSuppression(most, per_class, skipped, *limits), corners, table)
        width = n.constant(scores.shape[2], DType.INT32)
        rows = n.add("Div", picks, width)
        kind = n.add("Sub", n.add("Sub", picks, n.add("Mul", rows, width)), n.constant(skipped, DType.INT32))
        score = n.build(Gather(0), n.reshape(table, (table.type.elements,)), picks)
        results = _outputs(
            n, found, 1, n.build(Gather(0), corners, rows), n.build(Cast(DType.FLOAT32), kind), score
        )
        return [*(_lengthened(n, v, most * each) for v in results[:3]), results[3]]
    # Each box counts with the best of its classes.
    kept = min(each, classes)
    named = slices(n, table, [(0, count, 1), (skipped, scores.shape[2], 1)])
    if kept == 1:
        kinds, best = (
            n.build(ArgMax(1, 1), named),
            n.build(reduction("ReduceMax"), named, n.constant([1], DType.INT64)),
        )
    else:
        best, kinds = n.build.many(TopK(1), named, n.constant([kept], DType.INT64))
    first = column(n, best, 0)
    rows, found = n.build.many(BoxSuppression(most, most, 0, *limits), corners, first)
    spread = n.build(
        Expand(),
        n.reshape(n.build(Gather(0), corners, rows), (most, 1, 4)),
        n.constant((most, kept, 4), DType.INT64),
    )
    chosen, score = n.build(Gather(0), kinds, rows), n.build(Gather(0), best, rows)
    return _outputs(n, found, each, spread, n.build(Cast(DType.FLOAT32), chosen), score)


def _outputs(
    n: Conversion, found: Value, each: int, boxes: Value, kinds: Value, scores: Value
) -> list[Value]:
    """The results, of the declared size: [found, classes of a box, ...], and zeros behind those that are
    valid.
    """
    most = boxes.shape[0]
    valid = n.add("Less", n.constant(np.arange(most), DType.INT32), found)

    def padded(x: Value) -> Value:
        kept = 1 if x.type.rank == 1 or (x is boxes and x.type.rank == 2) else x.shape[1]
        inner = 4 if x is boxes else 1
        y = n.reshape(x, (most, kept, inner))
        y = n.add("Where", n.reshape(valid, (most, 1, 1)), y, n.constant(0, DType.FLOAT32))
        return (
            n.build(
                Pad(), y, n.constant([0, 0, 0, 0, each - kept, 0], DType.INT64), n.constant(0, DType.FLOAT32)
            )
            if each > kept
            else y
        )

    return [
        n.reshape(padded(boxes), (1, most * each, 4)),
        n.reshape(padded(kinds), (1, most * each)),
        n.reshape(padded(scores), (1, most * each)),
        n.reshape(n.build(Cast(DType.FLOAT32), found), (1,)),
    ]


@rule("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def non_max_suppression(n: Conversion) -> list[Value]:
    """Indices (and lowered scores) of the best boxes, 0 behind those that are valid; how many are."""
    soft = n.operator.kind.endswith("V5")
    most = n.ints(2, "the largest number of boxes")[0]
    overlap, score = (
        float(n.data(k, what).reshape(())) for k, what in ((3, "the overlap"), (4, "the least score"))
    )
    sigma = float(n.data(5, "sigma").reshape(())) if soft else 0.0
    picks, scores, count = n.build.many(SoftSuppression(most, overlap, score, sigma), n.x(0), n.x(1))
    return [picks, scores, count] if soft else [picks, count]


def _lengthened(n: Conversion, x: Value, count: int) -> Value:
    """Zeros behind the second axis."""
    more = count - x.shape[1]
    pads = [0] * x.type.rank + [0, more, *[0] * (x.type.rank - 2)]
    return n.build(Pad(), x, n.constant(pads, DType.INT64), n.constant(0, DType.FLOAT32)) if more else x
