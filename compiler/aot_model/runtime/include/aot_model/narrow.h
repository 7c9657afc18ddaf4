/* Element types that C has no arithmetic for: 16-, 8-, 6- and 4-bit floats, 4- and 2-bit integers. Values are computed
 * as float (or int8_t, uint8_t) and converted by these functions where they are read and written.
 * Sources: IEEE 754 binary16; bfloat16; OCP OFP8 and MX formats; ONNX "float stored in 8 bits". Part of aot-model. */
#ifndef AOT_MODEL_NARROW_H
#define AOT_MODEL_NARROW_H

#include "aot_model/lanes.h"
#include "aot_model/scalar.h"
#include <string.h>

/* Of bits: a comparison of a float with itself may see it in two precisions, where registers are wider (m68k). */
AOT_MODEL_INLINE bool aot_model_bits_are_nan(uint32_t u) { return (u & 0x7fffffffu) > 0x7f800000u; }

/* The bits of a value as an integer of its width, and back. */
AOT_MODEL_INLINE uint32_t aot_model_float32_bits(float x) { return aot_model_bits_of(x); }
AOT_MODEL_INLINE float aot_model_bits_float32(uint32_t u) { return aot_model_float_of(u); }
AOT_MODEL_INLINE uint64_t aot_model_float64_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
AOT_MODEL_INLINE double aot_model_bits_float64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* The code of |x| in a float of `mantissa` bits with exponent bias `bias`, nearest, ties to even; may exceed the
 * largest finite code. x is not NaN. */
AOT_MODEL_INLINE uint32_t aot_model_round(float x, uint32_t mantissa, int32_t bias)
{
    const uint32_t u = aot_model_bits_of(x) & 0x7fffffffu;
    const int32_t stored = (int32_t)(u >> 23);
    const uint32_t fraction = (u & 0x7fffffu) | (stored != 0 ? 0x800000u : 0u);
    const int32_t exponent = (stored != 0 ? stored : 1) - 127 + bias;
    const uint32_t below = exponent < 1 ? (uint32_t)(1 - exponent) : 0u;
    const uint32_t shift = 23u - mantissa + (below > 24u ? 24u : below);
    uint32_t code;
    uint32_t rest;
    if (stored == 255) {
        return 0x7fffffffu;
    }
    if (shift == 0u) {
        return u;
    }
    if (shift > 25u) {
        return 0u;
    }
    code = fraction >> shift;
    rest = fraction & ((1u << shift) - 1u);
    code += (rest > (1u << (shift - 1u)) || (rest == (1u << (shift - 1u)) && (code & 1u) != 0u)) ? 1u : 0u;
    return exponent < 1 ? code : code + ((uint32_t)(exponent - 1) << mantissa);
}

/* The value of a finite code without its sign. `least` is the smallest subnormal. */
AOT_MODEL_INLINE float aot_model_widen(uint32_t code, uint32_t mantissa, int32_t bias, float least)
{
    if ((code >> mantissa) == 0u) {
        return (float)code * least;
    }
    return aot_model_float_of((code << (23u - mantissa)) + ((uint32_t)(127 - bias) << 23));
}

#ifdef AOT_MODEL_FLOAT_LANES
/* Normal numbers are rounded as integers, smaller ones by the sum with 1/2, whose last place is the least number's. */
AOT_MODEL_INLINE uint16_t aot_model_float32_to_float16(float x)
{
    const uint32_t u = aot_model_bits_of(x);
    const uint32_t size = u & 0x7fffffffu;
    const uint32_t small = aot_model_mask_if(size < 0x38800000u); /* 2^-14 */
    const uint32_t nan = aot_model_mask_if(size > 0x7f800000u);
    const uint32_t rounded = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
    const uint32_t normal = (rounded < 0x7c00u) ? rounded : 0x7c00u;
    const uint32_t subnormal = aot_model_bits_of(aot_model_float_of(size & small) + 0.5f) - 0x3f000000u;
    const uint32_t code = (subnormal & small) | (normal & ~(small | nan)) | (nan & 0x7e00u);
    return (uint16_t)(((u >> 16) & 0x8000u) | code);
}
/* Those below the normal ones are what is left of 2^-14 and the fraction. */
AOT_MODEL_INLINE float aot_model_float16_to_float32(uint16_t h)
{
    const uint32_t wide = ((uint32_t)h & 0x7fffu) << 13;
    const uint32_t small = aot_model_mask_if(wide < 0x00800000u);
    const uint32_t special = aot_model_mask_if(wide >= 0x0f800000u);
    const uint32_t normal = wide + 0x38000000u + (special & 0x38000000u);
    const uint32_t subnormal = aot_model_bits_of(aot_model_float_of(wide + 0x38800000u) - 6.103515625e-05f);
    return aot_model_float_of((normal & ~small) | (subnormal & small) | (((uint32_t)h & 0x8000u) << 16));
}
#else
AOT_MODEL_INLINE uint16_t aot_model_float32_to_float16(float x)
{
    const uint32_t u = aot_model_bits_of(x);
    const uint32_t sign = (u >> 16) & 0x8000u;
    uint32_t code = 0x7e00u;
    if (!aot_model_bits_are_nan(u)) {
        code = aot_model_round(x, 10u, 15);
        code = code > 0x7c00u ? 0x7c00u : code;
    }
    return (uint16_t)(sign | code);
}
AOT_MODEL_INLINE float aot_model_float16_to_float32(uint16_t h)
{
    const uint32_t code = h & 0x7fffu;
    const float x = code < 0x7c00u ? aot_model_widen(code, 10u, 15, 5.9604644775390625e-08f)
                                   : aot_model_float_of(0x7f800000u | ((code & 0x3ffu) << 13));
    return (h & 0x8000u) != 0u ? -x : x;
}
#endif
AOT_MODEL_INLINE uint16_t aot_model_float32_to_bfloat16(float x)
{
    const uint32_t u = aot_model_bits_of(x);
    return (uint16_t)(aot_model_bits_are_nan(u) ? ((u >> 16) & 0x8000u) | 0x7fc0u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
AOT_MODEL_INLINE float aot_model_bfloat16_to_float32(uint16_t h)
{
    return aot_model_float_of((uint32_t)h << 16);
}

/* Small floats: sign bit, largest finite code, codes of overflow and NaN. `unsigned_zero`: the code of -0 is the NaN. */
#define AOT_MODEL_SMALL(name, mantissa, bias, sign, most, over, nan, unsigned_zero, least)                             \
    AOT_MODEL_INLINE uint8_t aot_model_small_##name(float x, bool saturate)                                            \
    {                                                                                                                  \
        const uint32_t u = aot_model_bits_of(x);                                                                       \
        const uint32_t minus = (u >> 31) != 0u ? (sign) : 0u;                                                          \
        uint32_t code;                                                                                                 \
        if (aot_model_bits_are_nan(u)) {                                                                               \
            return (uint8_t)((unsigned_zero) ? (nan) : ((nan) | minus));                                               \
        }                                                                                                              \
        code = aot_model_round(x, mantissa, bias);                                                                     \
        if (code > (most)) {                                                                                           \
            if (saturate) {                                                                                            \
                code = (most);                                                                                         \
            } else {                                                                                                   \
                return (uint8_t)((unsigned_zero) ? (nan) : ((over) | minus));                                          \
            }                                                                                                          \
        }                                                                                                              \
        return (uint8_t)(((unsigned_zero) && code == 0u) ? 0u : (code | minus));                                       \
    }                                                                                                                  \
    AOT_MODEL_INLINE uint8_t aot_model_float32_to_##name(float x) { return aot_model_small_##name(x, true); }          \
    AOT_MODEL_INLINE uint8_t aot_model_float32_to_##name##_unbounded(float x) { return aot_model_small_##name(x, false); } \
    AOT_MODEL_INLINE float aot_model_##name##_to_float32(uint8_t h)                                                    \
    {                                                                                                                  \
        const uint32_t code = h & ((sign)-1u);                                                                         \
        const bool minus = (h & (sign)) != 0u;                                                                         \
        float x;                                                                                                       \
        if ((unsigned_zero) && h == (nan)) {                                                                           \
            return NAN;                                                                                                \
        }                                                                                                              \
        x = code <= (most) ? aot_model_widen(code, mantissa, bias, least) : (code == (over) && (over) != (nan)) ? INFINITY : NAN; \
        return minus ? -x : x;                                                                                         \
    }
AOT_MODEL_SMALL(float8_e4m3fn, 3u, 7, 0x80u, 0x7eu, 0x7fu, 0x7fu, false, 0.001953125f)
AOT_MODEL_SMALL(float8_e4m3fnuz, 3u, 8, 0x80u, 0x7fu, 0x80u, 0x80u, true, 0.0009765625f)
AOT_MODEL_SMALL(float8_e5m2, 2u, 15, 0x80u, 0x7bu, 0x7cu, 0x7eu, false, 1.52587890625e-05f)
AOT_MODEL_SMALL(float8_e5m2fnuz, 2u, 16, 0x80u, 0x7fu, 0x80u, 0x80u, true, 7.62939453125e-06f)
AOT_MODEL_SMALL(float6_e2m3fn, 3u, 1, 0x20u, 0x1fu, 0x1fu, 0x1fu, false, 0.125f)
AOT_MODEL_SMALL(float6_e3m2fn, 2u, 3, 0x20u, 0x1fu, 0x1fu, 0x1fu, false, 0.0625f)
AOT_MODEL_SMALL(float4_e2m1fn, 1u, 1, 0x8u, 0x7u, 0x7u, 0x8u, false, 0.5f)

/* float8_e8m0: a power of two; 255 is NaN. */
AOT_MODEL_INLINE uint8_t aot_model_float32_to_float8_e8m0fnu_up(float x)
{
    const uint32_t u = aot_model_bits_of(x) & 0x7fffffffu;
    const uint32_t code = (u >> 23) + ((u & 0x7fffffu) != 0u ? 1u : 0u);
    return (uint8_t)(aot_model_bits_are_nan(u) ? 255u : code > 254u ? 254u : code);
}
AOT_MODEL_INLINE uint8_t aot_model_float32_to_float8_e8m0fnu(float x)
{
    const uint32_t u = aot_model_bits_of(x) & 0x7fffffffu;
    const uint32_t code = (u >> 23) + (u & 0x7fffffu) / 0x400000u;
    return (uint8_t)(aot_model_bits_are_nan(u) ? 255u : code > 254u ? 254u : code);
}
AOT_MODEL_INLINE float aot_model_float8_e8m0fnu_to_float32(uint8_t h)
{
    return h == 255u ? NAN : h == 0u ? 5.877471754111438e-39f : aot_model_float_of((uint32_t)h << 23);
}

/* Small integers: one in a byte, sign-extended. Values wrap. */
AOT_MODEL_INLINE int8_t aot_model_int8_to_int4(int8_t x) { return (int8_t)((int32_t)(((uint32_t)x & 15u) ^ 8u) - 8); }
AOT_MODEL_INLINE int8_t aot_model_int8_to_int2(int8_t x) { return (int8_t)((int32_t)(((uint32_t)x & 3u) ^ 2u) - 2); }
AOT_MODEL_INLINE uint8_t aot_model_uint8_to_uint4(uint8_t x) { return (uint8_t)(x & 15u); }
AOT_MODEL_INLINE uint8_t aot_model_uint8_to_uint2(uint8_t x) { return (uint8_t)(x & 3u); }
AOT_MODEL_INLINE int8_t aot_model_int4_to_int8(int8_t x) { return x; }
AOT_MODEL_INLINE int8_t aot_model_int2_to_int8(int8_t x) { return x; }
AOT_MODEL_INLINE uint8_t aot_model_uint4_to_uint8(uint8_t x) { return x; }
AOT_MODEL_INLINE uint8_t aot_model_uint2_to_uint8(uint8_t x) { return x; }

/* Constants of 4 bits: two in a byte, the first in the low half. */
AOT_MODEL_INLINE uint8_t aot_model_uint4_at(const uint8_t *x, int32_t i)
{
    return (uint8_t)(((uint32_t)x[i / 2] >> (((uint32_t)i & 1u) * 4u)) & 15u);
}
AOT_MODEL_INLINE int8_t aot_model_int4_at(const uint8_t *x, int32_t i)
{
    return (int8_t)((int32_t)((uint32_t)aot_model_uint4_at(x, i) ^ 8u) - 8);
}
/* All of them, a byte each. */
AOT_MODEL_INLINE void aot_model_unpack_uint4(const uint8_t *x, uint8_t *y, int32_t count)
{
    for (int32_t i = 0; i < count / 2; i++) {
        y[2 * i] = (uint8_t)(x[i] & 15u);
        y[2 * i + 1] = (uint8_t)(x[i] >> 4);
    }
    if (count % 2 != 0) {
        y[count - 1] = (uint8_t)(x[count / 2] & 15u);
    }
}
AOT_MODEL_INLINE void aot_model_unpack_int4(const uint8_t *x, int8_t *y, int32_t count)
{
    for (int32_t i = 0; i < count / 2; i++) {
        y[2 * i] = (int8_t)((int32_t)((x[i] & 15u) ^ 8u) - 8);
        y[2 * i + 1] = (int8_t)((int32_t)(((uint32_t)x[i] >> 4) ^ 8u) - 8);
    }
    if (count % 2 != 0) {
        y[count - 1] = aot_model_int4_at(x, count - 1);
    }
}
/* Words of four integers of 4 bits, x, among numbers of one to four bytes. For each run a section: how many numbers, then how
   many words of x, how many such runs follow each other; in two bits for each number how many bytes of a word it lacks. */
AOT_MODEL_FUNCTION void aot_model_unpack_words(const uint8_t *x, const uint8_t *numbers, const uint8_t *section, const uint8_t *end, int32_t *y)
{
    while (section != end) {
        const uint32_t count = section[0], packed = section[1];
        const uint8_t *const missing = section + 3;
        for (uint32_t turn = section[2]; turn != 0u; --turn) {
            for (uint32_t k = 0u; k < count; k++) {
                const uint32_t bytes = ((uint32_t)missing[k / 4u] >> (k % 4u * 2u)) & 3u;
                uint32_t number;
                memcpy(&number, numbers, 4);
                numbers += 4u - bytes;
                *y++ = (int32_t)(number << (8u * bytes)) >> (8u * bytes);
            }
            for (uint32_t k = 0u; k < packed; k++, x += 2) {
                const uint32_t both = (uint32_t)x[0] | (uint32_t)x[1] << 16;
                const uint32_t four = (both | both << 4) & 0x0f0f0f0fu;
                *y++ = (int32_t)(((four ^ 0x08080808u) + 0x78787878u) ^ 0x80808080u); /* each with the sign of its bit 3 */
            }
        }
        section = missing + (count + 3u) / 4u;
    }
}

#endif
