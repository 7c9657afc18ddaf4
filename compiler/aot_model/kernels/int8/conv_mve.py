"""Convolution, int8, Helium: two pixels at a time through the dot-product micro-kernel.

The taps of two pixels are copied next to each other (a patch, channels last: kernel_w * in_c bytes of a
kernel row are contiguous in the image), taps outside of the image as the zero point, so that the inner loop
knows no borders. The copy costs 2 instructions per 16 bytes and pixel, against 14 per 16 bytes and 8 outputs
in the micro-kernel; it allows the output to overwrite pixels that were consumed.
"""

from __future__ import annotations

import numpy as np

from ...ir.admissible import ANYTHING
from ..base import ConvShape, KernelCode, Packed, Scratch, Tail
from ..overlap import by_pixels, residual
from .dot_mve import LAYOUT, dot, pack
from .patch_mve import patch_copier
from .requantise_mve import HEADER, requantiser, supports
from .row_tail import tail_helpers, tail_loop
from .spec import QuantSpec

INCLUDES = frozenset({HEADER})


def applicable(shape: ConvShape, spec: QuantSpec) -> bool:
    """Whether `conv` takes a layer: one group, dense input, sums of products that stay in int32."""
    depth = shape.kernel_h * shape.kernel_w * shape.in_c
    return shape.groups == 1 and shape.dense and depth < 1 << 17 and supports(spec)


def conv(shape: ConvShape, weights: np.ndarray, bias: np.ndarray | None, spec: QuantSpec,
         tail: Tail | None = None) -> KernelCode:  # fmt: skip
    """2-D convolution, groups = 1, any kernel, stride, dilation and padding.

    weights: int8 [out_c, kernel_h, kernel_w, in_c]. bias: int32 [out_c]. tail: gets the requantised, clamped
    outputs instead of the store to y, one at a time. The slack holds for a tail too that stores one byte per
    element.

    Raises:
        ValueError: a layer that is not `applicable`.
    """
    if not applicable(shape, spec):
        raise ValueError(f"not for the Helium convolution: {shape}, {spec}")
    depth = shape.kernel_h * shape.kernel_w * shape.in_c
    matrix = np.asarray(weights, np.int8).reshape(shape.out_c, depth)
    rq = requantiser(spec, matrix, bias)
    kernel = dot(depth, shape.out_c, rq, 2, 4)
    if shape.pointwise and tail is None:
        pixels = shape.batch * shape.out_h * shape.out_w
        sizes = f"{pixels}, {depth}, {kernel.depth}, {shape.out_c}"
        return KernelCode(
            body=f"aot_mve_pointwise({kernel.name}, {sizes}, patch, x, w, y);\n",
            constants=(Packed("w", pack(matrix, rq, 4), admissible=ANYTHING, layout=LAYOUT),),
            scratch=(Scratch("patch", 2 * kernel.depth),),
            includes=INCLUDES,
            helpers=(kernel.text,),
            slack=by_pixels(shape, 2, through_images=True),
            note=f"{kernel.note}, patch of {2 * kernel.depth} bytes",
        )
    patch = patch_copier(shape, spec.x_zero_point)
    scratch = [Scratch("patch", 2 * kernel.depth + patch.overrun)]
    if tail is not None:
        scratch.append(Scratch("row", 2 * shape.out_c))
    return KernelCode(
        body=_body(shape, kernel.name, kernel.depth, patch.name, tail),
        constants=(Packed("w", pack(matrix, rq, 4), admissible=ANYTHING, layout=LAYOUT),),
        scratch=tuple(scratch),
        includes=INCLUDES,
        helpers=(*patch.helpers, kernel.text, *tail_helpers(tail)),
        slack=by_pixels(shape, 2),
        residual=residual(2, shape),
        note=f"{kernel.note}, patch of {2 * kernel.depth} bytes",
    )


def _body(shape: ConvShape, kernel: str, depth: int, patch: str, tail: Tail | None) -> str:
    pixels, oc = shape.out_h * shape.out_w, shape.out_c
    pair = f"(p + 1 < {pixels} ? 2 : 1)" if pixels % 2 else "2"
    to = "row" if tail is not None else f"out + p * {oc}"
    step = f"if (++ox == {shape.out_w}) {{\n    ox = 0;\n    oy++;\n}}\n"
    inner = "const int32_t oy0 = oy, ox0 = ox;\n" if tail is not None else ""
    fill = f"{patch}(patch + i * {depth}, image, oy, ox);\n{step}"
    inner += f"for (int32_t i = 0; i < {pair}; i++) {{\n{fill}}}\n"
    if pixels % 2:
        inner += f"const int32_t second = (p + 1 < {pixels} ? 1 : 0);\nint8_t *to = {to};\n"
        inner += f"{kernel}(patch, patch + second * {depth}, w, {oc}, to, to + second * {oc});\n"
    else:
        inner += f"{kernel}(patch, patch + {depth}, w, {oc}, {to}, {to} + {oc});\n"
    out = f"int8_t *out = y + n * {pixels * oc};\n" if tail is None else ""
    if tail is not None:
        each = tail_loop(oc, f"row + i * {oc}", ("n", "oy", "ox"), tail) + step
        inner += f"oy = oy0;\nox = ox0;\nfor (int32_t i = 0; i < {pair}; i++) {{\n{each}}}\n"
    return f"""\
for (int32_t n = 0; n < {shape.batch}; n++) {{
    const int8_t *image = x + n * {shape.in_h * shape.in_w * shape.in_c};
    {out}int32_t oy = 0;
    int32_t ox = 0;
    for (int32_t p = 0; p < {pixels}; p += 2) {{
{inner}}}
}}
"""
