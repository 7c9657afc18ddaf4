"""Convolution with weights of 4 bits for cores with the DSP extension: two pixels by four channels, weights
read where they lie.

A word of weights has two taps of four channels a, b, c, d: d * 4096 + c * 256 + b * 16 + a in a halfword,
all from 0 to 15. A mask leaves the two taps of one channel, and SMLAD multiplies them with two inputs; b and
d come 16 times as large, of which the requantisation knows. So a step is, for 16 MACs, one word of weights,
two of pixels, 4 AND, a shift of c and d to where a and b were, 8 SMLAD: no other memory, nothing is unpacked.

The pixels are those of gemm_dsp, int16 [k/2][4 pixels][2], two of the four at a time; what surrounds the
kernel is what surrounds gemm_dsp's. That weights have no sign makes 8 their zero point: what it takes from
all sums of a pixel, -8 times the sum of its inputs, lies behind these, and sums begin with it. The stream is,
for each four channels: start of the accumulators (4 words), the words of weights, the numbers of the
requantisation. These are a word for each channel where multipliers of 16 bits are exact, multiplier and
offset, as for networks whose scales were chosen for that (quantise/weights.py); else {multiplier of a,
multiplier of b, both offsets}, the same of c and d.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.c.assembly import constant
from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.int8.conv_dsp import Loops
from aot_model.kernels.int8.dsp import Load, Peek, Schedule, dsp_function, op
from aot_model.kernels.int8.finish import form_name, requantise, wrapped
from aot_model.kernels.int8.patch_dsp import patch_layout
from aot_model.kernels.int8.products_dsp import Products, Span
from aot_model.kernels.int8.quads_dsp import two_by_four
from aot_model.kernels.int8.requantise import SHORT, RequantisePlan, bounds, fold_zero_point, plan
from aot_model.kernels.int8.spec import Bias, Int32, Int64, QuantSpec, Weights

UNROLL = 2
"""Four would be 4 % faster, and 128 bytes more: weights have 4 bits where flash is short."""
CHANNELS = 4
OF_ONE_PIXEL = 1024
"""Bytes that the inputs of a layer of one pixel may take, four times as large as those of plain C."""
_SUMS = (("r2", "r3"), ("r4", "r5"), ("r6", "r7"), ("r8", "r9"))
"""Accumulators of two pixels, of each channel."""
_ALIGN = np.array([0, 4, 0, 4], np.int64)


@dataclass(frozen=True)
class Quads:
    """The packed constants of one layer."""

    words: Int32
    """[fours of channels, words]"""
    channels: Int64
    """The first of each four; the last four may begin among the channels of those before."""
    requantise: RequantisePlan

    def spans(self, kernel: str) -> tuple[Span, ...]:
        """The calls for four pixels."""
        count, size = self.words.shape
        odd = int(count > 1 and self.channels[-1] != CHANNELS * (count - 1))
        parts = ((0, count - odd), (count - odd, count))
        return tuple(Span(kernel, True, "weights", first * size, last * size, int(self.channels[first]))
                     for first, last in parts if first < last)  # fmt: skip


def _plan(w: Int64, b: Int64, quant: QuantSpec, slots: Int64) -> RequantisePlan | None:
    """Of each slot, the channels that are computed; None where this kernel has no form for them."""
    lo, hi = (v[slots] for v in bounds(w, b, quant))
    m, s = quant.channels(w.shape[0])
    each = replace(quant, multiplier=m[slots].astype(np.int32), shift=s[slots].astype(np.int32))
    align = np.resize(_ALIGN, slots.size)
    found = plan(each, lo, hi, align, short=True)
    if found.form == "short":
        return found
    found = plan(each, lo, hi, align)
    small = found.form == "affine" and found.uniform_shift and int(np.abs(found.offset).max()) < SHORT
    return found if small else None


def packed(w: Int64, b: Int64, quant: QuantSpec, taps: Int64) -> Quads | None:
    """w [channels, taps], b: weights and bias as folded; taps: what is packed, from 0 to 15, an even number
    in the order of the pixels' pairs. None where there is no form of requantisation for them.
    """
    count = w.shape[0]
    first = np.minimum(np.arange(0, count, CHANNELS), count - CHANNELS)
    slots = (first[:, np.newaxis] + np.arange(CHANNELS)).reshape(-1)
    rq = _plan(w, b, quant, slots)
    if rq is None:
        return None
    starts = (b[slots] + rq.bias_shift) << np.resize(_ALIGN, slots.size)
    halves = np.einsum("qct,c->qt", taps[slots].reshape(first.size, CHANNELS, -1), 1 << np.arange(0, 16, 4))
    weights = halves[:, 0::2] | halves[:, 1::2] << 16
    offsets, multipliers = rq.offset & 0xFFFF, rq.multiplier
    if rq.form == "short":
        ends = multipliers | offsets
    else:
        both = offsets[0::2] | offsets[1::2] << 16
        ends = np.column_stack([multipliers.reshape(-1, 2), both])
    words = (starts, weights, ends)
    return Quads(wrapped(np.hstack([v.reshape(first.size, -1) for v in words])), first, rq)


def _step() -> Schedule:
    """Two taps."""
    step: Schedule = [Load(("r10",), "r1"), Peek("lr", "r0", 4), Load(("r12",), "r0", skip=12)]
    for k, sums in enumerate(_SUMS):
        step += [op("lsr", "r10", "r10", 8)] if k == 2 else []
        step.append(op("second_nibbles" if k % 2 else "first_nibbles", "r11", "r10"))
        step += [op("smlad", acc, x, "r11", acc) for acc, x in zip(sums, ("r12", "lr"), strict=True)]
    return step


def _finish(rq: RequantisePlan, out_dtype: str) -> Schedule:
    lines: Schedule = []
    for k, sums in enumerate(_SUMS):
        if rq.form == "short":
            lines += [Load(("r10",), "r1"), op("sxth", "r11", "r10")]
        elif k % 2 == 0:
            lines += [Peek("lr", "r1", 8), Load(("r10",), "r1"), op("sxth", "r11", "lr")]
        else:
            lines += [Load(("r10",), "r1", skip=4), op("asr", "r11", "lr", 16)]
        lines += requantise(rq, sums, int(_ALIGN[k]), out_dtype, ("r10", "r11", "", ""), [])
    return lines


def _zero_sums(zero: int, half: int) -> tuple[str, str]:
    """(statement, helper): behind the `half` words of each of the four pixels in `columns` what the weights'
    zero point takes from its sums."""
    name = f"zero_sums4_{zero}"
    factor = (-zero & 0xFFFF) * 0x10001
    lines = [
        "push {r4-r9, lr}",
        "add r1, r0, r1, lsl #4",
        *constant("lr", factor),
        *[f"mov {r}, #0" for r in ("r8", "r9", "r2", "r3")],
        "1:",
        "ldmia r0!, {r4-r7}",
        *[f"smlad {sum_}, {x}, lr, {sum_}"
          for sum_, x in zip(("r8", "r9", "r2", "r3"), ("r4", "r5", "r6", "r7"), strict=True)],
        "cmp r0, r1",
        "bne 1b",
        "strd r8, r9, [r0]",
        "strd r2, r3, [r0, #8]",
        "pop {r4-r9, pc}",
    ]  # fmt: skip
    twin = ["for (uint32_t i = 0; i < 4; i++) {", "int32_t sum = 0;",
            "for (uint32_t k = 0; k < half; k++) {",
            f"sum = dsp_smlad((int32_t)columns[4 * k + i], dsp_pair({-zero}, {-zero}), sum);", "}",
            "columns[4 * half + i] = (uint32_t)sum;", "}"]  # fmt: skip
    comment = f"Behind four pixels' int16 [half][4][2]: {-zero} times the sum of each."
    text = dsp_function(name, comment, "uint32_t *columns, uint32_t half", lines, twin)
    return f"{name}(columns, {half}u);", text


def nibble_kernel(rq: RequantisePlan, out_dtype: str) -> tuple[str, str]:
    """(name, C text) of the micro-kernel: all fours of channels for two pixels."""
    name = f"dot2x4_nibbles_{form_name(rq, out_dtype)}"
    begin = [
        "ldmia r1!, {r2, r4, r6, r8}",
        "ldr r10, [sp, #16]",
        "ldrd r12, lr, [r10]",
        "ldr r0, [sp, #8]",
        *[
            f"add {to}, {first}, {x}{shift}"
            for (first, second), shift in zip(_SUMS, ("", ", lsl #4") * 2, strict=True)
            for to, x in ((second, "lr"), (first, "r12"))
        ],
    ]
    starts = [f"{acc} = (int32_t)((uint32_t)r1[{k}] + (first[{i}] << {_ALIGN[k]}));"
              for k, sums in enumerate(_SUMS) for i, acc in enumerate(sums)]  # fmt: skip
    comment = (
        "Two of four pixels x four channels at a time, weights of 4 bits: columns = int16 pixels "
        "[k/2][4][2] and the start of their sums, from the first of the two on; stream = per four "
        "channels start values, weights and requantisation; pixels go to y and y + next."
    )
    text = two_by_four(name, comment, _SUMS, f"{out_dtype}_t", "words", _step(), UNROLL,
                       _finish(rq, out_dtype), ["sub r3, r3, #1"], begin, ["ldrd r10, r12, [sp]"], starts,
                       "uint32_t k = 1; k < words; k++",
                       ("const uint32_t *first = columns + 4u * (words - 1u);",))  # fmt: skip
    return name, text


def conv(
    shape: ConvShape, weights: Weights, bias: Bias, quant: QuantSpec, tail: Tail | None = None
) -> KernelCode | None:
    """Convolution; weights [out_c, kernel_h, kernel_w, in_c] from -8 to 7, or to 15 where they have no sign.
    One group. None where other kernels do it: few channels, requantisations that are rare, long rows alone.
    """
    oc, less = shape.out_c, 8 if weights.dtype.kind == "i" else 0
    zero = quant.weight_zero_point + less
    patch = patch_layout(shape.kernel_h, shape.kernel_w * shape.in_c)
    long = 16 * (patch.length // 2 + 1) > OF_ONE_PIXEL
    if oc < CHANNELS or quant.rounding is None or not 0 <= zero <= 15 or (shape.one_row and long):
        return None
    w, b = fold_zero_point(weights.reshape(oc, -1), bias, quant)
    quads = packed(w, b, quant, patch.ordered(weights.reshape(oc, -1).astype(np.int64) + less))
    if quads is None:
        return None
    rq, start_of = quads.requantise, _zero_sums(zero, patch.length // 2)
    kernel, text = nibble_kernel(rq, quant.out_dtype)
    loops = Loops(shape, quant, patch, tail is not None, rq, tail, [start_of[0]])
    layout = "for each four channels: four start values of the sums; two taps of all in a word, 4 bits each; "
    layout += (
        "multiplier and offset of the requantisation in a word"
        if rq.form == "short"
        else "of each two channels: their multipliers, both offsets in a word"
    )
    made = Products(quads.words.reshape(-1), quads.spans(kernel), (text,), (), (), layout, None)
    note = f"two pixels x four channels, {patch.length} taps, weights of 4 bits where they lie"
    return loops.code(made, start_of[1:], note)
