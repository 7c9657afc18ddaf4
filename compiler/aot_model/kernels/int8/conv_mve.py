"""Convolution, int8, Helium: two pixels at a time through the dot-product micro-kernel.

The taps of two pixels are copied next to each other (a patch, channels last: kernel_w * in_c bytes of a kernel row are
contiguous in the image), taps outside of the image as the zero point, so that the inner loop knows no borders. The
copy costs 2 instructions per 16 bytes and pixel, against 14 per 16 bytes and 8 outputs in the micro-kernel; it allows
the output to overwrite pixels that were consumed.
"""

from __future__ import annotations


import numpy as np

from ..base import ConvShape, KernelCode, Packed, Scratch, Tail
from .dot_mve import dot, pack
from .patch_mve import patch_copier
from .requantise_mve import HELPERS, fold_zero_point, requantiser
from .spec import QuantSpec

INCLUDES = frozenset({"<stdint.h>", "<string.h>"})


def conv(
    shape: ConvShape,
    weights: np.ndarray,
    bias: np.ndarray | None,
    spec: QuantSpec,
    tail: Tail | None = None,
    vector_tail: bool = False,
) -> KernelCode:
    """2-D convolution, groups = 1, any kernel, stride, dilation and padding.

    weights: int8 [out_c, kernel_h, kernel_w, in_c]. bias: int32 [out_c]. tail: gets the requantised, clamped outputs
    instead of the store to y: int32x4_t for lanes = 4 (vector_tail), int32_t for lanes = 1. The slack holds for a tail
    too that stores one byte per element.

    Raises:
        ValueError: groups, a strided input, or what `requantiser` does not have.
    """
    if shape.groups != 1:
        raise ValueError("grouped convolution")
    if shape.strides != (shape.in_h * shape.in_w * shape.in_c, shape.in_w * shape.in_c, shape.in_c, 1):
        raise ValueError("the input must be dense, channels last")
    depth = shape.kernel_h * shape.kernel_w * shape.in_c
    matrix = np.asarray(weights, np.int8).reshape(shape.out_c, depth)
    folded, bound = fold_zero_point(matrix, bias, spec.x_zero_point)
    rq = requantiser(spec, shape.out_c, folded, bound)
    kernel = dot(depth, shape.out_c, rq, 2, 4)
    patch = patch_copier(shape, spec.x_zero_point)
    scratch = [Scratch("patch", 2 * kernel.depth + patch.overrun)]
    if tail is not None:
        scratch.append(Scratch("row", 2 * shape.out_c))
    return KernelCode(
        body=_body(shape, kernel.name, kernel.depth, patch.name, tail, vector_tail),
        constants=(Packed("w", pack(matrix, rq, 4)),),
        scratch=tuple(scratch),
        includes=INCLUDES | ({"<arm_mve.h>"} if vector_tail else frozenset()),
        helpers=(*HELPERS, *patch.helpers, kernel.text),
        slack=_slack(shape),
        note=f"{shape.macs} MACs, {kernel.note}, patch of {2 * kernel.depth} bytes",
    )


def _body(shape: ConvShape, kernel: str, depth: int, patch: str, tail: Tail | None, vector_tail: bool) -> str:
    pixels = shape.out_h * shape.out_w
    image_in, image_out = shape.in_h * shape.in_w * shape.in_c, pixels * shape.out_c
    odd = pixels % 2 == 1
    step = f"if (++ox == {shape.out_w}) {{\n    ox = 0;\n    oy++;\n}}\n"
    inner = f"{patch}(patch, image, oy, ox);\n"
    if tail is not None:
        inner = "const int32_t oy0 = oy, ox0 = ox;\n" + inner
    inner += step
    first = "row" if tail is not None else f"out + p * {shape.out_c}"
    if odd:
        inner += f"const int8_t *x1 = patch;\nint8_t *y0 = {first};\nint8_t *y1 = y0;\nif (p + 1 < {pixels}) {{\n"
        second = f"x1 = patch + {depth};\ny1 += {shape.out_c};\n{patch}(patch + {depth}, image, oy, ox);\n"
        inner += indent(second + ("" if tail is not None else step), 1) + "}\n"
        inner += f"{kernel}(patch, x1, w, y0, y1);\n"
    else:
        inner += f"{patch}(patch + {depth}, image, oy, ox);\n" + ("" if tail is not None else step)
        inner += f"{kernel}(patch, patch + {depth}, w, {first}, {first} + {shape.out_c});\n"
    if tail is not None:
        inner += tail_loop(shape.out_c, "row", ("n", "oy0", "ox0"), tail, vector_tail)
        second = tail_loop(shape.out_c, f"row + {shape.out_c}", ("n", "oy", "ox"), tail, vector_tail) + step
        inner += f"if (p + 1 < {pixels}) {{\n{indent(second, 1)}}}\n" if odd else second
    body = f"const int8_t *image = x + n * {image_in};\n"
    if tail is None:
        body += f"int8_t *out = y + n * {image_out};\n"
    body += f"int32_t oy = 0;\nint32_t ox = 0;\nfor (int32_t p = 0; p < {pixels}; p += 2) {{\n{indent(inner, 1)}}}\n"
    return f"for (int32_t n = 0; n < {shape.batch}; n++) {{\n{indent(body, 1)}}}\n"


def tail_loop(channels: int, row: str, pixel: tuple[str, str, str], tail: Tail, vector_tail: bool) -> str:
    """Hands the int8 results of one pixel at `row` to the fused tail."""
    each = tail.store(f"(int32_t)({row})[c]", (*pixel, "c"), lanes=1)
    scalar = f"for (int32_t c = START; c < {channels}; c++) {{\n{indent(each, 1)}}}\n"
    if not vector_tail or channels < 4:
        return scalar.replace("START", "0")
    whole = channels - channels % 4
    four = tail.store("acc", (*pixel, "c"), lanes=4)
    inner = f"const int32x4_t acc = vldrbq_s32({row} + c);\n{four}"
    vector = f"for (int32_t c = 0; c < {whole}; c += 4) {{\n{indent(inner, 1)}}}\n"
    rest = scalar.replace("START", str(whole)) if channels % 4 else ""
    return f"#if AOT_MODEL_MVE\n{vector}{rest}#else\n{scalar.replace('START', '0')}#endif\n"


def indent(text: str, levels: int) -> str:
    lines = text.rstrip("\n").split("\n")
    return "".join(f"{'    ' * levels if line and not line.startswith('#') else ''}{line}\n" for line in lines)


def _slack(shape: ConvShape) -> int:
    """Largest address(y) - address(x) at which no pair of pixels overwrites input that a later pair reads."""
    s = shape
    rows = first_tap(s.out_h, s.stride_h, s.dilation_h, s.pad_top, s.kernel_h, s.in_h)
    columns = first_tap(s.out_w, s.stride_w, s.dilation_w, s.pad_left, s.kernel_w, s.in_w)
    image_in, pixels = s.in_h * s.in_w * s.in_c, s.out_h * s.out_w
    first = (rows[:, None] * s.in_w + columns[None, :]).reshape(-1) * s.in_c
    first = (np.arange(s.batch)[:, None] * image_in + first[None, :]).reshape(-1)
    needed = np.minimum.accumulate(first[::-1])[::-1]
    ends = np.concatenate([n * pixels + np.append(np.arange(2, pixels, 2), pixels) for n in range(s.batch)])
    ends = ends[ends < s.batch * pixels]
    return int(np.min(needed[ends] - ends * s.out_c)) if len(ends) else s.batch * image_in


def first_tap(outputs: int, stride: int, dilation: int, pad: int, taps: int, size: int) -> np.ndarray:
    """Smallest input coordinate inside of the image that each output reads; `size` where there is none."""
    at = np.arange(outputs)[:, None] * stride - pad + np.arange(taps)[None, :] * dilation
    return np.where((at >= 0) & (at < size), at, size).min(axis=1)
