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

from aot_model.kernels.int8.dsp import Load, Peek, Schedule, assembly, dsp_function, op
from aot_model.kernels.int8.finish import form_name, requantise
from aot_model.kernels.int8.gemm_dsp import (
    HALF_TAPS,
    STREAM,
    UNROLL,
    PairStream,
    stream_lines,
    stream_twin,
    streamed,
)
from aot_model.kernels.int8.requantise import RequantisePlan

_PAIRS = ((("r2", "r3"), ("r4", "r5")), (("r6", "r7"), ("r8", "r9")))
"""Accumulators: of each pair of channels the first and the second, of two pixels."""


def can_be_quads(stream: PairStream) -> bool:
    """Whether a stream of pairs can be read four channels at a time: its words are joined and end in a
    requantisation."""
    return stream.joined and stream.requantise.form != "raw"


def _quad_step() -> Schedule:
    """Two taps."""
    step: Schedule = [Peek("r11", "r1", 4), Load(("r10",), "r1", skip=4), Peek("lr", "r0", 4),
                      Load(("r12",), "r0", skip=12)]  # fmt: skip
    for w, (a, b) in zip(("r10", "r11"), _PAIRS, strict=True):
        step += [op("smlad", acc, x, w, acc) for acc, x in zip(a, ("r12", "lr"), strict=True)]
        step.append(op("sxtb16", w, w))
        step += [op("smlad", acc, x, w, acc) for acc, x in zip(b, ("r12", "lr"), strict=True)]
    return step


def _quad_finish(rq: RequantisePlan, out_dtype: str) -> Schedule:
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


def two_by_four(
    name: str,
    comment: str,
    channels: Sums,
    out: str,
    steps: str,
    step: Schedule,
    unroll: int,
    finish: Schedule,
    arguments: list[str],
    begin: list[str],
    where: list[str],
    starts: list[str],
    taps: str,
    before: tuple[str, ...] = (),
) -> str:
    """C text of a micro-kernel of two pixels by four channels at a time. steps: its parameter of that
    meaning, in r3 with the end of the stream in r4. arguments: what r5, the last step's pixels, follows from;
    begin: the sums of a turn; where: loads r10 and r12, where the first pixel goes and how far the second is.
    starts: of the sums in the twin, from r1; taps: the head of its loop over them; before: statements before
    all.
    """
    put_aside = [
        "strd r2, r3, [sp]",  # where the first pixel is stored; distance to the second
        "ldrd r3, r4, [sp, #64]",
        "strd r0, r4, [sp, #8]",
        *arguments,
        "add r5, r0, r3, lsl #4",
        "str r5, [sp, #16]",
    ]
    stores = [
        *where,
        "ldr lr, [sp, #12]",
        "add r11, r10, r12",
        *[f"strb {first}, [r10], #1" for first, _ in channels],
        *[f"strb {second}, [r11, #{k}]" for k, (_, second) in enumerate(channels)],
        "str r10, [sp]",
    ]
    lines = stream_lines(28, put_aside, step, unroll, 20, ["ldr r12, [sp, #16]", "cmp r0, r12"],
                         ["1:", *begin], [*assembly(finish), *stores], "r1, lr")  # fmt: skip
    registers = (*(acc for pair in channels for acc in pair), "r10", "r11", "r12", "lr")
    results = [f"y[{k}] = ({out}){first};" for k, (first, _) in enumerate(channels)]
    results += [f"y[next + {k}u] = ({out}){second};" for k, (_, second) in enumerate(channels)]
    body = stream_twin(registers, [*starts, "r1 += 4;"], taps, step, finish, results, before, turn="y += 4")
    parameters = f"{STREAM}, {out} *y, uint32_t next, uint32_t {steps}, const int32_t *end"
    return dsp_function(name, comment, parameters, lines, body)


def quad_kernel(rq: RequantisePlan, out_dtype: str) -> tuple[str, str]:
    """(name, C text) of the micro-kernel: all fours of channels for two pixels."""
    name = f"dot2x4_{form_name(rq, out_dtype)}"
    channels = tuple(channel for pair in _PAIRS for channel in pair)
    begin = [
        "ldr r4, [r1, #4]",
        "ldr r6, [r1, #8]",
        "ldr r8, [r1, #12]",
        "ldr r2, [r1], #16",
        "ldr r0, [sp, #8]",
        *[f"mov {second}, {first}" for first, second in channels],
    ]
    starts = [f"{first} = {second} = r1[{k}];" for k, (first, second) in enumerate(channels)]
    comment = (
        "Two of four pixels x four channels at a time: columns = int16 pixels [k/2][4][2], from the "
        "first of the two on; stream = per four channels start values, weights and requantisation; "
        "pixels go to y and y + next."
    )
    text = two_by_four(name, comment, channels, f"{out_dtype}_t", "half_taps", _quad_step(), UNROLL,
                       _quad_finish(rq, out_dtype), [], begin, ["ldr r10, [sp]", "ldr r12, [sp, #4]"], starts,
                       HALF_TAPS)  # fmt: skip
    return name, text
