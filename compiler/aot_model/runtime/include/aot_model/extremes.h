/* The least and the largest of floats, by their bits. Part of aot-model.
 *
 * Read as integers with a sign, floats from 0 on are in order, and all others before them; without a sign, those below 0 are in the
 * reverse order, and all others before them. NaN is beyond the infinities. */
#ifndef AOT_MODEL_EXTREMES_H
#define AOT_MODEL_EXTREMES_H

#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"
#include "aot_model/helium.h"

#define AOT_MODEL_EXTREME(one)                                  \
    do {                                                        \
        const int32_t here = (one);                             \
        high = (here > high) ? here : high;                     \
        low = ((uint32_t)here > low) ? (uint32_t)here : low;    \
    } while (0)

/* The least and the largest one of n floats and 0, each in one place. */
AOT_MODEL_INLINE void aot_model_extremes(const float *x, int32_t n, float *least, float *most)
{
    const aot_model_any_int32_t *bits = (const aot_model_any_int32_t *)(const void *)x;
    const int32_t whole = n / 4 * 4;
    int32_t high = 0;
    uint32_t low = 0;
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) && defined(__GNUC__)
    int32x4_t highs = vdupq_n_s32(0);
    uint32x4_t lows = vdupq_n_u32(0);
    for (int32_t i = 0; i < whole; i += 4) {
        const int32x4_t four = vreinterpretq_s32_f32(aot_model_load_f32(x + i));
        highs = vmaxq_s32(highs, four);
        lows = vmaxq_u32(lows, vreinterpretq_u32_s32(four));
    }
    high = vmaxvq_s32(0, highs);
    low = vmaxvq_u32(0u, lows);
#else
    for (int32_t i = 0; i < whole; i += 4) {
        AOT_MODEL_EXTREME(bits[i]);
        AOT_MODEL_EXTREME(bits[i + 1]);
        AOT_MODEL_EXTREME(bits[i + 2]);
        AOT_MODEL_EXTREME(bits[i + 3]);
    }
#endif
    for (int32_t i = whole; i < n; i++) {
        AOT_MODEL_EXTREME(bits[i]);
    }
    low = (low > INT32_MAX) ? low : 0u; /* none is below 0 */
    memcpy(least, &low, sizeof low);
    memcpy(most, &high, sizeof high);
}

#endif
