/* The instructions of kernels/int8/vectors.py on AArch64 with dot products (Armv8.2 +dotprod). Part of aot-model.
 *
 * SDOT takes int8 inputs and int8 weights in fours and adds to int32; uint8 inputs become int8 on their way into the tile. */
#ifndef AOT_MODEL_INT8_SDOT_H
#define AOT_MODEL_INT8_SDOT_H

#if !defined(__ARM_FEATURE_DOTPROD) || !defined(__aarch64__)
#error "compile for AArch64 with -march=armv8.2-a+dotprod, or pass --target host,dot=none"
#endif

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"
#include "aot_model/int8_tile.h"
#include "aot_model/scalar.h"

typedef int32x4_t sdot_acc;
typedef int8x16_t sdot_weights;
typedef int8x16_t sdot_inputs;
typedef int8x16_t sdot_bytes;

AOT_MODEL_INLINE sdot_acc sdot_load(const int32_t *p) { return vld1q_s32(p); }

/* The inputs of one step, four bytes, for all channels. */
AOT_MODEL_INLINE sdot_inputs sdot_splat(const void *p)
{
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return vreinterpretq_s8_s32(vdupq_n_s32(bytes));
}

AOT_MODEL_INLINE sdot_weights sdot_weights_int8(const int8_t *p) { return vld1q_s8(p); }

AOT_MODEL_INLINE sdot_acc sdot_dot(sdot_acc acc, sdot_weights w, sdot_inputs x) { return vdotq_s32(acc, w, x); }

/* High words of acc * m. */
AOT_MODEL_INLINE int32x4_t sdot_scale(int32x4_t acc, const int32_t *m)
{
    const int32x4_t factors = vld1q_s32(m);
    const int64x2_t low = vmull_s32(vget_low_s32(acc), vget_low_s32(factors));
    const int64x2_t high = vmull_high_s32(acc, factors);
    return vuzp2q_s32(vreinterpretq_s32_s64(low), vreinterpretq_s32_s64(high));
}

/* h = (acc * m + 2^30) >> 31, then h >> shift with ties away from zero; |acc| < 2^30. */
AOT_MODEL_INLINE int32x4_t sdot_round(int32x4_t acc, const int32_t *m, const int32_t *offset, const int32_t *shift)
{
    const int32x4_t h = vqrdmulhq_s32(acc, vld1q_s32(m));
    const int32x4_t sum = vsraq_n_s32(vaddq_s32(h, vld1q_s32(offset)), h, 31);
    return vshlq_s32(sum, vnegq_s32(vld1q_s32(shift)));
}

AOT_MODEL_INLINE int32x4_t sdot_add_shift(int32x4_t v, const int32_t *offset, int32_t shift)
{
    return vshlq_s32(vaddq_s32(v, vld1q_s32(offset)), vdupq_n_s32(-shift));
}

/* Sixteen int32 to int16, saturated. */
AOT_MODEL_INLINE int16x8x2_t sdot_pack16(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d)
{
    int16x8x2_t v;
    v.val[0] = vqmovn_high_s32(vqmovn_s32(a), b);
    v.val[1] = vqmovn_high_s32(vqmovn_s32(c), d);
    return v;
}

AOT_MODEL_INLINE int16x8x2_t sdot_add_16(int16x8x2_t v, const void *offset)
{
    int16_t words[16];
    memcpy(words, offset, sizeof words);
    v.val[0] = vqaddq_s16(v.val[0], vld1q_s16(words));
    v.val[1] = vqaddq_s16(v.val[1], vld1q_s16(words + 8));
    return v;
}

/* int16 to bytes within [low, high]. */
AOT_MODEL_INLINE int8x16_t sdot_bytes16_int8(int16x8x2_t v, int32_t low, int32_t high)
{
    const int8x16_t bytes = vqmovn_high_s16(vqmovn_s16(v.val[0]), v.val[1]);
    return vminq_s8(vmaxq_s8(bytes, vdupq_n_s8((int8_t)low)), vdupq_n_s8((int8_t)high));
}

AOT_MODEL_INLINE int8x16_t sdot_bytes16_uint8(int16x8x2_t v, int32_t low, int32_t high)
{
    const uint8x16_t bytes = vqmovun_high_s16(vqmovun_s16(v.val[0]), v.val[1]);
    return vreinterpretq_s8_u8(vminq_u8(vmaxq_u8(bytes, vdupq_n_u8((uint8_t)low)), vdupq_n_u8((uint8_t)high)));
}

/* The first `count` bytes of v. */
AOT_MODEL_INLINE void sdot_store(void *p, int8x16_t v, int32_t count)
{
    int8_t bytes[16];
    vst1q_s8(bytes, v);
    memcpy(p, bytes, (size_t)count);
}

/* Sixteen accumulators in the order of the channels. */
AOT_MODEL_INLINE void sdot_sums16(int32_t *to, sdot_acc a, sdot_acc b, sdot_acc c, sdot_acc d)
{
    vst1q_s32(to, a);
    vst1q_s32(to + 4, b);
    vst1q_s32(to + 8, c);
    vst1q_s32(to + 12, d);
}

AOT_MODEL_INLINE int8_t *sdot_fill(int8_t *to, int8_t value, int32_t count)
{
    memset(to, value, (size_t)count);
    return to + count;
}

AOT_MODEL_INLINE void sdot_widen_int8(int8_t *to, const int8_t *from, int32_t count) { memcpy(to, from, (size_t)count); }

/* uint8 to int8 by taking off 128. */
AOT_MODEL_FUNCTION void sdot_widen_uint8(int8_t *to, const uint8_t *from, int32_t count)
{
    int32_t i = 0;
    for (; i < count - 15; i += 16) {
        vst1q_s8(to + i, vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from + i), vdupq_n_u8(0x80))));
    }
    for (; i < count; i++) {
        to[i] = (int8_t)(from[i] - 128);
    }
}

AOT_MODEL_TILE(sdot, int8, int8_t, 0)
AOT_MODEL_TILE(sdot, uint8, int8_t, -128)

#endif
