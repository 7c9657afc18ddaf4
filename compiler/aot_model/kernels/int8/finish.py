"""Texts that requantise: assembly on named registers, its C twin, inline C, and the plain rule.

All follow a `Requantise` (see requantise.py). Constants of one channel are {multiplier, offset[, shift]}, in that order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aot_model.kernels.base import Packed
from aot_model.kernels.int8.requantise import Requantise
from aot_model.kernels.int8.spec import Int64, QuantSpec

DSP = "#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)"
"""Opens the part of a text that uses the DSP extension; the portable twin follows #else."""


def asm_text(lines: list[str]) -> str:
    """Lines of assembly as C string literals."""
    return "\n".join(f'        "{line}\\n"' for line in lines)


def wrapped(values: Int64) -> npt.NDArray[np.int32]:
    """Modulo 2^32, as int32."""
    return (values & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def requantise_words(rq: Requantise, channel: int) -> list[int]:
    """A channel's requantisation constants as the micro-kernels read them; none in raw form."""
    if rq.form == "raw":
        return []
    words = [int(rq.multiplier[channel]), int(rq.offset[channel])]
    return words if rq.uniform_shift else [*words, int(rq.shift[channel])]


def form_name(rq: Requantise, out_dtype: str) -> str:
    """Suffix of a micro-kernel's name: everything of the requantisation that its text depends on."""
    if rq.form == "raw":
        return "raw"
    parts = [rq.form, str(int(rq.shift[0])) if rq.uniform_shift else "v", "s8" if out_dtype == "int8" else "u8"]
    parts += [f"{n}{v}".replace("-", "n") for n, v in (("lo", rq.clamp_low), ("hi", rq.clamp_high)) if v is not None]
    return "_".join(parts)


def requantise_asm(
    rq: Requantise, accs: tuple[str, ...], align: int, out_dtype: str, regs: tuple[str, str, str, str], fetch: list[str]
) -> list[str]:
    """Requantises one channel's accumulators in place.

    regs: multiplier, offset, a free one, variable shift. fetch: how the shift is loaded just before it is used.
    """
    sat = "ssat" if out_dtype == "int8" else "usat"
    if rq.form == "raw":
        return [f"asr {a}, {a}, #{align}" for a in accs] if align else []
    m, c, u, r = regs
    lines = []
    fixed = int(rq.shift[0]) + (align if rq.form == "affine" else 0)
    for a in accs:
        if rq.form == "affine":
            lines.append(f"smmlar {a}, {a}, {m}, {c}")
        else:
            lines.append(f"asr {a}, {a}, #{align - 1}" if align else f"lsl {a}, {a}, #1")
            lines += [f"add {u}, {c}, {a}, asr #31", f"smmlar {a}, {a}, {m}, {u}"]
        if rq.uniform_shift:
            lines.append(f"{sat} {a}, #8, {a}" + (f", asr #{fixed}" if fixed else ""))
        else:
            if rq.form == "affine" and align:
                lines.append(f"asr {a}, {a}, #{align}")
            lines += [*fetch, f"asr {a}, {a}, {r}", f"{sat} {a}, #8, {a}"]
        if rq.clamp_low is not None:
            lines += [f"cmp {a}, #{rq.clamp_low}", "it lt", f"movlt {a}, #{rq.clamp_low}"]
        if rq.clamp_high is not None:
            lines += [f"cmp {a}, #{rq.clamp_high}", "it gt", f"movgt {a}, #{rq.clamp_high}"]
    return lines


def requantise_c(rq: Requantise, align: int, out_dtype: str, indent: str, constants: str = "p") -> list[str]:
    """The same in C: `v` holds an accumulator shifted left by `align`, `constants` points to its constants."""
    if rq.form == "raw":
        return [f"{indent}v >>= {align};"] if align else []
    lo, hi = (-128, 127) if out_dtype == "int8" else (0, 255)
    lo, hi = lo if rq.clamp_low is None else rq.clamp_low, hi if rq.clamp_high is None else rq.clamp_high
    lines = []
    if rq.form == "ties":
        lines.append(f"v >>= {align - 1};" if align else "v *= 2;")
        add = f"(int64_t){constants}[1] - (v < 0)"
    else:
        add = f"(int64_t){constants}[1]"
    extra = align if rq.form == "affine" else 0
    shift = str(int(rq.shift[0]) + extra) if rq.uniform_shift else (f"({constants}[2] + {extra})" if extra else f"{constants}[2]")
    lines.append(f"v = (int32_t)((((int64_t)v * {constants}[0] + INT64_C(0x80000000)) >> 32) + {add});")
    lines.append(f"v >>= {shift};")
    lines.append(f"v = v < {lo} ? {lo} : v > {hi} ? {hi} : v;")
    return [indent + line for line in lines]


SMMLAR = f"""#ifndef AOT_MODEL_SMMLAR
#define AOT_MODEL_SMMLAR
/* High word of value * multiplier, rounded, plus offset. */
static inline int32_t mulhi_round_add(int32_t value, int32_t multiplier, int32_t offset)
{{
{DSP}
    int32_t sum;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(sum) : "r"(value), "r"(multiplier), "r"(offset));
    return sum;
#else
    return (int32_t)((((int64_t)value * multiplier + INT64_C(0x80000000)) >> 32) + offset);
#endif
}}
#endif
"""


def finish_c(rq: Requantise, out_dtype: str, constants: str) -> list[str]:
    """C that turns the accumulator `v` into the clamped value; `constants`: a pointer to {multiplier, offset[, shift]}."""
    lo, hi = (-128, 127) if out_dtype == "int8" else (0, 255)
    lo, hi = lo if rq.clamp_low is None else rq.clamp_low, hi if rq.clamp_high is None else rq.clamp_high
    offset = f"{constants}[1]"
    lines = []
    if rq.form == "ties":
        lines.append("v *= 2;")
        offset += " + (v >> 31)"
    shift = str(int(rq.shift[0])) if rq.uniform_shift else f"{constants}[2]"
    lines.append(f"v = mulhi_round_add(v, {constants}[0], {offset}) >> {shift};")
    if (lo, hi) == ((-128, 127) if out_dtype == "int8" else (0, 255)):
        return [*lines, f"v = saturate_{out_dtype}(v);"]
    return [*lines, f"v = v < {lo} ? {lo} : v > {hi} ? {hi} : v;"]


def finish_helpers(rq: Requantise, out_dtype: str) -> list[str]:
    """Texts that finish_c's code calls."""
    if rq.form == "raw":
        return []
    if rq.clamp_low is not None or rq.clamp_high is not None:
        return [SMMLAR]
    op, lo, hi = ("ssat", -128, 127) if out_dtype == "int8" else ("usat", 0, 255)
    saturate = f"""static inline int32_t saturate_{out_dtype}(int32_t v)
{{
{DSP}
    __asm__("{op} %0, #8, %1" : "=r"(v) : "r"(v));
    return v;
#else
    return v < {lo} ? {lo} : v > {hi} ? {hi} : v;
#endif
}}
"""
    return [SMMLAR, saturate]


def requantise_helper(quant: QuantSpec) -> tuple[str, str]:
    """(name, C text) of the rule as it stands, for any multiplier and shift: (acc, {multiplier, shift}) -> clamped value."""
    name = f"requantise_v{quant.variant}_{quant.out_zero_point}_{quant.act_min}_{quant.act_max}".replace("-", "n")
    if quant.variant == 3:
        rule = """    const int32_t s = constants[1];
    const int64_t product = (int64_t)acc * constants[0];
    const int32_t q = (int32_t)((product + ((int64_t)1 << (30 - s))) >> (31 - s));"""
    elif quant.variant == 4:
        rule = """    const int32_t s = constants[1];
    const int64_t wide = (int64_t)acc * constants[0] + ((int64_t)1 << (30 - s));
    const int32_t up = (int32_t)(wide >> (31 - s));
    const int32_t q = (wide & (((int64_t)1 << (31 - s)) - 1)) == 0 ? up - (up & 1) : up;"""
    else:
        rule = """    const int32_t left = constants[1] > 0 ? constants[1] : 0, right = left - constants[1];
    const int32_t value = (int32_t)((uint32_t)acc << left);
    const int32_t high = (int32_t)(((int64_t)value * constants[0] + INT64_C(0x40000000)) >> 31);
"""
        if quant.variant == 2:
            rule += "    const int32_t q = (int32_t)((high + (((int64_t)1 << right) >> 1)) >> right);"
        else:
            rule += """    const int32_t mask = (int32_t)((UINT32_C(1) << right) - 1u);
    const int32_t q = (high >> right) + ((high & mask) > (mask >> 1) + (high < 0) ? 1 : 0);"""
    low, high = quant.act_min - quant.out_zero_point, quant.act_max - quant.out_zero_point
    text = f"""/* The rule for one accumulator; constants = {{multiplier, shift}}. */
static int32_t {name}(int32_t acc, const int32_t *constants)
{{
{rule}
    return q < {low} ? {quant.act_min} : q > {high} ? {quant.act_max} : q + {quant.out_zero_point};
}}
"""
    return name, text


def raw_constants(quant: QuantSpec, channels: int) -> list[Packed]:
    """Multiplier and shift of each channel for the plain rule."""
    m, s = quant.channels(channels)
    return [Packed("requantisation", np.stack([m, s], axis=1).astype(np.int32).reshape(-1))]
