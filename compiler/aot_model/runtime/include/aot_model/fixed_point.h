/* Integers that stand for fractions: requantisation, high words of products, reciprocals, roots, logarithms.
 * Part of aot-model. */
#ifndef AOT_MODEL_FIXED_POINT_H
#define AOT_MODEL_FIXED_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "aot_model/attributes.h"

/* Requantisation of TensorFlow Lite Micro: doubling high multiply with ties up, then a rounding shift with ties away
 * from zero. shift > 0 is to the left. */
AOT_MODEL_INLINE int32_t aot_model_requantise(int32_t acc, int32_t multiplier, int32_t shift)
{
    const int32_t left = (shift > 0) ? shift : 0;
    const int32_t right = (shift > 0) ? 0 : -shift;
    const int32_t shifted = (int32_t)((uint32_t)acc << left);
    const int32_t high = (int32_t)(((int64_t)shifted * multiplier + ((int64_t)1 << 30)) >> 31);
    const int32_t mask = (int32_t)(((int64_t)1 << right) - 1);
    const int32_t threshold = (mask >> 1) + (high < 0);
    return (high >> right) + ((high & mask) > threshold);
}

/* x / 2^bits, ties away from zero; 0 <= bits <= 31, x > INT32_MIN, of one bit also x < INT32_MAX. */
AOT_MODEL_INLINE int32_t aot_model_rounding_shift_small(int32_t x, int32_t bits)
{
    const int32_t y = x - (x < 0); /* ties up is away from zero then */
    return (bits == 0) ? x : ((y >> (bits - 1)) + 1) >> 1;
}

/* High word of a * b, rounded. */
AOT_MODEL_INLINE int32_t aot_model_high_word(int32_t a, int32_t b)
{
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)
    if (!__builtin_constant_p(a)) {
        int32_t r;
        __asm__("smmulr %0, %1, %2" : "=r"(r) : "r"(a), "r"(b));
        return r;
    }
#endif
    return (int32_t)(((int64_t)a * b + INT64_C(0x80000000)) >> 32);
}

/* aot_model_requantise() where -2^30 <= acc * 2^shift < 2^30, for a shift that is not negative or for none. */
AOT_MODEL_INLINE int32_t aot_model_requantise_small(int32_t acc, int32_t multiplier, int32_t shift)
{
    const int32_t left = (shift > 0) ? shift : 0;
    const int32_t shifted = (int32_t)((uint32_t)acc << left);
    const int32_t half = (int32_t)1 << 30;
    const int32_t high = (multiplier == half) ? (shifted + 1) >> 1 : aot_model_high_word(shifted * 2, multiplier);
    return aot_model_rounding_shift_small(high, left - shift);
}

/* (acc * multiplier + offset) >> shift, 32 <= shift < 64: a requantisation of a number between known limits. */
AOT_MODEL_INLINE int32_t aot_model_rescale(int32_t acc, int32_t multiplier, int64_t offset, int32_t shift)
{
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)
    if (__builtin_constant_p(offset) && (offset & UINT32_MAX) == 0 && !__builtin_constant_p(acc)) {
        int32_t r; /* one instruction; a product of 64 bits spoils the offset that is added to it */
        __asm__("smmla %0, %1, %2, %3" : "=r"(r) : "r"(acc), "r"(multiplier), "r"((int32_t)(offset >> 32)));
        return r >> (shift - 32);
    }
#endif
    return (int32_t)(((int64_t)acc * multiplier + offset) >> 32) >> (shift - 32);
}

/* acc + (multiplier * x >> 16) for -2^15 <= x < 2^15; the sum fits. */
AOT_MODEL_INLINE int32_t aot_model_add_scaled(int32_t acc, int32_t multiplier, int32_t x)
{
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)
    if (!__builtin_constant_p(x)) {
        int32_t sum; /* smlawb sets Q where it overflows, which it does not */
        __asm__("smlawb %0, %1, %2, %3" : "=r"(sum) : "r"(multiplier), "r"(x), "r"(acc));
        return sum;
    }
#endif
    return acc + (int32_t)((int64_t)multiplier * x >> 16);
}

/* acc + (a * b >> 32); the sum fits. */
AOT_MODEL_INLINE int32_t aot_model_add_high(int32_t acc, int32_t a, int32_t b)
{
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)
    if (!__builtin_constant_p(a)) {
        int32_t sum;
        __asm__("smmla %0, %1, %2, %3" : "=r"(sum) : "r"(a), "r"(b), "r"(acc));
        return sum;
    }
#endif
    return acc + (int32_t)((int64_t)a * b >> 32);
}

/* Requantisation with a single rounding, ties up. */
AOT_MODEL_INLINE int32_t aot_model_requantise_single(int32_t acc, int32_t multiplier, int32_t shift)
{
    const int32_t total = 31 - shift;
    return (int32_t)(((int64_t)acc * multiplier + ((int64_t)1 << (total - 1))) >> total);
}

/* Requantisation with a single rounding, ties to even. */
AOT_MODEL_INLINE int32_t aot_model_requantise_even(int32_t acc, int32_t multiplier, int32_t shift)
{
    const int32_t total = 31 - shift;
    const int64_t wide = (int64_t)acc * multiplier + ((int64_t)1 << (total - 1));
    const int64_t result = wide >> total;
    const bool tie = (wide & (((int64_t)1 << total) - 1)) == 0;
    return (int32_t)(tie ? result - (result & 1) : result);
}

/* What shifted to the right by so many bits is x / 2^bits, ties to even, or to odd: where an odd number is added behind
   an even one. 0 < bits < 31, |x| + 2^(bits - 1) < 2^31. */
AOT_MODEL_INLINE int32_t aot_model_to_even(int32_t x, int32_t bits)
{
    return x + (((int32_t)1 << (bits - 1)) - 1) + ((x >> bits) & 1);
}
AOT_MODEL_INLINE int32_t aot_model_to_odd(int32_t x, int32_t bits)
{
    return x + ((int32_t)1 << (bits - 1)) - ((x >> bits) & 1);
}
AOT_MODEL_INLINE int32_t aot_model_halved_even(int32_t x, int32_t bits) { return aot_model_to_even(x, bits) >> bits; }

/* Requantisation of a 64-bit accumulator by a 16-bit multiplier, ties up: int16 activations. */
AOT_MODEL_INLINE int32_t aot_model_requantise_wide(int64_t acc, int32_t multiplier, int32_t shift)
{
    const int32_t total = 15 - shift;
    const int64_t wide = (int64_t)((uint64_t)acc * (uint64_t)(int64_t)multiplier + ((uint64_t)1 << (total - 1)));
    return (int32_t)(wide >> total);
}

/* 2 * a * b / 2^32, ties up, saturated. */
AOT_MODEL_INLINE int32_t aot_model_high_multiply(int32_t a, int32_t b)
{
    return (a == INT32_MIN && b == INT32_MIN) ? INT32_MAX : (int32_t)(((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
}

/* x / 2^bits, ties away from zero; 0 <= bits <= 31. */
AOT_MODEL_INLINE int32_t aot_model_rounding_shift(int32_t x, int32_t bits)
{
    const int32_t mask = (int32_t)(((int64_t)1 << bits) - 1);
    return (x >> bits) + ((x & mask) > (mask >> 1) + (x < 0));
}

/* Zero bits above the highest one; 32 for 0. */
AOT_MODEL_INLINE int32_t aot_model_leading_zeros(int32_t x)
{
#if defined(__GNUC__) || defined(__clang__)
    return (x == 0) ? 32 : __builtin_clz((unsigned int)x);
#else
    int32_t n = 0;
    for (uint32_t u = (uint32_t)x; n < 32 && u < 0x80000000u; u <<= 1) {
        ++n;
    }
    return n;
#endif
}

/* 1 / (1 + a) in Q0.31 for a in [0, 1) in Q0.31, by three Newton-Raphson steps. */
AOT_MODEL_INLINE int32_t aot_model_reciprocal_of_one_plus(int32_t a)
{
    const int32_t half = (int32_t)(((int64_t)a + INT32_MAX + 1) / 2);
    int32_t r = 1515870810 + aot_model_high_multiply(half, -1010580540);
    for (int32_t k = 0; k < 3; k++) {
        const int32_t error = (1 << 29) - aot_model_high_multiply(half, r);
        r += aot_model_high_multiply(r, error) * 4;
    }
    return (r > INT32_MAX / 2) ? INT32_MAX : r * 2;
}

/* power * reciprocal / 2^31 over 2^(bits - leading zeros of total), ties up; none is negative, total is at least 2^19,
 * bits at least 22. */
AOT_MODEL_INLINE int32_t aot_model_softmax_ratio(int32_t reciprocal, int32_t power, int32_t total, int32_t bits)
{
    const int32_t right = bits - aot_model_leading_zeros(total | (int32_t)1 << 19);
    const int32_t high = (int32_t)(((int64_t)reciprocal * power + ((int64_t)1 << 30)) >> 32);
    return ((high >> (right - 10) >> 8) + 1) >> 1; /* in two steps: right - 2 may be more than 31 */
}

/* 2^(62 - leading zeros) / x in Q0.31 for x > 0: the reciprocal of x normalised to [1, 2). */
AOT_MODEL_INLINE int32_t aot_model_reciprocal(int32_t x)
{
    return aot_model_reciprocal_of_one_plus((int32_t)(((uint32_t)x << aot_model_leading_zeros(x)) - 0x80000000u));
}

/* x * 2^bits, saturated. */
AOT_MODEL_INLINE int32_t aot_model_shift_left_saturated(int32_t x, int32_t bits)
{
    const int64_t wide = (int64_t)x * ((int64_t)1 << bits);
    return (wide > INT32_MAX) ? INT32_MAX : (wide < INT32_MIN) ? INT32_MIN : (int32_t)wide;
}

/* 1 / sqrt(x) = multiplier * 2^(shift - 31) for x >= 0 (0 counts as 1): five Newton-Raphson steps in Q3.28. */
AOT_MODEL_INLINE int32_t aot_model_inverse_sqrt(int32_t x, int32_t *shift)
{
    int32_t right = 11;
    int32_t pairs;
    int32_t half;
    int32_t y = (int32_t)1 << 28;
    if (x <= 1) {
        *shift = 0;
        return INT32_MAX;
    }
    while (x >= ((int32_t)1 << 29)) {
        x /= 4;
        ++right;
    }
    pairs = (aot_model_leading_zeros(x) - 1) / 2 - 1;
    right -= pairs;
    half = aot_model_rounding_shift((int32_t)((uint32_t)x << (2 * pairs)) >> 1, 1);
    for (int32_t k = 0; k < 5; k++) {
        const int32_t square = aot_model_high_multiply(y, y);
        const int32_t cube = aot_model_shift_left_saturated(aot_model_high_multiply(square, y), 6);
        y = aot_model_shift_left_saturated(aot_model_high_multiply(((int32_t)1 << 28) + ((int32_t)1 << 27), y) - aot_model_high_multiply(half, cube), 3);
    }
    y = aot_model_high_multiply(y, 1518500250);
    *shift = (right < 0) ? 0 : -right;
    return (right < 0) ? (int32_t)((uint32_t)y << -right) : y;
}
AOT_MODEL_INLINE int32_t aot_model_inverse_sqrt_multiplier(int32_t x)
{
    int32_t shift;
    return aot_model_inverse_sqrt(x, &shift);
}
AOT_MODEL_INLINE int32_t aot_model_inverse_sqrt_shift(int32_t x)
{
    int32_t shift;
    (void)aot_model_inverse_sqrt(x, &shift);
    return shift;
}

/* log(z) in Q5.26 for z >= 1 in Q12.19: z is brought near to 1 by powers of sqrt 2, then a rational function. */
AOT_MODEL_INLINE int32_t aot_model_fixed_log(int32_t z)
{
    const int32_t quarter_root = 1805811301;
    const int32_t a = aot_model_leading_zeros(z);
    const int32_t b = aot_model_leading_zeros(aot_model_high_multiply(z, 1518500250)) - 1;
    const int32_t ra = aot_model_shift_left_saturated(aot_model_high_multiply(aot_model_shift_left_saturated(z, a - 1), 1518500250), 1);
    const int32_t rb = aot_model_shift_left_saturated(z, b);
    const int32_t r = (ra < rb) ? ra : rb;
    const int32_t pa = aot_model_shift_left_saturated(12 - a, 25) + 8388608;
    const int32_t pb = aot_model_shift_left_saturated(12 - b, 25) - 8388608;
    const int32_t p = (int32_t)(((int64_t)r + quarter_root + 1) / 2);
    const int32_t q = 2 * (r - quarter_root);
    const int32_t square = aot_model_high_multiply(q, q);
    const int32_t numerator = aot_model_high_multiply(q, r) + aot_model_high_multiply(aot_model_high_multiply(q, square), 117049297);
    const int32_t inner = 1057819769 + q + aot_model_high_multiply(127690142, square);
    const int32_t denominator = aot_model_high_multiply(p, inner) + aot_model_high_multiply(638450708, q);
    const int32_t quotient = aot_model_high_multiply(aot_model_rounding_shift(numerator, 6), aot_model_reciprocal_of_one_plus(denominator));
    return aot_model_shift_left_saturated(aot_model_high_multiply((pa > pb) ? pa : pb, 1488522236) + quotient, 1);
}

#endif
