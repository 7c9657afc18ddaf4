"""The sum of two quantised tensors, int8, Helium: one multiply-add for each input, proven on all 65,536
pairs.

TensorFlow Lite brings both inputs to a common finer scale, adds and rescales: three requantisations, each
with two roundings. The result is a function of two bytes, so a cheaper form can be compared with it on every
pair:

    y = clamp((a * ma + b * mb + offset) >> shift)

ma, mb are the real factors times 2^shift, a few neighbours of them are tried; for given factors every pair
bounds the offset from one side, so the offset is found or shown not to exist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.helpers import named_by_text

from .mve import asm_lines
from .requantise_mve import HEADER

NEIGHBOURS = 3
"""How far from the real factors the search goes, in units of the last place."""

PRECISIONS = 3
"""How many shifts the search tries, the finest first."""


@dataclass(frozen=True)
class Rescaling:
    """(x - zero_point) * multiplier * 2^(shift - 31); the zero point of a result is added."""

    zero_point: int
    multiplier: int
    shift: int

    @property
    def factor(self) -> float:
        """As a real number."""
        return float(self.multiplier) * 2.0 ** (self.shift - 31)


@dataclass(frozen=True)
class Affine:
    """y = clamp((a * ma + b * mb + offset) >> shift, low, high)."""

    ma: int
    mb: int
    offset: int
    shift: int
    low: int
    high: int


@dataclass(frozen=True)
class RowSum:
    """A function name(a, b, y, n, numbers ...): y[i] from a[i] and b[i], i < n, n > 0; y may be a or b."""

    name: str
    numbers: tuple[int, ...] = ()
    helpers: tuple[str, ...] = ()
    header: str = ""

    def call(self, *arguments: str) -> str:
        """The statement."""
        return f"{self.name}({', '.join([*arguments, *(str(n) for n in self.numbers)])});\n"


def sum_table(a: Rescaling, b: Rescaling, result: Rescaling, left_shift: int, low: int,
              high: int) -> np.ndarray:
    """int64 [256, 256]: the sum as TensorFlow Lite Micro computes it for a, b = -128 .. 127."""
    bytes_ = np.arange(-128, 128, dtype=np.int64)
    terms = [_requantise((bytes_ - r.zero_point) << left_shift, r) for r in (a, b)]
    total = _requantise(terms[0][:, None] + terms[1][None, :], result)
    clamped: np.ndarray = np.clip(total + result.zero_point, low, high)
    return clamped


def _requantise(x: np.ndarray, r: Rescaling) -> np.ndarray:
    right = max(-r.shift, 0)
    h = ((x << max(r.shift, 0)) * r.multiplier + (1 << 30)) >> 31
    if right == 0:
        return h
    rounded: np.ndarray = (h - (h < 0) + (1 << (right - 1))) >> right
    return rounded


def affine(a: Rescaling, b: Rescaling, result: Rescaling, left_shift: int, low: int,
           high: int) -> Affine | None:
    """The affine form that equals the sum on all pairs, or None."""
    table = sum_table(a, b, result, left_shift, low, high)
    real = [r.factor * 2.0**left_shift * result.factor for r in (a, b)]
    finest = int(np.floor(31.0 - np.log2(128.0 * (abs(real[0]) + abs(real[1])))))
    for shift in range(min(finest, 31), max(finest - PRECISIONS, 0), -1):
        for da in sorted(range(-NEIGHBOURS, NEIGHBOURS + 1), key=abs):
            for db in sorted(range(-NEIGHBOURS, NEIGHBOURS + 1), key=abs):
                ma, mb = (round(factor * 2.0**shift) + d for factor, d in zip(real, (da, db), strict=True))
                offset = _offset(table, ma, mb, shift, low, high)
                if offset is not None:
                    return Affine(ma, mb, offset, shift, low, high)
    return None


def _offset(table: np.ndarray, ma: int, mb: int, shift: int, low: int, high: int) -> int | None:
    """An offset with which the factors give the table, without overflow of int32, or None."""
    bytes_ = np.arange(-128, 128, dtype=np.int64)
    value = bytes_[:, None] * ma + bytes_[None, :] * mb
    room = (1 << 31) - 1 - int(np.abs(value).max())
    above = np.where(table > low, (table << shift) - value, -room).max()
    below = np.where(table < high, ((table + 1) << shift) - 1 - value, room).min()
    offset = int((above + below) // 2)
    return offset if above <= below and abs(offset) <= room else None


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
