"""Average and maximum pooling of int8/uint8, channels last, as TensorFlow Lite computes them.

average: the sum of what lies inside of the image, divided by how many they are, ties away from zero; no zero
points. With the DSP extension four channels share a word: SXTAB16 adds two of them at a time in 16-bit lanes,
which hold sums of up to 255 values; the maximum of four is SSUB8 and SEL.
"""

from __future__ import annotations

from typing import Literal

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.overlap import by_pixels

_LANES = 255


def pool(
    kind: Literal["average", "max"],
    shape: ConvShape,
    act_min: int,
    act_max: int,
    dtype: str = "int8",
    dsp: bool = False,
    tail: Tail | None = None,
) -> KernelCode:
    """Pooling; every window holds at least one element of the image. Dense input, out_c = in_c."""
    s = shape
    if s.x_strides is not None or s.dilation_h != 1 or s.dilation_w != 1:
        raise ValueError("pooling: dense input without dilation")
    cast = f"{dtype}_t"
    inside = (
        s.pad_top <= 0
        and s.pad_left <= 0
        and (s.out_h - 1) * s.stride_h + s.kernel_h - s.pad_top <= s.in_h
        and (s.out_w - 1) * s.stride_w + s.kernel_w - s.pad_left <= s.in_w
    )
    size = s.kernel_h * s.kernel_w
    four = dsp and s.in_c % 4 == 0 and (kind == "max" or size <= _LANES)
    step = 4 if four else 1
    lo, hi = (-128, 127) if dtype == "int8" else (0, 255)
    low, high = max(lo, act_min), min(hi, act_max)

    def finish(value: str, channel: str) -> list[str]:
        lines = [f"int32_t v = {value};"]
        if kind == "average":
            half = str(size // 2) if inside else "count / 2"
            count = str(size) if inside else "count"
            lines.append(f"v = (v > 0 ? v + {half} : v - {half}) / {count};")
        if low > lo:
            lines.append(f"v = v < {low} ? {low} : v;")
        if high < hi:
            lines.append(f"v = v > {high} ? {high} : v;")
        if tail is not None:
            index = ("n" if s.batch > 1 else "0", "row", "column", channel)
            return [*lines, f"const {cast} pooled = ({cast})v;", *tail.store("pooled", index, 1).splitlines()]
        return [*lines, f"out[{channel}] = ({cast})v;"]

    row_loop = "for (int32_t i = 0; i < height; i++, from += FAR) {"
    if inside:
        row_loop = row_loop.replace("height", str(s.kernel_h))
    row_loop = row_loop.replace("FAR", str(s.in_w * s.in_c))
    width = str(s.kernel_w) if inside else "width"
    column_loop = f"for (int32_t j = 0; j < {width}; j++, at += {s.in_c}) {{"

    def walk(body: list[str]) -> list[str]:
        return [
            row_loop, f"const {cast} *at = from;", f"{column_loop}", *body,
            "}", "}"
        ]

    if four and kind == "average":
        add = f"dsp_{'s' if dtype == 'int8' else 'u'}xtab16"
        half_cast = "int16_t" if dtype == "int8" else "uint16_t"
        work = [
            "uint32_t even = 0, odd = 0;",
            *walk(
                [
                    "uint32_t bytes;",
                    "memcpy(&bytes, at, sizeof bytes);",
                    f"even = {add}(even, bytes);",
                    f"odd = {add}(odd, bytes >> 8 | bytes << 24);",
                ]
            ),
            f"const int32_t sum[4] = {{({half_cast})(even & 0xffffu), ({half_cast})(odd & 0xffffu), "
            f"({half_cast})(even >> 16), ({half_cast})(odd >> 16)}};",
            "for (int32_t k = 0; k < 4; k++) {",
            *finish("sum[k]", "c + k"),
            "}",
        ]
    elif four:
        greater = f"dsp_max_{dtype}"
        work = [
            "uint32_t most;", "memcpy(&most, from, sizeof most);", *walk(
                ["uint32_t bytes;", "memcpy(&bytes, at, sizeof bytes);", f"most = {greater}(most, bytes);"]),
            "for (int32_t k = 0; k < 4; k++, most >>= 8) {",
            *finish(f"({cast})(most & 0xffu)", "c + k"), "}",
        ]
    elif kind == "average":
        work = ["int32_t sum = 0;", *walk(["sum += *at;"]), *finish("sum", "c")]
    else:
        work = ["int32_t most = *from;", *walk(["most = *at > most ? *at : most;"]), *finish("most", "c")]

    place = [
        f"const int32_t top = row * {s.stride_h} - {s.pad_top}, left = column * {s.stride_w} - {s.pad_left};"
    ]
    image = "x" if s.batch == 1 else f"x + n * {s.strides[0]}"
    if inside:
        start = f"{image} + (top * {s.in_w} + left) * {s.in_c}"
    else:
        place += [
            "const int32_t first_row = top > 0 ? top : 0, first_column = left > 0 ? left : 0;",
            f"const int32_t last_row = top + {s.kernel_h} < {s.in_h} ? top + {s.kernel_h} : {s.in_h};",
            f"const int32_t last_column = left + {s.kernel_w} < {s.in_w} ? left + {s.kernel_w} : {s.in_w};",
            "const int32_t height = last_row - first_row, width = last_column - first_column;",
            *(["const int32_t count = height * width;"] if kind == "average" else []),
        ]
        start = f"{image} + (first_row * {s.in_w} + first_column) * {s.in_c}"
    out = f"y + (row * {s.out_w} + column) * {s.in_c}"
    if s.batch > 1:
        out = f"y + ((n * {s.out_h} + row) * {s.out_w} + column) * {s.in_c}"
    pixel = [
        *place,
        *([] if tail is not None else [f"{cast} *out = {out};"]),
        f"for (int32_t c = 0; c < {s.in_c}; c += {step}) {{",
        f"const {cast} *from = {start} + c;",
        *work,
        "}",
    ]
    lines = [
        f"for (int32_t row = 0; row < {s.out_h}; row++) {{",
        f"for (int32_t column = 0; column < {s.out_w}; column++) {{",
        *pixel,
        "}",
        "}",
    ]
    if s.batch > 1:
        lines = [f"for (int32_t n = 0; n < {s.batch}; n++) {{", *lines, "}"]
    return KernelCode(
        body="\n".join(lines) + "\n",
        includes=frozenset({HEADER}) if four else frozenset(),
        slack=by_pixels(shape, 1, by_channel=True),
        note=f"{kind} of {s.kernel_h}x{s.kernel_w}, {step} channel(s) at a time",
    )
