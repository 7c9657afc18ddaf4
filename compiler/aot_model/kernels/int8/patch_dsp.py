"""Patches of four output pixels as int16 pairs: layout, the helpers that write them, and what it means for
overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8.dsp import dsp_function
from aot_model.kernels.int8.spec import Int64, QuantSpec

PIXELS = 4


@dataclass(frozen=True)
class Patch:
    """How one pixel's patch lies in `columns`. All counts in taps."""

    run: int
    """Adjacent taps of a kernel row."""
    quads: int
    """Groups of four in a run, expanded where they lie."""
    rest: int
    """Taps left over from all runs, gathered and padded with zero to a multiple of four."""
    order: npt.NDArray[np.int64]
    """Tap at each position of a column; -1: none."""

    @property
    def length(self) -> int:
        return int(self.order.size)

    def ordered(self, rows: npt.NDArray[np.integer], nothing: int = 0) -> Int64:
        """Weights [channels, taps] in the order of a column; nothing: where there is no tap."""
        return np.where(self.order >= 0, rows[:, np.maximum(self.order, 0)], nothing).astype(np.int64)


def patch_layout(kernel_h: int, run: int) -> Patch:
    """Order of the taps that expansion by SXTB16 gives: 0, 2, 1, 3 within four bytes."""
    quads = run // 4
    whole = [row * run + tap for row in range(kernel_h) for tap in range(4 * quads)]
    left = [row * run + tap for row in range(kernel_h) for tap in range(4 * quads, run)]
    left += [-1] * (-len(left) % 4)
    order = np.array(whole + left, np.int64).reshape(-1, 4)[:, [0, 2, 1, 3]].reshape(-1)
    return Patch(run, quads, len(left), order)


def expand_helper(dtype: str) -> tuple[str, str]:
    """(name, text): four runs of 4 * quads bytes to interleaved int16 pairs; returns the end of what it
    wrote.
    """
    name = f"expand4_{dtype}"
    ext = "sxtb16" if dtype == "int8" else "uxtb16"
    lines = [
        "push {r4-r11, lr}",
        "ldrd r12, lr, [sp, #36]",
        "add lr, r0, lr, lsl #5",
        "1:",
        *[f"ldr {d}, [{p}], #4" for d, p in (("r4", "r1"), ("r5", "r2"), ("r6", "r3"), ("r7", "r12"))],
        *[f"{ext} r{8 + i}, r{4 + i}, ror #8" for i in range(4)],
        *[f"{ext} r{4 + i}, r{4 + i}" for i in range(4)],
        "stmia r0!, {r4-r11}",
        "cmp r0, lr",
        "bne 1b",
        "pop {r4-r11, pc}",
    ]
    kind = f"const {dtype}_t"
    twin = [
        f"{kind} *const runs[4] = {{p0, p1, p2, p3}};",
        "for (uint32_t quad = 0; quad < quads; quad++, columns += 8) {",
        "for (uint32_t i = 0; i < 4; i++) {",
        f"{kind} *v = runs[i] + 4 * quad;",
        "columns[i] = ((uint32_t)v[0] & 0xffffu) | (uint32_t)v[2] << 16;",
        "columns[4 + i] = ((uint32_t)v[1] & 0xffffu) | (uint32_t)v[3] << 16;",
        "}", "}", "return columns;",
    ]  # fmt: skip
    comment = "Four runs of 4 * quads bytes to int16 [k/2][4][2], the bytes of a word in order 0, 2, 1, 3."
    parameters = f"uint32_t *columns, {kind} *p0, {kind} *p1, {kind} *p2, {kind} *p3, uint32_t quads"
    return name, dsp_function(name, comment, parameters, lines, twin, "uint32_t *")


def run_helper(shape: ConvShape, quant: QuantSpec) -> tuple[str, str]:
    """(name, text): pointer to a kernel row's run at (row, column) of the image, assembled in `slot` where
    needed.
    """
    cast = f"{quant.x_dtype}_t"
    kw, c, w, h = shape.kernel_w, shape.in_c, shape.in_w, shape.in_h
    _, sy, sx, sc = shape.strides
    adjacent = shape.adjacent_taps
    key = f"{h}x{w}x{c}_k{kw}_z{quant.x_zero_point}".replace("-", "n")
    if not adjacent:
        key += f"_d{shape.dilation_w}_{sy}_{sx}_{sc}"
    elif sx != c or sy != w * c:
        key += f"_{sy}_{sx}"
    name = f"run_{quant.x_dtype}_{key}"
    if adjacent:
        body = f"""\
    if (row >= 0 && row < {h} && column >= 0 && column <= {w - kw}) {{
        return x + row * {sy} + column * {sx};
    }}
    memset(slot, {quant.x_zero_point}, {kw * c});
    const int32_t from = column < 0 ? -column : 0;
    const int32_t to = column > {w - kw} ? {w} - column : {kw};
    if (row >= 0 && row < {h} && from < to) {{
        memcpy(slot + from * {c}, x + row * {sy} + (column + from) * {sx}, (size_t)((to - from) * {c}));
    }}"""
    else:
        body = f"""\
    {cast} *to = slot;
    for (int32_t tap = 0; tap < {kw}; tap++, column += {shape.dilation_w}) {{
        const int inside = row >= 0 && row < {h} && column >= 0 && column < {w};
        for (int32_t c = 0; c < {c}; c++) {{
            *to++ = inside ? x[row * {sy} + column * {sx} + c * {sc}] : {quant.x_zero_point};
        }}
    }}"""
    return (
        name,
        f"""/* {kw} x {c} adjacent taps at (row, column); outside of the image: the zero point. */
AOT_MODEL_OPAQUE static const {cast} *{name}(const {cast} *x, int32_t row, int32_t column, {cast} *slot)
{{
{body}
    return slot;
}}
""",
    )


def needs_assembly(shape: ConvShape) -> bool:
    """Whether some run cannot be read where it lies."""
    return not (shape.adjacent_taps and shape.inside)


def next_row(shape: ConvShape, column: str, row: str) -> list[str]:
    """C that takes a column beyond the output's width to the rows below."""
    return [f"while ({column} >= {shape.out_w}) {{", f"{column} -= {shape.out_w};", f"{row}++;", "}"]


def corners(s: ConvShape, column: list[str]) -> list[str]:
    """C of the first taps of any four pixels; column: of each how far it is ahead."""
    return [
        f"const int32_t ahead[4] = {{{', '.join(column)}}};",
        "int32_t tops[4], lefts[4];",
        "for (int32_t i = 0; i < 4; i++) {",
        "int32_t r = row, c = column + ahead[i];",
        *next_row(s, "c", "r"),
        f"tops[i] = r * {s.stride_h} - {s.pad_top};",
        f"lefts[i] = c * {s.stride_w} - {s.pad_left};",
        "}",
    ]  # fmt: skip
