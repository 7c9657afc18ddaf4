"""Convolutions whose weights of 4 bits are read where they lie, against the numpy model of the arithmetic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import arithmetic
import numpy as np
import pytest
from int8_cases import KINDS, TableTail, finished, quantisation, random_shape, some_bias, some_input
from kernel_program import Case, run_board, run_host

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8 import conv_c, depthwise_c, nibbles_dsp
from aot_model.kernels.int8.spec import QuantSpec
from qemu import available

needs_qemu = pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")


def short(quant: QuantSpec, channels: int) -> QuantSpec:
    """The same with multipliers that are odd multiples of 2^-16: for such no sum is a tie."""
    m, s = quant.channels(channels)
    odd = np.maximum(np.rint(m * 2.0 ** (s + 16 - 31)), 1).astype(np.int64) | 1
    fraction, exponent = np.frexp(odd / 2.0**16)
    return replace(quant, multiplier=np.rint(fraction * 2**31).astype(np.int32),
                   shift=exponent.astype(np.int32))  # fmt: skip


def some_shape(rng: np.random.Generator, turn: int) -> ConvShape:
    if turn % 5 == 0:  # matrix products, of one row too
        rows, ins = (1, 2, 3, 5, 17)[turn // 5 % 5], int(rng.integers(1, 150))
        return ConvShape(1, 1, rows, ins, 1, rows, 4)
    return random_shape(rng, depthwise=False)


def random_cases(seed: int, count: int) -> list[Case]:
    """Every form of requantisation and of tail, channels beyond a multiple of four, weights with and without
    a sign and with a zero point; sums of more inputs than a word holds."""
    rng = np.random.default_rng(seed)
    cases, forms = list[Case](), set[str]()
    for turn in range(count):
        channels = int(rng.choice([4, 5, 7, 8, 10, 12]))
        shape = replace(some_shape(rng, turn), out_c=channels)
        low, high = (-8, 7) if turn % 3 else (0, 15)
        drawn = rng.integers(low, high + 1, (channels, shape.kernel_h, shape.kernel_w, shape.in_c))
        weights = drawn.astype(np.int8 if turn % 3 else np.uint8)
        weights[0] = rng.choice([low, 0, high])  # sums as far as they go, filters of zeros
        quant = quantisation(rng, channels, weights[0].size, KINDS[turn % len(KINDS)])
        quant = replace(quant, shift=np.minimum(quant.shift + 4, 6).astype(np.int32))  # weights are so small
        quant = replace(quant, rounding="even" if turn % 3 else "single")  # as ONNX has it; as LiteRT, too
        quant = short(quant, channels) if turn % 2 else quant
        quant = replace(quant, weight_zero_point=int(rng.integers(low, high + 1)) if turn % 4 == 0 else 0)
        bias, x = some_bias(rng, channels), some_input(rng, shape, quant)
        tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
        code = nibbles_dsp.conv(shape, weights, bias, quant, tail)
        if code is not None:
            forms.add(code.note.rpartition(" ")[2])
            want = arithmetic.conv(x, weights, bias, shape, quant)
            cases.append(finished(code, x, want, quant, tail))
    assert forms == {"short", "affine"} and len(cases) > 0.4 * count
    return cases


@pytest.mark.parametrize("seed", range(3))
def test_host(seed: int, tmp_path: Path) -> None:
    run_host(random_cases(seed, 40), tmp_path)


@needs_qemu
@pytest.mark.parametrize(("core", "level"), [("m4", "-O2"), ("m33", "-Os")])
def test_cores(core: str, level: str, tmp_path: Path) -> None:
    run_board(random_cases(9, 40), tmp_path, core, (level,))


def plain_cases(seed: int, count: int) -> list[Case]:
    """Loops in plain C: of weights two in a byte, and by channel."""
    rng = np.random.default_rng(seed)
    cases, forms = list[Case](), set[str]()
    for turn in range(count):
        by_channel = turn % 2 == 1
        shape = random_shape(rng, depthwise=by_channel)
        if not by_channel:
            shape = replace(shape, out_c=int(rng.choice([1, 2, 5, 8])))
        size = (shape.out_c, shape.kernel_h, shape.kernel_w, shape.in_c // shape.groups)
        weights = (
            rng.integers(-8, 8, size).astype(np.int8)
            if turn % 5
            else rng.integers(0, 16, size).astype(np.uint8)
        )
        quant = quantisation(rng, shape.out_c, weights[0].size, KINDS[turn % len(KINDS)])
        quant = replace(quant, shift=np.minimum(quant.shift + 4, 0).astype(np.int32), rounding="even")
        quant = short(quant, shape.out_c) if turn % 3 else quant
        bias, x = some_bias(rng, shape.out_c), some_input(rng, shape, quant)
        tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
        if by_channel:
            taps = np.ascontiguousarray(weights[..., 0].transpose(1, 2, 0))
            code = depthwise_c.depthwise(shape, taps, bias, quant, tail, nibbles=True)
        else:
            code = conv_c.conv(shape, weights, bias, quant, tail, nibbles=True)
        forms.add(code.note.split("requantisation: ")[1].split(";")[0])
        want = arithmetic.conv(x, weights, bias, shape, quant)
        cases.append(finished(code, x, want, quant, tail))
    assert {"short", "affine"} <= forms
    return cases


def test_plain_c_on_the_host(tmp_path: Path) -> None:
    run_host(plain_cases(3, 40), tmp_path)


@needs_qemu
def test_plain_c_on_a_core(tmp_path: Path) -> None:
    run_board(plain_cases(4, 30), tmp_path, "m0")


def layer(channels: int, taps: int, rows: int = 8) -> tuple[ConvShape, np.ndarray, QuantSpec]:
    shape = ConvShape(1, 1, rows, taps, 1, rows, channels)
    weights = np.random.default_rng(1).integers(-8, 8, (channels, 1, 1, taps)).astype(np.int8)
    factor = np.full(channels, 1233 << 20, np.int32), np.full(channels, -5, np.int32)
    quant = QuantSpec(0, *factor, 0, -128, 127, rounding="even")
    return shape, weights, quant


def test_half_the_bytes_and_eight_a_channel() -> None:
    """Where multipliers have few bits; else ten a channel."""
    shape, weights, quant = layer(16, 64)
    for multiplier, numbers in ((1233 << 20, 8), (1290000001, 10)):
        code = nibbles_dsp.conv(shape, weights, None,
                                replace(quant, multiplier=np.full(16, multiplier, np.int32)))  # fmt: skip
        assert code is not None
        [stream] = code.constants
        assert stream.data.nbytes == 16 * (64 // 2 + numbers)


def test_what_is_left_to_other_kernels() -> None:
    assert nibbles_dsp.conv(*layer(3, 8)[:2], None, layer(3, 8)[2]) is None  # three channels
    assert nibbles_dsp.conv(*layer(4, 128, 1)[:2], None, layer(4, 128, 1)[2]) is None  # a long row alone
    assert nibbles_dsp.conv(*layer(4, 120, 1)[:2], None, layer(4, 120, 1)[2]) is not None
    shape, weights, quant = layer(4, 8)
    assert nibbles_dsp.conv(shape, weights, None, replace(quant, weight_zero_point=8)) is None  # of int4: 16
    assert nibbles_dsp.conv(shape, weights, None, QuantSpec.accumulators(0, "int8", 0)) is None
