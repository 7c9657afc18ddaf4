"""Unique: the different elements or slices of a tensor; as many as data have (see dynamic.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.operator import Inputs, Operator, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Scratch
from aot_model.kernels.site import Site
from aot_model.ops.dynamic import clear_rest, put_shape, shape_type
from aot_model.ops.registry import normal_axis, operator, required


def _order(dtype: DType) -> str:
    """C: below, at or above 0 as v comes before, with or after w. NaN is the last, and one value."""
    if dtype.is_string:
        return f"aot_model_string_order(v.text, w.text, {dtype.size})"
    if dtype.is_float:
        return "(v > w || (isnan(v) && !isnan(w))) - (v < w || (isnan(w) && !isnan(v)))"
    return "(v > w) - (v < w)"


@operator("Unique", stores_itself=True, strings=True)
class Unique(Operator):
    """Different elements (slices along an axis), where each was first, which one each is, how many of
    each.
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

    def fold(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        x = arrays[0]
        assert x is not None
        axis = None if self.axis is None else normal_axis(self.axis, x.ndim)
        _, first, which, many = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        which = which.reshape(-1)
        if not self.sorted:  # by where each was first
            order = np.argsort(first)
            first, which, many = first[order], np.argsort(order)[which], many[order]
        y = np.take(x, first, axis)
        shapes = [np.asarray(n, np.int32) for n in (y.shape, first.shape, first.shape)]
        return [y, *(n.astype(np.int64) for n in (first, which, many)), *shapes]

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
        for value, name, source, limit in (
            (first, "first", "found", "count"),
            (inverse, "inverse", "which", str(n)),
            (counts, "counts", "many", "count"),
        ):
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
