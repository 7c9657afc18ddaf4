/* The numbers of a Helium vector's lanes. Part of aot-model.
 *
 * They are loaded, and the intrinsics that count (vidupq, vddupq) are not used: GCC 12 takes the register that such an
 * instruction counts up for the constant that it began with, and multiplied by 0 instead of 4 (-O1). */
#ifndef AOT_MODEL_LANES_MVE_H
#define AOT_MODEL_LANES_MVE_H

#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/helium.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__)
#include <arm_mve.h>

/* 0, 1, 2, 3. */
AOT_MODEL_INLINE uint32x4_t aot_model_lanes_u32(void)
{
    static const uint32_t lanes[4] = {0u, 1u, 2u, 3u};
    return vldrwq_u32(lanes);
}

/* 0, 1, 2, 3, 4, 5, 6, 7. */
AOT_MODEL_INLINE uint16x8_t aot_model_lanes_u16(void)
{
    static const uint16_t lanes[8] = {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u};
    return vldrhq_u16(lanes);
}
#endif

#endif
