"""Pointwise convolutions of few channels for cores with the DSP extension: two pixels stay in registers while
all channels of the result are computed from them.

Up to eight channels of two pixels are eight registers of int16 pairs, expanded from words where they lie: no
pixel goes through memory, and one function does all pixels of a layer. Its text is for the channels of the
layer: nothing is asked or counted for a short sum. Weights are int16 pairs as the pixels are, so that SMLAD
takes them as they are loaded, whatever their zero point is, and where the rule doubles the sums (ties), twice
as large. Of each channel, with eight channels in, 2 pixels x 8 MACs and their requantisation:

    LDR start, 2 words; 4 SMLAD; 2 LDR; 4 SMLAD; 2 LDR numbers; 2 SMMLAR, 2 SSAT, 2 STRB = 12 cycles each

A pixel's last word reads up to three bytes beyond the pixel, which meet weights of zeros; so the last pixels
are copied to where there is something behind them, as is one that has no neighbour.

The stream has two channels a block; an odd last one is a block of its own. The first word of a block is the
last that is read, with the step of the pointer; the others follow in the order of reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

import numpy as np

from aot_model.c.assembly import based
from aot_model.c.text import loop_of
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER, Load, Peek, Schedule, assembly, dsp_function, op, twin
from aot_model.kernels.int8.finish import form_name, numbers_of, requantise, wrapped
from aot_model.kernels.int8.requantise import RequantisePlan, bounds, fold_zero_point, plan
from aot_model.kernels.int8.spec import Bias, Int32, Int64, QuantSpec, Weights
from aot_model.kernels.overlap import by_pixels, residual
from aot_model.kernels.reading import Reading
from aot_model.kernels.row_tail import RowTail

MOST_CHANNELS = 8
FARTHEST = 4000
"""Channels of the result, between whose pixels an offset of STRB reaches."""
LEAST_SAVING = 5_000
"""Cycles of a layer that are worth the code of a function."""
SAVED_OF_PIXEL, SAVED_OF_RESULT = 40, 4
"""Cycles less than other kernels take."""
UNKNOWN_BYTES = 256
"""How large constants may be that are read for every two pixels, where nothing is known of their memory."""
TOGETHER = 4
"""Pixels whose results a tail takes at once."""
_PIXELS = ("r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11")
_SUMS = ("r0", "r3")
_FREE = ("r12", "lr")


def _wide(lines: list[str]) -> list[str]:
    """Instructions of 32 bits, which a core reads from word to word, where some of 16 would move all behind
    them.
    """
    return [re.sub(r"^(ldr|strb|str|cmp) ", r"\1.w ", line) for line in lines]


@dataclass(frozen=True)
class Held:
    """A layer of this kind."""

    shape: ConvShape
    quant: QuantSpec
    rq: RequantisePlan
    weights: Int64
    """[channels, taps], as folded."""
    bias: Int64

    @property
    def words(self) -> int:
        """Of a pixel, in registers: pairs of bytes 0 and 2, 1 and 3, 4 and 6, 5 and 7."""
        whole, left = divmod(self.shape.in_c, 4)
        return 2 * whole + min(left, 2)

    @property
    def stride(self) -> int:
        """Bytes that are read of a pixel."""
        return -(-self.shape.in_c // 4) * 4

    @property
    def align(self) -> int:
        """How far sums come shifted left."""
        return 1 if self.rq.form == "ties" else 0

    @property
    def stream(self) -> Int32:
        taps = np.pad(self.weights, ((0, 0), (0, -self.shape.in_c % 4))).reshape(-1, self.stride // 4, 4)
        pairs = (taps << self.align)[:, :, [0, 2, 1, 3]].reshape(len(taps), -1, 2)[:, : self.words]
        starts = self.bias + self.rq.bias_shift << self.align
        rows = np.column_stack([starts, pairs[:, :, 0] & 0xFFFF | pairs[:, :, 1] << 16, numbers_of(self.rq)])
        even = len(rows) // 2 * 2
        blocks = [rows[:even].reshape(even // 2, 2 * rows.shape[1]), rows[even:]]
        return wrapped(np.concatenate([np.roll(block, 1, axis=1).reshape(-1) for block in blocks]))

    def kernel(self) -> tuple[str, str]:
        """(name, C text)."""
        s, out = self.shape, f"{self.quant.out_dtype}_t"
        x = self.quant.x_dtype
        name = f"held_{x}_{s.in_c}x{s.out_c}_{form_name(self.rq, self.quant.out_dtype)}"
        comment = (
            f"{s.in_c} channels of two pixels in registers, all {s.out_c} of their results; stream = for two "
            "channels start values, weights of two taps, requantisation: last word first."
        )
        parameters = f"const {x}_t *x, const int32_t *stream, {out} *y, uint32_t pairs"
        return name, dsp_function(name, comment, parameters, self._lines(), self._twin())

    @property
    def _held(self) -> tuple[str, ...]:
        """Registers of both pixels' words; the last one may be on the stack."""
        return _PIXELS[: 2 * self.words]

    @property
    def _more(self) -> tuple[str, ...]:
        """Registers beyond those of sums and weights."""
        last = _PIXELS[-1:] if self._on_stack else ()
        return (*_PIXELS[2 * self.words :], *last)

    @property
    def _on_stack(self) -> bool:
        """Whether the last word of the second pixel makes room: the form takes a register more."""
        return self.rq.form == "ties" and self.words == MOST_CHANNELS // 2

    def _load(self) -> list[tuple[str, int]]:
        """Registers that words of bytes are loaded into, and where these are: of the first two that they
        become."""
        at = [4 * k for k in range(self.stride // 4)]
        ins = self.shape.in_c
        return [(self._held[pixel * self.words + k // 2], pixel * ins + k)
                for pixel in (0, 1) for k in at]  # fmt: skip

    def _expanded(self) -> Schedule:
        """Bytes to pairs."""
        ext = "sxtb16" if self.quant.x_dtype == "int8" else "uxtb16"
        steps: Schedule = []
        for pixel in (0, 1):
            for k in range(0, self.words, 2):
                low = self._held[pixel * self.words + k]
                if k + 1 < self.words:
                    steps.append(op(f"{ext}_ror8", self._held[pixel * self.words + k + 1], low))
                steps.append(op(ext, low, low))
        return steps

    def _channel(self, first: int, last: bool) -> Schedule:
        """One channel of both pixels. first: its start's place in the block; last: of the block, so that the
        pointer moves on: its last word is the block's first."""
        a, b = _SUMS
        free, words = [*_FREE, *self._more], self.words
        variable = not self.rq.uniform_shift
        places = [*range(first, first + 1 + words + 2 + variable)]
        if last:
            places[-1] = 0

        def load(to: str, k: int) -> list[Load | Peek]:
            if places[k] == 0:
                return [Load((to,), "r1", skip=4 * (first + words + variable + 1))]
            return [Peek(to, "r1", 4 * places[k])]

        m, c = 1 + words, 2 + words
        at_once = len(free) >= words + 3 + variable
        steps: Schedule = [*load(a, 0)]
        if at_once:
            weights, numbers = free[:words], free[words:]
            steps += [one for k in range(words) for one in load(weights[k], 1 + k)]
            steps += [*load(numbers[0], m), *load(numbers[1], c)]
            steps += load(numbers[3], c + 1) if variable else []
            steps += self._products(range(words), weights)
            held = (numbers[0], numbers[1], numbers[2], numbers[3] if variable else "")
            return [*steps, *requantise(self.rq, (b, a), self.align, self.quant.out_dtype, held, [])]
        room = len(free) - self._on_stack
        for k in range(0, words, room):
            some = range(k, min(k + room, words))
            weights = free[: len(some)]
            steps += [one for w, n in zip(weights, some, strict=True) for one in load(w, 1 + n)]
            if self._on_stack and some[-1] == words - 1:
                steps.append(Peek(free[-1], "sp", 0, "spilled"))
            steps += self._products(some, weights)
        steps += [*load(free[0], m), *load(free[1], c)]
        spare = free[2] if len(free) > 2 else ""
        fetch = load(free[1], c + 1) if variable else []
        held = (free[0], free[1], spare, free[1])
        return [*steps, *requantise(self.rq, (b, a), self.align, self.quant.out_dtype, held, [*fetch])]

    def _products(self, words: range, weights: list[str]) -> Schedule:
        a, b = _SUMS
        steps: Schedule = []
        for k, w in zip(words, weights, strict=True):
            second = self._held[self.words + k]
            if self._on_stack and k == self.words - 1:
                second = self._more[-1]
            steps.append(op("smlad", b, second, w, b if k else a))
            steps.append(op("smlad", a, self._held[k], w, a))
        return steps

    def _lines(self) -> list[str]:
        s = self.shape
        a, b = _SUMS
        ins, outs = s.in_c, s.out_c
        row = 1 + self.words + numbers_of(self.rq).shape[1]
        store = [f"strb {b}, [r2, #{outs}]", f"strb {a}, [r2], #1"]
        spill = [f"str {self._held[-1]}, [sp]"] if self._on_stack else []
        block = [*assembly(self._channel(1, False)), *store, *assembly(self._channel(1 + row, True)), *store]
        odd = [*assembly(self._channel(1, True)), *store] if outs % 2 else []
        inner = (
            [".p2align 2", "2:", *block, "ldr lr, [sp, #16]", "cmp r1, lr", "bne.w 2b"] if outs > 3 else block
        )
        loads = [f"ldr {to}, [r0, #{at}]" for to, at in self._load()]
        return _wide([
            "push {r4-r11, lr}",
            "sub sp, sp, #20",
            f"movw r4, #{2 * ins}",
            "mla r5, r3, r4, r0", # behind the last pixel
            "str r5, [sp, #8]",
            "str r1, [sp, #12]",
            *([*based("r4", "r1", 8 * row * (outs // 2)), "str r4, [sp, #16]"] if outs > 3 else []),
            ".p2align 2",
            "1:",
            *loads,
            f"add r0, r0, #{2 * ins}",
            "str r0, [sp, #4]",
            *assembly(self._expanded()),
            *spill,
            *(inner if outs > 1 else []),
            *odd,
            "ldrd r0, r3, [sp, #4]",
            "ldr r1, [sp, #12]",
            f"addw r2, r2, #{outs}",
            "cmp r0, r3",
            "bne.w 1b",
            "add sp, sp, #20",
            "pop {r4-r11, pc}",
        ])  # fmt: skip

    def _twin(self) -> list[str]:
        s, out = self.shape, f"{self.quant.out_dtype}_t"
        a, b = _SUMS
        row = 1 + self.words + numbers_of(self.rq).shape[1]
        store = [f"y[{s.out_c}] = ({out}){b};", f"*y++ = ({out}){a};"]
        block = [*twin(self._channel(1, False)), *store, *twin(self._channel(1 + row, True)), *store]
        registers = sorted({*self._held, *_SUMS, *_FREE, *self._more} - {"r1"})
        written = "\n".join([*twin(self._expanded()), *block, *twin(self._channel(1, True))])
        used = [r for r in registers if f"{r} =" in written]
        loads = [f"memcpy(&{to}, x{f' + {at}' if at else ''}, 4);" for to, at in self._load()]
        pairs = loop_of("n", s.out_c // 2, *block) if s.out_c > 1 else []
        return [
            f"for (uint32_t pair = 0; pair < pairs; pair++, x += {2 * s.in_c}, y += {s.out_c}) {{",
            "const int32_t *r1 = stream;",
            f"int32_t {', '.join(used)};",
            *loads,
            *twin(self._expanded()),
            *([f"const int32_t spilled = {self._held[-1]};"] if self._on_stack else []),
            *pairs,
            *([*twin(self._channel(1, True)), *store] if s.out_c % 2 else []),
            "}",
        ]

    def code(self, tail: Tail | None, reading: Reading) -> KernelCode:
        """The kernel. Constants that wait are copied before; the sum of its scratch memory may be more than
        there is room for.
        """
        s, kind, out = self.shape, f"{self.quant.x_dtype}_t", f"{self.quant.out_dtype}_t"
        ins, outs, pixels = s.in_c, s.out_c, s.batch * s.out_h * s.out_w
        name, text = self.kernel()
        step = TOGETHER if tail else 2
        direct = max(pixels - ceil((self.stride - ins) / ins), 0) // step * step
        left = pixels - direct
        results = max(
            TOGETHER * (tail is not None and direct > 0), left + left % 2 if tail or left % 2 else 0
        )

        def finished(first: str, count: int) -> list[str]:
            """Hands `results` to the tail."""
            assert tail is not None
            where = ("0", "0", f"{first} + p")
            if isinstance(tail, RowTail):
                each = [tail.store_row(f"results + p * {outs}", (*where, "0"), outs).rstrip()]
            else:
                value = f"const int32_t v = results[p * {outs} + c];"
                each = loop_of("c", outs, value, tail.store("v", (*where, "c"), 1).rstrip())
            return loop_of("p", count, *each)

        nbytes = self.stream.nbytes
        waits = reading.waits(nbytes)
        stream = "staged" if waits else "weights"

        def call(source: str, to: str, count: int) -> str:
            return f"{name}({source}, {stream}, {to}, {count}u);"

        lines = [f"memcpy(staged, weights, {nbytes}); /* weights wait less in RAM */"] if waits else []
        if tail and direct:
            each = [call(f"x + pixel * {ins}", "results", TOGETHER // 2), *finished("pixel", TOGETHER)]
            lines += loop_of("pixel", direct, *each, step=TOGETHER)
        elif direct:
            lines.append(call("x", "y", direct // 2))
        if left:
            through = tail is not None or left % 2 > 0
            lines += [
                f"{kind} last[{(left + left % 2 - 1) * ins + self.stride}] = {{0}};",
                f"memcpy(last, x + {direct * ins}, {left * ins});",
                call("last", "results" if through else f"y + {direct * outs}", (left + 1) // 2),
            ]
            if tail:
                lines += finished(str(direct), left)
            elif through:
                lines.append(f"memcpy(y + {direct * outs}, results, {left * outs});")
        return KernelCode(
            body="\n".join(lines) + "\n",
            constants=(Packed("weights", self.stream, admissible=ANYTHING, layout=LAYOUT),),
            scratch=(
                *([Scratch("results", results * outs, 4, out)] if results else []),
                *([Scratch("staged", nbytes, 4, "int32_t")] if waits else []),
            ),
            includes=frozenset({HEADER}),
            helpers=(text,),
            slack=by_pixels(s, step, through_images=True),
            residual=residual(max(step, left), s),
            note=f"two pixels in registers, {ins} channels; requantisation: {self.rq.form}",
        )


LAYOUT = (
    "for each two channels: start value of the sums, two taps in each word, numbers of the requantisation, "
    "the last word before the first"
)


def held(shape: ConvShape, weights: Weights, bias: Bias, quant: QuantSpec, reading: Reading) -> Held | None:
    """The layer, if it is one of this kind and is faster so; weights [out_c, 1, 1, in_c]."""
    ins, outs, pixels = shape.in_c, shape.out_c, shape.batch * shape.out_h * shape.out_w
    few = shape.in_place and shape.groups == 1 and 1 < ins <= MOST_CHANNELS and outs <= FARTHEST
    saved = pixels * (SAVED_OF_PIXEL + SAVED_OF_RESULT * outs)
    if not few or quant.rounding is None or reading.compact or saved < LEAST_SAVING:
        return None
    w, b = fold_zero_point(weights.reshape(outs, ins), bias, quant)
    rq = plan(quant, *bounds(w, b, quant))
    if rq.form not in ("affine", "ties"):
        return None
    layer = Held(shape, quant, rq, w, b)
    nbytes = layer.stream.nbytes
    if reading.memory is None:
        return layer if nbytes <= UNKNOWN_BYTES else None
    pays = not reading.waits(nbytes) or reading.saving(nbytes, pixels // 2) >= LEAST_SAVING
    return layer if pays else None
