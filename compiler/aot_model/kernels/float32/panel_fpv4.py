"""Sums of a block whose pixels were copied aside, as those of sums_fpv4.py, with the elements of a step one
beside the other.

One pointer goes through the elements of all pixels, one through the weights: two additions a turn instead of
seven, and no registers to save but those of the FPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.c.assembly import assembly_function
from aot_model.c.text import CText, total
from aot_model.kernels.float32.sums_fpv4 import FPV4, Sums, span


@dataclass(frozen=True)
class PanelSums(Sums):
    """The function for a block of a panel. `unroll` divides the steps, which may be none."""

    @property
    def name(self) -> str:
        return f"f32_panel_{self.pixels}x{self.channels}_by_{self.unroll}"

    @property
    def turn_cycles(self) -> float:
        return 5

    @property
    def run_cycles(self) -> float:
        return 0

    @property
    def block_cycles(self) -> float:
        return 50 + 2 * self.pixels * self.channels

    def _load(self, place: int, pixel: int, step: int) -> str:
        return f"vldr {self._element(place)}, [r2, #{4 * (step * self.pixels + pixel)}]"

    @property
    def assembly(self) -> list[str]:
        """sums in r0, w in r1, x in r2, steps in r3."""
        first = [self._sum(0, v) for v in range(self.channels)]
        return [
            "vpush {s16-s31}",
            f"vldmia r1!, {{{span(first[0], first[-1])}}}",
            *self._begin(first),
            "cmp r3, #0",
            "beq.w 2f",
            ".p2align 2",
            "1:",
            *[line for u in range(self.unroll) for line in self._step(u)],
            f"add r1, r1, #{4 * self.unroll * self.channels}",
            f"add r2, r2, #{4 * self.unroll * self.pixels}",
            f"subs r3, r3, #{self.unroll}",
            "bne.w 1b",
            "2:",
            f"vstmia r0, {{{span('s0', f's{self.pixels * self.channels - 1}')}}}",
            "vpop {s16-s31}",
            "bx lr",
        ]

    def text(self) -> str:
        p, v = self.pixels, self.channels
        twin = f"""\
    for (int32_t p = 0; p < {p}; p++) {{
        for (int32_t v = 0; v < {v}; v++) {{
            sums[p * {v} + v] = w[v];
        }}
    }}
    for (int32_t i = 0; i < steps; i++) {{
        for (int32_t p = 0; p < {p}; p++) {{
            for (int32_t v = 0; v < {v}; v++) {{
                const float product = w[(i + 1) * {v} + v] * x[i * {p} + p];
                sums[p * {v} + v] += product;
            }}
        }}
    }}"""
        return assembly_function(
            FPV4,
            self.name,
            f"Sums of {p} x {v} (pixels x channels): x = for each step an element of each pixel, weights\n"
            " * w = start of each channel, then those of each step; products and sums are rounded each.",
            "float *sums, const float *w, const float *x, int32_t steps",
            self.assembly,
            twin,
        )


def pack_panel(text: CText, steps: int, pixels: int, size: str) -> None:
    """Copy pixels at[p], of which there are `size`, to `staged`; `pixels`: where that is one number."""
    together = next(u for u in (4, 3, 2, 1) if steps % u == 0)
    with text.loop("p", size, needed=pixels > 1):
        p = "p" if pixels > 1 else "0"
        text.line(f"float *to = {total('staged', p)};")
        with text.loop("i", str(steps), together):
            for u in range(together):
                step = f"{u} * {size}" if size == "now" else str(u * pixels)
                text.line(f"to[{step}] = at[{p}][{total('i', str(u))}];")
            text.line(f"to += {together} * {size};" if size == "now" else f"to += {together * pixels};")
