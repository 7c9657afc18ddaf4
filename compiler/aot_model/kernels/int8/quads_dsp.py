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

from aot_model.kernels.int8.dsp import Load, Peek, Schedule, assembly, dsp_function, op, twin, unrolled
from aot_model.kernels.int8.finish import form_name, requantise
from aot_model.kernels.int8.gemm_dsp import PairStream, streamed
from aot_model.kernels.int8.requantise import RequantisePlan

UNROLL = 8
CHANNELS = 4

_PAIRS = ((("r2", "r3"), ("r4", "r5")), (("r6", "r7"), ("r8", "r9")))
"""Accumulators: of each pair of channels the first and the second, of two pixels."""


def applicable(stream: PairStream) -> bool:
    """Whether a stream of pairs can be read four channels at a time: its words are joined and end in a
    requantisation."""
    return stream.joined and stream.requantise.form != "raw"


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
            lines += streamed(rq, accs, align, out_dtype)
    return lines


Sums = tuple[tuple[str, str], ...]
"""Registers of two pixels, for each channel."""


def stored_twice(channels: Sums) -> list[str]:
    """The end of a turn over four channels and of the function: r10 and r11 are where two pixels go, r1 is in
    the stream, which ends at lr.
    """
    return [
        *[f"strb {first}, [r10], #1" for first, _ in channels],
        *[f"strb {second}, [r11, #{k}]" for k, (_, second) in enumerate(channels)],
        "str r10, [sp]",
        "cmp r1, lr",
        "bne.w 1b",
        "add sp, sp, #28",
        "pop {r4-r11, pc}",
    ]


def twin_of_two(channels: Sums, out: str, starts: list[str], taps: str, step: Schedule,
                finish: Schedule) -> list[str]:  # fmt: skip
    """The twin of a function of two pixels by four channels at a time. starts: of the sums, from r1; taps:
    the head of the loop over them.
    """
    registers = (*(acc for pair in channels for acc in pair), "r10", "r11", "r12", "lr")
    return [
        "for (const int32_t *r1 = stream; r1 != end; y += 4) {",
        "const uint32_t *r0 = columns;",
        f"int32_t {', '.join(registers)};",
        *starts,
        "r1 += 4;",
        f"for ({taps}) {{", *twin(step), "}",
        *twin(finish),
        *(f"y[{k}] = ({out}){first};" for k, (first, _) in enumerate(channels)),
        *(f"y[next + {k}u] = ({out}){second};" for k, (_, second) in enumerate(channels)),
        "}",
    ]  # fmt: skip


def quad_kernel(rq: RequantisePlan, out_dtype: str) -> tuple[str, str]:
    """(name, C text) of the micro-kernel: all fours of channels for two pixels."""
    out = f"{out_dtype}_t"
    name = f"dot2x4_{form_name(rq, out_dtype)}"
    step, finish = _step(), _finish(rq, out_dtype)
    enter, loop = unrolled(step, UNROLL, 20, ["ldr r12, [sp, #16]", "cmp r0, r12"])
    channels = tuple(channel for pair in _PAIRS for channel in pair)
    lines = [
        "push {r4-r11, lr}",
        "sub sp, sp, #28",
        "strd r2, r3, [sp]",  # where the first pixel is stored; distance to the second
        "ldrd r3, r4, [sp, #64]",  # taps / 2; end of the stream
        "strd r0, r4, [sp, #8]",
        "add r5, r0, r3, lsl #4",
        "str r5, [sp, #16]",
        *enter,
        "1:",
        "ldr r4, [r1, #4]",
        "ldr r6, [r1, #8]",
        "ldr r8, [r1, #12]",
        "ldr r2, [r1], #16",
        "ldr r0, [sp, #8]",
        *[f"mov {second}, {first}" for first, second in channels],
        *loop,
        *assembly(finish),
        "ldr r10, [sp]",
        "ldr r12, [sp, #4]",
        "ldr lr, [sp, #12]",
        "add r11, r10, r12",
        *stored_twice(channels),
    ]
    starts = [f"{first} = {second} = r1[{k}];" for k, (first, second) in enumerate(channels)]
    body = twin_of_two(channels, out, starts, "uint32_t k = 0; k < half_taps; k++", step, finish)
    comment = (
        "Two of four pixels x four channels at a time: columns = int16 pixels [k/2][4][2], from the "
        "first of the two on; stream = per four channels start values, weights and requantisation; "
        "pixels go to y and y + next."
    )
    parameters = (
        "const uint32_t *columns",
        "const int32_t *stream",
        f"{out} *y",
        "uint32_t next",
        "uint32_t half_taps",
        "const int32_t *end",
    )
    return name, dsp_function(name, comment, parameters, lines, body)
