"""Matrix product of two pixels by four channels for a Cortex-M4: faster than gemm_dsp's four by two, where
weights are in memory without wait states.

Two channels a, b are joined in a word of weights as in gemm_dsp. A step is two taps of two pixels and two
pairs of channels: four neighbouring LDRs, which overlap (five cycles), 2 SXTB16 and 8 SMLAD, 15 cycles for 16
MACs and not 16. But each word of weights is read for every two pixels and not for every four: before flash
that makes the core wait it is worth it for weights that were copied to RAM.

The pixels are those of gemm_dsp, int16 [k/2][4 pixels][2]: two of the four at a time. The stream is, for
each four channels a, b, c, d: the start of the accumulators (4 words), for each two taps the words of a, b
and c, d, requantisation (4 x {multiplier, offset[, shift]}).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aot_model.kernels.int8.dsp import Load, Peek, Schedule, assembly, op, twin
from aot_model.kernels.int8.finish import DSP, asm_text, form_name, requantise, requantise_words
from aot_model.kernels.int8.gemm_dsp import PairStream
from aot_model.kernels.int8.requantise import RequantisePlan

UNROLL = 8
CHANNELS = 4

_PAIRS = ((("r2", "r3"), ("r4", "r5")), (("r6", "r7"), ("r8", "r9")))
"""Accumulators: of each pair of channels the first and the second, of two pixels."""
_ALL = tuple(acc for pair in _PAIRS for channel in pair for acc in channel)


def applicable(stream: PairStream) -> bool:
    """Whether a stream of pairs can be read four channels at a time: its words are joined and end in a
    requantisation."""
    return stream.joined and stream.requantise.form != "raw"


def interleaved(stream: PairStream, quads: int) -> npt.NDArray[np.int32]:
    """The first `quads` fours of channels of a stream of pairs in the order of this kernel, then the others
    as they are.
    """
    rq, size = stream.requantise, stream.pair_words
    ends = 2 * len(requantise_words(rq, 0))
    pairs = stream.words[:2 * quads * size].reshape(quads, 2, size)
    taps = pairs[:, :, 2:size - ends].transpose(0, 2, 1)
    parts = [part.reshape(quads, -1) for part in (pairs[:, :, :2], taps, pairs[:, :, size - ends:])]
    return np.concatenate([np.concatenate(parts, axis=1).reshape(-1), stream.words[2 * quads * size:]])


def _step() -> Schedule:
    """Two taps."""
    step: Schedule = [Peek("r11", "r1", 4), Load(("r10",), "r1", skip=4), Peek("lr", "r0", 4),
                      Load(("r12",), "r0", skip=12)]  # fmt: skip
    for w, (a, b) in zip(("r10", "r11"), _PAIRS, strict=True):
        step += [op("smlad", acc, x, w, acc) for acc, x in zip(a, ("r12", "lr"), strict=True)]
        step.append(op("sxtb16", w, w))
        step += [op("smlad", acc, x, w, acc) for acc, x in zip(b, ("r12", "lr"), strict=True)]
    return step


def _finish(rq: RequantisePlan, out_dtype: str) -> Schedule:
    lines: Schedule = [op("sub", a, a, b) for pair in _PAIRS for a, b in zip(*pair, strict=True)]
    for first, second in _PAIRS:
        if rq.form == "affine" and rq.uniform_shift:  # no other register is needed: constants of both at once
            lines += [Peek(to, "r1", 4 * k) for k, to in enumerate(("r11", "r12", "lr"), 1)]
            lines.append(Load(("r10",), "r1", skip=12))
            lines += requantise(rq, first, 8, out_dtype, ("r10", "r11", "", ""), [])
            lines += requantise(rq, second, 0, out_dtype, ("r12", "lr", "", ""), [])
            continue
        for accs, align in ((first, 8), (second, 0)):
            lines.append(Load(("r10", "r11"), "r1"))
            lines += [] if rq.uniform_shift else [Load(("lr",), "r1")]
            lines += requantise(rq, accs, align, out_dtype, ("r10", "r11", "r12", "lr"), [])
    return lines


def quad_kernel(rq: RequantisePlan, out_dtype: str) -> tuple[str, str]:
    """(name, C text) of the micro-kernel: all fours of channels for two pixels."""
    out = f"{out_dtype}_t"
    name = f"dot2x4_{form_name(rq, out_dtype)}"
    step, finish = _step(), _finish(rq, out_dtype)
    code = assembly(step)
    lines = [
        "push {r4-r11, lr}",
        "sub sp, sp, #28",
        "strd r2, r3, [sp]",         # where the first pixel is stored; distance to the second
        "ldrd r3, r4, [sp, #64]",    # taps / 2; end of the stream
        "strd r0, r4, [sp, #8]",
        "add r5, r0, r3, lsl #4",
        "str r5, [sp, #16]",
        # enter the unrolled loop so that it ends with the last tap
        "rsb r3, r3, #0",
        f"and r3, r3, #{UNROLL - 1}",
        f"mov r5, #{4 * len(code)}",
        "adr.w r4, 2f",
        "mla r4, r3, r5, r4",
        "orr r4, r4, #1",
        "str r4, [sp, #20]",
        "1:",
        "ldr r4, [r1, #4]",
        "ldr r6, [r1, #8]",
        "ldr r8, [r1, #12]",
        "ldr r2, [r1], #16",
        "ldr r0, [sp, #8]",
        *[f"mov {channel[1]}, {channel[0]}" for pair in _PAIRS for channel in pair],
        "ldr pc, [sp, #20]",
        ".p2align 2",
        "2:",
        f".rept {UNROLL}",
        *code,
        ".endr",
        "ldr r12, [sp, #16]",
        "cmp r0, r12",
        "bne.w 2b",
        *assembly(finish),
        "ldr r10, [sp]",
        "ldr r12, [sp, #4]",
        "ldr lr, [sp, #12]",
        "add r11, r10, r12",
        *[f"strb {channel[0]}, [r10], #1" for pair in _PAIRS for channel in pair],
        *[f"strb {channel[1]}, [r11, #{k}]" for k, channel in enumerate(c for pair in _PAIRS for c in pair)],
        "str r10, [sp]",
        "cmp r1, lr",
        "bne.w 1b",
        "add sp, sp, #28",
        "pop {r4-r11, pc}",
    ]
    starts = [(channel, k) for k, channel in enumerate(c for pair in _PAIRS for c in pair)]
    body = "\n".join([
        "    for (const int32_t *r1 = stream; r1 != end; y += 4) {",
        "        const uint32_t *r0 = columns;",
        f"        int32_t {', '.join((*_ALL, 'r10', 'r11', 'r12', 'lr'))};",
        *(f"        {channel[0]} = {channel[1]} = r1[{k}];" for channel, k in starts),
        "        r1 += 4;",
        "        for (uint32_t k = 0; k < half_taps; k++) {",
        *twin(step, "            "),
        "        }",
        *twin(finish, "        "),
        *(f"        y[{k}] = ({out}){channel[0]};" for channel, k in starts),
        *(f"        y[next + {k}u] = ({out}){channel[1]};" for channel, k in starts),
        "    }",
    ])  # fmt: skip
    unused = "__attribute__((unused))"
    text = f"""/* Two of four pixels x four channels at a time: columns = int16 pixels [k/2][4][2], from the first of the two on;
 * stream = per four channels start values, weights and requantisation; pixels go to y and y + next. */
{DSP}
__attribute__((naked, noinline, used)) static void {name}(
    {unused} const uint32_t *columns, {unused} const int32_t *stream, {unused} {out} *y, {unused} uint32_t next,
    {unused} uint32_t half_taps, {unused} const int32_t *end)
{{
    __asm__ volatile(
{asm_text(lines)}
    );
}}
#else
AOT_MODEL_OPAQUE static void {name}(
    const uint32_t *columns, const int32_t *stream, {out} *y, uint32_t next, uint32_t half_taps, const int32_t *end)
{{
{body}
}}
#endif
"""  # noqa: E501
    return name, text
