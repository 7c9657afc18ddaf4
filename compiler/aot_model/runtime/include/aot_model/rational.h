/* tanh and the logistic function of float as ONNX Runtime computes them: an odd polynomial over an even one.
 * Where the numbers come from is said in compiler/aot_model/arithmetic/rational.py. Processors that have neither an instruction
 * that multiplies and adds with one rounding nor double precision differ from the others in the last place.
 * Part of aot-model. */
#ifndef AOT_MODEL_RATIONAL_H
#define AOT_MODEL_RATIONAL_H

#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"

/* a * b + c, rounded once where the processor does that fast: fmaf() would be a library call elsewhere. The product of two
 * floats is exact in double; then one result in 2^28 is rounded twice. */
AOT_MODEL_INLINE float aot_model_multiply_add(float a, float b, float c)
{
#if defined(__GNUC__) && (defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA))
    return __builtin_fmaf(a, b, c);
#elif defined(__SSE2_MATH__) || defined(_M_X64)
    return (float)((double)a * (double)b + (double)c);
#else
    return a * b + c;
#endif
}

/* A step of a polynomial. apart: product and sum are rounded one by one, which takes a Cortex-M4 less time. */
AOT_MODEL_INLINE float aot_model_step(float a, float b, float c, bool apart)
{
    return apart ? a * b + c : aot_model_multiply_add(a, b, c);
}

/* NaN stays NaN, and the sign of a zero its sign. */
AOT_MODEL_INLINE float aot_model_rational_tanh(float x, bool apart)
{
    float square;
    float odd;
    float even;
    square = x * x;
    odd = aot_model_step(-2.76076847742355e-16f, square, 2.00018790482477e-13f, apart);
    odd = aot_model_step(odd, square, -8.60467152213735e-11f, apart);
    odd = aot_model_step(odd, square, 5.12229709037114e-08f, apart);
    odd = aot_model_step(odd, square, 1.48572235717979e-05f, apart);
    odd = aot_model_step(odd, square, 6.37261928875436e-04f, apart);
    odd = aot_model_step(odd, square, 4.89352455891786e-03f, apart);
    even = aot_model_step(1.19825839466702e-06f, square, 1.18534705686654e-04f, apart);
    even = aot_model_step(even, square, 2.26843463243900e-03f, apart);
    even = aot_model_step(even, square, 4.89352518554385e-03f, apart);
    return odd * x / even;
}

AOT_MODEL_INLINE float aot_model_rational_logistic(float x, bool apart)
{
    float square;
    float odd;
    float even;
    square = x * x;
    odd = aot_model_step(4.37031012579801e-11f, square, 1.15627324459942e-07f, apart);
    odd = aot_model_step(odd, square, 6.08574864600143e-05f, apart);
    odd = aot_model_step(odd, square, 8.51377133304701e-03f, apart);
    odd = aot_model_step(odd, square, 2.48287947061529e-01f, apart);
    even = aot_model_step(6.10247389755681e-13f, square, 5.76102136993427e-09f, apart);
    even = aot_model_step(even, square, 6.29106785017040e-06f, apart);
    even = aot_model_step(even, square, 1.70198817374094e-03f, apart);
    even = aot_model_step(even, square, 1.16817656904453e-01f, apart);
    even = aot_model_step(even, square, 9.93151921023180e-01f, apart);
    return odd * x / even + 0.5f;
}

/* Arguments are clamped: beyond the curves are flat. */
AOT_MODEL_INLINE float aot_model_clamped_tanh(float x, bool apart)
{
    x = (x < -9.0f) ? -9.0f : x;
    x = (x > 9.0f) ? 9.0f : x;
    return aot_model_rational_tanh(x, apart);
}

AOT_MODEL_INLINE float aot_model_clamped_logistic(float x, bool apart)
{
    x = (x < -18.0f) ? -18.0f : x;
    x = (x > 18.0f) ? 18.0f : x;
    x = aot_model_rational_logistic(x, apart);
    return (x < 0.0f) ? 0.0f : x;
}

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' /* to compare floats takes long there: once, as integers */
AOT_MODEL_FUNCTION float aot_model_far_tanh(float x) { return aot_model_clamped_tanh(x, false); }
AOT_MODEL_FUNCTION float aot_model_far_logistic(float x) { return aot_model_clamped_logistic(x, false); }

AOT_MODEL_INLINE bool aot_model_is_far(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits << 1) > 0x82000000u; /* not |x| <= 8 */
}

AOT_MODEL_INLINE float aot_model_any_tanh(float x, bool apart)
{
    return aot_model_is_far(x) ? aot_model_far_tanh(x) : aot_model_rational_tanh(x, apart);
}

AOT_MODEL_INLINE float aot_model_any_logistic(float x, bool apart)
{
    return aot_model_is_far(x) ? aot_model_far_logistic(x) : aot_model_rational_logistic(x, apart);
}
#else
AOT_MODEL_INLINE float aot_model_any_tanh(float x, bool apart) { return aot_model_clamped_tanh(x, apart); }
AOT_MODEL_INLINE float aot_model_any_logistic(float x, bool apart) { return aot_model_clamped_logistic(x, apart); }
#endif

AOT_MODEL_INLINE float aot_model_tanh_float32(float x) { return aot_model_any_tanh(x, false); }
AOT_MODEL_INLINE float aot_model_logistic_float32(float x) { return aot_model_any_logistic(x, false); }

/* Of gates, whose arguments are sums that ONNX Runtime rounds otherwise. */
AOT_MODEL_INLINE float aot_model_tanh_apart_float32(float x) { return aot_model_any_tanh(x, true); }
AOT_MODEL_INLINE float aot_model_logistic_apart_float32(float x) { return aot_model_any_logistic(x, true); }

#endif
