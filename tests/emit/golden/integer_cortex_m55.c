/* integer: integer.onnx, compiled by aot-model 0.1.0 for cortex-m55. Do not edit.
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
 * Memory (workspace: 272 bytes at a multiple of 16), and the steps in which it holds what:
 *
 *        first byte        bytes           steps  holds
 *
 *    workspace + 72           48          1 to 2  result of step 1
 *     workspace + 0           71               2  scratch of step 2: patch
 *   workspace + 144          128          2 to 3  result of step 2
 *     workspace + 0          144               3  scratch of step 3: ring
 *   workspace + 144          128          3 to 4  result of step 3
 *     workspace + 0           32          4 to 5  result of step 4
 *     workspace + 0            8          5 to 6  result of step 5
 *     workspace + 8            4          6 to 7  result of step 6
 */
#include "integer.h"

#if INTEGER_BUILD != 0x0000000000000000u
#error "integer.c and integer.h are of different builds: make both again, or copy both"
#endif

#if defined(__ARM_BIG_ENDIAN)
#error "integer.c was made for cortex-m55: compile for little-endian, or pass --target c"
#endif

#if !(defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3)
#error "integer.c was made for cortex-m55: compile with -mcpu=cortex-m55 -mfloat-abi=hard, or pass --target cortex-m33"
#endif

#if !defined(__ARM_FEATURE_DSP)
#error "integer.c was made for cortex-m55: compile with -mcpu of a core with the DSP extension, or pass --target cortex-m3"
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include "aot_model/divisor.h"
#include "aot_model/float_vectors.h"
#include "aot_model/int8_mve.h"
#include "aot_model/integer_vectors.h"
#include "aot_model/saturate.h"
#include "aot_model/scalar.h"

/* ---- constants: 476 bytes; their values are at the end of this file ---- */

/* conv_w: int8[288]; for each block of channels: for each 16 inputs those of each channel; numbers of the
 * requantisation */
static const int8_t integer_c_conv_w[288] AOT_MODEL_ALIGNED(4);

/* depthwise_w: int8[104]; for each eight channels: what sums begin with, weights of each tap, numbers of
 * the requantisation */
static const int8_t integer_c_depthwise_w[104] AOT_MODEL_ALIGNED(4);

/* depthwise_moves: int32[3,3] */
static const int32_t integer_c_depthwise_moves[9];

/* dense_w: int8[48]; for each block of channels: for each 16 inputs those of each channel; numbers of the
 * requantisation */
static const int8_t integer_c_dense_w[48] AOT_MODEL_ALIGNED(4);

/* The 3 x 3 x 3 taps of output pixel (oy, ox). */
AOT_MODEL_INLINE void aot_mve_patch(int8_t *patch, const int8_t *x, int32_t oy, int32_t ox)
{
    const int32_t iy = oy - 1;
    const int32_t ix = ox - 1;
    if (iy >= 0 && iy <= 1 && ix >= 0 && ix <= 1 && iy * 12 + ix * 3 <= 8) {
        const int8_t *from = x + iy * 12 + ix * 3;
        aot_mve_copy16(patch, from);
        aot_mve_copy16(patch + 9, from + 12);
        aot_mve_copy16(patch + 18, from + 24);
        return;
    }
    aot_mve_fill(patch, 3, 27);
    for (int32_t ky = 0; ky < 3; ky++) {
        const int32_t y = iy + ky;
        if (y < 0 || y >= 4) {
            continue;
        }
        const int32_t first = ix < 0 ? -ix : 0;
        const int32_t end = ix + 3 > 4 ? 4 - ix : 3;
        if (first < end) {
            aot_mve_copy(patch + (ky * 3 + first) * 3, x + (y * 4 + ix + first) * 3, (end - first) * 3);
        }
    }
}

/* 2 pixels x all channels, 32 deep, 4 channels at a time; results: powers of two, >> 6, ties to even, zero
 * point 3, within -128 .. 127. */
AOT_MODEL_NOINLINE static void aot_mve_dot_2x4_k32(const int8_t *x0, const int8_t *x1,
    const int8_t *w, int32_t channels, int8_t *y0, int8_t *y1)
{
#if AOT_MODEL_MVE
    register const int8_t *w_ __asm__("r1") = w;
    register int8_t *y0_ __asm__("r3") = y0;
    register int8_t *y1_ __asm__("r5") = y1;
    register int32_t left_ __asm__("r7") = channels;
    register const int8_t *x0_ __asm__("r9") = x0;
    register const int8_t *x1_ __asm__("r11") = x1;
    __asm__ volatile(
        "vmov.i16 q5, #3\n\t"
        "1:\n\t"
        "vldrb.8 q2, [%[w]], #16\n\t"
        "vldrb.8 q0, [%[x0], #0]\n\t"
        "vmladav.s8 r0, q0, q2\n\t"
        "vldrb.8 q1, [%[x1], #0]\n\t"
        "vmladav.s8 r2, q1, q2\n\t"
        "vldrb.8 q3, [%[w]], #16\n\t"
        "vmladav.s8 r4, q0, q3\n\t"
        "vmladav.s8 r6, q1, q3\n\t"
        "vldrb.8 q2, [%[w]], #16\n\t"
        "vmladav.s8 r8, q0, q2\n\t"
        "vmladav.s8 r10, q1, q2\n\t"
        "vldrb.8 q3, [%[w]], #16\n\t"
        "vmladav.s8 r12, q0, q3\n\t"
        "vmladav.s8 r14, q1, q3\n\t"
        "vldrb.8 q2, [%[w]], #16\n\t"
        "vldrb.8 q0, [%[x0], #16]\n\t"
        "vmladava.s8 r0, q0, q2\n\t"
        "vldrb.8 q1, [%[x1], #16]\n\t"
        "vmladava.s8 r2, q1, q2\n\t"
        "vldrb.8 q3, [%[w]], #16\n\t"
        "vmladava.s8 r4, q0, q3\n\t"
        "vmladava.s8 r6, q1, q3\n\t"
        "vldrb.8 q2, [%[w]], #16\n\t"
        "vmladava.s8 r8, q0, q2\n\t"
        "vmladava.s8 r10, q1, q2\n\t"
        "vldrb.8 q3, [%[w]], #16\n\t"
        "vmladava.s8 r12, q0, q3\n\t"
        "vmladava.s8 r14, q1, q3\n\t"
        "vmov q6[2], q6[0], r0, r8\n\t"
        "vmov q6[3], q6[1], r4, r12\n\t"
        "vmov q7[2], q7[0], r2, r10\n\t"
        "vmov q7[3], q7[1], r6, r14\n\t"
        "vldrw.32 q0, [%[w]], #16\n\t"
        "vadd.i32 q6, q6, q0\n\t"
        "vshl.i32 q4, q6, #25\n\t"
        "vshr.s32 q4, q4, #31\n\t"
        "vsub.i32 q6, q6, q4\n\t"
        "vadd.i32 q7, q7, q0\n\t"
        "vshl.i32 q4, q7, #25\n\t"
        "vshr.s32 q4, q4, #31\n\t"
        "vsub.i32 q7, q7, q4\n\t"
        "vqrshrnb.s32 q6, q6, #6\n\t"
        "vqrshrnt.s32 q6, q7, #6\n\t"
        "vqadd.s16 q6, q6, q5\n\t"
        "vqmovnb.s16 q6, q6\n\t"
        "vstrb.32 q6, [%[y0]], #4\n\t"
        "vshr.u32 q6, q6, #16\n\t"
        "vstrb.32 q6, [%[y1]], #4\n\t"
        "subs %[left], %[left], #4\n\t"
        "bgt 1b\n\t"
        : [w] "+r"(w_), [left] "+r"(left_), [y0] "+r"(y0_), [y1] "+r"(y1_)
        : [x0] "r"(x0_), [x1] "r"(x1_)
        : "lr", "r0", "r2", "r4", "r6", "r8", "r10", "r12", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7",
        "cc", "memory");
#else
    static const aot_mve_dot_form form = {
        .pixels = 2, .block = 4, .depth = 32,
        .multipliers = 0, .left = 0, .right = 6,
        .half = 0, .ties = AOT_MVE_TIES_BIT,
        .zero = 3, .low = -128, .high = 127,
    };
    aot_mve_dot(&form, x0, x1, w, channels, y0, y1);
#endif
}

/* 4 outputs in a row, 8 channels, 9 taps each. */
AOT_MODEL_NOINLINE static void aot_mve_depthwise_l9_c8(const int8_t *x, const int8_t *w,
    const int32_t *moves, int8_t *y)
{
#if AOT_MODEL_MVE
    register const int8_t *x_ __asm__("r2") = x;
    register const int8_t *w_ __asm__("r11") = w;
    register const int32_t *moves_ __asm__("r10") = moves;
    register int8_t *y_ __asm__("r3") = y;
    __asm__ volatile(
        "movw r12, #8\n\t"
        "movw r4, #0x8000\n\t"
        "movw r9, #4\n\t"
        "1:\n\t"
        "mov r1, r2\n\t"
        "mov r5, r11\n\t"
        "dlstp.16 lr, r12\n\t"
        "2:\n\t"
        "vldrw.32 q6, [r5], #16\n\t"
        "ldr r0, [r10, #0]\n\t"
        "vldrw.32 q7, [r5], #16\n\t"
        "vldrb.s16 q0, [r1], #8\n\t"
        "vldrb.s16 q2, [r5], #8\n\t"
        "vmlas.s16 q2, q0, r4\n\t"
        "vldrb.s16 q1, [r1], #8\n\t"
        "vldrb.s16 q4, [r5], #8\n\t"
        "vmul.i16 q1, q1, q4\n\t"
        "vldrb.s16 q0, [r1]\n\t"
        "vadd.i16 q2, q2, q1\n\t"
        "add r1, r1, r0\n\t"
        "vldrb.s16 q3, [r5], #8\n\t"
        "vmlas.s16 q3, q0, r4\n\t"
        "vldrb.s16 q1, [r1], #8\n\t"
        "vadd.i32 q6, q6, q2\n\t"
        "vldrb.s16 q4, [r5], #8\n\t"
        "vmul.i16 q1, q1, q4\n\t"
        "vshr.u32 q5, q2, #16\n\t"
        "vldrb.s16 q0, [r1], #8\n\t"
        "vadd.i16 q3, q3, q1\n\t"
        "vldrb.s16 q2, [r5], #8\n\t"
        "vadd.i32 q7, q7, q5\n\t"
        "vldrb.s16 q1, [r1]\n\t"
        "vmlas.s16 q2, q0, r4\n\t"
        "vldrb.s16 q4, [r5], #8\n\t"
        "ldr r0, [r10, #4]\n\t"
        "vmul.i16 q1, q1, q4\n\t"
        "vadd.i32 q6, q6, q3\n\t"
        "add r1, r1, r0\n\t"
        "vshr.u32 q5, q3, #16\n\t"
        "vldrb.s16 q0, [r1], #8\n\t"
        "vadd.i16 q2, q2, q1\n\t"
        "vldrb.s16 q3, [r5], #8\n\t"
        "vadd.i32 q7, q7, q5\n\t"
        "vldrb.s16 q1, [r1], #8\n\t"
        "vmlas.s16 q3, q0, r4\n\t"
        "vldrb.s16 q4, [r5], #8\n\t"
        "vmul.i16 q1, q1, q4\n\t"
        "vadd.i32 q6, q6, q2\n\t"
        "vldrb.s16 q0, [r1]\n\t"
        "vshr.u32 q5, q2, #16\n\t"
        "vldrb.s16 q2, [r5], #8\n\t"
        "vadd.i32 q7, q7, q5\n\t"
        "vmlas.s16 q2, q0, r4\n\t"
        "vadd.i16 q3, q3, q1\n\t"
        "ldr r0, [r10, #8]\n\t"
        "vshr.u32 q5, q3, #16\n\t"
        "add r1, r1, r0\n\t"
        "vadd.i32 q7, q7, q5\n\t"
        "vshr.u32 q5, q2, #16\n\t"
        "vadd.i32 q6, q6, q3\n\t"
        "vadd.i32 q7, q7, q5\n\t"
        "vadd.i32 q6, q6, q2\n\t"
        "vshl.i32 q5, q7, #16\n\t"
        "vsub.i32 q6, q6, q5\n\t"
        "vshl.i32 q2, q6, #25\n\t"
        "vshr.s32 q2, q2, #31\n\t"
        "vsub.i32 q6, q6, q2\n\t"
        "vshl.i32 q5, q7, #25\n\t"
        "vqrshrnb.s32 q6, q6, #6\n\t"
        "vshr.s32 q5, q5, #31\n\t"
        "vsub.i32 q7, q7, q5\n\t"
        "vqrshrnt.s32 q6, q7, #6\n\t"
        "vmov.i16 q5, #3\n\t"
        "vqadd.s16 q6, q6, q5\n\t"
        "vqmovnb.s16 q6, q6\n\t"
        "vstrb.16 q6, [r3], #8\n\t"
        "letp lr, 2b\n\t"
        "addw r2, r2, #8\n\t"
        "subs r9, r9, #1\n\t"
        "bne 1b\n\t"
        : "+r"(x_), "+r"(w_), "+r"(moves_), "+r"(y_)
        :
        : "lr", "r0", "r1", "r4", "r5", "r9", "r12", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc",
        "memory");
#else
    for (int32_t ox = 0; ox < 4; ox++) {
        for (int32_t c = 0; c < 8; c++) {
            const int32_t lane = c % 8 / 2;
            const int8_t *record = w + c / 8 * 104;
            const int8_t *weight = record + 32 + c % 8;
            const int8_t *numbers = record + 104 + c % 2 * 0;
            const int8_t *from = (const int8_t *)x + ox * 8 + c;
            int32_t acc = 0;
            for (int32_t ky = 0; ky < 3; ky++) {
                for (int32_t kx = 0; kx < 3; kx++, weight += 8) {
                    acc += from[kx * 8] * *weight;
                }
                from += 16 + moves[ky];
            }
            int32_t start = 0, above = 0;
            memcpy(&start, record + 4 * lane, 4);
            memcpy(&above, record + 16 + 4 * lane, 4);
            start = c % 2 ? above : (int32_t)((uint32_t)start - ((uint32_t)above << 16));
            acc = (int32_t)((uint32_t)acc + (uint32_t)start + 163840u);

            (void)numbers;
            y[ox * 8 + c] = aot_mve_clamp(aot_mve_halve_even(acc, 6) + 3, -128, 127);
        }
    }
#endif
}

/* 1 pixel x all channels, 8 deep, 4 channels at a time; results: powers of two, >> 6, ties to even, zero
 * point 3, within -128 .. 127. */
AOT_MODEL_NOINLINE static void aot_mve_dot_1x4_k8(const int8_t *x0, const int8_t *w, int32_t channels,
    int8_t *y0)
{
#if AOT_MODEL_MVE
    register const int8_t *w_ __asm__("r1") = w;
    register const int8_t *x0_ __asm__("r3") = x0;
    register int8_t *y0_ __asm__("r5") = y0;
    register int32_t left_ __asm__("r7") = channels;
    __asm__ volatile(
        "vmov.i16 q5, #3\n\t"
        "1:\n\t"
        "vldrb.s16 q2, [%[w]], #8\n\t"
        "vldrb.s16 q0, [%[x0], #0]\n\t"
        "vmladav.s16 r0, q0, q2\n\t"
        "vldrb.s16 q3, [%[w]], #8\n\t"
        "vmladav.s16 r2, q0, q3\n\t"
        "vldrb.s16 q2, [%[w]], #8\n\t"
        "vmladav.s16 r4, q0, q2\n\t"
        "vldrb.s16 q3, [%[w]], #8\n\t"
        "vmladav.s16 r6, q0, q3\n\t"
        "vmov q6[2], q6[0], r0, r4\n\t"
        "vmov q6[3], q6[1], r2, r6\n\t"
        "vldrw.32 q0, [%[w]], #16\n\t"
        "vadd.i32 q6, q6, q0\n\t"
        "vshl.i32 q4, q6, #25\n\t"
        "vshr.s32 q4, q4, #31\n\t"
        "vsub.i32 q6, q6, q4\n\t"
        "vqrshrnb.s32 q6, q6, #6\n\t"
        "vqadd.s16 q6, q6, q5\n\t"
        "vqmovnb.s16 q6, q6\n\t"
        "vstrb.32 q6, [%[y0]], #4\n\t"
        "subs %[left], %[left], #4\n\t"
        "bgt 1b\n\t"
        : [w] "+r"(w_), [left] "+r"(left_), [y0] "+r"(y0_)
        : [x0] "r"(x0_)
        : "r0", "r2", "r4", "r6", "q0", "q2", "q3", "q4", "q5", "q6", "cc", "memory");
#else
    static const aot_mve_dot_form form = {
        .pixels = 1, .block = 4, .depth = 8,
        .multipliers = 0, .left = 0, .right = 6,
        .half = 0, .ties = AOT_MVE_TIES_BIT,
        .zero = 3, .low = -128, .high = 127,
    };
    aot_mve_dot(&form, x0, x0, w, channels, y0, y0);
#endif
}

/* ---- layers ---- */

/* step 1: conv (Transpose): float32[1,3,4,4] -> int8[1,4,4,3]
 *   reads x at inputs->x; writes y at workspace + 72 */
AOT_MODEL_OPAQUE static void integer_00_transpose(const float *restrict x, int8_t *restrict y)
{
#if AOT_MODEL_FLOAT_VECTORS
    for (int32_t j = 0; j < 3; j++) {
        for (int32_t i = 0; i < 16; i += 4) {
            const float32x4_t v0 = aot_model_load_f32(x + (j * 16 + i));
            const int32x4_t v1 = aot_model_four_quantised(vcvtnq_s32_f32(vmulq_n_f32(v0, 32.0f)), 3, -128,
                127);
            vstrbq_scatter_offset_s32(y + (i * 3 + j), vmulq_n_u32(aot_model_lanes_u32(), 3), v1);
        }
    }
#else
    for (int32_t i = 0; i < 16; i++) {
        for (int32_t j = 0; j < 3; j++) {
            y[i * 3 + j] = (int8_t)aot_model_rint_quotient(x[j * 16 + i], 0.03125f, 32.0f, 0.0f, 3, -128,
                127);
        }
    }
#endif
}

/* 2 x 4 blocks, 0.047 loads per MAC, patch of 64 bytes
 * step 2: conv (Convolution): int8[1,4,4,3] * int8[8,3,3,3] -> int8[1,4,4,8], 3,456 MACs
 *   reads x at workspace + 72; works in patch at workspace + 0; writes y at workspace + 144 */
AOT_MODEL_OPAQUE static void integer_01_conv_3x3(const int8_t *restrict x, const int8_t *restrict w,
    int8_t *restrict patch, int8_t *restrict y)
{
    const int8_t *image = x;
    int8_t *out = y;
    int32_t oy = 0;
    int32_t ox = 0;
    for (int32_t p = 0; p < 16; p += 2) {
        for (int32_t i = 0; i < 2; i++) {
            aot_mve_patch(patch + i * 32, image, oy, ox);
            if (++ox == 4) {
                ox = 0;
                oy++;
            }
        }
        aot_mve_dot_2x4_k32(patch, patch + 32, w, 8, out + p * 8, out + p * 8 + 8);
    }
}

/* 9 taps of 8 channels, 2 in a sum of 16 bits, 3 buffered rows
 * step 3: depthwise (Convolution): int8[1,4,4,8] * int8[8,3,3,1] -> int8[1,4,4,8], 1,152 MACs
 *   reads x at workspace + 144; works in ring at workspace + 0; writes y at workspace + 144 (in place of
 *   x) */
AOT_MODEL_OPAQUE static void integer_02_depthwise_3x3(const int8_t *restrict w, const int32_t *restrict moves,
    int8_t *restrict ring, int8_t *restrict y)
{
    const int8_t *const x = y;
    const int8_t *image = x;
    int32_t filled = 0;
    aot_mve_fill(ring, 3, 144);
    for (int32_t oy = 0; oy < 4; oy++) {
        /* The ring holds the rows up to the last one of this window. */
        for (; filled < oy + 3; filled++) {
            const int32_t line = filled - 1;
            int8_t *to = ring + filled % 3 * 48 + 8;
            if (line >= 0 && line < 4) {
                aot_mve_copy(to, image + line * 32, 32);
            } else {
                aot_mve_fill(to, 3, 32);
            }
        }
        const int32_t slot = oy % 3;
        aot_mve_depthwise_l9_c8(ring + slot * 48, w, moves + slot * 3, y + oy * 32);
    }
}

/* step 4: pool (WideSum): int8[1,4,4,8] -> int32[1,1,1,8]
 *   reads x at workspace + 144; writes y at workspace + 0 */
AOT_MODEL_OPAQUE static void integer_03_wide_sum(const int8_t *restrict x, int32_t *restrict y)
{
#if AOT_MODEL_INTEGER_VECTORS
    for (int32_t i = 0; i < 8; i += 4) {
        int32x4_t v0 = vdupq_n_s32(0);
        for (int32_t r0 = 0; r0 < 4; r0++) {
            for (int32_t r1 = 0; r1 < 4; r1++) {
                const int32x4_t v1 = vldrbq_s32(aot_model_read_int8_t(x + (r0 * 32 + r1 * 8 + i)));
                const int32x4_t v2 = v1;
                v0 = vaddq_s32(v0, v2);
            }
        }
        const int32x4_t v3 = v0;
        vstrwq_s32(y + i, v3);
    }
#else
    for (int32_t i = 0; i < 8; i++) {
        int32_t t0 = 0;
        for (int32_t r0 = 0; r0 < 4; r0++) {
            for (int32_t r1 = 0; r1 < 4; r1++) {
                t0 = (int32_t)((uint32_t)t0 + (uint32_t)(int32_t)x[r0 * 32 + r1 * 8 + i]);
            }
        }
        y[i] = t0;
    }
#endif
}

/* step 5: dense (Flatten): int32[1,1,1,8] -> int8[1,8]
 *   reads x at workspace + 0 (overlaps); writes y at workspace + 0 (overlaps) */
AOT_MODEL_OPAQUE static void integer_04_flatten(const int32_t *x, int8_t *y)
{
#if AOT_MODEL_INTEGER_VECTORS
    for (int32_t i = 0; i < 8; i += 4) {
        const int32x4_t v0 = vldrwq_s32(x + i);
        const int32x4_t v1 = vsubq_n_s32(v0, 48);
        const int32x4_t v2 = vdupq_n_s32(1073741824);
        const int32x4_t v3 = aot_model_four_even(v1, v2, 3);
        const int32x4_t v4 = vaddq_n_s32(v3, 3);
        const int32x4_t v5 = vminq_s32(vmaxq_s32(v4, vdupq_n_s32(-128)), vdupq_n_s32(127));
        vstrbq_s32(aot_model_written_int8_t(y + i), v5);
    }
#else
    for (int32_t i = 0; i < 8; i++) {
        y[i] = (int8_t)aot_model_saturate_int8((int32_t)((uint32_t)aot_model_requantise_even(
            (int32_t)((uint32_t)x[i] - (uint32_t)48), 1073741824, -3) + (uint32_t)3));
    }
#endif
}

/* 1 x 4 blocks, 0.078 loads per MAC
 * step 6: dense (MatMul): int8[1,8] * int8[8,4] -> int8[1,4], 32 MACs
 *   reads x at workspace + 0; writes y at workspace + 8 */
AOT_MODEL_OPAQUE static void integer_05_fully_connected(const int8_t *restrict x, const int8_t *restrict w,
    int8_t *restrict y)
{
    aot_mve_dot_1x4_k8(x, w, 4, y);
}

/* step 7: y (Identity): int8[1,4] -> float32[1,4]
 *   reads x at workspace + 8; writes y at outputs->y */
AOT_MODEL_OPAQUE static void integer_06_identity(const int8_t *restrict x, float *restrict y)
{
#if AOT_MODEL_FLOAT_VECTORS
    {
        const int32x4_t v0 = vldrbq_s32(aot_model_read_int8_t(x));
        const int32x4_t v1 = v0;
        const int32x4_t v2 = vsubq_n_s32(v1, 3);
        const float32x4_t v3 = aot_model_four_of_int32(v2);
        const float32x4_t v4 = vmulq_n_f32(v3, 0.03125f);
        aot_model_store_f32(y, v4);
    }
#else
    for (int32_t i = 0; i < 4; i++) {
        y[i] = (float)((int32_t)x[i] - 3) * 0.03125f;
    }
#endif
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
    integer_00_transpose(inputs->x, AT(int8_t, 72));
    /* step 2: conv */
    integer_01_conv_3x3(AT(int8_t, 72), integer_c_conv_w, AT(int8_t, 0), AT(int8_t, 144));
    /* step 3: depthwise */
    integer_02_depthwise_3x3(integer_c_depthwise_w, integer_c_depthwise_moves, AT(int8_t, 0),
        AT(int8_t, 144));
    /* step 4: pool */
    integer_03_wide_sum(AT(int8_t, 144), AT(int32_t, 0));
    /* step 5: dense */
    integer_04_flatten(AT(int32_t, 0), AT(int8_t, 0));
    /* step 6: dense */
    integer_05_fully_connected(AT(int8_t, 0), integer_c_dense_w, AT(int8_t, 8));
    /* step 7: y */
    integer_06_identity(AT(int8_t, 8), outputs->y);
    return AOT_MODEL_OK;
}

