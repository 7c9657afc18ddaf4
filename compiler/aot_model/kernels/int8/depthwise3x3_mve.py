"""Depthwise 3x3 convolution, int8, Helium: dot products over the taps of up to four outputs of one channel.

Two rows of the image are interleaved byte by byte into a row pair, so that two vertical neighbours of one
channel are one half-word. A gather of eight half-words then brings the 4 x 4 neighbourhood of one channel
into one vector, column by column, and VMLADAV with the 3 x 3 weights at one of four places in it gives an
output: 1 gather and 4 multiplications for 2 x 2 outputs (stride 1), 1 and 1 for each output (stride 2). A
channel's weights stay in registers along the row. The four weight vectors are four unaligned reads of the
same 12 bytes with zeros around:

    0 0 0 0  w00 w10 w20 0  w01 w11 w21 0  w02 w12 w22 0  (0 0 0 0, of the next channel)

Two row pairs are kept: a step fills one, then writes outputs, so the output may overwrite the input.
"""

from __future__ import annotations

import numpy as np

from aot_model.c.words import counted

from ...ir.admissible import ANYTHING
from ..base import ConvShape, KernelCode, Packed, Scratch, Tail
from ..overlap import by_rows
from .channel_rows_mve import (
    channel_loop,
    finished_block,
    load_numbers,
    row_kernel,
    rows_to_tail,
    rows_twin,
    scalar_result,
)
from .conv_mve import INCLUDES
from .requantise_mve import Requantiser, requantiser
from .row_tail import tail_helpers
from .spec import QuantSpec
from .unsigned_mve import Ends


def depthwise3x3(shape: ConvShape, weights: np.ndarray, bias: np.ndarray | None, spec: QuantSpec,
                 tail: Tail | None = None) -> KernelCode:  # fmt: skip
    """3x3, stride 1x1 or 2x2, one output channel per input channel, at least two output columns:
    `applicable`.

    weights: int8 [3, 3, channels]. bias: int32 [channels]. tail: as for `conv`.

    Raises:
        ValueError: any other geometry, or what `requantiser` does not have.
    """
    s = shape
    if not applicable(s):
        raise ValueError(f"not for the 3x3 depthwise kernel: {s}")
    matrix = np.asarray(weights, np.int8).reshape(9, s.out_c).T
    ends, spec = Ends.of(spec), Ends.of(spec).signed(spec)
    rq = requantiser(spec, matrix, bias)
    columns, used, pair = _row_pair(s)
    name, text = _row_kernel(s, rq)
    total = pair + 2 * s.in_c * columns
    step = 2 if s.stride_h == 1 else 1
    scratch = [Scratch("pairs", total)]
    if tail is not None:
        scratch.append(ends.results(step * s.out_w * s.out_c))
    constants = [
        Packed("w",
               _pack(matrix),
               admissible=ANYTHING,
               layout="for each channel: a word of zeros, three of a column of taps and a zero each"),
        Packed("k",
               rq.numbers,
               admissible=ANYTHING,
               layout="for each channel: bias, numbers of the requantisation")
    ]
    if rq.common_right is None:
        constants.append(Packed("right", rq.signed_shift, admissible=ANYTHING))
    constants.append(Packed("offsets", _offsets(s, pair)))
    fields = {
        "batch": s.batch, "in_h": s.in_h, "in_row": s.in_w * s.in_c, "out_h": s.out_h,
        "out_row": s.out_w * s.out_c, "pad_top": s.pad_top, "step": step, "pair": pair,
        "left": 2 * s.pad_left * s.in_c, "used": used * s.in_c, "total": total, "fill": spec.x_zero_point,
        **({"unsigned_rows": 1} if ends.unsigned_x else {}),
    }
    geometry = "static const aot_mve_depthwise_shape shape = {\n"
    geometry += "".join(f"    .{name} = {value},\n" for name, value in fields.items()) + "};\n"
    right = "right" if rq.common_right is None else "NULL"
    unread = [2 * (j + 1) - s.pad_top if j else 0 for j in range(-(-s.out_h // step))]
    if tail is None:
        tables = f"w, k, {right}, offsets"
        body = f"{geometry}aot_mve_depthwise3x3(&shape, {name}, pairs, {ends.x}, {tables}, {ends.y});\n"
    else:
        body = geometry + _body(s, name, right, ends, tail)
    return KernelCode(body=body,
                      constants=tuple(constants),
                      scratch=tuple(scratch),
                      includes=INCLUDES,
                      helpers=(*tail_helpers(tail), text),
                      slack=by_rows(s.batch, s.in_h, s.in_w * s.in_c, s.out_h, s.out_w * s.out_c, step,
                                    unread),
                      note=f"row pairs of {pair} bytes, " +
                      ("1 gather of 8 half-words per 36 MACs"
                       if s.stride_h == 1 else "1 gather of 8 half-words per 9 MACs"),
                      )


def _row_pair(s: ConvShape) -> tuple[int, int, int]:
    """Columns of a row pair, those that the image fills, bytes from one pair to the other.

    The right border of one row pair is the left border of the other.
    """
    columns = s.out_w + 2 if s.stride_w == 1 else 2 * max(s.out_w, 4) + 2
    used = max(min(s.in_w, columns - s.pad_left), 0)
    return columns, used, 2 * s.in_c * (columns - min(s.pad_left, columns - s.pad_left - used))


def applicable(s: ConvShape) -> bool:
    """Whether `depthwise3x3` takes a geometry: its offsets are 16 bits, its steps 12."""
    plain = (s.kernel_h, s.kernel_w, s.dilation_h, s.dilation_w, s.out_c) == (3, 3, 1, 1, s.in_c)
    if not plain or (s.stride_h, s.stride_w) not in ((1, 1), (2, 2)) or s.out_w < 2 or s.in_c > 1000:
        return False
    return s.pad_left <= s.out_w and s.dense and _row_pair(s)[2] + 6 * s.in_c + 2 <= 65535


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
    if s.stride_h == 1:
        outputs = np.array([0, s.out_c, s.out_w * s.out_c, (s.out_w + 1) * s.out_c])
    else:
        outputs = np.arange(4) * s.out_c
    return np.concatenate([(column + second).astype("<u2"), (column + pair - second).astype("<u2"),
                           outputs.astype("<u4").view("<u2")])


def _row_kernel(s: ConvShape, rq: Requantiser) -> tuple[str, str]:
    """(name, text) of name(x, w, k, right, gather, scatter, rows, y): two rows (one for stride 2), all
    channels.

    rows: how many rows of the output are left.
    """
    c, square = s.out_c, s.stride_h == 1
    across = 2 if square else 4
    x_step, y_step = (4 * c, 2 * c) if square else (16 * c, 4 * c)
    partial = (s.out_h % 2 == 1) if square else s.out_w < 4
    if square:
        block = ["vldrh.u16 q0, [r1, q5]", f"addw r1, r1, #{x_step}"]
        block += [
            f"vmladav.s8 {r}, q0, {q}"
            for r, q in zip(("r0", "r2", "r4", "r6"), ("q1", "q2", "q3", "q4"), strict=True)
        ]
        weights = [
            "vldrb.8 q1, [r5, #4]", "vldrb.8 q3, [r5, #3]", "vldrb.8 q4, [r5, #-1]", "vldrb.8 q2, [r5], #16"
        ]
    else:
        block = [
            line for r in ("r0", "r2", "r4", "r6")
            for line in ("vldrh.u16 q0, [r1, q5]", f"addw r1, r1, #{4 * c}", f"vmladav.s8 {r}, q0, q1")
        ]
        weights = ["vldrb.8 q1, [r5, #4]", "add r5, r5, #16"]
    block += finished_block(rq, y_step, partial)
    # A last single row of a pair of rows, or a row shorter than a block: only the first lanes are stored.
    limit = ["lsl r4, r4, #1" if square else f"mov r4, #{s.out_w}", "vctp.32 r4"] if partial else []
    lines = ["vldrh.16 q5, [r0]", "vldrw.32 q6, [r2]", *limit, f"movw r9, #{c}"]
    per_channel = [*weights, *load_numbers(rq)]
    per_channel += ["ldrsb r10, [r11], #1"] if rq.common_right is None else []
    lines += channel_loop(per_channel, block, s.out_w, across, (x_step, y_step), (2, 1))
    return _function(s, rq, lines, partial)


def _function(s: ConvShape, rq: Requantiser, lines: list[str], partial: bool) -> tuple[str, str]:
    parameters = [("const int8_t *", "x", "r1"), ("const int8_t *", "w", "r5"),
                  ("const int32_t *", "k", "r7")]
    parameters += [("const int8_t *", "right", "r11"), ("const uint16_t *", "gather", "r0")]
    parameters += [("const uint16_t *", "scatter", "r2"), ("int32_t ", "rows", "r4"), ("int8_t *", "y", "r3")]
    rows, across = (2, 2) if s.stride_h == 1 else (1, 4)
    row, start, shift = ("lane / 2", "column", "lane % 2") if rows == 2 else ("0", "(column + lane)", "0")
    lanes = ("rows > 1 ? 4 : 2" if rows == 2 else str(s.out_w)) if partial else "4"
    window = (f"const int8_t *from = x + {start} * {2 * s.in_c * s.stride_w} + 2 * c;\n"
              f"const int8_t *weight = w + 16 * c + 4 - {row} - 4 * ({shift});")
    store = f"y[column * {s.out_c} + (int32_t)to[lane] + c] = {scalar_result(rq, 'right[c]')};"
    twin = f"""\
const int32_t lanes = {lanes};
uint32_t to[4];
(void)right;
(void)rows;
memcpy(to, scatter, sizeof to);
""" + rows_twin(s.out_c, s.out_w, across, "lanes", window, 16,
                "from[gather[tap / 2] + tap % 2] * weight[tap]", store)
    comment = (f"{counted(rows, 'row')} of {counted(s.out_w, 'output')}, {counted(s.out_c, 'channel')}; "
               "x: row pairs, w: one past the leading zeros.")
    return row_kernel(f"aot_mve_depthwise3x3_s{s.stride_h}_c{s.out_c}", comment, parameters, lines, twin)


def _body(s: ConvShape, kernel: str, right: str, ends: Ends, tail: Tail) -> str:
    """The loops of aot_mve_depthwise3x3, the outputs of a step passing through `row` to the tail."""
    step = 2 if s.stride_h == 1 else 1
    tables = f"w + 4, k, {right}, offsets + j % 2 * 8, offsets + 16"
    return f"""\
for (int32_t n = 0; n < {s.batch}; n++) {{
    const int8_t *image = {ends.x} + n * {s.in_h * s.in_w * s.in_c};
    aot_mve_fill(pairs, shape.fill, shape.total);
    aot_mve_depthwise3x3_step(&shape, 0, image, pairs);
    for (int32_t j = 0; j < {-(-s.out_h // step)}; j++) {{
        aot_mve_depthwise3x3_step(&shape, j + 1, image, pairs);
        {kernel}(pairs, {tables}, {s.out_h} - {step} * j, {ends.row});
        for (int32_t r = 0; r < {step} && {step} * j + r < {s.out_h}; r++) {{
            const int32_t oy = {step} * j + r;
{rows_to_tail(s, f"row + r * {s.out_w * s.out_c}", tail, ("n", "oy", "ox"))}}}
    }}
}}
"""
