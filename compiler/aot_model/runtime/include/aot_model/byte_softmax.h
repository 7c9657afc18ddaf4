/* Softmax of rows of bytes, rounded once (ops/softmax_rows.py). Part of aot-model.
 *
 * Of a row of n bytes x, with a table of the exponentials of differences to the largest one, the first of which is that of 0:
 *
 *     y = (offset + (table[largest - x] * f >> 32)) >> shift, saturated        f = unit / sum of table[largest - x]
 *
 * y may be x. The sum fits its type, and f and the results 32 bits. */
#ifndef AOT_MODEL_BYTE_SOFTMAX_H
#define AOT_MODEL_BYTE_SOFTMAX_H

#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/helium.h"
#include "aot_model/int8_dsp.h"
#include "aot_model/saturate.h"
#include "aot_model/scalar.h"

/* Rows whose sum fits 32 bits divide floats, which is fast. Longer ones divide integers: for their many elements that is little, and
 * a float would round what most of them are multiplied by. */
typedef float aot_model_unit_uint32_t;
typedef uint64_t aot_model_unit_uint64_t;
AOT_MODEL_INLINE int32_t aot_model_quotient_uint32_t(float unit, uint32_t sum) { return (int32_t)(unit / (float)sum + 0.5f); }
AOT_MODEL_INLINE int32_t aot_model_quotient_uint64_t(uint64_t unit, uint64_t sum) { return (int32_t)(unit / sum); }

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__)

#define AOT_MODEL_LARGEST_BYTE(type, suffix, least)                                                                    \
    AOT_MODEL_INLINE type aot_model_largest_##type(const type *x, int32_t n)                                           \
    {                                                                                                                  \
        type most = (least);                                                                                           \
        for (int32_t i = 0; i < n; i += 16) {                                                                          \
            const mve_pred16_t p = vctp8q((uint32_t)(n - i));                                                          \
            most = vmaxvq_p_##suffix(most, vldrbq_z_##suffix(x + i, p), p);                                            \
        }                                                                                                              \
        return most;                                                                                                   \
    }
AOT_MODEL_LARGEST_BYTE(int8_t, s8, INT8_MIN)
AOT_MODEL_LARGEST_BYTE(uint8_t, u8, 0)

/* The exponentials of four elements, 0 where there is none. */
AOT_MODEL_INLINE uint32x4_t aot_model_exponentials(const uint32_t *table, int32x4_t x, int32_t most, mve_pred16_t p)
{
    const uint32x4_t places = vreinterpretq_u32_s32(vsubq_s32(vdupq_n_s32(most), x));
    return vldrwq_gather_shifted_offset_z_u32(aot_model_read_uint32_t(table), places, p);
}
AOT_MODEL_INLINE uint32_t aot_model_sum_uint32_t(uint32_t sum, uint32x4_t v) { return vaddvaq_u32(sum, v); }
AOT_MODEL_INLINE uint64_t aot_model_sum_uint64_t(uint64_t sum, uint32x4_t v) { return vaddlvaq_u32(sum, v); }

#define AOT_MODEL_BYTE_SOFTMAX(type, word, load, low, high, store)                                                     \
    AOT_MODEL_INLINE void aot_model_softmax_##type##_##word(const type *x, type *y, int32_t n,                         \
        const uint32_t *table, aot_model_unit_##word unit, int32_t offset, int32_t shift)                              \
    {                                                                                                                  \
        const int32_t most = aot_model_largest_##type(x, n);                                                           \
        word sum = 0;                                                                                                  \
        for (int32_t i = 0; i < n; i += 4) {                                                                           \
            const mve_pred16_t p = vctp32q((uint32_t)(n - i));                                                         \
            sum = aot_model_sum_##word(sum, aot_model_exponentials(table, load(x + i, p), most, p));                   \
        }                                                                                                              \
        const int32x4_t f = vdupq_n_s32(aot_model_quotient_##word(unit, sum));                                         \
        const int32x4_t least = vdupq_n_s32(low), greatest = vdupq_n_s32(high);                                        \
        for (int32_t i = 0; i < n; i += 4) {                                                                           \
            const mve_pred16_t p = vctp32q((uint32_t)(n - i));                                                         \
            const uint32x4_t e = aot_model_exponentials(table, load(x + i, p), most, p);                               \
            const int32x4_t share = vaddq_n_s32(vmulhq_s32(vreinterpretq_s32_u32(e), f), offset);                      \
            const int32x4_t r = vshlq_r_s32(share, -shift);                                                            \
            store(y + i, vminq_s32(vmaxq_s32(r, least), greatest), p);                                                 \
        }                                                                                                              \
    }
#define AOT_MODEL_LOAD_INT8(p, mask) vldrbq_z_s32(aot_model_read_int8_t(p), mask)
#define AOT_MODEL_LOAD_UINT8(p, mask) vreinterpretq_s32_u32(vldrbq_z_u32(aot_model_read_uint8_t(p), mask))
#define AOT_MODEL_STORE_INT8(p, v, mask) vstrbq_p_s32(aot_model_written_int8_t(p), v, mask)
#define AOT_MODEL_STORE_UINT8(p, v, mask) vstrbq_p_u32(aot_model_written_uint8_t(p), vreinterpretq_u32_s32(v), mask)
AOT_MODEL_BYTE_SOFTMAX(int8_t, uint32_t, AOT_MODEL_LOAD_INT8, -128, 127, AOT_MODEL_STORE_INT8)
AOT_MODEL_BYTE_SOFTMAX(int8_t, uint64_t, AOT_MODEL_LOAD_INT8, -128, 127, AOT_MODEL_STORE_INT8)
AOT_MODEL_BYTE_SOFTMAX(uint8_t, uint32_t, AOT_MODEL_LOAD_UINT8, 0, 255, AOT_MODEL_STORE_UINT8)
AOT_MODEL_BYTE_SOFTMAX(uint8_t, uint64_t, AOT_MODEL_LOAD_UINT8, 0, 255, AOT_MODEL_STORE_UINT8)

#else

#if AOT_MODEL_DSP
#define AOT_MODEL_LARGEST_OF_FOUR(type, name)                                                                          \
    if (n >= 4) {                                                                                                      \
        uint32_t four = dsp_bytes_at(x);                                                                               \
        for (i = 4; i + 4 <= n; i += 4) {                                                                              \
            four = dsp_max_##name(four, dsp_bytes_at(x + i));                                                          \
        }                                                                                                              \
        four = dsp_max_##name(four, four >> 16 | four << 16);                                                          \
        most = (type)(dsp_max_##name(four, four >> 8 | four << 24) & 0xffu);                                           \
    }
#else
#define AOT_MODEL_LARGEST_OF_FOUR(type, name)
#endif

#define AOT_MODEL_LARGEST_BYTE(type, name)                                                                             \
    AOT_MODEL_INLINE int32_t aot_model_largest_##type(const type *x, int32_t n)                                        \
    {                                                                                                                  \
        type most = x[0];                                                                                              \
        int32_t i = 1;                                                                                                 \
        AOT_MODEL_LARGEST_OF_FOUR(type, name)                                                                          \
        for (; i < n; i++) {                                                                                           \
            most = (x[i] > most) ? x[i] : most;                                                                        \
        }                                                                                                              \
        return most;                                                                                                   \
    }
AOT_MODEL_LARGEST_BYTE(int8_t, int8)
AOT_MODEL_LARGEST_BYTE(uint8_t, uint8)

#define AOT_MODEL_SHARE(k, name)                                                                                       \
    y[(k)] = (name##_t)aot_model_saturate_shifted_##name(aot_model_add_high(offset, (int32_t)table[most - x[(k)]], f), shift)

/* Four turns at a time, of which each takes as long as coming round. */
#define AOT_MODEL_BYTE_SOFTMAX(name, word)                                                                             \
    AOT_MODEL_INLINE void aot_model_softmax_##name##_t_##word(const name##_t *x, name##_t *y, int32_t n,               \
        const uint32_t *table, aot_model_unit_##word unit, int32_t offset, int32_t shift)                              \
    {                                                                                                                  \
        const int32_t most = aot_model_largest_##name##_t(x, n), whole = n / 4 * 4;                                    \
        word sum = 0;                                                                                                  \
        for (int32_t i = 0; i < whole; i += 4) {                                                                       \
            sum += table[most - x[i]];                                                                                 \
            sum += table[most - x[i + 1]];                                                                             \
            sum += table[most - x[i + 2]];                                                                             \
            sum += table[most - x[i + 3]];                                                                             \
        }                                                                                                              \
        for (int32_t i = whole; i < n; i++) {                                                                          \
            sum += table[most - x[i]];                                                                                 \
        }                                                                                                              \
        const int32_t f = aot_model_quotient_##word(unit, sum);                                                        \
        for (int32_t i = 0; i < whole; i += 4) {                                                                       \
            AOT_MODEL_SHARE(i, name);                                                                                  \
            AOT_MODEL_SHARE(i + 1, name);                                                                              \
            AOT_MODEL_SHARE(i + 2, name);                                                                              \
            AOT_MODEL_SHARE(i + 3, name);                                                                              \
        }                                                                                                              \
        for (int32_t i = whole; i < n; i++) {                                                                          \
            AOT_MODEL_SHARE(i, name);                                                                                  \
        }                                                                                                              \
    }
AOT_MODEL_BYTE_SOFTMAX(int8, uint32_t)
AOT_MODEL_BYTE_SOFTMAX(int8, uint64_t)
AOT_MODEL_BYTE_SOFTMAX(uint8, uint32_t)
AOT_MODEL_BYTE_SOFTMAX(uint8, uint64_t)
#endif

#endif
