/* The nearest value of a small type, with the shift or the requantisation before it where one instruction does both.
 * Part of aot-model. */
#ifndef AOT_MODEL_SATURATE_H
#define AOT_MODEL_SATURATE_H

#include "aot_model/scalar.h"

/* The nearest value of a type. */
#if defined(__ARM_FEATURE_SAT) && defined(__thumb2__) && defined(__GNUC__) && !defined(__ARM_FEATURE_MVE)
#define AOT_MODEL_SATURATE(name, low, high, instruction)                                                              \
    AOT_MODEL_INLINE int32_t aot_model_saturate_##name(int32_t x)                                                      \
    {                                                                                                                  \
        if (!__builtin_constant_p(x)) {                                                                                \
            __asm__(instruction : "=r"(x) : "r"(x) : "cc");                                                            \
            return x;                                                                                                  \
        }                                                                                                              \
        return (x < (low)) ? (low) : (x > (high)) ? (high) : x;                                                        \
    }
#else
#define AOT_MODEL_SATURATE(name, low, high, instruction)                                                              \
    AOT_MODEL_INLINE int32_t aot_model_saturate_##name(int32_t x)                                                      \
    {                                                                                                                  \
        return (x < (low)) ? (low) : (x > (high)) ? (high) : x;                                                        \
    }
#endif
AOT_MODEL_SATURATE(int8, -128, 127, "ssat %0, #8, %1")
AOT_MODEL_SATURATE(uint8, 0, 255, "usat %0, #8, %1")
AOT_MODEL_SATURATE(int16, -32768, 32767, "ssat %0, #16, %1")
AOT_MODEL_SATURATE(uint16, 0, 65535, "usat %0, #16, %1")

/* The nearest value of a type to x / 2^bits, which is rounded down; 0 <= bits < 32, a constant. */
#if defined(__ARM_FEATURE_SAT) && defined(__thumb2__) && defined(__GNUC__) && !defined(__ARM_FEATURE_MVE)
#define AOT_MODEL_SHIFTED(instruction, bits)                                                                           \
    case bits:                                                                                                         \
        __asm__(instruction ", asr #" #bits : "=r"(x) : "r"(x) : "cc");                                                \
        return x;
#define AOT_MODEL_SHIFTED_FOUR(instruction, a, b, c, d)                                                                \
    AOT_MODEL_SHIFTED(instruction, a)                                                                                  \
    AOT_MODEL_SHIFTED(instruction, b)                                                                                  \
    AOT_MODEL_SHIFTED(instruction, c)                                                                                  \
    AOT_MODEL_SHIFTED(instruction, d)
#define AOT_MODEL_SATURATE_SHIFTED(name, instruction)                                                                  \
    AOT_MODEL_INLINE int32_t aot_model_saturate_shifted_##name(int32_t x, int32_t bits)                                \
    {                                                                                                                  \
        switch (__builtin_constant_p(x) ? 0 : bits) {                                                                  \
            AOT_MODEL_SHIFTED_FOUR(instruction, 1, 2, 3, 4)                                                            \
            AOT_MODEL_SHIFTED_FOUR(instruction, 5, 6, 7, 8)                                                            \
            AOT_MODEL_SHIFTED_FOUR(instruction, 9, 10, 11, 12)                                                         \
            AOT_MODEL_SHIFTED_FOUR(instruction, 13, 14, 15, 16)                                                        \
            AOT_MODEL_SHIFTED_FOUR(instruction, 17, 18, 19, 20)                                                        \
            AOT_MODEL_SHIFTED_FOUR(instruction, 21, 22, 23, 24)                                                        \
        default:                                                                                                       \
            return aot_model_saturate_##name(x >> bits);                                                               \
        }                                                                                                              \
    }
#else
#define AOT_MODEL_SATURATE_SHIFTED(name, instruction)                                                                  \
    AOT_MODEL_INLINE int32_t aot_model_saturate_shifted_##name(int32_t x, int32_t bits)                                \
    {                                                                                                                  \
        return aot_model_saturate_##name(x >> bits);                                                                   \
    }
#endif
AOT_MODEL_SATURATE_SHIFTED(int8, "ssat %0, #8, %1")
AOT_MODEL_SATURATE_SHIFTED(uint8, "usat %0, #8, %1")
AOT_MODEL_SATURATE_SHIFTED(int16, "ssat %0, #16, %1")
AOT_MODEL_SATURATE_SHIFTED(uint16, "usat %0, #16, %1")

/* The nearest value of a type to aot_model_requantise_small() plus a zero point; no multiplier is negative, and the zero
 * point times 2^-shift is less than 2^30. What is rounded away from zero is rounded up, after one is taken from what is
 * negative: the sign is that of the accumulator, beside which a high word of 0 is rounded to 0 either way. */
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)
#define AOT_MODEL_REQUANTISED(name)                                                                                    \
    AOT_MODEL_INLINE int32_t aot_model_requantised_##name(int32_t acc, int32_t multiplier, int32_t shift, int32_t zero) \
    {                                                                                                                  \
        const int32_t left = (shift > 0) ? shift : 0, bits = left - shift;                                             \
        int32_t start = (bits > 0) ? zero * (1 << bits) + (1 << bits >> 1) : zero, sum;                                \
        if (bits > 0) { /* what is added to stays in a register */                                                     \
            __asm__("add %0, %1, %2, asr #31" : "=r"(start) : "r"(start), "r"(acc));                                   \
        }                                                                                                              \
        const int32_t twice = (int32_t)((uint32_t)acc << (left + 1));                                                  \
        __asm__("smmlar %0, %1, %2, %3" : "=r"(sum) : "r"(twice), "r"(multiplier), "r"(start));                        \
        return aot_model_saturate_shifted_##name(sum, bits);                                                           \
    }
#else
#define AOT_MODEL_REQUANTISED(name)                                                                                    \
    AOT_MODEL_INLINE int32_t aot_model_requantised_##name(int32_t acc, int32_t multiplier, int32_t shift, int32_t zero) \
    {                                                                                                                  \
        return aot_model_saturate_##name(aot_model_requantise_small(acc, multiplier, shift) + zero);                   \
    }
#endif
AOT_MODEL_REQUANTISED(int8)
AOT_MODEL_REQUANTISED(uint8)
AOT_MODEL_REQUANTISED(int16)
AOT_MODEL_REQUANTISED(uint16)

#endif
