"""From accumulators to stored bytes: the finishing function of a layer and its table of constants.

A table has one entry per block of 16 or 8 channels, int32 words:

    bias [n], then   affine, s = 0: multiplier [n], c [n] int16
                     affine:        multiplier [n], c [n]
                     ties:          multiplier [n], offset [n], shift [n]
                     raw:           {multiplier, shift} [n]
                     accumulators:  nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING, SHIFTS, Range, Ranges
from aot_model.kernels.int8.finish import requantise_helper
from aot_model.kernels.int8.instructions import InstructionSet
from aot_model.kernels.int8.requantise import RequantisePlan
from aot_model.kernels.int8.spec import Int64, QuantSpec


@dataclass(frozen=True)
class Finish:
    """The finishing function `name(a[, b ...], table, y, count)` of one layer for blocks of 16 or 8
    channels.
    """

    block: int
    name: str
    helpers: tuple[str, ...]
    words: int
    """Of a table entry."""


def finish(block: int, rq: RequantisePlan, quant: QuantSpec, dialect: InstructionSet) -> Finish:
    """The function for blocks of `block` channels; text is shared by layers whose ranges are alike."""
    out = quant.out_dtype
    s = dialect.finishing
    parts = _parts(block, s)
    if rq.accumulators:
        name, body = f"q8_sums_{block}_{out}", _each(block, parts, "sums[i]") + "    (void)table;\n"
        return Finish(block, s.named(name), (s.named(_function(block, name, out, "the", body, s)),), block)
    low, high = (quant.out_range[i] if v is None else v for i, v in enumerate((rq.clamp_low, rq.clamp_high)))
    shift = int(rq.shift[0]) if rq.form == "affine" else 0
    name = f"q8_{rq.form}{shift if shift else ''}_{block}_{out}"
    if (low, high) != quant.out_range:
        name += f"_{low}_{high}".replace("-", "n")
    at = {v: s.lanes * i for i, v in enumerate(parts)}
    extra: tuple[str, ...] = ()
    if rq.form == "raw":
        rule, text = requantise_helper(quant)
        name += f"_{quant.rounding}_{quant.out_zero_point}_{quant.act_min}_{quant.act_max}".replace("-", "n")
        extra = (text,)
        words = 3 * block
        body = _each(block, parts, f"({out}_t){rule}(sums[i], table + {block} + 2 * i)")
    else:
        words = 2 * block + block // 2 if rq.narrow else 3 * block if rq.form == "affine" else 4 * block
        where = {v: [f"table + {n * block + at[v]}" for n in (1, 2, 3)] for v in parts}
        if rq.form == "affine":
            vectors = [f"q8_scale({v}, {where[v][0]})" for v in parts]
            if not rq.narrow:
                scaled = zip(vectors, parts, strict=True)
                vectors = [f"q8_add_shift({one}, {where[v][1]}, {shift})" for one, v in scaled]
        else:
            vectors = [f"q8_round({v}, {', '.join(where[v])})" for v in parts]
        half = "q8_pack16" if block == 16 else "q8_pack8"
        packed = f"{half}({', '.join(vectors)})"
        if rq.narrow:
            packed = f"q8_add_{block}({packed}, table + {2 * block})"
        body = f"    q8_store(y, q8_bytes{block}_{out}({packed}, {low}, {high}), count);\n"
    what = f"requantisation, clamp to [{low}, {high}], store of the"
    return Finish(block, s.named(name), (*extra, s.named(_function(block, name, out, what, body, s))), words)


def _parts(block: int, s: InstructionSet) -> str:
    """Names of the registers of a block."""
    return "abcd"[: s.registers(block)]


def _each(block: int, parts: str, value: str) -> str:
    """Results one by one, `sums[i]` being the accumulators in the order of their channels."""
    save = f"q8_sums16(sums, {', '.join(parts)});" if block == 16 else "q8_save(sums, a);"
    return f"""\
    int32_t sums[{block}];
    {save}
    for (int32_t i = 0; i < count; i++) {{
        y[i] = {value};
    }}
"""


def _function(block: int, name: str, out: str, what: str, body: str, s: InstructionSet) -> str:
    arguments = ", ".join(f"q8_acc {v}" for v in _parts(block, s))
    return (
        f"/* {counted(block, 'channel')}: {what} first `count`. */\n"
        f"AOT_MODEL_INLINE void {name}({arguments}, const int32_t *table, {out}_t *y, int32_t "
        f"count)\n{{\n{body}}}\n"
    )


def table(
    block: int, rq: RequantisePlan, start: Int64, channels: Int64, dialect: InstructionSet
) -> np.ndarray:
    """Entry of the channels [block] (-1: none), int32 words. start: the accumulators of all channels."""
    lane = channels[dialect.block_channels(block)]
    order = np.array([i // 4 * 4 + dialect.order[i % 4] for i in range(block)])

    def of(values: Int64, where: Int64) -> np.ndarray:
        found = np.where(where >= 0, values[np.maximum(where, 0)], 0)
        return (found & 0xFFFFFFFF).astype(np.uint32).view(np.int32)

    parts = [of(start, lane)]
    if rq.accumulators:
        return parts[0]
    if rq.form == "raw":
        parts.append(np.stack([of(rq.multiplier, channels), of(rq.shift, channels)], axis=1).reshape(-1))
        return np.concatenate(parts)
    parts.append(of(rq.multiplier, lane))
    if rq.narrow:
        # packing to int16 brings a block of 16 back to channel order but for the order within each four
        parts.append(of(rq.offset, channels[order]).astype(np.int16).view(np.int32))
        return np.concatenate(parts)
    after = lane[order]
    parts.append(of(rq.offset, after))
    if rq.form == "ties":
        parts.append(of(rq.shift, after))
    return np.concatenate(parts)


def admissible_entries(rq: RequantisePlan, entries: Sequence[np.ndarray]) -> Ranges:
    """Of the entries of a layer: only the plain rule shifts in C; what the vector instructions do is defined
    for all numbers.
    """
    if rq.form != "raw" or rq.accumulators:
        return ANYTHING
    begins = np.cumsum([0, *(e.size for e in entries)]).tolist()
    return tuple(
        Range(*SHIFTS, at + e.size // 3 + 1, 2, e.size // 3) for at, e in zip(begins, entries, strict=False)
    )
