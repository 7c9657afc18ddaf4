/* The square root and the largest whole number below of generated code, by the instructions of a core with an FPU: a C library
 * is called for them, for the sake of errno, or because a Cortex-M4 has none that rounds down. The results are the same.
 * Part of aot-model. */
#ifndef AOT_MODEL_ROOTS_H
#define AOT_MODEL_ROOTS_H

#include <math.h>
#include <stdint.h>

#include "aot_model/attributes.h"

AOT_MODEL_INLINE float aot_model_sqrt_float32(float x)
{
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)
    float root;
    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
    return root;
#else
    return sqrtf(x);
#endif
}

AOT_MODEL_INLINE double aot_model_sqrt_float64(double x) { return sqrt(x); }

AOT_MODEL_INLINE float aot_model_floor_float32(float x)
{
#if defined(__GNUC__) && defined(__ARM_ARCH_7EM__) && defined(__ARM_FP) && __ARM_FP == 4
    float below = x;
    if (fabsf(x) < 8388608.0f) { /* else there is no fraction */
        const float whole = (float)(int32_t)x; /* towards zero */
        below = copysignf((whole > x) ? (whole - 1.0f) : whole, x);
    }
    return below;
#else
    return floorf(x);
#endif
}

AOT_MODEL_INLINE double aot_model_floor_float64(double x) { return floor(x); }

#endif
