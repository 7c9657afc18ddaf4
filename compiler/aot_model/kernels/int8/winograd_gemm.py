"""Products of Winograd's convolution for the DSP extension: four words by two at each position.

A word is a pair of int16 (two channels), SMLAD sums both products modulo 2^32. Of two operands one has
four words for each pair of channels, the other two; tiles may be the one and output channels the other,
or the other way round. Per pair of channels six LDR in clusters of four and two (8 cycles on a Cortex-M4)
and eight SMLAD.

Both operands are laid out [pairs / unroll][position][unroll][words]: the transforms write all positions
of a pair at offsets that do not depend on the layer, and this loop reads `unroll` pairs at offsets from
its pointers.
"""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.kernels.int8.dsp import dsp_function

POSITIONS = 36
SUMS = 8
"""Words that a position gives: [two][four]."""


@dataclass(frozen=True)
class Product:
    """The form of the loop."""

    turns: int
    unroll: int
    """Pairs of channels of a turn."""
    adds: bool
    """The sums are added to what is there; else they begin with zero."""

    @property
    def four_turn(self) -> int:
        """Words from one turn of the operand of four words to the next."""
        return POSITIONS * self.unroll * 4

    @property
    def two_turn(self) -> int:
        return POSITIONS * self.unroll * 2

    @property
    def name(self) -> str:
        return f"winograd_{'add_' if self.adds else ''}{self.turns}x{self.unroll}"


def _step(k: int, instruction: str, advance: tuple[int, int] | None) -> list[str]:
    """Pair k of a turn; advance: bytes that both pointers move on with their last loads."""
    four, two = 16 * k, 8 * k
    end_four, end_two = (
        (f"[r0], #{advance[0]}", f"[r1], #{advance[1]}") if advance else (f"[r0, #{four}]", f"[r1, #{two}]")
    )
    last = ", {0}" if instruction == "smlad" else ""

    def sums(x: str, lane: int) -> list[str]:
        return [
            (f"{instruction} {{0}}, {x}, {w}" + last).format(f"r{2 + lane + at}")
            for w, at in (("r10", 0), ("r11", 4))
        ]

    return [
        f"ldr r11, [r1, #{two + 4}]", f"ldr r10, {end_two}", f"ldr r12, [r0, #{four + 4}]",
        f"ldr lr, [r0, #{four + 8}]", *sums("r12", 1), *sums("lr", 2), f"ldr r12, [r0, #{four + 12}]",
        f"ldr lr, {end_four}", *sums("r12", 3), *sums("lr", 0),
    ]  # fmt: skip


def _add(register: str, by: int) -> list[str]:
    """register += by; r12 is free."""
    word = abs(by)
    bits = word.bit_length()
    if word == 0:
        return []
    if bits <= 8 or word % (1 << (bits - 8)) == 0:
        return [f"{'add' if by > 0 else 'sub'}.w {register}, {register}, #{word}"]
    return [
        f"movw r12, #{word & 0xFFFF}",
        *([f"movt r12, #{word >> 16}"] if word >> 16 else []),
        f"{'add' if by > 0 else 'sub'}.w {register}, {register}, r12",
    ]


def product(form: Product) -> tuple[str, str]:
    """(name, C text) of the micro-kernel: sums of positions from m to end."""
    u, turns = form.unroll, form.turns
    four, two = 16 * u, 8 * u  # bytes of one position
    order = [*range(1, u), 0]  # pair 0 is the last, so that its loads may move the pointers
    begin = _step(order[0], "smuad", None)
    if form.adds:
        begin = ["ldr r12, [sp]", "ldmia r12, {r2-r9}", *_step(order[0], "smlad", None)]
    lines = ["push {r4-r11, lr}", "sub sp, sp, #12", "strd r2, r3, [sp]"]
    if turns == 1:
        lines += [".p2align 2", "1:", *begin]
        for k in order[1:]:
            lines += _step(k, "smlad", (four, two) if k == 0 else None)
    else:
        lines += ["mov r4, r0", *_add("r4", 4 * form.four_turn * turns), "str r4, [sp, #8]", ".p2align 2"]
        lines += ["1:", *begin, "b.w 3f", ".p2align 2", "2:",
                  *_step(order[0], "smlad", None), "3:"]  # fmt: skip
        for k in order[1:]:
            lines += _step(k, "smlad", None)
        lines += [
            *_add("r0", 4 * form.four_turn),
            *_add("r1", 4 * form.two_turn),
            "ldr r12, [sp, #8]",
            "cmp.w r0, r12",
            "bne.w 2b",
            f"add.w r12, r12, #{four}",
            "str r12, [sp, #8]",
            *_add("r0", four - 4 * form.four_turn * turns),
            *_add("r1", two - 4 * form.two_turn * turns),
        ]
    lines += ["ldrd r12, lr, [sp]", "stmia r12!, {r2-r9}", "str r12, [sp]", "cmp.w r12, lr", "bne.w 1b",
              "add sp, sp, #12", "pop {r4-r11, pc}"]  # fmt: skip
    twin = [
        f"for (; m != end; m += 8, four += {4 * u}, two += {2 * u}) {{",
        *([] if form.adds else ["memset(m, 0, 32);"]),
        f"for (int32_t turn = 0; turn < {turns}; turn++) {{",
        f"for (int32_t k = 0; k < {8 * u}; k++) {{",
        f"const uint32_t a = four[turn * {form.four_turn} + k / 8 * 4 + k % 4];",
        f"const uint32_t b = two[turn * {form.two_turn} + k / 8 * 2 + k / 4 % 2];",
        "m[k % 8] = dsp_smlad((int32_t)a, (int32_t)b, m[k % 8]);",
        "}", "}", "}",
    ]  # fmt: skip
    comment = f"{turns * u} pairs of channels, four words by two, for all positions from m to end."
    parameters = "const uint32_t *four, const uint32_t *two, int32_t *m, const int32_t *end"
    return form.name, dsp_function(form.name, comment, parameters, lines, twin)
