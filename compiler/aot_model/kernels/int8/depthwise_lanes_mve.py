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

from aot_model.c.assembly import constant
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.int8.channel_lanes_mve import LANES, Walk, takes
from aot_model.kernels.int8.image_rows_mve import layer_code, rows_to_tail
from aot_model.kernels.int8.requantise_mve import Ends, Requantiser, padding, requantiser
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights

_HALF = 1 << 15
_LAYOUT = "for each eight channels: what sums begin with, weights of each tap, numbers of the requantisation"


@dataclass(frozen=True)
class _Plan:
    """Where the taps lie, and how many products are in a sum."""

    walk: Walk
    pairs: bool
    """Whether two products are in a sum."""
    zero: int
    """Of the weights."""
    unsigned: bool
    """Whether what is multiplied is uint8."""

    @property
    def products(self) -> int:
        """Of a sum of 16 bits."""
        return 2 if self.pairs else 1

    @property
    def sums(self) -> int:
        """Sums of 16 bits of an output."""
        return -(-self.walk.taps // self.products)


def _plan(shape: ConvShape, spec: QuantSpec, least: int) -> _Plan:
    """least: of the weights."""
    zero = spec.weight_zero_point
    turned = zero != 0 and spec.x_dtype == "uint8"
    pairs = spec.x_dtype == "int8" and not zero and least > -128
    return _Plan(Walk.of(shape.along_row, ring=turned), pairs, zero, spec.x_dtype == "uint8" and not turned)


def cycles(shape: ConvShape, spec: QuantSpec) -> float:
    """As of `Walk`."""
    p = _plan(shape, spec, -127)
    return p.walk.cycles((10 if p.pairs else 6 + 2 * bool(p.zero)) * p.sums)


def depthwise_lanes(
    shape: ConvShape, weights: Weights, bias: Bias, spec: QuantSpec, tail: Tail | None = None
) -> KernelCode:
    """Any stride, dilation and padding of up to 64 taps, one output channel per input channel.

    weights: int8 [kernel_h, kernel_w, channels]. bias: int32 [channels]. tail: as for `conv`.
    """
    assert takes(shape), shape
    ends, matrix = Ends.of(spec), np.asarray(weights, np.int8).reshape(-1, shape.out_c)
    p = _plan(shape, spec, int(matrix.min()))
    turned = ends.unsigned_x and not p.unsigned
    spec = ends.signed(spec) if turned else spec
    walk, rq = p.walk, requantiser(spec, matrix.T, bias)
    s = walk.shape
    kernel, text = _row_kernel(p, rq)
    constants = [Packed("w", _packed(p, rq, matrix), admissible=ANYTHING, layout=_LAYOUT)]
    x, moves, slot = walk.first, "", ""
    if walk.slots:
        constants.append(Packed("moves", walk.table()))
        slot = f"const int32_t slot = oy * {s.stride_h} % {walk.slots};\n"
        x, moves = f"ring + slot * {walk.row}", f"moves + slot * {s.kernel_h}, "
    ring = walk.ring(padding(spec), slot, ends.turned("to", "{count}") if turned else "")
    to = ends.row if tail is not None else f"{ends.y} + (n * {s.out_h} + oy) * {s.out_w * s.out_c}"
    row = f"{kernel}({x}, w, {moves}{to});\n"
    if tail is not None:
        row += rows_to_tail(s, "row", tail, ("n", "ox", "0") if s is not shape else ("n", "oy", "ox"))
    note = f"{walk.taps} taps of 8 channels, {p.products} in a sum of 16 bits, {walk.slots} buffered rows"
    return layer_code(s, ends, text, row, constants, ring, tail, note)


def _packed(p: _Plan, rq: Requantiser, matrix: np.ndarray) -> np.ndarray:
    """The stream of weights [taps, channels] and numbers in the order of reading."""
    c = matrix.shape[1]
    bias = np.zeros(p.walk.blocks * LANES, np.int64)
    bias[:c] = rq.bias
    bias -= p.sums * _HALF
    odd = bias[1::2]
    both = replace(rq, bias=np.stack([bias[::2] + (odd << 16), odd], 1).reshape(-1))
    return np.concatenate([rq.head().view(np.int8), p.walk.packed(matrix, both.record)])


def _row_kernel(p: _Plan, rq: Requantiser) -> tuple[str, str]:
    """(name, text) of name(x, w[, moves], y): one row of outputs. r4 is 2^15, r7 minus the weights' zero
    point, r8 the multiplier of all channels.
    """
    begin = ["movw r4, #0x8000", *(constant("r7", -p.zero & 0xffff) if p.zero else []),
             *(["ldr r8, [r11], #16"] if len(rq.head()) else [])]  # fmt: skip
    lines = p.walk.row_lines(begin, [*_sums(p), *_finish(rq)], 1)
    return p.walk.kernel("aot_mve", "int8_t", "int8_t", lines, _twin(p, rq))


def _sums(p: _Plan) -> list[str]:
    """The even channels' sums of a block in q6, the odd ones' in q7."""
    lines = ["vldrw.32 q6, [r5], #16", "vldrw.32 q7, [r5], #16"]
    load, taps = f"vldrb.{'u' if p.unsigned else 's'}16", p.walk.taps
    for first in range(0, taps, p.products):
        total = f"q{2 + first // p.products % 2}"
        for k in range(first, min(first + p.products, taps)):
            x, w = f"q{k - first}", total if k == first else "q4"
            lines += [*p.walk.tap(k, load, x), f"vldrb.s16 {w}, [r5], #{LANES}"]
            lines += [f"vadd.i16 {w}, {w}, r7"] if p.zero else []
            lines.append(f"vmlas.s16 {w}, {x}, r4" if k == first else f"vmul.i16 {x}, {x}, {w}")
            lines += [f"vadd.i16 {total}, {total}, {x}"] if k > first else []
        lines += [f"vadd.i32 q6, q6, {total}", f"vshr.u32 q5, {total}, #16", "vadd.i32 q7, q7, q5"]
    return [*lines, "vshl.i32 q5, q7, #16", "vsub.i32 q6, q6, q5"]


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
    of_x, head = "uint8_t" if p.unsigned else "int8_t", len(rq.head())
    words = []  # of the requantisation
    if rq.multiplies:
        words.append(("multiplier", "w" if head else "numbers + 4 * lane"))
    if rq.ties == "even":
        words.append(("tie", f"numbers + {rq.tie_at - 16} + 4 * lane"))
    names = ", ".join(["start = 0", "above = 0", *(f"{name} = 0" for name, _ in words)])
    copies = "\n".join(f"memcpy(&{name}, {place}, 4);" for name, place in words)
    shift = rq.shifts_at - 16
    result = rq.scalar(
        "acc",
        "multiplier" if rq.multiplies else "0",
        f"numbers[{shift} + lane]",
        f"numbers[{shift + 4 * rq.has_left} + lane]",
        "tie",
    )
    finish = f"""\
int32_t {names};
memcpy(&start, record + 4 * lane, 4);
memcpy(&above, record + 16 + 4 * lane, 4);
start = c % 2 ? above : (int32_t)((uint32_t)start - ((uint32_t)above << 16));
acc = (int32_t)((uint32_t)acc + (uint32_t)start + {p.sums * _HALF}u);
{copies}
(void)numbers;"""
    weight = f"(*weight - ({p.zero}))" if p.zero else "*weight"
    return p.walk.twin(head, rq.record_bytes, of_x, weight, finish, result)
