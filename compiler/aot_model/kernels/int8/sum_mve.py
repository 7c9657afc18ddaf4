"""The sum of two quantised tensors, int8, Helium: the proven form of affine_sum.py."""

from __future__ import annotations

from aot_model.c.helpers import named_by_text
from aot_model.kernels.int8.affine_sum import Affine, RowSum

from .mve import asm_lines
from .requantise_mve import HEADER


def row_kernel(form: Affine) -> RowSum:
    """The function of one form."""
    saturates = form.low == -128 and form.high == 127
    clamp = ["vqmovnb.s32 q0, q0", "vqmovnb.s16 q0, q0"
             ] if saturates else ["vmax.s32 q0, q0, %q[low]", "vmin.s32 q0, q0, %q[high]"]
    lines = ["dlstp.32 lr, %[n]", "1:", "vldrb.s32 q0, [%[a]], #4", "vldrb.s32 q1, [%[b]], #4"]
    lines += [
        "vmlas.s32 q0, %q[ma], %[offset]", "vmla.s32 q0, q1, %[mb]", f"vshr.s32 q0, q0, #{form.shift}", *clamp
    ]
    lines += ["vstrb.32 q0, [%[y]], #4", "letp lr, 1b"]
    asm = asm_lines(lines)
    limits = "" if saturates else ', [low] "w"(low), [high] "w"(high)'
    vectors = "" if saturates else (
        f"    const int32x4_t low = vdupq_n_s32({form.low});\n    const int32x4_t high = "
        f"vdupq_n_s32({form.high});\n"
    )
    body = f"""\
{{
#if AOT_MODEL_MVE
    const int32x4_t ma = vdupq_n_s32({form.ma});
{vectors}    __asm__ volatile(
{asm}
        : [a] "+l"(a), [b] "+l"(b), [y] "+l"(y)
        : [n] "r"(n), [ma] "w"(ma), [mb] "r"({form.mb}), [offset] "r"({form.offset}){limits}
        : "lr", "q0", "q1", "memory");
#else
    for (int32_t i = 0; i < n; i++) {{
        const int32_t value = a[i] * ({form.ma}) + b[i] * ({form.mb}) + ({form.offset});
        y[i] = aot_mve_clamp(value >> {form.shift}, {form.low}, {form.high});
    }}
#endif
}}
"""
    name = named_by_text("aot_mve_sum", body)
    comment = "/* The sum of two rows of quantised values; the factors are proven on all pairs. */\n"
    text = (f"{comment}AOT_MODEL_OPAQUE static void {name}(const int8_t *a, const int8_t *b, int8_t *y, "
            f"int32_t n)\n{body}")
    return RowSum(name, helpers=(text,), header=HEADER)
