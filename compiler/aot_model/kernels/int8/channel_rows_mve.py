"""What the depthwise micro-kernels share: a loop over channels around a loop over blocks of outputs in a row.

Registers: r1 input, r3 output, r9 channels left, lr blocks left; r0, r2, r4, r6 accumulators. A block is four
outputs or, where a vector is free for the sums of the first four, eight, which share what narrows and stores.
"""

from __future__ import annotations

import numpy as np

from aot_model.c.helpers import named_by_text

from ..base import ConvShape, Tail
from .mve import asm_lines, clobbers
from .requantise_mve import Requantiser
from .row_tail import tail_loop


def advance(register: str, distance: int) -> list[str]:
    """Adds a constant of any size; may use r0."""
    if distance == 0:
        return []
    if abs(distance) < 4096:
        return [f"{'addw' if distance > 0 else 'subw'} {register}, {register}, #{abs(distance)}"]
    low, high = distance & 0xFFFF, (distance >> 16) & 0xFFFF
    return [f"movw r0, #{low}", f"movt r0, #{high}", f"add {register}, {register}, r0"]


FOUR, EIGHT = 4, 8
ACCUMULATORS = ("r0", "r2", "r4", "r6")


def forward(register: str, distance: int) -> list[str]:
    """Adds a positive constant; spoils nothing."""
    steps = [4095] * (distance // 4095) + ([distance % 4095] if distance % 4095 else [])
    return [f"addw {register}, {register}, #{step}" for step in steps]


def channel_loop(per_channel: list[str], block: list[str], outputs: int, across: int,
                 steps: tuple[int, int], next_channel: tuple[int, int],
                 four: list[str] | None = None) -> list[str]:  # fmt: skip
    """Instructions: for each channel, `per_channel`, then blocks of `across` outputs until `outputs` are
    covered.

    A block moves r1 and r3 on by `steps` bytes. Where the outputs are no multiple of a block, the last one
    goes back and writes some of them once more; a row shorter than a block is one block, whose stores the
    caller predicates. next_channel: bytes from one channel to the next in input and output. r9 holds the
    number of channels. four: a block of four outputs beside one of eight, for at most four that are left.
    """
    full, rest = divmod(outputs, across)
    lines = ["1:", *per_channel]
    moved = [max(full, 1) * step for step in steps]
    lines += [f"mov lr, #{full}", "dls lr, lr", "2:", *block, "le lr, 2b"] if full > 1 else block
    if rest and full:
        last, size = (four, FOUR) if four is not None and rest <= FOUR else (block, across)
        for i, register in enumerate(("r1", "r3")):
            lines += advance(register, -(size - rest) * steps[i] // across)
            moved[i] += rest * steps[i] // across
        lines += last
    lines += [*advance("r1", next_channel[0] - moved[0]), *advance("r3", next_channel[1] - moved[1])]
    return [*lines, "subs r9, r9, #1", "bne 1b"]


def asm_statement(parameters: list[tuple[str, str, str]], lines: list[str]) -> str:
    """The C of an assembly statement whose operands, (type, parameter, register), sit in fixed registers."""
    pins = "".join(f'    register {t}{n}_ __asm__("{r}") = {n};\n' for t, n, r in parameters)
    return f"""\
{pins}    __asm__ volatile(
{asm_lines(lines)}
        : {", ".join(f'"+r"({n}_)' for _, n, _ in parameters)}
        :
        : {clobbers(lines, [r for _, _, r in parameters])});
"""


def split_shift(rq: Requantiser) -> list[str]:
    """The signed shift of r10 as a left shift in r4 and minus a right shift in r2, where a layer has both."""
    return ["bic r4, r10, r10, asr #31", "and r2, r10, r10, asr #31"] if rq.has_left else []


def scalar_result(rq: Requantiser, shift: str) -> str:
    """C of the result in a twin: `acc` without bias, constants k[2 c], k[2 c + 1], `shift` as `signed_shift`.
    """
    acc = "(int32_t)((uint32_t)acc + (uint32_t)k[2 * c])"
    left, right = (f"({shift} > 0 ? {shift} : 0)", f"({shift} < 0 ? {shift} : 0)") if rq.has_left else ("0",
                                                                                                        shift)
    return rq.scalar(acc, "k[2 * c + 1]", left, right)


def finished_block(rq: Requantiser, steps: int, partial: bool, zero: str | None = None, bits: int = 32,
                   offsets: str = "q6", reload: str | None = None) -> list[str]:  # fmt: skip
    """Instructions after the sums of a block: bias in r12, requantisation, store at the offsets in q6, and r3
    `steps` bytes further. zero: a register that holds `zero_point_constant`. bits: of the offsets, which with
    16 are those of a block of eight. reload: as of `finished_eight`.
    """
    store = f"vstrb{'t' if partial else ''}.{bits} q0, [r3, {offsets}]"
    return [
        *gathered_sums("q0"), "vadd.i32 q0, q0, r12", *split_shift(rq),
        *rq.vector("q0", "q7", "r8", "r4", "r2" if rq.has_left else "r10"),
        *rq.narrow("q0", None, "q7", zero), *([f"vldrh.16 {offsets}, [{reload}]"] if reload else []),
        *(["vpst"] if partial else []), store, f"addw r3, r3, #{steps}",
    ]  # fmt: skip


def scattered(eight: bool, step: int) -> np.ndarray:
    """uint16 [8]: where the results of a block go, `step` bytes from one to the next: eight of 16 bits as
    `finished_eight` has them, or four of 32 bits.
    """
    words = np.arange(FOUR, dtype="<u4") * np.uint32(step)
    halves = np.arange(EIGHT, dtype="<u2").reshape(2, FOUR).T.reshape(-1) * np.uint16(step)
    found: np.ndarray = halves if eight else words.view("<u2")
    return found


def even_lanes(outputs: int) -> list[str]:
    """Instructions before all, which spoil r0: the predicate of a block of four beside those of eight."""
    return ["movw r0, #0x3333", "vmsr p0, r0"] if outputs > EIGHT and 0 < outputs % EIGHT <= FOUR else []


def gathered_sums(vector: str) -> list[str]:
    """The sums of four outputs in a vector."""
    return [f"vmov {vector}[2], {vector}[0], r0, r4", f"vmov {vector}[3], {vector}[1], r2, r6"]


def finished_eight(rq: Requantiser, first: str, step: int, temp: str, zero: str | None = None,
                   offsets: str = "q6", reload: str | None = None) -> list[str]:  # fmt: skip
    """As `finished_block`, of eight outputs: the sums of four are in `first`, of the others in q0; `step`
    bytes from an output to the next. reload: a core register that points to the offsets, which `offsets` is
    loaded from.
    """
    right = "r2" if rq.has_left else "r10"
    lines = [f"vadd.i32 {first}, {first}, r12", "vadd.i32 q0, q0, r12", *split_shift(rq)]
    for q in (first, "q0"):
        lines += rq.vector(q, temp, "r8", "r4", right)
    lines += rq.narrow(first, "q0", temp, zero)
    lines += [f"vldrh.16 {offsets}, [{reload}]"] if reload else []
    return [*lines, f"vstrb.16 {first}, [r3, {offsets}]", *forward("r3", EIGHT * step)]


def row_kernel(base: str, comment: str, parameters: list[tuple[str, str, str]], lines: list[str],
               twin: str) -> tuple[str, str]:  # fmt: skip
    """(name, text) of a function whose assembly finds its parameters, (type, name, register), in registers.
    """
    body = f"""\
{{
#if AOT_MODEL_MVE
{asm_statement(parameters, lines)}#else
{twin}#endif
}}
"""
    name = named_by_text(base, body)
    head = ", ".join(f"{t}{n}" for t, n, _ in parameters)
    return name, f"/* {comment} */\nAOT_MODEL_NOINLINE static void {name}({head})\n{body}"


def rows_twin(channels: int, outputs: int, across: int, lanes: str, window: str, taps: int, product: str,
              store: str) -> str:  # fmt: skip
    """The loops of `channel_loop` in C. window: what leads to the taps of output `column + lane`, which have
    `taps` products; store: the assignment of `acc`.
    """
    return f"""\
for (int32_t c = 0; c < {channels}; c++) {{
    for (int32_t block = 0; block < {outputs}; block += {across}) {{
        /* The last block covers outputs of the one before once more. */
        const int32_t column = block + {across} > {outputs} ? {max(outputs - across, 0)} : block;
        for (int32_t lane = 0; lane < {lanes}; lane++) {{
            {window}
            int32_t acc = 0;
            for (int32_t tap = 0; tap < {taps}; tap++) {{
                acc += {product};
            }}
            {store}
        }}
    }}
}}
"""


def rows_to_tail(s: ConvShape, rows: str, tail: Tail, index: tuple[str, str, str]) -> str:
    """Hands a row of outputs at `rows` to the tail; index: (n, y, x) of output `ox` in it."""
    each = tail_loop(s.out_c, f"{rows} + ox * {s.out_c}", index, tail)
    return f"for (int32_t ox = 0; ox < {s.out_w}; ox++) {{\n{each}}}\n"


def ring_unread(s: ConvShape) -> list[int]:
    """`unread` of overlap.by_rows where a ring holds the rows of a window and each row of outputs is a step.
    """
    return [(oy - 1) * s.stride_h + s.tall - s.pad_top if oy else 0 for oy in range(s.out_h)]


def ring_loop(s: ConvShape, fill: str) -> str:
    """Before row `oy` of outputs: the ring gets the rows up to the last one of its window. fill: statements
    for input row `line`, which may lie outside of the image.
    """
    return f"""\
/* The ring holds the rows up to the last one of this window. */
for (; filled < oy * {s.stride_h} + {s.tall}; filled++) {{
    const int32_t line = filled - {s.pad_top};
    {fill}
}}
"""


def image_loops(s: ConvShape, before: str, inner: str) -> str:
    """For each image `before`, and for each of its rows of outputs `inner`."""
    return f"""\
for (int32_t n = 0; n < {s.batch}; n++) {{
    const int8_t *image = x + n * {s.in_h * s.in_w * s.in_c};
    {before}for (int32_t oy = 0; oy < {s.out_h}; oy++) {{
{inner}}}
}}
"""
