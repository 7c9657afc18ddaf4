"""Patches of four output pixels as int16 pairs: layout, the helpers that write them.

Weights with a zero point that do not fit int8 without it have taps more, whose inputs are sums of the others:

    sum of x * (w - zero)  =  sum of x * w  +  zero * -(sum of x)

So `zero` is the weight of taps behind the last one, and their input is the negated sum of all inputs, which
every channel takes. SSUB16 makes two of these sums at once, of the inputs in the low and in the high half of
up to 128 words: no sum leaves int16. Inputs are int16 pairs as the kernels of convolutions and of dense
layers have expanded them; the padding of a patch is a zero there, which adds nothing.

The patch of a group of channels is a slice of each pixel. Where the taps of four pixels lie is found once for
all groups: `at`, of each tap four addresses of a pixel's first channel, `outside` being a pixel of zero
points. Then each group's slice is gathered: four channels of a tap at a time, of what is left two channels of
two taps, one channel of two taps. An odd last tap is its own neighbour, with weights that add nothing. A
dilated convolution is one group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.text import loop_of
from aot_model.kernels.base import ConvShape, Scratch
from aot_model.kernels.int8.dsp import dsp_function
from aot_model.kernels.int8.spec import Int64, QuantSpec, Weights

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
    order: Int64
    """Tap at each position of a column; -1: none."""

    @property
    def length(self) -> int:
        return int(self.order.size)

    def ordered(self, rows: Weights, nothing: int = 0) -> Int64:
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
    key = f"{h}x{w}x{c}_k{kw}_z{quant.x_zero_point}".replace("-", "n")
    if not shape.adjacent_taps:
        key += f"_d{shape.dilation_w}"
    name = f"run_{quant.x_dtype}_{key}"
    if shape.adjacent_taps:
        whole = f"""\
    if (row >= 0 && row < {h} && column >= 0 && column <= {w - kw}) {{
        return x + row * {w * c} + column * {c};
    }}
"""
        body = f"""\
{whole if kw <= w else ""}    memset(slot, {quant.x_zero_point}, {kw * c});
    const int32_t from = column < 0 ? -column : 0;
    const int32_t to = column > {w - kw} ? {w} - column : {kw};
    if (row >= 0 && row < {h} && from < to) {{
        memcpy(slot + from * {c}, x + row * {w * c} + (column + from) * {c}, (size_t)((to - from) * {c}));
    }}"""
    else:
        body = f"""\
    {cast} *to = slot;
    for (int32_t tap = 0; tap < {kw}; tap++, column += {shape.dilation_w}) {{
        const int inside = row >= 0 && row < {h} && column >= 0 && column < {w};
        for (int32_t c = 0; c < {c}; c++) {{
            *to++ = inside ? x[row * {w * c} + column * {c} + c] : {quant.x_zero_point};
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
    place = ["int32_t r = row, c = column + ahead[i];", *next_row(s, "c", "r")]
    place += [f"tops[i] = r * {s.stride_h} - {s.pad_top};", f"lefts[i] = c * {s.stride_w} - {s.pad_left};"]
    ahead = f"const int32_t ahead[4] = {{{', '.join(column)}}};"
    return [ahead, "int32_t tops[4], lefts[4];", *loop_of("i", 4, *place)]


WORDS = 128
"""Pairs of inputs that a word has the sums of: 128 * 255 fits int16."""


def sums_fit(zero: int) -> bool:
    """Whether a zero point can be a weight."""
    return -128 <= zero <= 127


def sum_words(taps: int, zero: int) -> int:
    """Words of sums behind so many taps."""
    return -(-taps // (2 * WORDS)) if zero else 0


def with_sums(taps: Int64, zero: int, words: int) -> Int64:
    """Weights [channels, taps] with those of the sums."""
    return np.concatenate([taps, np.full((taps.shape[0], 2 * words), zero, np.int64)], axis=1)


def column_sums(taps: int, count: int) -> tuple[list[str], tuple[str, ...]]:
    """(statements, helpers): `count` words of sums for each of the four pixels in `columns`, behind their
    taps.
    """
    half = taps // 2
    parts = [(k * WORDS, min(WORDS, half - k * WORDS)) for k in range(count)]
    name = "negated_sums4"
    lines = [
        "push {r4-r11, lr}",
        "add r2, r0, r2, lsl #4",
        *[f"mov r{r}, #0" for r in range(8, 12)],
        "1:",
        "ldmia r0!, {r4-r7}",
        *[f"ssub16 r{8 + i}, r{8 + i}, r{4 + i}" for i in range(4)],
        "cmp r0, r2",
        "bne 1b",
        "stmia r1, {r8-r11}",
        "pop {r4-r11, pc}",
    ]
    twin = ["for (uint32_t i = 0; i < 4; i++) {", "uint32_t sum = 0;",
            "for (uint32_t k = 0; k < half; k++) {", "sum = dsp_ssub16(sum, columns[4 * k + i]);", "}",
            "to[i] = sum;", "}"]  # fmt: skip
    comment = "Negated sums of four pixels' int16 [half][4][2], of the first and the second of each pair."
    parameters = "const uint32_t *columns, uint32_t *to, uint32_t half"
    text = dsp_function(name, comment, parameters, lines, twin)
    calls = [
        f"{name}(columns + {4 * first}, columns + {4 * (half + k)}, {size}u);"
        for k, (first, size) in enumerate(parts)
    ]
    return calls, (text,) if calls else ()


def sums_of_row(taps: int, count: int, size: int) -> list[str]:
    """Statements: the same of one row of input, int16 pairs in `wide`; zeros up to `size` words."""
    half = taps // 2
    lines = [f"wide[{k}] = 0u;" for k in range(half + count, size)] if count else []
    for k in range(count):
        first, last = k * WORDS, min((k + 1) * WORDS, half)
        lines += ["{", "uint32_t sum = 0;", f"for (int32_t k = {first}; k < {last}; k++) {{",
                  "sum = dsp_ssub16(sum, wide[k]);", "}", f"wide[{half + k}] = sum;", "}"]  # fmt: skip
    return lines


MOST_TAPS = 32
"""Of a kernel: the addresses are on the stack."""
_FIRST, _SECOND = ("r4", "r5", "r6", "r7"), ("r8", "r9", "r10", "r11")


def slices_fit(shape: ConvShape) -> bool:
    """Whether the taps are few."""
    return shape.kernel_h * shape.kernel_w <= MOST_TAPS


@dataclass(frozen=True)
class Slices:
    """The patches of a layer's groups."""

    shape: ConvShape
    x_type: str
    zero: int

    @property
    def depth(self) -> int:
        """Input channels of a group."""
        return self.shape.group_in

    @property
    def taps(self) -> int:
        return self.shape.kernel_h * self.shape.kernel_w

    @property
    def stored(self) -> int:
        """Taps with addresses."""
        return self.taps + (self.taps % 2 if self.depth % 4 else 0)

    @property
    def order(self) -> Int64:
        """The tap and channel, counted together, at each position of a column; -1: none."""
        depth, found = self.depth, []
        for first in range(0, depth - depth % 4, 4):
            found += [t * depth + first + k for t in range(self.taps) for k in (0, 2, 1, 3)]
        whole, pairs = depth - depth % 4, range(0, self.stored, 2)
        if depth & 2:
            found += [(t + k) * depth + whole + c for t in pairs for c in (0, 1) for k in (0, 1)]
        if depth & 1:
            found += [(t + k) * depth + depth - 1 for t in pairs for k in (0, 1)]
        order = np.array(found, np.int64)
        return np.where(order < self.taps * depth, order, -1)

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels that are gathered together."""
        return tuple(w for w in (4, 2, 1) if (self.depth >= 4 if w == 4 else self.depth & w))

    def scratch(self) -> list[Scratch]:
        inside = self.shape.inside
        return [] if inside else [Scratch("outside", self.shape.in_c, 4, f"{self.x_type}_t")]

    def begin(self) -> list[str]:
        """Statements before all pixels."""
        return [] if self.shape.inside else [f"memset(outside, {self.zero}, {self.shape.in_c});"]

    def addresses(self, image: str) -> list[str]:
        """C that fills `at` from the windows' corners `tops` and `lefts`."""
        s = self.shape
        _, sy, sx, _ = s.strides
        place = f"{image} + (tops[i] + ky * {s.dilation_h}) * {sy} + (lefts[i] + kx * {s.dilation_w}) * {sx}"
        lines, value = [], place
        if not s.inside:
            lines = [f"const int32_t r = tops[i] + ky * {s.dilation_h};"]
            lines.append(f"const int line = r >= 0 && r < {s.in_h};")
            value = f"line && c >= 0 && c < {s.in_w} ? {image} + r * {sy} + c * {sx} : outside"
        column = [] if s.inside else [f"const int32_t c = lefts[i] + kx * {s.dilation_w};"]
        row = loop_of("kx", s.kernel_w, *column, f"*to_at = {value};", more="to_at += 4")
        pixel = [f"const {self.x_type}_t **to_at = at + i;", *loop_of("ky", s.kernel_h, *lines, *row)]
        if self.stored > self.taps:
            pixel.append(f"at[{PIXELS * self.taps} + i] = at[{PIXELS * (self.taps - 1)} + i];")
        return [f"const {self.x_type}_t *at[{PIXELS * self.stored}];", *loop_of("i", 4, *pixel)]

    def gather(self) -> list[str]:
        """C that fills `columns` with the slice of group `g`."""
        depth = self.depth
        lines = [f"const int32_t slice = {f'g * {depth}' if self.shape.groups > 1 else 0};"]
        lines.append("uint32_t *to = columns;")
        whole, last = depth - depth % 4, self.widths[-1]
        for width in self.widths:
            first = {4: 0, 2: whole, 1: depth - 1}[width]
            end = f"at, at + {PIXELS * (self.taps if width == 4 else self.stored)}"
            call = f"{_slice_name(self.x_type, width)}(to, {end}, slice{f' + {first}' if first else ''}"
            if width == 4 and depth >= 8:
                lines += loop_of("k", whole, f"to = {call} + k);", step=4)
            else:
                lines.append(f"{'' if width == last else 'to = '}{call});")
        return lines

    def helpers(self) -> list[str]:
        return [_slice_helper(self.x_type, width) for width in self.widths]


def _slice_name(dtype: str, width: int) -> str:
    return f"slice4x{width}_{dtype}"


def _slice_helper(dtype: str, width: int) -> str:
    """Text of the function that gathers `width` channels of all taps."""
    ext, byte = ("sxtb16", "ldrsb") if dtype == "int8" else ("uxtb16", "ldrb")
    load = {4: "ldr", 2: "ldrh", 1: byte}
    loaded = _FIRST if width == 4 else (*_FIRST, *_SECOND)
    lines = ["push {r4-r11, lr}", "1:", "ldmia r1!, {r4-r7}"]
    lines += ["ldmia r1!, {r8-r11}"] if width < 4 else []
    lines += [f"{load[width]} {r}, [{r}, r3]" for r in loaded]
    lines += [f"pkhbt {a}, {a}, {b}, lsl #16" for a, b in zip(_FIRST, _SECOND, strict=True) if width < 4]
    if width > 1:
        lines += [f"{ext} {b}, {a}, ror #8" for a, b in zip(_FIRST, _SECOND, strict=True)]
        lines += [f"{ext} {a}, {a}" for a in _FIRST]
    lines += [f"stmia r0!, {{r4-r{11 if width > 1 else 7}}}", "cmp r1, r2", "bne 1b", "pop {r4-r11, pc}"]
    kind = f"const {dtype}_t"
    first, second = ("v[0]", "v[2]") if width == 4 else ("v[0]", "w[0]")
    third, fourth = ("v[1]", "v[3]") if width == 4 else ("v[1]", "w[1]")
    twin = [
        f"for (; at != end; at += {4 if width == 4 else 8}, columns += {4 if width == 1 else 8}) {{",
        "for (uint32_t i = 0; i < 4; i++) {",
        f"{kind} *v = at[i] + slice;",
        *([f"{kind} *w = at[4 + i] + slice;"] if width < 4 else []),
        f"columns[i] = ((uint32_t){first} & 0xffffu) | (uint32_t){second} << 16;",
        *([f"columns[4 + i] = ((uint32_t){third} & 0xffffu) | (uint32_t){fourth} << 16;"] * (width > 1)),
        "}", "}", "return columns;",
    ]  # fmt: skip
    channels = {4: "Four channels of a tap", 2: "Two channels of two taps", 1: "A channel of two taps"}[width]
    comment = f"{channels} at a time, from `slice` on, of four pixels as int16 [k/2][4][2]."
    parameters = f"uint32_t *columns, {kind} *const *at, {kind} *const *end, int32_t slice"
    return dsp_function(_slice_name(dtype, width), comment, parameters, lines, twin, "uint32_t *")
