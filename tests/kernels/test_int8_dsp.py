"""Every int8 kernel against the numpy model of the arithmetic: on the host under sanitizers, in QEMU on
Cortex-M.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from int8_cases import KINDS, conv_case, depthwise_case, pool_case, random_shape, row_case
from kernel_program import Case, run_board, run_host

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8 import patch_dsp
from qemu import available
from turns import in_turn

SEEDS = range(4)
needs_qemu = pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")


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


@pytest.mark.parametrize("seed", in_turn(list(SEEDS), 2))
def test_host(seed: int, tmp_path: Path) -> None:
    run_host(dsp_cases(seed) + plain_cases(seed), tmp_path)


@needs_qemu
@pytest.mark.parametrize(("seed", "level"), [*((seed, "-O2") for seed in SEEDS), (0, "-Os"), (0, "-O0")])
def test_cortex_m4(seed: int, level: str, tmp_path: Path) -> None:
    run_board(dsp_cases(seed), tmp_path, "m4", (level,))


@needs_qemu
@pytest.mark.parametrize("core", in_turn(["m0", "m3", "m7"], 3))
def test_other_cores(core: str, tmp_path: Path) -> None:
    run_board(plain_cases(9) + dsp_cases(9), tmp_path, core)
