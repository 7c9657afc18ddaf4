"""MaxRoiPool: the largest numbers in the cells of regions. Source: ONNX Runtime; how regions and cells are
rounded the specification does not say.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from aot_model.c.literal import float_literal
from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.registry import operator, required


@operator("MaxRoiPool", stores_itself=True)
class MaxRoiPool(Operator):
    """The largest number in each cell of regions (picture, x, y, x, y), both corners inside; 0 in cells
    beyond the picture.
    """

    pooled_shape: tuple[int, ...] = ()
    spatial_scale: float = 1.0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, rois = required(inputs, 0), required(inputs, 1)
        if len(self.pooled_shape) != 2 or min(self.pooled_shape) < 1:
            raise OperatorError(f"pooled_shape is {list(self.pooled_shape)}, not two extents")
        if x.type.rank != 4 or not x.shape[0] or rois.type.rank != 2 or rois.shape[1] != 5:
            raise OperatorError(f"regions {rois.type} do not fit {x.type}")
        if x.dtype is not DType.FLOAT32 or rois.dtype is not DType.FLOAT32:
            raise OperatorError("is supported for float32 only", "E202")
        return [TensorType(x.dtype, (rois.shape[0], x.shape[1], *self.pooled_shape))]

    def lower(self, site: Site) -> None:
        x, rois, y = site.input(0), site.input(1), site.node.outputs[0]
        pictures, channels, *extents = x.shape
        text = CText()
        text.line(
            f"const float scale = {float_literal(float(np.float32(self.spatial_scale)), DType.FLOAT32)};"
        )
        with text.loop("r", str(rois.shape[0])):
            text.line("const float *const roi = rois + r * 5;")
            text.line(f"const int32_t of = (int32_t)fminf(fmaxf(roi[0], 0.0f), {max(pictures - 1, 0)}.0f);")
            for axis, first in (("h", 2), ("w", 1)):
                text.line(f"const int32_t {axis} = roi_pool_place(roi[{first}] * scale);")
                text.line(f"const int32_t {axis}_end = roi_pool_place(roi[{first + 2}] * scale);")
                inside = f"({axis}_end >= {axis} ? {axis}_end - {axis} + 1 : 1)"
                parts = self.pooled_shape[axis == "w"]
                text.line(f"const float {axis}_cell = (float){inside} / {parts}.0f;")
            with (
                text.loop("c", str(channels)),
                text.loop("ph", str(self.pooled_shape[0])),
                text.loop("pw", str(self.pooled_shape[1])),
            ):
                for axis, extent in zip("hw", extents, strict=True):
                    begin, end = f"(float)p{axis} * {axis}_cell", f"(float)(p{axis} + 1) * {axis}_cell"
                    for name, edge in ("first", f"floorf({begin})"), ("last", f"ceilf({end})"):
                        place = f"roi_pool_within({axis} + (int32_t){edge}, {extent})"
                        text.line(f"const int32_t {axis}_{name} = {place};")
                text.line("float most = (h_last <= h_first || w_last <= w_first) ? 0.0f : -FLT_MAX;")
                text.line(
                    f"const float *const plane = x + (of * {channels} + c) * {extents[0] * extents[1]};"
                )
                with (
                    text.block("for (int32_t i = h_first; i < h_last; i++)"),
                    text.block("for (int32_t j = w_first; j < w_last; j++)"),
                ):
                    text.line(f"const float value = plane[i * {extents[1]} + j];")
                    text.line("most = value > most ? value : most;")
                cells = self.pooled_shape[0] * self.pooled_shape[1]
                text.line(f"y[(r * {channels} + c) * {cells} + ph * {self.pooled_shape[1]} + pw] = most;")
        arguments = [Argument("x", x), Argument("rois", rois), written("y", y)]
        site.call("max_roi_pool", block(text), arguments, helpers=(_PLACES,), includes={"math.h", "float.h"})

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, rois = np.asarray(arrays[0]), np.asarray(arrays[1])
        y = np.zeros((len(rois), x.shape[1], *self.pooled_shape), np.float32)
        for r, roi in enumerate(rois):
            corners = roi[1:] * np.float32(self.spatial_scale)
            left, top, right, bottom = (np.sign(corners) * np.floor(np.abs(corners) + 0.5)).astype(int)
            spans = []
            for begin, end, parts in zip((top, left), (bottom, right), self.pooled_shape, strict=True):
                cell = np.float32(max(end - begin + 1, 1)) / np.float32(parts)
                edges = np.arange(parts + 1, dtype=np.float32) * cell
                spans.append([slice(max(begin + int(np.floor(a)), 0), max(begin + int(np.ceil(b)), 0))
                              for a, b in pairwise(edges.tolist())])  # fmt: skip
            for place in np.ndindex(*self.pooled_shape):
                part = x[int(roi[0])][:, spans[0][place[0]], spans[1][place[1]]]
                y[r, :, place[0], place[1]] = part.max(axis=(1, 2)) if part.size else 0
        return [y]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.random.default_rng(8).normal(size=(2, 3, 6, 7)).astype(np.float32)
        rois = np.asarray(
            [[0, 0, 0, 6, 5], [1, 1.5, 2.5, 4.4, 4.6], [1, 5, 4, 9, 8], [0, 3, 3, 1, 1], [0, -4, -4, -2, 2]],
            np.float32,
        )
        return [
            Sample((x, rois), {"pooled_shape": (2, 3)}),
            Sample(
                (x, rois * np.asarray([1, 2, 2, 2, 2], np.float32)),
                {"pooled_shape": (3, 2), "spatial_scale": 0.5},
            ),
        ]


_PLACES = """\
/* The nearest whole number, of what is far outside of any picture one that is, too. */
static inline int32_t roi_pool_place(float x)
{
    return (int32_t)roundf(fminf(fmaxf(x, -1.0e8f), 1.0e8f));
}

/* A place from 0 to an extent. */
static inline int32_t roi_pool_within(int32_t place, int32_t extent)
{
    return place < 0 ? 0 : place > extent ? extent : place;
}"""
