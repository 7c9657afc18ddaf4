/* integer: integer.onnx, compiled by aot-model 0.1.0 for cortex-m0. Do not edit.
 *
 * model     SHA-256 0000000000000000000000000000000000000000000000000000000000000000
 * compiler  aot-model 0.1.0
 *
 * integer_run(), below the functions of the layers, calls them in order.
 * The values of the constants are at the end.
 *
 * Layers, in the order of the run; all numbers of steps in this file are those of this table:
 *
 *   step  function                     MACs  layer
 *      1  00_transpose                       conv
 *      2  01_conv_3x3                 3,456  conv
 *      3  02_depthwise_3x3            1,152  depthwise
 *      4  03_wide_sum                        pool
 *      5  04_flatten                         dense
 *      6  05_fully_connected             32  dense
 *      7  06_identity                        y
 *
 * Memory (workspace: 224 bytes at a multiple of 16), and the steps in which it holds what:
 *
 *        first byte        bytes           steps  holds
 *
 *    workspace + 92           48          1 to 2  result of step 1
 *   workspace + 140           27               2  scratch of step 2: patch
 *   workspace + 168            9               2  scratch of step 2: border
 *     workspace + 0          128          2 to 3  result of step 2
 *   workspace + 128           96               3  scratch of step 3: plane
 *     workspace + 0          128          3 to 4  result of step 3
 *   workspace + 128           32          4 to 5  result of step 4
 *     workspace + 0            8          5 to 6  result of step 5
 *     workspace + 8            4          6 to 7  result of step 6
 */

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
/* These compilers sum int8_t * (uint8_t - 128) wrongly with the instructions below. */
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__)
#pragma GCC target("no-avxvnni,no-avx512vnni")
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#pragma GCC target("+noi8mm")
#endif
#endif

#include "integer.h"

#if INTEGER_BUILD != 0x0000000000000000u
#error "integer.c and integer.h are of different builds: make both again, or copy both"
#endif

#if defined(__ARM_BIG_ENDIAN)
#error "integer.c was made for cortex-m0: compile for little-endian, or pass --target c"
#endif

#if defined(__GNUC__) && !defined(AOT_MODEL_NO_ADVICE)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3 && !defined(__ARM_BIG_ENDIAN)
#pragma message "integer.c was made for cortex-m0: --target cortex-m55 would use the MVE vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#elif defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN) && defined(__ARM_ARCH_PROFILE) && \
    __ARM_ARCH_PROFILE == 'M'
#pragma message "integer.c was made for cortex-m0: --target cortex-m4 would use the DSP instructions " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#endif
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include "aot_model/divisor.h"
#include "aot_model/int8_dsp.h"
#include "aot_model/saturate.h"
#include "aot_model/scalar.h"

/* ---- constants: 400 bytes; their values are at the end of this file ---- */

/* conv_weights: int8[216]; for each 2 channels: for each tap those of each channel */
static const int8_t integer_c_conv_weights[216] AOT_MODEL_ALIGNED(4);

/* conv_requantisation: int32[8]; for each channel: start value of the sums, numbers of the requantisation */
static const int32_t integer_c_conv_requantisation[8];

/* depthwise_weights: int8[72] */
static const int8_t integer_c_depthwise_weights[72] AOT_MODEL_ALIGNED(4);

/* depthwise_requantisation: int32[8]; for each channel: start value of the sums, numbers of the
 * requantisation */
static const int32_t integer_c_depthwise_requantisation[8];

/* dense_weights: int8[32]; for each 2 channels: for each tap those of each channel */
static const int8_t integer_c_dense_weights[32] AOT_MODEL_ALIGNED(4);

/* dense_requantisation: int32[4]; for each channel: start value of the sums, numbers of the requantisation */
static const int32_t integer_c_dense_requantisation[4];

/* 3 x 3 adjacent taps at (row, column); outside of the image: the zero point. */
AOT_MODEL_OPAQUE static const int8_t *run_int8_4x4x3_k3_z3(const int8_t *x, int32_t row, int32_t column,
    int8_t *slot)
{
    if (row >= 0 && row < 4 && column >= 0 && column <= 1) {
        return x + row * 12 + column * 3;
    }
    memset(slot, 3, 9);
    const int32_t from = column < 0 ? -column : 0;
    const int32_t to = column > 1 ? 4 - column : 3;
    if (row >= 0 && row < 4 && from < to) {
        memcpy(slot + from * 3, x + row * 12 + (column + from) * 3, (size_t)((to - from) * 3));
    }
    return slot;
}

/* ---- layers ---- */

/* step 1: conv (Transpose): float32[1,3,4,4] -> int8[1,4,4,3]
 *   reads x at inputs->x; writes y at workspace + 92 */
AOT_MODEL_OPAQUE static void integer_00_transpose(const float *restrict x, int8_t *restrict y)
{
    for (int32_t i = 0; i < 16; i++) {
        for (int32_t j = 0; j < 3; j++) {
            y[i * 3 + j] = (int8_t)aot_model_rint_quotient(x[j * 16 + i], 0.03125f, 32.0f, 0.0f, 3, -128,
                127);
        }
    }
}

/* 1 pixel x 2 channels; requantisation: halved
 * step 2: conv (Convolution): int8[1,4,4,3] * int8[8,3,3,3] -> int8[1,4,4,8], 3,456 MACs
 *   reads x at workspace + 92 (overlaps); works in border at workspace + 168, patch at workspace + 140;
 *   writes y at workspace + 0 (overlaps) */
AOT_MODEL_OPAQUE static void integer_01_conv_3x3(const int8_t *x, const int8_t *restrict weights,
    const int32_t *restrict requantisation, int8_t *restrict border, int8_t *restrict patch, int8_t *y)
{
    for (int32_t pixel = 0; pixel < 16; pixel++) {
        {
            const int32_t place = pixel;
            const int32_t top = place / 4 - 1;
            const int32_t left = place % 4 - 1;
            int8_t *to = patch;
            for (int32_t ky = 0; ky < 3; ky++) {
                const int8_t *from = run_int8_4x4x3_k3_z3(x, top + ky, left, border);
                memcpy(to, from, 9);
                to += 9;
            }
        }
        const int8_t *w = weights;
        const int32_t *table = requantisation;
        const int8_t *from0 = patch;
        for (int32_t c = 0; c < 8; c += 2) {
            int32_t sum00 = table[0];
            int32_t sum01 = table[1];
            const int8_t *at0 = from0;
            for (const int8_t *end = at0 + 27; at0 != end;) {
                {
                    const int32_t w0 = w[0];
                    const int32_t w1 = w[1];
                    const int32_t x0 = at0[0];
                    sum00 += x0 * w0;
                    sum01 += x0 * w1;
                }
                {
                    const int32_t w0 = w[2];
                    const int32_t w1 = w[3];
                    const int32_t x0 = at0[1];
                    sum00 += x0 * w0;
                    sum01 += x0 * w1;
                }
                {
                    const int32_t w0 = w[4];
                    const int32_t w1 = w[5];
                    const int32_t x0 = at0[2];
                    sum00 += x0 * w0;
                    sum01 += x0 * w1;
                }
                w += 6;
                at0 += 3;
            }
            {
                int32_t v = sum00;
                const int32_t sign = (int32_t)((uint32_t)v >> 6 & 1u);
                v = (int32_t)((uint32_t)v + (uint32_t)sign);
                v = dsp_sub(v, 64);
                v = dsp_ssat8(v >> 6);
                y[pixel * 8 + c] = (int8_t)v;
            }
            {
                int32_t v = sum01;
                const int32_t sign = (int32_t)((uint32_t)v >> 6 & 1u);
                v = (int32_t)((uint32_t)v + (uint32_t)sign);
                v = dsp_sub(v, 64);
                v = dsp_ssat8(v >> 6);
                y[pixel * 8 + c + 1] = (int8_t)v;
            }
            table += 2;
        }
    }
}

/* one channel at a time in a plane of 6 x 8 int16; requantisation: halved
 * step 3: depthwise (Convolution): int8[1,4,4,8] * int8[8,3,3,1] -> int8[1,4,4,8], 1,152 MACs
 *   reads x at workspace + 0; works in plane at workspace + 128; writes y at workspace + 0 (in place of x) */
AOT_MODEL_OPAQUE static void integer_02_depthwise_3x3(const int8_t *restrict weights,
    const int32_t *restrict requantisation, int16_t *restrict plane, int8_t *restrict y)
{
    const int8_t *const x = y;
    /* the border stays as it is for all channels */
    for (int32_t i = 0; i < 48; i++) {
        plane[i] = 3;
    }
    for (int32_t c = 0; c < 8; c++) {
        for (int32_t i = 0; i < 4; i++) {
            const int8_t *from = x + c + i * 32;
            int16_t *to = plane + (i + 1) * 8 + 1;
            to[0] = from[0];
            to[1] = from[8];
            to[2] = from[16];
            to[3] = from[24];
        }
        int8_t *to_y = y + c;
        const int8_t *taps = weights + 9 * c;
        const int32_t *constants = requantisation + 1 * c;
        const int32_t w0 = taps[0];
        const int32_t w1 = taps[1];
        const int32_t w2 = taps[2];
        const int32_t w3 = taps[3];
        const int32_t w4 = taps[4];
        const int32_t w5 = taps[5];
        const int32_t w6 = taps[6];
        const int32_t w7 = taps[7];
        const int32_t w8 = taps[8];
        for (int32_t u = 0; u < 4; u++) {
            const int16_t *from = plane + u * 8;
            int8_t *to = to_y + u * 32;
            for (int32_t j = 0; j < 4; j++, from += 1, to += 8) {
                int32_t sum = constants[0];
                sum += from[0] * w0;
                sum += from[1] * w1;
                sum += from[2] * w2;
                sum += from[8] * w3;
                sum += from[9] * w4;
                sum += from[10] * w5;
                sum += from[16] * w6;
                sum += from[17] * w7;
                sum += from[18] * w8;
                int32_t v = sum;
                const int32_t sign = (int32_t)((uint32_t)v >> 6 & 1u);
                v = (int32_t)((uint32_t)v + (uint32_t)sign);
                v = dsp_sub(v, 64);
                v = dsp_ssat8(v >> 6);
                *to = (int8_t)v;
            }
        }
    }
}

/* step 4: pool (WideSum): int8[1,4,4,8] -> int32[1,1,1,8]
 *   reads x at workspace + 0; writes y at workspace + 128 */
AOT_MODEL_OPAQUE static void integer_03_wide_sum(const int8_t *restrict x, int32_t *restrict y)
{
    for (int32_t i = 0; i < 8; i++) {
        int32_t t0 = 0;
        for (int32_t r0 = 0; r0 < 4; r0++) {
            for (int32_t r1 = 0; r1 < 4; r1++) {
                t0 = (int32_t)((uint32_t)t0 + (uint32_t)(int32_t)x[r0 * 32 + r1 * 8 + i]);
            }
        }
        y[i] = t0;
    }
}

/* step 5: dense (Flatten): int32[1,1,1,8] -> int8[1,8]
 *   reads x at workspace + 128; writes y at workspace + 0 */
AOT_MODEL_OPAQUE static void integer_04_flatten(const int32_t *restrict x, int8_t *restrict y)
{
    for (int32_t i = 0; i < 8; i++) {
        y[i] = (int8_t)aot_model_saturate_int8((int32_t)((uint32_t)aot_model_requantise_even(
            (int32_t)((uint32_t)x[i] - (uint32_t)48), 1073741824, -3) + (uint32_t)3));
    }
}

/* 1 pixel x 2 channels; requantisation: halved
 * step 6: dense (MatMul): int8[1,8] * int8[8,4] -> int8[1,4], 32 MACs
 *   reads x at workspace + 0; writes y at workspace + 8 */
AOT_MODEL_OPAQUE static void integer_05_fully_connected(const int8_t *restrict x,
    const int8_t *restrict weights, const int32_t *restrict requantisation, int8_t *restrict y)
{
    const int8_t *w = weights;
    const int32_t *table = requantisation;
    const int8_t *from0 = x;
    for (int32_t c = 0; c < 4; c += 2) {
        int32_t sum00 = table[0];
        int32_t sum01 = table[1];
        const int8_t *at0 = from0;
        for (const int8_t *end = at0 + 8; at0 != end;) {
            {
                const int32_t w0 = w[0];
                const int32_t w1 = w[1];
                const int32_t x0 = at0[0];
                sum00 += x0 * w0;
                sum01 += x0 * w1;
            }
            {
                const int32_t w0 = w[2];
                const int32_t w1 = w[3];
                const int32_t x0 = at0[1];
                sum00 += x0 * w0;
                sum01 += x0 * w1;
            }
            {
                const int32_t w0 = w[4];
                const int32_t w1 = w[5];
                const int32_t x0 = at0[2];
                sum00 += x0 * w0;
                sum01 += x0 * w1;
            }
            {
                const int32_t w0 = w[6];
                const int32_t w1 = w[7];
                const int32_t x0 = at0[3];
                sum00 += x0 * w0;
                sum01 += x0 * w1;
            }
            {
                const int32_t w0 = w[8];
                const int32_t w1 = w[9];
                const int32_t x0 = at0[4];
                sum00 += x0 * w0;
                sum01 += x0 * w1;
            }
            {
                const int32_t w0 = w[10];
                const int32_t w1 = w[11];
                const int32_t x0 = at0[5];
                sum00 += x0 * w0;
                sum01 += x0 * w1;
            }
            {
                const int32_t w0 = w[12];
                const int32_t w1 = w[13];
                const int32_t x0 = at0[6];
                sum00 += x0 * w0;
                sum01 += x0 * w1;
            }
            {
                const int32_t w0 = w[14];
                const int32_t w1 = w[15];
                const int32_t x0 = at0[7];
                sum00 += x0 * w0;
                sum01 += x0 * w1;
            }
            w += 16;
            at0 += 8;
        }
        {
            int32_t v = sum00;
            const int32_t sign = (int32_t)((uint32_t)v >> 6 & 1u);
            v = (int32_t)((uint32_t)v + (uint32_t)sign);
            v = dsp_sub(v, 64);
            v = dsp_ssat8(v >> 6);
            y[c] = (int8_t)v;
        }
        {
            int32_t v = sum01;
            const int32_t sign = (int32_t)((uint32_t)v >> 6 & 1u);
            v = (int32_t)((uint32_t)v + (uint32_t)sign);
            v = dsp_sub(v, 64);
            v = dsp_ssat8(v >> 6);
            y[c + 1] = (int8_t)v;
        }
        table += 2;
    }
}

/* step 7: y (Identity): int8[1,4] -> float32[1,4]
 *   reads x at workspace + 8; writes y at outputs->y */
AOT_MODEL_OPAQUE static void integer_06_identity(const int8_t *restrict x, float *restrict y)
{
    for (int32_t i = 0; i < 4; i++) {
        y[i] = (float)((int32_t)x[i] - 3) * 0.03125f;
    }
}

/* ---- the model ---- */

static uint8_t integer_workspace[INTEGER_WORKSPACE_SIZE] AOT_MODEL_ALIGNED(INTEGER_WORKSPACE_ALIGN);
#define AT(type, offset) ((type *)(void *)(integer_workspace + (offset)))

AOT_MODEL_OPAQUE int32_t integer_run(const integer_inputs *inputs, const integer_outputs *outputs)
{
    if (inputs == NULL || outputs == NULL || inputs->x == NULL || outputs->y == NULL) {
        return AOT_MODEL_ERROR_NULL;
    }
    /* step 1: conv */
    integer_00_transpose(inputs->x, AT(int8_t, 92));
    /* step 2: conv */
    integer_01_conv_3x3(AT(int8_t, 92), integer_c_conv_weights, integer_c_conv_requantisation,
        AT(int8_t, 168), AT(int8_t, 140), AT(int8_t, 0));
    /* step 3: depthwise */
    integer_02_depthwise_3x3(integer_c_depthwise_weights, integer_c_depthwise_requantisation,
        AT(int16_t, 128), AT(int8_t, 0));
    /* step 4: pool */
    integer_03_wide_sum(AT(int8_t, 0), AT(int32_t, 128));
    /* step 5: dense */
    integer_04_flatten(AT(int32_t, 128), AT(int8_t, 0));
    /* step 6: dense */
    integer_05_fully_connected(AT(int8_t, 0), integer_c_dense_weights, integer_c_dense_requantisation,
        AT(int8_t, 8));
    /* step 7: y */
    integer_06_identity(AT(int8_t, 8), outputs->y);
    return AOT_MODEL_OK;
}

