/* Gates of recurrent cells in single precision: the logistic function and tanh as quotients, of which a cell divides several at
 * once, for processors on which a division takes as long as seven products (Cortex-M4, M7, M33). Sums come in units of the
 * powers of two that exp() is made of, times log2(e) for the logistic function and 2 log2(e) for tanh: their weights are
 * multiplied by it where they are packed. Largest errors of a function by itself, in units in the last place, of its argument
 * as it is rounded (tests/runtime/test_gates.py): logistic 2.8, tanh 4.3; as differences 9e-8 and 2.6e-7. The logistic function
 * is that of -126 below it.
 * Part of aot-model. */
#ifndef AOT_MODEL_GATES_H
#define AOT_MODEL_GATES_H

#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"
#include "aot_model/exponential.h"

/* That no compiler makes part of a multiply-add, which takes a Cortex-M4 longer. */
AOT_MODEL_INLINE float aot_model_product(float a, float b)
{
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)
    float product;
    __asm__("vmul.f32 %0, %1, %2" : "=t"(product) : "t"(a), "t"(b));
    return product;
#else
    return a * b;
#endif
}

/* 2^t = power * (even + odd) / (even - odd); |t| <= 126. The quotient is a minimax approximation of tanh. */
AOT_MODEL_INLINE float aot_model_power_quotient(float t, float *even, float *odd)
{
    float above = t + 12582912.0f; /* as in aot_model_exp_parts() */
    uint32_t bits;
    float whole;
    float r;
    float square;
    float power;
    AOT_MODEL_HOLD(above);
    whole = above - 12582912.0f;
    AOT_MODEL_HOLD(whole);
    r = t - whole;
    square = aot_model_product(r, r);
    *even = square + 20.818197f;
    *odd = aot_model_product(r, aot_model_product(square, 0.0577f) + 7.2150373f);
    memcpy(&bits, &above, sizeof bits);
    bits = (bits << 23) + 0x3F800000u; /* what was added to round is gone */
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The function is the result over `under`, and what it lacks to 1 `rest` over `under`: larger than 0, and at most 2e11. The
 * product of two such and of one of tanh has a normal inverse, which no processor flushes to zero. */
AOT_MODEL_INLINE float aot_model_logistic_quotient(float t, float *under, float *rest)
{
    float even;
    float odd;
    const float power = aot_model_power_quotient(t, &even, &odd);
    const float over = aot_model_product(power, even + odd);
    *rest = even - odd;
    *under = over + *rest;
    return over;
}

/* The function is the result over `under`, which is larger than 0 and at most 2e9. */
AOT_MODEL_INLINE float aot_model_tanh_quotient(float t, float *under)
{
    float even;
    float odd;
    const float power = aot_model_power_quotient(t, &even, &odd);
    float more = power + 1.0f;
    float less = power - 1.0f;
    AOT_MODEL_HOLD(more);
    AOT_MODEL_HOLD(less);
    *under = aot_model_product(more, even) + aot_model_product(less, odd);
    return aot_model_product(less, even) + aot_model_product(more, odd);
}

/* Whether not |t| <= 16. To compare floats takes long; a NaN is far, too. */
AOT_MODEL_INLINE bool aot_model_is_far_gate(float t)
{
    uint32_t bits;
    memcpy(&bits, &t, sizeof bits);
    return (bits << 1) > 0x83000000u;
}

/* Arguments are clamped: beyond the curves are flat. A NaN stays one. */
AOT_MODEL_INLINE float aot_model_logistic_argument(float t)
{
    if (AOT_MODEL_SELDOM(aot_model_is_far_gate(t))) {
        t = (t < -126.0f) ? -126.0f : t;
        t = (t > 32.0f) ? 32.0f : t;
    }
    return t;
}

AOT_MODEL_INLINE float aot_model_tanh_argument(float t)
{
    if (AOT_MODEL_SELDOM(aot_model_is_far_gate(t))) {
        t = (t < -26.0f) ? -26.0f : t;
        t = (t > 26.0f) ? 26.0f : t;
    }
    return t;
}

AOT_MODEL_INLINE float aot_model_gate_logistic(float t)
{
    float under;
    float rest;
    const float over = aot_model_logistic_quotient(aot_model_logistic_argument(t), &under, &rest);
    return over / under;
}

AOT_MODEL_INLINE float aot_model_gate_tanh(float t)
{
    float under;
    const float over = aot_model_tanh_quotient(aot_model_tanh_argument(t), &under);
    return over / under;
}

/* The units of a step, `units` > 0 of them. Rows of sums, `row` numbers from each other, are those of the gates in ONNX's order. The
 * cell is clipped to +-limit where that is more than 0. */
AOT_MODEL_INLINE void aot_model_lstm_units_within(const float *sums, int32_t row, float *cell, float *next, int32_t units,
                                                  float limit)
{
    for (int32_t u = 0; u < units; u++) {
        float i = aot_model_logistic_argument(sums[u]);
        float o = aot_model_logistic_argument(sums[u + row]);
        float f = aot_model_logistic_argument(sums[u + 2 * row]);
        float g = aot_model_tanh_argument(sums[u + 3 * row]);
        float c;
        float under_i;
        float under_f;
        float under_g;
        float under_o;
        float under_c;
        float rest;
        float inverse;
        i = aot_model_logistic_quotient(i, &under_i, &rest);
        f = aot_model_logistic_quotient(f, &under_f, &rest);
        g = aot_model_tanh_quotient(g, &under_g);
        i = aot_model_product(i, g);
        under_i = aot_model_product(under_i, under_g);
        inverse = 1.0f / aot_model_product(under_i, under_f);
        f = aot_model_product(aot_model_product(f, under_i), inverse);
        i = aot_model_product(aot_model_product(i, under_f), inverse);
        c = aot_model_product(f, cell[u]) + i;
        if (limit > 0.0f) {
            c = (c > limit) ? limit : c;
            c = (c < -limit) ? -limit : c;
        }
        cell[u] = c;
        c = aot_model_tanh_argument(aot_model_product(c, 2.88539008f));
        o = aot_model_logistic_quotient(o, &under_o, &rest);
        c = aot_model_tanh_quotient(c, &under_c);
        next[u] = aot_model_product(o, c) / aot_model_product(under_o, under_c);
    }
}

AOT_MODEL_FUNCTION void aot_model_lstm_units(const float *sums, int32_t row, float *cell, float *next, int32_t units)
{
    AOT_MODEL_BARRIER;
    aot_model_lstm_units_within(sums, row, cell, next, units, 0.0f);
    AOT_MODEL_BARRIER;
}

AOT_MODEL_FUNCTION void aot_model_lstm_clipped_units(const float *sums, int32_t row, float *cell, float *next, int32_t units,
                                                     float limit)
{
    AOT_MODEL_BARRIER;
    aot_model_lstm_units_within(sums, row, cell, next, units, limit);
    AOT_MODEL_BARRIER;
}

/* z, and h times r. */
AOT_MODEL_FUNCTION void aot_model_gru_gates(const float *sums, int32_t row, const float *h, float *update, float *gated,
                                            int32_t units)
{
    AOT_MODEL_BARRIER;
    for (int32_t u = 0; u < units; u++) {
        float z = aot_model_logistic_argument(sums[u]);
        float r = aot_model_logistic_argument(sums[u + row]);
        float under_z;
        float under_r;
        float rest;
        float inverse;
        z = aot_model_logistic_quotient(z, &under_z, &rest);
        r = aot_model_logistic_quotient(r, &under_r, &rest);
        inverse = 1.0f / aot_model_product(under_z, under_r);
        update[u] = aot_model_product(aot_model_product(z, under_r), inverse);
        r = aot_model_product(aot_model_product(r, under_z), inverse);
        gated[u] = aot_model_product(r, h[u]);
    }
    AOT_MODEL_BARRIER;
}

/* (1 - z) * tanh(sum) + z * h. */
AOT_MODEL_FUNCTION void aot_model_gru_candidates(const float *sums, const float *update, const float *h, float *next,
                                                 int32_t units)
{
    AOT_MODEL_BARRIER;
    for (int32_t u = 0; u < units; u++) {
        const float z = update[u];
        next[u] = aot_model_product(1.0f - z, aot_model_gate_tanh(sums[u])) + aot_model_product(z, h[u]);
    }
    AOT_MODEL_BARRIER;
}

/* The same with g = tanh(sum + r * that of h). */
AOT_MODEL_FUNCTION void aot_model_gru_units(const float *sums, int32_t row, const float *h, float *next, int32_t units)
{
    AOT_MODEL_BARRIER;
    for (int32_t u = 0; u < units; u++) {
        float z = aot_model_logistic_argument(sums[u]);
        const float r = aot_model_gate_logistic(sums[u + row]);
        float g = aot_model_tanh_argument(sums[u + 2 * row] + aot_model_product(r, sums[u + 3 * row]));
        float under_z;
        float under_g;
        float rest;
        float inverse;
        z = aot_model_logistic_quotient(z, &under_z, &rest);
        g = aot_model_tanh_quotient(g, &under_g);
        inverse = 1.0f / aot_model_product(under_z, under_g);
        z = aot_model_product(aot_model_product(z, under_g), inverse);
        g = aot_model_product(aot_model_product(rest, g), inverse);
        next[u] = g + aot_model_product(z, h[u]);
    }
    AOT_MODEL_BARRIER;
}

/* tanh of sums. */
AOT_MODEL_FUNCTION void aot_model_rnn_units(const float *sums, float *next, int32_t units)
{
    AOT_MODEL_BARRIER;
    for (int32_t u = 0; u < units; u++) {
        next[u] = aot_model_gate_tanh(sums[u]);
    }
    AOT_MODEL_BARRIER;
}

#endif
