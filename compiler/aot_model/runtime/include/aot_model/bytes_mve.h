/* Products of rows of bytes in Helium, both computed at run time, with portable twins. Zero points are not taken from the bytes
 * but from the sums: sum((x - u) (w - v)) = sum(x w) - v sum(x) - u sum(w) + n u v.
 * Part of aot-model. */
#ifndef AOT_MODEL_BYTES_MVE_H
#define AOT_MODEL_BYTES_MVE_H

#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/int16_mve.h"

/* The sum of n > 0 bytes. */
#if AOT_MODEL_INT16_MVE
#define AOT_MODEL_BYTES_SUM(name, type, sign)                                                                                    \
    AOT_MODEL_INLINE int32_t name(const type *x, int32_t n)                                                                      \
    {                                                                                                                            \
        register int32_t left __asm__("lr") = n;                                                                                 \
        int32_t sum = 0;                                                                                                         \
        __asm__ volatile("wlstp.8 lr, lr, 2f\n\t"                                                                                \
                "1:\n\t"                                                                                                         \
                "vldrb.u8 q0, [%[x]], #16\n\t"                                                                                   \
                "vaddva." sign " %[sum], q0\n\t"                                                                                 \
                "letp lr, 1b\n\t"                                                                                                \
                "2:\n\t"                                                                                                         \
                : [left] "+r"(left), [sum] "+Te"(sum), [x] "+r"(x)                                                               \
                :                                                                                                                \
                : "q0", "memory");                                                                                               \
        return sum;                                                                                                              \
    }
#else
#define AOT_MODEL_BYTES_SUM(name, type, sign)                                                                                    \
    AOT_MODEL_INLINE int32_t name(const type *x, int32_t n)                                                                      \
    {                                                                                                                            \
        int32_t sum = 0;                                                                                                         \
        for (int32_t k = 0; k < n; k++) {                                                                                        \
            sum += x[k];                                                                                                         \
        }                                                                                                                        \
        return sum;                                                                                                              \
    }
#endif
AOT_MODEL_BYTES_SUM(aot_model_sum_int8, int8_t, "s8")
AOT_MODEL_BYTES_SUM(aot_model_sum_uint8, uint8_t, "u8")

/* n > 0 bytes that are `apart` from each other, 0 <= apart < 9363, one behind the other. */
AOT_MODEL_INLINE void aot_model_collect_bytes(uint8_t *to, const uint8_t *from, int32_t apart, int32_t n)
{
#if AOT_MODEL_INT16_MVE
    const uint16x8_t at = vmulq_n_u16(aot_model_lanes_u16(), (uint16_t)apart);
    int32_t k = 0;
    for (; k < n - 7; k += 8) {
        vstrbq_u16(aot_model_written_uint8_t(to + k), vldrbq_gather_offset_u16(aot_model_read_uint8_t(from + k * apart), at));
    }
    if (k < n) {
        const mve_pred16_t inside = vctp16q((uint32_t)(n - k));
        const uint16x8_t v = vldrbq_gather_offset_z_u16(aot_model_read_uint8_t(from + k * apart), at, inside);
        vstrbq_p_u16(aot_model_written_uint8_t(to + k), v, inside);
    }
#else
    for (int32_t k = 0; k < n; k++) {
        to[k] = from[k * apart];
    }
#endif
}

/* Two rows of x times two rows of w, n > 0 bytes: sums[0], sums[1] of x0, sums[4], sums[5] of x1; begin: what is added to those
 * of each row of w, begin0 and begin1 to those of each row of x. */
#define AOT_MODEL_BYTES_2X2(name, type, sign)                                                                                    \
    AOT_MODEL_INLINE void name(const type *x0, const type *x1, const type *w0, const type *w1, int32_t n, int32_t begin0,        \
                               int32_t begin1, const int32_t *begin, int32_t *sums)                                              \
    {                                                                                                                            \
        int32_t a = begin0 + begin[0], b = begin0 + begin[1], c = begin1 + begin[0], d = begin1 + begin[1];                      \
        AOT_MODEL_2X2("8", "vldrb.u8", "vldrb.u8", "16", "r", sign);                                                             \
        sums[0] = a;                                                                                                             \
        sums[1] = b;                                                                                                             \
        sums[4] = c;                                                                                                             \
        sums[5] = d;                                                                                                             \
    }
AOT_MODEL_BYTES_2X2(aot_model_two_by_two_bytes_int8, int8_t, "s8")
AOT_MODEL_BYTES_2X2(aot_model_two_by_two_bytes_uint8, uint8_t, "u8")

#endif
