"""Fixed-point functions of the compiler against their definition in fractions (arithmetic/exact.py) and in
real numbers.
"""

from __future__ import annotations

import ctypes
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from aot_model.arithmetic import exact, fixed_point
from aot_model.ops import lstm_integer, quantised_curves, rounded_softmax

RNG = random.Random(5)
WORDS = [
    0,
    1,
    -1,
    2,
    3,
    2**31 - 1,
    -(2**31),
    2**30,
    -(2**30),
    2**24,
    -(2**24),
    12345,
    *(RNG.randrange(-(2**31), 2**31) for _ in range(300)),
]
ONE = 2.0**31


@pytest.mark.parametrize("beyond", [-3, -1, 0, 1, 2])
def test_words_wrap(beyond: int) -> None:
    for x in WORDS:
        assert fixed_point.wrap(x + beyond * 2**32) == ctypes.c_int32(x).value


def test_levels_of_the_logistic_function_begin_where_they_should() -> None:
    """Within 1.1 thousandth of a level; 13 bits of interpolation would leave 0.9, 11 leave 1.2."""
    for level, scaled in enumerate(quantised_curves._thresholds(), 1):
        x = quantised_curves.LOW + (quantised_curves.HIGH - quantised_curves.LOW) * scaled / 2**28
        assert abs(256 / (1 + math.exp(-x)) + 0.5 - level) < 1.1e-3


@pytest.mark.parametrize(("wide", "bits", "most"), [(False, 31, 128), (False, 30, 128), (True, 0, 1 << 15)])
def test_sums_of_a_gate_have_room_for_their_bias(wide: bool, bits: int, most: int) -> None:
    """The largest products of so many inputs and the largest bias are just below a power of 2."""
    for taps in (1, 40, 1000):
        assert lstm_integer._room(wide, bits, taps) + taps * 128 * most == (1 << (62 if wide else bits)) - 1


@pytest.mark.parametrize("scale", [1e-6, 1e-5, 2e-4, 0.003, 0.05, 1.0])
def test_exponentials_of_16_bit_differences_are_two_tables(scale: float) -> None:
    """Of multiples of 2^bits as far as there are any, or as they are something, and of what is left."""
    coarse, fine, bits = rounded_softmax._factors(scale)
    multiples = [k for k in range((65535 >> bits) + 1) if math.exp(-scale * (k << bits)) * 2**31 >= 1]
    assert len(multiples) <= len(coarse.values) <= min(len(multiples) + 1, (65535 >> bits) + 1)
    assert len(fine.values) == 1 << bits and coarse.values[0] == fine.values[0] == 1 << 30


@pytest.mark.parametrize(
    ("bits", "shift", "radius"), [(5, 20, 1984), (5, 26, 31), (5, 27, 15), (4, 0, 15 << 27)]
)
def test_differences_that_are_not_beyond_the_integers(bits: int, shift: int, radius: int) -> None:
    """2^bits - 1 as a fixed-point number, before the shift: what is farther away counts as infinite."""
    assert fixed_point.input_radius(bits, shift) == radius


def test_steps_of_the_exponential() -> None:
    assert tuple(round(math.exp(-(2.0**k)) * 2**31) for k in range(-2, 5)) == fixed_point._EXP_STEPS


def test_exponential_of_negative_numbers() -> None:
    for a in [-abs(w) for w in WORDS if w != -(2**31)]:
        assert fixed_point.exp_negative(a, 5) == exact.exponential(a), a


@pytest.mark.parametrize("bits", [2, 3, 4, 5])
def test_logistic_and_tanh(bits: int) -> None:
    """Within 2^-20 of the real functions, and symmetrical."""
    for a in WORDS:
        x = a / 2.0 ** (31 - bits)
        assert abs(fixed_point.logistic(a, bits) / ONE - 1 / (1 + math.exp(-x))) < 2e-6, a
        assert abs(fixed_point.tanh(a, bits) / ONE - math.tanh(x)) < 4e-6, a
    assert fixed_point.logistic(0, bits) == 2**30 and fixed_point.tanh(0, bits) == 0


def test_reciprocals() -> None:
    for a in [abs(w) for w in WORDS if w != -(2**31)]:
        assert fixed_point.reciprocal_of_one_plus(a) == exact.inverse_of_one_plus(a), a
        ratio = fixed_point.ratio_of_one_minus_to_one_plus(a)
        assert ratio == exact.ratio_of_one_minus_to_one_plus(a), a
        assert abs(ratio / ONE - (1 - a / ONE) / (1 + a / ONE)) < 1e-6, a
        if a > 0:
            assert (fixed_point.reciprocal(a), fixed_point.leading_zeros(a)) == exact.normalised_inverse(a), a


def test_natural_logarithm() -> None:
    for z in [max(abs(w), 2**19) for w in WORDS if w != -(2**31)]:
        assert abs(fixed_point.natural_log(z) / 2.0**26 - math.log(z / 2.0**19)) < 2e-5, z


def test_inverse_square_root() -> None:
    """multiplier * 2^(shift - 31) is 1 / sqrt(x) to one part in 10^5; 0 counts as 1."""
    for x in [abs(w) for w in WORDS if w != -(2**31)]:
        multiplier, shift = fixed_point.inverse_sqrt(x)
        assert (fixed_point.inverse_sqrt_multiplier(x), fixed_point.inverse_sqrt_shift(x)) == (
            multiplier,
            shift,
        )
        assert abs(multiplier * 2.0 ** (shift - 31) * math.sqrt(max(x, 1)) - 1) < 1e-5, x


def _hard_swish(x: int, scale: float, out_scale: float) -> int:
    """As TensorFlow Lite defines it, in fractions: x on a grid 128 times as fine, times a gate in Q0.15."""

    def product(a: int, b: int) -> int:
        return exact.within(exact.up(Fraction(a * b, 2**15)), 16)

    def short(real: float) -> tuple[int, int]:
        whole, shift = exact.multiplier(real)
        return min(exact.up(Fraction(whole, 2**16)), 2**15 - 1), shift

    fine = float(np.float32(scale) * np.float32(1 / 128))
    factor, shift = short(float(np.float32(fine) / np.float32(out_scale)))
    gate_factor, gate_shift = short(float(np.float32(fine) / (np.float32(3) / np.float32(32768))))
    wide = exact.within(128 * x, 16)
    gate = product(exact.within(wide * 2 ** max(gate_shift - 1, 0), 16), gate_factor)
    gate = exact.within(2 * gate, 16) if gate_shift > 0 else exact.away(Fraction(gate, 2**-gate_shift))
    high = math.trunc(Fraction(math.floor(Fraction(gate + 2**15, 2)) * product(wide, factor), 2**15))
    return exact.away(Fraction(high, 2 ** max(-shift, 0)))


@pytest.mark.parametrize(
    ("scale", "out_scale", "zero"),
    [
        (0.05, 0.04, 3),
        (0.1, 0.1, -128),
        (0.02, 0.015, 0),
        (0.4, 0.3, 11),
        (0.005, 0.006, -7),
        (0.013, 0.0005, 1),
        (0.008, 0.006, 2),
        (0.011718705296516418, 0.0029296875, 0),  # the gate's factor is 2^15 after rounding, one too many
    ],
)
def test_hard_swish(scale: float, out_scale: float, zero: int) -> None:
    """Bit for bit its definition, and within a step of the real function, as it rounds four times."""
    function = fixed_point.hard_swish(scale, out_scale, zero)
    for x in range(-255, 256):
        assert function(x) - zero == _hard_swish(x, scale, out_scale), x
        real = x * scale
        wanted = real * min(max(real + 3, 0), 6) / 6 / out_scale
        assert abs(function(x) - zero - wanted) <= 0.75 + abs(wanted) / 200, x


@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0])
def test_scaled_differences_and_exponentials(scale: float) -> None:
    multiplier, shift = exact.multiplier(min(scale * 2**26, 2.0**31 - 1))
    reach = math.floor(31 * 2**26 / 2.0**shift)
    differences = fixed_point.scaled_differences(scale, 1.0, -(2**30))
    for k, difference in enumerate(differences):
        assert difference == (max(exact.rescale(-k, multiplier, shift), -(2**30)) if k <= reach else -(2**30))
    assert fixed_point.softmax_exponentials(scale, 1.0) == [
        exact.exponential_of_difference(-k, scale) for k in range(256)
    ]


@pytest.mark.parametrize(("function", "limit"), [(np.tanh, 1.0), (lambda v: 1 / (1 + np.exp(-v)), 1.0)])
def test_interpolated_table(function: object, limit: float) -> None:
    """A function that is read between 513 points is within 2^-13 of itself."""
    scale, zero = 8.0 / 32768, 0
    table = np.asarray(fixed_point.interpolated_table(scale, zero, function), np.float64) / 32768  # type: ignore[arg-type]
    x = np.arange(-32768, 32768, 37)
    place, rest = (x + 32768) // 128, (x + 32768) % 128 / 128
    found = table[place] * (1 - rest) + table[place + 1] * rest
    assert np.max(np.abs(found - function(x * scale))) < limit * 2.0**-12  # type: ignore[operator]


@pytest.mark.parametrize("total", [-8, -7, -2, -1, 0, 1, 2, 7, 2**31 - 1, -(2**31)])
def test_half_of_a_sum_is_rounded_away_from_zero(total: int) -> None:
    for a in (0, 5, -12):
        nearest = math.floor(abs(total) / 2 + 0.5)
        assert fixed_point.half_sum(a, total - a) == (nearest if total >= 0 else -nearest)
