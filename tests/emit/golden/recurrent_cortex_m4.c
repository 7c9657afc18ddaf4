/* recurrent: recurrent.onnx, compiled by aot-model 0.1.0 for cortex-m4. Do not edit.
 *
 * model     SHA-256 0000000000000000000000000000000000000000000000000000000000000000
 * compiler  aot-model 0.1.0
 *
 * recurrent_run(), below the functions of the layers, calls them in order.
 * The values of the constants are at the end.
 *
 * Layers, in the order of the run; all numbers of steps in this file are those of this table:
 *
 *   step  function           MACs  layer
 *      1  00_lstm            560  lstm
 *
 * Memory (workspace: 96 bytes at a multiple of 16), and the steps in which it holds what:
 *
 *       first byte        bytes           steps  holds
 *
 *    workspace + 0           64               1  scratch of step 1: sums
 *   workspace + 64           16               1  scratch of step 1: zeros
 *   workspace + 80           16               1  scratch of step 1: cell
 */
#include "recurrent.h"

#if RECURRENT_BUILD != 0x0000000000000000u
#error "recurrent.c and recurrent.h are of different builds: make both again, or copy both"
#endif

#if defined(__ARM_BIG_ENDIAN)
#error "recurrent.c was made for cortex-m4: compile for little-endian, or pass --target c"
#endif

#if !defined(__ARM_FEATURE_DSP)
#error "recurrent.c was made for cortex-m4: compile with -mcpu of a core with the DSP extension, or pass --target cortex-m3"
#endif

#if defined(__GNUC__) && !defined(AOT_MODEL_NO_ADVICE)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3 && !defined(__ARM_BIG_ENDIAN)
#pragma message "recurrent.c was made for cortex-m4: --target cortex-m55 would use the MVE vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#endif
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include <string.h>
#include "aot_model/gates.h"

/* ---- constants: 512 bytes; their values are at the end of this file ---- */

/* lstm_w0: float32[1,7,4,4] */
static const float recurrent_c_lstm_w0[112];

/* lstm_b0: float32[1,4,4] */
static const float recurrent_c_lstm_b0[16];

static inline float f32_product(float a, float b)
{
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)
    float product; /* that no compiler makes part of a multiply-add */
    __asm__("vmul.f32 %0, %1, %2" : "=t"(product) : "t"(a), "t"(b));
    return product;
#else
    return a * b;
#endif
}

static inline float f32_early(float a)
{
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)
    __asm__ volatile("" : "+t"(a)); /* loads one behind the other overlap */
#endif
    return a;
}

/* ---- layers ---- */

/* LSTM, 4 units at a time, forward
 * step 1: lstm (LSTM):  -> float32[5,1,1,4], 560 MACs
 *   reads x at inputs->x; works in zeros at workspace + 64, cell at workspace + 80, sums at workspace + 0;
 *   writes y at outputs->y */
AOT_MODEL_OPAQUE static void recurrent_00_lstm(const float *restrict x, const float *restrict w0,
    const float *restrict b0, float *restrict zeros, float *restrict cell, float *restrict sums,
    float *restrict y)
{
    const float *h = zeros;
    memset(zeros, 0, 4 * sizeof(*zeros));
    float *const c = cell;
    memset(c, 0, 4 * sizeof(*c));
    for (int32_t s = 0; s < 5; s++) {
        const int32_t t = s;
        const float *const xt = x + t * 3;
        float *const next = y + t * 4;
        const float *w0k = w0;
        {
            float a0_0 = b0[0];
            float a0_1 = b0[1];
            float a0_2 = b0[2];
            float a0_3 = b0[3];
            float a1_0 = b0[4];
            float a1_1 = b0[5];
            float a1_2 = b0[6];
            float a1_3 = b0[7];
            float a2_0 = b0[8];
            float a2_1 = b0[9];
            float a2_2 = b0[10];
            float a2_3 = b0[11];
            float a3_0 = b0[12];
            float a3_1 = b0[13];
            float a3_2 = b0[14];
            float a3_3 = b0[15];
            for (int32_t k = 0; k < 3; k++) {
                const float v = f32_early(xt[k]);
                const float e0 = f32_early(w0k[0]);
                const float e1 = f32_early(w0k[1]);
                const float e2 = f32_early(w0k[2]);
                const float e3 = f32_early(w0k[3]);
                const float e4 = f32_early(w0k[4]);
                const float e5 = f32_early(w0k[5]);
                const float e6 = f32_early(w0k[6]);
                const float e7 = f32_early(w0k[7]);
                a0_0 = a0_0 + f32_product(e0, v);
                a0_1 = a0_1 + f32_product(e1, v);
                a0_2 = a0_2 + f32_product(e2, v);
                a0_3 = a0_3 + f32_product(e3, v);
                a1_0 = a1_0 + f32_product(e4, v);
                a1_1 = a1_1 + f32_product(e5, v);
                a1_2 = a1_2 + f32_product(e6, v);
                a1_3 = a1_3 + f32_product(e7, v);
                const float e8 = f32_early(w0k[8]);
                const float e9 = f32_early(w0k[9]);
                const float e10 = f32_early(w0k[10]);
                const float e11 = f32_early(w0k[11]);
                const float e12 = f32_early(w0k[12]);
                const float e13 = f32_early(w0k[13]);
                const float e14 = f32_early(w0k[14]);
                const float e15 = f32_early(w0k[15]);
                a2_0 = a2_0 + f32_product(e8, v);
                a2_1 = a2_1 + f32_product(e9, v);
                a2_2 = a2_2 + f32_product(e10, v);
                a2_3 = a2_3 + f32_product(e11, v);
                a3_0 = a3_0 + f32_product(e12, v);
                a3_1 = a3_1 + f32_product(e13, v);
                a3_2 = a3_2 + f32_product(e14, v);
                a3_3 = a3_3 + f32_product(e15, v);
                w0k += 16;
            }
            for (int32_t k = 0; k < 4; k++) {
                const float v = f32_early(h[k]);
                const float e0 = f32_early(w0k[0]);
                const float e1 = f32_early(w0k[1]);
                const float e2 = f32_early(w0k[2]);
                const float e3 = f32_early(w0k[3]);
                const float e4 = f32_early(w0k[4]);
                const float e5 = f32_early(w0k[5]);
                const float e6 = f32_early(w0k[6]);
                const float e7 = f32_early(w0k[7]);
                a0_0 = a0_0 + f32_product(e0, v);
                a0_1 = a0_1 + f32_product(e1, v);
                a0_2 = a0_2 + f32_product(e2, v);
                a0_3 = a0_3 + f32_product(e3, v);
                a1_0 = a1_0 + f32_product(e4, v);
                a1_1 = a1_1 + f32_product(e5, v);
                a1_2 = a1_2 + f32_product(e6, v);
                a1_3 = a1_3 + f32_product(e7, v);
                const float e8 = f32_early(w0k[8]);
                const float e9 = f32_early(w0k[9]);
                const float e10 = f32_early(w0k[10]);
                const float e11 = f32_early(w0k[11]);
                const float e12 = f32_early(w0k[12]);
                const float e13 = f32_early(w0k[13]);
                const float e14 = f32_early(w0k[14]);
                const float e15 = f32_early(w0k[15]);
                a2_0 = a2_0 + f32_product(e8, v);
                a2_1 = a2_1 + f32_product(e9, v);
                a2_2 = a2_2 + f32_product(e10, v);
                a2_3 = a2_3 + f32_product(e11, v);
                a3_0 = a3_0 + f32_product(e12, v);
                a3_1 = a3_1 + f32_product(e13, v);
                a3_2 = a3_2 + f32_product(e14, v);
                a3_3 = a3_3 + f32_product(e15, v);
                w0k += 16;
            }
            sums[0] = a0_0;
            sums[1] = a0_1;
            sums[2] = a0_2;
            sums[3] = a0_3;
            sums[4] = a1_0;
            sums[5] = a1_1;
            sums[6] = a1_2;
            sums[7] = a1_3;
            sums[8] = a2_0;
            sums[9] = a2_1;
            sums[10] = a2_2;
            sums[11] = a2_3;
            sums[12] = a3_0;
            sums[13] = a3_1;
            sums[14] = a3_2;
            sums[15] = a3_3;
        }
        aot_model_lstm_units(sums, 4, c, next, 4);
        h = next;
    }
}

/* ---- the model ---- */

static uint8_t recurrent_workspace[RECURRENT_WORKSPACE_SIZE] AOT_MODEL_ALIGNED(RECURRENT_WORKSPACE_ALIGN);
#define AT(type, offset) ((type *)(void *)(recurrent_workspace + (offset)))

AOT_MODEL_OPAQUE int32_t recurrent_run(const recurrent_inputs *inputs, const recurrent_outputs *outputs)
{
    if (inputs == NULL || outputs == NULL || inputs->x == NULL || outputs->y == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    /* step 1: lstm */
    recurrent_00_lstm(inputs->x, recurrent_c_lstm_w0, recurrent_c_lstm_b0, AT(float, 64), AT(float, 80),
        AT(float, 0), outputs->y);
    return AOT_MODEL_OK;
}

