/* The instructions of kernels/int8/vectors.py on x86-64 with AVX2. Part of aot-model.
 *
 * Inputs and weights are int16 in the registers, VPMADDWD multiplies pairs of them exactly. (VPMADDUBSW would take bytes,
 * but saturates its sums of two products at int16.) Weights stay int8 in memory and are widened as they are loaded. */
#ifndef AOT_MODEL_INT8_AVX2_H
#define AOT_MODEL_INT8_AVX2_H

#if !defined(__AVX2__)
#error "compile with -mavx2 -mfma, or pass --target host,vector=v4"
#endif

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "aot_model/attributes.h"
#include "aot_model/int8_tile.h"
#include "aot_model/scalar.h"

typedef __m256i avx2_acc;
typedef __m256i avx2_weights;
typedef __m256i avx2_inputs;
typedef __m128i avx2_bytes;

AOT_MODEL_INLINE __m256i avx2_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

AOT_MODEL_INLINE __m128i avx2_load_half(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

AOT_MODEL_INLINE void avx2_save(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

/* The first `count` bytes of v. */
AOT_MODEL_INLINE void avx2_store(void *p, __m128i v, int32_t count)
{
    if (count == 16) {
        _mm_storeu_si128((__m128i *)p, v);
    } else if (count == 8) {
        _mm_storel_epi64((__m128i *)p, v);
    } else {
        uint8_t bytes[16];
        _mm_storeu_si128((__m128i *)(void *)bytes, v);
        memcpy(p, bytes, (size_t)count);
    }
}

/* The inputs of one step, four bytes, for all channels. */
AOT_MODEL_INLINE avx2_inputs avx2_splat(const void *p)
{
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return _mm256_set1_epi32(bytes);
}

AOT_MODEL_INLINE avx2_weights avx2_weights_int8(const int8_t *p)
{
    return _mm256_cvtepi8_epi16(avx2_load_half(p));
}

AOT_MODEL_INLINE avx2_weights avx2_weights_int16(const int16_t *p)
{
    return avx2_load(p);
}

/* acc + w * x. The sum is assembly to be made here, in its register, and not later: a compiler that first does all
 * multiplications of a step runs out of registers. */
AOT_MODEL_INLINE avx2_acc avx2_dot(avx2_acc acc, avx2_weights w, avx2_inputs x)
{
    const __m256i product = _mm256_madd_epi16(w, x);
    __asm__ volatile("{vpaddd %1, %0, %0|vpaddd %0, %0, %1}" : "+x"(acc) : "x"(product));
    return acc;
}

/* Two taps of channels 0-3 and 8-11, as avx2_dot takes them. */
AOT_MODEL_INLINE avx2_inputs avx2_low_channels(__m256i a, __m256i b)
{
    return _mm256_unpacklo_epi16(a, b);
}

/* ... and of channels 4-7 and 12-15. */
AOT_MODEL_INLINE avx2_inputs avx2_high_channels(__m256i a, __m256i b)
{
    return _mm256_unpackhi_epi16(a, b);
}

/* `count` times the value; returns what is behind. */
AOT_MODEL_FUNCTION int16_t *avx2_fill(int16_t *to, int16_t value, int32_t count)
{
    const __m256i values = _mm256_set1_epi16(value);
    int16_t *const end = to + count;
    for (; end - to >= 16; to += 16) {
        avx2_save(to, values);
    }
    while (to < end) {
        *to++ = value;
    }
    return end;
}

/* Activations to int16, sixteen at a time; the last ones of them again where the count is no multiple. */
AOT_MODEL_FUNCTION void avx2_widen_int8(int16_t *to, const int8_t *from, int32_t count)
{
    int32_t i = 0;
    while (i < count && count >= 16) {
        i = i < count - 16 ? i : count - 16;
        avx2_save(to + i, _mm256_cvtepi8_epi16(avx2_load_half(from + i)));
        i += 16;
    }
    for (; i < count; i++) {
        to[i] = from[i];
    }
}

/* Activations to int16, sixteen at a time; the last ones of them again where the count is no multiple. */
AOT_MODEL_FUNCTION void avx2_widen_uint8(int16_t *to, const uint8_t *from, int32_t count)
{
    int32_t i = 0;
    while (i < count && count >= 16) {
        i = i < count - 16 ? i : count - 16;
        avx2_save(to + i, _mm256_cvtepu8_epi16(avx2_load_half(from + i)));
        i += 16;
    }
    for (; i < count; i++) {
        to[i] = from[i];
    }
}

/* High words of acc * m; they come in the order 0, 2, 1, 3 of each four. */
AOT_MODEL_INLINE __m256i avx2_scale(__m256i acc, const int32_t *m)
{
    const __m256i even = _mm256_mul_epi32(acc, avx2_load(m));
    const __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(acc, 32), avx2_load(m + 1));
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0xdd));
}

/* h = (acc * m + 2^30) >> 31, then h >> shift with ties away from zero; in the order of avx2_scale. */
AOT_MODEL_INLINE __m256i avx2_round(__m256i acc, const int32_t *m, const int32_t *offset, const int32_t *shift)
{
    const __m256i half = _mm256_set1_epi64x(INT64_C(0x80000000)), twice = _mm256_add_epi32(acc, acc);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(twice, avx2_load(m)), half);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(twice, 32), avx2_load(m + 1)), half);
    const __m256i h = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0xdd));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(h, avx2_load(offset)), _mm256_srai_epi32(h, 31));
    return _mm256_srav_epi32(sum, avx2_load(shift));
}

AOT_MODEL_INLINE __m256i avx2_add_shift(__m256i v, const int32_t *offset, int32_t shift)
{
    return _mm256_srai_epi32(_mm256_add_epi32(v, avx2_load(offset)), shift);
}

/* Sixteen int32 to int16, saturated: the order of each four is still that of avx2_scale. */
AOT_MODEL_INLINE __m256i avx2_pack16(__m256i a, __m256i b)
{
    return _mm256_packs_epi32(a, b);
}

/* Eight int32 to int16. */
AOT_MODEL_INLINE __m128i avx2_pack8(__m256i a)
{
    return _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
}

AOT_MODEL_INLINE __m256i avx2_add_16(__m256i v, const void *offset)
{
    return _mm256_adds_epi16(v, avx2_load(offset));
}

AOT_MODEL_INLINE __m128i avx2_add_8(__m128i v, const void *offset)
{
    return _mm_adds_epi16(v, avx2_load_half(offset));
}

/* int16 to bytes within [low, high], in the order of the channels. */
AOT_MODEL_INLINE __m128i avx2_bytes16_int8(__m256i v, int32_t low, int32_t high)
{
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    __m128i bytes = _mm_shuffle_epi8(_mm_packs_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)), order);
    if (low > -128) {
        bytes = _mm_max_epi8(bytes, _mm_set1_epi8((char)low));
    }
    if (high < 127) {
        bytes = _mm_min_epi8(bytes, _mm_set1_epi8((char)high));
    }
    return bytes;
}

/* int16 to bytes within [low, high], in the order of the channels. */
AOT_MODEL_INLINE __m128i avx2_bytes16_uint8(__m256i v, int32_t low, int32_t high)
{
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    __m128i bytes = _mm_shuffle_epi8(_mm_packus_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)), order);
    if (low > 0) {
        bytes = _mm_max_epu8(bytes, _mm_set1_epi8((char)low));
    }
    if (high < 255) {
        bytes = _mm_min_epu8(bytes, _mm_set1_epi8((char)high));
    }
    return bytes;
}

/* int16 to bytes within [low, high], in the order of the channels. */
AOT_MODEL_INLINE __m128i avx2_bytes8_int8(__m128i v, int32_t low, int32_t high)
{
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    __m128i bytes = _mm_shuffle_epi8(_mm_packs_epi16(v, v), order);
    if (low > -128) {
        bytes = _mm_max_epi8(bytes, _mm_set1_epi8((char)low));
    }
    if (high < 127) {
        bytes = _mm_min_epi8(bytes, _mm_set1_epi8((char)high));
    }
    return bytes;
}

/* int16 to bytes within [low, high], in the order of the channels. */
AOT_MODEL_INLINE __m128i avx2_bytes8_uint8(__m128i v, int32_t low, int32_t high)
{
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    __m128i bytes = _mm_shuffle_epi8(_mm_packus_epi16(v, v), order);
    if (low > 0) {
        bytes = _mm_max_epu8(bytes, _mm_set1_epi8((char)low));
    }
    if (high < 255) {
        bytes = _mm_min_epu8(bytes, _mm_set1_epi8((char)high));
    }
    return bytes;
}

/* Sixteen accumulators in the order of the channels. */
AOT_MODEL_INLINE void avx2_sums16(int32_t *to, avx2_acc a, avx2_acc b)
{
    avx2_save(to, _mm256_permute2x128_si256(a, b, 0x20));
    avx2_save(to + 8, _mm256_permute2x128_si256(a, b, 0x31));
}

AOT_MODEL_TILE(avx2, int8, int16_t, 0)
AOT_MODEL_TILE(avx2, uint8, int16_t, 0)

#endif
