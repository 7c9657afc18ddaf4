/* Rows of an image as a depthwise kernel of Helium takes them. Part of aot-model. */
#ifndef AOT_MODEL_INT8_MVE_DEPTHWISE_H
#define AOT_MODEL_INT8_MVE_DEPTHWISE_H

#include "aot_model/int8_mve.h"

typedef struct {
    int32_t channels, columns; /* of a row of the image */
    int32_t slots;             /* bytes from one column to the next of a channel */
    int32_t plane;             /* bytes from one channel to the next */
    int8_t fill;
    int8_t unsigned_rows;      /* of the image: they, and `fill`, become int8 */
} aot_mve_turned_rows;

#if AOT_MODEL_MVE
#define AOT_MVE_TURN_CHANNELS(turned)                                                                                  \
    __asm__ volatile("wls lr, %[n], 2f\n\t"                                                                            \
                     "1:\n\t"                                                                                          \
                     "vldrb.s16 q0, [%[from]]\n\t"                                                                     \
                     "add %[from], %[from], %[step]\n\t" turned "vstrb.16 q0, [%[into], %q[at]]\n\t"                   \
                     "add %[into], %[into], %[slots]\n\t"                                                              \
                     "le lr, 1b\n\t"                                                                                   \
                     "2:\n\t"                                                                                          \
                     : [from] "+l"(from), [into] "+r"(into)                                                            \
                     : [n] "r"(s->columns), [step] "r"(step), [slots] "r"(s->slots), [at] "w"(at), [sign] "w"(sign)    \
                     : "lr", "q0", "memory")
#define AOT_MVE_TURN_COLUMNS(turned)                                                                                   \
    __asm__ volatile("wlstp.16 lr, %[n], 2f\n\t"                                                                       \
                     "1:\n\t"                                                                                          \
                     "vldrb.s16 q0, [%[from], %q[where]]\n\t"                                                          \
                     "add %[from], %[from], %[step]\n\t" turned "vstrb.16 q0, [%[into], %q[at]]\n\t"                   \
                     "add %[into], %[into], %[slots]\n\t"                                                              \
                     "letp lr, 1b\n\t"                                                                                 \
                     "2:\n\t"                                                                                          \
                     : [from] "+r"(from), [into] "+r"(into)                                                            \
                     : [n] "r"(s->columns), [step] "r"(step), [slots] "r"(8 * s->slots), [at] "w"(at),                 \
                       [where] "w"(where), [sign] "w"(sign)                                                            \
                     : "lr", "q0", "memory")
#endif

/* One row of the image, channels last, apart by channels: to[c * plane + x * slots] = row[x * channels + c]; `fill` where the
 * row is null. */
AOT_MODEL_MVE_LOOP void aot_mve_turn(int8_t *to, const aot_mve_turned_rows *s, const int8_t *row)
{
    AOT_MODEL_BARRIER;
#if AOT_MODEL_MVE
    const uint16x8_t lanes = aot_model_lanes_u16();
    int8_t outside[16];
    vstrbq_s8(outside, vdupq_n_s8(s->fill));
    const uint16x8_t sign = vdupq_n_u16(0x80);
    if (s->channels >= 8) { /* eight channels of a column at a time; the last ones cover some once more */
        const uint16x8_t at = vmulq_n_u16(lanes, (uint16_t)s->plane);
        const int32_t step = row ? s->channels : 0;
        for (int32_t c = 0; c < s->channels; c += 8) {
            const int32_t first = c + 8 <= s->channels ? c : s->channels - 8;
            const int8_t *from = row ? row + first : outside;
            int8_t *into = to + first * s->plane;
            if (s->unsigned_rows) {
                AOT_MVE_TURN_CHANNELS("veor q0, q0, %q[sign]\n\t");
            } else {
                AOT_MVE_TURN_CHANNELS("");
            }
        }
    } else { /* eight columns of a channel */
        const uint16x8_t at = vmulq_n_u16(lanes, (uint16_t)s->slots);
        const uint16x8_t where = vmulq_n_u16(lanes, (uint16_t)(row ? s->channels : 0));
        const int32_t step = row ? 8 * s->channels : 0;
        for (int32_t c = 0; c < s->channels; c++) {
            const int8_t *from = row ? row + c : outside;
            int8_t *into = to + c * s->plane;
            if (s->unsigned_rows) {
                AOT_MVE_TURN_COLUMNS("veor q0, q0, %q[sign]\n\t");
            } else {
                AOT_MVE_TURN_COLUMNS("");
            }
        }
    }
#else
    for (int32_t x = 0; x < s->columns; x++) {
        for (int32_t c = 0; c < s->channels; c++) {
            const int8_t v = row ? row[x * s->channels + c] : s->fill;
            to[c * s->plane + x * s->slots] = (int8_t)(s->unsigned_rows ? v ^ -128 : v);
        }
    }
#endif
    AOT_MODEL_BARRIER;
}

#endif
