/* real: real.onnx, compiled by aot-model 0.1.0 for cortex-m4. Do not edit.
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
#error "real.c was made for cortex-m4: compile for little-endian, or pass --target c"
#endif

#if !defined(__ARM_FEATURE_DSP)
#error "real.c was made for cortex-m4: compile with -mcpu of a core with the DSP extension, or pass --target cortex-m3"
#endif

#if defined(__GNUC__) && !defined(AOT_MODEL_NO_ADVICE)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3 && !defined(__ARM_BIG_ENDIAN)
#pragma message "real.c was made for cortex-m4: --target cortex-m55 would use the MVE vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#endif
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include <math.h>
#include "aot_model/scalar.h"

/* ---- constants: 1,312 bytes; their values are at the end of this file ---- */

/* conv_weights: float32[224]; for each block of channels: bias; for each tap those of the block */
static const float real_c_conv_weights[224];

/* depthwise_weights: float32[72] */
static const float real_c_depthwise_weights[72];

/* dense_weights: float32[32]; for each block of channels: bias, if any; for each tap those of the block */
static const float real_c_dense_weights[32];

/* Sums of 2 x 8 (pixels x channels): weights w = start of each channel, then those of each tap; products
 * and sums are rounded one by one. taps = rows, runs, steps, right, down, begin, between, skip. */
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)
AOT_MODEL_NAKED static void f32_sums_2x8_by_2_any(
    __attribute__((unused)) float *sums, __attribute__((unused)) const float *w,
    __attribute__((unused)) const float *const *x, __attribute__((unused)) const int32_t *taps)
{
    __asm__ volatile(
        "push {r4-r11, lr}\n"
        "vpush {s16-s31}\n"
        "ldr r4, [r2, #0]\n"
        "ldr r5, [r2, #4]\n"
        "vldmia r1!, {s0-s7}\n"
        "vmov.f32 s8, s0\n"
        "vmov.f32 s9, s1\n"
        "vmov.f32 s10, s2\n"
        "vmov.f32 s11, s3\n"
        "vmov.f32 s12, s4\n"
        "vmov.f32 s13, s5\n"
        "vmov.f32 s14, s6\n"
        "vmov.f32 s15, s7\n"
        "ldr r11, [r3]\n"
        "cmp r11, #0\n"
        "beq.w 4f\n"
        "ldr r9, [r3, #20]\n"
        "add r1, r1, r9, lsl #5\n"
        "ldr r9, [r3, #8]\n"
        "rsb r2, r9, #0\n"
        "and r2, r2, #1\n"
        "adr.w lr, 3f\n"
        "mov r9, #168\n"
        "mla lr, r2, r9, lr\n"
        "orr lr, lr, #1\n"
        "sub r4, r4, r2, lsl #2\n"
        "sub r5, r5, r2, lsl #2\n"
        "1:\n"
        "ldr r10, [r3, #4]\n"
        "2:\n"
        "ldr r9, [r3, #8]\n"
        "sub r1, r1, r2, lsl #5\n"
        "add r9, r9, r2\n"
        "bx lr\n"
        ".p2align 2\n"
        "3:\n"
        "vldr s24, [r4, #0]\n"
        "vldr s25, [r5, #0]\n"
        "vldr s16, [r1, #0]\n"
        "vldr s17, [r1, #4]\n"
        "vldr s18, [r1, #8]\n"
        "vldr s19, [r1, #12]\n"
        "vldr s20, [r1, #16]\n"
        "vldr s21, [r1, #20]\n"
        "vldr s22, [r1, #24]\n"
        "vldr s23, [r1, #28]\n"
        "vmul.f32 s31, s16, s24\n"
        "vmul.f32 s30, s17, s24\n"
        "vadd.f32 s0, s0, s31\n"
        "vmul.f32 s31, s18, s24\n"
        "vadd.f32 s1, s1, s30\n"
        "vmul.f32 s30, s19, s24\n"
        "vadd.f32 s2, s2, s31\n"
        "vmul.f32 s31, s20, s24\n"
        "vadd.f32 s3, s3, s30\n"
        "vmul.f32 s30, s21, s24\n"
        "vadd.f32 s4, s4, s31\n"
        "vmul.f32 s31, s22, s24\n"
        "vadd.f32 s5, s5, s30\n"
        "vmul.f32 s30, s23, s24\n"
        "vadd.f32 s6, s6, s31\n"
        "vmul.f32 s31, s16, s25\n"
        "vadd.f32 s7, s7, s30\n"
        "vmul.f32 s30, s17, s25\n"
        "vadd.f32 s8, s8, s31\n"
        "vmul.f32 s31, s18, s25\n"
        "vadd.f32 s9, s9, s30\n"
        "vmul.f32 s30, s19, s25\n"
        "vadd.f32 s10, s10, s31\n"
        "vmul.f32 s31, s20, s25\n"
        "vadd.f32 s11, s11, s30\n"
        "vmul.f32 s30, s21, s25\n"
        "vadd.f32 s12, s12, s31\n"
        "vmul.f32 s31, s22, s25\n"
        "vadd.f32 s13, s13, s30\n"
        "vmul.f32 s30, s23, s25\n"
        "vadd.f32 s14, s14, s31\n"
        "vadd.f32 s15, s15, s30\n"
        "vldr s24, [r4, #4]\n"
        "vldr s25, [r5, #4]\n"
        "vldr s16, [r1, #32]\n"
        "vldr s17, [r1, #36]\n"
        "vldr s18, [r1, #40]\n"
        "vldr s19, [r1, #44]\n"
        "vldr s20, [r1, #48]\n"
        "vldr s21, [r1, #52]\n"
        "vldr s22, [r1, #56]\n"
        "vldr s23, [r1, #60]\n"
        "vmul.f32 s31, s16, s24\n"
        "vmul.f32 s30, s17, s24\n"
        "vadd.f32 s0, s0, s31\n"
        "vmul.f32 s31, s18, s24\n"
        "vadd.f32 s1, s1, s30\n"
        "vmul.f32 s30, s19, s24\n"
        "vadd.f32 s2, s2, s31\n"
        "vmul.f32 s31, s20, s24\n"
        "vadd.f32 s3, s3, s30\n"
        "vmul.f32 s30, s21, s24\n"
        "vadd.f32 s4, s4, s31\n"
        "vmul.f32 s31, s22, s24\n"
        "vadd.f32 s5, s5, s30\n"
        "vmul.f32 s30, s23, s24\n"
        "vadd.f32 s6, s6, s31\n"
        "vmul.f32 s31, s16, s25\n"
        "vadd.f32 s7, s7, s30\n"
        "vmul.f32 s30, s17, s25\n"
        "vadd.f32 s8, s8, s31\n"
        "vmul.f32 s31, s18, s25\n"
        "vadd.f32 s9, s9, s30\n"
        "vmul.f32 s30, s19, s25\n"
        "vadd.f32 s10, s10, s31\n"
        "vmul.f32 s31, s20, s25\n"
        "vadd.f32 s11, s11, s30\n"
        "vmul.f32 s30, s21, s25\n"
        "vadd.f32 s12, s12, s31\n"
        "vmul.f32 s31, s22, s25\n"
        "vadd.f32 s13, s13, s30\n"
        "vmul.f32 s30, s23, s25\n"
        "vadd.f32 s14, s14, s31\n"
        "vadd.f32 s15, s15, s30\n"
        "add r1, r1, #64\n"
        "add r4, r4, #8\n"
        "add r5, r5, #8\n"
        "subs r9, r9, #2\n"
        "bne.w 3b\n"
        "ldr r9, [r3, #24]\n"
        "add r1, r1, r9, lsl #5\n"
        "ldr r9, [r3, #12]\n"
        "sub r9, r9, r2\n"
        "subs r10, r10, #1\n"
        "add r4, r4, r9, lsl #2\n"
        "add r5, r5, r9, lsl #2\n"
        "bne.w 2b\n"
        "ldr r9, [r3, #16]\n"
        "add r4, r4, r9, lsl #2\n"
        "add r5, r5, r9, lsl #2\n"
        "ldr r9, [r3, #28]\n"
        "add r1, r1, r9, lsl #5\n"
        "subs r11, r11, #1\n"
        "bne.w 1b\n"
        "4:\n"
        "vstmia r0, {s0-s15}\n"
        "vpop {s16-s31}\n"
        "pop {r4-r11, pc}\n"
        );
}
#else
AOT_MODEL_OPAQUE static void f32_sums_2x8_by_2_any(
    float *sums, const float *w, const float *const *x, const int32_t *taps)
{
    const float *at[2] = {0};
    for (int32_t p = 0; p < 2; p++) {
        at[p] = x[p];
        for (int32_t v = 0; v < 8; v++) {
            sums[p * 8 + v] = w[v];
        }
    }
    w += 8 + 8 * taps[5];
    for (int32_t row = 0; row < taps[0]; row++) {
        for (int32_t run = 0; run < taps[1]; run++) {
            for (int32_t i = 0; i < taps[2]; i++, w += 8) {
                for (int32_t p = 0; p < 2; p++) {
                    for (int32_t v = 0; v < 8; v++) {
                        const float product = w[v] * at[p][i];
                        sums[p * 8 + v] += product;
                    }
                }
            }
            for (int32_t p = 0; p < 2; p++) {
                at[p] += taps[2] + taps[3];
            }
            w += 8 * taps[6];
        }
        for (int32_t p = 0; p < 2; p++) {
            at[p] += taps[4];
        }
        w += 8 * taps[7];
    }
}
#endif

/* Sums of 1 x 8 (pixels x channels): weights w = start of each channel, then those of each tap; products
 * and sums are rounded one by one. taps = rows, runs, steps, right, down, begin, between, skip. */
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)
AOT_MODEL_NAKED static void f32_sums_1x8_by_4_any(
    __attribute__((unused)) float *sums, __attribute__((unused)) const float *w,
    __attribute__((unused)) const float *const *x, __attribute__((unused)) const int32_t *taps)
{
    __asm__ volatile(
        "push {r4-r11, lr}\n"
        "vpush {s16-s31}\n"
        "ldr r4, [r2, #0]\n"
        "vldmia r1!, {s0-s7}\n"
        "ldr r11, [r3]\n"
        "cmp r11, #0\n"
        "beq.w 4f\n"
        "ldr r9, [r3, #20]\n"
        "add r1, r1, r9, lsl #5\n"
        "ldr r9, [r3, #8]\n"
        "rsb r2, r9, #0\n"
        "and r2, r2, #3\n"
        "adr.w lr, 3f\n"
        "mov r9, #100\n"
        "mla lr, r2, r9, lr\n"
        "orr lr, lr, #1\n"
        "sub r4, r4, r2, lsl #2\n"
        "1:\n"
        "ldr r10, [r3, #4]\n"
        "2:\n"
        "ldr r9, [r3, #8]\n"
        "sub r1, r1, r2, lsl #5\n"
        "add r9, r9, r2\n"
        "bx lr\n"
        ".p2align 2\n"
        "3:\n"
        "vldr s16, [r4, #0]\n"
        "vldr s8, [r1, #0]\n"
        "vldr s9, [r1, #4]\n"
        "vldr s10, [r1, #8]\n"
        "vldr s11, [r1, #12]\n"
        "vldr s12, [r1, #16]\n"
        "vldr s13, [r1, #20]\n"
        "vldr s14, [r1, #24]\n"
        "vldr s15, [r1, #28]\n"
        "vmul.f32 s31, s8, s16\n"
        "vmul.f32 s30, s9, s16\n"
        "vadd.f32 s0, s0, s31\n"
        "vmul.f32 s31, s10, s16\n"
        "vadd.f32 s1, s1, s30\n"
        "vmul.f32 s30, s11, s16\n"
        "vadd.f32 s2, s2, s31\n"
        "vmul.f32 s31, s12, s16\n"
        "vadd.f32 s3, s3, s30\n"
        "vmul.f32 s30, s13, s16\n"
        "vadd.f32 s4, s4, s31\n"
        "vmul.f32 s31, s14, s16\n"
        "vadd.f32 s5, s5, s30\n"
        "vmul.f32 s30, s15, s16\n"
        "vadd.f32 s6, s6, s31\n"
        "vadd.f32 s7, s7, s30\n"
        "vldr s16, [r4, #4]\n"
        "vldr s8, [r1, #32]\n"
        "vldr s9, [r1, #36]\n"
        "vldr s10, [r1, #40]\n"
        "vldr s11, [r1, #44]\n"
        "vldr s12, [r1, #48]\n"
        "vldr s13, [r1, #52]\n"
        "vldr s14, [r1, #56]\n"
        "vldr s15, [r1, #60]\n"
        "vmul.f32 s31, s8, s16\n"
        "vmul.f32 s30, s9, s16\n"
        "vadd.f32 s0, s0, s31\n"
        "vmul.f32 s31, s10, s16\n"
        "vadd.f32 s1, s1, s30\n"
        "vmul.f32 s30, s11, s16\n"
        "vadd.f32 s2, s2, s31\n"
        "vmul.f32 s31, s12, s16\n"
        "vadd.f32 s3, s3, s30\n"
        "vmul.f32 s30, s13, s16\n"
        "vadd.f32 s4, s4, s31\n"
        "vmul.f32 s31, s14, s16\n"
        "vadd.f32 s5, s5, s30\n"
        "vmul.f32 s30, s15, s16\n"
        "vadd.f32 s6, s6, s31\n"
        "vadd.f32 s7, s7, s30\n"
        "vldr s16, [r4, #8]\n"
        "vldr s8, [r1, #64]\n"
        "vldr s9, [r1, #68]\n"
        "vldr s10, [r1, #72]\n"
        "vldr s11, [r1, #76]\n"
        "vldr s12, [r1, #80]\n"
        "vldr s13, [r1, #84]\n"
        "vldr s14, [r1, #88]\n"
        "vldr s15, [r1, #92]\n"
        "vmul.f32 s31, s8, s16\n"
        "vmul.f32 s30, s9, s16\n"
        "vadd.f32 s0, s0, s31\n"
        "vmul.f32 s31, s10, s16\n"
        "vadd.f32 s1, s1, s30\n"
        "vmul.f32 s30, s11, s16\n"
        "vadd.f32 s2, s2, s31\n"
        "vmul.f32 s31, s12, s16\n"
        "vadd.f32 s3, s3, s30\n"
        "vmul.f32 s30, s13, s16\n"
        "vadd.f32 s4, s4, s31\n"
        "vmul.f32 s31, s14, s16\n"
        "vadd.f32 s5, s5, s30\n"
        "vmul.f32 s30, s15, s16\n"
        "vadd.f32 s6, s6, s31\n"
        "vadd.f32 s7, s7, s30\n"
        "vldr s16, [r4, #12]\n"
        "vldr s8, [r1, #96]\n"
        "vldr s9, [r1, #100]\n"
        "vldr s10, [r1, #104]\n"
        "vldr s11, [r1, #108]\n"
        "vldr s12, [r1, #112]\n"
        "vldr s13, [r1, #116]\n"
        "vldr s14, [r1, #120]\n"
        "vldr s15, [r1, #124]\n"
        "vmul.f32 s31, s8, s16\n"
        "vmul.f32 s30, s9, s16\n"
        "vadd.f32 s0, s0, s31\n"
        "vmul.f32 s31, s10, s16\n"
        "vadd.f32 s1, s1, s30\n"
        "vmul.f32 s30, s11, s16\n"
        "vadd.f32 s2, s2, s31\n"
        "vmul.f32 s31, s12, s16\n"
        "vadd.f32 s3, s3, s30\n"
        "vmul.f32 s30, s13, s16\n"
        "vadd.f32 s4, s4, s31\n"
        "vmul.f32 s31, s14, s16\n"
        "vadd.f32 s5, s5, s30\n"
        "vmul.f32 s30, s15, s16\n"
        "vadd.f32 s6, s6, s31\n"
        "vadd.f32 s7, s7, s30\n"
        "add r1, r1, #128\n"
        "add r4, r4, #16\n"
        "subs r9, r9, #4\n"
        "bne.w 3b\n"
        "ldr r9, [r3, #24]\n"
        "add r1, r1, r9, lsl #5\n"
        "ldr r9, [r3, #12]\n"
        "sub r9, r9, r2\n"
        "subs r10, r10, #1\n"
        "add r4, r4, r9, lsl #2\n"
        "bne.w 2b\n"
        "ldr r9, [r3, #16]\n"
        "add r4, r4, r9, lsl #2\n"
        "ldr r9, [r3, #28]\n"
        "add r1, r1, r9, lsl #5\n"
        "subs r11, r11, #1\n"
        "bne.w 1b\n"
        "4:\n"
        "vstmia r0, {s0-s7}\n"
        "vpop {s16-s31}\n"
        "pop {r4-r11, pc}\n"
        );
}
#else
AOT_MODEL_OPAQUE static void f32_sums_1x8_by_4_any(
    float *sums, const float *w, const float *const *x, const int32_t *taps)
{
    const float *at[1] = {0};
    for (int32_t p = 0; p < 1; p++) {
        at[p] = x[p];
        for (int32_t v = 0; v < 8; v++) {
            sums[p * 8 + v] = w[v];
        }
    }
    w += 8 + 8 * taps[5];
    for (int32_t row = 0; row < taps[0]; row++) {
        for (int32_t run = 0; run < taps[1]; run++) {
            for (int32_t i = 0; i < taps[2]; i++, w += 8) {
                for (int32_t p = 0; p < 1; p++) {
                    for (int32_t v = 0; v < 8; v++) {
                        const float product = w[v] * at[p][i];
                        sums[p * 8 + v] += product;
                    }
                }
            }
            for (int32_t p = 0; p < 1; p++) {
                at[p] += taps[2] + taps[3];
            }
            w += 8 * taps[6];
        }
        for (int32_t p = 0; p < 1; p++) {
            at[p] += taps[4];
        }
        w += 8 * taps[7];
    }
}
#endif

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

static inline float f32_max(float a, float b)
{
    return a > b ? a : b;
}

/* ---- layers ---- */

/* 2 pixels x 8 channels in registers, of the last 1 pixel
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
            const int32_t taps[8] = {rows[r].taps, 3, cols[s].taps, (16 - cols[s].taps), -44,
                rows[r].tap * 9 + cols[s].tap, (3 - cols[s].taps), 0};
            const float *in = x + rows[r].first * 4 + cols[s].first;
            int32_t oy = rows[r].out;
            int32_t ox = cols[s].out;
            const int32_t ox_end = ox + cols[s].count;
            for (int32_t left = rows[r].count * cols[s].count, now; left > 0; left -= now) {
                now = left >= 2 ? 2 : 1;
                const float *at[2] = {0};
                int32_t y_at[2];
                int32_t x_at[2];
                for (int32_t p = 0; p < now; p++) {
                    at[p] = in;
                    y_at[p] = oy;
                    x_at[p] = ox;
                    if (left > p + 1) {
                        ox += 1;
                        in += 1;
                        if (ox == ox_end) {
                            ox = cols[s].out;
                            oy += 1;
                            in += 4 - cols[s].count;
                        }
                    }
                }
                {
                    float sums[2][8];
                    if (now == 2) {
                        f32_sums_2x8_by_2_any(sums[0], weights, at, taps);
                    }
                    else {
                        f32_sums_1x8_by_4_any(sums[0], weights, at, taps);
                    }
                    for (int32_t p = 0; p < now && p < left; p++) {
                        const int32_t py = y_at[p];
                        const int32_t px = x_at[p];
                        y[py * 32 + px * 8] = aot_model_max_float32(sums[p][0], 0.0f);
                        y[py * 32 + px * 8 + 1] = aot_model_max_float32(sums[p][1], 0.0f);
                        y[py * 32 + px * 8 + 2] = aot_model_max_float32(sums[p][2], 0.0f);
                        y[py * 32 + px * 8 + 3] = aot_model_max_float32(sums[p][3], 0.0f);
                        y[py * 32 + px * 8 + 4] = aot_model_max_float32(sums[p][4], 0.0f);
                        y[py * 32 + px * 8 + 5] = aot_model_max_float32(sums[p][5], 0.0f);
                        y[py * 32 + px * 8 + 6] = aot_model_max_float32(sums[p][6], 0.0f);
                        y[py * 32 + px * 8 + 7] = aot_model_max_float32(sums[p][7], 0.0f);
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
                if (rows[r].taps == 3) {
                    {
                        const float w0 = f32_early(w[0]);
                        const float w1 = f32_early(w[1]);
                        const float w2 = f32_early(w[2]);
                        const float e0 = f32_early(a[0]);
                        const float e1 = f32_early(a[8]);
                        const float e2 = f32_early(a[16]);
                        const float e3 = f32_early(a[24]);
                        acc2 = acc2 + f32_product(w2, e3);
                        acc3 = acc3 + f32_product(w1, e3);
                        acc1 = acc1 + f32_product(w2, e2);
                        acc2 = acc2 + f32_product(w1, e2);
                        acc3 = acc3 + f32_product(w0, e2);
                        acc0 = acc0 + f32_product(w2, e1);
                        acc1 = acc1 + f32_product(w1, e1);
                        acc2 = acc2 + f32_product(w0, e1);
                        acc0 = acc0 + f32_product(w1, e0);
                        acc1 = acc1 + f32_product(w0, e0);
                    }
                    {
                        const float w0 = f32_early(w[3]);
                        const float w1 = f32_early(w[4]);
                        const float w2 = f32_early(w[5]);
                        const float e0 = f32_early(a[32]);
                        const float e1 = f32_early(a[40]);
                        const float e2 = f32_early(a[48]);
                        const float e3 = f32_early(a[56]);
                        acc2 = acc2 + f32_product(w2, e3);
                        acc3 = acc3 + f32_product(w1, e3);
                        acc1 = acc1 + f32_product(w2, e2);
                        acc2 = acc2 + f32_product(w1, e2);
                        acc3 = acc3 + f32_product(w0, e2);
                        acc0 = acc0 + f32_product(w2, e1);
                        acc1 = acc1 + f32_product(w1, e1);
                        acc2 = acc2 + f32_product(w0, e1);
                        acc0 = acc0 + f32_product(w1, e0);
                        acc1 = acc1 + f32_product(w0, e0);
                    }
                    {
                        const float w0 = f32_early(w[6]);
                        const float w1 = f32_early(w[7]);
                        const float w2 = f32_early(w[8]);
                        const float e0 = f32_early(a[64]);
                        const float e1 = f32_early(a[72]);
                        const float e2 = f32_early(a[80]);
                        const float e3 = f32_early(a[88]);
                        acc2 = acc2 + f32_product(w2, e3);
                        acc3 = acc3 + f32_product(w1, e3);
                        acc1 = acc1 + f32_product(w2, e2);
                        acc2 = acc2 + f32_product(w1, e2);
                        acc3 = acc3 + f32_product(w0, e2);
                        acc0 = acc0 + f32_product(w2, e1);
                        acc1 = acc1 + f32_product(w1, e1);
                        acc2 = acc2 + f32_product(w0, e1);
                        acc0 = acc0 + f32_product(w1, e0);
                        acc1 = acc1 + f32_product(w0, e0);
                    }
                }
                else {
                    for (int32_t ky = 0; ky < rows[r].taps; ky++) {
                        AOT_MODEL_IN_ORDER;
                        const float w0 = f32_early(w[0]);
                        const float w1 = f32_early(w[1]);
                        const float w2 = f32_early(w[2]);
                        const float e0 = f32_early(a[0]);
                        const float e1 = f32_early(a[8]);
                        const float e2 = f32_early(a[16]);
                        const float e3 = f32_early(a[24]);
                        acc2 = acc2 + f32_product(w2, e3);
                        acc3 = acc3 + f32_product(w1, e3);
                        acc1 = acc1 + f32_product(w2, e2);
                        acc2 = acc2 + f32_product(w1, e2);
                        acc3 = acc3 + f32_product(w0, e2);
                        acc0 = acc0 + f32_product(w2, e1);
                        acc1 = acc1 + f32_product(w1, e1);
                        acc2 = acc2 + f32_product(w0, e1);
                        acc0 = acc0 + f32_product(w1, e0);
                        acc1 = acc1 + f32_product(w0, e0);
                        w += 3;
                        a += 32;
                    }
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
                acc0_3 = acc0_3 + f32_product(w3, e0);
                const float w2 = w[2];
                acc0_2 = acc0_2 + f32_product(w2, e0);
                const float w1 = w[1];
                acc0_1 = acc0_1 + f32_product(w1, e0);
                const float w0 = w[0];
                acc0_0 = acc0_0 + f32_product(w0, e0);
            }
            {
                const float e0 = a0[1];
                const float w3 = w[7];
                acc0_3 = acc0_3 + f32_product(w3, e0);
                const float w2 = w[6];
                acc0_2 = acc0_2 + f32_product(w2, e0);
                const float w1 = w[5];
                acc0_1 = acc0_1 + f32_product(w1, e0);
                const float w0 = w[4];
                acc0_0 = acc0_0 + f32_product(w0, e0);
            }
            {
                const float e0 = a0[2];
                const float w3 = w[11];
                acc0_3 = acc0_3 + f32_product(w3, e0);
                const float w2 = w[10];
                acc0_2 = acc0_2 + f32_product(w2, e0);
                const float w1 = w[9];
                acc0_1 = acc0_1 + f32_product(w1, e0);
                const float w0 = w[8];
                acc0_0 = acc0_0 + f32_product(w0, e0);
            }
            {
                const float e0 = a0[3];
                const float w3 = w[15];
                acc0_3 = acc0_3 + f32_product(w3, e0);
                const float w2 = w[14];
                acc0_2 = acc0_2 + f32_product(w2, e0);
                const float w1 = w[13];
                acc0_1 = acc0_1 + f32_product(w1, e0);
                const float w0 = w[12];
                acc0_0 = acc0_0 + f32_product(w0, e0);
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

