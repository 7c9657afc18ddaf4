/* Floats that one number divides and that are rounded to whole numbers of 8 bits. Part of aot-model.
 *
 * Cores that divide slowly multiply by the reciprocal and have the quotient in parts of 1/65536. It is off by less than 8 of
 * them: the reciprocal and the product are rounded (4 together, of quotients up to 512), parts are cut off (1), and the float
 * that the quotient would be is rounded as well (1). Where it is so close to a half that this could decide, the
 * division is done. Zero points are between -255 and 255. */
#ifndef AOT_MODEL_DIVISOR_H
#define AOT_MODEL_DIVISOR_H

#include "aot_model/saturate.h"
#include "aot_model/scalar.h"

/* Processors whose floats are functions of a library. */
#ifndef AOT_MODEL_SOFT_FLOATS
#if (defined(__arm__) && !defined(__ARM_FP)) || (defined(__riscv) && !defined(__riscv_flen)) || defined(__XTENSA_SOFT_FLOAT__)
#define AOT_MODEL_SOFT_FLOATS 1
#else
#define AOT_MODEL_SOFT_FLOATS 0
#endif
#endif

/* What is added to the parts: half of one, and what they may be off by; then so many parts at the most are beside a half. */
#define AOT_MODEL_HALF_PARTS (32768 + 8)
#define AOT_MODEL_PARTS_BESIDE 16u

/* Divisors with a reciprocal that floats hold, and that no float near 0 divided by them is far from 0. */
AOT_MODEL_INLINE bool aot_model_divides_well(float by) { return by > 1e-28f && by < 1e30f; }

#if AOT_MODEL_SOFT_FLOATS
typedef struct {
    float by;
    uint32_t reciprocal; /* of the significand, as a fraction */
    int32_t exponent;
} aot_model_divisor;

AOT_MODEL_INLINE aot_model_divisor aot_model_divisor_of(float by)
{
    const uint32_t bits = aot_model_bits_of(by);
    const uint64_t whole = (UINT64_C(1) << 55) / ((bits & 0x7FFFFFu) | 0x800000u);
    aot_model_divisor d;
    d.by = by;
    d.reciprocal = (whole > UINT32_MAX) ? UINT32_MAX : (uint32_t)whole;
    d.exponent = aot_model_divides_well(by) ? (int32_t)(bits >> 23) : -1024;
    return d;
}

/* High word of a * b, or up to 2 less. */
AOT_MODEL_INLINE uint32_t aot_model_high_part(uint32_t a, uint32_t b)
{
#if defined(__thumb__) && !defined(__thumb2__)
    return (a >> 16) * (b >> 16) + (((a >> 16) * (b & 65535u)) >> 16) + (((a & 65535u) * (b >> 16)) >> 16);
#else
    return (uint32_t)(((uint64_t)a * b) >> 32);
#endif
}

AOT_MODEL_FUNCTION int32_t aot_model_divided_rint(float x, float by, int32_t zero, int32_t low, int32_t high)
{
    return aot_model_quantise_rint(x / by, zero, low, high);
}
AOT_MODEL_FUNCTION int32_t aot_model_divided_round(float x, float by, int32_t zero, int32_t low, int32_t high)
{
    return aot_model_quantise_round(x / by, zero, low, high);
}

/* Shifts of more than 31 bits are those of quotients that are less than a part. */
#define AOT_MODEL_QUANTISE_BY(name)                                                                                    \
    AOT_MODEL_INLINE int32_t aot_model_##name##_by(float x, aot_model_divisor d, int32_t zero, int32_t low, int32_t high) \
    {                                                                                                                  \
        const uint32_t bits = aot_model_bits_of(x);                                                                    \
        const int32_t shift = 15 + d.exponent - (int32_t)((bits >> 23) & 255u);                                        \
        const uint32_t size = aot_model_high_part((bits | 0x800000u) << 8, d.reciprocal);                              \
        const uint32_t least = (shift > 31) ? 0u : size >> (shift & 31);                                               \
        const uint32_t parts = (((bits >> 31) != 0u) ? 0u - least : least) + (uint32_t)(zero * 65536 + AOT_MODEL_HALF_PARTS); \
        const int32_t whole = (int32_t)parts >> 16;                                                                    \
        if (shift < 2 || (parts & 65535u) <= AOT_MODEL_PARTS_BESIDE) { /* 16384 and more, NaN; beside a half */        \
            return aot_model_divided_##name(x, d.by, zero, low, high);                                                 \
        }                                                                                                              \
        return (whole < low) ? low : (whole > high) ? high : whole;                                                    \
    }
#elif AOT_MODEL_SATURATES_FLOATS
typedef struct {
    float by;
    float parts; /* of 1 */
    uint32_t beside; /* of what is above a half, 16 bits to the left; all of them where the reciprocal is no help */
} aot_model_divisor;

AOT_MODEL_INLINE aot_model_divisor aot_model_divisor_of(float by)
{
    const bool well = aot_model_divides_well(by);
    aot_model_divisor d;
    d.by = by;
    d.parts = well ? 65536.0f / by : 0.0f;
    d.beside = well ? (AOT_MODEL_PARTS_BESIDE << 16) | 65535u : UINT32_MAX;
    return d;
}

#define AOT_MODEL_QUANTISE_BY(name)                                                                                    \
    AOT_MODEL_INLINE int32_t aot_model_##name##_by(float x, aot_model_divisor d, int32_t zero, int32_t low, int32_t high) \
    {                                                                                                                  \
        float product = x * d.parts;                                                                                   \
        int32_t parts;                                                                                                 \
        __asm__("vcvt.s32.f32 %0, %0" : "+t"(product)); /* saturates; of a NaN: 0 */                                   \
        memcpy(&parts, &product, sizeof parts);                                                                        \
        __asm__("qadd %0, %0, %1" : "+r"(parts) : "r"(zero * 65536 + AOT_MODEL_HALF_PARTS) : "cc");                    \
        if (AOT_MODEL_SELDOM((uint32_t)parts << 16 <= d.beside)) {                                                     \
            return aot_model_quantise_##name(x / d.by, zero, low, high);                                               \
        }                                                                                                              \
        return aot_model_shifted_within(parts, 16, low, high);                                                         \
    }
#else
typedef struct {
    float by;
} aot_model_divisor;

AOT_MODEL_INLINE aot_model_divisor aot_model_divisor_of(float by)
{
    aot_model_divisor d;
    d.by = by;
    return d;
}

#define AOT_MODEL_QUANTISE_BY(name)                                                                                    \
    AOT_MODEL_INLINE int32_t aot_model_##name##_by(float x, aot_model_divisor d, int32_t zero, int32_t low, int32_t high) \
    {                                                                                                                  \
        return aot_model_quantise_##name(x / d.by, zero, low, high);                                                   \
    }
#endif

/* x / by, rounded to the nearest whole number, plus `zero`, within [low, high]; a NaN is as 0. Ties to even, and away from
 * zero. */
AOT_MODEL_QUANTISE_BY(rint)
AOT_MODEL_QUANTISE_BY(round)

/* The same by a number that is known: high and low as of aot_model_quotient(), or high alone where 1 / by is a float. */
#define AOT_MODEL_QUANTISE_QUOTIENT(name)                                                                              \
    AOT_MODEL_INLINE int32_t aot_model_##name##_quotient(float x, float by, float high, float low, int32_t zero,       \
                                                         int32_t least, int32_t most)                                  \
    {                                                                                                                  \
        if (AOT_MODEL_SOFT_FLOATS) {                                                                                   \
            return aot_model_##name##_by(x, aot_model_divisor_of(by), zero, least, most);                              \
        }                                                                                                              \
        const float quotient = (low > 0.0f) ? aot_model_quotient(x, by, high, low) : x * high;                         \
        return aot_model_quantise_##name(quotient, zero, least, most);                                                 \
    }
AOT_MODEL_QUANTISE_QUOTIENT(rint)
AOT_MODEL_QUANTISE_QUOTIENT(round)

AOT_MODEL_INLINE int32_t aot_model_sum_within(int32_t total, int32_t shift, int32_t least, int32_t most)
{
    const int32_t whole = total >> shift;
    if (least == -128 && most == 127) {
        return aot_model_saturate_shifted_int8(total, shift);
    }
    if (least == 0 && most == 255) {
        return aot_model_saturate_shifted_uint8(total, shift);
    }
    return (whole < least) ? least : (whole > most) ? most : whole;
}

/* The same, where total / 2^shift is x / by + zero + 1/2, each of them off by up to half of `beside` / 2^32, which was added:
 * what is left of the shift is less where they may be of different integers. 16 <= shift < 32. */
#define AOT_MODEL_QUANTISE_SUM(name)                                                                                   \
    AOT_MODEL_INLINE int32_t aot_model_##name##_sum(int32_t total, int32_t shift, uint32_t beside, float x, float by,  \
                                                    float high, float low, int32_t zero, int32_t least, int32_t most)  \
    {                                                                                                                  \
        if (AOT_MODEL_SELDOM((uint32_t)total << (32 - shift) < beside)) {                                              \
            return aot_model_##name##_quotient(x, by, high, low, zero, least, most);                                   \
        }                                                                                                              \
        return aot_model_sum_within(total, shift, least, most);                                                        \
    }
AOT_MODEL_QUANTISE_SUM(rint)
AOT_MODEL_QUANTISE_SUM(round)

#endif
