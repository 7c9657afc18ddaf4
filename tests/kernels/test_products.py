"""Convolutions four channels at a time, and with weights that are copied to RAM, against the numpy model of
the arithmetic; and when copies pay.
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
    random_shape,
    some_bias,
    some_input,
    some_weights,
)
from kernel_program import Case, run_board, run_host

from aot_model.cycles.rules import memory_of
from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.int8 import conv_dsp, products_dsp
from aot_model.kernels.reading import Reading
from qemu import available

needs_qemu = pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
FAST, SLOW = memory_of("0ws"), memory_of("l4-art")


def staged_bytes(code: KernelCode) -> int:
    return sum(piece.nbytes for piece in code.scratch if piece.name == "staged")


def random_cases(seed: int, count: int) -> list[Case]:
    """Every form of requantisation and of tail; all, some or none of the weights copied."""
    rng = np.random.default_rng(seed)
    cases = []
    for turn in range(count):
        shape = random_shape(rng, depthwise=False)
        channels = int(rng.choice([4, 5, 8, 9, 13, 16]))
        shape = ConvShape(**{**vars(shape), "out_c": channels})
        weights = some_weights(rng, (channels, shape.kernel_h, shape.kernel_w, shape.in_c))
        quant = quantisation(rng, channels, weights[0].size, KINDS[turn % len(KINDS)])
        bias = some_bias(rng, channels)
        x = some_input(rng, shape, quant)
        tail = TableTail(shape, quant.out_range[0]) if rng.random() < 0.25 else None
        memory = (FAST, SLOW, SLOW)[turn % 3]
        least = conv_dsp.conv(shape, weights, bias, quant, tail, Reading(memory, turn % 4 > 0))
        room = 0 if least.wish is None else least.wish + int(rng.integers(0, 4)) * weights.nbytes // 3
        code = conv_dsp.conv(shape, weights, bias, quant, tail, Reading(memory, turn % 4 > 0, room))
        assert sum(piece.nbytes for piece in code.scratch) <= max(room, sum(p.nbytes for p in least.scratch))
        assert (staged_bytes(code) > 0) == (room > 0)
        cases.append(finished(code, x, arithmetic.conv(x, weights, bias, shape, quant), quant, tail))
    assert sum("dot2x4" in case.code.body for case in cases) > count // 4
    assert sum("staged" in case.code.body for case in cases) > count // 4
    assert all(any(f"left == {left}" in case.code.body for case in cases) for left in (1, 2))
    return cases


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies and kernels for one pixel for small layers too."""
    monkeypatch.setattr(products_dsp, "LEAST_SINGLE", 0)
    monkeypatch.setattr(products_dsp, "LEAST_SHARE", 0)
    monkeypatch.setattr(products_dsp, "LEAST_SAVING", -1e9)
    monkeypatch.setattr(Reading, "waits", lambda self, nbytes: self.memory is SLOW)


def test_host(tmp_path: Path, eager: None) -> None:
    run_host(random_cases(0, 21), tmp_path)


def odd_pixels(seed: int) -> list[Case]:
    """One pixel behind the last four, or alone: every form of requantisation, with and without a tail, of
    channels in pairs, odd or fewer than two.
    """
    rng = np.random.default_rng(seed)
    cases = []
    for turn, kind in enumerate(KINDS * 3):
        ins, outs, pixels = int(rng.integers(1, 40)), (1, 2, 5, 8, 11)[turn % 5], (9, 5, 13, 1)[turn % 4]
        wide = int(turn % 3 == 0)
        shape = ConvShape(1 + turn % 2, 1, pixels, ins, 1, pixels, outs, 1, 1 + 2 * wide, pad_left=wide)
        weights = some_weights(rng, (outs, 1, shape.kernel_w, ins))
        quant = quantisation(rng, outs, weights[0].size, kind)
        bias, x = some_bias(rng, outs), some_input(rng, shape, quant)
        tail = TableTail(shape, quant.out_range[0]) if turn % 4 == 3 else None
        code = conv_dsp.conv(shape, weights, bias, quant, tail, Reading(None, turn % 3 > 0))
        cases.append(finished(code, x, arithmetic.conv(x, weights, bias, shape, quant), quant, tail))
    assert sum("dot1x2" in case.code.body for case in cases) > len(cases) // 3
    return cases


def test_one_pixel_behind_the_last_four(tmp_path: Path, eager: None) -> None:
    run_host(odd_pixels(1), tmp_path)


@needs_qemu
def test_one_pixel_behind_the_last_four_on_a_core(tmp_path: Path, eager: None) -> None:
    run_board(odd_pixels(2), tmp_path, "m4")


def test_one_pixel_has_a_kernel_where_it_is_worth_its_code() -> None:
    def code_of(edge: int, channels: int, compact: bool = False) -> str:
        shape, weights = layer(edge, channels, channels)
        quant = quantisation(np.random.default_rng(1), channels, channels, "relu")
        return conv_dsp.conv(shape, weights, None, quant, None, Reading(compact=compact)).body

    assert "dot1x2" in code_of(3, 128)
    assert "dot1x2" not in code_of(3, 128, compact=True)  # code is to be small
    assert "dot1x2" not in code_of(3, 16)  # too few channels
    assert "dot1x2" not in code_of(9, 128)  # one pixel in 81
    assert "dot1x2" not in code_of(4, 128)  # none is left


@needs_qemu
@pytest.mark.parametrize(("core", "level"), [("m4", "-O2"), ("m33", "-Os")])
def test_cores(core: str, level: str, tmp_path: Path, eager: None) -> None:
    run_board(random_cases(7, 21), tmp_path, core, (level,))


def layer(edge: int = 12, ins: int = 32, outs: int = 32) -> tuple[ConvShape, np.ndarray]:
    shape = ConvShape(1, edge, edge, ins, edge, edge, outs)
    return shape, np.random.default_rng(1).integers(-127, 128, (outs, 1, 1, ins)).astype(np.int8)


def code_of(reading: Reading, edge: int = 12, ins: int = 32, outs: int = 32) -> KernelCode:
    shape, weights = layer(edge, ins, outs)
    quant = quantisation(np.random.default_rng(2), outs, ins, "relu")
    return conv_dsp.conv(shape, weights, None, quant, None, reading)


def test_without_a_memory_nothing_changes() -> None:
    code = code_of(Reading())
    assert code.wish is None and "dot4x2" in code.body and "dot2x4" not in code.body
    same = code_of(Reading(None, True, 1 << 20))
    assert same.body == code.body and np.array_equal(same.constants[0].data, code.constants[0].data)


def test_fast_memory_needs_no_copies() -> None:
    for name in ("0ws", "tcm"):
        code = code_of(Reading(memory_of(name), True, 1 << 20))
        assert code.wish is None and "dot2x4" in code.body and not staged_bytes(code)
    # a cache before all memory is before RAM, too
    assert not staged_bytes(code_of(Reading(memory_of("m7-cache"), False, 1 << 20)))


def test_what_is_read_once_is_not_copied() -> None:
    assert code_of(Reading(SLOW, True, 1 << 20), edge=2).wish is None
    assert code_of(Reading(SLOW, True, 1 << 20)).wish is not None


def test_what_fits_the_cache_of_the_flash_is_not_copied() -> None:
    code = code_of(Reading(SLOW, True, 1 << 20), ins=12, outs=4)
    assert code.wish is None and "dot2x4" in code.body


def test_more_room_more_copies() -> None:
    least = code_of(Reading(SLOW, True)).wish
    assert least is not None
    sizes = [staged_bytes(code_of(Reading(SLOW, True, room))) for room in range(least - 1, least + 4000, 100)]
    assert sizes == sorted(sizes) and sizes[0] == 0 and len(set(sizes)) > 4
    [weights] = code_of(Reading(SLOW, True, 1 << 20)).constants
    assert sizes[-1] == weights.data.nbytes
