"""Bilinear interpolation as TFLite computes it: positions and weights are tables, worked out at compile time.

Integers: weights in Q.10, the sum rounded with ties away from zero. Source: TensorFlow Lite's
RESIZE_BILINEAR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, load
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import operator, required


@dataclass(frozen=True)
class _Axis:
    """For each output position: the lower and upper source, and the weight of the upper one."""

    low: Value
    high: Value
    weight: Value

    def at(self, i: Expr) -> tuple[Expr, Expr, Expr]:
        def entry(v: Value) -> Expr:
            return (
                const(v.data.reshape(-1)[0].item(), v.dtype)
                if v.data is not None and v.data.size == 1
                else load(v, (i,))
            )

        return entry(self.low), entry(self.high), entry(self.weight)


def _weights(size: int, wanted: int, unit: int, aligned: bool, centred: bool) -> np.ndarray:
    """[wanted, size]: what each source contributes, by the definition: 1 is `unit`, integers are rounded."""
    last = 1 if aligned and wanted > 1 else 0
    step = (size - last) * unit / (wanted - last)
    step = float(np.floor(step + 0.5)) if unit > 1 else step
    result = np.zeros((wanted, size))
    for k in range(wanted):
        place = k * step + (step / 2 - unit / 2 if centred else 0)
        place = float(np.floor(place)) if unit > 1 else place
        low = max(int(place / unit), 0)
        result[k, min(low, size - 1)] += unit - (place - low * unit)
        result[k, min(max(-int(-place // unit), 0), size - 1)] += place - low * unit
    return result


@operator("ResizeBilinear", domain="aot")
class ResizeBilinear(Operator):
    """x (N, H, W, C) to (N, height, width, C)."""

    height: int
    width: int
    align_corners: bool
    half_pixel_centers: bool

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.type.rank != 4 or 0 in x.shape or min(self.height, self.width) < 1:
            raise OperatorError(f"cannot resize {x.type} to {self.height} x {self.width}")
        if self.align_corners and self.half_pixel_centers:
            raise OperatorError("align_corners and half_pixel_centers exclude each other")
        return [TensorType(x.dtype, (x.shape[0], self.height, self.width, x.shape[3]))]

    def _axis(self, size: int, wanted: int, real: bool, wide: DType) -> _Axis:
        aligned = self.align_corners and wanted > 1
        i = np.arange(wanted)
        if real:
            scale = (
                np.float32(size - 1) / np.float32(wanted - 1)
                if aligned
                else np.float32(size) / np.float32(wanted)
            )
            at = (
                (i.astype(np.float32) + np.float32(0.5)) * scale - np.float32(0.5)
                if self.half_pixel_centers
                else i.astype(np.float32) * scale
            )
            low = np.maximum(np.floor(at), 0).astype(np.int32)
            high = np.ceil(at).astype(np.int32)
            weight = (at - low.astype(np.float32)).astype(np.float32)
        else:
            span, count = (size - 1, wanted - 1) if aligned else (size, wanted)
            step = (1024 * span + count // 2) // count
            place = i * step + step // 2 - 512 if self.half_pixel_centers else i * step
            low = np.maximum(np.trunc(place / 1024), 0).astype(np.int32)
            high = np.trunc((place + 1023) / 1024).astype(np.int32)
            weight = (place - 1024 * low).astype(wide.numpy)
        return _Axis(
            constant("lower", np.minimum(low, size - 1)),
            constant("upper", np.minimum(high, size - 1)),
            constant("weight", weight),
        )

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        real = x.dtype.is_float
        wide = x.dtype if real else DType.INT32
        unit = const(1 if real else 1024, wide)
        y0, y1, dy = self._axis(x.shape[1], self.height, real, wide).at(index[1])
        x0, x1, dx = self._axis(x.shape[2], self.width, real, wide).at(index[2])

        def element(row: Expr, column: Expr) -> Expr:
            return cast(at(x, (index[0], row, column, index[3])), wide)

        rest_y, rest_x = call("sub", unit, dy), call("sub", unit, dx)
        corners = [
            (element(y0, x0), rest_y, rest_x),
            (element(y1, x0), dy, rest_x),
            (element(y0, x1), rest_y, dx),
            (element(y1, x1), dy, dx),
        ]

        def mixed(part: Callable[[Expr], Expr]) -> Expr:
            """Of integers the weights are multiplied first, once for all channels; all fit 32 bits."""
            terms = [call("mul", call("mul", part(value), wy), wx) if real else
                     call("mul", part(value), call("mul", wy, wx)) for value, wy, wx in corners]  # fmt: skip
            return reduce(lambda a, b: call("add", a, b), terms)

        if not real and x.dtype.bits > 8:
            return cast(self._of_halves(mixed), x.dtype)
        total = mixed(lambda value: value)
        if real:
            return total
        below = call("sar", total, const(31, wide))  # ties go away from zero: those below it down
        rounded = call("add", call("add", total, below), const(1 << 19, wide))
        return cast(call("sar", rounded, const(20, wide)), x.dtype)

    @staticmethod
    def _of_halves(mixed: Callable[[Callable[[Expr], Expr]], Expr]) -> Expr:
        """The mean of 16-bit values in 32 bits: the weights of the four neighbours sum to 2^20, so that of
        the values' upper and of their lower bytes are summed apart.

        With U, L these sums: (256 U + L) / 2^20 = (U >> 12) + (256 (U & 4095) + L) / 2^20.
        """

        def number(value: int) -> Expr:
            return const(value, DType.INT32)

        upper = mixed(lambda value: call("sar", value, number(8)))
        lower = mixed(lambda value: call("bitand", value, number(255)))
        whole = call("sar", upper, number(12))
        rest = call("add", call("mul", call("bitand", upper, number(4095)), number(256)), lower)
        negative = call("sar", call("add", whole, call("sar", rest, number(20))), number(31))
        rounded = call("add", call("add", rest, number(1 << 19)), negative)  # ties away from zero
        return call("add", whole, call("sar", rounded, number(20)))

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        unit = 1 if x.dtype.kind == "f" else 1024
        rows, columns = (
            _weights(n, to, unit, self.align_corners, self.half_pixel_centers)
            for n, to in zip(x.shape[1:3], (self.height, self.width), strict=True)
        )
        total = np.einsum("yh,xw,nhwc->nyxc", rows, columns, x.astype(np.float64)) / unit**2
        return [(total if unit == 1 else np.copysign(np.floor(np.abs(total) + 0.5), total)).astype(x.dtype)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(4)
        x = np.asarray(rng.integers(-128, 128, (1, 3, 4, 2)), dtype=np.int8)
        sizes = [(6, 8), (5, 3), (1, 1)]
        return [
            Sample((v,), {"height": h, "width": w, "align_corners": a, "half_pixel_centers": p})
            for h, w in sizes
            for a, p in ((False, False), (False, True), (True, False))
            for v in (x, x.astype(np.int16) * 201, x.astype(np.float32))
        ]
