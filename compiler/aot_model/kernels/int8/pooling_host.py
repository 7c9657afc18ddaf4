"""int8 and uint8 pooling on hosts, channels last: sums or maxima of 16 channels at a time over the window, with AVX2.

average: the sum of what lies inside of the image, divided by how many they are, ties away from zero; no zero points. The
division is one of floats: for n < 2^16 elements |sum| + n / 2 < 2^24 is exact, and the quotient of whole numbers differs
from the next whole number by at least 1 / n, more than a rounding of a quotient of at most 256 can bridge.
"""

from __future__ import annotations

from typing import Literal

from aot_model.kernels.base import ConvShape, KernelCode, Scratch, Tail
from aot_model.kernels.float32.text import CText, product, total
from aot_model.kernels.int8 import pooling
from aot_model.kernels.int8.conv_mve import tail_helpers, tail_loop
from aot_model.kernels.overlap import by_pixels

_WIDEST = 128
"""Elements of a window's row whose sum stays within int16."""
_MOST = 1 << 16


def applicable(shape: ConvShape) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    s = shape
    return s.kernel_w <= _WIDEST and s.kernel_h * s.kernel_w < _MOST and s.x_strides is None and (s.dilation_h, s.dilation_w) == (1, 1)


def _average(dtype: str) -> tuple[str, str]:
    sign, pack = ("i", "packs") if dtype == "int8" else ("u", "packus")
    name = f"q8_average_{dtype}"
    return name, f"""\
/* Means of a window, ties away from zero, clamped to [low, high]; a pixel is `channels` elements. */
AOT_MODEL_OPAQUE static void {name}(const {dtype}_t *x, int32_t height, int32_t width, int32_t pitch, int32_t channels, int32_t low, int32_t high,
                   {dtype}_t *y)
{{
    const int32_t count = height * width;
    const __m256 half = _mm256_set1_ps((float)(count / 2)), number = _mm256_set1_ps((float)count), minus = _mm256_set1_ps(-0.0f);
    int32_t c = 0;
    for (; c < channels - 15; c += 16) {{
        __m256i sums[2] = {{_mm256_setzero_si256(), _mm256_setzero_si256()}};
        for (int32_t i = 0; i < height; i++) {{
            __m256i row = _mm256_setzero_si256();
            for (int32_t j = 0; j < width; j++) {{
                const void *at = x + i * pitch + j * channels + c;
                row = _mm256_add_epi16(row, _mm256_cvtep{sign}8_epi16(_mm_loadu_si128((const __m128i *)at)));
            }}
            sums[0] = _mm256_add_epi32(sums[0], _mm256_cvtep{sign}16_epi32(_mm256_castsi256_si128(row)));
            sums[1] = _mm256_add_epi32(sums[1], _mm256_cvtep{sign}16_epi32(_mm256_extracti128_si256(row, 1)));
        }}
        for (int32_t k = 0; k < 2; k++) {{
            const __m256 sum = _mm256_cvtepi32_ps(sums[k]);
            const __m256 away = _mm256_add_ps(sum, _mm256_or_ps(half, _mm256_and_ps(sum, minus)));
            const __m256i mean = _mm256_cvttps_epi32(_mm256_div_ps(away, number));
            sums[k] = _mm256_max_epi32(_mm256_min_epi32(mean, _mm256_set1_epi32(high)), _mm256_set1_epi32(low));
        }}
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(sums[0], sums[1]), 0xd8);
        const __m128i bytes = _mm_{pack}_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128((__m128i *)(void *)(y + c), bytes);
    }}
    for (; c < channels; c++) {{
        int32_t sum = 0;
        for (int32_t i = 0; i < height; i++) {{
            for (int32_t j = 0; j < width; j++) {{
                sum += x[i * pitch + j * channels + c];
            }}
        }}
        const int32_t mean = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
        y[c] = ({dtype}_t)(mean < low ? low : mean > high ? high : mean);
    }}
}}
"""


def _maximum(dtype: str) -> tuple[str, str]:
    kind = "epi8" if dtype == "int8" else "epu8"
    name = f"q8_maximum_{dtype}"
    return name, f"""\
/* Maxima of a window, clamped to [low, high]; a pixel is `channels` elements. */
AOT_MODEL_OPAQUE static void {name}(const {dtype}_t *x, int32_t height, int32_t width, int32_t pitch, int32_t channels, int32_t low, int32_t high,
                   {dtype}_t *y)
{{
    int32_t c = 0;
    for (; c < channels - 15; c += 16) {{
        __m128i most = _mm_set1_epi8((char)low);
        for (int32_t i = 0; i < height; i++) {{
            for (int32_t j = 0; j < width; j++) {{
                const void *at = x + i * pitch + j * channels + c;
                most = _mm_max_{kind}(most, _mm_loadu_si128((const __m128i *)at));
            }}
        }}
        _mm_storeu_si128((__m128i *)(void *)(y + c), _mm_min_{kind}(most, _mm_set1_epi8((char)high)));
    }}
    for (; c < channels; c++) {{
        int32_t most = low;
        for (int32_t i = 0; i < height; i++) {{
            for (int32_t j = 0; j < width; j++) {{
                const int32_t value = x[i * pitch + j * channels + c];
                most = value > most ? value : most;
            }}
        }}
        y[c] = ({dtype}_t)(most > high ? high : most);
    }}
}}
"""


def _span(c: CText, axis: str, outputs: int, kernel: int, stride: int, pad: int, size: int) -> tuple[str, str]:
    """(first element, count) of a window along an axis; where it can leave the image, written as variables."""
    start = product(axis, stride) if outputs > 1 else "0"
    if pad <= 0 and (outputs - 1) * stride + kernel - pad <= size:
        return total(start, str(-pad)), str(kernel)
    c.line(f"const int32_t {axis}_at = {start} - {pad};")
    c.line(f"const int32_t {axis}_first = {axis}_at > 0 ? {axis}_at : 0;")
    c.line(f"const int32_t {axis}_end = {axis}_at < {size - kernel} ? {axis}_at + {kernel} : {size};")
    return f"{axis}_first", f"{axis}_end - {axis}_first"


def pool(
    kind: Literal["average", "max"], shape: ConvShape, act_min: int, act_max: int, dtype: str = "int8", tail: Tail | None = None
) -> KernelCode:
    """Pooling; every window holds at least one element of the image. Dense input, out_c = in_c."""
    s = shape
    if not applicable(s):
        return pooling.pool(kind, s, act_min, act_max, dtype, tail=tail)
    name, text = (_average if kind == "average" else _maximum)(dtype)
    c = CText()
    with c.loop("n", str(s.batch), needed=s.batch > 1), c.loop("row", str(s.out_h), needed=s.out_h > 1):
        n = "n" if s.batch > 1 else "0"
        top, height = _span(c, "row", s.out_h, s.kernel_h, s.stride_h, s.pad_top, s.in_h)
        with c.loop("column", str(s.out_w), needed=s.out_w > 1):
            left, width = _span(c, "column", s.out_w, s.kernel_w, s.stride_w, s.pad_left, s.in_w)
            row, column = "row" if s.out_h > 1 else "0", "column" if s.out_w > 1 else "0"
            x = total("x", product(n, s.in_h * s.in_w * s.in_c), _times(top, s.in_w * s.in_c), _times(left, s.in_c))
            y = total("y", product(n, s.out_h * s.out_w * s.in_c), product(row, s.out_w * s.in_c), product(column, s.in_c))
            to = "results" if tail is not None else y
            c.line(f"{name}({x}, {height}, {width}, {s.in_w * s.in_c}, {s.in_c}, {act_min}, {act_max}, {to});")
            if tail is not None:
                c.line(tail_loop(s.in_c, "results", (n, row, column), tail, False))
    return KernelCode(
        body=str(c),
        scratch=(Scratch("results", s.in_c, 4, f"{dtype}_t"),) if tail is not None else (),
        includes=frozenset({"immintrin.h"}),
        helpers=(text, *tail_helpers(tail)),
        slack=by_pixels(s, 1, by_channel=tail is None),
        note=f"{kind} of {s.kernel_h}x{s.kernel_w}, 16 channels at a time",
    )


def _times(text: str, factor: int) -> str:
    return product(text if text.isalnum() or text.isidentifier() else f"({text})", factor)
