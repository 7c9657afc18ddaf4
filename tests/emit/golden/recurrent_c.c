/* recurrent: recurrent.onnx, compiled by aot-model 0.1.0 for c. Do not edit.
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
 * Memory (workspace: 32 bytes at a multiple of 16), and the steps in which it holds what:
 *
 *       first byte        bytes           steps  holds
 *
 *    workspace + 0           16               1  scratch of step 1: zeros
 *   workspace + 16           16               1  scratch of step 1: cell
 */

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
/* These compilers sum int8_t * (uint8_t - 128) wrongly with the instructions below. */
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__)
#pragma GCC target("no-avxvnni,no-avx512vnni")
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#pragma GCC target("+noi8mm")
#endif
#endif

#include "recurrent.h"

#if RECURRENT_BUILD != 0x0000000000000000u
#error "recurrent.c and recurrent.h are of different builds: make both again, or copy both"
#endif

#if defined(__GNUC__) && !defined(AOT_MODEL_NO_ADVICE)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3 && !defined(__ARM_BIG_ENDIAN)
#pragma message "recurrent.c was made for c: --target cortex-m55 would use the MVE vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN) && defined(__ARM_ARCH_PROFILE) && \
    __ARM_ARCH_PROFILE == 'M'
#pragma message "recurrent.c was made for c: --target cortex-m4 would use the DSP instructions " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__AVX2__) && defined(__FMA__)
#pragma message "recurrent.c was made for c: --target host would use the AVX2 vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__aarch64__) && defined(__ARM_NEON)
#pragma message "recurrent.c was made for c: --target host would use the NEON vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#endif
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include <math.h>
#include <string.h>
#include "aot_model/rational.h"

/* ---- constants: 512 bytes; their values are at the end of this file ---- */

/* lstm_w0: float32[1,7,4,4] */
static const float recurrent_c_lstm_w0[112];

/* lstm_b0: float32[1,4,4] */
static const float recurrent_c_lstm_b0[16];

static inline float f32_fma(float a, float b, float acc)
{
#if defined(__GNUC__) && (defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA))
    return __builtin_fmaf(a, b, acc);
#else
    return acc + a * b; /* fmaf() would be a library call */
#endif
}

/* ---- layers ---- */

/* LSTM, 4 units at a time, forward
 * step 1: lstm (LSTM):  -> float32[5,1,1,4], 560 MACs
 *   reads x at inputs->x; works in zeros at workspace + 0, cell at workspace + 16; writes y at outputs->y */
AOT_MODEL_OPAQUE static void recurrent_00_lstm(const float *restrict x, const float *restrict w0,
    const float *restrict b0, float *restrict zeros, float *restrict cell, float *restrict y)
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
                const float v = xt[k];
                const float e0 = w0k[0];
                const float e1 = w0k[1];
                const float e2 = w0k[2];
                const float e3 = w0k[3];
                const float e4 = w0k[4];
                const float e5 = w0k[5];
                const float e6 = w0k[6];
                const float e7 = w0k[7];
                const float e8 = w0k[8];
                const float e9 = w0k[9];
                a0_0 = f32_fma(e0, v, a0_0);
                a0_1 = f32_fma(e1, v, a0_1);
                a0_2 = f32_fma(e2, v, a0_2);
                a0_3 = f32_fma(e3, v, a0_3);
                a1_0 = f32_fma(e4, v, a1_0);
                a1_1 = f32_fma(e5, v, a1_1);
                a1_2 = f32_fma(e6, v, a1_2);
                a1_3 = f32_fma(e7, v, a1_3);
                a2_0 = f32_fma(e8, v, a2_0);
                a2_1 = f32_fma(e9, v, a2_1);
                const float e10 = w0k[10];
                const float e11 = w0k[11];
                const float e12 = w0k[12];
                const float e13 = w0k[13];
                const float e14 = w0k[14];
                const float e15 = w0k[15];
                a2_2 = f32_fma(e10, v, a2_2);
                a2_3 = f32_fma(e11, v, a2_3);
                a3_0 = f32_fma(e12, v, a3_0);
                a3_1 = f32_fma(e13, v, a3_1);
                a3_2 = f32_fma(e14, v, a3_2);
                a3_3 = f32_fma(e15, v, a3_3);
                w0k += 16;
            }
            for (int32_t k = 0; k < 4; k++) {
                const float v = h[k];
                const float e0 = w0k[0];
                const float e1 = w0k[1];
                const float e2 = w0k[2];
                const float e3 = w0k[3];
                const float e4 = w0k[4];
                const float e5 = w0k[5];
                const float e6 = w0k[6];
                const float e7 = w0k[7];
                const float e8 = w0k[8];
                const float e9 = w0k[9];
                a0_0 = f32_fma(e0, v, a0_0);
                a0_1 = f32_fma(e1, v, a0_1);
                a0_2 = f32_fma(e2, v, a0_2);
                a0_3 = f32_fma(e3, v, a0_3);
                a1_0 = f32_fma(e4, v, a1_0);
                a1_1 = f32_fma(e5, v, a1_1);
                a1_2 = f32_fma(e6, v, a1_2);
                a1_3 = f32_fma(e7, v, a1_3);
                a2_0 = f32_fma(e8, v, a2_0);
                a2_1 = f32_fma(e9, v, a2_1);
                const float e10 = w0k[10];
                const float e11 = w0k[11];
                const float e12 = w0k[12];
                const float e13 = w0k[13];
                const float e14 = w0k[14];
                const float e15 = w0k[15];
                a2_2 = f32_fma(e10, v, a2_2);
                a2_3 = f32_fma(e11, v, a2_3);
                a3_0 = f32_fma(e12, v, a3_0);
                a3_1 = f32_fma(e13, v, a3_1);
                a3_2 = f32_fma(e14, v, a3_2);
                a3_3 = f32_fma(e15, v, a3_3);
                w0k += 16;
            }
            float a[4][4];
            a[0][0] = a0_0;
            a[0][1] = a0_1;
            a[0][2] = a0_2;
            a[0][3] = a0_3;
            a[1][0] = a1_0;
            a[1][1] = a1_1;
            a[1][2] = a1_2;
            a[1][3] = a1_3;
            a[2][0] = a2_0;
            a[2][1] = a2_1;
            a[2][2] = a2_2;
            a[2][3] = a2_3;
            a[3][0] = a3_0;
            a[3][1] = a3_1;
            a[3][2] = a3_2;
            a[3][3] = a3_3;
            for (int32_t j = 0; j < 4; j++) {
                const int32_t u = j;
                const float i_in = a[0][j];
                const float i = aot_model_logistic_float32(i_in);
                const float f_in = a[2][j];
                const float f = aot_model_logistic_float32(f_in);
                const float g_in = a[3][j];
                const float g = aot_model_tanh_float32(g_in);
                const float cell_new = f * c[u] + i * g;
                const float o_in = a[1][j];
                const float o = aot_model_logistic_float32(o_in);
                c[u] = cell_new;
                next[u] = o * aot_model_tanh_float32(cell_new);
            }
        }
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
    recurrent_00_lstm(inputs->x, recurrent_c_lstm_w0, recurrent_c_lstm_b0, AT(float, 0), AT(float, 16),
        outputs->y);
    return AOT_MODEL_OK;
}

