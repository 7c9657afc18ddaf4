"""What micro-kernels for the DSP extension that read a stream of constants have in common: a loop over
channels around one over taps, as assembly and as its twin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aot_model.kernels.int8.dsp import Schedule, assembly, twin

STREAM = "const uint32_t *columns, const int32_t *stream"
"""Parameters of those that multiply pixels' patches."""
HALF_TAPS = "uint32_t k = 0; k < half_taps; k++"
"""The head of the twin's loop over the taps, two at a time."""


def stream_lines(frame: int, arguments: Iterable[str], step: Schedule, turns: int, slot: int,
                 compare: Iterable[str], begin: Iterable[str], finish: Iterable[str],
                 last: str = "") -> list[str]:  # fmt: skip
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


def stream_twin(registers: Iterable[str], starts: Iterable[str], taps: str, step: Schedule, finish: Schedule,
                results: Iterable[str], before: Sequence[str] = (), x: str = "const uint32_t *r0 = columns;",
                turn: str = "") -> list[str]:  # fmt: skip
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
