"""Convolution in plain C, for every core, geometry, group count and weight zero point.

Two pixels x two channels share their loads (one x two on ARMv6-M, which has eight registers for it). A
pixel's patch is read where it lies if it is one run of bytes (1x1), else gathered into `patch` with the zero
point for what is outside of the image, so that the inner loop knows of no padding. Weights are interleaved in
the order of the loop.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aot_model.c.text import loop_of
from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import Rows, less
from aot_model.kernels.int8.patch_dsp import needs_assembly, run_helper
from aot_model.kernels.int8.requantise import fold_zero_point
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.overlap import by_pixels, residual

LONG = 64
"""Taps beside which it is nothing to take an offset from a half of a word."""


def conv(
    shape: ConvShape,
    weights: npt.NDArray[np.integer],
    bias: npt.NDArray[np.int32] | None,
    quant: QuantSpec,
    tail: Tail | None = None,
    block: tuple[int, int] = (2, 2),
    nibbles: bool = False,
) -> KernelCode:
    """Convolution, grouped ones too; weights [out_c, kernel_h, kernel_w, in_c / groups]; block: pixels x
    channels.

    nibbles: weights of 4 bits, of one group, stay two in a byte, those of two channels for the same tap; a
    channel left over has bytes.
    """
    assert not nibbles or shape.groups == 1
    s = shape
    oc, per_in, per_out = s.out_c, s.in_c // s.groups, s.out_c // s.groups
    w, b = fold_zero_point(weights.reshape(oc, -1), bias, quant)
    channels = block[1] if per_out >= block[1] else 1
    taps = w.shape[1]
    paired = channels == 2 and per_out % 2 == 0 and (nibbles or taps >= LONG)
    rows = Rows.of(weights.dtype, w, b, quant, paired, nibbles)
    count = s.batch * s.out_h * s.out_w
    pixels = min(block[0], count)
    direct = s.in_place
    flat = weights.reshape(oc, taps)
    offset = 8 if weights.dtype.kind == "i" else 0  # of a nibble from the weight
    packed = []
    for g in range(s.groups):
        part = flat[g * per_out : (g + 1) * per_out]
        whole = per_out - per_out % channels
        packed.append(part[:whole].reshape(-1, channels, taps).transpose(0, 2, 1).reshape(-1))
        packed.append(part[whole:].reshape(-1))
    helpers = [*rows.helpers()]
    if nibbles and channels == 2:
        packed[0] = _pairs(packed[0], offset)
    constants = [
        Packed(
            "weights",
            np.concatenate([v.view(np.uint8) for v in packed]) if nibbles else np.concatenate(packed),
            admissible=ANYTHING,
            layout=f"for each {channels} channels: for each tap those of each channel" * (channels > 1),
        ),
        rows.packed(),
    ]
    scratch: list[Scratch] = []
    x_type, out = f"{quant.x_dtype}_t", f"{quant.out_dtype}_t"
    run = ""
    if not direct and needs_assembly(s):
        run, run_text = run_helper(s, quant)
        helpers.append(run_text)
        scratch.append(Scratch("border", s.kernel_w * s.in_c, 4, x_type))
    if not direct:
        scratch.append(Scratch("patch", pixels * taps * s.groups, 4, x_type))

    # ---- the innermost block: `p` pixels by `c` channels at `from<i>`, weights at `w`
    sum_type, sum_cast = rows.sums()
    most = 2 if nibbles else 8  # 4 bits: where flash is short
    unroll = next(n for n in range(most, 0, -1) if taps % n == 0)
    zero = less(quant.weight_zero_point)

    def weight(k: int, c: int, j: int) -> str:
        """Weight of channel j and step k of c channels, without its zero point."""
        if not nibbles:
            return f"w[{k * c + j}]{zero}"
        if c == 1:
            return f"({weights.dtype.name}_t)w[{k}]{zero}"
        return f"(int32_t)(w[{k}] {'>> 4' if j else '& 15'})" + less(quant.weight_zero_point + offset)

    def block_lines(p: int, c: int) -> list[str]:
        starts = [f"{sum_cast}{rows.start('table', j)}" for j in range(c)]
        lines = [f"{sum_type} sum{i}{j} = {start};" for i in range(p) for j, start in enumerate(starts)]
        lines += [f"const {x_type} *at{i} = from{i};" for i in range(p)]
        lines.append(f"for (const {x_type} *end = at0 + {taps}; at0 != end;) {{")
        for k in range(unroll):
            lines += [
                "{",
                *(f"const int32_t w{j} = {weight(k, c, j)};" for j in range(c)),
                *(f"const int32_t x{i} = at{i}[{k}];" for i in range(p)),
                *(f"sum{i}{j} += {rows.as_sum(f'x{i} * w{j}')};" for i in range(p) for j in range(c)),
                "}",
            ]
        lines.append(f"w += {unroll if nibbles else unroll * c};")
        lines += [*(f"at{i} += {unroll};" for i in range(p)), "}"]
        for i in range(p):
            for j in range(c):
                channel, pixel = f"c + {j}", f"pixel + {i}"
                store = f"y[({pixel}) * {oc} + {channel}] = ({out})v;"
                if tail is not None:
                    store = tail.store("v", ("0", "0", pixel, channel), 1).rstrip()
                lines += [
                    "{",
                    f"int32_t v = {rows.as_int(f'sum{i}{j}')};",
                    *rows.finish_of("table", j),
                    store,
                    "}",
                ]
        return [*lines, f"table += {rows.step(c)};"]

    def group_lines(p: int) -> list[str]:
        whole = per_out - per_out % channels
        first, last, end = "0", str(whole), str(per_out)
        if s.groups > 1:
            first, last, end = f"g * {per_out}", f"g * {per_out} + {whole}", f"(g + 1) * {per_out}"
        lines = [f"for (int32_t c = {first}; c < {last}; c += {channels}) {{", *block_lines(p, channels), "}"]
        if per_out % channels:
            lines += [f"for (int32_t c = {last}; c < {end}; c++) {{", *block_lines(p, 1), "}"]
        return lines

    def gather_lines(p: int) -> list[str]:
        n = "" if s.batch == 1 else f" + place / {s.out_h * s.out_w} * {s.strides[0]}"
        within = "place" if s.batch == 1 else f"place % {s.out_h * s.out_w}"
        _, sy, sx, _ = s.strides
        position = f"top + ky * {s.dilation_h}"
        where = f"x{n} + ({position}) * {sy} + left * {sx}"
        where = f"{run}(x{n}, {position}, left, border)" if run else where
        size = taps if s.groups == 1 else s.kernel_h * s.kernel_w * per_in
        copy = [f"memcpy(to, from, {s.kernel_w * s.in_c});", f"to += {s.kernel_w * s.in_c};"]
        if s.groups > 1:
            own = f"memcpy(to + g * {p * size} + kx * {per_in}, from, {per_in});"
            copy = loop_of("kx", s.kernel_w, *loop_of("g", s.groups, own, more=f"from += {per_in}"))
            copy.append(f"to += {s.kernel_w * per_in};")
        begin = [
            "const int32_t place = pixel + i;",
            f"const int32_t top = {within} / {s.out_w} * {s.stride_h} - {s.pad_top};",
            f"const int32_t left = {within} % {s.out_w} * {s.stride_w} - {s.pad_left};",
            f"{x_type} *to = patch + i * {size};",
        ]
        rows = loop_of("ky", s.kernel_h, f"const {x_type} *from = {where};", *copy)
        return loop_of("i", p, *begin, *rows)

    def pixel_lines(p: int) -> list[str]:
        """The patches, then all groups of `p` pixels: from<i> is where the taps of pixel i in a group lie."""
        group = "" if s.groups == 1 else f"g * {per_in if direct else p * taps} + "
        at = [f"x + (pixel + {i}) * {s.in_c}" if direct else f"patch + {group}{i * taps}" for i in range(p)]
        lines = [] if direct else gather_lines(p)
        if direct and s.groups > 1:
            lines = [f"const {x_type} *pixel_at{i} = {start};" for i, start in enumerate(at)]
            at = [f"pixel_at{i} + g * {per_in}" for i in range(p)]
        starts = [f"const {x_type} *from{i} = {start};" for i, start in enumerate(at)]
        kind = "uint8" if nibbles else weights.dtype.name
        lines += [f"const {kind}_t *w = weights;", "const int32_t *table = requantisation;"]
        if s.groups == 1:
            return [*lines, *starts, *group_lines(p)]
        return [*lines, *loop_of("g", s.groups, *starts, *group_lines(p))]

    whole, lines = count - count % pixels, []
    for first, end, p in ((0, whole, pixels), (whole, count, 1)):
        if first < end:
            lines += [f"for (int32_t pixel = {first}; pixel < {end}; pixel += {p}) {{", *pixel_lines(p), "}"]
    return KernelCode(
        body="\n".join(lines) + "\n",
        constants=tuple(constants),
        scratch=tuple(scratch),
        includes=frozenset({HEADER}),
        helpers=tuple(helpers),
        slack=by_pixels(s, pixels, reread=direct, through_images=True),
        residual=residual(pixels, s),
        note=f"{counted(pixels, 'pixel')} x {counted(channels, 'channel')}; requantisation: {rows.rq.form}",
    )


def _pairs(weights: npt.NDArray[np.integer], offset: int) -> npt.NDArray[np.uint8]:
    """Two weights in a byte, the first in the low half, without a sign."""
    flat = weights.astype(np.int16) + offset
    return np.asarray(flat[::2] | flat[1::2] << 4, dtype=np.uint8)
