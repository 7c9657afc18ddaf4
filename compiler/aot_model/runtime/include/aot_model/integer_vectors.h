/* Loops over integers in Helium: whether they are compiled, and what has no intrinsic. Part of aot-model. */
#ifndef AOT_MODEL_INTEGER_VECTORS_H
#define AOT_MODEL_INTEGER_VECTORS_H

#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/lanes_mve.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__)
#include <arm_mve.h>
#define AOT_MODEL_INTEGER_VECTORS 1

/* x / 2^bits, ties away from zero; 0 < bits < 32. */
AOT_MODEL_INLINE int32x4_t aot_model_four_shifted(int32x4_t x, int32_t bits)
{
    return vrshlq_s32(vqaddq_s32(x, vshrq_n_s32(x, 31)), vdupq_n_s32(-bits));
}

/* The same for bits that may differ, and may be 0. */
AOT_MODEL_INLINE int32x4_t aot_model_four_rounded(int32x4_t x, int32x4_t bits)
{
    const int32x4_t right = vnegq_s32(bits);
    return vrshlq_s32(vqaddq_s32(x, vandq_s32(vshrq_n_s32(x, 31), vshrq_n_s32(right, 31))), right);
}
#else
#define AOT_MODEL_INTEGER_VECTORS 0
#endif

#endif
