"""The instruction sets that have output channels in the lanes of vectors: AVX2, AVX-512 VNNI, AArch64 with
dot products.

A step of the dot product takes `group` inputs of one pixel, the same for all channels, and their weights,
[channel][input]. Their functions are in runtime headers; a set is a row here and its header.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from aot_model.kernels.int8.instructions import Instruction, InstructionSet, Lanes, Operand

INTERLEAVED = (0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15)
"""Channels of two accumulators of eight that packing within 128-bit lanes brings into order."""


def _scaled(product: Lanes, order: tuple[int, ...]) -> Lanes:
    """High words of the products, in the order that the set leaves."""
    return (product >> 32).reshape(-1, 4)[:, list(order)].reshape(-1)


def _table(
    lanes: int, group: int, held: str, inputs: str, order: tuple[int, ...], channels: tuple[int, ...]
) -> dict[str, Instruction]:
    """The instructions that every set has. held, inputs: elements of weights and of inputs in the
    registers.
    """
    acc, small = Operand("q8_acc", "int32", lanes), Operand("q8_acc", "int32", lanes, -(1 << 28), 1 << 28)
    words, factor = Operand("const int32_t *", "int32", lanes), Operand("const int32_t *", "int32", lanes, 0)
    shift = Operand("const int32_t *", "int32", lanes, 1, 22)
    weights, x = Operand("q8_weights", held, lanes * group), Operand("q8_inputs", inputs, lanes * group)
    parts = 16 // lanes
    after = np.array(channels)[(np.arange(16) // 4 * 4 + np.tile(order, 4))]

    def rounded(a: Lanes, m: Lanes, offset: Lanes, right: Lanes) -> Lanes:
        h = _scaled(2 * a * m + (1 << 31), order)
        return (h + offset + (h >> 31)) >> right

    def in_channels(values: Lanes, at: Lanes) -> Lanes:
        found = np.zeros(16, np.int64)
        found[at] = values
        return found

    def row(
        name: str, result: Operand, meaning: Callable[..., Lanes], *operands: Operand
    ) -> tuple[str, Instruction]:
        """A function of the header, called with the operands in order."""
        text = f"q8_{name}({', '.join(f'{{{k}}}' for k in range(len(operands)))})"
        return name, Instruction(text, operands, result, meaning)

    ends, part = replace(words, low=-(1 << 29), high=1 << 29), replace(words, low=-(1 << 28), high=1 << 28)
    bytes_ = Operand("const int8_t *", "int8", lanes * group)
    pair = Operand(f"const {inputs}_t *", inputs, group)
    fixed = Operand("int32_t", "int32", 1, 0, 15)
    table = dict([
        row("load", acc, lambda p: p, words),
        row("splat", x, lambda p: np.tile(p, lanes), pair),
        row("weights_int8", weights, lambda p: p, bytes_),
        row("dot", acc, lambda a, w, v: a + (w * v).reshape(lanes, group).sum(axis=1), acc, weights, x),
        row("scale", acc, lambda a, m: _scaled(a * m, order), acc, factor),
        row("round", acc, rounded, small, factor, ends, shift),
        row("add_shift", acc, lambda a, c, s: (a + c) >> s, small, part, fixed),
    ])  # fmt: skip
    accs = ", ".join(f"{{{k}}}" for k in range(parts))
    small16 = [replace(acc, low=-40000, high=40000)] * parts
    for dtype, low, high in (("int8", -128, 127), ("uint8", 0, 255)):

        def narrow(*a: Lanes, low: int = low, high: int = high) -> Lanes:
            return in_channels(
                np.clip(np.concatenate(a[:parts]), max(low, a[parts][0]), min(high, a[parts + 1][0])), after
            )

        limits = [Operand("int32_t", "int32", 1, at, at + 9) for at in (low, high - 9)]
        text = f"q8_bytes16_{dtype}(q8_pack16({accs}), {{{parts}}}, {{{parts + 1}}})"
        packed = Operand("q8_bytes", dtype, 16)
        table[f"bytes16_{dtype}"] = Instruction(text, (*small16, *limits), packed, narrow)
        table[f"widen_{dtype}"] = _widen(dtype, inputs)

    def sums(*a: Lanes) -> Lanes:
        return in_channels(np.concatenate(a), np.array(channels))

    text, whole = f"q8_sums16({{{parts}}}, {accs})", Operand("int32_t *", "int32", 16)
    table["sums16"] = Instruction(text, (*[acc] * parts,), whole, sums)
    return table


def _widen(dtype: str, inputs: str) -> Instruction:
    flip = {("int8", "uint8"): 128, ("uint8", "int8"): -128}.get((dtype, inputs), 0)
    source, result = Operand(f"const {dtype}_t *", dtype, 53), Operand(f"{inputs}_t *", inputs, 53)
    return Instruction(f"q8_widen_{dtype}({{1}}, {{0}}, 53)", (source,), result, lambda p: p + flip)


AVX2 = InstructionSet(
    "AVX2",
    "aot_model/int8_avx2.h",
    "avx2_",
    _table(8, 2, "int16", "int16", (0, 2, 1, 3), INTERLEAVED),
    8,
    2,
    "int16_t",
    pixels={16: 6, 8: 8},
    channels=INTERLEAVED,
    order=(0, 2, 1, 3),
)
_OWN = ("load", "splat", "weights_int8", "dot", "widen_int8", "widen_uint8")
VNNI = InstructionSet(
    "AVX-512 VNNI",
    "aot_model/int8_vnni.h",
    "vnni_",
    {k: v for k, v in _table(16, 4, "int8", "uint8", (0, 2, 1, 3), INTERLEAVED).items() if k in _OWN},
    16,
    4,
    "uint8_t",
    {"int8": 128},
    {16: 12},
    INTERLEAVED,
    (0, 2, 1, 3),
    "q8_low({0}), q8_high({0})",
    AVX2,
)
SDOT = InstructionSet(
    "SDOT",
    "aot_model/int8_sdot.h",
    "sdot_",
    _table(4, 4, "int8", "int8", (0, 1, 2, 3), tuple(range(16))),
    4,
    4,
    "int8_t",
    {"uint8": -128},
    {16: 6},
    tuple(range(16)),
)

SETS = (AVX2, VNNI, SDOT)
