"""Convolution in plain C, for every core, geometry, group count and weight zero point.

Two pixels x two channels share their loads (one x two on ARMv6-M, which has eight registers for it). A
pixel's patch is read where it lies if it is one run of bytes (1x1), else gathered into `patch` with the zero
point for what is outside of the image, so that the inner loop knows of no padding. Weights are interleaved in
the order of the loop.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.patch_dsp import needs_assembly, run_helper
from aot_model.kernels.int8.requantise import fold_zero_point
from aot_model.kernels.int8.rows import Rows, less
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.overlap import by_pixels, residual


def _largest_divisor(value: int, limit: int) -> int:
    return next(n for n in range(limit, 0, -1) if value % n == 0)


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

    nibbles: weights of 4 bits stay two in a byte, those of two channels for the same tap; a channel left over
    has bytes.
    """
    s = shape
    oc, per_in, per_out = s.out_c, s.in_c // s.groups, s.out_c // s.groups
    w, b = fold_zero_point(weights.reshape(oc, -1), bias, quant)
    rows = Rows.of(weights.dtype, w, b, quant)
    width, taps = rows.width, w.shape[1]
    pixels, channels = block
    count = s.batch * s.out_h * s.out_w
    pixels = min(pixels, count)
    dense = s.strides == ConvShape(s.batch, s.in_h, s.in_w, s.in_c, s.out_h, s.out_w, s.out_c).strides
    pointwise = s.kernel_h == s.kernel_w == s.stride_h == s.stride_w == 1 and s.keeps_size
    direct = pointwise and not needs_assembly(s) and dense
    flat = weights.reshape(oc, taps)
    offset = 8 if weights.dtype.kind == "i" else 0  # of a nibble from the weight
    channels = channels if per_out >= channels else 1
    packed = []
    for g in range(s.groups):
        part = flat[g * per_out : (g + 1) * per_out]
        whole = per_out - per_out % channels
        packed.append(part[:whole].reshape(-1, channels, taps).transpose(0, 2, 1).reshape(-1))
        packed.append(part[whole:].reshape(-1))
    helpers = [*rows.helpers()]
    if nibbles:
        packed = [_pairs(v, offset) if k % 2 == 0 and channels == 2 else v for k, v in enumerate(packed)]
    constants = [
        Packed("weights",
               np.concatenate([v.view(np.uint8) for v in packed]) if nibbles else np.concatenate(packed),
               admissible=ANYTHING,
               layout=f"for each {channels} channels: for each tap those of each channel" * (channels > 1)),
        rows.packed(),
    ]
    scratch: list[Scratch] = []
    x_type, out = f"{quant.x_dtype}_t", f"{quant.out_dtype}_t"
    run = ""
    if not direct:
        run_text = ""
        assemble = needs_assembly(s)
        if assemble:
            run, run_text = run_helper(s, quant)
            helpers.append(run_text)
            scratch.append(Scratch("border", s.kernel_w * s.in_c, 4, x_type))
        scratch.append(Scratch("patch", pixels * taps * s.groups, 4, x_type))

    # ---- the innermost block: `p` pixels by `c` channels at `from<i>`, weights at `w`
    sum_type, sum_cast = rows.sums()
    unroll = _largest_divisor(taps, 8)
    zero = less(quant.weight_zero_point)

    def weight(k: int, c: int, j: int) -> str:
        """Weight of channel j and step k of c channels, without its zero point."""
        if not nibbles:
            return f"w[{k * c + j}]{zero}"
        if c == 1:
            return f"({weights.dtype.name}_t)w[{k}]{zero}"
        return f"(int32_t)(w[{k}] {'>> 4' if j else '& 15'})" + less(quant.weight_zero_point + offset)

    def block_lines(p: int, c: int) -> list[str]:
        lines = [f"{sum_type} sum{i}{j} = {sum_cast}table[{j * width}];" for i in range(p) for j in range(c)]
        lines += [f"const {x_type} *at{i} = from{i};" for i in range(p)]
        lines.append(f"for (const {x_type} *end = at0 + {taps}; at0 != end;) {{")
        for k in range(unroll):
            lines.append("    {")
            lines += [f"        const int32_t w{j} = {weight(k, c, j)};" for j in range(c)]
            lines += [f"        const int32_t x{i} = at{i}[{k}];" for i in range(p)]
            lines += [f"        sum{i}{j} += {sum_cast}(x{i} * w{j});" for i in range(p) for j in range(c)]
            lines.append("    }")
        lines.append(f"    w += {unroll if nibbles else unroll * c};")
        lines += [f"    at{i} += {unroll};" for i in range(p)]
        lines.append("}")
        for i in range(p):
            for j in range(c):
                lines += ["{", f"    int32_t v = (int32_t)sum{i}{j};"]
                lines += ["    " + t for t in rows.finish(f"table + {j * width + 1}")]
                channel = f"c + {j}" if j else "c"
                pixel = f"pixel + {i}" if i else "pixel"
                if tail is None:
                    lines.append(f"    y[({pixel}) * {oc} + {channel}] = ({out})v;")
                else:
                    lines += ["    " + t for t in tail.store("v", ("0", "0", pixel, channel), 1).splitlines()]
                lines.append("}")
        lines.append(f"table += {c * width};")
        return lines

    def group_lines(p: int) -> list[str]:
        whole = per_out - per_out % channels
        lines: list[str] = []
        first, last = ("0", str(whole)) if s.groups == 1 else (f"g * {per_out}", f"g * {per_out} + {whole}")
        lines += [f"for (int32_t c = {first}; c < {last}; c += {channels}) {{"]
        lines += ["    " + t for t in block_lines(p, channels)] + ["}"]
        if per_out % channels:
            end = str(per_out) if s.groups == 1 else f"(g + 1) * {per_out}"
            lines += [f"for (int32_t c = {last}; c < {end}; c++) {{"]
            lines += ["    " + t for t in block_lines(p, 1)] + ["}"]
        return lines

    def gather_lines(p: int) -> list[str]:
        if direct:
            return [f"const {x_type} *from{i} = x + (pixel + {i}) * {s.in_c};" for i in range(p)]
        n = "" if s.batch == 1 else f" + place / {s.out_h * s.out_w} * {s.strides[0]}"
        within = "place" if s.batch == 1 else f"place % {s.out_h * s.out_w}"
        length = s.kernel_w * s.in_c
        _, sy, sx, _ = s.strides
        position = f"top + ky * {s.dilation_h}"
        where = f"x{n} + ({position}) * {sy} + left * {sx}" if not run else (f"{run}(x{n}, {position}, left, "
                                                                             "border)")
        copy = [f"memcpy(to, from, {length});", f"to += {length};"]
        if s.groups > 1:
            size = s.kernel_h * s.kernel_w * per_in
            copy = [
                f"for (int32_t kx = 0; kx < {s.kernel_w}; kx++) {{",
                f"    for (int32_t g = 0; g < {s.groups}; g++, from += {per_in}) {{",
                f"        memcpy(to + g * {p * size} + kx * {per_in}, from, {per_in});",
                "    }",
                "}",
                f"to += {s.kernel_w * per_in};",
            ]
            start = f"patch + i * {size}"
        else:
            start = f"patch + i * {taps}"
        return [
            f"for (int32_t i = 0; i < {p}; i++) {{",
            "    const int32_t place = pixel + i;",
            f"    const int32_t top = {within} / {s.out_w} * {s.stride_h} - {s.pad_top};",
            f"    const int32_t left = {within} % {s.out_w} * {s.stride_w} - {s.pad_left};",
            f"    {x_type} *to = {start};",
            f"    for (int32_t ky = 0; ky < {s.kernel_h}; ky++) {{",
            f"        const {x_type} *from = {where};",
            *("        " + t for t in copy),
            "    }",
            "}",
        ]

    def pixel_lines(p: int) -> list[str]:
        weight_type = "uint8_t" if nibbles else f"{weights.dtype.name}_t"
        lines = gather_lines(p)
        lines += [f"const {weight_type} *w = weights;", "const int32_t *table = requantisation;"]
        if direct and s.groups == 1:
            return lines + group_lines(p)
        if direct:
            starts = [f"const {x_type} *in{i} = from{i};" for i in range(p)]
            lines = [t.replace("*from", "*pixel_at") for t in lines]
            starts = [f"const {x_type} *from{i} = pixel_at{i} + g * {per_in};" for i in range(p)]
        else:
            base = f"patch + g * {p * taps} + " if s.groups > 1 else "patch + "
            starts = [f"const {x_type} *from{i} = {base}{i * taps};" for i in range(p)]
        if s.groups == 1:
            return lines + starts + group_lines(p)
        return [
            *lines, f"for (int32_t g = 0; g < {s.groups}; g++) {{",
            *("    " + t for t in starts + group_lines(p)), "}"
        ]

    whole = count - count % pixels
    lines = [
        f"for (int32_t pixel = 0; pixel < {whole}; pixel += {pixels}) {{",
        *("    " + t for t in pixel_lines(pixels)), "}"
    ]
    if count % pixels:
        lines += [
            f"for (int32_t pixel = {whole}; pixel < {count}; pixel++) {{",
            *("    " + t for t in pixel_lines(1)), "}"
        ]
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
