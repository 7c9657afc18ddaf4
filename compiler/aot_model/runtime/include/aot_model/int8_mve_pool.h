/* Pooling of int8, uint8 and int16 with Helium, channels in the lanes: pooling_windows.py. Part of aot-model.
 *
 * The mean is a sum in 16-bit lanes (32-bit beyond 255 elements) and a division by the number of elements, ties away from zero:
 * (|sum| + n/2) / n by a multiplication with ceil(2^(16+k) / n), k = ceil(log2 n) - 1. That is exact: with a = |sum| + n/2 <=
 * 128.5 n and e = M n - 2^(16+k) < n <= 2^(k+1), a e < 128.5 n^2 <= 2^(16+k) for n <= 255. In 32 bits M = ceil(2^32 / n) does for
 * n <= 5000 by the same inequality. uint8 has no signs, and an a of at most 255.5 n: n <= 128 and n <= 4000; for int16, whose a
 * is at most 32768.5 n, it does for n <= 362. Beyond, the quotient may be one too large, as a e < n 2^32 still: then its product
 * with n is larger than a. */
#ifndef AOT_MODEL_INT8_MVE_POOL_H
#define AOT_MODEL_INT8_MVE_POOL_H

#include "aot_model/int8_mve.h"

#if AOT_MODEL_MVE
/* What a mean of n elements is multiplied with. */
#define AOT_MVE_RECIPROCAL_OF_16_BITS                                                                                  \
    const int32_t shift = n > 1 ? 31 - __builtin_clz((uint32_t)(n - 1)) : -1;                                          \
    const uint16_t inverse = (uint16_t)(n > 1 ? ((1u << (16 + shift)) + (uint32_t)n - 1u) / (uint32_t)n : 0u);
#define AOT_MVE_RECIPROCAL_OF_32_BITS const uint32_t inverse = n > 1 ? 0xFFFFFFFFu / (uint32_t)n + 1u : 0u;
#define AOT_MVE_BY_16_BITS vshlq_r_u16(vmulhq_u16(mean, vdupq_n_u16(inverse)), -shift)
#define AOT_MVE_BY_32_BITS vmulhq_u32(mean, vdupq_n_u32(inverse))
/* The means of a window of n elements, in lanes of `bits` bits; divide: of |sum| + n/2. */
#define AOT_MVE_AVERAGE(type, letter, bits, lanes, least, most, divide)                                                \
    for (int32_t c = 0; c < channels; c += lanes) {                                                                    \
        const mve_pred16_t p = vctp##bits##q((uint32_t)(channels - c));                                                \
        int##bits##x##lanes##_t sum = vdupq_n_s##bits(0);                                                              \
        for (int32_t r = 0; r < rows; r++) {                                                                           \
            const type *from = x + r * pitch + c;                                                                      \
            for (int32_t k = 0; k < columns; k++, from += channels) {                                                  \
                sum = vaddq_s##bits(sum, vldr##letter##q_z_s##bits(from, p));                                          \
            }                                                                                                          \
        }                                                                                                              \
        uint##bits##x##lanes##_t mean = vreinterpretq_u##bits##_s##bits(vabsq_s##bits(sum));                           \
        mean = vaddq_n_u##bits(mean, (uint##bits##_t)(n / 2));                                                         \
        if (n > 1) {                                                                                                   \
            mean = divide;                                                                                             \
        }                                                                                                              \
        int##bits##x##lanes##_t value = vreinterpretq_s##bits##_u##bits(mean);                                         \
        value = vnegq_m_s##bits(value, value, vcmpltq_n_s##bits(sum, 0));                                              \
        value = low > least ? vmaxq_s##bits(value, vdupq_n_s##bits((int##bits##_t)low)) : value;                       \
        value = high < most ? vminq_s##bits(value, vdupq_n_s##bits((int##bits##_t)high)) : value;                      \
        vstr##letter##q_p_s##bits(y + c, value, p);                                                                    \
    }
#define AOT_MVE_AVERAGE_UINT8(bits, lanes, divide)                                                                     \
    for (int32_t c = 0; c < channels; c += lanes) {                                                                    \
        const mve_pred16_t p = vctp##bits##q((uint32_t)(channels - c));                                                \
        uint##bits##x##lanes##_t sum = vdupq_n_u##bits(0);                                                             \
        for (int32_t r = 0; r < rows; r++) {                                                                           \
            const uint8_t *from = x + r * pitch + c;                                                                   \
            for (int32_t k = 0; k < columns; k++, from += channels) {                                                  \
                sum = vaddq_u##bits(sum, vldrbq_z_u##bits(from, p));                                                   \
            }                                                                                                          \
        }                                                                                                              \
        uint##bits##x##lanes##_t mean = vaddq_n_u##bits(sum, (uint##bits##_t)(n / 2));                                 \
        if (n > 1) {                                                                                                   \
            mean = divide;                                                                                             \
        }                                                                                                              \
        mean = low > 0 ? vmaxq_u##bits(mean, vdupq_n_u##bits((uint##bits##_t)low)) : mean;                             \
        mean = high < 255 ? vminq_u##bits(mean, vdupq_n_u##bits((uint##bits##_t)high)) : mean;                         \
        vstrbq_p_u##bits(y + c, mean, p);                                                                              \
    }
#else
#define AOT_MVE_RECIPROCAL_OF_16_BITS
#define AOT_MVE_RECIPROCAL_OF_32_BITS
#define AOT_MVE_AVERAGE_UINT8(bits, lanes, divide) AOT_MVE_AVERAGE(uint8_t, b, bits, lanes, 0, 255, divide)
#define AOT_MVE_AVERAGE(type, letter, bits, lanes, least, most, divide)                                                \
    for (int32_t c = 0; c < channels; c++) {                                                                           \
        int32_t sum = 0;                                                                                               \
        for (int32_t r = 0; r < rows; r++) {                                                                           \
            for (int32_t k = 0; k < columns; k++) {                                                                    \
                sum += x[r * pitch + k * channels + c];                                                                \
            }                                                                                                          \
        }                                                                                                              \
        const int32_t mean = sum > 0 ? (sum + n / 2) / n : (sum - n / 2) / n;                                          \
        y[c] = (type)(mean < low ? low : mean > high ? high : mean);                                                   \
    }
#endif

/* The means of a window of up to 255 pixels, clamped to [low, high]; a pixel is `channels` elements, a row `pitch`. */
AOT_MODEL_MVE_LOOP void aot_mve_average(const int8_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels, int32_t low,
                                        int32_t high, int8_t *y)
{
    AOT_MODEL_BARRIER;
    const int32_t n = rows * columns;
    AOT_MVE_RECIPROCAL_OF_16_BITS
    AOT_MVE_AVERAGE(int8_t, b, 16, 8, -128, 127, AOT_MVE_BY_16_BITS)
    AOT_MODEL_BARRIER;
}

/* The same for up to 5000 pixels. */
AOT_MODEL_MVE_LOOP void aot_mve_average_large(const int8_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels, int32_t low,
                                        int32_t high, int8_t *y)
{
    AOT_MODEL_BARRIER;
    const int32_t n = rows * columns;
    AOT_MVE_RECIPROCAL_OF_32_BITS
    AOT_MVE_AVERAGE(int8_t, b, 32, 4, -128, 127, AOT_MVE_BY_32_BITS)
    AOT_MODEL_BARRIER;
}

/* The same of uint8, of up to 128 pixels. */
AOT_MODEL_MVE_LOOP void aot_mve_average_uint8(const uint8_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels,
                                              int32_t low, int32_t high, uint8_t *y)
{
    AOT_MODEL_BARRIER;
    const int32_t n = rows * columns;
    AOT_MVE_RECIPROCAL_OF_16_BITS
    AOT_MVE_AVERAGE_UINT8(16, 8, AOT_MVE_BY_16_BITS)
    AOT_MODEL_BARRIER;
}

/* The same for up to 4000 pixels. */
AOT_MODEL_MVE_LOOP void aot_mve_average_uint8_large(const uint8_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels,
                                                    int32_t low, int32_t high, uint8_t *y)
{
    AOT_MODEL_BARRIER;
    const int32_t n = rows * columns;
    AOT_MVE_RECIPROCAL_OF_32_BITS
    AOT_MVE_AVERAGE_UINT8(32, 4, AOT_MVE_BY_32_BITS)
    AOT_MODEL_BARRIER;
}

#if AOT_MODEL_MVE
/* mean / n, n > 1. */
AOT_MODEL_INLINE uint32x4_t aot_mve_divided(uint32x4_t mean, uint32_t inverse, int32_t n)
{
    uint32x4_t ratio = vmulhq_u32(mean, vdupq_n_u32(inverse));
    if (n > 362) {
        ratio = vsubq_m_n_u32(ratio, ratio, 1, vcmphiq_u32(vmulq_n_u32(ratio, (uint32_t)n), mean));
    }
    return ratio;
}
#endif

/* The means of a window of int16, of up to 65535 pixels. */
AOT_MODEL_MVE_LOOP void aot_mve_average_int16(const int16_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels,
                                              int32_t low, int32_t high, int16_t *y)
{
    AOT_MODEL_BARRIER;
    const int32_t n = rows * columns;
    AOT_MVE_RECIPROCAL_OF_32_BITS
    AOT_MVE_AVERAGE(int16_t, h, 32, 4, -32768, 32767, aot_mve_divided(mean, inverse, n))
    AOT_MODEL_BARRIER;
}

/* The largest elements of a window, clamped to [low, high]. */
#if AOT_MODEL_MVE
#define AOT_MVE_LARGEST(type, vector, of, letter, bits, lanes, most)                                                   \
    for (int32_t c = 0; c < channels; c += lanes) {                                                                    \
        const mve_pred16_t p = vctp##bits##q((uint32_t)(channels - c));                                                \
        vector best = vdupq_n_##of((type)low);                                                                         \
        for (int32_t r = 0; r < rows; r++) {                                                                           \
            const type *from = x + r * pitch + c;                                                                      \
            for (int32_t k = 0; k < columns; k++, from += channels) {                                                  \
                best = vmaxq_##of(best, vldr##letter##q_z_##of(from, p));                                              \
            }                                                                                                          \
        }                                                                                                              \
        best = high < most ? vminq_##of(best, vdupq_n_##of((type)high)) : best;                                        \
        vstr##letter##q_p_##of(y + c, best, p);                                                                        \
    }
#else
#define AOT_MVE_LARGEST(type, vector, of, letter, bits, lanes, most)                                                   \
    for (int32_t c = 0; c < channels; c++) {                                                                           \
        int32_t best = low;                                                                                            \
        for (int32_t r = 0; r < rows; r++) {                                                                           \
            for (int32_t k = 0; k < columns; k++) {                                                                    \
                const int32_t value = x[r * pitch + k * channels + c];                                                 \
                best = value > best ? value : best;                                                                    \
            }                                                                                                          \
        }                                                                                                              \
        y[c] = (type)(best > high ? high : best);                                                                      \
    }
#endif
AOT_MODEL_MVE_LOOP void aot_mve_maximum(const int8_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels, int32_t low,
                                        int32_t high, int8_t *y)
{
    AOT_MODEL_BARRIER;
    AOT_MVE_LARGEST(int8_t, int8x16_t, s8, b, 8, 16, 127)
    AOT_MODEL_BARRIER;
}

AOT_MODEL_MVE_LOOP void aot_mve_maximum_uint8(const uint8_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels,
                                              int32_t low, int32_t high, uint8_t *y)
{
    AOT_MODEL_BARRIER;
    AOT_MVE_LARGEST(uint8_t, uint8x16_t, u8, b, 8, 16, 255)
    AOT_MODEL_BARRIER;
}

AOT_MODEL_MVE_LOOP void aot_mve_maximum_int16(const int16_t *x, int32_t rows, int32_t columns, int32_t pitch, int32_t channels,
                                              int32_t low, int32_t high, int16_t *y)
{
    AOT_MODEL_BARRIER;
    AOT_MVE_LARGEST(int16_t, int16x8_t, s16, h, 16, 8, 32767)
    AOT_MODEL_BARRIER;
}

#undef AOT_MVE_LARGEST
#undef AOT_MVE_RECIPROCAL_OF_16_BITS
#undef AOT_MVE_RECIPROCAL_OF_32_BITS
#undef AOT_MVE_BY_16_BITS
#undef AOT_MVE_BY_32_BITS
#undef AOT_MVE_AVERAGE
#undef AOT_MVE_AVERAGE_UINT8

#endif
