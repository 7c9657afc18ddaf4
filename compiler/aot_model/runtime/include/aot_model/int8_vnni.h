/* The instructions of kernels/int8/vectors.py on x86-64 with AVX-512 VNNI. Part of aot-model.
 *
 * VPDPBUSD takes uint8 inputs and int8 weights in fours and adds to int32 without saturation. It is written as assembly:
 * compilers that see it as an operation of their own may use it where it is wrong (docs/compilers.md, mixed signs). */
#ifndef AOT_MODEL_INT8_VNNI_H
#define AOT_MODEL_INT8_VNNI_H

#if !defined(AOT_MODEL_VNNI) && !defined(__AVX512VNNI__)
#error "compile with -mavx512vnni -mavx512vl (-march=native where the processor has them), or pass --target host,dot=none"
#endif

#include "aot_model/int8_avx2.h"
#include "aot_model/int8_tile.h"

typedef __m512i vnni_acc;
typedef __m512i vnni_weights;
typedef __m512i vnni_inputs;

AOT_MODEL_INLINE vnni_acc vnni_load(const void *p) { return _mm512_loadu_si512(p); }

/* The inputs of one step, four bytes, for all channels. */
AOT_MODEL_INLINE vnni_inputs vnni_splat(const void *p)
{
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return _mm512_set1_epi32(bytes);
}

AOT_MODEL_INLINE vnni_weights vnni_weights_int8(const int8_t *p) { return _mm512_loadu_si512(p); }

AOT_MODEL_INLINE vnni_acc vnni_dot(vnni_acc acc, vnni_weights w, vnni_inputs x)
{
    __asm__ volatile("{vpdpbusd %1, %2, %0|vpdpbusd %0, %2, %1}" : "+v"(acc) : "v"(w), "v"(x));
    return acc;
}

/* Halves, in the order of the accumulators of AVX2. */
AOT_MODEL_INLINE avx2_acc vnni_low(vnni_acc acc) { return _mm512_castsi512_si256(acc); }
AOT_MODEL_INLINE avx2_acc vnni_high(vnni_acc acc) { return _mm512_extracti64x4_epi64(acc, 1); }

AOT_MODEL_INLINE uint8_t *vnni_fill(uint8_t *to, uint8_t value, int32_t count)
{
    memset(to, value, (size_t)count);
    return to + count;
}

AOT_MODEL_INLINE void vnni_widen_uint8(uint8_t *to, const uint8_t *from, int32_t count) { memcpy(to, from, (size_t)count); }

/* int8 to uint8 by adding 128. */
AOT_MODEL_FUNCTION void vnni_widen_int8(uint8_t *to, const int8_t *from, int32_t count)
{
    int32_t i = 0;
    for (; i < count - 31; i += 32) {
        avx2_save(to + i, _mm256_xor_si256(avx2_load(from + i), _mm256_set1_epi8((char)-128)));
    }
    for (; i < count; i++) {
        to[i] = (uint8_t)(from[i] + 128);
    }
}

AOT_MODEL_TILE(vnni, int8, uint8_t, 128)
AOT_MODEL_TILE(vnni, uint8, uint8_t, 0)

#endif
