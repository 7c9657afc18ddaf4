"""Copying the taps of one output pixel (or whole rows) into a contiguous buffer, 16 bytes at a time.

For groups of a convolution the dense micro-kernel is called one after the other: a pixel's taps are scattered
into a patch where those of a group lie one behind the other. Groups of few outputs are taken together, as one
whose weights are zeros where an output has nothing to do with an input: a block of the micro-kernel has four
outputs, whether a group has them or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from aot_model.c.helpers import named_by_text
from aot_model.c.text import total
from aot_model.kernels.base import ConvShape, Packed

LONGEST_UNROLLED = 128
"""Bytes of a row that are copied without a loop."""


@dataclass(frozen=True)
class Patch:
    """`name(patch, x, oy, ox)` writes the taps of output pixel (oy, ox); it may write `overrun` bytes
    more.
    """

    name: str
    helpers: tuple[str, ...]
    overrun: int


def copy_statements(to: str, source: str, nbytes: int) -> str:
    """C that copies exactly nbytes, a compile-time constant."""
    if nbytes < 16:
        return f"memcpy({to}, {source}, {nbytes});\n"
    if nbytes > LONGEST_UNROLLED:
        return f"aot_mve_copy({to}, {source}, {nbytes});\n"
    starts = [*range(0, nbytes - 15, 16), *([nbytes - 16] if nbytes % 16 else [])]
    at = [f" + {s}" if s else "" for s in starts]
    return "".join(f"aot_mve_copy16({to}{a}, {source}{a});\n" for a in at)


def patch_copier(shape: ConvShape, fill: int) -> Patch:
    """The copier for one geometry; taps outside of the image become `fill`.

    Kernel rows of 5 to 15 bytes are read 16 at once where that stays inside of the image: the bytes beyond
    are overwritten by the next row or meet zero weights.
    """
    s = shape
    tall, wide = s.tall, s.wide
    whole_rows = s.dilation_w == 1
    run = s.in_c * (s.kernel_w if whole_rows else 1)
    over = 4 < run < 16
    row, image = s.in_w * s.in_c, s.in_h * s.in_w * s.in_c
    inside = ""
    for ky, kx in product(range(s.kernel_h), range(1 if whole_rows else s.kernel_w)):
        to = f"patch + {ky * s.kernel_w * s.in_c + kx * run}"
        source = f"from + {ky * s.dilation_h * row + kx * s.dilation_w * s.in_c}"
        inside += f"aot_mve_copy16({to}, {source});\n" if over else copy_statements(to, source, run)
    last = (tall - 1) * row + (wide - 1) * s.in_c * (not whole_rows)
    conditions = [
        *(["iy >= 0"] if s.pad_top > 0 else []),
        *([f"iy <= {s.in_h - tall}"] if (s.out_h - 1) * s.stride_h - s.pad_top + tall > s.in_h else []),
        *(["ix >= 0"] if s.pad_left > 0 else []),
        *([f"ix <= {s.in_w - wide}"] if (s.out_w - 1) * s.stride_w - s.pad_left + wide > s.in_w else []),
        *([f"iy * {row} + ix * {s.in_c} <= {image - last - 16}"] if over else []),
    ]
    begin = f"const int8_t *from = x + iy * {row} + ix * {s.in_c};\n{inside}"
    if conditions:
        begin = f"if ({' && '.join(conditions)}) {{\n{begin}return;\n}}\n" if s.fits else ""
        begin += f"aot_mve_fill(patch, {fill}, {s.kernel_h * s.kernel_w * s.in_c});\n"
        begin += rows_of_taps(
            s,
            lambda tap, pixel, first, count: (
                f"aot_mve_copy(patch + {times(total(tap, first), s.in_c)}, "
                f"x + {times(total(pixel, first), s.in_c)}, {count} * {s.in_c});\n"
            ),
        )
    body = of_pixel(s, begin)
    name = named_by_text("aot_mve_patch", body)
    text = f"""\
/* The {s.kernel_h} x {s.kernel_w} x {s.in_c} taps of output pixel (oy, ox). */
AOT_MODEL_INLINE void {name}(int8_t *patch, const int8_t *x, int32_t oy, int32_t ox)
{body}"""
    return Patch(name, (text,), 16 - run if over else 0)


def times(terms: str, count: int) -> str:
    """C of a sum, or of a variable times a number, times a number."""
    if " + " in terms:
        return f"({terms}) * {count}"
    name, _, number = terms.partition(" * ")
    return f"{name} * {int(number) * count}"


def of_pixel(s: ConvShape, statements: str) -> str:
    """The body of a function of output pixel (oy, ox), whose window begins at (iy, ix)."""
    return f"""\
{{
    const int32_t iy = oy * {s.stride_h} - {s.pad_top};
    const int32_t ix = ox * {s.stride_w} - {s.pad_left};
{statements}}}
"""


def rows_of_taps(s: ConvShape, move: Callable[[str, str, str, str], str]) -> str:
    """C that moves the taps inside of the image, those of a row together where they are not dilated. move: C
    for `count` of them, from C of (the tap of the kernel, the pixel of the image, how many further both
    begin, count).
    """
    tap = f"ky * {s.kernel_w}"
    if s.dilation_w > 1 and s.kernel_w > 1:
        one = move(f"{tap} + kx", f"y * {s.in_w} + column", "0", "1")
        row = f"""\
for (int32_t kx = 0; kx < {s.kernel_w}; kx++) {{
    const int32_t column = ix + kx * {s.dilation_w};
    {one if s.inside else f"if (column >= 0 && column < {s.in_w}) {{{chr(10)}{one}}}{chr(10)}"}}}
"""
    elif s.inside:
        row = move(tap, f"y * {s.in_w} + ix", "0", str(s.kernel_w))
    else:
        row = f"""\
const int32_t first = ix < 0 ? -ix : 0;
const int32_t end = ix + {s.kernel_w} > {s.in_w} ? {s.in_w} - ix : {s.kernel_w};
if (first < end) {{
    {move(tap, f"y * {s.in_w} + ix", "first", "(end - first)")}}}
"""
    outside = "" if s.inside else f"if (y < 0 || y >= {s.in_h}) {{\ncontinue;\n}}\n"
    return f"""\
for (int32_t ky = 0; ky < {s.kernel_h}; ky++) {{
    const int32_t y = iy + ky * {s.dilation_h};
    {outside}{row}}}
"""


BLOCK = 4
"""Outputs of a block of the micro-kernels."""
_CALL, _FINISH, _CHUNK = 20, 28, 14
"""Instructions of a call, of a block's requantisation, of the products of a vector of its taps."""


@dataclass(frozen=True)
class Groups:
    """`together` groups of a layer are one of `count` calls for a pixel."""

    shape: ConvShape
    together: int

    @property
    def count(self) -> int:
        return self.shape.groups // self.together

    @property
    def channels(self) -> int:
        """Input channels of a call."""
        return self.shape.in_c // self.count

    @property
    def taps(self) -> int:
        """Products of an output, with those that are zeros."""
        return self.shape.kernel_h * self.shape.kernel_w * self.channels

    @property
    def outputs(self) -> int:
        return self.shape.out_c // self.count

    def cost(self, lanes: int) -> tuple[int, int]:
        """(instructions of a pair of pixels, bytes of weights), about; lanes: taps of a vector."""
        blocks = -(-self.outputs // BLOCK)
        instructions = _CALL + blocks * (_FINISH + _CHUNK * -(-self.taps // lanes))
        return self.count * instructions, self.count * blocks * BLOCK * (-(-self.taps // 4) * 4 + 9)

    def matrices(self, weights: np.ndarray) -> np.ndarray:
        """weights [out_c, kernel_h, kernel_w, in_c / groups] as [call, output, tap]."""
        s = self.shape
        shape = (self.count, self.together, s.group_out, s.kernel_h, s.kernel_w)
        own = weights.reshape(*shape, s.group_in)
        whole = np.zeros((*shape, self.together, s.group_in), weights.dtype)
        for k in range(self.together):
            whole[:, k, :, :, :, k] = own[:, k]
        return whole.reshape(self.count, self.outputs, self.taps)


def groups_of(shape: ConvShape, lanes: int) -> Groups:
    """The cheapest way that takes no more weights than one group after the other."""
    all_of_them = [Groups(shape, n) for n in range(1, shape.groups + 1) if shape.groups % n == 0]
    most = all_of_them[0].cost(lanes)[1]
    fitting = [g for g in all_of_them if g.cost(lanes)[1] <= most]
    return min(fitting, key=lambda g: (g.cost(lanes)[0], g.together))


def scatter(g: Groups, fill: int, size: int) -> tuple[Patch, Packed]:
    """The copier for one geometry and what its parameter `places` (behind x) is; taps outside of the image
    become `fill`. size: bytes of an element; of two bytes only 0 may be filled in.
    """
    s, ctype = g.shape, {1: "int8_t", 2: "int16_t"}[size]
    unit = next(u for u in (4, 2, 1) if g.channels * size % u == 0)
    run = s.kernel_w if s.dilation_w == 1 else 1  # columns that are moved at once
    element = np.arange(run * s.in_c * size // unit) * (unit // size)
    tap, channel = element // s.in_c, element % s.in_c
    at = channel // g.channels * g.taps + tap * g.channels + channel % g.channels
    whole = f"aot_mve_fill((int8_t *)patch, {fill}, {size * g.count * g.taps});\n"
    if s.fits:  # else all of them lie beside the image, at least in part
        beside = f"iy < 0 || iy > {s.in_h - s.tall} || ix < 0 || ix > {s.in_w - s.wide}"
        whole = f"if ({beside}) {{\n    {whole}}}\n"
    units = f"{s.in_c * size // unit}"

    def move(tap: str, pixel: str, first: str, count: str) -> str:
        to, source = f"patch + {times(tap, g.channels)}", f"x + {times(total(pixel, first), s.in_c)}"
        places = f"places + {first} * {units}, {count} * {units}"
        return f"aot_mve_scatter{unit}((int8_t *)({to}), (const int8_t *)({source}), {places});\n"

    body = of_pixel(s, ("" if s.inside else whole) + rows_of_taps(s, move))
    head = f"({ctype} *patch, const {ctype} *x, const uint16_t *places, int32_t oy, int32_t ox)\n"
    name = named_by_text("aot_mve_taps_of_groups", head + body)
    text = (
        f"/* The {s.kernel_h} x {s.kernel_w} x {s.in_c} taps of output pixel (oy, ox), those of "
        f"{g.channels} channels together. */\nAOT_MODEL_OPAQUE static void {name}{head}{body}"
    )
    places = Packed(
        "places",
        (at * size).astype(np.uint16),
        code=True,
        layout="where the units of a kernel's row go in the patch",
    )
    return Patch(name, (text,), 0), places
