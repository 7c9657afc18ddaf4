"""What the depthwise micro-kernels share: a loop over channels around a loop over blocks of outputs in a row.

Registers: r1 input, r3 output, r9 channels left, lr blocks left; r0, r2, r4, r6 accumulators.
"""

from __future__ import annotations

from .mve import asm_lines, clobbers
from .requantise_mve import Requantiser


def advance(register: str, distance: int) -> list[str]:
    """Adds a constant of any size; may use r0."""
    if distance == 0:
        return []
    if abs(distance) < 4096:
        return [f"{'addw' if distance > 0 else 'subw'} {register}, {register}, #{abs(distance)}"]
    low, high = distance & 0xFFFF, (distance >> 16) & 0xFFFF
    return [f"movw r0, #{low}", f"movt r0, #{high}", f"add {register}, {register}, r0"]


def channel_loop(
    per_channel: list[str],
    block: list[str],
    outputs: int,
    across: int,
    steps: tuple[int, int],
    next_channel: tuple[int, int],
) -> list[str]:
    """Instructions: for each channel, `per_channel`, then blocks of `across` outputs until `outputs` are
    covered.

    A block moves r1 and r3 on by `steps` bytes. Where the outputs are no multiple of a block, the last one
    goes back and writes some of them once more; a row shorter than a block is one block, whose stores the
    caller predicates. next_channel: bytes from one channel to the next in input and output. r9 holds the
    number of channels.
    """
    full, rest = divmod(outputs, across)
    lines = ["1:", *per_channel]
    moved = [max(full, 1) * step for step in steps]
    lines += [f"mov lr, #{full}", "dls lr, lr", "2:", *block, "le lr, 2b"] if full > 1 else block
    if rest and full:
        for i, register in enumerate(("r1", "r3")):
            lines += advance(register, -(across - rest) * steps[i] // across)
            moved[i] += rest * steps[i] // across
        lines += block
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
