"""Convolution of integers with constant weights, x as int16: any type of 8 or 16 bits, any tail.

Two pixels x two channels share their loads. A pixel's patch is read where it lies where that is one run of
int16 (1x1), else gathered into `patch`, less what makes int16 of it; outside of the image is the zero point.
Of groups of channels, each has its own patches, one group behind the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aot_model.ir.admissible import ANYTHING
from aot_model.ir.types import DType
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.requantise_mve import HEADER as MVE
from aot_model.kernels.int8.row_tail import VectorTail
from aot_model.kernels.int16 import block_mve, dot_dsp, dot_mve, quads_dsp
from aot_model.kernels.int16.block_mve import put_four
from aot_model.kernels.int16.dots import Dots
from aot_model.kernels.int16.finish import Finish
from aot_model.kernels.int16.finish_mve import Ending
from aot_model.kernels.overlap import by_pixels, residual

LEAST_MACS = 10_000
"""Of a layer that is worth the code of a kernel in assembly, some 500 bytes."""
LEAST_PAIRED = 2_000
"""... of one that finishes its sums itself, which layers share whatever their sizes are."""
MANY_TAPS = 64
"""From so many on four channels at a time take less than two whose sums stay in registers."""


@dataclass(frozen=True)
class Elements:
    """What x is: its type, its zero point, and what is taken from it so that it is int16."""

    dtype: str
    zero: int
    shift: int

    @property
    def size(self) -> int:
        return 2 if self.dtype.endswith("16") else 1

    def narrowed(self, text: str) -> str:
        """An element as int16."""
        if self.shift == 0:
            return text
        return f"(int16_t)({text} {'-' if self.shift > 0 else '+'} {abs(self.shift)})"


def elements(dtype: str, zero: int) -> Elements:
    """8-bit integers lose their zero point; of 16-bit ones what the type allows."""
    if dtype == "uint16":
        return Elements(dtype, zero, 32768)
    return Elements(dtype, zero, 0 if dtype == "int16" else zero)


def conv(
    shape: ConvShape,
    weights: npt.NDArray[np.integer],
    x: Elements,
    dots: Dots,
    finish: Finish | None,
    start: npt.NDArray[np.int64] | None,
    tail: Tail | None,
    sum_type: str,
    result: tuple[str, int],
) -> KernelCode:
    """weights [out_c, taps of a group], without their zero point. start: added to the sums where there is no
    finish.

    sum_type: of the tail's accumulator. result: type and bytes of y's elements.
    """
    s, taps = shape, weights.shape[1]
    count = s.batch * s.out_h * s.out_w
    pixels = min(2, count)
    groups, own_in, own_out = s.groups, s.in_c // s.groups, s.out_c // s.groups
    quads = (groups == 1 and dots.dsp and dots.chunk > 0 and dots.w_type == "int8_t"
             and dots.x_type == "int16_t" and taps % 2 == 0 and taps >= 8
             and s.out_c % quads_dsp.CHANNELS == 0 and count * s.out_c * taps >= LEAST_MACS)  # fmt: skip
    paired = dot_dsp.rows_of(dots, weights, finish, pixels, tail is not None, groups)
    if (quads and taps >= MANY_TAPS) or count * weights.size < LEAST_PAIRED:
        paired = None
    quads = quads and paired is None
    if quads and taps > quads_dsp.LONGEST:
        pixels = 1
    even = dots.dsp and groups == 1  # words at even places are read at once
    pitch = taps + taps % 2 if even else taps
    columns = quads_dsp.CHANNELS if quads else min(dots.width, own_out)
    same_size = s.out_h == s.in_h and s.out_w == s.in_w
    pointwise = s.kernel_h == s.kernel_w == s.stride_h == s.stride_w == 1 and same_size
    direct = x.dtype == "int16" and pointwise and s.pad_top == s.pad_left == 0
    ending = Ending.of(finish) if dots.mve else None
    in_order = (
        quads_dsp.packed(weights)
        if quads
        else np.concatenate([dots.packed(part, columns) for part in np.split(weights, groups)])
    )
    constants = [Packed("weights", in_order, admissible=ANYTHING)]
    helpers: list[str] = []
    scratch: list[Scratch] = []
    if ending is not None:
        kernel, text = dot_mve.dot(taps, s.out_c, 8 * weights.dtype.itemsize, pixels, ending)
        helpers.append(text)
        constants = [
            Packed("weights", dot_mve.pack(weights, ending), admissible=ANYTHING, layout=dot_mve.LAYOUT)
        ]
        if tail is not None:
            scratch.append(Scratch("row", pixels * s.out_c * ending.finish.to.size, 4, ending.pointer[:-2]))
    elif paired is not None and finish is not None:
        helpers.append(paired.text)
        constants = [Packed("weights", paired.words, admissible=ANYTHING, layout=dot_dsp.LAYOUT)]
        if tail is not None:
            scratch.append(Scratch("row", pixels * s.out_c * finish.to.size, 4, finish.to.c_type))
    elif finish is not None:
        constants += finish.table()
    elif start is not None:
        constants.append(Packed("start", start.astype(np.int32), admissible=ANYTHING))
    if not direct:
        scratch.append(Scratch("patch", 2 * pixels * pitch * groups, 4, "int16_t"))
        gather, text = _gather(s, x, dots.mve) if groups == 1 else _gather_groups(s, x, pixels * pitch)
        helpers.append(text)

    def store(i: int, j: int, result_sum: str = "", at: str = "") -> list[str]:
        channel, pixel = at or (f"c + {j}" if j else "c"), f"pixel + {i}" if i else "pixel"
        if finish is not None and dots.mve:
            lines = [f"const {finish.to.c_type} v = ({finish.to.c_type})sums[{4 * i + j}];"]
        elif finish is not None:
            lines = finish.lines(result_sum or f"sum{i}{j}", f"row{j}")
        else:
            total = result_sum or (f"sums[{4 * i + j}]" if dots.mve else f"sum{i}{j}")
            total = total if start is None else f"{total} + start[{channel}]"
            lines = [f"const {sum_type} v = {total};"]
        if tail is None:
            cast = "" if finish is not None or result[0] == sum_type else f"({result[0]})"
            lines.append(f"y[({pixel}) * {s.out_c} + {channel}] = {cast}v;")
        else:
            lines += tail.store("v", ("0", "0", pixel, channel), 1).splitlines()
        return ["{", *("    " + t for t in lines), "}"]

    def four(p: int) -> list[str]:
        """Channels c to c + 3 by assembly; what is done with their sums is written once."""
        text, lines = quads_dsp.sums(taps, dots.chunk, p)
        if text not in helpers:
            helpers.append(text)
        one = finish.row("row0", "c + j") if finish is not None else []
        for i in range(p):
            one += store(i, 0, f"sums[{p} * j + {i}]" if p > 1 else "sums[j]", "c + j")
        return [*lines, "for (int32_t j = 0; j < 4; j++) {", *("    " + t for t in one), "}"]

    def block(p: int, c: int) -> list[str]:
        if quads:
            return four(p)
        lines = [f"const int16_t *r{i} = from{i};" for i in range(p)]
        if dots.mve:
            lines += [*block_mve.sums(dots, p, c), *block_mve.finished(finish, p, c, "c")]
            if finish is not None and tail is None and c == 4:
                return [
                    *lines,
                    *(put_four(finish.to, f"y + (pixel + {i}) * {s.out_c} + c", i) for i in range(p)),
                ]
            if c == 4 and isinstance(tail, VectorTail) and start is None and dots.chunk == taps:
                places = [("0", "0", f"pixel + {i}" if i else "pixel", "c") for i in range(p)]
                rows = [
                    tail.store_row(f"sums + {4 * i}" if i else "sums", at, c, DType.INT32)
                    for i, at in enumerate(places)
                ]
                return [*lines, *(t for row in rows for t in row.splitlines())]
            return [*lines, *(t for i in range(p) for j in range(c) for t in store(i, j))]
        lines += dots.lines(p, c)
        if finish is not None:
            lines += [t for j in range(c) for t in finish.row(f"row{j}", f"c + {j}" if j else "c")]
        return [*lines, *(t for i in range(p) for j in range(c) for t in store(i, j))]

    def channels(p: int) -> list[str]:
        whole = own_out - own_out % columns
        first = "0" if groups == 1 else f"g * {own_out}"
        last = str(whole) if groups == 1 else f"{first} + {whole}"
        lines = [
            f"for (int32_t c = {first}; c < {last}; c += {columns}) {{",
            *("    " + t for t in block(p, columns)),
            "}",
        ]
        if own_out % columns:
            rest = block(p, own_out % columns)
            lines += ["{", f"    const int32_t c = {last};", *("    " + t for t in rest), "}"]
        return lines

    def rows(p: int) -> list[str]:
        """Where the taps of a group begin."""
        own = "" if groups == 1 else f" + g * {own_in if direct else pixels * pitch}"
        at = [f"x + (pixel + {i}) * {s.in_c}{own}" if direct else f"patch + {i * pitch}{own}"
              for i in range(1 if quads else p)]  # fmt: skip
        return [f"const int16_t *const from{i} = {place};" for i, place in enumerate(at)]

    def each_group(lines: list[str]) -> list[str]:
        if groups == 1:
            return lines
        return [f"for (int32_t g = 0; g < {groups}; g++) {{", *("    " + t for t in lines), "}"]

    def all_channels(p: int) -> list[str]:
        if finish is None or (ending is None and paired is None):
            return [f"const {dots.w_type} *w = weights;", *each_group([*rows(p), *channels(p)])]
        cast = f"({ending.pointer})" if ending and finish.to.c_type + " *" != ending.pointer else ""
        to = [f"row + {i * s.out_c}" if tail is not None else f"{cast}(y + (pixel + {i}) * {s.out_c})"
              for i in range(p)]  # fmt: skip
        at = [f"from{i}" for i in range(p)] + [f"from{p - 1}"] * (pixels - p)
        if paired is None:
            places = [*at, "weights", str(s.out_c), *to, *to[-1:] * (pixels - p)]
            lines = [*rows(p), f"{kernel}({', '.join(places)});"]
        else:
            stream = "weights" if groups == 1 else "own"
            words = len(paired.words) // groups
            own = [] if groups == 1 else [f"const int32_t *own = weights + g * {words};"]
            to = to if groups == 1 else [f"{place} + g * {own_out}" for place in to]
            lines = each_group([*rows(p), *own, *paired.calls(at, to, stream)])
        for i in range(p if tail is not None else 0):
            assert tail is not None
            kind = finish.to.c_type
            if isinstance(tail, VectorTail):
                first = ("0", "0", f"pixel + {i}" if i else "pixel", "0")
                lines += tail.store_row(f"row + {i * s.out_c}" if i else "row", first, s.out_c).splitlines()
                continue
            lines += [
                f"for (int32_t c = 0; c < {s.out_c}; c++) {{",
                f"    const {kind} v = ({kind})row[{f'{i * s.out_c} + ' if i else ''}c];",
                *tail.store("v", ("0", "0", f"pixel + {i}" if i else "pixel", "c"), 1).splitlines(),
                "}",
            ]
        return lines

    def group(p: int) -> list[str]:
        if direct:
            return all_channels(p)
        image = s.out_h * s.out_w
        n = "" if s.batch == 1 else f" + place / {image} * {s.strides[0]}"
        within = "place" if s.batch == 1 else f"place % {image}"
        if s.out_h == 1:
            row, column = "0", within
        else:
            row, column = f"{within} / {s.out_w}", f"{within} % {s.out_w}"
        return [
            f"for (int32_t i = 0; i < {p}; i++) {{",
            "    const int32_t place = pixel + i;",
            f"    const int32_t top = {row} * {s.stride_h} - {s.pad_top};",
            f"    const int32_t left = {column} * {s.stride_w} - {s.pad_left};",
            f"    for (int32_t ky = 0; ky < {s.kernel_h}; ky++) {{",
            f"        int16_t *const to = patch + i * {pitch} + ky * {s.kernel_w * own_in};",
            f"        {gather}(x{n}, top + ky * {s.dilation_h}, left, to);",
            "    }",
            "}",
            *all_channels(p),
        ]

    whole = count - count % pixels
    lines = block_mve.declared(finish) if dots.mve and ending is None else []
    lines += [
        f"for (int32_t pixel = 0; pixel < {whole}; pixel += {pixels}) {{",
        *("    " + t for t in group(pixels)),
        "}",
    ]
    if count % pixels:
        lines += ["{", f"    const int32_t pixel = {whole};", *("    " + t for t in group(1)), "}"]
    slack = by_pixels(s, pixels, reread=direct, through_images=True, sizes=(x.size, result[1]))
    return KernelCode(
        "\n".join(lines) + "\n",
        tuple(constants),
        tuple(scratch),
        frozenset({HEADER, *([block_mve.HEADER] if dots.mve else []), *([MVE] if ending else [])}),
        tuple(helpers),
        slack,
        sizes=(x.size, result[1]),
        residual=residual(pixels, s, result[1]),
        note=f"{pixels} pixels x {columns} channels, {'rows' if dots.mve else 'pairs'} of int16",
    )  # fmt: skip


def _gather(s: ConvShape, x: Elements, mve: bool) -> tuple[str, str]:
    """(name, text): the taps of a kernel's row at (row, column) of the image, as int16."""
    outside, run = x.zero - x.shift, s.kernel_w * s.in_c
    key = f"{s.in_h}x{s.in_w}x{s.in_c}_k{s.kernel_w}_d{s.dilation_w}_z{x.zero}".replace("-", "n")
    name = f"taps_{x.dtype}_{key}{'_mve' if mve else ''}"
    _, sy, sx, _ = s.strides
    fast = ""
    if s.dilation_w == 1:
        copy = (
            f"    memcpy(to, from, {2 * run}u);"
            if x.size == 2 and x.shift == 0
            else f"""\
        for (int32_t k = 0; k < {run}; k++) {{
            to[k] = {x.narrowed("from[k]")};
        }}"""
        )
        if mve:
            copy = f"    aot_model_take_{x.dtype}(to, from, {x.shift}, {run});"
        fast = f"""    if (row >= 0 && row < {s.in_h} && column >= 0 && column <= {s.in_w - s.kernel_w}) {{
        const {x.dtype}_t *const from = x + row * {sy} + column * {sx};
    {copy}
        return;
    }}
"""
    at = f"row * {sy} + column * {sx}"
    each = (
        f"""\
        for (int32_t c = 0; c < {s.in_c}; c++) {{
            *to++ = (int16_t)(inside ? {x.narrowed(f"x[{at} + c]")} : {outside});
        }}
"""
        if not mve or s.in_c == 1
        else f"""\
        if (inside) {{
            aot_model_take_{x.dtype}(to, x + {at}, {x.shift}, {s.in_c});
        }} else {{
            aot_model_fill_int16(to, {outside}, {s.in_c});
        }}
        to += {s.in_c};
"""
    )
    if mve and s.dilation_w == 1:
        return name, _clipped_gather(s, x, name, outside)
    text = f"""/* {s.kernel_w} x {s.in_c} taps at (row, column); outside of the image: the zero point. */
AOT_MODEL_OPAQUE static void {name}(const {x.dtype}_t *x, int32_t row, int32_t column, int16_t *to)
{{
{fast}    for (int32_t tap = 0; tap < {s.kernel_w}; tap++, column += {s.dilation_w}) {{
        const int inside = row >= 0 && row < {s.in_h} && column >= 0 && column < {s.in_w};
{each}    }}
}}
"""
    return name, text


def _gather_groups(s: ConvShape, x: Elements, step: int) -> tuple[str, str]:
    """(name, text): the same of several groups; `step` elements are from the taps of one to those of the
    next.
    """
    outside, own = x.zero - x.shift, s.in_c // s.groups
    key = f"{s.in_h}x{s.in_w}x{s.in_c}_g{s.groups}_k{s.kernel_w}_d{s.dilation_w}_z{x.zero}_{step}"
    name = f"taps_{x.dtype}_{key}".replace("-", "n")
    _, sy, sx, _ = s.strides
    turns = next(n for n in range(min(s.groups, max(1, 8 // own)), 0, -1) if s.groups % n == 0)

    def copied(text: Callable[[int], str]) -> list[str]:
        """Statements for all channels of some groups."""
        if own > 8:
            return [f"for (int32_t c = 0; c < {own}; c++) {{", f"    at[c] = {text(-1)};", "}"]
        return [f"at[{g * step + c}] = {text(g * own + c)};" for g in range(turns) for c in range(own)]

    inside = copied(lambda k: x.narrowed("from[c]" if k < 0 else f"from[{k}]"))
    if x.size == 2 and x.shift == 0 and own % 2 == 0:  # words at any even address
        inside = [f"memcpy(at + {g * step}, from + {g * own}, {2 * own}u);" for g in range(turns)]
    loop = f"for (int32_t g = 0; g < {s.groups}; g += {turns}, at += {turns * step}"
    text = "\n".join([
        f"/* {s.kernel_w} taps of {s.groups} groups of {own} at (row, column); outside: the zero point. */",
        f"AOT_MODEL_OPAQUE static void {name}(const {x.dtype}_t *x, int32_t row, int32_t column, "
        "int16_t *to)", "{",
        f"    for (int32_t tap = 0; tap < {s.kernel_w}; tap++, column += {s.dilation_w}) {{",
        f"        int16_t *at = to + tap * {own};",
        f"        if (row >= 0 && row < {s.in_h} && column >= 0 && column < {s.in_w}) {{",
        f"            const {x.dtype}_t *from = x + row * {sy} + column * {sx};",
        f"            {loop}, from += {turns * own}) {{", *(f"                {t}" for t in inside),
        "            }", "        } else {", f"            {loop}) {{",
        *(f"                {t}" for t in copied(lambda k: str(outside))),
        "            }", "        }", "    }", "}", ""])  # fmt: skip
    return name, text


def _clipped_gather(s: ConvShape, x: Elements, name: str, outside: int) -> str:
    """The same of neighbouring taps: what lies left of the image, in it, and right of it."""
    _, sy, sx, _ = s.strides
    run, width = s.kernel_w * s.in_c, s.kernel_w
    return f"""/* {width} x {s.in_c} taps at (row, column); outside of the image: the zero point. */
AOT_MODEL_OPAQUE static void {name}(const {x.dtype}_t *x, int32_t row, int32_t column, int16_t *to)
{{
    if (row < 0 || row >= {s.in_h}) {{
        aot_model_fill_int16(to, {outside}, {run});
    }} else if (column >= 0 && column <= {s.in_w - width}) {{
        aot_model_take_{x.dtype}(to, x + (row * {sy} + column * {sx}), {x.shift}, {run});
    }} else {{
        const int32_t left = column >= 0 ? 0 : column < -{width} ? {width} : -column;
        const int32_t inside = {s.in_w} - column;
        const int32_t end = inside < left ? left : inside > {width} ? {width} : inside;
        aot_model_fill_int16(to, {outside}, left * {s.in_c});
        if (end > left) {{
            const {x.dtype}_t *const from = x + (row * {sy} + (column + left) * {sx});
            aot_model_take_{x.dtype}(to + left * {s.in_c}, from, {x.shift}, (end - left) * {s.in_c});
        }}
        aot_model_fill_int16(to + end * {s.in_c}, {outside}, ({width} - end) * {s.in_c});
    }}
}}
"""
