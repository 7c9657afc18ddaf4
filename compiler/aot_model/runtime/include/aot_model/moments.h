/* The sum of bytes, and that of their squares. Part of aot-model. */
#ifndef AOT_MODEL_MOMENTS_H
#define AOT_MODEL_MOMENTS_H

#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/helium.h"
#include "aot_model/int8_dsp.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__)
#define AOT_MODEL_WHOLE_MOMENTS(name, suffix, extend)                                                                  \
    const int32_t whole = n / 16 * 16;                                                                                 \
    for (; i < whole; i += 16) {                                                                                       \
        const name##x16_t v = vldrbq_##suffix(x + i);                                                                  \
        s = vaddvaq_##suffix(s, v);                                                                                    \
        q = vmladavaq_##suffix(q, v, v);                                                                               \
    }
#elif AOT_MODEL_DSP
#define AOT_MODEL_WHOLE_MOMENTS(name, suffix, extend)                                                                  \
    const int32_t whole = n / 4 * 4;                                                                                   \
    for (; i < whole; i += 4) {                                                                                        \
        const int32_t four = (int32_t)dsp_bytes_at(x + i);                                                             \
        const int32_t even = dsp_##extend##16(four), odd = dsp_##extend##16_ror8(four);                                \
        s = dsp_smlad(odd, 0x10001, dsp_smlad(even, 0x10001, s));                                                      \
        q = dsp_smlad(odd, odd, dsp_smlad(even, even, q));                                                             \
    }
#else
#define AOT_MODEL_WHOLE_MOMENTS(name, suffix, extend)
#endif

/* Of n bytes; the sums fit. */
#define AOT_MODEL_MOMENTS(name, word, suffix, extend)                                                                  \
    AOT_MODEL_INLINE void aot_model_moments_##name##_t(const name##_t *x, int32_t n, int32_t *sum, int32_t *squares)   \
    {                                                                                                                  \
        word s = 0, q = 0;                                                                                             \
        int32_t i = 0;                                                                                                 \
        AOT_MODEL_WHOLE_MOMENTS(name, suffix, extend)                                                                  \
        for (; i < n; i++) {                                                                                           \
            s += x[i];                                                                                                 \
            q += (word)(x[i] * x[i]);                                                                                  \
        }                                                                                                              \
        *sum = (int32_t)s;                                                                                             \
        *squares = (int32_t)q;                                                                                         \
    }
AOT_MODEL_MOMENTS(int8, int32_t, s8, sxtb)
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__)
AOT_MODEL_MOMENTS(uint8, uint32_t, u8, uxtb)
#else
AOT_MODEL_MOMENTS(uint8, int32_t, u8, uxtb)
#endif

#endif
