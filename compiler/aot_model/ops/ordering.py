"""Operators that compare or accumulate along an axis: TopK, ArgMax, ArgMin, Hardmax, CumSum, CumProd.

Source: ONNX operator specification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from aot_model.c.names import snake_case
from aot_model.c.text import CText, block
from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.program import Overlap
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Scratch
from aot_model.kernels.site import Site
from aot_model.ops.indexing import OneHot
from aot_model.ops.registry import Build, ints, normal_axis, operator, required, static, whole
from aot_model.ops.scatter import update_text


def split_at(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """(elements before the axis, along it, behind it)."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _distinct(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(9).permutation(math.prod(shape)), dtype=np.float32).reshape(shape)


@operator("TopK", stores_itself=True)
class TopK(Operator):
    """The k largest (smallest) elements along an axis, and their indices; of equal ones the first comes
    first, and a number that is none is larger than all others.

    A heap of k elements holds the best so far, the worst of them on top: n log k comparisons, k elements of
    scratch.
    """

    axis: int = -1
    largest: int = 1
    sorted: int = 1

    def _count(self, inputs: Inputs) -> int:
        data = static(inputs, 1, "k")
        if data is None:
            raise OperatorError("k must be one number")
        return whole(data, "k")

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, k = required(inputs), self._count(inputs)
        a = normal_axis(self.axis, x.type.rank)
        if not 0 <= k <= x.shape[a]:
            raise OperatorError(f"k = {k} does not fit axis {a} of {x.type}")
        shape = (*x.shape[:a], k, *x.shape[a + 1 :])
        return [TensorType(x.dtype, shape), TensorType(DType.INT64, shape)]

    def fold(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        x, k = arrays[0], arrays[1]
        assert x is not None and k is not None
        a = normal_axis(self.axis, x.ndim)
        if self.largest:  # from the other end, so that of equal ones the first stays the first
            places = x.shape[a] - 1 - np.flip(np.argsort(np.flip(x, a), a, kind="stable"), a)
        else:
            places = np.argsort(x, a, kind="stable")
        best = np.take(places, range(int(k.reshape(-1)[0])), a).astype(np.int64)
        return [np.take_along_axis(x, best, a), best]

    def lower(self, site: Site) -> None:
        x, k = site.input(0), self._count(site.node.inputs)
        outer, extent, inner = split_at(x.shape, normal_axis(self.axis, x.type.rank))
        values, indices = site.wanted(0), site.wanted(1)
        text = CText()
        name = f"topk_{x.dtype.label}_{'largest' if self.largest else 'smallest'}"
        order = ("larger", "<", ">", "w") if self.largest else ("smaller", ">", "<", "v")
        helper = _HELPERS.format(
            name=name,
            t=x.dtype.c_type,
            order=order[0],
            behind=order[1],
            before=order[2],
            equal=_UNORDERED.format(order[3]) if x.dtype.is_float else "a > b",
        )
        if not (k and outer and inner):
            return  # results without elements
        with text.loop("o", str(outer)), text.loop("j", str(inner)):
            text.line(f"const {x.dtype.c_type} *const row = x + o * {extent * inner} + j;")
            text.line("int32_t size = 0;")
            with text.loop("n", str(extent)):
                with text.block(f"if (size < {k})"):
                    text.line(_GROW.format(name=name, s=inner))
                with text.block(f"else if ({name}_worse(row, {inner}, heap[0], n))"):
                    text.line(f"{name}_sift(row, {inner}, heap, {k}, n);")
            text.line("/* The worst goes to the end, again and again: the heap becomes the sorted result. */")
            with text.block(f"for (int32_t m = {k - 1}; m > 0; --m)"):
                text.line("const int32_t last = heap[m];")
                text.line("heap[m] = heap[0];")
                text.line(f"{name}_sift(row, {inner}, heap, m, last);")
            with text.loop("n", str(k)):
                if values is not None:
                    text.line(f"y[(o * {k} + n) * {inner} + j] = row[heap[n] * {inner}];")
                if indices is not None:
                    text.line(f"yi[(o * {k} + n) * {inner} + j] = heap[n];")
        arguments = [Argument("x", x), Argument("heap", Scratch("heap", max(4 * k, 4), 4, "int32_t"))]
        arguments += [written(n, v) for n, v in (("y", values), ("yi", indices)) if v is not None]
        site.call("topk", block(text), arguments, helpers=(helper,))

    @classmethod
    def samples(cls) -> list[Sample]:
        x = _distinct(3, 7, 2)
        return [Sample((x, np.asarray([k], np.int64)), {"axis": a, "largest": m}, frozenset({1}), 2)
                for k, a, m in [(1, 1, 1), (3, 1, 0), (7, 1, 1), (2, -1, 1), (3, 0, 0)]]  # fmt: skip


_HELPERS = """\
/* Whether element a comes behind element b in the result: {order} first, of equal ones the one with the lower index. */
static inline bool {name}_worse(const {t} *row, int32_t stride, int32_t a, int32_t b)
{{
    const {t} v = row[a * stride];
    const {t} w = row[b * stride];
    return v {behind} w || (!(v {before} w) && ({equal}));
}}

/* Put an element in the place of the root of a heap of `size` elements whose root is the worst. */
AOT_MODEL_INLINE void {name}_sift(const {t} *row, int32_t stride, int32_t *heap, int32_t size, int32_t element)
{{
    int32_t place = 0;
    for (int32_t child = 1; child < size; child = 2 * place + 1) {{
        child += (child + 1 < size && {name}_worse(row, stride, heap[child + 1], heap[child])) ? 1 : 0;
        if (!{name}_worse(row, stride, heap[child], element)) {{
            break;
        }}
        heap[place] = heap[child];
        place = child;
    }}
    heap[place] = element;
}}"""  # noqa: E501

_UNORDERED = "(isnan(v) != 0) == (isnan(w) != 0) ? a > b : isnan({}) != 0"
"""Of two numbers of which neither is larger: equal, or one or both are not numbers."""

_GROW = """\
int32_t place = size++;
while (place > 0 && {name}_worse(row, {s}, n, heap[(place - 1) / 2])) {{
    heap[place] = heap[(place - 1) / 2];
    place = (place - 1) / 2;
}}
heap[place] = n;"""


class _ArgExtreme(Operator):
    """The index of the largest (smallest) element along an axis: the first of them, or the last."""

    sign: ClassVar[str] = ">"
    stores_itself: ClassVar[bool] = True

    axis: int = 0
    keepdims: int = 1
    select_last_index: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        a = normal_axis(self.axis, x.type.rank)
        if not x.shape[a]:
            raise OperatorError(f"axis {a} of {x.type} is empty")
        return [TensorType(DType.INT64, (*x.shape[:a], *([1] if self.keepdims else []), *x.shape[a + 1 :]))]

    def fold(self, arrays: list[np.ndarray | None]) -> list[np.ndarray]:  # type: ignore[override]
        x = arrays[0]
        assert x is not None
        a = normal_axis(self.axis, x.ndim)
        is_better = {">": (np.greater, np.greater_equal), "<": (np.less, np.less_equal)}[self.sign]
        rows = np.moveaxis(x, a, 0)
        best, found = rows[0], np.zeros(rows.shape[1:], np.int64)
        for n, row in enumerate(
            rows[1:], 1
        ):  # as it runs: a number that is none is found where it comes first
            better = is_better[self.select_last_index](row, best)
            best, found = np.where(better, row, best), np.where(better, n, found)
        return [np.expand_dims(found, a) if self.keepdims else found]

    def lower(self, site: Site) -> None:
        x = site.input(0)
        outer, extent, inner = split_at(x.shape, normal_axis(self.axis, x.type.rank))
        text = CText()
        with text.loop("o", str(outer)), text.loop("j", str(inner)):
            text.line(f"const {x.dtype.c_type} *const row = x + o * {extent * inner} + j;")
            text.line(f"{x.dtype.c_type} best = row[0];")
            text.line("int32_t place = 0;")
            with text.block(f"for (int32_t n = 1; n < {extent}; n++)"):
                text.line(f"const {x.dtype.c_type} v = row[n * {inner}];")
                with text.block(f"if (v {self.sign}{'=' if self.select_last_index else ''} best)"):
                    text.line("best = v;")
                    text.line("place = n;")
            text.line(f"y[o * {inner} + j] = place;")
        site.call(snake_case(self.name), block(text), [Argument("x", x), written("y", site.node.outputs[0])])

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[2, 2, 1], [3, 10, 10], [-1, -1, -1]], np.float32)
        return [
            Sample((x,), {"axis": a, "keepdims": k, "select_last_index": s})
            for a in (0, -1)
            for k in (0, 1)
            for s in (0, 1)
        ]


@operator("ArgMax", stores_itself=True)
class ArgMax(_ArgExtreme):
    """Index of the maximum."""

    axis: int = 0
    keepdims: int = 1
    select_last_index: int = 0


@operator("ArgMin", stores_itself=True)
class ArgMin(_ArgExtreme):
    """Index of the minimum."""

    sign: ClassVar[str] = "<"

    axis: int = 0
    keepdims: int = 1
    select_last_index: int = 0


@operator("Hardmax")
class Hardmax(Operator):
    """1 at the first maximum along an axis, 0 elsewhere."""

    axis: int = -1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        normal_axis(self.axis, x.type.rank)
        return [x.type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        a = normal_axis(self.axis, x.type.rank)
        place = build(ArgMax(a, 0), x)
        depth = build.constant(np.asarray([x.shape[a]], np.int64))
        return [build(OneHot(a), place, depth, build.constant([0, 1], x.dtype))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((_distinct(3, 4, 2),), {"axis": a}) for a in (0, 1, -1)]


class _Cumulative(Operator):
    """Running sum or product along an axis; exclusive: without the element itself; reverse: from the end."""

    reduction: ClassVar[str] = "add"
    stores_itself: ClassVar[bool] = True

    exclusive: int = 0
    reverse: int = 0

    def _axis(self, inputs: Inputs) -> int:
        data = static(inputs, 1, "the axis")
        if data is None or data.size != 1:
            raise OperatorError("the axis must be one number")
        return normal_axis(ints(data)[0], required(inputs).type.rank)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        self._axis(inputs)
        return [required(inputs).type]

    def fold(self, arrays: list[np.ndarray | None]) -> list[np.ndarray]:  # type: ignore[override]
        x, axis = arrays[0], arrays[1]
        assert x is not None and axis is not None
        a = normal_axis(ints(axis)[0], x.ndim)
        start = 0 if self.reduction == "add" else 1
        y = np.flip(x, a) if self.reverse else x
        if self.exclusive:
            head = np.full_like(np.take(y, [0], a), start) if y.shape[a] else y
            y = np.concatenate([head, np.take(y, range(max(y.shape[a] - 1, 0)), a)], a)
        y = (np.cumsum if self.reduction == "add" else np.cumprod)(y, axis=a, dtype=x.dtype)
        return [np.ascontiguousarray(np.flip(y, a) if self.reverse else y)]

    def lower(self, site: Site) -> None:
        x = site.input(0)
        outer, extent, inner = split_at(x.shape, self._axis(site.node.inputs))
        text = CText()
        with text.loop("o", str(outer)), text.loop("j", str(inner)):
            text.line(f"{x.dtype.c_type} total = {0 if self.reduction == 'add' else 1};")
            with text.loop("s", str(extent)):
                n = f"({extent - 1} - s)" if self.reverse else "s"
                text.line(f"const int32_t at = (o * {extent} + {n}) * {inner} + j;")
                text.line(f"const {x.dtype.c_type} v = x[at];")
                update = update_text(self.reduction, x.dtype, "total", "v")
                for line in ["y[at] = total;", update] if self.exclusive else [update, "y[at] = total;"]:
                    text.line(line)
        # Only in place where elements are not passed in the order of memory.
        step = 1 if inner == 1 and not self.reverse else max(x.type.nbytes, 2)
        overlaps = () if x.is_const else (Overlap(0, 1, 0, step),)
        site.call(
            snake_case(self.name),
            block(text),
            [Argument("x", x), written("y", site.node.outputs[0])],
            overlaps=overlaps,
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(4).uniform(-2, 2, (2, 5, 3)), np.float32)
        return [Sample((x, np.asarray(a, np.int32)), {"exclusive": e, "reverse": r}, frozenset({1}))
                for a, e, r in [(0, 0, 0), (1, 1, 0), (-1, 0, 1), (1, 1, 1)]]  # fmt: skip


@operator("CumSum", stores_itself=True)
class CumSum(_Cumulative):
    """Running sum."""

    exclusive: int = 0
    reverse: int = 0


@operator("CumProd", stores_itself=True)
class CumProd(_Cumulative):
    """Running product."""

    reduction: ClassVar[str] = "mul"

    exclusive: int = 0
    reverse: int = 0
