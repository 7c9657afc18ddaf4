/* Pointers for the loads and stores of arm_mve.h that GCC 12 takes for smaller ones. Part of aot-model.
 *
 * To it those of floats, those that widen or narrow and gathers touch one element, and a predicated store all of a vector:
 * it moves what touches other elements across them, takes them for what they were before, leaves stores out
 * (docs/compilers.md). Whole vectors of floats are loaded as objects of a vector's type here and stored as integers: the place
 * that such an object is stored to would be the object's own to the register allocator, which loses it where registers are
 * short. The other forms get a pointer of which the compiler knows nothing but that what lies behind it was read, or read
 * and written, where it was made. */
#ifndef AOT_MODEL_HELIUM_H
#define AOT_MODEL_HELIUM_H

#include <stdint.h>

#include "aot_model/attributes.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__)
#include <arm_mve.h>

#if defined(__clang__)
#define AOT_MODEL_HELIUM_POINTERS(type)                                                                                          \
    AOT_MODEL_INLINE const type *aot_model_read_##type(const type *p) { return p; }                                              \
    AOT_MODEL_INLINE type *aot_model_written_##type(type *p) { return p; }
#else
#define AOT_MODEL_HELIUM_POINTERS(type)                                                                                          \
    AOT_MODEL_INLINE const type *aot_model_read_##type(const type *p)                                                            \
    {                                                                                                                            \
        const type *same;                                                                                                        \
        __asm__("" : "=r"(same) : "0"(p), "m"(*(const char(*)[])(const void *)p));                                               \
        return same;                                                                                                             \
    }                                                                                                                            \
    AOT_MODEL_INLINE type *aot_model_written_##type(type *p)                                                                     \
    {                                                                                                                            \
        type *same;                                                                                                              \
        __asm__("" : "=r"(same), "+m"(*(char(*)[])(void *)p) : "0"(p));                                                          \
        return same;                                                                                                             \
    }
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual" /* of GCC, for which an array of const has no const to lose */
AOT_MODEL_HELIUM_POINTERS(int8_t)
AOT_MODEL_HELIUM_POINTERS(uint8_t)
AOT_MODEL_HELIUM_POINTERS(int16_t)
AOT_MODEL_HELIUM_POINTERS(uint16_t)
AOT_MODEL_HELIUM_POINTERS(int32_t)
AOT_MODEL_HELIUM_POINTERS(uint32_t)
#if __ARM_FEATURE_MVE & 2
AOT_MODEL_HELIUM_POINTERS(float)
#endif
#pragma GCC diagnostic pop

#if __ARM_FEATURE_MVE & 2
typedef float32x4_t aot_model_four_floats __attribute__((aligned(4), may_alias));

AOT_MODEL_INLINE float32x4_t aot_model_load_f32(const float *p)
{
    return *(const aot_model_four_floats *)(const void *)p;
}

AOT_MODEL_INLINE void aot_model_store_f32(float *p, float32x4_t v)
{
    vstrwq_s32((int32_t *)(void *)p, vreinterpretq_s32_f32(v));
}

/* The first n elements of a vector, the others being 0. */
AOT_MODEL_INLINE float32x4_t aot_model_load_some_f32(const float *p, uint32_t n)
{
    return vldrwq_z_f32(aot_model_read_float(p), vctp32q(n));
}

AOT_MODEL_INLINE void aot_model_store_some_f32(float *p, float32x4_t v, uint32_t n)
{
    vstrwq_p_f32(aot_model_written_float(p), v, vctp32q(n));
}
#endif
#endif

#endif
