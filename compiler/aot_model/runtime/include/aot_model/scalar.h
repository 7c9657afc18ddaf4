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
#include "aot_model/fixed_point.h"
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

#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif

#endif
