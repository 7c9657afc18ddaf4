"""Limits of int8 kernels that are met exactly, and passed by one: what integers and immediates hold, and what
is chosen by a number. As test_exact_limits.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from aot_model.cycles.rules import memory_of
from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.int8 import (
    affine_sum,
    conv_dsp,
    conv_mve,
    depthwise_steps_dsp,
    depthwise_taps_mve,
    finish,
    gemm_dsp,
    held_dsp,
    nibbles,
    nibbles_dsp,
    requantise,
    requantise_mve,
    winograd,
)
from aot_model.kernels.int8.affine_sum import Rescaling
from aot_model.kernels.int8.depthwise_pairs_dsp import Pairs, reaches
from aot_model.kernels.int8.depthwise_steps_dsp import _Steps
from aot_model.kernels.int8.plane import Axis, Plane, PlaneLoops
from aot_model.kernels.int8.requantise import RequantisePlan
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.reading import Reading

HALF = 1 << 30
INT32 = (1 << 31) - 1


def _quant(shift: int = -8, **changes: Any) -> QuantSpec:
    one = np.full(1, HALF, np.int32), np.full(1, shift, np.int32)
    return replace(QuantSpec(0, *one, 0, -128, 127), **changes)


def _accumulators() -> QuantSpec:
    return QuantSpec.accumulators(0, "int8", 0)


def _affine_plan(offset: int, count: int = 4) -> RequantisePlan:
    zero = np.zeros(count, np.int64)
    return RequantisePlan("affine", zero + HALF, zero + offset, zero + 8, zero, None, None)


def test_an_offset_of_a_sum_that_is_the_only_one() -> None:
    """Both terms take all that int32 has: from -2^31 to 2^31 - 1 with the offset."""
    a, b = 8_421_504, 8_421_505
    always = np.full((256, 256), 5)
    offset = affine_sum._offset(always, a, b, 20, 5, 5, -128)
    assert offset is not None
    assert (-128 * (a + b) + offset, 127 * (a + b) + offset) == (-(1 << 31), INT32)
    assert affine_sum._offset(always, a, b + 1, 20, 5, 5, -128) is None


@pytest.mark.parametrize(
    ("low", "high", "size"),
    [(0, 127, 1), (0, 128, 2), (-128, 0, 1), (-129, 0, 2), (0, (1 << 15) - 1, 2), (0, 1 << 15, 3),
     (-(1 << 15), 0, 2), (-(1 << 15) - 1, 0, 3), (0, (1 << 23) - 1, 3), (0, 1 << 23, 4),
     (-(1 << 31), INT32, 4)],
)  # fmt: skip
def test_bytes_that_numbers_need(low: int, high: int, size: int) -> None:
    assert nibbles._size(np.array([low, high], np.int32)) == size


@pytest.mark.parametrize(("a", "b", "joined"), [(-128, 0, True), (-128, -1, False), (-127, -128, True)])
def test_two_weights_in_a_halfword(a: int, b: int, joined: bool) -> None:
    ends = np.array([-100]), np.array([100])
    assert (256 * a + b >= -(1 << 15)) is joined
    assert gemm_dsp.can_join(np.array([[a, 127]]), np.array([[b, 127]]), *ends) is joined


# ---- requantisation


@pytest.mark.parametrize(("multiplier", "taken"), [(0, False), (1, True), (INT32, True), (INT32 + 1, False)])
def test_multipliers_of_31_bits(multiplier: int, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requantise, "_affine", lambda *given: (0, 0))
    none = np.zeros(1, np.int64)
    found = requantise._rescaled(none, none, (0, 1), 0, 0, 0, multiplier)
    assert found == ((multiplier, 0, 0) if taken else None)


def _affine(level: int, s: int, threshold: int, lo: int, hi: int) -> tuple[int, int] | None:
    """For a factor of a quarter in the high word: where accumulators reach a level."""
    return requantise._affine(np.array([level]), np.array([threshold]), lo, hi, HALF, s, 0, 0)


def test_biases_that_accumulators_have_room_for() -> None:
    """Two more or two less make the step right: the largest int32 has no room for more, the least is met."""
    most = INT32 - 1
    assert _affine(0, 0, 2, -most, most - 1) == (2, -1)
    assert _affine(0, 0, 2, -most, most) == (-2, 0)


@pytest.mark.parametrize(
    ("threshold", "found"), [(-4096, None), (-4092, (0, HALF - 1)), (4096, (0, HALF - 2048))]
)
def test_offsets_of_30_bits(threshold: int, found: tuple[int, int] | None) -> None:
    """The high word of the threshold and the offset are the level, 2^30 - 2^10."""
    assert _affine((1 << 20) - 1, 10, threshold, threshold - 8, threshold + 8) == found


@pytest.mark.parametrize(
    ("level", "ends", "taken"),
    [
        ((1 << 20) - 1, (-8, 4095), True),
        ((1 << 20) - 1, (-8, 4096), False),
        (1 - (1 << 20), (-4092, 8), True),
        (1 - (1 << 20), (-4093, 8), False),
    ],
)
def test_sums_with_offsets_of_30_bits(level: int, ends: tuple[int, int], taken: bool) -> None:
    """The offset is the level, 2^30 - 2^10 of either sign, and high words are up to 2^10 - 1, or one more."""
    assert (_affine(level, 10, 0, *ends) is not None) is taken


@pytest.mark.parametrize(
    ("offset", "taken"),
    [(-(1 << 15), True), (-(1 << 15) - 1, False), ((1 << 15) - 1, True), (1 << 15, False)],
)
def test_offsets_of_short_forms(offset: int, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requantise, "_rescaled", lambda *given: (HALF, 0, offset))
    zero = np.zeros(1, np.int64)
    given = zero, zero + 9, zero + HALF, zero == 0, zero, zero, zero, 0
    steps = np.zeros(1, np.int64), np.zeros((1, 1), np.int64)
    assert (requantise._all_affine(steps, *given, True) is not None) is taken
    assert requantise._all_affine(steps, *given, False) is not None


@pytest.mark.parametrize("offset", [(1 << 15) - 1, 1 - (1 << 15), 1 << 15, -(1 << 15)])
def test_offsets_that_share_a_word(offset: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 16 bits with a sign; the least of them is refused, too."""
    for module in (finish, nibbles_dsp):
        monkeypatch.setattr(module, "plan", lambda *given, **options: _affine_plan(offset))
    weights, bias = np.ones((4, 3), np.int64), np.zeros(4, np.int64)
    rows = finish.Rows.of(np.dtype(np.int8), weights, bias, _quant(), paired=True)
    shared = abs(offset) < 1 << 15
    assert rows.paired is shared
    assert (nibbles_dsp._plan(weights, bias, _quant(), np.arange(4)) is not None) is shared


@pytest.mark.parametrize("sign", [1, -1])
def test_biases_with_which_sums_stay_within_int32(sign: int) -> None:
    """All weights and inputs may be -128."""
    most, weights = INT32 - 3 * (1 << 14), np.ones((2, 3), np.int64)
    for more in (0, 1):
        bias = np.array([0, sign * (most + more)])
        rows = finish.Rows.of(np.dtype(np.int8), weights, bias, _accumulators())
        assert rows.room == (None if more else most)


@pytest.mark.parametrize("more", [0, 1])
def test_the_least_accumulator_has_nothing_below_it(more: int) -> None:
    """Ties are found by one that is taken off, which must not wrap."""
    bias = np.array([more - (1 << 31), 0], np.int64).astype(np.int32)
    found = requantise_mve.requantiser(_quant(rounding="even"), np.zeros((2, 3), np.int8), bias)
    assert (found.ties == "bit") is (more == 1)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("last", "taken"), [(63, True), (64, False)])
def test_sums_of_winograd_have_room(sign: int, last: int, taken: bool) -> None:
    """2^25 of either sign: 4,096 weights of 64 or -64 and activations of -128."""
    weights = np.zeros((2, 3, 3, 456), np.int8)
    weights.reshape(2, -1)[1, :4096] = 64 * sign
    weights.reshape(2, -1)[1, 0] = last * sign
    shape = ConvShape(1, 8, 8, 456, 8, 8, 2, 3, 3, pad_top=1, pad_left=1)
    assert winograd.fits(shape, _quant(), weights) is taken


# ---- addresses


def _plane(length: int, kernel: tuple[int, int] = (1, 1), stride: int = 1, dilation: int = 1) -> Plane:
    """One line of two outputs."""
    u = Axis(kernel[0], 1, kernel[0], 1, 1, 0, length, 8)
    v = Axis(length, 2, kernel[1], stride, dilation, 0, 1, 1)
    return Plane(u, v, False, length, 1)


def test_dilated_taps_that_have_words_of_their_own() -> None:
    for dilation in (256, 257):
        found = Pairs.of(_plane(dilation + 3, (1, 2), dilation=dilation))
        assert (found.dilation > 1) is (dilation == 256)


@pytest.mark.parametrize(("dilation", "most"), [(1, 1020), (2, 2044)])
def test_lines_that_loads_reach(dilation: int, most: int) -> None:
    """The second line begins 2 * length bytes behind the first; a window of 1 or of 1 + dilation elements."""
    taps = 1 if dilation == 1 else 2
    behind = 2 * ((taps - 1) * dilation + 1) + 4
    length = (most - behind) // 2
    assert reaches(_plane(length, (2, taps), dilation=dilation), 1)
    assert not reaches(_plane(length + 1, (2, taps), dilation=dilation), 1)


@pytest.mark.parametrize(("dtype", "most"), [("int8", 1365), ("int16", 682)])
def test_elements_that_one_pointer_reaches(dtype: str, most: int) -> None:
    """The fourth of four that are copied to the plane is 3 steps away, of 4095 bytes at most."""
    for step, near in ((most, True), (most + 1, False)):
        plane = _plane(4)
        plane = replace(plane, v=replace(plane.v, x_step=step))
        copies = SimpleNamespace(plane=plane, quant=SimpleNamespace(x_dtype=dtype), dsp=True)
        lines = PlaneLoops._copies(cast(Any, copies), 4)
        assert ("GATHER" in lines[0], len(lines)) == ((True, 1) if near else (False, 4))


def _steps(plane: Plane, compact: bool = False) -> _Steps:
    one = np.zeros(1, np.int64)
    rq = requantise.plan(_accumulators(), one, one + 100)
    return _Steps(plane, Pairs.of(plane), rq, "int32", 8, 1, True, compact)


@pytest.mark.parametrize(("stride", "several"), [(60, True), (61, False)])
def test_outputs_whose_windows_are_far_apart(stride: int, several: bool) -> None:
    plane = _plane(8 * stride, (3, 9), stride)
    steps = _steps(replace(plane, v=replace(plane.v, size_out=7)))
    assert (steps.block > 1) is several
    few = _steps(_plane(4 * stride, (1, 3), stride))
    assert few.resident is several


@pytest.mark.parametrize(("length", "near"), [(490, True), (492, False)])
def test_lines_whose_products_are_written_out(length: int, near: bool) -> None:
    """Elements of 20 taps behind a line of 490 are 1,020 bytes away."""
    text, moved = _steps(_plane(length, (1, 20))).sums()
    assert (moved == 0) is near and ("3:" in text) is not near


def test_instructions_that_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = _steps(_plane(16, (3, 9)))
    text, moved = steps.sums()
    assert moved == 0
    for limit, near in ((len(text), True), (len(text) - 1, False)):
        monkeypatch.setattr(depthwise_steps_dsp, "_WRITTEN_OUT", limit)
        assert (steps.sums()[1] == 0) is near


def _stores(y_u: int, y_v: int, sums: int, below: int) -> list[str]:
    some = SimpleNamespace(size=1, y_u=y_u, y_v=y_v)
    names = ("r10", "r11", "r12", "lr", "r3")
    return _Steps.stores(cast(Any, some), names[:sums], names[sums : sums + below])


@pytest.mark.parametrize(
    ("y_u", "y_v", "sums", "below", "kind"),
    [
        (4090, 5, 2, 2, "below"),
        (4091, 5, 2, 2, "register"),
        (0, 255, 2, 0, "post"),
        (0, 256, 2, 0, "offset"),
        (0, 1365, 3, 0, "offset"),
        (0, 1366, 3, 0, "step"),
        (0, 2047, 2, 0, "offset"),
        (0, 819, 5, 0, "offset"),
        (0, 820, 5, 0, "step"),
    ],
)
def test_stores_that_immediates_reach(y_u: int, y_v: int, sums: int, below: int, kind: str) -> None:
    """255 behind a store, 4,095 of an address: as many as there are, and no more."""
    text = "\n".join(_stores(y_u, y_v, sums, below))
    if kind in ("below", "register"):
        assert ("add r8, r1, r8" in text) is (kind == "register")
    else:
        assert (f"[r1], #{y_v}" in text) is (kind == "post")
        assert ("add r1, r1, r9" in text) is (kind == "step")
    assert max(map(int, re.findall(r"\[r\w+, #(\d+)\]", text)), default=0) <= 4095
    assert max(map(int, re.findall(r"\], #(\d+)", text)), default=0) <= 255
    assert max(map(int, re.findall(r"addw r1, r1, #(\d+)", text)), default=0) <= 4095


@pytest.mark.parametrize(("step", "times"), [(1365, 1), (1366, 3)])
def test_pixels_whose_steps_an_immediate_takes_back(step: int, times: int) -> None:
    """Of 12 bits."""
    plan = SimpleNamespace(chunks=3, step=step, size=1)
    lines = depthwise_taps_mve.tap_sums(cast(Any, plan), 3, [])
    assert lines.count(f"subw r1, r1, #{3 * step // times}") == 2 * times


# ---- copies


def test_weights_of_pixels_in_registers_whose_memory_is_unknown() -> None:
    """256 bytes of them are few."""
    rng = np.random.default_rng(1)
    for outs in (8, 9):
        weights = rng.integers(-99, 99, (outs, 8)).astype(np.int8)
        one = np.full(outs, 1_234_567_890, np.int32), np.resize(np.array([-6, -9], np.int32), outs)
        quant = QuantSpec(3, *one, -5, -128, 127)
        shape = ConvShape(1, 1, 200, 8, 1, 200, outs)
        found = held_dsp.held(shape, weights, None, quant, Reading())
        known = held_dsp.held(shape, weights, None, quant, Reading(memory_of("0ws")))
        assert known is not None and known.stream.nbytes == 32 * outs
        assert (found is not None) is (outs == 8)


def test_a_copy_that_there_is_just_room_for() -> None:
    weights = np.random.default_rng(1).integers(-99, 99, (500, 8)).astype(np.int8)
    shape, one = ConvShape(1, 1, 8, 8, 1, 8, 500), np.array([1717986918], np.int32)
    quant = QuantSpec(3, one, np.array([-4], np.int32), -5, -128, 127)
    reading = Reading(memory_of("l4-art"))
    wish = conv_dsp.conv(shape, weights, None, quant, reading=reading).wish
    assert wish is not None
    notes = [
        conv_dsp.conv(shape, weights, None, quant, reading=replace(reading, room=room)).note
        for room in (wish - 1, wish)
    ]
    assert ["in registers" in note for note in notes] == [False, True], notes


@pytest.mark.parametrize("shift", [-31, 32])
def test_sums_of_scales_that_vanish(shift: int) -> None:
    plain = Rescaling(0, HALF, 0)
    for given in ((replace(plain, shift=shift), plain), (plain, replace(plain, shift=shift))):
        assert affine_sum.affine(*given, plain, 0, -128, 127) is None


class Saving(Reading):
    """Copies that save so many cycles, whatever they are of."""

    cycles = 0.0

    def saving(self, nbytes: int, times: int) -> float:
        return self.cycles


@pytest.mark.parametrize("less", [0, 1])
def test_copies_that_are_worth_their_code(less: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of weights for pixels in registers; of all weights, and of as many as there is room for."""
    monkeypatch.setattr(Saving, "cycles", 5000 - less)
    weights = np.random.default_rng(1).integers(-99, 99, (300, 8)).astype(np.int8)
    shape, one = ConvShape(1, 1, 12, 8, 1, 12, 300), np.array([1717986918], np.int32)
    quant = QuantSpec(3, one, np.array([-4], np.int32), -5, -128, 127)
    reading = Saving(memory_of("l4-art"))
    assert (held_dsp.held(shape, weights, None, quant, reading) is not None) is (less == 0)
    monkeypatch.setattr(Saving, "cycles", 2000 - less)
    shape, weights = ConvShape(1, 1, 12, 64, 1, 12, 64), np.resize(weights, (64, 1, 1, 64))
    for room in (4000, 1 << 20):
        code = conv_dsp.conv(shape, weights, None, quant, reading=replace(reading, room=room))
        assert any(piece.name == "staged" for piece in code.scratch) is (less == 0)


def test_no_pixels_are_for_other_kernels() -> None:
    for outputs, groups, taken in ((0, 1, False), (1, 1, True), (1, 2, False), (2, 2, True)):
        shape = ConvShape(1, 1, outputs, 8, 1, outputs, 8, groups=groups)
        assert conv_dsp.applicable(shape, _quant()) is taken


@pytest.mark.parametrize(("more", "taken"), [(0.0, True), (-0.5, False)])
def test_a_layer_of_one_channel_that_is_faster_as_a_depthwise_one(
    more: float, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = KernelCode("other")
    monkeypatch.setattr(conv_mve.depthwise_mve, "writers", lambda *given: [(100, lambda *layer: other)])
    monkeypatch.setattr(conv_mve, "_cycles_of_one_channel", lambda s: conv_mve.LEAST_GAIN * 100 + more)
    shape = ConvShape(1, 8, 8, 1, 6, 6, 4, 3, 3)
    code = conv_mve.conv(shape, np.ones((4, 3, 3, 1), np.int8), None, _quant())
    assert (code.body == "other") is taken


def test_variants_of_winograd_that_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """They save more than 100,000 cycles, and more than a tenth."""
    for size, least in ((8, lambda cycles: cycles + 100_000), (40, lambda cycles: cycles * 10 / 9)):
        shape = ConvShape(1, size, size, 16, size, size, 16, 3, 3, pad_top=1, pad_left=1)
        monkeypatch.setattr(winograd, "plain_cycles", lambda s: Fraction(1 << 50))
        one = min(winograd.variants(shape, False), key=lambda v: v.cycles)
        plain = least(Fraction(one.cycles))
        for more in (0, Fraction(1, 1000)):
            monkeypatch.setattr(winograd, "plain_cycles", lambda s, plain=plain + more: plain)
            assert (one in winograd.variants(shape, False)) is (more > 0)
