"""What the depthwise micro-kernels share: a loop over channels around a loop over blocks of outputs in a row.

Registers: r1 input, r3 output, r9 channels left, lr blocks left; r0, r2, r4, r6 accumulators. A block is four
outputs or, where a vector is free for the sums of the first four, eight, which share what narrows and stores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from aot_model.c.assembly import advance, forward
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.int8.image_rows_mve import Ring, layer_code, rows_to_tail
from aot_model.kernels.int8.mve import clobbers, mve_function
from aot_model.kernels.int8.requantise_mve import HEADER, Ends, Requantiser

FOUR, EIGHT = 4, 8
ACCUMULATORS = ("r0", "r2", "r4", "r6")


def covered(outputs: int) -> int:
    """Outputs of a row that are requantised: whole fours."""
    return -(-outputs // FOUR) * FOUR


def summed(outputs: int) -> int:
    """Outputs of a row whose sums are made: a last block goes back over some of them."""
    return covered(outputs) if outputs >= FOUR else outputs


def channel_loop(
    per_channel: list[str],
    block: list[str],
    outputs: int,
    across: int,
    steps: tuple[int, int],
    next_channel: tuple[int, int],
    four: list[str] | None = None,
) -> list[str]:
    """Instructions: for each channel, `per_channel`, then blocks of `across` outputs until `outputs` are
    covered, at least one.

    A block moves r1 and r3 on by `steps` bytes. Where the outputs are no multiple of a block, the last one
    goes back and writes some of them once more. next_channel: bytes from one channel to the next in input and
    output. r9 holds the number of channels. four: a block of four outputs beside one of eight, for at most
    four that are left.
    """
    full, rest = divmod(outputs, across)
    lines = ["1:", *per_channel]
    moved = [full * step for step in steps]
    lines += [f"mov lr, #{full}", "dls lr, lr", "2:", *block, "le lr, 2b"] if full > 1 else block
    if rest:
        last, size = (four, FOUR) if four is not None and rest <= FOUR else (block, across)
        for i, register in enumerate(("r1", "r3")):
            lines += advance(register, -(size - rest) * steps[i] // across, "r0")
            moved[i] += rest * steps[i] // across
        lines += last
    lines += [
        line for i, r in enumerate(("r1", "r3")) for line in advance(r, next_channel[i] - moved[i], "r0")
    ]
    return [*lines, "subs r9, r9, #1", "bne 1b"]


class RowEnd(Protocol):
    """What becomes of sums in a block. Of a channel, its numbers are in r12 and r8, its shift is in r10; the
    offsets of a block's results are in q6.
    """

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of an element of input and output."""

    @property
    def numbers(self) -> np.ndarray:
        """int32 [channels, words]: those that `load` reads."""

    @property
    def shifts(self) -> np.ndarray | None:
        """int8, one for each channel; None: all share one."""

    @property
    def load(self) -> list[str]:
        """Instructions for a channel's numbers, and r7 behind them."""

    def finished(self, steps: int, partial: bool, eight: bool = False, first: str | None = None) -> list[str]:
        """Instructions from the sums of a block to its results, and r3 `steps` bytes further. partial: stores
        are predicated. eight: offsets are those of a block of eight; first: of such a block, the vector with
        the sums of its first four.
        """

    def stored(self, place: str, shift: str) -> str:
        """C that stores what becomes of `acc`, of channel `c`, at y[place]; its numbers are in `k`."""


@dataclass(frozen=True)
class ByteEnd:
    """That of bytes."""

    rq: Requantiser

    @property
    def sizes(self) -> tuple[int, int]:
        return 1, 1

    @property
    def numbers(self) -> np.ndarray:
        return self.rq.numbers

    @property
    def shifts(self) -> np.ndarray | None:
        return self.rq.signed_shift if self.rq.common_right is None else None

    @property
    def load(self) -> list[str]:
        n = 4 * self.rq.numbers.shape[1]
        return [f"ldrd r12, r8, [r7], #{n}" if self.rq.multiplies else f"ldr r12, [r7], #{n}"]

    def finished(self, steps: int, partial: bool, eight: bool = False, first: str | None = None) -> list[str]:
        vectors, store = ("q0",) if first is None else (first, "q0"), "vstrbt" if partial else "vstrb"
        return [
            *gathered_sums("q0"), *(f"vadd.i32 {q}, {q}, r12" for q in vectors), *self._requantised(vectors),
            *self.rq.narrow(vectors[0], None if first is None else "q0", "q7"),
            *(["vpst"] if partial else []),
            f"{store}.{16 if eight else 32} {vectors[0]}, [r3, q6]", *forward("r3", steps),
        ]  # fmt: skip

    def _requantised(self, vectors: tuple[str, ...]) -> list[str]:
        """Instructions for sums of one channel, up to the shift; they spoil r0, r2, r4, r6, q7."""
        rq, lines = self.rq, list[str]()
        if rq.both:  # the signed shift of r10 as a left shift in r4 and minus a right shift in r2
            lines = ["add r4, r10, #1", "bic r4, r4, r4, asr #31", "orn r2, r10, r10, asr #31"]
        elif rq.has_left:
            lines = ["bic r4, r10, r10, asr #31", "and r2, r10, r10, asr #31"]
        lines += ["ldr r6, [r7, #-4]"] if rq.ties == "even" else []
        for q in vectors:
            lines += rq.vector(q, "q7", "r8", "r4", "r2" if rq.has_left else "r10", "r0", "r6")
        return lines

    def stored(self, place: str, shift: str) -> str:
        rq, k = self.rq, [f"k[{self.numbers.shape[1]} * c + {i}]" for i in range(3)]
        acc = f"(int32_t)((uint32_t)acc + (uint32_t){k[0]})"
        left, right = "0", shift
        if rq.has_left:
            left, right = f"({shift} > 0 ? {shift} : 0)", f"({shift} < 0 ? {shift} : 0)"
        if rq.both:
            left, right = f"({shift} >= 0 ? {shift} + 1 : 0)", f"({shift} < 0 ? {shift} : -1)"
        return f"y[{place}] = {rq.scalar(acc, k[1], left, right, k[2])};"


@dataclass(frozen=True)
class SumEnd:
    """Sums that stay as they are, words."""

    start: np.ndarray
    """int32: what those of each channel begin with."""
    size: int = 1
    """Bytes of an element of the input."""

    @property
    def sizes(self) -> tuple[int, int]:
        return self.size, 4

    @property
    def numbers(self) -> np.ndarray:
        return self.start[:, None]

    @property
    def shifts(self) -> np.ndarray | None:
        return None

    @property
    def load(self) -> list[str]:
        return ["ldr r12, [r7], #4"]

    def finished(self, steps: int, partial: bool, eight: bool = False, first: str | None = None) -> list[str]:
        """Of a block of up to four."""
        store = ["vpst", "vstrwt.32 q0, [r3, q6]"] if partial else ["vstrw.32 q0, [r3, q6]"]
        return [*gathered_sums("q0"), "vadd.i32 q0, q0, r12", *store, *forward("r3", steps)]

    def stored(self, place: str, shift: str) -> str:
        return f"y[{place}] = (int32_t)((uint32_t)acc + (uint32_t)k[c]);"


def scattered(eight: bool, step: int) -> np.ndarray:
    """uint16 [8]: where the results of a block go, `step` bytes from one to the next: eight of 16 bits as
    `RowEnd` has them, or four of 32 bits.
    """
    words = np.arange(FOUR, dtype="<u4") * np.uint32(step)
    halves = np.arange(EIGHT, dtype="<u2").reshape(2, FOUR).T.reshape(-1) * np.uint16(step)
    found: np.ndarray = halves if eight else words.view("<u2")
    return found


def gathered_sums(vector: str) -> list[str]:
    """The sums of four outputs in a vector."""
    return [f"vmov {vector}[2], {vector}[0], r0, r4", f"vmov {vector}[3], {vector}[1], r2, r6"]


def row_kernel(base: str, comment: str, parameters: str, lines: list[str], twin: str) -> tuple[str, str]:
    """(name, text) of a function whose assembly finds its parameters in registers: "r1: const int8_t *x, r3:
    int8_t *y".
    """
    registers, declared = zip(*(one.split(": ") for one in parameters.split(", ")), strict=True)
    names = [re.split(r"[ *]", one)[-1] for one in declared]
    outs = ", ".join(f'"+r"({n}_)' for n in names) + "\n        :"
    pins = list(zip(registers, declared, names, strict=True))
    return mve_function(
        base, comment, ", ".join(declared), pins, outs, lines, clobbers(lines, registers), twin
    )


def rows_twin(
    channels: int, outputs: int, across: int, window: str, taps: int, product: str, store: str
) -> str:
    """The loops of `channel_loop` in C. window: what leads to the taps of output `column + lane`, which have
    `taps` products; store: the assignment of `acc`.
    """
    return f"""\
for (int32_t c = 0; c < {channels}; c++) {{
    for (int32_t block = 0; block < {outputs}; block += {across}) {{
        /* The last block covers outputs of the one before once more. */
        const int32_t column = block + {across} > {outputs} ? {max(outputs - across, 0)} : block;
        for (int32_t lane = 0; lane < {across}; lane++) {{
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


@dataclass(frozen=True)
class ChannelRows:
    """A layer whose kernel makes a row of outputs of some channels, from windows of weights and taps at given
    places: what it does whatever those places are.
    """

    shape: ConvShape
    end: RowEnd
    taps: int
    """Products of an output, with those that are zeros."""
    step: int
    """Bytes from the window of one output to the next."""
    channels: int
    """Of a call."""
    calls: int
    """For all channels of a row."""
    next_channel: tuple[int, int]
    """Elements from one channel of a call to the next in input and output."""
    eight: bool
    """Whether blocks are of eight outputs."""
    weights: int
    """Bytes of a channel's weights, with the zeros around them."""

    @property
    def apart(self) -> bool:
        """Whether a call takes every so-manyth channel, and not neighbours."""
        return self.next_channel[1] == self.calls

    @property
    def record(self) -> int:
        """Bytes of a channel: weights, and the signed shift where channels differ in it."""
        return self.weights + (self.end.shifts is not None)

    def packed(self, matrix: np.ndarray, zero: int = 0) -> list[Packed]:
        """`w` and `k` for weights [channels, taps], in the order of the calls; zero: their zero point, behind
        the last tap."""
        shifts, records = self.end.shifts, np.full((len(matrix), self.record), zero, np.int8)
        order = np.arange(len(matrix))
        if self.apart:
            order = order.reshape(self.channels, self.calls).T.reshape(-1)
        records[:, : matrix.shape[1]] = matrix[order]
        if shifts is not None:
            records[:, -1] = shifts[order]
        return [Packed("w", records.reshape(-1), admissible=ANYTHING),
                Packed("k", self.end.numbers[order], admissible=ANYTHING)]  # fmt: skip

    def kernel(
        self,
        base: str,
        comment: str,
        before: list[str],
        load: list[str],
        sums: list[str],
        place: str,
        window: str,
        product: str,
    ) -> tuple[str, str]:
        """(name, text) of name(x, w, k, taps, scatter, y). before: instructions before all; load: before a
        channel's outputs; sums: those of a block of up to four. place: C type of `taps`. window, product: as
        of `rows_twin`. q5 must be free where blocks are of eight.
        """
        s, end, eight, record = self.shape, self.end, self.eight, self.record
        pixels, across, (of_x, of_y) = min(s.out_w, FOUR), EIGHT if eight else min(s.out_w, FOUR), end.sizes
        pixel = of_y * s.out_c
        block = four = [*sums, *end.finished(pixels * pixel, pixels < FOUR or eight, eight)]
        if eight:
            block = [*sums, *gathered_sums("q5"), *sums, *end.finished(EIGHT * pixel, False, True, "q5")]
        shift = [f"ldrsb r10, [r5, #{record - 1}]"] if end.shifts is not None else []
        lines = [*before, "vldrw.32 q6, [r2]"]
        if pixels < FOUR:
            lines += [f"mov r0, #{pixels}", "vctp.32 r0"]
        elif eight and 0 < s.out_w % EIGHT <= FOUR:  # one block has four of the eight
            lines += ["movw r0, #0x3333", "vmsr p0, r0"]
        lines.append(f"movw r9, #{self.channels}")
        next_x, next_y = self.next_channel
        loop = channel_loop([*end.load, *shift, *load], block, s.out_w, across,
                            (across * self.step, across * pixel), (of_x * next_x, of_y * next_y),
                            four if eight else None)  # fmt: skip
        # r5 moves on at the end of a channel, before the loop's own count
        lines += [*loop[:-2], f"addw r5, r5, #{record}", *loop[-2:]]
        parameters = (
            f"r1: const int{8 * of_x}_t *x, r5: const int8_t *w, r7: const int32_t *k, r11: const {place} "
            f"*taps, r2: const uint16_t *scatter, r3: int{8 * of_y}_t *y"
        )
        at = f"(column + lane) * {s.out_c} + c * {next_y}"
        store = end.stored(at, f"w[{record} * c + {record - 1}]")
        twin = rows_twin(self.channels, s.out_w, pixels, window, self.taps, product, store)
        return row_kernel(base, comment, parameters, lines, f"(void)scatter;\n{twin}")

    def call(self, kernel: str, x: str, tables: str, to: str) -> str:
        """C of all calls for a row of outputs, which goes `to` there. tables: the arguments between `k` and
        `y`; x, too, may name call `m`.
        """
        if self.calls == 1:
            return f"{kernel}({x}, w, k, {tables}, {to});\n"
        own = f"w + m * {self.record * self.channels}, k + m * {self.end.numbers.shape[1] * self.channels}"
        further = "m" if self.apart else f"m * {self.channels}"
        one = f"{kernel}({x}, {own}, {tables}, {to} + {further});"
        return f"for (int32_t m = 0; m < {self.calls}; m++) {{\n{one}\n}}\n"

    def code(
        self,
        ends: Ends,
        kernel: tuple[str, str],
        constants: list[Packed],
        places: tuple[str, str],
        ring: Ring | None,
        tail: Tail | None,
        down: bool,
        note: str,
        begin: str = "",
        header: str = HEADER,
    ) -> KernelCode:
        """The kernel of bytes. kernel: name and text of the micro-kernel. places: x of a call, and its
        arguments between `k` and `y`. ring: what the image passes through; None: it is read where it lies.
        down: the shape's rows are the columns of the layer. begin, header: as of `layer_code`.
        """
        s = self.shape
        to = f"{ends.y} + (n * {s.out_h} + oy) * {s.out_w * s.out_c}" if tail is None else ends.row
        row = self.call(kernel[0], *places, to)
        if tail is not None:
            row += rows_to_tail(s, "row", tail, ("n", "ox", "0") if down else ("n", "oy", "ox"))
        return layer_code(s, ends, kernel[1], row, constants, ring, tail, note, begin, header)
