"""The Helium micro-kernel of layers with 16-bit activations: one or two rows of x times all rows of weights.

VMLADAVA.S16 multiplies eight pairs and adds the products to a core register, of which it can name eight: a
block is two rows by four channels. Weights of bytes are widened as they are loaded. Eight taps of a block
take 6 loads for 8 multiplications, 64 MACs.

The weights are one stream in the order of reading: for each block of channels, for each eight taps, those of
each channel, a last group as long as it is; then the block's constants. In the last group only x is
predicated: what is loaded beyond a row of weights is multiplied by 0.
"""

from __future__ import annotations

import numpy as np

from aot_model.c.assembly import constant
from aot_model.c.words import counted
from aot_model.kernels.int8.mve import dot_function
from aot_model.kernels.int16.finish_mve import Ending

ACCUMULATORS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "r14")
BLOCK, LANES = 4, 8
STRAIGHT = 12
"""Groups of a block that are written without a loop; their offsets from a row's begin are in the loads."""
UNROLL = 8
LAYOUT = (
    "for each block of four channels: for each eight taps those of each channel; numbers of the "
    "requantisation"
)


def pack(weights: np.ndarray, ending: Ending, begin: int = 0) -> np.ndarray:
    """The stream of weights [channels, taps], int8 or int16, and constants, as bytes; begin: which channel of
    `ending` the first of them is. Channels beyond the last are zeros.
    """
    channels, taps = weights.shape
    blocks = -(-channels // BLOCK)
    padded = np.zeros((blocks * BLOCK, taps), weights.dtype.newbyteorder("<"))
    padded[:channels] = weights
    stream: list[np.ndarray] = []
    for first in range(0, blocks * BLOCK, BLOCK):
        rows = padded[first : first + BLOCK]
        stream += [np.frombuffer(rows[:, k : k + LANES].tobytes(), np.int8) for k in range(0, taps, LANES)]
        stream.append(ending.record(begin + first + np.arange(BLOCK)))
    return np.concatenate(stream)


def dot(taps: int, channels: int, w_bits: int, rows: int, ending: Ending) -> tuple[str, str]:
    """(name, text) of name(x0[, x1], w, channels, y0[, y1]): `rows` (1 or 2) rows of x of `taps` int16, all
    channels. Reads and writes exactly these; the two rows may be the same, then so may their outputs.
    """
    groups, rest = divmod(taps, LANES)
    straight = -(-taps // LANES) <= STRAIGHT
    x, y = ["x0", "x1"][:rows], ["y0", "y1"][:rows]
    partial = channels % BLOCK != 0
    predicate = [f"mov r0, #{rest}", "vctp.16 r0"] if rest else []
    lines = ["1:", *(predicate if partial else [])]
    lines += _straight(groups, rest, w_bits, rows) if straight else _looped(groups, rest, w_bits, rows)
    lines += _finish(ending, rows, partial)
    if not straight:
        lines += _rewound(x, 2 * taps)
    lines += [f"subs %[left], %[left], #{BLOCK}", "bgt 1b"]
    code = [*ending.limits(), *([] if partial else predicate), *lines]
    low = ["w", *y]  # widening loads and narrowing stores take low registers
    parameters = [*(f"const int16_t *{p}" for p in x), "const int8_t *w", "int32_t channels",
                  *(f"{ending.pointer}{p}" for p in y)]  # fmt: skip
    return dot_function(
        f"int16_mve_dot_{rows}x{BLOCK}_k{taps}",
        f"{counted(rows, 'row')} of {counted(taps, 'tap')} x all channels, {BLOCK} at a time.",
        ", ".join(parameters),
        [*low, "left", *x],
        [*low, "left", *([] if straight else x)],
        code,
        _twin(taps, w_bits, rows, ending),
    )


def _group(count: int, w_bits: int, rows: int, first: bool, offset: int | None) -> list[str]:
    """`count` taps: x in q0, q1, weights in q2, q3 by turns. offset None: the pointers to x advance."""
    lines, t = [], "t" if count < LANES else ""
    load, size = ("vldrb.s16", 1) if w_bits == 8 else ("vldrh.u16", 2)
    for c in range(BLOCK):
        weight = f"q{2 + c % 2}"
        lines.append(f"{load} {weight}, [%[w]], #{size * count}")
        for p in range(rows):
            if c == 0:
                at = f"[%[x{p}]], #{2 * count}" if offset is None else f"[%[x{p}], #{offset}]"
                lines += [*(["vpst"] if t else []), f"vldrh{t}.u16 q{p}, {at}"]
            lines.append(f"vmladav{'' if first else 'a'}.s16 {ACCUMULATORS[c * rows + p]}, q{p}, {weight}")
    return lines


def _straight(groups: int, rest: int, w_bits: int, rows: int) -> list[str]:
    counts = [LANES] * groups + ([rest] if rest else [])
    return [line for i, n in enumerate(counts) for line in _group(n, w_bits, rows, i == 0, 2 * LANES * i)]


def _looped(groups: int, rest: int, w_bits: int, rows: int) -> list[str]:
    """The first groups straight, then a loop of UNROLL. The count of channels waits in q7 meanwhile."""
    head = (groups - 1) % UNROLL + 1
    lines = [line for i in range(head) for line in _group(LANES, w_bits, rows, i == 0, None)]
    turns = (groups - head) // UNROLL  # one at least: these are more groups than are written straight
    lines += ["vmov.32 q7[0], %[left]", *constant("%[left]", turns), "2:"]
    lines += _group(LANES, w_bits, rows, False, None) * UNROLL
    lines += ["subs %[left], %[left], #1", "bne 2b", "vmov.32 %[left], q7[0]"]
    return lines + (_group(rest, w_bits, rows, False, None) if rest else [])


def _rewound(pointers: list[str], distance: int) -> list[str]:
    if distance < 4096:
        return [f"subw %[{p}], %[{p}], #{distance}" for p in pointers]
    return [*constant("r0", distance), *(f"sub %[{p}], %[{p}], r0" for p in pointers)]


def _finish(ending: Ending, rows: int, partial: bool) -> list[str]:
    """Sums to q6 and q7, a vector for each row of x; results, and their store."""
    f, lines, vectors = ending.finish, [], ["q6", "q7"][:rows]
    for p, q in enumerate(vectors):
        a = [ACCUMULATORS[c * rows + p] for c in range(BLOCK)]
        lines += [f"vmov {q}[2], {q}[0], {a[0]}, {a[2]}", f"vmov {q}[3], {q}[1], {a[1]}, {a[3]}"]
    lines += ["vldrw.32 q0, [%[w]], #16", "vldrw.32 q1, [%[w]], #16"]
    lines += [] if f.uniform_shift else ["vldrb.s32 q2, [%[w]], #4"]
    lines += constant("r0", f.zero) if f.zero else []
    for q in vectors:
        lines += [f"vadd.i32 {q}, {q}, q0", *ending.lines(q, "q1", "q2", "r0", "q3")]
    step, t = f.to.size * BLOCK, "t" if partial else ""
    lines += ["vctp.32 %[left]", "vps" + "t" * rows] if partial else []
    return lines + [f"{ending.store.format(t=t)} {q}, [%[y{p}]], #{step}" for p, q in enumerate(vectors)]


def _twin(taps: int, w_bits: int, rows: int, ending: Ending) -> str:
    """The same blocks in portable C."""
    f, size = ending.finish, w_bits // 8
    record = (8 if f.uniform_shift else 9) * BLOCK
    weight = "from[k]" if size == 1 else "weight"
    fetch = "" if size == 1 else f"int16_t weight;\n memcpy(&weight, from + {size} * k, {size});\n"
    put = f"(int{f.to.bits}_t){f'(uint{f.to.bits}_t)' if f.to.c_type.startswith('u') else ''}v"
    stores = "".join(
        "{\n"
        + "\n".join(ending.scalar(f"sum{p}", "start", "multiplier", f"numbers[{8 * BLOCK} + c]"))
        + f"\ny{p}[first + c] = {put};\n}}\n"
        for p in range(rows)
    )
    sums = "".join(f"int32_t sum{p} = 0;\n" for p in range(rows))
    adds = "".join(f"sum{p} += x{p}[begin + k] * {weight};\n" for p in range(rows))
    return f"""\
for (int32_t first = 0; first < channels; first += {BLOCK}, w += {size * taps * BLOCK + record}) {{
const int8_t *numbers = w + {size * taps * BLOCK};
for (int32_t c = 0; c < {BLOCK} && first + c < channels; c++) {{
int32_t start;
int32_t multiplier;
memcpy(&start, numbers + 4 * c, 4);
memcpy(&multiplier, numbers + {4 * BLOCK} + 4 * c, 4);
{sums}for (int32_t begin = 0; begin < {taps}; begin += {LANES}) {{
const int32_t count = {taps} - begin < {LANES} ? {taps} - begin : {LANES};
const int8_t *from = w + ({BLOCK} * begin + c * count) * {size};
for (int32_t k = 0; k < count; k++) {{
{fetch}{adds}}}
}}
{stores}}}
}}
"""
