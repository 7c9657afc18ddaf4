/* Scalar operations of generated code where C has none that is defined for all operands.
 * Part of aot-model. */
#ifndef AOT_MODEL_SCALAR_H
#define AOT_MODEL_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"
#include "aot_model/exponential.h"
#include "aot_model/lanes.h"

/* Comparisons of floating point for equality in this header are meant: with NaN, with an exact zero, or as a model has them. */
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"
#endif

AOT_MODEL_INLINE bool aot_model_equal_float32(float a, float b) { return a == b; }
AOT_MODEL_INLINE bool aot_model_equal_float64(double a, double b) { return a == b; }

/* Minimum and maximum; a NaN operand is the result, as the standards of the model formats say. With a constant as
 * the second operand one comparison is left. */
#define AOT_MODEL_MINMAX_FLOAT(T, d)                                                                                   \
    AOT_MODEL_INLINE T aot_model_min_##d(T a, T b) { return (b < a || b != b) ? b : a; }                               \
    AOT_MODEL_INLINE T aot_model_max_##d(T a, T b) { return (b > a || b != b) ? b : a; }                               \
    AOT_MODEL_INLINE T aot_model_sign_##d(T a) { return (a > 0) ? (T)1 : (a < 0) ? (T)-1 : a; }
AOT_MODEL_MINMAX_FLOAT(float, float32)
AOT_MODEL_MINMAX_FLOAT(double, float64)

#define AOT_MODEL_MINMAX_INT(T, d)                                                                                     \
    AOT_MODEL_INLINE T aot_model_min_##d(T a, T b) { return (a < b) ? a : b; }                                         \
    AOT_MODEL_INLINE T aot_model_max_##d(T a, T b) { return (a > b) ? a : b; }
AOT_MODEL_MINMAX_INT(int32_t, int32)
AOT_MODEL_MINMAX_INT(int64_t, int64)
AOT_MODEL_MINMAX_INT(uint32_t, uint32)
AOT_MODEL_MINMAX_INT(uint64_t, uint64)

/* Remainders with the sign of the divisor. */
AOT_MODEL_INLINE float aot_model_mod_float32(float a, float b)
{
    const float r = fmodf(a, b);
    return (r != 0.0f && (r < 0.0f) != (b < 0.0f)) ? r + b : r;
}
AOT_MODEL_INLINE double aot_model_mod_float64(double a, double b)
{
    const double r = fmod(a, b);
    return (r != 0.0 && (r < 0.0) != (b < 0.0)) ? r + b : r;
}

/* Integer division and remainders: by zero gives 0, the smallest value by -1 wraps. */
#define AOT_MODEL_DIVISION_SIGNED(T, U, d)                                                                             \
    AOT_MODEL_INLINE T aot_model_div_##d(T a, T b) { return b == 0 ? 0 : b == -1 ? (T)(0u - (U)a) : a / b; }           \
    AOT_MODEL_INLINE T aot_model_rem_##d(T a, T b) { return (b == 0 || b == -1) ? 0 : a % b; }                         \
    AOT_MODEL_INLINE T aot_model_mod_##d(T a, T b)                                                                     \
    {                                                                                                                  \
        const T r = aot_model_rem_##d(a, b);                                                                           \
        return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;                                                             \
    }                                                                                                                  \
    AOT_MODEL_INLINE T aot_model_abs_##d(T a) { return a < 0 ? (T)(0u - (U)a) : a; }
AOT_MODEL_DIVISION_SIGNED(int32_t, uint32_t, int32)
AOT_MODEL_DIVISION_SIGNED(int64_t, uint64_t, int64)

#define AOT_MODEL_DIVISION_UNSIGNED(T, d)                                                                              \
    AOT_MODEL_INLINE T aot_model_div_##d(T a, T b) { return b == 0 ? 0 : a / b; }                                      \
    AOT_MODEL_INLINE T aot_model_rem_##d(T a, T b) { return b == 0 ? 0 : a % b; }                                      \
    AOT_MODEL_INLINE T aot_model_mod_##d(T a, T b) { return b == 0 ? 0 : a % b; }                                      \
    AOT_MODEL_INLINE T aot_model_abs_##d(T a) { return a; }
AOT_MODEL_DIVISION_UNSIGNED(uint32_t, uint32)
AOT_MODEL_DIVISION_UNSIGNED(uint64_t, uint64)

/* Division and remainder of indices, rounding down; n > 0. */
AOT_MODEL_INLINE int32_t aot_model_floordiv(int32_t x, int32_t n) { return (x >= 0) ? x / n : -((n - 1 - x) / n); }
AOT_MODEL_INLINE int32_t aot_model_floormod(int32_t x, int32_t n) { return x - aot_model_floordiv(x, n) * n; }

/* Integer powers by squaring, wrapping. */
#define AOT_MODEL_POWER(U, d)                                                                                          \
    AOT_MODEL_INLINE U aot_model_ipow_##d(U base, U exponent)                                                          \
    {                                                                                                                  \
        U result = 1u;                                                                                                 \
        while (exponent != 0u) {                                                                                       \
            result = (exponent & 1u) ? result * base : result;                                                         \
            base *= base;                                                                                              \
            exponent >>= 1;                                                                                            \
        }                                                                                                              \
        return result;                                                                                                 \
    }
AOT_MODEL_POWER(uint32_t, uint32)
AOT_MODEL_POWER(uint64_t, uint64)

/* A negative exponent gives 0 except for the bases 1 and -1. */
#define AOT_MODEL_POWER_SIGNED(T, U, d, u)                                                                             \
    AOT_MODEL_INLINE T aot_model_ipow_##d(T base, T exponent)                                                          \
    {                                                                                                                  \
        if (exponent < 0) {                                                                                            \
            return base == 1 ? 1 : base == -1 ? ((exponent & 1) ? -1 : 1) : 0;                                         \
        }                                                                                                              \
        return (T)aot_model_ipow_##u((U)base, (U)exponent);                                                            \
    }
AOT_MODEL_POWER_SIGNED(int32_t, uint32_t, int32, uint32)
AOT_MODEL_POWER_SIGNED(int64_t, uint64_t, int64, uint64)

/* Shifts; by a negative number or by the width or more all bits go. To the right the sign comes in. */
#define AOT_MODEL_SHIFT_SIGNED(T, U, bits, d)                                                                          \
    AOT_MODEL_INLINE T aot_model_shl_##d(T a, T n) { return ((U)n < (bits)) ? (T)((U)a << n) : (T)0; }                 \
    AOT_MODEL_INLINE T aot_model_shr_##d(T a, T n)                                                                     \
    {                                                                                                                  \
        const U by = ((U)n < (bits)) ? (U)n : (bits)-1u;                                                               \
        return (a < 0) ? (T)~(T)((U)~a >> by) : (T)((U)a >> by);                                                       \
    }
#define AOT_MODEL_SHIFT_UNSIGNED(T, bits, d)                                                                           \
    AOT_MODEL_INLINE T aot_model_shl_##d(T a, T n) { return (n < (bits)) ? (T)(a << n) : (T)0; }                       \
    AOT_MODEL_INLINE T aot_model_shr_##d(T a, T n) { return (n < (bits)) ? (T)(a >> n) : (T)0; }
AOT_MODEL_SHIFT_SIGNED(int32_t, uint32_t, 32u, int32)
AOT_MODEL_SHIFT_SIGNED(int64_t, uint64_t, 64u, int64)
AOT_MODEL_SHIFT_UNSIGNED(uint32_t, 32u, uint32)
AOT_MODEL_SHIFT_UNSIGNED(uint64_t, 64u, uint64)

/* Float to integer: truncates, saturates, NaN is 0. The upper limit is compared as a float that is exact. */
#define AOT_MODEL_TO_INT(F, f, T, t, low, above, most)                                                                 \
    AOT_MODEL_INLINE T aot_model_##f##_to_##t(F x)                                                                     \
    {                                                                                                                  \
        return (isnan(x) != 0) ? (T)0 : (x <= (F)(low)) ? (T)(low) : (x >= (F)(above)) ? (T)(most) : (T)x;             \
    }
#define AOT_MODEL_TO_INTS(F, f)                                                                                        \
    AOT_MODEL_TO_INT(F, f, int8_t, int8, -128, 128, 127)                                                               \
    AOT_MODEL_TO_INT(F, f, uint8_t, uint8, 0, 256, 255)                                                                \
    AOT_MODEL_TO_INT(F, f, int16_t, int16, -32768, 32768, 32767)                                                       \
    AOT_MODEL_TO_INT(F, f, uint16_t, uint16, 0, 65536, 65535)                                                          \
    AOT_MODEL_TO_INT(F, f, int32_t, int32, INT32_MIN, 2147483648.0, INT32_MAX)                                         \
    AOT_MODEL_TO_INT(F, f, uint32_t, uint32, 0, 4294967296.0, UINT32_MAX)                                              \
    AOT_MODEL_TO_INT(F, f, int64_t, int64, INT64_MIN, 9223372036854775808.0, INT64_MAX)                                \
    AOT_MODEL_TO_INT(F, f, uint64_t, uint64, 0, 18446744073709551616.0, UINT64_MAX)
AOT_MODEL_TO_INTS(float, float32)
AOT_MODEL_TO_INTS(double, float64)

#if defined(__ARM_FEATURE_SAT) && defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__) &&            \
    defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__ARM_FEATURE_MVE)
#define AOT_MODEL_SATURATES_FLOATS 1
#else
#define AOT_MODEL_SATURATES_FLOATS 0
#endif

#if AOT_MODEL_SATURATES_FLOATS
/* Both in one instruction, by as many bits as callers have. */
#define AOT_MODEL_SHIFTED_BYTE(saturate)                                                \
    if (bits == 8) {                                                                    \
        __asm__(saturate " %0, #8, %0, asr #8" : "+r"(whole) : : "cc");                 \
    } else if (bits == 16) {                                                            \
        __asm__(saturate " %0, #8, %0, asr #16" : "+r"(whole) : : "cc");                \
    } else {                                                                            \
        whole >>= bits;                                                                 \
        __asm__(saturate " %0, #8, %0" : "+r"(whole) : : "cc");                         \
    }                                                                                   \
    return whole

/* whole / 2^bits, which is rounded down, within [low, high]. */
AOT_MODEL_INLINE int32_t aot_model_shifted_within(int32_t whole, int32_t bits, int32_t low, int32_t high)
{
    if (low == -128 && high == 127) {
        AOT_MODEL_SHIFTED_BYTE("ssat");
    }
    if (low == 0 && high == 255) {
        AOT_MODEL_SHIFTED_BYTE("usat");
    }
    whole >>= bits;
    if (low == -32768 && high == 32767) {
        __asm__("ssat %0, #16, %0" : "+r"(whole) : : "cc");
        return whole;
    }
    if (low == 0 && high == 65535) {
        __asm__("usat %0, #16, %0" : "+r"(whole) : : "cc");
        return whole;
    }
    return (whole < low) ? low : (whole > high) ? high : whole;
}
#endif

/* x / by, which is rounded to a whole number: high + low is 1 / by, and the compiler has compared the two products with the
 * quotient on both sides of every half. */
AOT_MODEL_INLINE float aot_model_quotient(float x, float by, float high, float low)
{
#if defined(__GNUC__) && (defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA))
    (void)by;
    return __builtin_fmaf(x, high, x * low);
#else
    (void)high;
    (void)low;
    return x / by;
#endif
}

/* The whole number that is nearest to x, plus a zero point, within [low, high]; a NaN is as 0. Differences of the limits
 * and the zero point are less than 2^22. Ties are even: beside 1.5 * 2^23 the last bit of a float is 1. */
AOT_MODEL_INLINE int32_t aot_model_quantise_rint(float x, int32_t zero, int32_t low, int32_t high)
{
#if AOT_MODEL_SATURATES_FLOATS
    int32_t whole;
    __asm__("vcvtr.s32.f32 %0, %0" : "+t"(x)); /* saturates; of a NaN: 0 */
    memcpy(&whole, &x, sizeof whole);
    if (zero != 0) {
        __asm__("qadd %0, %0, %1" : "+r"(whole) : "r"(zero) : "cc");
    }
    return aot_model_shifted_within(whole, 0, low, high);
#else
    const float least = (float)(low - zero);
    const float most = (float)(high - zero);
    const float moved = ((x < least) ? least : (x > most) ? most : x) + 12582912.0f;
    int32_t bits;
    memcpy(&bits, &moved, sizeof bits);
    return (isnan(x) != 0) ? ((zero < low) ? low : (zero > high) ? high : zero) : bits - 0x4B400000 + zero;
#endif
}

/* The same with ties away from zero. */
AOT_MODEL_INLINE int32_t aot_model_quantise_round(float x, int32_t zero, int32_t low, int32_t high)
{
#if AOT_MODEL_SATURATES_FLOATS
    int32_t parts; /* of 1/256, towards zero: halves are exact, and what is less than one stays less */
    __asm__("vcvt.s32.f32 %0, %0, #8" : "+t"(x)); /* saturates; of a NaN: 0 */
    memcpy(&parts, &x, sizeof parts);
    int32_t more;
    __asm__("add %1, %2, %0, asr #31\n\tqadd %0, %0, %1" : "+r"(parts), "=&r"(more) : "r"(256 * zero + 128) : "cc");
    return aot_model_shifted_within(parts, 8, low, high);
#else
    const float least = (float)(low - zero);
    const float most = (float)(high - zero);
    const float inside = (x >= least) ? ((x > most) ? most : x) : least; /* of a NaN: a number that can be converted */
    const int32_t halves = (int32_t)(inside + inside);
    return (isnan(x) != 0) ? ((zero < low) ? low : (zero > high) ? high : zero) : ((halves + 1 + (halves >> 31)) >> 1) + zero;
#endif
}

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

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif
