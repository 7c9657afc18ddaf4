"""What kernels with eight channels in the lanes share, of one output of a row after the other: how they walk
over the taps of a window, and the loops around a block of channels.

Registers: r1 tap, r5 stream of weights and numbers, r3 output, r10 moves; r2 window, r11 the stream's begin,
r9 outputs left, r12 channels, r6 from tap to tap. A block's lines may take r0, r4, r7, r8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aot_model.c.assembly import advance, constant
from aot_model.c.words import counted
from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8.channel_rows_mve import row_kernel
from aot_model.kernels.int8.image_rows_mve import PaddedRows, ring_of
from aot_model.kernels.int8.mve import ordered

LANES = 8
MOST_TAPS = 64
"""Taps are written one after the other."""
PAY = 1.05
"""Cycles of another kernel from which on one of these is taken, for one of its own: what gathers and scatters
take is not known as well as the instructions, of which these have more.
"""


@dataclass(frozen=True)
class Walk(PaddedRows):
    """Where the taps of a window lie."""

    @staticmethod
    def of(s: ConvShape, size: int = 1, ring: bool = False) -> Walk:
        """ring: even where no window reaches beyond the image."""
        return Walk(s, *ring_of(s, size, ring), size)

    @property
    def taps(self) -> int:
        return self.shape.kernel_h * self.shape.kernel_w

    @property
    def blocks(self) -> int:
        """Of eight channels, or what is left of them."""
        return -(-self.shape.in_c // LANES)

    @property
    def step(self) -> int:
        """Bytes from a tap to the next in its row."""
        return self.shape.dilation_w * self.shape.in_c * self.size

    @property
    def width(self) -> int:
        """Bytes from the first tap of a row to its last."""
        return (self.shape.kernel_w - 1) * self.step

    @property
    def reach(self) -> int:
        """Bytes that a load moves its address."""
        return 127 * self.size

    def moves(self, phase: int = 0) -> list[int]:
        """Bytes from the last tap of a row of the window to the first of the next, and from the last of all
        to the next block's first. phase: the slot of the window's first row."""
        s = self.shape
        rows = np.arange(s.kernel_h) * s.dilation_h
        at = ((rows + phase) % self.slots if self.slots else rows) * self.row
        return [int(d) - self.width for d in np.append(at[1:], at[0] + LANES * self.size) - at]

    def table(self) -> np.ndarray:
        """int32 [slots, kernel_h]: the moves for each slot of a window's first row."""
        return np.array([self.moves(k) for k in range(self.slots)], np.int32)

    def tap(self, k: int, load: str, x: str) -> list[str]:
        """Loads tap k, and moves r1 on to the next one."""
        row, column = divmod(k, self.shape.kernel_w)
        last = column + 1 == self.shape.kernel_w
        move, load = self.moves()[row] if last else self.step, f"{load} {x}, [r1]"
        if last and self.slots:
            return [load, f"ldr r0, [r10, #{4 * row}]", "add r1, r1, r0"]
        if abs(move) <= self.reach:
            return [f"{load}, #{move}" if move else load]
        return [load, *(["add r1, r1, r6"] if move == self.step else advance("r1", move, "r0"))]

    def row_lines(self, begin: list[str], block: list[str], to: int) -> list[str]:
        """Instructions for a row of outputs. begin: before all; block: for eight channels of an output, whose
        elements have `to` bytes.
        """
        s, several = self.shape, self.shape.out_w > 1
        lines = [f"movw r12, #{s.in_c}", *(constant("r6", self.step) if self.step > self.reach else []),
                 *begin, *([f"movw r9, #{s.out_w}", "1:"] if several else []), "mov r1, r2", "mov r5, r11",
                 "dlstp.16 lr, r12", "2:", *ordered(block), "letp lr, 2b"]  # fmt: skip
        if several:
            lines += [*advance("r2", s.stride_w * s.in_c * self.size, "r0"),
                      *advance("r3", to * (s.in_c - LANES * self.blocks), "r0"),
                      "subs r9, r9, #1", "bne 1b"]  # fmt: skip
        return lines

    def packed(self, matrix: np.ndarray, record: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """int8: for each eight channels what sums begin with, weights [taps, channels], other numbers; even
        channels first. record: all numbers of four channels as bytes, of which 16 are what sums begin with.
        """
        padded = np.zeros((self.taps, self.blocks * LANES), np.int8)
        padded[:, : matrix.shape[1]] = matrix
        stream: list[np.ndarray] = []
        for first in range(0, self.blocks * LANES, LANES):
            lanes = first + np.arange(LANES)
            records = [record(lanes[k::2]).view(np.int8) for k in (0, 1)]
            stream += [*(r[:16] for r in records), padded[:, lanes].reshape(-1), *(r[16:] for r in records)]
        return np.concatenate(stream)

    def kernel(self, prefix: str, x: str, y: str, lines: list[str], twin: str) -> tuple[str, str]:
        """(name, text) of name(x, w[, moves], y): one row of outputs. x, y: types of the elements."""
        s, moves = self.shape, "r10: const int32_t *moves, " if self.slots else ""
        return row_kernel(
            f"{prefix}_depthwise_l{self.taps}_c{s.in_c}",
            f"{counted(s.out_w, 'output')} in a row, {s.in_c} channels, {self.taps} taps each.",
            f"r2: const {x} *x, r11: const int8_t *w, {moves}r3: {y} *y",
            lines,
            twin,
        )

    def twin(self, head: int, record: int, x: str, weight: str, finish: str, result: str) -> str:
        """The same in C. head: bytes before all records, of which each has `record`. x: type of the input;
        weight: C of one. finish: statements behind the sum `acc`; result: C of what is stored.
        """
        s, behind, own = self.shape, 2 * 16 + LANES * self.taps, record - 16
        down = f"{self.width} + moves[ky]" if self.slots else str(s.dilation_h * self.row // self.size)
        if self.slots and self.size > 1:
            down = f"({down}) / {self.size}"
        return f"""\
for (int32_t ox = 0; ox < {s.out_w}; ox++) {{
    for (int32_t c = 0; c < {s.in_c}; c++) {{
        const int32_t lane = c % {LANES} / 2;
        const int8_t *record = w{f" + {head}" if head else ""} + c / {LANES} * {behind + 2 * own};
        const int8_t *weight = record + 32 + c % {LANES};
        const int8_t *numbers = record + {behind} + c % 2 * {own};
        const {x} *from = {"" if self.size > 1 else f"(const {x} *)"}x + ox * {s.stride_w * s.in_c} + c;
        int32_t acc = 0;
        for (int32_t ky = 0; ky < {s.kernel_h}; ky++) {{
            for (int32_t kx = 0; kx < {s.kernel_w}; kx++, weight += {LANES}) {{
                acc += from[kx * {self.step // self.size}] * {weight};
            }}
            from += {down};
        }}
        {finish}
        y[ox * {s.in_c} + c] = {result};
    }}
}}
"""

    def cycles(self, sums: int) -> float:
        """Of a Cortex-M55, for all outputs, about, times `PAY`. sums: of the products of a block of channels
        and their sums.
        """
        s = self.shape
        block = sums + (0 if self.step <= self.reach else self.taps) + 2 * bool(self.slots) * s.kernel_h
        return PAY * (s.batch * s.out_h * (30 + s.out_w * (10 + self.blocks * (33 + block))))


def takes(shape: ConvShape) -> bool:
    """Whether a geometry is that of such kernels: one output for each channel; two channels are a word."""
    s = shape.along_row
    plain = s.out_c == s.in_c == s.groups and s.in_c % 2 == 0 and s.in_c <= 4094
    return plain and s.kernel_h * s.kernel_w <= MOST_TAPS
