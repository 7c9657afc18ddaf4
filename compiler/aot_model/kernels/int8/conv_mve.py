"""Convolution, int8, Helium: two pixels at a time through the dot-product micro-kernel.

The taps of two pixels are copied next to each other (a patch, channels last: kernel_w * in_c bytes of a
kernel row are contiguous in the image), taps outside of the image as the zero point, so that the inner loop
knows no borders. The copy costs 2 instructions per 16 bytes and pixel, against 14 per 16 bytes and 8 outputs
in the micro-kernel; it allows the output to overwrite pixels that were consumed.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from ...ir.admissible import ANYTHING
from ..base import ConvShape, KernelCode, Packed, Scratch, Tail
from ..overlap import by_pixels, residual
from .dot_mve import LAYOUT, dot, pack
from .patch_mve import patch_copier
from .requantise_mve import HEADER, fold_zero_point, requantiser, supports
from .spec import QuantSpec

INCLUDES = frozenset({HEADER})

def _is_pointwise(s: ConvShape) -> bool:
    """1x1, stride 1, no padding: output pixel i is input pixel i."""
    return (s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.in_h, s.in_w) == (1, 1, 1, 1, s.out_h, s.out_w)


def is_dense(s: ConvShape) -> bool:
    """Whether the input lies dense, channels last."""
    return s.strides == (s.in_h * s.in_w * s.in_c, s.in_w * s.in_c, s.in_c, 1)


def applicable(shape: ConvShape, spec: QuantSpec) -> bool:
    """Whether `conv` takes a layer: one group, dense input, sums of products that stay in int32."""
    depth = shape.kernel_h * shape.kernel_w * shape.in_c
    return shape.groups == 1 and is_dense(shape) and depth < 1 << 17 and supports(spec)


def conv(
    shape: ConvShape,
    weights: np.ndarray,
    bias: np.ndarray | None,
    spec: QuantSpec,
    tail: Tail | None = None,
) -> KernelCode:
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
    rq = requantiser(spec, shape.out_c, fold_zero_point(matrix, bias, spec.x_zero_point))
    kernel = dot(depth, shape.out_c, rq, 2, 4)
    if _is_pointwise(shape) and tail is None:
        pixels = shape.batch * shape.out_h * shape.out_w
        sizes = f"{pixels}, {depth}, {kernel.depth}, {shape.out_c}"
        return KernelCode(
            body=f"aot_mve_pointwise({kernel.name}, {sizes}, patch, x, w, y);\n",
            constants=(Packed("w", pack(matrix, rq, 4), admissible=ANYTHING, layout=LAYOUT),),
            scratch=(Scratch("patch", 2 * kernel.depth),),
            includes=INCLUDES,
            helpers=(kernel.text,),
            slack=by_pixels(shape, 2, through_images=True),
            note=f"{shape.macs} MACs, {kernel.note}, patch of {2 * kernel.depth} bytes",
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
        note=f"{shape.macs} MACs, {kernel.note}, patch of {2 * kernel.depth} bytes",
    )


def _body(shape: ConvShape, kernel: str, depth: int, patch: str, tail: Tail | None) -> str:
    pixels = shape.out_h * shape.out_w
    image_in, image_out = shape.in_h * shape.in_w * shape.in_c, pixels * shape.out_c
    odd = pixels % 2 == 1
    pair = f"(p + 1 < {pixels} ? 2 : 1)" if odd else "2"
    second = f"(p + 1 < {pixels} ? 1 : 0)" if odd else "1"
    to = "row" if tail is not None else f"out + p * {shape.out_c}"
    step = f"if (++ox == {shape.out_w}) {{\n    ox = 0;\n    oy++;\n}}\n"
    inner = "const int32_t oy0 = oy, ox0 = ox;\n" if tail is not None else ""
    fill = f"{patch}(patch + i * {depth}, image, oy, ox);\n{step}"
    inner += f"for (int32_t i = 0; i < {pair}; i++) {{\n{indent(fill, 1)}}}\n"
    if odd:
        inner += f"const int32_t second = {second};\nint8_t *to = {to};\n"
        inner += (f"{kernel}(patch, patch + second * {depth}, w, {shape.out_c}, to, to + second * "
                  f"{shape.out_c});\n")
    else:
        inner += f"{kernel}(patch, patch + {depth}, w, {shape.out_c}, {to}, {to} + {shape.out_c});\n"
    if tail is not None:
        each = tail_loop(shape.out_c, f"row + i * {shape.out_c}", ("n", "oy", "ox"), tail) + step
        inner += f"oy = oy0;\nox = ox0;\nfor (int32_t i = 0; i < {pair}; i++) {{\n{indent(each, 1)}}}\n"
    body = f"const int8_t *image = x + n * {image_in};\n"
    if tail is None:
        body += f"int8_t *out = y + n * {image_out};\n"
    body += (f"int32_t oy = 0;\nint32_t ox = 0;\nfor (int32_t p = 0; p < {pixels}; p += 2) "
             f"{{\n{indent(inner, 1)}}}\n")
    return f"for (int32_t n = 0; n < {shape.batch}; n++) {{\n{indent(body, 1)}}}\n"


@runtime_checkable
class RowTail(Protocol):
    """A tail that takes the results of whole pixels at once; they lie one behind the other in the output."""

    row_helpers: tuple[str, ...]

    def store_row(self, source: str, index: tuple[str, str, str, str], count: int | str) -> str:
        """C statements that finish `count` int8 results at `source`; index: (n, y, x, channel) of the first.
        """


def tail_helpers(tail: Tail | None) -> tuple[str, ...]:
    """Functions that the tail's statements call."""
    return tail.row_helpers if isinstance(tail, RowTail) else ()


def tail_loop(channels: int, row: str, pixel: tuple[str, str, str], tail: Tail) -> str:
    """Hands the int8 results of one pixel at `row` to the fused tail."""
    if isinstance(tail, RowTail):
        return tail.store_row(row, (*pixel, "0"), channels)
    each = tail.store(f"(int32_t)({row})[c]", (*pixel, "c"), lanes=1)
    return f"for (int32_t c = 0; c < {channels}; c++) {{\n{indent(each, 1)}}}\n"


def indent(text: str, levels: int) -> str:
    lines = text.rstrip("\n").split("\n")
    return "".join(
        f"{'    ' * levels if line and not line.startswith('#') else ''}{line}\n" for line in lines)
