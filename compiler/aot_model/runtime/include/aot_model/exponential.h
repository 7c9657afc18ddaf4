/* exp, tanh, erf and the logistic function of generated code. On a Cortex-M they are computed here, in single precision and
 * without branches on the argument but one; a C library for such a core takes two to four times as long for them. Elsewhere
 * they are the C library's.
 * Largest errors, in units in the last place, all arguments tried (tests/runtime/test_exponential.py tries a part): exp 1.1,
 * tanh 1.6, erf 1.6, logistic 2.6. The polynomials are minimax approximations, each coefficient rounded before those of higher
 * powers were found.
 * Part of aot-model. */
#ifndef AOT_MODEL_EXPONENTIAL_H
#define AOT_MODEL_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"

/* Holds a sum: a compiler that may add in another order (-Ofast) would take off again what was added to round. */
#if defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP)
#define AOT_MODEL_HOLD(x) __asm__("" : "+t"(x))
#elif defined(__GNUC__) && defined(__arm__)
#define AOT_MODEL_HOLD(x) __asm__("" : "+r"(x))
#elif defined(__GNUC__)
#define AOT_MODEL_HOLD(x) __asm__("" : "+m"(x))
#else
#define AOT_MODEL_HOLD(x) (void)0
#endif

/* exp(x) = 2^n * exp(r), n an integer and |r| <= log(2) / 2. The second is the result, r is x. |x| <= 128. */
AOT_MODEL_INLINE float aot_model_exp_parts(float x, int32_t *n)
{
    float above = x * 1.44269504f + 12582912.0f; /* n + 3 * 2^22: the place of its last digit is that of one */
    AOT_MODEL_HOLD(above);
    const float whole = above - 12582912.0f;
    const float r = (x - whole * 0.693145752f) - whole * 1.42860677e-6f; /* the logarithm of 2: 15 bits, its rest */
    const float square = r * r;
    const float q = (0.49999994f + 0.16666521f * r) + square * ((0.041668255f + 0.008368662f * r) + square * 0.0013821454f);
    uint32_t bits;
    memcpy(&bits, &above, sizeof bits);
    *n = (int32_t)(bits - 0x4B400000u);
    return 1.0f + (r + square * q);
}

/* For large x, whose results may be no normal numbers: NaN, too large, too small. */
AOT_MODEL_FUNCTION float aot_model_exp_beyond(float x)
{
    float y;
    if (x > 89.0f) {
        y = INFINITY;
    } else if (x < -104.0f) {
        y = 0.0f;
    } else if (isnan(x) != 0) {
        y = x;
    } else {
        int32_t n;
        y = aot_model_exp_parts(x, &n);
        y = ldexpf(y, n);
    }
    return y;
}

AOT_MODEL_INLINE float aot_model_short_exp(float x)
{
    int32_t n;
    uint32_t bits;
    float y;
    memcpy(&bits, &x, sizeof bits);
    if ((bits << 1) > 0x85000000u) { /* not |x| <= 64 */
        return aot_model_exp_beyond(x);
    }
    y = aot_model_exp_parts(x, &n);
    memcpy(&bits, &y, sizeof bits);
    bits += (uint32_t)n << 23;
    memcpy(&y, &bits, sizeof bits);
    return y;
}

AOT_MODEL_INLINE float aot_model_short_logistic(float x)
{
    const float e = aot_model_short_exp(-fabsf(x));
    return ((x < 0.0f) ? e : 1.0f) / (1.0f + e);
}

/* An odd polynomial for small x, else 1 - 2 / (exp(2 x) + 1). */
AOT_MODEL_INLINE float aot_model_short_tanh(float x)
{
    const float size = fabsf(x);
    const float square = x * x;
    float y;
    if (size < 0.55f) {
        y = 0.021050714f - 0.0062428494f * square;
        y = -0.053847548f + y * square;
        y = 0.13332544f + y * square;
        y = -0.33333316f + y * square;
        return x * (1.0f + square * y);
    }
    y = 1.0f - 2.0f / (aot_model_short_exp(2.0f * size) + 1.0f);
    return (x < 0.0f) ? -y : y;
}

/* An odd polynomial for small x, else 1 - exp(log(erfc(x))) with a polynomial for the logarithm. */
AOT_MODEL_INLINE float aot_model_short_erf(float x)
{
    float size = fabsf(x);
    float y;
    if (size < 0.92f) {
        const float square = x * x;
        y = 0.004995854f - 0.0006003808f * square;
        y = -0.02676858f + y * square;
        y = 0.11281877f + y * square;
        y = -0.376125f + y * square;
        y = 0.12837915f + y * square;
        return x + x * y;
    }
    size = (size > 4.0f) ? 4.0f : size; /* the result is 1 from 3.92 on */
    y = -0.0030431906f + 0.00019593594f * size;
    y = 0.022226796f + y * size;
    y = -0.10393135f + y * size;
    y = -0.6371825f + y * size;
    y = -1.1276755f + y * size;
    y = -0.00019568691f + y * size;
    y = 1.0f - aot_model_short_exp(y);
    return (x < 0.0f) ? -y : y;
}

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
AOT_MODEL_INLINE float aot_model_exp_float32(float x) { return aot_model_short_exp(x); }
AOT_MODEL_INLINE float aot_model_libm_tanh_float32(float x) { return aot_model_short_tanh(x); }
AOT_MODEL_INLINE float aot_model_erf_float32(float x) { return aot_model_short_erf(x); }
AOT_MODEL_INLINE float aot_model_sigmoid_float32(float x) { return aot_model_short_logistic(x); }
#else
AOT_MODEL_INLINE float aot_model_exp_float32(float x) { return expf(x); }
AOT_MODEL_INLINE float aot_model_libm_tanh_float32(float x) { return tanhf(x); }
AOT_MODEL_INLINE float aot_model_erf_float32(float x) { return erff(x); }
AOT_MODEL_INLINE float aot_model_sigmoid_float32(float x)
{
    const float e = expf(-fabsf(x));
    const float s = 1.0f / (1.0f + e);
    return (x < 0.0f) ? e * s : s; /* no overflow for large negative x */
}
#endif
AOT_MODEL_INLINE double aot_model_exp_float64(double x) { return exp(x); }
AOT_MODEL_INLINE double aot_model_libm_tanh_float64(double x) { return tanh(x); }
AOT_MODEL_INLINE double aot_model_erf_float64(double x) { return erf(x); }
AOT_MODEL_INLINE double aot_model_sigmoid_float64(double x)
{
    const double e = exp(-fabs(x));
    const double s = 1.0 / (1.0 + e);
    return (x < 0.0) ? e * s : s;
}

#endif
