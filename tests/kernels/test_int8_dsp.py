"""Every int8 kernel against the numpy model of the arithmetic: on the host under sanitizers, in QEMU on
Cortex-M.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import arithmetic
import numpy as np
import pytest
from kernel_program import Case, run_board, run_host

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.int8 import (
    conv_c,
    conv_dsp,
    depthwise_c,
    depthwise_dsp,
    dsp,
    finish,
    fully_connected_dsp,
    patch_dsp,
    pooling,
    requantise,
)
from aot_model.kernels.int8.finish import numbers_of
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.reading import Reading
from qemu import available

SEEDS = range(4)
needs_qemu = pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")


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
    shape, x = (shape, x) if shape.groups > 1 and not plain else transposed_input(rng, shape, x)
    if plain:
        kernel = conv_c.conv(shape, w, bias, quant, tail, block=(2, 2) if rng.random() < 0.5 else (1, 2))
    else:
        assert conv_dsp.applicable(shape, quant)
        kernel = conv_dsp.conv(shape, w, bias, quant, tail, Reading(overlaps=shape.out_w % 2 > 0))
    return finished(kernel, x, want, quant, tail)


def transposed_input(
    rng: np.random.Generator, shape: ConvShape, x: np.ndarray
) -> tuple[ConvShape, np.ndarray]:
    """Now and then the input lies in memory as N, C, H, W."""
    if rng.random() < 0.8:
        return shape, x
    strides = (shape.in_c * shape.in_h * shape.in_w, shape.in_w, 1, shape.in_h * shape.in_w)
    return replace(shape, x_strides=strides), np.ascontiguousarray(x.transpose(0, 3, 1, 2))


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
    shape, x = (shape, x) if paired else transposed_input(rng, shape, x)
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


def dsp_cases(seed: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    cases = []
    for kind in KINDS:
        cases.append(conv_case(rng, random_shape(rng, depthwise=False), kind))
        wide = replace(random_shape(rng, depthwise=False), batch=1)
        if wide.out_h * wide.out_w * wide.macs < 3_000_000:
            columns = int(rng.integers(4, 8))
            reach = (columns - 1) * wide.stride_w + (wide.kernel_w - 1) * wide.dilation_w + 1
            in_w = max(1, reach - int(rng.integers(0, 3)))
            cases.append(
                conv_case(rng, replace(wide, in_w=in_w, out_w=columns, pad_left=min(wide.pad_left, 1)), kind)
            )
        n, c = int(rng.integers(1, 10)), int(rng.choice([1, 3, 4, 6, 16, 20]))
        oc = int(rng.choice([1, 2, 5, 8]))
        cases.append(conv_case(rng, ConvShape(1, 1, n, c, 1, n, oc), kind))
        cases.append(depthwise_case(rng, random_shape(rng, depthwise=True), kind))
        h, w, stride = int(rng.integers(1, 9)), int(rng.integers(1, 9)), int(rng.integers(1, 3))
        ch = int(rng.choice([1, 3, 8, 260]))
        out = (-(-h // stride), -(-w // stride))
        cases.append(
            depthwise_case(
                rng, ConvShape(1, h, w, ch, *out, ch, 3, 3, stride, stride, 1, 1, stride % 2, 1, ch), kind
            )
        )
        cases.append(
            row_case(rng, int(rng.choice([1, 3, 4, 8, 20, 33, 64])), int(rng.choice([1, 4, 6, 17, 32])), kind)
        )
    return [*cases, pool_case(rng, "average"), pool_case(rng, "max")]


def grouped_cases(seed: int) -> list[Case]:
    """Groups of one to nine channels in and out: windows beyond the image, pixels left over, several images,
    one tap with and without strides, weights with a zero point.
    """
    rng = np.random.default_rng(50 + seed)
    cases = []
    for at, kind in enumerate(KINDS * 3):
        shape = random_shape(rng, depthwise=False)
        while shape.macs > 400_000 or not patch_dsp.slices_fit(shape) or shape.out_h * shape.out_w == 1:
            shape = random_shape(rng, depthwise=False)
        groups, ins, outs = int(rng.integers(2, 5)), 1 + at % 9, int(rng.integers(1, 6))
        grouped = replace(shape, in_c=groups * ins, out_c=groups * outs, groups=groups)
        if at % 5 == 4:
            n = int(rng.integers(2, 10))
            grouped = ConvShape(2, 1, n, groups * ins, 1, n, groups * outs, groups=groups)
        cases.append(conv_case(rng, grouped, kind))
    return cases


def row_cases(seed: int) -> list[Case]:
    """Few channels in rows of four or eight pixels: windows beyond each edge of the image, images narrower
    than four windows, strides, several images, weights with a zero point; dilation, which takes slices.
    """
    rng = np.random.default_rng(80 + seed)
    cases = []
    for at, kind in enumerate(KINDS * 4):
        kernel = [int(v) for v in rng.choice([1, 2, 3, 5], 2)]
        kernel[1] += 2 * (at % 4 == 3 and kernel[1] == 1)
        stride = [int(rng.integers(1, 3)), int(rng.integers(1, min(kernel[1], 2) + 1))]
        dilation = [int(rng.integers(1, 3)), 2 if at % 4 == 3 else 1]
        pad = [int(rng.integers(0, (k - 1) * d + 1)) for k, d in zip(kernel, dilation, strict=True)]
        out = [int(rng.integers(1, 6)), int(rng.choice([4, 4, 8]))]
        reach = [
            (o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out, stride, kernel, dilation, strict=True)
        ]
        size = [max(1, n - p - int(rng.integers(0, p + 1))) for n, p in zip(reach, pad, strict=True)]
        shape = ConvShape(
            1 + at % 2, *size, 1 + at % 9, *out, int(rng.integers(1, 6)), *kernel, *stride, *dilation, *pad
        )
        cases.append(conv_case(rng, shape, kind))
    return cases


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_pixels_on_the_host(seed: int, tmp_path: Path) -> None:
    cases = row_cases(seed)
    for text in ("slice4x1_", "slice4x2_", "slice4x4_", "run_int8_"):
        assert any(text in helper for case in cases for helper in case.code.helpers)
    run_host(cases, tmp_path)


@needs_qemu
def test_rows_of_pixels(tmp_path: Path) -> None:
    run_board(row_cases(7) + row_cases(8), tmp_path, "m4")


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_on_the_host(seed: int, tmp_path: Path) -> None:
    cases = grouped_cases(seed)
    assert all(any(f"slice4x{n}_" in text for case in cases for text in case.code.helpers) for n in (1, 2, 4))
    run_host(cases, tmp_path)


@needs_qemu
@pytest.mark.parametrize("core", ["m4", "m7"])
def test_groups(core: str, tmp_path: Path) -> None:
    run_board(grouped_cases(7) + grouped_cases(8), tmp_path, core)


def plain_cases(seed: int) -> list[Case]:
    rng = np.random.default_rng(100 + seed)
    cases = [conv_case(rng, random_shape(rng, depthwise=False), kind, plain=True) for kind in KINDS]
    cases += [depthwise_case(rng, random_shape(rng, depthwise=True), kind, plain=True) for kind in KINDS]
    for kind in ("relu", "signed"):
        n = int(rng.integers(1, 10))
        cases.append(conv_case(rng, ConvShape(1, 1, n, 12, 1, n, 5), kind, plain=True))
        cases.append(conv_case(rng, ConvShape(2, 3, n, 12, 3, n, 6, groups=3), kind, plain=True))
        cases.append(
            conv_case(rng, ConvShape(2, 3, n, 4, 3, n, 6, 3, 3, 1, 1, 1, 1, 1, 1, groups=2), kind, plain=True)
        )
    return cases


@pytest.mark.parametrize("seed", SEEDS)
def test_host(seed: int, tmp_path: Path) -> None:
    run_host(dsp_cases(seed) + plain_cases(seed), tmp_path)


@needs_qemu
@pytest.mark.parametrize(("seed", "level"), [*((seed, "-O2") for seed in SEEDS), (0, "-Os"), (0, "-O0")])
def test_cortex_m4(seed: int, level: str, tmp_path: Path) -> None:
    run_board(dsp_cases(seed), tmp_path, "m4", (level,))


def window_sums(seed: int) -> list[Case]:
    """Depthwise layers with ones: written out, as loops, compact; what a tail gets; one row of constants or
    many.
    """
    rng, cases = np.random.default_rng(seed), []
    for at, kind in enumerate(KINDS * 2):
        (h, w_), stride = ((2, 2), (3, 3), (5, 4), (2, 11))[at % 4], 1 + at % 2
        channels, out = 4 * (1 + at % 3), 2 + at % 3
        shape = ConvShape(1 + at % 2, h + (out - 1) * stride, w_ + (out - 1) * stride, channels, out, out,
                          channels, h, w_, stride, stride, groups=channels)  # fmt: skip
        quant = quantisation(rng, channels, h * w_, kind)
        w, bias = np.ones((h, w_, channels), np.int8), some_bias(rng, channels) if at % 3 else None
        x = some_input(rng, shape, quant)
        tail = TableTail(shape, quant.out_range[0]) if at % 5 == 1 else None
        kernel = depthwise_dsp.depthwise(shape, w, bias, quant, tail, paired_from=None if at % 4 == 3 else 1)
        assert "4 channels at a time" in kernel.note
        cases.append(finished(kernel, x, arithmetic.depthwise(x, w, bias, shape, quant), quant, tail))
    return cases


@pytest.mark.parametrize("seed", [1, 2])
def test_sums_of_windows(seed: int, tmp_path: Path) -> None:
    run_host(window_sums(seed), tmp_path)


@needs_qemu
@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3", "-Os"])
def test_sums_of_windows_on_a_core(level: str, tmp_path: Path) -> None:
    run_board(window_sums(3), tmp_path, "m4", (level,))


@needs_qemu
def test_two_lines_of_depthwise_outputs(tmp_path: Path) -> None:
    """3x3 kernels by blocks of 2x2, 2x1, 1x2 and 1x1 outputs, each stride, near and far steps of y,
    every form of requantisation.
    """
    rng = np.random.default_rng(21)
    cases = []
    for at, kind in enumerate(KINDS * 3):
        rows, columns = 2 + at % 4, 1 + at * 3 % 5
        stride = ((1, 1), (2, 2), (1, 2), (2, 1))[at % 4]
        channels = {3: 300, 11: 700, 13: 2100, 14: 1100, 17: 1400}.get(at, int(rng.integers(1, 6)))
        size = ((rows - 1) * stride[0] + 1, (columns - 1) * stride[1] + 1)
        shape = ConvShape(1, *size, channels, rows, columns, channels, 3, 3, *stride, 1, 1, 1, 1, channels)
        cases.append(depthwise_case(rng, shape, kind, paired=True))
    assert sum("_paired(" in "".join(case.code.helpers) for case in cases) > 15
    run_board(cases, tmp_path, "m4")


def small_depthwise_cases(seed: int) -> list[Case]:
    """Kernels of up to 3x3 taps, near and dilated, whose weights stay in registers."""
    rng = np.random.default_rng(seed)
    cases = []
    for at, kind in enumerate(KINDS * 4):
        kernel = (1 + at % 3, 2 + at // 3 % 2) if at % 8 < 5 else (1 + at % 3, 3)
        dilation = (1 + at // 7 % 2, (1, 2, 3, 4, 1)[at % 5])
        stride = (1 + at // 2 % 2, 1 + at // 4 % 2)
        edges = [
            (int(n), (k - 1) * d + 1, s)
            for n, k, d, s in zip(rng.integers(4, 12, 2), kernel, dilation, stride, strict=True)
        ]
        pad = [int(rng.integers(0, reach)) for _, reach, _ in edges]
        out = [max(1, (n + 2 * p - reach) // s + 1) for (n, reach, s), p in zip(edges, pad, strict=True)]
        ic = int(rng.integers(1, 6))
        size, oc = [n for n, _, _ in edges], ic * (1 + at // 5 % 2)
        shape = ConvShape(1 + at % 2, *size, ic, *out, oc, *kernel, *stride, *dilation, *pad, ic)
        cases.append(depthwise_case(rng, shape, kind, paired=at % 3 > 0))
    return cases


LONG = [  # kernel, stride, dilation, pad, size of the image
    ((5, 5), (1, 1), (1, 1), (2, 2), (7, 7)), ((7, 7), (1, 1), (1, 1), (3, 3), (9, 13)),
    ((1, 15), (1, 1), (1, 1), (0, 7), (1, 49)), ((1, 21), (1, 2), (1, 1), (0, 10), (2, 30)),
    ((1, 25), (1, 1), (1, 1), (0, 12), (2, 23)), ((41, 1), (1, 1), (1, 1), (20, 0), (26, 2)),
    ((2, 30), (1, 1), (1, 1), (1, 15), (4, 21)), ((3, 26), (2, 1), (2, 1), (2, 0), (9, 33)),
    ((3, 50), (1, 3), (1, 1), (1, 40), (3, 20)), ((5, 5), (1, 1), (1, 9), (2, 18), (6, 11)),
    ((3, 9), (1, 2), (1, 2), (1, 8), (5, 14)), ((1, 3), (1, 70), (1, 1), (0, 1), (1, 200)),
    ((4, 6), (1, 61), (1, 1), (2, 2), (5, 130)), ((1, 4), (1, 1), (1, 40), (0, 60), (2, 70)),
    ((6, 2), (1, 1), (1, 1), (3, 1), (8, 5)), ((2, 4), (1, 3), (1, 1), (1, 2), (6, 25)),
    ((1, 5), (1, 1), (1, 3), (0, 6), (3, 17)), ((10, 4), (2, 2), (1, 1), (4, 1), (19, 10)),
    ((1, 1), (1, 1), (1, 1), (0, 0), (3, 7)), ((1, 7), (1, 1), (1, 1), (0, 3), (2, 6)),
    ((9, 9), (1, 1), (1, 1), (4, 4), (6, 6)), ((5, 3), (1, 1), (3, 1), (6, 1), (5, 900)),
]  # fmt: skip
"""Kernels whose weights are in memory in one, two and three parts of a line, written out and not, blocks of
one to six outputs; and those with the most pairs in registers."""


def long_depthwise_cases(seed: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    cases = []
    for at, (kernel, stride, dilation, pad, size) in enumerate(LONG):
        out = [(n + 2 * p - (k - 1) * d - 1) // s + 1
               for n, p, k, d, s in zip(size, pad, kernel, dilation, stride, strict=True)]  # fmt: skip
        ic = (3, 1, 30, 300)[(at + seed) % 4] if size[1] < 60 else 2
        shape = ConvShape(1, *size, ic, *out, ic * (1 + at % 2), *kernel, *stride, *dilation, *pad, ic)
        cases.append(depthwise_case(rng, shape, KINDS[(at + 3 * seed) % len(KINDS)]))
    return cases


@pytest.mark.parametrize("seed", range(3))
def test_long_depthwise_kernels_on_the_host(seed: int, tmp_path: Path) -> None:
    run_host(long_depthwise_cases(seed), tmp_path)


@needs_qemu
@pytest.mark.parametrize("seed", range(3))
def test_long_depthwise_kernels(seed: int, tmp_path: Path) -> None:
    cases = long_depthwise_cases(seed)
    found = {n for case in cases for n in re.findall(r"(\d) outputs share", case.code.note)}
    assert found >= {"4", "6"}, found
    run_board(cases, tmp_path, "m4")


def test_small_depthwise_kernels_on_the_host(tmp_path: Path) -> None:
    run_host(small_depthwise_cases(1), tmp_path)


@needs_qemu
def test_small_depthwise_kernels(tmp_path: Path) -> None:
    cases = [*small_depthwise_cases(2), *small_depthwise_cases(3)]
    text = "".join(helper for case in cases for helper in case.code.helpers)
    found = set(re.findall(r"void depthwise(\dx\d)_", text))
    assert found >= {f"{u}x{v}" for u in (1, 2, 3) for v in (2, 3)}, found
    assert re.search(r"void depthwise\dx3_\w+_d\d_[2-4]_", text)
    run_board(cases, tmp_path, "m4")


def few_outputs(seed: int) -> list[Case]:
    """One to three outputs of a channel, along either axis; windows of several rows; channels beyond
    fours.
    """
    rng = np.random.default_rng(seed)
    cases = []
    for at, kind in enumerate(KINDS * 3):
        taps, outputs, stride, dilation = 2 + (at + seed) % 9, 1 + at % 3, 1 + at % 2, 1 + at // 3 % 2
        reach, channels, more = (taps - 1) * dilation + 1, int(rng.integers(4, 14)), int(rng.integers(0, 3))
        size = (outputs - 1) * stride + reach + more
        sizes = [(1, size), (1, outputs), (1, taps), (1, stride), (1, dilation)]
        if at % 3 == 0:  # whole rows
            sizes = [(2 + more, taps), (1, 1), (2, taps), (1, 1), (1, 1)]
        elif at % 2:
            sizes = [(b, a) for a, b in sizes]
        image, out, *window = sizes
        shape = ConvShape(
            1 + at % 2, *image, channels, *out, channels, *window[0], *window[1], *window[2], groups=channels
        )
        cases.append(depthwise_case(rng, shape, kind, paired=True))
    assert sum("depthwise4_" in "".join(case.code.helpers) for case in cases) > 10
    return cases


@pytest.mark.parametrize("seed", SEEDS)
def test_few_outputs_of_a_channel_on_the_host(seed: int, tmp_path: Path) -> None:
    run_host(few_outputs(seed), tmp_path)


@needs_qemu
@pytest.mark.parametrize("core", ["m4", "m7"])
def test_few_outputs_of_a_channel(core: str, tmp_path: Path) -> None:
    run_board(few_outputs(7) + few_outputs(8), tmp_path, core)


def one_channel_cases(seed: int) -> list[Case]:
    """Convolutions of one channel as depthwise ones: every form of requantisation and of tail, in strips and
    whole, and some that nobody would compute so.
    """
    rng, cases = np.random.default_rng(seed), []
    strips = 0
    for turn in range(24):
        shape = replace(random_shape(rng, depthwise=False), in_c=1, out_c=int(rng.integers(1, 10)))
        if turn % 4 == 0:
            tall = int(rng.integers(30, 60))
            shape = replace(shape, in_h=tall, in_w=47, out_h=(tall - shape.tall) // shape.stride_h + 1,
                            out_w=(47 - shape.wide) // shape.stride_w + 1, pad_top=0, pad_left=0)  # fmt: skip
        w = some_weights(rng, (shape.out_c, shape.kernel_h, shape.kernel_w, 1))
        quant = quantisation(rng, shape.out_c, w[0].size, KINDS[turn % len(KINDS)])
        w, quant = with_zero_point(rng, w, quant, False)
        bias, x = some_bias(rng, shape.out_c), some_input(rng, shape, quant)
        tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.3 else None
        taps = np.ascontiguousarray(w[..., 0].transpose(1, 2, 0))
        least = depthwise_dsp.one_channel(shape, taps, bias, quant, tail)
        assert sum(piece.nbytes for piece in least.scratch) < 1 << 12
        code = least
        if least.wish is not None:
            strips += 1
            code = depthwise_dsp.one_channel(
                shape, taps, bias, quant, tail, room=least.wish * (turn % 8 // 4)
            )
        cases.append(finished(code, x, arithmetic.conv(x, w, bias, shape, quant), quant, tail))
    assert strips > 1
    return cases


@pytest.mark.parametrize("seed", SEEDS)
def test_one_channel_on_the_host(seed: int, tmp_path: Path) -> None:
    run_host(one_channel_cases(seed), tmp_path)


@needs_qemu
@pytest.mark.parametrize("core", ["m4", "m7"])
def test_one_channel(core: str, tmp_path: Path) -> None:
    run_board(one_channel_cases(7) + one_channel_cases(8), tmp_path, core)


@needs_qemu
def test_three_by_three_in_strips(tmp_path: Path) -> None:
    """Planes that are too large for scratch memory: strips of lines, the last of which begins earlier, unless
    a tail may see each output only once; both strides, both lengths of a block, weights in registers.
    """
    rng = np.random.default_rng(33)
    cases = []
    for at, kind in enumerate(KINDS * 2):
        stride, lines, columns = 1 + at % 2, 9 + at, 5 + at * 3 % 4
        edges = (lines * stride, columns * stride, 3, lines, columns, 3)
        shape = ConvShape(1, *edges, 3, 3, stride, stride, 1, 1, 1, 1, 3)
        quant = quantisation(rng, 3, 9, kind)
        w, bias, x = some_weights(rng, (3, 3, 3)), some_bias(rng, 3), some_input(rng, shape, quant)
        tail = TableTail(shape, quant.out_range[0]) if at % 3 == 2 else None
        kernel = depthwise_dsp.depthwise(shape, w, bias, quant, tail, 130, at % 4 < 2, 1 if at % 3 else None)
        assert "strip" in kernel.body and "depthwise3x3_" in kernel.body
        cases.append(finished(kernel, x, arithmetic.depthwise(x, w, bias, shape, quant), quant, tail))
    run_board(cases, tmp_path, "m4")


@needs_qemu
@pytest.mark.parametrize("core", ["m0", "m3", "m7"])
def test_other_cores(core: str, tmp_path: Path) -> None:
    run_board(plain_cases(9) + dsp_cases(9), tmp_path, core)


def large_multipliers(rng: np.random.Generator, most: int) -> list[Case]:
    """Depthwise layers with multipliers of up to 2^most, of 3x3 and of other kernels, one for all channels or
    one for each.
    """
    cases = []
    for at, kind in enumerate(("relu", "signed", "tensor", "spread", "unsigned", "extreme") * 2):
        size = (3, 3) if at % 2 else (1, 5)
        shape = ConvShape(1, 8, 9 + at, 5, 8, 9 + at, 5, *size, 1, 1, 1, 1, size[0] // 2, size[1] // 2, 5)
        quant = quantisation(rng, 5, 9, kind)
        first = np.arange(quant.shift.size) == 0
        quant = replace(quant, shift=np.where(first, most, quant.shift).astype(np.int32))
        w = rng.integers(-2, 3, (*size, 5)).astype(np.int8)
        w[size[0] // 2, size[1] // 2, 0] = 127  # from one end to the other
        bias, x = rng.integers(-20, 20, 5).astype(np.int32), some_input(rng, shape, quant)
        kernel = depthwise_dsp.depthwise(shape, w, bias, quant, None, 6144, at % 3 > 0, 1 if at % 4 else None)
        cases.append(finished(kernel, x, arithmetic.depthwise(x, w, bias, shape, quant), quant, None))
    assert sum("raw" not in case.code.note for case in cases) >= 6, [case.code.note for case in cases]
    return cases


@pytest.mark.parametrize("most", [0, 1, 3])
def test_multipliers_of_a_half_and_more(most: int, tmp_path: Path) -> None:
    run_host(large_multipliers(np.random.default_rng(most), most), tmp_path)


@needs_qemu
def test_multipliers_of_a_half_and_more_on_a_core(tmp_path: Path) -> None:
    run_board(large_multipliers(np.random.default_rng(9), 2), tmp_path, "m4")


def executed(schedule: list[dsp.Step], values: dict[str, np.ndarray]) -> None:
    """Runs operations on arrays of int32 by what the table says that they compute."""
    for step in schedule:
        assert isinstance(step, dsp.Op)
        operands = [values[o] if isinstance(o, str) else np.asarray(o, np.int64) for o in step.operands]
        result = dsp.DSP.instructions[step.name].meaning(*operands)
        values[step.to] = (result + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("align", [0, 8])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_ties_to_even_by_a_power_of_two_take_no_multiplication(align: int, dtype: str) -> None:
    """Against fractions: every accumulator of the smaller layers, ties and their neighbours of the larger."""
    rng, (low, high) = np.random.default_rng(4), (-128, 127) if dtype == "int8" else (0, 255)
    for places in (1, 2, 5, 9, 14):
        for zero in (low, low + 1, 0, 7, high):
            ends = (low, high) if zero % 3 else (low + 20, high - 9)
            most = min(400 << places, ((1 << 31) - 1 >> align) - (260 << places))
            multiplier, shift = 1 << 29, 31 - 29 - places
            quant = QuantSpec(0, np.array([multiplier], np.int32), np.array([shift], np.int32), zero, *ends,
                              out_dtype=dtype, rounding="even")  # fmt: skip
            limits = np.array([-most]), np.array([most])
            rq = requantise.plan(quant, *limits, np.array([align]))
            assert rq.form == "halved" and numbers_of(rq).size == 0
            every = np.arange(-most, most + 1, max(1, most // 3000))
            halves = ((2 * rng.integers(-200, 200, 60) + 1) << places >> 1)[:, None] + np.arange(-1, 2)
            acc = np.unique(np.concatenate([every, halves.reshape(-1)]))
            acc = acc[np.abs(acc) <= most]
            want = [arithmetic.rescale(int(v), multiplier, shift, "even") + zero for v in acc]
            for clamp in (False, True):
                values = {"a": (acc + rq.bias_shift[0]) << align}
                executed(finish.requantise(rq, ("a",), align, dtype, ("", "", "t", ""), [], clamp), values)
                assert (values["a"] == np.clip(want, *ends)).all(), (places, zero, clamp)


def test_ties_to_even_that_take_a_multiplication() -> None:
    def form(multipliers: list[int], shifts: list[int], most: int = 1000, align: int = 0) -> str:
        m, s = (np.array(v, np.int32) for v in (multipliers, shifts))
        quant = QuantSpec(0, m, s, 3, -128, 127, rounding="even")
        count = max(m.size, s.size)
        limits = np.full(count, -most), np.full(count, most)
        return requantise.plan(quant, *limits, np.full(count, align)).form

    half, moved = 1 << 30, (1 << 7) - 1 + (4 << 8) + (1 << 8)
    assert form([half, half], [-7, -7]) == "halved" and form([half], [-7]) == "halved"
    assert form([half, half], [-7, -6]) == form([3 << 29], [-6]) == form([half], [1]) == "raw"
    for align in (0, 8):
        most = ((1 << 31) - 1 >> align) - moved
        assert form([half], [-7], most, align) == "halved" and form([half], [-7], most + 1, align) == "raw"


@pytest.mark.parametrize("kind", ["relu", "signed", "spread", "tensor"])
def test_forms_equal_the_rule_over_the_whole_range(kind: str) -> None:
    """Each form against the rule at every accumulator near a step and at many others."""
    rng = np.random.default_rng(3)
    for align, rounded in ((0, True), (8, True), (0, False)):
        quant = quantisation(rng, 24, 64, kind)
        lo = rng.integers(-(2**20), 0, 24)
        hi = rng.integers(1, 2**20, 24)
        rq = requantise.plan(quant, lo, hi, np.full(24, align), rounded)
        if rq.form == "raw":
            continue
        m, s = quant.channels(24)
        for c in range(24):
            acc = np.unique(
                np.concatenate([np.arange(lo[c], hi[c] + 1, 37), np.arange(-3000, 3000), [lo[c], hi[c]]])
            )
            acc = acc[(acc >= lo[c]) & (acc <= hi[c])]
            want = np.clip(
                requantise.rescale(acc, m[c], s[c], quant.rounding) + quant.out_zero_point,
                quant.act_min,
                quant.act_max,
            )
            shift = int(rq.shift[c])
            if rq.form == "affine":
                high = (((acc + rq.bias_shift[c]) << align) * rq.multiplier[c] + (rounded << 31)) >> 32
                got = (high + rq.offset[c]) >> (shift + align)
            else:
                high = (2 * acc * rq.multiplier[c] + (1 << 31)) >> 32
                got = (high + rq.offset[c] - (acc < 0)) >> shift
            low, top = quant.out_range
            got = np.clip(
                got,
                low if rq.clamp_low is None else rq.clamp_low,
                top if rq.clamp_high is None else rq.clamp_high,
            )
            assert (got == want).all()
