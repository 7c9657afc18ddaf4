/* real: real.onnx, compiled by aot-model 0.1.0 for cortex-m55. Do not edit.
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
#include "real.h"

#if REAL_BUILD != 0x0000000000000000u
#error "real.c and real.h are of different builds: make both again, or copy both"
#endif

#if defined(__ARM_BIG_ENDIAN)
#error "real.c was made for cortex-m55: compile for little-endian, or pass --target c"
#endif

#if !(defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3)
#error "real.c was made for cortex-m55: compile with -mcpu=cortex-m55 -mfloat-abi=hard, or pass --target cortex-m33"
#endif

#if !defined(__ARM_FEATURE_DSP)
#error "real.c was made for cortex-m55: compile with -mcpu of a core with the DSP extension, or pass --target cortex-m3"
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include <math.h>
#include "aot_model/helium.h"
#include "aot_model/scalar.h"

/* ---- constants: 1,280 bytes; their values are at the end of this file ---- */

/* conv_weights: float32[216] */
static const float real_c_conv_weights[216] AOT_MODEL_ALIGNED(16);

/* depthwise_weights: float32[72] */
static const float real_c_depthwise_weights[72] AOT_MODEL_ALIGNED(16);

/* dense_weights: float32[32]; for each block of channels: bias, if any; for each tap those of the block */
static const float real_c_dense_weights[32] AOT_MODEL_ALIGNED(16);

/* Bits of numbers from 0 on have their order, those of a NaN, which is positive on Helium, are above. */
static inline float32x4_t mve_at_least(float32x4_t low, float32x4_t x)
{
    return vreinterpretq_f32_s32(vmaxq_s32(vreinterpretq_s32_f32(low), vreinterpretq_s32_f32(x)));
}

/* ---- layers ---- */

/* each row in blocks of 4 outputs
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
    const float *const plane = x;
    for (int32_t r = 0; r < 3; r++) {
        for (int32_t j = 0; j < rows[r].count; j++) {
            const float *const row = plane + rows[r].first * 4 + j * 4;
            const int32_t oy = rows[r].out + j;
            for (int32_t c = 0; c < 2; c++) {
                const float *w = weights + c * 108;
                float32x4_t acc0 = vdupq_n_f32(0.0f);
                float32x4_t acc1 = vdupq_n_f32(0.0f);
                float32x4_t acc2 = vdupq_n_f32(0.0f);
                float32x4_t acc3 = vdupq_n_f32(0.0f);
                const float *a = row;
                w += rows[r].tap * 12;
                const float *const all_a = a;
                const float *const all_w = w;
                for (int32_t kz = 0; kz < 3; kz++) {
                    a = all_a + kz * 16;
                    w = all_w + kz * 36;
                    for (int32_t ky = 0; ky < rows[r].taps; ky++) {
                        const float32x4_t w2 = aot_model_load_f32(w + 8);
                        const float e3 = a[3];
                        acc2 = vfmaq_n_f32(acc2, w2, e3);
                        const float32x4_t w1 = aot_model_load_f32(w + 4);
                        acc3 = vfmaq_n_f32(acc3, w1, e3);
                        const float e2 = a[2];
                        acc1 = vfmaq_n_f32(acc1, w2, e2);
                        acc2 = vfmaq_n_f32(acc2, w1, e2);
                        const float32x4_t w0 = aot_model_load_f32(w);
                        acc3 = vfmaq_n_f32(acc3, w0, e2);
                        const float e1 = a[1];
                        acc0 = vfmaq_n_f32(acc0, w2, e1);
                        acc1 = vfmaq_n_f32(acc1, w1, e1);
                        acc2 = vfmaq_n_f32(acc2, w0, e1);
                        const float e0 = a[0];
                        acc0 = vfmaq_n_f32(acc0, w1, e0);
                        acc1 = vfmaq_n_f32(acc1, w0, e0);
                        w += 12;
                        a += 4;
                    }
                }
                aot_model_store_f32(y + (oy * 32 + c * 4), mve_at_least(vdupq_n_f32(0.0f), acc0));
                aot_model_store_f32(y + (oy * 32 + c * 4 + 8), mve_at_least(vdupq_n_f32(0.0f), acc1));
                aot_model_store_f32(y + (oy * 32 + c * 4 + 16), mve_at_least(vdupq_n_f32(0.0f), acc2));
                aot_model_store_f32(y + (oy * 32 + c * 4 + 24), mve_at_least(vdupq_n_f32(0.0f), acc3));
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
            for (int32_t c = 0; c < 2; c++) {
                const float *w = weights + c * 36;
                float32x4_t acc0 = vdupq_n_f32(0.0f);
                float32x4_t acc1 = vdupq_n_f32(0.0f);
                float32x4_t acc2 = vdupq_n_f32(0.0f);
                float32x4_t acc3 = vdupq_n_f32(0.0f);
                const float *a = row + c * 4;
                w += rows[r].tap * 12;
                for (int32_t ky = 0; ky < rows[r].taps; ky++) {
                    const float32x4_t w2 = aot_model_load_f32(w + 8);
                    const float32x4_t e3 = aot_model_load_f32(a + 24);
                    acc2 = vfmaq_f32(acc2, w2, e3);
                    const float32x4_t w1 = aot_model_load_f32(w + 4);
                    acc3 = vfmaq_f32(acc3, w1, e3);
                    const float32x4_t e2 = aot_model_load_f32(a + 16);
                    acc1 = vfmaq_f32(acc1, w2, e2);
                    acc2 = vfmaq_f32(acc2, w1, e2);
                    const float32x4_t w0 = aot_model_load_f32(w);
                    acc3 = vfmaq_f32(acc3, w0, e2);
                    const float32x4_t e1 = aot_model_load_f32(a + 8);
                    acc0 = vfmaq_f32(acc0, w2, e1);
                    acc1 = vfmaq_f32(acc1, w1, e1);
                    acc2 = vfmaq_f32(acc2, w0, e1);
                    const float32x4_t e0 = aot_model_load_f32(a);
                    acc0 = vfmaq_f32(acc0, w1, e0);
                    acc1 = vfmaq_f32(acc1, w0, e0);
                    w += 12;
                    a += 32;
                }
                aot_model_store_f32(y + (oy * 32 + c * 4), acc0);
                aot_model_store_f32(y + (oy * 32 + c * 4 + 8), acc1);
                aot_model_store_f32(y + (oy * 32 + c * 4 + 16), acc2);
                aot_model_store_f32(y + (oy * 32 + c * 4 + 24), acc3);
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
    for (int32_t c = 0; c < 2; c++) {
        float32x4_t acc0 = vdupq_n_f32(-INFINITY);
        const float *a = row + c * 4;
        for (int32_t ky = 0; ky < 4; ky++) {
            const float32x4_t e3 = aot_model_load_f32(a + 24);
            acc0 = vmaxnmq_f32(e3, acc0);
            const float32x4_t e2 = aot_model_load_f32(a + 16);
            acc0 = vmaxnmq_f32(e2, acc0);
            const float32x4_t e1 = aot_model_load_f32(a + 8);
            acc0 = vmaxnmq_f32(e1, acc0);
            const float32x4_t e0 = aot_model_load_f32(a);
            acc0 = vmaxnmq_f32(e0, acc0);
            a += 32;
        }
        aot_model_store_f32(y + c * 4, acc0);
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
        float32x4_t acc0_0 = vdupq_n_f32(0.0f);
        const float *a0 = x0;
        for (int32_t i = 0; i < 8; i++) {
            {
                const float e0 = a0[0];
                const float32x4_t w0 = aot_model_load_f32(w);
                acc0_0 = vfmaq_n_f32(acc0_0, w0, e0);
            }
            a0 += 1;
            w += 4;
        }
        aot_model_store_f32(y, acc0_0);
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

