"""Average and maximum pooling, int8, Helium: channels in the lanes.

The mean is a sum in 16-bit lanes (32-bit beyond 255 elements) and a division by the number of elements inside
of the image, ties away from zero: (|sum| + n/2) / n by a multiplication with ceil(2^(16+k) / n), k =
ceil(log2 n) - 1. That is exact: with a = |sum| + n/2 <= 128.5 n and e = M n - 2^(16+k) < n <= 2^(k+1), a e <
128.5 n^2 <= 2^(16+k) for n <= 255. In 32 bits M = ceil(2^32 / n) does for n <= 5000 by the same inequality.
"""

from __future__ import annotations

from aot_model.c.helpers import named_by_text
from aot_model.c.words import counted

from ..base import ConvShape, KernelCode, Scratch, Tail
from ..overlap import by_pixels, first_taps
from .conv_mve import INCLUDES
from .row_tail import tail_helpers, tail_loop


def applicable(shape: ConvShape) -> bool:
    """Whether both kernels take a geometry: dense, undilated, no window without elements, at most 5000 of
    them.
    """
    s = shape
    rows = first_taps(s.out_h, s.stride_h, 1, s.pad_top, s.kernel_h, s.in_h)
    columns = first_taps(s.out_w, s.stride_w, 1, s.pad_left, s.kernel_w, s.in_w)
    elements = min(s.kernel_h, s.in_h) * min(s.kernel_w, s.in_w)
    plain = s.dense and s.in_c == s.out_c and (s.dilation_h, s.dilation_w) == (1, 1)
    return bool(plain and elements <= 5000 and rows.max() < s.in_h and columns.max() < s.in_w)


def average_pool(shape: ConvShape, act_min: int, act_max: int, tail: Tail | None = None) -> KernelCode:
    """Mean over the elements of each window inside of the image; input and output share their quantisation.

    tail: as for `conv`, gets the clamped mean.

    Raises:
        ValueError: a geometry that is not `applicable`.
    """
    count = min(shape.kernel_h, shape.in_h) * min(shape.kernel_w, shape.in_w)
    lanes, bits = (8, 16) if count <= 255 else (4, 32)
    if bits == 16:
        scaled = "vshlq_r_u16(vmulhq_u16(mean, vdupq_n_u16(inverse)), -shift)"
        divide = """\
const int32_t shift = n > 1 ? 31 - __builtin_clz((uint32_t)(n - 1)) : -1;
const uint16_t inverse = (uint16_t)(n > 1 ? ((1u << (16 + shift)) + (uint32_t)n - 1u) / (uint32_t)n : 0u);
"""
    else:
        scaled = "vmulhq_u32(mean, vdupq_n_u32(inverse))"
        divide = "const uint32_t inverse = n > 1 ? 0xFFFFFFFFu / (uint32_t)n + 1u : 0u;\n"
    clamp = "".join(
        f"value = v{op}q_s{bits}(value, vdupq_n_s{bits}({limit}));\n"
        for op, limit, needed in (("max", act_min, act_min > -128), ("min", act_max, act_max < 127))
        if needed
    )
    vector = f"""\
{divide}for (int32_t c = 0; c < {shape.in_c}; c += {lanes}) {{
    const mve_pred16_t p = vctp{bits}q((uint32_t)({shape.in_c} - c));
    int{bits}x{lanes}_t sum = vdupq_n_s{bits}(0);
    for (int32_t r = 0; r < rows; r++) {{
        const int8_t *from = x + r * {shape.in_w * shape.in_c} + c;
        for (int32_t k = 0; k < columns; k++, from += {shape.in_c}) {{
            sum = vaddq_s{bits}(sum, vldrbq_z_s{bits}(from, p));
        }}
    }}
    uint{bits}x{lanes}_t mean = vreinterpretq_u{bits}_s{bits}(vabsq_s{bits}(sum));
    mean = vaddq_n_u{bits}(mean, (uint{bits}_t)(n / 2));
    if (n > 1) {{
        mean = {scaled};
    }}
    int{bits}x{lanes}_t value = vreinterpretq_s{bits}_u{bits}(mean);
    value = vnegq_m_s{bits}(value, value, vcmpltq_n_s{bits}(sum, 0));
{clamp}    vstrbq_p_s{bits}(y + c, value, p);
}}
"""
    scalar = f"""\
for (int32_t c = 0; c < {shape.in_c}; c++) {{
    int32_t sum = 0;
    for (int32_t r = 0; r < rows; r++) {{
        for (int32_t k = 0; k < columns; k++) {{
            sum += x[(r * {shape.in_w} + k) * {shape.in_c} + c];
        }}
    }}
    y[c] = aot_mve_clamp(aot_mve_mean(sum, n), {act_min}, {act_max});
}}
"""
    code = f"const int32_t n = rows * columns;\n#if AOT_MODEL_MVE\n{vector}#else\n{scalar}#endif\n"
    return _pool(shape, "mean", code, tail)


def max_pool(shape: ConvShape, act_min: int, act_max: int, tail: Tail | None = None) -> KernelCode:
    """Largest element of each window inside of the image; input and output share their quantisation.

    tail: as for `conv`.

    Raises:
        ValueError: a geometry that is not `applicable`.
    """
    c, row = shape.in_c, shape.in_w * shape.in_c
    low, high = f"vdupq_n_s8({act_min})", f"vminq_s8(best, vdupq_n_s8({act_max}))"
    code = f"""\
#if AOT_MODEL_MVE
for (int32_t c = 0; c < {c}; c += 16) {{
    const mve_pred16_t p = vctp8q((uint32_t)({c} - c));
    int8x16_t best = {low};
    for (int32_t r = 0; r < rows; r++) {{
        const int8_t *from = x + r * {row} + c;
        for (int32_t k = 0; k < columns; k++, from += {c}) {{
            best = vmaxq_s8(best, vldrbq_z_s8(from, p));
        }}
    }}
    vstrbq_p_s8(y + c, {high if act_max < 127 else "best"}, p);
}}
#else
for (int32_t c = 0; c < {c}; c++) {{
    int32_t best = {act_min};
    for (int32_t r = 0; r < rows; r++) {{
        for (int32_t k = 0; k < columns; k++) {{
            const int32_t value = x[r * {row} + k * {c} + c];
            best = value > best ? value : best;
        }}
    }}
    y[c] = aot_mve_clamp(best, {act_min}, {act_max});
}}
#endif
"""
    return _pool(shape, "max", code, tail)


def _pool(s: ConvShape, kind: str, window: str, tail: Tail | None) -> KernelCode:
    """Loops over the outputs around `window`, which reduces rows x columns at x to one pixel at y."""
    if not applicable(s):
        raise ValueError(f"not for the Helium pooling: {s}")
    name = named_by_text(f"aot_mve_{kind}_c{s.in_c}", window)
    text = f"""\
/* The {kind} of rows x columns pixels of {counted(s.in_c, 'channel')}. */
AOT_MODEL_OPAQUE static void {name}(const int8_t *x, int32_t rows, int32_t columns, int8_t *y)
{{
{window}}}
"""
    to = "row" if tail is not None else f"out + (oy * {s.out_w} + ox) * {s.out_c}"
    out = f"int8_t *out = y + n * {s.out_h * s.out_w * s.out_c};\n" if tail is None else ""
    after = tail_loop(s.out_c, "row", ("n", "oy", "ox"), tail) if tail is not None else ""
    body = f"""\
for (int32_t n = 0; n < {s.batch}; n++) {{
    const int8_t *image = x + n * {s.in_h * s.in_w * s.in_c};
    {out}for (int32_t oy = 0; oy < {s.out_h}; oy++) {{
        const int32_t iy = oy * {s.stride_h} - {s.pad_top};
        const int32_t top = iy < 0 ? 0 : iy;
        const int32_t bottom = iy + {s.kernel_h} > {s.in_h} ? {s.in_h} : iy + {s.kernel_h};
        for (int32_t ox = 0; ox < {s.out_w}; ox++) {{
            const int32_t ix = ox * {s.stride_w} - {s.pad_left};
            const int32_t left = ix < 0 ? 0 : ix;
            const int32_t right = ix + {s.kernel_w} > {s.in_w} ? {s.in_w} : ix + {s.kernel_w};
            {name}(image + (top * {s.in_w} + left) * {s.in_c}, bottom - top, right - left, {to});
{after}}}
    }}
}}
"""
    return KernelCode(
        body=body,
        scratch=(Scratch("row", s.out_c),) if tail is not None else (),
        includes=INCLUDES,
        helpers=(text, *tail_helpers(tail)),
        slack=by_pixels(s, 1, reread=True),
        note=(f"{counted(s.out_h * s.out_w, 'window')} of up to {s.kernel_h} x {s.kernel_w}, "
              "channels in lanes"),
    )
