/* m: har_tcn.onnx, compiled by aot-model 0.1.0 for c. Do not edit.
 *
 * model     SHA-256 87c512d0e03adec24028eadc7f7195c80f63ec3eb0c7fc598b64b325be9663cc
 * compiler  aot-model 0.1.0
 *
 * m_run(), below the functions of the layers, calls them in order.
 * The values of the constants are at the end.
 *
 * Layers, in the order of the run; all numbers of steps in this file are those of this table:
 *
 *   step  function                MACs  layer
 *      1  00_conv_1x1            4,608  /s/Conv
 *      2  01_transpose                  /c.0/Conv
 *      3  02_conv_1x3           13,824  /c.0/Conv
 *      4  03_conv_1x3          110,592  /c.1/Conv
 *      5  04_conv_1x3          110,592  /c.2/Conv
 *      6  05_conv_1x3          110,592  /c.3/Conv
 *      7  06_reducemean                 /ReduceMean
 *      8  07_matmul                144  /f/Gemm
 *      9  08_reducemax                  /Softmax
 *     10  09_exp                        /Softmax
 *     11  10_reducesum                  /Softmax
 *     12  11_div                        /Softmax
 *
 * Memory (workspace: 12,288 bytes at a multiple of 16), and the steps in which it holds what:
 *
 *         first byte        bytes           steps  holds
 *
 *   workspace + 6936          768          0 to 2  input input
 *      workspace + 0        6,144          1 to 3  result of step 1
 *   workspace + 6144          792          2 to 3  result of step 2
 *      workspace + 0        6,144          3 to 4  result of step 3
 *   workspace + 6144        6,144          4 to 5  result of step 4
 *      workspace + 0        6,144          5 to 6  result of step 5
 *   workspace + 6144        6,144          6 to 7  result of step 6
 *      workspace + 0           96          7 to 8  result of step 7
 *      workspace + 0           24         8 to 10  result of step 8
 *     workspace + 24            4         9 to 10  result of step 9
 *      workspace + 0           24        10 to 12  result of step 10
 *     workspace + 24            4        11 to 12  result of step 11
 *      workspace + 0           24        12 to 13  output output
 */

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
/* These compilers sum int8_t * (uint8_t - 128) wrongly with the instructions below. */
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__)
#pragma GCC target("no-avxvnni,no-avx512vnni")
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#pragma GCC target("+noi8mm")
#endif
#endif
#include "m.h"

#if M_BUILD != 0x3cb6d44b60c546cfu
#error "m.c and m.h are of different builds: make both again, or copy both"
#endif

#if defined(__GNUC__) && !defined(AOT_MODEL_NO_ADVICE)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3
#pragma message "m.c was made for c: --target cortex-m55 would use the MVE vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__ARM_FEATURE_DSP) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#pragma message "m.c was made for c: --target cortex-m4 would use the DSP instructions " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__AVX2__) && defined(__FMA__)
#pragma message "m.c was made for c: --target host would use the AVX2 vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__aarch64__) && defined(__ARM_NEON)
#pragma message "m.c was made for c: --target host would use the NEON vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#endif
#endif

#include <math.h>
#include "aot_model/scalar.h"

/* ---- constants: 22,968 bytes; their values are at the end of this file ---- */

/* /s/Conv_weights: float32[96]; for each block of channels: bias, if any; for each tap those of the block */
static const float m_c_s_Conv_weights[96];

/* /c.0/Conv_weights: float32[240]; for each block of channels: bias, if any; for each tap those of the
 * block */
static const float m_c_c_0_Conv_weights[240];

/* /c.1/Conv_weights: float32[1752]; for each block of channels: bias, if any; for each tap those of the
 * block */
static const float m_c_c_1_Conv_weights[1752];

/* /c.2/Conv_weights: float32[1752]; for each block of channels: bias, if any; for each tap those of the
 * block */
static const float m_c_c_2_Conv_weights[1752];

/* /c.3/Conv_weights: float32[1752]; for each block of channels: bias, if any; for each tap those of the
 * block */
static const float m_c_c_3_Conv_weights[1752];

/* /f/Gemm_weights: float32[150]; for each block of channels: bias, if any; for each tap those of the block */
static const float m_c_f_Gemm_weights[150];

static inline float f32_fma(float a, float b, float acc)
{
#if defined(__GNUC__) && (defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA))
    return __builtin_fmaf(a, b, acc);
#else
    return acc + a * b; /* fmaf() would be a library call */
#endif
}

/* ---- layers ---- */

/* 2 pixels x 12 channels in registers
 * step 1: /s/Conv (Convolution): float32[1,64,3] * float32[24,1,3] -> float32[1,64,24], 4,608 MACs
 *   reads x at workspace + 6936; writes y at workspace + 0 */
static void m_00_conv_1x1(const float *restrict x, const float *restrict weights, float *restrict y)
{
    AOT_MODEL_BARRIER;
    const float *in = x;
    int32_t ox = 0;
    for (int32_t left = 64; left > 0; left -= 2) {
        const int32_t c0 = ox;
        const float *const x0 = in;
        ox += 1;
        in += 1;
        const int32_t c1 = ox;
        const float *const x1 = in;
        if (left > 2) {
            ox += 1;
            in += 1;
        }
        for (int32_t b = 0; b < 2; b++) {
            const float *w = weights + b * 48;
            float acc0_0 = w[0];
            float acc0_1 = w[1];
            float acc0_2 = w[2];
            float acc0_3 = w[3];
            float acc0_4 = w[4];
            float acc0_5 = w[5];
            float acc0_6 = w[6];
            float acc0_7 = w[7];
            float acc0_8 = w[8];
            float acc0_9 = w[9];
            float acc0_10 = w[10];
            float acc0_11 = w[11];
            float acc1_0 = acc0_0;
            float acc1_1 = acc0_1;
            float acc1_2 = acc0_2;
            float acc1_3 = acc0_3;
            float acc1_4 = acc0_4;
            float acc1_5 = acc0_5;
            float acc1_6 = acc0_6;
            float acc1_7 = acc0_7;
            float acc1_8 = acc0_8;
            float acc1_9 = acc0_9;
            float acc1_10 = acc0_10;
            float acc1_11 = acc0_11;
            w += 12;
            const float *a0 = x0;
            const float *a1 = x1;
            for (int32_t i = 0; i < 3; i++) {
                {
                    const float e0 = a0[0];
                    const float e1 = a1[0];
                    const float w11 = w[11];
                    acc0_11 = f32_fma(w11, e0, acc0_11);
                    acc1_11 = f32_fma(w11, e1, acc1_11);
                    const float w10 = w[10];
                    acc0_10 = f32_fma(w10, e0, acc0_10);
                    acc1_10 = f32_fma(w10, e1, acc1_10);
                    const float w9 = w[9];
                    acc0_9 = f32_fma(w9, e0, acc0_9);
                    acc1_9 = f32_fma(w9, e1, acc1_9);
                    const float w8 = w[8];
                    acc0_8 = f32_fma(w8, e0, acc0_8);
                    acc1_8 = f32_fma(w8, e1, acc1_8);
                    const float w7 = w[7];
                    acc0_7 = f32_fma(w7, e0, acc0_7);
                    acc1_7 = f32_fma(w7, e1, acc1_7);
                    const float w6 = w[6];
                    acc0_6 = f32_fma(w6, e0, acc0_6);
                    acc1_6 = f32_fma(w6, e1, acc1_6);
                    const float w5 = w[5];
                    acc0_5 = f32_fma(w5, e0, acc0_5);
                    acc1_5 = f32_fma(w5, e1, acc1_5);
                    const float w4 = w[4];
                    acc0_4 = f32_fma(w4, e0, acc0_4);
                    acc1_4 = f32_fma(w4, e1, acc1_4);
                    const float w3 = w[3];
                    acc0_3 = f32_fma(w3, e0, acc0_3);
                    acc1_3 = f32_fma(w3, e1, acc1_3);
                    const float w2 = w[2];
                    acc0_2 = f32_fma(w2, e0, acc0_2);
                    acc1_2 = f32_fma(w2, e1, acc1_2);
                    const float w1 = w[1];
                    acc0_1 = f32_fma(w1, e0, acc0_1);
                    acc1_1 = f32_fma(w1, e1, acc1_1);
                    const float w0 = w[0];
                    acc0_0 = f32_fma(w0, e0, acc0_0);
                    acc1_0 = f32_fma(w0, e1, acc1_0);
                }
                a0 += 64;
                a1 += 64;
                w += 12;
            }
            const int32_t oc = b * 12;
            y[c0 * 24 + oc] = acc0_0;
            y[c0 * 24 + (oc + 1)] = acc0_1;
            y[c0 * 24 + (oc + 2)] = acc0_2;
            y[c0 * 24 + (oc + 3)] = acc0_3;
            y[c0 * 24 + (oc + 4)] = acc0_4;
            y[c0 * 24 + (oc + 5)] = acc0_5;
            y[c0 * 24 + (oc + 6)] = acc0_6;
            y[c0 * 24 + (oc + 7)] = acc0_7;
            y[c0 * 24 + (oc + 8)] = acc0_8;
            y[c0 * 24 + (oc + 9)] = acc0_9;
            y[c0 * 24 + (oc + 10)] = acc0_10;
            y[c0 * 24 + (oc + 11)] = acc0_11;
            y[c1 * 24 + oc] = acc1_0;
            y[c1 * 24 + (oc + 1)] = acc1_1;
            y[c1 * 24 + (oc + 2)] = acc1_2;
            y[c1 * 24 + (oc + 3)] = acc1_3;
            y[c1 * 24 + (oc + 4)] = acc1_4;
            y[c1 * 24 + (oc + 5)] = acc1_5;
            y[c1 * 24 + (oc + 6)] = acc1_6;
            y[c1 * 24 + (oc + 7)] = acc1_7;
            y[c1 * 24 + (oc + 8)] = acc1_8;
            y[c1 * 24 + (oc + 9)] = acc1_9;
            y[c1 * 24 + (oc + 10)] = acc1_10;
            y[c1 * 24 + (oc + 11)] = acc1_11;
        }
    }
}

/* step 2: /c.0/Conv (Transpose): float32[1,3,64] -> float32[1,66,3]
 *   reads x at workspace + 6936; writes y at workspace + 6144 */
static void m_01_transpose(const float *restrict x, float *restrict y)
{
    AOT_MODEL_BARRIER;
    for (int32_t i = 0; i < 66; i++) {
        for (int32_t j = 0; j < 3; j++) {
            y[i * 3 + j] = i - 2 > -1 ? x[j * 64 + i - 2] : 0.0f;
        }
    }
}

/* 3 pixels x 8 channels in registers
 * step 3: /c.0/Conv (Convolution): float32[1,66,3] * float32[24,3,3] -> float32[1,64,24], 13,824 MACs
 *   reads x at workspace + 6144, tail0 at workspace + 0; writes y at workspace + 0 (in place of tail0) */
static void m_02_conv_1x3(const float *restrict x, const float *restrict weights, float *restrict y)
{
    AOT_MODEL_BARRIER;
    const float *const tail0 = y;
    const float *in = x;
    int32_t ox = 0;
    for (int32_t left = 64; left > 0; left -= 3) {
        const int32_t c0 = ox;
        const float *const x0 = in;
        if (left > 1) {
            ox += 1;
            in += 3;
        }
        const int32_t c1 = ox;
        const float *const x1 = in;
        if (left > 2) {
            ox += 1;
            in += 3;
        }
        const int32_t c2 = ox;
        const float *const x2 = in;
        if (left > 3) {
            ox += 1;
            in += 3;
        }
        for (int32_t b = 0; b < 3; b++) {
            const float *w = weights + b * 80;
            float acc0_0 = w[0];
            float acc0_1 = w[1];
            float acc0_2 = w[2];
            float acc0_3 = w[3];
            float acc0_4 = w[4];
            float acc0_5 = w[5];
            float acc0_6 = w[6];
            float acc0_7 = w[7];
            float acc1_0 = acc0_0;
            float acc1_1 = acc0_1;
            float acc1_2 = acc0_2;
            float acc1_3 = acc0_3;
            float acc1_4 = acc0_4;
            float acc1_5 = acc0_5;
            float acc1_6 = acc0_6;
            float acc1_7 = acc0_7;
            float acc2_0 = acc0_0;
            float acc2_1 = acc0_1;
            float acc2_2 = acc0_2;
            float acc2_3 = acc0_3;
            float acc2_4 = acc0_4;
            float acc2_5 = acc0_5;
            float acc2_6 = acc0_6;
            float acc2_7 = acc0_7;
            w += 8;
            const float *a0 = x0;
            const float *a1 = x1;
            const float *a2 = x2;
            for (int32_t i = 0; i < 9; i++) {
                {
                    const float e0 = a0[0];
                    const float e1 = a1[0];
                    const float e2 = a2[0];
                    const float w7 = w[7];
                    acc0_7 = f32_fma(w7, e0, acc0_7);
                    acc1_7 = f32_fma(w7, e1, acc1_7);
                    acc2_7 = f32_fma(w7, e2, acc2_7);
                    const float w6 = w[6];
                    acc0_6 = f32_fma(w6, e0, acc0_6);
                    acc1_6 = f32_fma(w6, e1, acc1_6);
                    acc2_6 = f32_fma(w6, e2, acc2_6);
                    const float w5 = w[5];
                    acc0_5 = f32_fma(w5, e0, acc0_5);
                    acc1_5 = f32_fma(w5, e1, acc1_5);
                    acc2_5 = f32_fma(w5, e2, acc2_5);
                    const float w4 = w[4];
                    acc0_4 = f32_fma(w4, e0, acc0_4);
                    acc1_4 = f32_fma(w4, e1, acc1_4);
                    acc2_4 = f32_fma(w4, e2, acc2_4);
                    const float w3 = w[3];
                    acc0_3 = f32_fma(w3, e0, acc0_3);
                    acc1_3 = f32_fma(w3, e1, acc1_3);
                    acc2_3 = f32_fma(w3, e2, acc2_3);
                    const float w2 = w[2];
                    acc0_2 = f32_fma(w2, e0, acc0_2);
                    acc1_2 = f32_fma(w2, e1, acc1_2);
                    acc2_2 = f32_fma(w2, e2, acc2_2);
                    const float w1 = w[1];
                    acc0_1 = f32_fma(w1, e0, acc0_1);
                    acc1_1 = f32_fma(w1, e1, acc1_1);
                    acc2_1 = f32_fma(w1, e2, acc2_1);
                    const float w0 = w[0];
                    acc0_0 = f32_fma(w0, e0, acc0_0);
                    acc1_0 = f32_fma(w0, e1, acc1_0);
                    acc2_0 = f32_fma(w0, e2, acc2_0);
                }
                a0 += 1;
                a1 += 1;
                a2 += 1;
                w += 8;
            }
            const int32_t oc = b * 8;
            y[c0 * 24 + oc] = aot_model_max_float32(acc0_0, 0.0f) + tail0[c0 * 24 + oc];
            y[c0 * 24 + (oc + 1)] = aot_model_max_float32(acc0_1, 0.0f) + tail0[c0 * 24 + (oc + 1)];
            y[c0 * 24 + (oc + 2)] = aot_model_max_float32(acc0_2, 0.0f) + tail0[c0 * 24 + (oc + 2)];
            y[c0 * 24 + (oc + 3)] = aot_model_max_float32(acc0_3, 0.0f) + tail0[c0 * 24 + (oc + 3)];
            y[c0 * 24 + (oc + 4)] = aot_model_max_float32(acc0_4, 0.0f) + tail0[c0 * 24 + (oc + 4)];
            y[c0 * 24 + (oc + 5)] = aot_model_max_float32(acc0_5, 0.0f) + tail0[c0 * 24 + (oc + 5)];
            y[c0 * 24 + (oc + 6)] = aot_model_max_float32(acc0_6, 0.0f) + tail0[c0 * 24 + (oc + 6)];
            y[c0 * 24 + (oc + 7)] = aot_model_max_float32(acc0_7, 0.0f) + tail0[c0 * 24 + (oc + 7)];
            if (left > 1) {
                y[c1 * 24 + oc] = aot_model_max_float32(acc1_0, 0.0f) + tail0[c1 * 24 + oc];
                y[c1 * 24 + (oc + 1)] = aot_model_max_float32(acc1_1, 0.0f) + tail0[c1 * 24 + (oc + 1)];
                y[c1 * 24 + (oc + 2)] = aot_model_max_float32(acc1_2, 0.0f) + tail0[c1 * 24 + (oc + 2)];
                y[c1 * 24 + (oc + 3)] = aot_model_max_float32(acc1_3, 0.0f) + tail0[c1 * 24 + (oc + 3)];
                y[c1 * 24 + (oc + 4)] = aot_model_max_float32(acc1_4, 0.0f) + tail0[c1 * 24 + (oc + 4)];
                y[c1 * 24 + (oc + 5)] = aot_model_max_float32(acc1_5, 0.0f) + tail0[c1 * 24 + (oc + 5)];
                y[c1 * 24 + (oc + 6)] = aot_model_max_float32(acc1_6, 0.0f) + tail0[c1 * 24 + (oc + 6)];
                y[c1 * 24 + (oc + 7)] = aot_model_max_float32(acc1_7, 0.0f) + tail0[c1 * 24 + (oc + 7)];
            }
            if (left > 2) {
                y[c2 * 24 + oc] = aot_model_max_float32(acc2_0, 0.0f) + tail0[c2 * 24 + oc];
                y[c2 * 24 + (oc + 1)] = aot_model_max_float32(acc2_1, 0.0f) + tail0[c2 * 24 + (oc + 1)];
                y[c2 * 24 + (oc + 2)] = aot_model_max_float32(acc2_2, 0.0f) + tail0[c2 * 24 + (oc + 2)];
                y[c2 * 24 + (oc + 3)] = aot_model_max_float32(acc2_3, 0.0f) + tail0[c2 * 24 + (oc + 3)];
                y[c2 * 24 + (oc + 4)] = aot_model_max_float32(acc2_4, 0.0f) + tail0[c2 * 24 + (oc + 4)];
                y[c2 * 24 + (oc + 5)] = aot_model_max_float32(acc2_5, 0.0f) + tail0[c2 * 24 + (oc + 5)];
                y[c2 * 24 + (oc + 6)] = aot_model_max_float32(acc2_6, 0.0f) + tail0[c2 * 24 + (oc + 6)];
                y[c2 * 24 + (oc + 7)] = aot_model_max_float32(acc2_7, 0.0f) + tail0[c2 * 24 + (oc + 7)];
            }
        }
    }
}

/* 3 pixels x 8 channels in registers
 * step 4: /c.1/Conv (Convolution): float32[1,64,24] * float32[24,3,24] -> float32[1,64,24], 110,592 MACs
 *   reads x at workspace + 0, tail0 at workspace + 0; writes y at workspace + 6144 */
static void m_03_conv_1x3(const float *restrict x, const float *restrict tail0, const float *restrict weights,
    float *restrict y)
{
    AOT_MODEL_BARRIER;
    /* cols: first output, outputs, first input, first tap, taps */
    static const struct { int16_t out, count, first, tap, taps; } cols[3] = {
        {0, 2, 0, 2, 1},
        {2, 2, 0, 1, 2},
        {4, 60, 0, 0, 3},
    };
    for (int32_t s = 0; s < 3; s++) {
        const float *in = x + cols[s].first * 24;
        int32_t ox = cols[s].out;
        for (int32_t left = cols[s].count; left > 0; left -= 3) {
            const int32_t c0 = ox;
            const float *const x0 = in;
            if (left > 1) {
                ox += 1;
                in += 24;
            }
            const int32_t c1 = ox;
            const float *const x1 = in;
            if (left > 2) {
                ox += 1;
                in += 24;
            }
            const int32_t c2 = ox;
            const float *const x2 = in;
            if (left > 3) {
                ox += 1;
                in += 24;
            }
            for (int32_t b = 0; b < 3; b++) {
                const float *w = weights + b * 584;
                float acc0_0 = w[0];
                float acc0_1 = w[1];
                float acc0_2 = w[2];
                float acc0_3 = w[3];
                float acc0_4 = w[4];
                float acc0_5 = w[5];
                float acc0_6 = w[6];
                float acc0_7 = w[7];
                float acc1_0 = acc0_0;
                float acc1_1 = acc0_1;
                float acc1_2 = acc0_2;
                float acc1_3 = acc0_3;
                float acc1_4 = acc0_4;
                float acc1_5 = acc0_5;
                float acc1_6 = acc0_6;
                float acc1_7 = acc0_7;
                float acc2_0 = acc0_0;
                float acc2_1 = acc0_1;
                float acc2_2 = acc0_2;
                float acc2_3 = acc0_3;
                float acc2_4 = acc0_4;
                float acc2_5 = acc0_5;
                float acc2_6 = acc0_6;
                float acc2_7 = acc0_7;
                w += (cols[s].tap) * 192 + 8;
                const float *a0 = x0;
                const float *a1 = x1;
                const float *a2 = x2;
                for (int32_t kx = 0; kx < cols[s].taps; kx++) {
                    for (int32_t i = 0; i < 24; i += 2) {
                        {
                            const float e0 = a0[0];
                            const float e1 = a1[0];
                            const float e2 = a2[0];
                            const float w7 = w[7];
                            acc0_7 = f32_fma(w7, e0, acc0_7);
                            acc1_7 = f32_fma(w7, e1, acc1_7);
                            acc2_7 = f32_fma(w7, e2, acc2_7);
                            const float w6 = w[6];
                            acc0_6 = f32_fma(w6, e0, acc0_6);
                            acc1_6 = f32_fma(w6, e1, acc1_6);
                            acc2_6 = f32_fma(w6, e2, acc2_6);
                            const float w5 = w[5];
                            acc0_5 = f32_fma(w5, e0, acc0_5);
                            acc1_5 = f32_fma(w5, e1, acc1_5);
                            acc2_5 = f32_fma(w5, e2, acc2_5);
                            const float w4 = w[4];
                            acc0_4 = f32_fma(w4, e0, acc0_4);
                            acc1_4 = f32_fma(w4, e1, acc1_4);
                            acc2_4 = f32_fma(w4, e2, acc2_4);
                            const float w3 = w[3];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            const float w2 = w[2];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            const float w1 = w[1];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            const float w0 = w[0];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                        }
                        {
                            const float e0 = a0[1];
                            const float e1 = a1[1];
                            const float e2 = a2[1];
                            const float w7 = w[15];
                            acc0_7 = f32_fma(w7, e0, acc0_7);
                            acc1_7 = f32_fma(w7, e1, acc1_7);
                            acc2_7 = f32_fma(w7, e2, acc2_7);
                            const float w6 = w[14];
                            acc0_6 = f32_fma(w6, e0, acc0_6);
                            acc1_6 = f32_fma(w6, e1, acc1_6);
                            acc2_6 = f32_fma(w6, e2, acc2_6);
                            const float w5 = w[13];
                            acc0_5 = f32_fma(w5, e0, acc0_5);
                            acc1_5 = f32_fma(w5, e1, acc1_5);
                            acc2_5 = f32_fma(w5, e2, acc2_5);
                            const float w4 = w[12];
                            acc0_4 = f32_fma(w4, e0, acc0_4);
                            acc1_4 = f32_fma(w4, e1, acc1_4);
                            acc2_4 = f32_fma(w4, e2, acc2_4);
                            const float w3 = w[11];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            const float w2 = w[10];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            const float w1 = w[9];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            const float w0 = w[8];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                        }
                        a0 += 2;
                        a1 += 2;
                        a2 += 2;
                        w += 16;
                    }
                    a0 += 24;
                    a1 += 24;
                    a2 += 24;
                }
                const int32_t oc = b * 8;
                y[c0 * 24 + oc] = tail0[c0 * 24 + oc] + aot_model_max_float32(acc0_0, 0.0f);
                y[c0 * 24 + (oc + 1)] = tail0[c0 * 24 + (oc + 1)] + aot_model_max_float32(acc0_1, 0.0f);
                y[c0 * 24 + (oc + 2)] = tail0[c0 * 24 + (oc + 2)] + aot_model_max_float32(acc0_2, 0.0f);
                y[c0 * 24 + (oc + 3)] = tail0[c0 * 24 + (oc + 3)] + aot_model_max_float32(acc0_3, 0.0f);
                y[c0 * 24 + (oc + 4)] = tail0[c0 * 24 + (oc + 4)] + aot_model_max_float32(acc0_4, 0.0f);
                y[c0 * 24 + (oc + 5)] = tail0[c0 * 24 + (oc + 5)] + aot_model_max_float32(acc0_5, 0.0f);
                y[c0 * 24 + (oc + 6)] = tail0[c0 * 24 + (oc + 6)] + aot_model_max_float32(acc0_6, 0.0f);
                y[c0 * 24 + (oc + 7)] = tail0[c0 * 24 + (oc + 7)] + aot_model_max_float32(acc0_7, 0.0f);
                if (left > 1) {
                    y[c1 * 24 + oc] = tail0[c1 * 24 + oc] + aot_model_max_float32(acc1_0, 0.0f);
                    y[c1 * 24 + (oc + 1)] = tail0[c1 * 24 + (oc + 1)] + aot_model_max_float32(acc1_1, 0.0f);
                    y[c1 * 24 + (oc + 2)] = tail0[c1 * 24 + (oc + 2)] + aot_model_max_float32(acc1_2, 0.0f);
                    y[c1 * 24 + (oc + 3)] = tail0[c1 * 24 + (oc + 3)] + aot_model_max_float32(acc1_3, 0.0f);
                    y[c1 * 24 + (oc + 4)] = tail0[c1 * 24 + (oc + 4)] + aot_model_max_float32(acc1_4, 0.0f);
                    y[c1 * 24 + (oc + 5)] = tail0[c1 * 24 + (oc + 5)] + aot_model_max_float32(acc1_5, 0.0f);
                    y[c1 * 24 + (oc + 6)] = tail0[c1 * 24 + (oc + 6)] + aot_model_max_float32(acc1_6, 0.0f);
                    y[c1 * 24 + (oc + 7)] = tail0[c1 * 24 + (oc + 7)] + aot_model_max_float32(acc1_7, 0.0f);
                }
                if (left > 2) {
                    y[c2 * 24 + oc] = tail0[c2 * 24 + oc] + aot_model_max_float32(acc2_0, 0.0f);
                    y[c2 * 24 + (oc + 1)] = tail0[c2 * 24 + (oc + 1)] + aot_model_max_float32(acc2_1, 0.0f);
                    y[c2 * 24 + (oc + 2)] = tail0[c2 * 24 + (oc + 2)] + aot_model_max_float32(acc2_2, 0.0f);
                    y[c2 * 24 + (oc + 3)] = tail0[c2 * 24 + (oc + 3)] + aot_model_max_float32(acc2_3, 0.0f);
                    y[c2 * 24 + (oc + 4)] = tail0[c2 * 24 + (oc + 4)] + aot_model_max_float32(acc2_4, 0.0f);
                    y[c2 * 24 + (oc + 5)] = tail0[c2 * 24 + (oc + 5)] + aot_model_max_float32(acc2_5, 0.0f);
                    y[c2 * 24 + (oc + 6)] = tail0[c2 * 24 + (oc + 6)] + aot_model_max_float32(acc2_6, 0.0f);
                    y[c2 * 24 + (oc + 7)] = tail0[c2 * 24 + (oc + 7)] + aot_model_max_float32(acc2_7, 0.0f);
                }
            }
        }
    }
}

/* 4 pixels x 5 channels in registers
 * step 5: /c.2/Conv (Convolution): float32[1,64,24] * float32[24,3,24] -> float32[1,64,24], 110,592 MACs
 *   reads x at workspace + 6144, tail0 at workspace + 6144; writes y at workspace + 0 */
static void m_04_conv_1x3(const float *restrict x, const float *restrict tail0, const float *restrict weights,
    float *restrict y)
{
    AOT_MODEL_BARRIER;
    /* cols: first output, outputs, first input, first tap, taps */
    static const struct { int16_t out, count, first, tap, taps; } cols[3] = {
        {0, 4, 0, 2, 1},
        {4, 4, 0, 1, 2},
        {8, 56, 0, 0, 3},
    };
    for (int32_t s = 0; s < 3; s++) {
        const float *in = x + cols[s].first * 24;
        int32_t ox = cols[s].out;
        for (int32_t left = cols[s].count; left > 0; left -= 4) {
            const int32_t c0 = ox;
            const float *const x0 = in;
            ox += 1;
            in += 24;
            const int32_t c1 = ox;
            const float *const x1 = in;
            ox += 1;
            in += 24;
            const int32_t c2 = ox;
            const float *const x2 = in;
            ox += 1;
            in += 24;
            const int32_t c3 = ox;
            const float *const x3 = in;
            if (left > 4) {
                ox += 1;
                in += 24;
            }
            for (int32_t b = 0; b < 4; b++) {
                const float *w = weights + b * 365;
                float acc0_0 = w[0];
                float acc0_1 = w[1];
                float acc0_2 = w[2];
                float acc0_3 = w[3];
                float acc0_4 = w[4];
                float acc1_0 = acc0_0;
                float acc1_1 = acc0_1;
                float acc1_2 = acc0_2;
                float acc1_3 = acc0_3;
                float acc1_4 = acc0_4;
                float acc2_0 = acc0_0;
                float acc2_1 = acc0_1;
                float acc2_2 = acc0_2;
                float acc2_3 = acc0_3;
                float acc2_4 = acc0_4;
                float acc3_0 = acc0_0;
                float acc3_1 = acc0_1;
                float acc3_2 = acc0_2;
                float acc3_3 = acc0_3;
                float acc3_4 = acc0_4;
                w += (cols[s].tap) * 120 + 5;
                const float *a0 = x0;
                const float *a1 = x1;
                const float *a2 = x2;
                const float *a3 = x3;
                for (int32_t kx = 0; kx < cols[s].taps; kx++) {
                    for (int32_t i = 0; i < 24; i += 2) {
                        {
                            const float e0 = a0[0];
                            const float e1 = a1[0];
                            const float e2 = a2[0];
                            const float e3 = a3[0];
                            const float w4 = w[4];
                            acc0_4 = f32_fma(w4, e0, acc0_4);
                            acc1_4 = f32_fma(w4, e1, acc1_4);
                            acc2_4 = f32_fma(w4, e2, acc2_4);
                            acc3_4 = f32_fma(w4, e3, acc3_4);
                            const float w3 = w[3];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            acc3_3 = f32_fma(w3, e3, acc3_3);
                            const float w2 = w[2];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            acc3_2 = f32_fma(w2, e3, acc3_2);
                            const float w1 = w[1];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            acc3_1 = f32_fma(w1, e3, acc3_1);
                            const float w0 = w[0];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                            acc3_0 = f32_fma(w0, e3, acc3_0);
                        }
                        {
                            const float e0 = a0[1];
                            const float e1 = a1[1];
                            const float e2 = a2[1];
                            const float e3 = a3[1];
                            const float w4 = w[9];
                            acc0_4 = f32_fma(w4, e0, acc0_4);
                            acc1_4 = f32_fma(w4, e1, acc1_4);
                            acc2_4 = f32_fma(w4, e2, acc2_4);
                            acc3_4 = f32_fma(w4, e3, acc3_4);
                            const float w3 = w[8];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            acc3_3 = f32_fma(w3, e3, acc3_3);
                            const float w2 = w[7];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            acc3_2 = f32_fma(w2, e3, acc3_2);
                            const float w1 = w[6];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            acc3_1 = f32_fma(w1, e3, acc3_1);
                            const float w0 = w[5];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                            acc3_0 = f32_fma(w0, e3, acc3_0);
                        }
                        a0 += 2;
                        a1 += 2;
                        a2 += 2;
                        a3 += 2;
                        w += 10;
                    }
                    a0 += 72;
                    a1 += 72;
                    a2 += 72;
                    a3 += 72;
                }
                const int32_t oc = b * 5;
                y[c0 * 24 + oc] = tail0[c0 * 24 + oc] + aot_model_max_float32(acc0_0, 0.0f);
                y[c0 * 24 + (oc + 1)] = tail0[c0 * 24 + (oc + 1)] + aot_model_max_float32(acc0_1, 0.0f);
                y[c0 * 24 + (oc + 2)] = tail0[c0 * 24 + (oc + 2)] + aot_model_max_float32(acc0_2, 0.0f);
                y[c0 * 24 + (oc + 3)] = tail0[c0 * 24 + (oc + 3)] + aot_model_max_float32(acc0_3, 0.0f);
                y[c0 * 24 + (oc + 4)] = tail0[c0 * 24 + (oc + 4)] + aot_model_max_float32(acc0_4, 0.0f);
                y[c1 * 24 + oc] = tail0[c1 * 24 + oc] + aot_model_max_float32(acc1_0, 0.0f);
                y[c1 * 24 + (oc + 1)] = tail0[c1 * 24 + (oc + 1)] + aot_model_max_float32(acc1_1, 0.0f);
                y[c1 * 24 + (oc + 2)] = tail0[c1 * 24 + (oc + 2)] + aot_model_max_float32(acc1_2, 0.0f);
                y[c1 * 24 + (oc + 3)] = tail0[c1 * 24 + (oc + 3)] + aot_model_max_float32(acc1_3, 0.0f);
                y[c1 * 24 + (oc + 4)] = tail0[c1 * 24 + (oc + 4)] + aot_model_max_float32(acc1_4, 0.0f);
                y[c2 * 24 + oc] = tail0[c2 * 24 + oc] + aot_model_max_float32(acc2_0, 0.0f);
                y[c2 * 24 + (oc + 1)] = tail0[c2 * 24 + (oc + 1)] + aot_model_max_float32(acc2_1, 0.0f);
                y[c2 * 24 + (oc + 2)] = tail0[c2 * 24 + (oc + 2)] + aot_model_max_float32(acc2_2, 0.0f);
                y[c2 * 24 + (oc + 3)] = tail0[c2 * 24 + (oc + 3)] + aot_model_max_float32(acc2_3, 0.0f);
                y[c2 * 24 + (oc + 4)] = tail0[c2 * 24 + (oc + 4)] + aot_model_max_float32(acc2_4, 0.0f);
                y[c3 * 24 + oc] = tail0[c3 * 24 + oc] + aot_model_max_float32(acc3_0, 0.0f);
                y[c3 * 24 + (oc + 1)] = tail0[c3 * 24 + (oc + 1)] + aot_model_max_float32(acc3_1, 0.0f);
                y[c3 * 24 + (oc + 2)] = tail0[c3 * 24 + (oc + 2)] + aot_model_max_float32(acc3_2, 0.0f);
                y[c3 * 24 + (oc + 3)] = tail0[c3 * 24 + (oc + 3)] + aot_model_max_float32(acc3_3, 0.0f);
                y[c3 * 24 + (oc + 4)] = tail0[c3 * 24 + (oc + 4)] + aot_model_max_float32(acc3_4, 0.0f);
            }
            {
                const float *w = weights + 1460;
                float acc0_0 = w[0];
                float acc0_1 = w[1];
                float acc0_2 = w[2];
                float acc0_3 = w[3];
                float acc1_0 = acc0_0;
                float acc1_1 = acc0_1;
                float acc1_2 = acc0_2;
                float acc1_3 = acc0_3;
                float acc2_0 = acc0_0;
                float acc2_1 = acc0_1;
                float acc2_2 = acc0_2;
                float acc2_3 = acc0_3;
                float acc3_0 = acc0_0;
                float acc3_1 = acc0_1;
                float acc3_2 = acc0_2;
                float acc3_3 = acc0_3;
                w += (cols[s].tap) * 96 + 4;
                const float *a0 = x0;
                const float *a1 = x1;
                const float *a2 = x2;
                const float *a3 = x3;
                for (int32_t kx = 0; kx < cols[s].taps; kx++) {
                    for (int32_t i = 0; i < 24; i += 2) {
                        {
                            const float e0 = a0[0];
                            const float e1 = a1[0];
                            const float e2 = a2[0];
                            const float e3 = a3[0];
                            const float w3 = w[3];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            acc3_3 = f32_fma(w3, e3, acc3_3);
                            const float w2 = w[2];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            acc3_2 = f32_fma(w2, e3, acc3_2);
                            const float w1 = w[1];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            acc3_1 = f32_fma(w1, e3, acc3_1);
                            const float w0 = w[0];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                            acc3_0 = f32_fma(w0, e3, acc3_0);
                        }
                        {
                            const float e0 = a0[1];
                            const float e1 = a1[1];
                            const float e2 = a2[1];
                            const float e3 = a3[1];
                            const float w3 = w[7];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            acc3_3 = f32_fma(w3, e3, acc3_3);
                            const float w2 = w[6];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            acc3_2 = f32_fma(w2, e3, acc3_2);
                            const float w1 = w[5];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            acc3_1 = f32_fma(w1, e3, acc3_1);
                            const float w0 = w[4];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                            acc3_0 = f32_fma(w0, e3, acc3_0);
                        }
                        a0 += 2;
                        a1 += 2;
                        a2 += 2;
                        a3 += 2;
                        w += 8;
                    }
                    a0 += 72;
                    a1 += 72;
                    a2 += 72;
                    a3 += 72;
                }
                y[c0 * 24 + 20] = tail0[c0 * 24 + 20] + aot_model_max_float32(acc0_0, 0.0f);
                y[c0 * 24 + 21] = tail0[c0 * 24 + 21] + aot_model_max_float32(acc0_1, 0.0f);
                y[c0 * 24 + 22] = tail0[c0 * 24 + 22] + aot_model_max_float32(acc0_2, 0.0f);
                y[c0 * 24 + 23] = tail0[c0 * 24 + 23] + aot_model_max_float32(acc0_3, 0.0f);
                y[c1 * 24 + 20] = tail0[c1 * 24 + 20] + aot_model_max_float32(acc1_0, 0.0f);
                y[c1 * 24 + 21] = tail0[c1 * 24 + 21] + aot_model_max_float32(acc1_1, 0.0f);
                y[c1 * 24 + 22] = tail0[c1 * 24 + 22] + aot_model_max_float32(acc1_2, 0.0f);
                y[c1 * 24 + 23] = tail0[c1 * 24 + 23] + aot_model_max_float32(acc1_3, 0.0f);
                y[c2 * 24 + 20] = tail0[c2 * 24 + 20] + aot_model_max_float32(acc2_0, 0.0f);
                y[c2 * 24 + 21] = tail0[c2 * 24 + 21] + aot_model_max_float32(acc2_1, 0.0f);
                y[c2 * 24 + 22] = tail0[c2 * 24 + 22] + aot_model_max_float32(acc2_2, 0.0f);
                y[c2 * 24 + 23] = tail0[c2 * 24 + 23] + aot_model_max_float32(acc2_3, 0.0f);
                y[c3 * 24 + 20] = tail0[c3 * 24 + 20] + aot_model_max_float32(acc3_0, 0.0f);
                y[c3 * 24 + 21] = tail0[c3 * 24 + 21] + aot_model_max_float32(acc3_1, 0.0f);
                y[c3 * 24 + 22] = tail0[c3 * 24 + 22] + aot_model_max_float32(acc3_2, 0.0f);
                y[c3 * 24 + 23] = tail0[c3 * 24 + 23] + aot_model_max_float32(acc3_3, 0.0f);
            }
        }
    }
}

/* 4 pixels x 5 channels in registers
 * step 6: /c.3/Conv (Convolution): float32[1,64,24] * float32[24,3,24] -> float32[1,64,24], 110,592 MACs
 *   reads x at workspace + 0, tail0 at workspace + 0; writes y at workspace + 6144 */
static void m_05_conv_1x3(const float *restrict x, const float *restrict tail0, const float *restrict weights,
    float *restrict y)
{
    AOT_MODEL_BARRIER;
    /* cols: first output, outputs, first input, first tap, taps */
    static const struct { int16_t out, count, first, tap, taps; } cols[3] = {
        {0, 8, 0, 2, 1},
        {8, 8, 0, 1, 2},
        {16, 48, 0, 0, 3},
    };
    for (int32_t s = 0; s < 3; s++) {
        const float *in = x + cols[s].first * 24;
        int32_t ox = cols[s].out;
        for (int32_t left = cols[s].count; left > 0; left -= 4) {
            const int32_t c0 = ox;
            const float *const x0 = in;
            ox += 1;
            in += 24;
            const int32_t c1 = ox;
            const float *const x1 = in;
            ox += 1;
            in += 24;
            const int32_t c2 = ox;
            const float *const x2 = in;
            ox += 1;
            in += 24;
            const int32_t c3 = ox;
            const float *const x3 = in;
            if (left > 4) {
                ox += 1;
                in += 24;
            }
            for (int32_t b = 0; b < 4; b++) {
                const float *w = weights + b * 365;
                float acc0_0 = w[0];
                float acc0_1 = w[1];
                float acc0_2 = w[2];
                float acc0_3 = w[3];
                float acc0_4 = w[4];
                float acc1_0 = acc0_0;
                float acc1_1 = acc0_1;
                float acc1_2 = acc0_2;
                float acc1_3 = acc0_3;
                float acc1_4 = acc0_4;
                float acc2_0 = acc0_0;
                float acc2_1 = acc0_1;
                float acc2_2 = acc0_2;
                float acc2_3 = acc0_3;
                float acc2_4 = acc0_4;
                float acc3_0 = acc0_0;
                float acc3_1 = acc0_1;
                float acc3_2 = acc0_2;
                float acc3_3 = acc0_3;
                float acc3_4 = acc0_4;
                w += (cols[s].tap) * 120 + 5;
                const float *a0 = x0;
                const float *a1 = x1;
                const float *a2 = x2;
                const float *a3 = x3;
                for (int32_t kx = 0; kx < cols[s].taps; kx++) {
                    for (int32_t i = 0; i < 24; i += 2) {
                        {
                            const float e0 = a0[0];
                            const float e1 = a1[0];
                            const float e2 = a2[0];
                            const float e3 = a3[0];
                            const float w4 = w[4];
                            acc0_4 = f32_fma(w4, e0, acc0_4);
                            acc1_4 = f32_fma(w4, e1, acc1_4);
                            acc2_4 = f32_fma(w4, e2, acc2_4);
                            acc3_4 = f32_fma(w4, e3, acc3_4);
                            const float w3 = w[3];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            acc3_3 = f32_fma(w3, e3, acc3_3);
                            const float w2 = w[2];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            acc3_2 = f32_fma(w2, e3, acc3_2);
                            const float w1 = w[1];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            acc3_1 = f32_fma(w1, e3, acc3_1);
                            const float w0 = w[0];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                            acc3_0 = f32_fma(w0, e3, acc3_0);
                        }
                        {
                            const float e0 = a0[1];
                            const float e1 = a1[1];
                            const float e2 = a2[1];
                            const float e3 = a3[1];
                            const float w4 = w[9];
                            acc0_4 = f32_fma(w4, e0, acc0_4);
                            acc1_4 = f32_fma(w4, e1, acc1_4);
                            acc2_4 = f32_fma(w4, e2, acc2_4);
                            acc3_4 = f32_fma(w4, e3, acc3_4);
                            const float w3 = w[8];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            acc3_3 = f32_fma(w3, e3, acc3_3);
                            const float w2 = w[7];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            acc3_2 = f32_fma(w2, e3, acc3_2);
                            const float w1 = w[6];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            acc3_1 = f32_fma(w1, e3, acc3_1);
                            const float w0 = w[5];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                            acc3_0 = f32_fma(w0, e3, acc3_0);
                        }
                        a0 += 2;
                        a1 += 2;
                        a2 += 2;
                        a3 += 2;
                        w += 10;
                    }
                    a0 += 168;
                    a1 += 168;
                    a2 += 168;
                    a3 += 168;
                }
                const int32_t oc = b * 5;
                y[c0 * 24 + oc] = tail0[c0 * 24 + oc] + aot_model_max_float32(acc0_0, 0.0f);
                y[c0 * 24 + (oc + 1)] = tail0[c0 * 24 + (oc + 1)] + aot_model_max_float32(acc0_1, 0.0f);
                y[c0 * 24 + (oc + 2)] = tail0[c0 * 24 + (oc + 2)] + aot_model_max_float32(acc0_2, 0.0f);
                y[c0 * 24 + (oc + 3)] = tail0[c0 * 24 + (oc + 3)] + aot_model_max_float32(acc0_3, 0.0f);
                y[c0 * 24 + (oc + 4)] = tail0[c0 * 24 + (oc + 4)] + aot_model_max_float32(acc0_4, 0.0f);
                y[c1 * 24 + oc] = tail0[c1 * 24 + oc] + aot_model_max_float32(acc1_0, 0.0f);
                y[c1 * 24 + (oc + 1)] = tail0[c1 * 24 + (oc + 1)] + aot_model_max_float32(acc1_1, 0.0f);
                y[c1 * 24 + (oc + 2)] = tail0[c1 * 24 + (oc + 2)] + aot_model_max_float32(acc1_2, 0.0f);
                y[c1 * 24 + (oc + 3)] = tail0[c1 * 24 + (oc + 3)] + aot_model_max_float32(acc1_3, 0.0f);
                y[c1 * 24 + (oc + 4)] = tail0[c1 * 24 + (oc + 4)] + aot_model_max_float32(acc1_4, 0.0f);
                y[c2 * 24 + oc] = tail0[c2 * 24 + oc] + aot_model_max_float32(acc2_0, 0.0f);
                y[c2 * 24 + (oc + 1)] = tail0[c2 * 24 + (oc + 1)] + aot_model_max_float32(acc2_1, 0.0f);
                y[c2 * 24 + (oc + 2)] = tail0[c2 * 24 + (oc + 2)] + aot_model_max_float32(acc2_2, 0.0f);
                y[c2 * 24 + (oc + 3)] = tail0[c2 * 24 + (oc + 3)] + aot_model_max_float32(acc2_3, 0.0f);
                y[c2 * 24 + (oc + 4)] = tail0[c2 * 24 + (oc + 4)] + aot_model_max_float32(acc2_4, 0.0f);
                y[c3 * 24 + oc] = tail0[c3 * 24 + oc] + aot_model_max_float32(acc3_0, 0.0f);
                y[c3 * 24 + (oc + 1)] = tail0[c3 * 24 + (oc + 1)] + aot_model_max_float32(acc3_1, 0.0f);
                y[c3 * 24 + (oc + 2)] = tail0[c3 * 24 + (oc + 2)] + aot_model_max_float32(acc3_2, 0.0f);
                y[c3 * 24 + (oc + 3)] = tail0[c3 * 24 + (oc + 3)] + aot_model_max_float32(acc3_3, 0.0f);
                y[c3 * 24 + (oc + 4)] = tail0[c3 * 24 + (oc + 4)] + aot_model_max_float32(acc3_4, 0.0f);
            }
            {
                const float *w = weights + 1460;
                float acc0_0 = w[0];
                float acc0_1 = w[1];
                float acc0_2 = w[2];
                float acc0_3 = w[3];
                float acc1_0 = acc0_0;
                float acc1_1 = acc0_1;
                float acc1_2 = acc0_2;
                float acc1_3 = acc0_3;
                float acc2_0 = acc0_0;
                float acc2_1 = acc0_1;
                float acc2_2 = acc0_2;
                float acc2_3 = acc0_3;
                float acc3_0 = acc0_0;
                float acc3_1 = acc0_1;
                float acc3_2 = acc0_2;
                float acc3_3 = acc0_3;
                w += (cols[s].tap) * 96 + 4;
                const float *a0 = x0;
                const float *a1 = x1;
                const float *a2 = x2;
                const float *a3 = x3;
                for (int32_t kx = 0; kx < cols[s].taps; kx++) {
                    for (int32_t i = 0; i < 24; i += 2) {
                        {
                            const float e0 = a0[0];
                            const float e1 = a1[0];
                            const float e2 = a2[0];
                            const float e3 = a3[0];
                            const float w3 = w[3];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            acc3_3 = f32_fma(w3, e3, acc3_3);
                            const float w2 = w[2];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            acc3_2 = f32_fma(w2, e3, acc3_2);
                            const float w1 = w[1];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            acc3_1 = f32_fma(w1, e3, acc3_1);
                            const float w0 = w[0];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                            acc3_0 = f32_fma(w0, e3, acc3_0);
                        }
                        {
                            const float e0 = a0[1];
                            const float e1 = a1[1];
                            const float e2 = a2[1];
                            const float e3 = a3[1];
                            const float w3 = w[7];
                            acc0_3 = f32_fma(w3, e0, acc0_3);
                            acc1_3 = f32_fma(w3, e1, acc1_3);
                            acc2_3 = f32_fma(w3, e2, acc2_3);
                            acc3_3 = f32_fma(w3, e3, acc3_3);
                            const float w2 = w[6];
                            acc0_2 = f32_fma(w2, e0, acc0_2);
                            acc1_2 = f32_fma(w2, e1, acc1_2);
                            acc2_2 = f32_fma(w2, e2, acc2_2);
                            acc3_2 = f32_fma(w2, e3, acc3_2);
                            const float w1 = w[5];
                            acc0_1 = f32_fma(w1, e0, acc0_1);
                            acc1_1 = f32_fma(w1, e1, acc1_1);
                            acc2_1 = f32_fma(w1, e2, acc2_1);
                            acc3_1 = f32_fma(w1, e3, acc3_1);
                            const float w0 = w[4];
                            acc0_0 = f32_fma(w0, e0, acc0_0);
                            acc1_0 = f32_fma(w0, e1, acc1_0);
                            acc2_0 = f32_fma(w0, e2, acc2_0);
                            acc3_0 = f32_fma(w0, e3, acc3_0);
                        }
                        a0 += 2;
                        a1 += 2;
                        a2 += 2;
                        a3 += 2;
                        w += 8;
                    }
                    a0 += 168;
                    a1 += 168;
                    a2 += 168;
                    a3 += 168;
                }
                y[c0 * 24 + 20] = tail0[c0 * 24 + 20] + aot_model_max_float32(acc0_0, 0.0f);
                y[c0 * 24 + 21] = tail0[c0 * 24 + 21] + aot_model_max_float32(acc0_1, 0.0f);
                y[c0 * 24 + 22] = tail0[c0 * 24 + 22] + aot_model_max_float32(acc0_2, 0.0f);
                y[c0 * 24 + 23] = tail0[c0 * 24 + 23] + aot_model_max_float32(acc0_3, 0.0f);
                y[c1 * 24 + 20] = tail0[c1 * 24 + 20] + aot_model_max_float32(acc1_0, 0.0f);
                y[c1 * 24 + 21] = tail0[c1 * 24 + 21] + aot_model_max_float32(acc1_1, 0.0f);
                y[c1 * 24 + 22] = tail0[c1 * 24 + 22] + aot_model_max_float32(acc1_2, 0.0f);
                y[c1 * 24 + 23] = tail0[c1 * 24 + 23] + aot_model_max_float32(acc1_3, 0.0f);
                y[c2 * 24 + 20] = tail0[c2 * 24 + 20] + aot_model_max_float32(acc2_0, 0.0f);
                y[c2 * 24 + 21] = tail0[c2 * 24 + 21] + aot_model_max_float32(acc2_1, 0.0f);
                y[c2 * 24 + 22] = tail0[c2 * 24 + 22] + aot_model_max_float32(acc2_2, 0.0f);
                y[c2 * 24 + 23] = tail0[c2 * 24 + 23] + aot_model_max_float32(acc2_3, 0.0f);
                y[c3 * 24 + 20] = tail0[c3 * 24 + 20] + aot_model_max_float32(acc3_0, 0.0f);
                y[c3 * 24 + 21] = tail0[c3 * 24 + 21] + aot_model_max_float32(acc3_1, 0.0f);
                y[c3 * 24 + 22] = tail0[c3 * 24 + 22] + aot_model_max_float32(acc3_2, 0.0f);
                y[c3 * 24 + 23] = tail0[c3 * 24 + 23] + aot_model_max_float32(acc3_3, 0.0f);
            }
        }
    }
}

/* step 7: /ReduceMean (ReduceMean): float32[1,64,24] -> float32[1,24]
 *   reads x at workspace + 6144; writes y at workspace + 0 */
static void m_06_reducemean(const float *restrict x, float *restrict y)
{
    AOT_MODEL_BARRIER;
    for (int32_t i = 0; i < 24; i++) {
        float t0 = 0.0f;
        for (int32_t r0 = 0; r0 < 64; r0++) {
            t0 = t0 + x[r0 * 24 + i];
        }
        y[i] = t0 / 64.0f;
    }
}

/* 1 pixel x 6 channels in registers
 * step 8: /f/Gemm (MatMul): float32[1,24] * float32[24,6] -> float32[1,6], 144 MACs
 *   reads x at workspace + 0; writes y at workspace + 0 (in place of x) */
static void m_07_matmul(const float *restrict weights, float *restrict y)
{
    AOT_MODEL_BARRIER;
    const float *const x = y;
    const float *const x0 = x;
    {
        const float *w = weights;
        float acc0_0 = w[0];
        float acc0_1 = w[1];
        float acc0_2 = w[2];
        float acc0_3 = w[3];
        float acc0_4 = w[4];
        float acc0_5 = w[5];
        w += 6;
        const float *a0 = x0;
        for (int32_t i = 0; i < 24; i += 4) {
            {
                const float e0 = a0[0];
                const float w5 = w[5];
                acc0_5 = f32_fma(w5, e0, acc0_5);
                const float w4 = w[4];
                acc0_4 = f32_fma(w4, e0, acc0_4);
                const float w3 = w[3];
                acc0_3 = f32_fma(w3, e0, acc0_3);
                const float w2 = w[2];
                acc0_2 = f32_fma(w2, e0, acc0_2);
                const float w1 = w[1];
                acc0_1 = f32_fma(w1, e0, acc0_1);
                const float w0 = w[0];
                acc0_0 = f32_fma(w0, e0, acc0_0);
            }
            {
                const float e0 = a0[1];
                const float w5 = w[11];
                acc0_5 = f32_fma(w5, e0, acc0_5);
                const float w4 = w[10];
                acc0_4 = f32_fma(w4, e0, acc0_4);
                const float w3 = w[9];
                acc0_3 = f32_fma(w3, e0, acc0_3);
                const float w2 = w[8];
                acc0_2 = f32_fma(w2, e0, acc0_2);
                const float w1 = w[7];
                acc0_1 = f32_fma(w1, e0, acc0_1);
                const float w0 = w[6];
                acc0_0 = f32_fma(w0, e0, acc0_0);
            }
            {
                const float e0 = a0[2];
                const float w5 = w[17];
                acc0_5 = f32_fma(w5, e0, acc0_5);
                const float w4 = w[16];
                acc0_4 = f32_fma(w4, e0, acc0_4);
                const float w3 = w[15];
                acc0_3 = f32_fma(w3, e0, acc0_3);
                const float w2 = w[14];
                acc0_2 = f32_fma(w2, e0, acc0_2);
                const float w1 = w[13];
                acc0_1 = f32_fma(w1, e0, acc0_1);
                const float w0 = w[12];
                acc0_0 = f32_fma(w0, e0, acc0_0);
            }
            {
                const float e0 = a0[3];
                const float w5 = w[23];
                acc0_5 = f32_fma(w5, e0, acc0_5);
                const float w4 = w[22];
                acc0_4 = f32_fma(w4, e0, acc0_4);
                const float w3 = w[21];
                acc0_3 = f32_fma(w3, e0, acc0_3);
                const float w2 = w[20];
                acc0_2 = f32_fma(w2, e0, acc0_2);
                const float w1 = w[19];
                acc0_1 = f32_fma(w1, e0, acc0_1);
                const float w0 = w[18];
                acc0_0 = f32_fma(w0, e0, acc0_0);
            }
            a0 += 4;
            w += 24;
        }
        y[0] = acc0_0;
        y[1] = acc0_1;
        y[2] = acc0_2;
        y[3] = acc0_3;
        y[4] = acc0_4;
        y[5] = acc0_5;
    }
}

/* step 9: /Softmax (ReduceMax): float32[1,6] -> float32[1,1]
 *   reads x at workspace + 0; writes y at workspace + 24 */
static void m_08_reducemax(const float *restrict x, float *restrict y)
{
    AOT_MODEL_BARRIER;
    float t0 = -INFINITY;
    for (int32_t r0 = 0; r0 < 6; r0++) {
        t0 = aot_model_max_float32(t0, x[r0]);
    }
    y[0] = t0;
}

/* step 10: /Softmax (Exp): float32[1,6], float32[1,1] -> float32[1,6]
 *   reads x0 at workspace + 0, x1 at workspace + 24; writes y at workspace + 0 (in place of x0) */
static void m_09_exp(const float *restrict x1, float *restrict y)
{
    AOT_MODEL_BARRIER;
    const float *const x0 = y;
    for (int32_t i = 0; i < 6; i++) {
        y[i] = expf(x0[i] - x1[0]);
    }
}

/* step 11: /Softmax (ReduceSum): float32[1,6] -> float32[1,1]
 *   reads x at workspace + 0; writes y at workspace + 24 */
static void m_10_reducesum(const float *restrict x, float *restrict y)
{
    AOT_MODEL_BARRIER;
    float t0 = 0.0f;
    for (int32_t r0 = 0; r0 < 6; r0++) {
        t0 = t0 + x[r0];
    }
    y[0] = t0;
}

/* step 12: /Softmax (Div): float32[1,6], float32[1,1] -> float32[1,6]
 *   reads x0 at workspace + 0, x1 at workspace + 24; writes y at workspace + 0 (in place of x0) */
static void m_11_div(const float *restrict x1, float *restrict y)
{
    AOT_MODEL_BARRIER;
    const float *const x0 = y;
    for (int32_t i = 0; i < 6; i++) {
        y[i] = x0[i] / x1[0];
    }
}

/* ---- the model ---- */

static uint8_t m_workspace[M_WORKSPACE_SIZE] AOT_MODEL_ALIGNED(M_WORKSPACE_ALIGN);
#define AT(type, offset) ((type *)(void *)(m_workspace + (offset)))

AOT_MODEL_OPAQUE m_inputs m_map_inputs(void)
{
    m_inputs result;
    result.input = AT(float, 6936);
    return result;
}

AOT_MODEL_OPAQUE m_outputs m_map_outputs(void)
{
    m_outputs result;
    result.output = AT(float, 0);
    return result;
}

AOT_MODEL_OPAQUE int32_t m_run(void)
{
    /* /s/Conv */
    m_00_conv_1x1(AT(float, 6936), m_c_s_Conv_weights, AT(float, 0));
    /* /c.0/Conv */
    m_01_transpose(AT(float, 6936), AT(float, 6144));
    /* /c.0/Conv */
    m_02_conv_1x3(AT(float, 6144), m_c_c_0_Conv_weights, AT(float, 0));
    /* /c.1/Conv */
    m_03_conv_1x3(AT(float, 0), AT(float, 0), m_c_c_1_Conv_weights, AT(float, 6144));
    /* /c.2/Conv */
    m_04_conv_1x3(AT(float, 6144), AT(float, 6144), m_c_c_2_Conv_weights, AT(float, 0));
    /* /c.3/Conv */
    m_05_conv_1x3(AT(float, 0), AT(float, 0), m_c_c_3_Conv_weights, AT(float, 6144));
    /* /ReduceMean */
    m_06_reducemean(AT(float, 6144), AT(float, 0));
    /* /f/Gemm */
    m_07_matmul(m_c_f_Gemm_weights, AT(float, 0));
    /* /Softmax */
    m_08_reducemax(AT(float, 0), AT(float, 24));
    /* /Softmax */
    m_09_exp(AT(float, 24), AT(float, 0));
    /* /Softmax */
    m_10_reducesum(AT(float, 0), AT(float, 24));
    /* /Softmax */
    m_11_div(AT(float, 24), AT(float, 0));
    return AOT_MODEL_OK;
}

/* ---- metadata ---- */

static const int32_t m_input0_shape[] = { 1, 3, 64 };

static const aot_model_tensor m_input_info[] = {
    { "input", "input", m_input0_shape,
        NULL, NULL, 768u, 0, -1, 3, AOT_MODEL_FLOAT32 },
};

static const int32_t m_output0_shape[] = { 1, 6 };

static const aot_model_tensor m_output_info[] = {
    { "output", "output", m_output0_shape,
        NULL, NULL, 24u, 0, -1, 2, AOT_MODEL_FLOAT32 },
};

static const aot_model_layer m_metadata_layers[] = {
    { "/s/Conv", "Convolution", UINT64_C(4608), 6912u, 384u },
    { "/c.0/Conv", "Transpose", UINT64_C(0), 7704u, 0u },
    { "/c.0/Conv", "Convolution", UINT64_C(13824), 6936u, 960u },
    { "/c.1/Conv", "Convolution", UINT64_C(110592), 12288u, 7008u },
    { "/c.2/Conv", "Convolution", UINT64_C(110592), 12288u, 7008u },
    { "/c.3/Conv", "Convolution", UINT64_C(110592), 12288u, 7008u },
    { "/ReduceMean", "ReduceMean", UINT64_C(0), 6240u, 0u },
    { "/f/Gemm", "MatMul", UINT64_C(144), 96u, 600u },
    { "/Softmax", "ReduceMax", UINT64_C(0), 28u, 0u },
    { "/Softmax", "Exp", UINT64_C(0), 28u, 0u },
    { "/Softmax", "ReduceSum", UINT64_C(0), 28u, 0u },
    { "/Softmax", "Div", UINT64_C(0), 28u, 0u },
};

static const aot_model_pool m_metadata_pools[] = {
    { "workspace", "workspace", 12288u, 16u },
};

static const aot_model_metadata m_metadata_facts = {
    { 'A', 'O', 'T', 'M', 'O', 'D', 'E', 'L' },
    AOT_MODEL_METADATA_VERSION,
    0u | AOT_MODEL_FLAG_IO_IN_WORKSPACE,
    sizeof(void *),
    &m_metadata_facts,
    "m",
    "0.1.0",
    "c",
    "har_tcn.onnx",
    "87c512d0e03adec24028eadc7f7195c80f63ec3eb0c7fc598b64b325be9663cc",
    m_input_info,
    m_output_info,
    m_metadata_pools,
    m_metadata_layers,
    NULL,
    1,
    1,
    1,
    0,
    12u,
    22968u,
    0u,
    12288u,
    0u,
    0u,
    UINT64_C(350352)
};

const aot_model_metadata *m_metadata(void)
{
    return &m_metadata_facts;
}

/* ---- values of the constants ---- */

static const float m_c_s_Conv_weights[96] = {
    -0.45090473f, -0.20107685f, -0.21318924f, -0.3153507f, -0.4105746f, -0.5955351f, 0.21457095f,
    -0.000477808f, -0.45541367f, -0.11681318f, -0.57880294f, -0.5346723f, 0.16282083f, -0.07673578f,
    0.19134547f, 0.41334906f, -0.040670358f, -0.2745611f, -0.1644717f, -0.22104195f, -0.043157477f,
    -0.060912345f, 0.37664244f, -0.030392213f, -0.49665263f, 0.5572708f, -0.6014353f, -0.5906699f,
    0.4033594f, -0.53490674f, 0.22138791f, -0.43519795f, 0.3276016f, -0.13448873f, 0.28205827f,
    0.030836586f, 0.119229704f, -0.23824345f, -0.21544999f, 0.11661008f, -0.60059303f, 0.26841182f,
    -0.36226025f, -0.30822465f, 0.106891535f, 0.35677043f, 0.38103864f, -0.37031457f, -0.13553944f,
    -0.34172487f, 0.048887134f, 0.58544505f, 0.1254096f, 0.0062082f, 0.5433753f, 0.29225364f,
    -0.31840563f, 0.29498872f, 0.20562907f, 0.45395502f, 0.46948016f, 0.3516637f, -0.1916f, 0.39836353f,
    0.15526257f, -0.38249677f, -0.015197608f, -0.19097465f, -0.42065704f, 0.45852405f, 0.39776906f,
    0.3117107f, 0.48668227f, 0.49889836f, -0.57374084f, -0.49434897f, -0.06819147f, -0.19494843f,
    -0.031121027f, -0.5164269f, 0.51610243f, -0.087243944f, 0.40628773f, 0.37465784f, -0.48916182f,
    0.11846945f, 0.50096273f, 0.31680724f, -0.3075081f, -0.4138741f, -0.17482008f, -0.38407075f,
    -0.37036374f, 0.48319995f, 0.09572168f, -0.31386524f
};

static const float m_c_c_0_Conv_weights[240] = {
    -0.09744395f, -0.2836642f, -0.11447023f, -0.29696804f, 0.21920691f, -0.09863331f, -0.17230597f,
    0.23389398f, 0.3636185f, -0.26617593f, -0.32662222f, -0.3573375f, -0.18085514f, 0.3498375f,
    -0.18154208f, -0.11138258f, -0.25545406f, -0.07520437f, -0.046567246f, 0.06231695f, 0.11817116f,
    0.020323206f, 0.23367286f, -0.12566556f, 0.16800116f, 0.33216384f, 0.2952555f, -0.085297406f,
    0.33166918f, 0.01964174f, 0.15891239f, -0.3316012f, -0.072611436f, -0.19286439f, -0.43823448f,
    -0.21488754f, 0.088618524f, -0.22018191f, 0.25398147f, 0.1903584f, 0.30969736f, 0.20051493f,
    -0.29863295f, 0.23714752f, 0.084653705f, 0.16929321f, 0.21358182f, -0.013564195f, 0.20294929f,
    -0.13236417f, -0.07020378f, 0.04685274f, -0.14526364f, 0.098360494f, 0.19868119f, -0.17023532f,
    0.18298505f, -0.035795238f, 0.1893681f, -0.35393357f, -0.26455638f, 0.28455266f, -0.088413246f,
    0.17135732f, 0.35243526f, 0.03113972f, 0.30128658f, -0.3034819f, 0.065613225f, 0.10412066f,
    0.32178196f, 0.04684407f, -0.25098684f, -0.02838245f, 0.027685367f, -0.3564955f, 0.2743514f,
    -0.027286172f, 0.290386f, 0.05858605f, -0.28140733f, -0.13262565f, -0.17564723f, -0.015830526f,
    -0.2944417f, -0.3029166f, -0.12249725f, -0.15476939f, 0.35601592f, -0.26767403f, 0.17656381f,
    0.12721583f, 0.17806421f, -0.3116897f, -0.053849325f, -0.0969327f, 0.31099856f, 0.06740198f,
    0.068727486f, 0.08238195f, 0.032006945f, -0.34065542f, 0.3320217f, -0.050736874f, -0.28663158f,
    -0.40068465f, -0.35072836f, 0.24866922f, 0.35532868f, -0.299464f, 0.3432154f, -0.06563519f,
    0.036723003f, 0.26307517f, 0.26564866f, 0.08934785f, -0.10739434f, 0.31502587f, -0.16859455f,
    0.09719811f, 0.0391139f, 0.20993379f, 0.09589737f, 0.13434952f, 0.08966113f, -0.37010562f, 0.35558f,
    0.065996334f, 0.29367274f, 0.17200498f, 0.22590666f, -0.13652436f, 0.36827746f, 0.27008966f,
    0.11997318f, 0.25252545f, 0.028605234f, 0.30870703f, 0.20718203f, -0.2936652f, -0.19028911f,
    -0.08747191f, -0.088099055f, 0.14769296f, 0.3097364f, 0.020984365f, -0.20447671f, -0.055998154f,
    0.11212191f, -0.3582001f, -0.075583845f, -0.015578613f, 0.002883536f, -0.2834344f, -0.31897953f,
    0.145183f, 0.40552285f, -0.07714198f, -0.11537755f, -0.102254815f, -0.047261868f, 0.20868075f,
    0.00898378f, -0.09817413f, -0.33160198f, 0.07900218f, -0.20089595f, 0.44295606f, 0.16356733f,
    -0.41415408f, -0.19836451f, -0.021759808f, 0.13137072f, 0.2045881f, 0.014347271f, 0.19830738f,
    -0.26123017f, 0.28585222f, 0.26096028f, 0.22042443f, 0.021866322f, -0.1961312f, 0.2983273f,
    0.3327733f, 0.4566831f, -0.12783132f, 0.08871842f, 0.038131904f, -0.23880276f, 0.17953934f,
    -0.29935998f, -0.09398463f, 0.021151593f, 0.12071385f, 0.25693896f, 0.05654567f, -0.016385188f,
    0.32162187f, -0.390558f, -0.096556574f, -0.21925396f, 0.32610008f, 0.13438143f, -0.276139f,
    -0.33183593f, 0.33415708f, 0.06408742f, -0.038537692f, 0.30748975f, 0.3965382f, -0.24496579f,
    -0.05176665f, 0.080896735f, 0.0052989433f, -0.27830997f, 0.033034485f, -0.39784783f, -0.13799348f,
    0.25223264f, 0.26231295f, 0.11964482f, 0.1865388f, -0.2529645f, -0.13692841f, 0.15795578f,
    0.11624119f, 0.04655913f, -0.027969101f, 0.08724797f, 0.35517633f, -0.18670295f, 0.06678953f,
    0.030273765f, 0.23372406f, -0.22168012f, 0.16824082f, 0.11819234f, 0.11997082f, -0.20985664f,
    0.3063144f
};

static const float m_c_c_1_Conv_weights[1752] = {
    0.043579686f, 0.041968714f, -0.08983652f, 0.031652533f, 0.014524058f, -0.09798687f, 0.080606245f,
    -0.009941906f, -0.015467512f, -0.07608072f, 0.071161255f, 0.033589173f, 0.017575031f, -0.029332511f,
    -0.019605314f, -0.071330875f, 0.024327004f, 0.17050575f, 0.048809588f, -0.05624578f, 0.06387326f,
    0.0053369277f, 0.12259173f, -0.09562102f, 0.08337315f, -0.058991406f, -0.033135083f, -0.07531927f,
    0.06454565f, 0.06383083f, -0.028925896f, 0.15090609f, 0.1417125f, -0.08405282f, -0.011915738f,
    -0.09427009f, 0.03019652f, 0.020773724f, 0.11660608f, -0.057242237f, 0.054229643f, 0.1696327f,
    0.009048341f, 0.045223627f, -0.038324915f, 0.0103354575f, -0.014256661f, -0.018852105f, 0.13570537f,
    0.052780043f, 0.15459198f, 0.013931382f, -0.053261682f, 0.04314556f, 0.0045073326f, 0.13441338f,
    -0.0430587f, -0.081996806f, 0.0891866f, 0.07092432f, 0.008070988f, 0.10437395f, 0.10741087f,
    0.023466757f, -0.07913571f, -0.03587651f, 0.012144223f, -0.101292424f, -0.026802957f, 0.0003691113f,
    -0.09334463f, -0.058345165f, 0.06681388f, 0.1787273f, 0.114080615f, 0.00642885f, 0.09793085f,
    0.136656f, 0.16303875f, -0.005074593f, 0.012149158f, 0.08154009f, 0.14358509f, -0.11768444f,
    -0.08476476f, -0.023196463f, 0.15376358f, -0.14348635f, 0.16218756f, 0.026735418f, -0.09408203f,
    0.060925942f, -0.057644255f, 0.07535579f, -0.041045967f, -0.041602004f, 0.00994804f, 0.14292334f,
    0.03492635f, -0.083473146f, 0.11829654f, 0.023848452f, 0.10247816f, 0.13581993f, 0.042023204f,
    0.023352064f, -0.031090312f, -0.026415171f, 0.1589609f, 0.107883796f, 0.040553235f, -0.029547134f,
    0.051181223f, 0.11605098f, 0.09230367f, -0.07611615f, 0.00657584f, 0.115445174f, 0.07763574f,
    0.07430176f, 0.0049221874f, 0.078777134f, 0.05799784f, 0.076436594f, 0.093745895f, -0.05516601f,
    -0.0047414647f, 0.0032528753f, -0.051539686f, 0.010097847f, 0.052654203f, 0.03455955f, -0.15908003f,
    -0.13488728f, -0.0065171346f, 0.032766983f, 0.07519479f, 0.0743919f, 0.01168398f, 0.07181837f,
    0.06332447f, 0.1146548f, -0.0483715f, 0.06452761f, -0.06415972f, 0.11241918f, 0.07486799f,
    -0.083102524f, 0.12007821f, 0.15130831f, 0.009147008f, 0.08468134f, 0.026731519f, 0.08526123f,
    -0.07124594f, -0.11944457f, 0.043100215f, -0.0526756f, 0.052489754f, 0.015891152f, 0.028279308f,
    -0.12840068f, 0.069216944f, -0.06602764f, -0.036808833f, 0.013824011f, -0.06857712f, 0.046364978f,
    -0.01570894f, 0.07275647f, 0.16787976f, 0.08887618f, 0.14080967f, 0.1450584f, -0.020675786f,
    0.044052564f, -0.07235562f, 0.034999344f, -0.02881125f, 0.060884498f, -0.112975635f, 0.069898285f,
    0.07741313f, 0.0010371114f, 0.04537951f, -0.070953764f, 0.12084391f, 0.007804062f, -0.06926838f,
    0.08682892f, -0.0078757405f, 0.0753318f, -0.011837869f, 0.10363255f, 0.006404179f, -0.07072857f,
    0.10285811f, 0.08144424f, -0.035877366f, -0.042380616f, 0.0863947f, -0.024969326f, -0.10236787f,
    0.10963876f, -0.05987649f, 0.08033949f, -0.007000707f, 0.00011629086f, -0.024152098f, 0.09417868f,
    0.003468748f, -0.07128031f, 0.01196988f, 0.03105385f, -0.00944036f, 0.06747852f, -0.018553125f,
    -0.013444582f, 0.004174745f, 0.096102245f, -0.0010053271f, -0.110256195f, 0.08897728f, 0.14177899f,
    0.14256468f, 0.06879542f, 0.18091127f, -0.10435052f, 0.09836066f, -0.08209776f, 0.055243067f,
    0.114419825f, -0.045109194f, 0.07966808f, -0.05192772f, 0.0804448f, -0.068603f, 0.07175891f,
    0.12970737f, -0.00284566f, 0.08062403f, -0.062920034f, 0.13481443f, 0.05124377f, 0.092556715f,
    0.07423566f, 0.13077687f, 0.03635852f, 0.05721569f, 0.111094706f, 0.08597665f, -0.10152467f,
    0.016390154f, -0.042032417f, 0.0283076f, -0.051374577f, -0.043697216f, -0.08801125f, -0.01994616f,
    0.050470423f, 0.056911092f, -0.08361833f, -0.105342306f, 0.018386167f, 0.09887219f, 0.17994465f,
    -0.03742865f, -0.044031724f, 0.043699585f, 0.1877112f, 0.032413658f, 0.05281285f, 0.06425336f,
    0.18835749f, 0.18210986f, 0.052951317f, -0.0370881f, 0.079509206f, 0.010244435f, 0.06287852f,
    0.07614052f, 0.07997345f, 0.036977325f, -0.003297468f, -0.013880017f, 0.15548651f, 0.053004958f,
    -0.022198481f, 0.014866409f, 0.16512668f, 0.055762477f, 0.062070183f, -0.0030068415f, 0.06169605f,
    0.06276142f, 0.13051286f, 0.035536382f, 0.08307088f, -0.095654085f, 0.06861488f, 0.1454344f,
    0.056124903f, 0.057004187f, -0.02212747f, 0.17300832f, 0.100373566f, 0.0702375f, -0.03322754f,
    0.09939376f, -0.08514154f, 0.08206019f, 0.092964105f, -0.054555736f, -0.071314454f, -0.03199139f,
    -0.046627883f, 0.11173957f, 0.08582865f, -0.10619392f, -0.0004318348f, 0.118088566f, 0.03317868f,
    -0.07753753f, -0.10560548f, 0.048407853f, -0.15012988f, -0.041412544f, -0.08838589f, -0.017045217f,
    -0.06714004f, 0.11335827f, -0.026184725f, 0.062486697f, 0.069829f, -0.03708146f, 0.06374173f,
    -0.086276054f, 0.053161204f, 0.17179216f, -0.056002155f, 0.027472451f, -0.05064025f, 0.10841202f,
    0.10980052f, -0.07426006f, 0.07332396f, -0.061103325f, -0.06980403f, 0.017456643f, 0.032420162f,
    0.027907882f, 0.032900307f, 0.009259497f, -0.14245786f, -0.084213585f, 0.08688935f, 0.04723902f,
    0.013453767f, -0.14251754f, 0.09698201f, -0.059166074f, 0.08722381f, 0.018265018f, 0.0046994854f,
    0.05259231f, 0.03396708f, -0.02814108f, 0.017653475f, 0.01967489f, 0.04777703f, -0.049552824f,
    -0.049000565f, -0.11066632f, -0.042112056f, -0.08306501f, -0.04001296f, 0.088787355f, 0.12181788f,
    0.056943234f, 0.048482716f, 0.11070304f, -0.01415572f, -0.04912738f, -0.0066482276f, 0.08669669f,
    -0.09194278f, 0.03638954f, -0.063567646f, 0.04069917f, -0.09710187f, 0.09365252f, 0.035662454f,
    0.09979255f, -0.050257407f, -0.1155509f, -0.028161116f, -0.06294354f, -0.07859119f, -0.012637812f,
    -0.06710245f, -0.0150401555f, 0.17765327f, -0.032954037f, -0.06506232f, -0.03000545f, 0.09816949f,
    -0.009085734f, -0.09024674f, 0.12982316f, 0.0830116f, -0.028866526f, 0.04454121f, 0.015535329f,
    0.041542023f, -0.03346259f, 0.027638514f, 0.14642677f, -0.007794313f, -0.034365892f, 0.08082095f,
    0.060942788f, -0.06180725f, -0.035346385f, -0.049872745f, -0.04152067f, 0.11178904f, 0.008561263f,
    0.017835146f, 0.116913185f, 0.10772646f, 0.14721772f, 0.0578593f, 0.08727456f, -0.046834026f,
    -0.006620328f, -0.038182437f, -0.048187945f, -0.08919568f, -0.06559848f, 0.05866331f, -0.08266427f,
    -0.09436398f, 0.029171335f, 0.043901563f, 0.0016578927f, 0.024517326f, 0.0017980787f, -0.016260851f,
    -0.027075617f, 0.099884614f, -0.011208783f, -0.03712193f, -0.045003165f, 0.016169846f, 0.053324215f,
    0.09389281f, 0.120694816f, 0.058263924f, -0.069955625f, 0.061820913f, -0.02421984f, 0.0070655122f,
    -0.03831051f, -0.03100936f, 0.052812774f, 0.15499769f, 0.079512015f, 0.059777282f, -0.049295165f,
    -0.024892995f, 0.03768815f, 0.03155734f, 0.19001538f, 0.050155587f, -0.08538933f, 0.101500556f,
    0.118335284f, 0.059501376f, 0.13170528f, 0.05734709f, -0.055178873f, 0.16208376f, -0.06601684f,
    -0.0522712f, 0.17558151f, -0.0054947794f, 0.09853627f, 0.116861604f, -0.023355955f, 0.1962284f,
    0.12518816f, -0.06453471f, 0.14690419f, 0.0541442f, 0.12044001f, -0.029542333f, 0.1503602f,
    0.09377531f, 0.07707424f, 0.08624027f, -0.031335644f, -0.02896341f, 0.07449679f, 0.021927377f,
    0.056385763f, -0.1036109f, 0.20610455f, -0.10867018f, -0.00521137f, 0.061910305f, 0.00023606079f,
    -0.07079208f, 0.0032173626f, 0.08474883f, -0.004920588f, -0.06277581f, 0.063400984f, -0.18913592f,
    -0.023814548f, 0.026469115f, -0.031785402f, 0.107062355f, 0.10203053f, 0.006838797f, 0.03580553f,
    0.11433717f, -0.067384504f, -0.100152984f, 0.029638732f, 0.124634646f, 0.16684195f, 0.014683673f,
    0.12726337f, 0.14921804f, -0.07190418f, -0.03821308f, 0.110033795f, -0.03272162f, -0.10582986f,
    -0.087904215f, -0.019363781f, -0.09128235f, -0.08711871f, -0.12082515f, -0.034743074f, 0.024268918f,
    0.021327639f, 0.03529093f, 0.01372093f, -0.13637154f, -0.11757563f, 0.009518672f, 0.050177492f,
    -0.068784684f, 0.03412683f, -0.016875554f, 0.117657475f, 0.098788165f, 0.040351797f, 0.12575842f,
    0.006854806f, -0.055043064f, -0.14655194f, -0.10645959f, 0.0080836695f, 0.066489264f, -0.13165039f,
    -0.0151036205f, 0.057014965f, 0.11719774f, -0.060837176f, -0.10614832f, 0.07180052f, -0.02688359f,
    0.08140389f, -0.009070777f, 0.0339731f, 0.10523202f, -0.06656265f, 0.0679692f, -0.07877806f,
    0.103825115f, 0.09317604f, 0.012745232f, -0.028767755f, 0.08855477f, -0.13435517f, -0.06870981f,
    0.058601554f, 0.034823917f, -0.017378692f, 0.10142728f, 0.009860193f, 0.008220674f, -0.04739746f,
    -0.085082464f, 0.18343706f, 0.18958984f, 0.05646185f, 0.03561411f, 0.05614683f, 0.040688023f,
    0.12682897f, -0.04314684f, 0.076816194f, 0.07428314f, -0.06729906f, -0.025378168f, 0.07325548f,
    0.118666835f, 0.14914915f, 0.11472344f, 0.032677528f, 0.14354491f, 0.10917471f, 0.002234751f,
    -0.048630565f, 0.10656774f, 0.10708349f, -0.003383523f, -0.065822124f, -0.023740305f, 0.18430005f,
    -0.11144938f, -0.064690575f, -0.0025813603f, -0.053947914f, -0.09404032f, 0.091360986f, 0.058831707f,
    -0.010146476f, 0.087730706f, 0.09588028f, -0.051569775f, 0.13109957f, -0.061479557f, 0.1714568f,
    0.2048364f, 0.16777255f, 0.03202715f, 0.15861663f, -0.04168713f, 0.09576832f, 0.009598534f,
    0.057817265f, -0.04586177f, -0.10396829f, 0.0035499483f, 0.058540653f, 0.13512923f, 0.1633551f,
    -0.028518127f, -0.041469123f, -0.008911952f, 0.05277097f, -0.06292509f, -0.077417225f, -0.017548593f,
    0.08760696f, -0.016651034f, 0.030537732f, -0.08389783f, -0.09470161f, -0.015856262f, 0.09658123f,
    -0.011998512f, 0.08901856f, 0.14417803f, 0.06330174f, 0.19435434f, -0.04583431f, -0.05269783f,
    0.17725202f, 0.12721235f, -0.10246732f, -0.062066592f, 0.03637308f, 0.069873385f, -0.03318775f,
    -0.012694628f, -0.08379985f, 0.13114381f, 0.09865537f, -0.008774648f, -0.08198298f, -0.11271022f,
    0.093620405f, -0.093703985f, 0.09066637f, -0.0067491294f, -0.08931878f, 0.048508476f, 0.14163567f,
    0.16336693f, 0.016415391f, -0.0035242916f, 0.1514073f, 0.09902978f, 0.10041169f, 0.09670515f,
    -0.022983208f, -0.029040024f, 0.015634539f, -0.057958245f, 0.06244037f, -0.08423016f, 0.084002025f,
    0.076164655f, 0.10576067f, 0.089915626f, 0.14594121f, 0.06958915f, -0.055960983f, 0.04202335f,
    -0.08723482f, 0.06701534f, 0.05094482f, 0.089119166f, 0.008024751f, -0.014857761f, 0.13796088f,
    -0.097399235f, -0.04933549f, 0.07943246f, 0.040712405f, 0.03469795f, -0.006616735f, -0.016496463f,
    -0.007392829f, -0.08292571f, 0.008705879f, 0.019076835f, 0.108104855f, 0.106443964f, 0.08942426f,
    -0.05589628f, 0.12425523f, 0.116805404f, 0.035013746f, 0.0233529f, -0.04697759f, 0.029942395f,
    -0.059796646f, -0.07904845f, 0.1574911f, 0.045990285f, 0.03141279f, 0.10485075f, -0.09541279f,
    -0.04746001f, 0.13656452f, -0.12357844f, -0.022617955f, 0.03978928f, 0.17487507f, -0.061046306f,
    -0.0036521328f, -0.13042265f, 0.0019008353f, 0.04683999f, 0.087271385f, -0.045048892f, -0.11536697f,
    0.051089477f, 0.028695958f, 0.13969766f, -0.10117712f, -0.0014693625f, 0.10369046f, -0.05600363f,
    0.12214717f, -0.112827025f, -0.04675253f, -0.047004238f, -0.10926193f, -0.07279597f, 0.05378659f,
    0.101408206f, 0.08002506f, 0.024070367f, 0.07557858f, -0.039264586f, 0.05338598f, -0.07740005f,
    0.0948529f, 0.0013953581f, 0.009409322f, -0.06197084f, 0.15785652f, 0.06728794f, 0.06665184f,
    -0.011446348f, -0.15576307f, 0.012516153f, 0.10605021f, -0.058360096f, -0.019004367f, -0.11461987f,
    -0.11738219f, 0.008631981f, -0.011535666f, 0.12521094f, 0.090241484f, 0.038630918f, 0.014900426f,
    0.08764401f, 0.14188467f, 0.0065198974f, -0.013947438f, 0.01876153f, 0.06931325f, 0.13714288f,
    0.025441417f, 0.050863888f, 0.0034613223f, -0.10113243f, -0.08640185f, 0.16533051f, 0.057761088f,
    -0.021122359f, -0.09217041f, -0.09705519f, 0.052610416f, -0.11327841f, 0.046447568f, 0.1020332f,
    0.13284333f, 0.016865088f, 0.08848497f, 0.21474354f, -0.0039337855f, 0.010706515f, 0.07701888f,
    0.074487805f, 0.12005257f, -0.10498685f, 0.04847005f, 0.100254074f, 0.004889497f, -0.139017f,
    -0.026503202f, 0.118382886f, 0.02166093f, -0.03242197f, -0.11642086f, 0.060696416f, 0.07646236f,
    0.06466678f, -0.06840631f, 0.019605182f, 0.009567041f, -0.09565093f, 0.1637584f, -0.073251486f,
    0.055340063f, 0.0509051f, 0.1991651f, -0.033971492f, -0.056186456f, -0.040847715f, 0.19883066f,
    0.09677894f, 0.028940286f, 0.028200401f, 0.13551345f, -0.024321673f, 0.017635854f, 0.014413635f,
    -0.0010145276f, 0.06327099f, -0.03091922f, -0.04682914f, 0.038721565f, 0.05286747f, 0.045816027f,
    0.10988809f, -0.008666464f, -0.061802622f, -0.011492216f, 0.057407502f, 0.034514844f, -0.023514947f,
    -0.103949435f, -0.0045917514f, 0.11260476f, 0.17949475f, 0.091642655f, -0.09486123f, -0.045977194f,
    0.101877585f, -0.03550811f, 0.017157273f, 0.09674537f, 0.09039748f, 0.060802504f, 0.0053008744f,
    -0.0022396585f, -0.18502243f, -0.033411175f, 0.06073586f, 0.044631995f, 0.15059775f, 0.0652139f,
    0.044098478f, -0.010772062f, -0.12650207f, -0.16642421f, -0.099825434f, -0.028446328f, -0.006258609f,
    0.05490829f, -0.017264739f, 0.045360953f, 0.01567053f, 0.12411528f, -0.024216479f, 0.109133646f,
    -0.05576377f, 0.12001822f, 0.084464155f, 0.16298528f, -0.08475492f, 0.0815928f, -0.10953949f,
    -0.045481537f, 0.17392977f, 0.01842049f, 0.07003562f, 0.09428366f, 0.11233339f, -0.10927445f,
    -0.045488942f, 0.00051338726f, 0.021276068f, -0.046670195f, 0.013143699f, -0.00012292276f,
    -0.09575521f, 0.15843391f, 0.11576142f, -0.13151106f, -2.9676798e-05f, 0.11986256f, 0.094887175f,
    -0.02845636f, 0.09075305f, 0.02415065f, 0.025974907f, 0.042206027f, -0.081470676f, -0.05614449f,
    0.03265498f, 0.1564787f, 0.057160165f, -0.016269276f, 0.0038716618f, 0.10659404f, -0.06479498f,
    -0.015500866f, -0.0008549499f, -0.005858324f, 0.0040273345f, -0.018966312f, -0.04752339f,
    -0.03679112f, -0.036891773f, -0.0014627103f, 0.027318178f, 0.06419215f, -0.092367075f, -0.03726033f,
    -0.059153754f, -0.11921943f, -0.095095396f, -0.06346409f, -0.08923146f, -0.010876319f, -0.05295119f,
    0.062113214f, 0.0045836894f, 0.06231082f, 0.21289682f, 0.023561848f, -0.029406978f, -0.021017075f,
    -0.01765762f, 0.07894805f, -0.07518521f, -0.08447015f, 0.023236997f, -0.043910194f, -0.011354033f,
    0.1346132f, 0.0840179f, -0.054065466f, 0.04907077f, 0.10336623f, 0.060352325f, 0.18583433f,
    0.008860865f, 0.04178325f, 0.046823855f, 0.04687438f, -0.052270543f, 0.13169034f, 0.12539022f,
    0.13677202f, 0.03808101f, -0.07554094f, 0.11831411f, 0.13445708f, 0.10600866f, 0.10645089f,
    -0.08943432f, -0.093543686f, -0.032945715f, -0.09737778f, -0.06756091f, 0.04424433f, 0.037980445f,
    0.22191581f, 0.19915073f, 0.044672657f, 0.04698395f, 0.13763283f, -0.06754382f, -0.05638605f,
    -0.04127464f, 0.13572596f, 0.083520785f, -0.10357473f, 0.040335637f, 0.10936164f, -0.041074127f,
    0.06750243f, -0.08393247f, -0.12998348f, 0.07206861f, -0.006245128f, -0.016163811f, -0.0069087176f,
    0.009183712f, -0.048372995f, 0.09703376f, 0.13178295f, 0.1298669f, -0.09269664f, 0.0710581f,
    0.05210109f, -0.10220763f, 0.08850517f, -0.02267293f, 0.20274736f, 0.078077026f, 0.12838933f,
    -0.1248098f, 0.093196735f, 0.044540808f, -0.109920375f, -0.01212898f, 0.1561947f, 0.18688487f,
    0.11315857f, 0.08231274f, -0.024436073f, -0.04961297f, 0.024349714f, 0.036959182f, 0.023009598f,
    -0.066644266f, -0.007925283f, 0.032863084f, 0.1725117f, 0.04831504f, -0.0435197f, -0.06729675f,
    0.015667543f, 0.034246515f, -0.06870042f, -0.07372349f, 0.18422139f, 0.118378304f, -0.09863834f,
    0.071462706f, 0.1730826f, 0.19549327f, 0.115236506f, 0.0730411f, 0.053604897f, -0.09083369f,
    0.0742037f, 0.10656262f, 0.14024232f, 0.01305615f, 0.08656326f, -0.115306586f, 0.05363002f,
    0.035638932f, -0.095793955f, -0.014591954f, -0.08392136f, -0.061441034f, 0.02988018f, 0.028643344f,
    0.20099424f, 0.07829733f, 0.04305388f, 0.08971993f, 0.117483f, 0.05084272f, 0.17625882f, 0.08833539f,
    -0.010056569f, -0.07643255f, 0.13284701f, 0.105332375f, -0.06472936f, 0.09093788f, 0.10880619f,
    0.056161605f, 0.0837906f, 0.085202135f, 0.006879815f, -0.07314294f, 0.012487792f, -0.12789176f,
    -0.120752424f, -0.10583218f, 0.054762203f, 0.082887016f, 0.05993709f, 0.122134514f, -0.01094923f,
    0.035407037f, 0.0885053f, 0.092375524f, -0.040835645f, -0.027220985f, 0.109431334f, -0.06590424f,
    -0.08329247f, 0.035803977f, -0.029840516f, 0.0059211957f, 0.017023986f, -0.036194485f, -0.045080885f,
    0.0961218f, 0.13295329f, 0.13264535f, 0.019714603f, 0.0934783f, 0.12414379f, -0.04150432f,
    0.09930512f, 0.07402241f, -0.055668555f, -0.095542304f, -0.09650283f, -0.12917979f, 0.0012206521f,
    0.0331693f, -0.0055964305f, -0.08178273f, 0.028594935f, -0.07662338f, -0.14307417f, -0.09803457f,
    -0.021232376f, -0.012778927f, -0.026244676f, -0.066684395f, -0.06954092f, 0.014567566f, 0.069053195f,
    0.12803362f, 0.02526607f, -0.01484606f, 0.11843092f, 0.09694618f, -0.085847944f, -0.020558517f,
    -0.042037476f, -0.009516254f, 0.048379675f, -0.050801262f, 0.05362705f, -0.027045738f, 0.0087356195f,
    -0.11030557f, 0.19019338f, 0.024726773f, 0.0955979f, -0.04912097f, -0.0645672f, 0.029198494f,
    0.0070724087f, 0.07989201f, 0.03426113f, -0.11435385f, 0.07576621f, 0.054845937f, -0.0788851f,
    0.057353817f, -0.07036394f, -0.0036389688f, 0.08967649f, -0.20881163f, 0.045979746f, 0.102936365f,
    0.08469745f, -0.016850911f, -0.090184644f, 0.07183514f, 0.016658505f, -0.06069302f, 0.10360699f,
    0.1626176f, 0.06514675f, 0.07311386f, 0.059275668f, 0.12445485f, 0.04728809f, -0.0742794f,
    -0.02635624f, 8.609943e-05f, -0.110574834f, -0.11760105f, -0.030776756f, 0.024205469f, -0.041872825f,
    -0.050464466f, 0.02978448f, -0.033902653f, -0.036412388f, -0.066558816f, -0.0047382135f,
    -0.090692125f, 0.22417353f, 0.01022673f, 0.028096633f, -0.0161644f, 0.13016814f, -0.019558715f,
    -0.05376269f, -0.08135676f, -0.12166349f, -0.023993015f, -0.110216625f, 0.1330038f, 0.013890251f,
    -0.024313767f, 0.037308272f, -0.13456379f, 0.00070107635f, -0.056443024f, 0.01466386f, -0.124802135f,
    0.05758314f, 0.07931946f, 0.090654254f, 0.08912364f, 0.04708612f, -0.15952139f, 0.01400933f,
    0.027161691f, 0.030439163f, -0.02422652f, 0.014446643f, 0.12532711f, 0.078868285f, -0.14894746f,
    -0.11220879f, -0.008326972f, -0.04433267f, -0.040976197f, -0.088568024f, 0.08109188f, 0.00546162f,
    -0.11592407f, -0.042587053f, 0.0875788f, -0.032430317f, -0.095176384f, 0.117097944f, -0.050861154f,
    0.09540262f, -0.035810333f, 0.018302018f, 0.111274324f, 0.06374642f, 0.08016683f, -0.0137171745f,
    0.049619365f, 0.0070545515f, -0.014171639f, -0.11710982f, -0.13013504f, -0.11516959f, 0.009938088f,
    0.01720371f, -0.081991166f, -0.07081055f, 0.057534374f, 0.0668039f, 0.12400819f, 0.11012147f,
    -0.14390545f, -0.13380001f, -0.053580213f, 0.11442441f, 0.07504082f, -0.031257562f, 0.17920606f,
    -0.07009625f, -0.053891264f, -0.047965504f, 0.05393406f, 0.13479926f, 0.12532356f, 0.0645501f,
    -0.033242367f, 0.056658197f, -0.014511019f, 0.0066058347f, 0.066524126f, 0.113753125f, 0.04368681f,
    0.14117837f, 0.10440536f, -0.13479398f, 0.07136914f, 0.06860178f, -0.06757604f, 0.09937808f,
    0.17314024f, -0.058613554f, 0.030294407f, -0.084116384f, 0.093708575f, 0.11915826f, 0.006446649f,
    -0.0003807596f, -0.0059770816f, -0.21291536f, -0.11614982f, 0.028323596f, -0.020024387f,
    -0.053250343f, -0.113553405f, -0.11212193f, 0.09700259f, 0.02462212f, -0.065697715f, -0.042955488f,
    0.06757923f, 0.03282481f, -0.111388884f, 0.077211455f, -0.051948823f, -0.026853358f, 0.06357618f,
    -0.122310884f, -0.024241718f, -0.08912983f, -0.07646016f, 0.12621291f, 0.02065342f, -0.07320961f,
    -0.0881705f, 0.07625008f, 0.057437945f, -0.04411194f, 0.04638651f, -0.017921727f, -0.1538039f,
    0.08858804f, -0.0064496165f, -0.022306675f, -0.030399092f, -0.018095521f, 0.06989229f, 0.06221208f,
    -0.021071943f, -0.017171683f, 0.016880093f, -0.14403324f, 0.083804466f, -0.036173142f, -0.029840589f,
    0.16380768f, -0.12558739f, 0.027900642f, -0.032486632f, 0.035291955f, 0.058631517f, -0.106964804f,
    0.008436876f, 0.11074496f, -0.20646453f, 0.060605723f, 0.093337215f, -0.006126404f, 0.0032059925f,
    -0.05702455f, 0.069643125f, 0.09502717f, -0.17191623f, -0.06235393f, 0.01783499f, 0.08573364f,
    0.03479245f, -0.013435689f, 0.008541896f, 0.058903415f, -0.09503761f, 0.124209546f, -0.051033f,
    -0.06291716f, -0.023280364f, -0.06971293f, 0.030905463f, 0.15342131f, 0.09192189f, 0.13845316f,
    -0.064336374f, -0.10232171f, 0.08265463f, 0.0146129625f, 0.103221245f, 0.10386233f, 0.08103379f,
    0.053913835f, -0.033479106f, -0.0655872f, -0.061571732f, 0.13410297f, 0.011613809f, 0.039177634f,
    -0.18732168f, -0.051602412f, 0.079372935f, -0.020525744f, -0.1237956f, 0.059326954f, 0.05951244f,
    0.15593731f, -0.119709864f, -0.16932696f, 0.00019531802f, 0.13593034f, -0.10997032f, -0.037590593f,
    -0.034758605f, 0.03349748f, -0.09534938f, 0.11689883f, 0.060505364f, 0.008578169f, -0.07816268f,
    -0.039228715f, 0.038889788f, 0.062948234f, -0.027265094f, 0.06902611f, -0.09999847f, -0.052884344f,
    0.095849656f, 0.052117966f, 0.0057843793f, 0.038868327f, -0.13444285f, -0.016863998f, -0.04876128f,
    0.10753267f, 0.08541016f, 0.008326298f, 0.05417821f, 0.06418478f, -0.19835064f, 0.027448103f,
    0.13461122f, 0.10503226f, -0.11126788f, 0.0048450804f, -0.007259999f, 0.12959068f, -0.037386235f,
    -0.06667032f, -0.0039392263f, -0.08680746f, 0.04663367f, 0.018188383f, -0.023360783f, -0.11733207f,
    0.027511902f, 0.034336988f, 0.044578932f, -0.09582336f, 0.06358974f, 0.045591794f, 0.024356073f,
    0.14423314f, -0.04855471f, -0.0023469855f, -0.031664945f, -0.1440123f, 0.050542966f, -0.051979657f,
    -0.018057529f, 0.2013762f, 0.009516019f, -0.036630396f, 0.0505725f, 0.09141252f, 0.042507857f,
    -0.04186347f, -0.041990962f, 0.03875112f, 0.045319118f, 0.11101926f, -0.026924117f, 0.08824878f,
    -0.0577525f, -0.044280216f, -0.025893852f, 0.00071911875f, 0.032742187f, 0.056623477f, 0.13368142f,
    -0.075315095f, 0.09448293f, -0.09555579f, -0.014288054f, 0.17882241f, -0.11626032f, -0.22627354f,
    -0.13019082f, 0.07305913f, 0.057737745f, -0.11903001f, 0.052360885f, -0.14279911f, 0.16731803f,
    0.009271807f, -0.07786987f, 0.013743807f, -0.0068388656f, 0.072883174f, -0.06047582f, 0.055208158f,
    0.046462577f, 0.069065884f, 0.0133855f, 0.019669095f, 0.031127494f, -0.0041945246f, -0.11066841f,
    0.05280384f, 0.21067391f, 0.06366618f, -0.038011532f, 0.15100788f, -0.011472402f, -4.4389002e-05f,
    -0.069919616f, -0.111250356f, -0.029071365f, -0.055159982f, 0.0626347f, -0.030172197f, 0.09381491f,
    0.015374734f, 0.09236855f, 0.061965168f, 0.003906705f, 0.038733214f, 0.120617844f, -0.09673642f,
    -0.021194078f, 0.09444621f, 0.12895773f, 0.14524493f, -0.10887882f, -0.044710357f, 0.12532182f,
    0.02376392f, -0.03868112f, -0.035961643f, 0.08140697f, 0.08173959f, -0.09050142f, 0.14005516f,
    0.033142254f, -0.07667447f, 0.13160433f, 0.11756568f, -0.09502656f, 0.07701796f, -0.16789557f,
    -0.0032807563f, 0.10798312f, 0.12267682f, 0.0103477435f, 0.06850035f, -0.061685663f, -0.033386033f,
    -0.10007958f, -0.02543322f, 0.15976019f, 0.10402557f, -0.1258608f, -0.09115724f, -0.059255354f,
    0.046749704f, -0.04917388f, 0.13019802f, 0.043813895f, -0.024213616f, 0.041002415f, -0.11541949f,
    -0.09173262f, 0.022451118f, -0.03769459f, -0.07061796f, 0.015639033f, 0.022953099f, -0.08670685f,
    0.04935102f, 0.052152272f, -0.00017301235f, -0.06928564f, -0.123370804f, 0.15763566f, -0.07729811f,
    -0.013924617f, 0.066703334f, 0.053467836f, 0.1665644f, 0.07024935f, -0.065069586f, -0.096355714f,
    -0.05296609f, 0.011872952f, 0.043761417f, 0.05416135f, 0.055375528f, -0.17679498f, 0.120509885f,
    -0.08466828f, -0.08032069f, 0.14613426f, 0.110824086f, 0.10413916f, 0.09550443f, -0.23595734f,
    0.0774973f, -0.018870847f, 0.013360456f, -0.13030364f, 0.06056728f, 0.08233367f, 0.017267447f,
    -0.07936775f, -0.026457127f, -0.0054841563f, -0.043121096f, -0.0849719f, -0.048953608f,
    0.0051736296f, -0.10855908f, -0.0028509982f, 0.004339348f, 0.16757359f, 0.0029019308f, 0.004408759f,
    -0.08700425f, 0.00807286f, -0.036352575f, 0.0295835f, -0.092180714f, 0.07284169f, 0.1011722f,
    0.0002621106f, 0.012061019f, -0.09932717f, -0.16119008f, 0.078893825f, 0.1695701f, 0.09563696f,
    -0.024612034f, 0.0016471803f, 0.01761421f, -0.11682635f, 0.026096469f, 0.01188475f, 0.11926397f,
    0.10389369f, -0.1498629f, 0.00044450408f, 0.0482587f, 0.014173275f, 0.105645284f, 0.12253859f,
    0.008763311f, -0.07072078f, -0.067236945f, -0.0065010223f, -0.029030474f, 0.0068707285f,
    0.012841477f, 0.12260448f, 0.08695299f, 0.02151433f, -0.09604181f, 0.086871564f, -0.12565838f,
    -0.03116263f, 0.15079123f, 0.07524303f, 0.12855092f, -0.08427566f, 0.08425369f, -0.050557826f,
    0.004217164f, -0.09057785f, 0.026576392f, -0.0333038f, -0.22794096f, -0.09708565f, 0.101440124f,
    0.06356429f, -0.065547995f, 0.03584905f, -0.09639931f, 0.15892157f, 0.06117054f, -0.066633254f,
    0.03744336f, 0.02857462f, -0.11685351f, -0.040836353f, 0.0556849f, 0.041080706f, -0.0536173f,
    0.048991587f, -0.037893027f, -0.11670986f, -0.01377058f, -0.03699945f, 0.03213562f, 0.10546343f
};

static const float m_c_c_2_Conv_weights[1752] = {
    0.035158575f, 0.041853387f, -0.015891474f, 0.06613022f, 0.014976408f, 0.1156139f, 0.08478924f,
    0.010963749f, -0.00016591042f, -0.05566514f, 0.0049608015f, 0.038352083f, -0.05501447f, -0.06010213f,
    -0.010925152f, -0.021759221f, 0.18604729f, 0.14898382f, -0.020574892f, 0.1090152f, 0.03501023f,
    0.14633848f, 0.11120704f, -0.058328472f, 0.15310578f, 0.10016734f, -0.12040292f, 0.08782466f,
    0.08506578f, 0.074823245f, -0.0243965f, -0.0035575354f, 0.027613236f, 0.020088512f, 0.09280545f,
    -0.013464752f, 0.041966543f, 0.10731711f, -0.1326875f, -0.016631939f, -0.077365376f, 0.08571165f,
    0.09572687f, -0.047495004f, 0.12593141f, 0.08058727f, -0.03664717f, 0.046350572f, -0.05139197f,
    -0.09564166f, 0.15707758f, 0.02400222f, 0.16362397f, -0.039326325f, -0.073257945f, 0.085957974f,
    0.007043071f, 0.15089566f, 0.093152136f, 0.064579815f, 0.005272275f, 0.06701748f, 0.07382656f,
    0.058181636f, 0.17167099f, 0.105249576f, 0.10832324f, 0.12339867f, -0.108373515f, 0.00082090794f,
    0.14297503f, 0.0755225f, 0.15880363f, -0.04571756f, 0.019928828f, 0.094825506f, 0.12468445f,
    -0.0041785287f, 0.013087597f, 0.09794247f, -0.037618008f, 0.11511631f, 0.055266105f, 0.050298054f,
    -0.048880726f, 0.1409162f, 0.16701728f, 0.010379145f, 0.09644687f, 0.072689615f, -0.08934017f,
    0.048042055f, 0.043164816f, -0.072608605f, 0.011169322f, 0.06995455f, -0.060094673f, 0.05963237f,
    -0.13587217f, 0.018971242f, 0.044419136f, 0.13338475f, 0.11068207f, -0.08477865f, 0.09984838f,
    -0.06938279f, -0.14089204f, 0.13464195f, 0.069086045f, 0.11931244f, 0.0745453f, 0.08277658f,
    -0.035014566f, -0.14018817f, -0.022181261f, 0.12150948f, 0.0028120189f, 0.05344813f, 0.002483592f,
    0.035873257f, 0.020373553f, -0.10632053f, -0.071694225f, -0.005608369f, -0.08067111f, 0.10051834f,
    0.02470518f, 0.0572303f, -0.021484898f, 0.027002947f, -0.07877647f, -0.090181105f, 0.04013794f,
    -0.10357447f, 0.07898852f, 0.11339908f, 0.16333748f, 0.11905847f, -0.07099605f, 0.007944462f,
    0.13755676f, -0.021924822f, 0.08966794f, 0.028613394f, 0.13142423f, -0.015664555f, -0.045370843f,
    0.15625174f, 0.08435324f, 0.040047638f, 0.13204663f, -0.010962244f, -0.018798256f, -0.017423056f,
    0.13843511f, 0.03089691f, -0.11306229f, 0.11077966f, -0.08195715f, 0.09093889f, -0.015016281f,
    -0.02438051f, -0.0021732533f, -0.031846788f, -0.07446355f, 0.04600783f, -0.051129542f, 0.019279968f,
    0.015496382f, -0.12950207f, -0.0033938817f, 0.1758896f, -0.024168072f, -0.12344635f, 0.007255669f,
    0.026075406f, 0.07632063f, 0.03891351f, 0.023903446f, 0.05869398f, -0.0540432f, -0.021926781f,
    0.13160741f, -0.016438516f, 0.07129958f, 0.09812685f, 0.08656932f, 0.14547598f, -0.03842828f,
    -0.119004734f, 0.11960281f, 0.068633445f, 0.13173853f, 0.006087216f, -0.11070199f, 0.012412118f,
    0.16655266f, 0.08438775f, -0.061919626f, -0.0061572636f, -0.04777398f, 0.082993306f, -0.03880568f,
    0.07540137f, -0.134835f, 0.00897803f, 0.0048843f, 0.100145996f, 0.055858117f, 0.037658192f,
    0.0046619005f, 0.09365678f, 0.0033154786f, 0.029538548f, 0.029337643f, -0.047903474f, 0.06823336f,
    0.06110548f, -0.14115061f, 0.077338696f, 0.043693773f, -0.01993957f, -0.018598786f, -0.07182416f,
    0.09593215f, -0.04749346f, 0.055007983f, 0.014922829f, 0.07440643f, -0.03624027f, 0.14390619f,
    0.05765546f, 0.05518626f, -0.043911647f, -0.012324071f, 0.106179565f, 0.005926531f, 0.12219975f,
    -0.11109991f, 0.052871715f, -0.14089167f, -0.13051713f, -0.05857525f, 0.046251286f, -0.10270936f,
    0.05029577f, 0.012862567f, 0.04242511f, -0.042816367f, -0.06018982f, -0.11430538f, -0.01735118f,
    0.1641224f, -0.035771154f, 0.04239767f, 0.07786129f, -0.021732034f, 0.21111819f, -0.059728134f,
    0.105470195f, 0.0053803734f, 0.14503114f, 0.095102325f, -0.06921713f, -0.015799435f, -0.06884752f,
    -0.07150614f, 0.12663041f, -0.054976825f, -0.017641319f, 0.012821713f, -0.029378192f, -0.023401428f,
    0.11439538f, 0.0021617631f, -0.096530944f, -0.03544788f, -0.0012534092f, -0.013126212f, 0.033946875f,
    0.00093827216f, 0.04776645f, 0.010454344f, -0.048188757f, 0.14489515f, 0.009113293f, -0.051048297f,
    0.09855126f, 0.060609832f, -0.11116266f, 0.045199715f, 0.15695325f, 0.16660774f, 0.040086966f,
    0.034383073f, 0.08460631f, 0.09794385f, 0.10708332f, 0.13746616f, -0.024991307f, 0.104729876f,
    0.14144967f, 0.1952048f, -0.008513494f, 0.073431276f, 0.053704385f, -0.03352957f, 0.16550222f,
    0.048166182f, -0.103437416f, 0.014864211f, 0.14226276f, 0.12394881f, -0.080070615f, -0.06983633f,
    0.069842234f, -0.034857754f, 0.17426148f, -0.085254915f, 0.086769074f, 0.047578175f, -0.009148707f,
    0.08450556f, 0.07273065f, -0.120726526f, 0.13815054f, 0.057499368f, -0.0153642995f, -0.011285994f,
    0.117060535f, -0.037532464f, 0.11898482f, 0.14587545f, -0.09770446f, 0.0601218f, 0.1058308f,
    -0.076764025f, -0.057335865f, -0.060679298f, -0.019766951f, 0.05647268f, 0.05181604f, 0.059673414f,
    -0.062055163f, 0.14437428f, -0.089951515f, -0.08701277f, -0.0467459f, 0.106102996f, 0.11773068f,
    -0.071698934f, -0.054814957f, 0.101806246f, -0.050765935f, -0.05430791f, 0.05791988f, 0.013954087f,
    -0.06490136f, -0.10968753f, -0.069024615f, -0.08109352f, -0.010502161f, 0.06513441f, 0.03761367f,
    -0.0089941565f, -0.07392278f, 0.026345365f, 0.047511395f, 0.13584833f, -0.01758008f, 0.1067314f,
    -0.0009248767f, 0.13042581f, -0.07354198f, 0.13284138f, 0.12622131f, 0.048830487f, -0.0141440295f,
    -0.004308689f, -0.029228855f, 0.09982733f, 0.10986692f, 0.0694223f, 0.1453718f, -0.008954542f,
    0.025776163f, 0.119241565f, -0.08523664f, -0.07727737f, -0.02245829f, 0.036986176f, 0.0981372f,
    0.096833095f, 0.074643955f, 0.06948819f, 0.18774508f, -0.0008036235f, -0.052418277f, 0.030102964f,
    0.18649594f, -0.040298246f, 0.10150791f, 0.08219867f, 0.020725204f, 0.064113274f, -0.079751596f,
    0.05700483f, 0.0673332f, 0.06523556f, -0.018668119f, -0.049675032f, -0.032883577f, 0.04531225f,
    -0.05926103f, -0.023438144f, 0.12128534f, 0.08610779f, -0.044977546f, 0.108542465f, 0.10826164f,
    0.053491265f, 0.0028346507f, 0.02817607f, -0.1137686f, 0.049043912f, 0.16591966f, 0.016149001f,
    0.11553138f, 0.026010772f, -0.029463312f, 0.12869778f, -0.012979569f, -0.007298677f, 0.019997045f,
    0.05385396f, 0.179048f, -0.011719932f, 0.014910654f, -0.07021125f, 0.1692322f, -0.03313728f,
    0.07829662f, -0.05723072f, 0.12795147f, 0.064094335f, -0.10081059f, 0.014996012f, 0.045186102f,
    -0.0360661f, 0.06990059f, -0.041345764f, 0.086780116f, -0.008349576f, 0.15693627f, -0.02864433f,
    -0.02968599f, 0.14828894f, -0.028603446f, 0.15379025f, 0.090147436f, -0.052550603f, -0.057102654f,
    0.06291072f, -0.03898687f, -0.08288892f, -0.08213785f, 0.067479216f, 0.013775533f, 0.103136905f,
    0.06339785f, 0.059357636f, 0.07027436f, 0.07454466f, -0.0030173236f, 0.038025938f, 0.043138955f,
    -0.1246878f, 0.04011839f, 0.03185159f, -0.03094342f, -0.02657923f, 0.05578895f, 0.076256394f,
    -0.025072053f, 0.063886754f, -0.0064831083f, -0.06658097f, -0.0052467007f, -0.0031391536f,
    -0.046174888f, -0.017563196f, 0.07425878f, -0.07713685f, -0.0056981836f, 0.021575721f, -0.00543631f,
    -0.041783743f, 0.0014456426f, 0.08344995f, -0.09691546f, 0.026997289f, 0.08251339f, -0.09078103f,
    -0.029175004f, -0.042913433f, 0.0060481136f, 0.15404697f, 0.055137422f, -0.005149418f, -0.079639666f,
    0.10536656f, -0.045846373f, -0.016880585f, -0.012240938f, -0.074094415f, 0.012967576f, 0.089217044f,
    0.031844776f, -0.006422619f, 0.16615693f, 0.10367446f, 0.008543195f, -0.072442524f, 0.048237134f,
    -0.017894961f, 0.03559452f, 0.018665822f, 0.046287037f, 0.07637575f, -0.094629064f, 0.14283569f,
    0.0870263f, 0.0133915795f, -0.14588684f, -0.037974693f, 0.15319541f, 0.07970517f, -0.05823149f,
    0.07558117f, -0.026034834f, 0.16902646f, 0.084347084f, 0.1032151f, -0.05614774f, 0.16265044f,
    0.03326464f, 0.10245545f, -0.016690975f, 0.08488653f, -0.028314495f, 0.11276802f, 0.057289004f,
    -0.11378392f, -0.01892154f, 0.16904199f, 0.19369283f, 0.052559145f, -0.039782908f, 0.095276445f,
    0.17093493f, -0.0014141258f, 0.048435956f, -0.06494305f, 0.013623394f, 0.10760398f, -0.09218223f,
    -0.027374094f, -0.072554916f, 0.078599006f, 0.06679914f, -0.008289556f, 0.0065827426f,
    -0.0124622295f, 0.10087392f, -0.012854187f, -0.003431196f, 0.063890286f, -0.045443352f, 0.15242657f,
    0.06998166f, 0.062438253f, 0.09184775f, -0.051309258f, 0.15072754f, 0.013540505f, 0.10932748f,
    0.14582536f, 0.027828127f, -0.004019215f, -0.03808511f, 0.048083387f, 0.10712658f, 0.04762401f,
    0.0037552253f, 0.042455226f, 0.07946964f, 0.01046425f, -0.0859478f, 0.053072453f, -0.07825276f,
    -0.026974374f, 0.09611292f, -0.08830058f, -0.067333706f, -0.093782656f, 0.038990654f, -0.12056576f,
    -0.1020961f, 0.14228873f, 0.026435051f, 0.07561438f, 0.19869636f, -0.035987854f, -0.09272774f,
    0.13729312f, -0.0034899386f, 0.08783814f, -0.045659184f, -0.08124656f, -0.027853351f, 0.11167769f,
    0.05207388f, 0.092135414f, 0.06329975f, -0.0528549f, 0.044821694f, 0.20870297f, -0.0973606f,
    0.043791458f, -0.043574262f, -0.000276624f, -0.041429285f, -0.055993598f, 0.025026284f,
    -0.00032896307f, 0.24639133f, 0.06433937f, 0.10011742f, 0.015161552f, 0.20652597f, 0.08452673f,
    -0.044286415f, -0.083034255f, 0.067182794f, -0.03478078f, -0.052806903f, 0.027028468f, -0.058162376f,
    0.1563287f, -0.049259927f, 0.06505434f, 0.1420216f, 0.004016599f, -0.11836534f, 0.14491625f,
    0.12568119f, -0.0009994849f, -0.030897366f, 0.1014084f, -0.029914955f, 0.17392606f, -0.056929436f,
    0.12185494f, 0.05891925f, 0.114410356f, 0.08333363f, 0.12468884f, -0.06736864f, -0.13613565f,
    -0.08933575f, 0.12244752f, -0.00024507544f, 0.014985872f, -0.07612381f, 0.11927268f, 0.17817445f,
    0.14965405f, -0.07664907f, 0.11514885f, 0.12062776f, 0.1178588f, -0.0012261723f, -0.11442941f,
    0.15291713f, 0.15785119f, -0.023909362f, 0.029341f, 0.09297354f, 0.1541296f, 0.01369925f,
    0.14314727f, -0.02570361f, -0.12927476f, -0.022438003f, 0.12123932f, 0.07043231f, 0.047376618f,
    -0.040361553f, 0.12555146f, 0.1221884f, 0.044992138f, 0.050715517f, -0.07510716f, 0.07214956f,
    0.06895542f, 0.113446295f, 0.06475856f, -0.07403259f, 0.07325775f, -0.07668555f, 0.10419275f,
    0.040241156f, 0.07005142f, -0.09336764f, 0.054470833f, 0.049172007f, -0.15686712f, 0.040692843f,
    0.14234422f, -0.0601021f, 0.1367561f, 0.16957784f, -0.06165541f, -0.06562163f, 0.047175907f,
    0.014292207f, 0.057964858f, -0.112659335f, -0.02200636f, -0.10205167f, 0.029693075f, 0.10296284f,
    0.025778256f, -0.011545257f, -0.089121796f, -0.045801163f, -0.113516286f, 0.0067700255f,
    0.034771778f, 0.09992975f, 0.058960672f, -0.07067582f, 0.11677386f, -0.059418358f, -0.037226334f,
    0.050585985f, 0.06443849f, 0.14022267f, -0.011686764f, 0.13902028f, 0.08848695f, -0.053150717f,
    0.0007847728f, 0.020608688f, 0.18757172f, 0.029749304f, 0.045535985f, 0.13720793f, 0.05230251f,
    0.09357028f, 0.029847618f, 0.02247784f, 0.16432178f, 0.15010116f, 0.22487037f, -0.046024088f,
    -0.09521592f, -0.05978428f, 0.043604348f, 0.15543343f, -0.037043437f, 0.0003587048f, 0.016268972f,
    0.037184957f, 0.09590331f, 0.12849542f, 0.042125184f, 0.013235783f, 0.19613819f, 0.16929857f,
    -0.11575544f, -0.08652304f, 0.044401485f, 0.09333501f, 0.08219586f, -0.08975151f, 0.043945853f,
    -0.0071526463f, 0.1913785f, 0.17591389f, -0.06609073f, 0.040619012f, 0.10852868f, 0.17775409f,
    -0.024128469f, 0.059494916f, 0.060235217f, -0.011531304f, 0.1042064f, 0.037281808f, -0.049597565f,
    0.027713355f, 0.034324892f, 0.04680277f, -0.026629962f, -0.112571105f, -0.008402059f, 0.12323804f,
    0.15637808f, 0.15956019f, -0.026514774f, -0.043001205f, -0.120497294f, 0.096756436f, 0.02921568f,
    -0.02091611f, -0.010324729f, 0.076880865f, 0.0030244421f, 0.12784739f, 0.0035668751f, 0.04160947f,
    0.12077191f, 0.023082562f, -0.000915138f, 0.017231587f, -0.081622384f, -0.020993475f, 0.05983059f,
    0.104481265f, 0.0609117f, -0.081437446f, -0.015429466f, 0.07323536f, 0.007902215f, 0.016776813f,
    -0.13062406f, 0.021878835f, -0.011885534f, 0.085435726f, 0.01610085f, -0.039973717f, 0.10320036f,
    -0.093867786f, 0.019665584f, -0.06795422f, -0.020157827f, 0.038360577f, 0.13673785f, 0.15555388f,
    -0.04153317f, 0.047478218f, 0.052386116f, -0.06462761f, 0.03679164f, 0.005055438f, -0.08578256f,
    0.11318721f, 0.10256353f, 0.007293527f, 0.06555328f, -9.1597176e-05f, 0.033946015f, 0.04240271f,
    0.15523434f, -0.08570876f, -0.023613147f, 0.17704238f, 0.16175364f, 0.034786586f, -0.0069655436f,
    -0.0022852023f, 0.041751537f, 0.11672798f, 0.12303658f, -0.029801166f, 0.04295383f, 0.03410492f,
    0.14472501f, 0.06760255f, 0.075792335f, -0.033101976f, 0.16927697f, 0.025888324f, 0.2020434f,
    -0.1005022f, -0.027679486f, 0.14996363f, 0.007224162f, 0.118831895f, -0.08021237f, 0.12739389f,
    0.07007937f, -0.047894724f, 0.116235584f, 0.03305925f, 0.019735448f, 0.06648802f, 0.14504525f,
    0.09726851f, -0.05684255f, -0.10835925f, 0.1456635f, 0.10683231f, 0.0843757f, 0.027201373f,
    -0.020711089f, 0.12701519f, 0.21816829f, 0.010694277f, 0.045166887f, -0.15249547f, -0.058782484f,
    -0.037860386f, -0.026585227f, -0.035966367f, 0.051860217f, 0.024596628f, 0.06277258f,
    -0.00017761107f, -0.023180014f, 0.048905652f, 0.07959561f, 0.17740783f, 0.1127423f, -0.07363906f,
    -0.07467686f, 0.0007254252f, 0.0694937f, 0.05255731f, -0.08878082f, 0.07863258f, 0.04659929f,
    -0.01501138f, -0.1263463f, -0.11544499f, -0.077966556f, 0.15968747f, 0.092983f, 0.14080861f,
    -0.12563737f, -0.0117391385f, 0.10585428f, 0.10189898f, 0.16978323f, 0.09399469f, 0.0025698545f,
    -0.018265776f, 0.13815768f, -0.09027859f, -0.11252376f, -0.07891193f, 0.12331454f, 0.009703061f,
    -0.03952213f, 0.10340297f, 0.086582355f, 0.0041484674f, -0.0748617f, 0.05629114f, -0.009227158f,
    0.018008398f, 0.056837898f, 0.11196591f, 0.06686933f, -0.07853351f, -0.06576364f, 0.10628293f,
    0.05911821f, 0.17074385f, -0.08626294f, -0.011528993f, -0.027254358f, -0.043817103f, 0.024710394f,
    -0.035904597f, -0.14049374f, 0.06891526f, 0.1811365f, -0.052238908f, -0.050202373f, 0.0030657928f,
    0.17361769f, 0.056333777f, 0.06397183f, 0.042919442f, -0.036017884f, 0.12858187f, 0.20092654f,
    -0.0004593305f, 0.051938817f, -0.103851736f, 0.16428083f, 0.16200587f, -0.0041779745f, -0.025736544f,
    -0.021006912f, 0.11165591f, 0.11449166f, 0.115502365f, -0.0499393f, -0.021927504f, 0.021825254f,
    0.045560487f, 0.13789211f, -0.10860904f, 0.0009105126f, 0.01285571f, -0.013612649f, -0.062160335f,
    -0.014153253f, 0.14991456f, 0.008150699f, -0.07036177f, -0.014338942f, 0.13284859f, -0.10013079f,
    0.067775846f, 0.18032f, 0.03694313f, -0.09298272f, 0.10294119f, 0.16055872f, 0.19318046f,
    0.04891613f, -0.015266468f, -0.07887505f, 0.05464904f, 0.21957567f, 0.09605027f, 0.08773718f,
    -0.114599295f, -0.020498583f, 0.0041058236f, 0.04279338f, 0.005306679f, 0.008761954f, 0.07763362f,
    0.19836622f, 0.20730032f, -0.07458285f, -0.13603331f, 0.16871746f, 0.120991506f, 0.1997212f,
    -0.034139164f, 0.098136075f, 0.11783909f, 0.0857723f, 0.044557776f, 0.06437074f, 0.14947356f,
    0.029257236f, 0.02756866f, -0.0491487f, 0.013323945f, 0.046019036f, 0.1720587f, 0.06571616f,
    0.07951799f, -0.024570731f, -0.026430575f, 0.16272992f, 0.06799947f, 0.15685087f, -0.13834478f,
    -0.06852239f, -0.04931463f, 0.119043894f, -0.06797534f, 0.07253508f, -0.0663889f, -0.00047915895f,
    0.08758446f, 0.027775666f, 0.042466875f, 0.06810709f, 0.053086493f, 0.061989713f, 0.07365795f,
    0.018793566f, -0.041450664f, 0.06628392f, -0.09806871f, -0.064752504f, -0.08329964f, 0.07037771f,
    -0.008801123f, 0.15356193f, -0.0031274806f, -0.03446349f, 0.13485353f, -0.07817859f, 0.015374504f,
    0.038197313f, 0.11417085f, 0.03374122f, 0.04349014f, 0.06400488f, -0.109108984f, -0.07962845f,
    -0.033468876f, 0.06228272f, -0.03740952f, 0.07096527f, -0.03168533f, 0.040657572f, 0.12128795f,
    -0.03150311f, 0.024816511f, -0.06258184f, 0.2064209f, -0.052506573f, -0.018175632f, 0.015400145f,
    -0.05308937f, 0.19474433f, -0.07734736f, 0.033261433f, -0.06813312f, -0.04083286f, 0.07037627f,
    0.05069905f, 0.05508897f, 0.090450555f, -0.17424174f, 0.14581393f, -0.055908855f, 0.018607913f,
    0.15567973f, -0.076980054f, 0.074507974f, -0.010179792f, -0.0020821325f, -0.09615472f, -0.07736657f,
    0.060750816f, -0.14467734f, 0.06495055f, -0.11302442f, -0.005075621f, 0.07763028f, 0.03387571f,
    0.016209185f, 0.048685748f, -0.037710764f, -0.0025629955f, 0.07441514f, -0.14276588f,
    -0.00043944654f, -0.20528449f, 0.14164014f, 0.10126962f, -0.04411819f, 0.005262343f, -0.17834471f,
    0.04147103f, -0.032839753f, 0.13762698f, 0.13976859f, 0.012783683f, 0.14744316f, 0.02774341f,
    0.0048237806f, -0.03731436f, -0.18650605f, 0.08978573f, 0.10374914f, -0.08653008f, 0.09256512f,
    -0.02829233f, 0.0852453f, 0.083142675f, -0.020693963f, 0.023665069f, 0.030874385f, -0.0858863f,
    -0.040706057f, -0.07639422f, 0.07844828f, 0.021287017f, 0.20814976f, 0.0215411f, -0.1310042f,
    -0.12485941f, 0.13509494f, 0.16817144f, 0.013196375f, 0.0052165803f, 0.07009196f, 0.16492186f,
    0.091279015f, 0.07540056f, -0.046287943f, 0.014932262f, -0.024985813f, 0.05734165f, 0.077282764f,
    0.08730617f, -0.095133856f, -0.17212676f, -0.0072603994f, 0.12437476f, -0.055075854f, 0.10441727f,
    0.1687372f, 0.051210303f, -0.06787942f, 0.07127204f, -0.12516306f, 0.08841039f, -0.022449175f,
    0.025230814f, 0.029814001f, -0.11715213f, 0.092753276f, 0.021960221f, 0.07965333f, -0.015883487f,
    0.08703302f, -0.17428033f, 0.13440512f, -0.023283502f, 0.093501255f, 0.042430945f, 0.064637f,
    0.022871105f, -0.0006241695f, 0.08753422f, -0.11915027f, -0.1612717f, -0.010170075f, 0.07741028f,
    -0.034842573f, -0.075277805f, -0.00737489f, 0.1518118f, -0.09128194f, 0.07680886f, -0.0691313f,
    -0.012712513f, -0.04631296f, 0.043703217f, 0.10398288f, -0.05202968f, -0.15342844f, 0.20002282f,
    -0.0032282465f, 0.10118393f, 0.12045134f, -0.0112886f, 0.05128065f, -0.020600816f, -0.008831345f,
    0.017877458f, -0.029495483f, 0.1975073f, 0.08077492f, 0.0029153477f, -0.027298432f, 0.07105593f,
    0.14198585f, -0.008344519f, -0.036444202f, 0.06948207f, -0.00215645f, 0.07434093f, 0.045872003f,
    -0.073701985f, 0.007392287f, -0.041682646f, 0.026468102f, 0.1207017f, -0.033655543f, 0.058434386f,
    -0.16589196f, 0.17055276f, -0.06571425f, 0.023968598f, -0.049508598f, -0.1272454f, 0.11594989f,
    -0.02326439f, 0.102845564f, 0.008478529f, 0.017868245f, 0.17694189f, 0.012766139f, -0.08305707f,
    0.058105104f, 0.027662512f, 0.040318277f, 0.08689934f, 0.0876936f, 0.10446627f, 0.12431137f,
    -0.07296211f, 0.09347469f, 0.05591703f, -0.08957967f, 0.060378343f, -0.010510324f, -0.008177997f,
    -0.08895752f, -0.1120899f, 0.07500783f, -0.04039122f, 0.050691254f, 0.10446853f, -0.11075227f,
    0.11729193f, -0.06718671f, 0.0051656216f, 0.03348771f, 0.06086146f, 0.12272924f, 0.117720425f,
    -0.030542286f, 0.025385013f, -0.032688417f, -0.05594445f, 0.105792545f, -0.08964491f, -0.058146235f,
    -0.07232182f, 0.18497002f, 0.094139054f, -0.10749649f, -0.018464847f, 0.029940357f, -0.0043468745f,
    0.14426377f, -0.0369246f, -0.10608589f, -0.04647199f, 0.041700367f, -0.06855225f, 0.011453693f,
    0.074660905f, -0.0030836945f, -0.00394413f, 0.075993575f, -0.059334505f, 0.026613437f, 0.13226952f,
    -0.101156f, 0.036275763f, -0.016432537f, -0.0032994603f, -0.10813034f, -0.01971673f, 0.10496195f,
    0.10051072f, -0.057709385f, -0.109608f, -0.018091127f, -0.0031332248f, -0.09200368f, 0.07886532f,
    -0.05858986f, -0.104047686f, -0.014596976f, -0.056809306f, 0.044937234f, 0.10309697f, -0.21600252f,
    0.15306987f, -0.06295436f, -0.026897544f, 0.067667484f, 0.13960864f, -0.05498184f, 0.048801124f,
    -0.03481868f, -0.03897323f, -0.050881784f, 0.09666467f, -0.049226176f, -0.050005585f, -0.016935961f,
    0.056535203f, 0.15246212f, 0.10674533f, 0.037286628f, 0.03121749f, -0.151216f, 0.085136004f,
    -0.076861545f, 0.07986734f, -0.03208579f, -0.10425911f, 0.14926958f, -0.03299079f, 0.02965019f,
    0.08273658f, -0.19312079f, 0.17136809f, 0.031461593f, 0.0991791f, 0.033994358f, -0.08994216f,
    0.1862566f, -0.07020511f, -0.097106494f, 0.07197967f, -0.109501496f, 0.045935385f, -0.01293321f,
    -0.0023923686f, -0.08464849f, -0.059368387f, 0.12897968f, 0.061246164f, 0.0256552f, -0.08651516f,
    0.18554197f, -0.05393784f, 0.082520604f, -0.029949691f, -0.0668841f, 0.09549057f, 0.218727f,
    -0.12529188f, -0.056868073f, -0.07303172f, -0.006822202f, -0.04401295f, -0.005945586f, 0.0521483f,
    -0.022362096f, 0.10827445f, 0.06713971f, -0.09634324f, -0.14500244f, -0.1261832f, 0.16333322f,
    0.044779688f, 0.026973221f, 0.04844829f, 0.04076002f, -0.088814124f, 0.11174729f, 0.07658875f,
    0.1257037f, 0.018530352f, 0.079394f, -0.07698126f, 0.012099515f, -0.12454883f, -0.059540752f,
    -0.016900074f, 0.1817385f, -0.026643364f, 0.0408205f, 0.044790287f, 0.17487115f, 0.07006935f,
    -0.11011049f, -0.11907885f, -0.045988057f, 0.12787709f, 0.023378706f, -0.07496954f, 0.16552262f,
    -0.09247564f, -0.06615612f, -0.03436962f, -0.00087468413f, -0.0024991776f, 0.06124978f, 0.007472406f,
    0.07182314f, 0.027375862f, 0.047822878f, 0.042944387f, -0.15585493f, 0.097830996f, -0.1444334f,
    0.06935637f, 0.026942002f, -0.006097709f, -0.04142097f, -0.002115157f, 0.047590047f, 0.03153787f,
    -0.11117069f, 0.19683237f, -0.03765945f, 0.034486312f, -0.09373208f, -0.04213854f, 0.056167543f,
    -0.083307855f, 0.038494065f, 0.12167919f, 0.02831953f, -0.111612394f, -0.054146186f, -0.005105971f,
    -0.025931006f, -0.0687483f, 0.047907017f, 0.17778601f, 0.056333248f, -0.10562509f, 0.054549553f,
    -0.06775217f, -0.21384554f, -0.03884023f, 0.04740434f, 0.07755831f, -0.060863316f, -0.085061625f,
    -0.07091871f, 0.0977108f, -0.079246856f, -0.112699956f, -0.049412582f, 0.09960402f, 0.043478943f,
    0.030270286f, -0.07269028f, 0.15642327f, 0.10111141f, 0.08646984f, -0.0910987f, -0.06367942f,
    0.1869209f, -0.031363502f, 0.10353326f, 0.12123319f, 0.07494058f, 0.039095365f, 0.0832727f,
    -0.03091111f, -0.071617104f, -0.10397219f, -0.07267018f, -0.05279574f, 0.09000186f, -0.08930958f,
    -0.120726876f, 0.17680626f, 0.11088f, 0.07305644f, -0.005347733f, 0.09623672f, -0.1033482f,
    0.045075074f, -0.007203358f, -0.05595556f, 0.061476626f, 0.06984013f, -0.063280135f, -0.026867723f,
    0.124750905f, 0.08904741f, -0.10084877f, 0.063463f, 0.091206305f, -0.056753453f, 0.08590567f,
    0.01903766f, -0.11869525f, -0.06669114f, 0.02920495f, -0.08094922f, -0.021531228f, 0.09763363f,
    -0.10508174f, 0.090694f, -0.09156081f, -0.093753226f, -0.058236986f, 0.2047292f, -0.18510236f,
    0.067232735f, 0.0026477762f, 0.028277649f, -0.041902438f, -0.12557633f, -0.13909349f, -0.008276283f,
    -0.06716487f, 0.026367322f, -0.0774624f, 0.008996409f, 0.103698835f, -0.041367505f, 0.033939492f,
    0.031363208f, 0.013848955f, -0.09274782f, -0.030979479f, 0.023142539f, -0.051399708f, 0.080227606f,
    -0.06221574f, -0.02921989f, 0.08914748f, -0.09669953f, 0.08288562f, 0.095884f, -0.16486147f,
    -0.0014913874f, -0.036637716f, 0.11461427f, -0.2067877f, -0.040281985f, -0.10693959f, 0.09431919f,
    -0.095650315f, -0.10638318f, -0.0077120485f, 0.19762185f, -0.08048168f, -0.03883669f, 0.04222586f,
    0.108998656f, 0.071131f, 0.1307436f, 0.029672848f, 0.14325194f, -0.036995925f, 0.11856f,
    0.035666917f, -0.012630358f, 0.030234009f, 0.09819169f, -0.0125534525f, 0.18854675f, 0.022800798f,
    0.08355701f, -0.039635744f, 0.14039165f, -0.01377878f, -0.08021197f, 0.089085944f, 0.0837023f,
    0.11420526f, -0.13674529f, -0.0072692605f, 0.014658575f, -0.13352352f, 0.1070878f, 0.14319076f,
    -0.09167772f, 0.07532611f, -0.0014540491f, -0.08551105f, 0.027256621f, 0.15111364f, 0.11222803f,
    0.10023178f, 0.035796873f, 0.1040421f, -0.058364123f, -0.13900499f, 0.15062208f, -0.13891748f,
    -0.13287082f, -0.061930437f, -0.10870459f, 0.016155498f, 0.09864182f, -0.051073838f, -0.0005563928f,
    -0.06910742f, 0.0013415163f, -0.09511231f, 0.15908848f, -0.18837509f, 0.088367224f, -0.0013162154f,
    0.07688332f, -0.08879119f, -0.007838846f, -0.0071031144f, 0.19391748f, -0.009087176f, 0.097971044f,
    -0.06384769f, 0.02311851f, 0.11973503f, -0.0031705596f, 0.10008792f, 0.14260976f, 0.0059484323f,
    0.08450034f, 0.0968398f, -0.13550206f, -0.07539769f, -0.04528215f, -0.0391244f, 0.03731473f,
    -0.016516201f, 0.013714697f, -0.01553047f, -0.03725102f, -0.00390551f, -0.13042107f, -0.10210143f,
    0.014578377f, -0.053410795f, 0.06526666f, 0.0034889658f, -0.09574147f, -0.1270241f, 0.067212164f,
    -0.1472673f, 0.14809398f, -0.15845892f, 0.047490336f, 0.061964914f, 0.030089205f, -0.052416883f,
    0.12840554f, 0.1606198f, 0.03521871f, 0.12623468f, -0.08940019f, 0.105482146f, 0.03721139f,
    0.13830332f, 0.046483904f, 0.014089211f, 0.14488848f, -0.06234786f, -0.054745603f, -0.088408455f,
    -0.023246814f, 0.1151429f, -0.05910986f, 0.08559944f, -0.03944914f, -0.054294914f, -0.08507994f,
    0.016216742f, -0.028832193f, -0.16022134f, 0.030535238f, 0.15628871f, -0.018478915f, 0.015670383f,
    0.08961499f, 0.065904155f, 0.0044485033f, -0.02201276f, 0.0662943f, 0.15778743f, -0.078258835f,
    0.08131694f
};

static const float m_c_c_3_Conv_weights[1752] = {
    0.022966534f, 0.013489829f, -0.1344146f, -0.020116972f, -0.09155993f, -0.09220486f, 0.00986281f,
    -0.084976956f, -0.079504326f, -0.024817783f, -0.042286903f, 0.019958496f, 0.0674002f, -0.016402718f,
    -0.024075473f, 0.005497098f, 0.025488442f, 0.15981421f, -0.13288935f, 0.15576546f, 0.015130163f,
    0.04037576f, 0.09405553f, -0.118013f, 0.09153678f, 0.040106375f, 0.0871265f, 0.0828911f, 0.05091017f,
    0.060831394f, 0.13905051f, -0.028516307f, 0.20080654f, -0.10344125f, 0.035558347f, -0.090397045f,
    -0.03495303f, 0.039291587f, 0.043107923f, 0.095670566f, 0.008201841f, -0.07137049f, 0.039366324f,
    0.057854235f, -0.046398327f, 0.109731324f, -0.028996436f, 0.0074663437f, 0.009055199f, 0.10849206f,
    -0.06675672f, 0.08728926f, -0.028543828f, -0.09796995f, -0.05584738f, 0.061101843f, -0.06610532f,
    0.02342434f, -0.104092f, 0.07189952f, 0.06324507f, -0.108867526f, -0.034751818f, -0.028106697f,
    -0.058303174f, -0.07828206f, 0.05044687f, 0.17651969f, -0.081553966f, -0.040024407f, 0.12347011f,
    -0.074321195f, 0.026206065f, -0.1060523f, -0.040150616f, -0.0398712f, 0.056914177f, -0.0053304657f,
    -0.0059667192f, 0.030644432f, -0.008017975f, 0.058388736f, -0.023174828f, 0.1188075f, -0.015269451f,
    -0.009862897f, 0.015190042f, 0.0015519423f, -0.052698996f, 0.101226225f, 0.015059377f, -0.028274123f,
    0.14333878f, -0.043612078f, 0.14820145f, 0.11478113f, 0.030333886f, 0.07930691f, 0.04847445f,
    0.13183162f, 0.09452499f, 0.0075005805f, 0.04202657f, -0.116011135f, 0.0403014f, 0.11682862f,
    -0.05127899f, 0.13819541f, -0.052003138f, -0.03702845f, 0.040600218f, 0.0073373946f, -0.034244027f,
    0.010799743f, -0.14012079f, 0.0981185f, 0.08750582f, 0.17492881f, -0.052728493f, 0.028154979f,
    -0.018003238f, -0.10427672f, -0.016664896f, 0.1149122f, -0.041189663f, 0.05751375f, -0.08045457f,
    -0.048145857f, -0.041576758f, -0.09075476f, 0.048541524f, -0.03871645f, 0.023610558f, -0.12452931f,
    0.05404075f, 0.016225757f, -0.06255069f, 0.04822233f, -0.09454615f, -0.008830473f, 0.047583435f,
    0.051652182f, 0.0851036f, 0.057086386f, -0.014016608f, 0.022066811f, -0.013185503f, 0.17762841f,
    -0.053091448f, 0.0702887f, -0.049643196f, 0.083731435f, 0.035954025f, -0.005449058f, 0.12927227f,
    -0.0054190117f, -0.030163364f, 0.09117743f, 0.04552612f, 0.015129659f, -0.08374296f, 0.036986478f,
    0.025958236f, -0.014655418f, 0.1555281f, 0.10163806f, 0.02521137f, 0.14381696f, 0.06435516f,
    0.029655822f, 0.09879652f, -0.12230232f, 0.13586955f, 0.06342799f, 0.024793735f, -0.0086522335f,
    0.0071751764f, 0.07517786f, -0.07183771f, 0.05815932f, -0.11099233f, 0.00028153806f, 0.14882764f,
    -0.033870324f, -0.0637284f, 0.14825045f, 0.030633377f, 0.08888573f, -0.00878568f, -0.07652443f,
    0.07385719f, 0.10516791f, 0.0794048f, -0.16658856f, 0.04668631f, 0.0314851f, -0.14897682f,
    0.007940257f, 0.025312364f, -0.03630839f, -0.030806737f, 0.11763333f, -0.1377636f, -0.071034856f,
    -0.117394134f, 0.04975463f, 0.034495566f, 0.1744579f, 0.061927162f, 0.08746547f, -0.09088854f,
    0.017669136f, 0.18025531f, -0.090071544f, -0.032366116f, 0.08058845f, 0.07868106f, -0.07501865f,
    -0.1079584f, 0.09901348f, 0.07154144f, -0.04171044f, 0.0050764694f, -0.0410688f, -0.010677002f,
    0.026515136f, 0.087845966f, 0.056415383f, -0.07044896f, -0.06969064f, 0.068339966f, 0.07052623f,
    -0.08300197f, 0.0548581f, -0.031158356f, 0.03302294f, -0.03164015f, 0.16692828f, -0.009987338f,
    -0.010503688f, 0.030907555f, 0.022364194f, -0.10783713f, 0.030151593f, -0.008003297f, 0.024743479f,
    0.088733144f, -0.08235713f, -0.093788065f, -0.017338637f, 0.07371805f, 0.08782146f, 0.19993977f,
    0.033590447f, -0.089179575f, 0.017440539f, 0.06420487f, -0.00053206703f, 0.041856833f, 0.14351754f,
    -0.09560795f, 0.030875836f, 0.101240344f, -0.0078039626f, 0.06303509f, 0.13089855f, 0.020208303f,
    -0.005083263f, -0.06984215f, 0.04195761f, 0.11228067f, 0.09336099f, 0.07680877f, -0.18837623f,
    0.02093494f, 0.053498343f, 0.05174623f, -0.0074603558f, -0.024558527f, 0.139974f, 0.021576818f,
    -0.06416012f, -0.03965302f, 0.015627014f, 0.07905444f, 0.016241234f, -0.06805861f, 0.01419408f,
    0.09322271f, -0.049923122f, -0.016665641f, 0.035398114f, 0.04905708f, -0.15278077f, 0.04667872f,
    0.1523339f, 0.11475312f, 0.19619283f, -0.10090334f, -0.005546307f, 0.07704718f, -0.12524182f,
    0.02701413f, -0.010645879f, 0.0069232136f, 0.09331838f, -0.087682545f, 0.18336295f, -0.17370066f,
    0.102047235f, 0.015618858f, 0.03698424f, 0.008721056f, -0.0109427f, -0.03948457f, 0.07136554f,
    -0.12914847f, 0.14777522f, 0.008883711f, -0.02770657f, 0.047741655f, 0.09585589f, -0.10749587f,
    0.065171435f, -0.114640355f, 0.1444242f, -0.088880524f, 0.056991298f, 0.041428495f, -0.009057904f,
    -0.11014855f, -0.08380046f, -0.023840843f, -0.0019523284f, 0.020558977f, 0.053188473f,
    -0.0027144293f, 0.024033636f, 0.046159226f, -0.020838646f, -0.045189105f, 0.030373493f, 0.1169658f,
    -0.10915498f, -0.012001971f, -0.02152348f, 0.002088914f, -0.03169378f, -0.081458464f, 0.060875665f,
    0.13465974f, 0.022409905f, -0.10657985f, 0.07553186f, -0.1060991f, 0.09635391f, -0.10178958f,
    0.079086915f, -0.132903f, 0.11919249f, 0.044618472f, -0.11386781f, 0.08666035f, 0.07816848f,
    -0.037936974f, -0.078330435f, -0.010845685f, -0.033981208f, 0.14901742f, 0.07630916f, 0.047515005f,
    0.11748977f, 0.048252758f, -0.026337886f, 0.0980268f, -0.08309937f, -0.0014180592f, -0.12262294f,
    0.12178927f, -0.096333556f, -0.057441145f, 0.05413465f, -0.07115298f, -0.014963591f, -0.06262171f,
    -0.08744057f, 0.059639752f, 0.12710361f, -0.10313456f, 0.037254784f, 0.064872935f, 0.057125393f,
    0.0848211f, 0.044164438f, 0.088750616f, -0.042681668f, 0.10043557f, -0.027872488f, -0.13042608f,
    0.06937971f, -0.13477433f, -0.055857584f, -0.10358525f, -0.055628113f, 0.0064605637f, -0.08303302f,
    -0.035343617f, 0.015123629f, 0.11573849f, -0.08076003f, 0.019343944f, 0.022959689f, 0.049793977f,
    0.06297243f, 0.043709815f, 0.06686096f, 0.011613319f, -0.011859756f, 0.10718409f, -0.00038657157f,
    0.04987497f, 0.18556935f, -0.006115855f, -0.09766282f, -0.07944749f, 0.08215207f, -0.018997157f,
    -0.07519649f, -0.09255376f, 0.06760599f, -0.11198702f, 0.0913971f, -0.06315747f, 0.12955987f,
    0.05376807f, 0.093017414f, 0.1540296f, 0.0826405f, -0.045102656f, -0.013477169f, -0.10005151f,
    0.053997047f, -0.13219456f, -0.010535021f, -0.0886023f, -0.062426988f, -0.11872151f, -0.09857819f,
    -0.0067614825f, 0.07536857f, -0.08361487f, 0.08694054f, -0.09300804f, -0.04215462f, -0.117511414f,
    -0.11473836f, 0.04653245f, 0.06751279f, -0.037690133f, 0.07327964f, -0.06894976f, 0.1069152f,
    -0.03413328f, 0.026944164f, 0.0813222f, 0.027542043f, -0.087997586f, -0.1114541f, 0.09167796f,
    0.080728404f, -0.0024869822f, -0.049009446f, -0.039562434f, -0.11012154f, 0.10769861f, 0.036717348f,
    0.085055485f, -0.13579684f, 0.017228924f, 0.018205158f, -0.08203527f, 0.10984046f, 0.025884733f,
    0.021304049f, 0.063606665f, -0.049013205f, -0.022701712f, -0.13822614f, 0.09929584f, -0.0982185f,
    0.06752613f, 0.19862713f, -0.03354029f, 0.036979362f, 0.0659781f, 0.035369623f, 0.101716086f,
    -0.02759477f, -0.08271618f, -0.037533466f, 0.041419555f, 0.15653796f, -0.0047841654f, -0.029770138f,
    -0.049353596f, -0.002823818f, 0.018329166f, 0.038024426f, -0.08647792f, 0.0007045652f, 0.03538988f,
    0.02258608f, -0.12157289f, 0.08042281f, -0.055929597f, -0.0054253843f, 0.2183414f, 0.034856968f,
    -0.048579894f, -0.091522366f, 0.034154303f, 0.025365317f, 0.024447007f, 0.08626989f, -0.046289925f,
    -0.105898656f, -0.09757648f, 0.027010433f, -0.015369776f, 0.08418949f, -0.06968216f, 0.03317046f,
    -0.032245692f, 0.14164907f, -0.089856446f, 0.07815568f, -0.006233685f, -0.009190009f, -0.063723415f,
    -0.0152238915f, 0.060955994f, 0.018091874f, 0.10093321f, 0.021551834f, 0.03266332f, -0.05547149f,
    0.061709847f, -0.042939905f, -0.09363854f, -0.034519743f, 0.010908854f, 0.14514926f, 0.05751963f,
    -0.0069322856f, -0.100670435f, -0.039567128f, 0.1397071f, 0.13652426f, 0.0050102333f, -0.063305825f,
    -0.050447494f, 0.04226974f, 0.008130622f, 0.015147393f, 0.058736388f, -0.0444843f, 0.05895907f,
    0.023280004f, -0.072250925f, -0.016489942f, 0.0443123f, 0.051201288f, -0.14860544f, 0.10049583f,
    0.061738834f, 0.03820607f, -0.074177496f, -0.04275321f, 0.095124856f, 0.084274314f, -0.08579298f,
    0.10525638f, 0.043192517f, -0.06650464f, -0.09298134f, 0.033768773f, -0.035484076f, -0.018485693f,
    0.019714681f, -0.08958663f, -0.08927108f, 0.06515449f, -0.067172125f, 0.081200115f, -0.105950885f,
    0.053580854f, -0.060417797f, -0.106974766f, -0.023748925f, 0.048216384f, 0.0138107715f, 0.14919896f,
    0.027507754f, -0.07122879f, 0.0442858f, 0.014235369f, -0.094649665f, 0.029160218f, 0.0841018f,
    -0.013960597f, 0.09602445f, 0.20489793f, 0.03021806f, 0.11223673f, 0.002688038f, -0.04504145f,
    0.12262644f, 0.0022518495f, 0.07108214f, -0.04658949f, -0.14037436f, 0.15977046f, -0.06869091f,
    -0.001063236f, -0.061035357f, -0.054134525f, -0.038012803f, -0.0317797f, -0.022744277f, 0.108296104f,
    0.072905f, 0.15218563f, 0.019322718f, -0.05700949f, 0.046059385f, -0.04014932f, 0.19364151f,
    0.07059955f, 0.056787476f, 0.109399356f, -0.10570296f, 0.07195316f, -0.09210375f, 0.131601f,
    0.0472416f, 0.035142653f, -0.071686774f, -0.07663148f, 0.060101245f, -0.017621044f, -0.13931164f,
    0.0984761f, 0.04868553f, 0.124333456f, -0.0131578045f, -0.07794353f, 0.1152484f, 0.0036579003f,
    0.07139051f, -0.12495705f, 0.02754831f, 0.058163192f, 0.14876851f, -0.030135395f, 0.12071745f,
    0.084218755f, 0.13570473f, 0.08866815f, -0.07484373f, -0.05668239f, -0.07824234f, 0.07698471f,
    -0.05599992f, -0.019355962f, -0.1251387f, 0.031088693f, 0.21040788f, -0.0375633f, -0.05877611f,
    -0.018938217f, -0.026390573f, 0.08689736f, -0.0520347f, 0.07528163f, 0.022363774f, -0.083012365f,
    -0.121587835f, 0.035639353f, 0.0076792147f, 0.02311419f, -0.11024315f, 0.039224397f, -0.09782637f,
    0.02684236f, -0.13603169f, 0.014997376f, 0.0022116469f, -0.053947695f, -0.024628937f, 0.036899924f,
    0.008837241f, -0.0058611482f, -0.023713753f, 0.106260575f, -0.031047737f, -0.13015933f, 0.010115905f,
    -0.024163283f, 0.0886242f, -0.1053941f, -0.10056737f, 0.10323612f, -0.13258158f, -0.03508643f,
    0.04227065f, 0.06594256f, 0.07742435f, -0.09795319f, 0.1154039f, -0.11317634f, 0.035557672f,
    0.06599338f, 0.044609744f, 0.0030356175f, 0.012851284f, 0.055848207f, 0.015747651f, 0.054972302f,
    0.11078856f, -0.13120027f, -0.13365366f, 0.11299383f, -0.11757937f, 0.08057954f, -0.053770967f,
    -0.00537841f, -0.12594026f, 0.029305736f, 0.05435516f, -0.009834229f, 0.020147523f, -0.089578964f,
    -0.037740264f, 0.047951072f, 0.057175163f, -0.1016565f, 0.08064629f, 0.018825376f, -0.078038454f,
    -0.004043389f, 0.06325291f, 0.071528114f, 0.15390135f, -0.099052146f, 0.122840576f, -0.06564816f,
    0.017825661f, 0.1347176f, -0.10935462f, 0.14320877f, -0.06446119f, -0.08037726f, 0.15011144f,
    0.046587564f, 0.10846765f, -0.090650566f, -0.05296575f, 0.07127529f, -0.07062204f, -0.052942205f,
    -0.019538973f, -0.06313531f, 0.10507307f, 0.045248363f, -0.08154278f, 0.083387464f, 0.03634555f,
    0.108823836f, -0.09802164f, 0.017199498f, 0.07411719f, 0.0686549f, 0.2078818f, 0.072026856f,
    0.028281521f, 0.02045042f, 0.07897123f, 0.041973084f, 0.029927162f, 0.1427501f, -0.06301277f,
    -0.10492051f, 0.08713545f, 0.03856979f, 0.15789314f, 0.02575476f, 0.051420677f, -0.014776459f,
    0.09077341f, 0.09774208f, -0.0672034f, 0.063037254f, 0.035370607f, -0.04942581f, -0.005916873f,
    -0.12102828f, -0.021735197f, -0.02490929f, -0.11056175f, 0.13931061f, -0.034233622f, -0.016277807f,
    0.035615727f, -0.015451018f, 0.07761259f, -0.09799115f, 0.026579201f, 0.014514909f, 0.09208345f,
    0.20918848f, -0.07692218f, -0.02735821f, 0.0014956405f, 0.08842209f, 0.006932905f, -0.05701495f,
    -0.0030755424f, -0.043538664f, 0.06067194f, 0.025767973f, 0.02967378f, -0.056540806f, 0.09925408f,
    -0.055370357f, 0.072750024f, -0.04813936f, -0.112830356f, 0.008771548f, 0.020466834f, -0.10301212f,
    0.06924986f, 0.01311791f, 0.060368128f, -0.1216318f, 0.08751331f, -0.060152337f, 0.054886453f,
    0.12695986f, -0.10999125f, 0.07021586f, -0.016202677f, -0.0006771831f, -0.0836238f, -0.106345735f,
    -0.032435246f, -0.09074251f, -0.12517813f, 0.1654449f, 0.011552106f, 0.08674109f, 0.01418643f,
    -0.041359015f, 0.13827312f, -0.057290055f, 0.18160805f, -0.0723423f, 0.05009504f, 0.19369264f,
    -0.048431095f, 0.16809714f, 0.069763124f, 0.0037159834f, 0.1707429f, 0.12620212f, 0.12253291f,
    0.113942906f, 0.02552901f, 0.17025566f, 0.10197139f, -0.03271089f, 0.09223127f, 0.040891107f,
    -0.012594947f, -0.050880887f, 0.07409383f, -0.10754558f, -0.00027599846f, 0.06566125f, -0.1197628f,
    0.05325065f, 0.071294785f, -0.028549545f, -0.07275008f, -0.10309389f, 0.020958878f, 0.036626235f,
    -0.12915455f, 0.08939033f, -0.028650368f, 0.114764094f, -0.11427361f, 0.044791702f, 0.12784399f,
    0.026543388f, 0.124749884f, -0.046745233f, 0.028404113f, -0.007688787f, 0.0655482f, 0.09493191f,
    -0.021814043f, -0.06345269f, 0.11271031f, -0.03963998f, -0.049571145f, 0.07331623f, -0.07266029f,
    0.13257016f, -0.009856975f, 0.14349392f, 0.07090175f, 0.085581996f, 0.093127504f, -0.08503098f,
    0.2266271f, 0.08124091f, -0.1302669f, 0.06225157f, 0.08560264f, 0.089021266f, 0.019091286f,
    -0.114035755f, -0.014506621f, -0.07056175f, 0.060793743f, -0.12070307f, -0.07828767f, 0.0005183815f,
    -0.079123445f, 0.18980813f, 0.008402526f, 0.017645283f, -0.022458091f, 0.08956806f, 0.018197779f,
    0.031676203f, -0.10886229f, 0.10576138f, -0.063554905f, 0.036364026f, 0.07592025f, -0.10427083f,
    -0.024861177f, -0.08986116f, -0.055160273f, 0.065335535f, -0.038230017f, 0.16049421f, 0.020277562f,
    -0.08181295f, 0.029437661f, 0.07632122f, -0.083923005f, -0.026595913f, -0.08124228f, -0.12331589f,
    -0.10735441f, 0.1554555f, -0.05355827f, 0.14197123f, -0.020025196f, -0.07398902f, -0.09296369f,
    0.020367661f, -0.14347918f, 0.09990292f, 0.10108259f, 0.06540389f, 0.018806677f, 0.14766361f,
    -0.047561057f, 0.022228293f, 0.09518446f, 0.038617846f, 0.017576937f, -0.03734426f, -0.0993487f,
    0.031483524f, 0.07782219f, 0.15743472f, -0.09569191f, 0.113232605f, 0.16332641f, -0.0033985383f,
    0.011823967f, 0.044491544f, -0.023444979f, 0.14357245f, 0.0697619f, 0.118996724f, 0.07315942f,
    0.08615561f, 0.04587853f, -0.08208581f, 0.07832052f, -0.11404244f, -0.05038237f, 0.005029287f,
    0.017221808f, 0.0082194945f, -0.044923604f, 0.12700957f, 0.08302405f, 0.0039016267f, 0.08890207f,
    -0.09195962f, -0.13455917f, 0.057113945f, 0.035908714f, 0.08888759f, -0.10173388f, -0.011266913f,
    0.18183856f, -0.096950084f, 0.08043355f, -0.056481164f, 0.071945496f, 0.01154395f, 0.07815489f,
    0.13191195f, -0.010739101f, -0.08369579f, -0.0455968f, -0.032799974f, -0.03492152f, -0.073448256f,
    -0.13696219f, 0.0053651733f, -0.033965904f, 0.23341358f, -0.040322196f, 0.061597936f, 0.07368823f,
    0.04261082f, 0.18311962f, 0.058225255f, -0.030860722f, 0.14456348f, -0.03340855f, 0.18802142f,
    -0.014188168f, 0.04949015f, -0.054679137f, -0.070216574f, 0.04867291f, 0.037146796f, -0.025061851f,
    0.17280275f, -0.124602f, 0.1786339f, -0.118265025f, 0.013170283f, 0.056466427f, -0.1243139f,
    0.10823323f, -0.034743585f, -0.044186775f, 0.04415547f, -0.07723888f, 0.066476226f, 0.022148306f,
    0.08300056f, 0.122836955f, -0.062798336f, -0.054081645f, 0.011485201f, 0.024620458f, 0.0123743825f,
    -0.07996749f, 0.034196895f, 0.04165505f, 0.023210997f, 0.13175373f, 0.04801991f, -0.041989267f,
    -0.090716936f, 0.076024674f, 0.06489445f, -0.049805954f, 0.14594725f, -0.10240711f, -0.055713344f,
    -0.0014794555f, -0.0918694f, -0.10623978f, 0.049300525f, -0.025144491f, -0.046188414f, 0.06988659f,
    -0.069719374f, -0.13055454f, -0.08227751f, -0.031992823f, -0.12827678f, -0.09664984f, -0.050351907f,
    0.017936995f, 0.039260797f, -0.016975071f, -0.021636615f, -0.020349428f, -0.048059124f, 0.06465596f,
    0.04403852f, -0.11044414f, -0.10589778f, 0.11715039f, 0.002251422f, -0.070311286f, -0.07885409f,
    0.07838284f, -0.1084026f, -0.013972425f, -0.11527833f, -0.039910685f, -0.1124827f, 0.09990362f,
    0.07760265f, -0.09368338f, -0.020861814f, -0.043131143f, -0.035145193f, 0.072346754f, -0.11900753f,
    -0.059982713f, 0.052805923f, 0.046209306f, 0.011507317f, -0.09020278f, 0.020488877f, 0.2055736f,
    0.03636127f, 0.055925887f, 0.07099224f, 0.07209518f, 0.02168902f, 0.08090333f, 0.0008572304f,
    -0.06282056f, 0.018395139f, -0.031433098f, -0.0007814515f, -0.05951075f, 0.09374918f, -0.15719555f,
    -0.056039438f, -0.03581514f, -0.015917785f, -0.022935746f, 0.03877171f, 0.09533917f, 0.018183095f,
    -0.06654651f, -0.15680608f, -0.024640853f, 0.024748497f, -0.06364367f, -0.06319491f, -0.018092144f,
    -0.030874461f, 0.041274406f, 0.058129784f, 0.07737631f, -0.12659653f, -0.030377388f, 0.124532364f,
    -0.12752363f, -0.02091969f, 0.11770248f, 0.15268397f, 0.033816002f, 0.113013096f, 0.020069426f,
    0.04861716f, -0.047184687f, 0.14520335f, 0.03267453f, -0.002339118f, -0.0989373f, -0.012023749f,
    0.15231161f, 0.08975832f, 0.051919103f, 0.0063287844f, 0.06489526f, 0.16656074f, -0.100910045f,
    -0.07470052f, 0.055397503f, 0.10825104f, 0.08350024f, -0.02921902f, 0.0324442f, 0.15707578f,
    0.0936846f, 0.14491831f, -0.02927076f, -0.00011745237f, 0.05559889f, -0.10976413f, 0.1527693f,
    -0.09115991f, 0.07211417f, -0.099502966f, 0.07958956f, 0.21348706f, -0.10554988f, 0.06250108f,
    0.03410651f, 0.10112951f, -0.17701842f, 0.12033669f, 0.0882074f, 0.02388674f, -0.10481248f,
    0.07202233f, 0.06756441f, -0.017813234f, 0.075447194f, -0.033846796f, -0.041993238f, 0.011499578f,
    0.073908225f, -0.1348177f, -0.11930666f, -0.023837492f, 0.084450416f, -0.05051744f, -0.11226411f,
    -0.02645445f, -0.11432548f, 0.030431824f, -0.09167436f, -0.09657973f, -0.14401686f, -0.19399743f,
    0.07064118f, 0.04863514f, -0.11614581f, -0.13129078f, 0.09917973f, -0.05276159f, 0.02377707f,
    -0.06804762f, -0.014143327f, -0.007982438f, -0.09193323f, -0.045238193f, 0.04360893f, 0.015951399f,
    -0.027353551f, 0.020308038f, -0.05709355f, 0.04961836f, -0.044533405f, -0.11682178f, -0.07062283f,
    -0.043896478f, 0.058308985f, -0.062910214f, 0.002031806f, 0.04137131f, -0.029303934f, 0.009887354f,
    -0.1297828f, -0.13367067f, -0.053108998f, 0.091008425f, 0.03244273f, -0.049456168f, -0.08583152f,
    0.120691046f, 0.09534277f, 0.0061351047f, -0.01662472f, -0.1521983f, 0.090750284f, 0.10330741f,
    -0.16553089f, -0.08426568f, -0.0627073f, 0.09302801f, 0.08603558f, -0.09708739f, -0.032225613f,
    0.05810305f, -0.024576675f, -0.11048063f, 0.12192033f, 0.020045683f, -0.015260848f, 0.13088861f,
    -0.12884784f, 0.08298181f, -0.12091665f, 0.14495395f, 0.09685925f, 0.09246413f, -0.018229373f,
    -0.090830825f, 0.05972274f, -0.06560708f, -0.13015042f, -0.127635f, 0.0121689215f, 0.007721563f,
    0.00013448662f, -0.06782605f, 0.003080396f, -0.11087827f, 0.15285444f, 0.08131792f, 0.08971601f,
    0.057317045f, 0.025100091f, 0.098979585f, 0.0705027f, -0.004140801f, 0.08249722f, 0.06737753f,
    0.15373673f, -0.046139367f, 0.06537461f, -0.009566564f, -0.07027369f, 0.15618245f, -0.12651353f,
    0.021970341f, 0.09819795f, 0.054740813f, -0.19336073f, -0.04072329f, -0.10338119f, -0.00910865f,
    0.028577479f, 0.022705102f, 0.09615062f, -0.059693668f, -0.055325147f, -0.022069177f, -0.01784156f,
    0.034021586f, -0.083146185f, 0.062053617f, -0.09049004f, -0.057483755f, -0.0010162805f, 0.09771485f,
    -0.07150705f, -0.0008284609f, 0.06119608f, 0.087390356f, 0.012900264f, -0.017918428f, -0.14548922f,
    0.015483499f, -0.07543395f, -0.07478736f, -0.033611152f, -0.20602785f, 0.0904602f, -0.06361843f,
    -0.022464262f, 0.08091714f, 0.006126108f, 0.11480349f, -0.024035139f, 0.05693937f, 0.08926781f,
    -0.09871238f, 0.09256107f, 0.122909665f, 0.06781476f, 0.06517977f, 0.10589401f, 0.0067001404f,
    -0.07523587f, -0.047417f, 0.03334099f, -0.12114797f, -0.1957231f, 0.004764942f, 0.08221263f,
    -0.08648518f, -0.052727636f, -0.022345733f, 0.028227508f, -0.008026833f, 0.08920499f, -0.0019502827f,
    -0.027269911f, -0.09048992f, 0.04570311f, -0.15705372f, -0.12924814f, 0.020692794f, 0.097862385f,
    -0.05010788f, -0.040933248f, -0.1778628f, -0.044752732f, -0.053718988f, 0.028913451f, -0.010019972f,
    0.05740942f, 0.007197903f, -0.10324677f, -0.030464219f, -0.08523262f, 0.12524505f, -0.021002999f,
    0.11228356f, 0.0003886124f, -0.13994773f, -0.015528929f, -0.018003313f, 0.09200168f, -0.10228116f,
    0.085308045f, -0.053007726f, 0.10755028f, 0.09971963f, 0.059271805f, -0.10311251f, -0.020793721f,
    0.005685046f, -0.017879387f, -0.038428254f, -0.06517619f, 0.09341874f, -0.024348963f, 0.008218669f,
    -0.06237262f, -0.04730303f, 0.08891261f, 0.14565523f, -0.07353676f, -0.06703697f, -0.08443081f,
    0.07868108f, 0.077023216f, -0.042740237f, -0.09024789f, 0.06197486f, -0.039491992f, 0.13104478f,
    -0.06958132f, 0.024661018f, 0.049743272f, 0.1443005f, -0.0060931602f, 0.19449605f, 0.027721537f,
    0.0010731585f, -0.076413214f, -0.07371822f, 0.1697976f, 0.011977331f, 0.045001566f, 0.050213464f,
    0.103851356f, 0.09349f, -0.020188272f, -0.20478638f, 0.09124841f, 0.030069867f, 0.10309549f,
    -0.15563025f, 0.19496782f, -0.043150224f, -0.018674184f, 0.038350902f, 0.032042693f, 0.07489472f,
    -0.09764366f, -0.0031020294f, 0.18447177f, -0.23094866f, -0.0153375445f, 0.16750988f, 0.050443083f,
    0.07451644f, 0.07045433f, 0.119055614f, -0.00934217f, 0.11012872f, -0.10687348f, 0.070645094f,
    0.12513982f, -0.0564565f, -0.00628376f, -0.073875286f, 0.20022015f, -0.098061025f, -0.034401357f,
    -0.18008684f, 0.11242339f, -0.16522123f, -0.07952793f, 0.08311197f, -0.16134468f, 0.105935216f,
    -0.08140012f, -0.09313722f, -2.779375e-05f, 0.055122923f, 0.1147031f, -0.08618269f, 0.10648024f,
    -0.10232994f, 0.027851067f, -0.021305755f, 0.12385034f, 0.106774494f, 0.036359973f, 0.18296295f,
    -0.0030815538f, 0.08930118f, -0.08495455f, 0.16140942f, 0.044244822f, -0.08444092f, -0.0120169455f,
    -0.042062495f, 0.13213168f, 0.11742501f, -0.014799279f, -0.02945817f, 0.099366605f, -0.006795697f,
    0.07847654f, 0.02097384f, -0.028394558f, 0.15143351f, -0.018589076f, -0.0013662103f, 0.01193725f,
    0.072934456f, -0.09873814f, 0.09448834f, 0.0065912656f, -0.020072319f, -0.03173383f, 0.11527812f,
    0.124210246f, -0.017165039f, -0.11726014f, 0.09687742f, -0.106123395f, 0.05731526f, -0.049648467f,
    -0.13298166f, 0.12933752f, 0.021778349f, -0.03947583f, 0.016030712f, 0.12214717f, -0.13848132f,
    -0.040467873f, -0.14953011f, 0.10667864f, 0.008791252f, 0.0016023236f, -0.06881492f, 0.11604934f,
    -0.0071430774f, -0.08948135f, -0.13696925f, -0.03110494f, -0.106382184f, -0.015814325f, -0.21475825f,
    0.13875477f, -0.18058053f, 0.009669967f, 0.023211652f, 0.06837246f, 0.0493754f, 0.09049823f,
    0.04682086f, -0.06397866f, -0.009935508f, 0.061492287f, 0.13219243f, -0.00522736f, 0.059095573f,
    -0.050270624f, -0.033448316f, 0.17125063f, 0.07022769f, 0.010757127f, -0.18075617f, 0.16665444f,
    -0.016880205f, -0.0076079126f, 0.17757699f, -0.13886009f, -0.048873395f, -0.040734198f,
    -0.054813806f, 0.14636046f, -0.107844345f, -0.004350886f, -0.02462582f, 0.18549457f, -0.057291694f,
    0.07696047f, 0.015691992f, 0.034114026f, 0.036231514f, -0.025051452f, 0.17359169f, 0.053852756f,
    0.16432643f, -0.039476823f, -0.0786136f, 0.021790862f, 0.08126174f, -0.039037563f, -0.06893745f,
    0.17468466f, 0.062882915f, -0.12392584f, -0.031680394f, 0.05212018f, -0.017824639f, -0.02016819f,
    0.13579248f, -0.050015807f, -0.04616716f, -0.0025966612f, -0.037242167f, -0.03423765f, -0.02733223f,
    -0.10615684f, 0.19948141f, 0.106465995f, 0.06294449f, 0.08380357f, -0.03593332f, 0.048394952f,
    -0.030635579f, 0.013536772f, 0.14856215f, 0.008019943f, 0.121263616f, 0.053612728f, 0.010120007f,
    0.15233622f, -0.012574675f, -0.099879414f, -0.016274678f, 0.02914794f, -0.074216835f, 0.021092653f,
    -0.13512033f, 0.14031969f, -0.0719067f, -0.020006202f, -0.039071005f, -0.022453396f, -0.14505713f,
    -0.02081869f, -0.051269613f, -0.01799336f, -0.066547535f, -0.112795316f, -0.18256445f, 0.18994877f,
    -0.063929975f, -0.04214308f, -0.015507831f, 0.09048936f, 0.09894853f, -0.016834784f, 0.020090515f,
    0.056296095f, -0.08385754f, 0.07068616f, 0.13648091f, -0.01869317f, 0.09748197f, -0.1317848f,
    -0.18639691f, 0.09798428f, 0.06369676f, 0.075593986f, -0.18752654f, 0.13296747f, -0.09665478f,
    -0.014727995f, -0.027640702f, 0.0009330603f, -0.04621919f, 0.1304433f, -0.02355232f, 0.038102966f,
    -0.12348744f, -0.004959349f, -0.17322317f, 0.13110553f, -0.0059374277f, 0.090956636f, 0.047920637f,
    0.014651745f, 0.14177825f, -0.020434132f, 0.09814383f, -0.07244669f, 0.14165641f, -0.0816013f,
    -0.03841256f, 0.18692914f, 0.10412049f, -0.066176f, -0.03983436f, -0.057276867f, 0.037873082f,
    -0.02305952f, -0.049756933f, 0.102523044f, 0.10221301f, -0.09446111f, 0.019200485f, 0.12218994f,
    -0.012626986f, 0.036361493f, 0.07457317f, -0.0718085f, 0.03106806f, 0.019299539f, 0.12708893f,
    0.043948732f, 0.04043187f, -0.09257685f, 0.06795541f, -0.03311961f, 0.031124609f, 0.09377025f,
    -0.0085195f, 0.004135612f, 0.10542386f
};

static const float m_c_f_Gemm_weights[150] = {
    -0.19308165f, -0.08296415f, 0.11228298f, -0.14351384f, -0.030443992f, -0.010886829f, -0.23207958f,
    -0.0064333165f, -0.14722973f, -0.036103006f, 0.15080935f, -0.098433405f, 0.0965988f, -0.06299411f,
    -0.09816885f, 0.04786844f, 0.15658237f, 0.01281057f, -0.06705568f, -0.117299244f, -0.17215979f,
    0.055671215f, 0.19743866f, 0.22675149f, -0.15684246f, 0.05010321f, 0.016207471f, -0.13756937f,
    -0.13106103f, 9.456067e-05f, -0.20216711f, -0.007145618f, 0.012723905f, 0.11481879f, -0.024584526f,
    0.23366925f, 0.065115385f, -0.10753677f, -0.08383385f, 0.06438567f, 0.048369884f, 0.28942007f,
    0.021616416f, -0.15773566f, -0.099767946f, -0.007369028f, 0.123487584f, 0.21171945f, 0.11601447f,
    0.057156358f, -0.14107451f, -0.16345935f, 0.19277266f, 0.034987453f, -0.1850235f, -0.16869967f,
    0.12182701f, 0.14387783f, -0.020524656f, 0.040383488f, -0.0037627686f, 0.15844727f, 0.0101651605f,
    -0.17132837f, 0.18658654f, 0.12949999f, 0.20975281f, -0.19010861f, -0.1291168f, -0.13077813f,
    -0.11806488f, 0.15434949f, 0.10133232f, 0.021512989f, 0.07232212f, -0.20952511f, 0.14933461f,
    -0.11814358f, -0.20264041f, 0.034644503f, -0.071358226f, 0.2042001f, 0.11114807f, 0.23269856f,
    -0.01054507f, -0.20105326f, -0.33223668f, -0.08284454f, -0.05241994f, -0.012336527f, -0.17658839f,
    -0.20988563f, -0.18065247f, 0.040971037f, 0.06715221f, 0.18508992f, -0.06792781f, 0.13197963f,
    0.21693298f, 0.20378922f, 0.08554638f, -0.017657846f, 0.032419857f, -0.14342643f, -0.08369481f,
    -0.068016544f, -0.0090422975f, 0.00038979508f, -0.11725712f, -0.007435916f, -0.09673074f,
    -0.03615953f, 0.19138762f, -0.1391388f, -0.13678187f, 0.15316084f, -0.03004424f, -0.06418197f,
    -0.158608f, 0.0032231144f, 0.13572447f, 0.20403746f, 0.15613519f, -0.15002266f, -0.15360732f,
    0.02108241f, 0.049001146f, 0.061040886f, 0.057769872f, -0.12713462f, 0.07443048f, -0.11610109f,
    0.052769803f, 0.047479644f, 0.21227077f, -0.022569038f, -0.13154897f, -0.23245732f, -0.24927837f,
    -0.16787414f, 0.044195436f, -0.009426591f, 0.11881158f, 0.15961052f, -0.14420132f, 0.0381478f,
    0.044625808f, 0.18572718f, -0.002578612f, -0.23805475f
};
