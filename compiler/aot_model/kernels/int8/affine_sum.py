"""The sum of two quantised tensors of bytes as one multiply-add for each, proven on all 65,536 pairs.

TensorFlow Lite brings both inputs to a common finer scale, adds and rescales: three requantisations, each
with two roundings. The result is a function of two bytes, so a cheaper form can be compared with it on every
pair:

    y = clamp((a * ma + b * mb + offset) >> shift)

ma, mb are the real factors times 2^shift, a few neighbours of them are tried; for given factors every pair
bounds the offset from one side, so the offset is found or shown not to exist.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from aot_model.c.helpers import named_by_text
from aot_model.kernels.int8.requantise import rescale
from aot_model.kernels.int8.spec import Rounding

NEIGHBOURS = 3
"""How far from the real factors the search goes, in units of the last place."""

WORD = 32
"""Shifts of more bits than a word has leave nothing of a byte; they are not searched."""

PRECISIONS = 5
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


def sum_table(
    a: Rescaling,
    b: Rescaling,
    result: Rescaling,
    left_shift: int,
    low: int,
    high: int,
    rounding: Rounding = "double",
    sign: int = 1,
    least: int = -128,
) -> np.ndarray:
    """int64 [256, 256]: a + sign * b as TensorFlow Lite Micro computes it for a, b = least … least + 255."""
    bytes_ = np.arange(least, least + 256, dtype=np.int64)
    terms = [_rescaled((bytes_ - r.zero_point) << left_shift, r) for r in (a, b)]
    total = _rescaled(terms[0][:, None] + sign * terms[1][None, :], result, rounding)
    clamped: np.ndarray = np.clip(total + result.zero_point, low, high)
    return clamped


def _rescaled(x: np.ndarray, r: Rescaling, rounding: Rounding = "double") -> np.ndarray:
    return rescale(x, np.array(r.multiplier), np.array(r.shift), rounding)


@lru_cache(maxsize=4096)
def affine(
    a: Rescaling,
    b: Rescaling,
    result: Rescaling,
    left_shift: int,
    low: int,
    high: int,
    rounding: Rounding = "double",
    sign: int = 1,
    least: int = -128,
) -> Affine | None:
    """The affine form that equals the sum (or difference) on all pairs of bytes, of which `least` is the
    least, or None.
    """
    if not all(1 - WORD < r.shift < WORD and r.multiplier for r in (a, b, result)):
        return None  # A scale that vanishes or is beyond all results: nothing a multiply-add is worth.
    table = sum_table(a, b, result, left_shift, low, high, rounding, sign, least)
    real = [s * r.factor * 2.0**left_shift * result.factor for r, s in ((a, 1), (b, sign))]
    finest = int(np.floor(31.0 - np.log2(max(-least, least + 255) * max(map(abs, real)))))
    near = sorted(range(-NEIGHBOURS, NEIGHBOURS + 1), key=abs)
    for shift in range(min(finest, 31), max(finest - PRECISIONS, 0), -1):
        for moved in product(near, near):
            ma, mb = (round(factor * 2.0**shift) + d for factor, d in zip(real, moved, strict=True))
            offset = _offset(table, ma, mb, shift, low, high, least)
            if offset is not None:
                return Affine(ma, mb, offset, shift, low, high)
    return None


def _offset(table: np.ndarray, ma: int, mb: int, shift: int, low: int, high: int, least: int) -> int | None:
    """An offset with which the factors give the table, or None; no term overflows int32, nor does the offset
    with either of them or both.
    """
    bytes_ = np.arange(least, least + 256, dtype=np.int64)
    a, b = bytes_ * ma, bytes_ * mb
    sums = [0, *(int(v) for v in (a.min(), a.max(), b.min(), b.max(), a.min() + b.min(), a.max() + b.max()))]
    room = -(1 << 31) - min(sums), (1 << 31) - 1 - max(sums)
    if max(abs(v) for v in sums[:5]) >= 1 << 31 or room[0] > room[1]:
        return None
    value = a[:, None] + b[None, :]
    above = np.where(table > low, (table << shift) - value, room[0]).max()
    below = np.where(table < high, ((table + 1) << shift) - 1 - value, room[1]).min()
    offset = int((above + below) // 2)
    return offset if above <= below and room[0] <= offset <= room[1] else None


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


def dsp_sum(form: Affine) -> RowSum:
    """With the DSP extension; the form's numbers are the function's last arguments, as on hosts."""
    if (form.low, form.high) == (-128, 127):
        return RowSum("dsp_sum", astuple(form)[:4], header="aot_model/int8_dsp.h")
    return RowSum("dsp_sum_between", astuple(form), header="aot_model/int8_dsp.h")


def avx2_sum(form: Affine) -> RowSum:
    """With AVX2."""
    return RowSum("avx2_sum", astuple(form), header="aot_model/int8_avx2_rows.h")


def mve_sum(form: Affine) -> RowSum:
    """With Helium: a function for the form's numbers, some of which are parts of instructions."""
    return _mve_sum("aot_mve_sum", "int8_t", "AOT_MVE_SUM", form)


def mve_sum_of_uint8(form: Affine) -> RowSum:
    """The same for uint8."""
    return _mve_sum("aot_mve_sum_uint8", "uint8_t", "AOT_MVE_SUM_UINT8", form)


def _mve_sum(base: str, ctype: str, macro: str, form: Affine) -> RowSum:
    numbers = ", ".join(str(v) if v > -1 << 31 else "INT32_MIN" for v in astuple(form))
    name = named_by_text(base, numbers)
    text = f"""\
/* The sum of two rows of quantised values; the factors are proven on all pairs. */
AOT_MODEL_OPAQUE static void {name}(const {ctype} *a, const {ctype} *b, {ctype} *y, int32_t n)
{{
    {macro}({numbers});
}}
"""
    return RowSum(name, helpers=(text,), header="aot_model/int8_mve.h")
