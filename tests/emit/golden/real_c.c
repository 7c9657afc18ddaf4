/* real: real.onnx, compiled by aot-model 0.1.0 for c. Do not edit.
 *
 * model     SHA-256 0000000000000000000000000000000000000000000000000000000000000000
 * compiler  aot-model 0.1.0
 *
 * real_run(), below the functions of the layers, calls them in order.
 * The values of the constants are at the end.
 *
 * Layers, in the order of the run; all numbers of steps in this file are those of this table:
 *
 *   step  function                   MACs  layer
 *      1  00_conv_3x3               3,456  conv
 *      2  01_depthwise_3x3          1,152  depthwise
 *      3  02_max_pool_4x4                  pool
 *      4  03_matmul                    32  dense
 *
 * Memory (workspace: 768 bytes at a multiple of 16), and the steps in which it holds what:
 *
 *        first byte        bytes           steps  holds
 *
 *   workspace + 256          512          1 to 2  result of step 1
 *     workspace + 0          512          2 to 3  result of step 2
 *   workspace + 512           32          3 to 4  result of step 3
 */

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
/* These compilers sum int8_t * (uint8_t - 128) wrongly with the instructions below. */
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__)
#pragma GCC target("no-avxvnni,no-avx512vnni")
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#pragma GCC target("+noi8mm")
#endif
#endif

#include "real.h"

#if REAL_BUILD != 0x0000000000000000u
#error "real.c and real.h are of different builds: make both again, or copy both"
#endif

#if defined(__GNUC__) && !defined(AOT_MODEL_NO_ADVICE)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3 && !defined(__ARM_BIG_ENDIAN)
#pragma message "real.c was made for c: --target cortex-m55 would use the MVE vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN) && defined(__ARM_ARCH_PROFILE) && \
    __ARM_ARCH_PROFILE == 'M'
#pragma message "real.c was made for c: --target cortex-m4 would use the DSP instructions " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__AVX2__) && defined(__FMA__)
#pragma message "real.c was made for c: --target host would use the AVX2 vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__aarch64__) && defined(__ARM_NEON)
#pragma message "real.c was made for c: --target host would use the NEON vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#endif
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include <math.h>
#include "aot_model/scalar.h"

/* ---- constants: 1,280 bytes; their values are at the end of this file ---- */

/* conv_weights: float32[216]; for each block of channels: bias, if any; for each tap those of the block */
static const float real_c_conv_weights[216];

/* depthwise_weights: float32[72] */
static const float real_c_depthwise_weights[72];

/* dense_weights: float32[32]; for each block of channels: bias, if any; for each tap those of the block */
static const float real_c_dense_weights[32];

static inline float f32_fma(float a, float b, float acc)
{
#if defined(__GNUC__) && (defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA))
    return __builtin_fmaf(a, b, acc);
#else
    return acc + a * b; /* fmaf() would be a library call */
#endif
}

static inline float f32_max(float a, float b)
{
    return a > b ? a : b;
}

/* ---- layers ---- */

/* 2 pixels x 8 channels in registers
 * step 1: conv (Convolution): float32[1,4,4,3] * float32[8,3,3,3] -> float32[1,4,4,8], 3,456 MACs
 *   reads x at inputs->x; writes y at workspace + 256 */
AOT_MODEL_OPAQUE static void real_00_conv_3x3(const float *restrict x, const float *restrict weights,
    float *restrict y)
{
    /* rows: first output, outputs, first input, first tap, taps */
    static const struct { int16_t out, count, first, tap, taps; } rows[3] = {
        {0, 1, 0, 1, 2},
        {1, 2, 0, 0, 3},
        {3, 1, 2, 0, 2},
    };
    /* cols: first output, outputs, first input, first tap, taps */
    static const struct { int16_t out, count, first, tap, taps; } cols[3] = {
        {0, 1, 0, 1, 2},
        {1, 2, 0, 0, 3},
        {3, 1, 2, 0, 2},
    };
    for (int32_t r = 0; r < 3; r++) {
        for (int32_t s = 0; s < 3; s++) {
            const float *in = x + rows[r].first * 4 + cols[s].first;
            int32_t oy = rows[r].out;
            int32_t ox = cols[s].out;
            const int32_t ox_end = ox + cols[s].count;
            for (int32_t left = rows[r].count * cols[s].count; left > 0; left -= 2) {
                const int32_t y0 = oy;
                const int32_t c0 = ox;
                const float *const x0 = in;
                if (left > 1) {
                    ox += 1;
                    in += 1;
                    if (ox == ox_end) {
                        ox = cols[s].out;
                        oy += 1;
                        in += 4 - cols[s].count;
                    }
                }
                const int32_t y1 = oy;
                const int32_t c1 = ox;
                const float *const x1 = in;
                if (left > 2) {
                    ox += 1;
                    in += 1;
                    if (ox == ox_end) {
                        ox = cols[s].out;
                        oy += 1;
                        in += 4 - cols[s].count;
                    }
                }
                {
                    const float *w = weights;
                    float acc0_0 = 0.0f;
                    float acc0_1 = 0.0f;
                    float acc0_2 = 0.0f;
                    float acc0_3 = 0.0f;
                    float acc0_4 = 0.0f;
                    float acc0_5 = 0.0f;
                    float acc0_6 = 0.0f;
                    float acc0_7 = 0.0f;
                    float acc1_0 = 0.0f;
                    float acc1_1 = 0.0f;
                    float acc1_2 = 0.0f;
                    float acc1_3 = 0.0f;
                    float acc1_4 = 0.0f;
                    float acc1_5 = 0.0f;
                    float acc1_6 = 0.0f;
                    float acc1_7 = 0.0f;
                    w += (rows[r].tap * 3 + cols[s].tap) * 24;
                    for (int32_t ky = 0; ky < rows[r].taps; ky++) {
                        const float *a0 = x0 + ky * 4;
                        const float *a1 = x1 + ky * 4;
                        for (int32_t kx = 0; kx < cols[s].taps; kx++) {
                            {
                                const float e0 = a0[0];
                                const float e1 = a1[0];
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
                            {
                                const float e0 = a0[16];
                                const float e1 = a1[16];
                                const float w7 = w[15];
                                acc0_7 = f32_fma(w7, e0, acc0_7);
                                acc1_7 = f32_fma(w7, e1, acc1_7);
                                const float w6 = w[14];
                                acc0_6 = f32_fma(w6, e0, acc0_6);
                                acc1_6 = f32_fma(w6, e1, acc1_6);
                                const float w5 = w[13];
                                acc0_5 = f32_fma(w5, e0, acc0_5);
                                acc1_5 = f32_fma(w5, e1, acc1_5);
                                const float w4 = w[12];
                                acc0_4 = f32_fma(w4, e0, acc0_4);
                                acc1_4 = f32_fma(w4, e1, acc1_4);
                                const float w3 = w[11];
                                acc0_3 = f32_fma(w3, e0, acc0_3);
                                acc1_3 = f32_fma(w3, e1, acc1_3);
                                const float w2 = w[10];
                                acc0_2 = f32_fma(w2, e0, acc0_2);
                                acc1_2 = f32_fma(w2, e1, acc1_2);
                                const float w1 = w[9];
                                acc0_1 = f32_fma(w1, e0, acc0_1);
                                acc1_1 = f32_fma(w1, e1, acc1_1);
                                const float w0 = w[8];
                                acc0_0 = f32_fma(w0, e0, acc0_0);
                                acc1_0 = f32_fma(w0, e1, acc1_0);
                            }
                            {
                                const float e0 = a0[32];
                                const float e1 = a1[32];
                                const float w7 = w[23];
                                acc0_7 = f32_fma(w7, e0, acc0_7);
                                acc1_7 = f32_fma(w7, e1, acc1_7);
                                const float w6 = w[22];
                                acc0_6 = f32_fma(w6, e0, acc0_6);
                                acc1_6 = f32_fma(w6, e1, acc1_6);
                                const float w5 = w[21];
                                acc0_5 = f32_fma(w5, e0, acc0_5);
                                acc1_5 = f32_fma(w5, e1, acc1_5);
                                const float w4 = w[20];
                                acc0_4 = f32_fma(w4, e0, acc0_4);
                                acc1_4 = f32_fma(w4, e1, acc1_4);
                                const float w3 = w[19];
                                acc0_3 = f32_fma(w3, e0, acc0_3);
                                acc1_3 = f32_fma(w3, e1, acc1_3);
                                const float w2 = w[18];
                                acc0_2 = f32_fma(w2, e0, acc0_2);
                                acc1_2 = f32_fma(w2, e1, acc1_2);
                                const float w1 = w[17];
                                acc0_1 = f32_fma(w1, e0, acc0_1);
                                acc1_1 = f32_fma(w1, e1, acc1_1);
                                const float w0 = w[16];
                                acc0_0 = f32_fma(w0, e0, acc0_0);
                                acc1_0 = f32_fma(w0, e1, acc1_0);
                            }
                            a0 += 1;
                            a1 += 1;
                            w += 24;
                        }
                        w += (3 - cols[s].taps) * 24;
                    }
                    y[y0 * 32 + c0 * 8] = aot_model_max_float32(acc0_0, 0.0f);
                    y[y0 * 32 + c0 * 8 + 1] = aot_model_max_float32(acc0_1, 0.0f);
                    y[y0 * 32 + c0 * 8 + 2] = aot_model_max_float32(acc0_2, 0.0f);
                    y[y0 * 32 + c0 * 8 + 3] = aot_model_max_float32(acc0_3, 0.0f);
                    y[y0 * 32 + c0 * 8 + 4] = aot_model_max_float32(acc0_4, 0.0f);
                    y[y0 * 32 + c0 * 8 + 5] = aot_model_max_float32(acc0_5, 0.0f);
                    y[y0 * 32 + c0 * 8 + 6] = aot_model_max_float32(acc0_6, 0.0f);
                    y[y0 * 32 + c0 * 8 + 7] = aot_model_max_float32(acc0_7, 0.0f);
                    if (left > 1) {
                        y[y1 * 32 + c1 * 8] = aot_model_max_float32(acc1_0, 0.0f);
                        y[y1 * 32 + c1 * 8 + 1] = aot_model_max_float32(acc1_1, 0.0f);
                        y[y1 * 32 + c1 * 8 + 2] = aot_model_max_float32(acc1_2, 0.0f);
                        y[y1 * 32 + c1 * 8 + 3] = aot_model_max_float32(acc1_3, 0.0f);
                        y[y1 * 32 + c1 * 8 + 4] = aot_model_max_float32(acc1_4, 0.0f);
                        y[y1 * 32 + c1 * 8 + 5] = aot_model_max_float32(acc1_5, 0.0f);
                        y[y1 * 32 + c1 * 8 + 6] = aot_model_max_float32(acc1_6, 0.0f);
                        y[y1 * 32 + c1 * 8 + 7] = aot_model_max_float32(acc1_7, 0.0f);
                    }
                }
            }
        }
    }
}

/* each row in blocks of 4 outputs
 * step 2: depthwise (Convolution): float32[1,4,4,8] * float32[8,3,3,1] -> float32[1,4,4,8], 1,152 MACs
 *   reads x at workspace + 256 (overlaps); writes y at workspace + 0 (overlaps) */
AOT_MODEL_OPAQUE static void real_01_depthwise_3x3(const float *x, const float *restrict weights, float *y)
{
    /* rows: first output, outputs, first input, first tap, taps */
    static const struct { int16_t out, count, first, tap, taps; } rows[3] = {
        {0, 1, 0, 1, 2},
        {1, 2, 0, 0, 3},
        {3, 1, 2, 0, 2},
    };
    for (int32_t r = 0; r < 3; r++) {
        for (int32_t j = 0; j < rows[r].count; j++) {
            const float *const row = x + rows[r].first * 32 + j * 32;
            const int32_t oy = rows[r].out + j;
            for (int32_t c = 0; c < 8; c++) {
                const float *w = weights + c * 9;
                float acc0 = 0.0f;
                float acc1 = 0.0f;
                float acc2 = 0.0f;
                float acc3 = 0.0f;
                const float *a = row + c;
                w += rows[r].tap * 3;
                for (int32_t ky = 0; ky < rows[r].taps; ky++) {
                    AOT_MODEL_IN_ORDER;
                    const float w2 = w[2];
                    const float e3 = a[24];
                    acc2 = f32_fma(w2, e3, acc2);
                    const float w1 = w[1];
                    acc3 = f32_fma(w1, e3, acc3);
                    const float e2 = a[16];
                    acc1 = f32_fma(w2, e2, acc1);
                    acc2 = f32_fma(w1, e2, acc2);
                    const float w0 = w[0];
                    acc3 = f32_fma(w0, e2, acc3);
                    const float e1 = a[8];
                    acc0 = f32_fma(w2, e1, acc0);
                    acc1 = f32_fma(w1, e1, acc1);
                    acc2 = f32_fma(w0, e1, acc2);
                    const float e0 = a[0];
                    acc0 = f32_fma(w1, e0, acc0);
                    acc1 = f32_fma(w0, e0, acc1);
                    w += 3;
                    a += 32;
                }
                y[oy * 32 + c] = acc0;
                y[oy * 32 + c + 8] = acc1;
                y[oy * 32 + c + 16] = acc2;
                y[oy * 32 + c + 24] = acc3;
            }
        }
    }
}

/* each row in blocks of 1 output
 * step 3: pool (Pool): float32[1,4,4,8] -> float32[1,1,1,8]
 *   reads x at workspace + 0; writes y at workspace + 512 */
AOT_MODEL_OPAQUE static void real_02_max_pool_4x4(const float *restrict x, float *restrict y)
{
    const float *const row = x;
    for (int32_t c = 0; c < 8; c++) {
        float acc0 = -INFINITY;
        const float *a = row + c;
        for (int32_t ky = 0; ky < 4; ky++) {
            const float e3 = a[24];
            acc0 = f32_max(e3, acc0);
            const float e2 = a[16];
            acc0 = f32_max(e2, acc0);
            const float e1 = a[8];
            acc0 = f32_max(e1, acc0);
            const float e0 = a[0];
            acc0 = f32_max(e0, acc0);
            a += 32;
        }
        y[c] = acc0;
    }
}

/* 1 pixel x 4 channels in registers
 * step 4: dense (MatMul): float32[1,8] * float32[8,4] -> float32[1,4], 32 MACs
 *   reads x at workspace + 512; writes y at outputs->y */
AOT_MODEL_OPAQUE static void real_03_matmul(const float *restrict x, const float *restrict weights,
    float *restrict y)
{
    const float *const x0 = x;
    {
        const float *w = weights;
        float acc0_0 = 0.0f;
        float acc0_1 = 0.0f;
        float acc0_2 = 0.0f;
        float acc0_3 = 0.0f;
        const float *a0 = x0;
        for (int32_t i = 0; i < 8; i += 4) {
            {
                const float e0 = a0[0];
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
                const float w3 = w[7];
                acc0_3 = f32_fma(w3, e0, acc0_3);
                const float w2 = w[6];
                acc0_2 = f32_fma(w2, e0, acc0_2);
                const float w1 = w[5];
                acc0_1 = f32_fma(w1, e0, acc0_1);
                const float w0 = w[4];
                acc0_0 = f32_fma(w0, e0, acc0_0);
            }
            {
                const float e0 = a0[2];
                const float w3 = w[11];
                acc0_3 = f32_fma(w3, e0, acc0_3);
                const float w2 = w[10];
                acc0_2 = f32_fma(w2, e0, acc0_2);
                const float w1 = w[9];
                acc0_1 = f32_fma(w1, e0, acc0_1);
                const float w0 = w[8];
                acc0_0 = f32_fma(w0, e0, acc0_0);
            }
            {
                const float e0 = a0[3];
                const float w3 = w[15];
                acc0_3 = f32_fma(w3, e0, acc0_3);
                const float w2 = w[14];
                acc0_2 = f32_fma(w2, e0, acc0_2);
                const float w1 = w[13];
                acc0_1 = f32_fma(w1, e0, acc0_1);
                const float w0 = w[12];
                acc0_0 = f32_fma(w0, e0, acc0_0);
            }
            a0 += 4;
            w += 16;
        }
        y[0] = acc0_0;
        y[1] = acc0_1;
        y[2] = acc0_2;
        y[3] = acc0_3;
    }
}

/* ---- the model ---- */

static uint8_t real_workspace[REAL_WORKSPACE_SIZE] AOT_MODEL_ALIGNED(REAL_WORKSPACE_ALIGN);
#define AT(type, offset) ((type *)(void *)(real_workspace + (offset)))

AOT_MODEL_OPAQUE int32_t real_run(const real_inputs *inputs, const real_outputs *outputs)
{
    if (inputs == NULL || outputs == NULL || inputs->x == NULL || outputs->y == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    /* step 1: conv */
    real_00_conv_3x3(inputs->x, real_c_conv_weights, AT(float, 256));
    /* step 2: depthwise */
    real_01_depthwise_3x3(AT(float, 256), real_c_depthwise_weights, AT(float, 0));
    /* step 3: pool */
    real_02_max_pool_4x4(AT(float, 0), AT(float, 512));
    /* step 4: dense */
    real_03_matmul(AT(float, 512), real_c_dense_weights, outputs->y);
    return AOT_MODEL_OK;
}

