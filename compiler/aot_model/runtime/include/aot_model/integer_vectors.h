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

/* x * by / 2^(31 + bits), ties to even; 0 < bits < 32. A tie has nothing but zeros behind the half; where the whole number
 * below it is even, one less is rounded. */
AOT_MODEL_INLINE int32x4_t aot_model_four_even(int32x4_t x, int32x4_t by, int32_t bits)
{
    const int32x4_t upper = vqdmulhq_s32(x, by);
    /* not vcmpeqq_n_s32(..., 0): with it GCC 12 ends in an internal error where x is a sum of masked products */
    const mve_pred16_t exact = vcmpeqq_s32(vshlq_n_s32(vmulq_s32(x, by), 1), vdupq_n_s32(0));
    const int32x4_t even = vbicq_s32(vdupq_n_s32(1), vshlq_s32(upper, vdupq_n_s32(-bits)));
    return vrshlq_s32(vsubq_m_s32(upper, upper, even, exact), vdupq_n_s32(-bits));
}

/* aot_model_halved_even() of four. */
AOT_MODEL_INLINE int32x4_t aot_model_four_halved_even(int32x4_t x, int32_t bits)
{
    const int32x4_t even = vbicq_s32(vdupq_n_s32(1), vshlq_s32(x, vdupq_n_s32(-bits)));
    return vrshlq_s32(vsubq_s32(x, even), vdupq_n_s32(-bits));
}

/* aot_model_reciprocal() of four. */
AOT_MODEL_INLINE int32x4_t aot_model_four_reciprocals(int32x4_t x)
{
    const int32x4_t beyond_one = vaddq_n_s32(vshlq_s32(x, vclzq_s32(x)), INT32_MIN);
    const int32x4_t half = vaddq_n_s32(vshrq_n_s32(beyond_one, 1), (int32_t)1 << 30);
    int32x4_t r = vaddq_n_s32(vqrdmulhq_n_s32(half, -1010580540), 1515870810);
    for (int32_t k = 0; k < 3; k++) {
        const int32x4_t error = vsubq_s32(vdupq_n_s32((int32_t)1 << 29), vqrdmulhq_s32(half, r));
        r = vaddq_s32(r, vshlq_n_s32(vqrdmulhq_s32(r, error), 2));
    }
    return vqaddq_s32(r, r);
}
#else
#define AOT_MODEL_INTEGER_VECTORS 0
#endif

#endif
