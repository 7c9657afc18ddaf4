"""Depthwise 3x3 convolution, int8, Helium: dot products over the taps of up to four outputs of one channel.

Two rows of the image are interleaved byte by byte into a row pair, so that two vertical neighbours of one
channel are one half-word. A gather of eight half-words then brings the 4 x 4 neighbourhood of one channel
into one vector, column by column, and VMLADAV with the 3 x 3 weights at one of four places in it gives an
output: 1 gather and 4 multiplications for 2 x 2 outputs. A channel's weights stay in registers along the
row. The four weight vectors are four unaligned reads of the same 12 bytes with zeros around:

    0 0 0 0  w00 w10 w20 0  w01 w11 w21 0  w02 w12 w22 0  (0 0 0 0, of the next channel)

Two row pairs are kept: a step fills one, then writes two rows of outputs, which may overwrite the input.
"""

from __future__ import annotations

import numpy as np

from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.channel_rows_mve import ByteEnd, channel_loop, row_kernel, rows_twin
from aot_model.kernels.int8.image_rows_mve import rows_to_tail
from aot_model.kernels.int8.requantise_mve import DEPTHWISE_HEADER, Ends, Requantiser, requantiser
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights
from aot_model.kernels.overlap import by_rows
from aot_model.kernels.row_tail import tail_helpers

STEP = 2
"""Rows of outputs that are made together."""


def depthwise3x3(
    shape: ConvShape, weights: Weights, bias: Bias, spec: QuantSpec, tail: Tail | None = None
) -> KernelCode:
    """3x3, stride 1, one output channel per input channel, at least two output columns: `applicable`.

    weights: int8 [3, 3, channels]. bias: int32 [channels]. tail: as for `conv`.
    """
    s = shape
    assert applicable(s), s
    matrix = np.asarray(weights, np.int8).reshape(9, s.out_c).T
    ends, spec = Ends.of(spec), Ends.of(spec).signed(spec)
    rq = requantiser(spec, matrix, bias)
    columns, used, pair = _row_pair(s)
    name, text = _row_kernel(s, rq)
    total = pair + 2 * s.in_c * columns
    scratch = [Scratch("pairs", total)]
    if tail is not None:
        scratch.append(ends.results(STEP * s.out_w * s.out_c))
    layout = "for each channel: a word of zeros, three of a column of taps and a zero each"
    constants = [Packed("w", _pack(matrix), admissible=ANYTHING, layout=layout)]
    layout = "for each channel: bias, numbers of the requantisation"
    constants.append(Packed("k", rq.numbers, admissible=ANYTHING, layout=layout))
    if rq.common_right is None:
        constants.append(Packed("right", rq.signed_shift, admissible=ANYTHING))
    constants.append(Packed("offsets", _offsets(s, pair)))
    fields = {
        "batch": s.batch, "in_h": s.in_h, "in_row": s.in_w * s.in_c, "out_h": s.out_h,
        "out_row": s.out_w * s.out_c, "pad_top": s.pad_top, "pair": pair, "left": 2 * s.pad_left * s.in_c,
        "used": used * s.in_c, "total": total, "fill": spec.x_zero_point,
        **({"unsigned_rows": 1} if ends.unsigned_x else {}),
    }  # fmt: skip
    geometry = "static const aot_mve_depthwise_shape shape = {\n"
    geometry += "".join(f"    .{name} = {value},\n" for name, value in fields.items()) + "};\n"
    right = "right" if rq.common_right is None else "NULL"
    unread = [2 * (j + 1) - s.pad_top if j else 0 for j in range(-(-s.out_h // STEP))]
    if tail is None:
        tables = f"w, k, {right}, offsets"
        body = f"{geometry}aot_mve_depthwise3x3(&shape, {name}, pairs, {ends.x}, {tables}, {ends.y});\n"
    else:
        body = geometry + _body(s, name, right, ends, tail)
    return KernelCode(
        body=body,
        constants=tuple(constants),
        scratch=tuple(scratch),
        includes=frozenset({DEPTHWISE_HEADER}),
        helpers=(*tail_helpers(tail), text),
        slack=by_rows(s.batch, s.in_h, s.in_w * s.in_c, s.out_h, s.out_w * s.out_c, STEP, unread),
        note=f"row pairs of {pair} bytes, 1 gather of 8 half-words per 36 MACs",
    )


def _row_pair(s: ConvShape) -> tuple[int, int, int]:
    """Columns of a row pair, those that the image fills, bytes from one pair to the other.

    The right border of one row pair is the left border of the other.
    """
    columns = s.out_w + 2
    used = max(min(s.in_w, columns - s.pad_left), 0)
    return columns, used, 2 * s.in_c * (columns - min(s.pad_left, columns - s.pad_left - used))


def applicable(s: ConvShape) -> bool:
    """Whether `depthwise3x3` takes a geometry: its offsets are 16 bits, its steps 12."""
    plain = (s.kernel_h, s.kernel_w, s.dilation_h, s.dilation_w, s.out_c) == (3, 3, 1, 1, s.in_c)
    if not plain or (s.stride_h, s.stride_w) != (1, 1) or s.out_w < 2 or s.in_c > 1000:
        return False
    return s.pad_left <= s.out_w and s.dense and _row_pair(s)[2] + 6 * s.in_c + 2 <= 65535


def cycles(s: ConvShape) -> float:
    """Of a Cortex-M55, for all outputs, about."""
    return s.batch * -(-s.out_h // 2) * s.out_c * (18 + 37 * -(-s.out_w // 2))


def _pack(matrix: np.ndarray) -> np.ndarray:
    """Weights [channels, 9] as described above, with one more row of zeros at both ends."""
    channels = len(matrix)
    records = np.zeros((channels, 4, 4), np.int8)
    records[:, 1:, :3] = matrix.reshape(channels, 3, 3).transpose(0, 2, 1)
    zeros = np.zeros(4, np.int8)
    return np.concatenate([zeros, records.reshape(-1), zeros])


def _offsets(s: ConvShape, pair: int) -> np.ndarray:
    """uint16 [3, 8]: half-words of the neighbourhood where the upper pair is the first or the second; outputs
    (u32).
    """
    column = np.repeat(np.arange(4) * 2 * s.in_c, 2)
    second = np.tile([0, pair], 4)
    outputs = np.array([0, s.out_c, s.out_w * s.out_c, (s.out_w + 1) * s.out_c])
    places = (column + second, column + pair - second)
    return np.concatenate([*(at.astype("<u2") for at in places), outputs.astype("<u4").view("<u2")])


def _row_kernel(s: ConvShape, rq: Requantiser) -> tuple[str, str]:
    """(name, text) of name(x, w, k, right, gather, scatter, rows, y): two rows, all channels.

    rows: how many rows of the output are left.
    """
    c, partial, end = s.out_c, s.out_h % 2 == 1, ByteEnd(rq)
    block = ["vldrh.u16 q0, [r1, q5]", f"addw r1, r1, #{4 * c}"]
    block += [f"vmladav.s8 {r}, q0, {q}"
              for r, q in zip(("r0", "r2", "r4", "r6"), ("q1", "q2", "q3", "q4"), strict=True)]  # fmt: skip
    block += end.finished(2 * c, partial)
    # Of a last single row only the first lanes are stored.
    limit = ["lsl r4, r4, #1", "vctp.32 r4"] if partial else []
    lines = ["vldrh.16 q5, [r0]", "vldrw.32 q6, [r2]", *limit, f"movw r9, #{c}"]
    per_channel = ["vldrb.8 q1, [r5, #4]", "vldrb.8 q3, [r5, #3]", "vldrb.8 q4, [r5, #-1]",
                   "vldrb.8 q2, [r5], #16", *end.load]  # fmt: skip
    per_channel += ["ldrsb r10, [r11], #1"] if rq.common_right is None else []
    lines += channel_loop(per_channel, block, s.out_w, 2, (4 * c, 2 * c), (2, 1))
    parameters = (
        "r1: const int8_t *x, r5: const int8_t *w, r7: const int32_t *k, r11: const int8_t *right, "
        "r0: const uint16_t *gather, r2: const uint16_t *scatter, r4: int32_t rows, r3: int8_t *y"
    )
    window = (
        f"const int8_t *from = x + column * {2 * s.in_c} + 2 * c;\n"
        "const int8_t *weight = w + 16 * c + 4 - lane / 2 - 4 * (lane % 2);"
    )
    store = end.stored(f"column * {s.out_c} + (int32_t)to[lane] + c", "right[c]")
    twin = f"""\
const int32_t lanes = {"rows > 1 ? 4 : 2" if partial else "4"};
uint32_t to[4];
(void)right;
(void)rows;
memcpy(to, scatter, sizeof to);
""" + rows_twin(s.out_c, s.out_w, 2, "lanes", window, 16, "from[gather[tap / 2] + tap % 2] * weight[tap]",
                store)  # fmt: skip
    comment = (
        f"Two rows of {counted(s.out_w, 'output')}, {counted(s.out_c, 'channel')}; x: row pairs, w: "
        "one past the leading zeros."
    )
    return row_kernel(f"aot_mve_depthwise3x3_c{s.out_c}", comment, parameters, lines, twin)


def _body(s: ConvShape, kernel: str, right: str, ends: Ends, tail: Tail) -> str:
    """The loops of aot_mve_depthwise3x3, the outputs of a step passing through `row` to the tail."""
    tables = f"w + 4, k, {right}, offsets + j % 2 * 8, offsets + 16"
    return f"""\
for (int32_t n = 0; n < {s.batch}; n++) {{
    const int8_t *image = {ends.x} + n * {s.in_h * s.in_w * s.in_c};
    aot_mve_fill(pairs, shape.fill, shape.total);
    aot_mve_depthwise3x3_step(&shape, 0, image, pairs);
    for (int32_t j = 0; j < {-(-s.out_h // STEP)}; j++) {{
        aot_mve_depthwise3x3_step(&shape, j + 1, image, pairs);
        {kernel}(pairs, {tables}, {s.out_h} - {STEP} * j, {ends.row});
        for (int32_t r = 0; r < {STEP} && {STEP} * j + r < {s.out_h}; r++) {{
            const int32_t oy = {STEP} * j + r;
{rows_to_tail(s, f"row + r * {s.out_w * s.out_c}", tail, ("n", "oy", "ox"))}}}
    }}
}}
"""
