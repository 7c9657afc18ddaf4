"""Depthwise convolution of 16-bit integers with constant weights: four channels of an output pixel at a time.

Weights are int16, in pairs of channels as activations are. The taps of a window that lie in the image are a
rectangle, which is found for each pixel; the others are the zero point, and add nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aot_model.ir.admissible import Range
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int16.dots import INT32
from aot_model.kernels.int16.finish import Finish
from aot_model.kernels.overlap import by_pixels

CHANNELS = 4
WRITTEN_OUT = 8
"""A side of a kernel of up to so many taps is written out."""


def depthwise(
    s: ConvShape,
    weights: npt.NDArray[np.int16],
    most: int,
    finish: Finish | None,
    tail: Tail | None,
    sum_type: str,
    result: tuple[str, int],
) -> KernelCode:
    """weights [kernel_h, kernel_w, channel], one for each channel of x, which is int16 without a zero point.

    most: no product is larger. sum_type: of the tail's accumulator. result: type and bytes of y's elements.
    """
    channels, (n, sy, sx, _) = s.out_c, s.strides
    # the longer side of the kernel that can be is written out: its taps, their steps in x and in the weights
    down = (s.kernel_h, s.dilation_h * sy, s.kernel_w, "ky", "begin", "end")
    across = (s.kernel_w, s.dilation_w * sx, 1, "kx", "first", "last")
    outer, inner = (
        (across, down) if s.kernel_w < s.kernel_h <= WRITTEN_OUT or s.kernel_w == 1 else (down, across)
    )
    taps, x_step, w_taps, index, start, stop = inner
    own = "int32_t" if s.kernel_h * s.kernel_w * most <= INT32 else "int64_t"
    largest = most >> 15  # of the weights, int8 or int16 before they were widened
    fits = (Range(-largest, largest),)
    constants = [Packed("weights", np.ascontiguousarray(weights).reshape(-1), admissible=fits)]
    constants += finish.table() if finish is not None else ()
    cast = "" if own == "int32_t" else "(int64_t)"

    def store(c: int) -> list[str]:
        channel = f"c + {c}" if c else "c"
        if finish is not None:
            lines = [*finish.row("row", channel), *finish.lines(f"sum{c}", "row")]
        else:
            lines = [f"const {sum_type} v = sum{c};"]
        if tail is None:
            lines.append(f"y[pixel * {channels} + {channel}] = v;")
        else:
            lines += tail.store("v", ("0", "0", "pixel", channel), 1).splitlines()
        return ["{", *_indented(lines), "}"]

    def tap(width: int, k: str) -> list[str]:
        """The products of one tap; k: its place behind `from` and `w` as a pair of offsets, or nothing."""
        x_at, w_at = (f" + {k} * {x_step}", f" + {k} * {w_taps * channels}") if k else ("", "")
        if width % 2:
            return [f"sum0 += {cast}(from[{x_at[3:] or 0}] * w[{w_at[3:] or 0}]);"]
        lines = ["{"]
        for c in range(0, width, 2):
            more = f" + {c}" if c else ""
            lines += [
                f"    const int32_t a{c} = dsp_pair_at(from{x_at}{more}), b{c} = dsp_pair_at(w{w_at}{more});",
                f"    sum{c} += {cast}(dsp_low(a{c}) * dsp_low(b{c}));",
                f"    sum{c + 1} += {cast}(dsp_high(a{c}) * dsp_high(b{c}));",
            ]
        return [*lines, "}"]

    def block(width: int) -> list[str]:
        every = [t for k in range(taps) for t in tap(width, str(k) if k else "")]
        some = [
            f"for (int32_t {index} = {start}; {index} < {stop}; {index}++) {{",
            *_indented(tap(width, "")),
            f"    from += {x_step};",
            f"    w += {w_taps * channels};",
            "}",
        ]
        row = [
            f"const int32_t begins = corner + {outer[3]} * {outer[1]} + {start} * {x_step};",
            "const int16_t *from = x + (begins + c);",
            f"const int16_t *w = weights + ({outer[3]} * {outer[2]} + {start} * {w_taps}) * {channels} + c;",
        ]
        if taps <= WRITTEN_OUT:
            row += [f"if ({stop} - {start} == {taps}) {{", *_indented(every)]
            row += ["} else {", *_indented(some), "}"]
        else:
            row += some
        return [
            *(f"{own} sum{c} = 0;" for c in range(width)),
            f"for (int32_t {outer[3]} = {outer[4]}; {outer[3]} < {outer[5]}; {outer[3]}++) {{",
            *_indented(row),
            "}",
            *(t for c in range(width) for t in store(c)),
        ]

    whole = channels - channels % CHANNELS
    blocks: list[str] = []
    if whole:
        blocks += [f"for (int32_t c = 0; c < {whole}; c += {CHANNELS}) {{", *_indented(block(CHANNELS)), "}"]
    if channels % CHANNELS:
        blocks += [f"for (int32_t c = {whole}; c < {channels}; c++) {{", *_indented(block(1)), "}"]
    count, rows = s.batch * s.out_h * s.out_w, s.out_h * s.out_w
    within, image = ("pixel", "") if s.batch == 1 else (f"pixel % {rows}", f"pixel / {rows} * {n} + ")
    body = [
        f"for (int32_t pixel = 0; pixel < {count}; pixel++) {{",
        f"    const int32_t top = {within} / {s.out_w} * {s.stride_h} - {s.pad_top};",
        f"    const int32_t left = {within} % {s.out_w} * {s.stride_w} - {s.pad_left};",
        "    int32_t begin = 0, first = 0;",
        f"    int32_t end = {s.kernel_h}, last = {s.kernel_w};",
        *_clipped("top", "begin", "end", s.dilation_h, s.in_h),
        *_clipped("left", "first", "last", s.dilation_w, s.in_w),
        f"    const int32_t corner = {image}top * {sy} + left * {sx};",
        *_indented(blocks),
        "}",
    ]
    slack = by_pixels(s, 1, reread=True, through_images=True, sizes=(2, result[1]))
    note = f"{CHANNELS} channels, pairs of int16"
    return KernelCode(
        "\n".join(body) + "\n",
        tuple(constants),
        (),
        frozenset({HEADER}),
        (),
        slack,
        sizes=(2, result[1]),
        note=note,
    )


def _clipped(start: str, first: str, last: str, dilation: int, size: int) -> list[str]:
    """C that moves the first and the last tap of an axis into the image."""
    return [
        f"    while ({first} < {last} && {start} + {first} * {dilation} < 0) {{",
        f"        {first}++;",
        "    }",
        f"    while ({first} < {last} && {start} + ({last} - 1) * {dilation} >= {size}) {{",
        f"        {last}--;",
        "    }",
    ]


def _indented(lines: list[str]) -> list[str]:
    return ["    " + t for t in lines]
