"""The functions of kernels/int8/host_dialect.py for x86-64: AVX2, and the VNNI dot product where it differs.

AVX2: inputs and weights are int16 in the registers, VPMADDWD multiplies pairs of them exactly. (VPMADDUBSW would take
bytes, but saturates its sums of two products at int16.) Weights stay int8 in memory and are widened as they are loaded.
VNNI: VPDPBUSD takes uint8 inputs and int8 weights in fours and adds to int32 without saturation.
"""

from __future__ import annotations

INLINE = "static inline __attribute__((always_inline))"
"""Micro-kernels take a layer's geometry as arguments; inlined, they are as fixed as if written for the layer."""

_TYPES = """\
typedef __m256i q8_acc;
typedef __m256i q8_weights;
typedef __m256i q8_inputs;
"""

_LOAD = """\
INLINE __m256i q8_load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
"""

_LOAD_HALF = """\
INLINE __m128i q8_load_half(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}
"""

_SAVE = """\
INLINE void q8_save(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}
"""

_STORE = """\
/* The first `count` bytes of v. */
INLINE void q8_store(void *p, __m128i v, int32_t count)
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
"""

_SPLAT = """\
/* The inputs of one step, four bytes, for all channels. */
INLINE q8_inputs q8_splat(const void *p)
{
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return _mm256_set1_epi32(bytes);
}
"""

_WEIGHTS_INT8 = """\
INLINE q8_weights q8_weights_int8(const int8_t *p)
{
    return _mm256_cvtepi8_epi16(q8_load_half(p));
}
"""

_WEIGHTS_INT16 = """\
INLINE q8_weights q8_weights_int16(const int16_t *p)
{
    return q8_load(p);
}
"""

_DOT = """\
/* acc + w * x. The sum is assembly to be made here, in its register, and not later: a compiler that first does all
 * multiplications of a step runs out of registers. */
INLINE q8_acc q8_dot(q8_acc acc, q8_weights w, q8_inputs x)
{
    const __m256i product = _mm256_madd_epi16(w, x);
    __asm__ volatile("{vpaddd %1, %0, %0|vpaddd %0, %0, %1}" : "+x"(acc) : "x"(product));
    return acc;
}
"""


def _fill(element: str) -> str:
    bits, lanes = ("16", 16) if element == "int16_t" else ("8", 32)
    cast = "" if element == "int16_t" else "(char)"
    return f"""\
/* `count` times the value; returns what is behind. */
static {element} *q8_fill({element} *to, {element} value, int32_t count)
{{
    AOT_MODEL_BARRIER;
    const __m256i values = _mm256_set1_epi{bits}({cast}value);
    {element} *const end = to + count;
    for (; end - to >= {lanes}; to += {lanes}) {{
        q8_save(to, values);
    }}
    while (to < end) {{
        *to++ = value;
    }}
    AOT_MODEL_BARRIER;
    return end;
}}
"""


def _widen(dtype: str) -> str:
    sign = "i" if dtype == "int8" else "u"
    return f"""\
/* Activations to int16, sixteen at a time; the last ones of them again where the count is no multiple. */
static void q8_widen_{dtype}(int16_t *to, const {dtype}_t *from, int32_t count)
{{
    AOT_MODEL_BARRIER;
    int32_t i = 0;
    while (i < count && count >= 16) {{
        i = i < count - 16 ? i : count - 16;
        q8_save(to + i, _mm256_cvtep{sign}8_epi16(q8_load_half(from + i)));
        i += 16;
    }}
    for (; i < count; i++) {{
        to[i] = from[i];
    }}
    AOT_MODEL_BARRIER;
}}
"""


_SCALE = """\
/* High words of acc * m; they come in the order 0, 2, 1, 3 of each four. */
INLINE __m256i q8_scale(__m256i acc, const int32_t *m)
{
    const __m256i even = _mm256_mul_epi32(acc, q8_load(m));
    const __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(acc, 32), q8_load(m + 1));
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0xdd));
}
"""

_ROUND = """\
/* h = (acc * m + 2^30) >> 31, then h >> shift with ties away from zero; in the order of q8_scale. */
INLINE __m256i q8_round(__m256i acc, const int32_t *m, const int32_t *offset, const int32_t *shift)
{
    const __m256i half = _mm256_set1_epi64x(INT64_C(0x80000000)), twice = _mm256_add_epi32(acc, acc);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(twice, q8_load(m)), half);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(twice, 32), q8_load(m + 1)), half);
    const __m256i h = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0xdd));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(h, q8_load(offset)), _mm256_srai_epi32(h, 31));
    return _mm256_srav_epi32(sum, q8_load(shift));
}
"""

_ADD_SHIFT = """\
INLINE __m256i q8_add_shift(__m256i v, const int32_t *offset, int32_t shift)
{
    return _mm256_srai_epi32(_mm256_add_epi32(v, q8_load(offset)), shift);
}
"""

_PACK16 = """\
/* Sixteen int32 to int16, saturated: the order of each four is still that of q8_scale. */
INLINE __m256i q8_pack16(__m256i a, __m256i b)
{
    return _mm256_packs_epi32(a, b);
}
"""

_PACK8 = """\
/* Eight int32 to int16. */
INLINE __m128i q8_pack8(__m256i a)
{
    return _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
}
"""

_ADD_16 = """\
INLINE __m256i q8_add_16(__m256i v, const void *offset)
{
    return _mm256_adds_epi16(v, q8_load(offset));
}
"""

_ADD_8 = """\
INLINE __m128i q8_add_8(__m128i v, const void *offset)
{
    return _mm_adds_epi16(v, q8_load_half(offset));
}
"""


def _bytes(dtype: str, wide: bool) -> str:
    pack, kind, low, high = ("packs", "epi8", -128, 127) if dtype == "int8" else ("packus", "epu8", 0, 255)
    name, vector = ("q8_bytes16", "__m256i") if wide else ("q8_bytes8", "__m128i")
    halves = "_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)" if wide else "v, v"
    return f"""\
/* int16 to bytes within [low, high], in the order of the channels. */
INLINE __m128i {name}_{dtype}({vector} v, int32_t low, int32_t high)
{{
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    __m128i bytes = _mm_shuffle_epi8(_mm_{pack}_epi16({halves}), order);
    if (low > {low}) {{
        bytes = _mm_max_{kind}(bytes, _mm_set1_epi8((char)low));
    }}
    if (high < {high}) {{
        bytes = _mm_min_{kind}(bytes, _mm_set1_epi8((char)high));
    }}
    return bytes;
}}
"""


_SUMS_16 = """\
/* Sixteen accumulators in the order of the channels. */
INLINE void q8_sums16(int32_t *to, q8_acc a, q8_acc b)
{
    q8_save(to, _mm256_permute2x128_si256(a, b, 0x20));
    q8_save(to + 8, _mm256_permute2x128_si256(a, b, 0x31));
}
"""

_LOW = """\
/* Two taps of channels 0-3 and 8-11, as q8_dot takes them. */
INLINE q8_inputs q8_low_channels(__m256i a, __m256i b)
{
    return _mm256_unpacklo_epi16(a, b);
}
"""

_HIGH = """\
/* ... and of channels 4-7 and 12-15. */
INLINE q8_inputs q8_high_channels(__m256i a, __m256i b)
{
    return _mm256_unpackhi_epi16(a, b);
}
"""

_VNNI_WEIGHTS = """\
INLINE q8_weights q8_weights_int8(const int8_t *p)
{
    return q8_load(p);
}
"""

_VNNI_DOT = """\
INLINE q8_acc q8_dot(q8_acc acc, q8_weights w, q8_inputs x)
{
#if defined(__AVXVNNI__)
    acc = _mm256_dpbusd_avx_epi32(acc, x, w);
#else
    acc = _mm256_dpbusd_epi32(acc, x, w);
#endif
    __asm__ volatile("" : "+x"(acc)); /* as a fence between the steps */
    return acc;
}
"""


def _vnni_widen(dtype: str) -> str:
    if dtype == "uint8":
        return """\
static void q8_widen_uint8(uint8_t *to, const uint8_t *from, int32_t count)
{
    memcpy(to, from, (size_t)count);
}
"""
    return """\
/* int8 to uint8 by adding 128. */
static void q8_widen_int8(uint8_t *to, const int8_t *from, int32_t count)
{
    AOT_MODEL_BARRIER;
    const __m256i flip = _mm256_set1_epi8((char)-128);
    int32_t i = 0;
    for (; i < count - 31; i += 32) {
        q8_save(to + i, _mm256_xor_si256(q8_load(from + i), flip));
    }
    for (; i < count; i++) {
        to[i] = (uint8_t)(from[i] + 128);
    }
    AOT_MODEL_BARRIER;
}
"""


_COMMON = {
    "q8_load": _LOAD,
    "q8_load_half": _LOAD_HALF,
    "q8_save": _SAVE,
    "q8_store": _STORE,
    "q8_splat": _SPLAT,
}
_FINISH = {
    "q8_scale": _SCALE,
    "q8_round": _ROUND,
    "q8_add_shift": _ADD_SHIFT,
    "q8_pack16": _PACK16,
    "q8_pack8": _PACK8,
    "q8_add_16": _ADD_16,
    "q8_add_8": _ADD_8,
    "q8_bytes16_int8": _bytes("int8", True),
    "q8_bytes16_uint8": _bytes("uint8", True),
    "q8_bytes8_int8": _bytes("int8", False),
    "q8_bytes8_uint8": _bytes("uint8", False),
    "q8_sums16": _SUMS_16,
}


def _functions(parts: dict[str, str]) -> dict[str, str]:
    return {name: text.replace("INLINE", INLINE) for name, text in parts.items()}


AVX2_FUNCTIONS = _functions(
    {
        "q8_acc": _TYPES,
        **_COMMON,
        "q8_weights_int8": _WEIGHTS_INT8,
        "q8_weights_int16": _WEIGHTS_INT16,
        "q8_dot": _DOT,
        "q8_low_channels": _LOW,
        "q8_high_channels": _HIGH,
        "q8_fill": _fill("int16_t"),
        "q8_widen_int8": _widen("int8"),
        "q8_widen_uint8": _widen("uint8"),
        **_FINISH,
    }
)

VNNI_FUNCTIONS = _functions(
    {
        "q8_acc": _TYPES,
        **_COMMON,
        "q8_weights_int8": _VNNI_WEIGHTS,
        "q8_dot": _VNNI_DOT,
        "q8_fill": _fill("uint8_t"),
        "q8_widen_int8": _vnni_widen("int8"),
        "q8_widen_uint8": _vnni_widen("uint8"),
        **_FINISH,
    }
)
