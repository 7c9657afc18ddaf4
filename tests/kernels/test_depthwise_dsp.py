"""The schedules of depthwise int8 kernels with the DSP extension, each on the layers that it is for: on the
host under sanitizers, in QEMU on Cortex-M.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import arithmetic
import numpy as np
import pytest
from int8_cases import (
    KINDS,
    TableTail,
    depthwise_case,
    finished,
    quantisation,
    random_shape,
    some_bias,
    some_input,
    some_weights,
    with_zero_point,
)
from kernel_program import Case, run_board, run_host

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8 import depthwise_dsp
from qemu import available
from turns import in_turn

SEEDS = range(4)
needs_qemu = pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")


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


@pytest.mark.parametrize("seed", in_turn([0, 1, 2], 3))
def test_long_depthwise_kernels_on_the_host(seed: int, tmp_path: Path) -> None:
    run_host(long_depthwise_cases(seed), tmp_path)


@needs_qemu
@pytest.mark.parametrize("seed", in_turn([0, 1, 2], 3))
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
