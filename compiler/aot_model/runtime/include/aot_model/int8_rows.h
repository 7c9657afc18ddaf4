/* Products of a row of bytes with four rows of a matrix, summed in 32 bits.
 * Part of aot-model. */
#ifndef AOT_MODEL_INT8_ROWS_H
#define AOT_MODEL_INT8_ROWS_H

#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/helium.h"
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

#if AOT_MODEL_ROWS_MVE
/* Of four sums. */
AOT_MODEL_INLINE int32x4_t aot_model_four_scaled(int32x4_t sums, aot_model_scaling s)
{
    const int32x4_t high = vqrdmulhq_n_s32(sums, s.multiplier);
    return (s.right == 0) ? high : vrshlq_n_s32(vaddq_s32(high, vshrq_n_s32(high, 31)), -s.right);
}

/* start[i] + the products of x with row i of w. */
AOT_MODEL_INLINE int32x4_t aot_model_four_row_sums(const int32_t start[4], const int8_t *x, const int8_t *w, int32_t n)
{
    register int32_t left __asm__("lr") = n; /* a register less */
    int32_t a = start[0], b = start[1], c = start[2], d = start[3];
    int32x4_t sums;
    const int8_t *w1 = w + n, *w2 = w + 2 * n, *w3 = w + 3 * n;
    __asm__ volatile("wlstp.8 lr, lr, 2f\n\t"
            "1:\n\t"
            "vldrb.8 q0, [%[x]], #16\n\t"
            "vldrb.8 q1, [%[w]], #16\n\t"
            "vmladava.s8 %[a], q0, q1\n\t"
            "vldrb.8 q2, [%[w1]], #16\n\t"
            "vmladava.s8 %[b], q0, q2\n\t"
            "vldrb.8 q1, [%[w2]], #16\n\t"
            "vmladava.s8 %[c], q0, q1\n\t"
            "vldrb.8 q2, [%[w3]], #16\n\t"
            "vmladava.s8 %[d], q0, q2\n\t"
            "letp lr, 1b\n\t"
            "2:\n\t"
            "vmov %q[sums][2], %q[sums][0], %[a], %[c]\n\t"
            "vmov %q[sums][3], %q[sums][1], %[b], %[d]\n\t"
            : [left] "+r"(left), [sums] "=&w"(sums), [a] "+Te"(a), [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d),
              [x] "+r"(x), [w] "+r"(w), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3)
            :
            : "q0", "q1", "q2", "memory");
    return sums;
}

/* Both lanes of 32 bits as int16, saturated, added with saturation: in the even halves. */
AOT_MODEL_INLINE int16x8_t aot_model_saturated_sum(int32x4_t a, int32x4_t b)
{
    const int16x8_t zero = vdupq_n_s16(0);
    return vqaddq_s16(vqmovnbq_s32(zero, a), vqmovnbq_s32(zero, b));
}

/* x / (24 * 512) in the table of the logistic function: linear between the entries, 2^bits apart; `most` beyond them. */
AOT_MODEL_INLINE int32x4_t aot_model_between_entries(const uint16_t *table, int32x4_t x, int32_t bits, int32_t most)
{
    const int32x4_t size = vabsq_s32(x);
    const int32x4_t place = vshlq_r_s32(size, -bits);
    const int32x4_t part = vandq_s32(size, vdupq_n_s32((1 << bits) - 1));
    const uint32x4_t k = vreinterpretq_u32_s32(vminq_s32(place, vdupq_n_s32(254)));
    const int32x4_t left = vreinterpretq_s32_u32(vldrhq_gather_shifted_offset_u32(aot_model_read_uint16_t(table), k));
    const int32x4_t right = vreinterpretq_s32_u32(vldrhq_gather_shifted_offset_u32(aot_model_read_uint16_t(table + 1), k));
    const int32x4_t between = vaddq_s32(vshlq_r_s32(left, bits), vmulq_s32(part, vsubq_s32(right, left)));
    return vpselq_s32(vdupq_n_s32(most), between, vcmpgtq_n_s32(place, 254));
}

/* SigmoidInt16 of four arguments, scaled already. */
AOT_MODEL_INLINE int32x4_t aot_model_four_logistic_int16(const uint16_t *table, int32x4_t x)
{
    const int32x4_t y = aot_model_between_entries(table, x, 9, 0x7FFF * 1024);
    const int32x4_t below = vsubq_s32(vdupq_n_s32((1 << 25) + (1 << 9) - 1), y);
    return vshrq_n_s32(vpselq_s32(below, vaddq_n_s32(y, 1 << 9), vcmpltq_n_s32(x, 0)), 10);
}

AOT_MODEL_INLINE int32x4_t aot_model_four_tanh_int16(const uint16_t *table, int32x4_t x)
{
    const int32x4_t y = vsubq_n_s32(aot_model_between_entries(table, x, 8, 0xFFFF * 256), 1 << 23);
    const int32x4_t below = vsubq_s32(vdupq_n_s32((1 << 7) - 1), y);
    return vshrq_n_s32(vpselq_s32(below, vaddq_n_s32(y, 1 << 7), vcmpltq_n_s32(x, 0)), 8);
}
#endif

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
    static const int32_t none[4] = {0, 0, 0, 0};
    vstrwq_s32(sums, aot_model_four_row_sums(none, x, w, n));
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

/* n gates of int16: sums of x and of h, scaled apart. Pointers: what of a structure goes by registers is put on the stack by
 * GCC, and not counted by -fstack-usage. */
AOT_MODEL_FUNCTION void aot_model_gates_of_sums(const int32_t *from_x, const int32_t *from_h, const aot_model_scaling *of_x,
                                                const aot_model_scaling *of_h, int16_t *gates, int32_t n)
{
    const aot_model_scaling scale_x = *of_x, scale_h = *of_h;
    for (const int16_t *const end = gates + n; gates != end;) {
        *gates++ = (int16_t)dsp_ssat16(dsp_ssat16(aot_model_scaled(*from_x++, scale_x)) +
                                       dsp_ssat16(aot_model_scaled(*from_h++, scale_h)));
    }
}

/* Four gates of int16: sums of x and of h with four rows each, scaled apart. */
AOT_MODEL_INLINE void aot_model_four_gates(const int8_t *x, const int8_t *w, int32_t inputs, const int8_t *h, const int8_t *r,
                                           int32_t outputs, const int32_t *bias_x, const int32_t *bias_h,
                                           aot_model_scaling scale_x, aot_model_scaling scale_h, int16_t *gates)
{
#if AOT_MODEL_ROWS_MVE
    const int32x4_t from_x = aot_model_four_row_sums(bias_x, x, w, inputs);
    const int32x4_t from_h = aot_model_four_row_sums(bias_h, h, r, outputs);
    const int16x8_t sum = aot_model_saturated_sum(aot_model_four_scaled(from_x, scale_x),
                                                  aot_model_four_scaled(from_h, scale_h));
    vstrhq_s32(aot_model_written_int16_t(gates), vreinterpretq_s32_s16(sum));
#else
    int32_t sums_x[4];
    int32_t sums_h[4];
    aot_model_four_rows_int8(x, w, inputs, sums_x);
    aot_model_four_rows_int8(h, r, outputs, sums_h);
    for (int32_t i = 0; i < 4; i++) {
        const int32_t from_x = sums_x[i] + bias_x[i];
        const int32_t from_h = sums_h[i] + bias_h[i];
        gates[i] = (int16_t)dsp_ssat16(dsp_ssat16(aot_model_scaled(from_x, scale_x)) +
                                       dsp_ssat16(aot_model_scaled(from_h, scale_h)));
    }
#endif
}

#endif
