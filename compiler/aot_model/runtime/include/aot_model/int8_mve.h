/* What the Helium kernels of kernels/int8 share: the choice of instruction set, copies, the loop around products, rows of
 * results, and arithmetic for their portable twins. Part of aot-model. */
#ifndef AOT_MODEL_INT8_MVE_H
#define AOT_MODEL_INT8_MVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"
#include "aot_model/lanes_mve.h"

/* Helium micro-kernels as inline assembly; their portable twins elsewhere, and where r7 may be a frame pointer, which
 * the assembly takes: without optimisation, and with clang, unless -DAOT_MODEL_MVE=1 comes with -fomit-frame-pointer. */
#ifndef AOT_MODEL_MVE
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__)
#define AOT_MODEL_MVE 1
#else
#define AOT_MODEL_MVE 0
#endif
#endif

#if !AOT_MODEL_MVE
#define AOT_MODEL_NOINLINE AOT_MODEL_OPAQUE
#elif defined(__clang__)
#include <arm_mve.h>
#define AOT_MODEL_NOINLINE __attribute__((noinline)) /* the assembly takes all registers */
#else
#include <arm_mve.h>
#define AOT_MODEL_NOINLINE AOT_MODEL_OPAQUE __attribute__((optimize("omit-frame-pointer")))
#endif

/* Loops around micro-kernels that compilers fit to the sizes of a layer; barriers keep conclusions out of their callers. */
#if defined(__GNUC__)
#define AOT_MODEL_MVE_LOOP static __attribute__((unused))
#else
#define AOT_MODEL_MVE_LOOP static inline
#endif

#if !AOT_MODEL_MVE
/* Places of a shift in C: parameters that came with a forged checksum may say anything. */
AOT_MODEL_INLINE int32_t aot_mve_places(int32_t n) { return n < 0 ? 0 : (n > 31 ? 31 : n); }
/* a * 2^left, which wraps, or is the nearest int32. */
AOT_MODEL_INLINE int32_t aot_mve_shifted(int32_t a, int32_t left, int32_t wraps)
{
    const int32_t places = aot_mve_places(left);
    const int64_t wide = (int64_t)((uint64_t)(int64_t)a << places);
    const int64_t near = wide < INT32_MIN ? INT32_MIN : (wide > INT32_MAX ? INT32_MAX : wide);
    return wraps ? (int32_t)((uint32_t)a << places) : (int32_t)near;
}
/* ((a * 2^left * m + half) >> 31), then / 2^right: to nearest, ties up, or away from zero where `away` is 1. */
AOT_MODEL_INLINE int32_t aot_mve_requantise(int32_t a, int32_t m, int32_t left, int32_t right, int32_t half, int32_t away)
{
    int64_t h = ((int64_t)aot_mve_shifted(a, left, away) * m + half) >> 31;
    if (right > 0) {
        h = (h - (h < 0 ? away : 0) + ((int64_t)1 << aot_mve_places(right - 1))) >> aot_mve_places(right);
    }
    return (int32_t)h;
}
/* The same with ties to even: what gives 2^30 times `tie` is lowered. */
AOT_MODEL_INLINE int32_t aot_mve_requantise_even(int32_t a, int32_t m, int32_t left, int32_t right, int32_t half, int32_t tie)
{
    const int32_t shifted = aot_mve_shifted(a, left, 0);
    const int32_t lowered = (uint32_t)shifted * (uint32_t)tie == (uint32_t)1 << 30 ? 1 : 0;
    return aot_mve_requantise(shifted - lowered, m, 0, right, half, 0);
}
/* (a + 1) / 2^right, ties to even; 0 < right < 32. */
AOT_MODEL_INLINE int32_t aot_mve_halve_even(int32_t a, int32_t right)
{
    const int32_t places = aot_mve_places(right);
    return (int32_t)(((int64_t)a + ((a >> places) & 1) + ((int64_t)1 << aot_mve_places(right - 1))) >> places);
}
AOT_MODEL_INLINE int8_t aot_mve_clamp(int32_t value, int32_t low, int32_t high)
{
    return (int8_t)(value < low ? low : (value > high ? high : value));
}

/* Where ties go; BIT: to even, by aot_mve_halve_even. */
#define AOT_MVE_TIES_UP 0
#define AOT_MVE_TIES_AWAY 1
#define AOT_MVE_TIES_EVEN 2
#define AOT_MVE_TIES_BIT 3

/* What a micro-kernel of dot products does. Records of four channels are behind the weights of a block; of a block of eight, the
 * first is that of the even channels. */
typedef struct {
    int32_t pixels, block, depth;        /* depth: of each pixel, rounded up */
    int32_t multipliers;                 /* whether each channel has its own; else that of all comes before the first block */
    int32_t left, right;                 /* left: whether channels have left shifts; right: of all, -1: each has its own */
    int32_t half, ties, zero, low, high; /* of the requantisation */
    int32_t sums;                        /* whether behind a pixel is a number that is added to its sums */
} aot_mve_dot_form;

AOT_MODEL_INLINE void aot_mve_dot(const aot_mve_dot_form *f, const int8_t *x0, const int8_t *x1, const int8_t *w, int32_t channels,
                                  int8_t *y0, int8_t *y1)
{
    const int32_t step = f->block / 4, full = f->depth / 16 * 16, shifts = f->multipliers ? 32 : 16;
    const int32_t tie_at = shifts + 4 * f->left + (f->right < 0 ? 4 : 0);
    const int32_t size = tie_at + (f->ties == AOT_MVE_TIES_EVEN ? 16 : 0);
    int32_t multiplier = 0;
    if (!f->multipliers && f->ties != AOT_MVE_TIES_BIT) {
        memcpy(&multiplier, w, 4);
        w += 16;
    }
    for (int32_t first = 0; first < channels; first += f->block, w += f->depth * f->block + size * step) {
        for (int32_t c = 0; c < f->block && first + c < channels; c++) {
            const int8_t *record = w + f->depth * f->block + c % step * size;
            const int32_t lane = c / step, left = f->left ? record[shifts + lane] : 0;
            const int32_t right = f->right < 0 ? -record[shifts + 4 * f->left + lane] : f->right;
            int32_t bias, tie = 0;
            memcpy(&bias, record + 4 * lane, 4);
            if (f->ties == AOT_MVE_TIES_EVEN) {
                memcpy(&tie, record + tie_at + 4 * lane, 4);
            }
            if (f->multipliers) {
                memcpy(&multiplier, record + 16 + 4 * lane, 4);
            }
            for (int32_t p = 0; p < f->pixels; p++) {
                const int8_t *x = p ? x1 : x0;
                int32_t acc = 0;
                for (int32_t k = 0; k < f->depth; k++) {
                    acc += x[k] * w[k / 16 * 16 * f->block + c * (k < full ? 16 : f->depth - full) + k % 16];
                }
                int32_t sum = 0;
                if (f->sums) {
                    memcpy(&sum, x + f->depth, 4);
                }
                acc = (int32_t)((uint32_t)acc + (uint32_t)bias + (uint32_t)sum);
                if (f->ties == AOT_MVE_TIES_BIT) {
                    acc = aot_mve_halve_even(acc, right);
                } else if (f->ties == AOT_MVE_TIES_EVEN) {
                    acc = aot_mve_requantise_even(acc, multiplier, left, right, f->half, tie);
                } else {
                    acc = aot_mve_requantise(acc, multiplier, left, right, f->half, f->ties);
                }
                (p ? y1 : y0)[first + c] = aot_mve_clamp(acc + f->zero, f->low, f->high);
            }
        }
    }
}
#endif

AOT_MODEL_INLINE void aot_mve_copy16(int8_t *to, const int8_t *from)
{
#if AOT_MODEL_MVE
    vstrbq_s8(to, vldrbq_s8(from));
#else
    memcpy(to, from, 16);
#endif
}

/* Copies exactly n bytes, n >= 0: tail-predicated, 3 instructions per 16 bytes. */
static inline void aot_mve_copy(int8_t *to, const int8_t *from, int32_t n)
{
#if AOT_MODEL_MVE
    __asm__ volatile(
        "wlstp.8 lr, %[n], 2f\n\t"
        "1:\n\t"
        "vldrb.8 q0, [%[from]], #16\n\t"
        "vstrb.8 q0, [%[to]], #16\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [to] "+r"(to), [from] "+r"(from)
        : [n] "r"(n)
        : "lr", "q0", "memory");
#else
    memcpy(to, from, (size_t)n);
#endif
}

/* Sets exactly n bytes, n >= 0. */
static inline void aot_mve_fill(int8_t *to, int8_t value, int32_t n)
{
#if AOT_MODEL_MVE
    const int8x16_t values = vdupq_n_s8(value);
    __asm__ volatile(
        "wlstp.8 lr, %[n], 2f\n\t"
        "1:\n\t"
        "vstrb.8 %q[values], [%[to]], #16\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [to] "+r"(to)
        : [n] "r"(n), [values] "w"(values)
        : "lr", "memory");
#else
    memset(to, value, (size_t)n);
#endif
}

/* n bytes, n >= 0: uint8 as int8, less 128. */
static inline void aot_mve_turn_signs(int8_t *p, int32_t n)
{
    AOT_MODEL_BARRIER;
#if AOT_MODEL_MVE
    const int8x16_t sign = vdupq_n_s8(-128);
    __asm__ volatile(
        "wlstp.8 lr, %[n], 2f\n\t"
        "1:\n\t"
        "vldrb.8 q0, [%[p]]\n\t"
        "veor q0, q0, %q[sign]\n\t"
        "vstrb.8 q0, [%[p]], #16\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [p] "+r"(p)
        : [n] "r"(n), [sign] "w"(sign)
        : "lr", "q0", "memory");
#else
    for (int32_t i = 0; i < n; i++) {
        p[i] = (int8_t)(p[i] ^ -128);
    }
#endif
    AOT_MODEL_BARRIER;
}

/* Puts the sum of n bytes, n >= 0, times a factor behind the `depth` bytes of a pixel. */
static inline void aot_mve_add_behind(int8_t *pixel, int32_t n, int32_t depth, int32_t factor)
{
    AOT_MODEL_BARRIER;
    int32_t sum = 0;
#if AOT_MODEL_MVE
    const int8_t *from = pixel;
    __asm__ volatile(
        "wlstp.8 lr, %[n], 2f\n\t"
        "1:\n\t"
        "vldrb.8 q0, [%[from]], #16\n\t"
        "vaddva.s8 %[sum], q0\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [from] "+r"(from), [sum] "+Te"(sum)
        : [n] "r"(n)
        : "lr", "q0", "memory");
#else
    for (int32_t i = 0; i < n; i++) {
        sum += pixel[i];
    }
#endif
    sum = (int32_t)((uint32_t)sum * (uint32_t)factor);
    memcpy(pixel + depth, &sum, 4);
    AOT_MODEL_BARRIER;
}

/* Unit i of n goes from `from` to the byte places[i] of `to`: units of 1, 2 or 4 bytes. */
#if AOT_MODEL_MVE
#define AOT_MVE_SCATTER(name, unit, bits, load, bytes, next, store)                                                    \
    AOT_MODEL_MVE_LOOP void name(int8_t *to, const int8_t *from, const uint16_t *places, int32_t n)                    \
    {                                                                                                                  \
        AOT_MODEL_BARRIER;                                                                                             \
        __asm__ volatile("wlstp." #bits " lr, %[n], 2f\n\t"                                                            \
                         "1:\n\t"                                                                                      \
                         load " q0, [%[from]], #" #bytes "\n\t"                                                        \
                         next " q1, [%[places]], #256 / " #bits "\n\t"                                                  \
                         store " q0, [%[to], q1]\n\t"                                                                  \
                         "letp lr, 1b\n\t"                                                                             \
                         "2:\n\t"                                                                                      \
                         : [from] "+l"(from), [places] "+l"(places)                                                    \
                         : [n] "r"(n), [to] "r"(to)                                                                    \
                         : "lr", "q0", "q1", "memory");                                                                \
        AOT_MODEL_BARRIER;                                                                                             \
    }
#else
#define AOT_MVE_SCATTER(name, unit, bits, load, bytes, next, store)                                                    \
    AOT_MODEL_MVE_LOOP void name(int8_t *to, const int8_t *from, const uint16_t *places, int32_t n)                    \
    {                                                                                                                  \
        AOT_MODEL_BARRIER;                                                                                             \
        for (int32_t i = 0; i < n; i++) {                                                                              \
            memcpy(to + places[i], from + unit * i, unit);                                                             \
        }                                                                                                              \
        AOT_MODEL_BARRIER;                                                                                             \
    }
#endif
AOT_MVE_SCATTER(aot_mve_scatter1, 1, 16, "vldrb.u16", 8, "vldrh.16", "vstrb.16")
AOT_MVE_SCATTER(aot_mve_scatter2, 2, 16, "vldrb.8", 16, "vldrh.16", "vstrh.16")
AOT_MVE_SCATTER(aot_mve_scatter4, 4, 32, "vldrb.8", 16, "vldrh.u32", "vstrw.32")

/* y[i] = table[from[i] + 128], i < n; y may be from. */
AOT_MODEL_MVE_LOOP void aot_mve_lookup(const int8_t *from, const int8_t *table, int8_t *y, int32_t n)
{
    AOT_MODEL_BARRIER;
#if AOT_MODEL_MVE
    __asm__ volatile(
        "wlstp.8 lr, %[n], 2f\n\t"
        "1:\n\t"
        "vldrb.8 q0, [%[from]], #16\n\t"
        "vadd.i8 q0, q0, %[middle]\n\t"
        "vldrb.u8 q1, [%[table], q0]\n\t"
        "vstrb.8 q1, [%[y]], #16\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [from] "+r"(from), [y] "+r"(y)
        : [n] "r"(n), [table] "r"(table), [middle] "r"(128)
        : "lr", "q0", "q1", "memory");
#else
    for (int32_t i = 0; i < n; i++) {
        y[i] = table[from[i] + 128];
    }
#endif
    AOT_MODEL_BARRIER;
}

/* y[i] = table[from[i]], i < n; y may be from. */
AOT_MODEL_MVE_LOOP void aot_mve_lookup_uint8(const uint8_t *from, const uint8_t *table, uint8_t *y, int32_t n)
{
    AOT_MODEL_BARRIER;
#if AOT_MODEL_MVE
    __asm__ volatile(
        "wlstp.8 lr, %[n], 2f\n\t"
        "1:\n\t"
        "vldrb.8 q0, [%[from]], #16\n\t"
        "vldrb.u8 q1, [%[table], q0]\n\t"
        "vstrb.8 q1, [%[y]], #16\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [from] "+r"(from), [y] "+r"(y)
        : [n] "r"(n), [table] "r"(table)
        : "lr", "q0", "q1", "memory");
#else
    for (int32_t i = 0; i < n; i++) {
        y[i] = table[from[i]];
    }
#endif
    AOT_MODEL_BARRIER;
}

/* What a function (a, b, y, n) of numbers does: y[i] = clamp((a[i] ma + b[i] mb + offset) >> shift, low, high), i < n, n > 0;
 * y may be a or b. The factors are proven on all pairs: kernels/int8/affine_sum.py. */
#if AOT_MODEL_MVE
#define AOT_MVE_SUM_ROW(load, mb_, offset_, shift, clamp)                                                              \
    __asm__ volatile("dlstp.32 lr, %[n]\n\t"                                                                           \
                     "1:\n\t"                                                                                          \
                     load " q0, [%[a]], #4\n\t" load " q1, [%[b]], #4\n\t"                                             \
                     "vmlas.s32 q0, %q[factor], %[offset]\n\t"                                                         \
                     "vmla.s32 q0, q1, %[mb]\n\t"                                                                      \
                     "vshr.s32 q0, q0, #" #shift "\n\t" clamp "vstrb.32 q0, [%[y]], #4\n\t"                            \
                     "letp lr, 1b\n\t"                                                                                 \
                     : [a] "+l"(a), [b] "+l"(b), [y] "+l"(y)                                                           \
                     : [n] "r"(n), [factor] "w"(factor), [mb] "r"(mb_), [offset] "r"(offset_), [least] "w"(least),     \
                       [most] "w"(most)                                                                                \
                     : "lr", "q0", "q1", "memory")
#define AOT_MVE_SUM(ma, mb, offset, shift, low, high)                                                                  \
    do {                                                                                                               \
        const int32x4_t factor = vdupq_n_s32(ma);                                                                      \
        if ((low) == -128 && (high) == 127) {                                                                          \
            const int32x4_t least = factor, most = factor;                                                             \
            AOT_MVE_SUM_ROW("vldrb.s32", mb, offset, shift, "vqmovnb.s32 q0, q0\n\tvqmovnb.s16 q0, q0\n\t");                        \
        } else {                                                                                                       \
            const int32x4_t least = vdupq_n_s32(low), most = vdupq_n_s32(high);                                        \
            AOT_MVE_SUM_ROW("vldrb.s32", mb, offset, shift,                                                            \
                            "vmax.s32 q0, q0, %q[least]\n\tvmin.s32 q0, q0, %q[most]\n\t");                            \
        }                                                                                                              \
    } while (0)
#define AOT_MVE_SUM_UINT8(ma, mb, offset, shift, low, high)                                                            \
    do {                                                                                                               \
        const int32x4_t factor = vdupq_n_s32(ma), least = vdupq_n_s32(low), most = vdupq_n_s32(high);                  \
        AOT_MVE_SUM_ROW("vldrb.u32", mb, offset, shift,                                                                \
                        "vmax.s32 q0, q0, %q[least]\n\tvmin.s32 q0, q0, %q[most]\n\t");                                \
    } while (0)
#else
#define AOT_MVE_SUM_UINT8(ma, mb, offset, shift, low, high)                                                            \
    do {                                                                                                               \
        for (int32_t i = 0; i < n; i++) {                                                                              \
            const uint32_t sum = a[i] * (uint32_t)(ma) + b[i] * (uint32_t)(mb) + (uint32_t)(offset);                   \
            y[i] = (uint8_t)aot_mve_clamp((int32_t)sum >> (shift), low, high);                                         \
        }                                                                                                              \
    } while (0)
#define AOT_MVE_SUM(ma, mb, offset, shift, low, high)                                                                  \
    do {                                                                                                               \
        for (int32_t i = 0; i < n; i++) {                                                                              \
            y[i] = aot_mve_clamp((a[i] * (ma) + b[i] * (mb) + (offset)) >> (shift), low, high);                        \
        }                                                                                                              \
    } while (0)
#endif

typedef void aot_mve_dot_kernel(const int8_t *x0, const int8_t *x1, const int8_t *w, int32_t channels, int8_t *y0,
                                int8_t *y1);

/* All pixels of a 1x1 convolution, two at a time through a copy of depth >= in_c bytes each. */
AOT_MODEL_MVE_LOOP void aot_mve_pointwise(aot_mve_dot_kernel *dot, int32_t pixels, int32_t in_c, int32_t depth, int32_t out_c,
                              int8_t *patch, const int8_t *x, const int8_t *w, int8_t *y)
{
    AOT_MODEL_BARRIER;
    for (; pixels > 0; pixels -= 2, x += 2 * in_c, y += 2 * out_c) {
        const int32_t second = pixels > 1 ? 1 : 0;
        if (in_c == depth) {
            aot_mve_copy(patch, x, in_c + second * in_c);
        } else {
            aot_mve_copy(patch, x, in_c);
            aot_mve_copy(patch + depth, x + second * in_c, in_c);
        }
        dot(patch, patch + second * depth, w, out_c, y, y + second * out_c);
    }
    AOT_MODEL_BARRIER;
}

#endif
