"""Operators whose number of results depends on data: NonZero, Compress, Unique, NonMaxSuppression, ranges of
numbers.

The memory of such a result is that of its upper bound; the elements lie dense at its front in the actual
shape, which is a result of its own (int32, one element for each axis), and zeros behind them. Nothing is
written beyond the bound, whatever the data; where the bound was given by the user, the shape says how many
elements there would have been. Source: ONNX operator specification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType, strides_of
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Scratch
from aot_model.kernels.float32.text import CText
from aot_model.kernels.site import Site
from aot_model.ops.indexing import block
from aot_model.ops.registry import normal_axis, operator, required


def shape_type(rank: int) -> TensorType:
    return TensorType(DType.INT32, (rank,))


def put_shape(text: CText, site: Site, output: int, parts: Sequence[str]) -> list[Argument]:
    """C that writes the actual shape of an output, where something reads it."""
    value = site.wanted(output)
    if value is None:
        return []
    for k, part in enumerate(parts):
        text.line(f"shape{output}[{k}] = {part};")
    return [written(f"shape{output}", value)]


def clear_rest(text: CText, name: str, value: Value, count: str, row: int) -> None:
    """C that sets to zero what lies behind `count` rows of `row` elements."""
    if value.type.elements:
        size = row * value.dtype.size
        text.line(
            f"memset({name} + {count} * {row}, 0, (size_t)({value.type.elements // row} - {count}) * "
            f"{size}u);"
        )


@operator("NonZero", stores_itself=True)
class NonZero(Operator):
    """Indices of the elements that are not 0, one column each."""

    rows: ClassVar[bool] = False
    """Whether the indices of an element are a row."""

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: 1}

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        rank = max(x.type.rank, 1)
        return [TensorType(DType.INT64, (rank, x.type.elements)), shape_type(2)]

    def fold(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        x = arrays[0]
        assert x is not None
        found = np.stack(np.nonzero(
            np.atleast_1d(x.astype(np.float64) if x.dtype.kind == "V" else x))).astype(np.int64)
        return [found, np.asarray(found.shape, np.int32)]

    def lower(self, site: Site) -> None:
        x, y = site.input(0), site.node.outputs[0]
        shape = x.shape or (1,)
        text = CText()
        text.line("int32_t n = 0;")
        text.line("int32_t count = 0;")
        with text.loop("i", str(x.type.elements)):
            text.line("count += x[i] != 0 ? 1 : 0;")
        with text.loop("i", str(x.type.elements)), text.block("if (x[i] != 0)"):
            for d, stride in enumerate(strides_of(shape)):
                place = f"n * {len(shape)} + {d}" if self.rows else f"{d} * count + n"
                text.line(f"y[{place}] = i / {max(stride, 1)} % {max(shape[d], 1)};")
            text.line("++n;")
        clear_rest(text, "y", y, "count", len(shape))
        shapes = put_shape(text, site, 1,
                           ["count", str(len(shape))] if self.rows else [str(len(shape)), "count"])
        site.call("nonzero", block(text), [Argument("x", x), written("y", y), *shapes], includes={"string.h"})

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((np.asarray([[1, 0, 2], [0, 0, 3]], np.float32),), {}, frozenset({0}))]


@operator("NonZeroRows", domain="aot", stores_itself=True)
class NonZeroRows(NonZero):
    """NonZero transposed: the indices of an element are a row."""

    rows: ClassVar[bool] = True

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: 0}

    def infer(self, inputs: Inputs) -> list[TensorType]:
        columns, shape = super().infer(inputs)
        return [TensorType(columns.dtype, columns.shape[::-1]), shape]

    def fold(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        columns, shape = super().fold(arrays)
        return [np.ascontiguousarray(columns.T), shape[::-1].copy()]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return [np.argwhere(np.asarray(arrays[0])).astype(np.int64)]


@operator("Compress", stores_itself=True, strings=True)
class Compress(Operator):
    """The slices along an axis (without: the elements) at which the condition holds."""

    axis: int | None = None

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: 0 if self.axis is None else normal_axis(self.axis, required(inputs).type.rank)}

    def _split(self, x: Value, condition: Value) -> tuple[int, int, int, int]:
        """(outer, extent along the axis, inner, most that can be picked)."""
        if self.axis is None:
            return 1, x.type.elements, 1, min(x.type.elements, condition.type.elements)
        a = normal_axis(self.axis, x.type.rank)
        return math.prod(x.shape[:a]), x.shape[a], math.prod(x.shape[a + 1:]), min(
            x.shape[a], condition.type.elements)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, condition = required(inputs, 0), required(inputs, 1)
        if condition.type.rank != 1 or condition.dtype is not DType.BOOL:
            raise OperatorError(f"the condition is {condition.type}, it should be a list of bools")
        most = self._split(x, condition)[3]
        if self.axis is None:
            return [TensorType(x.dtype, (most,)), shape_type(1)]
        a = normal_axis(self.axis, x.type.rank)
        return [TensorType(x.dtype, (*x.shape[:a], most, *x.shape[a + 1 :])), shape_type(x.type.rank)]

    def only_moves(self) -> bool:
        return True

    def fold(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        x, condition = arrays[0], arrays[1]
        assert x is not None and condition is not None
        y = np.compress(condition, x, axis=self.axis)
        return [y, np.asarray(y.shape, np.int32)]

    def lower(self, site: Site) -> None:
        x, condition, y = site.input(0), site.input(1), site.node.outputs[0]
        outer, extent, inner, most = self._split(x, condition)
        text = CText()
        text.line("int32_t count = 0;")
        text.line("int32_t n = 0;")
        with text.loop("i", str(most)):
            text.line("count += condition[i] ? 1 : 0;")
        with text.loop("o", str(outer)), text.loop("i", str(most)), text.block("if (condition[i])"):
            text.line(f"memcpy(y + n * {inner}, x + (o * {extent} + i) * {inner}, {inner * x.dtype.size}u);")
            text.line("++n;")
        clear_rest(text, "y", y, "count", outer * inner)
        a = 0 if self.axis is None else normal_axis(self.axis, x.type.rank)
        shapes = put_shape(text, site, 1, ["count" if d == a else str(n) for d, n in enumerate(y.shape)])
        site.call("compress",
                  block(text), [Argument("x", x),
                                Argument("condition", condition),
                                written("y", y), *shapes],
                  includes={"string.h"})

    @classmethod
    def samples(cls) -> list[Sample]:
        x, c = np.arange(12, dtype=np.float32).reshape(3, 4), np.asarray([True, False, True])
        picks: list[tuple[np.ndarray, np.ndarray, dict[str, Any]]] = [(x, c, {}), (x, c, {"axis": 0}),
                                                                      (x, c, {"axis": 1}),
                                                                      (x, np.asarray([False,
                                                                                      True]), {"axis": -1}),
                                                                      (x.astype(np.int64), ~c, {"axis": 0}),
                                                                      (x, c & False, {})]
        return [Sample((a, b), more) for a, b, more in picks]


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
        return spatial if limit.data is None else max(min(int(limit.data.reshape(-1)[0]), spatial), 0)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        boxes, scores = required(inputs, 0), required(inputs, 1)
        if boxes.type.rank != 3 or boxes.shape[
                2] != 4 or scores.type.rank != 3 or scores.shape[::2] != boxes.shape[:2]:
            raise OperatorError(f"scores {scores.type} do not fit boxes {boxes.type}")
        return [
            TensorType(DType.INT64, (scores.shape[0] * scores.shape[1] * self._most(inputs), 3)),
            shape_type(2)
        ]

    def lower(self, site: Site) -> None:
        boxes, scores = site.input(0), site.input(1)
        batches, classes, spatial = scores.shape
        most = self._most(site.node.inputs)
        given = {name: site.node.input(k) for k, name in ((2, "limit"), (3, "overlap"), (4, "least"))}
        present = {n: v for n, v in given.items() if v is not None}
        text = CText()
        text.line("int32_t count = 0;")
        text.line(
            f"const int64_t most = {f'limit[0] < {most} ? limit[0] : {most}' if 'limit' in present else '0'};"
        )
        text.line(f"const float threshold = {'overlap[0]' if 'overlap' in present else '0.0f'};")
        with text.loop("b", str(batches)), text.loop("c", str(classes)):
            text.line(f"const float *const score = scores + (b * {classes} + c) * {spatial};")
            text.line(f"const float *const box = boxes + b * {spatial * 4};")
            with text.loop("i", str(spatial)):
                text.line(f"gone[i] = {'!(score[i] > least[0])' if 'least' in present else 'false'};")
            with text.block("for (int64_t taken = 0; taken < most; taken++)"):
                text.line("int32_t best = -1;")
                with text.loop(
                        "i",
                        str(spatial)), text.block("if (!gone[i] && (best < 0 || score[i] > score[best]))"):
                    text.line("best = i;")
                with text.block("if (best < 0)"):
                    text.line("break;")
                for k, v in enumerate(("b", "c", "best")):
                    text.line(f"y[count * 3 + {k}] = {v};")
                text.line("++count;")
                text.line("gone[best] = true;")
                with text.loop("i", str(spatial)), text.block(
                        "if (!gone[i] && nms_overlap(box + best * 4, box + i * 4) > threshold)"):
                    text.line("gone[i] = true;")
        clear_rest(text, "y", site.node.outputs[0], "count", 3)
        shapes = put_shape(text, site, 1, ["count", "3"])
        arguments = [
            Argument("boxes", boxes),
            Argument("scores", scores), *(Argument(n, v) for n, v in present.items())
        ]
        arguments += [
            Argument("gone", Scratch("gone", max(spatial, 1), 1, "bool")),
            written("y", site.node.outputs[0]), *shapes
        ]
        helper = _CENTRE_OVERLAP if self.center_point_box else _CORNER_OVERLAP
        site.call("nms",
                  block(text),
                  arguments,
                  helpers=(helper + _OVERLAP,),
                  includes={"math.h", "string.h"})

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(9)
        low, size = rng.uniform(0, 6, (2, 8, 2)), rng.uniform(1, 5, (2, 8, 2))
        boxes, scores = np.concatenate([low, low + size], 2).astype(np.float32), np.asarray(
            rng.permutation(48).reshape(2, 3, 8) / 48, np.float32)
        limit, overlap, least = np.asarray([3], np.int64), np.asarray([0.2],
                                                                      np.float32), np.asarray([0.3],
                                                                                              np.float32)
        centred = np.concatenate([low + size / 2, size], 2).astype(np.float32)
        upside = boxes[..., [2, 3, 0, 1]]
        return [
            Sample((boxes, scores, limit)),
            Sample((boxes, scores, limit, overlap)),
            Sample((boxes, scores, limit, overlap, least), constants=frozenset({2, 3, 4})),
            Sample((centred, scores, limit, overlap, least), {"center_point_box": 1}, frozenset({2})),
            Sample((upside, scores, limit, overlap)),
            Sample((boxes, scores))
        ]


_CORNER_OVERLAP = """\
/* Intersection over union of two boxes given by two opposite corners (y, x). */
static inline float nms_overlap(const float *p, const float *q)
{
    const float py0 = fminf(p[0], p[2]), px0 = fminf(p[1], p[3]), py1 = fmaxf(p[0], p[2]), px1 = fmaxf(p[1], p[3]);
    const float qy0 = fminf(q[0], q[2]), qx0 = fminf(q[1], q[3]), qy1 = fmaxf(q[0], q[2]), qx1 = fmaxf(q[1], q[3]);
"""  # noqa: E501
_CENTRE_OVERLAP = """\
/* Intersection over union of two boxes given by centre and size (x, y, width, height). */
static inline float nms_overlap(const float *p, const float *q)
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


def _order(dtype: DType) -> str:
    """C: below, at or above 0 as v comes before, with or after w. NaN is the last, and one value."""
    if dtype.is_string:
        return f"aot_model_string_order(v.text, w.text, {dtype.size})"
    if dtype.is_float:
        return "(v > w || (v != v && w == w)) - (v < w || (v == v && w != w))"
    return "(v > w) - (v < w)"


@operator("Unique", stores_itself=True, strings=True)
class Unique(Operator):
    """Different elements (slices along an axis), where each was first, which one each is, how many of each.
    """

    axis: int | None = None
    sorted: int = 1

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: 0 if self.axis is None else normal_axis(self.axis, required(inputs).type.rank), 1: 0, 3: 0}

    def _split(self, x: Value) -> tuple[int, int, int]:
        if self.axis is None:
            return 1, x.type.elements, 1
        a = normal_axis(self.axis, x.type.rank)
        return math.prod(x.shape[:a]), x.shape[a], math.prod(x.shape[a + 1 :])

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        n = self._split(x)[1]
        y = TensorType(x.dtype, (n,) if self.axis is None else x.shape)
        row = TensorType(DType.INT64, (n,))
        return [y, row, row, row, shape_type(y.rank), shape_type(1), shape_type(1)]

    def lower(self, site: Site) -> None:
        x = site.input(0)
        outer, n, inner = self._split(x)
        y, first, inverse, counts = (site.wanted(k) for k in range(4))
        size, row = outer * inner, max(inner, 1)
        text = CText()
        text.line("int32_t count = 0;")
        with text.loop("i", str(n)):
            text.line("int32_t place = 0;")
            text.line("int32_t order = 1;")
            with text.block("for (; place < count; place++)"):
                text.line("order = 0;")
                with text.block(f"for (int32_t e = 0; e < {size} && order == 0; e++)"):
                    text.line(f"const {x.dtype.c_type} v = x[(e / {row} * {n} + i) * {row} + e % {row}];")
                    text.line(
                        f"const {x.dtype.c_type} w = x[(e / {row} * {n} + found[place]) * {row} + e % {row}];"
                    )
                    text.line(f"order = {_order(x.dtype)};")
                with text.block("if (order <= 0)" if self.sorted else "if (order == 0)"):
                    text.line("break;")
            with text.block("if (place == count || order != 0)"):
                with text.block("for (int32_t k = count; k > place; --k)"):
                    text.line("found[k] = found[k - 1];")
                    text.line("many[k] = many[k - 1];")
                with text.loop("k", "i"):
                    text.line("which[k] += which[k] >= place ? 1 : 0;")
                text.line("found[place] = i;")
                text.line("many[place] = 0;")
                text.line("++count;")
            text.line("++many[place];")
            text.line("which[i] = place;")
        if y is not None:
            with text.loop("o", str(outer)), text.loop("k", "count"), text.loop("j", str(inner)):
                text.line(f"y[(o * count + k) * {inner} + j] = x[(o * {n} + found[k]) * {inner} + j];")
            clear_rest(text, "y", y, "count", size)
        for value, name, source, limit in ((first, "first", "found", "count"), (inverse, "inverse", "which",
                                                                                str(n)), (counts, "counts",
                                                                                          "many", "count")):
            if value is not None:
                with text.loop("k", limit):
                    text.line(f"{name}[k] = {source}[k];")
                if limit == "count":
                    clear_rest(text, name, value, "count", 1)
        a = 0 if self.axis is None else normal_axis(self.axis, x.type.rank)
        rank = 1 if self.axis is None else x.type.rank
        shapes = put_shape(text, site, 4, ["count" if d == a else str(x.shape[d]) for d in range(rank)])
        shapes += put_shape(text, site, 5, ["count"]) + put_shape(text, site, 6, ["count"])
        scratch = [Argument(s, Scratch(s, max(4 * n, 4), 4, "int32_t")) for s in ("found", "many", "which")]
        results = [
            written(name, v)
            for name, v in (("y", y), ("first", first), ("inverse", inverse), ("counts", counts))
            if v is not None
        ]
        includes = {"string.h"} | ({"aot_model/strings.h"} if x.dtype.is_string else set())
        site.call("unique", block(text), [Argument("x", x), *scratch, *results, *shapes], includes=includes)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[2, 1, 1, 3], [2, 1, 1, 3], [0, 5, 5, 3]], np.float32)
        cases: list[dict[str, Any]] = [{}, {"sorted": 0}, {"axis": 0}, {"axis": 1}, {"axis": -1, "sorted": 0}]
        return [Sample((x,), c, outputs=4) for c in cases] + [Sample((x.astype(np.int64),), outputs=1)]


@operator("RangeUpTo", domain="aot", stores_itself=True)
class RangeUpTo(Operator):
    """Range of which start, limit or delta are known at run time only: at most `most` numbers."""

    most: int = 0

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: 0}

    def infer(self, inputs: Inputs) -> list[TensorType]:
        values = [required(inputs, k) for k in range(3)]
        if any(v.type.elements != 1 for v in values) or len({v.dtype for v in values}) > 1:
            raise OperatorError(
                f"start, limit and delta are {', '.join(str(v.type) for v in values)}, they should be one "
                "number each"
            )
        return [TensorType(values[0].dtype, (self.most,)), shape_type(1)]

    def lower(self, site: Site) -> None:
        y = site.node.outputs[0]
        text = CText()
        # In doubles, which hold all 53-bit integers: the difference may be larger than the type.
        text.line("const double turns = ceil(((double)limit[0] - (double)start[0]) / (double)delta[0]);")
        text.line(
            "const int32_t count = turns >= 2147483647.0 ? INT32_MAX : (turns > 0.0 ? (int32_t)turns : 0);")
        text.line(f"const int32_t kept = count < {self.most} ? count : {self.most};")
        with text.loop("i", "kept"):
            # the product may be larger than the type
            to = "(uint64_t)" if y.dtype.is_integer else f"({y.dtype.c_type})"
            text.line(f"y[i] = ({y.dtype.c_type})({to}start[0] + {to}i * {to}delta[0]);")
        clear_rest(text, "y", y, "kept", 1)
        shapes = put_shape(text, site, 1, ["count"])
        arguments = [Argument(n, site.input(k)) for k, n in enumerate(("start", "limit", "delta"))]
        site.call("range",
                  block(text), [*arguments, written("y", y), *shapes],
                  includes={"math.h", "string.h"})

    @classmethod
    def samples(cls) -> list[Sample]:
        cases = [((0, 5, 1), np.int64), ((10, 3, -2), np.int32), ((1, 1.9, 0.25), np.float32),
                 ((3, 1, 1), np.int64)]
        return [Sample(tuple(np.asarray(v, k) for v in c), {"most": 6}) for c, k in cases]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        start, limit, delta = (float(np.asarray(a)) for a in arrays)
        return [np.arange(start, limit, delta).astype(np.asarray(arrays[0]).dtype)]
