"""Depthwise convolution of any kernel size, int8, Helium: gathers of eight taps of one channel.

A gather of eight bytes, widened to int16, brings eight taps of one channel wherever they lie; VMLADAVA.S16
multiplies them with eight weights: 2 instructions per 8 taps. The channel's weights and the taps' offsets
stay in registers along the row where there are at most 16 taps. An image that needs padding passes through a
ring of padded rows, which also lets the output overwrite the input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.c.helpers import named_by_text

from ...ir.admissible import ANYTHING
from ..base import ConvShape, KernelCode, Packed, Scratch, Tail
from ..overlap import by_pixels, by_rows
from .channel_rows_mve import asm_statement, channel_loop, scalar_result, split_shift
from .conv_mve import INCLUDES, indent, is_dense, tail_helpers, tail_loop
from .requantise_mve import Requantiser, fold_zero_point, requantiser
from .spec import QuantSpec


@dataclass(frozen=True)
class _Plan:
    """Where the taps lie: a ring of `slots` padded rows of `row` bytes, or the image itself (slots = 0)."""

    shape: ConvShape
    chunks: int
    slots: int
    row: int
    multiplier: int

    @property
    def step(self) -> int:
        """Bytes from the window of one output to the next in the row."""
        return self.shape.stride_w * self.shape.in_c


def depthwise_taps(
    shape: ConvShape,
    weights: np.ndarray,
    bias: np.ndarray | None,
    spec: QuantSpec,
    tail: Tail | None = None,
) -> KernelCode:
    """Any kernel of up to 128 taps, stride, dilation, padding and channel multiplier.

    weights: int8 [kernel_h, kernel_w, out_c]. bias: int32 [out_c]. tail: as for `conv`.

    Raises:
        ValueError: a geometry that is not `applicable`, or what `requantiser` does not have.
    """
    s = along_the_row(shape)
    taps = s.kernel_h * s.kernel_w
    if not applicable(shape):
        raise ValueError(f"not for the depthwise kernel: {shape}")
    matrix = np.asarray(weights, np.int8).reshape(taps, s.out_c).T
    rq = requantiser(spec, s.out_c, fold_zero_point(matrix, bias, spec.x_zero_point))
    p = _plan(s)
    offsets = _offsets(p)
    name, text = _row_kernel(p, rq)
    order = np.arange(s.out_c).reshape(s.in_c, p.multiplier).T.reshape(-1)  # one run per multiple
    constants = [
        Packed("w", _pack(matrix[order], rq, order, p.chunks), admissible=ANYTHING),
        Packed("k", np.stack([rq.bias, rq.multiplier], 1)[order].astype(np.int32), admissible=ANYTHING),
        Packed("offsets", offsets),
    ]
    scratch = [Scratch("ring", p.slots * p.row)] if p.slots else []
    if tail is not None:
        scratch.append(Scratch("row", s.out_w * s.out_c))
    return KernelCode(
        body=_body(p, rq, name, spec.x_zero_point, tail, s is not shape),
        constants=tuple(constants),
        scratch=tuple(scratch),
        includes=INCLUDES,
        helpers=(text, *tail_helpers(tail)),
        slack=_slack(p),
        note=f"{shape.macs} MACs, {p.chunks} gather(s) of 8 taps per output, {p.slots} buffered rows",
    )


def applicable(shape: ConvShape) -> bool:
    """Whether `depthwise_taps` takes a geometry: steps are 12 bits, offsets 16, a channel's weights within
    reach.
    """
    s = along_the_row(shape)
    if s.out_c % s.in_c or s.out_c > 1023 or s.in_c * s.stride_w > 4095 or s.kernel_h * s.kernel_w > 128:
        return False
    p = _plan(s)
    span = (p.slots or (s.kernel_h - 1) * s.dilation_h + 1) - 1
    return is_dense(shape) and span * p.row + (s.kernel_w - 1) * s.dilation_w * s.in_c <= 65535


def along_the_row(s: ConvShape) -> ConvShape:
    """A convolution down a single column is one along a row: the memory is the same."""
    if (s.in_w, s.out_w, s.kernel_w, s.pad_left) != (1, 1, 1, 0):
        return s
    return replace(
        s, in_h=1, in_w=s.in_h, out_h=1, out_w=s.out_h, kernel_h=1, kernel_w=s.kernel_h, stride_h=1,
        stride_w=s.stride_h, dilation_h=1, dilation_w=s.dilation_h, pad_top=0, pad_left=s.pad_top,
    )  # fmt: skip


def _plan(s: ConvShape) -> _Plan:
    tall, wide = (s.kernel_h - 1) * s.dilation_h + 1, (s.kernel_w - 1) * s.dilation_w + 1
    columns = (s.out_w - 1) * s.stride_w + wide
    padded = s.pad_top > 0 or s.pad_left > 0 or (s.out_h - 1) * s.stride_h + tall > s.in_h or (
        s.out_w - 1) * s.stride_w + wide > s.in_w
    slots, row = (tall, columns * s.in_c) if padded else (0, s.in_w * s.in_c)
    return _Plan(s, -(-s.kernel_h * s.kernel_w // 8), slots, row, s.out_c // s.in_c)


def _offsets(p: _Plan) -> np.ndarray:
    """uint16 [phases, chunks, 8]: taps' offsets for each position of the ring's oldest row; outputs' (u32)
    behind.
    """
    s = p.shape
    rows = np.arange(s.kernel_h) * s.dilation_h
    columns = np.arange(s.kernel_w) * s.dilation_w * s.in_c
    phases = []
    for phase in range(max(p.slots, 1)):
        slot = (rows + phase) % p.slots if p.slots else rows
        taps = (slot[:, None] * p.row + columns[None, :]).reshape(-1)
        phases.append(np.append(taps, np.full(8 * p.chunks - len(taps), taps[0])))
    outputs = (np.arange(4) * s.out_c).astype("<u4").view("<u2")
    return np.concatenate([np.array(phases).reshape(-1).astype("<u2"), outputs])


def _pack(matrix: np.ndarray, rq: Requantiser, order: np.ndarray, chunks: int) -> np.ndarray:
    """Per channel: weights, zeros up to 8 * chunks, and the signed shift where channels differ in it."""
    padded = np.zeros((len(matrix), 8 * chunks + (rq.common_right is None)), np.int8)
    padded[:, : matrix.shape[1]] = matrix
    if rq.common_right is None:
        padded[:, -1] = rq.signed_shift[order]
    return padded.reshape(-1)


def _row_kernel(p: _Plan, rq: Requantiser) -> tuple[str, str]:
    """(name, text) of name(x, w, k, taps, scatter, y): one output row, every p.multiplier-th channel."""
    s = p.shape
    pixels = min(s.out_w, 4)
    accumulators = ("r0", "r2", "r4", "r6")[:pixels]
    resident = p.chunks <= 2
    record = 8 * p.chunks + (rq.common_right is None)
    block: list[str] = []
    if resident:
        for r in accumulators:
            for i in range(p.chunks):
                block += [f"vldrb.s16 q0, [r1, q{3 + i}]", f"vmladav{'a' if i else ''}.s16 {r}, q0, q{1 + i}"]
            block.append(f"addw r1, r1, #{p.step}")
    else:
        for i in range(p.chunks):
            block += [f"vldrb.s16 q1, [r5, #{8 * i}]", f"vldrh.16 q3, [r11, #{16 * i}]"]
            for r in accumulators:
                block += ["vldrb.s16 q0, [r1, q3]", f"vmladav{'a' if i else ''}.s16 {r}, q0, q1"]
                block.append(f"addw r1, r1, #{p.step}")
            if i + 1 < p.chunks:
                block += [f"subw r1, r1, #{p.step}"] * pixels if pixels * p.step > 4095 else [
                    f"subw r1, r1, #{pixels * p.step}"]  # fmt: skip
    block += ["vmov q0[2], q0[0], r0, r4", "vmov q0[3], q0[1], r2, r6", "vadd.i32 q0, q0, r12"]
    block += split_shift(rq) + rq.vector("q0", "q7", "r8", "r4", "r2" if rq.has_left else "r10") + rq.narrow(
        "q0", None, "q7")
    block += ["vpst", "vstrbt.32 q0, [r3, q6]"] if pixels < 4 else ["vstrb.32 q0, [r3, q6]"]
    block.append(f"addw r3, r3, #{pixels * s.out_c}")
    per_channel = ["ldrd r12, r8, [r7], #8"]
    per_channel += [f"ldrsb r10, [r5, #{8 * p.chunks}]"] if rq.common_right is None else []
    per_channel += [f"vldrb.s16 q{1 + i}, [r5, #{8 * i}]" for i in range(p.chunks) if resident]
    lines = [f"vldrh.16 q{3 + i}, [r11, #{16 * i}]" for i in range(p.chunks) if resident]
    lines += [
        "vldrw.32 q6, [r2]", *([f"mov r0, #{pixels}", "vctp.32 r0"] if pixels < 4 else []),
        f"movw r9, #{s.in_c}"
    ]
    steps = (pixels * p.step, pixels * s.out_c)
    # r5 moves on at the end of a channel, before the loop's own count.
    loop = channel_loop(per_channel, block, s.out_w, pixels, steps, (1, p.multiplier))
    lines += [*loop[:-2], f"addw r5, r5, #{record}", *loop[-2:]]
    parameters = [("const int8_t *", "x", "r1"), ("const int8_t *", "w", "r5"),
                  ("const int32_t *", "k", "r7")]
    parameters += [("const uint16_t *", "taps", "r11"), ("const uint16_t *", "scatter", "r2"),
                   ("int8_t *", "y", "r3")]
    right = f"w[{record} * c + {8 * p.chunks}]"
    body = f"""\
{{
#if AOT_MODEL_MVE
{asm_statement(parameters, lines)}#else
    uint32_t to[4];
    memcpy(to, scatter, sizeof to);
    for (int32_t c = 0; c < {s.in_c}; c++) {{
        for (int32_t block = 0; block < {s.out_w}; block += {pixels}) {{
            /* The last block covers outputs of the one before once more. */
            const int32_t column = block + {pixels} > {s.out_w} ? {s.out_w - pixels} : block;
            for (int32_t lane = 0; lane < {pixels}; lane++) {{
                const int8_t *from = x + (column + lane) * {p.step} + c;
                int32_t acc = 0;
                for (int32_t tap = 0; tap < {8 * p.chunks}; tap++) {{
                    acc += from[taps[tap]] * w[{record} * c + tap];
                }}
                y[column * {s.out_c} + (int32_t)to[lane] + c * {p.multiplier}] = {scalar_result(rq, right)};
            }}
        }}
    }}
#endif
}}
"""
    name = named_by_text(f"aot_mve_depthwise_t{s.kernel_h * s.kernel_w}_c{s.out_c}", body)
    taps = s.kernel_h * s.kernel_w
    comment = f"/* One row of {s.out_w} outputs, {s.in_c} channels, {taps} taps at given offsets. */\n"
    head = ", ".join(f"{t}{n}" for t, n, _ in parameters)
    return name, f"{comment}AOT_MODEL_NOINLINE static void {name}({head})\n{body}"


def _body(p: _Plan, rq: Requantiser, kernel: str, zero: int, tail: Tail | None, down: bool) -> str:
    s = p.shape
    image_row, out_row, table = s.in_w * s.in_c, s.out_w * s.out_c, 8 * p.chunks
    tall = (s.kernel_h - 1) * s.dilation_h + 1
    record = (table + (rq.common_right is None)) * s.in_c
    to = "row" if tail is not None else f"y + (n * {s.out_h} + oy) * {out_row}"
    inner = ""
    if p.slots:
        used = max(min(s.in_w, p.row // s.in_c - s.pad_left), 0) * s.in_c
        inner += f"""\
/* The ring holds the rows up to the last one of this window. */
for (; filled < oy * {s.stride_h} + {tall}; filled++) {{
    const int32_t line = filled - {s.pad_top};
    int8_t *slot = ring + filled % {p.slots} * {p.row} + {s.pad_left * s.in_c};
    if (line >= 0 && line < {s.in_h}) {{
        aot_mve_copy(slot, image + line * {image_row}, {used});
    }} else {{
        aot_mve_fill(slot, {zero}, {used});
    }}
}}
const uint16_t *taps = offsets + oy * {s.stride_h} % {p.slots} * {table};
"""
        x, taps = "ring", "taps"
    else:
        x, taps = f"image + oy * {s.stride_h * image_row}", "offsets"
    scatter = f"offsets + {max(p.slots, 1) * table}"
    if p.multiplier == 1:
        inner += f"{kernel}({x}, w, k, {taps}, {scatter}, {to});\n"
    else:
        call = f"{kernel}({x}, w + m * {record}, k + m * {2 * s.in_c}, {taps}, {scatter}, {to} + m);\n"
        inner += f"for (int32_t m = 0; m < {p.multiplier}; m++) {{\n{indent(call, 1)}}}\n"
    if tail is not None:
        at = ("n", "ox", "0") if down else ("n", "oy", "ox")
        loop = tail_loop(s.out_c, f"row + ox * {s.out_c}", at, tail)
        inner += f"for (int32_t ox = 0; ox < {s.out_w}; ox++) {{\n{indent(loop, 1)}}}\n"
    body = f"const int8_t *image = x + n * {s.in_h * image_row};\n"
    if p.slots:
        body += f"int32_t filled = 0;\naot_mve_fill(ring, {zero}, {p.slots * p.row});\n"
    body += f"for (int32_t oy = 0; oy < {s.out_h}; oy++) {{\n{indent(inner, 1)}}}\n"
    return f"for (int32_t n = 0; n < {s.batch}; n++) {{\n{indent(body, 1)}}}\n"


def _slack(p: _Plan) -> int | None:
    s = p.shape
    if not p.slots:
        return by_pixels(s, s.out_w, reread=True)
    tall = (s.kernel_h - 1) * s.dilation_h + 1
    unread = [(oy - 1) * s.stride_h + tall - s.pad_top if oy else 0 for oy in range(s.out_h)]
    return by_rows(s.batch, s.in_h, s.in_w * s.in_c, s.out_h, s.out_w * s.out_c, 1, unread)
