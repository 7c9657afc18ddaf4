"""int8 and uint8 pooling on hosts, channels last: sums or maxima of 16 channels at a time over the window,
with AVX2.

average: the sum of what lies inside of the image, divided by how many they are, ties away from zero; no zero
points.
"""

from __future__ import annotations

from typing import Literal

from aot_model.c.text import CText, product, total
from aot_model.kernels.base import ConvShape, KernelCode, Scratch, Tail
from aot_model.kernels.int8 import pooling
from aot_model.kernels.int8.row_tail import tail_helpers, tail_loop
from aot_model.kernels.overlap import by_pixels

_WIDEST = 128
"""Elements of a window's row whose sum stays within int16."""
_MOST = 1 << 16


def applicable(shape: ConvShape) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    s = shape
    return s.kernel_w <= _WIDEST and s.kernel_h * s.kernel_w < _MOST and s.x_strides is None and (
        s.dilation_h, s.dilation_w) == (1, 1)


def _span(c: CText, axis: str, outputs: int, kernel: int, stride: int, pad: int,
          size: int) -> tuple[str, str]:
    """(first element, count) of a window along an axis; where it can leave the image, written as variables.
    """
    start = product(axis, stride) if outputs > 1 else "0"
    if pad <= 0 and (outputs - 1) * stride + kernel - pad <= size:
        return total(start, str(-pad)), str(kernel)
    c.line(f"const int32_t {axis}_at = {start} - {pad};")
    c.line(f"const int32_t {axis}_first = {axis}_at > 0 ? {axis}_at : 0;")
    c.line(f"const int32_t {axis}_end = {axis}_at < {size - kernel} ? {axis}_at + {kernel} : {size};")
    return f"{axis}_first", f"{axis}_end - {axis}_first"


def pool(kind: Literal["average", "max"],
         shape: ConvShape,
         act_min: int,
         act_max: int,
         dtype: str = "int8",
         tail: Tail | None = None) -> KernelCode:
    """Pooling; every window holds at least one element of the image. Dense input, out_c = in_c."""
    s = shape
    if not applicable(s):
        return pooling.pool(kind, s, act_min, act_max, dtype, tail=tail)
    name = f"avx2_{'average' if kind == 'average' else 'maximum'}_{dtype}"
    c = CText()
    with c.loop("n", str(s.batch), needed=s.batch > 1), c.loop("row", str(s.out_h), needed=s.out_h > 1):
        n = "n" if s.batch > 1 else "0"
        top, height = _span(c, "row", s.out_h, s.kernel_h, s.stride_h, s.pad_top, s.in_h)
        with c.loop("column", str(s.out_w), needed=s.out_w > 1):
            left, width = _span(c, "column", s.out_w, s.kernel_w, s.stride_w, s.pad_left, s.in_w)
            row, column = "row" if s.out_h > 1 else "0", "column" if s.out_w > 1 else "0"
            x = total("x", product(n, s.in_h * s.in_w * s.in_c), _times(top, s.in_w * s.in_c),
                      _times(left, s.in_c))
            y = total("y", product(n, s.out_h * s.out_w * s.in_c), product(row, s.out_w * s.in_c),
                      product(column, s.in_c))
            to = "results" if tail is not None else y
            c.line(
                f"{name}({x}, {height}, {width}, {s.in_w * s.in_c}, {s.in_c}, {act_min}, {act_max}, {to});")
            if tail is not None:
                c.line(tail_loop(s.in_c, "results", (n, row, column), tail))
    return KernelCode(
        body=str(c),
        scratch=(Scratch("results", s.in_c, 4, f"{dtype}_t"),) if tail is not None else (),
        includes=frozenset({"aot_model/int8_avx2_rows.h"}),
        helpers=tail_helpers(tail),
        slack=by_pixels(s, 1, by_channel=tail is None),
        note=f"{kind} of {s.kernel_h}x{s.kernel_w}, 16 channels at a time",
    )


def _times(text: str, factor: int) -> str:
    return product(text if text.isalnum() or text.isidentifier() else f"({text})", factor)
