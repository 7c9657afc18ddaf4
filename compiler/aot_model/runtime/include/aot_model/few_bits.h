/* Products of floats and integers of four or eight bits without a sign, which are packed in words, on a Cortex-M with an FPU.
 *
 * No integer is taken out of its word, n0 + 16 n1 + 256 n2 + ... An instruction makes a float of the lower half of a word,
 * another one of all of it; of the word and of three masked copies these are eight sums of few of the terms, and sums of the
 * floats with which they are multiplied make of them x0 n0 + x1 n1 + ... again:
 *
 *     n0 = a0, 16 n1 = a1 - a0, 256 n2 = a2 - a1, 4096 n3 = a3 - a2    of the halves a0, a1, ... with 4, 8, 12 and 16 bits,
 *
 * and so on with the upper ones. Errors of rounding are two to three times those of products one by one. Floats beyond 1e37
 * may overflow, and below 1e-29 lose digits.
 * Part of aot-model. */
#ifndef AOT_MODEL_FEW_BITS_H
#define AOT_MODEL_FEW_BITS_H

#include <stdint.h>

#include "aot_model/attributes.h"

#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)
#define AOT_MODEL_FEW_BITS_FPU 1
#else
#define AOT_MODEL_FEW_BITS_FPU 0
#endif

#if AOT_MODEL_FEW_BITS_FPU
/* The floats of two words and of their lower halves, then `sums`. */
#define AOT_MODEL_OF_TWO_COLUMNS(sums)                                                                                           \
    __asm__("vmov %[h0], %[w0]\n\tvmov %[h1], %[w1]\n\t"                                                                         \
            "vcvt.f32.u32 %[a0], %[h0]\n\tvcvt.f32.u32 %[a1], %[h1]\n\t"                                                         \
            "vcvt.f32.u16 %[h0], %[h0], #0\n\tvcvt.f32.u16 %[h1], %[h1], #0\n\t" sums                                            \
            : [s0] "+t"(sum[0]), [s1] "+t"(sum[1]), [h0] "=&t"(half0), [h1] "=&t"(half1), [a0] "=&t"(all0), [a1] "=&t"(all1)     \
            : [w0] "r"(first), [w1] "r"(second), [xh] "t"(x_half), [xa] "t"(x_all))
/* The same of one word. */
#define AOT_MODEL_OF_WORD "vmov %[h], %[w]\n\tvcvt.f32.u32 %[a], %[h]\n\tvcvt.f32.u16 %[h], %[h], #0\n\t"
#endif

/* To each of two sums, those of two columns, half * x[0] + all * x[1] of its word. apart: products and sums are rounded one by
 * one, which takes a Cortex-M4 less time. Two columns at once, so that no instruction waits for the one before it. */
AOT_MODEL_INLINE void aot_model_plus_two_columns(float *sum, uint32_t first, uint32_t second, float x_half, float x_all, bool apart)
{
#if AOT_MODEL_FEW_BITS_FPU
    float half0;
    float half1;
    float all0;
    float all1;
    if (apart) {
        AOT_MODEL_OF_TWO_COLUMNS("vmul.f32 %[a0], %[a0], %[xa]\n\tvmul.f32 %[a1], %[a1], %[xa]\n\t"
                                 "vmul.f32 %[h0], %[h0], %[xh]\n\tvmul.f32 %[h1], %[h1], %[xh]\n\t"
                                 "vadd.f32 %[s0], %[s0], %[a0]\n\tvadd.f32 %[s1], %[s1], %[a1]\n\t"
                                 "vadd.f32 %[s0], %[s0], %[h0]\n\tvadd.f32 %[s1], %[s1], %[h1]");
    } else {
        AOT_MODEL_OF_TWO_COLUMNS("vfma.f32 %[s0], %[a0], %[xa]\n\tvfma.f32 %[s1], %[a1], %[xa]\n\t"
                                 "vfma.f32 %[s0], %[h0], %[xh]\n\tvfma.f32 %[s1], %[h1], %[xh]");
    }
#else
    (void)apart;
    sum[0] = (sum[0] + (float)first * x_all) + (float)(first & 0xFFFFu) * x_half;
    sum[1] = (sum[1] + (float)second * x_all) + (float)(second & 0xFFFFu) * x_half;
#endif
}

/* The same of the sums of two rows, for one column. */
AOT_MODEL_INLINE void aot_model_plus_two_rows(float *sum0, float *sum1, uint32_t word, const float *x0, const float *x1, int32_t half,
                                              int32_t all, bool apart)
{
#if AOT_MODEL_FEW_BITS_FPU
    float h;
    float a;
    if (apart) {
        float t0;
        float t1;
        __asm__(AOT_MODEL_OF_WORD
                "vmul.f32 %[t0], %[a], %[a0]\n\tvmul.f32 %[t1], %[a], %[a1]\n\t"
                "vmul.f32 %[a], %[h], %[h0]\n\tvmul.f32 %[h], %[h], %[h1]\n\t"
                "vadd.f32 %[s0], %[s0], %[t0]\n\tvadd.f32 %[s1], %[s1], %[t1]\n\t"
                "vadd.f32 %[s0], %[s0], %[a]\n\tvadd.f32 %[s1], %[s1], %[h]"
                : [s0] "+t"(*sum0), [s1] "+t"(*sum1), [h] "=&t"(h), [a] "=&t"(a), [t0] "=&t"(t0), [t1] "=&t"(t1)
                : [w] "r"(word), [h0] "t"(x0[half]), [a0] "t"(x0[all]), [h1] "t"(x1[half]), [a1] "t"(x1[all]));
    } else {
        __asm__(AOT_MODEL_OF_WORD
                "vfma.f32 %[s0], %[a], %[a0]\n\tvfma.f32 %[s1], %[a], %[a1]\n\t"
                "vfma.f32 %[s0], %[h], %[h0]\n\tvfma.f32 %[s1], %[h], %[h1]"
                : [s0] "+t"(*sum0), [s1] "+t"(*sum1), [h] "=&t"(h), [a] "=&t"(a)
                : [w] "r"(word), [h0] "t"(x0[half]), [a0] "t"(x0[all]), [h1] "t"(x1[half]), [a1] "t"(x1[all]));
    }
#else
    (void)apart;
    *sum0 = (*sum0 + (float)word * x0[all]) + (float)(word & 0xFFFFu) * x0[half];
    *sum1 = (*sum1 + (float)word * x1[all]) + (float)(word & 0xFFFFu) * x1[half];
#endif
}

/* For eight integers of four bits: of x what aot_model_plus_nibbles() multiplies, and the sum of x. */
AOT_MODEL_INLINE float aot_model_for_nibbles(const float *x, float *to)
{
    const float x1 = x[1] * 0.0625f; /* 2^-4 */
    const float x2 = x[2] * 0.00390625f; /* 2^-8 */
    const float x3 = x[3] * 0.000244140625f; /* 2^-12 */
    const float x4 = x[4] * 0.0000152587890625f; /* 2^-16 */
    const float x5 = x[5] * 9.5367431640625e-7f; /* 2^-20 */
    const float x6 = x[6] * 5.9604644775390625e-8f; /* 2^-24 */
    const float x7 = x[7] * 3.7252902984619141e-9f; /* 2^-28 */
    to[4] = x4 - x5;
    to[5] = x5 - x6;
    to[6] = x6 - x7;
    to[7] = x7;
    to[0] = (x[0] - x1) - to[4];
    to[1] = (x1 - x2) - to[5];
    to[2] = (x2 - x3) - to[6];
    to[3] = x3 - x7;
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/* Two columns of one row, and two rows of one column. */
AOT_MODEL_INLINE void aot_model_plus_nibbles(float *sum, const uint32_t *w, const float *x, bool apart)
{
    aot_model_plus_two_columns(sum, w[0] & 0x000F000Fu, w[1] & 0x000F000Fu, x[0], x[4], apart);
    aot_model_plus_two_columns(sum, w[0] & 0x00FF00FFu, w[1] & 0x00FF00FFu, x[1], x[5], apart);
    aot_model_plus_two_columns(sum, w[0] & 0x0FFF0FFFu, w[1] & 0x0FFF0FFFu, x[2], x[6], apart);
    aot_model_plus_two_columns(sum, w[0], w[1], x[3], x[7], apart);
}

AOT_MODEL_INLINE void aot_model_nibbles_by_two(float *sum0, float *sum1, uint32_t w, const float *x0, const float *x1, bool apart)
{
    aot_model_plus_two_rows(sum0, sum1, w & 0x000F000Fu, x0, x1, 0, 4, apart);
    aot_model_plus_two_rows(sum0, sum1, w & 0x00FF00FFu, x0, x1, 1, 5, apart);
    aot_model_plus_two_rows(sum0, sum1, w & 0x0FFF0FFFu, x0, x1, 2, 6, apart);
    aot_model_plus_two_rows(sum0, sum1, w, x0, x1, 3, 7, apart);
}

/* The same of four bytes. */
AOT_MODEL_INLINE float aot_model_for_bytes(const float *x, float *to)
{
    const float x1 = x[1] * 0.00390625f; /* 2^-8 */
    const float x2 = x[2] * 0.0000152587890625f; /* 2^-16 */
    const float x3 = x[3] * 5.9604644775390625e-8f; /* 2^-24 */
    to[2] = x2 - x3;
    to[3] = x3;
    to[0] = (x[0] - x1) - to[2];
    to[1] = x1 - x3;
    return (x[0] + x[1]) + (x[2] + x[3]);
}

AOT_MODEL_INLINE void aot_model_plus_bytes(float *sum, const uint32_t *w, const float *x, bool apart)
{
    aot_model_plus_two_columns(sum, w[0] & 0x00FF00FFu, w[1] & 0x00FF00FFu, x[0], x[2], apart);
    aot_model_plus_two_columns(sum, w[0], w[1], x[1], x[3], apart);
}

AOT_MODEL_INLINE void aot_model_bytes_by_two(float *sum0, float *sum1, uint32_t w, const float *x0, const float *x1, bool apart)
{
    aot_model_plus_two_rows(sum0, sum1, w & 0x00FF00FFu, x0, x1, 0, 2, apart);
    aot_model_plus_two_rows(sum0, sum1, w, x0, x1, 1, 3, apart);
}

#endif
