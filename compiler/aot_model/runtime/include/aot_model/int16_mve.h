/* What the Helium forms of kernels/int16 call: products of rows of int16, and their requantisation four channels at a time, with
 * portable twins. Part of aot-model. */
#ifndef AOT_MODEL_INT16_MVE_H
#define AOT_MODEL_INT16_MVE_H

#include <stddef.h>
#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/lanes_mve.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__)
#include <arm_mve.h>
#define AOT_MODEL_INT16_MVE 1
#else
#define AOT_MODEL_INT16_MVE 0
#endif

/* to[k] = from[k] - shift, k < n, n > 0; the results are int16. */
#if AOT_MODEL_INT16_MVE
#define AOT_MODEL_INT16_TAKE(name, type, load, step, low)                                                                        \
    AOT_MODEL_INLINE void name(int16_t *to, const type *from, int32_t shift, int32_t n)                                          \
    {                                                                                                                            \
        const int16x8_t less = vdupq_n_s16((int16_t)shift);                                                                      \
        __asm__ volatile("wlstp.16 lr, %[n], 2f\n\t"                                                                             \
                "1:\n\t" load " q0, [%[from]], #" step "\n\t"                                                                    \
                "vsub.i16 q0, q0, %q[less]\n\t"                                                                                  \
                "vstrh.16 q0, [%[to]], #16\n\t"                                                                                  \
                "letp lr, 1b\n\t"                                                                                                \
                "2:\n\t"                                                                                                         \
                : [to] "+r"(to), [from] "+" low(from)                                                                            \
                : [n] "r"(n), [less] "w"(less)                                                                                   \
                : "lr", "q0", "memory");                                                                                         \
    }
#else
#define AOT_MODEL_INT16_TAKE(name, type, load, step, low)                                                                        \
    AOT_MODEL_INLINE void name(int16_t *to, const type *from, int32_t shift, int32_t n)                                          \
    {                                                                                                                            \
        for (int32_t k = 0; k < n; k++) {                                                                                        \
            to[k] = (int16_t)(from[k] - shift);                                                                                  \
        }                                                                                                                        \
    }
#endif
AOT_MODEL_INT16_TAKE(aot_model_take_int8, int8_t, "vldrb.s16", "8", "l")
AOT_MODEL_INT16_TAKE(aot_model_take_uint8, uint8_t, "vldrb.u16", "8", "l")
AOT_MODEL_INT16_TAKE(aot_model_take_int16, int16_t, "vldrh.u16", "16", "r")
AOT_MODEL_INT16_TAKE(aot_model_take_uint16, uint16_t, "vldrh.u16", "16", "r")

/* The same from elements that are `apart` elements from each other, 0 <= apart < 9363: seven times that is an offset of 16 bits. */
#if AOT_MODEL_INT16_MVE
#define AOT_MODEL_INT16_COLLECT(name, type, load, sign, vector)                                                                  \
    AOT_MODEL_INLINE void name(int16_t *to, const type *from, int32_t apart, int32_t shift, int32_t n)                           \
    {                                                                                                                            \
        const uint16x8_t at = vmulq_n_u16(aot_model_lanes_u16(), (uint16_t)apart);                                               \
        int32_t k = 0;                                                                                                           \
        for (; k < n - 7; k += 8) {                                                                                              \
            const int16x8_t v = vector(load##_##sign##16(aot_model_read_##type(from + k * apart), at));                          \
            vstrhq_s16(to + k, vsubq_n_s16(v, (int16_t)shift));                                                                  \
        }                                                                                                                        \
        if (k < n) {                                                                                                             \
            const mve_pred16_t inside = vctp16q((uint32_t)(n - k));                                                              \
            const int16x8_t v = vector(load##_z_##sign##16(aot_model_read_##type(from + k * apart), at, inside));                \
            vstrhq_p_s16(aot_model_written_int16_t(to + k), vsubq_n_s16(v, (int16_t)shift), inside);                             \
        }                                                                                                                        \
    }
#else
#define AOT_MODEL_INT16_COLLECT(name, type, load, sign, vector)                                                                  \
    AOT_MODEL_INLINE void name(int16_t *to, const type *from, int32_t apart, int32_t shift, int32_t n)                           \
    {                                                                                                                            \
        for (int32_t k = 0; k < n; k++) {                                                                                        \
            to[k] = (int16_t)(from[k * apart] - shift);                                                                          \
        }                                                                                                                        \
    }
#endif
AOT_MODEL_INT16_COLLECT(aot_model_collect_int8, int8_t, vldrbq_gather_offset, s, )
AOT_MODEL_INT16_COLLECT(aot_model_collect_uint8, uint8_t, vldrbq_gather_offset, u, vreinterpretq_s16_u16)
AOT_MODEL_INT16_COLLECT(aot_model_collect_int16, int16_t, vldrhq_gather_shifted_offset, s, )
AOT_MODEL_INT16_COLLECT(aot_model_collect_uint16, uint16_t, vldrhq_gather_shifted_offset, u, vreinterpretq_s16_u16)

AOT_MODEL_INLINE void aot_model_fill_int16(int16_t *to, int16_t value, int32_t n)
{
#if AOT_MODEL_INT16_MVE
    const int16x8_t values = vdupq_n_s16(value);
    __asm__ volatile("wlstp.16 lr, %[n], 2f\n\t"
            "1:\n\t"
            "vstrh.16 %q[values], [%[to]], #16\n\t"
            "letp lr, 1b\n\t"
            "2:\n\t"
            : [to] "+r"(to)
            : [n] "r"(n), [values] "w"(values)
            : "lr", "memory");
#else
    for (int32_t k = 0; k < n; k++) {
        to[k] = value;
    }
#endif
}

/* Two rows of x times two rows of w, n > 0 elements: what is added to a and b, the sums of x0, and to c and d, those of x1. */
#if AOT_MODEL_INT16_MVE
#define AOT_MODEL_2X2(lanes, load_x, load, step, low, sign)                                                                      \
    do {                                                                                                                         \
        register int32_t left __asm__("lr") = n; /* a register less */                                                           \
        __asm__ volatile("wlstp." lanes " lr, lr, 2f\n\t"                                                                        \
                "1:\n\t" load_x " q0, [%[x0]], #16\n\t" load " q2, [%[w0]], #" step "\n\t"                                       \
                "vmladava." sign " %[a], q0, q2\n\t" load_x " q1, [%[x1]], #16\n\t"                                              \
                "vmladava." sign " %[c], q1, q2\n\t" load " q3, [%[w1]], #" step "\n\t"                                          \
                "vmladava." sign " %[b], q0, q3\n\t"                                                                             \
                "vmladava." sign " %[d], q1, q3\n\t"                                                                             \
                "letp lr, 1b\n\t"                                                                                                \
                "2:\n\t"                                                                                                         \
                : [left] "+r"(left), [a] "+Te"(a), [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d),                                     \
                  [x0] "+r"(x0), [x1] "+r"(x1), [w0] "+" low(w0), [w1] "+" low(w1)                                               \
                :                                                                                                                \
                : "q0", "q1", "q2", "q3", "memory");                                                                             \
    } while (0)
#else
#define AOT_MODEL_2X2(lanes, load_x, load, step, low, sign)                                                                      \
    do {                                                                                                                         \
        for (int32_t k = 0; k < n; k++) {                                                                                        \
            a += x0[k] * w0[k];                                                                                                  \
            b += x0[k] * w1[k];                                                                                                  \
            c += x1[k] * w0[k];                                                                                                  \
            d += x1[k] * w1[k];                                                                                                  \
        }                                                                                                                        \
    } while (0)
#endif

/* The products of n taps: sums[0], sums[1] of x0, sums[4], sums[5] of x1. */
#define AOT_MODEL_INT16_2X2(name, type, load, step, low)                                                                         \
    AOT_MODEL_INLINE void name(const int16_t *x0, const int16_t *x1, const type *w0, const type *w1, int32_t n, int32_t *sums)   \
    {                                                                                                                            \
        int32_t a = 0, b = 0, c = 0, d = 0;                                                                                      \
        AOT_MODEL_2X2("16", "vldrh.u16", load, step, low, "s16");                                                                \
        sums[0] = a;                                                                                                             \
        sums[1] = b;                                                                                                             \
        sums[4] = c;                                                                                                             \
        sums[5] = d;                                                                                                             \
    }
AOT_MODEL_INT16_2X2(aot_model_two_by_two_int8, int8_t, "vldrb.s16", "8", "l")
AOT_MODEL_INT16_2X2(aot_model_two_by_two_int16, int16_t, "vldrh.u16", "16", "r")

/* What takes more registers than GCC always finds beside others is a function of its own. */
#if AOT_MODEL_INT16_MVE
#define AOT_MODEL_INT16_PART static __attribute__((noinline, unused))
#else
#define AOT_MODEL_INT16_PART AOT_MODEL_INLINE
#endif

/* n taps of one row of x times those of four rows of w, which lie `apart` taps from each other. */
#if AOT_MODEL_INT16_MVE
#define AOT_MODEL_INT16_1X4(name, type, load, step, low)                                                                         \
    AOT_MODEL_INT16_PART void name(const int16_t *x, const type *w0, int32_t n, int32_t apart, int32_t *sums)                    \
    {                                                                                                                            \
        register int32_t left __asm__("lr") = n; /* a register less */                                                           \
        int32_t a = 0, b = 0, c = 0, d = 0;                                                                                      \
        const type *w1 = w0 + apart, *w2 = w0 + 2 * apart, *w3 = w0 + 3 * apart;                                                 \
        __asm__ volatile("wlstp.16 lr, lr, 2f\n\t"                                                                               \
                "1:\n\t"                                                                                                         \
                "vldrh.u16 q0, [%[x]], #16\n\t" load " q2, [%[w0]], #" step "\n\t"                                               \
                "vmladava.s16 %[a], q0, q2\n\t" load " q3, [%[w1]], #" step "\n\t"                                               \
                "vmladava.s16 %[b], q0, q3\n\t" load " q2, [%[w2]], #" step "\n\t"                                               \
                "vmladava.s16 %[c], q0, q2\n\t" load " q3, [%[w3]], #" step "\n\t"                                               \
                "vmladava.s16 %[d], q0, q3\n\t"                                                                                  \
                "letp lr, 1b\n\t"                                                                                                \
                "2:\n\t"                                                                                                         \
                : [left] "+r"(left), [a] "+Te"(a), [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d),                                     \
                  [x] "+r"(x), [w0] "+" low(w0), [w1] "+" low(w1),                                                               \
                  [w2] "+" low(w2), [w3] "+" low(w3)                                                                             \
                :                                                                                                                \
                : "q0", "q2", "q3", "memory");                                                                                   \
        sums[0] = a;                                                                                                             \
        sums[1] = b;                                                                                                             \
        sums[2] = c;                                                                                                             \
        sums[3] = d;                                                                                                             \
    }
#else
#define AOT_MODEL_INT16_1X4(name, type, load, step, low)                                                                         \
    AOT_MODEL_INLINE void name(const int16_t *x, const type *w0, int32_t n, int32_t apart, int32_t *sums)                         \
    {                                                                                                                            \
        for (int32_t i = 0; i < 4; i++) {                                                                                        \
            sums[i] = 0;                                                                                                         \
            for (int32_t k = 0; k < n; k++) {                                                                                    \
                sums[i] += x[k] * w0[i * apart + k];                                                                             \
            }                                                                                                                    \
        }                                                                                                                        \
    }
#endif
AOT_MODEL_INT16_1X4(aot_model_one_by_four_int8, int8_t, "vldrb.s16", "8", "l")
AOT_MODEL_INT16_1X4(aot_model_one_by_four_int16, int16_t, "vldrh.u16", "16", "r")

AOT_MODEL_INT16_PART void aot_model_part_one_by_four_int8(const int16_t *x, const int8_t *w0, int32_t n, int32_t apart,
                                                          int32_t *sums)
{
    aot_model_one_by_four_int8(x, w0, n, apart, sums);
}

AOT_MODEL_INT16_PART void aot_model_part_two_by_two_int8(const int16_t *x0, const int16_t *x1, const int8_t *w0, const int8_t *w1,
                                                         int32_t n, int32_t *sums)
{
    aot_model_two_by_two_int8(x0, x1, w0, w1, n, sums);
}

/* For the twins of micro-kernels: what becomes of a sum that has its start and its left shift. */
AOT_MODEL_INLINE int32_t aot_model_finished(int32_t whole, int32_t multiplier, int32_t right, int32_t away, int32_t zero,
                                            int32_t low, int32_t high)
{
    int64_t v = ((int64_t)whole * multiplier + (away != 0 ? (int64_t)1 << 31 : 0)) >> 32;
    if (right > 0) {
        v = (v - (away != 0 && v < 0 ? 1 : 0) + ((int64_t)1 << (right - 1))) >> right;
    }
    v += zero;
    return (int32_t)(v < low ? low : (v > high ? high : v));
}

enum { AOT_MODEL_UP, AOT_MODEL_AWAY, AOT_MODEL_EVEN };

/* A requantisation as kernels/int16/finish.py states it; `width` words of constants for each channel. */
typedef struct {
    int32_t rule;
    int32_t left;
    int32_t width; /* 4: start, multiplier, offset, shift; 3: all have `shift`; 0: all have the same constants */
    int32_t shift;
    int32_t odd; /* whether the zero point is */
    int32_t low, high;
} aot_model_finish;

#if AOT_MODEL_INT16_MVE
AOT_MODEL_INLINE int32x4_t aot_model_finish_constants(const aot_model_finish *f, const int32_t *rows, int32_t columns, int32_t k)
{
    if (f->width == 0) {
        return vdupq_n_s32(rows[k]);
    }
    const uint32x4_t at = vmulq_n_u32(aot_model_lanes_u32(), (uint32_t)f->width);
    return columns == 4 ? vldrwq_gather_shifted_offset_s32(aot_model_read_int32_t(rows + k), at)
                        : vldrwq_gather_shifted_offset_z_s32(aot_model_read_int32_t(rows + k), at, vctp32q((uint32_t)columns));
}

/* What is left of sums that have their start: four results. right: by how many bits, the same for all where `width` is not 4. */
AOT_MODEL_INLINE int32x4_t aot_model_clamped_four(const aot_model_finish *f, int32x4_t sums, int32x4_t multiplier, int32x4_t offset,
                                                  int32x4_t right)
{
    int32x4_t moved;
    if (f->rule == AOT_MODEL_AWAY) { /* left >= 1: VQRDMULH doubles */
        int32x4_t rounded = vqrdmulhq_s32(f->left == 1 ? sums : vshlq_r_s32(sums, f->left - 1), multiplier);
        if (f->width == 4) {
            rounded = vaddq_s32(rounded, vandq_s32(vshrq_n_s32(rounded, 31), vshrq_n_s32(right, 31)));
        } else if (f->shift > 0) {
            rounded = vaddq_s32(rounded, vshrq_n_s32(rounded, 31));
        }
        moved = vshlq_s32(vaddq_s32(rounded, offset), right);
    } else {
        const int32x4_t whole = vshlq_r_s32(sums, f->left);
        const int32x4_t word = vaddq_s32(vmulhq_s32(whole, multiplier), offset);
        moved = vshlq_s32(word, right);
        if (f->rule == AOT_MODEL_EVEN) {
            const int32x4_t rest = vsubq_s32(word, vshlq_s32(moved, vnegq_s32(right)));
            const int32x4_t nothing = vorrq_s32(vmulq_s32(whole, multiplier), rest);
            const int32x4_t something = vshrq_n_s32(vorrq_s32(nothing, vnegq_s32(nothing)), 31);
            const int32x4_t odd = vandq_s32(veorq_s32(moved, vdupq_n_s32(f->odd)), vdupq_n_s32(1));
            moved = vsubq_s32(moved, vbicq_s32(odd, something));
        }
    }
    return vminq_s32(vmaxq_s32(moved, vdupq_n_s32(f->low)), vdupq_n_s32(f->high));
}
#endif

/* v[i] = the clamped result of channel i, whose sum is sums[i]; rows: constants of the first of `columns` channels. */
AOT_MODEL_INLINE void aot_model_finish_four(const aot_model_finish *f, const int32_t *rows, int32_t columns, const int32_t *sums,
                                            int32_t *v)
{
#if AOT_MODEL_INT16_MVE
    const int32x4_t start = aot_model_finish_constants(f, rows, columns, 0);
    const int32x4_t multiplier = aot_model_finish_constants(f, rows, columns, 1);
    const int32x4_t offset = aot_model_finish_constants(f, rows, columns, 2);
    const int32x4_t right = vnegq_s32(f->width == 4 ? aot_model_finish_constants(f, rows, columns, 3) : vdupq_n_s32(f->shift));
    const int32x4_t whole = vaddq_s32(vldrwq_s32(sums), start);
    vstrwq_s32(v, aot_model_clamped_four(f, whole, multiplier, offset, right));
#else
    for (int32_t i = 0; i < columns; i++) {
        const int32_t *row = rows + i * f->width;
        const int32_t right = (f->width == 4) ? row[3] : f->shift;
        const int64_t scaled = (int64_t)((sums[i] + row[0]) * ((int32_t)1 << f->left)) * row[1];
        const int32_t rounded = (int32_t)((scaled + ((int64_t)1 << 31)) >> 32);
        const int32_t word = (int32_t)(scaled >> 32) + row[2];
        int32_t moved = (f->rule == AOT_MODEL_AWAY) ? (rounded + ((right > 0) ? rounded >> 31 : 0) + row[2]) >> right : word >> right;
        if (f->rule == AOT_MODEL_EVEN && (uint32_t)scaled == 0u && (word & (((int32_t)1 << right) - 1)) == 0) {
            moved -= (moved ^ f->odd) & 1;
        }
        v[i] = (moved < f->low) ? f->low : (moved > f->high) ? f->high : moved;
    }
#endif
}

/* The low halves or bytes of four results. */
AOT_MODEL_INLINE void aot_model_put_four_16(int16_t *y, const int32_t *v)
{
#if AOT_MODEL_INT16_MVE
    vstrhq_s32(aot_model_written_int16_t(y), vldrwq_s32(v));
#else
    for (int32_t i = 0; i < 4; i++) {
        y[i] = (int16_t)(v[i] > 32767 ? v[i] - 65536 : v[i]);
    }
#endif
}

AOT_MODEL_INLINE void aot_model_put_four_8(int8_t *y, const int32_t *v)
{
#if AOT_MODEL_INT16_MVE
    vstrbq_s32(aot_model_written_int8_t(y), vldrwq_s32(v));
#else
    for (int32_t i = 0; i < 4; i++) {
        y[i] = (int8_t)(v[i] > 127 ? v[i] - 256 : v[i]);
    }
#endif
}

/* y0[k], y1[k] = the bits of clamped results, k < n, all with the same constants. The sums: four for y0, four for y1, and so on.
 * y1: NULL, or another row. */
#if AOT_MODEL_INT16_MVE
AOT_MODEL_INLINE int32x4_t aot_model_finished_four(const aot_model_finish *f, const int32_t *constants, const int32_t *sums)
{
    const int32x4_t four = vldrwq_s32(sums);
    return aot_model_clamped_four(f, constants[0] == 0 ? four : vaddq_n_s32(four, constants[0]), vdupq_n_s32(constants[1]),
                                  vdupq_n_s32(constants[2]), vdupq_n_s32(-f->shift));
}
#endif

AOT_MODEL_INLINE void aot_model_finish_rows_8(const aot_model_finish *f, const int32_t *constants, const int32_t *sums, int32_t n,
                                                int8_t *y0, int8_t *y1)
{
#if AOT_MODEL_INT16_MVE
    for (int32_t k = 0; k < n; k += 4) {
        const int32x4_t a = aot_model_finished_four(f, constants, sums + 2 * k);
        if (n % 4 == 0) {
            vstrbq_s32(aot_model_written_int8_t(y0 + k), a);
        } else {
            vstrbq_p_s32(aot_model_written_int8_t(y0 + k), a, vctp32q((uint32_t)(n - k)));
        }
        if (y1 != NULL) {
            const int32x4_t b = aot_model_finished_four(f, constants, sums + 2 * k + 4);
            if (n % 4 == 0) {
                vstrbq_s32(aot_model_written_int8_t(y1 + k), b);
            } else {
                vstrbq_p_s32(aot_model_written_int8_t(y1 + k), b, vctp32q((uint32_t)(n - k)));
            }
        }
    }
#else
    for (int32_t k = 0; k < 2 * n; k++) {
        int8_t *y = (k < n) ? y0 : y1;
        const int32_t at = (k < n) ? k : k - n;
        int32_t v;
        if (y != NULL) {
            aot_model_finish_four(f, constants, 1, sums + 8 * (at / 4) + at % 4 + ((k < n) ? 0 : 4), &v);
            y[at] = (int8_t)(v > 127 ? v - 256 : v);
        }
    }
#endif
}

AOT_MODEL_INLINE void aot_model_finish_rows_16(const aot_model_finish *f, const int32_t *constants, const int32_t *sums, int32_t n,
                                                int16_t *y0, int16_t *y1)
{
#if AOT_MODEL_INT16_MVE
    for (int32_t k = 0; k < n; k += 4) {
        const int32x4_t a = aot_model_finished_four(f, constants, sums + 2 * k);
        if (n % 4 == 0) {
            vstrhq_s32(aot_model_written_int16_t(y0 + k), a);
        } else {
            vstrhq_p_s32(aot_model_written_int16_t(y0 + k), a, vctp32q((uint32_t)(n - k)));
        }
        if (y1 != NULL) {
            const int32x4_t b = aot_model_finished_four(f, constants, sums + 2 * k + 4);
            if (n % 4 == 0) {
                vstrhq_s32(aot_model_written_int16_t(y1 + k), b);
            } else {
                vstrhq_p_s32(aot_model_written_int16_t(y1 + k), b, vctp32q((uint32_t)(n - k)));
            }
        }
    }
#else
    for (int32_t k = 0; k < 2 * n; k++) {
        int16_t *y = (k < n) ? y0 : y1;
        const int32_t at = (k < n) ? k : k - n;
        int32_t v;
        if (y != NULL) {
            aot_model_finish_four(f, constants, 1, sums + 8 * (at / 4) + at % 4 + ((k < n) ? 0 : 4), &v);
            y[at] = (int16_t)(v > 32767 ? v - 65536 : v);
        }
    }
#endif
}

#endif
