/* exp, log, tanh, erf, the logistic function, exp(x) - 1, log(1 + x) and softplus for processors with vectors: no branch and no
 * constant that an argument becomes on one way only, so that compilers make vectors of the loops around. What is no normal case
 * is chosen by bits: GCC moves a choice between floats back into branches.
 * Largest errors, in units in the last place, all arguments tried (tests/runtime/test_exponential.py tries a part): exp 1.1,
 * tanh 1.5, erf 1.4, logistic 2.5, expm1 1.7, log 1.0, log1p 1.6, softplus_rest 3.2. The polynomials are those of exponential.h.
 * expm1 and log1p of -0 are 0.
 * Part of aot-model. */
#ifndef AOT_MODEL_EXPONENTIAL_LANES_H
#define AOT_MODEL_EXPONENTIAL_LANES_H

#include <math.h>

#include "aot_model/lanes.h"

/* Bits of numbers without their sign are in the order of the numbers; those of NaN are above infinity's. */
#define AOT_MODEL_INFINITY_BITS 0x7F800000u
#define AOT_MODEL_NAN_BITS 0x7FC00000u

/* |x|, at most the number of these bits; NaN is that number. */
AOT_MODEL_INLINE float aot_model_lanes_size(float x, uint32_t most)
{
    const uint32_t size = aot_model_bits_of(x) & 0x7FFFFFFFu;
    return aot_model_float_of((size < most) ? size : most);
}

/* y, and NaN where x is. */
AOT_MODEL_INLINE float aot_model_lanes_or_nan(float y, float x)
{
    const uint32_t size = aot_model_bits_of(x) & 0x7FFFFFFFu;
    const uint32_t mask = aot_model_mask_if(size > AOT_MODEL_INFINITY_BITS);
    return aot_model_float_of(aot_model_bits_of(y) | (mask & AOT_MODEL_NAN_BITS));
}

/* 2^n, -126 <= n <= 127. */
AOT_MODEL_INLINE float aot_model_power_of_two(int32_t n) { return aot_model_float_of((uint32_t)(n + 127) << 23); }

/* exp(x) = 2^n * exp(r), n an integer and |r| <= log(2) / 2. The result is exp(r) - 1. |x| <= 128. */
AOT_MODEL_INLINE float aot_model_lanes_exp_parts(float x, int32_t *n)
{
    const float turns = x * 1.44269504f;
    const int32_t nearest = (int32_t)(turns + copysignf(0.5f, turns));
    const float whole = (float)nearest;
    const float r = (x - whole * 0.693145752f) - whole * 1.42860677e-6f; /* the logarithm of 2: 15 bits, its rest */
    const float square = r * r;
    const float q = (0.49999994f + 0.16666521f * r) + square * ((0.041668255f + 0.008368662f * r) + square * 0.0013821454f);
    *n = nearest;
    return r + square * q;
}

/* Of what is between -104 and 104: 0 and infinity are the product's. */
AOT_MODEL_INLINE float aot_model_lanes_exp_within(float x)
{
    int32_t n;
    const float e = 1.0f + aot_model_lanes_exp_parts(x, &n);
    const int32_t half = n >> 1;
    return (e * aot_model_power_of_two(half)) * aot_model_power_of_two(n - half);
}

AOT_MODEL_INLINE float aot_model_lanes_exp(float x)
{
    const float within = copysignf(aot_model_lanes_size(x, 0x42D00000u), x); /* 104 */
    return aot_model_lanes_or_nan(aot_model_lanes_exp_within(within), x);
}

/* exp(x) - 1 = 2^n * (exp(r) - 1) + (2^n - 1); without the second where it is 0, so that no sum in another order loses a
 * small x. 2^128 is twice 2^127. */
AOT_MODEL_INLINE float aot_model_lanes_expm1(float x)
{
    int32_t n;
    const float within = copysignf(aot_model_lanes_size(x, 0x42B20000u), x); /* 89 */
    const float y = aot_model_lanes_exp_parts(within, &n);
    const int32_t half = n >> 1;
    const float low = aot_model_power_of_two(half);
    const float high = aot_model_power_of_two(n - half);
    const float large = (y * low) * high + (low * high - 1.0f);
    const float huge = ((1.0f + y) * low) * high;
    const float some = aot_model_lanes_choose(aot_model_mask_if(n > 30), huge, large);
    return aot_model_lanes_or_nan(aot_model_lanes_choose(aot_model_mask_if(n == 0), y, some), x);
}

/* log(2^n * (1 + f)), 1 + f within sqrt(1/2) and sqrt(2). */
AOT_MODEL_INLINE float aot_model_log_parts(float f, int32_t n)
{
    const float whole = (float)n;
    const float square = f * f;
    const float low = (0.3333333f - 0.2500082f * f) + square * (0.20001242f - 0.16623409f * f);
    const float high = (0.1420158f - 0.1315961f * f) + square * (0.12762217f - 0.07636439f * f);
    const float rest = square * (f * (low + (square * square) * high) - 0.5f);
    return whole * 0.693145752f + (f + (rest + whole * 1.42860677e-6f));
}

/* The bits of sqrt(1/2): from one power of two times it to the next, the exponent of 1 + f is that of 1. */
#define AOT_MODEL_HALF_ROOT 0x3F3504F3u

/* y, the logarithm of x where that is a number above 0, else the logarithm of 0, infinity or NaN. */
AOT_MODEL_INLINE float aot_model_lanes_log_of(float y, float x)
{
    const uint32_t bits = aot_model_bits_of(x);
    const uint32_t above_zero = aot_model_mask_if(bits - 1u < AOT_MODEL_INFINITY_BITS - 1u);
    const uint32_t zero = aot_model_mask_if((bits << 1) == 0u);
    const uint32_t infinite = aot_model_mask_if(bits == AOT_MODEL_INFINITY_BITS);
    const uint32_t other = (zero & (AOT_MODEL_INFINITY_BITS | 0x80000000u)) | (infinite & AOT_MODEL_INFINITY_BITS) |
                           (~(zero | infinite) & AOT_MODEL_NAN_BITS);
    return aot_model_float_of((aot_model_bits_of(y) & above_zero) | (other & ~above_zero));
}

AOT_MODEL_INLINE float aot_model_lanes_log(float x)
{
    const uint32_t small = aot_model_mask_if(aot_model_bits_of(x) < 0x00800000u); /* no normal number */
    const uint32_t bits = aot_model_bits_of(x * aot_model_lanes_choose(small, 8388608.0f, 1.0f));
    const uint32_t above = bits - AOT_MODEL_HALF_ROOT;
    const float f = aot_model_float_of((above & 0x007FFFFFu) + AOT_MODEL_HALF_ROOT) - 1.0f;
    const int32_t n = ((int32_t)above >> 23) - (int32_t)(small & 23u);
    return aot_model_lanes_log_of(aot_model_log_parts(f, n), x);
}

/* log(1 + x): n is that of the sum, which is rounded; f of the exact one, and of the sum where 1 is less than its last place. */
AOT_MODEL_INLINE float aot_model_lanes_log1p(float x)
{
    const float sum = 1.0f + x;
    const uint32_t bits = aot_model_bits_of(sum);
    const uint32_t above = bits - AOT_MODEL_HALF_ROOT;
    const int32_t n = (int32_t)above >> 23;
    const float power = aot_model_float_of((uint32_t)(127 - n) << 23);
    const float alone = aot_model_float_of((above & 0x007FFFFFu) + AOT_MODEL_HALF_ROOT) - 1.0f;
    const float exact = aot_model_lanes_choose(aot_model_mask_if(n == 0), x, x * power + (power - 1.0f));
    const float f = aot_model_lanes_choose(aot_model_mask_if(n > 24), alone, exact);
    return aot_model_lanes_log_of(aot_model_log_parts(f, n), sum);
}

/* log(1 + exp(-|x|)): what softplus has more than the larger one of x and 0. exp(-|x|) is between 0 and 1: one polynomial. */
AOT_MODEL_INLINE float aot_model_lanes_softplus_rest(float x)
{
    const float e = aot_model_lanes_exp(-fabsf(x));
    const float square = e * e;
    float even = 0.10663869f + 0.0201045f * square;
    float odd = -0.057488006f - 0.003294917f * square;
    even = 0.1969249f + even * square;
    odd = -0.1534626f + odd * square;
    even = 0.33330467f + even * square;
    odd = -0.24958074f + odd * square;
    return e * (1.0f + e * (-0.4999993f + e * (even + e * odd)));
}

AOT_MODEL_INLINE float aot_model_lanes_logistic(float x)
{
    const float e = aot_model_lanes_exp(-fabsf(x));
    const uint32_t negative = aot_model_mask_if(aot_model_bits_of(x) >= 0x80000000u);
    return aot_model_lanes_choose(negative, e, 1.0f) / (1.0f + e);
}

/* y for numbers below one of these bits and NaN, for larger ones z with the sign of x. */
AOT_MODEL_INLINE float aot_model_lanes_odd(float x, uint32_t bits, float y, float z)
{
    const uint32_t size = aot_model_bits_of(x) & 0x7FFFFFFFu;
    const uint32_t large = aot_model_mask_if(size - bits <= AOT_MODEL_INFINITY_BITS - bits);
    return aot_model_lanes_choose(large, copysignf(z, x), y);
}

/* An odd polynomial for small x, else 1 - 2 / (exp(2 x) + 1), which is 1 from 9.1 on. */
AOT_MODEL_INLINE float aot_model_lanes_tanh(float x)
{
    const float size = aot_model_lanes_size(x, 0x41800000u); /* 16 */
    const float square = x * x;
    const float z = 1.0f - 2.0f / (aot_model_lanes_exp_within(2.0f * size) + 1.0f);
    float y = 0.021050714f - 0.0062428494f * square;
    y = -0.053847548f + y * square;
    y = 0.13332544f + y * square;
    y = -0.33333316f + y * square;
    return aot_model_lanes_odd(x, 0x3F0CCCCDu, x * (1.0f + square * y), z); /* 0.55 */
}

/* An odd polynomial for small x, else 1 - exp(log(erfc(x))) with a polynomial for the logarithm. */
AOT_MODEL_INLINE float aot_model_lanes_erf(float x)
{
    const float size = aot_model_lanes_size(x, 0x40800000u); /* 4: the result is 1 from 3.92 on */
    const float square = x * x;
    float y = 0.004995854f - 0.0006003808f * square;
    float z = -0.0030431906f + 0.00019593594f * size;
    y = -0.02676858f + y * square;
    y = 0.11281877f + y * square;
    y = -0.376125f + y * square;
    y = 0.12837915f + y * square;
    z = 0.022226796f + z * size;
    z = -0.10393135f + z * size;
    z = -0.6371825f + z * size;
    z = -1.1276755f + z * size;
    z = -0.00019568691f + z * size;
    return aot_model_lanes_odd(x, 0x3F6B851Fu, x + x * y, 1.0f - aot_model_lanes_exp_within(z)); /* 0.92 */
}

#endif
