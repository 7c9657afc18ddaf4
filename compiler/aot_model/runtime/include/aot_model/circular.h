/* sin and cos of generated code. On a Cortex-M they are computed here, in single precision; a C library for such a core takes
 * up to twice as long, but not on those with Helium. There, elsewhere, and for |x| > 400, they are the C library's.
 * Largest errors, in units in the last place, all arguments up to 400 tried (tests/runtime/test_circular.py tries a part): sin
 * 2.9, cos 2.8. The polynomials are minimax approximations, each coefficient rounded before those of higher powers were found.
 * Part of aot-model. */
#ifndef AOT_MODEL_CIRCULAR_H
#define AOT_MODEL_CIRCULAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"
#include "aot_model/exponential.h"

/* x = n * pi / 2 + r, |r| <= pi / 4. The two lowest bits of the result are n's. pi / 2 in three parts: products of n and the
 * first two, of 16 bits each, are exact. */
AOT_MODEL_INLINE uint32_t aot_model_quadrant(float x, float *r)
{
    float above = x * 0.636619772f + 12582912.0f; /* as in aot_model_exp_parts() */
    float whole;
    float rest;
    uint32_t bits;
    AOT_MODEL_HOLD(above);
    whole = above - 12582912.0f;
    rest = x - whole * 1.57077026f;
    AOT_MODEL_HOLD(rest);
    rest = rest - whole * 2.60630623e-05f;
    AOT_MODEL_HOLD(rest);
    *r = rest - whole * 6.07710051e-11f;
    memcpy(&bits, &above, sizeof bits);
    return bits;
}

/* sin(r), cos(r), -sin(r), -cos(r) for the quadrants 0 to 3. */
AOT_MODEL_INLINE float aot_model_of_quadrant(float r, uint32_t quadrant)
{
    const float square = r * r;
    float y;
    if ((quadrant & 1u) != 0u) {
        y = 0.041666646f + square * (-0.001388731f + square * 2.443233e-05f);
        y = (1.0f - 0.5f * square) + (square * square) * y;
    } else {
        y = -0.16666655f + square * (0.008332187f - square * 0.00019517908f);
        y = r * (1.0f + square * y); /* -0 stays it */
    }
    return ((quadrant & 2u) != 0u) ? -y : y;
}

AOT_MODEL_INLINE bool aot_model_is_far_angle(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits << 1) > 0x87900000u; /* not |x| <= 400 */
}

AOT_MODEL_FUNCTION float aot_model_far_sin(float x) { return sinf(x); }
AOT_MODEL_FUNCTION float aot_model_far_cos(float x) { return cosf(x); }

AOT_MODEL_INLINE float aot_model_short_sin(float x)
{
    float r;
    uint32_t quadrant;
    if (aot_model_is_far_angle(x)) {
        return aot_model_far_sin(x);
    }
    quadrant = aot_model_quadrant(x, &r);
    return aot_model_of_quadrant(r, quadrant);
}

AOT_MODEL_INLINE float aot_model_short_cos(float x)
{
    float r;
    uint32_t quadrant;
    if (aot_model_is_far_angle(x)) {
        return aot_model_far_cos(x);
    }
    quadrant = aot_model_quadrant(x, &r);
    return aot_model_of_quadrant(r, quadrant + 1u);
}

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && !defined(__ARM_FEATURE_MVE)
AOT_MODEL_INLINE float aot_model_sin_float32(float x) { return aot_model_short_sin(x); }
AOT_MODEL_INLINE float aot_model_cos_float32(float x) { return aot_model_short_cos(x); }
#else
AOT_MODEL_INLINE float aot_model_sin_float32(float x) { return sinf(x); }
AOT_MODEL_INLINE float aot_model_cos_float32(float x) { return cosf(x); }
#endif
AOT_MODEL_INLINE double aot_model_sin_float64(double x) { return sin(x); }
AOT_MODEL_INLINE double aot_model_cos_float64(double x) { return cos(x); }

#endif
