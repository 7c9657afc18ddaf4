/* recurrent: recurrent.onnx, compiled by aot-model 0.1.0 for cortex-m55. Do not edit.
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
#include "recurrent.h"

#if RECURRENT_BUILD != 0x0000000000000000u
#error "recurrent.c and recurrent.h are of different builds: make both again, or copy both"
#endif

#if defined(__ARM_BIG_ENDIAN)
#error "recurrent.c was made for cortex-m55: compile for little-endian, or pass --target c"
#endif

#if !(defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3)
#error "recurrent.c was made for cortex-m55: compile with -mcpu=cortex-m55 -mfloat-abi=hard, or pass --target cortex-m33"
#endif

#if !defined(__ARM_FEATURE_DSP)
#error "recurrent.c was made for cortex-m55: compile with -mcpu of a core with the DSP extension, or pass --target cortex-m3"
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include <string.h>
#include "aot_model/float_vectors.h"
#include "aot_model/helium.h"

/* ---- constants: 512 bytes; their values are at the end of this file ---- */

/* lstm_w0: float32[1,7,4,4] */
static const float recurrent_c_lstm_w0[112];

/* lstm_b0: float32[1,4,4] */
static const float recurrent_c_lstm_b0[16];

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
            float32x4_t a0_0 = aot_model_load_f32(b0);
            float32x4_t a1_0 = aot_model_load_f32(b0 + 4);
            float32x4_t a2_0 = aot_model_load_f32(b0 + 8);
            float32x4_t a3_0 = aot_model_load_f32(b0 + 12);
            for (int32_t k = 0; k < 3; k++) {
                const float v = xt[k];
                a0_0 = vfmaq_n_f32(a0_0, aot_model_load_f32(w0k), v);
                a1_0 = vfmaq_n_f32(a1_0, aot_model_load_f32(w0k + 4), v);
                a2_0 = vfmaq_n_f32(a2_0, aot_model_load_f32(w0k + 8), v);
                a3_0 = vfmaq_n_f32(a3_0, aot_model_load_f32(w0k + 12), v);
                w0k += 16;
            }
            for (int32_t k = 0; k < 4; k++) {
                const float v = h[k];
                a0_0 = vfmaq_n_f32(a0_0, aot_model_load_f32(w0k), v);
                a1_0 = vfmaq_n_f32(a1_0, aot_model_load_f32(w0k + 4), v);
                a2_0 = vfmaq_n_f32(a2_0, aot_model_load_f32(w0k + 8), v);
                a3_0 = vfmaq_n_f32(a3_0, aot_model_load_f32(w0k + 12), v);
                w0k += 16;
            }
            float a[4][4];
            a0_0 = aot_model_four_logistic(a0_0);
            a1_0 = aot_model_four_logistic(a1_0);
            a2_0 = aot_model_four_logistic(a2_0);
            a3_0 = aot_model_four_tanh(a3_0);
            aot_model_store_f32(&a[0][0], a0_0);
            aot_model_store_f32(&a[1][0], a1_0);
            aot_model_store_f32(&a[2][0], a2_0);
            aot_model_store_f32(&a[3][0], a3_0);
            float cells[4] = {0};
            for (int32_t j = 0; j < 4; j++) {
                const int32_t u = j;
                cells[j] = a[2][j] * c[u] + a[0][j] * a[3][j];
                c[u] = cells[j];
            }
            aot_model_store_f32(cells, aot_model_four_tanh(aot_model_load_f32(cells)));
            for (int32_t j = 0; j < 4; j++) {
                next[j] = a[1][j] * cells[j];
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

