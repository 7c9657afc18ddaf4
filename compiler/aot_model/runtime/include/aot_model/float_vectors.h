/* Functions of four floats in Helium, for loops over elements. The logistic function, tanh and quotients have the bits of the
 * scalar ones (rational.h); exp, log, erf and their kind are those of exponential.h, each product and sum rounded. Subnormal
 * numbers are 0 on the way, as in all arithmetic of Helium: results below 1e-35 may be.
 * Part of aot-model. */
#ifndef AOT_MODEL_FLOAT_VECTORS_H
#define AOT_MODEL_FLOAT_VECTORS_H

#include <math.h>
#include <stdint.h>

#include "aot_model/attributes.h"
#include "aot_model/exponential.h"
#include "aot_model/lanes_mve.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) && defined(__GNUC__)
#include <arm_mve.h>
#define AOT_MODEL_FLOAT_VECTORS 1

/* Floats of integers. LLVM (14, 19, 22) makes one conversion of this and a multiplication by a power of two that it knows, and
 * where a register has a number that is the exponent it takes the register's for it: what is converted is kept apart. */
AOT_MODEL_INLINE float32x4_t aot_model_four_of_int32(int32x4_t x)
{
    float32x4_t y = vcvtq_f32_s32(x);
#if defined(__clang__)
    __asm__("" : "+w"(y));
#endif
    return y;
}

/* There is no division of vectors: that of their lanes, where they lie. */
AOT_MODEL_INLINE float32x4_t aot_model_four_quotients(float32x4_t a, float32x4_t b)
{
    register float32x4_t over __asm__("q0") = a;
    register float32x4_t under __asm__("q1") = b;
    __asm__("vdiv.f32 s0, s0, s4\n\t"
            "vdiv.f32 s1, s1, s5\n\t"
            "vdiv.f32 s2, s2, s6\n\t"
            "vdiv.f32 s3, s3, s7"
            : "+w"(over)
            : "w"(under));
    return over;
}

/* The smaller and the larger one; a NaN of either is the result: aot_model_min_float32() and its kind. */
AOT_MODEL_INLINE float32x4_t aot_model_four_min(float32x4_t a, float32x4_t b)
{
    const float32x4_t one = vpselq_f32(b, a, vcmpgtq_f32(a, b));
    return vpselq_f32(one, b, vcmpeqq_f32(b, b));
}

AOT_MODEL_INLINE float32x4_t aot_model_four_max(float32x4_t a, float32x4_t b)
{
    const float32x4_t one = vpselq_f32(b, a, vcmpgtq_f32(b, a));
    return vpselq_f32(one, b, vcmpeqq_f32(b, b));
}

/* The same of all lanes of vectors: `least` and `most` of their numbers by vminnmq and vmaxnmq, `odd` the largest of their bits
 * without signs, those of a NaN where there is one. */
AOT_MODEL_INLINE uint32x4_t aot_model_four_odd(uint32x4_t odd, float32x4_t x)
{
    return vmaxq_u32(odd, vreinterpretq_u32_f32(vabsq_f32(x)));
}

AOT_MODEL_INLINE float aot_model_min_of_four(float32x4_t least, uint32x4_t odd)
{
    return vmaxvq_u32(0u, odd) > 0x7f800000u ? NAN : vminnmvq_f32(INFINITY, least);
}

AOT_MODEL_INLINE float aot_model_max_of_four(float32x4_t most, uint32x4_t odd)
{
    return vmaxvq_u32(0u, odd) > 0x7f800000u ? NAN : vmaxnmvq_f32(-INFINITY, most);
}

/* The sum and four terms, which are added one after the other. */
AOT_MODEL_INLINE float aot_model_plus_four(float sum, float32x4_t x)
{
    sum += vgetq_lane_f32(x, 0);
    sum += vgetq_lane_f32(x, 1);
    sum += vgetq_lane_f32(x, 2);
    return sum + vgetq_lane_f32(x, 3);
}

/* The sum of n floats, n >= 0, four partial sums of neighbours. */
AOT_MODEL_INLINE float aot_model_sum_of_floats(const float *x, int32_t n)
{
    float32x4_t four = vdupq_n_f32(0.0f);
    float sum;
    for (int32_t k = 0; k < n / 4; k++) {
        four = vaddq_f32(four, aot_model_load_f32(x + 4 * k));
    }
    sum = aot_model_plus_four(0.0f, four);
    for (int32_t k = n / 4 * 4; k < n; k++) {
        sum += x[k];
    }
    return sum;
}

/* x / d as two products, where the compiler has compared them with quotients: high + low is 1 / d. */
AOT_MODEL_INLINE float32x4_t aot_model_four_divided(float32x4_t x, float high, float low)
{
    return vfmaq_n_f32(vmulq_n_f32(x, low), x, high);
}

/* Whole numbers plus a zero point, within [low, high]. Those that are converted floats saturate, and of a NaN are 0. */
AOT_MODEL_INLINE int32x4_t aot_model_four_quantised(int32x4_t whole, int32_t zero, int32_t low, int32_t high)
{
    const int32x4_t moved = vqaddq_n_s32(whole, zero);
    return vminq_s32(vmaxq_s32(moved, vdupq_n_s32(low)), vdupq_n_s32(high));
}

/* Within -limit and limit; a NaN stays one: comparisons by > and >= are false for it, those by < and <= are not. */
AOT_MODEL_INLINE float32x4_t aot_model_four_limited(float32x4_t x, float limit)
{
    x = vpselq_f32(vdupq_n_f32(-limit), x, vcmpgtq_f32(vdupq_n_f32(-limit), x));
    return vpselq_f32(vdupq_n_f32(limit), x, vcmpgtq_n_f32(x, limit));
}

AOT_MODEL_INLINE float32x4_t aot_model_four_tanh(float32x4_t x)
{
    float32x4_t square;
    float32x4_t odd;
    float32x4_t even;
    x = aot_model_four_limited(x, 9.0f);
    square = vmulq_f32(x, x);
    odd = vfmasq_n_f32(vdupq_n_f32(-2.76076847742355e-16f), square, 2.00018790482477e-13f);
    odd = vfmasq_n_f32(odd, square, -8.60467152213735e-11f);
    odd = vfmasq_n_f32(odd, square, 5.12229709037114e-08f);
    odd = vfmasq_n_f32(odd, square, 1.48572235717979e-05f);
    odd = vfmasq_n_f32(odd, square, 6.37261928875436e-04f);
    odd = vfmasq_n_f32(odd, square, 4.89352455891786e-03f);
    even = vfmasq_n_f32(vdupq_n_f32(1.19825839466702e-06f), square, 1.18534705686654e-04f);
    even = vfmasq_n_f32(even, square, 2.26843463243900e-03f);
    even = vfmasq_n_f32(even, square, 4.89352518554385e-03f);
    return aot_model_four_quotients(vmulq_f32(odd, x), even);
}

AOT_MODEL_INLINE float32x4_t aot_model_four_logistic(float32x4_t x)
{
    float32x4_t square;
    float32x4_t odd;
    float32x4_t even;
    x = aot_model_four_limited(x, 18.0f);
    square = vmulq_f32(x, x);
    odd = vfmasq_n_f32(vdupq_n_f32(4.37031012579801e-11f), square, 1.15627324459942e-07f);
    odd = vfmasq_n_f32(odd, square, 6.08574864600143e-05f);
    odd = vfmasq_n_f32(odd, square, 8.51377133304701e-03f);
    odd = vfmasq_n_f32(odd, square, 2.48287947061529e-01f);
    even = vfmasq_n_f32(vdupq_n_f32(6.10247389755681e-13f), square, 5.76102136993427e-09f);
    even = vfmasq_n_f32(even, square, 6.29106785017040e-06f);
    even = vfmasq_n_f32(even, square, 1.70198817374094e-03f);
    even = vfmasq_n_f32(even, square, 1.16817656904453e-01f);
    even = vfmasq_n_f32(even, square, 9.93151921023180e-01f);
    x = vaddq_n_f32(aot_model_four_quotients(vmulq_f32(odd, x), even), 0.5f);
    return vpselq_f32(vdupq_n_f32(0.0f), x, vcmpgtq_f32(vdupq_n_f32(0.0f), x));
}

/* aot_model_exp_parts(). */
AOT_MODEL_INLINE float32x4_t aot_model_four_exp_parts(float32x4_t x, int32x4_t *n)
{
    const float32x4_t whole = vrndnq_f32(vmulq_n_f32(x, 1.44269504f));
    const float32x4_t r = vsubq_f32(vsubq_f32(x, vmulq_n_f32(whole, 0.693145752f)), vmulq_n_f32(whole, 1.42860677e-6f));
    const float32x4_t square = vmulq_f32(r, r);
    const float32x4_t low = vaddq_n_f32(vmulq_n_f32(r, 0.16666521f), 0.49999994f);
    const float32x4_t high = vaddq_n_f32(vmulq_n_f32(r, 0.008368662f), 0.041668255f);
    const float32x4_t q = vaddq_f32(low, vmulq_f32(square, vaddq_f32(high, vmulq_n_f32(square, 0.0013821454f))));
    *n = vcvtq_s32_f32(whole);
    return vaddq_f32(r, vmulq_f32(square, q));
}

/* |x| <= 87. */
AOT_MODEL_INLINE float32x4_t aot_model_four_exp_within(float32x4_t x)
{
    int32x4_t n;
    const float32x4_t y = vaddq_n_f32(aot_model_four_exp_parts(x, &n), 1.0f);
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(y), vshlq_n_s32(n, 23)));
}

/* 2^n, -126 <= n <= 127. */
AOT_MODEL_INLINE float32x4_t aot_model_four_powers(int32x4_t n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_n_s32(n, 127), 23));
}

/* aot_model_log_parts(). */
AOT_MODEL_INLINE float32x4_t aot_model_four_log_parts(float32x4_t f, int32x4_t n)
{
    const float32x4_t whole = aot_model_four_of_int32(n);
    const float32x4_t square = vmulq_f32(f, f);
    const float32x4_t a = vaddq_n_f32(vmulq_n_f32(f, -0.2500082f), 0.3333333f);
    const float32x4_t b = vaddq_n_f32(vmulq_n_f32(f, -0.16623409f), 0.20001242f);
    const float32x4_t c = vaddq_n_f32(vmulq_n_f32(f, -0.1315961f), 0.1420158f);
    const float32x4_t d = vaddq_n_f32(vmulq_n_f32(f, -0.07636439f), 0.12762217f);
    const float32x4_t high = vmulq_f32(vmulq_f32(square, square), vaddq_f32(c, vmulq_f32(square, d)));
    const float32x4_t p = vaddq_f32(vaddq_f32(a, vmulq_f32(square, b)), high);
    const float32x4_t rest = vmulq_f32(square, vsubq_f32(vmulq_f32(f, p), vdupq_n_f32(0.5f)));
    const float32x4_t less = vaddq_f32(f, vaddq_f32(rest, vmulq_n_f32(whole, 1.42860677e-6f)));
    return vaddq_f32(vmulq_n_f32(whole, 0.693145752f), less);
}

/* Lanes one by one, where results are no normal numbers. */
#define AOT_MODEL_FOUR_BEYOND(name)                                                                                             \
    AOT_MODEL_FUNCTION float32x4_t aot_model_four_##name##_beyond(float32x4_t x)                                                 \
    {                                                                                                                            \
        float lanes[4];                                                                                                          \
        aot_model_store_f32(lanes, x);                                                                                           \
        for (int32_t k = 0; k < 4; k++) {                                                                                        \
            lanes[k] = aot_model_short_##name(lanes[k]);                                                                         \
        }                                                                                                                        \
        return aot_model_load_f32(lanes);                                                                                        \
    }
AOT_MODEL_FOUR_BEYOND(exp)
AOT_MODEL_FOUR_BEYOND(expm1)
AOT_MODEL_FOUR_BEYOND(log)
AOT_MODEL_FOUR_BEYOND(log1p)
AOT_MODEL_FOUR_BEYOND(softplus_rest)

AOT_MODEL_INLINE float32x4_t aot_model_four_exp(float32x4_t x)
{
    if ((vcmpgeq_f32(vdupq_n_f32(87.0f), vabsq_f32(x)) & 0xffff) != 0xffff) {
        return aot_model_four_exp_beyond(x);
    }
    return aot_model_four_exp_within(x);
}

AOT_MODEL_INLINE float32x4_t aot_model_four_expm1(float32x4_t x)
{
    int32x4_t n;
    float32x4_t y;
    float32x4_t power;
    if ((vcmpgeq_f32(vdupq_n_f32(64.0f), vabsq_f32(x)) & 0xffff) != 0xffff) {
        return aot_model_four_expm1_beyond(x);
    }
    y = aot_model_four_exp_parts(x, &n);
    power = aot_model_four_powers(n);
    return vaddq_f32(vmulq_f32(power, y), vsubq_f32(power, vdupq_n_f32(1.0f)));
}

/* Whether x of these bits is a normal number larger than 0 whose bits are less than `end`, in all lanes. */
AOT_MODEL_INLINE bool aot_model_four_normal(int32x4_t bits, uint32_t end)
{
    const uint32x4_t above = vsubq_n_u32(vreinterpretq_u32_s32(bits), 0x00800000u);
    return (vcmphiq_u32(vdupq_n_u32(end - 0x00800000u), above) & 0xffff) == 0xffff;
}

AOT_MODEL_INLINE float32x4_t aot_model_four_log(float32x4_t x)
{
    const int32x4_t bits = vreinterpretq_s32_f32(x);
    int32x4_t above;
    int32x4_t near;
    if (!aot_model_four_normal(bits, 0x7F800000u)) {
        return aot_model_four_log_beyond(x);
    }
    above = vsubq_n_s32(bits, (int32_t)AOT_MODEL_HALF_ROOT);
    near = vsubq_s32(bits, vandq_s32(above, vdupq_n_s32(-0x00800000)));
    return aot_model_four_log_parts(vsubq_f32(vreinterpretq_f32_s32(near), vdupq_n_f32(1.0f)), vshrq_n_s32(above, 23));
}

AOT_MODEL_INLINE float32x4_t aot_model_four_log1p(float32x4_t x)
{
    const int32x4_t bits = vreinterpretq_s32_f32(vaddq_n_f32(x, 1.0f));
    int32x4_t n;
    float32x4_t power;
    if (!aot_model_four_normal(bits, 0x4C000000u)) {
        return aot_model_four_log1p_beyond(x);
    }
    n = vshrq_n_s32(vsubq_n_s32(bits, (int32_t)AOT_MODEL_HALF_ROOT), 23);
    power = aot_model_four_powers(vnegq_s32(n));
    return aot_model_four_log_parts(vaddq_f32(vmulq_f32(x, power), vsubq_f32(power, vdupq_n_f32(1.0f))), n);
}

AOT_MODEL_INLINE float32x4_t aot_model_four_softplus_rest(float32x4_t x)
{
    float32x4_t e;
    float32x4_t square;
    float32x4_t even;
    float32x4_t odd;
    if ((vcmpgeq_f32(vdupq_n_f32(64.0f), vabsq_f32(x)) & 0xffff) != 0xffff) {
        return aot_model_four_softplus_rest_beyond(x);
    }
    e = aot_model_four_exp_within(vnegq_f32(vabsq_f32(x)));
    square = vmulq_f32(e, e);
    even = vaddq_n_f32(vmulq_n_f32(square, 0.0201045f), 0.10663869f);
    odd = vaddq_n_f32(vmulq_n_f32(square, -0.003294917f), -0.057488006f);
    even = vaddq_n_f32(vmulq_f32(even, square), 0.1969249f);
    odd = vaddq_n_f32(vmulq_f32(odd, square), -0.1534626f);
    even = vaddq_n_f32(vmulq_f32(even, square), 0.33330467f);
    odd = vaddq_n_f32(vmulq_f32(odd, square), -0.24958074f);
    even = vaddq_f32(even, vmulq_f32(e, odd));
    even = vaddq_n_f32(vmulq_f32(e, even), -0.4999993f);
    even = vaddq_n_f32(vmulq_f32(e, even), 1.0f);
    return vmulq_f32(e, even);
}

AOT_MODEL_INLINE float32x4_t aot_model_four_sigmoid(float32x4_t x)
{
    const float32x4_t e = aot_model_four_exp(vnegq_f32(vabsq_f32(x)));
    const float32x4_t above = vpselq_f32(e, vdupq_n_f32(1.0f), vcmpltq_n_f32(x, 0.0f));
    return aot_model_four_quotients(above, vaddq_n_f32(e, 1.0f));
}

AOT_MODEL_INLINE float32x4_t aot_model_four_libm_tanh(float32x4_t x)
{
    const float32x4_t any = vabsq_f32(x);
    const float32x4_t square = vmulq_f32(x, x);
    const float32x4_t size = vpselq_f32(vdupq_n_f32(40.0f), any, vcmpgtq_n_f32(any, 40.0f)); /* 1 from 9.1 on */
    float32x4_t near;
    float32x4_t far;
    near = vaddq_n_f32(vmulq_n_f32(square, -0.0062428494f), 0.021050714f);
    near = vaddq_n_f32(vmulq_f32(near, square), -0.053847548f);
    near = vaddq_n_f32(vmulq_f32(near, square), 0.13332544f);
    near = vaddq_n_f32(vmulq_f32(near, square), -0.33333316f);
    near = vmulq_f32(x, vaddq_n_f32(vmulq_f32(square, near), 1.0f));
    far = vaddq_n_f32(aot_model_four_exp(vmulq_n_f32(size, 2.0f)), 1.0f);
    far = vsubq_f32(vdupq_n_f32(1.0f), aot_model_four_quotients(vdupq_n_f32(2.0f), far));
    far = vpselq_f32(vnegq_f32(far), far, vcmpltq_n_f32(x, 0.0f));
    return vpselq_f32(near, far, vcmpltq_n_f32(any, 0.55f));
}

AOT_MODEL_INLINE float32x4_t aot_model_four_erf(float32x4_t x)
{
    const float32x4_t any = vabsq_f32(x);
    const float32x4_t square = vmulq_f32(x, x);
    const float32x4_t size = vpselq_f32(vdupq_n_f32(4.0f), any, vcmpgtq_n_f32(any, 4.0f));
    float32x4_t near;
    float32x4_t far;
    near = vaddq_n_f32(vmulq_n_f32(square, -0.0006003808f), 0.004995854f);
    near = vaddq_n_f32(vmulq_f32(near, square), -0.02676858f);
    near = vaddq_n_f32(vmulq_f32(near, square), 0.11281877f);
    near = vaddq_n_f32(vmulq_f32(near, square), -0.376125f);
    near = vaddq_n_f32(vmulq_f32(near, square), 0.12837915f);
    near = vaddq_f32(x, vmulq_f32(x, near));
    far = vaddq_n_f32(vmulq_n_f32(size, 0.00019593594f), -0.0030431906f);
    far = vaddq_n_f32(vmulq_f32(far, size), 0.022226796f);
    far = vaddq_n_f32(vmulq_f32(far, size), -0.10393135f);
    far = vaddq_n_f32(vmulq_f32(far, size), -0.6371825f);
    far = vaddq_n_f32(vmulq_f32(far, size), -1.1276755f);
    far = vaddq_n_f32(vmulq_f32(far, size), -0.00019568691f);
    far = vsubq_f32(vdupq_n_f32(1.0f), aot_model_four_exp_within(far));
    far = vpselq_f32(vnegq_f32(far), far, vcmpltq_n_f32(x, 0.0f));
    far = vpselq_f32(near, far, vcmpltq_n_f32(any, 0.92f));
    return vpselq_f32(far, x, vcmpeqq_f32(x, x)); /* NaN */
}
#else
#define AOT_MODEL_FLOAT_VECTORS 0
#endif

#endif
