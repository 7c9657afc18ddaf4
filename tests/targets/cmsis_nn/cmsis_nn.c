/* The documented arithmetic of the functions in arm_nnfunctions.h, plainly: TensorFlow Lite's int8 reference.
 *
 * Scratch is used as the library may use it: a buffer that is too small is an error, one that is large enough is
 * overwritten. ARM_MATH_DSP and ARM_MATH_MVEI (set by the compiler's flags, or with -D on the host) choose between the
 * library's three builds, which differ in what scratch they need.
 */
#include "arm_nnfunctions.h"

#include <stddef.h>
#include <string.h>

#define DEPTHWISE_BLOCK_MVE 124
#define ONE_CHANNEL_LIMIT_MVE 1

static int32_t largest(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int8_t clamped(int32_t v, int32_t low, int32_t high)
{
    return (int8_t)(v < low ? low : v > high ? high : v);
}

static int32_t high_multiply(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN) {
        return INT32_MAX;
    }
    return (int32_t)(((int64_t)a * b + (INT64_C(1) << 30)) >> 31);
}

static int32_t rounding_shift(int32_t v, int32_t bits)
{
    const int32_t mask = (int32_t)((1u << bits) - 1u), rest = v & mask;
    return (v >> bits) + (rest > (mask >> 1) + (v < 0 ? 1 : 0) ? 1 : 0);
}

static int32_t requantised(int32_t v, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
    return rounding_shift(high_multiply((int32_t)((uint32_t)v << left), multiplier), right);
}

/* ARM_CMSIS_NN_SUCCESS when a context has `needed` bytes; they are garbage afterwards. */
static arm_cmsis_nn_status take(const cmsis_nn_context *ctx, int32_t needed)
{
    if (needed <= 0) {
        return ARM_CMSIS_NN_SUCCESS;
    }
    if (ctx->buf == NULL || ctx->size < needed || ((uintptr_t)ctx->buf & 3u) != 0u) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    memset(ctx->buf, 0xA5, (size_t)needed);
    return ARM_CMSIS_NN_SUCCESS;
}

/* --- scratch --------------------------------------------------------------------------------------------------- */

static int32_t patch_size(const cmsis_nn_dims *x_dims, const cmsis_nn_dims *w_dims)
{
    const int32_t patch = x_dims->c * w_dims->h * w_dims->w;
#if defined(ARM_MATH_MVEI)
    return 4 * ((patch + 15) / 16 * 16);
#else
    return 2 * ((patch + 3) / 4 * 4) * 2;
#endif
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *params, const cmsis_nn_dims *x_dims,
                                                const cmsis_nn_dims *w_dims, const cmsis_nn_dims *y_dims)
{
    const int32_t same_channels = x_dims->c == w_dims->c, undilated = params->dilation.w == 1 && params->dilation.h == 1;
    if (same_channels && undilated && w_dims->w == 1 && w_dims->h == 1 && params->padding.w == 0 && params->padding.h == 0) {
        return 0;
    }
    (void)y_dims;
    return patch_size(x_dims, w_dims);
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *params, const cmsis_nn_dims *x_dims,
                                                      const cmsis_nn_dims *w_dims, const cmsis_nn_dims *y_dims)
{
#if defined(ARM_MATH_MVEI)
    if (x_dims->c == 1 && y_dims->c > ONE_CHANNEL_LIMIT_MVE) {
        const cmsis_nn_conv_params as_conv = {params->input_offset, params->output_offset, params->stride, params->padding,
                                              params->dilation, params->activation};
        const cmsis_nn_dims filter = {w_dims->c, w_dims->h, w_dims->w, w_dims->n};
        return arm_convolve_wrapper_s8_get_buffer_size(&as_conv, x_dims, &filter, y_dims) + w_dims->c * w_dims->h * w_dims->w * w_dims->n;
    }
#endif
    if (x_dims->c != y_dims->c || x_dims->n != 1 || params->dilation.w != 1 || params->dilation.h != 1) {
        return 0;
    }
#if defined(ARM_MATH_MVEI)
    return 4 * DEPTHWISE_BLOCK_MVE * w_dims->w * w_dims->h;
#else
    if (w_dims->w == 3 && w_dims->h == 3 && params->padding.h <= 1 && params->padding.w <= 1) {
        return 0;
    }
#if defined(ARM_MATH_DSP)
    return 2 * x_dims->c * w_dims->w * w_dims->h;
#else
    return 0;
#endif
#endif
}

int32_t arm_fully_connected_s8_get_buffer_size(const cmsis_nn_dims *w_dims)
{
#if defined(ARM_MATH_MVEI)
    return 4 * w_dims->c;
#else
    (void)w_dims;
    return 0;
#endif
}

int32_t arm_avgpool_s8_get_buffer_size(const int y_width, const int channels)
{
    (void)y_width;
#if defined(ARM_MATH_DSP) && !defined(ARM_MATH_MVEI)
    return 4 * channels;
#else
    (void)channels;
    return 0;
#endif
}

/* --- layers ---------------------------------------------------------------------------------------------------- */

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_conv_params *params,
                                            const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *x_dims, const int8_t *x,
                                            const cmsis_nn_dims *w_dims, const int8_t *w, const cmsis_nn_dims *bias_dims,
                                            const int32_t *bias, const cmsis_nn_dims *y_dims, int8_t *y)
{
    const int32_t groups = x_dims->c / w_dims->c, per_group = y_dims->c / (groups > 0 ? groups : 1);
    (void)bias_dims;
#if defined(ARM_MATH_MVEI) /* where the library's code for rows is not to be relied on */
    if (x_dims->h == 1 && w_dims->h == 1 && params->dilation.w == 1 && !(w_dims->w == 1 && y_dims->w == x_dims->w)) {
        return ARM_CMSIS_NN_NO_IMPL_ERROR;
    }
#endif
    if (w_dims->h == 1 && w_dims->w == 1 && params->padding.h == 0 && params->padding.w == 0 && /* where the library looks at x only */
        ((x_dims->h - 1) / params->stride.h + 1 != y_dims->h || (x_dims->w - 1) / params->stride.w + 1 != y_dims->w)) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    if (groups == 0 || x_dims->c % w_dims->c != 0 || y_dims->c % groups != 0 ||
        take(ctx, arm_convolve_wrapper_s8_get_buffer_size(params, x_dims, w_dims, y_dims)) != ARM_CMSIS_NN_SUCCESS) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t n = 0; n < x_dims->n; ++n) {
        for (int32_t oy = 0; oy < y_dims->h; ++oy) {
            for (int32_t ox = 0; ox < y_dims->w; ++ox) {
                for (int32_t o = 0; o < y_dims->c; ++o) {
                    int32_t sum = bias != NULL ? bias[o] : 0;
                    for (int32_t ky = 0; ky < w_dims->h; ++ky) {
                        for (int32_t kx = 0; kx < w_dims->w; ++kx) {
                            const int32_t iy = oy * params->stride.h - params->padding.h + ky * params->dilation.h;
                            const int32_t ix = ox * params->stride.w - params->padding.w + kx * params->dilation.w;
                            if (iy < 0 || iy >= x_dims->h || ix < 0 || ix >= x_dims->w) {
                                continue;
                            }
                            for (int32_t c = 0; c < w_dims->c; ++c) {
                                const int32_t from = ((n * x_dims->h + iy) * x_dims->w + ix) * x_dims->c + o / per_group * w_dims->c + c;
                                sum += (x[from] + params->input_offset) * w[((o * w_dims->h + ky) * w_dims->w + kx) * w_dims->c + c];
                            }
                        }
                    }
                    *y++ = clamped(requantised(sum, quant->multiplier[o], quant->shift[o]) + params->output_offset,
                                   params->activation.min, params->activation.max);
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(const cmsis_nn_context *ctx, const cmsis_nn_dw_conv_params *params,
                                                  const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *x_dims,
                                                  const int8_t *x, const cmsis_nn_dims *w_dims, const int8_t *w,
                                                  const cmsis_nn_dims *bias_dims, const int32_t *bias, const cmsis_nn_dims *y_dims,
                                                  int8_t *y)
{
    (void)bias_dims;
    if (params->ch_mult * x_dims->c != y_dims->c || w_dims->c != y_dims->c ||
        take(ctx, arm_depthwise_conv_wrapper_s8_get_buffer_size(params, x_dims, w_dims, y_dims)) != ARM_CMSIS_NN_SUCCESS) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t n = 0; n < x_dims->n; ++n) {
        for (int32_t oy = 0; oy < y_dims->h; ++oy) {
            for (int32_t ox = 0; ox < y_dims->w; ++ox) {
                for (int32_t o = 0; o < y_dims->c; ++o) {
                    int32_t sum = bias != NULL ? bias[o] : 0;
                    for (int32_t ky = 0; ky < w_dims->h; ++ky) {
                        for (int32_t kx = 0; kx < w_dims->w; ++kx) {
                            const int32_t iy = oy * params->stride.h - params->padding.h + ky * params->dilation.h;
                            const int32_t ix = ox * params->stride.w - params->padding.w + kx * params->dilation.w;
                            if (iy >= 0 && iy < x_dims->h && ix >= 0 && ix < x_dims->w) {
                                const int32_t from = ((n * x_dims->h + iy) * x_dims->w + ix) * x_dims->c + o / params->ch_mult;
                                sum += (x[from] + params->input_offset) * w[(ky * w_dims->w + kx) * w_dims->c + o];
                            }
                        }
                    }
                    *y++ = clamped(requantised(sum, quant->multiplier[o], quant->shift[o]) + params->output_offset,
                                   params->activation.min, params->activation.max);
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}

/* steps: distance of the multipliers of two channels, 0 when there is one for all. */
static arm_cmsis_nn_status fully_connected(const cmsis_nn_context *ctx, const cmsis_nn_fc_params *params, const int32_t *multiplier,
                                           const int32_t *shift, int32_t step, const cmsis_nn_dims *x_dims, const int8_t *x,
                                           const cmsis_nn_dims *w_dims, const int8_t *w, const int32_t *bias, const cmsis_nn_dims *y_dims,
                                           int8_t *y)
{
    const int32_t needed = arm_fully_connected_s8_get_buffer_size(w_dims);
    if (needed > 0 && (ctx->buf == NULL || ctx->size < needed)) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    for (int32_t n = 0; n < x_dims->n; ++n) {
        for (int32_t o = 0; o < y_dims->c; ++o) {
            int32_t sum;
            if (needed > 0) { /* the constant part of the accumulator, bias included, is what the buffer holds */
                sum = ((const int32_t *)ctx->buf)[o];
                for (int32_t k = 0; k < w_dims->n; ++k) {
                    sum += x[n * w_dims->n + k] * (w[o * w_dims->n + k] + params->filter_offset);
                }
            } else {
                sum = bias != NULL ? bias[o] : 0;
                for (int32_t k = 0; k < w_dims->n; ++k) {
                    sum += (x[n * w_dims->n + k] + params->input_offset) * (w[o * w_dims->n + k] + params->filter_offset);
                }
            }
            *y++ = clamped(requantised(sum, multiplier[o * step], shift[o * step]) + params->output_offset, params->activation.min,
                           params->activation.max);
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_fully_connected_s8(const cmsis_nn_context *ctx, const cmsis_nn_fc_params *params,
                                           const cmsis_nn_per_tensor_quant_params *quant, const cmsis_nn_dims *x_dims, const int8_t *x,
                                           const cmsis_nn_dims *w_dims, const int8_t *w, const cmsis_nn_dims *bias_dims,
                                           const int32_t *bias, const cmsis_nn_dims *y_dims, int8_t *y)
{
    (void)bias_dims;
    return fully_connected(ctx, params, &quant->multiplier, &quant->shift, 0, x_dims, x, w_dims, w, bias, y_dims, y);
}

arm_cmsis_nn_status arm_fully_connected_per_channel_s8(const cmsis_nn_context *ctx, const cmsis_nn_fc_params *params,
                                                       const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *x_dims,
                                                       const int8_t *x, const cmsis_nn_dims *w_dims, const int8_t *w,
                                                       const cmsis_nn_dims *bias_dims, const int32_t *bias, const cmsis_nn_dims *y_dims,
                                                       int8_t *y)
{
    (void)bias_dims;
    return fully_connected(ctx, params, quant->multiplier, quant->shift, 1, x_dims, x, w_dims, w, bias, y_dims, y);
}

/* Maximum, or average of what lies inside the image, ties away from zero. */
static arm_cmsis_nn_status pool(int maximum, const cmsis_nn_pool_params *params, const cmsis_nn_dims *x_dims, const int8_t *x,
                                const cmsis_nn_dims *window, const cmsis_nn_dims *y_dims, int8_t *y)
{
    for (int32_t n = 0; n < x_dims->n; ++n) {
        for (int32_t oy = 0; oy < y_dims->h; ++oy) {
            for (int32_t ox = 0; ox < y_dims->w; ++ox) {
                for (int32_t c = 0; c < x_dims->c; ++c) {
                    int32_t sum = 0, count = 0, most = INT8_MIN;
                    for (int32_t ky = 0; ky < window->h; ++ky) {
                        for (int32_t kx = 0; kx < window->w; ++kx) {
                            const int32_t iy = oy * params->stride.h - params->padding.h + ky;
                            const int32_t ix = ox * params->stride.w - params->padding.w + kx;
                            if (iy >= 0 && iy < x_dims->h && ix >= 0 && ix < x_dims->w) {
                                const int32_t v = x[((n * x_dims->h + iy) * x_dims->w + ix) * x_dims->c + c];
                                sum += v;
                                ++count;
                                most = largest(most, v);
                            }
                        }
                    }
                    if (count == 0) {
                        return ARM_CMSIS_NN_ARG_ERROR;
                    }
                    sum = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
                    *y++ = clamped(maximum ? most : sum, params->activation.min, params->activation.max);
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *params, const cmsis_nn_dims *x_dims,
                                   const int8_t *x, const cmsis_nn_dims *window, const cmsis_nn_dims *y_dims, int8_t *y)
{
    if (take(ctx, arm_avgpool_s8_get_buffer_size(y_dims->w, x_dims->c)) != ARM_CMSIS_NN_SUCCESS) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return pool(0, params, x_dims, x, window, y_dims, y);
}

arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *ctx, const cmsis_nn_pool_params *params, const cmsis_nn_dims *x_dims,
                                    const int8_t *x, const cmsis_nn_dims *window, const cmsis_nn_dims *y_dims, int8_t *y)
{
    (void)ctx;
    return pool(1, params, x_dims, x, window, y_dims, y);
}

arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t *a, const int8_t *b, const int32_t a_offset, const int32_t a_multiplier,
                                           const int32_t a_shift, const int32_t b_offset, const int32_t b_multiplier,
                                           const int32_t b_shift, const int32_t left_shift, int8_t *y, const int32_t y_offset,
                                           const int32_t y_multiplier, const int32_t y_shift, const int32_t low, const int32_t high,
                                           const int32_t count)
{
    for (int32_t k = 0; k < count; ++k) {
        const int32_t left = requantised((a[k] + a_offset) * (1 << left_shift), a_multiplier, a_shift);
        const int32_t right = requantised((b[k] + b_offset) * (1 << left_shift), b_multiplier, b_shift);
        y[k] = clamped(requantised(left + right, y_multiplier, y_shift) + y_offset, low, high);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_elementwise_mul_s8(const int8_t *a, const int8_t *b, const int32_t a_offset, const int32_t b_offset, int8_t *y,
                                           const int32_t y_offset, const int32_t y_multiplier, const int32_t y_shift,
                                           const int32_t low, const int32_t high, const int32_t count)
{
    for (int32_t k = 0; k < count; ++k) {
        y[k] = clamped(requantised((a[k] + a_offset) * (b[k] + b_offset), y_multiplier, y_shift) + y_offset, low, high);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

/* --- softmax: gemmlowp's fixed-point functions ------------------------------------------------------------------- */

/* exp(v) in Q0.31 of v <= 0 in Q5.26: a polynomial for the last quarter, a factor for each higher bit. */
static int32_t exponential(int32_t v)
{
    static const int32_t factors[7] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    const int32_t quarter = 1 << 24, part = (v & (quarter - 1)) - quarter, rest = part - v;
    const int32_t x = part * 32 + (1 << 28), x2 = high_multiply(x, x);
    const int32_t inner = high_multiply(rounding_shift(high_multiply(x2, x2), 2) + high_multiply(x2, x), 715827883) + x2;
    int32_t result = 1895147668 + high_multiply(1895147668, x + rounding_shift(inner, 1));
    for (int32_t k = 0; k < 7; ++k) {
        if ((rest & (1 << (24 + k))) != 0) {
            result = high_multiply(result, factors[k]);
        }
    }
    return v == 0 ? INT32_MAX : result;
}

/* 1 / (1 + v) in Q0.31 of v in [0, 1) in Q0.31: three steps of Newton and Raphson. */
static int32_t reciprocal(int32_t v)
{
    const int32_t half = (int32_t)(((int64_t)v + INT32_MAX + 1) / 2);
    int32_t x = 1515870810 + high_multiply(half, -1010580540);
    for (int32_t k = 0; k < 3; ++k) {
        x += high_multiply(x, (1 << 29) - high_multiply(half, x)) * 4;
    }
    return x > INT32_MAX / 2 ? INT32_MAX : x * 2;
}

void arm_softmax_s8(const int8_t *x, const int32_t rows, const int32_t row_size, const int32_t multiplier, const int32_t shift,
                    const int32_t least, int8_t *y)
{
    for (int32_t row = 0; row < rows; ++row, x += row_size, y += row_size) {
        int32_t most = INT8_MIN, sum = 0, zeros = 0;
        for (int32_t k = 0; k < row_size; ++k) {
            most = largest(most, x[k]);
        }
        for (int32_t k = 0; k < row_size; ++k) {
            if (x[k] - most >= least) {
                sum += rounding_shift(exponential(high_multiply((x[k] - most) * (1 << shift), multiplier)), 12);
            }
        }
        while (zeros < 31 && ((uint32_t)sum << zeros & 0x80000000u) == 0u) {
            ++zeros;
        }
        for (int32_t k = 0; k < row_size; ++k) {
            int32_t value = INT8_MIN;
            if (x[k] - most >= least) {
                const int32_t e = exponential(high_multiply((x[k] - most) * (1 << shift), multiplier));
                const int32_t scale = reciprocal((int32_t)(((uint32_t)sum << zeros) - 0x80000000u));
                value = rounding_shift(high_multiply(scale, e), 12 - zeros + 23) + INT8_MIN;
            }
            y[k] = clamped(value, INT8_MIN, INT8_MAX);
        }
    }
}
