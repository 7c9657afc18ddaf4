/* Pooling and sums of int8 and uint8 with AVX2, 16 channels at a time: pooling_windows.py, affine_sum.py. Part of aot-model.
 *
 * The mean is a division of floats: for n < 2^16 elements |sum| + n / 2 < 2^24 is exact, and the quotient of whole numbers
 * differs from the next whole number by at least 1 / n, more than a rounding of a quotient of at most 256 can bridge. */
#ifndef AOT_MODEL_INT8_AVX2_ROWS_H
#define AOT_MODEL_INT8_AVX2_ROWS_H

#include <immintrin.h>
#include <stdint.h>

#include "aot_model/attributes.h"

/* Means of a window, ties away from zero, clamped to [low, high]; a pixel is `channels` elements. widen: bytes to words;
 * widen_sum: words of sums to 32 bits; pack: words of means to bytes. */
#define AOT_MODEL_AVX2_AVERAGE(dtype, widen, widen_sum, pack)                                                                      \
    AOT_MODEL_FUNCTION void avx2_average_##dtype(const dtype##_t *x, int32_t height, int32_t width, int32_t pitch,                 \
                                                     int32_t channels, int32_t low, int32_t high, dtype##_t *y)                    \
    {                                                                                                                              \
        const int32_t count = height * width;                                                                                      \
        const __m256 half = _mm256_set1_ps((float)(count / 2)), number = _mm256_set1_ps((float)count);                             \
        const __m256 minus = _mm256_set1_ps(-0.0f);                                                                                \
        int32_t c = 0;                                                                                                             \
        for (; c < channels - 15; c += 16) {                                                                                       \
            __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};                                                    \
            for (int32_t i = 0; i < height; i++) {                                                                                 \
                __m256i row = _mm256_setzero_si256();                                                                              \
                for (int32_t j = 0; j < width; j++) {                                                                              \
                    const void *at = x + i * pitch + j * channels + c;                                                             \
                    row = _mm256_add_epi16(row, widen(_mm_loadu_si128((const __m128i *)at)));                                      \
                }                                                                                                                  \
                sums[0] = _mm256_add_epi32(sums[0], widen_sum(_mm256_castsi256_si128(row)));                                       \
                sums[1] = _mm256_add_epi32(sums[1], widen_sum(_mm256_extracti128_si256(row, 1)));                                  \
            }                                                                                                                      \
            for (int32_t k = 0; k < 2; k++) {                                                                                      \
                const __m256 sum = _mm256_cvtepi32_ps(sums[k]);                                                                    \
                const __m256 away = _mm256_add_ps(sum, _mm256_or_ps(half, _mm256_and_ps(sum, minus)));                             \
                const __m256i mean = _mm256_cvttps_epi32(_mm256_div_ps(away, number));                                             \
                sums[k] = _mm256_max_epi32(_mm256_min_epi32(mean, _mm256_set1_epi32(high)), _mm256_set1_epi32(low));               \
            }                                                                                                                      \
            const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(sums[0], sums[1]), 0xd8);                            \
            const __m128i bytes = pack(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));                         \
            _mm_storeu_si128((__m128i *)(void *)(y + c), bytes);                                                                   \
        }                                                                                                                          \
        for (; c < channels; c++) {                                                                                                \
            int32_t sum = 0;                                                                                                       \
            for (int32_t i = 0; i < height; i++) {                                                                                 \
                for (int32_t j = 0; j < width; j++) {                                                                              \
                    sum += x[i * pitch + j * channels + c];                                                                        \
                }                                                                                                                  \
            }                                                                                                                      \
            const int32_t mean = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;                                            \
            y[c] = (dtype##_t)(mean < low ? low : mean > high ? high : mean);                                                      \
        }                                                                                                                          \
    }
AOT_MODEL_AVX2_AVERAGE(int8, _mm256_cvtepi8_epi16, _mm256_cvtepi16_epi32, _mm_packs_epi16)
AOT_MODEL_AVX2_AVERAGE(uint8, _mm256_cvtepu8_epi16, _mm256_cvtepu16_epi32, _mm_packus_epi16)

/* Maxima of a window, clamped to [low, high]; a pixel is `channels` elements. */
#define AOT_MODEL_AVX2_MAXIMUM(dtype, larger, smaller)                                                                             \
    AOT_MODEL_FUNCTION void avx2_maximum_##dtype(const dtype##_t *x, int32_t height, int32_t width, int32_t pitch,                 \
                                                     int32_t channels, int32_t low, int32_t high, dtype##_t *y)                    \
    {                                                                                                                              \
        int32_t c = 0;                                                                                                             \
        for (; c < channels - 15; c += 16) {                                                                                       \
            __m128i most = _mm_set1_epi8((char)low);                                                                               \
            for (int32_t i = 0; i < height; i++) {                                                                                 \
                for (int32_t j = 0; j < width; j++) {                                                                              \
                    const void *at = x + i * pitch + j * channels + c;                                                             \
                    most = larger(most, _mm_loadu_si128((const __m128i *)at));                                                     \
                }                                                                                                                  \
            }                                                                                                                      \
            _mm_storeu_si128((__m128i *)(void *)(y + c), smaller(most, _mm_set1_epi8((char)high)));                                \
        }                                                                                                                          \
        for (; c < channels; c++) {                                                                                                \
            int32_t most = low;                                                                                                    \
            for (int32_t i = 0; i < height; i++) {                                                                                 \
                for (int32_t j = 0; j < width; j++) {                                                                              \
                    const int32_t value = x[i * pitch + j * channels + c];                                                         \
                    most = value > most ? value : most;                                                                            \
                }                                                                                                                  \
            }                                                                                                                      \
            y[c] = (dtype##_t)(most > high ? high : most);                                                                         \
        }                                                                                                                          \
    }
AOT_MODEL_AVX2_MAXIMUM(int8, _mm_max_epi8, _mm_min_epi8)
AOT_MODEL_AVX2_MAXIMUM(uint8, _mm_max_epu8, _mm_min_epu8)

/* The sum of two rows of quantised values, clamp((a ma + b mb + offset) >> shift); y may be a or b. The factors are
 * proven on all pairs: kernels/int8/affine_sum.py. */
AOT_MODEL_FUNCTION void avx2_sum(const int8_t *a, const int8_t *b, int8_t *y, int32_t n, int32_t ma, int32_t mb, int32_t offset,
                                 int32_t shift, int32_t low, int32_t high)
{
    const __m256i mas = _mm256_set1_epi32(ma), mbs = _mm256_set1_epi32(mb), start = _mm256_set1_epi32(offset);
    const __m128i by = _mm_cvtsi32_si128(shift), least = _mm_set1_epi8((char)low), most = _mm_set1_epi8((char)high);
    int32_t i = 0;
    for (; i < n - 15; i += 16) {
        __m256i half[2];
        for (int32_t k = 0; k < 2; k++) {
            const __m256i wide_a = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(a + i + 8 * k)));
            const __m256i wide_b = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(b + i + 8 * k)));
            const __m256i products = _mm256_add_epi32(_mm256_mullo_epi32(mas, wide_a), _mm256_mullo_epi32(mbs, wide_b));
            half[k] = _mm256_sra_epi32(_mm256_add_epi32(start, products), by);
        }
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(half[0], half[1]), 0xd8);
        const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128((__m128i *)(void *)(y + i), _mm_min_epi8(_mm_max_epi8(bytes, least), most));
    }
    for (; i < n; i++) {
        const int32_t value = (a[i] * ma + b[i] * mb + offset) >> shift;
        y[i] = (int8_t)(value < low ? low : value > high ? high : value);
    }
}

#endif
