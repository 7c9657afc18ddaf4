"""The int8 kernels of hosts against the numpy model of the arithmetic, under the sanitizers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import arithmetic
import numpy as np
import pytest
import qemu_int8
from qemu_int8 import Case
from test_int8_dsp import KINDS, TableTail, finished, quantisation, random_shape, some_bias, some_input, some_weights

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8 import conv_host, depthwise_host
from aot_model.kernels.int8.host_dialect import AVX2, HostDialect

SEEDS = range(4)


def conv_case(rng: np.random.Generator, shape: ConvShape, kind: str, dialect: HostDialect = AVX2) -> Case:
    w = some_weights(rng, (shape.out_c, shape.kernel_h, shape.kernel_w, shape.in_c // shape.groups))
    quant = quantisation(rng, shape.out_c, w[0].size, kind)
    if rng.random() < 0.1:
        w = rng.integers(0, 256, w.shape).astype(np.uint8)
        quant = replace(quant, weight_zero_point=int(rng.choice([1, 128, 255])))
    bias = some_bias(rng, shape.out_c)
    x = some_input(rng, shape, quant)
    tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
    kernel = conv_host.conv(shape, w, bias, quant, tail, dialect)
    return finished(kernel, x, arithmetic.conv(x, w, bias, shape, quant), quant, tail)


def depthwise_case(rng: np.random.Generator, shape: ConvShape, kind: str) -> Case:
    w = some_weights(rng, (shape.kernel_h, shape.kernel_w, shape.out_c))
    quant = quantisation(rng, shape.out_c, shape.kernel_h * shape.kernel_w, kind)
    bias = some_bias(rng, shape.out_c)
    x = some_input(rng, shape, quant)
    tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
    kernel = depthwise_host.depthwise(shape, w, bias, quant, tail)
    return finished(kernel, x, arithmetic.depthwise(x, w, bias, shape, quant), quant, tail)


def cases(seed: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    found = []
    for kind in KINDS:
        found.append(conv_case(rng, random_shape(rng, depthwise=False), kind))
        found.append(conv_case(rng, replace(random_shape(rng, depthwise=False), out_c=int(rng.integers(9, 40))), kind))
        n, c = int(rng.integers(1, 40)), int(rng.choice([1, 3, 4, 6, 16, 20]))
        oc = int(rng.choice([1, 2, 5, 8, 16, 24, 33, 64, 80]))
        found.append(conv_case(rng, ConvShape(1, 1, n, c, 1, n, oc), kind))
        found.append(conv_case(rng, ConvShape(2, 3, 4, 12, 3, 4, 6, groups=3), kind))
        found.append(depthwise_case(rng, random_shape(rng, depthwise=True), kind))
        ch = int(rng.choice([1, 8, 16, 24, 40]))
        found.append(depthwise_case(rng, ConvShape(1, 5, 7, ch, 5, 7, ch, 3, 3, 1, 1, 1, 1, 1, 1, ch), kind))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_host(seed: int, tmp_path: Path) -> None:
    qemu_int8.run_host(cases(seed), tmp_path, ("-O1", "-march=native"))
