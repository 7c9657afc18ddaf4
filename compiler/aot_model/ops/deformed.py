"""Convolutions whose taps are shifted by offsets from data. Source: ONNX operator specification.

What a tap reads between four elements is the same for all output channels: it is interpolated once, and what
there is for a pixel is multiplied with the weights as in a convolution of one element.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aot_model.ir.expr import Expr, Index, call, const, logical_and, select
from aot_model.ir.index import add, floordiv, mod, mul
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value
from aot_model.ops.channels_first import channels_first, padding, spatial
from aot_model.ops.composition import present
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Transpose
from aot_model.ops.registry import Build, operator, required
from aot_model.ops.sampling import as_float, clamp_index, linear_taps, of_taps, tame, total, within
from aot_model.ops.views import ReshapeTo
from aot_model.ops.windows import window

Ints = tuple[int, ...]


@operator("DeformedColumns", domain="aot", reducing=True, rereads=True)
class DeformedColumns(Operator):
    """What the taps of a convolution read at shifted places, pixel by pixel: (n, h, w, group, tap, channel of
    the group) in the last axis, 0 outside of the image.

    Inputs: x, channels first; offsets (n, 2 * offset_group * taps, h, w), rows before columns; optional
    factors (n, offset_group * taps, h, w).
    """

    kernel: Ints
    strides: Ints = (1, 1)
    dilations: Ints = (1, 1)
    pads: Ints = (0, 0, 0, 0)
    group: int = 1
    offset_group: int = 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, offset = required(inputs, 0), required(inputs, 1)
        mask = present(inputs, 2)
        if x.type.rank != 4 or min(self.group, self.offset_group) < 1:
            raise OperatorError(f"takes images in one group or more, not {x.type}")
        kernel, strides, dilations = (spatial(v, 2) for v in (self.kernel, self.strides, self.dilations))
        pads, taps = padding(self.pads, 2), math.prod(kernel)
        if x.shape[1] % self.group or x.shape[1] % self.offset_group:
            raise OperatorError(
                f"{x.type} has not as many channels for each of {self.group} groups and {self.offset_group} "
                "groups of offsets"
            )
        out = tuple(
            window(x.shape[2 + k], kernel[k], strides[k], dilations[k], pads[k], pads[2 + k])
            for k in range(2)
        )
        if offset.shape != (x.shape[0], 2 * self.offset_group * taps, *out):
            raise OperatorError(f"offset {offset.type} does not fit {x.type} and {taps} taps")
        if mask is not None and mask.shape != (x.shape[0], self.offset_group * taps, *out):
            raise OperatorError(f"mask {mask.type} does not fit offset {offset.type}")
        return [TensorType(x.dtype, (x.shape[0], *out, x.shape[1] * taps))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, offset = required(inputs, 0), required(inputs, 1)
        mask = present(inputs, 2)
        n, *pixel, column = index
        taps, each = self.kernel[0] * self.kernel[1], x.shape[1] // self.group
        channel = add(mul(floordiv(column, taps * each), each), mod(column, each))
        tap = mod(floordiv(column, each), taps)
        row = add(mul(floordiv(channel, x.shape[1] // self.offset_group), taps), tap)
        axes = []
        for d, k in enumerate((floordiv(tap, self.kernel[1]), mod(tap, self.kernel[1]))):
            grid = add(add(mul(pixel[d], self.strides[d]), mul(k, self.dilations[d])), -self.pads[d])
            shift = at(offset, (n, add(mul(row, 2), d), *pixel))
            axes.append(linear_taps(tame(call("add", as_float(grid, x.dtype), shift))))

        def value(chosen: list[Expr], weight: Expr | None) -> Expr:
            assert weight is not None
            inside = logical_and(*(within(i, extent) for i, extent in zip(chosen, x.shape[2:], strict=True)))
            place = (clamp_index(i, extent) for i, extent in zip(chosen, x.shape[2:], strict=True))
            return select(inside, call("mul", weight, at(x, (n, channel, *place))), const(0, x.dtype))

        element = total(of_taps(axes, value))
        return element if mask is None else call("mul", element, at(mask, (n, row, *pixel)))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample(s.inputs[:1] + s.inputs[2:3] + s.inputs[4:], _of(s)) for s in DeformConv.samples()]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, offset, *mask = (np.asarray(a) for a in arrays)
        (images, channels, high, wide), (kh, kw) = x.shape, self.kernel
        out = offset.shape[2:]
        each = channels // self.group
        y = np.zeros((images, *out, self.group, kh, kw, each), np.float64)
        for n, i, j, g, ky, kx, c in np.ndindex(*y.shape):
            channel = g * each + c
            row = channel // (channels // self.offset_group) * kh * kw + ky * kw + kx
            py, px = (
                np.float32(p * self.strides[d] + k * self.dilations[d] - self.pads[d])
                + offset[n, 2 * row + d, i, j]
                for d, (p, k) in enumerate(((i, ky), (j, kx)))
            )
            for iy in (int(np.floor(py)), int(np.floor(py)) + 1):
                for ix in (int(np.floor(px)), int(np.floor(px)) + 1):
                    if 0 <= iy < high and 0 <= ix < wide:
                        share = (1 - abs(py - iy)) * (1 - abs(px - ix))
                        y[n, i, j, g, ky, kx, c] += share * x[n, channel, iy, ix]
            y[n, i, j, g, ky, kx, c] *= mask[0][n, row, i, j] if mask else 1
        return [y.reshape(images, *out, -1).astype(np.float32)]


@operator("DeformConv")
class DeformConv(Operator):
    """Convolution whose taps are shifted by offsets from data, and scaled by a mask."""

    dilations: Ints | None = None
    group: int = 1
    kernel_shape: Ints | None = None
    offset_group: int = 1
    pads: Ints | None = None
    strides: Ints | None = None

    def _columns(self, inputs: Inputs) -> tuple[DeformedColumns, list[Value]]:
        x, w, offset = (required(inputs, k) for k in range(3))
        if x.type.rank != 4 or w.type.rank != 4:
            raise OperatorError(f"two spatial axes are supported, not those of {x.type}", "E202")
        if self.kernel_shape is not None and tuple(self.kernel_shape) != w.shape[2:]:
            raise OperatorError(
                f"kernel_shape {tuple(self.kernel_shape)} is not that of the weights {w.type}"
            )
        if self.group < 1 or w.shape[0] % self.group or w.shape[1] * self.group != x.shape[1]:
            raise OperatorError(f"weights {w.type} do not fit {x.type} in {self.group} groups")
        shape = spatial(self.strides, 2), spatial(self.dilations, 2), padding(self.pads, 2)
        mask = present(inputs, 4)
        columns = DeformedColumns(w.shape[2:], *shape, self.group, self.offset_group)
        return columns, [x, offset] if mask is None else [x, offset, mask]

    def infer(self, inputs: Inputs) -> list[TensorType]:
        columns, given = self._columns(inputs)
        (found,) = columns.infer(given)
        w, bias = required(inputs, 1), present(inputs, 3)
        if bias is not None and bias.shape != (w.shape[0],):
            raise OperatorError(f"bias {bias.type} is not one number for each of {w.shape[0]} channels")
        return [TensorType(found.dtype, (found.shape[0], w.shape[0], *found.shape[1:3]))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        columns, given = self._columns(inputs)
        w, bias = required(inputs, 1), present(inputs, 3)
        flat = (w.shape[0], 1, 1, w.shape[1] * w.shape[2] * w.shape[3])
        weights = build(ReshapeTo(flat), build(Transpose((0, 2, 3, 1)), w))
        y = build(Convolution(group=self.group), build(columns, *given), weights)
        return [channels_first(build, y if bias is None else build(op("Add"), y, bias))]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(13)

        def draw(*shape: int) -> np.ndarray:
            return np.asarray(rng.uniform(-1, 1, shape), np.float32)

        grouped = {
            "group": 2,
            "offset_group": 2,
            "strides": (2, 1),
            "dilations": (1, 2),
            "pads": (1, 0, 0, 1),
        }
        return [
            Sample(
                (draw(1, 2, 4, 4), draw(2, 2, 2, 2), draw(1, 8, 3, 3)),
                {"kernel_shape": (2, 2), "pads": (0, 0, 0, 0)},
            ),
            Sample(
                (draw(2, 4, 6, 5), draw(6, 2, 2, 3), draw(2, 24, 3, 2), draw(6), draw(2, 12, 3, 2)), grouped
            ),
            # offsets of their own for pairs of channels of one group; far outside of the image
            Sample(
                (draw(1, 4, 5, 4), draw(3, 4, 3, 2), 4 * draw(1, 24, 5, 3), draw(3)),
                {"offset_group": 2, "pads": (1, 0, 1, 0)},
            ),
        ]


def _of(sample: Sample) -> dict[str, Any]:
    """The attributes of the columns of a convolution."""
    weights = sample.inputs[1]
    assert weights is not None
    return {
        "kernel": weights.shape[2:],
        **{k: v for k, v in sample.attributes.items() if k != "kernel_shape"},
    }
