/* Rows of an image as the depthwise kernels of Helium take them, and the loop around that of 3x3. Part of aot-model. */
#ifndef AOT_MODEL_INT8_MVE_DEPTHWISE_H
#define AOT_MODEL_INT8_MVE_DEPTHWISE_H

#include "aot_model/int8_mve.h"

/* to[2 i] = a[i], to[2 i + 1] = b[i] for i < n; a row outside of the image is null and gives `fill`. */
AOT_MODEL_MVE_LOOP void aot_mve_interleave(int8_t *to, const int8_t *a, const int8_t *b, int8_t fill, int32_t n)
{
    AOT_MODEL_BARRIER;
#if AOT_MODEL_MVE
    int8_t outside[16];
    vstrbq_s8(outside, vdupq_n_s8(fill));
    const int8_t *row_a = a ? a : outside;
    const int8_t *row_b = b ? b : outside;
    const int32_t mask_a = a ? -1 : 0;
    const int32_t mask_b = b ? -1 : 0;
    if (n >= 16) {
        for (int32_t i = 0; i < n; i += 16) {
            const int32_t at = i + 16 <= n ? i : n - 16;
            int8x16x2_t pair;
            pair.val[0] = vldrbq_s8(row_a + (at & mask_a));
            pair.val[1] = vldrbq_s8(row_b + (at & mask_b));
            vst2q_s8(to + 2 * at, pair);
        }
        AOT_MODEL_BARRIER;
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        to[2 * i] = row_a[i & mask_a];
        to[2 * i + 1] = row_b[i & mask_b];
    }
#else
    for (int32_t i = 0; i < n; i++) {
        to[2 * i] = a ? a[i] : fill;
        to[2 * i + 1] = b ? b[i] : fill;
    }
#endif
    AOT_MODEL_BARRIER;
}

typedef struct {
    int32_t batch, in_h, in_row, out_h, out_row; /* rows, and bytes of one */
    int32_t pad_top;
    int32_t pair;  /* bytes from one row pair to the other */
    int32_t left;  /* bytes of the left border in a row pair */
    int32_t used;  /* bytes of an input row that are read */
    int32_t total; /* bytes of both row pairs */
    int8_t fill;   /* input zero point */
    int8_t unsigned_rows; /* of the image: they become int8 */
} aot_mve_depthwise_shape;

typedef void aot_mve_depthwise_kernel(const int8_t *x, const int8_t *w, const int32_t *k, const int8_t *right,
                                      const uint16_t *gather, const uint16_t *scatter, int32_t rows, int8_t *y);

/* Fills row pair j, input rows 2 j - pad_top and the next one, in the place of j - 2. */
AOT_MODEL_MVE_LOOP void aot_mve_depthwise3x3_step(const aot_mve_depthwise_shape *s, int32_t j, const int8_t *image, int8_t *pairs)
{
    AOT_MODEL_BARRIER;
    const int32_t a = 2 * j - s->pad_top;
    int8_t *to = pairs + j % 2 * s->pair + s->left;
    aot_mve_interleave(to, a >= 0 && a < s->in_h ? image + a * s->in_row : NULL,
                       a + 1 >= 0 && a + 1 < s->in_h ? image + (a + 1) * s->in_row : NULL,
                       (int8_t)(s->unsigned_rows ? s->fill ^ -128 : s->fill), s->used);
    if (s->unsigned_rows) {
        aot_mve_turn_signs(to, 2 * s->used);
    }
    AOT_MODEL_BARRIER;
}

/* The whole layer. */
AOT_MODEL_MVE_LOOP void aot_mve_depthwise3x3(const aot_mve_depthwise_shape *s, aot_mve_depthwise_kernel *rows, int8_t *pairs,
                                 const int8_t *x, const int8_t *w, const int32_t *k, const int8_t *right,
                                 const uint16_t *offsets, int8_t *y)
{
    AOT_MODEL_BARRIER;
    for (int32_t n = 0; n < s->batch; n++, x += s->in_h * s->in_row, y += s->out_h * s->out_row) {
        aot_mve_fill(pairs, s->fill, s->total);
        aot_mve_depthwise3x3_step(s, 0, x, pairs);
        for (int32_t j = 0; 2 * j < s->out_h; j++) {
            aot_mve_depthwise3x3_step(s, j + 1, x, pairs);
            rows(pairs, w + 4, k, right, offsets + j % 2 * 8, offsets + 16, s->out_h - 2 * j,
                 y + 2 * j * s->out_row);
        }
    }
    AOT_MODEL_BARRIER;
}

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
