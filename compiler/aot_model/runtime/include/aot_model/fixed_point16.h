/* The logistic function and tanh of 16-bit fixed-point numbers, as LiteRT's integer LSTM computes them: exp() by a
 * polynomial on [-1/4, 0) and factors for the bits above, quotients by three steps of Newton. Part of aot-model.
 *
 * Q`n`.m has n integer bits and m = 15 - n fraction bits; results are Q0.15. */
#ifndef AOT_MODEL_FIXED_POINT16_H
#define AOT_MODEL_FIXED_POINT16_H

#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/saturate.h"
#include "aot_model/scalar.h"

/* a * b in Q0.15, to nearest, ties up; -1 * -1 is the largest number below 1. */
AOT_MODEL_INLINE int32_t aot_model_q15_product(int32_t a, int32_t b)
{
    const int32_t product = (a * b + (INT32_C(1) << 14)) >> 15;
    return product > 32767 ? 32767 : product;
}

/* x * 2^bits, saturated. */
AOT_MODEL_INLINE int32_t aot_model_q15_shifted(int32_t x, int32_t bits)
{
    return aot_model_saturate_int16(x * (INT32_C(1) << bits));
}

/* exp(a) for a <= 0 in Q`integer_bits`. */
AOT_MODEL_INLINE int32_t aot_model_q15_exponential(int32_t a, int32_t integer_bits)
{
    static const int16_t factors[7] = {25520, 19875, 12055, 4435, 600, 11, 0}; /* exp(-2^k), k = -2, -1, ..., 4 */
    const int32_t quarter = INT32_C(1) << (13 - integer_bits);
    if (a == 0) {
        return 32767;
    }
    if (integer_bits > 5 && a < -(INT32_C(1) << (20 - integer_bits))) {
        return 0; /* below -32 */
    }
    const int32_t part = (a & (quarter - 1)) - quarter;
    const int32_t above = part - a;
    const int32_t x = aot_model_q15_shifted(part, integer_bits) + 4096; /* around -1/8 */
    const int32_t x2 = aot_model_q15_product(x, x);
    const int32_t x3 = aot_model_q15_product(x2, x);
    const int32_t x4 = aot_model_rounding_shift(aot_model_q15_product(x2, x2), 2);
    const int32_t rest = aot_model_rounding_shift(aot_model_q15_product(x4 + x3, 10923) + x2, 1);
    int32_t power = aot_model_saturate_int16(28918 + aot_model_q15_product(28918, x + rest));
    for (int32_t k = 0; k < 7 && k < integer_bits + 2; k++) {
        if ((above & (quarter << k)) != 0) {
            power = aot_model_q15_product(power, factors[k]);
        }
    }
    return power;
}

/* 2 / (1 + a) in Q2.13 for a in [0, 1) in Q0.15. */
AOT_MODEL_INLINE int32_t aot_model_q15_twice_reciprocal(int32_t a)
{
    const int32_t half = (a + 32768) >> 1; /* (1 + a) / 2 */
    int32_t x = 23130 + aot_model_q15_product(half, -15420);
    for (int32_t step = 0; step < 3; step++) {
        x += aot_model_q15_shifted(aot_model_q15_product(x, 8192 - aot_model_q15_product(half, x)), 2);
    }
    return x;
}

/* 1 / (1 + exp(-x)), x in Q3.12. */
AOT_MODEL_INLINE int16_t aot_model_q15_logistic(int16_t x)
{
    if (x == 0) {
        return 16384;
    }
    const int32_t power = aot_model_q15_exponential(x > 0 ? -(int32_t)x : x, 3);
    const int32_t positive = aot_model_q15_shifted(aot_model_q15_twice_reciprocal(power), 1);
    return (int16_t)(x > 0 ? positive : 32767 - positive);
}

/* tanh(x), x in Q`integer_bits`, of which there are at most 6. */
AOT_MODEL_INLINE int16_t aot_model_q15_tanh(int32_t integer_bits, int16_t x)
{
    if (x == 0) {
        return 0;
    }
    const int32_t power = aot_model_q15_exponential(x > 0 ? -(int32_t)x : x, integer_bits + 1); /* exp(-2 |x|) */
    const int32_t positive = aot_model_q15_shifted(aot_model_q15_twice_reciprocal(power) - 8192, 2);
    return (int16_t)(x > 0 ? positive : -positive);
}

#endif
