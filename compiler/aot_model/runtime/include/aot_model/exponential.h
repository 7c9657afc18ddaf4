/* exp, log, tanh, erf, the logistic function, exp(x) - 1, log(1 + x) and softplus of generated code. On a Cortex-M they are computed
 * here, in single precision and without branches on the argument but one; a C library for such a core takes two to four times
 * as long for them. For processors whose compilers make vectors of floats they are those of exponential_lanes.h (five to twenty
 * times as fast as a library's in loops that become vectors), elsewhere the C library's.
 * Largest errors, in units in the last place, all arguments tried (tests/runtime/test_exponential.py tries a part): exp 1.1,
 * tanh 1.6, erf 1.6, logistic 2.6, expm1 1.7, log 1.0, log1p 1.6, softplus_rest 3.2. The polynomials are minimax approximations, each coefficient
 * rounded before those of higher powers were found. expm1 and log1p of -0 are 0.
 * Part of aot-model. */
#ifndef AOT_MODEL_EXPONENTIAL_H
#define AOT_MODEL_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"
#include "aot_model/exponential_lanes.h"

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

/* exp(x) = 2^n * exp(r), n an integer and |r| <= log(2) / 2. The result is exp(r) - 1. |x| <= 128. */
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
    return r + square * q;
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
        y = ldexpf(1.0f + y, n);
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
    y = 1.0f + aot_model_exp_parts(x, &n);
    memcpy(&bits, &y, sizeof bits);
    bits += (uint32_t)n << 23;
    memcpy(&y, &bits, sizeof bits);
    return y;
}

/* For large x: -1 and exp(x) are near enough. */
AOT_MODEL_FUNCTION float aot_model_expm1_beyond(float x) { return (x < 0.0f) ? -1.0f : aot_model_short_exp(x); }

/* exp(x) - 1 = 2^n * (exp(r) - 1) + (2^n - 1). */
AOT_MODEL_INLINE float aot_model_short_expm1(float x)
{
    int32_t n;
    uint32_t bits;
    float y;
    float power;
    float less;
    memcpy(&bits, &x, sizeof bits);
    if ((bits << 1) > 0x85000000u) { /* not |x| <= 64 */
        return aot_model_expm1_beyond(x);
    }
    y = aot_model_exp_parts(x, &n);
    power = aot_model_power_of_two(n);
    less = power - 1.0f;
    AOT_MODEL_HOLD(less);
    return power * y + less;
}

/* log(2^more * x), x a normal number of these bits. */
AOT_MODEL_INLINE float aot_model_log_normal(uint32_t bits, int32_t more)
{
    const uint32_t above = bits - AOT_MODEL_HALF_ROOT;
    float x;
    bits = (above & 0x007FFFFFu) + AOT_MODEL_HALF_ROOT;
    memcpy(&x, &bits, sizeof x);
    return aot_model_log_parts(x - 1.0f, ((int32_t)above >> 23) + more);
}

/* For x that is no normal number larger than 0. */
AOT_MODEL_FUNCTION float aot_model_log_beyond(float x)
{
    float y;
    if (x < 0.0f) {
        y = NAN;
    } else if (x <= 0.0f) {
        y = -INFINITY;
    } else if (x < 1.0f) {
        uint32_t bits;
        y = x * 8388608.0f;
        memcpy(&bits, &y, sizeof bits);
        y = aot_model_log_normal(bits, -23);
    } else { /* infinity, NaN */
        y = x;
    }
    return y;
}

AOT_MODEL_INLINE float aot_model_short_log(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits - 0x00800000u >= 0x7F000000u) ? aot_model_log_beyond(x) : aot_model_log_normal(bits, 0);
}

/* For x that is large, -1, less, or NaN. */
AOT_MODEL_FUNCTION float aot_model_log1p_beyond(float x)
{
    return (x > 1.0f) ? aot_model_short_log(x) : aot_model_log_beyond(1.0f + x);
}

/* log(1 + x): n is that of the sum, which is rounded; f of the exact one. */
AOT_MODEL_INLINE float aot_model_short_log1p(float x)
{
    const float sum = 1.0f + x;
    uint32_t bits;
    int32_t n;
    float less;
    float power;
    memcpy(&bits, &sum, sizeof bits);
    if (bits - 0x00800000u >= 0x4B800000u) { /* not 0 < sum < 2^25 */
        return aot_model_log1p_beyond(x);
    }
    n = (int32_t)(bits - AOT_MODEL_HALF_ROOT) >> 23;
    power = aot_model_power_of_two(-n);
    less = power - 1.0f;
    AOT_MODEL_HOLD(less);
    return aot_model_log_parts(x * power + less, n);
}

/* For large x. */
AOT_MODEL_FUNCTION float aot_model_softplus_rest_beyond(float x) { return aot_model_short_exp(-fabsf(x)); }

/* log(1 + exp(-|x|)): what softplus has more than the larger one of x and 0. exp(-|x|) is between 0 and 1: one polynomial. */
AOT_MODEL_INLINE float aot_model_short_softplus_rest(float x)
{
    int32_t n;
    uint32_t bits;
    float e;
    float square;
    float even;
    float odd;
    memcpy(&bits, &x, sizeof bits);
    if ((bits << 1) > 0x85000000u) { /* not |x| <= 64 */
        return aot_model_softplus_rest_beyond(x);
    }
    e = 1.0f + aot_model_exp_parts(-fabsf(x), &n);
    memcpy(&bits, &e, sizeof bits);
    bits += (uint32_t)n << 23;
    memcpy(&e, &bits, sizeof e);
    square = e * e;
    even = 0.10663869f + 0.0201045f * square;
    odd = -0.057488006f - 0.003294917f * square;
    even = 0.1969249f + even * square;
    odd = -0.1534626f + odd * square;
    even = 0.33330467f + even * square;
    odd = -0.24958074f + odd * square;
    return e * (1.0f + e * (-0.4999993f + e * (even + e * odd)));
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
AOT_MODEL_INLINE float aot_model_expm1_float32(float x) { return aot_model_short_expm1(x); }
AOT_MODEL_INLINE float aot_model_log_float32(float x) { return aot_model_short_log(x); }
AOT_MODEL_INLINE float aot_model_log1p_float32(float x) { return aot_model_short_log1p(x); }
AOT_MODEL_INLINE float aot_model_libm_tanh_float32(float x) { return aot_model_short_tanh(x); }
AOT_MODEL_INLINE float aot_model_erf_float32(float x) { return aot_model_short_erf(x); }
AOT_MODEL_INLINE float aot_model_sigmoid_float32(float x) { return aot_model_short_logistic(x); }
AOT_MODEL_INLINE float aot_model_softplus_rest_float32(float x) { return aot_model_short_softplus_rest(x); }
#elif defined(AOT_MODEL_FLOAT_LANES)
AOT_MODEL_INLINE float aot_model_exp_float32(float x) { return aot_model_lanes_exp(x); }
AOT_MODEL_INLINE float aot_model_expm1_float32(float x) { return aot_model_lanes_expm1(x); }
AOT_MODEL_INLINE float aot_model_log_float32(float x) { return aot_model_lanes_log(x); }
AOT_MODEL_INLINE float aot_model_log1p_float32(float x) { return aot_model_lanes_log1p(x); }
AOT_MODEL_INLINE float aot_model_libm_tanh_float32(float x) { return aot_model_lanes_tanh(x); }
AOT_MODEL_INLINE float aot_model_erf_float32(float x) { return aot_model_lanes_erf(x); }
AOT_MODEL_INLINE float aot_model_sigmoid_float32(float x) { return aot_model_lanes_logistic(x); }
AOT_MODEL_INLINE float aot_model_softplus_rest_float32(float x) { return aot_model_lanes_softplus_rest(x); }
#else
AOT_MODEL_INLINE float aot_model_exp_float32(float x) { return expf(x); }
AOT_MODEL_INLINE float aot_model_expm1_float32(float x) { return expm1f(x); }
AOT_MODEL_INLINE float aot_model_log_float32(float x) { return logf(x); }
AOT_MODEL_INLINE float aot_model_log1p_float32(float x) { return log1pf(x); }
AOT_MODEL_INLINE float aot_model_libm_tanh_float32(float x) { return tanhf(x); }
AOT_MODEL_INLINE float aot_model_erf_float32(float x) { return erff(x); }
AOT_MODEL_INLINE float aot_model_softplus_rest_float32(float x) { return log1pf(expf(-fabsf(x))); }
AOT_MODEL_INLINE float aot_model_sigmoid_float32(float x)
{
    const float e = expf(-fabsf(x));
    const float s = 1.0f / (1.0f + e);
    return (x < 0.0f) ? e * s : s; /* no overflow for large negative x */
}
#endif
AOT_MODEL_INLINE double aot_model_exp_float64(double x) { return exp(x); }
AOT_MODEL_INLINE double aot_model_expm1_float64(double x) { return expm1(x); }
AOT_MODEL_INLINE double aot_model_log_float64(double x) { return log(x); }
AOT_MODEL_INLINE double aot_model_log1p_float64(double x) { return log1p(x); }
AOT_MODEL_INLINE double aot_model_libm_tanh_float64(double x) { return tanh(x); }
AOT_MODEL_INLINE double aot_model_erf_float64(double x) { return erf(x); }
AOT_MODEL_INLINE double aot_model_softplus_rest_float64(double x) { return log1p(exp(-fabs(x))); }
AOT_MODEL_INLINE double aot_model_sigmoid_float64(double x)
{
    const double e = exp(-fabs(x));
    const double s = 1.0 / (1.0 + e);
    return (x < 0.0) ? e * s : s;
}

#endif
