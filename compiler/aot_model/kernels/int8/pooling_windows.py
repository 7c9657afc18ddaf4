"""Pooling of int8, uint8 and int16, channels last, where the runtime has a function for all channels of a
window: AVX2, Helium.

average: the sum of what lies inside of the image, divided by how many they are, ties away from zero; no zero
points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from aot_model.c.text import CText, product, total
from aot_model.kernels.base import ConvShape, KernelCode, Scratch, Tail
from aot_model.kernels.int8.row_tail import tail_helpers, tail_loop
from aot_model.kernels.overlap import by_pixels, first_taps

Kind = Literal["average", "max"]


def _area(s: ConvShape) -> int:
    """Most elements of a window."""
    return min(s.kernel_h, s.in_h) * min(s.kernel_w, s.in_w)


@dataclass(frozen=True)
class Windows:
    """An instruction set's functions name(x, rows, columns, elements of a row, channels, low, high, y)."""

    header: str
    name: Callable[[Kind, ConvShape, str], str]
    """By the type of the elements."""
    dtypes: tuple[str, ...]
    wide: int
    """Most columns of a window."""
    most: Callable[[str], int]
    """Most elements of it, by the type."""

    def takes(self, s: ConvShape, dtype: str) -> bool:
        """Dense, undilated, no window without elements."""
        plain = s.dense and s.in_c == s.out_c and (s.dilation_h, s.dilation_w) == (1, 1)
        if not plain or dtype not in self.dtypes or s.kernel_w > self.wide or _area(s) > self.most(dtype):
            return False
        rows = first_taps(s.out_h, s.stride_h, 1, s.pad_top, s.kernel_h, s.in_h)
        columns = first_taps(s.out_w, s.stride_w, 1, s.pad_left, s.kernel_w, s.in_w)
        return bool(rows.max() < s.in_h and columns.max() < s.in_w)

    def pool(self, kind: Kind, shape: ConvShape, low: int, high: int, dtype: str = "int8",
             tail: Tail | None = None) -> KernelCode:  # fmt: skip
        """`takes()`; results in [low, high]."""
        s, c, size = shape, CText(), 2 if dtype == "int16" else 1
        with c.turns("n", str(s.batch)) as n, c.turns("row", str(s.out_h)) as row:
            top, height = _span(c, row, "row", s.out_h, s.kernel_h, s.stride_h, s.pad_top, s.in_h)
            with c.turns("column", str(s.out_w)) as column:
                left, width = _span(c, column, "column", s.out_w, s.kernel_w, s.stride_w, s.pad_left, s.in_w)
                x = total(
                    "x",
                    product(n, s.in_h * s.in_w * s.in_c),
                    product(top, s.in_w * s.in_c),
                    product(left, s.in_c),
                )
                y = total(
                    "y",
                    product(n, s.out_h * s.out_w * s.in_c),
                    product(row, s.out_w * s.in_c),
                    product(column, s.in_c),
                )
                to = "results" if tail is not None else y
                c.line(
                    f"{self.name(kind, s, dtype)}({x}, {height}, {width}, {s.in_w * s.in_c}, {s.in_c}, "
                    f"{low}, {high}, {to});"
                )
                if tail is not None:
                    c.line(tail_loop(s.in_c, "results", (n, row, column), tail))
        return KernelCode(
            body=str(c),
            scratch=(Scratch("results", size * s.in_c, 4, f"{dtype}_t"),) if tail is not None else (),
            includes=frozenset({self.header}),
            helpers=tail_helpers(tail),
            slack=by_pixels(s, 1, by_channel=tail is None, sizes=(size, size)),
            note=f"{kind} of {s.kernel_h}x{s.kernel_w}, channels in lanes",
        )


def _span(
    c: CText, index: str, axis: str, outputs: int, kernel: int, stride: int, pad: int, size: int
) -> tuple[str, str]:
    """(first element, count) of window `index` along an axis; as variables where it can leave the image."""
    start = product(index, stride)
    if pad <= 0 and (outputs - 1) * stride + kernel - pad <= size:
        at = total(start, str(-pad))
        return at if at.isalnum() else f"({at})", str(kernel)
    c.line(f"const int32_t {axis}_at = {start} - {pad};")
    c.line(f"const int32_t {axis}_first = {axis}_at > 0 ? {axis}_at : 0;")
    c.line(f"const int32_t {axis}_end = {axis}_at < {size - kernel} ? {axis}_at + {kernel} : {size};")
    return f"{axis}_first", f"{axis}_end - {axis}_first"


def _helium(kind: Kind, s: ConvShape, dtype: str) -> str:
    """A sum of up to 255 elements of int8, of 128 of uint8, has 16-bit lanes."""
    of = "" if dtype == "int8" else f"_{dtype}"
    large = kind == "average" and _area(s) > {"int8": 255, "uint8": 128}.get(dtype, _area(s))
    return f"aot_mve_{'maximum' if kind == 'max' else 'average'}{of}{'_large' * large}"


AVX2 = Windows(
    "aot_model/int8_avx2_rows.h",
    lambda kind, s, dtype: f"avx2_{'maximum' if kind == 'max' else 'average'}_{dtype}",
    ("int8", "uint8"),
    wide=128,
    most=lambda dtype: (1 << 16) - 1,
)
"""Sums of a row of a window stay within int16, those of all are exact as floats."""
_MOST = {"int8": 5000, "uint8": 4000, "int16": (1 << 16) - 1}
HELIUM = Windows(
    "aot_model/int8_mve_pool.h", _helium, tuple(_MOST), wide=5000, most=lambda dtype: _MOST[dtype]
)
