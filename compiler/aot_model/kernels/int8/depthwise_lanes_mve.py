"""Depthwise convolution, int8, Helium: eight channels in the lanes, one output after the other.

Helium has no product of lanes that adds to int32, and turning taps into lanes costs more than their products
where a window is used once or twice. So products are of 16 bits, and two of them make one sum of 16 bits,
u = 2^15 + x0 w0 + x1 w1, which is not negative and fits where no weight is -128. Of two neighbours, an even
channel and an odd one, the sums u_even + 2^16 u_odd are one word, which is added up in two ways:

    a += word                      the even channel's sum, and 2^16 times the odd one's, modulo 2^32
    b += word >> 16                the odd channel's sum

    even = a - 2^16 b

Both begin with the biases less what the 2^15 come to: 2 loads, 1 product and 2 sums for 8 taps. There is one
product in a sum where inputs are uint8 or a weight is -128; and where weights have a zero point, which they
lose in 16 bits, so that uint8 inputs become int8 before.

An image that needs padding passes through a ring of padded rows, which also lets the output overwrite the
input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.c.assembly import advance, constant
from aot_model.c.words import counted

from ...ir.admissible import ANYTHING
from ..base import ConvShape, KernelCode, Packed, Tail
from .channel_rows_mve import Ring, layer_code, ring_row, row_kernel, rows_to_tail
from .order_mve import ordered
from .requantise_mve import Requantiser, requantiser
from .spec import QuantSpec
from .unsigned_mve import Ends, padding

LANES = 8
MOST_TAPS = 64
"""Taps are written one after the other."""
_HALF = 1 << 15
_REACH = 127
"""Bytes that a load moves its address."""
_LAYOUT = ("for each eight channels: what sums begin with, weights of each tap, numbers of the "
           "requantisation")


@dataclass(frozen=True)
class _Plan:
    """Where the taps lie, and how many products are in a sum."""

    shape: ConvShape
    slots: int
    """Rows in the ring; 0: the image is read where it lies."""
    row: int
    pairs: bool
    """Whether two products are in a sum."""
    zero: int
    """Of the weights."""
    unsigned: bool
    """Whether what is multiplied is uint8."""

    @property
    def taps(self) -> int:
        return self.shape.kernel_h * self.shape.kernel_w

    @property
    def sums(self) -> int:
        """Sums of 16 bits of an output."""
        return -(-self.taps // 2) if self.pairs else self.taps

    @property
    def blocks(self) -> int:
        return -(-self.shape.in_c // LANES)

    @property
    def step(self) -> int:
        """Bytes from a tap to the next in its row."""
        return self.shape.dilation_w * self.shape.in_c

    @property
    def width(self) -> int:
        """Bytes from the first tap of a row to its last."""
        return (self.shape.kernel_w - 1) * self.step

    @property
    def products(self) -> int:
        """Of a sum of 16 bits."""
        return 2 if self.pairs else 1

    def moves(self, phase: int = 0) -> list[int]:
        """Bytes from the last tap of a row of the window to the first of the next, and from the last of all
        to the next block's first. phase: the slot of the window's first row."""
        s = self.shape
        rows = np.arange(s.kernel_h) * s.dilation_h
        at = ((rows + phase) % self.slots if self.slots else rows) * self.row
        return [int(d) - self.width for d in np.append(at[1:], at[0] + LANES) - at]


def applicable(shape: ConvShape) -> bool:
    """Whether `depthwise_lanes` takes a geometry: two channels are a word."""
    s = shape.along_row
    plain = s.out_c == s.in_c == s.groups and s.in_c % 2 == 0 and s.in_c <= 4094
    return plain and s.kernel_h * s.kernel_w <= MOST_TAPS and shape.dense


def _plan(shape: ConvShape, spec: QuantSpec, least: int) -> _Plan:
    """least: of the weights."""
    s, zero = shape.along_row, spec.weight_zero_point
    turned = zero != 0 and spec.x_dtype == "uint8"
    pairs = spec.x_dtype == "int8" and not zero and least > -128
    of_x = spec.x_dtype == "uint8" and not turned
    if s.inside and not turned:
        return _Plan(s, 0, s.in_w * s.in_c, pairs, zero, of_x)
    return _Plan(s, s.tall, ((s.out_w - 1) * s.stride_w + s.wide) * s.in_c, pairs, zero, of_x)


def cycles(shape: ConvShape, spec: QuantSpec) -> float:
    """Of a Cortex-M55, for all outputs, about."""
    p = _plan(shape, spec, -127)
    s, step = p.shape, 0 if p.step <= _REACH else p.taps
    sums = (10 if p.pairs else 6 + 2 * bool(p.zero)) * p.sums + step + 2 * bool(p.slots) * s.kernel_h
    return s.batch * s.out_h * (30 + s.out_w * (10 + p.blocks * (33 + sums)))


def depthwise_lanes(shape: ConvShape, weights: np.ndarray, bias: np.ndarray | None, spec: QuantSpec,
                    tail: Tail | None = None) -> KernelCode:  # fmt: skip
    """Any stride, dilation and padding of up to 64 taps, one output channel per input channel.

    weights: int8 [kernel_h, kernel_w, channels]. bias: int32 [channels]. tail: as for `conv`.

    Raises:
        ValueError: a layer that is not `applicable`, or what `requantiser` does not have.
    """
    if not applicable(shape):
        raise ValueError(f"not for the depthwise kernel: {shape}")
    ends, matrix = Ends.of(spec), np.asarray(weights, np.int8).reshape(-1, shape.out_c)
    p = _plan(shape, spec, int(matrix.min()))
    turned = ends.unsigned_x and not p.unsigned
    spec = ends.signed(spec) if turned else spec
    s, rq = p.shape, requantiser(spec, matrix.T, bias)
    kernel, text = _row_kernel(p, rq)
    constants = [Packed("w", _packed(p, rq, matrix), admissible=ANYTHING, layout=_LAYOUT)]
    x, moves, ring = f"image + oy * {s.stride_h * p.row}", "", None
    if p.slots:
        constants.append(Packed("moves", np.array([p.moves(k) for k in range(p.slots)], np.int32)))
        used, fill = max(min(s.in_w, p.row // s.in_c - s.pad_left), 0) * s.in_c, padding(spec)
        line = ring_row(s, p.slots, p.row, used, fill, ends.turned("to", used) if turned else "")
        ring = Ring(p.slots * p.row, fill, line, f"const int32_t slot = oy * {s.stride_h} % {p.slots};\n")
        x, moves = f"ring + slot * {p.row}", f"moves + slot * {s.kernel_h}, "
    to = ends.row if tail is not None else f"{ends.y} + (n * {s.out_h} + oy) * {s.out_w * s.out_c}"
    row = f"{kernel}({x}, w, {moves}{to});\n"
    if tail is not None:
        row += rows_to_tail(s, "row", tail, ("n", "ox", "0") if s is not shape else ("n", "oy", "ox"))
    note = f"{p.taps} taps of 8 channels, {p.products} in a sum of 16 bits, {p.slots} buffered rows"
    return layer_code(s, ends, text, row, constants, ring, tail, note)


def _packed(p: _Plan, rq: Requantiser, matrix: np.ndarray) -> np.ndarray:
    """The stream of weights [taps, channels] and numbers in the order of reading."""
    c = p.shape.in_c
    padded = np.zeros((p.taps, p.blocks * LANES), np.int8)
    padded[:, :c] = matrix
    bias = np.zeros(p.blocks * LANES, np.int64)
    bias[:c] = rq.bias
    bias -= p.sums * _HALF
    odd = bias[1::2]
    both = replace(rq, bias=np.stack([bias[::2] + (odd << 16), odd], 1).reshape(-1))
    stream = [rq.head()]
    for first in range(0, p.blocks * LANES, LANES):
        lanes = first + np.arange(LANES)
        records = [both.record(lanes[k::2]) for k in (0, 1)]
        stream += [*(r[:16] for r in records), padded[:, lanes].reshape(-1).view(np.uint8)]
        stream += [r[16:] for r in records]
    return np.concatenate(stream).view(np.int8)


def _row_kernel(p: _Plan, rq: Requantiser) -> tuple[str, str]:
    """(name, text) of name(x, w[, moves], y): one row of outputs.

    Registers: r1 tap, r5 stream, r3 output, r10 moves; r2 window, r11 stream's begin, r9 outputs left,
    r12 channels, r4 2^15, r6 from tap to tap, r7 minus the weights' zero point, r8 multiplier of all
    channels.
    """
    s = p.shape
    block = [*_sums(p), *_finish(rq)]
    each = s.stride_w * s.in_c
    lines = ["movw r4, #0x8000", f"movw r12, #{s.in_c}"]
    lines += constant("r6", p.step) if p.step > _REACH else []
    lines += constant("r7", -p.zero & 0xffff) if p.zero else []
    lines += ["ldr r8, [r11], #16"] if len(rq.head()) else []
    lines += [f"movw r9, #{s.out_w}", "1:"] if s.out_w > 1 else []
    lines += ["mov r1, r2", "mov r5, r11", "dlstp.16 lr, r12", "2:", *ordered(block), "letp lr, 2b"]
    if s.out_w > 1:
        lines += [*advance("r2", each, "r0"), *advance("r3", s.in_c - LANES * p.blocks, "r0"),
                  "subs r9, r9, #1", "bne 1b"]
    parameters = [("const int8_t *", "x", "r2"), ("const int8_t *", "w", "r11"),
                  *([("const int32_t *", "moves", "r10")] if p.slots else []), ("int8_t *", "y", "r3")]
    return row_kernel(f"aot_mve_depthwise_l{p.taps}_c{s.in_c}",
                      f"{counted(s.out_w, 'output')} in a row, {s.in_c} channels, {p.taps} taps each.",
                      parameters, lines, _twin(p, rq))


def _sums(p: _Plan) -> list[str]:
    """a in q6, b in q7, of the taps of a block; moves r1 to the next block's."""
    lines = ["vldrw.32 q6, [r5], #16", "vldrw.32 q7, [r5], #16"]
    products = p.products
    moves = np.full((p.shape.kernel_h, p.shape.kernel_w), p.step)
    moves[:, -1] = p.moves()
    for first in range(0, p.taps, products):
        total = f"q{2 + first // products % 2}"
        for k in range(first, min(first + products, p.taps)):
            row, column = divmod(k, p.shape.kernel_w)
            x, w = f"q{k - first}", total if k == first else "q4"
            lines += _tap(p, x, int(moves[row, column]), row if column + 1 == p.shape.kernel_w else None)
            lines.append(f"vldrb.s16 {w}, [r5], #{LANES}")
            lines += [f"vadd.i16 {w}, {w}, r7"] if p.zero else []
            lines.append(f"vmlas.s16 {w}, {x}, r4" if k == first else f"vmul.i16 {x}, {x}, {w}")
            lines += [f"vadd.i16 {total}, {total}, {x}"] if k > first else []
        lines += [f"vadd.i32 q6, q6, {total}", f"vshr.u32 q5, {total}, #16", "vadd.i32 q7, q7, q5"]
    return [*lines, "vshl.i32 q5, q7, #16", "vsub.i32 q6, q6, q5"]


def _tap(p: _Plan, x: str, move: int, row: int | None) -> list[str]:
    """Loads a tap, and moves r1 on. row: of the kernel, whose last tap it is."""
    load = f"vldrb.{'u' if p.unsigned else 's'}16 {x}, [r1]"
    if row is not None and p.slots:
        return [load, f"ldr r0, [r10, #{4 * row}]", "add r1, r1, r0"]
    if abs(move) <= _REACH:
        return [f"{load}, #{move}" if move else load]
    return [load, *(["add r1, r1, r6"] if move == p.step else advance("r1", move, "r0"))]


def _finish(rq: Requantiser) -> list[str]:
    """The even channels' sums are in q6, the odd ones' in q7: requantisation, store."""
    lines = []
    for acc, mult, right, temp in (("q6", "q0", "q1", "q2"), ("q7", "q3", "q4", "q5")):
        lines += [f"vldrw.32 {mult}, [r5], #16"] if rq.own_multipliers else []
        lines += [f"vldrb.s32 {temp}, [r5], #4"] if rq.has_left else []  # before it is spoilt
        lines += [f"vldrb.s32 {right}, [r5], #4"] if rq.common_right is None else []
        lines += rq.vector(acc, temp, mult if rq.own_multipliers else "r8", temp, right, "r0", "[r5], #16")
    return [*lines, *rq.narrow("q6", "q7", "q5"), f"vstrb.16 q6, [r3], #{LANES}"]


def _twin(p: _Plan, rq: Requantiser) -> str:
    """The same in C."""
    s, of_x = p.shape, "uint8_t" if p.unsigned else "int8_t"
    head, behind, own = len(rq.head()), 2 * 16 + LANES * p.taps, rq.record_bytes - 16
    words = []  # of the requantisation
    if rq.multiplies:
        words.append(("multiplier", "w" if head else "numbers + 4 * lane"))
    if rq.ties == "even":
        words.append(("tie", f"numbers + {rq.tie_at - 16} + 4 * lane"))
    names = ", ".join(["start = 0", "above = 0", *(f"{name} = 0" for name, _ in words)])
    copies = "\n".join(f"memcpy(&{name}, {place}, 4);" for name, place in words)
    shift = rq.shifts_at - 16
    result = rq.scalar("acc", "multiplier" if rq.multiplies else "0", f"numbers[{shift} + lane]",
                       f"numbers[{shift + 4 * rq.has_left} + lane]", "tie")
    return f"""\
for (int32_t ox = 0; ox < {s.out_w}; ox++) {{
    for (int32_t c = 0; c < {s.in_c}; c++) {{
        const int32_t lane = c % {LANES} / 2;
        const int8_t *record = w + {head} + c / {LANES} * {behind + 2 * own};
        const int8_t *weight = record + 32 + c % {LANES};
        const int8_t *numbers = record + {behind} + c % 2 * {own};
        const {of_x} *from = (const {of_x} *)x + ox * {s.stride_w * s.in_c} + c;
        int32_t acc = 0;
        for (int32_t ky = 0; ky < {s.kernel_h}; ky++) {{
            for (int32_t kx = 0; kx < {s.kernel_w}; kx++, weight += {LANES}) {{
                acc += from[kx * {p.step}] * {f"(*weight - ({p.zero}))" if p.zero else "*weight"};
            }}
            from += {f"{p.width} + moves[ky]" if p.slots else s.dilation_h * p.row};
        }}
        int32_t {names};
        memcpy(&start, record + 4 * lane, 4);
        memcpy(&above, record + 16 + 4 * lane, 4);
        start = c % 2 ? above : (int32_t)((uint32_t)start - ((uint32_t)above << 16));
        acc = (int32_t)((uint32_t)acc + (uint32_t)start + {p.sums * _HALF}u);
        {copies}
        (void)numbers;
        y[ox * {s.in_c} + c] = {result};
    }}
}}
"""
