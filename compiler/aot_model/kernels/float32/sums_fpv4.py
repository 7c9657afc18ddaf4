"""Sums of products of a block of pixels by channels for an FPU whose multiply-add takes longer than a product
and a sum, as that of Cortex-M4 (VFMA three cycles, VMUL and VADD one each), as assembly with its twin in C.

A step reads one element of each pixel and a weight of each channel, all loads one behind the other, which
is where they overlap, and then multiplies and adds in turn, so that nothing waits for what the instruction
before it made. Products and sums are rounded one by one, as plain C says; flags of the compiler do not
change that.

    4 pixels x 4 channels: 8 VLDR (9 cycles), 16 VMUL, 16 VADD: 2.56 cycles per MAC; 6 x 4: 2.58, 5 x 4: 2.5

The taps are three loops: `rows` of `runs` of `steps` elements that lie one behind the other, in the input as
in the weights. A run that the unrolled loop does not divide enters it in its midst, with all pointers as much
before their elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aot_model.c.assembly import naked_function

REGISTERS = 32
_TEMPORARIES = 2
POINTERS = ("r4", "r5", "r6", "r7", "r8", "r12")
"""Of the pixels."""
TAPS = ("rows", "runs", "steps", "right", "down", "begin", "between", "skip")
"""What `taps` holds: counts; by how many elements pixels move on behind a run and behind a row; the weights
of how many steps are left out before the first row, behind each run and behind each row.
"""

FPV4 = "#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4)"
"""Opens the part of a text that uses the FPU's instructions; the portable twin follows #else."""


@dataclass(frozen=True)
class Sums:
    """The function for a block, `unroll` steps at a time."""

    pixels: int
    channels: int
    unroll: int
    uneven: bool
    """Runs are no multiples of that, or weights are left out between them."""

    @property
    def name(self) -> str:
        return f"f32_sums_{self.pixels}x{self.channels}_by_{self.unroll}{'_any' if self.uneven else ''}"

    @property
    def fits(self) -> bool:
        return self._elements_at_once >= min(self.pixels, 2)

    @property
    def _elements_at_once(self) -> int:
        """Registers for elements of pixels."""
        return REGISTERS - _TEMPORARIES - self.pixels * self.channels - self.channels

    def _groups(self) -> list[range]:
        """Pixels whose elements are loaded together."""
        width = max(1, self._elements_at_once)
        return [range(p, min(p + width, self.pixels)) for p in range(0, self.pixels, width)]

    @property
    def step_cycles(self) -> float:
        """Of a Cortex-M4, with the share of the loop."""
        loads = self.channels + self.pixels + len(self._groups())
        return loads + 2 * self.pixels * self.channels

    @property
    def turn_cycles(self) -> float:
        """Of `unroll` steps, beyond them."""
        return self.pixels + 4

    @property
    def run_cycles(self) -> float:
        """Of starting and ending a run."""
        return 8 + self.pixels + (8 if self.uneven else 0)

    @property
    def block_cycles(self) -> float:
        """Of a call with no taps."""
        return 75 + self.pixels * (1 + 2 * self.channels)

    # ---- registers: sums [pixel][channel], weights, elements, products

    def _sum(self, pixel: int, channel: int) -> str:
        return f"s{pixel * self.channels + channel}"

    def _weight(self, channel: int) -> str:
        return f"s{self.pixels * self.channels + channel}"

    def _element(self, place: int) -> str:
        return f"s{self.pixels * self.channels + self.channels + place}"

    def _load(self, place: int, pixel: int, step: int) -> str:
        return f"vldr {self._element(place)}, [{POINTERS[pixel]}, #{4 * step}]"

    def _begin(self, first: list[str]) -> list[str]:
        """The other pixels' sums start as the first's."""
        return [
            f"vmov.f32 {self._sum(p, v)}, {first[v]}"
            for p in range(1, self.pixels)
            for v in range(self.channels)
        ]

    def _step(self, number: int) -> Iterator[str]:
        """One element of each pixel by a weight of each channel."""
        for group in self._groups():
            for place, p in enumerate(group):
                yield self._load(place, p, number)
            if group[0] == 0:
                for v in range(self.channels):
                    yield f"vldr {self._weight(v)}, [r1, #{4 * (number * self.channels + v)}]"
            pairs = [(place, p, v) for place, p in enumerate(group) for v in range(self.channels)]
            late: list[str] = []
            for k, (place, p, v) in enumerate(pairs):
                product = f"s{REGISTERS - 1 - k % _TEMPORARIES}"
                yield f"vmul.f32 {product}, {self._weight(v)}, {self._element(place)}"
                yield from late
                late = [f"vadd.f32 {self._sum(p, v)}, {self._sum(p, v)}, {product}"]
            yield from late

    def _advance(self, text: str) -> list[str]:
        return [text.format(p=p) for p in POINTERS[: self.pixels]]

    def _weights_on(self, steps: str, how: str = "add") -> list[str]:
        """The pointer to the weights over as many steps as a register says."""
        bits = [k for k in range(8) if self.channels >> k & 1]
        return [f"{how} r1, r1, {steps}, lsl #{2 + k}" for k in bits]

    @property
    def assembly(self) -> list[str]:
        """sums in r0, w in r1, x in r2, taps in r3."""
        first = [self._sum(0, v) for v in range(self.channels)]
        step = 4 * len(list(self._step(0)))
        before = (
            [  # r2: steps of the loop that are not of a run; lr: where to enter it
                "ldr r9, [r3, #8]",
                *_remainder("r2", "r9", self.unroll),
                "adr.w lr, 3f",
                f"mov r9, #{step}",
                "mla lr, r2, r9, lr",
                "orr lr, lr, #1",
                *self._advance("sub {p}, {p}, r2, lsl #2"),
            ]
            if self.uneven
            else []
        )
        return [
            "push {r4-r11, lr}",
            "vpush {s16-s31}",
            *[f"ldr {p}, [r2, #{4 * k}]" for k, p in enumerate(POINTERS[: self.pixels])],
            f"vldmia r1!, {{{span(first[0], first[-1])}}}",
            *self._begin(first),
            "ldr r11, [r3]",
            "cmp r11, #0",
            "beq.w 4f",
            "ldr r9, [r3, #20]",
            *self._weights_on("r9"),
            *before,
            "1:",
            "ldr r10, [r3, #4]",
            "2:",
            "ldr r9, [r3, #8]",
            *[*self._weights_on("r2", "sub"), "add r9, r9, r2", "bx lr"] * self.uneven,
            ".p2align 2",
            "3:",
            *[line for u in range(self.unroll) for line in self._step(u)],
            f"add r1, r1, #{4 * self.unroll * self.channels}",
            *self._advance(f"add {{p}}, {{p}}, #{4 * self.unroll}"),
            f"subs r9, r9, #{self.unroll}",
            "bne.w 3b",
            *["ldr r9, [r3, #24]", *self._weights_on("r9")] * self.uneven,
            "ldr r9, [r3, #12]",
            *["sub r9, r9, r2"] * self.uneven,
            "subs r10, r10, #1",
            *self._advance("add {p}, {p}, r9, lsl #2"),
            "bne.w 2b",
            "ldr r9, [r3, #16]",
            *self._advance("add {p}, {p}, r9, lsl #2"),
            "ldr r9, [r3, #28]",
            *self._weights_on("r9"),
            "subs r11, r11, #1",
            "bne.w 1b",
            "4:",
            f"vstmia r0, {{{span('s0', f's{self.pixels * self.channels - 1}')}}}",
            "vpop {s16-s31}",
            "pop {r4-r11, pc}",
        ]  # fmt: skip

    def text(self) -> str:
        """The function: assembly, and C for other compilers."""
        arguments = "float *sums, const float *w, const float *const *x, const int32_t *taps"
        p, v = self.pixels, self.channels
        return f"""\
/* Sums of {p} x {v} (pixels x channels): weights w = start of each channel, then those of each tap; products
 * and sums are rounded one by one. taps = {", ".join(TAPS)}. */
{FPV4}
{naked_function(self.name, arguments, self.assembly)}#else
AOT_MODEL_OPAQUE static void {self.name}(
    {arguments})
{{
    const float *at[{p}] = {{0}};
    for (int32_t p = 0; p < {p}; p++) {{
        at[p] = x[p];
        for (int32_t v = 0; v < {v}; v++) {{
            sums[p * {v} + v] = w[v];
        }}
    }}
    w += {v} + {v} * taps[5];
    for (int32_t row = 0; row < taps[0]; row++) {{
        for (int32_t run = 0; run < taps[1]; run++) {{
            for (int32_t i = 0; i < taps[2]; i++, w += {v}) {{
                for (int32_t p = 0; p < {p}; p++) {{
                    for (int32_t v = 0; v < {v}; v++) {{
                        const float product = w[v] * at[p][i];
                        sums[p * {v} + v] += product;
                    }}
                }}
            }}
            for (int32_t p = 0; p < {p}; p++) {{
                at[p] += taps[2] + taps[3];
            }}
            w += {v} * taps[6];
        }}
        for (int32_t p = 0; p < {p}; p++) {{
            at[p] += taps[4];
        }}
        w += {v} * taps[7];
    }}
}}
#endif
"""


def _remainder(to: str, of: str, unroll: int) -> list[str]:
    """What is missing to a multiple of `unroll`: to = -of modulo unroll."""
    if unroll & (unroll - 1) == 0:
        return [f"rsb {to}, {of}, #0", f"and {to}, {to}, #{unroll - 1}"]
    return [
        f"add {to}, {of}, #{unroll - 1}",
        f"mov lr, #{unroll}",
        f"udiv {to}, {to}, lr",
        f"mul {to}, {to}, lr",
        f"sub {to}, {to}, {of}",
    ]


def span(first: str, last: str) -> str:
    """A list of registers."""
    return first if first == last else f"{first}-{last}"
