/* integer: integer.onnx, compiled by aot-model 0.1.0 for host. Do not edit.
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
 * Memory (workspace: 768 bytes at a multiple of 32), and the steps in which it holds what:
 *
 *        first byte        bytes           steps  holds
 *
 *   workspace + 280           48          1 to 2  result of step 1
 *     workspace + 0          280               2  scratch of step 2: tile
 *   workspace + 640          128          2 to 3  result of step 2
 *     workspace + 0          640               3  scratch of step 3: tile
 *   workspace + 640          128          3 to 4  result of step 3
 *     workspace + 0           32          4 to 5  result of step 4
 *    workspace + 80            8          5 to 6  result of step 5
 *     workspace + 0           80               6  scratch of step 6: tile
 *    workspace + 80            4          6 to 7  result of step 6
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

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include "aot_model/divisor.h"
#include "aot_model/int8_avx2.h"
#include "aot_model/saturate.h"
#include "aot_model/scalar.h"

/* ---- constants: 888 bytes; their values are at the end of this file ---- */

/* conv_weights: int8[240]; for each block of channels: for each row of taps, for each 2 taps those of each
 * channel */
static const int8_t integer_c_conv_weights[240] AOT_MODEL_ALIGNED(32);

/* conv_table: int32[24] */
static const int32_t integer_c_conv_table[24] AOT_MODEL_ALIGNED(32);

/* depthwise_weights: int8[160]; for each 16 channels: for each two taps those of each channel */
static const int8_t integer_c_depthwise_weights[160] AOT_MODEL_ALIGNED(32);

/* depthwise_table: int32[48] */
static const int32_t integer_c_depthwise_table[48] AOT_MODEL_ALIGNED(32);

/* depthwise_offsets: int32[10] */
static const int32_t integer_c_depthwise_offsets[10];

/* dense_weights: int8[64]; for each block of channels: for each row of taps, for each 2 taps those of each
 * channel */
static const int8_t integer_c_dense_weights[64] AOT_MODEL_ALIGNED(32);

/* dense_table: int32[24] */
static const int32_t integer_c_dense_table[24] AOT_MODEL_ALIGNED(32);

/* The rule for one accumulator; constants = {multiplier, shift}. */
static int32_t requantise_even_3_n128_127(int32_t acc, const int32_t *constants)
{
    const int32_t q = aot_model_requantise_even(acc, constants[0], constants[1]);
    return q < -131 ? -128 : q > 124 ? 127 : q + 3;
}

/* 8 channels: requantisation, clamp to [-128, 127], store of the first `count`. */
AOT_MODEL_INLINE void avx2_raw_8_int8_even_3_n128_127(avx2_acc a, const int32_t *table, int8_t *y,
    int32_t count)
{
    int32_t sums[8];
    avx2_save(sums, a);
    for (int32_t i = 0; i < count; i++) {
        y[i] = (int8_t)requantise_even_3_n128_127(sums[i], table + 8 + 2 * i);
    }
}

/* 4 pixels x 8 channels: rows x runs x steps of 2 inputs. */
AOT_MODEL_INLINE void avx2_conv_4x8_int8_raw_8_int8_even_3_n128_127(
    const int16_t *x, int32_t pixel, int32_t rows, int32_t row, int32_t runs, int32_t run, int32_t steps,
    const int8_t *w, const int32_t *table, int8_t *y, int32_t next, int32_t count)
{
    avx2_acc a0 = avx2_load(table), a1 = a0, a2 = a0, a3 = a0;
    for (int32_t i = 0; i < rows; i++, x += row) {
        for (int32_t j = 0; j < runs; j++) {
            const int16_t *at = x + j * run;
            for (int32_t k = 0; k < steps; k++, at += 2, w += 16) {
                const avx2_inputs x0 = avx2_splat(at);
                const avx2_weights u0 = avx2_weights_int8(w);
                a0 = avx2_dot(a0, u0, x0);
                const avx2_inputs x1 = avx2_splat(at + pixel);
                a1 = avx2_dot(a1, u0, x1);
                const avx2_inputs x2 = avx2_splat(at + 2 * pixel);
                a2 = avx2_dot(a2, u0, x2);
                const avx2_inputs x3 = avx2_splat(at + 3 * pixel);
                a3 = avx2_dot(a3, u0, x3);
            }
        }
    }
    avx2_raw_8_int8_even_3_n128_127(a0, table, y, count);
    avx2_raw_8_int8_even_3_n128_127(a1, table, y + next, count);
    avx2_raw_8_int8_even_3_n128_127(a2, table, y + 2 * next, count);
    avx2_raw_8_int8_even_3_n128_127(a3, table, y + 3 * next, count);
}

/* 16 channels: requantisation, clamp to [-128, 127], store of the first `count`. */
AOT_MODEL_INLINE void avx2_raw_16_int8_even_3_n128_127(avx2_acc a, avx2_acc b, const int32_t *table,
    int8_t *y, int32_t count)
{
    int32_t sums[16];
    avx2_sums16(sums, a, b);
    for (int32_t i = 0; i < count; i++) {
        y[i] = (int8_t)requantise_even_3_n128_127(sums[i], table + 16 + 2 * i);
    }
}

/* 2 pixels x 16 channels, taps in pairs at x + offsets. */
AOT_MODEL_INLINE void avx2_depthwise_2_int8_raw_16_int8_even_3_n128_127(
    const int16_t *x, int32_t pixel, const int32_t *offsets, int32_t pairs, const int8_t *w,
    const int32_t *table, int8_t *y, int32_t next, int32_t count)
{
    avx2_acc a0 = avx2_load(table), a1 = a0;
    avx2_acc b0 = avx2_load(table + 8), b1 = b0;
    for (int32_t k = 0; k < pairs; k++, offsets += 2, w += 32) {
        const avx2_weights u = avx2_weights_int8(w), v = avx2_weights_int8(w + 16);
        const int16_t *one = x + offsets[0], *other = x + offsets[1];
        const __m256i s0 = avx2_load(one), t0 = avx2_load(other);
        a0 = avx2_dot(a0, u, avx2_low_channels(s0, t0));
        b0 = avx2_dot(b0, v, avx2_high_channels(s0, t0));
        const __m256i s1 = avx2_load(one + pixel), t1 = avx2_load(other + pixel);
        a1 = avx2_dot(a1, u, avx2_low_channels(s1, t1));
        b1 = avx2_dot(b1, v, avx2_high_channels(s1, t1));
    }
    avx2_raw_16_int8_even_3_n128_127(a0, b0, table, y, count);
    avx2_raw_16_int8_even_3_n128_127(a1, b1, table, y + next, count);
}

/* 1 pixel x 8 channels: rows x runs x steps of 2 inputs. */
AOT_MODEL_INLINE void avx2_conv_1x8_int8_raw_8_int8_even_3_n128_127(
    const int16_t *x, int32_t pixel, int32_t rows, int32_t row, int32_t runs, int32_t run, int32_t steps,
    const int8_t *w, const int32_t *table, int8_t *y, int32_t next, int32_t count)
{
    avx2_acc a0 = avx2_load(table);
    for (int32_t i = 0; i < rows; i++, x += row) {
        for (int32_t j = 0; j < runs; j++) {
            const int16_t *at = x + j * run;
            for (int32_t k = 0; k < steps; k++, at += 2, w += 16) {
                const avx2_inputs x0 = avx2_splat(at);
                const avx2_weights u0 = avx2_weights_int8(w);
                a0 = avx2_dot(a0, u0, x0);
            }
        }
    }
    avx2_raw_8_int8_even_3_n128_127(a0, table, y, count);
    (void)pixel;
    (void)next;
}

/* ---- layers ---- */

/* step 1: conv (Transpose): float32[1,3,4,4] -> int8[1,4,4,3]
 *   reads x at inputs->x; writes y at workspace + 280 */
AOT_MODEL_OPAQUE static void integer_00_transpose(const float *restrict x, int8_t *restrict y)
{
    for (int32_t i = 0; i < 16; i++) {
        for (int32_t j = 0; j < 3; j++) {
            y[i * 3 + j] = (int8_t)aot_model_rint_quotient(x[j * 16 + i], 0.03125f, 32.0f, 0.0f, 3, -128,
                127);
        }
    }
}

/* AVX2, blocks of 4 pixels, tiles of 4 x 4 outputs; requantisation: raw
 * step 2: conv (Convolution): int8[1,4,4,3] * int8[8,3,3,3] -> int8[1,4,4,8], 3,456 MACs
 *   reads x at workspace + 280; works in tile at workspace + 0; writes y at workspace + 640 */
AOT_MODEL_OPAQUE static void integer_01_conv_3x3(const int8_t *restrict x, const int8_t *restrict weights,
    const int32_t *restrict table, int16_t *restrict tile, int8_t *restrict y)
{
    avx2_tile_int8(tile, x, 0 - 1, 6, 4, 12, 3, 12, 1, 3, 3, 3);
    for (int32_t row = 0; row < 4; row++) {
        avx2_conv_4x8_int8_raw_8_int8_even_3_n128_127(tile + row * 18, 3, 3, 18, 1, 0, 5, weights, table,
            y + row * 32, 8, 8);
    }
}

/* AVX2, 16 channels, taps in pairs, blocks of 2 pixels, tiles of 4 x 4 outputs; requantisation: raw
 * step 3: depthwise (Convolution): int8[1,4,4,8] * int8[8,3,3,1] -> int8[1,4,4,8], 1,152 MACs
 *   reads x at workspace + 640; works in tile at workspace + 0; writes y at workspace + 640 (in place of
 *   x) */
AOT_MODEL_OPAQUE static void integer_02_depthwise_3x3(const int8_t *restrict weights,
    const int32_t *restrict table, const int32_t *restrict offsets, int16_t *restrict tile,
    int8_t *restrict y)
{
    const int8_t *const x = y;
    avx2_tile_int8(tile, x, 0 - 1, 6, 4, 32, 8, 32, 1, 8, 8, 3);
    for (int32_t row = 0; row < 4; row++) {
        avx2_depthwise_2_int8_raw_16_int8_even_3_n128_127(tile + row * 48, 16, offsets, 5, weights, table,
            y + row * 32, 16, 16);
    }
}

/* step 4: pool (WideSum): int8[1,4,4,8] -> int32[1,1,1,8]
 *   reads x at workspace + 640; writes y at workspace + 0 */
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
 *   reads x at workspace + 0; writes y at workspace + 80 */
AOT_MODEL_OPAQUE static void integer_04_flatten(const int32_t *restrict x, int8_t *restrict y)
{
    for (int32_t i = 0; i < 8; i++) {
        y[i] = (int8_t)aot_model_saturate_int8((int32_t)((uint32_t)aot_model_requantise_even(
            (int32_t)((uint32_t)x[i] - (uint32_t)48), 1073741824, -3) + (uint32_t)3));
    }
}

/* AVX2, blocks of 1 pixels, tiles of 1 x 1 output; requantisation: raw
 * step 6: dense (MatMul): int8[1,8] * int8[8,4] -> int8[1,4], 32 MACs
 *   reads x at workspace + 80; works in tile at workspace + 0; writes y at workspace + 80 (in place of x) */
AOT_MODEL_OPAQUE static void integer_05_fully_connected(const int8_t *restrict weights,
    const int32_t *restrict table, int16_t *restrict tile, int8_t *restrict y)
{
    const int8_t *const x = y;
    avx2_tile_int8(tile, x, 0, 1, 1, 8, 0, 8, 1, 8, 0, 3);
    avx2_conv_1x8_int8_raw_8_int8_even_3_n128_127(tile, 8, 1, 8, 1, 0, 4, weights, table, y, 4, 4);
}

/* step 7: y (Identity): int8[1,4] -> float32[1,4]
 *   reads x at workspace + 80; writes y at outputs->y */
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
    integer_00_transpose(inputs->x, AT(int8_t, 280));
    /* step 2: conv */
    integer_01_conv_3x3(AT(int8_t, 280), integer_c_conv_weights, integer_c_conv_table, AT(int16_t, 0),
        AT(int8_t, 640));
    /* step 3: depthwise */
    integer_02_depthwise_3x3(integer_c_depthwise_weights, integer_c_depthwise_table,
        integer_c_depthwise_offsets, AT(int16_t, 0), AT(int8_t, 640));
    /* step 4: pool */
    integer_03_wide_sum(AT(int8_t, 640), AT(int32_t, 0));
    /* step 5: dense */
    integer_04_flatten(AT(int32_t, 0), AT(int8_t, 80));
    /* step 6: dense */
    integer_05_fully_connected(integer_c_dense_weights, integer_c_dense_table, AT(int16_t, 0),
        AT(int8_t, 80));
    /* step 7: y */
    integer_06_identity(AT(int8_t, 80), outputs->y);
    return AOT_MODEL_OK;
}

