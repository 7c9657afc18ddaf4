"""NonMaxSuppression: the boxes that do not overlap a better one; as many as data have (see dynamic.py)."""

from __future__ import annotations

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Scratch
from aot_model.kernels.site import Site
from aot_model.ops.dynamic import clear_rest, put_shape, shape_type
from aot_model.ops.registry import operator, required, whole


@operator("NonMaxSuppression", stores_itself=True)
class NonMaxSuppression(Operator):
    """The best boxes of each class that do not overlap a better one: rows (batch, class, box)."""

    center_point_box: int = 0

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: 0}

    def _most(self, inputs: Inputs) -> int:
        """Boxes of one class that can be chosen."""
        limit = inputs[2] if len(inputs) > 2 else None
        spatial = required(inputs).shape[1]
        if limit is None:
            return 0
        return spatial if limit.data is None else max(min(whole(limit.data, "the most boxes"), spatial), 0)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        boxes, scores = required(inputs, 0), required(inputs, 1)
        if (
            boxes.type.rank != 3
            or boxes.shape[2] != 4
            or scores.type.rank != 3
            or scores.shape[::2] != boxes.shape[:2]
        ):
            raise OperatorError(f"scores {scores.type} do not fit boxes {boxes.type}")
        for k, name in ((2, "most boxes"), (3, "overlap"), (4, "least score")):
            number = inputs[k] if len(inputs) > k else None
            if number is not None and number.type.elements != 1:
                raise OperatorError(f"the {name}, {number.type}, is not one number")
        return [
            TensorType(DType.INT64, (scores.shape[0] * scores.shape[1] * self._most(inputs), 3)),
            shape_type(2),
        ]

    def lower(self, site: Site) -> None:
        boxes, scores = site.input(0), site.input(1)
        batches, classes, spatial = scores.shape
        most = self._most(site.node.inputs)
        given = {
            name: site.node.input(k)
            for k, name in ((2, "limit"), (3, "overlap"), (4, "least"), (5, "number"))
        }
        present = {n: v for n, v in given.items() if v is not None}
        measure, helper = (
            ("nms_centred_overlap", _CENTRE_OVERLAP)
            if self.center_point_box
            else ("nms_overlap", _CORNER_OVERLAP)
        )
        text = CText()
        text.line("int32_t count = 0;")
        text.line(
            f"const int64_t most = {f'limit[0] < {most} ? limit[0] : {most}' if 'limit' in present else '0'};"
        )
        live = str(spatial)
        if "number" in present:
            live = "live"
            text.line(f"const int32_t live = number[0] < {spatial} ? number[0] : {spatial};")
        text.line(f"const float threshold = {'overlap[0]' if 'overlap' in present else '0.0f'};")
        with text.loop("b", str(batches)), text.loop("c", str(classes)):
            text.line(f"const float *const score = scores + (b * {classes} + c) * {spatial};")
            text.line(f"const float *const box = boxes + b * {spatial * 4};")
            with text.loop("i", live):
                text.line(f"gone[i] = {'!(score[i] > least[0])' if 'least' in present else 'false'};")
            with text.block("for (int64_t taken = 0; taken < most; taken++)"):
                text.line("int32_t best = -1;")
                with (
                    text.loop("i", live),
                    text.block("if (!gone[i] && (best < 0 || score[i] > score[best]))"),
                ):
                    text.line("best = i;")
                with text.block("if (best < 0)"):
                    text.line("break;")
                for k, v in enumerate(("b", "c", "best")):
                    text.line(f"y[count * 3 + {k}] = {v};")
                text.line("++count;")
                text.line("gone[best] = true;")
                with (
                    text.loop("i", live),
                    text.block(f"if (!gone[i] && {measure}(box + best * 4, box + i * 4) > threshold)"),
                ):
                    text.line("gone[i] = true;")
        clear_rest(text, "y", site.node.outputs[0], "count", 3)
        shapes = put_shape(text, site, 1, ["count", "3"])
        arguments = [
            Argument("boxes", boxes),
            Argument("scores", scores),
            *(Argument(n, v) for n, v in present.items()),
        ]
        arguments += [
            Argument("gone", Scratch("gone", max(spatial, 1), 1, "bool")),
            written("y", site.node.outputs[0]),
            *shapes,
        ]
        site.call(
            "nms", block(text), arguments, helpers=(helper + _OVERLAP,), includes={"math.h", "string.h"}
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(9)
        low, size = rng.uniform(0, 6, (2, 8, 2)), rng.uniform(1, 5, (2, 8, 2))
        boxes, scores = (
            np.concatenate([low, low + size], 2).astype(np.float32),
            np.asarray(rng.permutation(48).reshape(2, 3, 8) / 48, np.float32),
        )
        limit, overlap, least = (
            np.asarray([3], np.int64),
            np.asarray([0.2], np.float32),
            np.asarray([0.3], np.float32),
        )
        centred = np.concatenate([low + size / 2, size], 2).astype(np.float32)
        upside = boxes[..., [2, 3, 0, 1]]
        return [
            Sample((boxes, scores, limit)),
            Sample((boxes, scores, limit, overlap)),
            Sample((boxes, scores, limit, overlap, least), constants=frozenset({2, 3, 4})),
            Sample((centred, scores, limit, overlap, least), {"center_point_box": 1}, frozenset({2})),
            Sample((upside, scores, limit, overlap)),
            Sample((boxes, scores)),
            Sample((boxes, scores, limit, overlap, np.asarray([0.3125], np.float32))),  # one of the scores
        ]


@operator("NonMaxSuppressionRows", domain="aot", stores_itself=True)
class NonMaxSuppressionRows(NonMaxSuppression):
    """NonMaxSuppression of as many boxes as the sixth input says."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        if required(inputs, 5).type != TensorType(DType.INT32, (1,)):
            raise OperatorError("the number of boxes is not an int32")
        return super().infer(inputs[:5])

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        boxes, scores, *numbers, count = (None if a is None else np.asarray(a) for a in arrays)
        assert boxes is not None and scores is not None and count is not None
        most, overlap, least = (
            default if n is None else n.reshape(-1)[0]
            for n, default in zip(numbers, (0, 0.0, -np.inf), strict=True)
        )
        if self.center_point_box:
            middle, half = boxes[..., :2], boxes[..., 2:] / 2
            boxes = np.concatenate([middle - half, middle + half], axis=-1)
        chosen: list[list[int]] = []
        for b, c in np.ndindex(scores.shape[:2]):
            kept: list[int] = []
            for i in np.argsort(-scores[b, c, : max(int(count[0]), 0)], kind="stable"):
                apart = all(_overlap(boxes[b, i], boxes[b, k]) <= overlap for k in kept)
                if len(kept) < most and scores[b, c, i] > least and apart:
                    kept.append(int(i))
            chosen += [[b, c, i] for i in kept]
        return [np.asarray(chosen, np.int64).reshape(-1, 3)]

    @classmethod
    def samples(cls) -> list[Sample]:
        full = super().samples()[4].inputs
        return [Sample((*full, np.asarray([0.3], np.float32), np.asarray([n], np.int32))) for n in (5, 0, 8)]


def _overlap(p: np.ndarray, q: np.ndarray) -> float:
    """Intersection over union of boxes given by two opposite corners."""
    (p0, p1), (q0, q1) = (np.sort(v.reshape(2, 2).astype(np.float64), axis=0) for v in (p, q))
    both = np.prod(np.maximum(np.minimum(p1, q1) - np.maximum(p0, q0), 0))
    return float(both / (np.prod(p1 - p0) + np.prod(q1 - q0) - both))


_CORNER_OVERLAP = """\
/* Intersection over union of two boxes given by two opposite corners (y, x). */
static inline float nms_overlap(const float *p, const float *q)
{
    const float py0 = fminf(p[0], p[2]), px0 = fminf(p[1], p[3]), py1 = fmaxf(p[0], p[2]), px1 = fmaxf(p[1], p[3]);
    const float qy0 = fminf(q[0], q[2]), qx0 = fminf(q[1], q[3]), qy1 = fmaxf(q[0], q[2]), qx1 = fmaxf(q[1], q[3]);
"""  # noqa: E501
_CENTRE_OVERLAP = """\
/* Intersection over union of two boxes given by centre and size (x, y, width, height). */
static inline float nms_centred_overlap(const float *p, const float *q)
{
    const float px0 = p[0] - p[2] * 0.5f, px1 = p[0] + p[2] * 0.5f, py0 = p[1] - p[3] * 0.5f, py1 = p[1] + p[3] * 0.5f;
    const float qx0 = q[0] - q[2] * 0.5f, qx1 = q[0] + q[2] * 0.5f, qy0 = q[1] - q[3] * 0.5f, qy1 = q[1] + q[3] * 0.5f;
"""  # noqa: E501
_OVERLAP = """\
    const float height = fminf(py1, qy1) - fmaxf(py0, qy0);
    const float width = fminf(px1, qx1) - fmaxf(px0, qx0);
    const float both = (height > 0.0f && width > 0.0f) ? height * width : 0.0f;
    const float all = (py1 - py0) * (px1 - px0) + (qy1 - qy0) * (qx1 - qx0) - both;
    return all > 0.0f ? both / all : 0.0f;
}"""
