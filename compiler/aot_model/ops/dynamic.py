"""Operators whose number of results depends on data: NonZero, Compress, ranges of numbers. Files of their own
have Unique and NonMaxSuppression.

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

from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType, strides_of
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
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
        size, rows = row * value.dtype.size, value.type.elements // row
        with text.block(f"if ({count} < {rows})"):  # GCC 15 warns of sizes below 0 without it
            text.line(f"memset({name} + {count} * {row}, 0, (size_t)({rows} - {count}) * {size}u);")


@operator("NonZero", stores_itself=True)
class NonZero(Operator):
    """Indices of the elements that are not 0, one column each."""

    rows: ClassVar[bool] = False
    """Whether the indices of an element are a row."""

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: 1}

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if not x.shape:
            raise OperatorError(f"an element of the scalar '{x.name}' has no indices")
        return [TensorType(DType.INT64, (x.type.rank, x.type.elements)), shape_type(2)]

    def fold(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        x = arrays[0]
        assert x is not None
        found = np.stack(np.nonzero(x.astype(np.float64) if x.dtype.kind == "V" else x)).astype(np.int64)
        return [found, np.asarray(found.shape, np.int32)]

    def lower(self, site: Site) -> None:
        x, y = site.input(0), site.node.outputs[0]
        shape = x.shape
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
        shapes = put_shape(
            text, site, 1, ["count", str(len(shape))] if self.rows else [str(len(shape)), "count"]
        )
        site.call("nonzero", block(text), [Argument("x", x), written("y", y), *shapes], includes={"string.h"})

    @classmethod
    def samples(cls) -> list[Sample]:
        deep = np.asarray([1, 0, 0, 2, 3, 0, 0, 0, 4, 0, 0, 5] * 2, np.int32).reshape(4, 3, 2)
        return [
            Sample((np.asarray([[1, 0, 2], [0, 0, 3]], np.float32),), {}, frozenset({0})),
            Sample((deep,)),
        ]


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
    """The slices along an axis (without: the elements) at which the condition holds.

    Without an axis the condition may have any shape, as it has from PaddlePaddle; ONNX Runtime flattens it.
    """

    axis: int | None = None

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: 0 if self.axis is None else normal_axis(self.axis, required(inputs).type.rank)}

    def _split(self, x: Value, condition: Value) -> tuple[int, int, int, int]:
        """(outer, extent along the axis, inner, most that can be picked)."""
        if self.axis is None:
            return 1, x.type.elements, 1, min(x.type.elements, condition.type.elements)
        a = normal_axis(self.axis, x.type.rank)
        return (
            math.prod(x.shape[:a]),
            x.shape[a],
            math.prod(x.shape[a + 1 :]),
            min(x.shape[a], condition.type.elements),
        )

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, condition = required(inputs, 0), required(inputs, 1)
        if (self.axis is not None and condition.type.rank != 1) or condition.dtype is not DType.BOOL:
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
        y = np.compress(condition.reshape(-1), x, axis=self.axis)
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
        site.call(
            "compress",
            block(text),
            [Argument("x", x), Argument("condition", condition), written("y", y), *shapes],
            includes={"string.h"},
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        x, c = np.arange(12, dtype=np.float32).reshape(3, 4), np.asarray([True, False, True])
        picks: list[tuple[np.ndarray, np.ndarray, dict[str, Any]]] = [
            (x, c, {}),
            (x, c, {"axis": 0}),
            (x, c, {"axis": 1}),
            (x, np.asarray([False, True]), {"axis": -1}),
            (x.astype(np.int64), ~c, {"axis": 0}),
            (x, c & False, {}),
        ]
        return [Sample((a, b), more) for a, b, more in picks]


@operator("RangeUpTo", domain="aot", stores_itself=True)
class RangeUpTo(Operator):
    """Range of which start, limit or delta are known at run time only: at most `most` numbers."""

    most: int

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
            "const int32_t count = turns >= 2147483647.0 ? INT32_MAX : (turns > 0.0 ? (int32_t)turns : 0);"
        )
        text.line(f"const int32_t kept = count < {self.most} ? count : {self.most};")
        with text.loop("i", "kept"):
            # the product may be larger than the type
            to = "(uint64_t)" if y.dtype.is_integer else f"({y.dtype.c_type})"
            text.line(f"y[i] = ({y.dtype.c_type})({to}start[0] + {to}i * {to}delta[0]);")
        clear_rest(text, "y", y, "kept", 1)
        shapes = put_shape(text, site, 1, ["count"])
        arguments = [Argument(n, site.input(k)) for k, n in enumerate(("start", "limit", "delta"))]
        site.call(
            "range", block(text), [*arguments, written("y", y), *shapes], includes={"math.h", "string.h"}
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        cases = [
            ((0, 5, 1), np.int64),
            ((10, 3, -2), np.int32),
            ((1, 1.9, 0.25), np.float32),
            ((3, 1, 1), np.int64),
        ]
        return [Sample(tuple(np.asarray(v, k) for v in c), {"most": 6}) for c, k in cases]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        start, limit, delta = (float(np.asarray(a)) for a in arrays)
        return [np.arange(start, limit, delta).astype(np.asarray(arrays[0]).dtype)]
