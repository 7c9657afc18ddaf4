"""Matrix product of four pixels by channel pairs for cores with the DSP extension: the inner loop of
convolutions; and what micro-kernels that read a stream of constants have in common: a loop over
channels around one over taps, as assembly and as its twin.

Register blocking. Four pixels x two channels: eight accumulators; pixels come as int16 pairs (k, k + 1)
interleaved [k/2][4 pixels][2]. Weights stay int8 in flash: one word holds two taps of two channels A and B as
the halfwords H(k) = 256 * A(k) + B(k). SMLAD of the raw word sums 256 * (x.A) + x.B (modulo 2^32), SMLAD of
its SXTB16 sums x.B; their difference is 256 * (x.A), used as it stands by a requantisation that knows of
the alignment. That is one SXTB16 per word and not two:

    per two taps x four pixels x two channels (16 MACs): 3 LDR, LDRD, SXTB16, 8 SMLAD = 13 instructions, 5
    words loaded

The order of the loads is that of a Cortex-M4: neighbouring LDRs overlap where none makes the address of the
next (three take four cycles), an LDRD overlaps with nothing (three cycles). So pixels 2 and 3 come with the
weights, at offsets, and pixels 0 and 1 later, with the step of the pointer: 16 cycles and not the 17 of two
LDRD, for one instruction more. Cortex-M7 and M33 wait for what was just loaded instead, but an LDRD takes
them no longer than its words: there it brings pixels 0 and 1, between whose products 2 and 3 come one by one.

It needs -32768 <= 256 * A + B and |x.A| < 2^23, both checked against the weights. Where they fail, both
channels are sign-extended (14 instructions).

The stream of constants is read once from front to back for every four pixels; per channel pair:
    accumulators' start (2 words), weights (one word per two taps), requantisation (2 x {multiplier, offset[,
    shift]})
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aot_model.kernels.int8.dsp import Load, Peek, Schedule, assembly, dsp_function, op, twin
from aot_model.kernels.int8.finish import form_name, numbers_of, requantise_streamed, stored, wrapped
from aot_model.kernels.int8.requantise import RequantisePlan, bounds, plan
from aot_model.kernels.int8.spec import Int32, Int64, QuantSpec

UNROLL = 8
STREAM = "const uint32_t *columns, const int32_t *stream"
"""Parameters of micro-kernels that multiply pixels' patches."""
HALF_TAPS = "uint32_t k = 0; k < half_taps; k++"
"""The head of their twins' loops over the taps, two at a time."""

_ACC_A = ("r2", "r3", "r4", "r5")
_ACC_B = ("r6", "r7", "r8", "r9")


@dataclass(frozen=True)
class PairStream:
    """Packed constants of one layer, of each pair of channels: [n, words]."""

    starts: Int32
    """Of the accumulators, two words."""
    taps: Int32
    """A word for each two."""
    ends: Int32
    """Numbers of the requantisation."""
    requantise: RequantisePlan
    joined: bool
    """One SXTB16 per word (see above); else two."""
    pairs: Int64
    """[n, 2] output channels of each pair; an odd count ends with a pair that repeats one channel."""

    @property
    def pair_words(self) -> int:
        return sum(part.shape[1] for part in (self.starts, self.taps, self.ends))

    @property
    def nbytes(self) -> int:
        return 4 * len(self.pairs) * self.pair_words

    def part(self, first: int, last: int | None = None) -> PairStream:
        """The pairs from one to before another."""
        some = slice(first, last)
        starts, taps, ends = self.starts[some], self.taps[some], self.ends[some]
        return replace(self, starts=starts, taps=taps, ends=ends, pairs=self.pairs[some])

    def words(self, together: int = 1) -> Int32:
        """The stream in the order of reading. together: pairs whose words of the same taps are neighbours."""
        count, words = len(self.pairs) // together, self.taps.shape[1]
        taps = self.taps.reshape(count, together, words).transpose(0, 2, 1).reshape(count, together * words)
        starts, ends = (v.reshape(count, together * v.shape[1]) for v in (self.starts, self.ends))
        return np.concatenate([starts, taps, ends], axis=1).reshape(-1)

    @property
    def layout(self) -> str:
        return (
            "for each pair of channels a, b: two start values of the sums; two taps in a word, as "
            f"{'256 * a + b' if self.joined else 'the bytes b, a'} in each half"
            f"{'' if self.requantise.bare else '; numbers of the requantisation'}"
        )


def channel_pairs(channels: int, separate: bool, groups: int = 1) -> Int64:
    """[n, 2] channels computed together. An odd count ends with a pair that repeats a channel.

    separate: results go to a buffer of 2n channels, the last one twice; else the last pair overlaps its
    predecessor. groups: of so many channels each, whose pairs are their own.
    """
    first = np.arange(0, channels, 2)
    if channels % 2 and not separate:
        first[-1] = channels - 2
    pairs = np.stack([first, np.minimum(first + 1, channels - 1)], axis=1).astype(np.int64)
    return np.concatenate([g * channels + pairs for g in range(groups)])


def can_join(a: Int64, b: Int64, lo: Int64, hi: Int64, slack: int = 4096) -> bool:
    """Whether 256 * A + B fits a halfword everywhere and 256 * the accumulators of A fit a word."""
    fits = int((256 * a + b).min(initial=0)) >= -(1 << 15)  # the largest is 256 * 127 + 127
    return fits and int(lo.min()) - slack > -(1 << 23) and int(hi.max()) + slack < 1 << 23


def plan_slots(
    w: Int64, b: Int64, quant: QuantSpec, slots: Int64, taps: Int64 | None = None
) -> tuple[RequantisePlan, bool]:
    """(requantisation of each slot, joined or not) of channels that are computed in pairs: slots [2n]. taps:
    what is packed, where that is not w.
    """
    taps = w if taps is None else taps
    lo, hi = (v[slots] for v in bounds(w, b, quant))
    # one range for all, so that all get the same constants
    if quant.multiplier.size == quant.shift.size == 1:
        lo, hi = np.full_like(lo, lo.min()), np.full_like(hi, hi.max())
    m, s = quant.channels(w.shape[0])
    each = replace(quant, multiplier=m[slots].astype(np.int32), shift=s[slots].astype(np.int32))
    # plan() sets accumulators that are fixed to zero
    live = np.where(lo == hi, 0, lo), np.where(lo == hi, 0, hi)
    if can_join(taps[slots[0::2]], taps[slots[1::2]], live[0][0::2], live[1][0::2]):
        align = np.where(np.arange(slots.size) % 2 == 0, 8, 0).astype(np.int64)
        rq = plan(each, lo, hi, align)
        if rq.form != "raw" or can_join(taps[slots[0::2]], taps[slots[1::2]], lo[0::2], hi[0::2]):
            return rq, True
    return plan(each, lo, hi), False


def pack_pairs(w: Int64, b: Int64, quant: QuantSpec, taps: Int64, pairs: Int64) -> PairStream:
    """w [channels, taps], b: weights and bias as folded. taps: the weights in the order of the pixels' pairs,
    an even number. pairs: as of PairStream.
    """
    slots = pairs.reshape(-1)
    rq, joined = plan_slots(w, b, quant, slots, taps)
    first, second = taps[pairs[:, 0]], taps[pairs[:, 1]]
    half = 256 * first + second if joined else (first & 0xFF) * 256 + (second & 0xFF)
    starts = (b[slots] + rq.bias_shift).reshape(-1, 2)
    if joined:
        starts[:, 0] = 256 * starts[:, 0] + starts[:, 1]
    ends = numbers_of(rq).reshape(len(pairs), -1)
    words = half[:, 0::2] & 0xFFFF | half[:, 1::2] << 16
    return PairStream(wrapped(starts), wrapped(words), wrapped(ends), rq, joined, pairs)


def streamed(rq: RequantisePlan, accs: tuple[str, ...], align: int, out_dtype: str) -> Schedule:
    """requantise with the constants read from the stream at r1."""
    return requantise_streamed(rq, accs, align, out_dtype, ("r10", "r11", "r12", "lr"))


def _finished(stream: PairStream, a: tuple[str, ...], b: tuple[str, ...], out_dtype: str) -> Schedule:
    """From sums of both channels to results."""
    rq, apart = stream.requantise, [op("sub", x, x, y) for x, y in zip(a, b, strict=True)]
    return [*(apart if stream.joined else []), *streamed(rq, a, 8 if stream.joined else 0, out_dtype),
            *streamed(rq, b, 0, out_dtype)]  # fmt: skip


def _step(joined: bool, overlaps: bool) -> Schedule:
    """Two taps. overlaps: a load begins while the one before it is under way."""
    step: Schedule = [Load(("r10",), "r1")]
    step += [Peek("r12", "r0", 8), Peek("lr", "r0", 12)] if overlaps else [Load(("r12", "lr"), "r0")]
    step += [op("sxtb16", "r11", "r10"), *([] if joined else [op("sxtb16_ror8", "r10", "r10")])]

    def products(x: str, pixel: int) -> Schedule:
        return [op("smlad", acc, x, w, acc) for acc, w in ((_ACC_A[pixel], "r10"), (_ACC_B[pixel], "r11"))]

    if overlaps:
        step += [*products("r12", 2), *products("lr", 3), Load(("r12", "lr"), "r0", skip=8)]
        return [*step, *products("r12", 0), *products("lr", 1)]
    step += [*products("r12", 0), Load(("r12",), "r0", skip=4), *products("lr", 1), Peek("lr", "r0", -4)]
    return [*step, *products("r12", 2), *products("lr", 3)]


def pair_kernel(stream: PairStream, out_dtype: str, overlaps: bool = True) -> tuple[str, str]:
    """(name, C text) of the micro-kernel for the stream's form: all channel pairs for four pixels."""
    rq, joined = stream.requantise, stream.joined
    out, size = stored(rq, out_dtype)
    name = f"dot4x2_{'j' if joined else 's'}{'' if overlaps else 'l'}_{form_name(rq, out_dtype)}"
    step, finish = _step(joined, overlaps), _finished(stream, _ACC_A, _ACC_B, out_dtype)
    store = "str" if size == 4 else "strb"
    arguments = [
        "strd r2, r3, [sp]",  # where pixels 0 and 2 are stored
        "ldrd r2, r3, [sp, #64]",  # distance to pixels 1 and 3; taps / 2
        "ldr r4, [sp, #72]",  # end of the stream
        "str r2, [sp, #8]",
        "str r0, [sp, #12]",
        "add r5, r0, r3, lsl #4",
        "str r5, [sp, #16]",
        "str r4, [sp, #24]",
    ]
    begin = ["1:", "ldrd r2, r6, [r1], #8", *[f"mov {r}, r2" for r in _ACC_A[1:]],
             *[f"mov {r}, r6" for r in _ACC_B[1:]]]  # fmt: skip
    stores = ["ldrd r10, r11, [sp]", "ldrd r12, r0, [sp, #8]"]
    for acc in (_ACC_A, _ACC_B):
        for at, first, second in (("r10", acc[0], acc[1]), ("r11", acc[2], acc[3])):
            stores += [f"{store} {second}, [{at}, r12]", f"{store} {first}, [{at}], #{size}"]
    stores += ["strd r10, r11, [sp]", "ldr r12, [sp, #24]"]
    lines = stream_lines(28, arguments, step, UNROLL, 20, ["ldr r12, [sp, #16]", "cmp r0, r12"], begin,
                         [*assembly(finish), *stores], "r1, r12")  # fmt: skip
    results = [
        f"{y} = ({out}){r};"
        for acc in (_ACC_A, _ACC_B)
        for y, r in (("y0[far]", acc[1]), ("*y0++", acc[0]), ("y2[far]", acc[3]), ("*y2++", acc[2]))
    ]
    starts = ["r2 = r3 = r4 = r5 = *r1++;", "r6 = r7 = r8 = r9 = *r1++;"]
    registers = (*_ACC_A, *_ACC_B, "r10", "r11", "r12", "lr")
    far = f"const uint32_t far = next{'' if size == 1 else ' / 4u'};"
    comment = (
        "Four pixels x all channel pairs: columns = int16 pixels [k/2][4][2]; stream = per channel "
        "pair start values, weights and requantisation; pixels 0 and 1 go to y0 and y0 + next, 2 "
        "and 3 to y2 and y2 + next (bytes)."
    )
    parameters = f"{STREAM}, {out} *y0, {out} *y2, uint32_t next, uint32_t half_taps, const int32_t *end"
    body = stream_twin(registers, starts, HALF_TAPS, step, finish, results, [far])
    return name, dsp_function(name, comment, parameters, lines, body)


def single_kernel(stream: PairStream, out_dtype: str) -> tuple[str, str]:
    """(name, C text) of the micro-kernel that does all channel pairs for one pixel of the four: what is left
    behind the last four. Five instructions for 4 MACs, where four pixels would take 13 for 16.
    """
    rq, joined = stream.requantise, stream.joined
    out, size = stored(rq, out_dtype)
    name = f"dot1x2_{'j' if joined else 's'}_{form_name(rq, out_dtype)}"
    step: Schedule = [Load(("r10",), "r1"), Load(("r12",), "r0", skip=12), op("sxtb16", "r11", "r10"),
                      *([] if joined else [op("sxtb16_ror8", "r10", "r10")]),
                      op("smlad", "r2", "r12", "r10", "r2"),
                      op("smlad", "r6", "r12", "r11", "r6")]  # fmt: skip
    finish = _finished(stream, ("r2",), ("r6",), out_dtype)
    store = "str" if size == 4 else "strb"
    begin = [
        "ldr r5, [sp, #48]",  # end of the stream
        "1:",
        "ldrd r2, r6, [r1], #8",
        "mov r0, r8",
    ]
    stores = [f"{store} {r}, [r7], #{size}" for r in ("r2", "r6")]
    lines = stream_lines(12, ["mov r7, r2", "mov r8, r0", "add r9, r0, r3, lsl #4"], step, UNROLL, 4,
                         ["cmp r0, r9"], begin, [*assembly(finish), *stores], "r1, r5")  # fmt: skip
    results = [f"*y++ = ({out}){r};" for r in ("r2", "r6")]
    results += [] if any("lr =" in line for line in twin(finish)) else ["(void)lr;"]
    body = stream_twin(("r2", "r6", "r10", "r11", "r12", "lr"), ["r2 = *r1++;", "r6 = *r1++;"], HALF_TAPS,
                       step, finish, results)  # fmt: skip
    comment = "One of four pixels x all channel pairs: as dot4x2; its results go to y."
    parameters = f"{STREAM}, {out} *y, uint32_t half_taps, const int32_t *end"
    return name, dsp_function(name, comment, parameters, lines, body)


def stream_lines(
    frame: int,
    arguments: Iterable[str],
    step: Schedule,
    turns: int,
    slot: int,
    compare: Iterable[str],
    begin: Iterable[str],
    finish: Iterable[str],
    last: str = "",
) -> list[str]:
    """Assembly. frame: bytes of the stack; arguments: what is put aside there, and r3, the taps' steps. step:
    is written out `turns` times and entered in the midst, so that it ends with the last one; slot: of the
    stack, where the entry waits, from which `ldr pc` begins; compare: instructions after which that loop goes
    on while "not equal". begin: of a turn over channels, behind the label 1; finish: of its sums. last: what
    is compared for the end of the stream; none: there is one turn.
    """
    code = assembly(step)
    return [
        "push {r4-r11, lr}",
        f"sub sp, sp, #{frame}",
        *arguments,
        "rsb r3, r3, #0",
        f"and r3, r3, #{turns - 1}",
        f"mov r5, #{4 * len(code)}",
        "adr.w r4, 2f",
        "mla r4, r3, r5, r4",
        "orr r4, r4, #1",
        f"str r4, [sp, #{slot}]",
        *begin,
        f"ldr pc, [sp, #{slot}]",
        ".p2align 2",
        "2:",
        f".rept {turns}",
        *code,
        ".endr",
        *compare,
        "bne.w 2b",
        *finish,
        *([f"cmp {last}", "bne.w 1b"] if last else []),
        f"add sp, sp, #{frame}",
        "pop {r4-r11, pc}",
    ]


def stream_twin(
    registers: Iterable[str],
    starts: Iterable[str],
    taps: str,
    step: Schedule,
    finish: Schedule,
    results: Iterable[str],
    before: Sequence[str] = (),
    x: str = "const uint32_t *r0 = columns;",
    turn: str = "",
) -> list[str]:
    """The twin: r1 is the place in the stream, which ends at `end`. starts: of the sums; taps: the head of
    the loop over them; results: stores; before: all; x: where r0 begins; turn: over channels, what it moves
    on.
    """
    return [
        *before,
        f"for (const int32_t *r1 = stream; r1 != end;{turn and f' {turn}'}) {{",
        x,
        f"int32_t {', '.join(registers)};",
        *starts,
        f"for ({taps}) {{",
        *twin(step),
        "}",
        *twin(finish),
        *results,
        "}",
    ]
