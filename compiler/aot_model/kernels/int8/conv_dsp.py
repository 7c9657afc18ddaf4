"""Convolution for cores with the DSP extension: expand four pixels' patches to int16, then all channels of the four.

Four output pixels at a time (in memory order, across rows): their patches are gathered as int16 pairs into `columns`,
sign extension included, and the micro-kernel of gemm_dsp multiplies them with all channels. So the input of these four
pixels is consumed before one of their outputs is written, and `y` may follow over `x` closely (see `slack`).

A patch is kernel_h runs of kernel_w * channels adjacent bytes. Runs inside of the image are read where they lie; one
that leaves it is first assembled in `border` with the input's zero point for what is outside, so that folding the
zero point into the bias holds for every pixel and the inner loop knows of no padding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.finish import DSP, asm_text, raw_constants, requantise_helper
from aot_model.kernels.int8.gemm_dsp import pack_pairs, pair_kernel
from aot_model.kernels.int8.requantise import fold_zero_point
from aot_model.kernels.int8.spec import QuantSpec

PIXELS = 4


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    return shape.groups == 1 and quant.weight_zero_point == 0 and shape.out_h * shape.out_w > 0


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


def patch_layout(kernel_h: int, run: int) -> Patch:
    """Order of the taps that expansion by SXTB16 gives: 0, 2, 1, 3 within four bytes."""
    quads = run // 4
    whole = [row * run + tap for row in range(kernel_h) for tap in range(4 * quads)]
    left = [row * run + tap for row in range(kernel_h) for tap in range(4 * quads, run)]
    left += [-1] * (-len(left) % 4)
    order = np.array(whole + left, np.int64).reshape(-1, 4)[:, [0, 2, 1, 3]].reshape(-1)
    return Patch(run, quads, len(left), order)


def slack(shape: ConvShape, pixels: int = PIXELS) -> int | None:
    """How far y may begin after x: writes of each group of pixels stay below what later groups read."""
    if shape.x_strides is not None:
        return None
    count = shape.out_h * shape.out_w
    pixel = np.arange(count)
    top = np.maximum(pixel // shape.out_w * shape.stride_h - shape.pad_top, 0)
    left = np.maximum(pixel % shape.out_w * shape.stride_w - shape.pad_left, 0)
    read = (np.minimum(top, shape.in_h) * shape.in_w + np.minimum(left, shape.in_w)) * shape.in_c
    pixels_in, pixels_out = shape.in_h * shape.in_w * shape.in_c, count * shape.out_c
    starts = np.concatenate([n * pixels_in + read for n in range(shape.batch)])
    later = np.minimum.accumulate(starts[::-1])[::-1]
    best = shape.batch * pixels_in
    for n in range(shape.batch):
        ends = np.arange(pixels, count + pixels, pixels)
        for end in np.minimum(ends, count):
            after = n * count + int(end)
            if after < later.size:
                best = min(best, int(later[after]) - (n * pixels_out + int(end) * shape.out_c))
    return best


def expand_helper(dtype: str) -> tuple[str, str]:
    """(name, text): four runs of 4 * quads bytes to interleaved int16 pairs; returns the end of what it wrote."""
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
    cast = f"{dtype}_t"
    unused = "__attribute__((unused))"
    text = f"""/* Four runs of 4 * quads bytes to int16 [k/2][4][2], the bytes of a word in the order 0, 2, 1, 3. */
{DSP}
__attribute__((naked, noinline, used)) static uint32_t *{name}(
    {unused} uint32_t *columns, {unused} const {cast} *p0, {unused} const {cast} *p1, {unused} const {cast} *p2,
    {unused} const {cast} *p3, {unused} uint32_t quads)
{{
    __asm__ volatile(
{asm_text(lines)}
    );
}}
#else
static uint32_t *{name}(
    uint32_t *columns, const {cast} *p0, const {cast} *p1, const {cast} *p2, const {cast} *p3, uint32_t quads)
{{
    const {cast} *const runs[4] = {{p0, p1, p2, p3}};
    for (uint32_t quad = 0; quad < quads; quad++, columns += 8) {{
        for (uint32_t i = 0; i < 4; i++) {{
            const {cast} *v = runs[i] + 4 * quad;
            columns[i] = ((uint32_t)v[0] & 0xffffu) | (uint32_t)v[2] << 16;
            columns[4 + i] = ((uint32_t)v[1] & 0xffffu) | (uint32_t)v[3] << 16;
        }}
    }}
    return columns;
}}
#endif
"""
    return name, text


def run_helper(shape: ConvShape, quant: QuantSpec) -> tuple[str, str]:
    """(name, text): pointer to a kernel row's run at (row, column) of the image, assembled in `slot` where needed."""
    cast = f"{quant.x_dtype}_t"
    kw, c, w, h = shape.kernel_w, shape.in_c, shape.in_w, shape.in_h
    _, sy, sx, sc = shape.strides
    adjacent = sc == 1 and (kw == 1 or (sx == c and shape.dilation_w == 1))
    key = f"{h}x{w}x{c}_k{kw}_z{quant.x_zero_point}".replace("-", "n")
    if not adjacent:
        key += f"_d{shape.dilation_w}_{sy}_{sx}_{sc}"
    elif sx != c or sy != w * c:
        key += f"_{sy}_{sx}"
    name = f"run_{quant.x_dtype}_{key}"
    if adjacent:
        body = f"""    if (row >= 0 && row < {h} && column >= 0 && column <= {w - kw}) {{
        return x + row * {sy} + column * {sx};
    }}
    memset(slot, {quant.x_zero_point}, {kw * c});
    const int32_t from = column < 0 ? -column : 0;
    const int32_t to = column > {w - kw} ? {w} - column : {kw};
    if (row >= 0 && row < {h} && from < to) {{
        memcpy(slot + from * {c}, x + row * {sy} + (column + from) * {sx}, (size_t)((to - from) * {c}));
    }}
    return slot;"""
    else:
        body = f"""    {cast} *to = slot;
    for (int32_t tap = 0; tap < {kw}; tap++, column += {shape.dilation_w}) {{
        const int inside = row >= 0 && row < {h} && column >= 0 && column < {w};
        for (int32_t c = 0; c < {c}; c++) {{
            *to++ = inside ? x[row * {sy} + column * {sx} + c * {sc}] : {quant.x_zero_point};
        }}
    }}
    return slot;"""
    text = f"""/* {kw} x {c} adjacent taps at (row, column); outside of the image: the zero point. */
static const {cast} *{name}(const {cast} *x, int32_t row, int32_t column, {cast} *slot)
{{
{body}
}}
"""
    return name, text


def needs_assembly(shape: ConvShape) -> bool:
    """Whether some run cannot be read where it lies."""
    _, _, sx, sc = shape.strides
    adjacent = sc == 1 and (shape.kernel_w == 1 or (sx == shape.in_c and shape.dilation_w == 1))
    bottom = (shape.out_h - 1) * shape.stride_h + (shape.kernel_h - 1) * shape.dilation_h - shape.pad_top
    right = (shape.out_w - 1) * shape.stride_w + (shape.kernel_w - 1) * shape.dilation_w - shape.pad_left
    inside = shape.pad_top <= 0 and shape.pad_left <= 0 and bottom < shape.in_h and right < shape.in_w
    return not (adjacent and inside)


def conv(
    shape: ConvShape,
    weights: npt.NDArray[np.int8],
    bias: npt.NDArray[np.int32] | None,
    quant: QuantSpec,
    tail: Tail | None = None,
) -> KernelCode:
    """Convolution; weights [out_c, kernel_h, kernel_w, in_c], `applicable()`. With a tail it gets the int8 value."""
    oc, ic = shape.out_c, shape.in_c
    w, b = fold_zero_point(weights.reshape(oc, -1), bias, quant)
    assemble = needs_assembly(shape)
    flat = shape.kernel_h == shape.kernel_w == shape.stride_h == shape.stride_w == 1 and not assemble
    flat = flat and shape.strides == replace(shape, x_strides=None).strides
    patch = patch_layout(shape.kernel_h, shape.kernel_w * ic)
    ordered = np.where(patch.order >= 0, w[:, np.maximum(patch.order, 0)], 0)

    separate = tail is not None or oc == 1
    stream = pack_pairs(ordered, b, quant, separate)
    if stream.requantise.form == "raw" and not separate:
        separate = True
        stream = pack_pairs(ordered, b, quant, separate)
    kernel, kernel_text = pair_kernel(stream, quant.out_dtype)
    expand, expand_text = expand_helper(quant.x_dtype)
    body = _Body(shape, quant, patch, separate, stream.requantise.form == "raw", tail, flat, assemble)
    run, run_text = run_helper(shape, quant) if assemble else ("", "")
    helpers = [kernel_text, expand_text, *([run_text] if assemble else [])]
    constants = [Packed("weights", stream.words)]
    if body.raw:
        requantise, text = requantise_helper(quant)
        helpers.append(text)
        constants += raw_constants(quant, oc)
    else:
        requantise = ""
    slots = stream.pairs.size
    scratch = [Scratch("columns", patch.length * PIXELS * 2, 4, "uint32_t")]
    cast = f"{quant.x_dtype}_t"
    if assemble:
        scratch.append(Scratch("border", PIXELS * patch.run, 4, cast))
    if patch.rest:
        scratch.append(Scratch("rest", PIXELS * patch.rest, 4, cast))
    if separate:
        out = "int32_t" if body.raw else f"{quant.out_dtype}_t"
        scratch.append(Scratch("results", PIXELS * slots * (4 if body.raw else 1), 4, out))
    whole = stream.pair_words * (slots // 2)
    text = body.text(kernel, expand, run, requantise, whole, stream.pair_words)
    return KernelCode(
        body=text,
        constants=tuple(constants),
        scratch=tuple(scratch),
        includes=frozenset({"string.h"}) if not flat or patch.rest else frozenset(),
        helpers=tuple(helpers),
        slack=slack(shape),
        note=(
            f"four pixels x channel pairs, {patch.length} taps; {'one' if stream.joined else 'two'} SXTB16 per 4 weights, "
            f"{5 / 16:.2f} words loaded per MAC; requantisation: {stream.requantise.form}"
        ),
    )


@dataclass(frozen=True)
class _Body:
    """Writes the loops around the micro-kernel."""

    shape: ConvShape
    quant: QuantSpec
    patch: Patch
    separate: bool
    raw: bool
    tail: Tail | None
    flat: bool
    assemble: bool

    def text(self, kernel: str, expand: str, run: str, requantise: str, words: int, pair_words: int) -> str:
        s = self.shape
        count = s.out_h * s.out_w
        batch = s.batch
        if self.flat:
            count, batch = count * batch, 1
        lines = [f"for (int32_t pixel = 0; pixel < {count}; pixel += 4) {{"]
        partial = count % PIXELS != 0
        if partial:
            lines += [
                "    /* fewer than four are left: the last ones are computed twice */",
                f"    const int32_t left = {count} - pixel;",
            ]
            if self.separate:
                lines += [
                    "    const int32_t valid = left < 4 ? left : 4;",
                ]
                column = ["0", "(valid > 1 ? 1 : 0)", "(valid > 2 ? 2 : valid - 1)", "(valid > 3 ? 3 : valid - 1)"]
            else:
                lines += [
                    "    const int32_t step = left > 1 ? 1 : 0;",
                    "    const int32_t second = left >= 4 ? 2 : left > 1 ? left - 2 : 0;",
                ]
                column = ["0", "step", "second", "second + step"]
        else:
            column = ["0", "1", "2", "3"]
        lines += ["    " + line for line in (self._flat(expand, column) if self.flat else self._gather(expand, run, column))]
        lines += ["    " + line for line in self._multiply(kernel, requantise, words, pair_words, partial, batch > 1)]
        if not self.flat:
            lines += [
                "    column += 4;",
                f"    while (column >= {s.out_w}) {{",
                f"        column -= {s.out_w};",
                "        row++;",
                "    }",
            ]
        lines.append("}")
        if not self.flat:
            lines = ["int32_t row = 0, column = 0;", *lines]
        if batch > 1:
            cast = f"{self.quant.x_dtype}_t"
            inner = [
                f"const {cast} *image = x + n * {s.strides[0]};",
                *([] if self.tail else [f"{self.quant.out_dtype}_t *out = y + n * {count * s.out_c};"]),
                *lines,
            ]
            lines = [f"for (int32_t n = 0; n < {batch}; n++) {{", *("    " + line for line in inner), "}"]
        return "\n".join(lines) + "\n"

    def _flat(self, expand: str, column: list[str]) -> list[str]:
        c, p = self.shape.in_c, self.patch
        lines = [f"const {self.quant.x_dtype}_t *from = x + pixel * {c};"]
        runs = ["from" if k == "0" else f"from + ({k}) * {c}" for k in column]
        if p.quads:
            end = "" if not p.rest else "uint32_t *more = "
            lines.append(f"{end}{expand}(columns, {', '.join(runs)}, {p.quads}u);")
        if p.rest:
            used = c - 4 * p.quads
            lines += [f"memset(rest, 0, {PIXELS * p.rest});"]
            lines += [f"memcpy(rest + {i * p.rest}, {r} + {4 * p.quads}, {used});" for i, r in enumerate(runs)]
            where = "more" if p.quads else "columns"
            lines.append(f"{expand}({where}, {self._rest()}, {p.rest // 4}u);")
        return lines

    def _rest(self) -> str:
        return ", ".join(f"rest + {i * self.patch.rest}" for i in range(PIXELS))

    def _gather(self, expand: str, run: str, column: list[str]) -> list[str]:
        s, p = self.shape, self.patch
        image = "image" if s.batch > 1 else "x"
        lines = [
            f"const int32_t ahead[4] = {{{', '.join(column)}}};",
            "int32_t top[4], left_edge[4];",
            "for (int32_t i = 0; i < 4; i++) {",
            "    int32_t r = row, c = column + ahead[i];",
            f"    while (c >= {s.out_w}) {{",
            f"        c -= {s.out_w};",
            "        r++;",
            "    }",
            f"    top[i] = r * {s.stride_h} - {s.pad_top};",
            f"    left_edge[i] = c * {s.stride_w} - {s.pad_left};",
            "}",
            "uint32_t *to = columns;",
        ]
        used = p.run - 4 * p.quads
        _, sy, sx, _ = s.strides
        loop = []
        for i in range(PIXELS):
            y = f"top[{i}] + ky * {s.dilation_h}"
            where = f"{image} + ({y}) * {sy} + left_edge[{i}] * {sx}"
            if self.assemble:
                where = f"{run}({image}, {y}, left_edge[{i}], border + {i * p.run})"
            loop.append(f"const {self.quant.x_dtype}_t *run{i} = {where};")
        if p.quads:
            loop.append(f"to = {expand}(to, run0, run1, run2, run3, {p.quads}u);")
        if used:
            loop.append(f"for (int32_t k = 0; k < {used}; k++) {{")
            loop += [f"    rest[{i * p.rest} + ky * {used} + k] = run{i}[{4 * p.quads} + k];" for i in range(4)]
            loop.append("}")
        if p.rest:
            lines.append(f"memset(rest, 0, {PIXELS * p.rest});")
        lines += [f"for (int32_t ky = 0; ky < {s.kernel_h}; ky++) {{", *("    " + line for line in loop), "}"]
        if p.rest:
            lines.append(f"{expand}(to, {self._rest()}, {p.rest // 4}u);")
        return lines

    def _multiply(self, kernel: str, requantise: str, words: int, pair_words: int, partial: bool, many: bool) -> list[str]:
        s, half = self.shape, self.patch.length // 2
        oc = s.out_c
        out = "out" if many and self.tail is None else "y"
        if not self.separate:
            second, step = ("second", f"(uint32_t)step * {oc}u") if partial else ("2", f"{oc}u")
            lines = [f"{self.quant.out_dtype}_t *to_y = {out} + pixel * {oc};"]
            whole = words - (pair_words if oc % 2 else 0)
            spans = [(0, whole, 0)] if whole else []
            if oc % 2:
                spans.append((whole, words, oc - 2))
            for first, last, channel in spans:
                at = "to_y" if not channel else f"to_y + {channel}"
                stream = "weights" if not first else f"weights + {first}"
                lines.append(f"{kernel}(columns, {stream}, {at}, {at} + {second} * {oc}, {step}, {half}u, weights + {last});")
            return lines
        slots = oc + oc % 2
        size = 4 if self.raw else 1
        lines = [
            f"{kernel}(columns, weights, results, results + {2 * slots}, {slots * size}u, {half}u, weights + {words});",
            f"for (int32_t p = 0; p < {'valid' if partial else '4'}; p++) {{",
            f"    for (int32_t c = 0; c < {oc}; c++) {{",
        ]
        value = f"results[p * {slots} + c]"
        if self.raw:
            value = f"{requantise}({value}, requantisation + 2 * c)"
        lines.append(f"        const int32_t v = {value};")
        if self.tail is None:
            lines.append(f"        {out}[(pixel + p) * {oc} + c] = ({self.quant.out_dtype}_t)v;")
        else:
            index = ("n" if many else "0", "0", "pixel + p", "c")
            lines += ["        " + line for line in self.tail.store("v", index, 1).splitlines()]
        return [*lines, "    }", "}"]
