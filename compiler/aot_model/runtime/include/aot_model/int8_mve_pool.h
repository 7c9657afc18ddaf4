/* Pooling of int8 with Helium, channels in the lanes: pooling_windows.py. Part of aot-model.
 *
 * The mean is a sum in 16-bit lanes (32-bit beyond 255 elements) and a division by the number of elements, ties away from zero:
 * (|sum| + n/2) / n by a multiplication with ceil(2^(16+k) / n), k = ceil(log2 n) - 1. That is exact: with a = |sum| + n/2 <=
 * 128.5 n and e = M n - 2^(16+k) < n <= 2^(k+1), a e < 128.5 n^2 <= 2^(16+k) for n <= 255. In 32 bits M = ceil(2^32 / n) does for
 * n <= 5000 by the same inequality. */
#ifndef AOT_MODEL_INT8_MVE_POOL_H
#define AOT_MODEL_INT8_MVE_POOL_H

#include "aot_model/int8_mve.h"

#if AOT_MODEL_MVE
/* The means of a window of n elements, in lanes of `bits` bits; divide: of |sum| + n/2. */
#define AOT_MVE_AVERAGE(bits, lanes, divide)                                                                           \
    for (int32_t c = 0; c < channels; c += lanes) {                                                                    \
        const mve_pred16_t p = vctp##bits##q((uint32_t)(channels - c));                                                \
        int##bits##x##lanes##_t sum = vdupq_n_s##bits(0);                                                              \
        for (int32_t r = 0; r < rows; r++) {                                                                           \
            const int8_t *from = x + r * pitch + c;                                                                    \
            for (int32_t k = 0; k < columns; k++, from += channels) {                                                  \
                sum = vaddq_s##bits(sum, vldrbq_z_s##bits(from, p));                                                   \
            }                                                                                                          \
        }                                                                                                              \
        uint##bits##x##lanes##_t mean = vreinterpretq_u##bits##_s##bits(vabsq_s##bits(sum));                           \
        mean = vaddq_n_u##bits(mean, (uint##bits##_t)(n / 2));                                                         \
        if (n > 1) {                                                                                                   \
            mean = divide;                                                                                             \
        }                                                                                                              \
        int##bits##x##lanes##_t value = vreinterpretq_s##bits##_u##bits(mean);                                         \
        value = vnegq_m_s##bits(value, value, vcmpltq_n_s##bits(sum, 0));                                              \
        value = low > -128 ? vmaxq_s##bits(value, vdupq_n_s##bits((int##bits##_t)low)) : value;                        \
        value = high < 127 ? vminq_s##bits(value, vdupq_n_s##bits((int##bits##_t)high)) : value;                       \
        vstrbq_p_s##bits(y + c, value, p);                                                                             \
    }
#else
#define AOT_MVE_AVERAGE(bits, lanes, divide)                                                                           \
    for (int32_t c = 0; c < channels; c++) {                                                                           \
        int32_t sum = 0;                                                                                               \
        for (int32_t r = 0; r < rows; r++) {                                                                           \
            for (int32_t k = 0; k < columns; k++) {                                                                    \
                sum += x[r * pitch + k * channels + c];                                                                \
            }                                                                                                          \
        }                                                                                                              \
        y[c] = aot_mve_clamp(sum > 0 ? (sum + n / 2) / n : (sum - n / 2) / n, low, high);                              \
    }
#endif

/* The means of a window of up to 255 pixels, clamped to [low, high]; a pixel is `channels` elements, a row `pitch`. */
AOT_MODEL_MVE_LOOP void aot_mve_average(const int8_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels, int32_t low,
                                        int32_t high, int8_t *y)
{
    AOT_MODEL_BARRIER;
    const int32_t n = rows * columns;
#if AOT_MODEL_MVE
    const int32_t shift = n > 1 ? 31 - __builtin_clz((uint32_t)(n - 1)) : -1;
    const uint16_t inverse = (uint16_t)(n > 1 ? ((1u << (16 + shift)) + (uint32_t)n - 1u) / (uint32_t)n : 0u);
#endif
    AOT_MVE_AVERAGE(16, 8, vshlq_r_u16(vmulhq_u16(mean, vdupq_n_u16(inverse)), -shift))
    AOT_MODEL_BARRIER;
}

/* The same for up to 5000 pixels. */
AOT_MODEL_MVE_LOOP void aot_mve_average_large(const int8_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels, int32_t low,
                                        int32_t high, int8_t *y)
{
    AOT_MODEL_BARRIER;
    const int32_t n = rows * columns;
#if AOT_MODEL_MVE
    const uint32_t inverse = n > 1 ? 0xFFFFFFFFu / (uint32_t)n + 1u : 0u;
#endif
    AOT_MVE_AVERAGE(32, 4, vmulhq_u32(mean, vdupq_n_u32(inverse)))
    AOT_MODEL_BARRIER;
}

/* The largest elements of a window, clamped to [low, high]. */
AOT_MODEL_MVE_LOOP void aot_mve_maximum(const int8_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels, int32_t low,
                                        int32_t high, int8_t *y)
{
    AOT_MODEL_BARRIER;
#if AOT_MODEL_MVE
    for (int32_t c = 0; c < channels; c += 16) {
        const mve_pred16_t p = vctp8q((uint32_t)(channels - c));
        int8x16_t best = vdupq_n_s8((int8_t)low);
        for (int32_t r = 0; r < rows; r++) {
            const int8_t *from = x + r * pitch + c;
            for (int32_t k = 0; k < columns; k++, from += channels) {
                best = vmaxq_s8(best, vldrbq_z_s8(from, p));
            }
        }
        vstrbq_p_s8(y + c, high < 127 ? vminq_s8(best, vdupq_n_s8((int8_t)high)) : best, p);
    }
#else
    for (int32_t c = 0; c < channels; c++) {
        int32_t best = low;
        for (int32_t r = 0; r < rows; r++) {
            for (int32_t k = 0; k < columns; k++) {
                const int32_t value = x[r * pitch + k * channels + c];
                best = value > best ? value : best;
            }
        }
        y[c] = aot_mve_clamp(best, low, high);
    }
#endif
    AOT_MODEL_BARRIER;
}

#undef AOT_MVE_AVERAGE

#endif
