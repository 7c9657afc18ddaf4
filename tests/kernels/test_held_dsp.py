"""Pointwise convolutions of few channels with two pixels in registers, against the numpy model of the
arithmetic.
"""

from __future__ import annotations

from pathlib import Path

import arithmetic
import numpy as np
import pytest
from int8_cases import (
    KINDS,
    TableTail,
    finished,
    quantisation,
    some_bias,
    some_input,
    some_weights,
    with_zero_point,
)
from kernel_program import Case, run_board, run_host

from aot_model.cycles.rules import memory_of
from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.int8 import conv_dsp, held_dsp
from aot_model.kernels.reading import UNKNOWN, Reading
from qemu import available

needs_qemu = pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
FAST, SLOW = Reading(memory_of("0ws")), Reading(memory_of("l4-art"), room=1 << 20)


def cases(seed: int, count: int = 56) -> list[Case]:
    """Every number of channels in with results of one channel to several blocks, far ones among them; one
    pixel to several fours, of several images; every form of requantisation, with and without a tail, with
    weights that have a zero point, with constants that are copied.
    """
    rng = np.random.default_rng(seed)
    found, texts = [], []
    for turn in range(count):
        ins, outs = 2 + turn % 7, (1, 2, 3, 4, 5, 8, 11, 1300)[turn % 8]
        pixels = (2, 3, 4, 5, 6, 7, 9, 12, 1)[turn % 9] if outs < 100 else 3
        shape = ConvShape(1 + turn % 2, 1, pixels, ins, 1, pixels, outs)
        if shape.one_row:
            continue
        weights = some_weights(rng, (outs, 1, 1, ins))
        quant = quantisation(rng, outs, ins, KINDS[turn % len(KINDS)])
        weights, quant = with_zero_point(rng, weights, quant, False)
        bias, x = some_bias(rng, outs), some_input(rng, shape, quant)
        tail = TableTail(shape, quant.out_range[0]) if turn % 5 == 3 and outs < 100 else None
        code = conv_dsp.conv(shape, weights, bias, quant, tail, SLOW if turn % 3 == 1 else FAST)
        texts += [helper for helper in code.helpers if "held_" in helper]
        found.append(finished(code, x, arithmetic.conv(x, weights, bias, shape, quant), quant, tail))
    assert len(texts) > count // 2
    for part in ("_affine_", "_ties_", "_ties_v_", "spilled", "uint8_t *x", "n < 650"):
        assert any(part in text for text in texts), part
    assert any("memcpy(staged" in case.code.body for case in found)
    return found


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small layers, too, and copies of what fits a cache."""
    monkeypatch.setattr(held_dsp, "LEAST_SAVING", -1e9)
    monkeypatch.setattr(Reading, "waits", lambda self, nbytes: self.memory is SLOW.memory)


@pytest.mark.parametrize("seed", range(4))
def test_host(seed: int, tmp_path: Path, eager: None) -> None:
    run_host(cases(seed), tmp_path)


@needs_qemu
@pytest.mark.parametrize(("core", "level"), [("m4", "-O2"), ("m4", "-O3"), ("m7", "-Os"), ("m33", "-O0")])
def test_cores(core: str, level: str, tmp_path: Path, eager: None) -> None:
    run_board(cases(7), tmp_path, core, (level,))


def code_of(reading: Reading, pixels: int = 100, ins: int = 8, outs: int = 16) -> KernelCode:
    shape = ConvShape(1, 1, pixels, ins, 1, pixels, outs)
    rng = np.random.default_rng(2)
    weights = rng.integers(-127, 128, (outs, 1, 1, ins)).astype(np.int8)
    return conv_dsp.conv(shape, weights, None, quantisation(rng, outs, ins, "relu"), None, reading)


def test_where_it_is_worth_its_code() -> None:
    assert "held_int8_8x16" in code_of(FAST).body
    assert "held" not in code_of(FAST, pixels=20).body
    assert "held" not in code_of(FAST, ins=9).body
    assert "held" not in code_of(Reading(memory_of("0ws"), compact=True)).body
    assert "held" not in code_of(UNKNOWN).body
    assert "held" in code_of(UNKNOWN, outs=8).body  # its constants fit small caches


def test_constants_that_wait_are_copied_or_read_less_often() -> None:
    code = code_of(SLOW, pixels=400)
    assert "held" in code.body and "memcpy(staged" in code.body
    least = code_of(Reading(SLOW.memory), pixels=400)
    assert "held_" not in least.body and least.wish is not None
    assert code.wish == sum(s.nbytes for s in code.scratch) >= least.wish
    assert "held" not in code_of(SLOW, pixels=30).body
    assert "staged" not in code_of(SLOW, pixels=400, outs=4).body


@needs_qemu
def test_instructions_of_a_result(tmp_path: Path) -> None:
    """Of layers of 100 pixels to 16 channels, with all that is around them."""
    found = []
    rng = np.random.default_rng(3)
    for ins in (4, 8):
        shape = ConvShape(1, 1, 100, ins, 1, 100, 16)
        weights = some_weights(rng, (16, 1, 1, ins))
        quant = quantisation(rng, 16, ins, "relu")
        x = some_input(rng, shape, quant)
        code = conv_dsp.conv(shape, weights, None, quant, None, FAST)
        assert "_affine_" in code.body
        found.append(finished(code, x, arithmetic.conv(x, weights, None, shape, quant), quant, None))
    four, eight = (count / 1600 for count in run_board(found, tmp_path, "m4"))
    assert 8 < four <= 12 and 11 < eight <= 15
