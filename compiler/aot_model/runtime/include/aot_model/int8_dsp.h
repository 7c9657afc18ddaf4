/* The instructions of kernels/int8/dsp.py: the DSP extension of Cortex-M4, M7, M33 ..., and what they compute elsewhere.
 * Part of aot-model.
 *
 * A register holds a pair of int16, the first in the low half. Sums wrap. */
#ifndef AOT_MODEL_INT8_DSP_H
#define AOT_MODEL_INT8_DSP_H

#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"
#include "aot_model/scalar.h"

#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)
#define AOT_MODEL_DSP 1
#define AOT_MODEL_DSP_2(name, instruction, type, twin)                                                                 \
    AOT_MODEL_INLINE type dsp_##name(type a)                                                                           \
    {                                                                                                                  \
        type r;                                                                                                        \
        __asm__(instruction : "=r"(r) : "r"(a));                                                                       \
        return r;                                                                                                      \
    }
#define AOT_MODEL_DSP_4(name, instruction, type, twin)                                                                 \
    AOT_MODEL_INLINE type dsp_##name(type a, type b, type c)                                                           \
    {                                                                                                                  \
        type r;                                                                                                        \
        __asm__(instruction " %0, %1, %2, %3" : "=r"(r) : "r"(a), "r"(b), "r"(c));                                     \
        return r;                                                                                                      \
    }
#else
#define AOT_MODEL_DSP 0
#define AOT_MODEL_DSP_2(name, instruction, type, twin)                                                                 \
    AOT_MODEL_INLINE type dsp_##name(type a) { return (type)(twin); }
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 16
/* GCC 16 makes wrong vectors of several such sums in one loop; what nothing is known about is in none. */
#define AOT_MODEL_DSP_SUM(r) __asm__("" : "+r"(r))
#else
#define AOT_MODEL_DSP_SUM(r) (void)0
#endif
#define AOT_MODEL_DSP_4(name, instruction, type, twin)                                                                 \
    AOT_MODEL_INLINE type dsp_##name(type a, type b, type c)                                                           \
    {                                                                                                                  \
        type r = (type)(twin);                                                                                         \
        AOT_MODEL_DSP_SUM(r);                                                                                          \
        return r;                                                                                                      \
    }
#endif

/* Halves of a pair. */
AOT_MODEL_INLINE int32_t dsp_low(int32_t a) { return (int16_t)(a & 0xffff); }
AOT_MODEL_INLINE int32_t dsp_high(int32_t a) { return a >> 16; }
AOT_MODEL_INLINE int32_t dsp_pair(int32_t low, int32_t high) { return (int32_t)(((uint32_t)low & 0xffffu) | (uint32_t)high << 16); }

/* Bytes 0 and 2 of a word, or 1 and 3, as a pair. */
AOT_MODEL_DSP_2(sxtb16, "sxtb16 %0, %1", int32_t, dsp_pair((int8_t)(a & 0xff), (int8_t)(a >> 16 & 0xff)))
AOT_MODEL_DSP_2(sxtb16_ror8, "sxtb16 %0, %1, ror #8", int32_t, dsp_pair((int8_t)(a >> 8 & 0xff), a >> 24))
AOT_MODEL_DSP_2(uxtb16, "uxtb16 %0, %1", int32_t, dsp_pair(a & 0xff, a >> 16 & 0xff))
AOT_MODEL_DSP_2(uxtb16_ror8, "uxtb16 %0, %1, ror #8", int32_t, dsp_pair(a >> 8 & 0xff, a >> 24 & 0xff))

/* Within int8, uint8. */
AOT_MODEL_DSP_2(ssat8, "ssat %0, #8, %1", int32_t, a < -128 ? -128 : a > 127 ? 127 : a)
AOT_MODEL_DSP_2(usat8, "usat %0, #8, %1", int32_t, a < 0 ? 0 : a > 255 ? 255 : a)
/* Within int16, uint16, what is not negative of int16. */
AOT_MODEL_DSP_2(ssat16, "ssat %0, #16, %1", int32_t, a < -32768 ? -32768 : a > 32767 ? 32767 : a)
AOT_MODEL_DSP_2(usat16, "usat %0, #16, %1", int32_t, a < 0 ? 0 : a > 65535 ? 65535 : a)
AOT_MODEL_DSP_2(usat15, "usat %0, #15, %1", int32_t, a < 0 ? 0 : a > 32767 ? 32767 : a)

/* c and the products of two pairs; of the low half of a and the high one of b; the other way round. */
AOT_MODEL_DSP_4(smlad, "smlad", int32_t, (uint32_t)c + (uint32_t)(dsp_low(a) * dsp_low(b)) + (uint32_t)(dsp_high(a) * dsp_high(b)))
AOT_MODEL_DSP_4(smlabt, "smlabt", int32_t, (uint32_t)c + (uint32_t)(dsp_low(a) * dsp_high(b)))
AOT_MODEL_DSP_4(smlatb, "smlatb", int32_t, (uint32_t)c + (uint32_t)(dsp_high(a) * dsp_low(b)))
/* The product of a half of a and one of b: bottom or top. */
#if AOT_MODEL_DSP
#define AOT_MODEL_DSP_PRODUCT(halves, of_a, of_b)                                                                     \
    AOT_MODEL_INLINE int32_t dsp_smul##halves(int32_t a, int32_t b)                                                    \
    {                                                                                                                  \
        int32_t r;                                                                                                     \
        __asm__("smul" #halves " %0, %1, %2" : "=r"(r) : "r"(a), "r"(b));                                              \
        return r;                                                                                                      \
    }
#else
#define AOT_MODEL_DSP_PRODUCT(halves, of_a, of_b)                                                                      \
    AOT_MODEL_INLINE int32_t dsp_smul##halves(int32_t a, int32_t b) { return of_a(a) * of_b(b); }
#endif
AOT_MODEL_DSP_PRODUCT(bb, dsp_low, dsp_low)
AOT_MODEL_DSP_PRODUCT(bt, dsp_low, dsp_high)
AOT_MODEL_DSP_PRODUCT(tb, dsp_high, dsp_low)
AOT_MODEL_DSP_PRODUCT(tt, dsp_high, dsp_high)
/* High word of a * b, rounded, plus c; as it is. */
AOT_MODEL_DSP_4(smmlar, "smmlar", int32_t, (((int64_t)a * b + INT64_C(0x80000000)) >> 32) + c)
AOT_MODEL_DSP_4(smmla, "smmla", int32_t, (((int64_t)a * b) >> 32) + c)
/* a times the high half of b, without the lowest 16 bits, plus c. */
AOT_MODEL_DSP_4(smlawt, "smlawt", int32_t, (((int64_t)a * dsp_high(b)) >> 16) + c)

/* a + b, a - b, wrapping. */
AOT_MODEL_INLINE int32_t dsp_sub(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }

/* c and the products of two pairs, in 64 bits. */
AOT_MODEL_INLINE int64_t dsp_smlald(int32_t a, int32_t b, int64_t c)
{
#if AOT_MODEL_DSP
    __asm__("smlald %Q0, %R0, %1, %2" : "+r"(c) : "r"(a), "r"(b));
    return c;
#else
    c += (int64_t)dsp_low(a) * dsp_low(b) + (int64_t)dsp_high(a) * dsp_high(b);
    AOT_MODEL_DSP_SUM(c);
    return c;
#endif
}

/* The pair, the four bytes at an address of any alignment. */
AOT_MODEL_INLINE int32_t dsp_pair_at(const int16_t *at)
{
#if AOT_MODEL_DSP
    int32_t pair;
    memcpy(&pair, at, sizeof pair);
    return pair;
#else
    return dsp_pair(at[0], at[1]);
#endif
}
AOT_MODEL_INLINE int32_t dsp_quad_at(const int8_t *at)
{
#if AOT_MODEL_DSP
    int32_t quad;
    memcpy(&quad, at, sizeof quad);
    return quad;
#else
    return dsp_pair((int32_t)((uint32_t)at[0] & 0xffu) | at[1] * 256, (int32_t)((uint32_t)at[2] & 0xffu) | at[3] * 256);
#endif
}

/* Four bytes as they lie, at any address. */
AOT_MODEL_INLINE uint32_t dsp_bytes_at(const void *at)
{
    uint32_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    return bytes;
}

/* Four bytes at any address, the first in the lowest bits. */
AOT_MODEL_INLINE uint32_t dsp_four_at(const void *at)
{
#if AOT_MODEL_DSP
    return dsp_bytes_at(at);
#else
    const uint8_t *b = (const uint8_t *)at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
#endif
}

/* The lowest bytes of a, b, c and d to any address. */
AOT_MODEL_INLINE void dsp_put_four(void *at, int32_t a, int32_t b, int32_t c, int32_t d)
{
#if AOT_MODEL_DSP
    __asm__("bfi %0, %1, #8, #8" : "+r"(a) : "r"(b));
    __asm__("bfi %0, %1, #16, #8" : "+r"(a) : "r"(c));
    __asm__("bfi %0, %1, #24, #8" : "+r"(a) : "r"(d));
    memcpy(at, &a, sizeof a);
#else
    uint8_t *to = (uint8_t *)at;
    to[0] = (uint8_t)a;
    to[1] = (uint8_t)b;
    to[2] = (uint8_t)c;
    to[3] = (uint8_t)d;
#endif
}

/* dsp_smlad of the pair at `at`, any even address. */
AOT_MODEL_INLINE int32_t dsp_smlad_at(const int16_t *at, int32_t weights, int32_t sum)
{
    return dsp_smlad(dsp_pair_at(at), weights, sum);
}

/* to[k], to[k + 1], to[k + 2], to[k + 3] = from[a], from[b], from[c], from[d], all of them numbers; load: ldrsb for int8, ldrb for
 * uint8. Loads that follow each other overlap. */
#define DSP_GATHER_4(load, to, k, from, a, b, c, d) DSP_GATHER_4_OF(load, 1, to, k, from, a, b, c, d)
/* The same of int16. */
#define DSP_GATHER_4_INT16(to, k, from, a, b, c, d) DSP_GATHER_4_OF(ldrsh, 2, to, k, from, a, b, c, d)
#if AOT_MODEL_DSP
#define DSP_GATHER_4_OF(load, size, to, k, from, a, b, c, d)                                                                    \
    do {                                                                                                               \
        int32_t dsp_a, dsp_b, dsp_c, dsp_d;                                                                            \
        __asm__ volatile(#load " %0, [%5, #" #size "*" #a "]\n\t" #load " %1, [%5, #" #size "*" #b "]\n\t"           \
                         #load " %2, [%5, #" #size "*" #c "]\n\t" #load " %3, [%5, #" #size "*" #d "]\n\tstrh %0, [%4, #2*" #k "]\n\tstrh %1, [%4, #2*" #k "+2]\n\t"       \
                         "strh %2, [%4, #2*" #k "+4]\n\tstrh %3, [%4, #2*" #k "+6]"                                    \
                         : "=&r"(dsp_a), "=&r"(dsp_b), "=&r"(dsp_c), "=&r"(dsp_d)                                      \
                         : "r"(to), "r"(from)                                                                          \
                         : "memory");                                                                                  \
    } while (0)
#else
#define DSP_GATHER_4_OF(load, size, to, k, from, a, b, c, d)                                                           \
    do {                                                                                                               \
        (to)[k] = (from)[a];                                                                                           \
        (to)[(k) + 1] = (from)[b];                                                                                     \
        (to)[(k) + 2] = (from)[c];                                                                                     \
        (to)[(k) + 3] = (from)[d];                                                                                     \
    } while (0)
#endif

/* Adds bytes 0 and 2 of b to the 16-bit lanes of a. */
AOT_MODEL_INLINE uint32_t dsp_sxtab16(uint32_t a, uint32_t b)
{
#if AOT_MODEL_DSP
    __asm__("sxtab16 %0, %1, %2" : "=r"(a) : "r"(a), "r"(b));
    return a;
#else
    const int32_t low = (int8_t)(b & 0xffu), high = (int8_t)(b >> 16 & 0xffu);
    return ((a + (uint32_t)low) & 0xffffu) | ((a >> 16) + (uint32_t)high) << 16;
#endif
}
AOT_MODEL_INLINE uint32_t dsp_uxtab16(uint32_t a, uint32_t b)
{
#if AOT_MODEL_DSP
    __asm__("uxtab16 %0, %1, %2" : "=r"(a) : "r"(a), "r"(b));
    return a;
#else
    return ((a + (b & 0xffu)) & 0xffffu) | ((a >> 16) + (b >> 16 & 0xffu)) << 16;
#endif
}

/* The same of bytes 1 and 3. */
#if AOT_MODEL_DSP
#define AOT_MODEL_DSP_ODD_BYTES(name)                                                                                  \
    AOT_MODEL_INLINE uint32_t dsp_##name##_ror8(uint32_t a, uint32_t b)                                                \
    {                                                                                                                  \
        __asm__(#name " %0, %1, %2, ror #8" : "=r"(a) : "r"(a), "r"(b));                                               \
        return a;                                                                                                      \
    }
#else
#define AOT_MODEL_DSP_ODD_BYTES(name)                                                                                  \
    AOT_MODEL_INLINE uint32_t dsp_##name##_ror8(uint32_t a, uint32_t b) { return dsp_##name(a, b >> 8); }
#endif
AOT_MODEL_DSP_ODD_BYTES(sxtab16)
AOT_MODEL_DSP_ODD_BYTES(uxtab16)

/* Sums and differences of 16-bit lanes, which wrap. */
AOT_MODEL_INLINE uint32_t dsp_sadd16(uint32_t a, uint32_t b)
{
#if AOT_MODEL_DSP
    __asm__("sadd16 %0, %1, %2" : "=r"(a) : "r"(a), "r"(b) : "cc");
    return a;
#else
    return ((a + b) & 0xffffu) | ((a >> 16) + (b >> 16)) << 16;
#endif
}
AOT_MODEL_INLINE uint32_t dsp_ssub16(uint32_t a, uint32_t b)
{
#if AOT_MODEL_DSP
    __asm__("ssub16 %0, %1, %2" : "=r"(a) : "r"(a), "r"(b) : "cc");
    return a;
#else
    return ((a - b) & 0xffffu) | ((a >> 16) - (b >> 16)) << 16;
#endif
}

/* The greater of each of four bytes. */
AOT_MODEL_INLINE uint32_t dsp_max_int8(uint32_t a, uint32_t b)
{
    uint32_t greater = 0;
#if AOT_MODEL_DSP
    __asm__("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(greater) : "r"(a), "r"(b) : "cc");
#else
    for (uint32_t i = 0; i < 32; i += 8) {
        const int8_t one = (int8_t)(a >> i & 0xffu), other = (int8_t)(b >> i & 0xffu);
        greater |= (uint32_t)(uint8_t)(one > other ? one : other) << i;
    }
#endif
    return greater;
}
AOT_MODEL_INLINE uint32_t dsp_max_int16(uint32_t a, uint32_t b)
{
    uint32_t greater = 0;
#if AOT_MODEL_DSP
    __asm__("ssub16 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(greater) : "r"(a), "r"(b) : "cc");
#else
    for (uint32_t i = 0; i < 32; i += 16) {
        const int16_t one = (int16_t)(a >> i & 0xffffu), other = (int16_t)(b >> i & 0xffffu);
        greater |= (uint32_t)(uint16_t)(one > other ? one : other) << i;
    }
#endif
    return greater;
}
AOT_MODEL_INLINE uint32_t dsp_max_uint8(uint32_t a, uint32_t b)
{
    uint32_t greater = 0;
#if AOT_MODEL_DSP
    __asm__("usub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(greater) : "r"(a), "r"(b) : "cc");
#else
    for (uint32_t i = 0; i < 32; i += 8) {
        const uint32_t one = a >> i & 0xffu, other = b >> i & 0xffu;
        greater |= (one > other ? one : other) << i;
    }
#endif
    return greater;
}

/* y = (a * ma + b * mb + offset) >> shift, within low and high: the sum of quantised values, affine_sum.py. y may be a or b. */
AOT_MODEL_INLINE int32_t dsp_sum_of(int32_t a, int32_t b, int32_t ma, int32_t mb, int32_t offset, int32_t shift)
{
    return (a * ma + b * mb + offset) >> shift;
}
AOT_MODEL_INLINE int32_t dsp_byte(uint32_t four, uint32_t at) { return (int8_t)(four >> at & 0xffu); }
AOT_MODEL_FUNCTION void dsp_sum(const int8_t *a, const int8_t *b, int8_t *y, int32_t n, int32_t ma, int32_t mb, int32_t offset,
                                int32_t shift)
{
    for (; n >= 4; n -= 4, a += 4, b += 4, y += 4) {
        uint32_t p, q;
        memcpy(&p, a, 4);
        memcpy(&q, b, 4);
        y[0] = (int8_t)dsp_ssat8(dsp_sum_of(dsp_byte(p, 0), dsp_byte(q, 0), ma, mb, offset, shift));
        y[1] = (int8_t)dsp_ssat8(dsp_sum_of(dsp_byte(p, 8), dsp_byte(q, 8), ma, mb, offset, shift));
        y[2] = (int8_t)dsp_ssat8(dsp_sum_of(dsp_byte(p, 16), dsp_byte(q, 16), ma, mb, offset, shift));
        y[3] = (int8_t)dsp_ssat8(dsp_sum_of(dsp_byte(p, 24), dsp_byte(q, 24), ma, mb, offset, shift));
    }
    for (; n > 0; n--) {
        *y++ = (int8_t)dsp_ssat8(dsp_sum_of(*a++, *b++, ma, mb, offset, shift));
    }
}
AOT_MODEL_FUNCTION void dsp_sum_between(const int8_t *a, const int8_t *b, int8_t *y, int32_t n, int32_t ma, int32_t mb,
                                        int32_t offset, int32_t shift, int32_t low, int32_t high)
{
    for (; n > 0; n--) {
        const int32_t v = dsp_sum_of(*a++, *b++, ma, mb, offset, shift);
        *y++ = (int8_t)(v < low ? low : v > high ? high : v);
    }
}

/* Bytes to pairs, in the order 0, 2, 1, 3 of each four. */
AOT_MODEL_FUNCTION void dsp_widen_int8(uint32_t *to, const int8_t *from, uint32_t quads)
{
    for (const uint32_t *end = to + 2 * quads; to != end; to += 2, from += 4) {
        int32_t four;
        memcpy(&four, from, sizeof four);
        to[0] = (uint32_t)dsp_sxtb16(four);
        to[1] = (uint32_t)dsp_sxtb16_ror8(four);
    }
}
AOT_MODEL_FUNCTION void dsp_widen_uint8(uint32_t *to, const uint8_t *from, uint32_t quads)
{
    for (const uint32_t *end = to + 2 * quads; to != end; to += 2, from += 4) {
        int32_t four;
        memcpy(&four, from, sizeof four);
        to[0] = (uint32_t)dsp_uxtb16(four);
        to[1] = (uint32_t)dsp_uxtb16_ror8(four);
    }
}

#endif
