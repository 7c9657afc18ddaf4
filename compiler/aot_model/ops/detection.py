"""Suppression of boxes that overlap better ones, as TensorFlow Lite does it: of fixed size, with the number
that is valid.

BoxSuppression is that of TFLite_Detection_PostProcess, SoftSuppression that of NON_MAX_SUPPRESSION_V4 and V5.
They differ at the thresholds, and the second may lower scores instead of dropping boxes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aot_model.c.literal import float_literal
from aot_model.c.text import CText, block
from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Scratch
from aot_model.kernels.site import Site
from aot_model.ops.registry import operator, required

f32 = np.float32

_OVERLAP = """\
/* Intersection over union of two boxes given by two opposite corners (y, x). */
static inline float box_overlap(const float *p, const float *q)
{
    const float py0 = p[0] < p[2] ? p[0] : p[2], py1 = p[0] < p[2] ? p[2] : p[0];
    const float px0 = p[1] < p[3] ? p[1] : p[3], px1 = p[1] < p[3] ? p[3] : p[1];
    const float qy0 = q[0] < q[2] ? q[0] : q[2], qy1 = q[0] < q[2] ? q[2] : q[0];
    const float qx0 = q[1] < q[3] ? q[1] : q[3], qx1 = q[1] < q[3] ? q[3] : q[1];
    const float first = (py1 - py0) * (px1 - px0);
    const float second = (qy1 - qy0) * (qx1 - qx0);
    const float height = (py1 < qy1 ? py1 : qy1) - (py0 > qy0 ? py0 : qy0);
    const float width = (px1 < qx1 ? px1 : qx1) - (px0 > qx0 ? px0 : qx0);
    const float both = (height > 0.0f ? height : 0.0f) * (width > 0.0f ? width : 0.0f);
    return (first <= 0.0f || second <= 0.0f) ? 0.0f : both / (first + second - both);
}"""


def overlap(p: np.ndarray, q: np.ndarray) -> float:
    """Intersection over union in single precision."""
    (py0, py1), (px0, px1), (qy0, qy1), (qx0, qx1) = (
        sorted((f32(b[k]), f32(b[k + 2]))) for b in (p, q) for k in (0, 1)
    )
    first, second = f32(py1 - py0) * f32(px1 - px0), f32(qy1 - qy0) * f32(qx1 - qx0)
    both = f32(max(min(py1, qy1) - max(py0, qy0), 0) * max(min(px1, qx1) - max(px0, qx0), 0))
    return float(both / f32(f32(first + second) - both)) if first > 0 and second > 0 else 0.0


def _number(value: float) -> str:
    """A C literal in single precision."""
    return float_literal(float(f32(value)), DType.FLOAT32)


def _scored(inputs: Inputs, rank: int) -> Value:
    """The scores, of a rank, of boxes (n, 4), both of float32."""
    boxes, scores = required(inputs, 0), required(inputs, 1)
    fits = (
        boxes.type.rank == 2
        and boxes.shape[1] == 4
        and scores.type.rank == rank
        and scores.shape[:1] == boxes.shape[:1]
    )
    if not fits or {boxes.dtype, scores.dtype} != {DType.FLOAT32}:
        raise OperatorError(f"scores {scores.type} do not fit boxes {boxes.type}")
    return scores


@operator("BoxSuppression", domain="aot", stores_itself=True)
class BoxSuppression(Operator):
    """Of each class the boxes that no better one overlaps, at most `per_class`; of all classes the best
    `most`.

    Inputs: boxes [n, 4] as corners (y, x, y, x), scores [n, classes], of which the first `skipped` classes
    are left out. Outputs: [most] indices into scores, the best first, of equal scores the first class and box
    first, 0 where there is none; how many there are.
    """

    most: int
    per_class: int
    skipped: int = 0
    overlap: float = 0.5
    """Boxes that overlap a better one by more are dropped."""
    score: float = 0.0
    """Boxes below are left out."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        scores = _scored(inputs, 2)
        if min(self.most, self.per_class) < 1 or not 0 <= self.skipped < scores.shape[1]:
            raise OperatorError(
                f"{self.most} boxes, {self.per_class} of a class, of scores {scores.type} without the first "
                f"{self.skipped}"
            )
        return [TensorType(DType.INT32, (self.most,)), TensorType(DType.INT32, ())]

    def lower(self, site: Site) -> None:
        boxes, scores = site.input(0), site.input(1)
        n, classes = scores.shape
        text = CText()
        text.line("int32_t found = 0;")
        with text.loop("k", str(self.most)):
            text.line("picks[k] = 0;")
        with text.block(f"for (int32_t c = {self.skipped}; c < {classes}; c++)"):
            with text.loop("i", str(n)):
                text.line(f"gone[i] = !(scores[i * {classes} + c] >= {_number(self.score)});")
            with text.loop("taken", str(self.per_class)):
                text.line("int32_t best = -1;")
                with (
                    text.loop("i", str(n)),
                    text.block(
                        f"if (!gone[i] && (best < 0 || scores[i * {classes} + c] > scores[best * {classes} + "
                        "c]))"
                    ),
                ):
                    text.line("best = i;")
                with text.block("if (best < 0)"):
                    text.line("break;")
                text.line("gone[best] = true;")
                with (
                    text.loop("i", str(n)),
                    text.block(
                        "if (!gone[i] && box_overlap(boxes + best * 4, boxes + i * 4) > "
                        f"{_number(self.overlap)})"
                    ),
                ):
                    text.line("gone[i] = true;")
                text.line(f"const int32_t pick = best * {classes} + c;")
                text.line("int32_t place = found;")
                text.line(f"found += found < {self.most} ? 1 : 0;")
                back = text.block("for (; place > 0 && scores[picks[place - 1]] < scores[pick]; --place)")
                with back, text.block(f"if (place < {self.most})"):
                    text.line("picks[place] = picks[place - 1];")
                with text.block(f"if (place < {self.most})"):
                    text.line("picks[place] = pick;")
        text.line("*count = found;")
        arguments = [
            Argument("boxes", boxes),
            Argument("scores", scores),
            Argument("gone", Scratch("gone", max(n, 1), 1, "bool")),
        ]
        arguments += [written("picks", site.node.outputs[0]), written("count", site.node.outputs[1])]
        site.call("box_suppression", block(text), arguments, helpers=(_OVERLAP,))

    def fold(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        return self.reference(arrays)

    def reference(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        boxes, scores = arrays
        assert boxes is not None and scores is not None
        found: list[tuple[float, int]] = []
        for c in range(self.skipped, scores.shape[1]):
            chosen: list[int] = []
            for i in sorted(np.flatnonzero(scores[:, c] >= f32(self.score)), key=lambda i: -scores[i, c]):
                if len(chosen) < self.per_class and not any(
                    overlap(boxes[j], boxes[i]) > f32(self.overlap) for j in chosen
                ):
                    chosen.append(int(i))
            found = sorted(
                found + [(float(scores[i, c]), int(i * scores.shape[1] + c)) for i in chosen],
                key=lambda p: -p[0],
            )[: self.most]
        picks = np.zeros(self.most, np.int32)
        picks[: len(found)] = [p for _, p in found]
        return [picks, np.asarray(len(found), np.int32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        boxes, scores = (
            _boxes(12),
            np.asarray(np.random.default_rng(6).integers(0, 9, (12, 3)), np.float32) / 8,
        )
        cases = [
            {"most": 5, "per_class": 3, "skipped": 1, "score": 0.3},
            {"most": 9, "per_class": 9, "overlap": 0.1},
            {"most": 3, "per_class": 2, "score": 2.0},
        ]
        return [Sample((boxes, scores), c, outputs=2) for c in cases]


@operator("SoftSuppression", domain="aot", stores_itself=True)
class SoftSuppression(Operator):
    """The best boxes; those that overlap a better one by `overlap` or more are dropped, with `sigma` scores
    of others are lowered by exp(-overlap^2 / (2 sigma)) for each better one.

    Inputs: boxes [n, 4] as corners, scores [n]. Outputs: [most] indices and their scores, 0 where there is
    none; how many.
    """

    most: int
    overlap: float
    score: float = 0.0
    """Boxes at or below are left out."""
    sigma: float = 0.0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        _scored(inputs, 1)
        if self.most < 0 or not math.isfinite(self.sigma):
            raise OperatorError(f"at most {self.most} boxes, sigma {self.sigma}")
        return [
            TensorType(DType.INT32, (self.most,)),
            TensorType(DType.FLOAT32, (self.most,)),
            TensorType(DType.INT32, ()),
        ]

    def lower(self, site: Site) -> None:
        boxes, scores = site.input(0), site.input(1)
        n = scores.shape[0]
        text = CText()
        text.line("int32_t found = 0;")
        with text.loop("k", str(self.most)):
            text.line("picks[k] = 0;")
            text.line("chosen[k] = 0.0f;")
        if n:
            self._choose(text, n)
        else:
            text.line("(void)boxes;\n(void)scores;\n(void)now;\n(void)seen;")
        text.line("*count = found;")
        arguments = [
            Argument("boxes", boxes),
            Argument("scores", scores),
            Argument("now", Scratch("now", max(4 * n, 4), 4, "float")),
        ]
        arguments += [
            Argument("seen", Scratch("seen", max(4 * n, 4), 4, "int32_t")),
            written("picks", site.node.outputs[0]),
        ]
        arguments += [written("chosen", site.node.outputs[1]), written("count", site.node.outputs[2])]
        site.call(
            "soft_suppression",
            block(text),
            arguments,
            helpers=(_OVERLAP,) if n else (),
            includes={"aot_model/scalar.h"} if self.sigma > 0 else (),
        )

    def _choose(self, text: CText, n: int) -> None:
        """The loops over n boxes."""
        least, factor = _number(self.score), _number(f32(-0.5) / f32(self.sigma)) if self.sigma > 0 else ""
        text.line("int32_t limit = 0;")
        with text.loop("i", str(n)):
            text.line("now[i] = scores[i];")
            text.line(f"seen[i] = scores[i] > {least} ? 0 : -1;")
            text.line(f"limit += (seen[i] == 0 && limit < {self.most}) ? 1 : 0;")
        with text.block("while (found < limit)"):
            text.line("int32_t best = -1;")
            with text.loop("i", str(n)), text.block("if (seen[i] >= 0 && (best < 0 || now[i] > now[best]))"):
                text.line("best = i;")
            with text.block("if (best < 0)"):
                text.line("break;")
            text.line("const float before = now[best];")
            text.line("bool dropped = false;")
            with text.block("for (int32_t j = found - 1; j >= seen[best]; --j)"):
                text.line("const float common = box_overlap(boxes + best * 4, boxes + picks[j] * 4);")
                with text.block(f"if (common >= {_number(self.overlap)})"):
                    text.line("dropped = true;")
                    text.line("break;")
                if factor:
                    text.line(f"now[best] *= aot_model_exp_float32({factor} * common * common);")
                    with text.block(f"if (now[best] <= {least})"):
                        text.line("break;")
            text.line("seen[best] = found;")
            with text.block("if (!dropped && !(now[best] < before))"):
                text.line("picks[found] = best;")
                text.line("chosen[found] = now[best];")
                text.line("++found;")
            with text.block(f"if (dropped || !(now[best] > {least}))"):
                text.line("seen[best] = -1;")

    def reference(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        boxes, scores = arrays
        assert boxes is not None and scores is not None
        now, found = (
            {i: f32(s) for i, s in enumerate(scores) if s > f32(self.score)},
            list[tuple[int, np.float32]](),
        )
        for_whom = dict.fromkeys(now, 0)
        limit = min(len(now), self.most)
        while now and len(found) < limit:
            best = max(now, key=lambda i: (now[i], -i))
            before, alive = now[best], True
            for j in range(len(found) - 1, for_whom[best] - 1, -1):
                common = overlap(boxes[best], boxes[found[j][0]])
                alive = bool(common < f32(self.overlap))
                if not alive:
                    break
                if self.sigma > 0:
                    now[best] = f32(
                        now[best] * np.exp(f32(-0.5) / f32(self.sigma) * f32(common) * f32(common))
                    )
                    if now[best] <= f32(self.score):
                        break
            for_whom[best] = len(found)
            if alive and now[best] == before:
                found.append((best, now[best]))
            if not alive or not now[best] > f32(self.score):
                del now[best]
        picks, chosen = np.zeros(self.most, np.int32), np.zeros(self.most, f32)
        picks[: len(found)], chosen[: len(found)] = [i for i, _ in found], [s for _, s in found]
        return [picks, chosen, np.asarray(len(found), np.int32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        boxes, scores = _boxes(12), np.asarray(np.random.default_rng(6).permutation(12), np.float32) / 8
        cases = [
            {"most": 6, "score": 0.3, "overlap": 0.2},
            {"most": 20, "overlap": 0.7, "sigma": 0.3},
            {"most": 6, "overlap": 1.0, "sigma": 0.1, "score": 0.5},
            {"most": 3, "overlap": 2.0},  # nothing is dropped, and there is no room for all
        ]
        return [Sample((boxes, scores), c, outputs=3) for c in cases]


def _boxes(count: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    low = rng.uniform(0, 0.6, (count, 2))
    return np.asarray(np.concatenate([low, low + rng.uniform(0.2, 0.5, (count, 2))], axis=1), np.float32)
