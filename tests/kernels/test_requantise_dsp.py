"""Requantisation with the DSP extension: each form against the rule, and what takes no multiplication."""

from __future__ import annotations

import arithmetic
import numpy as np
import pytest
from int8_cases import quantisation

from aot_model.kernels.int8 import dsp, finish, requantise
from aot_model.kernels.int8.finish import numbers_of
from aot_model.kernels.int8.spec import QuantSpec


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
