"""Random int8 layers with what kernels must make of them: shapes, weights, quantisations, tails, by the numpy
model of the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import arithmetic
import numpy as np
from kernel_program import Case

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.int8 import conv_c, conv_dsp, depthwise_c, depthwise_dsp, fully_connected_dsp, pooling
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.reading import Reading


@dataclass(frozen=True)
class TableTail:
    """Looks the value up and writes where the index says: what a fused activation does."""

    shape: ConvShape
    low: int

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        n, y, x, c = (f"({i})" for i in index)
        s = self.shape
        return (
            f"y[(({n} * {s.out_h} + {y}) * {s.out_w} + {x}) * {s.out_c} + {c}] = looked_up[{acc} - "
            f"{self.low}];"
        )


TABLE = np.random.default_rng(7).integers(-128, 128, 256)


def table_text() -> str:
    return (
        "#ifndef TABLE\n#define TABLE\nstatic const int8_t looked_up[256] = {"
        + ", ".join(map(str, TABLE))
        + "};\n#endif"
    )


def quantisation(rng: np.random.Generator, channels: int, taps: int, kind: str) -> QuantSpec:
    """kind: relu (as networks have it), signed, tensor (one multiplier), spread (shifts far apart), extreme,
    unsigned, dyadic (rounded to even).
    """
    scale = rng.uniform(0.3, 2.0, 1 if kind == "tensor" else channels) * 80 / (taps**0.5 * 64 * 70)
    if kind == "spread":
        scale = scale * 2.0 ** rng.integers(-8, 3, scale.size)
    fraction, exponent = np.frexp(scale)
    m, s = np.round(fraction * 2**31).astype(np.int64), exponent.astype(np.int64)
    if kind == "extreme":
        m = rng.choice([0, 2**30, 2**30 + 1, 2**31 - 1, 1518500250], m.size)
        s = rng.choice([-31, -24, -12, -9, -8, -1, 0, 1, 6], s.size)
    if kind == "dyadic":  # powers of two: many accumulators are ties
        s = rng.integers(-9, -3, m.size if rng.random() < 0.5 else 1)
        m = np.full(s.size, 2**30)
    x_dtype, out_dtype = "int8", "int8"
    if kind == "unsigned":
        x_dtype, out_dtype = "uint8", rng.choice(["int8", "uint8"])
    low, high = (-128, 127) if out_dtype == "int8" else (0, 255)
    zero = low if kind == "relu" else int(rng.integers(low, high + 1))
    act = (low, high)
    if kind in ("signed", "extreme") and rng.random() < 0.5:
        act = tuple(sorted(int(v) for v in rng.integers(low, high + 1, 2)))  # type: ignore[assignment]
    if rng.random() < 0.3:
        act = (max(act[0], min(zero, act[1])), act[1])
    x_zero = int(rng.choice([-128, -1, 0, 3, 127])) if x_dtype == "int8" else int(rng.choice([0, 128, 255]))
    rounding = (
        "even"
        if kind == "dyadic"
        else str(rng.choice(["single", "even"]))
        if kind == "signed" and rng.random() < 0.3
        else "double"
    )
    return QuantSpec(
        x_zero,
        m.clip(0, 2**31 - 1).astype(np.int32),
        s.astype(np.int32),
        zero,
        *act,
        x_dtype,
        str(out_dtype),
        rounding,
    )  # type: ignore[arg-type]


KINDS = ("relu", "signed", "tensor", "spread", "extreme", "unsigned", "dyadic")


def some_weights(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Full range incl. -128 (not joined), TFLite's -127..127, small ones, with channels of zeros."""
    low, high = [(-128, 128), (-127, 128), (-127, 128), (-3, 4)][int(rng.integers(4))]
    return rng.integers(low, high, shape).astype(np.int8)


def some_bias(rng: np.random.Generator, channels: int) -> np.ndarray | None:
    width = int(rng.choice([0, 100, 20000, 2**28]))
    return rng.integers(-width, width + 1, channels).astype(np.int32) if width else None


def some_input(rng: np.random.Generator, shape: ConvShape, quant: QuantSpec) -> np.ndarray:
    low, high = quant.x_range
    x = rng.integers(low, high + 1, (shape.batch, shape.in_h, shape.in_w, shape.in_c))
    if rng.random() < 0.2:
        x[:] = rng.choice([low, high])
    return x.astype(quant.x_dtype)


def random_shape(rng: np.random.Generator, depthwise: bool) -> ConvShape:
    while True:
        kernel = [int(v) for v in rng.choice([1, 1, 2, 3, 3, 3, 5, 10], 2)]
        stride = [int(v) for v in rng.choice([1, 1, 2, 3], 2)]
        dilation = [int(v) for v in rng.choice([1, 1, 1, 2], 2)]
        size = [int(v) for v in rng.integers(1, 12, 2)]
        pad = [int(rng.integers(0, (k - 1) * d + 1)) for k, d in zip(kernel, dilation, strict=True)]
        after = [int(rng.integers(0, (k - 1) * d + 1)) for k, d in zip(kernel, dilation, strict=True)]
        out = [
            (n + a + b - (k - 1) * d - 1) // s + 1
            for n, a, b, k, d, s in zip(size, pad, after, kernel, dilation, stride, strict=True)
        ]
        if min(out) < 1:
            continue
        ic = int(rng.integers(1, 13)) if depthwise else int(rng.choice([1, 2, 3, 4, 5, 8, 16]))
        oc = ic * int(rng.choice([1, 1, 1, 2])) if depthwise else int(rng.choice([1, 2, 3, 4, 7, 8]))
        batch = int(rng.choice([1, 1, 2]))
        groups = ic if depthwise else 1
        return ConvShape(batch, *size, ic, *out, oc, *kernel, *stride, *dilation, *pad, groups)


def finished(
    kernel: KernelCode, x: np.ndarray, want: np.ndarray, quant: QuantSpec, tail: Tail | None
) -> Case:
    if tail is None:
        return Case(kernel, x, want)
    low = quant.out_range[0]
    return Case(kernel, x, TABLE[want.astype(np.int64) - low].astype(np.int8), table_text())


def with_zero_point(
    rng: np.random.Generator, w: np.ndarray, quant: QuantSpec, plain: bool
) -> tuple[np.ndarray, QuantSpec]:
    """Now and then weights of all 256 values with a zero point, as uint8 or as int8."""
    if rng.random() < 0.7:
        return w, quant
    whole = rng.integers(0, 256, w.shape)
    zero = int(rng.choice([0, 1, 128, 255]))
    if plain:
        return whole.astype(np.uint8), replace(quant, weight_zero_point=zero)
    return (whole - 128).astype(np.int8), replace(quant, weight_zero_point=zero - 128)


def conv_case(rng: np.random.Generator, shape: ConvShape, kind: str, plain: bool = False) -> Case:
    w = some_weights(rng, (shape.out_c, shape.kernel_h, shape.kernel_w, shape.in_c // shape.groups))
    quant = quantisation(rng, shape.out_c, w[0].size, kind)
    w, quant = with_zero_point(rng, w, quant, plain)
    bias = some_bias(rng, shape.out_c)
    x = some_input(rng, shape, quant)
    tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
    want = arithmetic.conv(x, w, bias, shape, quant)
    if plain:
        kernel = conv_c.conv(shape, w, bias, quant, tail, block=(2, 2) if rng.random() < 0.5 else (1, 2))
    else:
        assert conv_dsp.applicable(shape, quant)
        kernel = conv_dsp.conv(shape, w, bias, quant, tail, Reading(overlaps=shape.out_w % 2 > 0))
    return finished(kernel, x, want, quant, tail)


def depthwise_case(
    rng: np.random.Generator, shape: ConvShape, kind: str, plain: bool = False, paired: bool = False
) -> Case:
    w = some_weights(rng, (shape.kernel_h, shape.kernel_w, shape.out_c))
    quant = quantisation(rng, shape.out_c, shape.kernel_h * shape.kernel_w, kind)
    w, quant = with_zero_point(rng, w, quant, plain)
    bias = some_bias(rng, shape.out_c)
    x = some_input(rng, shape, quant)
    tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
    limit = 6144 if paired else int(rng.choice([60, 200, 6144]))
    want = arithmetic.depthwise(x, w, bias, shape, quant)
    if plain:
        kernel = depthwise_c.depthwise(shape, w, bias, quant, tail, plane_bytes=limit)
    else:
        kernel = depthwise_dsp.depthwise(
            shape, w, bias, quant, tail, limit, shape.in_w % 2 > 0, 1 if paired or shape.in_h % 3 else None
        )
    return finished(kernel, x, want, quant, tail)


def row_case(rng: np.random.Generator, ic: int, oc: int, kind: str) -> Case:
    shape = ConvShape(1, 1, 1, ic, 1, 1, oc)
    w = some_weights(rng, (oc, 1, 1, ic))
    quant = quantisation(rng, oc, ic, kind)
    w, quant = with_zero_point(rng, w, quant, False)
    bias = some_bias(rng, oc)
    x = some_input(rng, shape, quant)
    tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
    limit = int(rng.choice([0, 512]))
    apart = bool((ic + oc) % 2)
    common = bool(rng.random() < 0.4)
    kernel = fully_connected_dsp.fully_connected(shape, w, bias, quant, tail, limit, apart, common)
    return finished(kernel, x, arithmetic.conv(x, w, bias, shape, quant), quant, tail)


def pool_case(rng: np.random.Generator, kind: str) -> Case:
    shape = random_shape(rng, depthwise=True)
    kernel = [min(shape.kernel_h, shape.in_h), min(shape.kernel_w, shape.in_w)]
    out = [
        (n - k) // s + 1
        for n, k, s in zip((shape.in_h, shape.in_w), kernel, (shape.stride_h, shape.stride_w), strict=True)
    ]
    pad = [0, 0]
    if rng.random() < 0.5:  # as SAME pads
        out = [-(-shape.in_h // shape.stride_h), -(-shape.in_w // shape.stride_w)]
        pad = [
            max((out[0] - 1) * shape.stride_h + kernel[0] - shape.in_h, 0) // 2,
            max((out[1] - 1) * shape.stride_w + kernel[1] - shape.in_w, 0) // 2,
        ]
    c = int(rng.choice([1, 3, 4, 6, 8]))
    s = ConvShape(
        shape.batch,
        shape.in_h,
        shape.in_w,
        c,
        *out,
        c,
        *kernel,
        shape.stride_h,
        shape.stride_w,
        1,
        1,
        *pad,
        1,
    )
    dtype = str(rng.choice(["int8", "uint8", "int16"]))
    low, high = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}[dtype]
    x = rng.integers(low, high + 1, (s.batch, s.in_h, s.in_w, c)).astype(dtype)
    want = (arithmetic.average_pool if kind == "average" else arithmetic.max_pool)(x, s, low, high)
    return Case(pooling.pool(kind, s, dtype, bool(rng.random() < 0.7)), x, want)  # type: ignore[arg-type]
