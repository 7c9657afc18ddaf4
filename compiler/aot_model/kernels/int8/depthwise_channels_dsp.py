"""Depthwise convolution with few outputs for cores with the DSP extension: four channels at a time, which lie
one behind the other in memory.

The plane of one channel (depthwise_dsp.py) is worth filling where many outputs read it. A network that takes
its input step by step has one output a channel. Here a word holds a tap of four channels; two taps a, b
become pairs:

    a, b         LDR, LDR      a0 a1 a2 a3, b0 b1 b2 b3
    PKHBT, PKHTB               a0 a1 b0 b1, a2 a3 b2 b3      (so the weights are packed)
    SXTB16 (, ROR #8)          a0 b0; a1 b1; a2 b2; a3 b3

That are 4 loads, 2 PKH, 8 SXTB16 and 4 SMLAD for 8 MACs. An odd number of taps begins with a pair of the
first one and a weight of zero. The stream is, for each four channels: start values of the sums, two words for
each two taps, numbers of the requantisation of each channel.
"""

from __future__ import annotations

import numpy as np

from aot_model.c.text import loop_of
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER, Load, Schedule, assembly, dsp_function, op, twin
from aot_model.kernels.int8.finish import (
    Rule,
    admissible_shifts,
    form_name,
    numbers_of,
    requantise_streamed,
    stored,
    wrapped,
)
from aot_model.kernels.int8.requantise import RequantisePlan, bounds, fold_zero_point, lifted_plan
from aot_model.kernels.int8.spec import Bias, Int32, Int64, QuantSpec, Weights
from aot_model.kernels.overlap import slack

CHANNELS = 4
FEW = 3
"""Outputs of a channel for which no plane is filled."""


def _row(shape: ConvShape) -> ConvShape | None:
    """The layer along one row, all taps in which are as far apart, or None."""
    if not shape.inside:
        return None
    s = shape.along_row
    if s.kernel_w == s.in_w and s.out_h == s.dilation_h == s.dilation_w == 1:
        pixels = s.in_h * s.in_w  # the rows of the window follow each other
        return ConvShape(s.batch, 1, pixels, s.in_c, 1, 1, s.out_c, 1, s.kernel_h * s.in_w, groups=s.groups)
    return s if s.in_h == 1 else None


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer, in less than a plane for each channel would take."""
    s = _row(shape)
    channels = shape.groups == shape.in_c == shape.out_c >= CHANNELS
    return channels and quant.weight_zero_point == 0 and s is not None and s.out_w <= FEW and s.kernel_w > 1


def depthwise(
    shape: ConvShape, weights: Weights, bias: Bias, quant: QuantSpec, tail: Tail | None = None
) -> KernelCode:
    """Depthwise convolution; weights [kernel_h, kernel_w, channels], `applicable()`."""
    s = _row(shape)
    assert s is not None
    channels, taps = s.out_c, s.kernel_w
    w, b = fold_zero_point(weights.reshape(taps, channels).T, bias, quant)
    rq = lifted_plan(quant, *bounds(w, b, quant))
    firsts = [min(c, channels - CHANNELS) for c in range(0, channels, CHANNELS)]
    parts = [slice(c, c + CHANNELS) for c in firsts]
    stream = np.stack([_packed(w[k], b[k] + rq.bias_shift[k], numbers_of(rq)[k]) for k in parts])
    words = stream.shape[1]
    rule = Rule.of(rq, quant, channels)
    results = tail is not None or rq.form == "raw"
    ctype, size = stored(rq, quant.out_dtype)
    name, text = _kernel(rq, quant)

    step, across = s.dilation_w * channels, s.stride_w * channels
    pixel = f"n * {s.out_w} + j"
    to = "results" if results else "to"
    place = f"{(taps + 1) // 2}, {step}, {0 if taps % 2 else step}"
    calls = [f"{name}(from, weights, {to}, {channels // CHANNELS}, {place});"]
    if channels % CHANNELS:  # the last four begin earlier
        last = firsts[-1]
        calls.append(f"{name}(from + {last}, weights + {stream.size - words}, {to} + {last}, 1, {place});")
    if results:
        at = ("n", "j", "0") if shape.out_h > 1 else ("n", "0", "j")
        to_y = f"({pixel}) * {channels} + c"
        calls += rule.store_each(channels, "results[c]", to_y, quant.out_dtype, tail, at)
    else:
        calls.insert(0, f"{ctype} *to = y + ({pixel}) * {channels};")
    from_x = f"const {quant.x_dtype}_t *from = x + n * {s.strides[0]} + j * {across};"
    body = loop_of("n", s.batch, *loop_of("j", s.out_w, from_x, *calls))
    image, column = np.divmod(np.arange(s.batch * s.out_w), s.out_w)
    reads = image * s.strides[0] + column * across
    ends = (image * s.out_w + column) * channels
    if not results:  # four channels are written when all their taps were read
        reads, ends = (np.add.outer(v, np.array(firsts)).reshape(-1) for v in (reads, ends + CHANNELS))
    else:
        ends = ends + channels
    layout = (
        "for each four channels a, b, c, d: start values of the sums; of each two taps a "
        "word of a, b and one of c, d; numbers of the requantisation"
    )
    shifts = admissible_shifts(rq, words, CHANNELS)
    packed = Packed("weights", stream.reshape(-1), admissible=shifts, layout=layout)
    return KernelCode(
        body="\n".join(body) + "\n",
        constants=(packed, *rule.constants),
        scratch=(Scratch("results", size * channels, 4, ctype),) if results else (),
        includes=frozenset({HEADER}),
        helpers=(text, *rule.helpers),
        slack=slack(reads, ends, reread=False, size=s.batch * s.strides[0]),
        note=f"four channels at a time, {taps} taps; requantisation: {rq.form}",
    )


def _packed(w: Int64, starts: Int64, numbers: Int64) -> Int32:
    """The words of four channels: w [4, taps], starts [4], numbers [4, words]."""
    if w.shape[1] % 2:
        w = np.insert(w, 1, 0, axis=1)
    pairs = w.reshape(2, 2, -1, 2).transpose(2, 0, 3, 1)  # [two taps][two channels][tap][channel]
    words = np.ascontiguousarray(pairs.astype(np.int8)).reshape(-1).view("<i4")
    return np.concatenate([wrapped(starts), words, wrapped(numbers.reshape(-1))]).astype(np.int32)


_SUMS = ("r2", "r3", "r4", "r5")


def _products(x_dtype: str) -> Schedule:
    """Two taps of four channels, in r8 and r9."""
    ext = "sxtb16" if x_dtype == "int8" else "uxtb16"
    text: Schedule = [op("tops", "r12", "r8", "r9"), op("bottoms", "r8", "r8", "r9")]
    for x, even, odd in (("r8", "r2", "r3"), ("r12", "r4", "r5")):
        text += [] if x == "r8" else [Load(("r10",), "r1")]
        for acc, bytes_ in ((even, ""), (odd, "_ror8")):
            text += [
                op(f"{ext}{bytes_}", "r9", x),
                op(f"sxtb16{bytes_}", "r11", "r10"),
                op("smlad", acc, "r9", "r11", acc),
            ]
    return text


def _finish(rq: RequantisePlan, out_dtype: str) -> Schedule:
    """From sums to results."""
    registers = ("r8", "r9", "r11", "r10")
    return [step for acc in _SUMS for step in requantise_streamed(rq, (acc,), 0, out_dtype, registers)]


def _kernel(rq: RequantisePlan, quant: QuantSpec) -> tuple[str, str]:
    """(name, C text) of the micro-kernel: one output of all fours of channels."""
    out, size = stored(rq, quant.out_dtype)
    kind = f"const {quant.x_dtype}_t"
    name = f"depthwise4_{quant.x_dtype}_{form_name(rq, quant.out_dtype)}"
    step, finish = _products(quant.x_dtype), _finish(rq, quant.out_dtype)
    lines = [
        "push {r4-r11, lr}",
        "sub sp, sp, #12",
        "strd r0, r2, [sp]",
        "str r3, [sp, #8]",
        "1:",
        "ldr r0, [sp]",
        "ldr r6, [sp, #56]",  # from the first tap to the second
        "ldr r7, [sp, #52]",  # from then on
        "ldr lr, [sp, #48]",  # pairs of taps
        "ldmia r1!, {r2-r5}",
        "2:",
        "ldr r8, [r0]",
        "ldr r9, [r0, r6]",
        "ldr r10, [r1], #4",
        "add r6, r6, r7",
        "add r0, r0, r6",
        "mov r6, r7",
        *assembly(step),
        "subs lr, lr, #1",
        "bne 2b",
        *assembly(finish),
        "ldr r6, [sp]",
        "ldr r7, [sp, #4]",
        "ldr r8, [sp, #8]",
        *(f"{'str' if size == 4 else 'strb'} {acc}, [r7], #{size}" for acc in _SUMS),
        "add r6, r6, #4",
        "strd r6, r7, [sp]",
        "subs r8, r8, #1",
        "str r8, [sp, #8]",
        "bne 1b",
        "add sp, sp, #12",
        "pop {r4-r11, pc}",
    ]
    cast = "" if quant.x_dtype == "int8" else "(const int8_t *)"
    body = [
        "const int32_t *r1 = stream;",
        "for (int32_t i = 0; i < fours; i++, x += 4) {",
        f"{kind} *r0 = x;",
        "int32_t r6 = second;",
        f"int32_t {', '.join((*_SUMS, 'r8', 'r9', 'r10', 'r11', 'r12'))};",
        *(f"{acc} = *r1++;" for acc in _SUMS),
        "for (int32_t k = 0; k < pairs; k++) {",
        f"r8 = dsp_quad_at({cast}r0);",
        f"r9 = dsp_quad_at({cast}r0 + r6);",
        "r10 = *r1++;",
        "r0 += r6 + step;",
        "r6 = step;",
        *twin(step),
        "}",
        *twin(finish),
        *(f"*y++ = ({out}){acc};" for acc in _SUMS),
        "}",
    ]
    comment = (
        "One output of four channels at a time: stream = for each four start values, weights of pairs "
        "of taps, requantisation; taps are `step` apart, the first two `second`."
    )
    numbers = "int32_t fours, int32_t pairs, int32_t step, int32_t second"
    parameters = f"{kind} *x, const int32_t *stream, {out} *y, {numbers}"
    return name, dsp_function(name, comment, parameters, lines, body)
