"""The sum of two quantised tensors, int8, on hosts: the proven form of sum_mve.py with AVX2."""

from __future__ import annotations

import hashlib

from aot_model.kernels.int8.sum_mve import Affine


def row_kernel(form: Affine) -> tuple[str, tuple[str, ...]]:
    """(name, helpers) of name(a, b, y, n): y[i] from a[i] and b[i], i < n; y may be a or b."""
    wide = "_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)({})))"
    eight = [
        f"        const __m256i {name} = _mm256_srai_epi32(_mm256_add_epi32(offset, _mm256_add_epi32(\n"
        f"            _mm256_mullo_epi32(ma, {wide.format(f'a + {at}')}),\n"
        f"            _mm256_mullo_epi32(mb, {wide.format(f'b + {at}')}))), {form.shift});"
        for name, at in (("low", "i"), ("high", "i + 8"))
    ]
    clamp = "bytes"
    if form.low > -128:
        clamp = f"_mm_max_epi8({clamp}, _mm_set1_epi8({form.low}))"
    if form.high < 127:
        clamp = f"_mm_min_epi8({clamp}, _mm_set1_epi8({form.high}))"
    joined = "\n".join(eight)
    body = f"""\
{{
    const __m256i ma = _mm256_set1_epi32({form.ma}), mb = _mm256_set1_epi32({form.mb});
    const __m256i offset = _mm256_set1_epi32({form.offset});
    int32_t i = 0;
    for (; i < n - 15; i += 16) {{
{joined}
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
        const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128((__m128i *)(void *)(y + i), {clamp});
    }}
    for (; i < n; i++) {{
        const int32_t value = (a[i] * ({form.ma}) + b[i] * ({form.mb}) + ({form.offset})) >> {form.shift};
        y[i] = (int8_t)(value < {form.low} ? {form.low} : value > {form.high} ? {form.high} : value);
    }}
}}
"""
    name = f"q8_sum_{hashlib.sha256(body.encode()).hexdigest()[:6]}"
    comment = "/* The sum of two rows of quantised values; the factors are proven on all pairs. */\n"
    return name, (f"{comment}AOT_MODEL_OPAQUE static void {name}(const int8_t *a, const int8_t *b, int8_t *y, int32_t n)\n{body}",)
