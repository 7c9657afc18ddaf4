"""Random int8 layers with what Helium kernels must make of them: weights, quantisations and fused tails, the
extremes among them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import int8_model
import numpy as np
from int8_program import Case

from aot_model.kernels.base import ConvShape, Tail
from aot_model.kernels.int8 import depthwise_taps_mve
from aot_model.kernels.int8.conv_mve import conv
from aot_model.kernels.int8.depthwise_lanes_mve import depthwise_lanes
from aot_model.kernels.int8.depthwise_mve import depthwise
from aot_model.kernels.int8.depthwise_taps_mve import depthwise_taps
from aot_model.kernels.int8.spec import QuantSpec

RANGES = (
    (-128, -128, 127),
    (-128, 0, 127),
    (3, -128, 127),
    (127, -128, 127),
    (-20, -20, 90),
    (5, 9, 9),
    (-128, -128, 60),
)
"""(output zero point, act_min, act_max): with and without ReLU, ReLU6, a single value."""


@dataclass(frozen=True)
class Inverted:
    """A fused tail: stores ~acc."""

    shape: ConvShape
    to: str = "int8"

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        n, y, x, c = index
        s = self.shape
        at = f"((({n}) * {s.out_h} + ({y})) * {s.out_w} + ({x})) * {s.out_c} + ({c})"
        return f"y[{at}] = ({self.to}_t)(~({acc}));\n"


@dataclass(frozen=True)
class InvertedRows(Inverted):
    """The same, a pixel at a time."""

    adjacent = True
    row_helpers: tuple[str, ...] = (
        "static void invert(const int8_t *a, int8_t *y, int32_t n)\n{\n    for (int32_t i = 0; i < n; i++) "
        "{\n        y[i] = (int8_t)~a[i];\n    }\n}\n",
    )

    def store_row(self, source: str, index: tuple[str, str, str, str], count: int) -> str:
        n, y, x, c = index
        s = self.shape
        return (
            f"invert({source}, y + ((({n}) * {s.out_h} + ({y})) * {s.out_w} + ({x})) * {s.out_c} + "
            f"({c}), {count});\n"
        )


class Draw:
    """Random layers, weights and quantisation, the extremes among them more often than chance would have
    it.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def geometry(self, kernel: tuple[int, int], in_c: int, out_c: int, groups: int = 1) -> ConvShape:
        r = self.rng
        kh, kw = kernel
        sh, sw, dh, dw = (int(v) for v in r.choice([1, 1, 1, 2, 3], 4))
        tall, wide = (kh - 1) * dh + 1, (kw - 1) * dw + 1
        h, w = int(r.integers(1, 12)), int(r.integers(1, 12))
        top, left = int(r.integers(0, tall)), int(r.integers(0, wide))
        bottom, right = int(r.integers(0, tall)), int(r.integers(0, wide))
        h, w = max(h, tall - top - bottom), max(w, wide - left - right)
        out_h, out_w = (h + top + bottom - tall) // sh + 1, (w + left + right - wide) // sw + 1
        n = int(r.integers(1, 3))
        return ConvShape(n, h, w, in_c, out_h, out_w, out_c, kh, kw, sh, sw, dh, dw, top, left, groups)

    def int8(self, *shape: int) -> np.ndarray:
        r = self.rng
        if r.random() < 0.2:
            return r.choice(np.array([-128, 127], np.int8), shape)
        return r.integers(-128, 128, shape).astype(np.int8)

    def weights(self, *shape: int) -> np.ndarray:
        w = self.int8(*shape)
        return w if self.rng.random() < 0.1 else np.maximum(w, -127).astype(np.int8)

    def quantised(self, depth: int, channels: int) -> tuple[QuantSpec, np.ndarray | None]:
        """(spec, bias) that spread the outputs over int8 for sums of `depth` products; some scales are
        extreme.
        """
        r = self.rng
        fit = -int(np.log2(60.0 * 60.0 * np.sqrt(depth) / 64.0))
        count = 1 if r.random() < 0.2 else channels
        spread = int(r.choice([0, 1, 3]))
        shift = fit + r.integers(-spread, spread + 1, count)
        multiplier = r.integers(1 << 30, 1 << 31, count)
        if r.random() < 0.4:
            extremes = [
                (1 << 30, 0),
                ((1 << 31) - 1, -31),
                (0, 0),
                ((1 << 31) - 1, 0),
                (1 << 30, -1),
                (1 << 30, -17),
                (3 << 29, 3),
                (5 << 28, 20),
            ]
            for multiplier_, shift_ in extremes:
                i = int(r.integers(count))
                multiplier[i], shift[i] = multiplier_, shift_
        zero, low, high = RANGES[int(r.integers(len(RANGES)))]
        x_zero = int(r.choice([-128, 127, 0, int(r.integers(-128, 128))]))
        bias = None
        if r.random() < 0.9:
            bias = r.integers(-(1 << 13), 1 << 13, channels).astype(np.int32)
            if r.random() < 0.2:
                bias[int(r.integers(channels))] = int(r.choice([-1, 1])) * ((1 << 31) - 1)
        rounding = str(r.choice(["double", "double", "double", "single", "even"]))
        if rounding == "even":  # few bits, so that there are ties
            multiplier = np.where(multiplier % 7 < 5, multiplier >> 28 << 28, multiplier)
            multiplier = np.full(count, 1 << 30) if r.random() < 0.5 else multiplier
        if rounding != "double":  # all channels shift right, or none, or some
            shift = [np.minimum(shift, -1), np.maximum(shift, 0), shift][int(r.choice(3, p=[0.5, 0.2, 0.3]))]
        arrays = multiplier.astype(np.int32), shift.astype(np.int32)
        return self.typed(QuantSpec(x_zero, *arrays, zero, low, high, rounding=rounding)), bias

    def typed(self, spec: QuantSpec) -> QuantSpec:
        """The same of uint8 at one end or both, at times."""
        if self.rng.random() < 0.3:
            spec = replace(spec, x_dtype="uint8", x_zero_point=spec.x_zero_point + 128)
        if self.rng.random() < 0.3:
            ends = spec.out_zero_point + 128, spec.act_min + 128, spec.act_max + 128
            spec = replace(spec, out_dtype="uint8", out_zero_point=ends[0], act_min=ends[1], act_max=ends[2])
        return spec

    def zero_point(self, spec: QuantSpec) -> QuantSpec:
        """The same with a zero point of weights, at times."""
        if self.rng.random() < 0.6:
            return spec
        return replace(spec, weight_zero_point=int(self.rng.choice([-128, 127, self.rng.integers(-20, 20)])))

    def input(self, spec: QuantSpec, *shape: int) -> np.ndarray:
        x = self.int8(*shape)
        return x if spec.x_dtype == "int8" else (x.astype(np.int16) + 128).astype(np.uint8)


def with_tail(draw: Draw, shape: ConvShape, expected: np.ndarray) -> tuple[Tail | None, np.ndarray]:
    if draw.rng.random() < 0.75:
        return None, expected
    signed = expected.dtype == np.int8
    kind = InvertedRows if signed and draw.rng.random() < 0.3 else Inverted
    return kind(shape, expected.dtype.name), ~expected


def conv_case(draw: Draw, shape: ConvShape, kernel=conv) -> Case:
    channels = shape.in_c // shape.groups
    spec, bias = draw.quantised(shape.kernel_h * shape.kernel_w * channels, shape.out_c)
    spec = draw.zero_point(spec) if shape.groups == 1 else spec
    x = draw.input(spec, shape.batch, shape.in_h, shape.in_w, shape.in_c)
    w = draw.weights(shape.out_c, shape.kernel_h, shape.kernel_w, channels)
    expected = int8_model.conv(shape, x, w, bias, spec)
    tail, expected = with_tail(draw, shape, expected)
    return Case(f"{shape} {spec}", kernel(shape, w, bias, spec, tail), x, expected)


def depthwise_case(draw: Draw, shape: ConvShape, kernel=depthwise) -> Case:
    spec, bias = draw.quantised(shape.kernel_h * shape.kernel_w, shape.out_c)
    if kernel in (depthwise, depthwise_taps, depthwise_lanes) and depthwise_taps_mve.applicable(shape):
        spec = draw.zero_point(spec)
    x = draw.input(spec, shape.batch, shape.in_h, shape.in_w, shape.in_c)
    w = draw.weights(shape.kernel_h, shape.kernel_w, shape.out_c)
    expected = int8_model.depthwise(shape, x, w, bias, spec)
    tail, expected = with_tail(draw, shape, expected)
    return Case(f"{shape} {spec}", kernel(shape, w, bias, spec, tail), x, expected)
