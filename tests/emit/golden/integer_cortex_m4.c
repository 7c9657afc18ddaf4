/* integer: integer.onnx, compiled by aot-model 0.1.0 for cortex-m4. Do not edit.
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
 * Memory (workspace: 386 bytes at a multiple of 16), and the steps in which it holds what:
 *
 *        first byte        bytes           steps  holds
 *
 *   workspace + 312           48          1 to 2  result of step 1
 *     workspace + 0          224               2  scratch of step 2: columns
 *   workspace + 224           16               2  scratch of step 2: rest
 *   workspace + 368           18               2  scratch of step 2: border
 *   workspace + 240          128          2 to 3  result of step 2
 *     workspace + 0           96               3  scratch of step 3: plane
 *   workspace + 240          128          3 to 4  result of step 3
 *     workspace + 0           32          4 to 5  result of step 4
 *     workspace + 0            8          5 to 6  result of step 5
 *     workspace + 8            4          6 to 7  result of step 6
 */
#include "integer.h"

#if INTEGER_BUILD != 0x0000000000000000u
#error "integer.c and integer.h are of different builds: make both again, or copy both"
#endif

#if defined(__ARM_BIG_ENDIAN)
#error "integer.c was made for cortex-m4: compile for little-endian, or pass --target c"
#endif

#if !defined(__ARM_FEATURE_DSP)
#error "integer.c was made for cortex-m4: compile with -mcpu of a core with the DSP extension, or pass --target cortex-m3"
#endif

#if defined(__GNUC__) && !defined(AOT_MODEL_NO_ADVICE)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 3) == 3 && !defined(__ARM_BIG_ENDIAN)
#pragma message "integer.c was made for cortex-m4: --target cortex-m55 would use the MVE vectors " \
    "that these flags allow (silenced by -DAOT_MODEL_NO_ADVICE)"
#endif
#endif

#include "aot_model/precise_math.h" /* first: what follows is compiled as it says */
#include "aot_model/divisor.h"
#include "aot_model/int8_dsp.h"
#include "aot_model/saturate.h"
#include "aot_model/scalar.h"

/* ---- constants: 432 bytes; their values are at the end of this file ---- */

/* conv_weights: int32[64]; for each pair of channels a, b: two start values of the sums; two taps in a
 * word, as 256 * a + b in each half */
static const int32_t integer_c_conv_weights[64];

/* depthwise_weights: int32[32]; for each channel: start value of the sums, taps, numbers of the
 * requantisation */
static const int32_t integer_c_depthwise_weights[32];

/* dense_weights: int32[12]; for each four rows: start values of the sums; for each four inputs, two rows
 * and two inputs in a word; numbers of the requantisation */
static const int32_t integer_c_dense_weights[12];

/* Four pixels x all channel pairs: columns = int16 pixels [k/2][4][2]; stream = per channel pair start
 * values, weights and requantisation; pixels 0 and 1 go to y0 and y0 + next, 2 and 3 to y2 and y2 + next
 * (bytes). */
#if AOT_MODEL_DSP
AOT_MODEL_NAKED static void dot4x2_j_halved_6_s8_odd(
    __attribute__((unused)) const uint32_t *columns, __attribute__((unused)) const int32_t *stream,
    __attribute__((unused)) int8_t *y0, __attribute__((unused)) int8_t *y2,
    __attribute__((unused)) uint32_t next, __attribute__((unused)) uint32_t half_taps,
    __attribute__((unused)) const int32_t *end)
{
    __asm__ volatile(
        "push {r4-r11, lr}\n"
        "sub sp, sp, #28\n"
        "strd r2, r3, [sp]\n"
        "ldrd r2, r3, [sp, #64]\n"
        "ldr r4, [sp, #72]\n"
        "str r2, [sp, #8]\n"
        "str r0, [sp, #12]\n"
        "add r5, r0, r3, lsl #4\n"
        "str r5, [sp, #16]\n"
        "str r4, [sp, #24]\n"
        "rsb r3, r3, #0\n"
        "and r3, r3, #7\n"
        "mov r5, #52\n"
        "adr.w r4, 2f\n"
        "mla r4, r3, r5, r4\n"
        "orr r4, r4, #1\n"
        "str r4, [sp, #20]\n"
        "1:\n"
        "ldrd r2, r6, [r1], #8\n"
        "mov r3, r2\n"
        "mov r4, r2\n"
        "mov r5, r2\n"
        "mov r7, r6\n"
        "mov r8, r6\n"
        "mov r9, r6\n"
        "ldr pc, [sp, #20]\n"
        ".p2align 2\n"
        "2:\n"
        ".rept 8\n"
        "ldr r10, [r1], #4\n"
        "ldr r12, [r0, #8]\n"
        "ldr lr, [r0, #12]\n"
        "sxtb16 r11, r10\n"
        "smlad r4, r12, r10, r4\n"
        "smlad r8, r12, r11, r8\n"
        "smlad r5, lr, r10, r5\n"
        "smlad r9, lr, r11, r9\n"
        "ldrd r12, lr, [r0], #16\n"
        "smlad r2, r12, r10, r2\n"
        "smlad r6, r12, r11, r6\n"
        "smlad r3, lr, r10, r3\n"
        "smlad r7, lr, r11, r7\n"
        ".endr\n"
        "ldr r12, [sp, #16]\n"
        "cmp r0, r12\n"
        "bne.w 2b\n"
        "sub r2, r2, r6\n"
        "sub r3, r3, r7\n"
        "sub r4, r4, r8\n"
        "sub r5, r5, r9\n"
        "asr r2, r2, #8\n"
        "ubfx r12, r2, #6, #1\n"
        "add r2, r2, r12\n"
        "sub r2, r2, #64\n"
        "ssat r2, #8, r2, asr #6\n"
        "asr r3, r3, #8\n"
        "ubfx r12, r3, #6, #1\n"
        "add r3, r3, r12\n"
        "sub r3, r3, #64\n"
        "ssat r3, #8, r3, asr #6\n"
        "asr r4, r4, #8\n"
        "ubfx r12, r4, #6, #1\n"
        "add r4, r4, r12\n"
        "sub r4, r4, #64\n"
        "ssat r4, #8, r4, asr #6\n"
        "asr r5, r5, #8\n"
        "ubfx r12, r5, #6, #1\n"
        "add r5, r5, r12\n"
        "sub r5, r5, #64\n"
        "ssat r5, #8, r5, asr #6\n"
        "ubfx r12, r6, #6, #1\n"
        "add r6, r6, r12\n"
        "sub r6, r6, #64\n"
        "ssat r6, #8, r6, asr #6\n"
        "ubfx r12, r7, #6, #1\n"
        "add r7, r7, r12\n"
        "sub r7, r7, #64\n"
        "ssat r7, #8, r7, asr #6\n"
        "ubfx r12, r8, #6, #1\n"
        "add r8, r8, r12\n"
        "sub r8, r8, #64\n"
        "ssat r8, #8, r8, asr #6\n"
        "ubfx r12, r9, #6, #1\n"
        "add r9, r9, r12\n"
        "sub r9, r9, #64\n"
        "ssat r9, #8, r9, asr #6\n"
        "ldrd r10, r11, [sp]\n"
        "ldrd r12, r0, [sp, #8]\n"
        "strb r3, [r10, r12]\n"
        "strb r2, [r10], #1\n"
        "strb r5, [r11, r12]\n"
        "strb r4, [r11], #1\n"
        "strb r7, [r10, r12]\n"
        "strb r6, [r10], #1\n"
        "strb r9, [r11, r12]\n"
        "strb r8, [r11], #1\n"
        "strd r10, r11, [sp]\n"
        "ldr r12, [sp, #24]\n"
        "cmp r1, r12\n"
        "bne.w 1b\n"
        "add sp, sp, #28\n"
        "pop {r4-r11, pc}\n"
        );
}
#else
AOT_MODEL_OPAQUE static void dot4x2_j_halved_6_s8_odd(
    const uint32_t *columns, const int32_t *stream, int8_t *y0, int8_t *y2, uint32_t next, uint32_t half_taps,
    const int32_t *end)
{
    const uint32_t far = next;
    for (const int32_t *r1 = stream; r1 != end;) {
        const uint32_t *r0 = columns;
        int32_t r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, lr;
        r2 = r3 = r4 = r5 = *r1++;
        r6 = r7 = r8 = r9 = *r1++;
        for (uint32_t k = 0; k < half_taps; k++) {
            r10 = (int32_t)*r1++;
            r12 = (int32_t)r0[2];
            lr = (int32_t)r0[3];
            r11 = dsp_sxtb16(r10);
            r4 = dsp_smlad(r12, r10, r4);
            r8 = dsp_smlad(r12, r11, r8);
            r5 = dsp_smlad(lr, r10, r5);
            r9 = dsp_smlad(lr, r11, r9);
            r12 = (int32_t)*r0++; lr = (int32_t)*r0++; r0 += 2;
            r2 = dsp_smlad(r12, r10, r2);
            r6 = dsp_smlad(r12, r11, r6);
            r3 = dsp_smlad(lr, r10, r3);
            r7 = dsp_smlad(lr, r11, r7);
        }
        r2 = dsp_sub(r2, r6);
        r3 = dsp_sub(r3, r7);
        r4 = dsp_sub(r4, r8);
        r5 = dsp_sub(r5, r9);
        r2 = r2 >> 8;
        r12 = (int32_t)((uint32_t)r2 >> 6 & 1u);
        r2 = (int32_t)((uint32_t)r2 + (uint32_t)r12);
        r2 = dsp_sub(r2, 64);
        r2 = dsp_ssat8(r2 >> 6);
        r3 = r3 >> 8;
        r12 = (int32_t)((uint32_t)r3 >> 6 & 1u);
        r3 = (int32_t)((uint32_t)r3 + (uint32_t)r12);
        r3 = dsp_sub(r3, 64);
        r3 = dsp_ssat8(r3 >> 6);
        r4 = r4 >> 8;
        r12 = (int32_t)((uint32_t)r4 >> 6 & 1u);
        r4 = (int32_t)((uint32_t)r4 + (uint32_t)r12);
        r4 = dsp_sub(r4, 64);
        r4 = dsp_ssat8(r4 >> 6);
        r5 = r5 >> 8;
        r12 = (int32_t)((uint32_t)r5 >> 6 & 1u);
        r5 = (int32_t)((uint32_t)r5 + (uint32_t)r12);
        r5 = dsp_sub(r5, 64);
        r5 = dsp_ssat8(r5 >> 6);
        r12 = (int32_t)((uint32_t)r6 >> 6 & 1u);
        r6 = (int32_t)((uint32_t)r6 + (uint32_t)r12);
        r6 = dsp_sub(r6, 64);
        r6 = dsp_ssat8(r6 >> 6);
        r12 = (int32_t)((uint32_t)r7 >> 6 & 1u);
        r7 = (int32_t)((uint32_t)r7 + (uint32_t)r12);
        r7 = dsp_sub(r7, 64);
        r7 = dsp_ssat8(r7 >> 6);
        r12 = (int32_t)((uint32_t)r8 >> 6 & 1u);
        r8 = (int32_t)((uint32_t)r8 + (uint32_t)r12);
        r8 = dsp_sub(r8, 64);
        r8 = dsp_ssat8(r8 >> 6);
        r12 = (int32_t)((uint32_t)r9 >> 6 & 1u);
        r9 = (int32_t)((uint32_t)r9 + (uint32_t)r12);
        r9 = dsp_sub(r9, 64);
        r9 = dsp_ssat8(r9 >> 6);
        y0[far] = (int8_t)r3;
        *y0++ = (int8_t)r2;
        y2[far] = (int8_t)r5;
        *y2++ = (int8_t)r4;
        y0[far] = (int8_t)r7;
        *y0++ = (int8_t)r6;
        y2[far] = (int8_t)r9;
        *y2++ = (int8_t)r8;
    }
}
#endif

/* Four runs of 4 * quads bytes to int16 [k/2][4][2], the bytes of a word in order 0, 2, 1, 3. */
#if AOT_MODEL_DSP
AOT_MODEL_NAKED static uint32_t *expand4_int8(
    __attribute__((unused)) uint32_t *columns, __attribute__((unused)) const int8_t *p0,
    __attribute__((unused)) const int8_t *p1, __attribute__((unused)) const int8_t *p2,
    __attribute__((unused)) const int8_t *p3, __attribute__((unused)) uint32_t quads)
{
    __asm__ volatile(
        "push {r4-r11, lr}\n"
        "ldrd r12, lr, [sp, #36]\n"
        "add lr, r0, lr, lsl #5\n"
        "1:\n"
        "ldr r4, [r1], #4\n"
        "ldr r5, [r2], #4\n"
        "ldr r6, [r3], #4\n"
        "ldr r7, [r12], #4\n"
        "sxtb16 r8, r4, ror #8\n"
        "sxtb16 r9, r5, ror #8\n"
        "sxtb16 r10, r6, ror #8\n"
        "sxtb16 r11, r7, ror #8\n"
        "sxtb16 r4, r4\n"
        "sxtb16 r5, r5\n"
        "sxtb16 r6, r6\n"
        "sxtb16 r7, r7\n"
        "stmia r0!, {r4-r11}\n"
        "cmp r0, lr\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n"
        );
}
#else
AOT_MODEL_OPAQUE static uint32_t *expand4_int8(
    uint32_t *columns, const int8_t *p0, const int8_t *p1, const int8_t *p2, const int8_t *p3, uint32_t quads)
{
    const int8_t *const runs[4] = {p0, p1, p2, p3};
    for (uint32_t quad = 0; quad < quads; quad++, columns += 8) {
        for (uint32_t i = 0; i < 4; i++) {
            const int8_t *v = runs[i] + 4 * quad;
            columns[i] = ((uint32_t)v[0] & 0xffffu) | (uint32_t)v[2] << 16;
            columns[4 + i] = ((uint32_t)v[1] & 0xffffu) | (uint32_t)v[3] << 16;
        }
    }
    return columns;
}
#endif

/* 6 x 3 adjacent taps at (row, column); outside of the image: the zero point. */
AOT_MODEL_OPAQUE static const int8_t *run_int8_4x4x3_k6_z3(const int8_t *x, int32_t row, int32_t column,
    int8_t *slot)
{
    memset(slot, 3, 18);
    const int32_t from = column < 0 ? -column : 0;
    const int32_t to = column > -2 ? 4 - column : 6;
    if (row >= 0 && row < 4 && from < to) {
        memcpy(slot + from * 3, x + row * 12 + (column + from) * 3, (size_t)((to - from) * 3));
    }
    return slot;
}

/* 3x3 depthwise, one channel: 4 lines of 4 outputs; constants = bias, weights (one word per line),
 * requantisation; y is stepped by 32 per line and by 8 within a line. */
#if AOT_MODEL_DSP
AOT_MODEL_NAKED static void depthwise3x3_4x4_l8_s11_y32_8_halved_6_s8_odd(
    __attribute__((unused)) const int16_t *plane, __attribute__((unused)) int8_t *y,
    __attribute__((unused)) const int32_t *constants)
{
    __asm__ volatile(
        "push {r4-r11, lr}\n"
        "sub sp, sp, #36\n"
        "ldr r12, [r2], #4\n"
        "ldrd r8, r9, [r2], #8\n"
        "ldr r10, [r2], #4\n"
        "sxtb16 r11, r8\n"
        "sxtb16 r8, r8, ror #8\n"
        "pkhbt r2, r11, r8, lsl #16\n"
        "pkhbt r3, r8, r11\n"
        "sxtb16 r11, r9\n"
        "sxtb16 r9, r9, ror #8\n"
        "pkhbt r4, r11, r9, lsl #16\n"
        "pkhbt r5, r9, r11\n"
        "sxtb16 r11, r10\n"
        "sxtb16 r10, r10, ror #8\n"
        "pkhbt r6, r11, r10, lsl #16\n"
        "pkhbt r7, r10, r11\n"
        "movw r8, #64\n"
        "add r8, r8, r0\n"
        "str r8, [sp, #20]\n"
        "1:\n"
        "strd r0, r1, [sp, #12]\n"
        "addw lr, r0, #8\n"
        "2:\n"
        "ldrd r8, r9, [r0, #16]\n"
        "smlatb r11, r8, r4, r12\n"
        "smlad r10, r8, r4, r12\n"
        "smlad r11, r9, r5, r11\n"
        "smlabt r10, r9, r5, r10\n"
        "ldrd r8, r9, [r0, #32]\n"
        "smlatb r11, r8, r6, r11\n"
        "smlad r10, r8, r6, r10\n"
        "smlad r11, r9, r7, r11\n"
        "smlabt r10, r9, r7, r10\n"
        "ldrd r8, r9, [r0], #4\n"
        "smlatb r11, r8, r2, r11\n"
        "smlad r10, r8, r2, r10\n"
        "smlad r11, r9, r3, r11\n"
        "smlabt r10, r9, r3, r10\n"
        "ubfx r8, r10, #6, #1\n"
        "add r10, r10, r8\n"
        "sub r10, r10, #64\n"
        "ssat r10, #8, r10, asr #6\n"
        "ubfx r8, r11, #6, #1\n"
        "add r11, r11, r8\n"
        "sub r11, r11, #64\n"
        "ssat r11, #8, r11, asr #6\n"
        "strb r10, [r1], #8\n"
        "strb r11, [r1], #8\n"
        "cmp r0, lr\n"
        "bne 2b\n"
        "ldrd r0, r1, [sp, #12]\n"
        "addw r0, r0, #16\n"
        "addw r1, r1, #32\n"
        "ldr r8, [sp, #20]\n"
        "cmp r0, r8\n"
        "bne 1b\n"
        "add sp, sp, #36\n"
        "pop {r4-r11, pc}\n"
        );
}
#else
AOT_MODEL_OPAQUE static void depthwise3x3_4x4_l8_s11_y32_8_halved_6_s8_odd(
    const int16_t *plane, int8_t *y, const int32_t *constants)
{
    const int32_t *p = constants + 4;
    (void)p;
    for (int32_t u = 0; u < 4; u++) {
        for (int32_t j = 0; j < 4; j++) {
            const int16_t *from = plane + u * 8 + j;
            uint32_t sum = (uint32_t)constants[0];
            for (int32_t i = 0; i < 3; i++) {
                for (int32_t t = 0; t < 3; t++) {
                    const int32_t w = (int8_t)((uint32_t)constants[1 + (i * 4 + t) / 4] >> t % 4 * 8 & 0xffu);
                    sum += (uint32_t)(from[i * 8 + t] * w);
                }
            }
            int32_t v = (int32_t)sum;
            const int32_t sign = (int32_t)((uint32_t)v >> 6 & 1u);
            v = (int32_t)((uint32_t)v + (uint32_t)sign);
            v = dsp_sub(v, 64);
            v = dsp_ssat8(v >> 6);
            y[u * 32 + j * 8] = (int8_t)v;
        }
    }
}
#endif

/* All groups of four output rows; stream = per group start values, weights, requantisation. */
#if AOT_MODEL_DSP
AOT_MODEL_NAKED static void rows4_ij_halved_6_s8_odd(
    __attribute__((unused)) const int8_t *x, __attribute__((unused)) const int32_t *stream,
    __attribute__((unused)) int8_t *y, __attribute__((unused)) uint32_t quads,
    __attribute__((unused)) const int32_t *end)
{
    __asm__ volatile(
        "push {r4-r11, lr}\n"
        "sub sp, sp, #20\n"
        "ldr r4, [sp, #56]\n"
        "strd r0, r2, [sp]\n"
        "str r4, [sp, #8]\n"
        "add lr, r0, r3, lsl #2\n"
        "rsb r3, r3, #0\n"
        "and r3, r3, #3\n"
        "mov r5, #64\n"
        "adr.w r4, 2f\n"
        "mla r4, r3, r5, r4\n"
        "orr r4, r4, #1\n"
        "str r4, [sp, #12]\n"
        "1:\n"
        "ldmia r1!, {r2-r5}\n"
        "ldr r0, [sp]\n"
        "ldr pc, [sp, #12]\n"
        ".p2align 2\n"
        "2:\n"
        ".rept 4\n"
        "ldmia r1!, {r6-r9}\n"
        "ldr r10, [r0], #4\n"
        "sxtb16 r11, r10, ror #8\n"
        "sxtb16 r10, r10\n"
        "smlad r2, r10, r6, r2\n"
        "sxtb16 r6, r6\n"
        "smlad r4, r10, r7, r4\n"
        "sxtb16 r7, r7\n"
        "smlad r3, r10, r6, r3\n"
        "smlad r5, r10, r7, r5\n"
        "smlad r2, r11, r8, r2\n"
        "sxtb16 r8, r8\n"
        "smlad r4, r11, r9, r4\n"
        "sxtb16 r9, r9\n"
        "smlad r3, r11, r8, r3\n"
        "smlad r5, r11, r9, r5\n"
        ".endr\n"
        "cmp r0, lr\n"
        "bne.w 2b\n"
        "sub r2, r2, r3\n"
        "sub r4, r4, r5\n"
        "asr r2, r2, #8\n"
        "ubfx r8, r2, #6, #1\n"
        "add r2, r2, r8\n"
        "sub r2, r2, #64\n"
        "ssat r2, #8, r2, asr #6\n"
        "ubfx r8, r3, #6, #1\n"
        "add r3, r3, r8\n"
        "sub r3, r3, #64\n"
        "ssat r3, #8, r3, asr #6\n"
        "asr r4, r4, #8\n"
        "ubfx r8, r4, #6, #1\n"
        "add r4, r4, r8\n"
        "sub r4, r4, #64\n"
        "ssat r4, #8, r4, asr #6\n"
        "ubfx r8, r5, #6, #1\n"
        "add r5, r5, r8\n"
        "sub r5, r5, #64\n"
        "ssat r5, #8, r5, asr #6\n"
        "ldr r6, [sp, #4]\n"
        "strb r2, [r6], #1\n"
        "strb r3, [r6], #1\n"
        "strb r4, [r6], #1\n"
        "strb r5, [r6], #1\n"
        "str r6, [sp, #4]\n"
        "ldr r12, [sp, #8]\n"
        "cmp r1, r12\n"
        "bne.w 1b\n"
        "add sp, sp, #20\n"
        "pop {r4-r11, pc}\n"
        );
}
#else
AOT_MODEL_OPAQUE static void rows4_ij_halved_6_s8_odd(
    const int8_t *x, const int32_t *stream, int8_t *y, uint32_t quads, const int32_t *end)
{
    for (const int32_t *r1 = stream; r1 != end;) {
        const int8_t *r0 = x;
        int32_t r2, r3, r4, r5, r6, r7, r8, r9, r10, r11;
        r2 = (int32_t)*r1++; r3 = (int32_t)*r1++; r4 = (int32_t)*r1++; r5 = (int32_t)*r1++;
        for (uint32_t k = 0; k < quads; k++) {
            r6 = (int32_t)*r1++; r7 = (int32_t)*r1++; r8 = (int32_t)*r1++; r9 = (int32_t)*r1++;
            memcpy(&r10, r0, 4); r0 += 4;
            r11 = dsp_sxtb16_ror8(r10);
            r10 = dsp_sxtb16(r10);
            r2 = dsp_smlad(r10, r6, r2);
            r6 = dsp_sxtb16(r6);
            r4 = dsp_smlad(r10, r7, r4);
            r7 = dsp_sxtb16(r7);
            r3 = dsp_smlad(r10, r6, r3);
            r5 = dsp_smlad(r10, r7, r5);
            r2 = dsp_smlad(r11, r8, r2);
            r8 = dsp_sxtb16(r8);
            r4 = dsp_smlad(r11, r9, r4);
            r9 = dsp_sxtb16(r9);
            r3 = dsp_smlad(r11, r8, r3);
            r5 = dsp_smlad(r11, r9, r5);
        }
        r2 = dsp_sub(r2, r3);
        r4 = dsp_sub(r4, r5);
        r2 = r2 >> 8;
        r8 = (int32_t)((uint32_t)r2 >> 6 & 1u);
        r2 = (int32_t)((uint32_t)r2 + (uint32_t)r8);
        r2 = dsp_sub(r2, 64);
        r2 = dsp_ssat8(r2 >> 6);
        r8 = (int32_t)((uint32_t)r3 >> 6 & 1u);
        r3 = (int32_t)((uint32_t)r3 + (uint32_t)r8);
        r3 = dsp_sub(r3, 64);
        r3 = dsp_ssat8(r3 >> 6);
        r4 = r4 >> 8;
        r8 = (int32_t)((uint32_t)r4 >> 6 & 1u);
        r4 = (int32_t)((uint32_t)r4 + (uint32_t)r8);
        r4 = dsp_sub(r4, 64);
        r4 = dsp_ssat8(r4 >> 6);
        r8 = (int32_t)((uint32_t)r5 >> 6 & 1u);
        r5 = (int32_t)((uint32_t)r5 + (uint32_t)r8);
        r5 = dsp_sub(r5, 64);
        r5 = dsp_ssat8(r5 >> 6);
        *y++ = (int8_t)r2;
        *y++ = (int8_t)r3;
        *y++ = (int8_t)r4;
        *y++ = (int8_t)r5;
    }
}
#endif

/* ---- layers ---- */

/* step 1: conv (Transpose): float32[1,3,4,4] -> int8[1,4,4,3]
 *   reads x at inputs->x; writes y at workspace + 312 */
AOT_MODEL_OPAQUE static void integer_00_transpose(const float *restrict x, int8_t *restrict y)
{
    for (int32_t i = 0; i < 16; i++) {
        y[i * 3] = (int8_t)aot_model_rint_quotient(x[i], 0.03125f, 32.0f, 0.0f, 3, -128, 127);
        y[i * 3 + 1] = (int8_t)aot_model_rint_quotient(x[i + 16], 0.03125f, 32.0f, 0.0f, 3, -128, 127);
        y[i * 3 + 2] = (int8_t)aot_model_rint_quotient(x[i + 32], 0.03125f, 32.0f, 0.0f, 3, -128, 127);
    }
}

/* four pixels x channel pairs, 28 taps; one SXTB16 per 4 weights, 0.31 words loaded per MAC;
 * requantisation: halved
 * step 2: conv (Convolution): int8[1,4,4,3] * int8[8,3,3,3] -> int8[1,4,4,8], 3,456 MACs
 *   reads x at workspace + 312 (overlaps); works in columns at workspace + 0, border at workspace + 368,
 *   rest at workspace + 224; writes y at workspace + 240 (overlaps) */
AOT_MODEL_OPAQUE static void integer_01_conv_3x3(const int8_t *x, const int32_t *restrict weights,
    uint32_t *restrict columns, int8_t *restrict border, int8_t *restrict rest, int8_t *y)
{
    int32_t row = 0, column = 0;
    for (int32_t pixel = 0; pixel < 16; pixel += 4) {
        const int32_t y0 = row - 1;
        const int32_t x0 = column - 1;
        uint32_t *to = columns;
        memset(rest, 0, 16);
        for (int32_t ky = 0; ky < 3; ky++) {
            const int8_t *run0 = run_int8_4x4x3_k6_z3(x, y0 + ky, x0, border);
            const int8_t *run1 = run0 + 3;
            const int8_t *run2 = run0 + 6;
            const int8_t *run3 = run0 + 9;
            to = expand4_int8(to, run0, run1, run2, run3, 2u);
            rest[ky] = run0[8];
            rest[4 + ky] = run1[8];
            rest[8 + ky] = run2[8];
            rest[12 + ky] = run3[8];
        }
        expand4_int8(to, rest, rest + 4, rest + 8, rest + 12, 1u);
        int8_t *to_y = y + pixel * 8;
        dot4x2_j_halved_6_s8_odd(columns, weights, to_y, to_y + 16, 8u, 14u, weights + 64);
        column += 4;
        while (column >= 4) {
            column -= 4;
            row++;
        }
    }
}

/* one channel at a time in a plane of 6 x 8 int16, two outputs per step, weights in registers;
 * requantisation: halved
 * step 3: depthwise (Convolution): int8[1,4,4,8] * int8[8,3,3,1] -> int8[1,4,4,8], 1,152 MACs
 *   reads x at workspace + 240; works in plane at workspace + 0; writes y at workspace + 240 (in place of
 *   x) */
AOT_MODEL_OPAQUE static void integer_02_depthwise_3x3(const int32_t *restrict weights,
    int16_t *restrict plane, int8_t *restrict y)
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
            DSP_GATHER_4(ldrsb, to, 0, from, 0, 8, 16, 24);
        }
        int8_t *to_y = y + c;
        depthwise3x3_4x4_l8_s11_y32_8_halved_6_s8_odd(plane, to_y, weights + 4 * c);
    }
}

/* step 4: pool (WideSum): int8[1,4,4,8] -> int32[1,1,1,8]
 *   reads x at workspace + 240; writes y at workspace + 0 */
AOT_MODEL_OPAQUE static void integer_03_wide_sum(const int8_t *restrict x, int32_t *restrict y)
{
    for (int32_t i = 0; i < 8; i++) {
        int32_t t0 = 0;
        for (int32_t r0 = 0; r0 < 4; r0++) {
            t0 = (int32_t)((uint32_t)t0 + (uint32_t)(int32_t)x[r0 * 32 + i]);
            t0 = (int32_t)((uint32_t)t0 + (uint32_t)(int32_t)x[r0 * 32 + i + 8]);
            t0 = (int32_t)((uint32_t)t0 + (uint32_t)(int32_t)x[r0 * 32 + i + 16]);
            t0 = (int32_t)((uint32_t)t0 + (uint32_t)(int32_t)x[r0 * 32 + i + 24]);
        }
        y[i] = t0;
    }
}

/* step 5: dense (Flatten): int32[1,1,1,8] -> int8[1,8]
 *   reads x at workspace + 0 (overlaps); writes y at workspace + 0 (overlaps) */
AOT_MODEL_OPAQUE static void integer_04_flatten(const int32_t *x, int8_t *y)
{
    for (int32_t i = 0; i < 8; i++) {
        y[i] = (int8_t)aot_model_saturate_int8((int32_t)((uint32_t)aot_model_requantise_even(
            (int32_t)((uint32_t)x[i] - (uint32_t)48), 1073741824, -3) + (uint32_t)3));
    }
}

/* four rows at a time, input expanded on the way; requantisation: halved
 * step 6: dense (MatMul): int8[1,8] * int8[8,4] -> int8[1,4], 32 MACs
 *   reads x at workspace + 0; writes y at workspace + 8 */
AOT_MODEL_OPAQUE static void integer_05_fully_connected(const int8_t *restrict x,
    const int32_t *restrict weights, int8_t *restrict y)
{
    rows4_ij_halved_6_s8_odd(x, weights, y, 2u, weights + 12);
}

/* step 7: y (Identity): int8[1,4] -> float32[1,4]
 *   reads x at workspace + 8; writes y at outputs->y */
AOT_MODEL_OPAQUE static void integer_06_identity(const int8_t *restrict x, float *restrict y)
{
    y[0] = (float)((int32_t)x[0] - 3) * 0.03125f;
    y[1] = (float)((int32_t)x[1] - 3) * 0.03125f;
    y[2] = (float)((int32_t)x[2] - 3) * 0.03125f;
    y[3] = (float)((int32_t)x[3] - 3) * 0.03125f;
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
    integer_00_transpose(inputs->x, AT(int8_t, 312));
    /* step 2: conv */
    integer_01_conv_3x3(AT(int8_t, 312), integer_c_conv_weights, AT(uint32_t, 0), AT(int8_t, 368),
        AT(int8_t, 224), AT(int8_t, 240));
    /* step 3: depthwise */
    integer_02_depthwise_3x3(integer_c_depthwise_weights, AT(int16_t, 0), AT(int8_t, 240));
    /* step 4: pool */
    integer_03_wide_sum(AT(int8_t, 240), AT(int32_t, 0));
    /* step 5: dense */
    integer_04_flatten(AT(int32_t, 0), AT(int8_t, 0));
    /* step 6: dense */
    integer_05_fully_connected(AT(int8_t, 0), integer_c_dense_weights, AT(int8_t, 8));
    /* step 7: y */
    integer_06_identity(AT(int8_t, 8), outputs->y);
    return AOT_MODEL_OK;
}

