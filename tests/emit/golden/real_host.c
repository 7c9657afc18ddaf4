/* real: real.onnx, compiled by aot-model 0.1.0 for host. Do not edit.
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
 * Memory (workspace: 640 bytes at a multiple of 16), and the steps in which it holds what:
 *
 *        first byte        bytes           steps  holds
 *
 *   workspace + 128          512          1 to 2  result of step 1
 *     workspace + 0          512          2 to 3  result of step 2
 *     workspace + 0           32          3 to 4  result of step 3
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

#if !(defined(__AVX2__) && defined(__FMA__))
#error "real.c was made for host: compile with -mavx2 -mfma, or -march=native on a processor that has it; or pass --target host,vector=v4 (any processor), host,vector=neon (AArch64)"
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include <immintrin.h>
#include <math.h>
#include "aot_model/scalar.h"

/* ---- constants: 1,408 bytes; their values are at the end of this file ---- */

/* conv_weights: float32[216]; for each block of channels: bias, if any; for each tap those of the block */
static const float real_c_conv_weights[216] AOT_MODEL_ALIGNED(32);

/* depthwise_weights: float32[72] */
static const float real_c_depthwise_weights[72] AOT_MODEL_ALIGNED(32);

/* dense_weights: float32[64]; for each block of channels: bias, if any; for each tap those of the block */
static const float real_c_dense_weights[64] AOT_MODEL_ALIGNED(32);

static inline __m256 f32x8_hold(__m256 a)
{
#ifdef __GNUC__
    __asm__("" : "+x"(a)); /* in a register: not loaded again for every use */
#endif
    return a;
}

/* ---- layers ---- */

/* 4 pixels x 8 channels in registers
 * step 1: conv (Convolution): float32[1,4,4,3] * float32[8,3,3,3] -> float32[1,4,4,8], 3,456 MACs
 *   reads x at inputs->x; writes y at workspace + 128 */
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
            for (int32_t left = rows[r].count * cols[s].count; left > 0; left -= 4) {
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
                const int32_t y2 = oy;
                const int32_t c2 = ox;
                const float *const x2 = in;
                if (left > 3) {
                    ox += 1;
                    in += 1;
                    if (ox == ox_end) {
                        ox = cols[s].out;
                        oy += 1;
                        in += 4 - cols[s].count;
                    }
                }
                const int32_t y3 = oy;
                const int32_t c3 = ox;
                const float *const x3 = in;
                if (left > 4) {
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
                    __m256 acc0_0 = _mm256_set1_ps(0.0f);
                    __m256 acc1_0 = _mm256_set1_ps(0.0f);
                    __m256 acc2_0 = _mm256_set1_ps(0.0f);
                    __m256 acc3_0 = _mm256_set1_ps(0.0f);
                    w += (rows[r].tap * 3 + cols[s].tap) * 24;
                    for (int32_t ky = 0; ky < rows[r].taps; ky++) {
                        const float *a0 = x0 + ky * 4;
                        const float *a1 = x1 + ky * 4;
                        const float *a2 = x2 + ky * 4;
                        const float *a3 = x3 + ky * 4;
                        for (int32_t kx = 0; kx < cols[s].taps; kx++) {
                            {
                                const __m256 w0 = f32x8_hold(_mm256_loadu_ps(w));
                                const __m256 e0 = _mm256_set1_ps(a0[0]);
                                acc0_0 = _mm256_fmadd_ps(w0, e0, acc0_0);
                                const __m256 e1 = _mm256_set1_ps(a1[0]);
                                acc1_0 = _mm256_fmadd_ps(w0, e1, acc1_0);
                                const __m256 e2 = _mm256_set1_ps(a2[0]);
                                acc2_0 = _mm256_fmadd_ps(w0, e2, acc2_0);
                                const __m256 e3 = _mm256_set1_ps(a3[0]);
                                acc3_0 = _mm256_fmadd_ps(w0, e3, acc3_0);
                            }
                            {
                                const __m256 w0 = f32x8_hold(_mm256_loadu_ps(w + 8));
                                const __m256 e0 = _mm256_set1_ps(a0[16]);
                                acc0_0 = _mm256_fmadd_ps(w0, e0, acc0_0);
                                const __m256 e1 = _mm256_set1_ps(a1[16]);
                                acc1_0 = _mm256_fmadd_ps(w0, e1, acc1_0);
                                const __m256 e2 = _mm256_set1_ps(a2[16]);
                                acc2_0 = _mm256_fmadd_ps(w0, e2, acc2_0);
                                const __m256 e3 = _mm256_set1_ps(a3[16]);
                                acc3_0 = _mm256_fmadd_ps(w0, e3, acc3_0);
                            }
                            {
                                const __m256 w0 = f32x8_hold(_mm256_loadu_ps(w + 16));
                                const __m256 e0 = _mm256_set1_ps(a0[32]);
                                acc0_0 = _mm256_fmadd_ps(w0, e0, acc0_0);
                                const __m256 e1 = _mm256_set1_ps(a1[32]);
                                acc1_0 = _mm256_fmadd_ps(w0, e1, acc1_0);
                                const __m256 e2 = _mm256_set1_ps(a2[32]);
                                acc2_0 = _mm256_fmadd_ps(w0, e2, acc2_0);
                                const __m256 e3 = _mm256_set1_ps(a3[32]);
                                acc3_0 = _mm256_fmadd_ps(w0, e3, acc3_0);
                            }
                            a0 += 1;
                            a1 += 1;
                            a2 += 1;
                            a3 += 1;
                            w += 24;
                        }
                        w += (3 - cols[s].taps) * 24;
                    }
                    _mm256_storeu_ps(y + (y0 * 32 + c0 * 8), _mm256_max_ps(_mm256_set1_ps(0.0f), acc0_0));
                    if (left > 1) {
                        _mm256_storeu_ps(y + (y1 * 32 + c1 * 8), _mm256_max_ps(_mm256_set1_ps(0.0f), acc1_0));
                    }
                    if (left > 2) {
                        _mm256_storeu_ps(y + (y2 * 32 + c2 * 8), _mm256_max_ps(_mm256_set1_ps(0.0f), acc2_0));
                    }
                    if (left > 3) {
                        _mm256_storeu_ps(y + (y3 * 32 + c3 * 8), _mm256_max_ps(_mm256_set1_ps(0.0f), acc3_0));
                    }
                }
            }
        }
    }
}

/* each row in blocks of 4 outputs
 * step 2: depthwise (Convolution): float32[1,4,4,8] * float32[8,3,3,1] -> float32[1,4,4,8], 1,152 MACs
 *   reads x at workspace + 128 (overlaps); writes y at workspace + 0 (overlaps) */
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
            {
                const float *w = weights;
                __m256 acc0 = _mm256_set1_ps(0.0f);
                __m256 acc1 = _mm256_set1_ps(0.0f);
                __m256 acc2 = _mm256_set1_ps(0.0f);
                __m256 acc3 = _mm256_set1_ps(0.0f);
                const float *a = row;
                w += rows[r].tap * 24;
                for (int32_t ky = 0; ky < rows[r].taps; ky++) {
                    const __m256 w2 = _mm256_loadu_ps(w + 16);
                    const __m256 e3 = _mm256_loadu_ps(a + 24);
                    acc2 = _mm256_fmadd_ps(w2, e3, acc2);
                    const __m256 w1 = _mm256_loadu_ps(w + 8);
                    acc3 = _mm256_fmadd_ps(w1, e3, acc3);
                    const __m256 e2 = _mm256_loadu_ps(a + 16);
                    acc1 = _mm256_fmadd_ps(w2, e2, acc1);
                    acc2 = _mm256_fmadd_ps(w1, e2, acc2);
                    const __m256 w0 = _mm256_loadu_ps(w);
                    acc3 = _mm256_fmadd_ps(w0, e2, acc3);
                    const __m256 e1 = _mm256_loadu_ps(a + 8);
                    acc0 = _mm256_fmadd_ps(w2, e1, acc0);
                    acc1 = _mm256_fmadd_ps(w1, e1, acc1);
                    acc2 = _mm256_fmadd_ps(w0, e1, acc2);
                    const __m256 e0 = _mm256_loadu_ps(a);
                    acc0 = _mm256_fmadd_ps(w1, e0, acc0);
                    acc1 = _mm256_fmadd_ps(w0, e0, acc1);
                    w += 24;
                    a += 32;
                }
                _mm256_storeu_ps(y + oy * 32, acc0);
                _mm256_storeu_ps(y + (oy * 32 + 8), acc1);
                _mm256_storeu_ps(y + (oy * 32 + 16), acc2);
                _mm256_storeu_ps(y + (oy * 32 + 24), acc3);
            }
        }
    }
}

/* each row in blocks of 1 output
 * step 3: pool (Pool): float32[1,4,4,8] -> float32[1,1,1,8]
 *   reads x at workspace + 0; writes y at workspace + 0 (in place of x) */
AOT_MODEL_OPAQUE static void real_02_max_pool_4x4(float *restrict y)
{
    const float *const x = y;
    const float *const row = x;
    {
        __m256 acc0 = _mm256_set1_ps(-INFINITY);
        const float *a = row;
        for (int32_t ky = 0; ky < 4; ky++) {
            const __m256 e3 = _mm256_loadu_ps(a + 24);
            acc0 = _mm256_max_ps(e3, acc0);
            const __m256 e2 = _mm256_loadu_ps(a + 16);
            acc0 = _mm256_max_ps(e2, acc0);
            const __m256 e1 = _mm256_loadu_ps(a + 8);
            acc0 = _mm256_max_ps(e1, acc0);
            const __m256 e0 = _mm256_loadu_ps(a);
            acc0 = _mm256_max_ps(e0, acc0);
            a += 32;
        }
        _mm256_storeu_ps(y, acc0);
    }
}

/* 1 pixel x 8 channels in registers
 * step 4: dense (MatMul): float32[1,8] * float32[8,4] -> float32[1,4], 32 MACs
 *   reads x at workspace + 0; writes y at outputs->y */
AOT_MODEL_OPAQUE static void real_03_matmul(const float *restrict x, const float *restrict weights,
    float *restrict y)
{
    const float *const x0 = x;
    {
        const float *w = weights;
        __m256 acc0_0 = _mm256_set1_ps(0.0f);
        const float *a0 = x0;
        for (int32_t i = 0; i < 8; i += 4) {
            {
                const __m256 e0 = _mm256_set1_ps(a0[0]);
                const __m256 w0 = _mm256_loadu_ps(w);
                acc0_0 = _mm256_fmadd_ps(w0, e0, acc0_0);
            }
            {
                const __m256 e0 = _mm256_set1_ps(a0[1]);
                const __m256 w0 = _mm256_loadu_ps(w + 8);
                acc0_0 = _mm256_fmadd_ps(w0, e0, acc0_0);
            }
            {
                const __m256 e0 = _mm256_set1_ps(a0[2]);
                const __m256 w0 = _mm256_loadu_ps(w + 16);
                acc0_0 = _mm256_fmadd_ps(w0, e0, acc0_0);
            }
            {
                const __m256 e0 = _mm256_set1_ps(a0[3]);
                const __m256 w0 = _mm256_loadu_ps(w + 24);
                acc0_0 = _mm256_fmadd_ps(w0, e0, acc0_0);
            }
            a0 += 4;
            w += 32;
        }
        {
            float done[1][8];
            _mm256_storeu_ps(done[0], acc0_0);
            for (int32_t l = 0; l < 4; l++) {
                y[l] = done[0][l];
            }
        }
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
    real_00_conv_3x3(inputs->x, real_c_conv_weights, AT(float, 128));
    /* step 2: depthwise */
    real_01_depthwise_3x3(AT(float, 128), real_c_depthwise_weights, AT(float, 0));
    /* step 3: pool */
    real_02_max_pool_4x4(AT(float, 0));
    /* step 4: dense */
    real_03_matmul(AT(float, 0), real_c_dense_weights, outputs->y);
    return AOT_MODEL_OK;
}

