"""Fixed-point arithmetic of quantised networks, in exact Python integers: multipliers, and the functions
behind tables.

Names: Qm.n is a 32-bit integer with m integer and n = 31 - m fraction bits. `double` rounding: a doubling
high multiplication, then a rounding shift. Facts of TensorFlow Lite Micro's reference kernels and of
gemmlowp's fixed-point functions, which define the results to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)


def quantise_multiplier(real: float) -> tuple[int, int]:
    """A real factor >= 0 as (multiplier, shift): real = multiplier * 2^(shift - 31), multiplier in [2^30,
    2^31).
    """
    if real == 0:
        return 0, 0
    fraction, shift = math.frexp(real)
    multiplier = round_away(fraction * 2**31)
    if multiplier == 2**31:
        multiplier //= 2
        shift += 1
    if shift < -31:
        return 0, 0
    return (INT32_MAX, 30) if shift > 30 else (multiplier, shift)


def round_away(x: float) -> int:
    """Nearest integer, ties away from zero."""
    return math.floor(x + 0.5) if x >= 0 else -math.floor(-x + 0.5)


def saturate(x: int) -> int:
    return max(INT32_MIN, min(INT32_MAX, x))


def wrap(x: int) -> int:
    """The value of the low 32 bits."""
    return (x + 2**31) % 2**32 - 2**31


def high_multiply(a: int, b: int) -> int:
    """2 * a * b / 2^32, rounded to nearest with ties up, saturated."""
    return saturate((a * b + (1 << 30)) >> 31)


def rounding_shift(x: int, bits: int) -> int:
    """x / 2^bits, ties away from zero."""
    mask = (1 << bits) - 1
    return (x >> bits) + ((x & mask) > (mask >> 1) + (x < 0))


def requantise(x: int, multiplier: int, shift: int) -> int:
    """x * multiplier * 2^(shift - 31) with double rounding."""
    return rounding_shift(high_multiply(wrap(x << max(shift, 0)), multiplier), max(-shift, 0))


def shift_left(x: int, bits: int) -> int:
    """x * 2^bits, saturated."""
    return saturate(x << bits)


def input_radius(integer_bits: int, shift: int, total_bits: int = 31) -> int:
    """The largest difference that fits Q`integer_bits` after a left shift."""
    return math.floor(((1 << integer_bits) - 1) * (1 << (total_bits - integer_bits)) / 2.0**shift)


_EXP_STEPS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-2^k) in Q0.31, k = -2 … 4."""


def exp_negative(a: int, integer_bits: int) -> int:
    """exp(a) in Q0.31 for a <= 0 in Q`integer_bits`."""
    if a == 0:
        return INT32_MAX
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    small = (a & (quarter - 1)) - quarter
    result = _exp_on_last_quarter(shift_left(small, integer_bits))
    remainder = small - a
    for k, factor in zip(range(-2, 5), _EXP_STEPS, strict=True):
        bit = fraction_bits + k
        if k < integer_bits and bit >= 0 and remainder & (1 << bit):
            result = high_multiply(result, factor)
    return 0 if integer_bits > 5 and a < -(1 << (fraction_bits + 5)) else result


def _exp_on_last_quarter(a: int) -> int:
    """exp(a) for a in [-1/4, 0), Q0.31: a polynomial around -1/8."""
    x = a + (1 << 28)
    x2 = high_multiply(x, x)
    x3 = high_multiply(x2, x)
    x4 = high_multiply(x2, x2)
    inner = high_multiply(rounding_shift(x4, 2) + x3, 715827883) + x2
    return saturate(1895147668 + high_multiply(1895147668, x + rounding_shift(inner, 1)))


def half_sum(a: int, b: int) -> int:
    """(a + b) / 2, ties away from zero."""
    total = a + b
    return (total + 1) // 2 if total >= 0 else -((-total + 1) // 2)


def reciprocal_of_one_plus(a: int) -> int:
    """1 / (1 + a) in Q0.31 for a in [0, 1) in Q0.31: three Newton-Raphson steps."""
    half = half_sum(a, INT32_MAX)
    x = 1515870810 + high_multiply(half, -1010580540)
    for _ in range(3):
        error = (1 << 29) - high_multiply(half, x)
        x = wrap(x + shift_left(high_multiply(x, error), 2))
    return shift_left(x, 1)


def leading_zeros(x: int) -> int:
    """Zero bits above the highest one of a 32-bit word."""
    return 32 - (x & 0xFFFFFFFF).bit_length()


def reciprocal(x: int) -> int:
    """2^(62 - leading zeros) / x in Q0.31: the reciprocal of x normalised to [1, 2)."""
    return reciprocal_of_one_plus(((x << leading_zeros(x)) & 0xFFFFFFFF) - 2**31)


def softmax_ratio(reciprocal: int, power: int, total: int, bits: int) -> int:
    """power * reciprocal / 2^31 over 2^(bits - leading zeros of total); none is negative."""
    return rounding_shift(high_multiply(reciprocal, power), bits - leading_zeros(total))


def ratio_of_one_minus_to_one_plus(a: int) -> int:
    """(1 - a) / (1 + a) in Q0.31 for a in [0, 1) in Q0.31."""
    half = half_sum(a, INT32_MAX)
    x = 1515870810 + high_multiply(half, -1010580540)
    for _ in range(3):
        error = (1 << 29) - high_multiply(half, x)
        x = wrap(x + shift_left(high_multiply(x, error), 2))
    return shift_left(x - (1 << 29), 2)


def logistic(a: int, integer_bits: int) -> int:
    """1 / (1 + exp(-a)) in Q0.31 for a in Q`integer_bits`."""
    if a == 0:
        return 1 << 30
    positive = reciprocal_of_one_plus(exp_negative(-abs(a), integer_bits))
    return positive if a > 0 else INT32_MAX - positive


def tanh(a: int, integer_bits: int) -> int:
    """tanh(a) in Q0.31 for a in Q`integer_bits`. exp(-2|a|) is computed with one integer bit more."""
    if a == 0:
        return 0
    positive = ratio_of_one_minus_to_one_plus(exp_negative(-abs(a), integer_bits + 1))
    return positive if a > 0 else -positive


def softmax_exponentials(scale: float, beta: float, count: int = 256) -> list[int]:
    """exp(-beta * scale * k) in Q0.31 for k = 0 … count - 1; 0 where the difference is beyond the fixed-point
    range.
    """
    multiplier, shift = quantise_multiplier(min(beta * scale * 2**26, 2.0**31 - 1))
    radius = input_radius(5, shift)
    return [exp_negative(requantise(-k, multiplier, shift), 5) if k <= radius else 0 for k in range(count)]


LOG_2 = round(math.log(2) * 2**31)


def natural_log(z: int) -> int:
    """log(z) in Q5.26 for z >= 1 in Q12.19: z is brought near to 1 by powers of sqrt 2, then a rational
    function.
    """
    half, quarter_root, quarter = 1518500250, 1805811301, 8388608
    a, b = leading_zeros(z), leading_zeros(high_multiply(z, half)) - 1
    r = min(shift_left(high_multiply(shift_left(z, a - 1), half), 1), shift_left(z, b))
    power = max(saturate(shift_left(12 - a, 25) + quarter), saturate(shift_left(12 - b, 25) - quarter))
    p, q = half_sum(r, quarter_root), wrap(2 * (r - quarter_root))
    square = high_multiply(q, q)
    numerator = wrap(high_multiply(q, r) + high_multiply(high_multiply(q, square), 117049297))
    inner = wrap(1057819769 + q + high_multiply(127690142, square))
    denominator = wrap(high_multiply(p, inner) + high_multiply(638450708, q))
    quotient = high_multiply(rounding_shift(numerator, 6), reciprocal_of_one_plus(denominator))
    return shift_left(wrap(high_multiply(power, LOG_2) + quotient), 1)


def scaled_differences(scale: float, beta: float, least: int, count: int = 256) -> list[int]:
    """-beta * scale * k in Q5.26 for k = 0 … count - 1, not below `least`."""
    multiplier, shift = quantise_multiplier(min(beta * scale * 2**26, 2.0**31 - 1))
    radius = input_radius(5, shift)
    return [max(requantise(-k, multiplier, shift), least) if k <= radius else least for k in range(count)]


def interpolated_table(
    scale: Any,
    zero_point: int,
    function: Callable[[Any], Any],
    out_scale: float | None = None,
    real: Any = np.float32,
) -> tuple[int, ...]:
    """513 values of a function of int16 as int16 of a scale (by default in Q0.15), for linear interpolation
    between every 128th argument.

    Entries are lowered by half the error in the middle of their piece. real: the floats of the reference,
    those of TensorFlow Lite Micro are single.
    """
    f32 = real
    scale = f32(scale)
    low, high = scale * f32(-32768 - zero_point), scale * f32(32767 - zero_point)
    step_out = f32(2) / f32(65535) if out_scale is None else f32(out_scale)
    factor = f32(65536) / (step_out * f32(32767) - step_out * f32(-32768))
    step = (high - low) / f32(512)

    def rounded(v: Any) -> Any:
        return f32(round_away(float(v)))

    values = []
    for k in range(512):
        here, middle, there = (
            function(v)
            for v in (low + f32(k) * step, low + f32(k) * step + step / f32(2), low + f32(k + 1) * step)
        )
        sample = rounded(here * factor)
        error = rounded((there * factor + sample) / f32(2)) - rounded(middle * factor)
        values.append(sample - rounded(error / f32(2)))
    values.append(rounded(function(high) * factor))
    return tuple(int(max(-32768, min(32767, v))) for v in values)


def inverse_sqrt_multiplier(x: int) -> int:
    return inverse_sqrt(x)[0]


def inverse_sqrt_shift(x: int) -> int:
    return inverse_sqrt(x)[1]


def inverse_sqrt(x: int) -> tuple[int, int]:
    """1 / sqrt(x) as (multiplier, shift) for x >= 0 (0 counts as 1): five Newton-Raphson steps in Q3.28."""
    if x <= 1:
        return INT32_MAX, 0
    right = 11
    while x >= 1 << 29:
        x //= 4
        right += 1
    pairs = (leading_zeros(x) - 1) // 2 - 1
    right -= pairs
    value = (x << (2 * pairs)) >> 1
    half = rounding_shift(value, 1)
    y = 1 << 28
    for _ in range(5):
        # A product of Q3 and Q3 is Q6, of three Q9: shifts bring them back to Q3.
        cube = shift_left(high_multiply(high_multiply(y, y), y), 6)
        y = shift_left(high_multiply((1 << 28) + (1 << 27), y) - high_multiply(half, cube), 3)
    y = high_multiply(y, 1518500250)
    if right < 0:
        return y << -right, 0
    return y, -right


def hard_swish(scale: float, out_scale: float, out_zero_point: int) -> Callable[[int], int]:
    """x * min(max(x + 3, 0), 6) / 6 in 16-bit fixed point; x is given without its zero point."""
    fine = np.float32(1 / 128) * np.float32(scale)
    out_multiplier, out_shift = quantise_multiplier(float(fine / np.float32(out_scale)))
    gate_multiplier, gate_shift = quantise_multiplier(float(fine / (np.float32(3) / np.float32(32768))))
    out_short, gate_short = (min((m + (1 << 15)) >> 16, 32767) for m in (out_multiplier, gate_multiplier))

    def saturate16(v: int) -> int:
        return max(-32768, min(32767, v))

    def product(a: int, b: int) -> int:
        return saturate16((a * b + (1 << 14)) >> 15)

    def value(x: int) -> int:
        wide = saturate16(x * 128)
        gate = wide
        if gate_shift > 0:
            gate = saturate16(gate << (gate_shift - 1))
        gate = product(gate, gate_short)
        if gate_shift > 0:
            gate = saturate16(gate << 1)
        elif gate_shift < 0:
            gate = rounding_shift(gate, -gate_shift)
        gate = (gate + 32768) >> 1
        # The last product truncates towards zero.
        raw = gate * product(wide, out_short)
        high = raw >> 15 if raw >= 0 else -(-raw >> 15)
        return rounding_shift(high, max(-out_shift, 0)) + out_zero_point

    return value
