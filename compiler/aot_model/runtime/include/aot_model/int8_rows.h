/* Products of a row of bytes with four rows of a matrix, summed in 32 bits.
 * Part of aot-model. */
#ifndef AOT_MODEL_INT8_ROWS_H
#define AOT_MODEL_INT8_ROWS_H

#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/int8_dsp.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__)
#include <arm_mve.h>
#define AOT_MODEL_ROWS_MVE 1
#else
#define AOT_MODEL_ROWS_MVE 0
#endif

/* aot_model_requantise() with what depends on the shift computed before; -30 <= shift <= 0, |sum| < 2^30. */
typedef struct {
    int32_t multiplier;
    int32_t right;
    int32_t half;
    int32_t away; /* all bits where there is a right shift: ties of negative numbers go down */
} aot_model_scaling;

AOT_MODEL_INLINE aot_model_scaling aot_model_scaling_of(int32_t multiplier, int32_t shift)
{
    aot_model_scaling s;
    s.multiplier = multiplier;
    s.right = -shift;
    s.half = shift < 0 ? (int32_t)1 << (s.right - 1) : 0;
    s.away = shift < 0 ? -1 : 0;
    return s;
}

AOT_MODEL_INLINE int32_t aot_model_scaled(int32_t sum, aot_model_scaling s)
{
    const int32_t high = dsp_smmlar(sum * 2, s.multiplier, 0);
    return (high + ((high >> 31) & s.away) + s.half) >> s.right;
}

/* One row more: what is left where rows are no multiple of four. */
AOT_MODEL_INLINE int32_t aot_model_row_int8(const int8_t *x, const int8_t *w, int32_t n)
{
    int32_t sum = 0;
    for (int32_t k = 0; k < n; k++) {
        sum += x[k] * w[k];
    }
    return sum;
}

/* sums[i] = the products of x with row i of w; rows have n bytes and lie one behind the other. No sum may overflow. */
AOT_MODEL_INLINE void aot_model_four_rows_int8(const int8_t *x, const int8_t *w, int32_t n, int32_t sums[4])
{
#if AOT_MODEL_ROWS_MVE
    int32_t a = 0, b = 0, c = 0, d = 0;
    for (int32_t k = 0; k < n; k += 16) {
        const mve_pred16_t inside = vctp8q((uint32_t)(n - k));
        const int8x16_t v = vldrbq_z_s8(x + k, inside);
        a = vmladavaq_s8(a, v, vldrbq_z_s8(w + k, inside));
        b = vmladavaq_s8(b, v, vldrbq_z_s8(w + n + k, inside));
        c = vmladavaq_s8(c, v, vldrbq_z_s8(w + 2 * n + k, inside));
        d = vmladavaq_s8(d, v, vldrbq_z_s8(w + 3 * n + k, inside));
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
#elif AOT_MODEL_DSP
    int32_t a = 0, b = 0, c = 0, d = 0, k = 0;
    for (; k < n / 4 * 4; k += 4) {
        const int32_t four = dsp_quad_at(x + k);
        const int32_t even = dsp_sxtb16(four), odd = dsp_sxtb16_ror8(four);
        const int32_t w0 = dsp_quad_at(w + k), w1 = dsp_quad_at(w + n + k);
        a = dsp_smlad(odd, dsp_sxtb16_ror8(w0), dsp_smlad(even, dsp_sxtb16(w0), a));
        b = dsp_smlad(odd, dsp_sxtb16_ror8(w1), dsp_smlad(even, dsp_sxtb16(w1), b));
        const int32_t w2 = dsp_quad_at(w + 2 * n + k), w3 = dsp_quad_at(w + 3 * n + k);
        c = dsp_smlad(odd, dsp_sxtb16_ror8(w2), dsp_smlad(even, dsp_sxtb16(w2), c));
        d = dsp_smlad(odd, dsp_sxtb16_ror8(w3), dsp_smlad(even, dsp_sxtb16(w3), d));
    }
    for (; k < n; k++) {
        a += x[k] * w[k];
        b += x[k] * w[n + k];
        c += x[k] * w[2 * n + k];
        d += x[k] * w[3 * n + k];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
#else
    for (int32_t i = 0; i < 4; i++) {
        sums[i] = aot_model_row_int8(x, w + i * n, n);
    }
#endif
}

#endif
